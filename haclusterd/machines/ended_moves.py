"""The end of moves and bans with a lifetime: the DC takes their constraints away once it is over.

Such a constraint says nothing from its end on (its rule asks for an earlier date), so when it goes changes no plan; it
goes so that nobody finds it later and wonders. A refused proposal (somebody changed the configuration meanwhile) is
made again against the new version.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from haclusterd.cib.commands import ChangeConfiguration, Delete
from haclusterd.machines.effects import Effect, Propose, Scope
from haclusterd.machines.moment import Moment
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import ConstraintId, Term
from haclusterd.model.instants import NEVER, Instant, WallTime, after
from haclusterd.scheduler.model.lifetimes import ends

LOOK_MS: Final = 60_000
"""The longest pause between two looks: somebody may have set the clock."""
AUTHOR: Final = "cluster"


class EndedMoves:
    """Of one DC; see the module."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._seen: Configuration | None = None
        self._ends: Mapping[ConstraintId, WallTime] = {}
        self._look_at = NEVER

    def step(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Propose the removal of what has ended."""
        if self._seen is not cib.configuration:
            self._seen, self._ends = cib.configuration, ends(cib.configuration)
        if not self._ends:
            self._look_at = NEVER
            return ()
        gone = sorted(key for key, end in self._ends.items() if end <= moment.wall)
        coming = [end - moment.wall for key, end in self._ends.items() if key not in gone]
        self._look_at = after(moment.now, min([LOOK_MS, *coming]))
        if not gone:
            return ()
        version = cib.version
        command = ChangeConfiguration(
            version.epoch, tuple(Delete("constraint", key) for key in gone), AUTHOR,
            "the lifetime is over", version.request,
        )  # fmt: skip
        return (Propose(Scope.DC, f"ended:{self._term}:{version.epoch}:{','.join(gone)}", command),)

    def deadline(self) -> Instant:
        """Return when `step` is wanted next."""
        return self._look_at
