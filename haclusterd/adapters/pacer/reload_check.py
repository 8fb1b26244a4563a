"""Asks the program that is installed now whether it can be executed, before the pacer executes it in its place.

The pacer never waits for the answer: its loop looks for it. What does not answer in time is killed, and the running
program continues; the next reload asks again.
"""

import os
import selectors
import signal
from collections.abc import Callable
from typing import Final

from haclusterd.model.instants import Instant, after

TIMEOUT_MS: Final = 60_000


class ReloadCheck:
    """At most one question at a time."""

    def __init__(self, selector: selectors.BaseSelector, answered: Callable[[str], None]) -> None:
        """`answered` is called with an objection; empty: the program can be executed."""
        self._selector = selector
        self._answered = answered
        self._descriptor = -1
        """Of the process that was asked; -1: there is none."""
        self._deadline: Instant | None = None
        """None: what was asked is killed, if it is there."""
        self._command = ""

    def ask(self, command: list[str], now: Instant) -> None:
        """Begin to ask, unless it is asked already."""
        if self._descriptor >= 0:
            return
        try:
            pid = os.posix_spawn(command[0], command, os.environ)
            self._descriptor = os.pidfd_open(pid)
        except OSError as error:
            self._answered(f"{command[0]}: {error}")
            return
        self._deadline, self._command = after(now, TIMEOUT_MS), " ".join(command)
        self._selector.register(self._descriptor, selectors.EVENT_READ, self._ended)

    def step(self, now: Instant) -> None:
        """Give up what has not answered in time. To be called every second or so."""
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
            self._answered(f"{self._command} did not answer within {TIMEOUT_MS // 1000} s")

    def _ended(self) -> None:
        self._selector.unregister(self._descriptor)
        result = os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED)
        os.close(self._descriptor)
        is_in_time, self._deadline, self._descriptor = self._deadline is not None, None, -1
        if not is_in_time or result is None:
            return
        how = "ends with" if result.si_code == os.CLD_EXITED else "is ended by signal"
        self._answered(f"the one that is installed now {how} {result.si_status}" if result.si_status else "")
