"""The daemon's end of the spawner (entry_points/spawner.py): it clones programs from a small process.

Invariants: a program is executed only after `forked` has returned; if the spawner cannot be used,
`SpawnerUnusableError` is raised while nothing has been, or can be, executed, so that the caller may start the program
itself. The spawner is a child of this process that does nothing on its own: a lost one is replaced when the next
program is started.
"""

import array
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from haclusterd.adapters.processes.spawning import assignments, encoded, spawn

SPAWNER = Path(__file__).parents[2] / "entry_points" / "spawner.py"
REQUEST_MARK = b"r"
GO = b"go"
FORKED, FORKED_OUTSIDE, FAILED = b"f", b"o", b"e"
"""The spawner's messages; entry_points/spawner.py explains them."""
ANSWER_BYTES = 64
LOSSES_MAX = 3
"""Number of spawners in a row that ended without having started anything, after which none is used any more."""
STOP_TIMEOUT_S = 2.0


class SpawnerUnusableError(Exception):
    """Nothing was executed, and nothing will be: the caller has to start the program."""


class Spawner:
    """The present spawner and its successors; any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid: int | None = None
        self._socket: socket.socket | None = None
        self._losses = 0
        with suppress(SpawnerUnusableError):
            self._connected()

    def spawn(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        standard: tuple[int, int, int],
        group: Path | None,
        forked: Callable[[int, bool], None],
    ) -> int:
        """Start a program in a process group of its own; return its process id when it is executed, or was killed.

        `standard` are the descriptors of its input and outputs, `group` is the control group to start in. `forked` gets
        the process id, and whether the process is in the group, before anything is executed. Raises
        SpawnerUnusableError, OSError from the exec or from `forked`, and ValueError as `os.execve` does.
        """
        request = _encode(arguments, environment)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                asked = self._ask(request, standard, theirs, group)
            answer, number = _hear(ours)
            if answer not in (FORKED, FORKED_OUTSIDE):
                if answer != FAILED:
                    self._lose(asked)
                raise SpawnerUnusableError(os.strerror(number))
            self._losses = 0
            forked(number, answer == FORKED)
            with suppress(ConnectionError):  # It was killed meanwhile.
                ours.send(GO)
            failure, error_number = _hear(ours)
            if failure == FAILED:
                os.waitpid(number, 0)
                raise OSError(error_number, os.strerror(error_number), arguments[0])
            return number

    def close(self) -> None:
        """End the spawner and wait for it; nothing is spawned any more."""
        with self._lock:
            self._losses = LOSSES_MAX
            self._end()

    def _ask(
        self, request: bytes, standard: tuple[int, int, int], link: socket.socket, group: Path | None
    ) -> socket.socket:
        """Send a request; return the socket that it was sent on."""
        asked = self._connected()
        with open(os.memfd_create("request"), "wb", buffering=0) as memory:
            memory.write(request)
            descriptors = [memory.fileno(), *standard, link.fileno()]
            entered = _open_directory(group)
            if entered is not None:
                descriptors.append(entered)
            try:
                rights = array.array("i", descriptors)
                asked.sendmsg([REQUEST_MARK], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            except OSError as error:
                self._lose(asked)
                raise SpawnerUnusableError(str(error)) from error
            finally:
                if entered is not None:
                    os.close(entered)
        return asked

    def _connected(self) -> socket.socket:
        """Return the socket of the spawner, which is started if there is none."""
        with self._lock:
            if self._socket is None:
                if self._losses >= LOSSES_MAX:
                    raise SpawnerUnusableError("there is none")
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs, open(os.devnull, "wb", buffering=0) as null:
                    command, unheard = (sys.executable, "-I", "-S", str(SPAWNER)), null.fileno()
                    try:
                        self._pid = spawn(command, {}, stdin=theirs.fileno(), stdout=unheard, stderr=unheard)
                    except OSError as error:
                        ours.close()
                        raise SpawnerUnusableError(str(error)) from error
                self._socket = ours
            return self._socket

    def _lose(self, asked: socket.socket) -> None:
        """Discard a spawner that no longer answers."""
        with self._lock:
            if self._socket is asked:
                self._losses += 1
                self._end()

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._pid is not None:
            _end_child(self._pid)
            self._pid = None


def _end_child(pid: int) -> None:
    """Wait for the end of a child whose connection is closed, for a limited time."""
    descriptor = os.pidfd_open(pid)
    try:
        if not select.select([descriptor], [], [], STOP_TIMEOUT_S)[0]:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.waitid(os.P_PIDFD, descriptor, os.WEXITED)
    finally:
        os.close(descriptor)


def _encode(arguments: Sequence[str], environment: Mapping[str, str]) -> bytes:
    return b"\0".join(encoded((str(len(arguments)), *arguments, *assignments(environment))))


def _hear(link: socket.socket) -> tuple[bytes, int]:
    """Return the spawner's next message with its number; nothing and 0 when the connection has ended."""
    try:
        answer = link.recv(ANSWER_BYTES)
    except ConnectionError:
        answer = b""
    return (answer[:1], int(answer[1:])) if answer else (b"", 0)


def _open_directory(path: Path | None) -> int | None:
    if path is None:
        return None
    with suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return None
