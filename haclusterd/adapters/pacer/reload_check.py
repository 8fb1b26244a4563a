"""Asks the program that is installed now whether it can be executed, before the pacer executes it in its place.

The pacer never waits for the answer: its loop looks for it. What does not answer in time is killed, and the running
program continues; the next reload asks again. It is forked, since vfork and `posix_spawn` return when the exec is done:
a disk that does not answer would hold the heartbeats back.
"""

import os
import selectors
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from haclusterd.model.instants import Instant, after

TIMEOUT_MS: Final = 60_000
REASON_BYTES: Final = 500
"""Of what the exec says when it fails; a pipe takes it without waiting."""


class ReloadCheck:
    """At most one question at a time."""

    def __init__(self, selector: selectors.BaseSelector, answered: Callable[[str], None]) -> None:
        """`answered` is called with an objection; empty: the program can be executed."""
        self._selector = selector
        self._answered = answered
        self._descriptor = -1
        """Of the process that was asked; -1: there is none."""
        self._reason = -1
        """What it writes here when its exec fails."""
        self._deadline: Instant | None = None
        """None: what was asked is killed, if it is there."""
        self._command = ""
        self._killed: list[int] = []
        """Process ids of children without a descriptor, killed and not reaped yet."""

    def ask(self, command: list[str], now: Instant) -> None:
        """Begin to ask, unless it is asked already."""
        if self._descriptor >= 0:
            if self._deadline is None:
                self._answered(f"{self._command} was killed and has not ended yet")
            return
        try:
            self._begin(command)
        except OSError as error:
            self._answered(f"{command[0]}: {error}")
            return
        self._deadline, self._command = after(now, TIMEOUT_MS), " ".join(command)

    def _begin(self, command: list[str]) -> None:
        """Raises OSError; then nothing was begun, or it is killed."""
        reason, said = os.pipe()
        pid = descriptor = -1
        try:
            pid = os.fork()
            if pid == 0:
                _execute(command, said)
            descriptor = os.pidfd_open(pid)
            self._selector.register(descriptor, selectors.EVENT_READ, self._ended)
        except OSError:
            if pid > 0:  # Its end would not be noticed.
                os.kill(pid, signal.SIGKILL)
                self._killed.append(pid)
            for each in (reason, descriptor):
                if each >= 0:
                    os.close(each)
            raise
        finally:
            os.close(said)
        self._descriptor, self._reason = descriptor, reason

    def step(self, now: Instant) -> None:
        """Give up what has not answered in time. To be called every second or so."""
        self._killed = [pid for pid in self._killed if not os.waitpid(pid, os.WNOHANG)[0]]
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
            self._answered(f"{self._command} did not answer within {TIMEOUT_MS // 1000} s")

    def _ended(self) -> None:
        self._selector.unregister(self._descriptor)
        result = os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED)
        os.close(self._descriptor)
        with open(self._reason, "rb") as pipe:
            reason = pipe.read(REASON_BYTES).decode(errors="replace")
        is_in_time, self._deadline, self._descriptor = self._deadline is not None, None, -1
        if not is_in_time or result is None:
            return
        how = "ends with" if result.si_code == os.CLD_EXITED else "is ended by signal"
        objection = reason or f"the one that is installed now {how} {result.si_status}"
        self._answered(objection if result.si_status else "")


def _execute(command: list[str], said: int) -> NoReturn:
    """Become the program that is asked; say why not. The process that asks has one thread, so nothing is held here."""
    try:
        signal.set_wakeup_fd(-1)
        os.execv(command[0], command)
    except BaseException as error:  # noqa: BLE001 (nothing of the pacer may run on in the child)
        with suppress(OSError):
            os.write(said, f"{command[0]}: {error}".encode()[:REASON_BYTES])
    os._exit(1)
