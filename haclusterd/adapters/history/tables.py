"""The tables of the history, and writing to them; every call may raise sqlite3.Error.

`event` has one row for each change, `entry` the chain's link before each log entry with rows, `gap` the ranges of log
indexes whose changes this node does not know, with the link at their end, `version` the versions of the configuration,
`progress` the newest index with its link. One call writes in one transaction. Reading is in `reading.py`.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from haclusterd.adapters.history.version_table import keep_version
from haclusterd.model.cluster import HistoryMark
from haclusterd.model.history_chain import NO_LINK
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass
from haclusterd.model.remembered import HistoryRow, Span
from haclusterd.ports.history import NewVersion
from haclusterd.protocol.history_messages import KeptEntry, Page

FORMAT: Final = 3
"""2 added `version`, 3 the chain; older files are converted, and their content stays outside the chain."""
BUSY_TIMEOUT_S: Final = 1.0

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS event (
    log_index INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL,
    node TEXT, resource TEXT, text TEXT NOT NULL, detail TEXT NOT NULL,
    PRIMARY KEY (log_index, n)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS event_node ON event (node, log_index);
CREATE INDEX IF NOT EXISTS event_resource ON event (resource, log_index);
CREATE TABLE IF NOT EXISTS entry (log_index INTEGER PRIMARY KEY, before BLOB NOT NULL, texts INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS gap (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, digest BLOB);
CREATE TABLE IF NOT EXISTS version (
    number INTEGER PRIMARY KEY, at INTEGER NOT NULL, author TEXT NOT NULL, reason TEXT NOT NULL,
    digest TEXT NOT NULL, content BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS progress (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 0), last_index INTEGER NOT NULL, digest BLOB NOT NULL DEFAULT x'',
    forgotten INTEGER NOT NULL DEFAULT 0, forgotten_digest BLOB NOT NULL DEFAULT x''
);
"""
_CHAIN_COLUMNS: Final = """
ALTER TABLE gap ADD COLUMN digest BLOB;
ALTER TABLE progress ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE progress ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;
ALTER TABLE progress ADD COLUMN forgotten_digest BLOB NOT NULL DEFAULT x'';
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The changes of the entry at one log index, between two marks of the CIB."""

    index: int
    rows: tuple[HistoryRow, ...]
    before: HistoryMark
    after: HistoryMark
    version: NewVersion | None = None


@dataclass(frozen=True, slots=True)
class Jumped:
    """The state at this index came from a snapshot; the entries since the last recorded index are not known."""

    index: int
    mark: HistoryMark
    version: NewVersion | None = None


Item = Recorded | Jumped


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of log indexes whose changes are not known."""

    first: int
    last: int
    digest: str | None
    """The link at its end; None: nothing can prove what was there."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the history is recorded, and from where on it is kept."""

    last: int
    digest: str
    forgotten: int
    forgotten_digest: str


