"""The long memory of one node: what happened, by log index, for people (safety.md §7, "History").

Contract:

* `record` and `query` return at once and never raise. A history that fails never stops or delays anything else: what it
  cannot keep is missing, and `problem` says why.
* The rows of one index are written together with the index itself, or not at all. Recording an index again replaces
  its rows: a replayed log leaves the same history.
* A configuration version is written together with the rows of the entry that made it. Its content is encoded by the
  history's own thread, and is bytes that it does not understand. Versions count up by one, so a missing one shows.
* What is not known is known to be missing: a query shows log entries that were skipped by a snapshot, or could not be
  written, as one row of kind `GAP` in their place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
class KeptVersion:
    """A version of the configuration that is known here."""

    number: int
    at: WallTime
    author: str
    reason: str
    digest: str
    """SHA-256 of the content, in hexadecimal digits."""


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


class History(Protocol):
    """This node's history."""

    def start(self, failed: Callable[[str], None]) -> None:
        """Begin; each new problem is told once, on the main loop."""
        ...

    def record(self, index: int, rows: tuple[HistoryRow, ...], version: NewVersion | None = None) -> None:
        """Keep what one applied entry did (rows of that index; none is an answer too), and the version it made."""
        ...

    def restored(self, index: int, version: NewVersion | None = None) -> None:
        """Learn that the state at `index` came as a whole, so that entries before it may never be seen.

        `version` is the configuration in that state; one that is known already stays as it is.
        """
        ...

    def query(self, query: HistoryQuery, done: Callable[[HistoryAnswer], None]) -> None:
        """Look up, after everything recorded so far; deliver the answer on the main loop."""
        ...

    def versions(self, query: VersionQuery, done: Callable[[VersionAnswer], None]) -> None:
        """Look up versions of the configuration, as `query` does."""
        ...

    def problem(self) -> str:
        """Return what keeps the history from being written; empty when nothing does."""
        ...

    def stop(self, timeout_ms: int) -> None:
        """Write what is queued, but wait no longer than this; nothing is delivered afterwards."""
        ...
