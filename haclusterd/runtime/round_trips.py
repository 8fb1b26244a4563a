"""The round-trip times to the peers, measured by the pacer's heartbeats (safety.md §2: L >= 3h + RTT).

A peer's heartbeat names the newest of ours that it had seen; the time between the two is the round trip plus up to one
heartbeat period in which the peer had nothing to send, and one more for each lost heartbeat. So the shortest of many,
minus a period, is a lower bound of the round trip.
"""

from collections import deque

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant, elapsed_ms
from haclusterd.model.pacer import PacerReport

REMEMBERED = 64
"""Number of heartbeats remembered of each peer."""


class RoundTrips:
    """The newest measurements of each peer."""

    def __init__(self) -> None:
        self._spans: dict[NodeName, deque[int]] = {}
        self._seen: dict[NodeName, Instant] = {}

    def observe(self, report: PacerReport) -> None:
        """Take a pacer report."""
        for node in report.nodes:
            if node.heard_at is None or node.answered_at is None or self._seen.get(node.name) == node.heard_at:
                continue
            self._seen[node.name] = node.heard_at
            spans = self._spans.setdefault(node.name, deque(maxlen=REMEMBERED))
            spans.append(elapsed_ms(node.answered_at, node.heard_at))

    def least_ms(self, node: NodeName, heartbeat_ms: int) -> int | None:
        """Return a lower bound of the round trip to a peer, in ms; None: nothing was heard."""
        spans = self._spans.get(node)
        return max(0, min(spans) - heartbeat_ms) if spans else None
