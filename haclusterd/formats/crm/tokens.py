"""The crm language's lines and tokens (cli.md §4.1): continuation, comments, quotes; every token knows its place.

A statement is a physical line, or several joined by a backslash at the end of a line. A line whose first character is
`#` is a comment and belongs to the statement below it, also in the middle of a continued statement. Nothing here knows
a keyword, and no text makes it raise.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from haclusterd.model.records import dataclass, field
from haclusterd.reports.codes import Code
from haclusterd.reports.items import Place, ReportItem, report

MAX_TEXT_CHARACTERS = 4_000_000

_SPACE = " \t\r\f\v"
_GAP = re.compile(r"[ \t\r\f\v]+")
_PIECE = re.compile(
    r"""'(?P<literal>[^']*)'|"(?P<escaped>(?:[^"\\]|\\.)*)"|\\(?P<char>.)|(?P<plain>[^ \t\r\f\v'"\\]+)"""
)
_ESCAPE = re.compile(r'\\(["\\])')
_NEEDS_QUOTES = re.compile(r"[^A-Za-z0-9_.,:;/@%+~^*=!&|#<>?$(){}\[\]-]")


@dataclass(frozen=True, slots=True)
class Token:
    """One word, without its quotes."""

    text: str
    place: Place
    is_quoted: bool = False
    """It begins with a quote: such a word is never a keyword."""


@dataclass(frozen=True, slots=True)
class Line:
    """One statement's tokens (at least one) and the comment lines above it."""

    tokens: tuple[Token, ...]
    comments: tuple[str, ...] = ()
    text: str = ""
    """As it was written, joined."""

    @property
    def place(self) -> Place:
        """Where it begins."""
        return self.tokens[0].place


@dataclass(slots=True)
class _Joined:
    """A statement being joined from physical lines; `starts` says where in `text` each of them begins."""

    text: str = ""
    starts: list[int] = field(default_factory=list)
    origins: list[tuple[int, int]] = field(default_factory=list)
    """Line and column of each start."""

    def add(self, text: str, line: int, column: int) -> None:
        self.starts.append(len(self.text))
        self.origins.append((line, column))
        self.text += text

    def place(self, file: str, offset: int) -> Place:
        index = bisect_right(self.starts, offset) - 1
        line, column = self.origins[index]
        return Place(file, line, column + offset - self.starts[index])


def read_lines(text: str, file: str) -> tuple[tuple[Line, ...], tuple[ReportItem, ...]]:
    """Split a text into statements; a statement with an unclosed quote is reported and left out."""
    if len(text) > MAX_TEXT_CHARACTERS:
        limit = f"{MAX_TEXT_CHARACTERS} characters"
        return (), (report(Code.TOO_LARGE, place=Place(file, 1), what="the text", limit=limit),)
    lines: list[Line] = []
    reports: list[ReportItem] = []
    for joined, comments in _join(text):
        tokens = _scan(joined, file)
        if isinstance(tokens, ReportItem):
            reports.append(tokens)
        elif tokens:
            lines.append(Line(tokens, comments, joined.text))
    return tuple(lines), tuple(reports)


def _join(text: str) -> Iterable[tuple[_Joined, tuple[str, ...]]]:
    comments: list[str] = []
    joined = _Joined()
    for number, physical in enumerate(text.split("\n"), start=1):
        stripped = physical.strip(_SPACE)
        if stripped.startswith("#"):
            comments.append(stripped)
            continue
        is_continued = stripped.endswith("\\")
        content = stripped[:-1] if is_continued else stripped
        joined.add(content, number, len(physical) - len(physical.lstrip(_SPACE)) + 1)
        if is_continued:
            if _ends_quoted(joined.text):
                joined.text += " "
            continue
        if joined.text.strip(_SPACE):
            yield joined, tuple(comments)
            comments = []
        joined = _Joined()
    if joined.text.strip(_SPACE):
        yield joined, tuple(comments)


def _ends_quoted(text: str) -> bool:
    r"""Tell whether a text ends with a closed quote: the word ends there, also where no space is before the `\`."""
    if not text.endswith(("'", '"')):
        return False
    offset, is_quoted = 0, False
    while offset < len(text):
        piece = _PIECE.match(text, offset)
        if piece is None and text[offset] in "'\"":
            return False
        is_quoted = piece is not None and (piece["literal"] is not None or piece["escaped"] is not None)
        offset = piece.end() if piece else offset + 1
    return is_quoted


def _scan(joined: _Joined, file: str) -> tuple[Token, ...] | ReportItem:
    text = joined.text
    tokens: list[Token] = []
    offset = 0
    while True:
        gap = _GAP.match(text, offset)
        offset = gap.end() if gap else offset
        if offset >= len(text):
            return tuple(tokens)
        start, parts = offset, []
        while offset < len(text) and text[offset] not in _SPACE:
            piece = _PIECE.match(text, offset)
            if piece is None and text[offset] != "\\":
                place = joined.place(file, offset)
                return report(Code.UNCLOSED_QUOTE, place=place, quote=text[offset])
            parts.append(_unquote(piece) if piece else "\\")
            offset = piece.end() if piece else offset + 1
        tokens.append(Token("".join(parts), joined.place(file, start), text[start] in "'\""))


def _unquote(piece: re.Match[str]) -> str:
    if piece["escaped"] is not None:
        return _ESCAPE.sub(r"\1", piece["escaped"])
    return next(group for group in (piece["literal"], piece["char"], piece["plain"]) if group is not None)


def from_words(words: Sequence[str], file: str) -> tuple[Token, ...]:
    """Make tokens of words that a shell has split; columns count as if they were joined by single spaces."""
    tokens: list[Token] = []
    column = 1
    for word in words:
        tokens.append(Token(word, Place(file, 1, column)))
        column += len(word) + 1
    return tuple(tokens)


def quote(text: str, *, keywords: frozenset[str] = frozenset()) -> str:
    """Write one word so that it is read back as it is, and never as one of the keywords."""
    is_plain = text and not _NEEDS_QUOTES.search(text) and not text.startswith("#")
    return text if is_plain and text.lower() not in keywords else quoted(text)


def quote_value(text: str) -> str:
    """Write the value of a pair (`name=` comes before it)."""
    return quoted(text) if not text or _NEEDS_QUOTES.search(text) or "/" in text else text


def quoted(text: str) -> str:
    """Write one word in quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
