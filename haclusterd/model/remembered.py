"""What is remembered of the past: rows, versions, and what one node's history holds of them.

The rows of one log entry are what its changes were; equal on every node. (`model.history` is another thing: what is
known of operations that ran, for deciding what to do next.)
"""

import re
from enum import StrEnum
from typing import Final

from haclusterd.model.history_chain import Fact
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass


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
    nodes: tuple[NodeName, ...] = ()
    resources: tuple[ResourceId, ...] = ()
    kinds: tuple[str, ...] = ()
    transition: str = ""
    """`TERM.NUMBER`, or the newest of a NUMBER: its orders, how they ended, and what came shortly before them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the nodes' histories hold; a node that did not answer is named in `silent`."""

    summaries: tuple[HistorySummary, ...]
    silent: tuple[NodeName, ...] = ()


LINK_DIGITS: Final = 12
"""Of a link of the chain in a position: enough to know another history by."""
_POSITION: Final = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?(?:-([0-9a-f]{1,64}))?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the history, after a row or after a whole log entry; it means the same on every node."""

    index: int
    n: int | None = None
    """The row's number in its entry; None: after everything that the entry did."""
    link: str = ""
    """The first digits of the chain's link at this entry, by which another history is known; empty: not checked."""

    def __str__(self) -> str:
        """Write it as `INDEX[.N][-LINK]`."""
        row = "" if self.n is None else f".{self.n}"
        return f"{self.index}{row}{f'-{self.link}' if self.link else ''}"


def read_position(text: str) -> Position | None:
    """Read what `str` of a position wrote; None for everything else."""
    found = _POSITION.match(text)
    if found is None:
        return None
    index, n, link = found.groups()
    return Position(int(index), None if n is None else int(n), link or "")


@dataclass(frozen=True, slots=True)
class FollowQuery:
    """What is asked for: the oldest `limit` rows after a position that fit; an absent condition always holds."""

    limit: int
    after: Position | None = None
    """None: from `since` on."""
    since: WallTime | None = None
    """From the first row on that is not older; None: only what is still to come."""
    node: NodeName | None = None
    resources: tuple[ResourceId, ...] = ()
    kinds: tuple[str, ...] = ()
    passes_over: bool = False
    """Whether what this node does not have is passed over and named, instead of being waited for."""


class Because(StrEnum):
    """Why rows are missing."""

    FORGOTTEN = "forgotten"
    """They are older than the cluster keeps its history."""
    UNKNOWN = "unknown"
    """This node did not see them, and no peer has sent them."""
    OTHER_HISTORY = "other-history"
    """What came before the position is not what this cluster's history says: it was recovered or restored."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Log entries whose rows are not known, both ends included."""

    first: int
    last: int
    because: Because


@dataclass(frozen=True, slots=True)
class FollowedRow:
    """A row, and the position after it."""

    row: HistoryRow
    position: Position


@dataclass(frozen=True, slots=True)
class FollowAnswer:
    """Rows, or what is missing before the next ones; and where to continue."""

    rows: tuple[FollowedRow, ...]
    """Oldest first."""
    next: Position
    missing: Missing | None = None
    """It lies before `next`; then there are no rows."""
    has_more: bool = False
    """Whether there is something after `next` already."""
    is_incomplete: bool = False
    """Whether peers are being asked for what comes next."""
    is_behind: bool = False
    """Whether this node's history ends before the position."""
    problem: str = ""
    """What keeps the history from being whole now; empty when nothing does."""
    is_refused: bool = False
    """Whether it was not looked up, since too many wait; `problem` says how many may."""
