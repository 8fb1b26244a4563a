"""Starting programs, seeing them end, killing them in time.

Invariants:

* The main loop never waits for a program: fork and exec happen on a thread of their own for each start, with plain
  fork, because CPython's vfork holds the interpreter lock until exec returns. A stuck exec delays only its own action.
* Completion is the exit of the direct child, seen through a pidfd, not the end of its output.
* Output goes into a memory file: the child never blocks on it, and who holds it after the child's end (a service left
  behind) gets EPERM, not SIGPIPE, and cannot grow it.
* At the timeout the process group gets SIGKILL, and the result is delivered at once.

It must never be a child subreaper (stock agents' stop loops would not end) and never wait for "any child".
"""

import _thread
import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from types import FrameType

from haclusterd.adapters.captured_output import CapturedOutput
from haclusterd.adapters.real_time import run_first
from haclusterd.agents.process_table import ORDER_MARK, list_pids, read_marks, read_stat
from haclusterd.model.instants import Instant, after, elapsed_ms
from haclusterd.ports.clock import Clock, Timer

# CPython's switch for exactly this purpose: with vfork, a stuck exec stops every thread of this process.
subprocess._USE_VFORK = False  # type: ignore[misc]  # Final in the stubs

KILL_PATIENCE_MS = 250
"""How long a killed process may take to go before its result is delivered without it."""
TRIM_PERIOD_MS = 1000
PYTHON_IGNORES = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
LAST_STANDARD_SIGNAL = 31
"""Above are the real-time signals, some of which the C library keeps to itself."""


class Ending(StrEnum):
    """How a program ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed out"
    KILLED = "killed"
    NOT_PREPARED = "not prepared"
    """What must be done before a start failed, so there was none."""
    NOT_STARTED = "not started"
    NOT_PERMITTED = "not permitted"
    """Right before the start it was permitted no longer, so there was none."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to start. The argument vector is public on this machine; environment and standard input are not."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    timeout_ms: int
    stdin: bytes = field(default=b"", repr=False)
    output_limit: int = 64 * 1024
    """Bytes kept of each output stream, half from its beginning and half from its end."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a program."""

    ending: Ending
    number: int
    """Exit status, signal number or errno, as `ending` says; 0 for TIMED_OUT and KILLED."""
    stdout: str
    stderr: str
    queued_ms: int
    executed_ms: int
    still_alive: bool = False


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who wants to know what, when. `before` and `forked` are called on the starting thread."""

    ended: Callable[[Ended], None]
    """Called once, on the main loop."""
    is_permitted: Callable[[], bool] = lambda: True
    """Asked on the starting thread right before the fork, after it, and when the exec is done: what is permitted no
    longer is not started, or gets SIGKILL."""
    before: Callable[[], None] = lambda: None
    """Called before the fork; an OSError from it prevents the start (NOT_PREPARED)."""
    forked: Callable[[int, int], None] = lambda _pid, _start_time: None
    """Called with process id and start time, before the exec is done."""
    gone: Callable[[], None] = lambda: None
    """Called once, on the main loop, when no process is left: with `ended`, or later for one that did not die."""


class _Child(subprocess.Popen[bytes]):
    """Popen that tells its process id as soon as it has one, while the exec may still be stuck."""

    def __init__(self, forked: Callable[[int], None], program: Program, stdin: int, stdout: int, stderr: int) -> None:
        self._forked = forked
        self._pid: int | None = None
        super().__init__(
            program.arguments,
            env=dict(program.environment),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd="/",
            close_fds=True,
            process_group=0,
            umask=0o022,
            restore_signals=True,
        )
        # The pidfd tells the exit; Popen must not wait for it, neither now nor when it is collected.
        self.returncode = 0

    @property  # type: ignore[override]  # None until the fork
    def pid(self) -> int | None:
        """Return the process id; None before the fork."""
        return self._pid

    @pid.setter
    def pid(self, pid: int | None) -> None:
        self._pid = pid
        if pid is not None:
            self._forked(pid)


class RunningProgram:
    """One start in progress. Its fields belong to the main loop, except `is_cancelled`, read by the starting thread."""

    def __init__(self, program: Program, hooks: Hooks, asked_at: Instant) -> None:
        self.program = program
        self.hooks = hooks
        self.asked_at = asked_at
        self.forked_at: Instant | None = None
        self.pid: int | None = None
        self.pidfd: int | None = None
        self.is_cancelled = False
        self.is_executing = False
        self.group: int | None = None
        """Of the starting thread: the child's, which leads its group once the exec is done."""
        self.is_thread_done = False
        self.is_delivered = False
        self.forced: Ending | None = None
        self.timers: dict[str, Timer] = {}
        self.outputs: tuple[CapturedOutput, CapturedOutput] | None = None


