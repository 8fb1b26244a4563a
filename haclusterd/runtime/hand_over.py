"""Handing the leadership over: how often it is tried, and for how long when a person wants a certain leader.

Only a voter that has the whole log can take over, so one attempt says nothing. Invariant: attempts are a pause apart,
and a person's wish is forgotten once it has come true, or after WISH_MS.
"""

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import NEVER, Instant, after

WISH_MS = 5_000
"""How long a leader tries to hand over to whom a person wants."""
PAUSE_MS = 1000
"""Between two attempts."""


class HandOver:
    """The attempts of one daemon; see the module."""

    def __init__(self) -> None:
        self._not_before = Instant(0)
        self._wanted: NodeName | None = None
        """Whom a person wants to lead."""
        self._wanted_until = Instant(0)

    def want(self, leader: NodeName, now: Instant) -> None:
        """A person wants this node to lead; the first attempt comes at once."""
        self._wanted = leader
        self._wanted_until = after(now, WISH_MS)
        self._not_before = Instant(0)

    def wanted(self, leader: NodeName | None, now: Instant) -> NodeName | None:
        """Return whom a person still wants to lead instead of `leader`; None: nobody."""
        if leader == self._wanted or now >= self._wanted_until:
            self._wanted = None
        return self._wanted

    def may_try(self, now: Instant) -> bool:
        """Tell whether an attempt may be made now; it counts as made."""
        if now < self._not_before:
            return False
        self._not_before = after(now, PAUSE_MS)
        return True

    def deadline(self) -> Instant:
        """Return when a leader may try again to hand over to whom a person wants."""
        return NEVER if self._wanted is None else self._not_before
