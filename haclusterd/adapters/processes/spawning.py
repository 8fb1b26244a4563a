"""One program started by posix_spawn(3).

A fork copies the page tables of the daemon, with its address space locked meanwhile, and makes every thread pay for
each page that it touches next: several milliseconds of all threads for each start of an agent, and much longer when
memory is short. CPython's `subprocess` avoids that by vfork, but holds the interpreter lock until the exec is done, and
so does `os.posix_spawn`: a stuck exec would stop the daemon. Called through ctypes, which releases the lock, it blocks
only the calling thread.

Invariants: the child has standard input, output and error, the root as its directory, a process group of its own if
asked for, no other descriptor, no blocked and no ignored signal. `spawn` never returns before the exec is done or has
failed: call it on a thread that may wait.
"""

import ctypes
import fcntl
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from haclusterd.agents.process_table import read_file

SET_GROUP, DEFAULT_SIGNALS, SET_MASK = 0x02, 0x04, 0x08
"""POSIX_SPAWN_SETPGROUP, _SETSIGDEF and _SETSIGMASK of <spawn.h>, on Linux with any C library."""
FIRST_OTHER_DESCRIPTOR = 3
STRUCTURE_BYTES = 1024
"""Size for posix_spawnattr_t, posix_spawn_file_actions_t or sigset_t: more than in any C library."""

_c = ctypes.CDLL(None)
_c.posix_spawnattr_setflags.argtypes = [ctypes.c_void_p, ctypes.c_short]
_c.posix_spawnattr_setpgroup.argtypes = [ctypes.c_void_p, ctypes.c_int]


def spawn(  # One argument for each thing that a child inherits.
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: int | None,
    stdout: int,
    stderr: int,
    leads_group: bool = True,
) -> int:
    """Start `arguments[0]`, a path; return the process id of a child that has done its exec.

    `stdin` None: /dev/null. Raises OSError with the error of execve(2) or the fork, and ValueError for a NUL, or an
    invalid name in the environment. The caller must reap the child.
    """
    path = os.fsencode(arguments[0])
    vector = _vector(encoded(arguments))
    variables = _vector(encoded(assignments(environment)))
    with ExitStack() as cleanup:
        actions = _file_actions(cleanup, stdin, stdout, stderr)
        attributes = _attributes(cleanup, leads_group=leads_group)
        pid = ctypes.c_int()
        _check(_c.posix_spawn(ctypes.byref(pid), path, actions, attributes, vector, variables), arguments[0])
    return pid.value


def children_of(thread_id: int) -> frozenset[int]:
    """Return the children that a thread of this process has started and that are not reaped yet."""
    # Empty: or the thread is gone, or the kernel was built without CONFIG_PROC_CHILDREN.
    return frozenset(map(int, read_file(f"/proc/self/task/{thread_id}/children").split()))


def started_by(thread_id: int, earlier: frozenset[int]) -> int | None:
    """Return the child of a thread that is not in `earlier`, if there is exactly one.

    While a thread is inside `spawn`, that is the one whose exec is not done.
    """
    children = children_of(thread_id) - earlier
    return next(iter(children)) if len(children) == 1 else None


def assignments(environment: Mapping[str, str]) -> list[str]:
    """Return an environment as execve(2) takes it. Raises ValueError for a name that none can carry."""
    if any(not name or "=" in name for name in environment):
        raise ValueError("illegal environment variable name")
    return [f"{name}={value}" for name, value in environment.items()]


def encoded(words: Sequence[str]) -> list[bytes]:
    """Return words as the kernel takes them, all encoded in one go. Raises ValueError for a NUL."""
    found = os.fsencode("\0".join(words)).split(b"\0") if words else []
    if len(found) != len(words):
        raise ValueError("embedded null byte")
    return found


def _vector(strings: Sequence[bytes]) -> "ctypes.Array[ctypes.c_char_p]":
    return (ctypes.c_char_p * (len(strings) + 1))(*strings, None)


def _file_actions(
    cleanup: ExitStack, stdin: int | None, stdout: int, stderr: int
) -> "ctypes.Array[ctypes.c_char]":
    actions = ctypes.create_string_buffer(STRUCTURE_BYTES)
    _check(_c.posix_spawn_file_actions_init(actions))
    cleanup.callback(_c.posix_spawn_file_actions_destroy, actions)
    if stdin is None:
        _check(_c.posix_spawn_file_actions_addopen(actions, 0, os.fsencode(os.devnull), os.O_RDONLY, 0))
    for descriptor, standard in ((stdin, 0), (stdout, 1), (stderr, 2)):
        if descriptor is not None:
            _check(_c.posix_spawn_file_actions_adddup2(actions, _aside(cleanup, descriptor), standard))
    _check(_c.posix_spawn_file_actions_addchdir_np(actions, b"/"))
    _close_others(actions)
    return actions


def _aside(cleanup: ExitStack, descriptor: int) -> int:
    """Return a descriptor that does not collide with the three standard ones."""
    if descriptor >= FIRST_OTHER_DESCRIPTOR:
        return descriptor
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_OTHER_DESCRIPTOR)
    cleanup.callback(os.close, copy)
    return copy


def _close_others(actions: "ctypes.Array[ctypes.c_char]") -> None:
    if hasattr(_c, "posix_spawn_file_actions_addclosefrom_np"):
        _check(_c.posix_spawn_file_actions_addclosefrom_np(actions, FIRST_OTHER_DESCRIPTOR))
        return
    # Without it (musl), descriptors that this process did not open itself must not be inheritable; Python's are not.
    for name in os.listdir("/proc/self/fd"):
        if int(name) >= FIRST_OTHER_DESCRIPTOR and _is_inheritable(int(name)):
            fcntl.fcntl(int(name), fcntl.F_SETFD, fcntl.FD_CLOEXEC)


def _is_inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:  # Closed since: the listing's own, or another thread's.
        return False


def _attributes(cleanup: ExitStack, *, leads_group: bool) -> "ctypes.Array[ctypes.c_char]":
    attributes = ctypes.create_string_buffer(STRUCTURE_BYTES)
    _check(_c.posix_spawnattr_init(attributes))
    cleanup.callback(_c.posix_spawnattr_destroy, attributes)
    none, every = ctypes.create_string_buffer(STRUCTURE_BYTES), ctypes.create_string_buffer(STRUCTURE_BYTES)
    _c.sigemptyset(none)
    _c.sigfillset(every)
    # The kernel lets nobody handle these two, and a C library may refuse to try.
    for number in (signal.SIGKILL, signal.SIGSTOP):
        _c.sigdelset(every, int(number))
    _check(_c.posix_spawnattr_setsigmask(attributes, none))
    _check(_c.posix_spawnattr_setsigdefault(attributes, every))
    _check(_c.posix_spawnattr_setpgroup(attributes, 0))
    flags = DEFAULT_SIGNALS | SET_MASK | (SET_GROUP if leads_group else 0)
    _check(_c.posix_spawnattr_setflags(attributes, flags))
    return attributes


def _check(error: int, path: str | None = None) -> None:
    if error:
        raise OSError(error, os.strerror(error), path)
