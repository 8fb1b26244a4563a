"""Handing the leadership over: how often it is tried, and for how long when an administrator requests a leader.

Only a voter that has the whole log can take over, so a single attempt may fail. Invariant: attempts are a pause apart,
and a request is dropped once it is fulfilled, or after WISH_MS.
"""

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import NEVER, Instant, after

WISH_MS = 5_000
"""How long a leader tries to hand over to the requested leader."""
PAUSE_MS = 1000
"""Pause between two attempts."""


class HandOver:
    """The attempts of one daemon; see the module."""

    def __init__(self) -> None:
        self._not_before = Instant(0)
        self._wanted: NodeName | None = None
        """The leader that an administrator requested."""
        self._wanted_until = Instant(0)

    def want(self, leader: NodeName, now: Instant) -> None:
        """Note that an administrator requests this leader; the first attempt is made at once."""
        self._wanted = leader
        self._wanted_until = after(now, WISH_MS)
        self._not_before = Instant(0)

    def wanted(self, leader: NodeName | None, now: Instant) -> NodeName | None:
        """Return the requested leader, if it is not `leader`; None: there is no request."""
        if leader == self._wanted or now >= self._wanted_until:
            self._wanted = None
        return self._wanted

    def may_try(self, now: Instant) -> bool:
        """Return whether an attempt may be made now; it then counts as made."""
        if now < self._not_before:
            return False
        self._not_before = after(now, PAUSE_MS)
        return True

    def deadline(self) -> Instant:
        """Return when the next attempt for a requested leader is due."""
        return NEVER if self._wanted is None else self._not_before
