"""Services that wipe their environment are known by their control group."""

import os
import uuid
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from haclusterd.adapters.agents.service_groups import ServiceGroups, delegated_group
from haclusterd.adapters.agents.service_watch import scan_group
from haclusterd.adapters.processes.spawner_link import Spawner
from haclusterd.agents.process_table import read_arguments
from haclusterd.model.ids import NodeName, ResourceId
from tests.control_groups import delegated, unified_mount
from tests.unit.adapters.agents.watched_services import R1, Deaths, watched_pids
from tests.unit.adapters.scripted_agents import ScriptedAgents

IN_GROUP = "until grep -q resource.r1 /proc/self/cgroup; do sleep 0.01; done"
HASTY = "#!/bin/sh\n[ $1 = start ] || exit 0\nsetsid env -i sleep 3101 >/dev/null 2>&1 &\nexit 0\n"
FORGETFUL = HASTY.replace("setsid", f"{IN_GROUP}\nsetsid")


@pytest.fixture
def group() -> Iterator[Path]:
    try:
        with delegated(f"haclusterd-test-{uuid.uuid4().hex[:8]}") as made:
            yield made
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")


def own_file(directory: Path, path: str) -> Path:
    file = directory / "cgroup"
    file.write_text(f"3:cpu:/other\n0::{path}\n")
    return file


def test_only_a_delegated_group_is_used(group: Path, tmp_path: Path) -> None:
    assert delegated_group(own=own_file(tmp_path, f"/{group.name}")) == group
    assert delegated_group(own=own_file(tmp_path, "/")) is None
    os.setxattr(group, "user.delegate", b"0")
    assert delegated_group(own=own_file(tmp_path, f"/{group.name}")) is None


@pytest.mark.parametrize("text", ["", "22 1 0:20 / /sys rw - sysfs sysfs rw\n"])
def test_without_a_unified_hierarchy_there_is_none(tmp_path: Path, text: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(text)
    assert delegated_group(mounts, own_file(tmp_path, "/x")) is None
    assert delegated_group(tmp_path / "none", own_file(tmp_path, "/x")) is None


@pytest.mark.parametrize("way", ["spawned", "forked"])
async def test_a_service_that_wipes_its_environment_is_watched(
    clock, tmp_path: Path, group: Path, until, way: str
) -> None:
    """From its first instruction on, where the agent is cloned into the group."""
    with closing(Spawner()) if way == "spawned" else nullcontext() as spawner:
        await wipe_and_watch(ScriptedAgents(clock, tmp_path, service_group=group, spawner=spawner), until)


async def wipe_and_watch(agents: ScriptedAgents, until) -> None:
    deaths = Deaths()
    agents.write("forgetful", HASTY if agents.runner._processes._spawner is not None else FORGETFUL)
    assert (await agents.run("forgetful", "start")).exit_code == 0
    agents.runner.watch(R1, "r1", deaths.report_death)
    try:
        await until(lambda: watched_pids(agents))
    finally:
        for pid in agents.runner._groups.processes(R1):
            os.kill(pid, 9)
    await until(lambda: deaths.count)
    agents.runner._groups.forget_empty()
    await until(lambda: agents.runner._groups.processes(R1) == frozenset())


async def test_what_an_agent_runs_is_no_service(clock, tmp_path: Path, group: Path, until) -> None:
    """Not even what it runs without an environment, in the group of the resource."""
    agents = ScriptedAgents(clock, tmp_path, service_group=group)
    agents.write("slow", f"#!/bin/sh\n[ $1 = start ] || exit 0\n{IN_GROUP}\nenv -i sleep 3102\nexit 0\n")
    action = agents.begin(agents.call("slow", "start"))

    def sleeping() -> list[int]:
        return [pid for pid in agents.runner._groups.processes(R1) if read_arguments(pid) == ["sleep", "3102"]]

    try:
        await until(sleeping)
        pids = agents.runner._groups.processes(R1)
        assert len(pids) == 2
        assert scan_group(pids, "r1", ()) == []
    finally:
        for pid in sleeping():
            os.kill(pid, 9)
    assert (await action).exit_code == 0


def test_without_a_group_nothing_is_made(tmp_path: Path) -> None:
    groups = ServiceGroups(None, NodeName("n1"), tmp_path)
    assert groups.prepare(ResourceId("r1")) is None
    groups.forget_empty()
    assert groups.processes(ResourceId("r1")) == frozenset()
    mount = unified_mount()
    assert mount is None or not list(mount.glob("haclusterd.n1.*"))
