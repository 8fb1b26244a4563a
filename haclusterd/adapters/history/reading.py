"""Reads the history's tables: events for users, pages for peers, summaries for comparisons.

Every call may raise sqlite3.Error. Nothing here writes.
"""

import hashlib
import sqlite3
from collections.abc import Generator, Iterable
from typing import Final

from haclusterd.adapters.history.tables import Gap, HistoryTables, from_columns, rows_at, texts_sum
from haclusterd.adapters.history.version_table import versions
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.remembered import HistoryRow, HistorySummary, Span
from haclusterd.ports.history import GAP, HistoryAnswer, HistoryQuery, Horizon
from haclusterd.protocol.history_messages import KeptEntry, Page

PAGE_CHARACTERS: Final = 96 * 1024
"""Approximate size of the rows in one page; a larger entry comes alone."""
ROW_CHARACTERS: Final = 80
"""Approximate size of a row without its texts."""
PAGE_ENTRIES_MAX: Final = 400
ANSWER_CHARACTERS_MAX: Final = 2 * 1024 * 1024
"""Approximate size of the rows in one answer for users; older ones are left out, and counted."""
FAR_MS: Final = 2**62
"""Maximum distance in ms from the epoch; SQLite takes no integer of more than 64 bits."""
CAUSES_ROWS: Final = 200
"""Number of rows before a transition that are searched for its causes."""
BLOCKS_MAX: Final = 250
BLOCK_ENTRIES_MIN: Final = 100
ENTRIES_PER_SLICE: Final = 500
DAMAGED_SHOWN: Final = 20


# For users.


def read(tables: HistoryTables, query: HistoryQuery) -> HistoryAnswer:
    """Return the newest matching rows, oldest first, with the gaps among them."""
    if query.limit <= 0:
        return HistoryAnswer(())
    conditions = [*_conditions(query), *_of_transition(tables.database, query.transition)]
    where = " AND ".join(clause for clause, _ in conditions) or "TRUE"
    values = [value for _, each in conditions for value in each]
    found = tables.database.execute(
        f"SELECT * FROM event WHERE {where} ORDER BY log_index DESC, n DESC LIMIT ?", (*values, query.limit)
    )
    rows, is_cut = _newest(map(from_columns, found))
    left_out = 0
    if is_cut or len(rows) == query.limit:
        (fitting,) = tables.database.execute(f"SELECT count(*) FROM event WHERE {where}", values).fetchone()
        left_out = fitting - len(rows)
    gaps = _gaps_among(tables, rows, is_cut=left_out > 0, query=query)
    return HistoryAnswer(tuple(sorted([*rows, *gaps], key=lambda row: (row.index, row.n))), left_out=left_out)


def _newest(newest_first: Iterable[HistoryRow]) -> tuple[list[HistoryRow], bool]:
    """Return the rows that fit into an answer, oldest first, and whether there are more."""
    rows: list[HistoryRow] = []
    characters = 0
    for row in newest_first:
        characters += len(row.text) + len(row.detail_json) + ROW_CHARACTERS
        if characters > ANSWER_CHARACTERS_MAX:
            return rows[::-1], True
        rows.append(row)
    return rows[::-1], False


def _conditions(query: HistoryQuery) -> list[tuple[str, tuple[object, ...]]]:
    several = [("node", query.nodes), ("resource", query.resources), ("kind", query.kinds)]
    since, until = (None if each is None else max(-FAR_MS, min(each, FAR_MS)) for each in (query.since, query.until))
    single = [("at >= ?", since), ("at <= ?", until)]
    return [
        *((clause, (value,)) for clause, value in single if value is not None),
        *((f"{name} IN ({', '.join('?' * len(values))})", values) for name, values in several if values),
    ]


