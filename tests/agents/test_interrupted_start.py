"""A start that is killed before its service is recorded: after the stop that follows, nothing begins any more.

The daemon kills an action with all its descendants. If only the agent is killed (by the kernel when memory is short,
by Pacemaker, by a person), the child that is about to become the service stays. Here it is held up until after stop.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WAIT_S = 20.0
SERVICE = ("sleep", "1234.5")
SHELL_AGENT = """#!/bin/sh
. "$HACLUSTERD_AGENT_LIBRARY/haclusterd/agents/agent.sh"
ha_agent sleeper 1.0 "Sleeps"
ha_timeouts start=20s stop=20s monitor=20s
agent_start() { ha_start_process "$(ha_state pid)" SERVICE; }
agent_stop() { ha_stop_process "$(ha_state pid)"; }
agent_monitor() { ha_process_runs "$(ha_state pid)" || return "$HA_NOT_RUNNING"; }
ha_main "$@"
""".replace("SERVICE", " ".join(SERVICE))
HELD_SETSID = """#!/bin/sh
exec REAL sh -c 'read -r word <"$GATE"; exec "$@"' sh "$@"
"""
"""Begins the session, as setsid does, and goes on when somebody opens the gate."""


def children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def leads_a_session(pid: int) -> bool:
    with suppress(ProcessLookupError):
        return os.getsid(pid) == pid
    return False


def arguments(pid: int) -> tuple[str, ...]:
    """Return what a process was started with; nothing when it has ended."""
    with suppress(OSError):
        return tuple(Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1])
    return ()


def run(agent: Path, action: str, environment: Mapping[str, str]) -> int:
    return subprocess.run([agent, action], env=environment, check=False, timeout=60, capture_output=True).returncode


@contextmanager
def killed_start(agent: Path, environment: Mapping[str, str]) -> Iterator[int]:
    """Begin a start, kill it and its group while its child is held up in a session of its own; yield that child."""
    started = subprocess.Popen([agent, "start"], env=environment, process_group=0, stdin=subprocess.DEVNULL)
    found: list[int] = []
    deadline = time.monotonic() + WAIT_S
    while not found and time.monotonic() < deadline:
        found = [pid for pid in children(started.pid) if leads_a_session(pid)]
    with suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait(WAIT_S)
    assert found, "no child has begun a session of its own"
    try:
        yield found[0]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(found[0], signal.SIGKILL)


@pytest.mark.parametrize("language", ["sh", "python"])
def test_nothing_begins_after_the_stop(tmp_path: Path, language: str) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    environment = {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HA_RSCTMP": str(tmp_path / "state"), "GATE": str(gate),
        "OCF_RESOURCE_INSTANCE": "sleeper", "OCF_RESKEY_CRM_meta_timeout": "20000",
        "HACLUSTERD_AGENT_LIBRARY": str(ROOT),
    }  # fmt: skip
    if language == "sh":
        agent = tmp_path / "sleeper"
        agent.write_text(SHELL_AGENT)
        (tmp_path / "bin").mkdir()
        held = tmp_path / "bin" / "setsid"
        held.write_text(HELD_SETSID.replace("REAL", "/usr/bin/setsid"))
        for each in (agent, held):
            each.chmod(0o755)
    else:
        agent = ROOT / "resource_agents" / "exec"
        environment |= {"OCF_RESKEY_command": SERVICE[0], "OCF_RESKEY_args": SERVICE[1],
                            "OCF_RESKEY_log_file": str(gate)}

    with killed_start(agent, environment) as child:
        assert run(agent, "stop", environment) == 0
        reader = os.open(gate, os.O_RDWR)
        try:
            os.write(reader, b"\n")
            deadline = time.monotonic() + WAIT_S
            while (words := arguments(child)) not in ((), SERVICE):
                assert time.monotonic() < deadline, words
            assert words == ()
        finally:
            os.close(reader)
        assert run(agent, "monitor", environment) == 7
        # What was held up takes nothing from a later start.
        (tmp_path / "bin" / "setsid").unlink(missing_ok=True)
        environment.pop("OCF_RESKEY_log_file", None)
        try:
            assert [run(agent, action, environment) for action in ("start", "monitor")] == [0, 0]
        finally:
            assert [run(agent, action, environment) for action in ("stop", "monitor")] == [0, 7]
