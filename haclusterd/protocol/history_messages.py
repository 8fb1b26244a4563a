"""What nodes write to each other about their histories: questions, and the rows and versions that answer them.

Layout: one byte of version, then JSON, compressed, of [kind, serial, ...]. `decode` returns a message whose every field
has its type and range, or raises `MessageRefusedError`; it unpacks no more than a bounded number of bytes.
"""

import json
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from haclusterd.model.history_chain import chained
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass
from haclusterd.model.remembered import HistoryRow, HistorySummary, KeptVersion
from haclusterd.wire.schemas import BASE64, CodecError, Schema, Schemas, text_that, whole_number

VERSION: Final = b"\x01"
UNPACKED_BYTES_MAX: Final = 4 * 1024 * 1024
PART_BYTES: Final = 96 * 1024
"""Of a version's content in one message."""
_DIGEST_CHARACTERS: Final = frozenset("0123456789abcdef")


class MessageRefusedError(ValueError):
    """These bytes are no message of this version."""


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


HistoryMessage = AskPage | TellPage | AskVersion | TellVersion | AskSummary | TellSummary


def _read_digest(text: str) -> str:
    if len(text) not in (0, 64) or not _DIGEST_CHARACTERS.issuperset(text):
        raise ValueError("not a digest")
    return text


_DIGEST: Final = text_that(_read_digest)
_NUMBER: Final = whole_number()
_ROWS: Final = Schemas(special={int: _NUMBER}).schema_of(
    tuple[tuple[WallTime, str, NodeName | None, ResourceId | None, str, str], ...]
)
"""Of a log entry: everything but the entry's index and the row's number, which is its place."""


def _read_entry(value: Any) -> KeptEntry:
    if type(value) is not list or len(value) != 3:
        raise CodecError("expected an array of 3")
    index, before, rows = _NUMBER.read(value[0]), _DIGEST.read(value[1]), _ROWS.read(value[2])
    return KeptEntry(index, before, tuple(HistoryRow(index, n, *row) for n, row in enumerate(rows)))


def _write_entry(entry: KeptEntry) -> list[Any]:
    rows = [(row.at, row.kind, row.node, row.resource, row.text, row.detail_json) for row in entry.rows]
    return [entry.index, entry.before, _ROWS.write(rows)]


_SCHEMAS: Final = Schemas(
    special={
        int: _NUMBER,
        bytes: BASE64,
        KeptEntry: Schema(_read_entry, _write_entry),
        (KeptVersion, "digest"): _DIGEST,
    },
    is_positional=True,
)
_KINDS: Final[Mapping[str, type[HistoryMessage]]] = {
    "AskPage": AskPage,
    "TellPage": TellPage,
    "AskVersion": AskVersion,
    "TellVersion": TellVersion,
    "AskSummary": AskSummary,
    "TellSummary": TellSummary,
}
"""By their tags, which are part of the format."""
_MESSAGES: Final = {tag: _SCHEMAS.schema_of(kind) for tag, kind in _KINDS.items()}
_TAGS: Final = {kind: tag for tag, kind in _KINDS.items()}


def encode(message: HistoryMessage) -> bytes:
    """Return the bytes of a message."""
    tag = _TAGS[type(message)]
    document = [tag, *_flat(message, _MESSAGES[tag].write(message))]
    return VERSION + zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 1)


def decode(data: bytes) -> HistoryMessage:
    """Read what `encode` wrote; raise MessageRefusedError for everything else."""
    if data[:1] != VERSION:
        raise MessageRefusedError("not a message of this version")
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data[1:], UNPACKED_BYTES_MAX)
        if not unpacking.eof or unpacking.unused_data:
            raise MessageRefusedError("too large, or cut off")
        message = _read(json.loads(text))
    except MessageRefusedError:
        raise
    except (zlib.error, ValueError, RecursionError) as error:
        raise MessageRefusedError(f"{type(error).__name__}: {error}"[:200]) from None
    if isinstance(message, TellPage) and message.page is not None:
        indices = [each.index for each in message.page.entries]
        if any(later <= earlier for earlier, later in pairwise(indices)):
            raise MessageRefusedError("entries in disorder")
    return message


def _flat(message: HistoryMessage, written: list[Any]) -> list[Any]:
    """Return the fields of a message: those of a summary are beside its serial number."""
    return [written[0], *written[1]] if isinstance(message, TellSummary) else written


def _read(document: Any) -> HistoryMessage:
    if type(document) is not list or not document or type(document[0]) is not str:
        raise MessageRefusedError("no message")
    tag, *written = document
    schema = _MESSAGES.get(tag)
    if schema is None:
        raise MessageRefusedError(f"no message is called {tag!r:.40}")
    message: HistoryMessage = schema.read([written[0], written[1:]] if tag == "TellSummary" and written else written)
    return message