def _of_transition(database: sqlite3.Connection, word: str) -> list[tuple[str, tuple[object, ...]]]:
    """Return the condition on log indexes for a transition's orders and their causes; empty: it is not known."""
    if not word:
        return []
    escaped = "".join(character for character in word if character.isdigit() or character == ".")
    pattern = '{"order":"' + (f"{escaped}." if "." in escaped else f"%.{escaped}.") + "%"
    newest = database.execute(
        "SELECT detail FROM event WHERE detail LIKE ? AND kind = 'order-issued' ORDER BY log_index DESC LIMIT 1",
        (pattern,),
    ).fetchone()
    if newest is None:
        return []
    term, number = newest[0].removeprefix('{"order":"').split(".")[:2]
    first, last = database.execute(
        "SELECT min(log_index), max(log_index) FROM event WHERE detail LIKE ?", (f'{{"order":"{term}.{number}.%',)
    ).fetchone()
    before = database.execute(
        "SELECT log_index FROM event WHERE log_index < ? ORDER BY log_index DESC, n DESC LIMIT 1 OFFSET ?",
        (first, CAUSES_ROWS),
    ).fetchone()
    return [("log_index BETWEEN ? AND ?", (0 if before is None else before[0], last))]


def _gaps_among(
    tables: HistoryTables, rows: list[HistoryRow], *, is_cut: bool, query: HistoryQuery
) -> Iterable[HistoryRow]:
    first = rows[0].index if rows and is_cut else 0
    for gap in tables.gaps():
        if gap.last < first:
            continue
        at = _time_before(tables.database, gap)
        if (query.until is not None and at > query.until) or (query.since is not None and _is_over(tables, gap, query)):
            continue
        text = f"entries {gap.first} to {gap.last} are not in this node's history"
        yield HistoryRow(gap.first, -1, at, GAP, None, None, text)


def _time_before(database: sqlite3.Connection, gap: Gap) -> WallTime:
    select = "SELECT at FROM event WHERE log_index < ? ORDER BY log_index DESC, n DESC LIMIT 1"
    found = database.execute(select, (gap.first,)).fetchone()
    return WallTime(0 if found is None else found[0])


def _is_over(tables: HistoryTables, gap: Gap, query: HistoryQuery) -> bool:
    """Return whether everything after the gap is older than what is asked for."""
    select = "SELECT at FROM event WHERE log_index > ? ORDER BY log_index, n LIMIT 1"
    found = tables.database.execute(select, (gap.last,)).fetchone()
    return found is not None and query.since is not None and found[0] < query.since


# For peers.


def page(
    tables: HistoryTables, first: int, last: int, *, entries_max: int = PAGE_ENTRIES_MAX
) -> Page | None:
    """Return the newest entries of a range that fit into a page; None when its end is not known here."""
    known = tables.progress()
    if not known.forgotten < last <= known.last:
        return None
    lowest = max(first, known.forgotten + 1)
    for gap in tables.gaps():
        if gap.first <= last <= gap.last:
            return None
        if gap.last < last:
            lowest = max(lowest, gap.last + 1)
    entries: list[KeptEntry] = []
    characters = 0
    found = tables.database.execute(
        "SELECT log_index, before FROM entry WHERE log_index BETWEEN ? AND ? ORDER BY log_index DESC LIMIT ?",
        (lowest, last, entries_max + 1),
    )
    for index, before in found.fetchall():
        rows = rows_at(tables.database, index)
        characters += sum(len(row.text) + len(row.detail_json) + ROW_CHARACTERS for row in rows)
        if entries and (characters > PAGE_CHARACTERS or len(entries) == entries_max):
            lowest = entries[-1].index
            break
        entries.append(KeptEntry(index, before.hex(), rows))
    entries.reverse()
    return Page(lowest, last, tuple(entries))


# For comparisons.


