"""The tables of the history, and the statements on them; every call may raise sqlite3.Error.

`event` has one row for each thing that happened, `gap` the ranges of log indices of which this node does not know what
they did, `version` the versions of the configuration with their content, `progress` the last index. What one call
writes, it writes in one transaction.
"""

import hashlib
import sqlite3
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.ports.history import GAP, HistoryQuery, HistoryRow, KeptVersion, NewVersion

FORMAT: Final = 2
"""2 added `version`; a file of format 1 is taken on."""
VERSIONS_KEPT: Final = 1_000
VERSION_BYTES_KEPT: Final = 64 * 1024 * 1024
"""Of compressed contents; the oldest go first, the newest stays whatever its size."""
BUSY_TIMEOUT_S: Final = 5.0

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS event (
    log_index INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL,
    node TEXT, resource TEXT, text TEXT NOT NULL, detail TEXT NOT NULL,
    PRIMARY KEY (log_index, n)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS event_node ON event (node, log_index);
CREATE INDEX IF NOT EXISTS event_resource ON event (resource, log_index);
CREATE TABLE IF NOT EXISTS gap (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS version (
    number INTEGER PRIMARY KEY, at INTEGER NOT NULL, author TEXT NOT NULL, reason TEXT NOT NULL,
    digest TEXT NOT NULL, content BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS progress (only_row INTEGER PRIMARY KEY CHECK (only_row = 0), last_index INTEGER NOT NULL);
"""

@dataclass(frozen=True, slots=True)
class Recorded:
    """What the entry at one log index did."""

    index: int
    rows: tuple[HistoryRow, ...]
    version: NewVersion | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """These indices were applied, but what they did was not recorded."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Jumped:
    """The state at this index came as a whole; whatever lies between the last recorded index and it is not known."""

    index: int
    version: NewVersion | None = None


Item = Recorded | Missed | Jumped


class HistoryTables:
    """One open database; to be used on one thread."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        try:
            self._prepare()
        except sqlite3.Error:
            self._database.close()
            raise

    def _prepare(self) -> None:
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        (found,) = self._database.execute("PRAGMA user_version").fetchone()
        if not 0 <= found <= FORMAT:
            raise sqlite3.DatabaseError(f"history of format {found}; this version writes format {FORMAT}")
        self._database.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version={FORMAT}; COMMIT;")

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def last_index(self) -> int:
        """Return the highest index recorded; 0 when there is none."""
        found = self._database.execute("SELECT last_index FROM progress").fetchone()
        return 0 if found is None else int(found[0])

    def write(self, items: Iterable[Item], *, rows_kept: int) -> None:
        """Write all items or none; drop what is older than the newest `rows_kept` rows."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            for item in items:
                self._write_item(item)
            self._forget_beyond(rows_kept)
            self._forget_versions()
            self._database.execute("COMMIT")
        except sqlite3.Error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def _write_item(self, item: Item) -> None:
        match item:
            case Recorded(index, rows, version):
                self._close_gap(index)
                self._database.execute("DELETE FROM event WHERE log_index = ?", (index,))
                self._database.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)", map(_to_columns, rows))
                self._advance(index)
                self._keep(version, "REPLACE")
            case Missed(first, last):
                self._open_gap(first, last)
            case Jumped(index, version):
                self._open_gap(self.last_index() + 1, index)
                self._keep(version, "IGNORE")

    def _keep(self, version: NewVersion | None, otherwise: str) -> None:
        """Write a version; `otherwise` says what becomes of one that has the number already."""
        if version is None:
            return
        content = version.encode()
        columns = (
            version.number, version.at, _unicode(version.author), _unicode(version.reason),
            hashlib.sha256(content).hexdigest(), zlib.compress(content, 1),
        )  # fmt: skip
        self._database.execute(f"INSERT OR {otherwise} INTO version VALUES (?, ?, ?, ?, ?, ?)", columns)

    def _forget_versions(self) -> None:
        sizes = self._database.execute("SELECT number, length(content) FROM version ORDER BY number DESC").fetchall()
        total = 0
        for position, (number, size) in enumerate(sizes):
            total += size
            if position and (position >= VERSIONS_KEPT or total > VERSION_BYTES_KEPT):
                self._database.execute("DELETE FROM version WHERE number <= ?", (number,))
                return

    def versions(self) -> tuple[KeptVersion, ...]:
        """Return every version that is known, oldest first."""
        found = self._database.execute("SELECT number, at, author, reason, digest FROM version ORDER BY number")
        return tuple(KeptVersion(number, WallTime(at), *texts) for number, at, *texts in found.fetchall())

    def content(self, number: int) -> bytes | None:
        """Return the content of a version; raise sqlite3.DatabaseError when it is damaged."""
        found = self._database.execute("SELECT digest, content FROM version WHERE number = ?", (number,)).fetchone()
        if found is None:
            return None
        try:
            content = zlib.decompress(found[1])
        except zlib.error as error:
            raise sqlite3.DatabaseError(f"version {number}: {error}") from None
        if hashlib.sha256(content).hexdigest() != found[0]:
            raise sqlite3.DatabaseError(f"version {number}: checksum mismatch")
        return content

    def _advance(self, index: int) -> None:
        if index > self.last_index():
            self._database.execute("INSERT OR REPLACE INTO progress VALUES (0, ?)", (index,))

    def _open_gap(self, first: int, last: int) -> None:
        if first <= last:
            self._database.execute("INSERT OR REPLACE INTO gap VALUES (?, ?)", (first, last))
            self._advance(last)

    def _close_gap(self, index: int) -> None:
        found = self._database.execute("SELECT first, last FROM gap WHERE first <= ? AND last >= ?", (index, index))
        for first, last in found.fetchall():
            self._database.execute("DELETE FROM gap WHERE first = ?", (first,))
            parts = [part for part in ((first, index - 1), (index + 1, last)) if part[0] <= part[1]]
            self._database.executemany("INSERT OR REPLACE INTO gap VALUES (?, ?)", parts)

    def _forget_beyond(self, rows_kept: int) -> None:
        beyond = self._database.execute(
            "SELECT log_index FROM event ORDER BY log_index DESC, n DESC LIMIT 1 OFFSET ?", (rows_kept,)
        ).fetchone()
        if beyond is not None:
            self._database.execute("DELETE FROM event WHERE log_index <= ?", beyond)
            self._database.execute("DELETE FROM gap WHERE last <= ?", beyond)

    def read(self, query: HistoryQuery) -> tuple[HistoryRow, ...]:
        """Return the newest rows that fit, oldest first, with the gaps among them."""
        if query.limit <= 0:
            return ()
        conditions = [
            (clause, value)
            for clause, value in (("at >= ?", query.since), ("node = ?", query.node), ("resource = ?", query.resource))
            if value is not None
        ]
        where = " AND ".join(clause for clause, _ in conditions) or "TRUE"
        found = self._database.execute(
            f"SELECT * FROM event WHERE {where} ORDER BY log_index DESC, n DESC LIMIT ?",
            (*(value for _, value in conditions), query.limit),
        )
        rows = [_from_columns(columns) for columns in found.fetchall()]
        rows.reverse()
        since = rows[0].index if len(rows) == query.limit else 0
        gaps = self._database.execute("SELECT first, last FROM gap WHERE last >= ? ORDER BY first", (since,))
        rows += [_gap_row(first, last, rows) for first, last in gaps.fetchall()]
        return tuple(sorted(rows, key=lambda row: (row.index, row.n)))


def _gap_row(first: int, last: int, rows: list[HistoryRow]) -> HistoryRow:
    text = f"entries {first} to {last} are not in this node's history"
    at = max((row.at for row in rows if row.index < first), default=WallTime(0))
    return HistoryRow(first, -1, at, GAP, None, None, text)


def _to_columns(row: HistoryRow) -> tuple[object, ...]:
    texts = (row.kind, row.node, row.resource, row.text, row.detail_json)
    return row.index, row.n, row.at, *(None if text is None else _unicode(text) for text in texts)


def _unicode(text: str) -> str:
    return text if text.isascii() else text.encode(errors="replace").decode()


def _from_columns(columns: tuple[int, int, int, str, str | None, str | None, str, str]) -> HistoryRow:
    index, n, at, kind, node, resource, text, detail = columns
    return HistoryRow(
        index,
        n,
        WallTime(at),
        kind,
        None if node is None else NodeName(node),
        None if resource is None else ResourceId(resource),
        text,
        detail,
    )
