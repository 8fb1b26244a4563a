"""What every shipped resource agent owes the cluster (OCF Resource Agent API 1.1)."""

import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from haclusterd.adapters.agents.metadata import read_agent_metadata
from haclusterd.agents.process_table import boot_id, list_pids, read_arguments, read_marks, read_stat
from haclusterd.formats.policy.yaml import load_policy
from haclusterd.model.ids import AgentReference
from tests.agents.conftest import AGENTS, NODE, AgentUnderTest, give_tools

OK, ERROR, UNIMPLEMENTED, NOT_INSTALLED, NOT_CONFIGURED, NOT_RUNNING = 0, 1, 3, 5, 6, 7
RESOURCE_AGENTS = [
    "container", "dummy", "exec", "flaky", "gpu-health", "http-service", "inference-server", "mount", "postgres",
    "stateful", "sys-health", "tcp-proxy", "vip",
]  # fmt: skip
WITHOUT_EXAMPLE = ["dummy", "fence_local", "stateful"]
WITH_DAEMON = ["gpu-health", "stateful", "sys-health"]
MAKERS = {
    "container": "make_container", "http-service": "make_http", "inference-server": "make_inference",
    "mount": "make_mount", "postgres": "make_postgres", "tcp-proxy": "make_proxy", "vip": "make_vip",
}  # fmt: skip
"""Fixtures that make an agent with what it needs around it."""
WITH_PROCESS = ["exec", "http-service", "inference-server"]
GOLDEN = Path(__file__).parents[1] / "golden" / "agents"


@pytest.fixture
def agent(request: pytest.FixtureRequest, make_agent):
    if request.param in MAKERS:
        return request.getfixturevalue(MAKERS[request.param])()
    if request.param == "exec":
        return make_agent("exec", command="sleep", args="1000")
    if request.param in WITH_DAEMON:
        return request.getfixturevalue("make_watcher")(request.param)
    return make_agent(request.param)


every_agent = pytest.mark.parametrize("agent", RESOURCE_AGENTS, indirect=True)
agents_with_process = pytest.mark.parametrize("agent", WITH_PROCESS, indirect=True)


def test_every_shipped_agent_is_covered_and_has_a_page() -> None:
    shipped = sorted(path.name for path in AGENTS.iterdir() if path.is_file() and os.access(path, os.X_OK))
    assert shipped == sorted([*RESOURCE_AGENTS, "fence_local"])
    for name in shipped:
        page = (AGENTS / f"{name}.md").read_text()
        assert page.startswith(f"# {name}\n")


@pytest.mark.parametrize("name", [*RESOURCE_AGENTS, "fence_local"])
def test_the_page_names_every_parameter(name: str) -> None:
    page = (AGENTS / f"{name}.md").read_text()
    for parameter in ET.parse(GOLDEN / f"{name}.xml").iterfind(".//parameter"):
        assert f"`{parameter.get('name')}`" in page


