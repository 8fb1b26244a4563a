"""What a terminal shows: colours, columns, times and spans in words."""

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo
from enum import Enum

from haclusterd.model.records import dataclass

WIDTH = 80
_STEERING = re.compile(r"\x1b(?!\[[\d;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")
"""What moves a terminal's cursor, or worse; not colours, tabs and the ends of lines."""


class Colour(Enum):
    """SGR codes; meaning is never in the colour alone."""

    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    CYAN = "36"
    BAD = "1;31"
    GOOD = "1;32"
    WARN = "1;33"
    CHOSEN = "7"


@dataclass(frozen=True, slots=True)
class Screen:
    """How to write for the reader."""

    has_colour: bool = False
    zone: tzinfo | None = None
    """None: this machine's."""
    scheme: tuple[str, ...] = ("33", "0", "36", "31", "32", "35")
    """SGR codes of keywords, ids, names, values, scores and references in a configuration."""
    terminal_columns: int = 0
    """Of the terminal that is written to; 0: it is none, and a line may be as long as it is."""

    @property
    def width(self) -> int:
        """The columns into which texts are folded."""
        return min(WIDTH, self.terminal_columns or WIDTH)

    def paint(self, text: str, colour: Colour | None) -> str:
        """Colour a text, if there are colours."""
        if not self.has_colour or colour is None or not text:
            return text
        return f"\x1b[{colour.value}m{text}\x1b[0m"

    def paint_as(self, text: str, part: int) -> str:
        """Colour a part of a configuration, by its place in the scheme."""
        code = self.scheme[part]
        return f"\x1b[{code}m{text}\x1b[0m" if self.has_colour and code != "0" and text else text

    def clock(self, at_ms: int, now_ms: int) -> str:
        """Write a moment: the time of day, with the date when it was another day."""
        if not at_ms:
            return "never"
        at = datetime.fromtimestamp(at_ms / 1000, self.zone)
        now = datetime.fromtimestamp(now_ms / 1000, self.zone)
        return at.strftime("%H:%M:%S" if at.date() == now.date() else "%Y-%m-%d %H:%M:%S")


def harmless(text: str) -> str:
    """Write what would steer a terminal as `?`: what agents and users wrote is shown to others."""
    return _STEERING.sub("?", text)


def ago(at_ms: int, now_ms: int) -> str:
    """Write how long ago something was."""
    if at_ms and now_ms - at_ms < 1000:
        return "just now"
    return f"{span(now_ms - at_ms)} ago" if at_ms else "never"


def span(span_ms: int) -> str:
    """Write a span in the unit that a person would use."""
    if span_ms < 10_000:
        return f"{span_ms} ms" if span_ms < 1000 else f"{span_ms / 1000:.1f} s"
    seconds = span_ms // 1000
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    text: str
    colour: Colour | None = None


def columns(screen: Screen, rows: Sequence[Sequence[Cell | str]], *, indent: int = 0, gap: int = 2) -> list[str]:
    """Write rows in aligned columns; the last one is as wide as it is."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    count = max((len(row) for row in cells), default=0)
    widths = [max((len(row[n].text) for row in cells if len(row) > n + 1), default=0) for n in range(count)]
    lines = []
    for row in cells:
        line = " " * indent
        for n, cell in enumerate(row):
            is_last = n == len(row) - 1
            padding = "" if is_last else " " * (widths[n] - len(cell.text) + gap)
            line += screen.paint(cell.text, cell.colour) + padding
        lines.append(line.rstrip())
    return lines


def folded(text: str, *, width: int = WIDTH, indent: str = "", later: str | None = None) -> list[str]:
    """Break a text into lines at spaces; a word longer than a line stays whole."""
    lines: list[str] = []
    start = indent
    line = ""
    for word in text.split():
        if line and len(start) + len(line) + 1 + len(word) > width:
            lines.append(start + line)
            start, line = indent if later is None else later, word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, start + line] if line else lines
