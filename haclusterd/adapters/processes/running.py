"""Starts programs, detects their end, kills them at their timeout.

Invariants:

* The main loop never waits for a program: it is started on another thread, which waits until the exec is done. A stuck
  exec delays only its own action; its process is found, reported and killed all the same.
* A program for a control group is in it from its first instruction, if there is a spawner.
* A few start at a time, each with a short time limit: one that is delayed lets the next one start.
* Completion is the exit of the direct child, detected by a pidfd, not the end of its output.
* Output goes into a memory file: the child never blocks on it, and a process that holds it after the child's end (a
  service left behind) gets EPERM, not SIGPIPE, and cannot make it grow.
* At the timeout the process group and all descendants get SIGKILL (killing.py), and the result is delivered at once.
* Of a program that `ends_with_group` no process is left when its result is delivered, even if only its leader died; nor
  of one that `ends_whole`, if it was killed. Otherwise the result says that it is still alive.

It must never be a child subreaper (stock agents' stop loops would not end) and never wait for "any child".
"""

import _thread
import asyncio
import errno
import fcntl
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from io import FileIO
from pathlib import Path

from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.adapters.processes.killing import Killed, has_ended, kill_all, kill_group, reserve_descriptors
from haclusterd.adapters.processes.spawner_link import Spawner, SpawnerUnusableError
from haclusterd.adapters.processes.spawning import children_of, spawn, started_by
from haclusterd.agents.process_table import (
    ORDER_MARK,
    ProcessStat,
    list_pids,
    look_at,
    read_file,
    read_marks,
    read_stat,
)
from haclusterd.model.instants import Instant, after, elapsed_ms
from haclusterd.model.records import dataclass, field
from haclusterd.ports.clock import Clock, Timer

GROUP_PAUSE_MS = 10
"""Pause between two checks whether a killed process group has ended."""
KILL_WAIT_MS = 250
"""How long a killed process may take to end before its result is delivered without it."""
EXEC_WAIT_MS = 100
"""How long an exec may take before its process is searched for."""
BEGINNING_MAX = 4
"""Maximum number of simultaneous starts. Each is short, but they all want the interpreter lock: a hundred monitors that
are due together would keep it from the threads that send heartbeats and answer the leader."""
TRIM_PERIOD_MS = 1000
UMASK = 0o022
"""Of this process, since its children inherit it: files that others must not read are created with explicit modes."""


class Ending(StrEnum):
    """How a program ended, or why it was not started."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed out"
    KILLED = "killed"
    NOT_PREPARED = "not prepared"
    """A step before the start failed, so it was not started."""
    NOT_STARTED = "not started"
    NOT_PERMITTED = "not permitted"
    """Just before the start it was no longer permitted, so it was not started."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to start. Every user can read the argument vector, but not environment and standard input."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    timeout_ms: int
    stdin: bytes = field(default=b"", repr=False)
    output_limit: int = 64 * 1024
    """Bytes kept of each output stream, half from its beginning and half from its end."""
    is_background: bool = False
    """Whether other programs may start before it."""
    ends_whole: bool = False
    """Whether it has ended only with its group and all descendants, if it is killed: a system call in which one of them
    sleeps, such as a mount, may have its effect although its caller is gone. If others kill it, its group is killed
    too."""
    ends_with_group: bool = False
    """Whether the rest of its process group is killed when it ends, and must have ended before its result is
    delivered."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a program."""

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
    """Callbacks. `before` and `forked` are not called on the main loop."""

    ended: Callable[[Ended], None]
    """Called once, on the main loop."""
    is_permitted: Callable[[], bool] = lambda: True
    """Called on the starting thread just before the start, and again when the exec is done: a program that is no longer
    permitted is not started, or gets SIGKILL."""
    before: Callable[[], None] = lambda: None
    """Called before the start; an OSError from it prevents the start (NOT_PREPARED)."""
    group: Callable[[], Path | None] = lambda: None
    """Called on the starting thread, before the fork: returns the control group of the process and its children."""
    forked: Callable[[int, int], None] = lambda _pid, _start_time: None
    """Called with process id and start time, just after the exec, or while that is stuck."""
    gone: Callable[[], None] = lambda: None
    """Called once, on the main loop, when no process is left: with `ended`, or later for one that outlived its kill."""


