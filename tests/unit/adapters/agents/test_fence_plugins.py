"""External fence plugins of cluster-glue are called as fence_legacy calls them, by the means of fence agents."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from haclusterd.adapters.agents import fence_agents
from haclusterd.adapters.agents.fence_directories import FenceDirectories
from haclusterd.adapters.agents.fence_plugins import plugin_metadata
from haclusterd.adapters.agents.metadata import MetadataError, read_fence_metadata
from haclusterd.adapters.agents.stonith import StonithAgents
from haclusterd.adapters.agents.surroundings import AgentDirectories
from haclusterd.adapters.agents.survey import survey
from haclusterd.adapters.agents.unit_files import UnitFiles
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.agents.process_table import is_running, list_pids, read_marks, read_stat
from haclusterd.model.ids import AgentReference
from haclusterd.ports.agents import AgentMetadata
from tests.unit.adapters.agents.fence_switches import Switches
from tests.unit.adapters.agents.plugin_stand_in import PARAMETERS, calls, stand_in
from tests.unit.adapters.recorded_actions import recorded_in
from tests.unit.adapters.scripted_agents import end_all

AGENT = "external/test"
REFERENCE = AgentReference("stonith", None, AGENT)
SECRET = "hunter2-secret"


@pytest.fixture
async def switches(clock: BoottimeClock, tmp_path: Path) -> AsyncIterator[Switches]:
    made = Switches(clock, tmp_path)
    made.write_plugin(stand_in(tmp_path / "log"))
    yield made
    end_all(tmp_path)


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("monitor", "status"), ("status", "status"), ("list", "gethosts"), ("off", "off n2"), ("poweroff", "off n2"),
        ("reboot", "reset n2"), ("reset", "reset n2"), ("on", "on n2"),
    ],
)  # fmt: skip
async def test_each_action_has_its_word_and_its_host(switches: Switches, action: str, arguments: str) -> None:
    """The host is the node's own name in lower case, whatever the device calls it."""
    log = switches.directory / "log"
    result = await switches.run(
        action, agent=AGENT, host="other", nodename="N2", port="7", hostlist="n1 n2", undeclared="x"
    )
    assert (result.exit_code, result.timed_out) == (0, False)
    assert calls(log) == [
        {"arguments": arguments, "hostlist": "n1 n2", "nodename": "N2", "port": "", "undeclared": ""}
    ]


async def test_what_no_plugin_can_do_is_not_asked_of_it(switches: Switches) -> None:
    assert "no action diag" in (await switches.run("diag", agent=AGENT, nodename="n2")).reason
    nameless = await switches.run("reboot", agent=AGENT, hostlist="n1")
    assert (nameless.exit_code, nameless.reason) == (1, "reboot needs the name of a node")
    assert (await switches.run("metadata", agent=AGENT)).exit_code == 0
    assert calls(switches.directory / "log") == []


async def test_the_environment_of_the_plugin_is_not_a_matter_of_parameters(switches: Switches) -> None:
    environment = switches.directory / "environment"
    switches.write_plugin(
        "#!/bin/sh\ncase $1 in getconfignames) echo PATH HACLUSTERD_NODE ip;; "
        f"reset) env >{environment};; *) exit 1;; esac\n"
    )
    result = await switches.run(
        "reboot", agent=AGENT, nodename="n2", PATH="/other", LD_PRELOAD="/tmp/x.so", HACLUSTERD_NODE="n9", ip="a\nb"
    )
    assert result.exit_code == 0
    lines = environment.read_text().splitlines()
    tools = f"PATH={switches.directory}/shims:/usr/share/cluster-glue:/usr/local/sbin:"
    assert [line for line in lines if line.startswith(tools)]
    assert f"HACLUSTERD_SOCKET={switches.directory}/socket" in lines
    assert "HA_LOGTAG=external/test" in lines
    assert "HACLUSTERD_NODE=n1" in lines
    assert not [line for line in lines if "LD_PRELOAD" in line]
    assert lines[lines.index("ip=a") + 1] == "b", "a variable may have several lines"


