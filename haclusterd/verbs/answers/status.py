"""The state of the cluster: everything a person looks at first. Times are epoch ms."""

from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer, absent
from haclusterd.verbs.answers.node import Node


@dataclass(frozen=True, slots=True)
class ShownHeadline:
    """One thing that is to be known before all others."""

    gravity: int
    """0 good, 1 warning, 2 bad."""
    verdict: str
    text: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Verdict(Answer):
    """The verdict on one line, as monitoring wants it."""

    SCHEMA: ClassVar[str] = "haclusterd.verdict/1"
    gravity: int
    """0 good, 1 warning, 2 bad; the exit status, too."""
    verdict: str
    text: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Quorum:
    """Whether the cluster may act."""

    known: bool
    has: bool
    connected: int
    voters: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConfigurationVersion:
    """The version of the configuration, and who made it."""

    version: int
    author: str
    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class TransitionProgress:
    """How far the transition under way is."""

    number: int
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ShownInstance:
    """One resource on one node."""

    node: str
    state: str
    """`started`, `starting`, `stopping`, `failed`, `blocked`, `unverified`, `lost`."""
    role: str
    """`Promoted`, `Unpromoted`, `Started`."""
    detail: str


@dataclass(frozen=True, slots=True)
class ShownResource:
    """How a resource is; what contains others has members. What is of primitives alone is absent for those."""

    id: str
    kind: str
    """`primitive`, `fence device`, `group`, `clone`, `bundle`."""
    agent: str
    is_promotable: bool | None = absent()
    """Of what contains others."""
    is_cloned: bool | None = absent()
    has_roles: bool | None = absent()
    stopped_on: tuple[str, ...] | None = absent()
    """Nodes where an instance of a clone is missing."""
    instances: tuple[ShownInstance, ...] | None = absent()
    is_managed: bool | None = absent()
    is_maintenance: bool | None = absent()
    not_wanted: str | None = absent()
    """Why it is not to run; empty: it is."""
    why_stopped: str | None = absent()
    members: "tuple[ShownResource, ...]" = ()


@dataclass(frozen=True, slots=True)
class Resources(Answer):
    """How resources are."""

    SCHEMA: ClassVar[str] = "haclusterd.resources/1"
    now: int
    resources: tuple[ShownResource, ...]


@dataclass(frozen=True, slots=True)
class TicketInShort:
    """One ticket."""

    ticket: str
    is_granted: bool
    is_standby: bool
    is_needed: bool


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """An order that was issued and has not ended."""

    node: str
    resource: str
    action: str
    interval_ms: int
    reason: str
    issued_at: int
    is_voided: bool
    is_probe: bool


@dataclass(frozen=True, slots=True)
class Move:
    """A constraint that `resource move` or `resource ban` made."""

    id: str
    resource: str | None
    node: str | None
    score: str
    is_ban: bool
    until: int | None = None
    """When it ends by itself, in ms since the epoch; None: never."""


@dataclass(frozen=True, slots=True)
class ShownFailure:
    """Failures of one operation that are not forgotten."""

    node: str
    resource: str
    operation: str
    interval_ms: int
    count: str | None
    failed_at: int
    exit_code: int | None
    status: str | None
    exit_reason: str


@dataclass(frozen=True, slots=True)
class OpenFenceOrder:
    """A fencing under way."""

    target: str
    action: str
    device: str | None
    executor: str | None
    state: str
    attempt: int
    issued_at: int
    reason: str


@dataclass(frozen=True, slots=True)
class RecentFencing:
    """A fencing that has ended lately."""

    target: str
    action: str
    device: str | None
    executor: str | None
    outcome: str
    detail: str
    ended_at: int
    reason: str


@dataclass(frozen=True, slots=True)
class DeviceOfNode:
    """A fence device of a node, and how far it is proven."""

    target: str
    device: str
    state: str
    at: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class FencingInShort:
    """How fencing is."""

    enabled: bool
    open: tuple[OpenFenceOrder, ...]
    recent: tuple[RecentFencing, ...]
    devices: tuple[DeviceOfNode, ...]


@dataclass(frozen=True, slots=True)
class LoopStall:
    """How long a loop of the daemon was kept from looking at what came."""

    loop: str
    longest_ms: int
    recent_ms: int
    longest_work_ms: int


@dataclass(frozen=True, slots=True)
class Status(Answer):
    """The state of the whole cluster."""

    SCHEMA: ClassVar[str] = "haclusterd.status/1"
    cluster: str
    now: int
    verdict: str
    gravity: int
    headlines: tuple[ShownHeadline, ...]
    answered_by: str | None
    started_at: int | None
    stale_ms: int
    """How old the answer may be; 0: it is current."""
    index: int
    dc: str | None
    leader: str | None
    term: int
    quorum: Quorum
    configuration: ConfigurationVersion
    maintenance: bool
    transition: TransitionProgress | None
    nodes: tuple[Node, ...]
    resources: tuple[ShownResource, ...]
    tickets: tuple[TicketInShort, ...]
    orders: tuple[OpenOrder, ...]
    moves: tuple[Move, ...]
    failures: tuple[ShownFailure, ...]
    fencing: FencingInShort
    warnings: tuple[str, ...]
    holds: tuple[LoopStall, ...]
    at: int | None = absent()
    """The past moment that it is about, which is `now`, too; absent: the present."""


@dataclass(frozen=True, slots=True)
class Restart(Answer):
    """Resources restart."""

    SCHEMA: ClassVar[str] = "haclusterd.restart/1"
    resource: str
    limit_ms: int
    """After so long they may run again, whatever has not stopped."""
    others: tuple[str, ...] = ()
    """More resources that restart at the same time."""


@dataclass(frozen=True, slots=True)
class Cleanup(Answer):
    """Failures are forgotten."""

    SCHEMA: ClassVar[str] = "haclusterd.cleanup/1"
    forgotten: int
    """How many."""
