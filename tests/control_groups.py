"""Control groups of the kernel's unified hierarchy for tests, where this process may make some."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WAIT_S_MAX = 5.0


def unified_mount() -> Path | None:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] == "cgroup2":
            return Path(fields[4])
    return None


@contextmanager
def delegated(name: str) -> Iterator[Path]:
    """Make a group that looks as if systemd had delegated it; raise OSError where that cannot be done."""
    mount = unified_mount()
    if mount is None:
        raise OSError("no unified hierarchy of control groups")
    group = mount / name
    group.mkdir()
    try:
        os.setxattr(group, "user.delegate", b"1")
        yield group
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while group.exists() and time.monotonic() < deadline:
        for each in sorted((group, *group.rglob("*")), key=lambda path: len(path.parts), reverse=True):
            if each.is_dir():
                with suppress(OSError):
                    each.rmdir()


@contextmanager
def living_in(group: Path) -> Iterator[None]:
    """Let this process, and what it starts meanwhile, be in a group."""
    home = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::/"))
    mount = unified_mount()
    assert mount is not None
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (mount / home.lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))