class HistoryTables:
    """One open database; to be used on one thread."""

    def __init__(self, path: Path | str) -> None:
        self.database = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        try:
            self._prepare()
        except sqlite3.Error:
            self.database.close()
            raise

    def _prepare(self) -> None:
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("PRAGMA synchronous=NORMAL")
        (found,) = self.database.execute("PRAGMA user_version").fetchone()
        if not 0 <= found <= FORMAT:
            raise sqlite3.DatabaseError(f"history of format {found}; this version writes format {FORMAT}")
        if found < FORMAT:
            older = _CHAIN_COLUMNS if found else ""
            self.database.executescript(f"BEGIN; {older} {_SCHEMA} PRAGMA user_version={FORMAT}; COMMIT;")

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.database.execute("COMMIT")
        except BaseException:
            if self.database.in_transaction:
                self.database.execute("ROLLBACK")
            raise

    # -- state ------------------------------------------------------------------------------------------------------

    def progress(self) -> Progress:
        """Return how far the history is recorded."""
        found = self.database.execute("SELECT last_index, digest, forgotten, forgotten_digest FROM progress").fetchone()
        if found is None:
            return Progress(0, NO_LINK, 0, NO_LINK)
        return Progress(int(found[0]), found[1].hex(), int(found[2]), found[3].hex())

    def gaps(self) -> tuple[Gap, ...]:
        """Return the gaps, oldest first."""
        found = self.database.execute("SELECT first, last, digest FROM gap ORDER BY first").fetchall()
        return tuple(Gap(first, last, None if digest is None else digest.hex()) for first, last, digest in found)

    def entry(self, index: int) -> KeptEntry | None:
        """Return the rows of the entry at one index; None when there are none."""
        found = self.database.execute("SELECT before FROM entry WHERE log_index = ?", (index,)).fetchone()
        return None if found is None else KeptEntry(index, found[0].hex(), rows_at(self.database, index))

    def digest_at(self, index: int) -> str | None:
        """Return the chain's link after an index, if it follows from what is kept; otherwise None."""
        known = self.progress()
        if index <= known.forgotten:
            return known.forgotten_digest if index == known.forgotten else None
        gap = self._gap_at(index)
        if gap is not None:
            return gap.digest if gap.last == index else None
        behind = self._link_behind(index)
        if behind is not None:
            return behind
        select = "SELECT max({0}) FROM {1} WHERE {0} <= ?"
        (left,) = self.database.execute(select.format("log_index", "entry"), (index,)).fetchone()
        (gap_end,) = self.database.execute(select.format("last", "gap"), (index,)).fetchone()
        if left is not None and (gap_end is None or left > gap_end):
            kept = self.entry(left)
            return None if kept is None else kept.link
        return self.digest_at(gap_end) if gap_end is not None else known.forgotten_digest

    def _gap_at(self, index: int) -> Gap | None:
        found = self.database.execute(
            "SELECT first, last, digest FROM gap WHERE first <= ? AND last >= ?", (index, index)
        ).fetchone()
        return None if found is None else Gap(found[0], found[1], None if found[2] is None else found[2].hex())

    # -- new entries ------------------------------------------------------------------------------------------------

    def write(self, items: Iterable[Item]) -> None:
        """Write all items or none."""
        with self._transaction():
            for item in items:
                self._write_item(item)

    def _write_item(self, item: Item) -> None:
        match item:
            case Recorded():
                self._record(item)
            case Jumped(index, mark, version):
                if index > self.progress().last:
                    self._skip_to(index, mark)
                elif self.digest_at(index) not in (mark.digest, None):
                    self._distrust(index, mark.digest)
                self._forget(mark)
                keep_version(self.database, version, is_newer=False)

    def _record(self, item: Recorded) -> None:
        known = self.progress()
        if item.index <= known.forgotten:
            pass  # A replay repeats entries that were dropped since.
        elif item.index <= known.last:
            self._split_gap(item.index, item.before.digest)
            self.put(KeptEntry(item.index, item.before.digest, item.rows))
        else:
            if item.before.digest != known.digest:
                self._skip_to(item.index - 1, item.before)
            self.put(KeptEntry(item.index, item.before.digest, item.rows))
            self._advance(item.index, item.after.digest)
        self._forget(item.after)
        keep_version(self.database, item.version, is_newer=True)

    def _skip_to(self, index: int, mark: HistoryMark) -> None:
        """Record that the changes between the newest index and `index` are not known."""
        known = self.progress()
        if index >= known.last and mark.digest != known.digest:
            if index > known.last:
                self._open_gap(Gap(max(known.last, mark.forgotten) + 1, index, mark.digest))
            else:
                self._distrust(index, mark.digest)
        if index >= known.last:
            self._advance(index, mark.digest)

    def _distrust(self, through: int, digest: str) -> None:
        """Replace everything up to an index by a gap, because the chain disproves it: it is fetched again."""
        first = self.progress().forgotten + 1
        self._drop(through)
        self._open_gap(Gap(first, through, digest))

    def _advance(self, index: int, digest: str) -> None:
        self.database.execute(
            "INSERT INTO progress (only_row, last_index, digest) VALUES (0, ?, ?) "
            "ON CONFLICT (only_row) DO UPDATE SET last_index = excluded.last_index, digest = excluded.digest",
            (index, bytes.fromhex(digest)),
        )

    def put(self, entry: KeptEntry) -> None:
        """Write the rows of one entry in place of those that are there."""
        self.database.execute("DELETE FROM event WHERE log_index = ?", (entry.index,))
        if not entry.rows:
            return
        self.database.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)", map(_to_columns, entry.rows))
        self.database.execute(
            "INSERT OR REPLACE INTO entry VALUES (?, ?, ?)",
            (entry.index, bytes.fromhex(entry.before), texts_sum(entry.rows)),
        )

    def _open_gap(self, gap: Gap) -> None:
        if gap.first <= gap.last:
            digest = None if gap.digest is None else bytes.fromhex(gap.digest)
            self.database.execute("INSERT OR REPLACE INTO gap VALUES (?, ?, ?)", (gap.first, gap.last, digest))

    def _split_gap(self, index: int, before: str) -> None:
        gap = self._gap_at(index)
        if gap is not None:
            older = self.digest_at(gap.first - 1)
            self.database.execute("DELETE FROM gap WHERE first = ?", (gap.first,))
            self._open_gap(Gap(index + 1, gap.last, gap.digest))
            if older != before:
                self._open_gap(Gap(gap.first, index - 1, before))

    # -- dropping ---------------------------------------------------------------------------------------------------

    def _forget(self, mark: HistoryMark) -> None:
        if mark.forgotten <= self.progress().forgotten:
            return
        self._drop(mark.forgotten)
        for gap in self.gaps():
            if gap.first <= mark.forgotten:
                self.database.execute("DELETE FROM gap WHERE first = ?", (gap.first,))
                self._open_gap(Gap(mark.forgotten + 1, gap.last, gap.digest))
        self.database.execute(
            "INSERT INTO progress (only_row, last_index, forgotten, forgotten_digest) VALUES (0, ?, ?, ?) "
            "ON CONFLICT (only_row) DO UPDATE SET forgotten = excluded.forgotten, "
            "forgotten_digest = excluded.forgotten_digest",
            (mark.forgotten, mark.forgotten, bytes.fromhex(mark.forgotten_digest)),
        )

    def _drop(self, through: int) -> None:
        self.database.execute("DELETE FROM event WHERE log_index <= ?", (through,))
        self.database.execute("DELETE FROM entry WHERE log_index <= ?", (through,))
        self.database.execute("DELETE FROM gap WHERE last <= ?", (through,))

    # -- pages of peers ---------------------------------------------------------------------------------------------

    def fill(self, gap: Gap, page: Page) -> bool:
        """Fill the end of a gap from a peer's page; return False when the chain does not prove it."""
        link = proven(page, gap)
        if link is None:
            return False
        with self._transaction():
            present = self._gap_at(gap.last)
            if present is None or (present.last, present.digest) != (gap.last, gap.digest):
                return True  # The log or another page was faster.
            known = self.progress()
            older = self.digest_at(present.first - 1)
            if page.first <= present.first and older not in (link, None):
                if present.first == known.forgotten + 1:
                    return False  # The page lacks rows that exist according to the CIB.
                self._distrust(present.first - 1, link)
                present, older = Gap(known.forgotten + 1, gap.last, gap.digest), known.forgotten_digest
            self.database.execute("DELETE FROM gap WHERE last = ?", (gap.last,))
            for entry in page.entries:
                self.put(entry)
            rest = Gap(present.first, page.first - 1, link)
            if older != link:
                self._open_gap(rest)
        return True

    def mark_damaged(self, spans: Iterable[Span]) -> None:
        """Replace damaged ranges by gaps: they are fetched again."""
        with self._transaction():
            for span in spans:
                self.database.execute("DELETE FROM event WHERE log_index BETWEEN ? AND ?", (span.first, span.last))
                self.database.execute("DELETE FROM entry WHERE log_index BETWEEN ? AND ?", (span.first, span.last))
                self.database.execute("DELETE FROM gap WHERE first BETWEEN ? AND ?", (span.first, span.last))
                self._open_gap(Gap(span.first, span.last, self._link_behind(span.last)))
            self._merge_gaps()

    def _merge_gaps(self) -> None:
        """Merge gaps with nothing between them: the link at the end of the last proves them all."""
        merged: list[Gap] = []
        for gap in self.gaps():
            if merged and not self._is_anything_between(merged[-1].last, gap.first):
                merged.append(Gap(merged.pop().first, gap.last, gap.digest))
            else:
                merged.append(gap)
        self.database.execute("DELETE FROM gap")
        for gap in merged:
            self._open_gap(gap)

    def _is_anything_between(self, left: int, right: int) -> bool:
        select = "SELECT 1 FROM entry WHERE log_index > ? AND log_index < ? LIMIT 1"
        return self.database.execute(select, (left, right)).fetchone() is not None

    def _link_behind(self, index: int) -> str | None:
        """Return the link after an index by what follows it; None when a gap follows."""
        (entry,) = self.database.execute("SELECT min(log_index) FROM entry WHERE log_index > ?", (index,)).fetchone()
        (gap,) = self.database.execute("SELECT min(first) FROM gap WHERE first > ?", (index,)).fetchone()
        if gap is not None and (entry is None or gap < entry):
            return None
        if entry is None:
            return self.progress().digest
        (before,) = self.database.execute("SELECT before FROM entry WHERE log_index = ?", (entry,)).fetchone()
        return str(before.hex())


