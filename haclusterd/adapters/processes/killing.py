"""Kills what was started, and what that has started and waits for.

A process group is not enough: `su -c`, by which many agents become their service's user, begins a session of its own,
and what it runs continues when its caller is killed. A start that was killed so would start the service later, when it
was stopped here and has started on another node.

Invariants: a process is killed by a descriptor of it, or by a group whose leader is not reaped, never by a number that
may be another's. What has left its parent (a daemon that forked twice) is no descendant any more, and is left alone.
Nothing is killed before all descendants are known: those of a dead process cannot be found. While descriptors or memory
are wanting, it is stopped, and counts as alive.
"""

import os
import resource
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from haclusterd.agents.process_table import list_pids, look_at, look_at_threads, read_certainly

DESCENDANTS_MAX = 1000
"""Of one killed process: a program that forks without end keeps nobody from continuing."""
STOPS_WITHIN_S = 0.01
"""How long is waited for all that got SIGSTOP to have stopped: a processor each, and it takes microseconds."""
LOOK_S = 0.0002
DESCRIPTORS_RESERVED = 8
"""For killing, when all others are in use: two at a time are needed."""

_reserve_in_use = threading.Lock()
_Descendant = tuple[int, int]
"""Process id and start time."""


class Killed:
    """The descendants of a process that got SIGKILL with it."""

    __slots__ = ("_processes",)

    def __init__(self, processes: list[_Descendant]) -> None:
        self._processes = processes

    def have_ended(self) -> bool:
        """Return whether none of them is at work: a system call in which one sleeps may still have its effect."""
        try:
            return not any(_is_at_work(pid, start_time) for pid, start_time in self._processes)
        except OSError:
            return False


def reserve_descriptors() -> None:
    """Keep some descriptors from everything but killing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and soft > hard - DESCRIPTORS_RESERVED:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard - DESCRIPTORS_RESERVED, hard))


def kill_all(pidfd: int, pid: int) -> Killed | None:
    """Send SIGKILL to a child not yet reaped, to its descendants, and to its whole group if it leads one.

    None: they cannot be found out now. They are stopped as far as they are known, and this is to be called again.
    """
    if not _signal(pidfd, signal.SIGSTOP):
        return Killed([])  # It is reaped: its number may be another's.
    try:
        with _reserve():
            below = _stopped_below(pid)
            for child, start_time in reversed(below):  # The children of a dead process have another parent.
                _signal_to(child, start_time, signal.SIGKILL)
    except OSError:
        return None
    is_leader = False
    with suppress(ProcessLookupError, PermissionError):
        is_leader = os.getpgid(pid) == pid
    _signal(pidfd, signal.SIGKILL)
    if is_leader:
        kill_group(pid)
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
    try:
        stats = map(look_at, list_pids())
        return all(stat is None or stat.group != group or stat.is_dead for stat in stats)
    except OSError:
        return False


@contextmanager
def _reserve() -> Iterator[None]:
    """Let the reserved descriptors be used."""
    with _reserve_in_use:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _stopped_below(pid: int) -> list[_Descendant]:
    """Stop all descendants of a process that got SIGSTOP; return them, each after its parent. Raises OSError.

    Each has stopped before its children are listed: the kernel completes a fork that had begun when the signal came, so
    a child may appear until then. Children of a process that is not dead keep their parent. A kernel without
    CONFIG_PROC_CHILDREN lists none.
    """
    found: list[_Descendant] = []
    until = time.monotonic() + STOPS_WITHIN_S
    parents = [pid]
    while parents and len(found) < DESCENDANTS_MAX:
        _wait_for_stop(parents, until)
        children = [(child, parent) for parent in parents for child in _children_of(parent)]
        below = [(child, start) for child, parent in children if (start := _stopped(child, parent)) is not None]
        found += below
        parents = [child for child, _ in below]
    return found


def _wait_for_stop(pids: Iterable[int], until: float) -> None:
    """Wait until none of these runs on. Raises OSError when one does at that time."""
    for pid in pids:
        while not _has_stopped(pid):
            if time.monotonic() < until:
                time.sleep(LOOK_S)  # The main loop stands still meanwhile, so the limit is short.
            elif not _waits_for_child(pid):
                raise BlockingIOError(f"process {pid} has not stopped yet")
            else:
                break


def _has_stopped(pid: int) -> bool:
    return all(thread.is_dead or thread.state in "Tt" for thread in look_at_threads(pid))


def _waits_for_child(pid: int) -> bool:
    """Tell whether it may be in `vfork`, which ends when its child, which is stopped, executes something or ends."""
    states = {thread.state for thread in look_at_threads(pid)}
    return "D" in states and states <= set("DTtZXx") and bool(_children_of(pid))


def _children_of(pid: int) -> list[int]:
    """Return the children of all threads of a process. Raises OSError."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []
    lists = (read_certainly(f"/proc/{pid}/task/{thread}/children") for thread in threads)
    return [int(child) for each in lists for child in each.split()]


def _stopped(pid: int, parent: int) -> int | None:
    """Stop a process, if it is still the child of its parent; return its start time. Raises OSError."""
    stat = look_at(pid)
    if stat is None or stat.parent != parent or not _signal_to(pid, stat.start_time, signal.SIGSTOP):
        return None
    return stat.start_time


def _signal_to(pid: int, start_time: int, number: int) -> bool:
    """Send a signal to a process; return whether it is there. Raises OSError."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        stat = look_at(pid)
        return stat is not None and stat.start_time == start_time and _signal(descriptor, number)
    finally:
        os.close(descriptor)


def _is_at_work(pid: int, start_time: int) -> bool:
    stat = look_at(pid)
    return stat is not None and stat.start_time == start_time and not stat.is_dead


def _signal(descriptor: int, number: int) -> bool:
    """Send a signal; return whether the process is there, and has its number until it is reaped."""
    try:
        signal.pidfd_send_signal(descriptor, number)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return True
