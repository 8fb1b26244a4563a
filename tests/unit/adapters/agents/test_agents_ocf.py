"""Resource agents get their environment and are understood (agents-and-fencing.md §1.1-1.9)."""

import asyncio
import os
import resource
import sys
from pathlib import Path

import pytest

from haclusterd.adapters.agents import ocf as agents_ocf
from haclusterd.adapters.agents.action_records import ActionRecord, ActionRecords
from haclusterd.adapters.agents.ocf import METADATA_WAIT_MS, PIDLESS_PERIOD_MS, PIDLESS_SEARCHES, own_marks
from haclusterd.adapters.agents.results import read_exit_reason
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.agents.process_table import list_pids, read_arguments, read_marks
from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, Incarnation, ResourceId
from haclusterd.model.instants import Instant
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.model.secrets import masked
from tests.unit.adapters.namespaces import HeldBack, first_below, needs_namespaces
from tests.unit.adapters.scripted_agents import ScriptedAgents


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 42, 190, 191])
async def test_exit_codes_are_delivered_as_they_are(agents: ScriptedAgents, code: int) -> None:
    agents.write("a", f"#!/bin/sh\nexit {code}\n")
    result = await agents.run("a")
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
    agents: ScriptedAgents, until, text: str | None, mode: int, code: int, status: ExecutionStatus
) -> None:
    if text is not None:
        agents.write("a", text, mode)
    result = await agents.run("a")
    assert (result.exit_code, result.status) == (code, status)
    assert "ocf:test:a" in result.exit_reason
    await until(lambda: not agents.records())


async def test_a_signal_a_timeout_and_a_cancellation(agents: ScriptedAgents, until) -> None:
    agents.write("a", "#!/bin/sh\n[ $1 = start ] && kill -9 $$\nexec sleep 60\n")
    killed = await agents.run("a", "start")
    assert (killed.exit_code, killed.status) == (1, ExecutionStatus.ERROR)
    assert killed.exit_reason == "interrupted by SIGKILL"
    late = await agents.run("a", "stop", timeout_ms=1000)
    assert (late.exit_code, late.status) == (1, ExecutionStatus.TIMEOUT)
    assert late.exit_reason == "stop did not complete within 1s"
    call = agents.call("a")
    ended = agents.begin(call)
    await until(agents.records)
    agents.runner.kill(call.key)
    assert (await ended).status is ExecutionStatus.CANCELLED
    await until(lambda: not agents.records())


async def test_an_agent_is_asked_what_it_says_of_parameters(agents: ScriptedAgents) -> None:
    objects = "echo ocf-exit-reason:no device $OCF_RESKEY_device >&2; exit 5"
    agents.write("a", f"#!/bin/sh\n[ $1 = validate-all ] && {{ {objects}; }}\n")
    assert await validated(agents, "a", device="/dev/sdb") == Validation(5, "no device /dev/sdb")
    agents.write("a", "#!/bin/sh\n[ $1 = validate-all ]\n")
    assert await validated(agents, "a") == Validation(0, "")
    agents.write("a", "#!/bin/sh\nexec sleep 60\n")
    too_long = Validation(None, "validate-all did not complete within 200ms")
    assert await validated(agents, "a", timeout_ms=200) == too_long
    assert await validated(agents, "missing") == Validation(None, "it is not installed here")
    assert not agents.records(), "a later life of the daemon finds nothing to adopt"


async def validated(agents: ScriptedAgents, script: str, timeout_ms: int = 20_000, **parameters: str) -> Validation:
    answer: asyncio.Future[Validation] = asyncio.get_running_loop().create_future()
    agent = AgentReference("ocf", "test", script)
    question = ValidationQuestion(ResourceId("r1"), agent, tuple(sorted(parameters.items())))
    agents.runner.validate(question, timeout_ms, answer.set_result)
    return await answer