@pytest.mark.parametrize("name", [*RESOURCE_AGENTS, "fence_local"])
def test_the_pages_examples_are_policies(name: str) -> None:
    page = (AGENTS / f"{name}.md").read_text()
    examples = re.findall(r"^```yaml\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert examples or name in WITHOUT_EXAMPLE
    for text in examples:
        policy = load_policy(text, f"{name}.md")
        assert [str(report) for report in policy.reports] == []


@pytest.mark.parametrize("name", RESOURCE_AGENTS)
def test_metadata_is_as_agreed(name: str) -> None:
    done = subprocess.run([AGENTS / name, "meta-data"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=True)
    assert done.stdout.decode() == (GOLDEN / f"{name}.xml").read_text()


def test_agents_find_their_library_where_the_wheel_installs_it(tmp_path: Path) -> None:
    root = AGENTS.parent
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    for directory, patterns in settings.items():
        target = tmp_path / directory
        target.mkdir(parents=True)
        for path in sorted(path for pattern in patterns for path in root.glob(pattern) if path.is_file()):
            shutil.copy(path, target)
    for name in RESOURCE_AGENTS:
        agent = tmp_path / "share" / "haclusterd" / "resource_agents" / name
        done = subprocess.run([agent, "meta-data"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=False)
        assert done.stdout.decode() == (GOLDEN / f"{name}.xml").read_text(), done.stderr


@pytest.mark.parametrize("name", RESOURCE_AGENTS)
def test_metadata_is_complete(name: str) -> None:
    text = (GOLDEN / f"{name}.xml").read_text()
    metadata = read_agent_metadata(text, AgentReference("ocf", "haclusterd", name))
    assert ET.fromstring(text).get("name") == name
    assert metadata.version == "1.1"
    assert {"start", "stop", "monitor", "meta-data", "validate-all"} <= metadata.actions.keys()
    assert all(action.timeout_ms for action in metadata.actions.values())
    assert all(parameter.shortdesc for parameter in metadata.parameters.values())
    assert metadata.longdesc


@every_agent
def test_start_stop_and_monitor_are_idempotent_and_agree(agent: AgentUnderTest) -> None:
    assert agent.code("monitor", CRM_meta_interval="0") == NOT_RUNNING
    assert agent.code("stop") == OK
    assert agent.code("start") == OK
    assert agent.code("start") == OK
    assert agent.code("monitor") == OK
    assert agent.code("monitor", level=10) == OK
    assert agent.code("stop") == OK
    assert agent.code("stop") == OK
    assert agent.code("monitor") == NOT_RUNNING
    assert agent.code("start") == OK
    assert agent.code("monitor") == OK


@every_agent
def test_ocf_tester_passes(agent: AgentUnderTest, request: pytest.FixtureRequest) -> None:
    program = shutil.which("ocf-tester")
    if program is None or shutil.which("xmllint") is None:
        pytest.skip("ocf-tester is not installed (Debian: apt-get install resource-agents libxml2-utils)")
    if not all(place.stat().st_mode & 0o001 for place in AGENTS.parents):
        pytest.skip("ocf-tester runs agents as nobody, who may not come here")
    if agent.name == "postgres":
        # What is promotable is promoted, and a server alone is not.
        agent.parameters["node_list"] = NODE
        give_tools(agent, request.getfixturevalue("daemon"))
    done = agent.run_ocf_tester(program)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@every_agent
def test_a_clean_probe_says_nothing(agent: AgentUnderTest) -> None:
    done = agent.run("monitor", CRM_meta_interval="0")
    assert (done.returncode, done.stdout, done.stderr) == (NOT_RUNNING, "", "")


@every_agent
def test_an_unknown_action_is_refused(agent: AgentUnderTest) -> None:
    assert agent.code("dance") == UNIMPLEMENTED


@agents_with_process
def test_a_killed_service_is_not_running(agent: AgentUnderTest) -> None:
    assert agent.code("start") == OK
    os.kill(agent.pid(), 9)
    wait_dead(agent.pid())
    assert agent.code("monitor") == NOT_RUNNING
    assert agent.code("stop") == OK
    assert agent.code("start") == OK


@agents_with_process
def test_a_second_start_keeps_the_process(agent: AgentUnderTest) -> None:
    assert agent.code("start") == OK
    pid = agent.pid()
    assert agent.code("start") == OK
    assert agent.pid() == pid


@agents_with_process
def test_a_hung_service_can_be_stopped(agent: AgentUnderTest) -> None:
    assert agent.code("start") == OK
    os.kill(agent.pid(), 19)
    assert agent.code("stop") == OK
    assert agent.code("monitor") == NOT_RUNNING


@pytest.mark.parametrize(
    ("agent", "required"),
    [("http-service", "command"), ("http-service", "ready_url"), ("exec", "command"), ("tcp-proxy", "listen"),
     ("postgres", "pgdata")],
    indirect=["agent"],
)
def test_a_missing_parameter_is_wrong_everywhere_and_stop_still_works(agent: AgentUnderTest, required: str) -> None:
    for action in ("start", "validate-all"):
        done = agent.run(action, **{required: None})
        assert done.returncode == NOT_CONFIGURED
        assert f"required parameter '{required}' is missing" in done.stderr
    assert agent.code("stop", **{required: None}) == OK
    assert agent.code("start") == OK
    assert agent.code("stop", **{required: None}) == OK
    assert agent.code("monitor") == NOT_RUNNING


@pytest.mark.parametrize(
    "wrong",
    [{"stop_signal": "NONSENSE"}, {"stop_timeout": "soon"}, {"ready_timeout": "1 parsec"}, {"env": '"open'}],
)
@agents_with_process
def test_an_impossible_value_is_wrong_everywhere(agent: AgentUnderTest, wrong: dict[str, str]) -> None:
    done = agent.run("start", **wrong)
    assert done.returncode == NOT_CONFIGURED
    assert next(iter(wrong)) in done.stderr


@agents_with_process
def test_missing_software_is_this_nodes_problem(agent: AgentUnderTest) -> None:
    done = agent.run("start", command="/no/such/program")
    assert done.returncode == NOT_INSTALLED
    assert "ocf-exit-reason:/no/such/program" in done.stderr
    assert agent.code("monitor") == NOT_RUNNING


@agents_with_process
def test_an_unknown_user_is_this_nodes_problem(agent: AgentUnderTest) -> None:
    assert agent.code("start", user="no-such-user") == NOT_INSTALLED


@agents_with_process
def test_nothing_is_left_after_stop(agent: AgentUnderTest, write_script: Callable[[str, str], Path]) -> None:
    family = write_script(
        "family",
        f"""#!/bin/sh
sleep 1001 &
setsid sleep 1002 &
setsid sh -c 'trap "" TERM; sleep 1003 & while :; do sleep 1; done' &
exec {agent.parameters["command"]} {agent.parameters.get("args", "")}
""",
    )
    assert agent.code("start", command=str(family), args=None) == OK
    wait_for(lambda: len(members(agent)) >= 5)
    assert agent.code("stop", stop_timeout="1s") == OK
    assert members(agent) == []


@agents_with_process
def test_leftover_children_are_a_failure_not_a_clean_stop(
    agent: AgentUnderTest, write_script: Callable[[str, str], Path]
) -> None:
    command = f"{agent.parameters['command']} {agent.parameters.get('args', '')}"
    family = write_script("family", f"#!/bin/sh\nsetsid sleep 1001 &\nexec {command}\n")
    assert agent.code("start", command=str(family), args=None) == OK
    wait_for(lambda: ["sleep", "1001"] in [read_arguments(pid) for pid in members(agent)])
    os.kill(agent.pid(), 9)
    wait_dead(agent.pid())
    assert agent.code("monitor") == ERROR
    assert agent.code("stop") == OK
    assert members(agent) == []


@agents_with_process
def test_the_service_carries_the_marks_and_none_of_the_agents_parameters(agent: AgentUnderTest) -> None:
    assert agent.code("start", env="COLOUR=blue WORDS='two words'") == OK
    wait_for(lambda: bool(read_marks(agent.pid())))  # The kernel lays them out after the exec has succeeded.
    marks = read_marks(agent.pid())
    assert marks["OCF_RESOURCE_INSTANCE"] == agent.instance
    assert marks["HACLUSTERD_NODE"] == "n1"
    assert (marks["COLOUR"], marks["WORDS"]) == ("blue", "two words")
    assert not [name for name in marks if name.startswith(("OCF_RESKEY_", "HACLUSTERD_ORDER", "HA_"))]


STANDARD_SIGNALS = 0x7FFFFFFF
"""Signals 1 to 31; the C library keeps 32 and 33 to itself, and whether those are ignored is inherited."""


@agents_with_process
def test_the_service_is_alone_in_its_session_and_ignores_no_signal(agent: AgentUnderTest) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert agent.code("start") == OK
    finally:
        signal.signal(signal.SIGHUP, before)
    pid = agent.pid()
    stat = read_stat(pid)
    assert (stat.session, stat.group) == (pid, pid)
    assert sorted(os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1, 2)) == ["/dev/null"] * 3
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = int(next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1], 16)
    if agent.name == "exec":
        assert ignored & STANDARD_SIGNALS == 0


@agents_with_process
def test_output_goes_to_the_log_and_its_end_explains_a_failed_start(
    agent: AgentUnderTest, write_script: Callable[[str, str], Path], tmp_path: Path
) -> None:
    log = tmp_path / "service.log"
    broken = write_script("broken", "#!/bin/sh\necho cannot bind to the moon\nexit 3\n")
    ready = {"ready_cmd": "false"} if agent.name == "exec" else {}
    done = agent.run("start", command=str(broken), args=None, log_file=str(log), **ready)
    assert done.returncode == ERROR
    assert "ended while starting; its log ends with: cannot bind to the moon" in done.stderr
    done = agent.run("start", command=str(broken), args=None, **ready)
    assert "ended while starting; what it printed is lost: set log_file" in done.stderr


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root: it becomes another user")
NOBODY = 65534


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that every user may enter: those of tests are their owner's alone."""
    made = Path(tempfile.mkdtemp(prefix="contract-"))
    made.chmod(0o755)
    (made / "broken").write_text("#!/bin/sh\necho good morning\nexit 3\n")
    (made / "broken").chmod(0o755)
    yield made
    shutil.rmtree(made)


def started_as_nobody(agent: AgentUnderTest, open_place: Path, log: Path) -> subprocess.CompletedProcess[str]:
    ready = {"ready_cmd": "false"} if agent.name == "exec" else {}
    return agent.run("start", command=str(open_place / "broken"), args=None, user="nobody", log_file=str(log), **ready)


@needs_root
@pytest.mark.parametrize("link", ["file", "directory"])
@agents_with_process
def test_a_services_user_has_no_file_of_root_written_or_shown(
    agent: AgentUnderTest, open_place: Path, link: str
) -> None:
    """It may put links where it may write, and decides what its service prints."""
    roots, own = open_place / "roots", open_place / "own"
    roots.mkdir(mode=0o700)
    own.mkdir()
    (roots / "a.log").write_text("the secret\n")
    log = own / "a.log" if link == "file" else own / "log" / "b.log"
    made = log if link == "file" else log.parent
    made.symlink_to(roots / "a.log" if link == "file" else roots)
    for each in (own, made):
        os.chown(each, NOBODY, NOBODY, follow_symlinks=False)
    (roots / "a.log").chmod(0o600)
    done = started_as_nobody(agent, open_place, log)
    assert done.returncode not in (OK, NOT_RUNNING)
    assert "the secret" not in done.stderr
    assert (roots / "a.log").read_text() == "the secret\n"
    assert [path.name for path in roots.iterdir()] == ["a.log"]


@needs_root
@agents_with_process
def test_a_log_that_only_root_may_make_is_made_for_another_user(agent: AgentUnderTest, open_place: Path) -> None:
    (open_place / "logs").mkdir(mode=0o755)
    (open_place / "link").symlink_to(open_place / "logs")
    started_as_nobody(agent, open_place, open_place / "link" / "a.log")
    assert (open_place / "logs" / "a.log").read_text() == "good morning\n"


@needs_root
@agents_with_process
def test_a_log_that_root_has_made_for_another_user_is_appended_to(agent: AgentUnderTest, open_place: Path) -> None:
    """Earlier versions made it where the user may write, for root to read."""
    own = open_place / "own"
    own.mkdir()
    (own / "a.log").write_text("yesterday\n")
    (own / "a.log").chmod(0o640)
    os.chown(own, NOBODY, NOBODY)
    started_as_nobody(agent, open_place, own / "a.log")
    assert (own / "a.log").read_text() == "yesterday\ngood morning\n"


@needs_root
@agents_with_process
@pytest.mark.parametrize("how", ["written", "linked", "waiting"])
def test_a_services_user_has_no_process_of_others_ended(agent: AgentUnderTest, open_place: Path, how: str) -> None:
    """Where it may write it can put a record of any process, whose session the stop would end with root's rights."""
    own, pidfile = open_place / "own", open_place / "own" / "service.pid"
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    other = subprocess.Popen(["sleep", "1034"], start_new_session=True)
    try:
        record = f"{other.pid} {read_stat(other.pid).start_time} web@/run/web.pid/1/2 {boot_id()}\n"
        if how == "waiting":
            os.mkfifo(pidfile)
        else:
            made = pidfile if how == "written" else open_place / "web.pid"
            made.write_text(record.replace("web@/run/web.pid", f"{agent.instance}@{pidfile}"))
        if how == "linked":
            pidfile.symlink_to(made)
        os.chown(pidfile, NOBODY, NOBODY, follow_symlinks=False)
        assert agent.code("monitor", pidfile=str(pidfile)) == NOT_RUNNING
        assert agent.code("stop", pidfile=str(pidfile)) == OK
        assert other.poll() is None
        pidfile.unlink(missing_ok=True)
        pidfile.write_text(record)
        assert agent.code("stop", pidfile=str(pidfile)) == OK
        assert other.poll() is None, "a record of another service"
    finally:
        other.kill()
        other.wait(30)


@agents_with_process
@pytest.mark.parametrize("how", ["unreadable", "another program's"])
def test_a_service_whose_identity_cannot_be_read_is_found_by_its_mark(agent: AgentUnderTest, how: str) -> None:
    assert agent.code("start") == OK
    path, pid = next(agent.state.glob("*.pid")), agent.pid()
    path.unlink()
    if how == "unreadable":
        path.symlink_to(path)
    else:
        path.write_text(f"{pid}\n")
    assert agent.code("monitor") == OK
    if how == "unreadable":
        path.unlink(missing_ok=True)
        path.symlink_to(path)
    assert agent.code("stop") == OK
    assert read_stat(pid) is None or read_stat(pid).is_dead
    path.unlink(missing_ok=True)
    assert agent.code("monitor") == NOT_RUNNING


@agents_with_process
def test_a_process_that_says_it_is_the_service_is_not_taken_for_it(agent: AgentUnderTest) -> None:
    """Any user of the machine begins processes with any environment, again and again."""
    assert agent.code("start") == OK
    path = next(agent.state.glob("*.pid"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "the mark in it tells a family from everybody else"
    assert agent.code("stop") == OK
    agent.environment["HACLUSTERD_SEAL"] = "b0a3@0"
    marks = {**os.environ, "HACLUSTERD_SERVICE": f"{agent.instance}@{path}/1/1", "HACLUSTERD_SEAL": "b0a4@0"}
    with subprocess.Popen(["sleep", "60"], env=marks) as other:
        wait_for(lambda: read_marks(other.pid).get("HACLUSTERD_SEAL") == "b0a4@0")
        assert agent.code("monitor") == NOT_RUNNING
        assert agent.code("start") == OK
        assert agent.pid() != other.pid
        path.unlink()
        assert agent.code("monitor") == OK, "the service itself is found by its mark"
        assert agent.pid() != other.pid
        assert agent.code("stop") == OK
        assert other.poll() is None
        other.kill()


@agents_with_process
def test_an_identity_of_another_process_is_not_believed(agent: AgentUnderTest) -> None:
    assert agent.code("start") == OK
    path = next(agent.state.glob("*.pid"))
    pid, _, mark, boot = path.read_text().split()
    own = read_stat(os.getpid())
    assert agent.code("stop") == OK
    path.write_text(f"{own.pid} {own.start_time + 1} {mark} {boot}\n")
    assert agent.code("monitor") == NOT_RUNNING
    assert agent.code("stop") == OK
    path.write_text(f"{own.pid} {own.start_time} {mark} another-boot\n")
    assert agent.code("monitor") == NOT_RUNNING
    assert pid


def members(agent: AgentUnderTest) -> list[int]:
    return [
        pid
        for pid in list_pids()
        if read_marks(pid).get("OCF_RESOURCE_INSTANCE") == agent.instance and not (read_stat(pid) or DEAD).is_dead
    ]


class DEAD:
    """Stands for a process that ended while we looked."""

    is_dead = True


def wait_dead(pid: int) -> None:
    wait_for(lambda: (read_stat(pid) or DEAD).is_dead)


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "the condition never held"
