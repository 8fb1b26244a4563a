"""A daemon dies or re-executes itself while an agent runs: its next life finds the agent (safety.md §1)."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.agents.process_table import read_arguments, read_stat
from haclusterd.model.ids import Incarnation, ResourceId
from tests.unit.adapters.recorded_actions import recorded_in
from tests.unit.adapters.scripted_agents import ScriptedAgents, end_all

ROOT = Path(__file__).parents[2]
LATER = Incarnation("boot-1", "00000000000000bb")
KEY = "00000000000000aa-1"

SCRIPT = """#!/bin/sh
[ "$1" = meta-data ] && exit 3
echo $$ >>{directory}/begun
while [ ! -e {directory}/go ]; do sleep 0.02; done
echo done >>{directory}/finished
"""


class Daemon:
    """The process that dies."""

    def __init__(self, directory: Path, timeout_ms: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "agents_driver.py"), str(directory), "slow", str(timeout_ms)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> dict[str, object]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    daemons = []

    def start(timeout_ms: int = 60_000) -> Daemon:
        scripts = tmp_path / "ra" / "test"
        scripts.mkdir(parents=True, exist_ok=True)
        (scripts / "slow").write_text(SCRIPT.format(directory=tmp_path))
        (scripts / "slow").chmod(0o755)
        daemons.append(Daemon(tmp_path, timeout_ms))
        return daemons[-1]

    yield start
    for one in daemons:
        one.kill()
        assert one.process.stdout is not None
        one.process.stdout.close()
    end_all(tmp_path)


@pytest.fixture
async def later(tmp_path: Path) -> AsyncIterator[Callable[[], ScriptedAgents]]:
    yield lambda: ScriptedAgents(BoottimeClock(asyncio.get_running_loop()), tmp_path, LATER)
    end_all(tmp_path)


async def until(condition: Callable[[], object], deadline_s: float = 10) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        await asyncio.sleep(0.005)


def agent_pid(directory: Path) -> int | None:
    """Return the agent's process id once it runs and is recorded."""
    begun = directory / "begun"
    if not begun.exists() or not begun.read_text().endswith("\n"):
        return None
    pid = int(begun.read_text().split()[0])
    records = recorded_in(directory / "run" / "actions")
    return pid if any(json.loads(path.read_text())["pid"] == pid for path in records) else None


async def begun(directory: Path) -> int:
    await until(lambda: agent_pid(directory))
    pid = agent_pid(directory)
    assert pid is not None
    return pid


def is_gone(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is None or stat.is_dead


def edit_record(directory: Path, **changes: object) -> None:
    [path] = recorded_in(directory / "run" / "actions")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def start_time_of(pid: int) -> int:
    """Return it in the kernel's ticks (proc(5), field 22)."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


async def test_after_kill_9_the_agent_is_found_and_left_to_end(daemon, later, tmp_path: Path) -> None:
    first = daemon()
    await begun(tmp_path)
    first.kill()
    agents, ended = later(), []
    [action] = agents.runner.adopt(ended.append)
    assert (action.key, action.resource, action.action, action.is_running) == (KEY, "r1", "start", True)
    assert action.deadline > agents.clock.now()
    (tmp_path / "go").touch()
    await until(lambda: ended)
    assert ended == [KEY]
    assert (tmp_path / "finished").read_text() == "done\n"
    await until(lambda: not agents.records())


async def test_after_kill_9_the_agent_is_killed_at_its_deadline(daemon, later, tmp_path: Path) -> None:
    first = daemon(timeout_ms=3000)
    pid = await begun(tmp_path)
    first.kill()
    agents, ended = later(), []
    [action] = agents.runner.adopt(ended.append)
    assert action.is_running
    await until(lambda: ended)
    assert agents.clock.now() >= action.deadline
    assert is_gone(pid)
    assert not (tmp_path / "finished").exists()


@pytest.mark.parametrize("has_process_id", [True, False])
async def test_what_an_earlier_life_left_running_can_be_killed(
    daemon, later, tmp_path: Path, *, has_process_id: bool
) -> None:
    first = daemon()
    pid = await begun(tmp_path)
    first.kill()
    if not has_process_id:
        edit_record(tmp_path, pid=None, start_time=None)
    agents, ended = later(), []
    [action] = agents.runner.adopt(ended.append)
    agents.runner.kill(action.key)
    await until(lambda: ended == [KEY])
    assert agents.clock.now() < action.deadline
    assert is_gone(pid)
    assert not (tmp_path / "finished").exists()
    agents.runner.kill(action.key)
    await until(lambda: not agents.records())


async def test_what_ended_meanwhile_is_reported_as_not_running(daemon, later, tmp_path: Path) -> None:
    first = daemon()
    pid = await begun(tmp_path)
    first.kill()
    (tmp_path / "go").touch()
    await until(lambda: is_gone(pid))
    agents, ended = later(), []
    [action] = agents.runner.adopt(ended.append)
    assert (action.key, action.is_running) == (KEY, False)
    assert later().runner.adopt(ended.append) == ()
    assert ended == []


async def test_without_a_recorded_process_id_the_agent_is_known_by_its_mark(daemon, later, tmp_path: Path) -> None:
    first = daemon()
    await begun(tmp_path)
    first.kill()
    edit_record(tmp_path, pid=None, start_time=None)
    agents, ended = later(), []
    [action] = agents.runner.adopt(ended.append)
    assert action.is_running
    (tmp_path / "go").touch()
    await until(lambda: ended)


async def test_the_end_of_a_forged_process_is_not_that_of_the_agent(daemon, later, tmp_path: Path) -> None:
    """Any user can guess a key, and begin a process with it and the agent's arguments before the agent begins."""
    agent = [str(tmp_path / "ra" / "test" / "slow"), "start"]
    marks = {"HACLUSTERD_ORDER": KEY, "HACLUSTERD_LOCAL_CLUSTER": str(tmp_path), "PATH": os.environ["PATH"]}
    forged = subprocess.Popen(["tail", "-q", "-F", "/dev/null", *agent], env=marks, stderr=subprocess.DEVNULL)
    await until(lambda: read_arguments(forged.pid)[:1] == ["tail"])
    first = daemon()
    pid = await begun(tmp_path)
    assert read_arguments(pid)[-2:] == agent
    first.kill()
    edit_record(tmp_path, pid=None, start_time=None)
    agents, ended = later(), []
    agents.runner.adopt(lambda key: ended.append((key, is_gone(pid))))
    forged.kill()
    forged.wait()
    agents.write("quick", "#!/bin/sh\nexit 0\n")
    assert (await agents.run("quick", resource=ResourceId("r2"))).exit_code == 0
    (tmp_path / "go").touch()
    await until(lambda: ended)
    assert ended == [(KEY, True)]


async def test_a_service_that_inherited_the_mark_is_not_the_agent(daemon, later, tmp_path: Path) -> None:
    first = daemon()
    pid = await begun(tmp_path)
    first.kill()
    edit_record(tmp_path, pid=None, start_time=None)
    marks = {"HACLUSTERD_ORDER": KEY, "HACLUSTERD_LOCAL_CLUSTER": str(tmp_path), "PATH": os.environ["PATH"]}
    service = subprocess.Popen(["sleep", "4001"], env=marks)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: is_gone(pid))
    agents, ended = later(), []
    agents.runner.adopt(ended.append)
    await until(lambda: ended)
    assert service.poll() is None
    service.kill()
    service.wait()


