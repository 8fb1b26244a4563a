"""What follows a position in the history: the same rows in the same order on every node, with missing parts named.

Invariant: a reader that continues from the position of each answer gets every row after the first position exactly
once, whichever nodes it asks, except those that an answer names as missing. Every call may raise sqlite3.Error; nothing
here writes.
"""

from collections.abc import Iterable
from typing import Final

from haclusterd.adapters.history.reading import ROW_CHARACTERS
from haclusterd.adapters.history.tables import HistoryTables, Progress, from_columns
from haclusterd.model.instants import WallTime
from haclusterd.model.remembered import (
    LINK_DIGITS,
    Because,
    FollowAnswer,
    FollowedRow,
    FollowQuery,
    HistoryRow,
    Missing,
    Position,
)
from haclusterd.protocol.history_messages import KeptEntry

PAGE_CHARACTERS_MAX: Final = 128 * 1024
"""Approximate size of the rows of one answer; a larger row comes alone."""
FAR_MS: Final = 2**62


def end_of(tables: HistoryTables) -> Position:
    """Return the position after everything that is kept."""
    known = tables.progress()
    return Position(known.last, link=known.digest[:LINK_DIGITS])


def follow(tables: HistoryTables, query: FollowQuery) -> FollowAnswer:
    """Return what follows a position."""
    known = tables.progress()
    start = query.after or _beginning(tables, query.since)
    if start.index > known.last:
        if not query.passes_over:
            return FollowAnswer((), start, is_behind=True)
        return FollowAnswer((), end_of(tables), Missing(known.last + 1, start.index, Because.OTHER_HISTORY))
    lost = _lost_before(tables, known, start)
    if lost is not None:
        return lost
    gap = next((each for each in tables.gaps() if each.last > start.index), None)
    rows, is_cut = _rows(tables, query, start, known.last + 1 if gap is None else gap.first)
    if is_cut:
        return FollowAnswer(rows, rows[-1].position, has_more=True)
    if gap is None:
        return FollowAnswer(rows, end_of(tables))
    if rows:
        return FollowAnswer(rows, rows[-1].position, has_more=True)
    if gap.digest is not None and not query.passes_over:
        return FollowAnswer((), start, is_incomplete=True)
    link = (gap.digest or "")[:LINK_DIGITS]
    missing = Missing(max(start.index + 1, gap.first), gap.last, Because.UNKNOWN)
    return FollowAnswer((), Position(gap.last, link=link), missing, has_more=True)


def _beginning(tables: HistoryTables, since: WallTime | None) -> Position:
    """Return the position before the first row that is not older; without such a row, the end."""
    if since is None:
        return end_of(tables)
    select = "SELECT min(log_index) FROM event WHERE at >= ?"
    (first,) = tables.database.execute(select, (max(-FAR_MS, min(since, FAR_MS)),)).fetchone()
    if first is None:
        return end_of(tables)
    # After the row before it, so that a gap between them is named too.
    (before,) = tables.database.execute("SELECT max(log_index) FROM event WHERE log_index < ?", (first,)).fetchone()
    return Position(before or 0)


def _lost_before(tables: HistoryTables, known: Progress, start: Position) -> FollowAnswer | None:
    """Return an answer that names rows up to the position, or just after it, as lost; None: there are none."""
    if start.index < known.forgotten:
        link = known.forgotten_digest[:LINK_DIGITS]
        behind = Position(known.forgotten, link=link)
        if start.n is None and start.link and link.startswith(start.link[:LINK_DIGITS]):
            return None  # Nothing happened in between.
        first = start.index + (start.n is None)
        return FollowAnswer((), behind, Missing(first, known.forgotten, Because.FORGOTTEN), has_more=True)
    found = tables.digest_at(start.index) if start.link else None
    if found is None or found.startswith(start.link):
        return None
    behind = Position(start.index, start.n, found[:LINK_DIGITS])
    return FollowAnswer((), behind, Missing(1, start.index, Because.OTHER_HISTORY), has_more=True)


def _rows(
    tables: HistoryTables, query: FollowQuery, start: Position, end: int
) -> tuple[tuple[FollowedRow, ...], bool]:
    """Return the oldest rows between a position and a log index, and whether there are more."""
    several = [("resource", query.resources), ("kind", query.kinds)]
    filters = [(f"{name} IN ({', '.join('?' * len(each))})", each) for name, each in several if each]
    if query.node is not None:
        filters.append(("node = ?", (query.node,)))
    conditions = "".join(f" AND {clause}" for clause, _ in filters)
    n = FAR_MS if start.n is None else start.n
    found = tables.database.execute(
        f"SELECT * FROM event WHERE (log_index, n) > (?, ?) AND log_index < ?{conditions} "
        "ORDER BY log_index, n LIMIT ?",
        (start.index, n, end, *(value for _, each in filters for value in each), query.limit + 1),
    )
    rows, is_cut = _oldest(map(from_columns, found), query.limit)
    return tuple(_placed(tables, rows)), is_cut


def _oldest(oldest_first: Iterable[HistoryRow], limit: int) -> tuple[list[HistoryRow], bool]:
    rows: list[HistoryRow] = []
    characters = 0
    for row in oldest_first:
        characters += len(row.text) + len(row.detail_json) + ROW_CHARACTERS
        if rows and (len(rows) == limit or characters > PAGE_CHARACTERS_MAX):
            return rows, True
        rows.append(row)
    return rows, False


def _placed(tables: HistoryTables, rows: list[HistoryRow]) -> Iterable[FollowedRow]:
    """Yield each row with the position after it; after the last row of an entry, that is after the whole entry."""
    entry: KeptEntry | None = None
    link = ""
    for row in rows:
        if entry is None or entry.index != row.index:
            entry = tables.entry(row.index)
            link = "" if entry is None else entry.link[:LINK_DIGITS]
        is_last = entry is not None and row.n == entry.rows[-1].n
        yield FollowedRow(row, Position(row.index, None if is_last else row.n, link))
