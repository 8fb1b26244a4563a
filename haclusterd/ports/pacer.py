"""The pacer as the brain sees it: who was heard, by whom, and how long this node may go on.

The pacer is another process that outlives the brain (safety.md §3). They share one memory page, in which each word has
one writer, and a socket for what is larger.

Contract:

* `report` answers from the pacer's newest report; `reported_at` says how old it is. No report means nobody was heard.
* `withdraw` takes effect before it returns: from then on this node's pacer does not echo that incarnation. It is called
  on the Raft thread, before the entry that declares the loss is acknowledged.
* `lease_until` is read from the page at the moment of the call.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant


class BrainState(StrEnum):
    """What a pacer says of its own brain."""

    ALIVE = "alive"
    RESTARTING = "restarting"
    """The brain is gone; its stamps ended."""
    HUNG = "hung"
    """The brain's process is there; its main loop or its Raft thread stopped stamping."""


@dataclass(frozen=True, slots=True)
class HeardNode:
    """What is known of one peer, at the report's instant."""

    name: NodeName
    incarnation: Incarnation | None
    """The incarnation its heartbeats carry; None before the first."""
    age_ms: int | None
    """Milliseconds since its newest authentic heartbeat; None: never heard."""
    brain: BrainState
    brain_since_ms: int
    """How long its brain has been in that state, as it says."""
    hears: Mapping[NodeName, int]
    """Heard ages of all nodes as that peer reports them, in ms, at the sending of its newest heartbeat."""


@dataclass(frozen=True, slots=True)
class PacerReport:
    """Everything heard, as of `reported_at` on this node's clock."""

    reported_at: Instant
    stalled_at: Instant | None
    """When this node's pacer last found that it had itself been stopped for more than T/4 (safety.md §4)."""
    nodes: tuple[HeardNode, ...]


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """Where a peer's pacer listens, and the key that both ends hold."""

    name: NodeName
    addresses: tuple[tuple[str, int], ...]
    key: bytes
    is_voter: bool


@dataclass(frozen=True, slots=True)
class PacerSettings:
    """What the brain tells its pacer at start and when it changes."""

    node: NodeName
    incarnation: Incarnation
    is_voter: bool
    listen: tuple[tuple[str, int], ...]
    peers: tuple[PeerAddress, ...]
    node_timeout_ms: int
    brain_timeout_ms: int


class Pacer(Protocol):
    """This node's pacer."""

    def start(self, settings: PacerSettings, changed: Callable[[PacerReport], None]) -> None:
        """Connect, hand over the settings, and deliver each report on the main loop; reconnects by itself."""
        ...

    def configure(self, settings: PacerSettings) -> None:
        """Hand over changed settings."""
        ...

    def report(self) -> PacerReport | None:
        """Return the newest report."""
        ...

    def lease_until(self) -> Instant:
        """Return until when this node holds its lease; an instant in the past when it holds none."""
        ...

    def stamp_main(self) -> None:
        """Tell the pacer that the main loop is alive."""
        ...

    def stamp_raft(self) -> None:
        """Tell the pacer that the Raft thread is alive."""
        ...

    def set_empty(self, *, is_empty: bool) -> None:
        """Say whether this node is proven to run nothing that it manages."""
        ...

    def withdraw(self, incarnation: Incarnation) -> None:
        """Stop echoing an incarnation that is being declared lost (Raft thread)."""
        ...

    def reinstate(self, incarnation: Incarnation) -> None:
        """Forget a withdrawn incarnation, after a newer one's Join was applied (Raft thread)."""
        ...

    def withdrawals_known(self) -> None:
        """Say that the withdrawn set is complete again after a start; before it nobody is echoed."""
        ...

    def stop(self) -> None:
        """Disconnect; the pacer itself lives on."""
        ...
