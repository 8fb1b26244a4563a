"""`crm monitor` on a pseudo-terminal, and somebody who looks at the screen and types."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.emulated_terminal import EmulatedTerminal

MONITOR = (sys.executable, "-m", "haclusterd.entry_points.crm", "monitor")
WAIT_S_MAX = 30.0
PICTURE_S = 0.05
"""After so long without a byte a picture is whole: two are 0.2 s apart."""


class WatchedTerminal:
    """A terminal with `crm monitor` in it."""

    def __init__(
        self, socket: Path, columns: int = 80, rows: int = 24, *, environment: Mapping[str, str],
        command: Sequence[str] = MONITOR,
    ) -> None:  # fmt: skip
        self.controller, self.terminal = pty.openpty()
        self.screen = EmulatedTerminal(columns, rows)
        self._set_size(columns, rows)
        self.before = termios.tcgetattr(self.terminal)
        self.written = ""
        self.process = subprocess.Popen(
            command, stdin=self.terminal, stdout=self.terminal, stderr=self.terminal, cwd=Path(__file__).parents[2],
            env={"PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8", "HACLUSTERD_SOCKET": str(socket),
                 **environment},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - this test has one thread
        )  # fmt: skip

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(columns, rows)
        self._set_size(columns, rows)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.controller, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.controller, text.encode())

    def until(self, what: str, condition: Callable[[list[str]], Any], wait_s_max: float = WAIT_S_MAX) -> list[str]:
        """Look at the screen until it is as wanted, and drawn to its end; return its lines."""
        deadline = time.monotonic() + wait_s_max
        while not condition(self.screen.lines()) or self.read(PICTURE_S):
            left = deadline - time.monotonic()
            shown = "\n".join(self.screen.lines())
            assert left > 0, f"waited in vain for {what}; shown is\n{shown}"
            assert self.read(min(left, 0.1)) or self.process.poll() is None, f"it ended before {what}:\n{shown}"
        return self.screen.lines()

    def shows(self, text: str, wait_s_max: float = WAIT_S_MAX) -> list[str]:
        """Look at the screen until a text is on it; return its lines."""
        return self.until(repr(text), lambda lines: any(text in line for line in lines), wait_s_max)

    def read(self, wait_s: float) -> bool:
        """Take over what is written within a time; say whether there was something."""
        ready, _, _ = select.select([self.controller], [], [], wait_s)
        if not ready:
            return False
        text = os.read(self.controller, 65536).decode()
        self.written += text
        self.screen.feed(text)
        return True

    def ended(self) -> int:
        """Wait for its end; return the exit status."""
        deadline = time.monotonic() + WAIT_S_MAX
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "it does not end"
            self.read(0.1)
        while self.read(0.1):
            pass
        return self.process.returncode

    def is_as_before(self) -> bool:
        """Tell whether the terminal is in the state in which it was before, and not on the other screen."""
        return termios.tcgetattr(self.terminal) == self.before and not self.screen.is_alternate

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for each in (self.controller, self.terminal):
            os.close(each)