@dataclass(frozen=True, slots=True)
class StartedProcess:
    """A child and when it was found."""

    pid: int
    pidfd: int
    forked_at: Instant


class RunningProgram:
    """One start in progress. Its fields belong to the main loop, except `is_cancelled`, which the starting thread
    reads, `thread_id` and `earlier`, which it writes, and `process`, which `telling` guards."""

    def __init__(self, program: Program, hooks: Hooks, asked_at: Instant) -> None:
        self.program = program
        self.hooks = hooks
        self.asked_at = asked_at
        self.is_cancelled = False
        self.is_begun = False
        self.is_executing = False
        self.thread_id: int | None = None
        """The starting thread, while it is inside the exec."""
        self.earlier: frozenset[int] = frozenset()
        """Children that this thread has started before and that are not reaped."""
        self.telling = threading.Lock()
        self.process: StartedProcess | None = None
        """Set once, by the thread that finds the process first, before that thread looks at `is_cancelled`."""
        self.is_thread_done = False
        self.is_delivered = False
        self.forced: Ending | None = None
        self.killed: Killed | None = None
        """What was killed with it, if it `ends_whole`."""
        self.kill_timer: Timer | None = None
        """For the next try to kill it, if the first was not possible; it outlasts the delivery."""
        self.timers: dict[str, Timer] = {}
        self.outputs: tuple[CapturedOutput, CapturedOutput] | None = None

    @property
    def pid(self) -> int | None:
        """Its process, once that is found."""
        return None if self.process is None else self.process.pid


class _Adopted:
    """A process that an earlier incarnation of this daemon started."""

    def __init__(
        self, clock: Clock, loop: asyncio.AbstractEventLoop, pid: int, start_time: int, gone: Callable[[], None], *,
        ends_whole: bool,
    ) -> None:  # fmt: skip
        self._clock, self._loop = clock, loop
        self._pid, self._start_time = pid, start_time
        self._pidfd: int | None = None
        """None: it could not be opened yet; whether the process runs is unknown, so it counts as running."""
        self._gone = gone
        self._ends_whole = ends_whole
        self._is_there = True
        self._is_to_end = False
        self._killed: Killed | None = None
        self._timers: list[Timer] = []

    def kept_until(self, deadline: Instant) -> Callable[[], None] | None:
        """Kill it at the deadline; return what kills it at once. None: it has ended already."""
        if not self._may_be_there():
            return None
        self._timers.append(self._clock.call_at(deadline, self._kill))
        return self._kill

    def _may_be_there(self) -> bool:
        """Open it; what cannot be opened for want of descriptors or memory is tried again, since it may be running."""
        try:
            self._pidfd = _running(self._pid, self._start_time)
        except OSError:
            self._clock.call_at(after(self._clock.now(), KILL_WAIT_MS), self._open)
            return True
        if self._pidfd is not None:
            self._loop.add_reader(self._pidfd, self._exited)
        return self._pidfd is not None

    def _open(self) -> None:
        if not self._may_be_there():
            self._is_there = False
            self._cancel_timers()
            self._gone()
        elif self._is_to_end:
            self._kill()

    def _kill(self) -> None:
        self._is_to_end = True
        if not self._is_there or self._killed is not None or self._pidfd is None:
            return
        self._killed = kill_all(self._pidfd, self._pid)
        if self._killed is None:
            self._cancel_timers()
            self._timers = [self._clock.call_at(after(self._clock.now(), KILL_WAIT_MS), self._kill)]

    def _exited(self) -> None:
        assert self._pidfd is not None
        self._is_there = False
        self._cancel_timers()
        self._loop.remove_reader(self._pidfd)
        _reap(self._pidfd)
        os.close(self._pidfd)
        self._look()

    def _look(self) -> None:
        killed = self._killed if self._ends_whole else None
        if killed is not None and not (killed.have_ended() and has_ended(self._pid)):
            self._clock.call_at(after(self._clock.now(), KILL_WAIT_MS), self._look)
        else:
            self._gone()

    def _cancel_timers(self) -> None:
        for each in self._timers:
            each.cancel()