async def test_the_environment(agents: ScriptedAgents) -> None:
    agents.write("a", "#!/bin/sh\nexec env\n")
    result = await agents.run(
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
    assert len(environment.pop("HACLUSTERD_ORDER_SEAL")) == 32
    directory = str(agents.directory)
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


async def test_what_an_agent_keeps_is_reached_by_the_account_of_its_service(agents: ScriptedAgents) -> None:
    # PAF lets psql read its question from there, as postgres.
    agents.write("a", '#!/bin/sh\necho question > "$HA_RSCTMP/question"; stat -c %A "$HA_RSCTMP" "$HA_RSCTMP/.."\n')
    runtime = agents.directory / "run"
    runtime.mkdir(exist_ok=True)
    runtime.chmod(0o700)
    result = await agents.run("a")
    assert result.stdout.split() == ["drwxr-xr-x", "drwx--x--x"]


async def test_what_claims_devices_finds_them_in_its_environment(agents: ScriptedAgents) -> None:
    agents.write("a", "#!/bin/sh\nexec env\n")
    claimed = {"devices": ("GPU-1", "GPU-2", "mlx5_0"), "accelerators": ("GPU-1", "GPU-2")}
    result = await agents.run("a", action="start", **claimed)
    environment = dict(line.split("=", 1) for line in result.stdout.splitlines())
    assert {name: value for name, value in environment.items() if "DEVICES" in name.upper()} == {
        "OCF_RESKEY_CRM_meta_devices": "GPU-1 GPU-2 mlx5_0",
        "OCF_RESKEY_CRM_meta_devices_cdi": "nvidia.com/gpu=GPU-1 nvidia.com/gpu=GPU-2",
        "CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2",
        "NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2",
    }


async def test_parameters_are_in_no_argument_vector_and_in_no_text_of_the_call(agents: ScriptedAgents, until) -> None:
    agents.write("a", "#!/bin/sh\nsleep 60 &\nwait\n")
    call = agents.call("a", parameters={"password": "hunter2-secret"})
    ended = agents.begin(call)
    await until(agents.recorded_pids)
    await until(lambda: "sleep" in arguments_of(agents))
    assert not [argument for argument in arguments_of(agents) if "hunter2-secret" in argument]
    [record] = agents.records()
    assert b"hunter2-secret" not in record.read_bytes()
    assert "hunter2-secret" not in repr(call)
    agents.runner.kill(call.key)
    await ended


def arguments_of(agents: ScriptedAgents) -> list[str]:
    """Return the arguments of everything that runs in the name of these agents."""
    marked = [pid for pid in list_pids() if read_marks(pid).get("HACLUSTERD_LOCAL_CLUSTER") == str(agents.directory)]
    return [argument for pid in marked for argument in read_arguments(pid)]


async def test_a_value_that_no_environment_can_carry_is_a_failure(agents: ScriptedAgents) -> None:
    agents.write("a", "#!/bin/sh\n")
    result = await agents.run("a", parameters={"text": "nul\0byte"})
    assert (result.exit_code, result.status) == (1, ExecutionStatus.ERROR)


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("", ""),
        ("noise\n", ""),
        ("ocf-exit-reason:first\nnoise\nocf-exit-reason:last one \nnoise\n", "last one"),
        ("ocf-exit-reason:kept\nocf-exit-reason:\n", "kept"),
        ("Nov 21 agent[1]: ERROR: ocf-exit-reason:in the line", "in the line"),
        ("ocf-exit-reason:\x1b[2Jcleared\a\n", "\\x1b[2Jcleared\\x07"),
    ],
)
def test_exit_reason(stderr: str, reason: str) -> None:
    assert read_exit_reason(stderr) == reason


async def test_what_an_agent_wrote_last_steers_no_terminal(agents: ScriptedAgents) -> None:
    agents.write("a", "#!/bin/sh\nprintf '\\033]0;owned\\007failed' >&2; exit 1\n")
    result = await agents.run("a")
    assert result.exit_reason == "\\x1b]0;owned\\x07failed"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("exit 200", "exit code 200, which OCF does not define"),
        ("exit 190", ""),
    ],
)
async def test_an_exit_code_that_is_none_of_ocf_is_named(agents: ScriptedAgents, program: str, reason: str) -> None:
    agents.write("a", f"#!/bin/sh\n{program}\n")
    assert (await agents.run("a")).exit_reason == reason


