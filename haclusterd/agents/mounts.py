"""What is mounted where, and by which processes it is in use, as /proc says (proc(5), mountinfo).

It never touches a mounted file system, not even to look at its name: one whose disk or server has gone would not
answer. It only reads; unmounting and killing is the agent's business.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from haclusterd.agents.process_table import list_pids, read_stat

UNREACHABLE = (OSError, ValueError)


class Mount:
    """One line of mountinfo; `device` is MAJOR:MINOR, `root` the directory of the file system that is mounted."""

    __slots__ = ("device", "fstype", "identity", "options", "point", "root", "source")

    def __init__(self, line: str) -> None:
        left, _, right = line.partition(" - ")
        words, rest = left.split(), right.split()
        self.identity = int(words[0])
        self.device = words[2]
        self.root, self.point = _plain(words[3]), _plain(words[4])
        self.fstype, self.source = rest[0], _plain(rest[1])
        self.options = {*words[5].split(","), *(rest[2] if len(rest) > 2 else "").split(",")}

    @property
    def backing_file(self) -> str:
        """The file behind a loop device; empty for all else."""
        try:
            with open(f"/sys/dev/block/{self.device}/loop/backing_file", encoding="utf-8") as stream:
                return stream.read().rstrip("\n")
        except OSError:
            return ""


def mounts(pid: int | str = "self") -> list[Mount]:
    """Return the mounts that a process sees, the oldest first; none of a process that is gone."""
    try:
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
            return [Mount(line) for line in stream]
    except OSError:
        return []


def is_within(path: str, directory: str) -> bool:
    """Tell whether a path is a directory, or below it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def users(found: Iterable[Mount]) -> list[int]:
    """Return the processes of this mount namespace that have files, directories or mappings of these mounts in use.

    This process and those that it descends from are never among them.
    """
    identities = {each.identity for each in found}
    points = [each.point for each in found]
    own, spared = _namespace("self", "mnt"), _line_of_descent()
    return [
        pid
        for pid in list_pids()
        if own  # Where not even the own namespace can be read, all would seem to live in it.
        and pid not in spared
        and _namespace(pid, "mnt") == own
        and (
            any(is_within(path, point) for path in _paths(pid) for point in points)
            or any(identity in identities for identity in _open_mounts(pid))
        )
    ]


def in_other_namespaces(device: str) -> list[int]:
    """Return the processes whose mount namespace is not this one, and has a device mounted."""
    has_it = {_namespace("self", "mnt"): False}
    found = []
    for pid in list_pids():
        namespace = _namespace(pid, "mnt")
        if namespace and namespace not in has_it:
            has_it[namespace] = any(each.device == device for each in mounts(pid))
        if namespace and has_it[namespace]:
            found.append(pid)
    return found


def is_in_container(pid: int) -> bool:
    """Tell whether a process lives in a PID namespace below this one: what is visible here is either here or below."""
    theirs, own = _namespace(pid, "pid"), _namespace("self", "pid")
    return bool(theirs and own) and theirs != own and pid not in _line_of_descent()


def name_of(pid: int) -> str:
    """Return a process as it is shown: name and id."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as stream:
            return f"{stream.read().strip()}[{pid}]"
    except OSError:
        return f"[{pid}]"


def _namespace(pid: int | str, kind: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return ""


def _line_of_descent() -> set[int]:
    """Return this process, all that it descends from, and the first one."""
    found = {1, os.getpid()}
    pid = os.getpid()
    while (stat := read_stat(pid)) is not None and stat.parent not in {0, *found}:
        pid = stat.parent
        found.add(pid)
    return found


def _paths(pid: int) -> Iterator[str]:
    for name in ("cwd", "root", "exe"):
        try:
            yield os.readlink(f"/proc/{pid}/{name}")
        except OSError:
            continue
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as stream:
            for line in stream:
                words = line.rstrip("\n").split(None, 5)
                if len(words) == 6:
                    yield words[5].removesuffix(" (deleted)")
    except OSError:
        return


def _open_mounts(pid: int) -> Iterator[int]:
    """Yield the mounts of a process's open files."""
    try:
        names = os.listdir(f"/proc/{pid}/fdinfo")
    except OSError:
        return
    for name in names:
        try:
            with open(f"/proc/{pid}/fdinfo/{name}", encoding="utf-8", errors="replace") as stream:
                yield from (int(line.split()[1]) for line in stream if line.startswith("mnt_id:"))
        except UNREACHABLE:
            continue


def _plain(text: str) -> str:
    """Return a name with its octal escapes resolved."""
    pieces = text.split("\\")
    return pieces[0] + "".join(chr(int(piece[:3], 8)) + piece[3:] for piece in pieces[1:])
