"""What is remembered of the past: rows, versions, and what one node's long memory holds of them.

The rows of one log entry are what its changes were; equal on every node. (`model.history` is another thing: what is
known of operations that ran, for deciding what to do next.)
"""

from dataclasses import dataclass

from haclusterd.model.history_chain import Fact
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime


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

    @property
    def fact(self) -> Fact:
        """What of it is part of the chain: everything but the wording."""
        return self.at, self.kind, self.node, self.resource, self.detail_json


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
class Span:
    """A range of log indices, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class HistorySummary:
    """What one node's history holds, read from its rows as they are on its disk."""

    node: NodeName
    last: int = 0
    """The newest index that it has seen."""
    forgotten: int = 0
    rows: int = 0
    gaps: tuple[Span, ...] = ()
    blocks: tuple[tuple[int, str, str], ...] = ()
    """(index, link of the chain at it as computed from the rows, digest of all texts up to it), oldest first; the last
    one is at the index that was asked for, unless that lies in a gap."""
    damaged: tuple[Span, ...] = ()
    """Ranges whose rows are not what they were when they were written; at most a few."""
    versions: tuple[tuple[int, str], ...] = ()
    """(number, digest) of the configuration versions."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """What is asked for: the newest `limit` rows that fit; an empty or absent condition always holds."""

    limit: int = 100
    since: WallTime | None = None
    """Not older than this."""
    until: WallTime | None = None
    """Not newer than this."""
    node: NodeName | None = None
    resources: tuple[ResourceId, ...] = ()
    kinds: tuple[str, ...] = ()
    transition: str = ""
    """`TERM.NUMBER`, or the newest of a NUMBER: its orders, how they ended, and what came shortly before them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the nodes' histories hold; a node that did not answer is named in `silent`."""

    summaries: tuple[HistorySummary, ...]
    silent: tuple[NodeName, ...] = ()