async def test_secrets_are_in_no_argument_vector_and_in_no_answer(switches: Switches, until) -> None:
    read = switches.directory / "read"
    switches.write_plugin(
        f"#!/bin/sh\ncase $1 in getconfignames) echo passwd;; reset) sleep 5010 & : >{read}; wait;; "
        "off) echo $passwd is wrong >&2; echo $passwd; exit 1;; esac\n"
    )
    ended = switches.begin("reboot", agent=AGENT, nodename="n2", passwd=SECRET)

    def agents() -> list[int]:
        directory = str(switches.directory)
        return [pid for pid in list_pids() if read_marks(pid).get("HACLUSTERD_LOCAL_CLUSTER") == directory]

    await until(lambda: read.exists() and len(agents()) >= 2)
    for pid in agents():
        assert SECRET.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    for path in (switches.directory / "run").rglob("*.json"):
        assert SECRET not in path.read_text()
    switches.agents.cancel("f1")
    assert (await ended).reason == "cancelled"
    refused = await switches.run("off", agent=AGENT, nodename="n2", passwd=SECRET)
    assert (refused.exit_code, refused.reason, refused.output) == (1, "*** is wrong", "***\n")


@pytest.mark.parametrize("action", ["monitor", "status", "reboot", "off"])
@pytest.mark.parametrize(("code", "expected"), [(0, 0), (1, 1), (2, 1), (5, 1), (300, 1)])
async def test_only_0_is_success(switches: Switches, action: str, code: int, expected: int) -> None:
    """Of `status`, too: to a fence agent 2 is a healthy device, to a plugin it is a failure like any other."""
    result = await switches.run(
        action, agent=AGENT, nodename="n2", hostlist="n2", status_rc=str(code), reset_rc=str(code)
    )
    assert result.exit_code == expected
    if action == "status" and code:
        assert result.reason == f"status: exit status {code % 256}", "it said nothing itself"
    if action == "reboot":
        assert result.reason == "reset failed for n2"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("echo n1 n2; echo; echo ' n3'", (0, "n1\nn2\nn3\n", "")),
        (":", (1, "", "gethosts: it lists no host")),
        ("echo n1; exit 3", (1, "n1\n", "gethosts: exit status 3")),
        ("yes n1 | head -c 100000000", (1, "", "gethosts: it printed more than 65536 bytes")),
    ],
)
async def test_hosts(switches: Switches, printed: str, expected: tuple[int, str, str]) -> None:
    switches.write_plugin(f"#!/bin/sh\ncase $1 in getconfignames) ;; gethosts) {printed};; *) exit 1;; esac\n")
    result = await switches.run("list", agent=AGENT)
    assert (result.exit_code, result.output, result.reason) == expected


async def test_output_without_end_is_cut_and_the_exit_status_counts(switches: Switches) -> None:
    switches.write_plugin(
        "#!/bin/sh\ncase $1 in getconfignames) ;; reset) head -c 100000000 /dev/zero; exit 0;; *) exit 1;; esac\n"
    )
    result = await switches.run("reboot", agent=AGENT, nodename="n2")
    assert result.exit_code == 0
    assert len(result.output) < 70_000


async def test_one_that_hangs_is_killed_with_all_that_it_has_started(switches: Switches, until) -> None:
    switches.write_plugin(
        "#!/bin/sh\ncase $1 in getconfignames) ;; reset) sleep 5011 & "
        f"echo $! >{switches.directory}/pid; wait;; *) exit 1;; esac\n"
    )
    result = await switches.run("reboot", agent=AGENT, nodename="n2", timeout_ms=2000)
    assert (result.exit_code, result.timed_out) == (1, True)
    assert result.reason == "reboot did not complete within 2000ms"
    helper = int((switches.directory / "pid").read_text())
    await until(lambda: (stat := read_stat(helper)) is None or stat.is_dead)


async def test_one_that_an_earlier_life_left_running_is_killed_first(switches: Switches, until) -> None:
    path = switches.directory / "pid"
    switches.write_plugin(
        f"#!/bin/sh\ncase $1 in getconfignames) ;; reset) echo $$ >{path}; exec sleep 5012;; *) exit 1;; esac\n"
    )
    ended = switches.begin("reboot", agent=AGENT, nodename="n2")
    await until(lambda: path.exists() and path.read_text().endswith("\n"))
    pid = int(path.read_text())
    start_time = read_stat(pid).start_time
    await until(lambda: recorded_in(switches.directory / "run" / "fence-actions"))
    next_life = Switches(switches.clock, switches.directory)
    assert next_life.agents.kill_left_over() == ("f1",)
    await until(lambda: not is_running(pid, start_time))
    switches.agents.cancel("f1")
    assert (await ended).exit_code == 1