async def test_an_agent_that_fails_without_a_reason_is_quoted(agents: ScriptedAgents) -> None:
    agents.write("a", "#!/bin/sh\necho 'bind: Address already in use' >&2; exit 1\n")
    result = await agents.run("a")
    assert (result.exit_code, result.exit_reason) == (1, "bind: Address already in use")
    agents.write("b", "#!/bin/sh\necho 'not running' >&2; exit 7\n")
    assert (await agents.run("b")).exit_reason == ""


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        ("yes | head -c 5000000 | tee /dev/stderr; echo ocf-exit-reason:disk full >&2; exit 1", 1, "disk full"),
        ("echo three hundred >&2; bash -c 'exit 300'", 44, "three hundred"),
        ("sleep 30 & echo left a daemon >&2; exit 1", 1, "left a daemon"),
    ],
)
async def test_a_bad_agent_is_quoted(agents: ScriptedAgents, body: str, code: int, reason: str) -> None:
    agents.write("a", f"#!/bin/sh\n{body}\n")
    result = await agents.run("a", "start", timeout_ms=25_000)
    assert (result.exit_code, result.exit_reason, result.status) == (code, reason, ExecutionStatus.DONE)
    assert len(result.stdout) + len(result.stderr) < 200_000


def test_of_the_daemons_environment_only_the_local_cluster_is_handed_down() -> None:
    environment = {"HACLUSTERD_LOCAL_CLUSTER": "c1", "HACLUSTERD_NODE": "n1", "HOME": "/root", "LD_PRELOAD": "x"}
    assert own_marks(environment) == {"HACLUSTERD_LOCAL_CLUSTER": "c1"}


async def test_the_record_is_there_while_the_agent_runs(agents: ScriptedAgents, until) -> None:
    flag = agents.directory / "go"
    agents.write("a", f"#!/bin/sh\nls {agents.directory}/run/actions\nwhile [ ! -e {flag} ]; do sleep 0.01; done\n")
    ended = agents.begin(agents.call("a"))
    await until(agents.recorded_pids)
    flag.touch()
    assert (await ended).stdout.count(".json") == 1
    await until(lambda: not agents.records())


async def test_without_room_for_the_record_nothing_is_executed(agents: ScriptedAgents) -> None:
    touched = agents.directory / "touched"
    agents.write("a", f"#!/bin/sh\n[ $1 = meta-data ] || touch {touched}\n")
    (agents.directory / "run").mkdir(exist_ok=True)
    (agents.directory / "run" / "actions").write_text("a file where the directory should be")
    result = await agents.run("a", "start")
    assert (result.exit_code, result.status) == (1, ExecutionStatus.ERROR)
    assert result.exit_reason.startswith("the action could not be recorded: ")
    assert not touched.exists()


async def test_lookup_prefers_the_search_path_and_knows_the_shipped_ones(agents: ScriptedAgents) -> None:
    own = AgentReference("ocf", "haclusterd", "dummy")
    # Written before anything is forked that could hold it open for writing: nobody could execute it then.
    override = agents.write("override", "#!/bin/sh\nexit 9\n")
    assert agents.runner.exists(own)
    assert not agents.runner.exists(AgentReference("ocf", "test", "nothing"))
    assert not agents.runner.exists(AgentReference("ocf", "haclusterd", "dummy.md"))
    for reference in ("ocf:..:passwd", "ocf:test:../test/a", "ocf:test:.hidden", "lsb:dummy"):
        assert not agents.runner.exists(AgentReference.parse(reference))
    assert (await agents.run("x", agent=own)).exit_code == 7
    (agents.directory / "ra" / "haclusterd").mkdir()
    override.rename(agents.directory / "ra" / "haclusterd" / "dummy")
    assert (await agents.run("x", agent=own)).exit_code == 9


