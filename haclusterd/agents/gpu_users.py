"""Which processes have a GPU open, as /proc says, and which of them belong to services of this cluster.

The driver's own list does not show a process that has the device open and no context on it; /proc does not show one
that is ending, whose memory the driver frees a moment later. So both are asked. What only watches (nvidia-smi,
exporters) opens the device too; what computes has /dev/nvidia-uvm besides, by which they differ. Reads only.
"""

from __future__ import annotations

import os
import re

from haclusterd.agents.process_table import INSTANCE_MARK, list_pids, read_marks, read_stat

_DEVICE = re.compile(r"/dev/nvidia(\d+|-uvm)\b")
_MAPPED = re.compile(rb"/dev/nvidia(\d+|-uvm)\b")
_GROUP = re.compile(r"/haclusterd\.[^/\n]+/resource\.([^/\n]+)")
"""As adapters/agents/service_groups.py names them."""
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


def resource_of(pid: int) -> str:
    """Return the resource of this cluster to which a process belongs; empty: nothing says that it does.

    By the mark in its environment or in that of one that began it, else by the control group that the daemon has made.
    """
    at = pid
    for _ in range(ANCESTORS_MAX):
        marked = read_marks(at).get(INSTANCE_MARK, "")
        if marked:
            return marked
        found = read_stat(at)
        if found is None or found.parent <= 1:
            break
        at = found.parent
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as stream:
            match = _GROUP.search(stream.read(4096))
    except OSError:
        return ""
    return match[1] if match is not None else ""
