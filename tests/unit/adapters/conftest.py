"""Real programs under a real loop: every wait is for a condition, with a deadline."""

import asyncio
import fcntl
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.agents.process_table import list_pids, read_marks
from haclusterd.entry_points.free_ports import free_ports
from tests.unit.adapters.namespaces import HeldBack
from tests.unit.adapters.scripted_agents import ScriptedAgents, end_all


@pytest.fixture
async def clock() -> BoottimeClock:
    return BoottimeClock(asyncio.get_running_loop())


@pytest.fixture
def until() -> Callable[..., object]:
    async def wait(condition: Callable[[], object], deadline_s: float = 10) -> None:
        end = time.monotonic() + deadline_s
        while not condition():
            assert time.monotonic() < end, "the condition never held"
            await asyncio.sleep(0.005)

    return wait


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o755)
        os.write(descriptor, text.encode())
        os.close(descriptor)
        return path

    return write


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A value for the environment variable TEST_MARK; everything that carries it is killed at the end."""
    value = str(tmp_path)
    yield value
    for pid in list_pids():
        if read_marks(pid).get("TEST_MARK") == value:
            with suppress(ProcessLookupError):
                os.kill(pid, 9)


@pytest.fixture
def hold_exec() -> Iterator[Callable[[Path], Callable[[], None]]]:
    """Make an exec of a file stick, by a lease on it, until the returned function is called."""
    old = signal.signal(signal.SIGIO, signal.SIG_IGN)
    held: list[int] = []

    def hold(path: Path) -> Callable[[], None]:
        descriptor = os.open(path, os.O_RDONLY)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        held.append(descriptor)

        def release() -> None:
            held.remove(descriptor)
            os.close(descriptor)

        return release

    yield hold
    for descriptor in held:
        os.close(descriptor)
    signal.signal(signal.SIGIO, old)


@pytest.fixture
def held_back() -> Iterator[HeldBack]:
    made = HeldBack()
    yield made
    made.let_go()


@pytest.fixture
async def agents(clock: BoottimeClock, tmp_path: Path) -> AsyncIterator[ScriptedAgents]:
    yield ScriptedAgents(clock, tmp_path)
    end_all(tmp_path)


@pytest.fixture
def free_port() -> int:
    return free_ports("127.0.0.1", 1)[0]
