"""The DC's evaluation of rules on dates: changed results are proposed, and take effect when they are committed.

Invariant: every node goes by the CIB, never by its own clock (safety.md §1, "Rules on dates"). Nothing is planned or
fenced by a configuration whose rules are not evaluated yet: that takes one commit.

It also ends moves and bans with a lifetime: the DC removes their constraints afterwards. An expired constraint has no
effect (its rule asks for an earlier date), so its removal changes no plan; it only keeps the configuration tidy.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from haclusterd.cib.commands import ChangeConfiguration, JudgeRules
from haclusterd.cib.edits import Delete
from haclusterd.machines.effects import Effect, Propose, Scope
from haclusterd.machines.moment import Moment
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration
from haclusterd.model.dated_blocks import dated_blocks
from haclusterd.model.ids import ConstraintId, Term
from haclusterd.model.instants import NEVER, Instant, WallTime, after
from haclusterd.scheduler.model.judging import Judgement, judge
from haclusterd.scheduler.model.lifetimes import ends

LOOK_MS: Final = 60_000
"""The longest pause between two evaluations: the clock may have been set."""
CLOCKS_DIFFER_MS: Final = 60_000
"""If a DC's clock is behind the previous DC's by no more than this, it takes back nothing that has just begun."""
AUTHOR: Final = "cluster"
"""The author of changes that the DC makes on its own."""


class RuleJudge:
    """The rules of one DC; see the module."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._judged: tuple[Configuration, WallTime, Judgement] | None = None
        self._look_at = Instant(0)

    def step(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Evaluate the rules if due, and propose results that are not in the CIB yet."""
        blocks = dated_blocks(cib.configuration)
        if not blocks:
            self._judged, self._look_at = None, NEVER
            return ()
        if self._judged is None or self._judged[0] is not cib.configuration or moment.now >= self._look_at:
            time = _time_of(cib, moment.wall)
            judgement = judge(blocks, time)
            self._judged = (cib.configuration, time, judgement)
            again_at = judgement.look_again_at
            wait_ms = LOOK_MS if again_at is None else min(LOOK_MS, max(1, again_at - moment.wall))
            self._look_at = after(moment.now, wait_ms)
        _, time, judgement = self._judged
        known = cib.status.rules
        if cib.is_judged and known is not None and known.in_force == judgement.in_force:
            return ()
        key = f"rules:{self._term}:{cib.version.epoch}:{','.join(judgement.in_force)}"
        command = JudgeRules(self._term, cib.version.epoch, time, judgement.in_force)
        return (Propose(Scope.DC, key, command),)

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        return self._look_at


def _time_of(cib: Cib, wall: WallTime) -> WallTime:
    """Return the time to evaluate by: clocks of two DCs differ a little, and that must not end what has begun."""
    known = cib.status.rules
    is_behind = known is not None and wall < known.at <= wall + CLOCKS_DIFFER_MS
    return known.at if known is not None and is_behind else wall


class EndedMoves:
    """Watches the ends of moves and bans, on one DC.

    A proposal that was refused (the configuration changed meanwhile) is made again for the new version.
    """

    def __init__(self, term: Term) -> None:
        self._term = term
        self._seen: Configuration | None = None
        self._ends: Mapping[ConstraintId, WallTime] = {}
        self._look_at = NEVER

    def step(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Propose the removal of expired constraints."""
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
        """Return when `step` must be called next."""
        return self._look_at
