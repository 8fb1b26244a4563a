"""The long memory of one node: what happened, by log index, for people (safety.md §7, "History").

Contract:

* `record` and `query` return at once and never raise. A history that fails never stops or delays anything else: what it
  cannot keep is missing, and `problem` says why.
* The rows of one index are written together with the index itself, or not at all. Recording an index again replaces
  its rows: a replayed log leaves the same history.
* What is not known is known to be missing: a query shows log entries that were skipped by a snapshot, or could not be
  written, as one row of kind `GAP` in their place.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime

GAP: Final = "history-gap"
"""The kind of a row that stands for log entries this node's history does not have."""


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One thing that happened."""

    index: int
    """Of the log entry that did it."""
    n: int
    """Which of the things this entry did, from 0."""
    at: WallTime
    """From the command."""
    kind: str
    node: NodeName | None
    resource: ResourceId | None
    text: str
    detail_json: str = ""


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """What is asked for: the newest `limit` rows that fit."""

    limit: int = 100
    since: WallTime | None = None
    """Not older than this."""
    node: NodeName | None = None
    resource: ResourceId | None = None


@dataclass(frozen=True, slots=True)
class HistoryAnswer:
    """Rows, oldest first; and what keeps the history from being whole now, empty when nothing does."""

    rows: tuple[HistoryRow, ...]
    problem: str = ""


class History(Protocol):
    """This node's history."""

    def start(self, failed: Callable[[str], None]) -> None:
        """Begin; each new problem is told once, on the main loop."""
        ...

    def record(self, index: int, rows: tuple[HistoryRow, ...]) -> None:
        """Keep what one applied entry did (rows of that index; none is an answer too)."""
        ...

    def restored(self, index: int) -> None:
        """Learn that the state at `index` came as a whole, so that entries before it may never be seen."""
        ...

    def query(self, query: HistoryQuery, done: Callable[[HistoryAnswer], None]) -> None:
        """Look up, after everything recorded so far; deliver the answer on the main loop."""
        ...

    def problem(self) -> str:
        """Return what keeps the history from being written; empty when nothing does."""
        ...

    def stop(self, timeout_ms: int) -> None:
        """Write what is queued, but wait no longer than this; nothing is delivered afterwards."""
        ...
