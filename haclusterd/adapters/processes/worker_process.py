"""A child process with a socket as its standard input, over which frames are exchanged.

Invariants: the main loop never waits for it, neither at its start (that is on a separate thread) nor at its end; frames
are produced when the socket can take them, a slice at a time, so that even a large state blocks the loop for a few
milliseconds only. `ended` is called once, on the main loop, unless `end` was called before.
"""

import _thread
import asyncio
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from haclusterd.adapters.machine.real_time import run_first
from haclusterd.adapters.processes.spawning import spawn

STDERR = 2
READ_BYTES = 64 * 1024
SLICE_BYTES = 64 * 1024
"""Bytes that are produced and sent, or read and delivered, before other work of the main loop gets its turn."""
STOP_TIMEOUT_S = 2.0


class WorkerProcess:
    """One worker, from its start to its end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        command: Sequence[str],
        heard: Callable[[bytes], None],
        ended: Callable[[str], None],
    ) -> None:
        """`heard` gets received bytes as they arrive; `ended` gets the reason of the worker's end."""
        self._loop = loop
        self._heard = heard
        self._ended = ended
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(0)
        self._outbox: deque[Iterator[bytes]] = deque()
        self._unsent = b""
        self._is_writing = False
        self._is_over = False
        self._lock = threading.Lock()
        self._pid: int | None = None
        """The worker's process id, from its exec until it is reaped; guarded by the lock."""
        self._is_unwanted = False
        self._is_gone = threading.Event()
        # `Thread.start` would make the main loop wait until it runs.
        _thread.start_new_thread(self._run_and_signal, (tuple(command), theirs))
        loop.add_reader(self._socket, self._readable)

    def send(self, frames: Iterator[bytes]) -> None:
        """Send frames, after all that were sent before; each is taken from the iterator when its turn has come."""
        if self._is_over:
            return
        self._outbox.append(frames)
        if not self._is_writing:
            self._is_writing = True
            self._loop.add_writer(self._socket, self._writable)

    @property
    def backlog(self) -> int:
        """Number of calls of `send` whose frames are not all sent yet."""
        return len(self._outbox)

    def end(self) -> None:
        """Kill it, and report nothing more about it."""
        self._close()
        with self._lock:
            self._is_unwanted = True
            if self._pid is not None:
                os.kill(self._pid, signal.SIGKILL)

    def join(self) -> None:
        """Wait for its end, after `end`; for the end of the daemon's process."""
        self._is_gone.wait(STOP_TIMEOUT_S)

    # On the thread.

    def _run_and_signal(self, command: tuple[str, ...], theirs: socket.socket) -> None:
        try:
            self._run(command, theirs)
        finally:
            self._is_gone.set()

    def _run(self, command: tuple[str, ...], theirs: socket.socket) -> None:
        run_first()
        try:
            with theirs, open(os.devnull, "wb") as nowhere:
                ends = {"stdin": theirs.fileno(), "stdout": nowhere.fileno(), "stderr": STDERR}
                pid = spawn(command, os.environ, **ends, leads_group=False)
        except OSError as error:
            self._post(f"{command[0]}: {error.strerror}")
            return
        with self._lock:
            self._pid = pid
            if self._is_unwanted:
                os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            # From here on its number may be another's.
            self._pid = None
            _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self._post(f"the worker was ended by signal {-code}" if code < 0 else f"the worker ended with status {code}")

    def _post(self, problem: str) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(self._over, problem)

    # On the main loop.

    def _over(self, problem: str) -> None:
        if not self._is_over:
            self._readable()
        if not self._is_over:
            self._close()
            self._ended(problem)

    def _close(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._outbox.clear()

    def _readable(self) -> None:
        try:
            data = self._socket.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except ConnectionError:
            data = b""
        if data:
            self._heard(data)
        elif not self._is_over:
            # The thread reports its end, and knows the reason.
            self._loop.remove_reader(self._socket)

    def _writable(self) -> None:
        if not self._unsent:
            self._unsent = self._next_slice()
        if not self._unsent:
            self._is_writing = False
            self._loop.remove_writer(self._socket)
            return
        try:
            sent = self._socket.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except ConnectionError:
            self._outbox.clear()
            self._unsent = b""
            return
        self._unsent = self._unsent[sent:]

    def _next_slice(self) -> bytes:
        frames: list[bytes] = []
        size = 0
        while self._outbox and size < SLICE_BYTES:
            frame = next(self._outbox[0], None)
            if frame is None:
                self._outbox.popleft()
                continue
            frames.append(frame)
            size += len(frame)
        return b"".join(frames)