async def test_a_process_with_the_same_id_and_another_start_time_is_not_touched(daemon, later, tmp_path: Path) -> None:
    first = daemon()
    await begun(tmp_path)
    first.kill()
    other = subprocess.Popen(["sleep", "4002"])
    # A tick of the kernel's clock is 10 ms: both may have begun within one.
    edit_record(tmp_path, pid=other.pid, start_time=start_time_of(other.pid) - 1, deadline=0)
    [action] = later().runner.adopt(lambda key: None)
    assert not action.is_running
    assert other.poll() is None
    other.kill()
    other.wait()


async def test_a_record_of_another_boot_is_dropped(daemon, later, tmp_path: Path) -> None:
    first = daemon()
    await begun(tmp_path)
    first.kill()
    edit_record(tmp_path, incarnation="boot-0:00000000000000aa")
    agents = later()
    assert agents.runner.adopt(lambda key: None) == ()
    assert not agents.records()


async def test_a_new_action_waits_for_the_adopted_one(daemon, later, tmp_path: Path) -> None:
    first = daemon()
    await begun(tmp_path)
    first.kill()
    agents = later()
    agents.runner.adopt(lambda key: None)
    agents.write("quick", "#!/bin/sh\nexit 0\n")
    waiting = agents.begin(agents.call("quick"))
    assert (await agents.run("quick", resource=ResourceId("r2"))).exit_code == 0
    assert not waiting.done()
    (tmp_path / "go").touch()
    assert (await waiting).exit_code == 0


async def test_a_new_action_fails_when_the_adopted_one_does_not_end(daemon, later, tmp_path: Path) -> None:
    first = daemon()
    await begun(tmp_path)
    first.kill()
    agents = later()
    agents.runner.adopt(lambda key: None)
    result = await agents.run("slow", "stop")
    assert (result.exit_code, result.status) == (1, "error")
    assert "do not die" in result.exit_reason
    assert (tmp_path / "begun").read_text().count("\n") == 1


async def test_after_execv_the_children_are_seen_to_end_and_reaped(daemon, tmp_path: Path) -> None:
    first = daemon()
    assert first.hear()["adopted"] == []
    pid = await begun(tmp_path)
    first.process.send_signal(signal.SIGHUP)
    again = first.hear()
    assert again == {"adopted": [[KEY, True]], "pid": first.process.pid}
    (tmp_path / "go").touch()
    assert first.hear() == {"ended": KEY}
    await until(lambda: read_stat(pid) is None)


async def test_after_execv_a_child_that_ended_meanwhile_does_not_stay_a_zombie(daemon, tmp_path: Path) -> None:
    first = daemon()
    first.hear()
    pid = await begun(tmp_path)
    first.process.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    await until(lambda: is_gone(pid))
    first.process.send_signal(signal.SIGHUP)
    first.process.send_signal(signal.SIGCONT)
    assert first.hear()["adopted"] in ([], [[KEY, False]])
    await until(lambda: read_stat(pid) is None)
