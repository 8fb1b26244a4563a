"""Work in forked images of this process: limited in priority, time and memory, ended by a signal if needed.

An image precedes ordinary processes at first, like the daemon's helper threads and behind its loops; after `FIRST_S` it
is one of them. A question that takes 20 ms of a processor is then answered while dozens of agents are running; agents
keep the processors, because all images together precede for a limited part of the time.

A forked image has everything that the work reads without a copy, and its changes are not visible here. It keeps no
descriptor of the daemon: neither sockets and locks, which a restarted daemon must be able to take, nor files. It ends
with the daemon. (Only the forking thread exists in it, so work must not wait for another thread.)
"""

import asyncio
import ctypes
import gc
import os
import resource
import signal
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress

from haclusterd.adapters.machine.real_time import let_run_first, let_run_ordinarily, runs_first
from haclusterd.ports.background import WorkFailed

AT_ONCE = 4
OF_OTHERS = 3
"""Of these for all users together that are neither root nor the daemon's own: those two find a place at once."""
OF_USER = 2
"""Of these for one such user."""
LIMIT_S = 60.0
"""Time limit of one work."""
FIRST_S = 0.1
"""How long one work precedes ordinary processes."""
FIRST_PART = 4
"""All work together does so for one part in so many of the time, after the first `FIRST_S_MAX`."""
FIRST_S_MAX = 0.4
MEMORY_BYTES = 256 * 1024 * 1024
"""Memory limit of one work, beyond what it shares with the daemon."""
RESULT_BYTES_MAX = 16 * 1024 * 1024
READ_BYTES = 256 * 1024
OOM_SCORE = b"500"
EXIT_ERROR = 70
EXIT_MEMORY = 71
PR_SET_PDEATHSIG = 1
STANDARD_ERROR = 2
HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)

Done = Callable[[bytes | WorkFailed], None]


class Precedence:
    """How long images may still precede ordinary processes: a credit that grows with time. Times are in seconds."""

    def __init__(self) -> None:
        self._credit_s = FIRST_S_MAX
        self._at_s = 0.0

    def take(self, now_s: float) -> bool:
        """Return whether an image may precede for `FIRST_S`; that is then taken from the credit."""
        grown_s = max(0.0, now_s - self._at_s) / FIRST_PART
        self._credit_s, self._at_s = min(FIRST_S_MAX, self._credit_s + grown_s), now_s
        if self._credit_s < FIRST_S:
            return False
        self._credit_s -= FIRST_S
        return True

    def give_back(self, unused_s: float) -> None:
        """Return to the credit what an image did not need of `FIRST_S`."""
        self._credit_s += max(0.0, unused_s)


class ForkedWork:
    """See the module. Everything is called on the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        at_once: int = AT_ONCE,
        of_others: int = OF_OTHERS,
        of_user: int = OF_USER,
        limit_s: float = LIMIT_S,
        memory_bytes: int = MEMORY_BYTES,
        may_fork: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_fork`: whether an image may be forked now; after a False, call `begin` when it may be True."""
        self.loop = loop
        self.limit_s = limit_s
        self.memory_bytes = memory_bytes
        self.libc = ctypes.CDLL(None)
        self.precedence = Precedence()
        self._at_once = at_once
        self._of_others = of_others
        self._of_user = of_user
        self._may_fork = may_fork
        self._running: set[_Image] = set()
        self._waiting: deque[_Image] = deque()
        self._turns: dict[str, int] = {}
        """The last turn of each user with work here, as an increasing number."""
        self._turn = 0

    def do(self, work: Callable[[], bytes], done: Done, whose: str = "") -> Callable[[], None]:
        """See `Background.apart`."""
        image = _Image(self, work, done, whose)
        self._waiting.append(image)
        self.begin()
        return image.cancel

    def stop(self) -> None:
        """End all work and wait for its end; to be called at the end of the daemon's process."""
        self._waiting.clear()
        for image in tuple(self._running):
            image.cancel()
            image.wait()

    def left(self, image: "_Image") -> None:
        """Forget an image that has ended, or was never forked."""
        self._running.discard(image)
        with suppress(ValueError):
            self._waiting.remove(image)
        self.begin()

    def begin(self) -> None:
        """Fork for waiting work, as far as the limits allow."""
        while (image := self._next()) is not None:
            self._waiting.remove(image)
            self._running.add(image)
            self._turn += 1
            self._turns[image.whose] = self._turn
            image.begin()
        here = {image.whose for image in (*self._waiting, *self._running)}
        self._turns = {whose: turn for whose, turn in self._turns.items() if whose in here}

    def _next(self) -> "_Image | None":
        """Return the next work: root's first, else that of the user whose turn is longest ago; None: none may begin."""
        if not self._waiting or len(self._running) >= self._at_once or not self._may_fork():
            return None
        of_user = Counter(image.whose for image in self._running if image.whose)
        is_full = of_user.total() >= self._of_others
        free = (
            image for image in self._waiting
            if not image.whose or (not is_full and of_user[image.whose] < self._of_user)
        )  # fmt: skip
        return min(free, key=lambda image: (bool(image.whose), self._turns.get(image.whose, 0)), default=None)