async def test_metadata_is_read_once_for_each_version_of_the_file(agents: ScriptedAgents) -> None:
    runs = agents.directory / "runs"
    text = f"#!/bin/sh\necho x >>{runs}\necho \"<resource-agent name='a'><version>%s</version></resource-agent>\"\n"
    path = agents.write("a", text % "1.0")
    agent = AgentReference("ocf", "test", "a")
    assert (await agents.metadata(agent)).version == "1.0"
    assert (await agents.metadata(agent)).version == "1.0"
    assert runs.read_text() == "x\n"
    path.write_text(text % "1.1")
    os.utime(path, ns=(1, 1))
    assert (await agents.metadata(agent)).version == "1.1"
    agents.write("b", "#!/bin/sh\necho no metadata here\n")
    assert await agents.metadata(AgentReference("ocf", "test", "b")) is None
    assert await agents.metadata(AgentReference("ocf", "test", "c")) is None


async def test_shipped_metadata(agents: ScriptedAgents) -> None:
    metadata = await agents.metadata(AgentReference("ocf", "haclusterd", "http-service"))
    assert metadata is not None
    assert metadata.parameters["command"].is_required


async def test_a_stuck_exec_does_not_delay_another_resources_monitor(agents: ScriptedAgents, until, hold_exec) -> None:
    stuck = agents.write("stuck", "#!/bin/sh\nexit 3\n")
    agents.write("quick", "#!/bin/sh\nexit 0\n")
    release = hold_exec(stuck)
    ended = agents.begin(agents.call("stuck"))
    await until(agents.recorded_pids)
    for _ in range(20):
        result = await agents.run("quick", resource=ResourceId("r2"))
        assert result.exit_code == 0
    assert not ended.done()
    release()
    assert (await ended).exit_code == 3


async def test_state_of_another_boot_is_gone_as_a_real_run_directory_would_be(
    clock: BoottimeClock, tmp_path: Path, agents: ScriptedAgents, until
) -> None:
    dummy = AgentReference("ocf", "haclusterd", "dummy")
    agents.runner.adopt(lambda key: None)
    assert (await agents.run("x", "start", agent=dummy)).exit_code == 0
    await until(lambda: not agents.records())
    same_boot = ScriptedAgents(clock, tmp_path, Incarnation("boot-1", "00000000000000bb"))
    assert same_boot.runner.adopt(lambda key: None) == ()
    assert (await same_boot.run("x", agent=dummy)).exit_code == 0
    await until(lambda: not agents.records())
    new_boot = ScriptedAgents(clock, tmp_path, Incarnation("boot-2", "00000000000000cc"))
    assert new_boot.runner.adopt(lambda key: None) == ()
    assert (await new_boot.run("x", agent=dummy)).exit_code == 7