def proven(page: Page, gap: Gap) -> str | None:
    """Return the link before a page whose entries lead to the link at the end of the gap; None when they do not."""
    link = gap.digest
    if link is None or page.last != gap.last:
        return None
    for entry in reversed(page.entries):
        if entry.link != link or not page.first <= entry.index <= page.last:
            return None
        link = entry.before
    return link


def texts_sum(rows: Iterable[HistoryRow]) -> int:
    """Return a checksum of the texts, which the chain does not cover."""
    total = 0
    for row in rows:
        total = zlib.crc32(row.text.encode(errors="replace"), total)
    return total


def rows_at(database: sqlite3.Connection, index: int) -> tuple[HistoryRow, ...]:
    """Return the rows of one log index."""
    found = database.execute("SELECT * FROM event WHERE log_index = ? ORDER BY n", (index,))
    return tuple(map(from_columns, found.fetchall()))


def from_columns(columns: tuple[int, int, int, str, str | None, str | None, str, str]) -> HistoryRow:
    """Return a row of the table `event` as a HistoryRow."""
    index, n, at, kind, node, resource, text, detail = columns
    place = None if node is None else NodeName(node), None if resource is None else ResourceId(resource)
    return HistoryRow(index, n, WallTime(at), kind, *place, text, detail)


def _to_columns(row: HistoryRow) -> tuple[object, ...]:
    texts = (row.kind, row.node, row.resource, row.text, row.detail_json)
    return row.index, row.n, row.at, *(None if text is None else unicode(text) for text in texts)


def unicode(text: str) -> str:
    """Return text that SQLite accepts: a lone surrogate becomes a question mark."""
    return text if text.isascii() else text.encode(errors="replace").decode()
