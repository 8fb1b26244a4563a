"""How a daemon ends: it drains its node (SIGTERM), its node was removed from the cluster, or it is stopped at once.

While it drains it waits some time for a leader, and gives other nodes some time to take over its resources.

Invariant: draining is bounded (safety.md §4). After a lease without a leader, or after `shutdown-escalation`, the node
stops by itself what it still runs.
"""

from enum import StrEnum
from typing import Final

from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.state_tables import Transition, TransitionTable


class Presence(StrEnum):
    """The state of a daemon on its way out."""

    STAYING = "takes part"
    DRAINING = "others move its resources away, or it stops them by itself"
    LEFT = "has left the cluster, or stopped by itself what it ran"
    REMOVED = "was removed from the cluster"
    STOPPED = "stopped; what runs is left as it is"


class PresenceEvent(StrEnum):
    """What changes that state."""

    DRAIN = "SIGTERM"
    EMPTY = "nothing runs here any more"
    REMOVE = "the CIB says that it is removed"
    STOP = "the process ends"


PRESENCES: Final = TransitionTable(
    "The way out of a daemon",
    "That a node has left is reported once, and that it was removed, too.",
    (Presence.STAYING,),
    (
        # A second request gives the other nodes more time, or less, counted from the first.
        Transition((Presence.STAYING, Presence.DRAINING), PresenceEvent.DRAIN, Presence.DRAINING),
        # A signal may arrive while the process is ending.
        Transition((Presence.LEFT,), PresenceEvent.DRAIN, Presence.LEFT),
        Transition((Presence.REMOVED,), PresenceEvent.DRAIN, Presence.REMOVED),
        Transition((Presence.STOPPED,), PresenceEvent.DRAIN, Presence.STOPPED),
        Transition((Presence.DRAINING,), PresenceEvent.EMPTY, Presence.LEFT),
        Transition((Presence.STAYING, Presence.DRAINING, Presence.LEFT), PresenceEvent.REMOVE, Presence.REMOVED),
        Transition(tuple(Presence), PresenceEvent.STOP, Presence.STOPPED),
    ),
)


class Leaving:
    """The state of one daemon; see the module."""

    def __init__(self, leaderless_until: Instant) -> None:
        self._leaderless_until = leaderless_until
        self._presence = Presence.STAYING
        self._drained_since = self._asked_at = NEVER
        """`_asked_at`: when `why_to_give_up` was last asked."""
        self._span_ms = 0

    @property
    def presence(self) -> Presence:
        """The state."""
        return self._presence

    def _happened(self, event: PresenceEvent) -> None:
        self._presence = PRESENCES.after(self._presence, event)

    def drain(self, span_ms: int, now: Instant) -> None:
        """Start leaving; other nodes have `span_ms` to take over what runs here."""
        if self._presence is Presence.STAYING:
            self._drained_since = self._asked_at = now
        self._happened(PresenceEvent.DRAIN)
        self._span_ms = span_ms

    def left(self) -> None:
        """Note that nothing runs here any more."""
        self._happened(PresenceEvent.EMPTY)

    def removed(self) -> None:
        """Note that the cluster has removed this node."""
        self._happened(PresenceEvent.REMOVE)

    def stop(self) -> None:
        """Note that the process ends."""
        self._happened(PresenceEvent.STOP)

    def leader_changed(self, lease_ms: int, now: Instant) -> None:
        """Note that a leader is known, or none any more: for a lease, another one may be elected."""
        self._leaderless_until = after(now, lease_ms)

    def why_to_give_up(self, *, is_led: bool, now: Instant) -> str:
        """Return why this node must stop by itself what it runs; empty when it need not."""
        if self._presence is not Presence.DRAINING:
            return ""
        self._asked_at = now
        if not is_led and now >= self._leaderless_until:
            return "no quorum is left to drain this node"
        if now >= after(self._drained_since, self._span_ms):
            return f"draining took longer than {self._span_ms} ms (shutdown-escalation)"
        return ""

    def deadline(self, *, is_led: bool) -> Instant:
        """Return when to ask again; it is in the past if a bound was reached since the last time."""
        if self._presence is not Presence.DRAINING:
            return NEVER
        bounds = [after(self._drained_since, self._span_ms), NEVER if is_led else self._leaderless_until]
        return min((bound for bound in bounds if bound > self._asked_at), default=NEVER)
