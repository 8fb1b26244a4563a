"""sys-health: what the kernel tells becomes colours, late enough to be true; a sick node never fails its watcher."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.answering_daemon import AnsweringDaemon
from tests.agents.conftest import AgentUnderTest
from tests.agents.kernel_files import KernelFiles

NOT_RUNNING, NOT_INSTALLED, NOT_CONFIGURED, DEGRADED = 7, 5, 6, 190


@pytest.fixture
def kernel(tmp_path: Path) -> KernelFiles:
    return KernelFiles(tmp_path / "proc")


@pytest.fixture
def watcher(make_watcher: Callable[..., AgentUnderTest], kernel: KernelFiles) -> AgentUnderTest:
    return make_watcher("sys-health", procfs=str(kernel.directory), disk_yellow="never", disk_red="never")


def colours(daemon: AnsweringDaemon) -> dict[str, str]:
    return {name.removeprefix("#health-"): value for name, value in daemon.attributes().items()}


def test_every_check_is_published_and_taken_away_at_the_end(watcher: AgentUnderTest, daemon: AnsweringDaemon) -> None:
    assert watcher.code("start") == 0
    assert colours(daemon) == dict.fromkeys(("memory", "disk", "load", "pressure"), "green")
    assert watcher.code("monitor") == 0
    assert watcher.code("stop") == 0
    assert colours(daemon) == {}
    assert watcher.code("monitor") == NOT_RUNNING


@pytest.mark.parametrize(
    ("check", "yellow", "red"),
    [
        ("memory", lambda kernel: kernel.memory(91), lambda kernel: kernel.memory(98)),
        ("pressure", lambda kernel: kernel.pressure(20), lambda kernel: kernel.pressure(61)),
        ("load", lambda kernel: kernel.load(210), None),
    ],
)
def test_trouble_is_reported_when_it_lasts_and_when_it_is_over(
    watcher: AgentUnderTest,
    daemon: AnsweringDaemon,
    kernel: KernelFiles,
    check: str,
    yellow: Callable[[KernelFiles], None],
    red: Callable[[KernelFiles], None] | None,
) -> None:
    assert watcher.code("start") == 0
    seen = []
    for trouble in (yellow, red or yellow, KernelFiles.calm):
        trouble(kernel)
        for _ in range(3):
            assert watcher.code("monitor") == 0
            seen.append(colours(daemon)[check])
    worst = "red" if red else "yellow"
    assert seen == ["green", "green", "yellow", "yellow", "yellow", worst, worst, worst, "green"]


def test_busy_processors_are_measured_between_samples(
    watcher: AgentUnderTest, daemon: AnsweringDaemon, kernel: KernelFiles
) -> None:
    watcher.parameters.update(raise_after="1", clear_after="1", cpu_red="99")
    assert watcher.code("start") == 0
    assert "cpu" not in colours(daemon)
    seen = []
    for busy in (95, 100, 87, 50):
        kernel.run(busy)
        assert watcher.code("monitor") == 0
        seen.append(colours(daemon)["cpu"])
    assert seen == ["yellow", "red", "yellow", "green"], "87 is within the margin below 90"


def test_a_node_that_is_sick_at_the_start_is_reported_at_once(
    watcher: AgentUnderTest, daemon: AnsweringDaemon, kernel: KernelFiles
) -> None:
    kernel.memory(99)
    assert watcher.code("start") == 0
    assert colours(daemon)["memory"] == "red"


def test_a_full_disk_and_one_that_is_not_there(
    watcher: AgentUnderTest, daemon: AnsweringDaemon, tmp_path: Path
) -> None:
    done = watcher.run("start", disk_yellow="0", disks=f"{tmp_path} /no/such/place")
    assert (done.returncode, colours(daemon)["disk"]) == (0, "yellow")
    assert "/no/such/place No such file or directory" in done.stderr


def test_only_what_is_asked_for_is_measured(watcher: AgentUnderTest, daemon: AnsweringDaemon) -> None:
    watcher.parameters["checks"] = "memory,load"
    assert watcher.code("start") == 0
    assert sorted(colours(daemon)) == ["load", "memory"]
    assert watcher.code("monitor", checks="load") == 0
    assert sorted(colours(daemon)) == ["load"]


def test_a_measurement_that_hangs_is_red_and_hangs_nothing(
    watcher: AgentUnderTest, daemon: AnsweringDaemon, kernel: KernelFiles
) -> None:
    watcher.parameters.update(checks="load memory", raise_after="1")
    assert watcher.code("start") == 0
    watcher.parameters["step_timeout"] = "500ms"
    os.unlink(kernel.directory / "loadavg")
    os.mkfifo(kernel.directory / "loadavg")
    done = watcher.run("monitor")
    assert done.returncode == 0
    assert "load does not answer" in done.stderr
    assert colours(daemon) == {"load": "red", "memory": "green"}
    kernel.memory(98)
    assert watcher.code("monitor") == 0
    assert colours(daemon) == {"load": "red", "memory": "red"}, "what hangs hides nothing behind it"


def test_without_a_daemon_it_is_active_and_degraded(watcher: AgentUnderTest, daemon: AnsweringDaemon) -> None:
    watcher.environment["HACLUSTERD_SOCKET"] = "/no/such/socket"
    assert watcher.code("start") == 0
    done = watcher.run("monitor")
    assert (done.returncode, "cannot publish" in done.stderr) == (DEGRADED, True)
    assert watcher.code("stop") == 0
    assert watcher.code("monitor") == NOT_RUNNING


def test_under_another_cluster_manager_it_publishes_with_that_ones_tool(
    watcher: AgentUnderTest, write_script: Callable[[str, str], Path], tmp_path: Path
) -> None:
    tool = write_script("attrd_updater", f'#!/bin/sh\necho "$*" >>{tmp_path}/calls\n')
    watcher.environment.update(HACLUSTERD_SOCKET="", PATH=f"{tool.parent}:/usr/bin:/bin")
    watcher.parameters.update(checks="memory", dampen="5s")
    assert watcher.code("start") == 0
    assert watcher.code("stop") == 0
    assert (tmp_path / "calls").read_text() == "-n #health-memory -U green -d 5s\n-n #health-memory -D -d 10s\n"


def test_a_probe_measures_and_publishes_nothing(watcher: AgentUnderTest, daemon: AnsweringDaemon) -> None:
    assert watcher.code("start") == 0
    asked = daemon.writes()
    assert watcher.code("monitor", CRM_meta_interval="0") == 0
    assert daemon.writes() == asked


def test_a_torn_state_file_is_made_again(watcher: AgentUnderTest, daemon: AnsweringDaemon) -> None:
    assert watcher.code("start") == 0
    next(watcher.state.glob("*.state")).write_text('{"tracks": {"mem')
    assert watcher.code("monitor") == 0
    assert watcher.code("stop") == 0
    assert colours(daemon) == {}


def test_without_psutil_it_is_not_installed_here(watcher: AgentUnderTest) -> None:
    plain = subprocess.run(["/usr/bin/python3", "-c", "import psutil"], capture_output=True, check=False)
    if plain.returncode == 0 or sys.prefix == sys.base_prefix:
        pytest.skip("the system's Python has psutil")
    watcher.environment["HACLUSTERD_PYTHON"] = "/usr/bin/python3"
    done = watcher.run("start")
    assert done.returncode == NOT_INSTALLED
    assert "psutil" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        {"checks": "cpu,moon"}, {"checks": ","}, {"memory_red": "much"}, {"memory_yellow": "99"}, {"margin": "wide"},
        {"raise_after": "0"}, {"clear_after": "x"}, {"dampen": "soon"}, {"step_timeout": "1 parsec"},
    ],
)  # fmt: skip
def test_an_impossible_parameter_is_refused(watcher: AgentUnderTest, wrong: dict[str, str]) -> None:
    for action in ("validate-all", "start"):
        done = watcher.run(action, **wrong)
        assert done.returncode == NOT_CONFIGURED
        assert next(iter(wrong)).split("_")[0] in done.stderr
    assert watcher.code("reload-agent") == 0


def test_stop_takes_away_what_an_interrupted_sample_may_have_published(
    watcher: AgentUnderTest, daemon: AnsweringDaemon
) -> None:
    assert watcher.code("start", checks="memory load") == 0
    assert watcher.code("stop", checks="memory") == 0
    assert colours(daemon) == {}
