"""What pacers say to each other, to their daemon, and hear from it.

Invariant: values only. A token is the random half of an incarnation, 16 lower-case hexadecimal digits; it names one
run of one daemon. An instant inside a value is on the clock of the node that wrote it and is compared only there.

What comes and goes with every heartbeat is a named tuple: a frozen dataclass takes four times as long to make.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.records import dataclass, field
from haclusterd.model.watchdog import Watchdog, WatchdogSettings

NO_LEASE = Instant(0)
"""What is published when this node holds no lease: an instant that is always past."""


NO_STAMP = Instant(0)


class BrainState(StrEnum):
    """What a pacer says of its own daemon."""

    ALIVE = "alive"
    RESTARTING = "restarting"
    """The daemon is gone, or is there again and has not yet shown life."""
    HUNG = "hung"
    """The daemon's process is there; its main loop or its Raft thread stopped stamping."""


class Receipt(NamedTuple):
    """One heartbeat of the reader, as its receiver saw it: which incarnation sent it, and when by its clock."""

    token: str
    sent_at: Instant


class HeardAge(NamedTuple):
    """How long ago a pacer heard one node."""

    node: NodeName
    token: str
    """The incarnation that was heard."""
    age_ms: int
    is_linked: bool = False
    """Whether the writer's daemon has a session with that node's daemon (TCP)."""


class Heartbeat(NamedTuple):
    """What one pacer sends another, once per heartbeat period on every link."""

    sender: NodeName
    receiver: NodeName
    incarnation: Incarnation
    """The sender's."""
    sent_at: Instant
    """On the sender's clock; it rises with every heartbeat of an incarnation and so is the sequence number too."""
    brain: BrainState
    brain_since_ms: int
    """ALIVE: since it became so. Otherwise: since it was last alive for longer than a moment."""
    echo: Receipt | None
    """The sender's vote for the receiver's lease (safety.md §2); None when it withholds it."""
    seen: Receipt | None
    """The receiver's newest heartbeat, vote or not. It proves that this heartbeat is not an old recording."""
    heard: tuple[HeardAge, ...]
    """Every node that the sender has heard, by name."""
    is_empty: bool = False
    """The sender is proven to run nothing that it manages: its watchdog is fed whether or not it has a lease."""


class PageReading(NamedTuple):
    """What the daemon says through the shared page, read at one moment, after the clock."""

    known_by: str | None = None
    """The token of the daemon incarnation that has said that its withdrawn set is complete; None: nobody did."""
    withdrawn: frozenset[NodeName] = frozenset()
    """Nodes that get no echo, in whatever incarnation, this node included."""
    main_stamped_at: Instant = NO_STAMP
    raft_stamped_at: Instant = NO_STAMP
    is_empty: bool = False
    """This node is proven to run nothing that it manages."""
    is_condemned: bool = False
    """This node wants to end: its watchdog is not fed any more (no-quorum-policy fence)."""
    is_follower: bool = False
    """The daemon judges nobody: it gets a report of what is heard now and then, and at once only of what changes."""
    linked: frozenset[NodeName] = frozenset()
    """The peers with whose daemons the daemon has sessions."""


Link = tuple[tuple[str, int], tuple[str, int]]
"""An own address and the peer's address that sends to it: each a numeric address and a UDP port."""


class HeardIncarnation(NamedTuple):
    """The incarnation of a peer that is heard, or was heard last."""

    incarnation: Incarnation
    silent_since: Instant
    """When its newest heartbeat came, or an own stall ended after it."""


class HeldLease(NamedTuple):
    """A lease, and the incarnation of this node's daemon to which it was given."""

    token: str
    until: Instant


@dataclass(frozen=True, slots=True)
class HeardNode:
    """What is known of one peer, at the report's instant."""

    name: NodeName
    incarnation: Incarnation | None
    """The incarnation its heartbeats carry; None before the first."""
    age_ms: int | None
    """Its silence in milliseconds: since its newest authentic heartbeat, or since an own stall (safety.md §4),
    whichever is later. None: never heard."""
    brain: BrainState
    brain_since_ms: int
    """ALIVE: how long it has been so. Otherwise: how long ago it was last alive. As its newest heartbeat says."""
    hears: Mapping[NodeName, int]
    """Heard ages of all nodes as that peer reports them, in ms, at the sending of its newest heartbeat."""
    heard_at: Instant | None = None
    """When its newest heartbeat came, by this node's clock; an own stall does not move it."""
    hears_token: Mapping[NodeName, str] = field(default_factory=lambda: MappingProxyType({}))
    """Which incarnation each age in `hears` belongs to."""
    answered_at: Instant | None = None
    """When this node sent the newest of its own heartbeats that the peer had seen: the peer has lived since then,
    however late its heartbeat came. None: it has seen none of this incarnation's."""
    is_empty: bool = False
    """Whether its newest heartbeat says that it runs nothing."""
    linked: frozenset[NodeName] = frozenset()
    """The nodes with whose daemons its daemon has sessions, as its newest heartbeat says."""


@dataclass(frozen=True, slots=True)
class PacerReport:
    """Everything heard, as of `reported_at` on this node's clock."""

    reported_at: Instant
    stalled_at: Instant | None
    """When this node's pacer last found that it had itself been stopped for more than T/4 (safety.md §4)."""
    nodes: tuple[HeardNode, ...]
    """Every configured peer, by name."""
    errors: tuple[str, ...] = ()
    """What the pacer cannot do at present, for people: a port in use, an address that is no address."""
    watchdog: Watchdog | None = None
    """The device that it feeds."""
    watchdog_problem: str = ""
    """Why it feeds none although one is configured, or why the device takes no feed."""


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """Where a peer's pacer listens, and the key that both ends hold."""

    name: NodeName
    addresses: tuple[tuple[str, int], ...]
    """Numeric IPv4 or IPv6 address and UDP port, one for each link; no names, since looking one up may block."""
    key: bytes = field(repr=False)
    """At least 16 random bytes, the same at both ends of this pair and nowhere else."""
    is_voter: bool


@dataclass(frozen=True, slots=True)
class PacerSettings:
    """What the daemon sends its pacer, at start and when it changes."""

    node: NodeName
    incarnation: Incarnation
    is_voter: bool
    listen: tuple[tuple[str, int], ...]
    """Numeric addresses and UDP ports, one for each link; link number k is sent on from the k-th of them."""
    peers: tuple[PeerAddress, ...]
    node_timeout_ms: int
    brain_timeout_ms: int
    watchdog: WatchdogSettings | None = None
