"""A log as histories see it: entries with rows, chained as `apply` chains them."""

from haclusterd.adapters.history.tables import Jumped, Recorded
from haclusterd.model.cluster import HistoryMark
from haclusterd.model.history_chain import chained
from haclusterd.model.instants import WallTime
from haclusterd.model.remembered import HistoryRow
from haclusterd.ports.history import NewVersion


def row(index: int, n: int = 0, text: str = "", **fields: object) -> HistoryRow:
    parts = {"at": WallTime(1000 * index), "kind": "order-issued", "node": None, "resource": None, **fields}
    return HistoryRow(index=index, n=n, text=text or f"row {index}.{n}", **parts)


class WrittenLog:
    """Entries in the order of their indices, and the mark that the CIB has after each."""

    def __init__(self) -> None:
        self.entries: list[Recorded] = []
        self.mark = HistoryMark()

    @property
    def last(self) -> int:
        return self.entries[-1].index if self.entries else 0

    def add(self, index: int, *rows: HistoryRow, version: NewVersion | None = None, forgotten: int = 0) -> Recorded:
        """Append an entry; with `forgotten` it is one that lets the entries up to that index be forgotten."""
        assert index > self.last
        digest = chained(self.mark.digest, index, (each.fact for each in rows))
        after = HistoryMark(digest, self.mark.forgotten, self.mark.forgotten_digest)
        if forgotten:
            after = HistoryMark(digest, forgotten, self.digest_at(forgotten))
        self.entries.append(Recorded(index, rows, self.mark, after, version))
        self.mark = after
        return self.entries[-1]

    def fill(self, first: int, last: int) -> list[Recorded]:
        """Append entries with one row each."""
        return [self.add(index, row(index)) for index in range(first, last + 1)]

    def jump(self, index: int, version: NewVersion | None = None) -> Jumped:
        """Return the snapshot at an index."""
        return Jumped(index, self.mark_at(index), version)

    def mark_at(self, index: int) -> HistoryMark:
        found = [entry.after for entry in self.entries if entry.index <= index]
        return found[-1] if found else HistoryMark()

    def digest_at(self, index: int) -> str:
        return self.mark_at(index).digest

    def rows(self) -> list[HistoryRow]:
        """Return what is to be remembered."""
        return [each for entry in self.entries for each in entry.rows if entry.index > self.mark.forgotten]
