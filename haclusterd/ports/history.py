"""The history of one node: what happened, by log index, for people (safety.md §7, "History").

Contract:

* Every call returns at once and never raises. A history that fails never stops or delays anything else: what it cannot
  keep is missing, and `problem` says why. It recovers by itself when the cause ends.
* The rows of one index are written together with the index itself, or not at all. Recording an index again replaces
  its rows: a replayed log leaves the same history.
* Entries form a chain of digests (`model.history_chain`) whose newest link is in the CIB. What this node did not see,
  or lost, is fetched from peers and believed only when the chain proves it. Until then it is known to be missing: a
  query shows it as one row of kind `GAP` in its place.
* A configuration version is written together with the rows of the entry that made it. Its content is encoded by the
  history's own thread, and is bytes that it does not understand. Versions count up by one, so a missing one shows.
* What the CIB says is forgotten is dropped, and nothing else is.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from haclusterd.model.cluster import HistoryMark
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, field
from haclusterd.model.remembered import Comparison as Comparison
from haclusterd.model.remembered import FollowAnswer as FollowAnswer
from haclusterd.model.remembered import FollowQuery as FollowQuery
from haclusterd.model.remembered import HistoryQuery as HistoryQuery
from haclusterd.model.remembered import HistoryRow as HistoryRow
from haclusterd.model.remembered import HistorySummary as HistorySummary
from haclusterd.model.remembered import KeptVersion as KeptVersion
from haclusterd.model.remembered import Position as Position
from haclusterd.model.remembered import Span as Span

GAP: Final = "history-gap"
"""The kind of a row that stands for log entries this node's history does not have."""


@dataclass(frozen=True, slots=True)
class HistoryAnswer:
    """Rows, oldest first; and what keeps the history from being whole now, empty when nothing does."""

    rows: tuple[HistoryRow, ...]
    problem: str = ""
    left_out: int = 0
    """How many more rows fit, older than these."""
    end: Position = Position(0)
    """Where the history ended then."""


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version of the configuration that is to be kept."""

    number: int
    at: WallTime
    author: str
    reason: str
    encode: Callable[[], bytes]
    """Returns the content, equal on every node; called at most once, on the history's thread."""


@dataclass(frozen=True, slots=True)
class VersionQuery:
    """What is asked for: every version that is known, and the content of some."""

    contents: tuple[int, ...] = ()
    """Numbers; those that are not known are left out of the answer."""


@dataclass(frozen=True, slots=True)
class VersionAnswer:
    """Versions, oldest first; contents by number; and what keeps the history from being whole now."""

    versions: tuple[KeptVersion, ...]
    contents: Mapping[int, bytes] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Horizon:
    """Up to where the history can be forgotten."""

    through: int
    digest: str


class History(Protocol):
    """This node's history."""

    def start(self, failed: Callable[[str], None]) -> None:
        """Begin; each new problem is reported once, on the main loop."""
        ...

    def record(
        self,
        index: int,
        rows: tuple[HistoryRow, ...],
        before: HistoryMark,
        after: HistoryMark,
        version: NewVersion | None = None,
    ) -> None:
        """Keep what one applied entry did (rows of that index; none is an answer too), and the version it made.

        `before` and `after` are the CIB's marks before and after that entry.
        """
        ...

    def restored(self, index: int, mark: HistoryMark, version: NewVersion | None = None) -> None:
        """Learn that the state at `index` came as a whole, so that entries before it may never be seen.

        `version` is the configuration in that state; one that is known already stays as it is.
        """
        ...

    def query(self, query: HistoryQuery, done: Callable[[HistoryAnswer], None]) -> None:
        """Look up, after everything recorded so far; deliver the answer on the main loop."""
        ...

    def follow(self, query: FollowQuery, done: Callable[[FollowAnswer], None]) -> None:
        """Look up what comes after a position, as `query` does; what is not there yet is not waited for."""
        ...

    def versions(self, query: VersionQuery, done: Callable[[VersionAnswer], None]) -> None:
        """Look up versions of the configuration, as `query` does."""
        ...

    def compare(self, peers: tuple[NodeName, ...], done: Callable[[Comparison], None]) -> None:
        """Read this node's history through and ask the peers for theirs; those that are silent for long are left."""
        ...

    def horizon(self, before: WallTime, rows_max: int, done: Callable[[Horizon | None], None]) -> None:
        """Find up to where entries are older than `before`, or more than `rows_max` rows back; None: nowhere yet."""
        ...

    def problem(self) -> str:
        """Return what keeps the history from being written; empty when nothing does."""
        ...

    def stop(self, timeout_ms: int) -> None:
        """Write what is queued, but wait no longer than this; nothing is delivered afterwards."""
        ...
