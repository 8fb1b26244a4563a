"""Init scripts are agents of class lsb: started, stopped and asked as they are, and answered for in OCF's words."""

import os
from pathlib import Path

import pytest

from haclusterd.adapters.agents.by_class import AgentsByClass
from haclusterd.adapters.agents.init_scripts import ocf_code, read_header
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.model.ids import AgentReference, Incarnation, ResourceId
from haclusterd.model.ocf import ExecutionStatus
from tests.unit.adapters.scripted_agents import ScriptedAgents

LSB = AgentReference("lsb", None, "ticker")
TICKER = """#!/bin/sh
### BEGIN INIT INFO
# Provides:          ticker
# Required-Start:    $local_fs
# Short-Description: ticks
# Description:       ticks for ever,
#                    and says so
### END INIT INFO
PIDFILE={directory}/ticker.pid
is_alive() {{ [ -f $PIDFILE ] && grep -qs '^State:.[^Z]' "/proc/$(cat $PIDFILE)/status"; }}
case "$1" in
start)
    is_alive && exit 0
    [ -e {directory}/broken ] && {{ echo "ticker: cannot tick: out of ticks"; exit 1; }}
    sleep 1000 >/dev/null 2>&1 &
    echo $! > $PIDFILE ;;
stop)
    is_alive || exit 0
    kill "$(cat $PIDFILE)"
    while is_alive; do sleep 0.01; done
    rm -f $PIDFILE ;;
status)
    is_alive && exit 0
    [ -f $PIDFILE ] && exit 1
    exit 3 ;;
*) echo "Usage: $0 start|stop|status" >&2; exit 2 ;;
esac
"""


@pytest.mark.parametrize(
    ("action", "codes"),
    [
        ("monitor", {0: 0, 1: 7, 2: 7, 3: 7, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1, 150: 1, 255: 1}),
        ("start", {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 1, 9: 1, 190: 1, 255: 1}),
        ("stop", {0: 0, 1: 1, 4: 4, 5: 5, 7: 0, 8: 1, 99: 1}),
    ],
)
def test_exit_codes_in_ocfs_words(action: str, codes: dict[int, int]) -> None:
    assert {status: int(ocf_code(action, status)) for status in codes} == codes


def write(agents: ScriptedAgents, text: str, name: str = "ticker") -> Path:
    path = agents.directory / "init.d" / name
    path.parent.mkdir(exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o755)
    os.write(descriptor, text.format(directory=agents.directory).encode())
    os.close(descriptor)
    return path


async def test_a_service_is_probed_started_watched_killed_and_stopped(agents: ScriptedAgents, until) -> None:
    write(agents, TICKER)
    codes = [(await agents.run("", action, agent=LSB)).exit_code for action in ("monitor", "stop", "start", "start")]
    assert codes == [7, 0, 0, 0]
    assert (await agents.run("", "monitor", agent=LSB)).exit_code == 0
    died: list[ResourceId] = []
    agents.runner.watch(ResourceId("r1"), "r1", died.append)
    pid = int((agents.directory / "ticker.pid").read_text())
    await until(lambda: pid in agents.runner._watch._watched[ResourceId("r1")].pidfds)
    os.kill(pid, 9)
    await until(lambda: died)
    assert (await agents.run("", "monitor", agent=LSB)).exit_code == 7
    assert (await agents.run("", "start", agent=LSB)).exit_code == 0
    assert (await agents.run("", "stop", agent=LSB)).exit_code == 0
    assert (await agents.run("", "monitor", agent=LSB)).exit_code == 7


async def test_its_last_words_and_its_own_exit_status_are_the_reason(agents: ScriptedAgents) -> None:
    write(agents, TICKER)
    (agents.directory / "broken").touch()
    result = await agents.run("", "start", agent=LSB)
    assert (result.exit_code, result.status) == (1, ExecutionStatus.DONE)
    assert result.exit_reason == "ticker: cannot tick: out of ticks (exit status 1)"


