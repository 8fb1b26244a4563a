"""Fence agents are called over standard input, and keep secrets (agents-and-fencing.md §3.1-3.2)."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from haclusterd.adapters.agents.by_class import AgentsByClass
from haclusterd.adapters.agents.fence_agents import hide_secrets
from haclusterd.adapters.agents.stonith import StonithAgents
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.agents.process_table import is_running, list_pids, read_marks, read_stat
from haclusterd.model.ids import AgentReference, Incarnation, ResourceId
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.ports.agents import AgentCall, AgentMetadata, AgentResult
from haclusterd.ports.fencing import FenceCall
from tests.unit.adapters.agents.fence_switches import Switches
from tests.unit.adapters.recorded_actions import recorded_in
from tests.unit.adapters.scripted_agents import ScriptedAgents, end_all

SECRET = "hunter2-secret"


@pytest.fixture
async def switches(clock: BoottimeClock, tmp_path: Path) -> AsyncIterator[Switches]:
    yield Switches(clock, tmp_path)
    end_all(tmp_path)


async def test_parameters_arrive_on_standard_input(switches: Switches) -> None:
    switches.write('#!/bin/sh\necho "arguments: $#"\ncat\n')
    result = await switches.run("off", ip="10.0.0.1", plug="n2", text="a=b 'c'")
    assert (result.exit_code, result.timed_out) == (0, False)
    assert result.output == "arguments: 0\naction=off\nip=10.0.0.1\nplug=n2\ntext=a=b 'c'\n"


@pytest.mark.parametrize("code", [0, 1, 2, 3])
async def test_exit_codes_and_the_reason(switches: Switches, code: int) -> None:
    switches.write(f"#!/bin/sh\necho first >&2\necho Connection timed out >&2\necho >&2\nexit {code}\n")
    result = await switches.run("status")
    assert (result.exit_code, result.reason) == (code, "Connection timed out")


async def test_a_timeout_is_a_failure_and_kills_the_group(switches: Switches, until) -> None:
    switches.write(f"#!/bin/sh\nsleep 5001 &\necho $! >{switches.directory}/pid\nwait\n")
    result = await switches.run("off", timeout_ms=2000)
    assert (result.exit_code, result.timed_out) == (1, True)
    assert result.reason == "off did not complete within 2000ms"
    helper = int((switches.directory / "pid").read_text())
    await until(lambda: (stat := read_stat(helper)) is None or stat.is_dead)


async def test_cancel(switches: Switches, until) -> None:
    switches.write("#!/bin/sh\nexec sleep 5002\n")
    ended = switches.begin("off")
    await until(lambda: recorded_in(switches.directory / "run" / "fence-actions"))
    switches.agents.cancel("f1")
    result = await ended
    assert (result.exit_code, result.timed_out, result.reason) == (1, False, "cancelled")


async def test_secrets_are_nowhere_to_be_seen(switches: Switches, until) -> None:
    read = switches.directory / "read"
    switches.write(f"#!/bin/sh\ncat >/dev/null\nsleep 5003 &\n: >{read}\nwait\n")
    ended = switches.begin("off", password=SECRET, plug="n2")

    def agents() -> list[int]:
        directory = str(switches.directory)
        return [pid for pid in list_pids() if read_marks(pid).get("HACLUSTERD_LOCAL_CLUSTER") == directory]

    await until(lambda: read.exists() and len(agents()) >= 2)
    for pid in agents():
        assert SECRET.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert SECRET.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    for path in (switches.directory / "run").rglob("*.json"):
        assert SECRET not in path.read_text()
    assert SECRET not in repr(FenceCall("f", "fence_test", "off", {"password": SECRET}, 1))
    switches.agents.cancel("f1")
    await ended


async def test_what_an_agent_prints_is_cleaned_of_secrets(switches: Switches) -> None:
    switches.write("#!/bin/sh\ncat\necho login with hunter2-secret failed >&2\nexit 1\n")
    result = await switches.run("off", password=SECRET, plug="n2")
    assert result.reason == "login with *** failed"
    assert SECRET not in result.output


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("password", "longenough", False),
        ("passwd", "longenough", False),
        ("api_token", "longenough", False),
        ("ssh_key", "longenough", False),
        ("client_secret", "longenough", False),
        ("snmp_community", "longenough", False),
        ("ip", "longenough", True),
        ("plug", "longenough", True),
        ("password", "ab", True),
    ],
)
def test_which_values_are_secret(name: str, value: str, shown: bool) -> None:
    assert (value in hide_secrets(f"it says {value}", {name: value})) is shown


async def test_a_line_break_is_refused_without_showing_the_value(switches: Switches) -> None:
    touched = switches.directory / "touched"
    switches.write(f"#!/bin/sh\ntouch {touched}\n")
    result = await switches.run("off", password=f"{SECRET}\naction=on")
    assert result.exit_code == 1
    assert "'password' has a line break" in result.reason
    assert SECRET not in result.reason
    assert not touched.exists()


@pytest.mark.parametrize("name", ["fence_nothing", "../sbin/fence_test", "sh", "fence_/../fence_test"])
async def test_what_is_not_there(switches: Switches, name: str) -> None:
    switches.write("#!/bin/sh\nexit 0\n")
    assert not switches.agents.exists(name)
    result = await switches.run("off", agent=name)
    assert result.exit_code == 1
    assert "not installed" in result.reason
    assert await switches.metadata(name) is None


async def test_fence_local_is_for_development_only(switches: Switches, clock: BoottimeClock, tmp_path: Path) -> None:
    assert not switches.agents.exists("fence_local")
    assert await switches.metadata("fence_local") is None
    refused = await switches.run("off", agent="fence_local", plug="n2")
    assert "does not allow development" in refused.reason
    development = Switches(clock, tmp_path, allows_development=True)
    assert development.agents.exists("fence_local")
    metadata = await development.metadata("fence_local")
    assert metadata is not None
    assert metadata.host_argument == "plug"
    (tmp_path / "local-cluster").write_text("c1\n")
    (tmp_path / "n2.node").touch()
    assert (await development.run("status", agent="fence_local", nodes_dir=str(tmp_path), plug="n2")).exit_code == 2
    assert (await development.run("off", agent="fence_local", nodes_dir=str(tmp_path), plug="n2")).exit_code == 0
    assert (await development.run("off", agent="fence_local", nodes_dir=str(tmp_path), plug="n1")).exit_code == 1


@pytest.mark.parametrize("is_pid_known", [True, False])
async def test_what_an_earlier_life_left_running_is_killed_first(
    switches: Switches, until, is_pid_known: bool
) -> None:
    switches.write(f"#!/bin/sh\necho $$ >{switches.directory}/pid\nexec sleep 5004\n")
    ended = switches.begin("off")
    path = switches.directory / "pid"
    await until(lambda: path.exists() and path.read_text().endswith("\n"))
    pid = int(path.read_text())
    start_time = read_stat(pid).start_time
    [record] = recorded_in(switches.directory / "run" / "fence-actions")
    await until(lambda: json.loads(record.read_text())["pid"] is not None)
    if not is_pid_known:
        # The daemon was killed right after the fork.
        record.write_text(json.dumps({**json.loads(record.read_text()), "pid": None, "start_time": None}))
    next_life = Switches(switches.clock, switches.directory)
    assert next_life.agents.kill_left_over() == ("f1",)
    await until(lambda: not is_running(pid, start_time))
    # Here both lives are one process, and the later one has reaped the child.
    switches.agents.cancel("f1")
    assert (await ended).exit_code == 1
    assert next_life.agents.kill_left_over() == ()


async def test_it_is_killed_at_once_and_its_record_stays_until_it_has_ended(switches: Switches, until) -> None:
    # Whatever kills the next life in its start: the one after it asks to join only when the agent cannot act any more.
    agent = await begun(switches, until)
    start_time = read_stat(agent).start_time
    directory = switches.directory / "run" / "fence-actions"
    await until(lambda: [json.loads(each.read_text())["pid"] for each in recorded_in(directory)] not in ([], [None]))
    next_life = Switches(switches.clock, switches.directory)
    assert next_life.agents.kill_left_over() == ("f1",)
    assert recorded_in(directory)
    deadline = time.monotonic() + 10
    while is_running(agent, start_time):  # The loop of the next life does not run meanwhile.
        assert time.monotonic() < deadline
    await switches.ended
    await until(lambda: not recorded_in(directory))


async def begun(switches: Switches, until) -> int:
    """Begin an agent that would act later; return its process id."""
    path = switches.directory / "pid"
    switches.write(f"#!/bin/sh\necho $$ >{path}\nsleep 5008\n: >{switches.directory}/acted\n")
    switches.ended = switches.begin("off")
    await until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


async def test_an_agent_ends_with_its_guard_before_it_is_said_to_have_ended(switches: Switches, until) -> None:
    """`timeout` is killed alone: by a person, or because the machine ran out of memory."""
    agent = await begun(switches, until)
    stat = read_stat(agent)
    os.kill(stat.parent, signal.SIGKILL)
    result = await switches.ended
    assert (result.exit_code, result.reason) == (1, "interrupted by signal 9")
    assert not is_running(agent, stat.start_time)
    await until(lambda: not recorded_in(switches.directory / "run" / "fence-actions"))


async def test_what_an_agent_leaves_behind_has_ended_with_its_answer(switches: Switches) -> None:
    switches.write(f"#!/bin/sh\nsleep 5009 >/dev/null 2>&1 &\necho $! >{switches.directory}/pid\nexit 0\n")
    result = await switches.run("off")
    assert result.exit_code == 0
    helper = read_stat(int((switches.directory / "pid").read_text()))
    assert helper is None or helper.is_dead


async def test_an_agent_whose_guard_was_killed_alone_is_killed_by_the_next_life(switches: Switches, until) -> None:
    """The daemon died before: nobody has seen that."""
    agent = await begun(switches, until)
    stat = read_stat(agent)
    [record] = recorded_in(switches.directory / "run" / "fence-actions")
    await until(lambda: json.loads(record.read_text())["pid"] is not None)
    known = json.loads(record.read_text())
    # The record names a leader that is gone; the real one stays out of this, since it is a child of this very process.
    record.write_text(json.dumps({**known, "pid": 2**22 - 1, "start_time": 1}))
    next_life = Switches(switches.clock, switches.directory)
    assert next_life.agents.kill_left_over() == ("f1",)
    await until(lambda: not is_running(agent, stat.start_time))
    await switches.ended
    assert not (switches.directory / "acted").exists()


DIES_AT_ONCE = """
import asyncio, os, sys
from pathlib import Path
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.ports.fencing import FenceCall
from tests.unit.adapters.agents.fence_switches import Switches

