"""A program in tmux, somebody who types at it, and what its screen shows."""

import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

WAIT_S_MAX = 30.0
ROOT = Path(__file__).parents[1]


class Screen:
    """A program on a terminal of so many columns and lines."""

    def __init__(
        self, place: Path, command: Sequence[str], environment: Mapping[str, str], columns: int = 80, lines: int = 24
    ) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed")
        self._socket = place / "tmux"
        program = f"trap : INT; {shlex.join(command)}; echo \"ended with $?\"; trap '' INT; exec tail -f /dev/null"
        subprocess.run(
            ["tmux", "-u", "-S", str(self._socket), "-f", "/dev/null", "new-session", "-d", "-x", str(columns),
             "-y", str(lines), "-c", str(ROOT), program],
            env=dict(environment), check=True, timeout=WAIT_S_MAX,
        )  # fmt: skip

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *words], capture_output=True, text=True, check=True, timeout=WAIT_S_MAX
        )
        return done.stdout

    def type(self, text: str) -> None:
        """Type characters as they are."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys by their names in tmux: Enter, Tab, C-c, Up."""
        self._tmux("send-keys", *keys)

    def shown(self, *, has_colour: bool = False) -> str:
        """Return the lines of the screen, without the empty ones at its end."""
        lines = self._tmux("capture-pane", "-p", *(["-e"] if has_colour else [])).splitlines()
        return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"

    def until(self, is_wanted: Callable[[str], bool]) -> str:
        """Wait until the screen is as wanted; return it as it is then, or at the end of patience."""
        deadline = time.monotonic() + WAIT_S_MAX
        while True:
            screen = self.shown()
            if is_wanted(screen) or time.monotonic() >= deadline:
                return screen

    def settled(self, unchanged_s: float = 3.0) -> str:
        """Wait until something is there and nothing has changed for so long; return the screen."""
        before, since = self.until(lambda screen: bool(screen.strip())), time.monotonic()
        while time.monotonic() - since < unchanged_s:
            screen = self.shown()
            if screen != before:
                before, since = screen, time.monotonic()
        return before

    def close(self) -> None:
        """End tmux and what runs in it."""
        self._tmux("kill-server")