class Processes:
    """This process's children: all of them are started and reaped here."""

    def __init__(
        self, clock: Clock, loop: asyncio.AbstractEventLoop, threads: ReadyThreads, spawner: Spawner | None = None
    ) -> None:
        """`spawner`: clones the programs that are to be in a control group."""
        self._clock = clock
        self._loop = loop
        self._threads = threads
        self._spawner = spawner
        self._urgent: deque[RunningProgram] = deque()
        self._background: deque[RunningProgram] = deque()
        self._beginning: set[RunningProgram] = set()
        self._trimmed: set[RunningProgram] = set()
        """Programs whose output may grow."""
        self._trim_timer: Timer | None = None
        """None: there are none of these."""
        os.umask(UMASK)
        reserve_descriptors()

    def start(self, program: Program, hooks: Hooks) -> RunningProgram:
        """Start a program; return at once. Everything else is reported through `hooks`."""
        running = RunningProgram(program, hooks, self._clock.now())
        (self._background if program.is_background else self._urgent).append(running)
        self._begin_next()
        return running

    def _begin_next(self) -> None:
        while len(self._beginning) < BEGINNING_MAX and (self._urgent or self._background):
            running = (self._urgent or self._background).popleft()
            if not running.is_cancelled:
                self._begin(running)

    def _begin(self, running: RunningProgram) -> None:
        self._beginning.add(running)
        now = self._clock.now()
        timeout = after(now, running.program.timeout_ms)
        running.timers["timeout"] = self._clock.call_at(timeout, lambda: self._end(running, Ending.TIMED_OUT))
        running.timers["exec"] = self._clock.call_at(after(now, EXEC_WAIT_MS), lambda: self._held_up(running))
        self._trimmed.add(running)
        if self._trim_timer is None:
            self._trim_timer = self._clock.call_at(after(now, TRIM_PERIOD_MS), self._trim)
        running.is_begun = True
        try:
            self._threads.do(lambda: self._start_on_thread(running))
        except RuntimeError:  # No more threads on this machine.
            self._clock.call_soon(lambda: self._not_started(running, Ending.NOT_STARTED, errno.EAGAIN))

    def _begun(self, running: RunningProgram) -> None:
        self._beginning.discard(running)
        self._begin_next()

    def _held_up(self, running: RunningProgram) -> None:
        """Let others start, whatever this one waits for; search for its process until it is found."""
        self._begun(running)
        self._find(running)
        if running.process is None and not running.is_thread_done:
            again = after(self._clock.now(), EXEC_WAIT_MS)
            running.timers["exec"] = self._clock.call_at(again, lambda: self._held_up(running))

    def kill(self, running: RunningProgram) -> None:
        """Kill the program's group now; its result is KILLED."""
        self._end(running, Ending.KILLED)

    def adopt(
        self, pid: int, start_time: int, deadline: Instant, gone: Callable[[], None], *, ends_whole: bool = False
    ) -> Callable[[], None] | None:
        """Take over a process that an earlier incarnation of this daemon started; kill it at the deadline.

        Return a function that kills it at once, with its group and descendants; `gone` is called on the main loop when
        it has ended (`ends_whole`: as for a program). None: it has ended already (a zombie that is our child is
        reaped). Where that cannot be found out, it counts as running until it can.
        """
        return _Adopted(self._clock, self._loop, pid, start_time, gone, ends_whole=ends_whole).kept_until(deadline)

    def reap_inherited(self, known: frozenset[int]) -> None:
        """After `execv`: make sure that children of the previous program, other than `known`, do not stay zombies."""
        for pid in list_pids():
            stat = read_stat(pid)
            if stat is None or stat.parent != os.getpid() or pid in known:
                continue
            if stat.is_dead or ORDER_MARK in read_marks(pid):
                self.adopt(pid, stat.start_time, Instant(2**62), lambda: None)

    # On the starting thread.

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
            with _readable(running.program.stdin) as stdin:
                pid = self._execute(running, (stdin.fileno(), stdout.descriptor, stderr.descriptor))
            self._tell_started(running, pid)
        except OSError as error:
            number = error.errno or 0
            self._post(lambda: self._not_started(running, ending, number))
            return
        except ValueError:  # A NUL, or a name that no environment can carry.
            self._post(lambda: self._not_started(running, ending, errno.EINVAL))
            return
        finally:
            running.thread_id = None
        if not running.hooks.is_permitted():
            # The exec was delayed. The child is not reaped yet, so its number is still its own.
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        self._post(lambda: self._executing(running))

    def _execute(self, running: RunningProgram, standard: tuple[int, int, int]) -> int:
        """Return the process id when the exec is done."""
        program, group = running.program, running.hooks.group()
        if group is not None and self._spawner is not None:

            def forked(pid: int, is_in_group: bool) -> None:
                if not is_in_group:
                    _enter(group, pid)
                self._tell_started(running, pid)

            with suppress(SpawnerUnusableError):
                return self._spawner.spawn(program.arguments, program.environment, standard, group, forked)
        thread_id = _thread.get_native_id()
        running.earlier = children_of(thread_id)
        running.thread_id = thread_id
        stdin, stdout, stderr = standard
        try:
            pid = spawn(program.arguments, program.environment, stdin=stdin, stdout=stdout, stderr=stderr)
        except BaseException:
            with running.telling:  # Nothing is found any more of an exec that has failed.
                running.thread_id = None
            raise
        if group is not None:
            _enter(group, pid)
        return pid

    def _tell_started(self, running: RunningProgram, pid: int) -> None:
        with running.telling:
            if running.process is not None:
                return
            try:
                pidfd = os.pidfd_open(pid)
            except OSError:  # Without it the end would not be detected: better no start.
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise
            self._tell(running, pid, pidfd)

    # On a thread that searches for the process of a stuck exec.

    def _find_on_thread(self, running: RunningProgram, thread_id: int) -> None:
        with running.telling, suppress(OSError):
            pid = started_by(thread_id, running.earlier)
            if pid is None or running.process is not None:
                return
            pidfd = os.pidfd_open(pid)
            # If the exec failed in between, the number may be another's by now, and the thread may start another one.
            if started_by(thread_id, running.earlier) == pid and running.thread_id is not None:
                self._tell(running, pid, pidfd)
            else:
                os.close(pidfd)

    # On either thread.

    def _tell(self, running: RunningProgram, pid: int, pidfd: int) -> None:
        running.process = StartedProcess(pid, pidfd, self._clock.now())
        process = running.process
        if (running.is_cancelled or not running.hooks.is_permitted()) and kill_all(pidfd, pid) is None:
            # It has been stopped: its exec, for which the starting thread waits, ends only when it is killed.
            self._post(lambda: self._kill(running, process))
        _restore_defaults(pid)
        stat = read_stat(pid)
        with suppress(OSError):
            running.hooks.forked(pid, stat.start_time if stat else 0)

    def _post(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(call)

    # On the main loop.

    def _executing(self, running: RunningProgram) -> None:
        process = running.process
        assert process is not None
        running.is_executing = running.is_thread_done = True
        self._begun(running)
        self._loop.add_reader(process.pidfd, lambda: self._exited(running, process))
        if running.is_cancelled and running.killed is None and running.kill_timer is None:
            self._kill(running, process)

    def _not_started(self, running: RunningProgram, ending: Ending, number: int) -> None:
        running.is_thread_done = True
        self._begun(running)
        if running.kill_timer is not None:
            running.kill_timer.cancel()
        self._deliver(running, ending, number)
        self._release(running)

    def _exited(self, running: RunningProgram, process: StartedProcess) -> None:
        self._loop.remove_reader(process.pidfd)
        if running.kill_timer is not None:
            running.kill_timer.cancel()
        # Before it is reaped: until then the number of its group belongs to no other.
        if running.program.ends_with_group:
            kill_group(process.pid)
        elif running.program.ends_whole and running.killed is None and _was_killed(process.pidfd):
            kill_group(process.pid)
            running.killed = Killed([])
        info = os.waitid(os.P_PIDFD, process.pidfd, os.WEXITED)
        number = info.si_status if info is not None else 0
        ending = Ending.EXITED if info is not None and info.si_code == os.CLD_EXITED else Ending.SIGNALLED
        if running.program.ends_with_group or running.killed is not None:
            self._look_at_group(running, ending, number, self._clock.now())
        else:
            self._deliver(running, ending, number)
            self._release(running)

    def _look_at_group(self, running: RunningProgram, ending: Ending, number: int, killed_at: Instant) -> None:
        """Deliver the result when nothing of the group is left, or what is left outlives its kill."""
        assert running.pid is not None
        now = self._clock.now()
        is_over = has_ended(running.pid) and (running.killed is None or running.killed.have_ended())
        if is_over or elapsed_ms(killed_at, now) >= KILL_WAIT_MS:
            self._deliver(running, ending, number, still_alive=not is_over)
        if is_over:
            self._release(running)
            return
        pause_ms = KILL_WAIT_MS if running.is_delivered else GROUP_PAUSE_MS
        self._clock.call_at(after(now, pause_ms), lambda: self._look_at_group(running, ending, number, killed_at))

    def _end(self, running: RunningProgram, ending: Ending) -> None:
        if running.is_cancelled or running.is_delivered:
            return
        running.is_cancelled = True
        running.forced = ending
        if not running.is_begun:
            self._clock.call_soon(lambda: self._not_started(running, ending, 0))
            return
        if running.process is not None:
            self._kill(running, running.process)
        self._find(running)
        killed_by = after(self._clock.now(), KILL_WAIT_MS)
        running.timers["kill"] = self._clock.call_at(killed_by, lambda: self._give_up(running, ending))

    def _kill(self, running: RunningProgram, process: StartedProcess) -> None:
        """Kill it, or try again after a pause; to be called before its end is noticed, which ends that."""
        if running.kill_timer is not None:
            running.kill_timer.cancel()
        killed = kill_all(process.pidfd, process.pid)
        if killed is None:
            again = after(self._clock.now(), KILL_WAIT_MS)
            running.kill_timer = self._clock.call_at(again, lambda: self._kill(running, process))
        elif running.program.ends_whole:
            running.killed = killed

    def _give_up(self, running: RunningProgram, ending: Ending) -> None:
        self._find(running)
        self._deliver(running, ending, 0, still_alive=True)

    def _find(self, running: RunningProgram) -> None:
        """Search for the process of an exec that takes long, so that it can be recorded and killed."""
        thread_id = running.thread_id
        if thread_id is not None and running.process is None:
            with suppress(RuntimeError):  # No more threads on this machine: it is found when the exec is done.
                self._threads.do(lambda: self._find_on_thread(running, thread_id))

    def _deliver(self, running: RunningProgram, ending: Ending, number: int, *, still_alive: bool = False) -> None:
        if running.is_delivered:
            return
        running.is_delivered = True
        self._trimmed.discard(running)
        for timer in running.timers.values():
            timer.cancel()
        now = self._clock.now()
        begun = running.process.forked_at if running.process is not None else now
        # While the starting thread may still pass the files to a child, they stay open, and unread.
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
        if running.process is not None:
            os.close(running.process.pidfd)
        _finish_outputs(running)
        running.hooks.gone()

    def _trim(self) -> None:
        self._trim_timer = None
        for running in self._trimmed:
            for output in running.outputs or ():
                output.trim()
        if self._trimmed:
            self._trim_timer = self._clock.call_at(after(self._clock.now(), TRIM_PERIOD_MS), self._trim)


def _enter(group: Path, pid: int) -> None:
    """Move a process, and what it starts from now on, into a control group; on failure it stays outside."""
    with suppress(OSError):
        (group / "cgroup.procs").write_text(str(pid))


def _readable(data: bytes) -> FileIO:
    """Return the standard input of a program: a file with the data, or the null device."""
    if not data:
        return open(os.devnull, "rb", buffering=0)
    with open(os.memfd_create("stdin"), "w+b", buffering=0) as memory:
        memory.write(data)
        return open(f"/proc/self/fd/{memory.fileno()}", "rb", buffering=0)


def _finish_outputs(running: RunningProgram) -> tuple[str, str]:
    if running.outputs is None:
        return "", ""
    stdout, stderr = running.outputs
    running.outputs = None
    return stdout.finish(), stderr.finish()


def _was_killed(pidfd: int) -> bool:
    """Return whether a child that has ended, and is not reaped, got a deadly signal: what it had begun may continue."""
    info = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
    return info is not None and info.si_code != os.CLD_EXITED


def _running(pid: int, start_time: int) -> int | None:
    """Return a descriptor of a process that runs; a zombie that is our child is reaped.

    Raises OSError when it cannot be found out whether it runs. If the number is a thread's by now, it cannot be opened
    either, and its start time says that the process has ended.
    """
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    except OSError:
        if _is_that(look_at(pid), start_time):
            raise
        return None
    try:
        stat = look_at(pid)
    except OSError:
        os.close(pidfd)
        raise
    if _is_that(stat, start_time):
        assert stat is not None
        if not stat.is_dead:
            return pidfd
        _reap(pidfd)
    os.close(pidfd)
    return None


def _is_that(stat: ProcessStat | None, start_time: int) -> bool:
    return stat is not None and stat.start_time == start_time


def _reap(pidfd: int) -> None:
    with suppress(ChildProcessError):  # Not our child: its parent reaps it.
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)


