"""A whole terminal for a while: keys from it, lines to it, and everything as it was afterwards.

Made of curses, which knows what terminals can do and writes only what differs from what they show. Entering raises
`NoTerminalError` where there is none that it can use; whatever ends the block, the terminal is given back.
"""

import curses
import locale
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

from haclusterd.cli.live.picture import Size
from haclusterd.cli.render.lines import spans

USUAL = Size(80, 24)
"""Of a terminal that does not say."""
_ESCAPE_MS = 25
"""After which an ESC is the key, and not the beginning of another one."""
_KEYS = {
    curses.KEY_UP: "up", curses.KEY_DOWN: "down", curses.KEY_PPAGE: "pageup", curses.KEY_NPAGE: "pagedown",
    curses.KEY_HOME: "home", curses.KEY_END: "end", curses.KEY_ENTER: "enter", curses.KEY_BACKSPACE: "backspace",
}  # fmt: skip
_CHARACTERS = {"\n": "enter", "\r": "enter", "\x1b": "escape", "\x7f": "backspace", "\b": "backspace", "\x03": "q"}
_PLAIN_SGR = {"1": curses.A_BOLD, "2": curses.A_DIM, "7": curses.A_REVERSE}
_COLOURS = range(31, 38)


class NoTerminalError(Exception):
    """There is no terminal that can show a picture."""


class WholeTerminal:
    """The terminal of this process's standard streams."""

    def __init__(self, *, has_colour: bool) -> None:
        """`has_colour`: whether colours are wanted, where it has some."""
        self._is_coloured = has_colour
        self._window: curses.window | None = None
        self._encoding = "ascii"
        self._has_colours = False

    def __enter__(self) -> "WholeTerminal":
        with suppress(locale.Error):
            locale.setlocale(locale.LC_CTYPE, "")
        self._encoding = locale.nl_langinfo(locale.CODESET) or "ascii"
        try:
            # curses ends the process where it does not know the terminal; this says so.
            curses.setupterm()
            if curses.tigetstr("cup") is None:
                raise NoTerminalError
        except curses.error as error:
            raise NoTerminalError from error
        window = curses.initscr()
        self._window = window
        try:
            self._prepare(window)
        except BaseException:
            self._leave()
            raise
        return self

    def _prepare(self, window: curses.window) -> None:
        curses.noecho()
        curses.cbreak()
        curses.set_escdelay(_ESCAPE_MS)
        window.keypad(True)  # noqa: FBT003 - curses takes no names
        window.nodelay(True)  # noqa: FBT003 - likewise
        with suppress(curses.error):
            curses.curs_set(0)
        if self._is_coloured:
            with suppress(curses.error):
                self._take_colours()
        self.fit()

    def _take_colours(self) -> None:
        curses.start_color()
        curses.use_default_colors()
        for code in _COLOURS:
            curses.init_pair(code, code - 30, -1)
        self._has_colours = curses.has_colors()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._window = None
        # A terminal that has gone away cannot be written to.
        with suppress(curses.error, OSError):
            curses.curs_set(1)
        with suppress(curses.error, OSError):
            curses.endwin()

    @property
    def size(self) -> Size:
        """How large it is now."""
        try:
            found = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return USUAL
        return Size(found.columns or USUAL.columns, found.lines or USUAL.rows)

    def fit(self) -> None:
        """Take the terminal's size over, and draw everything the next time."""
        size = self.size
        with suppress(curses.error):
            curses.resizeterm(size.rows, size.columns)
        if self._window is not None:
            self._window.clear()

    def keys(self) -> list[str]:
        """Return the keys that were pressed: characters, or names as `up`; raises OSError when it has gone away."""
        assert self._window is not None
        found: list[str] = []
        while True:
            try:
                key = self._window.get_wch()
            except curses.error:
                if not found:
                    os.get_terminal_size(sys.stdin.fileno())
                return found
            name = _KEYS.get(key, "") if isinstance(key, int) else _CHARACTERS.get(key, key)
            found += [name] if name else []

    def show(self, lines: Sequence[str]) -> None:
        """Show lines from the top; what is painted needs colours."""
        assert self._window is not None
        self._window.erase()
        for number, line in enumerate(lines):
            # What does not fit any more after the terminal became smaller is not written.
            with suppress(curses.error):
                self._write(number, line)
        self._window.refresh()

    def _write(self, number: int, line: str) -> None:
        assert self._window is not None
        self._window.move(number, 0)
        for text, codes in spans(line):
            self._window.addstr(text.encode(self._encoding, "replace").decode(self._encoding), self._attributes(codes))

    def _attributes(self, codes: str) -> int:
        found = 0
        for code in codes.split(";"):
            found |= _PLAIN_SGR.get(code, 0)
            if self._has_colours and code.isdigit() and int(code) in _COLOURS:
                found |= curses.color_pair(int(code))
        return found


