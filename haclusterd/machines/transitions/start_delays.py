"""Since when actions with a `start-delay` have been ready, from one plan to the next.

Every change makes the DC plan again: an attribute that changes every few seconds would restart a delay each time, and
the action would never start. So a plan that finds the same action ready continues its delay.
"""

from collections.abc import Set as AbstractSet

from haclusterd.model.graph import GraphAction
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant

Delayed = tuple[str, NodeName | None]
"""What identifies an action in every plan: its key, and its node."""


def delayed(action: GraphAction) -> Delayed:
    """Return what identifies an action in every plan."""
    return action.key, action.node


class StartDelays:
    """The delays that a DC remembers; see the module."""

    def __init__(self) -> None:
        self._ready_since: dict[Delayed, Instant] = {}

    def ready_since(self, action: GraphAction, now: Instant) -> Instant:
        """Return when an action was first seen ready; `now` if this is the first time."""
        return self._ready_since.setdefault(delayed(action), now)

    def done(self, action: GraphAction) -> None:
        """Note that an action was carried out: the next time, its delay starts again."""
        self._ready_since.pop(delayed(action), None)

    def keep(self, ready: AbstractSet[Delayed]) -> None:
        """Forget all actions that are not ready in a new plan: the delay of one that must wait again starts again."""
        self._ready_since = {name: since for name, since in self._ready_since.items() if name in ready}