class Processes:
    """This process's children: all of them start and end here."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = clock
        self._loop = loop
        handle_ignored_signals()

    def start(self, program: Program, hooks: Hooks) -> RunningProgram:
        """Start a program; return at once. Everything else is told through `hooks`."""
        now = self._clock.now()
        running = RunningProgram(program, hooks, now)
        running.timers["timeout"] = self._clock.call_at(
            after(now, program.timeout_ms), lambda: self._end(running, Ending.TIMED_OUT)
        )
        self._trim_later(running)
        try:
            # Thread.start() would wait until the thread has begun, which on a busy machine takes its time.
            _thread.start_new_thread(self._live_on_thread, (running,))
        except RuntimeError:  # No more threads on this machine.
            self._clock.call_soon(lambda: self._not_started(running, Ending.NOT_STARTED, errno.EAGAIN))
        return running

    def kill(self, running: RunningProgram) -> None:
        """End the program's group now; its result is KILLED."""
        self._end(running, Ending.KILLED)

    def adopt(self, pid: int, start_time: int, deadline: Instant, gone: Callable[[], None]) -> bool:
        """Take over a process that an earlier life of this daemon started; kill its group at the deadline.

        Return False when it is gone already (a zombie that is our child is reaped). Otherwise call `gone` on the main
        loop when it has ended.
        """
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            return False
        stat = read_stat(pid)
        if stat is None or stat.start_time != start_time or stat.is_dead:
            if stat is not None and stat.start_time == start_time:
                _reap(pidfd)
            os.close(pidfd)
            return False

        def expired() -> None:
            _kill(pidfd, pid, is_group=stat.group == pid)

        timer = self._clock.call_at(deadline, expired)

        def exited() -> None:
            timer.cancel()
            self._loop.remove_reader(pidfd)
            _reap(pidfd)
            os.close(pidfd)
            gone()

        self._loop.add_reader(pidfd, exited)
        return True

    def reap_inherited(self, known: frozenset[int]) -> None:
        """After `execv`: see to it that children of the former self, other than `known`, do not stay zombies."""
        for pid in list_pids():
            stat = read_stat(pid)
            if stat is None or stat.parent != os.getpid() or pid in known:
                continue
            if stat.is_dead or ORDER_MARK in read_marks(pid):
                self.adopt(pid, stat.start_time, Instant(2**62), lambda: None)

    # On the starting thread.

    def _live_on_thread(self, running: RunningProgram) -> None:
        run_first()
        try:
            self._start_on_thread(running)
        except Exception:
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), None)))
            raise

    def _start_on_thread(self, running: RunningProgram) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        ending = Ending.NOT_PREPARED
        try:
            running.hooks.before()
            ending = Ending.NOT_STARTED
            if running.is_cancelled:
                raise InterruptedError
            if not running.hooks.is_permitted():
                ending = Ending.NOT_PERMITTED
                raise InterruptedError
            limit = running.program.output_limit
            stdout, stderr = CapturedOutput("stdout", limit), CapturedOutput("stderr", limit)
            running.outputs = stdout, stderr
            with open(os.memfd_create("stdin"), "w+b", buffering=0) as stdin:
                stdin.write(running.program.stdin)
                with open(f"/proc/self/fd/{stdin.fileno()}", "rb", buffering=0) as readable:
                    _Child(
                        lambda pid: self._forked_on_thread(running, pid),
                        running.program,
                        readable.fileno() if running.program.stdin else subprocess.DEVNULL,
                        stdout.write_end,
                        stderr.write_end,
                    )
        except OSError as error:
            number = error.errno or 0
            self._post(lambda: self._not_started(running, ending, number))
            return
        except ValueError:  # A NUL, or a name that no environment can carry.
            self._post(lambda: self._not_started(running, ending, errno.EINVAL))
            return
        if running.group is not None and not running.hooks.is_permitted():
            # The exec was held up. The child is not reaped yet, so its number is still its own.
            with suppress(ProcessLookupError):
                os.killpg(running.group, signal.SIGKILL)
        self._post(lambda: self._executing(running))

    def _forked_on_thread(self, running: RunningProgram, pid: int) -> None:
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:  # Without it we would not see the end: better no start.
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        if running.is_cancelled or not running.hooks.is_permitted():
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        forked_at = self._clock.now()
        _restore_defaults(pid)
        running.group = pid
        stat = read_stat(pid)
        self._post(lambda: self._forked(running, pid, pidfd, forked_at))
        with suppress(OSError):
            running.hooks.forked(pid, stat.start_time if stat else 0)

    def _post(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(call)

    # On the main loop.

    def _forked(self, running: RunningProgram, pid: int, pidfd: int, forked_at: Instant) -> None:
        running.pid, running.pidfd, running.forked_at = pid, pidfd, forked_at
        if running.is_cancelled:
            _kill(pidfd, pid, is_group=False)

    def _executing(self, running: RunningProgram) -> None:
        assert running.pidfd is not None
        assert running.pid is not None
        running.is_executing = running.is_thread_done = True
        if running.is_cancelled:
            _kill(running.pidfd, running.pid, is_group=True)
        self._loop.add_reader(running.pidfd, lambda: self._exited(running))

    def _not_started(self, running: RunningProgram, ending: Ending, number: int) -> None:
        running.is_thread_done = True
        self._deliver(running, ending, number)
        self._release(running)

    def _exited(self, running: RunningProgram) -> None:
        assert running.pidfd is not None
        self._loop.remove_reader(running.pidfd)
        info = os.waitid(os.P_PIDFD, running.pidfd, os.WEXITED)
        if info is not None and info.si_code == os.CLD_EXITED:
            self._deliver(running, Ending.EXITED, info.si_status)
        else:
            self._deliver(running, Ending.SIGNALLED, info.si_status if info is not None else 0)
        self._release(running)

    def _end(self, running: RunningProgram, ending: Ending) -> None:
        if running.is_cancelled or running.is_delivered:
            return
        running.is_cancelled = True
        running.forced = ending
        if running.pidfd is not None and running.pid is not None:
            _kill(running.pidfd, running.pid, is_group=running.is_executing)
        patience = after(self._clock.now(), KILL_PATIENCE_MS)
        running.timers["patience"] = self._clock.call_at(
            patience, lambda: self._deliver(running, ending, 0, still_alive=True)
        )

    def _deliver(self, running: RunningProgram, ending: Ending, number: int, *, still_alive: bool = False) -> None:
        if running.is_delivered:
            return
        running.is_delivered = True
        for timer in running.timers.values():
            timer.cancel()
        now = self._clock.now()
        begun = running.forked_at if running.forked_at is not None else now
        # While the starting thread may still hand the files to a child, they stay open, and unread.
        stdout, stderr = _finish_outputs(running) if running.is_thread_done else ("", "")
        running.hooks.ended(
            Ended(
                ending=running.forced or ending,
                number=0 if running.forced else number,
                stdout=stdout,
                stderr=stderr,
                queued_ms=elapsed_ms(running.asked_at, begun),
                executed_ms=elapsed_ms(begun, now),
                still_alive=still_alive,
            )
        )

    def _release(self, running: RunningProgram) -> None:
        if running.pidfd is not None:
            os.close(running.pidfd)
            running.pidfd = None
        _finish_outputs(running)
        running.hooks.gone()

    def _trim_later(self, running: RunningProgram) -> None:
        def trim() -> None:
            for output in running.outputs or ():
                output.trim()
            self._trim_later(running)

        running.timers["trim"] = self._clock.call_at(after(self._clock.now(), TRIM_PERIOD_MS), trim)


def handle_ignored_signals() -> None:
    """Handle, by doing nothing, every signal that this process was started to ignore (`nohup`, a shell's `&`).

    What is ignored stays ignored through exec, and an agent would pass it on to its service; what is handled does not.
    Only the main thread may set handlers. `Popen` sees to the signals that Python itself ignores.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in signal.valid_signals() - PYTHON_IGNORES:
        if number <= LAST_STANDARD_SIGNAL and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _do_nothing)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Take a signal."""


def _finish_outputs(running: RunningProgram) -> tuple[str, str]:
    if running.outputs is None:
        return "", ""
    stdout, stderr = running.outputs
    running.outputs = None
    return stdout.finish(), stderr.finish()


def _kill(pidfd: int, pid: int, *, is_group: bool) -> None:
    """Send SIGKILL to a child not yet reaped; to its whole group once it is known to lead one."""
    with suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    if is_group:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _reap(pidfd: int) -> None:
    with suppress(ChildProcessError):  # Not our child: its parent reaps it.
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)


def _restore_defaults(pid: int) -> None:
    """Undo, in a new child, what this daemon does to itself: protection from the OOM killer, scheduling, niceness."""
    with suppress(OSError):
        if os.sched_getscheduler(pid) != os.SCHED_OTHER:
            os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
        if os.getpriority(os.PRIO_PROCESS, pid) != 0:
            os.setpriority(os.PRIO_PROCESS, pid, 0)
    with suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "r+") as stream:
        if stream.read().strip() != "0":
            stream.seek(0)
            stream.write("0")
