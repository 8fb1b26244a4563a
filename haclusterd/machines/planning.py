"""The DC's requests for plans: when a plan is due, the one in progress, and its result.

A plan is requested and arrives later. Invariant: it is executed only if every change since the request is of a kind
that would not have aborted its transition, had that started at once; any other plan is dropped and requested again. A
failure of the scheduler is a value: nothing is ordered, resources run on, and the next change triggers another try, or
the end of a growing pause does.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from haclusterd.cib.changes import Change
from haclusterd.machines.effects import AskForPlan
from haclusterd.machines.moment import Moment
from haclusterd.machines.transitions.tracked_actions import is_unfencing
from haclusterd.machines.transitions.transition import EXPECTED_CHANGES, QUIET_CHANGES
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.graph import PRIORITY_DELAY, ActionKind, Plan
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import NEVER, Instant, after, elapsed_ms
from haclusterd.model.planning import PlanAnswer
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.state_tables import Transition, TransitionTable

FAILED_PAUSE_MS = (5_000, 60_000)
"""Pause before another try of a plan that failed, without any change: the first, and the longest."""


class PlanState(StrEnum):
    """The state of a DC's planning."""

    HOLDS = "the newest plan holds"
    DUE = "a plan is due"
    ASKED = "a plan is being made"
    ASKED_AND_DUE = "a plan is being made, and the next is due"
    OUTDATED = "a plan is being made that will not be executed"
    OUTDATED_AND_DUE = "a plan is being made that will not be executed, and the next is due"


class PlanEvent(StrEnum):
    """What changes that state."""

    EXPECTED = "something happened that the transition expects"
    UNEXPECTED = "something else happened"
    WANTED = "its transition has ended, it is time to look again, or the whole CIB was replaced"
    ASK = "the scheduler is asked"
    ASK_FOR_DELAYS = "the scheduler is asked for the delays of fencings only"
    ACCEPT = "the plan has come and may be executed"
    DROP = "the plan has come and may not be executed"
    FAIL = "the scheduler has failed"
    FORGET = "the question is withdrawn"


_UNASKED: Final = (PlanState.HOLDS, PlanState.DUE)
_OUTDATED: Final = (PlanState.OUTDATED, PlanState.OUTDATED_AND_DUE)
_ASKED: Final = (PlanState.ASKED, PlanState.ASKED_AND_DUE, *_OUTDATED)
_OPEN_AND_NOT_DUE: Final = (PlanState.ASKED, PlanState.OUTDATED)
_OPEN_AND_DUE: Final = (PlanState.ASKED_AND_DUE, PlanState.OUTDATED_AND_DUE)
_IS_DUE: Final = (PlanState.DUE, *_OPEN_AND_DUE)
_BECOMES_DUE: Final = (PlanEvent.EXPECTED, PlanEvent.WANTED)
PLANS: Final = TransitionTable(
    "The plan of a DC",
    "Its transition is a machine of its own: while one is in progress, no plan is requested to be executed.",
    (PlanState.DUE,),
    (
        *(Transition(_UNASKED, event, PlanState.DUE) for event in (*_BECOMES_DUE, PlanEvent.UNEXPECTED)),
        *(
            Transition((PlanState.ASKED, PlanState.ASKED_AND_DUE), event, PlanState.ASKED_AND_DUE)
            for event in _BECOMES_DUE
        ),
        *(Transition(_OUTDATED, event, PlanState.OUTDATED_AND_DUE) for event in _BECOMES_DUE),
        Transition(_ASKED, PlanEvent.UNEXPECTED, PlanState.OUTDATED_AND_DUE),
        Transition(_UNASKED, PlanEvent.ASK, PlanState.ASKED),
        Transition(_UNASKED, PlanEvent.ASK_FOR_DELAYS, PlanState.OUTDATED),
        Transition((PlanState.ASKED,), PlanEvent.ACCEPT, PlanState.HOLDS),
        Transition((PlanState.ASKED_AND_DUE,), PlanEvent.ACCEPT, PlanState.DUE),
        Transition(_ASKED, PlanEvent.DROP, PlanState.DUE),
        *(
            Transition(states, event, target)
            for event in (PlanEvent.FAIL, PlanEvent.FORGET)
            for states, target in ((_OPEN_AND_NOT_DUE, PlanState.HOLDS), (_OPEN_AND_DUE, PlanState.DUE))
        ),
        Transition((PlanState.HOLDS,), PlanEvent.FORGET, PlanState.HOLDS),
        Transition((PlanState.DUE,), PlanEvent.FORGET, PlanState.DUE),
    ),
)


