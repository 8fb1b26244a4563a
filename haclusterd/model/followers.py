"""What a Raft leader knows of members that have fallen behind: who takes no part in the cluster (safety.md §4).

Invariant: every instant is on the leader's own clock, and none counts from before it became leader, or from before a
standstill of its own.
"""

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Follower:
    """A member that has not answered the leader for a while, or lacks committed entries."""

    name: NodeName
    answered_at: Instant
    """When it answered the leader last."""
    advanced_at: Instant
    """When it acknowledged a further entry last, or lacked none that is committed."""
    is_linked: bool
    """Whether the leader's transport has a session with it."""


@dataclass(frozen=True, slots=True)
class Followers:
    """Those that are behind, as the leader saw them at `at`; it is said again and again while there are any."""

    at: Instant
    behind: tuple[Follower, ...] = ()
    """By name."""
