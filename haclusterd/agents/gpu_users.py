"""Which processes have a GPU open, as /proc says, and which of them belong to services of this cluster.

The driver's own list does not show a process that has the device open and no context on it; /proc does not show one
that is ending, whose memory the driver frees a moment later. So both are asked. What only watches (nvidia-smi,
exporters) opens the device too; what computes has /dev/nvidia-uvm besides, by which they differ. Reads only.
"""

from __future__ import annotations

import os
import re

from haclusterd.agents.process_table import INSTANCE_MARK, is_genuine, list_pids, read_marks, read_stat, seal_of

_DEVICE = re.compile(r"/dev/nvidia(\d+|-uvm)\b")
_MAPPED = re.compile(rb"/dev/nvidia(\d+|-uvm)\b")
COMPUTES = "-uvm"
ANCESTORS_MAX = 64


def open_devices(pid: int) -> set[str]:
    """Return what a process has open or mapped of /dev/nvidia*: minor numbers as text, and `-uvm`."""
    found: set[str] = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                match = _DEVICE.match(os.readlink(f"/proc/{pid}/fd/{name}"))
            except OSError:
                continue
            if match is not None:
                found.add(match[1])
        with open(f"/proc/{pid}/maps", "rb") as stream:
            found |= {match.decode() for match in _MAPPED.findall(stream.read())}
    except OSError:
        pass  # It has ended, or is not ours to read: the driver's list is asked besides.
    return found


def computing(minors: set[int], ignored: set[int]) -> dict[int, set[int]]:
    """Return, by minor number, the processes other than those `ignored` that compute on a device or could."""
    users: dict[int, set[int]] = {}
    for pid in list_pids():
        if pid in ignored:
            continue
        opened = open_devices(pid)
        if COMPUTES in opened:
            for minor in minors & {int(each) for each in opened if each.isdigit()}:
                users.setdefault(minor, set()).add(pid)
    return users


def tree_of(pid: int) -> set[int]:
    """Return a process with all its descendants."""
    parents = {each: stat.parent for each in list_pids() if (stat := read_stat(each)) is not None}
    tree = [pid]
    for each in tree:
        tree += [child for child, parent in parents.items() if parent == each]
    return set(tree)


def name_of(pid: int) -> str:
    """Return `PID COMMAND`; a process that is gone already has no command."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as stream:
            command = stream.read(64).decode("utf-8", "replace").strip()
    except OSError:
        command = ""
    stat = read_stat(pid)
    state = " (ending)" if stat is not None and stat.is_dead else " (stuck)" if stat and stat.state == "D" else ""
    return f"{pid} {command or '?'}{state}"


class Ours:
    """What shows that a process is of a resource of this node: the daemon's seals, and the control groups it has made.

    Any user can begin a process with any mark, and make a control group of any name where systemd lets it make some.
    """

    def __init__(self) -> None:
        self._key, self._since = b"", 0
        own = next((line[3:] for line in _groups_of("self") if line.startswith("0::/")), "/")
        self._group = re.compile(rf"0::{re.escape(own.rstrip('/'))}/haclusterd\.[^/]+/resource\.([^/]+)(?:/|\Z)")
        """As adapters/agents/service_groups.py names them, below the daemon's own, which is that of its children."""

    def know(self, key: str, since: int) -> None:
        """Believe from now on what has a seal of this key (hexadecimal), and what began before `since` (ticks)."""
        self._key, self._since = bytes.fromhex(key), since

    def resource_of(self, pid: int) -> str:
        """Return the resource of this cluster to which a process belongs; empty: nothing shows that it does.

        By the mark in its environment or in that of one that began it, else by the control group.
        """
        at = pid
        for _ in range(ANCESTORS_MAX):
            marks, found = read_marks(at), read_stat(at)
            instance = marks.get(INSTANCE_MARK, "")
            seal = seal_of(instance, self._key, self._since) if self._key else ""
            if instance and found is not None and is_genuine(marks, found.start_time, seal):
                return instance
            if found is None or found.parent <= 1:
                break
            at = found.parent
        return next((match[1] for line in _groups_of(str(pid)) if (match := self._group.match(line))), "")


def _groups_of(pid: str) -> list[str]:
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as stream:
            return stream.read(4096).splitlines()
    except OSError:
        return []
