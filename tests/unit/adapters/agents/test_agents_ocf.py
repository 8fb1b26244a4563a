"""Resource agents get their environment and are understood (agents-and-fencing.md §1.1-1.9)."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from haclusterd.adapters.agents import ocf as agents_ocf
from haclusterd.adapters.agents.ocf import METADATA_WAIT_MS, own_marks, read_exit_reason
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.agents.process_table import list_pids, read_arguments, read_marks
from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, Incarnation, ResourceId
from haclusterd.model.ocf import ExecutionStatus
from tests.unit.adapters.hands import Hands


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 42, 190, 191])
async def test_exit_codes_are_delivered_as_they_are(hands: Hands, code: int) -> None:
    hands.write("a", f"#!/bin/sh\nexit {code}\n")
    result = await hands.run("a")
    assert (result.exit_code, result.status) == (code, ExecutionStatus.DONE)


@pytest.mark.parametrize(
    ("text", "mode", "code", "status"),
    [
        (None, 0, 5, ExecutionStatus.NOT_INSTALLED),
        ("#!/no/such/interpreter\n", 0o755, 5, ExecutionStatus.NOT_INSTALLED),
        ("\x7fELF nonsense", 0o755, 5, ExecutionStatus.NOT_INSTALLED),
        ("#!/bin/sh\n", 0o644, 4, ExecutionStatus.ERROR),
    ],
)
async def test_an_agent_that_cannot_be_run(
    hands: Hands, until, text: str | None, mode: int, code: int, status: ExecutionStatus
) -> None:
    if text is not None:
        hands.write("a", text, mode)
    result = await hands.run("a")
    assert (result.exit_code, result.status) == (code, status)
    assert "ocf:test:a" in result.exit_reason
    await until(lambda: not hands.records())


async def test_a_signal_a_timeout_and_a_cancellation(hands: Hands, until) -> None:
    hands.write("a", "#!/bin/sh\n[ $1 = start ] && kill -9 $$\nexec sleep 60\n")
    killed = await hands.run("a", "start")
    assert (killed.exit_code, killed.status) == (1, ExecutionStatus.ERROR)
    assert killed.exit_reason == "interrupted by SIGKILL"
    late = await hands.run("a", "stop", timeout_ms=1000)
    assert (late.exit_code, late.status) == (1, ExecutionStatus.TIMEOUT)
    assert late.exit_reason == "stop did not complete within 1s"
    call = hands.call("a")
    ended = hands.begin(call)
    await until(hands.records)
    hands.agents.kill(call.key)
    assert (await ended).status is ExecutionStatus.CANCELLED
    await until(lambda: not hands.records())


async def test_an_agent_is_asked_what_it_says_of_parameters(hands: Hands) -> None:
    objects = "echo ocf-exit-reason:no device $OCF_RESKEY_device >&2; exit 5"
    hands.write("a", f"#!/bin/sh\n[ $1 = validate-all ] && {{ {objects}; }}\n")
    assert await validated(hands, "a", device="/dev/sdb") == Validation(5, "no device /dev/sdb")
    hands.write("a", "#!/bin/sh\n[ $1 = validate-all ]\n")
    assert await validated(hands, "a") == Validation(0, "")
    hands.write("a", "#!/bin/sh\nexec sleep 60\n")
    assert await validated(hands, "a", timeout_ms=200) == Validation(None, "validate-all did not complete within 200ms")
    assert await validated(hands, "missing") == Validation(None, "it is not installed here")
    assert not hands.records(), "a later life of the daemon finds nothing to adopt"


async def validated(hands: Hands, script: str, timeout_ms: int = 20_000, **parameters: str) -> Validation:
    answer: asyncio.Future[Validation] = asyncio.get_running_loop().create_future()
    agent = AgentReference("ocf", "test", script)
    question = ValidationQuestion(ResourceId("r1"), agent, tuple(sorted(parameters.items())))
    hands.agents.validate(question, timeout_ms, answer.set_result)
    return await answer


async def test_the_environment(hands: Hands) -> None:
    hands.write("a", "#!/bin/sh\nexec env\n")
    result = await hands.run(
        "a",
        parameters={"ip": "10.0.0.1", "text": "two words=and 'more'"},
        meta={"interval": "10000", "notify-type": "pre", "notify_start_resource": " "},
        check_level="10",
    )
    environment = dict(line.split("=", 1) for line in result.stdout.splitlines())
    path = environment.pop("PATH").split(":")
    assert path[0] == "/opt/shims"
    assert {"/sbin", "/usr/sbin", "/bin", "/usr/bin"} <= set(path)
    environment.pop("PWD", None)
    directory = str(hands.directory)
    assert environment == {
        "HACLUSTERD_LOCAL_CLUSTER": directory,
        "HACLUSTERD_NODE": "n1",
        "HACLUSTERD_ORDER": result.key,
        "HACLUSTERD_PYTHON": sys.executable,
        "HACLUSTERD_AGENT_LIBRARY": "/usr/share/haclusterd/python",
        "HACLUSTERD_SOCKET": f"{directory}/control.sock",
        "HA_LOGFACILITY": "none",
        "HA_RSCTMP": f"{directory}/run/agent-state",
        "HA_SBIN_DIR": "/opt/shims",
        "HA_debug": "0",
        "HA_logfacility": "none",
        "HA_use_logd": "no",
        "LANG": "C.UTF-8",
        "OCF_CHECK_LEVEL": "10",
        "OCF_EXIT_REASON_PREFIX": "ocf-exit-reason:",
        "OCF_RA_VERSION_MAJOR": "1",
        "OCF_RA_VERSION_MINOR": "1",
        "OCF_RESKEY_CRM_meta_interval": "10000",
        "OCF_RESKEY_CRM_meta_notify_start_resource": " ",
        "OCF_RESKEY_CRM_meta_notify_type": "pre",
        "OCF_RESKEY_CRM_meta_on_node": "n1",
        "OCF_RESKEY_CRM_meta_on_node_uuid": "n1",
        "OCF_RESKEY_CRM_meta_timeout": "20000",
        "OCF_RESKEY_crm_feature_set": "3.19.0",
        "OCF_RESKEY_ip": "10.0.0.1",
        "OCF_RESKEY_text": "two words=and 'more'",
        "OCF_RESOURCE_INSTANCE": "r1",
        "OCF_RESOURCE_PROVIDER": "test",
        "OCF_RESOURCE_TYPE": "a",
        "OCF_ROOT": "/usr/lib/ocf",
        "SHELL": "/bin/bash",
    }


async def test_parameters_are_in_no_argument_vector_and_in_no_text_of_the_call(hands: Hands, until) -> None:
    hands.write("a", "#!/bin/sh\nsleep 60 &\nwait\n")
    call = hands.call("a", parameters={"password": "hunter2-secret"})
    ended = hands.begin(call)
    await until(hands.recorded_pids)
    await until(lambda: "sleep" in arguments_of(hands))
    assert not [argument for argument in arguments_of(hands) if "hunter2-secret" in argument]
    [record] = hands.records()
    assert b"hunter2-secret" not in record.read_bytes()
    assert "hunter2-secret" not in repr(call)
    hands.agents.kill(call.key)
    await ended


def arguments_of(hands: Hands) -> list[str]:
    """Return the arguments of everything that runs in the name of these hands."""
    marked = [pid for pid in list_pids() if read_marks(pid).get("HACLUSTERD_LOCAL_CLUSTER") == str(hands.directory)]
    return [argument for pid in marked for argument in read_arguments(pid)]


async def test_a_value_that_no_environment_can_carry_is_a_failure(hands: Hands) -> None:
    hands.write("a", "#!/bin/sh\n")
    result = await hands.run("a", parameters={"text": "nul\0byte"})
    assert (result.exit_code, result.status) == (1, ExecutionStatus.ERROR)


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("", ""),
        ("noise\n", ""),
        ("ocf-exit-reason:first\nnoise\nocf-exit-reason:last one \nnoise\n", "last one"),
        ("ocf-exit-reason:kept\nocf-exit-reason:\n", "kept"),
        ("Nov 21 agent[1]: ERROR: ocf-exit-reason:in the line", "in the line"),
    ],
)
def test_exit_reason(stderr: str, reason: str) -> None:
    assert read_exit_reason(stderr) == reason


async def test_an_agent_that_fails_without_a_reason_is_quoted(hands: Hands) -> None:
    hands.write("a", "#!/bin/sh\necho 'bind: Address already in use' >&2; exit 1\n")
    result = await hands.run("a")
    assert (result.exit_code, result.exit_reason) == (1, "bind: Address already in use")
    hands.write("b", "#!/bin/sh\necho 'not running' >&2; exit 7\n")
    assert (await hands.run("b")).exit_reason == ""


def test_of_the_daemons_environment_only_the_local_cluster_is_handed_down() -> None:
    environment = {"HACLUSTERD_LOCAL_CLUSTER": "c1", "HACLUSTERD_NODE": "n1", "HOME": "/root", "LD_PRELOAD": "x"}
    assert own_marks(environment) == {"HACLUSTERD_LOCAL_CLUSTER": "c1"}


async def test_the_record_is_there_while_the_agent_runs(hands: Hands, until) -> None:
    flag = hands.directory / "go"
    hands.write("a", f"#!/bin/sh\nls {hands.directory}/run/actions\nwhile [ ! -e {flag} ]; do sleep 0.01; done\n")
    ended = hands.begin(hands.call("a"))
    await until(hands.recorded_pids)
    flag.touch()
    assert (await ended).stdout.count(".json") == 1
    await until(lambda: not hands.records())


async def test_without_room_for_the_record_nothing_is_executed(hands: Hands) -> None:
    touched = hands.directory / "touched"
    hands.write("a", f"#!/bin/sh\n[ $1 = meta-data ] || touch {touched}\n")
    (hands.directory / "run").mkdir(exist_ok=True)
    (hands.directory / "run" / "actions").write_text("a file where the directory should be")
    result = await hands.run("a", "start")
    assert (result.exit_code, result.status) == (1, ExecutionStatus.ERROR)
    assert result.exit_reason.startswith("the action could not be recorded: ")
    assert not touched.exists()


async def test_lookup_prefers_the_search_path_and_knows_the_shipped_ones(hands: Hands) -> None:
    own = AgentReference("ocf", "haclusterd", "dummy")
    # Written before anything is forked that could hold it open for writing: nobody could execute it then.
    override = hands.write("override", "#!/bin/sh\nexit 9\n")
    assert hands.agents.exists(own)
    assert not hands.agents.exists(AgentReference("ocf", "test", "nothing"))
    assert not hands.agents.exists(AgentReference("ocf", "haclusterd", "dummy.md"))
    for reference in ("ocf:..:passwd", "ocf:test:../test/a", "ocf:test:.hidden", "lsb:dummy"):
        assert not hands.agents.exists(AgentReference.parse(reference))
    assert (await hands.run("x", agent=own)).exit_code == 7
    (hands.directory / "ra" / "haclusterd").mkdir()
    override.rename(hands.directory / "ra" / "haclusterd" / "dummy")
    assert (await hands.run("x", agent=own)).exit_code == 9


async def test_metadata_is_read_once_for_each_version_of_the_file(hands: Hands) -> None:
    runs = hands.directory / "runs"
    text = f"#!/bin/sh\necho x >>{runs}\necho \"<resource-agent name='a'><version>%s</version></resource-agent>\"\n"
    path = hands.write("a", text % "1.0")
    agent = AgentReference("ocf", "test", "a")
    assert (await hands.metadata(agent)).version == "1.0"
    assert (await hands.metadata(agent)).version == "1.0"
    assert runs.read_text() == "x\n"
    path.write_text(text % "1.1")
    os.utime(path, ns=(1, 1))
    assert (await hands.metadata(agent)).version == "1.1"
    hands.write("b", "#!/bin/sh\necho no metadata here\n")
    assert await hands.metadata(AgentReference("ocf", "test", "b")) is None
    assert await hands.metadata(AgentReference("ocf", "test", "c")) is None


async def test_shipped_metadata(hands: Hands) -> None:
    metadata = await hands.metadata(AgentReference("ocf", "haclusterd", "http-service"))
    assert metadata is not None
    assert metadata.parameters["command"].is_required


async def test_a_stuck_exec_does_not_delay_another_resources_monitor(hands: Hands, until, hold_exec) -> None:
    stuck = hands.write("stuck", "#!/bin/sh\nexit 3\n")
    hands.write("quick", "#!/bin/sh\nexit 0\n")
    release = hold_exec(stuck)
    ended = hands.begin(hands.call("stuck"))
    await until(hands.recorded_pids)
    for _ in range(20):
        result = await hands.run("quick", resource=ResourceId("r2"))
        assert result.exit_code == 0
    assert not ended.done()
    release()
    assert (await ended).exit_code == 3


async def test_state_of_another_boot_is_gone_as_a_real_run_directory_would_be(
    clock: BoottimeClock, tmp_path: Path, hands: Hands, until
) -> None:
    dummy = AgentReference("ocf", "haclusterd", "dummy")
    hands.agents.adopt(lambda key: None)
    assert (await hands.run("x", "start", agent=dummy)).exit_code == 0
    await until(lambda: not hands.records())
    same_boot = Hands(clock, tmp_path, Incarnation("boot-1", "00000000000000bb"))
    assert same_boot.agents.adopt(lambda key: None) == ()
    assert (await same_boot.run("x", agent=dummy)).exit_code == 0
    await until(lambda: not hands.records())
    new_boot = Hands(clock, tmp_path, Incarnation("boot-2", "00000000000000cc"))
    assert new_boot.agents.adopt(lambda key: None) == ()
    assert (await new_boot.run("x", agent=dummy)).exit_code == 7


async def test_a_result_tells_its_times(hands: Hands, until) -> None:
    flag = hands.directory / "go"
    hands.write("a", f"#!/bin/sh\nwhile [ ! -e {flag} ]; do sleep 0.01; done\nsleep 0.3\n")
    ended = hands.begin(hands.call("a"))
    await until(hands.recorded_pids)
    flag.touch()
    result = await ended
    assert 300 <= result.executed_ms < 5000
    assert result.queued_ms < 2000


async def test_a_start_tells_what_the_agent_cannot_take_over_with_a_reload(hands: Hands) -> None:
    dummy = AgentReference("ocf", "haclusterd", "dummy")
    for action in ("start", "reload-agent"):
        names = (await hands.run("x", action, agent=dummy)).restart_parameters
        assert names is not None
        assert "state" in names
        assert "fake" not in names
    for action in ("monitor", "stop"):
        assert (await hands.run("x", action, agent=dummy)).restart_parameters is None
    failed = await hands.run("x", "start", agent=dummy, parameters={"rc_start": "1"})
    assert (failed.exit_code, failed.restart_parameters) == (1, None)


@pytest.mark.parametrize("metadata", ["echo nothing", "exit 1"])
async def test_a_start_whose_agent_says_nothing_is_a_start_all_the_same(hands: Hands, metadata: str) -> None:
    hands.write("a", f"#!/bin/sh\n[ $1 != meta-data ] || {{ {metadata}; }}\n")
    result = await hands.run("a", "start")
    assert (result.exit_code, result.restart_parameters) == (0, None)


async def test_a_probe_prefetches_what_the_start_will_ask_the_agent(hands: Hands, until) -> None:
    log = hands.directory / "log"
    answer = "echo \"<resource-agent name='a'><version>1.0</version></resource-agent>\""
    hands.write("a", f"#!/bin/sh\necho $1 >>{log}\n[ $1 != meta-data ] || {answer}\n")
    await hands.run("a", "monitor")
    await until(lambda: log.read_text().split() == ["monitor", "meta-data"])
    await until(lambda: AgentReference("ocf", "test", "a") in hands.agents._metadata)
    await hands.run("a", "monitor")
    await hands.run("a", "start")
    assert log.read_text().split() == ["monitor", "meta-data", "monitor", "start"]


async def test_a_start_does_not_wait_long_for_what_its_agent_says(hands: Hands) -> None:
    hands.write("a", "#!/bin/sh\n[ $1 != meta-data ] || exec sleep 60\n")
    began = hands.clock.now()
    result = await hands.run("a", "start")
    assert (result.exit_code, result.restart_parameters) == (0, None)
    assert METADATA_WAIT_MS <= hands.clock.now() - began < 2 * METADATA_WAIT_MS


# The last look before the exec


@pytest.mark.parametrize(("action", "is_begun"), [("start", False), ("promote", False), ("stop", True)])
async def test_without_a_lease_nothing_is_made_active_and_everything_stopped(
    hands: Hands, until, action: str, is_begun: bool
) -> None:
    hands.write("agent", "#!/bin/sh\nexit 0\n")
    hands.has_lease = False
    result = await hands.run("agent", action)
    assert result.is_begun is is_begun
    assert result.status is (ExecutionStatus.DONE if is_begun else ExecutionStatus.CANCELLED)
    await until(lambda: not hands.records())


async def test_an_exec_that_was_stuck_until_the_lease_had_ended_is_killed_at_once(
    hands: Hands, tmp_path: Path, until, hold_exec
) -> None:
    marker = tmp_path / "acted"
    stuck = hands.write("stuck", f"#!/bin/sh\nsleep 60\ntouch {marker}\n")
    release = hold_exec(stuck)
    ended = hands.begin(hands.call("stuck", "start"))
    await until(hands.recorded_pids)
    hands.has_lease = False
    release()
    result = await ended
    assert (result.status, result.is_begun) == (ExecutionStatus.ERROR, True)
    assert not marker.exists()


async def test_an_agent_that_is_being_replaced_is_waited_for(hands: Hands, until) -> None:
    """An upgrade takes the file away, writes it without permission first, and then it is there again."""
    text = "#!/bin/sh\nexit 0\n"
    hands.write("a", text)
    assert (await hands.run("a")).exit_code == 0
    path = hands.write("a", text)
    path.unlink()
    ended = hands.begin(hands.call("a"))
    await until(hands.agents.waits)
    assert "ocf:test:a is missing" in hands.agents.waits()[0]
    hands.write("a", text, 0o644)
    await until(hands.agents.waits)
    hands.write("a", text)
    result = await ended
    assert (result.exit_code, result.status) == (0, ExecutionStatus.DONE)
    assert hands.agents.waits() == ()


async def test_a_stop_waits_for_its_agent_though_this_daemon_has_never_seen_it(hands: Hands, until) -> None:
    ended = hands.begin(hands.call("a", "stop"))
    await until(hands.agents.waits)
    hands.write("a", "#!/bin/sh\nexit 0\n")
    assert (await ended).exit_code == 0


async def test_an_agent_that_stays_away_is_not_installed_any_more(hands: Hands, monkeypatch) -> None:
    monkeypatch.setattr(agents_ocf, "ABSENT_WAIT_MS", 300)
    result = await hands.run("a", "stop")
    assert (result.exit_code, result.status) == (5, ExecutionStatus.NOT_INSTALLED)
    assert "any more" in result.exit_reason
    assert hands.agents.waits() == ()


async def test_a_wait_for_a_missing_agent_can_be_cancelled(hands: Hands, until) -> None:
    call = hands.call("a", "stop")
    ended = hands.begin(call)
    await until(hands.agents.waits)
    hands.agents.kill(call.key)
    assert (await ended).status is ExecutionStatus.CANCELLED
    assert hands.agents.waits() == ()