async def live() -> None:
    directory = Path(sys.argv[1])
    switches = Switches(BoottimeClock(asyncio.get_running_loop()), directory)
    switches.agents.call(FenceCall("f1", "fence_test", "off", {}, 500), print)
    while not (directory / "pid").exists():
        await asyncio.sleep(0.01)
    os._exit(9)

asyncio.run(live())
"""


async def test_what_a_daemon_leaves_that_never_comes_back_ends_soon_after_its_timeout(
    switches: Switches, until
) -> None:
    switches.write(f"#!/bin/sh\necho $$ >{switches.directory}/new; mv {switches.directory}/new "
                   f"{switches.directory}/pid\nsleep 5005\n")  # fmt: skip
    daemon = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES_AT_ONCE, str(switches.directory))
    assert await daemon.wait() == 9
    pid = int((switches.directory / "pid").read_text())
    await until(lambda: (stat := read_stat(pid)) is None or stat.is_dead)


async def test_what_needs_the_lease_is_not_begun_without_it(switches: Switches) -> None:
    switches.write("#!/bin/sh\nexit 0\n")
    switches.has_lease = False
    assert (await switches.run("off", needs_lease=True)).reason == "not permitted any more"
    assert (await switches.run("off")).exit_code == 0


async def test_without_the_guard_no_agent_runs(switches: Switches, monkeypatch: pytest.MonkeyPatch) -> None:
    switches.write("#!/bin/sh\nexit 0\n")
    monkeypatch.setattr("haclusterd.adapters.agents.fence_agents.GUARD", "no-such-program")
    assert not switches.agents.exists("fence_test")
    assert "(coreutils) is not installed on n1" in (await switches.run("off")).reason


# Devices as resources of class stonith.


class Devices:
    """AgentsByClass with a device agent that answers as it is set."""

    def __init__(self, switches: Switches, agents: ScriptedAgents) -> None:
        self.switches = switches
        self.answer = switches.directory / "answer"
        self.log = switches.directory / "log"
        switches.write(f"#!/bin/sh\ncat >>{self.log}\nexit $(cat {self.answer})\n")
        self.stonith = StonithAgents(switches.clock, switches.agents)
        self.runner = AgentsByClass(switches.clock, {"ocf": agents.runner, "stonith": self.stonith})
        self.counter = 0

    async def run(self, action: str, answer: int = 0, agent: str = "stonith:fence_test", **changes) -> AgentResult:
        self.counter += 1
        self.answer.write_text(str(answer))
        self.log.write_text("")
        ended: asyncio.Future[AgentResult] = asyncio.get_running_loop().create_future()
        fields = {
            "key": f"s{self.counter}",
            "resource": ResourceId("fence-n2"),
            "instance": "fence-n2",
            "agent": AgentReference.parse(agent),
            "action": action,
            "parameters": {"ip": "10.0.0.1", "pcmk_host_list": "n2", "action": "reboot", "password": SECRET},
            "meta": {"interval": "10000" if action == "monitor" else "0"},
            "timeout_ms": 20_000,
            "incarnation": Incarnation("b", "00000000000000aa"),
        }
        self.runner.run(AgentCall(**{**fields, **changes}), ended.set_result)
        assert not ended.done()
        return await ended


@pytest.fixture
async def devices(switches: Switches, agents: ScriptedAgents) -> Devices:
    return Devices(switches, agents)


PROBE = {"meta": {"interval": "0"}}


async def test_life_of_a_device(devices: Devices) -> None:
    assert (await devices.run("monitor", **PROBE)).exit_code == 7
    assert (await devices.run("start")).exit_code == 0
    assert devices.log.read_text() == f"action=monitor\nip=10.0.0.1\npassword={SECRET}\n"
    assert (await devices.run("monitor", **PROBE)).exit_code == 0
    assert devices.log.read_text() == "", "a probe does not touch the device"
    assert (await devices.run("monitor")).exit_code == 0
    assert devices.log.read_text() != ""
    assert (await devices.run("monitor", answer=2)).exit_code == 0
    assert (await devices.run("monitor", answer=1)).exit_code == 1
    assert (await devices.run("stop")).exit_code == 0
    assert (await devices.run("monitor")).exit_code == 7


async def test_a_device_that_does_not_answer_is_not_registered(devices: Devices) -> None:
    assert (await devices.run("start", answer=1)).exit_code == 1
    assert (await devices.run("monitor", **PROBE)).exit_code == 7


@pytest.mark.parametrize(("retries", "asked"), [({}, 2), ({"pcmk_monitor_retries": "1"}, 1)])
async def test_a_device_that_fails_is_asked_again(devices: Devices, retries: dict[str, str], asked: int) -> None:
    await devices.run("start", answer=1, parameters={"ip": "10.0.0.1", **retries})
    assert devices.log.read_text().count("action=monitor") == asked


async def test_a_device_that_answers_the_second_time_is_healthy(devices: Devices) -> None:
    devices.switches.write(f"#!/bin/sh\ncat >>{devices.log}\n[ $(grep -c action {devices.log}) = 2 ]\n")
    assert (await devices.run("start")).exit_code == 0


async def test_a_missing_fence_agent(devices: Devices) -> None:
    result = await devices.run("start", agent="stonith:fence_nothing")
    assert (result.exit_code, result.status) == (5, ExecutionStatus.NOT_INSTALLED)
    assert (await devices.run("stop", agent="stonith:fence_nothing")).exit_code == 0


async def test_a_slow_device_is_a_timeout(devices: Devices) -> None:
    devices.switches.write("#!/bin/sh\nexec sleep 5005\n")
    result = await devices.run("start", timeout_ms=1000)
    assert (result.exit_code, result.status) == (1, ExecutionStatus.TIMEOUT)
    assert result.exit_reason == "start did not complete within 1s"


async def test_an_unknown_action_of_a_device(devices: Devices) -> None:
    assert (await devices.run("promote")).exit_code == 3


async def test_classes_are_distinguished(devices: Devices, agents: ScriptedAgents) -> None:
    agents.write("a", "#!/bin/sh\nexit 9\n")
    assert (await devices.run("monitor", agent="ocf:test:a")).exit_code == 9
    unknown = await devices.run("monitor", agent="upstart:thing")
    assert (unknown.exit_code, unknown.status) == (5, ExecutionStatus.NOT_INSTALLED)
    assert "'upstart'" in unknown.exit_reason
    assert devices.runner.exists(AgentReference.parse("ocf:test:a"))
    assert devices.runner.exists(AgentReference.parse("stonith:fence_test"))
    assert not devices.runner.exists(AgentReference.parse("upstart:thing"))


@pytest.mark.parametrize(
    ("agent", "name"), [("ocf:haclusterd:exec", "command"), ("stonith:fence_meta", "plug"), ("upstart:thing", None)]
)
async def test_metadata_by_class(devices: Devices, agent: str, name: str | None) -> None:
    text = "<resource-agent><parameters><parameter name='plug'/></parameters></resource-agent>"
    devices.switches.write(f'#!/bin/sh\necho "{text}"\n', "fence_meta")
    answer: asyncio.Future[AgentMetadata | None] = asyncio.get_running_loop().create_future()
    devices.runner.metadata(AgentReference.parse(agent), answer.set_result)
    metadata = await answer
    assert (name is None) == (metadata is None)
    if metadata is not None:
        assert name in metadata.parameters


async def test_killing_by_key_reaches_the_right_class(devices: Devices, agents: ScriptedAgents, until) -> None:
    agents.write("slow", "#!/bin/sh\nexec sleep 5006\n")
    devices.switches.write("#!/bin/sh\nexec sleep 5007\n")
    task = asyncio.create_task(devices.run("start", agent="ocf:test:slow"))
    await until(agents.recorded_pids)
    devices.runner.kill("s1")
    assert (await task).status is ExecutionStatus.CANCELLED
    task = asyncio.create_task(devices.run("start"))
    await until(lambda: recorded_in(devices.switches.directory / "run" / "fence-actions"))
    devices.runner.kill("s2")
    assert (await task).status is ExecutionStatus.CANCELLED
