"""How long a loop did not look at new events, because of its own work: measured by the daemon, shown to users."""

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
