"""What a leader knows of one peer: where to go on, and how much is under way.

Invariant: entries are sent only where the logs are known to agree; a new link or a refusal makes the leader compare
first. It must never advance on anything but an acknowledgement of this leader's term.
"""

from collections import deque
from dataclasses import dataclass, field

from haclusterd.model.instants import Instant


@dataclass(slots=True)
class Progress:
    """What a leader knows of one peer. The library is told less of it: see `GuardedSyncObj._count`."""

    next: int
    answered_at: Instant
    """When the peer answered last; before it did, when this node began to lead."""
    advanced_at: Instant
    """When the peer acknowledged a further entry last, or lacked none."""
    match: int = 0
    """The newest entry that the peer has acknowledged: here it agrees, and is on the peer's disk."""
    is_probing: bool = True
    """Until the first acknowledgement only empty messages are sent, to find where the logs agree."""
    in_flight: deque[tuple[int, int]] = field(default_factory=deque)
    """Last index and bytes of each message with entries that was sent and not acknowledged."""
    in_flight_bytes: int = 0

    def restart(self, next_index: int) -> None:
        """Compare again, from `next_index` on."""
        self.next = next_index
        self.is_probing = True
        self.in_flight.clear()
        self.in_flight_bytes = 0

    def sent(self, last_index: int, size: int) -> None:
        """Note a message with entries."""
        self.next = last_index + 1
        self.in_flight.append((last_index, size))
        self.in_flight_bytes += size

    def acknowledged(self, index: int) -> None:
        """Note that the peer holds all up to `index`."""
        self.match = index
        self.is_probing = False
        self.next = max(self.next, index + 1)
        while self.in_flight and self.in_flight[0][0] <= index:
            self.in_flight_bytes -= self.in_flight.popleft()[1]