class Planning:
    """One node's requests for plans, over all terms in which it is DC."""

    def __init__(self) -> None:
        self._state = PlanState.DUE
        self._questions = 0
        self._cib = Cib()
        """The CIB of the newest request."""
        self._asked_at = Instant(0)
        self._answer: PlanAnswer | None = None
        self._fencing_delays: dict[tuple[NodeName, Incarnation | None], int] = {}
        """Delays in ms of nodes that a plan knew to be lost, and of those that the newest one fences."""
        self._is_delay_wanted = False
        self._gathers_until: Instant | None = None
        """Until when further events are awaited (`transition-delay`)."""
        self._recheck_at = NEVER
        self._failed_pause_ms = FAILED_PAUSE_MS[0]
        self.failure = ""
        """Why the scheduler could not plan; empty when it could."""
        self.warnings: tuple[str, ...] = ()
        """Warnings of the newest plan."""

    def _happened(self, event: PlanEvent) -> None:
        self._state = PLANS.after(self._state, event)

    @property
    def is_asked(self) -> bool:
        """Whether a plan is being made."""
        return self._state not in _UNASKED

    @property
    def is_due(self) -> bool:
        """Whether something has happened since the newest plan was asked for that may lead to another one."""
        return self._state in _IS_DUE

    @property
    def is_delay_wanted(self) -> bool:
        """Whether a fencing waits for a plan, to learn its delay."""
        return self._is_delay_wanted

    def deadline(self) -> Instant:
        """Return when the DC must look again if nothing happens before."""
        return min(self._recheck_at, NEVER if self._gathers_until is None else self._gathers_until)

    # -- events -----------------------------------------------------------------------------------------------------

    def resign(self) -> None:
        """Note that this node is no longer DC."""
        self._forget()
        self._fencing_delays = {}
        self._is_delay_wanted = False
        self._gathers_until = None
        self._recheck_at = NEVER
        self.failure = ""
        self.warnings = ()

    def replaced(self) -> None:
        """Note that the whole CIB was replaced, without changes that lead to it."""
        self._forget()
        self.want()

    def _forget(self) -> None:
        self._happened(PlanEvent.FORGET)
        self._answer = None

    def want(self) -> None:
        """Have a plan made as soon as possible."""
        self._happened(PlanEvent.WANTED)

    def look_at(self, cib: Cib, changes: Sequence[Change], moment: Moment) -> None:
        """Decide what the changes mean for the newest plan."""
        is_gathered = self._gathers_until is not None and moment.now >= self._gathers_until
        if is_gathered:
            self._gathers_until = None
        if all(change.kind in EXPECTED_CHANGES for change in changes):
            if any(change.kind not in QUIET_CHANGES for change in changes):
                self._happened(PlanEvent.EXPECTED)
            return
        self._happened(PlanEvent.UNEXPECTED)
        delay_ms = ClusterProperties(cib.in_force).duration_ms("transition-delay")
        if delay_ms and self._gathers_until is None and not is_gathered:
            self._gathers_until = after(moment.now, delay_ms)

    def is_time(self, moment: Moment) -> bool:
        """Return whether a plan is due by time alone; true once for each requested time."""
        if moment.now < self._recheck_at:
            return False
        self._recheck_at = NEVER
        self.want()
        return True

    def recheck_by(self, at: Instant) -> None:
        """Have a plan made at that time, unless one is made before."""
        self._recheck_at = min(self._recheck_at, at)

    def recheck_at(self, at: Instant) -> None:
        """Have a plan made at that time, and by time alone no earlier."""
        self._recheck_at = at

    # -- requests and answers ---------------------------------------------------------------------------------------

    def ask(self, cib: Cib, moment: Moment, *, can_execute: bool) -> Sequence[AskForPlan]:
        """Request a plan if one is due and could be executed, or if a fencing waits for it."""
        is_wanted = self._is_delay_wanted or (can_execute and self._state in _IS_DUE)
        if not is_wanted or self.is_asked:
            return ()
        if self._gathers_until is not None and not self._is_delay_wanted:
            return ()
        self._happened(PlanEvent.ASK if can_execute else PlanEvent.ASK_FOR_DELAYS)
        interval_ms = ClusterProperties(cib.in_force).duration_ms("cluster-recheck-interval")
        self._recheck_at = after(moment.now, interval_ms)
        self._questions += 1
        self._cib, self._asked_at = cib, moment.now
        return (AskForPlan(self._questions, moment.wall),)

    def answered(self, answer: PlanAnswer) -> None:
        """Take a plan, or the reason why there is none."""
        if self.is_asked and answer.number == self._questions:
            self._answer = answer
            if answer.plan is not None:
                self._learn_delays(answer.plan)

    def take_answer(self) -> PlanAnswer | None:
        """Return the answer since the last call; the caller must then call `failed` or `planned`."""
        answer, self._answer = self._answer, None
        if answer is not None:
            self._is_delay_wanted = False
        return answer

    def took_ms(self, moment: Moment) -> int:
        """Return how long ago the newest plan was asked for."""
        return elapsed_ms(self._asked_at, moment.now)

    def failed(self, problem: str, moment: Moment) -> None:
        """Note that there is no plan: try again after a pause."""
        self._happened(PlanEvent.FAIL)
        self.failure = problem
        self.recheck_by(after(moment.now, self._failed_pause_ms))
        self._failed_pause_ms = min(2 * self._failed_pause_ms, FAILED_PAUSE_MS[1])

    def planned(self, plan: Plan, *, can_execute: bool) -> Cib | None:
        """Take a plan; return the CIB that it was made for, None when it must not be executed."""
        self.failure = ""
        self._failed_pause_ms = FAILED_PAUSE_MS[0]
        self.warnings = plan.warnings
        if self._state in _OUTDATED or not can_execute:
            self._happened(PlanEvent.DROP)
            return None
        self._happened(PlanEvent.ACCEPT)
        return self._cib

    # -- delays of fencings -----------------------------------------------------------------------------------------

    def priority_delay_ms(self, cib: Cib, node: NodeName) -> int | None:
        """Return by how many ms a node's fencing is delayed for the sake of what it ran, by the scheduler's judgement.

        None: a plan that knows of the loss must come first. A scheduler that fails delays no fencing.
        """
        if self.failure or not ClusterProperties(cib.in_force).duration_ms(PRIORITY_DELAY):
            return 0
        known = self._fencing_delays.get((node, cib.status.nodes[node].incarnation))
        self._is_delay_wanted |= known is None
        return known

    def _learn_delays(self, plan: Plan) -> None:
        """Note the fencing delay of each lost node, and of each one that is to be declared lost for the plan's sake.

        One that is alive joins again at once: it must be fenced before another plan could say how long that waits.
        """
        found = {
            action.node: 1000 * int(action.meta.get(PRIORITY_DELAY, "0"))
            for action in plan.graph.actions.values()
            if action.kind is ActionKind.FENCE and action.node is not None and not is_unfencing(action)
        }
        for name, status in self._cib.status.nodes.items():
            if status.state is not NodeState.ONLINE or name in found:
                self._fencing_delays[name, status.incarnation] = found.get(name, 0)
            else:
                self._fencing_delays.pop((name, status.incarnation), None)
