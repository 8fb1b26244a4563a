"""The DC's bound on restarts: one that goes on for longer than its limit is ended, and the resource may run again.

The time is counted by the DC's own clock from when it saw the restart first; a new DC counts from the beginning.
"""

from collections.abc import Sequence

from haclusterd.cib.commands import EndRestart
from haclusterd.machines.effects import Effect, Propose, Scope
from haclusterd.machines.moment import Moment
from haclusterd.model import durations
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import ResourceId, Term
from haclusterd.model.instants import NEVER, Instant, WallTime, after


class RestartWatch:
    """Of one DC; see the module."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._ends_at: dict[tuple[ResourceId, WallTime], Instant] = {}

    def step(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Propose the end of what goes on for too long."""
        restarts = cib.status.restarts
        self._ends_at = {
            (name, each.at): self._ends_at.get((name, each.at), after(moment.now, each.limit_ms))
            for name, each in restarts.items()
        }
        return tuple(
            Propose(
                Scope.DC,
                f"restart:{self._term}:{name}:{at}",
                EndRestart(name, at, f"its restart took longer than {durations.render(restarts[name].limit_ms)}"),
            )
            for (name, at), ends_at in self._ends_at.items()
            if moment.now >= ends_at
        )

    def deadline(self) -> Instant:
        """Return when `step` is wanted next."""
        return min(self._ends_at.values(), default=NEVER)
