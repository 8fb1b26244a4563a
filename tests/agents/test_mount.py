"""Real file systems on loop devices, in a mount namespace of its own; one that does not answer is made with FUSE."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.agents.process_table import read_stat
from tests.agents.conftest import AgentUnderTest
from tests.agents.mount_namespace import MountNamespace
from tests.agents.silent_file_system import SCRIPT

OK, ERROR, NOT_INSTALLED, NOT_CONFIGURED, NOT_RUNNING, DEGRADED = 0, 1, 5, 6, 7, 190
MakeMount = Callable[..., AgentUnderTest]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    """Make a loop device with a new file system."""
    image = tmp_path / "image"
    with open(image, "wb") as stream:
        stream.truncate(16 * 1024 * 1024)
    done = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no loop device")
    subprocess.run(["mkfs.ext4", "-q", done.stdout.strip()], check=True, capture_output=True)
    yield done.stdout.strip()
    subprocess.run(["losetup", "--detach", done.stdout.strip()], check=False)


def test_a_disk_is_mounted_read_written_and_unmounted(make_mount: MakeMount, place: MountNamespace, disk: str) -> None:
    agent = make_mount(disk)
    assert agent.code("start") == OK
    assert place.mounted == [str(place.point)]
    assert agent.code("start") == OK
    assert place.mounted == [str(place.point)]
    assert agent.code("monitor", level=20) == OK
    assert agent.code("stop") == OK
    assert place.mounted == []
    assert agent.code("monitor") == NOT_RUNNING


def test_a_disk_that_is_mounted_already_is_refused_on_all_nodes_and_left_alone(
    make_mount: MakeMount, place: MountNamespace, disk: str
) -> None:
    other = place.directory / "other"
    other.mkdir()
    place.do("mount", disk, other)
    agent = make_mount(disk)
    for action in ("start", "monitor"):
        done = agent.run(action, CRM_meta_interval="0")
        assert done.returncode == NOT_CONFIGURED
        assert f"already-mounted: {disk} is mounted on {other} of this node" in done.stderr
    assert agent.code("stop") == OK
    assert place.mounted == [str(other)]


def test_a_disk_that_another_namespace_has_mounted_is_refused_by_its_name(
    make_mount: MakeMount, place: MountNamespace, disk: str
) -> None:
    other = place.made()
    place.point.mkdir()
    subprocess.run([*other, "mount", disk, place.point], check=True)
    done = make_mount(disk).run("start")
    assert done.returncode == NOT_CONFIGURED
    assert f"device-in-use: {disk} is in use on this node by the mount namespace of sleep[" in done.stderr


def test_a_probe_looks_for_mounts_only_since_a_disk_that_cannot_be_opened_now_is_not_mounted(
    make_mount: MakeMount, place: MountNamespace, disk: str
) -> None:
    agent = make_mount(disk)
    held = os.open(disk, os.O_RDONLY | os.O_EXCL)
    try:
        assert agent.code("monitor", CRM_meta_interval="0") == NOT_RUNNING
        done = agent.run("start")
        assert (done.returncode, "device-in-use: " in done.stderr) == (NOT_CONFIGURED, True)
    finally:
        os.close(held)
    assert agent.code("start") == OK


def test_a_stop_ends_the_users_of_the_mount_those_that_ignore_term_too(
    make_mount: MakeMount, place: MountNamespace, disk: str
) -> None:
    agent = make_mount(disk, term_wait="500ms")
    assert agent.code("start") == OK
    polite = place.user(f"cd {place.point}; echo; exec sleep 1011")
    stubborn = place.user(f"trap '' TERM; exec 9>{place.point}/file; echo; exec sleep 1011")
    assert agent.code("stop") == OK
    assert place.mounted == []
    assert polite.wait(10) is not None
    assert stubborn.wait(10) is not None


def test_a_stop_that_may_end_nobody_fails_and_names_who_uses_the_mount(
    make_mount: MakeMount, place: MountNamespace, disk: str
) -> None:
    agent = make_mount(disk, users="no")
    assert agent.code("start") == OK
    place.user(f"cd {place.point}; echo; exec sleep 1012")
    done = agent.run("stop")
    assert done.returncode == ERROR
    assert "target is busy.; used by sleep[" in done.stderr
    assert agent.code("stop", users="term-kill") == OK


def test_a_stop_reaches_a_container_that_keeps_a_mount_of_its_own(
    make_mount: MakeMount, place: MountNamespace, disk: str
) -> None:
    agent = make_mount(disk, term_wait="300ms")
    assert agent.code("start") == OK
    place.made(*place.within, "unshare", "--pid", "--fork", "--kill-child")
    container = place.holders[-1]
    for _ in range(2):  # What was begun is remembered.
        done = agent.run("stop", users="no")
        assert done.returncode == ERROR
        assert f"still-mounted: {disk} in the mount namespace of sleep[" in done.stderr
    assert agent.code("stop") == OK
    assert container.wait(10) is not None


def test_a_stop_ends_nobody_outside_of_containers_for_a_mount_of_their_own(
    make_mount: MakeMount, place: MountNamespace, disk: str
) -> None:
    agent = make_mount(disk, term_wait="0s")
    assert agent.code("start") == OK
    place.made(*place.within)
    keeper = place.holders[-1]
    done = agent.run("stop")
    assert (done.returncode, f"of sleep[{keeper.pid}]; end them" in done.stderr) == (ERROR, True)
    assert keeper.poll() is None
    keeper.kill()
    keeper.wait(10)
    assert agent.code("stop") == OK


@pytest.mark.parametrize("is_anothers", [False, True])
def test_a_disk_whose_name_is_gone_is_still_mounted_until_it_is_unmounted(
    make_mount: MakeMount, place: MountNamespace, disk: str, is_anothers: bool
) -> None:
    """udev takes the links of a disk away that it cannot read, or gives them to another one; the mount stays."""
    name = Path(f"/dev/haclusterd-{os.getpid()}")
    name.symlink_to(disk)
    try:
        agent = make_mount(str(name))
        assert agent.code("start") == OK
        name.unlink()
        if is_anothers:
            name.symlink_to("/dev/loop-control")
        assert agent.code("monitor") == OK
        assert agent.code("monitor", CRM_meta_interval="10000") == OK
        assert agent.code("stop") == OK
        assert place.mounted == []
        assert agent.code("monitor") == NOT_RUNNING
    finally:
        name.unlink(missing_ok=True)


def test_what_is_mounted_below_goes_with_it(make_mount: MakeMount, place: MountNamespace, disk: str) -> None:
    agent = make_mount(disk)
    assert agent.code("start") == OK
    place.do("mkdir", place.point / "below")
    place.do("mount", "-t", "tmpfs", "none", place.point / "below")
    assert agent.code("stop") == OK
    assert place.mounted == []


def test_a_damaged_file_system_is_repaired_or_refused_by_policy(
    make_mount: MakeMount, place: MountNamespace, disk: str
) -> None:
    place.do("debugfs", "-w", "-R", "ssv state 2", disk)
    agent = make_mount(disk)
    assert agent.code("start") == OK
    assert agent.code("stop") == OK
    assert "clean" in place.do("dumpe2fs", "-h", disk)
    # The root directory is gone: nothing that is safe repairs it.
    place.do("debugfs", "-w", "-R", "clri <2>", disk)
    done = agent.run("start", fsck="force")
    assert done.returncode == ERROR
    assert "ocf-exit-reason:fsck: " in done.stderr
    assert "repair it by hand" in done.stderr
    assert place.mounted == []


def test_a_mount_that_became_read_only_is_a_failure(make_mount: MakeMount, place: MountNamespace, disk: str) -> None:
    agent = make_mount(disk)
    assert agent.code("start") == OK
    place.do("mount", "-o", "remount,ro", place.point)
    done = agent.run("monitor")
    assert (done.returncode, "read-only: the kernel has it read-only" in done.stderr) == (ERROR, True)
    assert agent.code("monitor", options="ro") == OK


def test_changed_options_are_taken_over_by_a_remount(make_mount: MakeMount, place: MountNamespace, disk: str) -> None:
    agent = make_mount(disk)
    assert agent.code("start") == OK
    assert agent.code("reload-agent", options="noexec,noatime") == OK
    line = next(line for line in place.do("cat", "/proc/self/mountinfo").splitlines() if str(place.point) in line)
    assert {"noexec", "noatime"} <= set(line.split()[5].split(","))


def test_a_full_file_system_is_degraded(make_mount: MakeMount, place: MountNamespace) -> None:
    agent = make_mount("tmpfs", fstype="tmpfs", options="size=1m", full_percent="50")
    assert agent.code("start") == OK
    assert agent.code("monitor") == OK
    place.do("dd", "if=/dev/zero", f"of={place.point}/file", "bs=1k", "count=700")
    done = agent.run("monitor")
    assert (done.returncode, "nearly-full: 68 %" in done.stderr) == (DEGRADED, True)
    assert agent.code("monitor", full_percent="0") == OK


def test_a_directory_is_bound(make_mount: MakeMount, place: MountNamespace) -> None:
    source = place.directory / "with space"
    source.mkdir()
    (source / "file").touch()
    agent = make_mount(str(source), options="bind")
    assert agent.code("start") == OK
    assert "file" in place.do("ls", place.point)
    assert agent.code("start") == OK
    assert agent.code("stop") == OK
    assert place.mounted == []


def test_a_directory_that_has_another_mount_is_refused_and_left_alone(
    make_mount: MakeMount, place: MountNamespace, disk: str
) -> None:
    place.point.mkdir()
    place.do("mount", "-t", "tmpfs", "another", place.point)
    agent = make_mount(disk)
    assert agent.code("monitor", CRM_meta_interval="0") == NOT_RUNNING
    done = agent.run("start")
    assert (done.returncode, "occupied: another is mounted on" in done.stderr) == (ERROR, True)
    assert agent.code("stop") == OK
    assert place.mounted == [str(place.point)]


def test_a_missing_disk_is_this_nodes_problem(make_mount: MakeMount) -> None:
    for device in ("/dev/no-such-disk", "UUID=no-such-uuid"):
        done = make_mount(device).run("start")
        assert (done.returncode, "ocf-exit-reason:no-device: /dev/" in done.stderr) == (NOT_INSTALLED, True)


@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK), reason="not installed: /dev/fuse")
def test_a_file_system_that_does_not_answer_is_stuck_and_its_stop_is_bounded(
    make_mount: MakeMount, place: MountNamespace
) -> None:
    place.point.mkdir()
    server = subprocess.Popen(
        [*place.within, sys.executable, "-c", SCRIPT, "server:/export", place.point], stdout=subprocess.PIPE
    )
    place.holders.append(server)
    assert server.stdout is not None
    assert server.stdout.readline() == b"mounted\n"
    agent = make_mount("server:/export", statfs_timeout="500ms")
    done = agent.run("monitor")
    assert (done.returncode, "stuck: no answer within" in done.stderr) == (ERROR, True)
    began = time.monotonic()
    done = agent.run("monitor")
    assert (done.returncode, "stuck: the kernel has not answered process" in done.stderr) == (ERROR, True)
    assert agent.code("stop", timeout_ms=30_000) == OK
    assert time.monotonic() - began < 25
    assert place.mounted == []
    assert read_stat(server.pid) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        {"directory": "/"}, {"directory": "here"}, {"fsck": "maybe"}, {"users": "ask"}, {"term_wait": "soon"},
        {"full_percent": "101"}, {"device": None}, {"directory": None}, {"allow_second_mount": "perhaps"},
    ],
)  # fmt: skip
def test_impossible_values_are_wrong_everywhere(make_mount: MakeMount, wrong: dict[str, str | None]) -> None:
    done = make_mount("tmpfs", fstype="tmpfs").run("start", **wrong)
    assert done.returncode == NOT_CONFIGURED
    assert next(iter(wrong)) in done.stderr
