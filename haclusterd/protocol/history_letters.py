"""What nodes write to each other about their histories: questions, and the rows and versions that answer them.

Layout: one byte of version, then JSON, compressed, of [kind, serial, ...]. `decode` returns a letter whose every field
has its type and range, or raises `LetterRefused`; it unpacks no more than a bounded number of bytes.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from haclusterd.model.history_chain import chained
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.remembered import HistoryRow, HistorySummary, KeptVersion, Span

VERSION: Final = b"\x01"
UNPACKED_BYTES_MAX: Final = 4 * 1024 * 1024
PART_BYTES: Final = 96 * 1024
"""Of a version's content in one letter."""
_LARGEST: Final = 2**53
_DIGEST_CHARACTERS: Final = frozenset("0123456789abcdef")


class LetterRefused(ValueError):  # noqa: N818 (a verdict, not an accident)
    """These bytes are no letter of this version."""


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """What one log entry left, with the chain's link before it."""

    index: int
    before: str
    rows: tuple[HistoryRow, ...]

    @property
    def link(self) -> str:
        """The chain's link after it."""
        return chained(self.before, self.index, (row.fact for row in self.rows))


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that entries `first` to `last` left, oldest first."""

    first: int
    last: int
    entries: tuple[KeptEntry, ...]


@dataclass(frozen=True, slots=True)
class AskPage:
    """What did the entries up to `last` leave, back to `first` or as far as fits?"""

    serial: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class TellPage:
    """Some of it; None: this node does not know it either."""

    serial: int
    page: Page | None


@dataclass(frozen=True, slots=True)
class AskVersion:
    """What is version `number`, from this byte of its compressed content on?"""

    serial: int
    number: int
    offset: int


@dataclass(frozen=True, slots=True)
class TellVersion:
    """A part of it; None: this node does not have it either."""

    serial: int
    version: KeptVersion | None
    total: int = 0
    offset: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class AskSummary:
    """What does the other history hold, up to `through`?"""

    serial: int
    through: int


@dataclass(frozen=True, slots=True)
class TellSummary:
    """That."""

    serial: int
    summary: HistorySummary


Letter = AskPage | TellPage | AskVersion | TellVersion | AskSummary | TellSummary


def encode(letter: Letter) -> bytes:
    """Return the bytes of a letter."""
    document = [type(letter).__name__, letter.serial, *_FIELDS[type(letter)](letter)]
    return VERSION + zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 1)


def decode(data: bytes) -> Letter:
    """Read what `encode` wrote; raise LetterRefused for everything else."""
    if data[:1] != VERSION:
        raise LetterRefused("not a letter of this version")
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data[1:], UNPACKED_BYTES_MAX)
        if not unpacking.eof or unpacking.unused_data:
            raise LetterRefused("too large, or cut off")
        kind, serial, *fields = json.loads(text)
        return _READERS[kind](_number(serial), *fields)
    except LetterRefused:
        raise
    except (zlib.error, ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise LetterRefused(f"{type(error).__name__}: {error}"[:200]) from None


# Writing.


def _row(row: HistoryRow) -> list[Any]:
    return [row.at, row.kind, row.node, row.resource, row.text, row.detail_json]


def _page(letter: TellPage) -> list[Any]:
    page = letter.page
    if page is None:
        return [None]
    return [[page.first, page.last, [[each.index, each.before, [_row(row) for row in each.rows]]
                                     for each in page.entries]]]  # fmt: skip


def _version(letter: TellVersion) -> list[Any]:
    kept = letter.version
    about = None if kept is None else [kept.number, kept.at, kept.author, kept.reason, kept.digest]
    return [about, letter.total, letter.offset, base64.b64encode(letter.data).decode()]


def _summary(letter: TellSummary) -> list[Any]:
    found = letter.summary
    gaps, damaged = ([[each.first, each.last] for each in spans] for spans in (found.gaps, found.damaged))
    return [found.node, found.last, found.forgotten, found.rows, gaps, found.blocks, damaged, found.versions,
            found.problem]  # fmt: skip


_FIELDS: Final[dict[type, Callable[[Any], list[Any]]]] = {
    AskPage: lambda letter: [letter.first, letter.last],
    TellPage: _page,
    AskVersion: lambda letter: [letter.number, letter.offset],
    TellVersion: _version,
    AskSummary: lambda letter: [letter.through],
    TellSummary: _summary,
}

# Reading.


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise LetterRefused("not a number")
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise LetterRefused("not a text")
    value.encode()
    return value


def _digest(value: object) -> str:
    text = _text(value)
    if len(text) not in (0, 64) or not _DIGEST_CHARACTERS.issuperset(text):
        raise LetterRefused("not a digest")
    return text


def _maybe(value: object) -> str | None:
    return None if value is None else _text(value)


def _read_row(index: int, n: int, written: Any) -> HistoryRow:
    at, kind, node, resource, text, detail = written
    where = _maybe(node), _maybe(resource)
    return HistoryRow(
        index, n, WallTime(_number(at)), _text(kind), None if where[0] is None else NodeName(where[0]),
        None if where[1] is None else ResourceId(where[1]), _text(text), _text(detail),
    )  # fmt: skip


def _read_page(serial: int, written: Any) -> TellPage:
    if written is None:
        return TellPage(serial, None)
    first, last, listed = written
    entries: list[KeptEntry] = []
    for number, before, rows in listed:
        index = _number(number)
        if entries and index <= entries[-1].index:
            raise LetterRefused("entries in disorder")
        entries.append(KeptEntry(index, _digest(before), tuple(_read_row(index, n, row) for n, row in enumerate(rows))))
    return TellPage(serial, Page(_number(first), _number(last), tuple(entries)))


def _read_version(serial: int, about: Any, total: Any, offset: Any, data: Any) -> TellVersion:
    if about is None:
        return TellVersion(serial, None)
    number, at, author, reason, digest = about
    kept = KeptVersion(_number(number), WallTime(_number(at)), _text(author), _text(reason), _digest(digest))
    try:
        part = base64.b64decode(_text(data), validate=True)
    except binascii.Error as error:
        raise LetterRefused(str(error)) from None
    return TellVersion(serial, kept, _number(total), _number(offset), part)


def _spans(written: Any) -> tuple[Span, ...]:
    return tuple(Span(_number(first), _number(last)) for first, last in written)


def _read_summary(serial: int, *fields: Any) -> TellSummary:
    node, last, forgotten, rows, gaps, blocks, damaged, versions, problem = fields
    summary = HistorySummary(
        node=NodeName(_text(node)),
        last=_number(last),
        forgotten=_number(forgotten),
        rows=_number(rows),
        gaps=_spans(gaps),
        blocks=tuple((_number(index), _text(link), _text(texts)) for index, link, texts in blocks),
        damaged=_spans(damaged),
        versions=tuple((_number(number), _text(digest)) for number, digest in versions),
        problem=_text(problem),
    )
    return TellSummary(serial, summary)


_READERS: Final[dict[str, Callable[..., Letter]]] = {
    "AskPage": lambda serial, first, last: AskPage(serial, _number(first), _number(last)),
    "TellPage": _read_page,
    "AskVersion": lambda serial, number, offset: AskVersion(serial, _number(number), _number(offset)),
    "TellVersion": _read_version,
    "AskSummary": lambda serial, through: AskSummary(serial, _number(through)),
    "TellSummary": _read_summary,
}