class _Image:
    """One forked image, from before its fork until it is reaped."""

    def __init__(self, owner: ForkedWork, work: Callable[[], bytes], done: Done, whose: str) -> None:
        self.whose = whose
        self._owner = owner
        self._work = work
        self._done = done
        self._result = bytearray()
        self._pipe = self._pidfd = -1
        self._timer: asyncio.TimerHandle | None = None
        self._first: asyncio.TimerHandle | None = None
        """While it precedes ordinary processes."""

    def begin(self) -> None:
        """Fork."""
        loop = self._owner.loop
        self._pipe, write_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._pipe, False)
        daemon = os.getpid()
        try:
            with warnings.catch_warnings():
                # Warned of because of other threads: the image waits for none of them.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
        except OSError as error:
            os.close(write_end)
            os.close(self._pipe)
            self._pipe = -1
            loop.call_soon(self._end, WorkFailed(f"no process could be made: {error.strerror}"))
            return
        if pid == 0:
            _live(self._owner, self._work, write_end, daemon)
        self._precede(pid)
        os.close(write_end)
        self._pidfd = os.pidfd_open(pid)
        loop.add_reader(self._pipe, self._read)
        loop.add_reader(self._pidfd, self._exited)
        self._timer = loop.call_later(self._owner.limit_s, self._give_up)

    def _precede(self, pid: int) -> None:
        """Let it precede ordinary processes for a while, if this process does."""
        loop, precedence = self._owner.loop, self._owner.precedence
        if not runs_first() or not precedence.take(loop.time()):
            return
        if let_run_first(pid):
            self._first = loop.call_later(FIRST_S, self._follow, pid)
        else:
            precedence.give_back(FIRST_S)

    def _follow(self, pid: int) -> None:
        self._first = None
        let_run_ordinarily(pid)

    def cancel(self) -> None:
        """End it without an answer; may be called again. It keeps its place until it has ended."""
        self._done = _ignore
        if self._pidfd < 0:
            self._owner.left(self)
        else:
            self._kill()

    def wait(self) -> None:
        """Wait for its end, after `cancel`."""
        if self._pidfd >= 0:
            os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED)
            self._close()
            self._owner.left(self)

    def _read(self) -> None:
        try:
            data = os.read(self._pipe, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            # Its pidfd shows its end.
            self._owner.loop.remove_reader(self._pipe)
        self._result += data
        if len(self._result) > RESULT_BYTES_MAX:
            self._end(WorkFailed(f"the answer has more than {RESULT_BYTES_MAX >> 20} MiB"))

    def _exited(self) -> None:
        if self._pipe >= 0:
            # A pipe holds less than one read takes.
            self._read()
        found = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG)
        if found is None:
            return
        self._close()
        if self._done is _ignore:
            self._owner.left(self)
        elif found.si_code != os.CLD_EXITED:
            self._end(WorkFailed(f"its process was ended by signal {found.si_status}"))
        elif found.si_status == EXIT_MEMORY:
            self._end(WorkFailed(f"it needs more than {self._owner.memory_bytes >> 20} MiB of memory"))
        elif found.si_status:
            self._end(WorkFailed("an error of the program; its log has it"))
        else:
            self._end(bytes(self._result))

    def _give_up(self) -> None:
        self._end(WorkFailed(f"it takes more than {self._owner.limit_s:g} s", is_too_long=True))

    def _end(self, result: bytes | WorkFailed) -> None:
        done, self._done = self._done, _ignore
        if self._pidfd < 0:
            self._owner.left(self)
        else:
            self._kill()
        done(result)

    def _kill(self) -> None:
        """Kill it without waiting: a process of ordinary priority dies only when it gets the processor."""
        self._close_pipe()
        signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _close_pipe(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._pipe >= 0:
            self._owner.loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1

    def _close(self) -> None:
        self._close_pipe()
        if self._first is not None:
            self._first.cancel()
            self._owner.precedence.give_back(self._first.when() - self._owner.loop.time())
        self._owner.loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1


# In the image.


def _live(owner: ForkedWork, work: Callable[[], bytes], write_end: int, daemon: int) -> None:
    """Do the work, then end the image; no other code of the daemon runs in it."""
    code = EXIT_ERROR
    try:
        _become_ordinary(owner, write_end, daemon)
        _write(write_end, work())
        code = 0
    except MemoryError:
        code = EXIT_MEMORY
    except BaseException:  # noqa: BLE001 (the image ends: the log gets it, its parent the exit code)
        os.write(STANDARD_ERROR, traceback.format_exc().encode(errors="replace"))
    finally:
        os._exit(code)


def _become_ordinary(owner: ForkedWork, write_end: int, daemon: int) -> None:
    owner.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != daemon:
        os._exit(0)
    # A collection would write to all shared pages and so copy them.
    gc.freeze()
    signal.set_wakeup_fd(-1)
    for number in HANDLED:
        signal.signal(number, signal.SIG_DFL)
    with suppress(OSError), open("/proc/self/oom_score_adj", "wb", buffering=0) as stream:
        stream.write(OOM_SCORE)
    os.closerange(STANDARD_ERROR + 1, write_end)
    os.closerange(write_end + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    with open("/proc/self/statm", "rb") as stream:
        pages = int(stream.read().split()[0])
    limit = pages * resource.getpagesize() + owner.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _ignore(_: bytes | WorkFailed) -> None:
    return None