def _restore_defaults(pid: int) -> None:
    """Reset, in a new child, this daemon's own settings: protection from the OOM killer, scheduling, niceness."""
    with suppress(OSError):
        if os.sched_getscheduler(pid) != os.SCHED_OTHER:
            os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
        if os.getpriority(os.PRIO_PROCESS, pid) != 0:
            os.setpriority(os.PRIO_PROCESS, pid, 0)
    adjustment = f"/proc/{pid}/oom_score_adj"
    if read_file(adjustment).strip() not in {b"", b"0"}:
        with suppress(OSError):
            Path(adjustment).write_text("0")


class CapturedOutput:
    """One output stream of one program; keeps at most `limit` bytes, the beginning and the end.

    It is a memory file, whose middle is dropped while the program runs: endless output costs no memory. After `finish`
    it is sealed: a service that inherited it can neither make it grow nor be killed by it (its writes fail with EPERM).
    """

    def __init__(self, name: str, limit: int) -> None:
        self._half = limit // 2
        self._head = b""
        self._tail = b""
        self._dropped = 0
        self.descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        """What the program writes to. It appends: `> /dev/stderr` in an agent truncates the file while others write."""
        fcntl.fcntl(self.descriptor, fcntl.F_SETFL, os.O_APPEND)

    def trim(self) -> None:
        """Drop the middle of what was written so far from the memory file, once there is more than is kept."""
        if os.fstat(self.descriptor).st_size > 2 * self._half:
            self._take()
            os.ftruncate(self.descriptor, 0)

    def finish(self) -> str:
        """Return what is kept, with a line in place of what was dropped, and close the file. Call once."""
        self._take()
        os.ftruncate(self.descriptor, 0)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        os.close(self.descriptor)
        note = f"\n[{self._dropped} bytes left out]\n".encode() if self._dropped else b""
        return (self._head + note + self._tail).decode("utf-8", "replace")

    def _take(self) -> None:
        size = os.fstat(self.descriptor).st_size
        take = min(size, self._half - len(self._head))
        self._head += os.pread(self.descriptor, take, 0)
        rest = size - take
        keep = min(rest, self._half)
        tail = self._tail + os.pread(self.descriptor, keep, size - keep)
        self._dropped += rest - keep + max(0, len(tail) - self._half)
        self._tail = tail[-self._half :] if tail else b""
