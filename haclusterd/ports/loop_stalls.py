"""How long this daemon's loops were stalled by their own work, which nothing else could interrupt.

Contract: reading costs nothing, may be done from the main loop at any time, and forgets nothing by itself.
"""

from typing import Protocol

from haclusterd.model.records import dataclass


@dataclass(frozen=True, slots=True)
class LoopStall:
    """The longest time between two looks of one loop at what has come."""

    loop: str
    """`main` or `raft`; or `heartbeats`: the time between two of them, as long as this node leads."""
    longest_ms: int
    """Since the daemon was ready."""
    recent_ms: int
    """In this minute and the one before."""
    longest_work_ms: int = 0
    """The most that the loop's thread itself computed in one stall; the rest was waiting for others."""


class LoopStalls(Protocol):
    """All loops of this daemon."""

    def longest(self) -> tuple[LoopStall, ...]:
        """Return what was measured."""
        ...