def summarise(tables: HistoryTables, node: NodeName, through: int) -> Generator[None, None, HistorySummary]:
    """Read everything up to an index, in slices; return what is there and what is damaged."""
    known = tables.progress()
    through = min(through, known.last)
    gaps = tables.gaps()
    size = max(BLOCK_ENTRIES_MIN, -(-through // BLOCKS_MAX))
    walk = _Walk(known.forgotten_digest, size, gaps, known.forgotten)
    after = known.forgotten
    while True:
        found = tables.database.execute(
            "SELECT log_index, before, texts FROM entry WHERE log_index > ? AND log_index <= ? "
            "ORDER BY log_index LIMIT ?", (after, through, ENTRIES_PER_SLICE),
        ).fetchall()  # fmt: skip
        for index, before, texts in found:
            walk.step(KeptEntry(index, before.hex(), rows_at(tables.database, index)), texts)
            after = index
        if len(found) < ENTRIES_PER_SLICE:
            break
        yield
    walk.finish(through)
    (rows,) = tables.database.execute("SELECT count(*) FROM event WHERE log_index <= ?", (through,)).fetchone()
    return HistorySummary(
        node=node,
        last=known.last,
        forgotten=known.forgotten,
        rows=rows,
        gaps=tuple(Span(gap.first, min(gap.last, through)) for gap in gaps if gap.first <= through),
        blocks=tuple(walk.blocks),
        damaged=tuple(walk.damaged),
        versions=tuple((each.number, each.digest[:16]) for each in versions(tables.database)),
    )


class _Walk:
    """A pass from entry to entry that checks the chain between them."""

    def __init__(self, link: str, size: int, gaps: tuple[Gap, ...], forgotten: int) -> None:
        self._link: str | None = link
        """The link after the last entry; None: after a gap."""
        self._size = size
        self._gaps = gaps
        self._texts = hashlib.sha256()
        self._boundary = (forgotten // size + 1) * size
        self._previous = 0
        self._seen = forgotten
        self.blocks: list[tuple[int, str, str]] = []
        self.damaged: list[Span] = []

    def step(self, entry: KeptEntry, texts: int) -> None:
        self._close_blocks(entry.index - 1)
        if self._is_gap_between(self._seen, entry.index):
            self._link = None
        if self._link is not None and self._link != entry.before and self._previous:
            self._damage(Span(self._previous, entry.index - 1))
        if texts != texts_sum(entry.rows):
            self._damage(Span(entry.index, entry.index))
        self._texts.update("".join(f"{row.text}\n" for row in entry.rows).encode(errors="replace"))
        self._link, self._previous, self._seen = entry.link, entry.index, entry.index

    def finish(self, through: int) -> None:
        self._close_blocks(through)
        if self._boundary - self._size < through:
            self._close(through)

    def _close_blocks(self, until: int) -> None:
        while self._boundary <= until:
            self._close(self._boundary)
            self._boundary += self._size

    def _close(self, index: int) -> None:
        is_whole = not self._is_gap_between(index - self._size, index + 1)
        if self._link is not None and is_whole:
            self.blocks.append((index, self._link[:16], self._texts.hexdigest()[:16]))
        self._texts = hashlib.sha256()

    def _is_gap_between(self, left: int, right: int) -> bool:
        return any(gap.last > left and gap.first < right for gap in self._gaps)

    def _damage(self, span: Span) -> None:
        if span not in self.damaged and len(self.damaged) < DAMAGED_SHOWN:
            self.damaged.append(span)


def horizon(tables: HistoryTables, before: WallTime, rows_max: int) -> Horizon | None:
    """Return up to where entries are older than `before` or beyond the newest `rows_max` rows; None: none is."""
    database = tables.database
    (kept_from,) = database.execute("SELECT min(log_index) FROM event WHERE at >= ?", (before,)).fetchone()
    known = tables.progress()
    through = known.last if kept_from is None else kept_from - 1
    beyond = database.execute(
        "SELECT log_index FROM event ORDER BY log_index DESC, n DESC LIMIT 1 OFFSET ?", (rows_max,)
    ).fetchone()
    through = max(through, beyond[0] if beyond is not None else 0)
    if database.execute("SELECT 1 FROM event WHERE log_index <= ? LIMIT 1", (through,)).fetchone() is None:
        return None
    digest = tables.digest_at(through) if known.forgotten < through <= known.last else None
    return None if digest is None else Horizon(through, digest)
