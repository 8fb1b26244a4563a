"""Alert agents get everything in their environment, are ended in time, and are those of Pacemaker, unmodified."""

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from haclusterd.adapters.agents.alert_agents import OUTPUT_MAX, ProcessAlertAgents
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.agents.process_table import read_stat
from haclusterd.machines.alert_environment import environment_of
from haclusterd.model.alerts import AlertCall, AlertCallResult, AlertEvent, AlertTarget
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient
from haclusterd.model.ids import Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.model.records import replace

SAMPLE = Path("/usr/share/pacemaker/alerts/alert_file.sh.sample")


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


async def called(clock: BoottimeClock, call: AlertCall) -> AlertCallResult:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[AlertCallResult] = loop.create_future()
    ProcessAlertAgents(clock, loop, own_environment={"MARK": "mine"}).call(call, ended.set_result)
    return await asyncio.wait_for(ended, 30)


def a_call(path: Path, timeout_ms: int = 20_000, **environment: str) -> AlertCall:
    return AlertCall("r", 1, str(path), environment, timeout_ms)


async def test_environment_and_exit_code(clock: BoottimeClock, tmp_path: Path) -> None:
    agent = script(tmp_path / "agent", 'echo "$# $MARK $CRM_alert_kind $secret"; exit 3')
    result = await called(clock, a_call(agent, CRM_alert_kind="node", secret="a b"))
    assert (result.exit_code, result.problem, result.output) == (3, "exit code 3", "0 mine node a b")
    assert "a b" not in repr(a_call(agent, secret="a b"))


async def test_a_slow_agent_is_ended_with_what_it_started(clock: BoottimeClock, tmp_path: Path, until) -> None:
    agent = script(tmp_path / "agent", f"sleep 5003 & echo $! >{tmp_path}/pid; wait")
    begun = time.monotonic()
    result = await called(clock, a_call(agent, timeout_ms=1500))
    assert (result.exit_code, result.problem) == (None, "timed out")
    assert time.monotonic() - begun < 15
    helper = int((tmp_path / "pid").read_text())
    await until(lambda: (stat := read_stat(helper)) is None or stat.is_dead)


async def test_there_is_no_such_agent(clock: BoottimeClock, tmp_path: Path) -> None:
    result = await called(clock, a_call(tmp_path / "missing"))
    assert result.problem


async def test_much_output_is_cut(clock: BoottimeClock, tmp_path: Path) -> None:
    agent = script(tmp_path / "agent", "head -c 100000 /dev/zero | tr '\\0' x; echo end")
    result = await called(clock, a_call(agent))
    assert len(result.output) == OUTPUT_MAX
    assert result.output.endswith("end")


LOST = AlertEvent(5, Term(3), WallTime(1_700_000_000_123), AlertKind.NODES, "n2", "lost")
FAILED = replace(LOST, kind=AlertKind.RESOURCES, description="not running", task="monitor", resource="web",
                 interval_ms=10_000, status=ExecutionStatus.ERROR, exit_code=7)  # fmt: skip
FENCED = replace(LOST, kind=AlertKind.FENCING, description="Operation off of n2 by n1: OK", task="off")
CHANGED = replace(LOST, kind=AlertKind.ATTRIBUTES, attribute="rack", value="7")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (LOST, "Node 'n2' is now 'lost'"),
        (FENCED, "Fencing Operation off of n2 by n1: OK"),
        (FAILED, "Resource operation 'monitor (10000)' for 'web' on 'n2': not running"),
        (CHANGED, "Attribute 'rack' on node 'n2' was updated to '7'"),
    ],
)
@pytest.mark.skipif(not SAMPLE.is_file(), reason="Pacemaker's sample agents are not installed")
async def test_pacemakers_sample_agent(clock: BoottimeClock, tmp_path: Path, event: AlertEvent, line: str) -> None:
    agent, log = tmp_path / "alert_file.sh", tmp_path / "log"
    shutil.copy(SAMPLE, agent)
    agent.chmod(0o755)
    target = AlertTarget(Alert("a", str(agent)), AlertRecipient("r", str(log)))
    environment = environment_of(Cib(), target, event, is_repeated=False, alike=None)
    result = await called(clock, AlertCall("r", 5, str(agent), environment, 20_000))
    assert (result.problem, result.output) == ("", "")
    stamp, found = log.read_text().strip().split(": ", 1)
    assert stamp.endswith(".123000")
    assert found == line
