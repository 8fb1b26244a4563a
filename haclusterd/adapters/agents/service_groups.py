"""A control group for each resource: by it the resource's processes are known, whatever they do to their environment.

Servers that show their state in their title (redis, PostgreSQL, nginx) overwrite their environment, including the marks
by which services are found (safety.md §8). If systemd has delegated this daemon's group to it (`Delegate=yes`), an
agent that may start something runs in a group of the resource from its start on (adapters/processes/running.py).

Invariant: groups are made only below a group that was delegated to this daemon; no controller is enabled, and nothing
is limited, frozen or killed by them. Without delegation there are no groups, and only the marks are used.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from haclusterd.model.ids import NodeName, ResourceId

DELEGATED = ("user.delegate", "trusted.delegate")
"""Extended attributes by which systemd marks delegated groups (systemd.resource-control(5))."""
PREFIX = "resource."


def delegated_group(mounts: Path = Path("/proc/self/mountinfo"), own: Path = Path("/proc/self/cgroup")) -> Path | None:
    """Return this process's own group of the unified hierarchy, if it was delegated; None otherwise."""
    try:
        place = next((line[3:] for line in own.read_text().splitlines() if line.startswith("0::/")), None)
        fields = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return None
    mount = next(((row[3], row[4]) for row in fields if "-" in row and row[row.index("-") + 1] == "cgroup2"), None)
    if place is None or mount is None:
        return None
    root, point = mount
    inside = place.removeprefix(root) if root != "/" else place
    group = Path(point) / inside.lstrip("/")
    return group if _is_delegated(group) else None


def _is_delegated(group: Path) -> bool:
    for name in DELEGATED:
        with suppress(OSError):
            if os.getxattr(group, name).strip() == b"1":
                return True
    return False


class ServiceGroups:
    """The groups of one node's resources."""

    def __init__(self, group: Path | None, node: NodeName, runtime_directory: Path) -> None:
        """`group`: the delegated one; None: there is none. Daemons of several nodes may share it."""
        which = hashlib.sha256(str(runtime_directory).encode()).hexdigest()[:8]
        self._base = group / f"haclusterd.{node}.{which}" if group is not None else None

    def prepare(self, resource: ResourceId) -> Path | None:
        """Make the resource's group, if necessary, and return it; None when there can be none."""
        if self._base is None:
            return None
        group = self._base / f"{PREFIX}{resource}"
        try:
            group.mkdir(parents=True, exist_ok=True)
        except OSError:
            return None
        return group

    def processes(self, resource: ResourceId) -> frozenset[int]:
        """Return the ids of the processes in a resource's group."""
        if self._base is None:
            return frozenset()
        try:
            text = (self._base / f"{PREFIX}{resource}" / "cgroup.procs").read_text()
        except OSError:
            return frozenset()
        return frozenset(int(line) for line in text.split() if line != "0")

    def forget_empty(self) -> None:
        """Remove the groups without processes."""
        if self._base is None or not self._base.is_dir():
            return
        for group in sorted(self._base.glob(f"{PREFIX}*")):
            with suppress(OSError):
                group.rmdir()
        with suppress(OSError):
            self._base.rmdir()
