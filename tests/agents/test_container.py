"""The agent for containers under a stand-in for podman and systemctl: no engine runs where these tests do."""

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from haclusterd.agents.process_table import read_stat
from tests.agents.conftest import AgentUnderTest
from tests.agents.engine_stand_in import SYSTEMCTL
from tests.control_groups import delegated, living_in

OK, ERROR, NOT_INSTALLED, NOT_CONFIGURED, NOT_RUNNING = 0, 1, 5, 6, 7
MakeContainer = Callable[..., AgentUnderTest]


def pid_of(engine: Path) -> int:
    return int(json.loads((engine / "container.json").read_text())["pid"])


def calls(engine: Path) -> str:
    return (engine / "calls").read_text()


def test_a_container_is_run_once_without_a_restart_policy_and_removed(
    make_container: MakeContainer, engine: Path
) -> None:
    agent = make_container(run_opts="-p 80:8080 -e 'A=two words'", command="sleep 1032", gpus="0,1")
    assert agent.code("start") == OK
    assert agent.code("start") == OK
    runs = [line for line in calls(engine).splitlines() if line.startswith("run ")]
    assert len(runs) == 1
    assert f"--label haclusterd.resource={agent.instance} --restart no" in runs[0]
    assert "--device nvidia.com/gpu=0 --device nvidia.com/gpu=1 -p 80:8080 -e A=two words shop:1 sleep 1032" in runs[0]
    assert agent.code("stop") == OK
    assert not (engine / "container.json").exists()


def test_a_container_gets_the_devices_that_its_resource_claims_and_its_place_in_a_gang(
    make_container: MakeContainer, engine: Path
) -> None:
    agent = make_container()
    claimed = {"CRM_meta_devices": "GPU-1 GPU-2", "CRM_meta_gang_rank": "1", "CRM_meta_gang_nodes": "n4 n2"}
    assert agent.run("start", **claimed).returncode == OK
    run = next(line for line in calls(engine).splitlines() if line.startswith("run "))
    assert "--device nvidia.com/gpu=GPU-1 --device nvidia.com/gpu=GPU-2" in run
    assert "--env=RANK=1 --env=NODE_RANK=1 --env=WORLD_SIZE=2 --env=NNODES=2 --env=MASTER_ADDR=n4" in run


def test_a_container_that_ended_is_not_running_and_started_again_is_a_new_one(
    make_container: MakeContainer, engine: Path
) -> None:
    agent = make_container()
    assert agent.code("start") == OK
    first = pid_of(engine)
    os.kill(first, signal.SIGKILL)
    done = agent.run("monitor", CRM_meta_interval="10000")
    assert (done.returncode, "(status=exited exit=137)" in done.stderr) == (NOT_RUNNING, True)
    assert agent.code("start") == OK
    assert pid_of(engine) != first


def test_a_container_of_somebody_else_is_never_touched(make_container: MakeContainer, engine: Path) -> None:
    own = os.getpid()
    (engine / "container.json").write_text(
        json.dumps({"id": "cd" * 32, "name": "shop", "label": "<no value>", "pid": own})
    )
    agent = make_container(container_name="shop")
    assert agent.code("monitor", CRM_meta_interval="0") == NOT_RUNNING
    done = agent.run("start")
    assert (done.returncode, "foreign: a container named shop is not of this resource" in done.stderr) == (ERROR, True)
    assert agent.code("stop") == OK
    assert {line.split()[0] for line in calls(engine).splitlines()} == {"ps", "inspect"}


def test_an_engine_that_is_away_says_nothing_about_the_container(make_container: MakeContainer, engine: Path) -> None:
    agent = make_container()
    assert agent.code("start") == OK
    (engine / "away").touch()
    done = agent.run("monitor")
    assert (done.returncode, "engine: podman: Cannot connect" in done.stderr) == (ERROR, True)


@pytest.mark.parametrize("how", ["away", "hang"])
def test_a_stop_ends_the_container_without_its_engine(make_container: MakeContainer, engine: Path, how: str) -> None:
    agent = make_container()
    assert agent.code("start") == OK
    pid = pid_of(engine)
    (engine / how).touch()
    done = agent.run("stop", timeout_ms=15_000)
    assert (done.returncode, "killed without the engine" in done.stderr) == (OK, True)
    stat = read_stat(pid)
    assert stat is None or stat.is_dead