async def test_an_agent_that_cannot_be_looked_for_is_not_taken_for_ended(agents: ScriptedAgents, until) -> None:
    # The daemon was killed in the fork, and there are no descriptors to look for the agent by.
    life = Incarnation("boot-1", "00000000000000aa")
    record = ActionRecord("n1/1.1", ResourceId("r1"), "start", life, "/agent", Instant(1), Instant(2**62))
    ActionRecords(agents.runtime / "actions", ReadyThreads(1)).write(record)
    ended: list[str] = []
    [adopted] = agents.runner.adopt(ended.append)
    assert adopted.is_running
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(until(lambda: ended), 2 * PIDLESS_SEARCHES * PIDLESS_PERIOD_MS / 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    await until(lambda: ended == ["n1/1.1"])


async def test_a_result_tells_its_times(agents: ScriptedAgents, until) -> None:
    flag = agents.directory / "go"
    agents.write("a", f"#!/bin/sh\nwhile [ ! -e {flag} ]; do sleep 0.01; done\nsleep 0.3\n")
    ended = agents.begin(agents.call("a"))
    await until(agents.recorded_pids)
    flag.touch()
    result = await ended
    assert 300 <= result.executed_ms < 5000
    assert result.queued_ms < 2000


async def test_a_start_tells_what_the_agent_cannot_take_over_with_a_reload(agents: ScriptedAgents) -> None:
    dummy = AgentReference("ocf", "haclusterd", "dummy")
    for action in ("start", "reload-agent"):
        names = (await agents.run("x", action, agent=dummy)).restart_parameters
        assert names is not None
        assert "state" in names
        assert "fake" not in names
    for action in ("monitor", "stop"):
        assert (await agents.run("x", action, agent=dummy)).restart_parameters is None
    failed = await agents.run("x", "start", agent=dummy, parameters={"rc_start": "1"})
    assert (failed.exit_code, failed.restart_parameters) == (1, None)


@pytest.mark.parametrize("metadata", ["echo nothing", "exit 1"])
async def test_a_start_whose_agent_says_nothing_is_a_start_all_the_same(agents: ScriptedAgents, metadata: str) -> None:
    agents.write("a", f"#!/bin/sh\n[ $1 != meta-data ] || {{ {metadata}; }}\n")
    result = await agents.run("a", "start")
    assert (result.exit_code, result.restart_parameters) == (0, None)


async def test_a_probe_prefetches_what_the_start_will_ask_the_agent(agents: ScriptedAgents, until) -> None:
    log = agents.directory / "log"
    answer = "echo \"<resource-agent name='a'><version>1.0</version></resource-agent>\""
    agents.write("a", f"#!/bin/sh\necho $1 >>{log}\n[ $1 != meta-data ] || {answer}\n")
    await agents.run("a", "monitor")
    await until(lambda: log.read_text().split() == ["monitor", "meta-data"])
    await until(lambda: AgentReference("ocf", "test", "a") in agents.runner._metadata)
    await agents.run("a", "monitor")
    await agents.run("a", "start")
    assert log.read_text().split() == ["monitor", "meta-data", "monitor", "start"]


async def test_a_start_does_not_wait_long_for_what_its_agent_says(agents: ScriptedAgents) -> None:
    agents.write("a", "#!/bin/sh\n[ $1 != meta-data ] || exec sleep 60\n")
    began = agents.clock.now()
    result = await agents.run("a", "start")
    assert (result.exit_code, result.restart_parameters) == (0, None)
    assert METADATA_WAIT_MS <= agents.clock.now() - began < 2 * METADATA_WAIT_MS


# The last look before the exec


@pytest.mark.parametrize(("action", "is_begun"), [("start", False), ("promote", False), ("stop", True)])
async def test_without_a_lease_nothing_is_made_active_and_everything_stopped(
    agents: ScriptedAgents, until, action: str, is_begun: bool
) -> None:
    agents.write("agent", "#!/bin/sh\nexit 0\n")
    agents.has_lease = False
    result = await agents.run("agent", action)
    assert result.is_begun is is_begun
    assert result.status is (ExecutionStatus.DONE if is_begun else ExecutionStatus.CANCELLED)
    await until(lambda: not agents.records())


async def test_an_exec_that_was_stuck_until_the_lease_had_ended_is_killed_at_once(
    agents: ScriptedAgents, tmp_path: Path, until, hold_exec
) -> None:
    marker = tmp_path / "acted"
    stuck = agents.write("stuck", f"#!/bin/sh\nsleep 60\ntouch {marker}\n")
    release = hold_exec(stuck)
    ended = agents.begin(agents.call("stuck", "start"))
    await until(agents.recorded_pids)
    agents.has_lease = False
    release()
    result = await ended
    assert (result.status, result.is_begun) == (ExecutionStatus.ERROR, True)
    assert not marker.exists()


async def test_an_agent_that_is_being_replaced_is_waited_for(agents: ScriptedAgents, until) -> None:
    """An upgrade takes the file away, writes it without permission first, and then it is there again."""
    text = "#!/bin/sh\nexit 0\n"
    agents.write("a", text)
    assert (await agents.run("a")).exit_code == 0
    path = agents.write("a", text)
    path.unlink()
    ended = agents.begin(agents.call("a"))
    await until(agents.runner.waits)
    assert "ocf:test:a is missing" in agents.runner.waits()[0]
    agents.write("a", text, 0o644)
    await until(agents.runner.waits)
    agents.write("a", text)
    result = await ended
    assert (result.exit_code, result.status) == (0, ExecutionStatus.DONE)
    assert agents.runner.waits() == ()


async def test_an_agent_that_is_still_being_written_is_waited_for_though_it_was_never_executed(
    agents: ScriptedAgents, until
) -> None:
    path = agents.write("a", "#!/bin/sh\nexit 0\n")
    with path.open("a"):
        ended = agents.begin(agents.call("a", "start"))
        await until(agents.runner.waits)
    result = await ended
    assert (result.exit_code, result.status) == (0, ExecutionStatus.DONE)


async def test_a_stop_waits_for_its_agent_though_this_daemon_has_never_seen_it(agents: ScriptedAgents, until) -> None:
    ended = agents.begin(agents.call("a", "stop"))
    await until(agents.runner.waits)
    agents.write("a", "#!/bin/sh\nexit 0\n")
    assert (await ended).exit_code == 0


async def test_an_agent_that_stays_away_is_not_installed_any_more(agents: ScriptedAgents, monkeypatch) -> None:
    monkeypatch.setattr(agents_ocf, "ABSENT_WAIT_MS", 300)
    result = await agents.run("a", "stop")
    assert (result.exit_code, result.status) == (5, ExecutionStatus.NOT_INSTALLED)
    assert "any more" in result.exit_reason
    assert agents.runner.waits() == ()


async def test_a_wait_for_a_missing_agent_can_be_cancelled(agents: ScriptedAgents, until) -> None:
    call = agents.call("a", "stop")
    ended = agents.begin(call)
    await until(agents.runner.waits)
    agents.runner.kill(call.key)
    assert (await ended).status is ExecutionStatus.CANCELLED
    assert agents.runner.waits() == ()


async def test_the_last_line_is_whole_so_that_all_of_a_secret_in_it_is_found(agents: ScriptedAgents) -> None:
    agents.write("web", '#!/bin/sh\nprintf "%0190d password=%s\\n" 0 "$OCF_RESKEY_password" >&2\nexit 1\n')
    result = await agents.run("web", "start", parameters={"password": "s3cret" * 50})
    assert masked(result.exit_reason, {"s3cret" * 50}) == "0" * 190 + " password=***"


@needs_namespaces
async def test_a_stop_fails_while_what_a_killed_start_left_sleeps_in_a_system_call(
    agents: ScriptedAgents, held_back: HeldBack, until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents_ocf, "UNKILLABLE_WAIT_MS", 300)
    agents.write("mounts", '#!/bin/sh\n[ "$1" = stop ] && exit 0\nunshare --pid --fork sleep 5016\nexit 0\n')

    async def killed(action: str, resource: str) -> None:
        call = agents.call("mounts", action, resource=ResourceId(resource))
        ended = agents.begin(call)
        await until(lambda: any(first_below(pid) for pid in agents.recorded_pids()))
        held_back.hold(next(filter(None, map(first_below, agents.recorded_pids()))))
        agents.runner.kill(call.key)
        assert (await ended).status == "cancelled"

    await killed("start", "r1")
    result = await agents.run("mounts", "stop")
    assert (result.exit_code, result.status) == (1, "error")
    assert "do not die" in result.exit_reason
    held_back.let_go()
    await until(lambda: not agents.records())
    assert (await agents.run("mounts", "stop")).exit_code == 0
    await killed("monitor", "r2")
    assert (await agents.run("mounts", "stop", resource=ResourceId("r2"))).exit_code == 0, "it begins nothing"
