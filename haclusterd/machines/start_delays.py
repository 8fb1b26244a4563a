"""Since when actions have been ready that wait for their `start-delay`, from one plan to the next.

Whatever changes makes the DC plan again: an attribute that changes every few seconds would begin a delay again each
time, and what has one would never start. So a plan that finds the same action ready goes on with its delay.
"""

from collections.abc import Set as AbstractSet

from haclusterd.model.graph import GraphAction
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant

Delayed = tuple[str, NodeName | None]
"""What names an action in every plan: its key, and its node."""


def delayed(action: GraphAction) -> Delayed:
    """Return what names an action in every plan."""
    return action.key, action.node


class StartDelays:
    """What a DC remembers of delays; see the module."""

    def __init__(self) -> None:
        self._ready_since: dict[Delayed, Instant] = {}

    def ready_since(self, action: GraphAction, now: Instant) -> Instant:
        """Return when an action was seen to be ready first; `now` if it is seen for the first time."""
        return self._ready_since.setdefault(delayed(action), now)

    def done(self, action: GraphAction) -> None:
        """It has been carried out: wanted once more, it waits again."""
        self._ready_since.pop(delayed(action), None)

    def keep(self, ready: AbstractSet[Delayed]) -> None:
        """Forget everything but what is ready in a new plan: what must wait for something else first begins again."""
        self._ready_since = {name: since for name, since in self._ready_since.items() if name in ready}