@contextmanager
def sleeping_in(group: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Let a process be in a group."""
    with living_in(group):
        process = subprocess.Popen(["sleep", "1033"], start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "recorded by an earlier version"])
def test_without_its_engine_only_what_is_in_the_containers_own_group_belongs_to_it(
    make_container: MakeContainer, engine: Path, is_recorded: bool
) -> None:
    """Every user to whom systemd delegates groups can make one with the container's id, and fill it again and again."""
    agent = make_container()
    with ExitStack() as stack:
        try:
            own = stack.enter_context(delegated(f"libpod-{'ab' * 32}.scope"))
            others = stack.enter_context(delegated(f"user-{uuid.uuid4().hex[:8]}")) / f"{'ab' * 32}"
            others.mkdir()
            (own / "container").mkdir()
        except OSError as error:
            pytest.skip(f"no control group can be made: {error}")
        with living_in(own):
            assert agent.code("start") == OK
        if not is_recorded:
            [record] = agent.state.glob("container-*.id")
            record.write_text(record.read_text().splitlines(keepends=True)[0])
        member, stranger = (stack.enter_context(sleeping_in(group)) for group in (own / "container", others))
        (engine / "away").touch()
        done = agent.run("stop", timeout_ms=15_000)
        assert (done.returncode, "killed without the engine" in done.stderr) == (OK, True)
        main = read_stat(pid_of(engine))
        assert main is None or main.is_dead
        assert member.wait(30) == -signal.SIGKILL
        assert stranger.poll() == (None if is_recorded else -signal.SIGKILL)


def test_a_stop_of_what_was_never_started_fails_where_the_engine_cannot_be_asked(
    make_container: MakeContainer, engine: Path
) -> None:
    (engine / "away").touch()
    assert make_container().code("stop") == ERROR


def test_a_missing_image_is_this_nodes_problem_unless_it_may_be_pulled(
    make_container: MakeContainer, engine: Path
) -> None:
    (engine / "image").unlink()
    agent = make_container()
    done = agent.run("start")
    assert (done.returncode, "image-missing: shop:1; pull it on every node" in done.stderr) == (NOT_INSTALLED, True)
    assert agent.code("start", pull="missing") == OK
    assert "pull --quiet shop:1" in calls(engine)


def test_a_container_that_ends_while_starting_is_removed_and_its_log_quoted(
    make_container: MakeContainer, engine: Path
) -> None:
    done = make_container(command="false", ready_cmd="false").run("start")
    assert done.returncode == ERROR
    assert "ended while starting (exit=137); its log ends with: the shop cannot open its till" in done.stderr
    assert not (engine / "container.json").exists()


def test_readiness_is_asked_inside_the_container(make_container: MakeContainer) -> None:
    agent = make_container(ready_cmd="true")
    assert agent.code("start") == OK
    assert agent.code("monitor", level=10) == OK
    done = agent.run("monitor", level=10, ready_cmd="exit 3")
    assert (done.returncode, "not-ready: ready_cmd ended with exit status 3" in done.stderr) == (ERROR, True)


def test_without_an_engine_it_is_not_installed_and_stopped(make_container: MakeContainer, tmp_path: Path) -> None:
    agent = make_container()
    programs = tmp_path / "programs"
    programs.mkdir()
    for each in ("/usr/bin", "/bin"):
        for program in Path(each).iterdir():
            if program.name not in {"podman", "docker"} and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    agent.environment["PATH"] = str(programs)
    done = agent.run("start", engine="podman")
    assert (done.returncode, "program 'podman' is not installed" in done.stderr) == (NOT_INSTALLED, True)
    assert agent.code("stop", engine="podman") == OK


def test_a_quadlet_unit_is_started_watched_and_stopped_by_systemd(
    make_container: MakeContainer, engine: Path, write_script
) -> None:
    program = engine / "systemctl"
    program.write_text(SYSTEMCTL)
    program.chmod(0o755)
    agent = make_container(image="", unit="shop.service")
    done = agent.run("start")
    assert (done.returncode, "no-unit: shop.service is not-found" in done.stderr) == (NOT_INSTALLED, True)
    (engine / "known").touch()
    (engine / "restarts").touch()
    done = agent.run("start")
    assert (done.returncode, "restarts-itself: shop.service has Restart=on-failure" in done.stderr) == (5, True)
    (engine / "restarts").unlink()
    assert agent.code("start") == OK
    assert agent.code("monitor") == OK
    (engine / "unit").write_text("activating")
    assert agent.code("monitor") == ERROR
    (engine / "unit").write_text("failed")
    assert agent.code("monitor") == NOT_RUNNING
    assert agent.code("stop") == OK


@pytest.mark.parametrize(
    "wrong",
    [
        {"image": None}, {"unit": "shop.service"}, {"pull": "always"},
        {"run_opts": "--restart=always"}, {"run_opts": "--rm"}, {"stop_timeout": "soon"}, {"ready_url": "shop"},
    ],
)  # fmt: skip
def test_impossible_values_are_wrong_everywhere(make_container: MakeContainer, wrong: dict[str, str | None]) -> None:
    done = make_container().run("start", **wrong)
    assert done.returncode == NOT_CONFIGURED
    assert next(iter(wrong)) in done.stderr
