"""A small process of which agents are cloned that are to be in a control group.

A process that is moved into a control group after its fork, which takes the kernel 10 ms and more, has time to leave
others behind, outside. Here it is cloned in its control group (CLONE_INTO_CGROUP, clone3(2)) and as a child of the
daemon (CLONE_PARENT). The daemon itself cannot do that: with its threads, what a bare clone leaves is no whole process.

Invariant: what was cloned executes only once the daemon has said so on the request's own link, and ends when that link
does. So nothing begins after the daemon's end, nor before it has written down and judged what it is about to begin.

Run by its path, without `site`: stdlib only, imports little, and holds no thread, so that the clone is whole.
"""

import array
import ctypes
import os
import signal
import socket
import sys
from contextlib import suppress

REQUEST, STDIN, STDOUT, STDERR, LINK, GROUP = range(6)
"""Places of the descriptors that come with a request; the last is there only when there is a group."""
GO = b"go"
FORKED, FORKED_OUTSIDE, FAILED = b"f", b"o", b"e"
"""What is sent on the link, with a number: the process id, in the group if there is one; the same, but the group could
not be entered; the errno for which nothing was cloned, or executed."""
REQUEST_MARK = b"r"

SYS_CLONE3 = 435
"""The same on every architecture, as all system calls since Linux 5.1."""
CLONE_PARENT = 0x8000
CLONE_INTO_CGROUP = 0x2_0000_0000
MCL_CURRENT = 1
REAL_TIME_PRIORITY = 1
NOT_EXECUTED = 127
DESCRIPTOR_BYTES = 4


class _CloneArguments(ctypes.Structure):
    """`struct clone_args` up to `cgroup` (Linux 5.7)."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls", "set_tid",
            "set_tid_size", "cgroup",
        )
    ]  # fmt: skip


# PyDLL keeps the interpreter's lock: what is cloned has it, and nobody else is there to want it.
_library = ctypes.PyDLL(None, use_errno=True)


def _clone(group: int | None) -> int:
    """Return 0 in the new process, and its id in this one. Raises OSError."""
    into = CLONE_INTO_CGROUP if group is not None else 0
    arguments = _CloneArguments(flags=CLONE_PARENT | into, cgroup=group or 0)
    pid: int = _library.syscall(
        ctypes.c_long(SYS_CLONE3), ctypes.byref(arguments), ctypes.c_size_t(ctypes.sizeof(arguments))
    )
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone3")
    return pid


def _serve(link: int, descriptors: list[int]) -> None:
    """Clone what one request asks for."""
    words = os.pread(descriptors[REQUEST], os.fstat(descriptors[REQUEST]).st_size, 0).split(b"\0")
    count = int(words[0])
    arguments, environment = words[1 : 1 + count], dict(word.split(b"=", 1) for word in words[1 + count :])
    answer = FORKED
    try:
        pid = _clone(descriptors[GROUP] if len(descriptors) > GROUP else None)
    except OSError:
        if len(descriptors) <= GROUP:
            raise
        answer = FORKED_OUTSIDE
        pid = _clone(None)
    if pid == 0:
        _become(arguments, environment, descriptors)
    os.write(link, answer + b"%d" % pid)


def _become(arguments: list[bytes], environment: dict[bytes, bytes], descriptors: list[int]) -> None:
    """In the new process: wait for the word, and execute. Does not return."""
    link = descriptors[LINK]
    try:
        if os.read(link, len(GO)) == GO:
            os.setpgid(0, 0)
            # What Python ignores would stay ignored.
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            for place, standard in ((STDIN, 0), (STDOUT, 1), (STDERR, 2)):
                os.dup2(descriptors[place], standard)
            os.execve(arguments[0], arguments, environment)
    except OSError as error:
        _tell_failure(link, error)
    finally:
        os._exit(NOT_EXECUTED)


def _tell_failure(link: int, error: OSError) -> None:
    with suppress(OSError):
        os.write(link, FAILED + b"%d" % (error.errno or 0))


def main() -> int:
    """Serve until the daemon ends the conversation, which is standard input."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.umask(0o022)
    os.chdir("/")
    # As the daemon itself: where memory is short, what was paged out would begin late. It may be refused.
    _library.mlockall(MCL_CURRENT)
    with suppress(OSError):
        priority = os.sched_param(REAL_TIME_PRIORITY)
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, priority)
    with socket.socket(fileno=os.dup(0)) as daemon, suppress(ConnectionError):
        while True:
            mark, ancillary, _, _ = daemon.recvmsg(
                len(REQUEST_MARK), socket.CMSG_SPACE((GROUP + 1) * DESCRIPTOR_BYTES), socket.MSG_CMSG_CLOEXEC
            )
            if not mark:
                break
            descriptors = array.array("i")
            for _, _, data in ancillary:
                descriptors.frombytes(data)
            try:
                _serve(descriptors[LINK], list(descriptors))
            except OSError as error:
                _tell_failure(descriptors[LINK], error)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
    return 0


if __name__ == "__main__":
    sys.exit(main())
