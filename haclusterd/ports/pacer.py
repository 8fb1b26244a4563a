"""The pacer as the daemon sees it: who was heard, by whom, and how long this node may continue.

The pacer is another process that outlives the daemon (safety.md §3). They share one memory page, in which each word has
one writer, and a socket for what is larger.

Contract:

* `start` comes before the Raft thread does anything: it revokes what an earlier daemon said of its withdrawn set.
* `report` answers from the pacer's newest report; `reported_at` says how old it is. No report means nobody was heard.
* `withdraw` takes effect before it returns: from then on this node's pacer does not echo that node, in whatever
  incarnation, until `reinstate`. It is called on the Raft thread, before the entry that declares the loss is
  acknowledged. The node is named, not its incarnation alone, because a node whose daemon restarts after its loss still
  runs what the earlier incarnation started: it must get no lease before its next Join is applied (safety.md §2).
* `lease_until` is read from the page at the moment of the call.
"""

from collections.abc import Callable
from typing import Protocol

from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport, PacerSettings, PeerAddress

__all__ = ["BrainState", "HeardNode", "Pacer", "PacerReport", "PacerSettings", "PeerAddress"]


class Pacer(Protocol):
    """This node's pacer."""

    def start(self, settings: PacerSettings, changed: Callable[[PacerReport], None]) -> None:
        """Connect, hand over the settings, and deliver each report on the main loop; reconnects by itself."""
        ...

    def configure(self, settings: PacerSettings) -> None:
        """Hand over changed settings, also those of a new incarnation of this daemon, which begins without a lease."""
        ...

    def report(self) -> PacerReport | None:
        """Return the newest report."""
        ...

    def is_answering(self) -> bool:
        """Return whether a pacer that is there now has reported: its heartbeats keep this node from being lost.

        What was reported by one that has gone says nothing of the next.
        """
        ...

    def lease_until(self) -> Instant:
        """Return until when this node holds its lease; an instant in the past when it holds none. Any thread."""
        ...

    def stamp_main(self) -> None:
        """Tell the pacer that the main loop is alive."""
        ...

    def stamp_raft(self) -> None:
        """Tell the pacer that the Raft thread is alive (Raft thread)."""
        ...

    def main_silence_ms(self) -> int:
        """Return how long ago the main loop showed life; 0 while it never did (any thread)."""
        ...

    def set_empty(self, *, is_empty: bool) -> None:
        """Say whether this node is proven to run nothing that it manages."""
        ...

    def set_condemned(self, *, is_condemned: bool) -> None:
        """Say whether this node wants to end: its watchdog is then fed no more, whatever else holds."""
        ...

    def set_follower(self, *, is_follower: bool) -> None:
        """Say whether this daemon judges nobody: then reports in which nothing but ages is new come less often."""
        ...

    def set_links(self, nodes: tuple[NodeName, ...]) -> None:
        """Say with which peers' daemons this one has sessions: the heartbeats carry it to the nodes that judge."""
        ...

    def withdraw(self, node: NodeName, incarnation: Incarnation) -> None:
        """Stop echoing a node, this one included, of which an incarnation is being declared lost (Raft thread)."""
        ...

    def reinstate(self, node: NodeName, incarnation: Incarnation) -> None:
        """Forget a withdrawn incarnation, once a newer one's Join is applied or its entry is truncated (Raft thread).

        The node is echoed again when none of its incarnations is withdrawn any more.
        """
        ...

    def withdrawals_known(self) -> None:
        """Say that the withdrawn set is complete again after a start; before it nobody is echoed (Raft thread)."""
        ...

    def stop(self) -> None:
        """Disconnect; the pacer itself lives on."""
        ...