async def test_no_plugin_is_begun_without_a_lease(switches: Switches) -> None:
    switches.has_lease = False
    result = await switches.run("reboot", agent=AGENT, nodename="n2", hostlist="n2", needs_lease=True)
    assert (result.exit_code, result.reason) == (1, "not permitted any more")
    assert calls(switches.directory / "log") == []


async def test_which_files_are_plugins(switches: Switches) -> None:
    for name, mode in (("writable", 0o775), ("anybody", 0o757), ("text", 0o644)):
        switches.write_plugin("#!/bin/sh\nexit 0\n", name).chmod(mode)
    (switches.directory / "plugins" / "directory").mkdir()
    assert [name for name in switches.agents.installed() if name.startswith("external/")] == [AGENT]
    for name in ("writable", "anybody", "text", "directory", "nothing", "../sbin/x", "a/b", ""):
        assert not switches.agents.exists(f"external/{name}")
    result = await switches.run("reboot", agent="external/writable", nodename="n2")
    assert (result.exit_code, result.reason) == (1, "external/writable is not installed on n1")


async def test_metadata_for_calls_and_for_configurations(switches: Switches, clock: BoottimeClock) -> None:
    metadata = await switches.metadata(AGENT)
    assert metadata is not None
    assert metadata.parameters == {"hostlist", "passwd", "status_rc", "reset_rc"}
    assert metadata.actions == {"off", "on", "reboot", "status", "list", "monitor", "metadata"}
    assert metadata.host_argument is None
    answered: asyncio.Future[AgentMetadata] = asyncio.get_running_loop().create_future()
    StonithAgents(clock, switches.agents).metadata(REFERENCE, answered.set_result)
    known = await answered
    facts = known.facts()
    required = {name: each.is_required for name, each in facts.parameters.items()}
    assert required == {"hostlist": True, "passwd": False, "status_rc": False, "reset_rc": False}
    assert (known.shortdesc, facts.parameters["status_rc"].default) == ("Stand-in & device", "0")
    questions = ("getinfo-xml", "getconfignames", "getinfo-devid", "getinfo-devdescr")
    asked = [each["arguments"] for each in calls(switches.directory / "log", about=questions)]
    assert asked == list(questions), "it is asked once"
    directories = FenceDirectories((), (switches.directory / "plugins",))
    surveyed = survey([REFERENCE], AgentDirectories(), directories, UnitFiles(()))
    assert surveyed == {str(REFERENCE): facts}


def test_metadata_of_plugins_that_say_less() -> None:
    def parameters(**answers: str) -> set[str]:
        text = plugin_metadata(AGENT, {name.replace("_", "-"): text for name, text in answers.items()})
        return set(read_fence_metadata(text, AGENT).parameters)

    assert parameters(getinfo_xml=PARAMETERS) == {"hostlist", "passwd", "status_rc"}
    assert parameters(getconfignames="a b\nc\n") == {"a", "b", "c"}
    assert parameters(getconfignames="") == set(), "one without parameters"
    assert parameters(getinfo_xml="<parameters><parameter", getconfignames="a") == {"a"}
    assert parameters(getinfo_xml=f'noise\n<?xml version="1.0"?>{PARAMETERS}', getinfo_devid="\x01<") >= {"hostlist"}
    for text in ("", "<a/>", f"<!DOCTYPE p [<!ENTITY e 'x'>]>{PARAMETERS}"):
        with pytest.raises(MetadataError):
            parameters(getinfo_xml=text)


async def test_one_that_says_nothing_of_itself_is_not_called(
    switches: Switches, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = switches.directory / "log"
    switches.write_plugin(f"#!/bin/sh\necho $1 >>{log}\nexit 1\n")
    result = await switches.run("reboot", agent=AGENT, nodename="n2")
    assert result.exit_code == 1
    assert "does not say which parameters it has" in result.reason
    assert "reset" not in log.read_text()
    monkeypatch.setattr(fence_agents, "METADATA_TIMEOUT_MS", 8000)
    switches.write_plugin(f"#!/bin/sh\necho $1 >>{log}.2\nexec sleep 5013\n")
    assert await switches.metadata(AGENT) is None
    assert Path(f"{log}.2").read_text() == "getinfo-xml\n", "one that hangs is asked nothing more"
