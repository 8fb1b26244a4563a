"""Lines that are painted with SGR sequences: how wide they are on a terminal, and cutting and folding them to a width.

Nothing but colours passes: any other control character would steer the terminal, and stands for itself as `?`.
"""

import re
import unicodedata
from collections.abc import Iterator

_SEQUENCE = re.compile(r"\x1b\[([\d;]*)m")
PLAIN = "0"


def spans(line: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a line, each with the SGR codes that it is painted with; `0` for none."""
    codes, end = PLAIN, 0
    for found in _SEQUENCE.finditer(line):
        if found.start() > end:
            yield _harmless(line[end : found.start()]), codes
        codes, end = found[1] or PLAIN, found.end()
    if end < len(line):
        yield _harmless(line[end:]), codes


def plain(line: str) -> str:
    """Return a line without its colours."""
    return "".join(text for text, _ in spans(line))


def width_of(line: str) -> int:
    """Return how many columns a line takes."""
    return sum(_columns(char) for char in plain(line))


def cut(line: str, width: int) -> str:
    """Return as much of a line as fits into a width."""
    if width_of(line) <= width:
        return _painted(spans(line))
    kept: list[tuple[str, str]] = []
    left = width
    for text, codes in spans(line):
        fitting = ""
        for char in text:
            left -= _columns(char)
            if left < 0:
                return _painted([*kept, (fitting, codes)])
            fitting += char
        kept.append((fitting, codes))
    return _painted(kept)


def folded(line: str, width: int) -> list[str]:
    """Return a line as lines that fit into a width, broken at spaces; what continues is indented like the line."""
    if width_of(line) <= width:
        return [_painted(spans(line))]
    characters = [(char, codes) for text, codes in spans(line) for char in text]
    indent = len(characters) - len("".join(char for char, _ in characters).lstrip())
    start = [(" ", PLAIN)] * min(indent + 2, width // 3)
    lines: list[list[tuple[str, str]]] = []
    while characters:
        fits = _fitting(characters, width)
        first = next((n for n, (char, _) in enumerate(characters) if char != " "), 0)
        if fits < len(characters):
            space = next((n for n in range(fits, first, -1) if characters[n][0] == " "), 0)
            fits = space or fits
        end = fits
        while fits < len(characters) and end > first + 1 and characters[end - 1][0] == " ":
            end -= 1
        lines.append(characters[:end])
        rest = characters[fits:]
        while rest and rest[0][0] == " ":
            rest = rest[1:]
        characters = [*start, *rest] if rest else []
    return [_painted(each) for each in lines]


def _fitting(characters: list[tuple[str, str]], width: int) -> int:
    """Return how many characters fit; at least the next one that is no space, or nothing would ever be said."""
    taken = 0
    for number, (char, _) in enumerate(characters):
        taken += _columns(char)
        is_first = all(each == " " for each, _ in characters[:number])
        if taken > width and not is_first:
            return number
    return len(characters)


def _painted(parts: "Iterator[tuple[str, str]] | list[tuple[str, str]]") -> str:
    line, now = "", PLAIN
    for text, codes in parts:
        if not text:
            continue
        if codes != now:
            line += ("\x1b[0m" if now != PLAIN else "") + (f"\x1b[{codes}m" if codes != PLAIN else "")
            now = codes
        line += text
    return line + ("\x1b[0m" if now != PLAIN else "")


def _harmless(text: str) -> str:
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def _columns(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
