"""How long the network takes to the peers and back, as the pacer's heartbeats show it (safety.md §2: L >= 3h + RTT).

A peer's heartbeat names the newest of ours that it had seen; the time between the two is the round trip and up to one
heartbeat period in which the peer had nothing to send. A lost heartbeat makes it longer by another one. So the shortest
of many, less a period, is what the network takes at least.
"""

from collections import deque

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant, elapsed_ms
from haclusterd.model.pacer import PacerReport

REMEMBERED = 64
"""Heartbeats of each peer."""


class RoundTrips:
    """The newest spans of each peer."""

    def __init__(self) -> None:
        self._spans: dict[NodeName, deque[int]] = {}
        self._seen: dict[NodeName, Instant] = {}

    def observe(self, report: PacerReport) -> None:
        """Take a report of the pacer."""
        for node in report.nodes:
            if node.heard_at is None or node.answered_at is None or self._seen.get(node.name) == node.heard_at:
                continue
            self._seen[node.name] = node.heard_at
            spans = self._spans.setdefault(node.name, deque(maxlen=REMEMBERED))
            spans.append(elapsed_ms(node.answered_at, node.heard_at))

    def least_ms(self, node: NodeName, heartbeat_ms: int) -> int | None:
        """Return what the network takes to a peer and back at least, in ms; None: nothing was heard."""
        spans = self._spans.get(node)
        return max(0, min(spans) - heartbeat_ms) if spans else None