async def test_it_gets_no_parameters_and_no_call_is_handed_over_to_systemctl(agents: ScriptedAgents) -> None:
    write(agents, "#!/bin/sh\nenv\n")
    result = await agents.run("", "monitor", agent=LSB, parameters={"secret": "x"}, meta={"interval": "1000"})
    environment = dict(line.split("=", 1) for line in result.stdout.splitlines())
    assert environment["SYSTEMCTL_SKIP_REDIRECT"] == "1"
    assert (environment["OCF_RESOURCE_INSTANCE"], environment["HACLUSTERD_NODE"]) == ("r1", "n1")
    assert not [name for name in environment if name.startswith("OCF_RESKEY")]


async def test_what_a_script_does_not_know_is_not_asked(agents: ScriptedAgents) -> None:
    write(agents, f"#!/bin/sh\ntouch {agents.directory}/asked\n")
    for action in ("notify", "promote", "migrate_to", "reload-agent"):
        assert (await agents.run("", action, agent=LSB)).exit_code == 3
    assert not (agents.directory / "asked").exists()


async def test_a_script_that_is_not_there_or_may_not_be_run(agents: ScriptedAgents) -> None:
    assert (await agents.run("", "monitor", agent=LSB)).exit_code == 5
    write(agents, TICKER).chmod(0o644)
    assert (await agents.run("", "monitor", agent=LSB)).exit_code == 4
    for name in ("../init.d/ticker", ".ticker", "a/b"):
        assert not agents.runner.exists(AgentReference("lsb", None, name))


async def test_what_a_script_says_of_itself(agents: ScriptedAgents) -> None:
    write(agents, TICKER)
    write(agents, "#!/bin/sh\n", "bare")
    assert {agent for agent in agents.runner.installed() if agent.standard == "lsb"} == {
        LSB, AgentReference("lsb", None, "bare"),
    }  # fmt: skip
    metadata = await agents.metadata(LSB)
    assert metadata is not None
    assert (metadata.shortdesc, metadata.longdesc) == ("ticks", "ticks for ever, and says so")
    assert metadata.parameters == {}
    assert sorted(metadata.actions) == ["monitor", "start", "stop"]
    assert read_header("#!/bin/sh\n", LSB).shortdesc == ""
    assert await agents.metadata(AgentReference("lsb", None, "missing")) is None


async def test_a_stop_that_hangs_is_killed_at_its_timeout(agents: ScriptedAgents) -> None:
    write(agents, "#!/bin/sh\nexec sleep 1000\n")
    result = await agents.run("", "stop", agent=LSB, timeout_ms=300)
    assert (result.exit_code, result.status) == (1, ExecutionStatus.TIMEOUT)


async def test_a_start_is_found_by_the_next_life_of_the_daemon(
    agents: ScriptedAgents, clock: BoottimeClock, until
) -> None:
    write(agents, "#!/bin/sh\n[ $1 = status ] && exit 3\nwhile [ ! -e {directory}/go ]; do sleep 0.02; done\n")
    call = agents.call("", "monitor", agent=LSB)
    write(agents, "#!/bin/sh\nwhile [ ! -e {directory}/go ]; do sleep 0.02; done\n")
    agents.begin(call)
    await until(agents.recorded_pids)
    later = ScriptedAgents(clock, agents.directory, Incarnation("boot-1", "00000000000000bb"))
    ended: list[str] = []
    [adopted] = later.runner.adopt(ended.append)
    assert (adopted.key, adopted.resource, adopted.is_running) == (call.key, "r1", True)
    (agents.directory / "go").touch()
    await until(lambda: ended == [call.key])


async def test_one_runner_may_have_several_classes(agents: ScriptedAgents, clock: BoottimeClock, until) -> None:
    write(agents, TICKER)
    agents.write("a", "#!/bin/sh\nexit 0\n")
    runner = AgentsByClass(clock, {"ocf": agents.runner, "lsb": agents.runner})
    assert [agent.type for agent in runner.installed()].count("ticker") == 1
    results: list[int] = []
    for agent in (LSB, AgentReference("ocf", "test", "a")):
        runner.run(agents.call("", "monitor", agent=agent), lambda result: results.append(result.exit_code))
    await until(lambda: sorted(results) == [0, 7])
