"""How a daemon ends: it drains its node (SIGTERM), the node was removed from the cluster, or it is stopped at once.

While it drains it hopes for a leader for a while, and others may move its resources for a while.

Invariant: the way out is bounded (safety.md §4). Without a leader for a lease, or after `shutdown-escalation`, the node
stops by itself what it still runs.
"""

from enum import StrEnum
from typing import Final

from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.state_tables import Transition, TransitionTable


class Presence(StrEnum):
    """How far a daemon has come on its way out."""

    STAYING = "takes part"
    DRAINING = "others move its resources away, or it stops them by itself"
    LEFT = "has left the cluster, or stopped by itself what it ran"
    REMOVED = "was removed from the cluster"
    STOPPED = "stopped; what runs is left as it is"


class PresenceEvent(StrEnum):
    """What brings it further."""

    DRAIN = "SIGTERM"
    EMPTY = "nothing runs here any more"
    REMOVE = "the CIB says that it is removed"
    STOP = "the process ends"


PRESENCES: Final = TransitionTable(
    "The way out of a daemon",
    "That a node has left is reported once, and that it was removed, too.",
    (Presence.STAYING,),
    (
        # Who asks twice gives others more time, or less; the time counts from the first.
        Transition((Presence.STAYING, Presence.DRAINING), PresenceEvent.DRAIN, Presence.DRAINING),
        # A signal may come while the process is ending.
        Transition((Presence.LEFT,), PresenceEvent.DRAIN, Presence.LEFT),
        Transition((Presence.REMOVED,), PresenceEvent.DRAIN, Presence.REMOVED),
        Transition((Presence.STOPPED,), PresenceEvent.DRAIN, Presence.STOPPED),
        Transition((Presence.DRAINING,), PresenceEvent.EMPTY, Presence.LEFT),
        Transition((Presence.STAYING, Presence.DRAINING, Presence.LEFT), PresenceEvent.REMOVE, Presence.REMOVED),
        Transition(tuple(Presence), PresenceEvent.STOP, Presence.STOPPED),
    ),
)


class Leaving:
    """How one daemon stands."""

    def __init__(self, leaderless_until: Instant) -> None:
        self._leaderless_until = leaderless_until
        self._presence = Presence.STAYING
        self._drained_since = self._asked_at = NEVER
        """`_asked_at`: when it was asked last whether to give up."""
        self._span_ms = 0

    @property
    def presence(self) -> Presence:
        """How far it has come."""
        return self._presence

    def _happened(self, event: PresenceEvent) -> None:
        self._presence = PRESENCES.after(self._presence, event)

    def drain(self, span_ms: int, now: Instant) -> None:
        """Begin to leave; others have `span_ms` to move away what runs here."""
        if self._presence is Presence.STAYING:
            self._drained_since = self._asked_at = now
        self._happened(PresenceEvent.DRAIN)
        self._span_ms = span_ms

    def left(self) -> None:
        """Nothing runs here any more."""
        self._happened(PresenceEvent.EMPTY)

    def removed(self) -> None:
        """The cluster has removed this node."""
        self._happened(PresenceEvent.REMOVE)

    def stop(self) -> None:
        """The process ends."""
        self._happened(PresenceEvent.STOP)

    def leader_changed(self, lease_ms: int, now: Instant) -> None:
        """A leader is known, or known no more: for a lease, another one may come."""
        self._leaderless_until = after(now, lease_ms)

    def why_to_give_up(self, *, is_led: bool, now: Instant) -> str:
        """Say why this node must stop by itself what it runs; empty when it need not."""
        if self._presence is not Presence.DRAINING:
            return ""
        self._asked_at = now
        if not is_led and now >= self._leaderless_until:
            return "no quorum is left to drain this node"
        if now >= after(self._drained_since, self._span_ms):
            return f"draining took longer than {self._span_ms} ms (shutdown-escalation)"
        return ""

    def deadline(self, *, is_led: bool) -> Instant:
        """Return when to ask again; that is over where a bound was reached since it was asked last."""
        if self._presence is not Presence.DRAINING:
            return NEVER
        bounds = [after(self._drained_since, self._span_ms), NEVER if is_led else self._leaderless_until]
        return min((bound for bound in bounds if bound > self._asked_at), default=NEVER)
