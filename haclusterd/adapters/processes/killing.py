"""Kills what was started, and what that has started and waits for.

A process group is not enough: `su -c`, by which many agents become their service's user, begins a session of its own,
and what it runs continues when its caller is killed. A start that was killed so would start the service later, when it
was stopped here and has started on another node.

Invariants: a process is killed by a descriptor of it, or by a group whose leader is not reaped, never by a number that
may be another's. What has left its parent (a daemon that forked twice) is no descendant any more, and is left alone.
"""

import os
import select
import signal
from contextlib import suppress

from haclusterd.agents.process_table import list_pids, read_file, read_stat

DESCENDANTS_MAX = 1000
"""Of one killed process: a program that forks without end keeps nobody from continuing."""


class Killed:
    """The descendants of a process that got SIGKILL with it; they hold a descriptor each until it is closed."""

    __slots__ = ("_descriptors",)

    def __init__(self, descriptors: list[int]) -> None:
        self._descriptors = descriptors

    def have_ended(self) -> bool:
        """Return whether none of them is at work: a system call in which one sleeps may still have its effect."""
        waiting = select.poll()
        for each in self._descriptors:
            waiting.register(each, select.POLLIN)
        return len(waiting.poll(0)) == len(self._descriptors)

    def close(self) -> None:
        """Forget them; to be called once."""
        for each in self._descriptors:
            os.close(each)


def kill_all(pidfd: int, pid: int) -> Killed:
    """Send SIGKILL to a child not yet reaped, to its descendants, and to its whole group if it leads one."""
    if not _signal(pidfd, signal.SIGSTOP):
        return Killed([])  # It is reaped: its number may be another's.
    below = _stopped_below(pid)
    is_leader = False
    with suppress(ProcessLookupError, PermissionError):
        is_leader = os.getpgid(pid) == pid
    _signal(pidfd, signal.SIGKILL)
    if is_leader:
        kill_group(pid)
    for each in below:
        _signal(each, signal.SIGKILL)
    return Killed(below)


def kill_group(group: int) -> None:
    """Send SIGKILL to a process group whose leader is not yet reaped."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def has_ended(group: int) -> bool:
    """Return whether no process runs in a group whose leader was reaped; unreaped ones may be left."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # Of another user: the number is no longer this group's.
        return True
    stats = map(read_stat, list_pids())
    return all(stat is None or stat.group != group or stat.is_dead for stat in stats)


def _stopped_below(pid: int) -> list[int]:
    """Stop all descendants of a stopped process; return their descriptors.

    Each is stopped before its children are listed: the kernel completes no fork while a signal is pending, and children
    of a process that is not dead keep their parent. A kernel without CONFIG_PROC_CHILDREN lists none.
    """
    found: list[int] = []
    stopped = [pid]
    while stopped and len(found) < DESCENDANTS_MAX:
        parent = stopped.pop()
        for child in _children_of(parent):
            descriptor = _descriptor_of(child, parent)
            if descriptor is None:
                continue
            found.append(descriptor)
            if _signal(descriptor, signal.SIGSTOP):
                stopped.append(child)
    return found


def _children_of(pid: int) -> list[int]:
    """Return the children of all threads of a process."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in read_file(f"/proc/{pid}/task/{thread}/children").split()]


def _descriptor_of(pid: int, parent: int) -> int | None:
    """Return a descriptor of a process, if it is still the child of its parent."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # It has ended, or no descriptor is left; then the group's signal alone reaches it.
        return None
    stat = read_stat(pid)
    if stat is not None and stat.parent == parent:
        return descriptor
    os.close(descriptor)
    return None


def _signal(descriptor: int, number: int) -> bool:
    """Send a signal; return whether the process is there, and has its number until it is reaped."""
    try:
        signal.pidfd_send_signal(descriptor, number)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return True
