"""A child process of the watcher that answers in lines of JSON, and may hang.

It is started without a wait, read without a wait, and its end is waited for a bounded time only. Lighter than
`subprocess`, because the watcher runs on every node with a GPU for as long as the node does.
"""

from __future__ import annotations

import json
import os
import signal
import time

from haclusterd.agents.process_table import is_running, read_stat

TYPE_CHECKING = False  # As typing says it; importing that takes half a megabyte.
if TYPE_CHECKING:
    from typing import Any

TERM_WAIT_S = 0.5
KILL_WAIT_S = 0.5
PAUSE_S = 0.01
LINE_MAX = 1 << 20
NEVER = float("inf")


class Child:
    """One life of a child."""

    def __init__(self, kind: str, command: list[str]) -> None:
        """Raises OSError where it cannot be started."""
        self.kind = kind
        self.at = "start"
        self.since = 0.0
        self.deadline = NEVER
        self.is_over = False
        self.last_words = ""
        """The last line of its standard error, when it has ended."""
        self._rest = b""
        self._status: int | None = None
        theirs_in, self._input = os.pipe2(os.O_CLOEXEC)
        self.descriptor, theirs_out = os.pipe2(os.O_CLOEXEC)
        self._errors = os.memfd_create("stderr", os.MFD_CLOEXEC)
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs_in, 0), (os.POSIX_SPAWN_DUP2, theirs_out, 1),
            (os.POSIX_SPAWN_DUP2, self._errors, 2),
        ]  # fmt: skip
        try:
            self.pid = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
        except OSError:
            self._close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._input, False)
        found = read_stat(self.pid)
        self._start_time = found.start_time if found is not None else 0

    def send(self, question: dict[str, Any]) -> None:
        """Ask; a child that takes nothing any more is late, and is ended for that."""
        try:
            os.write(self._input, json.dumps(question).encode() + b"\n")
        except (BlockingIOError, BrokenPipeError):
            self.at = "start"

    def expect(self, at: str, deadline: float) -> None:
        """Note what it is at, and until when a line has to come."""
        self.at = at
        self.since = time.monotonic()
        self.deadline = deadline

    def rest(self) -> None:
        """Note that nothing is expected of it."""
        self.deadline = NEVER

    def read(self) -> list[dict[str, Any]]:
        """Return what it has written; `is_over` is set when it has closed its output."""
        found: list[dict[str, Any]] = []
        try:
            data = os.read(self.descriptor, 65536)
        except BlockingIOError:
            return found
        if not data:
            self.is_over = True
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_MAX:
            self.is_over = True
        for line in lines:
            try:
                found.append(json.loads(line))
            except ValueError:
                self.is_over = True
        return found

    def reap(self) -> int:
        """Return its exit status (negative: the signal) after it has closed its output; kill it where it lives on."""
        self.end()
        return self._status if self._status is not None else -signal.SIGKILL

    def end(self) -> bool:
        """End it within a second; tell whether it is gone."""
        self._close()
        if self.is_over and self._wait(TERM_WAIT_S):
            return True
        for number, wait_s in ((signal.SIGTERM, TERM_WAIT_S), (signal.SIGKILL, KILL_WAIT_S)):
            if self._status is None:
                os.kill(self.pid, number)
            if self._wait(wait_s):
                return True
        return False

    def is_gone(self) -> bool:
        """Tell whether a child that could not be killed has ended after all."""
        return self._wait(0.0) or not is_running(self.pid, self._start_time)

    def _wait(self, wait_s: float) -> bool:
        deadline = time.monotonic() + wait_s
        while self._status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self._status = 0
                break
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= deadline:
                return False
            else:
                time.sleep(PAUSE_S)
        return True

    def _close(self) -> None:
        if self._errors >= 0:
            size = os.fstat(self._errors).st_size
            text = os.pread(self._errors, 2000, max(0, size - 2000)).decode("utf-8", "replace").strip()
            self.last_words = text.split("\n")[-1][:300]
            os.close(self._errors)
            self._errors = -1
        for name in ("_input", "descriptor"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)
