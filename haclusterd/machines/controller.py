"""The DC: from the newest CIB to the next orders (Pacemaker Development, "Controller").

While this node leads Raft it first commits that it is DC. Only then, in that very term, it judges who is lost, directs
fencing, has plans made, and walks them. It keeps nothing that the CIB does not say, except the walk itself: a new DC
plans again, and what was in flight stands in the CIB as open orders. A failure of the scheduler is a value: nothing is
ordered, resources run on, and the next change tries again, or a pause that grows.

A plan is asked for and comes later. Invariant: it is walked only if everything that changed since it was asked for is
of the kinds that would not have ended its walk, had it begun at once; any other plan is dropped, and asked for again.
Orders of this DC that are still on their way into the log stand in no CIB: a plan that does not know them could order
the same once more, so none is walked.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from haclusterd.cib.changes import Change, ChangeKind, Refusal
from haclusterd.cib.codec import CodecError, decode_envelope
from haclusterd.cib.commands import CleanUp, Command, DcElected, EndRestart, FormCluster, IssueOrders, RecordResults
from haclusterd.machines.effects import AskForPlan, Effect, Note, PrepareToPlan, Propose, Scope, TransferLeadership
from haclusterd.machines.fencing_director import FencingDirector, Wanted
from haclusterd.machines.joining import transfer_target
from haclusterd.machines.membership import MembershipMachine
from haclusterd.machines.moment import Moment
from haclusterd.machines.repeats import Repeats
from haclusterd.machines.rule_judge import RuleJudge
from haclusterd.machines.start_delays import StartDelays
from haclusterd.machines.transition import EXPECTED_CHANGES, TransitionMachine, TransitionState
from haclusterd.machines.witness import WitnessDuty
from haclusterd.model import durations
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.followers import Followers
from haclusterd.model.graph import ActionKind, Plan
from haclusterd.model.ids import Incarnation, NodeName, OrderKey, ResourceId, Term
from haclusterd.model.instants import NEVER, Instant, WallTime, after
from haclusterd.model.pacer import PacerReport
from haclusterd.model.planning import PlanAnswer
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.timing import Timing

PRIORITY_DELAY = "priority-fencing-delay"
REFUSED_PAUSE_MS = 200
"""Between a refused batch of orders and the next plan, unless something changes before."""
FAILED_PAUSE_MS = (5_000, 60_000)
"""Between a plan that could not be made and the next try without any change: the first pause, and the longest."""

QUIET_CHANGES = frozenset(
    {
        ChangeKind.ORDER_ISSUED,
        ChangeKind.LOAD_CHANGED,
        ChangeKind.FENCING_ORDERED,
        ChangeKind.FENCING_AGENT_SUCCEEDED,
        ChangeKind.REFUSED,
        ChangeKind.LEADER_REQUESTED,
        ChangeKind.HISTORY_FORGOTTEN,
    }
)
"""Changes after which a finished plan is still right."""


class RestartWatch:
    """The DC's bound on restarts: one that goes on for longer than its limit is ended, and the resource may run again.

    The time counts by the DC's own clock from when it saw the restart first; a new DC counts from the beginning.
    """

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


@dataclass(slots=True)
class _Question:
    """A plan that was asked for."""

    number: int
    cib: Cib
    is_outdated: bool = False
    """Something has changed that makes the plan wrong, whatever it will be."""


class ControllerMachine:
    """The DC's loop on one node; see the module."""

    def __init__(
        self,
        node: NodeName,
        incarnation: Incarnation,
        timing: Timing,
        form: FormCluster,
        *,
        rules: SafetyRules = ALL_RULES,
    ) -> None:
        self._node = node
        self._incarnation = incarnation
        self._timing = timing
        self._form = form
        self._rules = rules
        self._leads_term: Term | None = None
        self._duty: WitnessDuty | None = None
        self._term: Term | None = None
        """The term in which this node is DC; None while it is not."""
        self._membership: MembershipMachine | None = None
        self._followers: Followers | None = None
        """Who has fallen behind this leader, as its store has said last."""
        self._outside_since: Instant | None = None
        """Since when this DC is not, in its present life, what the CIB calls online."""
        self._handed_over: dict[tuple[NodeName, Incarnation | None], Instant] = {}
        """For which nodes this one gave the leadership away, and when first."""
        self._director: FencingDirector | None = None
        self._judge: RuleJudge | None = None
        self._restarts: RestartWatch | None = None
        self._transition: TransitionMachine | None = None
        self._transitions = 0
        self._undecided: set[OrderKey] = set()
        """Orders that were proposed, and neither committed nor refused yet."""
        self._repeats = Repeats()
        self._delays = StartDelays()
        self._is_plan_due = False
        self._questions = 0
        self._question: _Question | None = None
        self._answer: PlanAnswer | None = None
        self._fencing_delays: dict[tuple[NodeName, Incarnation | None], int] = {}
        """Of nodes that a plan knew to be lost, in ms."""
        self._is_delay_wanted = False
        self._gathers_until: Instant | None = None
        """Until when events that belong together are waited for (`transition-delay`)."""
        self._recheck_at = NEVER
        self._failure = ""
        self._failed_pause_ms = FAILED_PAUSE_MS[0]
        self._warnings: tuple[str, ...] = ()

    @property
    def is_dc(self) -> bool:
        """Whether this node acts as DC."""
        return self._term is not None

    @property
    def leads(self) -> bool:
        """Whether this node leads Raft, as far as it knows."""
        return self._leads_term is not None

    @property
    def failure(self) -> str:
        """Why the scheduler could not plan; empty when it could."""
        return self._failure

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the newest plan warns of."""
        return self._warnings

    def transition_progress(self) -> tuple[int, int, int] | None:
        """Return (number, done, all) of the running transition, or of the one that is being planned."""
        if self._question is not None:
            return (self._transitions + 1, 0, 0)
        if self._transition is None or self._transition.state is not TransitionState.RUNNING:
            return None
        return (self._transition.number, *self._transition.progress())

    def reincarnated(self, incarnation: Incarnation) -> None:
        """This node begins a new life."""
        self._incarnation = incarnation

    def retimed(self, timing: Timing) -> None:
        """The administrator changed node-timeout or brain-timeout."""
        self._timing = timing
        if self._membership is not None:
            self._membership.retimed(timing)
        if self._director is not None:
            self._director.retimed(timing)

    def leadership_changed(self, term: Term, *, is_self: bool) -> None:
        """Raft has another leader, or another term."""
        if not is_self or term != self._leads_term:
            self._duty = None
        self._leads_term = term if is_self else None
        self._followers = None
        if self._term is not None and self._leads_term != self._term:
            self._resign()

    def take_followers(self, followers: Followers) -> None:
        """The store tells who has fallen behind this leader."""
        self._followers = followers if self._leads_term is not None else None

    def _resign(self) -> None:
        self._term = None
        self._outside_since = None
        self._membership = None
        self._director = None
        self._judge = None
        self._restarts = None
        self._transition = None
        self._undecided = set()
        self._question = self._answer = None
        self._fencing_delays = {}
        self._is_delay_wanted = False
        self._gathers_until = None
        self._failure = ""
        self._recheck_at = NEVER

    # -- one step ---------------------------------------------------------------------------------------------------

    def step(
        self, cib: Cib, changes: Sequence[Change], report: PacerReport | None, moment: Moment
    ) -> Sequence[Effect]:
        """Do what a DC does, if this node is the DC."""
        if self._leads_term is None:
            return ()
        effects: list[Effect] = []
        self._look_at(cib, changes, moment)
        target = self._target_of_witness(cib, report, moment)
        if not self._is_controller(cib):
            return self._claim(cib) if target is None else self._claim_late(cib, target, moment)
        if self._term is None:
            effects.extend(self._take_office())
        assert self._term is not None
        if self._membership is None:
            self._membership = MembershipMachine(
                self._node, self._term, self._timing, moment.now, handed_over=self._handed_over, rules=self._rules
            )
        assert self._director is not None
        assert self._judge is not None
        effects.extend(self._membership.step(cib, report, moment, self._followers))
        assert self._restarts is not None
        effects.extend(self._judge.step(cib, moment))
        effects.extend(self._restarts.step(cib, moment))
        if cib.is_judged:
            effects.extend(self._director.step(cib, report, moment, self._wanted_of_fencing(cib)))
        effects.extend(self._hand_over(cib, moment) if target is None else (TransferLeadership(target),))
        if moment.now >= self._recheck_at:
            self._is_plan_due, self._recheck_at = True, NEVER
            effects.extend(self._end_idle_walk(cib))
        effects.extend(self._walk(cib, changes, moment))
        is_settled = self._membership.is_settled(cib, report) and cib.is_judged
        effects.extend(self._take_answer(cib, moment, is_settled=is_settled))
        if is_settled or (self._is_delay_wanted and cib.is_judged):
            effects.extend(self._ask(cib, moment))
        return effects

    def _look_at(self, cib: Cib, changes: Sequence[Change], moment: Moment) -> None:
        if self._gathers_until is not None and moment.now >= self._gathers_until:
            self._gathers_until = None
        if any(change.kind not in QUIET_CHANGES for change in changes):
            self._is_plan_due = True
        if all(change.kind in EXPECTED_CHANGES for change in changes):
            return
        if self._question is not None:
            self._question.is_outdated = True
        delay_ms = ClusterProperties(cib.in_force).duration_ms("transition-delay")
        if delay_ms and self._gathers_until is None:
            self._gathers_until = after(moment.now, delay_ms)

    def _is_controller(self, cib: Cib) -> bool:
        controller = cib.status.controller
        return controller is not None and controller.node == self._node and controller.term == self._leads_term

    def _target_of_witness(self, cib: Cib, report: PacerReport | None, moment: Moment) -> NodeName | None:
        """Return who should lead in the place of this node, where it is a witness."""
        if self._duty is None:
            self._duty = WitnessDuty(self._node, moment.now)
        members = tuple(cib.members.values()) or self._form.members
        return self._duty.target(cib, members, report, self._timing, moment.now)

    def _claim_late(self, cib: Cib, target: NodeName, moment: Moment) -> Sequence[Effect]:
        """Hand over, and take office only when that does not succeed."""
        assert self._duty is not None
        is_early = self._duty.holds_back(self._timing, moment.now)
        return (TransferLeadership(target), *(() if is_early else self._claim(cib)))

    def _claim(self, cib: Cib) -> Sequence[Effect]:
        """Commit first that this node leads; in a cluster that does not exist yet, found it."""
        assert self._leads_term is not None
        if not cib.cluster_uuid:
            return (Propose(Scope.DC, f"form:{self._leads_term}", self._form),)
        command = DcElected(self._node, self._incarnation, self._leads_term)
        return (Propose(Scope.DC, f"dc:{self._leads_term}", command),)

    def _take_office(self) -> Sequence[Effect]:
        assert self._leads_term is not None
        self._term = self._leads_term
        self._director = FencingDirector(
            self._node, self._term, self._timing, boot_id=self._incarnation.boot_id, rules=self._rules
        )
        self._judge = RuleJudge(self._term)
        self._restarts = RestartWatch(self._term)
        self._transition = None
        self._transitions = 0
        self._delays = StartDelays()
        self._is_plan_due = True
        return (Note("dc", f"{self._node} is DC in term {self._term}"), PrepareToPlan())

    def _wanted_of_fencing(self, cib: Cib) -> Wanted:
        unfencings = self._transition.wanted_unfencings(cib) if self._transition is not None else {}
        return Wanted(unfencings, lambda node: self._priority_delay_ms(cib, node))

    def _priority_delay_ms(self, cib: Cib, node: NodeName) -> int | None:
        """Return how much later a node is to be fenced because of what it ran, as the scheduler judges that.

        None: a plan that knows of the loss must come first. A scheduler that fails delays no fencing.
        """
        if self._failure or not ClusterProperties(cib.in_force).duration_ms(PRIORITY_DELAY):
            return 0
        known = self._fencing_delays.get((node, cib.status.nodes[node].incarnation))
        self._is_delay_wanted |= known is None
        return known

    def _learn_delays(self, cib: Cib, plan: Plan) -> None:
        """Note how long the fencing of each lost node is to be delayed."""
        found = {
            action.node: 1000 * int(action.meta.get(PRIORITY_DELAY, "0"))
            for action in plan.graph.actions.values()
            if action.kind is ActionKind.FENCE and action.node is not None
        }
        for name, status in cib.status.nodes.items():
            if status.state is not NodeState.ONLINE:
                self._fencing_delays[name, status.incarnation] = found.get(name, 0)

    def _hand_over(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Let another lead when this node was declared lost: nothing is planned before its fencing has ended.

        So too when its own Join stays refused: a DC judges everybody but itself.
        """
        own = cib.status.nodes.get(self._node)
        if own is None:
            return ()
        self._outside_since = None if own.incarnation == self._incarnation else self._outside_since or moment.now
        is_outside = self._outside_since is not None and (
            moment.now - self._outside_since >= self._timing.brain_timeout_ms
        )
        if own.state not in (NodeState.LOST, NodeState.FENCED) and not is_outside:
            return ()
        target = transfer_target(cib, self._node)
        return (TransferLeadership(target),) if target is not None else ()

    # -- planning ---------------------------------------------------------------------------------------------------

    def _walk(self, cib: Cib, changes: Iterable[Change], moment: Moment) -> Sequence[Effect]:
        if self._transition is None:
            return ()
        effects = self._transition.step(cib, changes, moment)
        if self._rules.own_orders_are_known:
            self._undecided.update(_ordered(effects))
        if self._transition.state is not TransitionState.RUNNING:
            self._transition = None
            self._is_plan_due = True
        return effects

    def _end_idle_walk(self, cib: Cib) -> Sequence[Effect]:
        effects = self._transition.end_if_idle(cib) if self._transition is not None else ()
        if effects:
            self._transition = None
        return effects

    def _ask(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        can_walk = self._transition is None and not self._undecided
        is_wanted = self._is_delay_wanted or (self._is_plan_due and can_walk)
        if self._question is not None or not is_wanted:
            return ()
        if self._gathers_until is not None and not self._is_delay_wanted:
            return ()
        self._is_plan_due = False
        interval_ms = ClusterProperties(cib.in_force).duration_ms("cluster-recheck-interval")
        self._recheck_at = after(moment.now, interval_ms)
        self._questions += 1
        self._question = _Question(self._questions, cib, is_outdated=not can_walk)
        return (AskForPlan(self._questions, moment.wall),)

    def answered(self, answer: PlanAnswer) -> None:
        """A plan has come, or the reason why there is none; the next step looks at it."""
        if self._question is not None and answer.number == self._question.number:
            self._answer = answer
            if answer.plan is not None:
                self._learn_delays(self._question.cib, answer.plan)

    def interrupted(self) -> None:
        """This machine was shown nothing for a while: what it planned, walked and concluded of silence is from before.

        Its own orders that are undecided still are, and no number of a transition is used twice.
        """
        self.cib_replaced()
        self._transition = self._membership = None

    def cib_replaced(self) -> None:
        """The whole CIB was replaced: no changes came with it."""
        self._question = self._answer = None
        self._is_plan_due = True

    def _take_answer(self, cib: Cib, moment: Moment, *, is_settled: bool) -> Sequence[Effect]:
        answer, question = self._answer, self._question
        if answer is None or question is None:
            return ()
        self._answer = self._question = None
        self._is_delay_wanted = False
        if answer.plan is None:
            self._failure = answer.problem
            self._recheck_at = min(self._recheck_at, after(moment.now, self._failed_pause_ms))
            self._failed_pause_ms = min(2 * self._failed_pause_ms, FAILED_PAUSE_MS[1])
            return (Note("scheduler-failed", self._failure),)
        self._failure = ""
        self._failed_pause_ms = FAILED_PAUSE_MS[0]
        self._warnings = answer.plan.warnings
        if question.is_outdated or not is_settled or self._transition is not None:
            self._is_plan_due = True
            return ()
        return self._begin(cib, answer.plan, question, moment)

    def _begin(self, cib: Cib, plan: Plan, question: _Question, moment: Moment) -> Sequence[Effect]:
        if plan.recheck_at is not None:
            wait_ms = max(1, plan.recheck_at - moment.wall)
            self._recheck_at = min(self._recheck_at, after(moment.now, wait_ms))
        assert self._term is not None
        if not plan.graph.actions:
            self._delays.keep(frozenset())
        forgotten = self._forget_failures(cib, plan)
        if forgotten or not plan.graph.actions:
            return forgotten
        begins_at = self._repeats.wait_until(plan.graph, moment.now)
        if moment.now < begins_at:
            self._recheck_at = min(self._recheck_at, begins_at)
            return (Note("transition-repeats", "the same plan was walked again and again, and nothing came of it"),)
        self._transitions += 1
        self._transition = TransitionMachine(
            self._node,
            self._term,
            self._transitions,
            plan.graph,
            question.cib,
            delays=self._delays,
            rules=self._rules,
        )
        count = len(plan.graph.actions)
        note = Note("transition", f"transition {self._term}.{self._transitions}: {count} actions")
        return (note, *self._walk(cib, (), moment))

    def _forget_failures(self, cib: Cib, plan: Plan) -> Sequence[Effect]:
        """Drop failures that count no more before anything is planned with them: each plan would find them again."""
        return tuple(
            Propose(Scope.DC, f"forget:{self._term}:{node}:{resource}", CleanUp(resource, node))
            for node, resource in plan.expired_failures
            if cib.status.nodes[node].state is NodeState.ONLINE
        )

    def applied(
        self, command: Command, refusal: Refusal | None, cib: Cib, moment: Moment
    ) -> Sequence[Effect]:
        """One of this node's own proposals was applied or refused."""
        if not isinstance(command, IssueOrders):
            return ()
        self._undecided.difference_update(order.key for order in command.orders)
        if self._transition is None:
            return ()
        if refusal is None:
            self._transition.committed(order.key for order in command.orders)
            return ()
        effects = self._transition.refused(cib, refusal.text)
        self._transition = None
        # Without a change the next plan would be the same, and be refused again: plan again a little later.
        self._recheck_at = after(moment.now, REFUSED_PAUSE_MS)
        return effects

    def not_proposed(self, command: Command) -> None:
        """One of this node's intents fits into no entry of the log, and will never be decided."""
        if isinstance(command, IssueOrders):
            self._undecided.difference_update(order.key for order in command.orders)

    def speculate(self, cib: Cib, term: Term, entry: bytes) -> None:
        """An entry with results stands in this node's log, as the leader of `term`: the next step goes on from it."""
        if self._transition is None or term != self._term:
            return
        try:
            command = decode_envelope(entry).command
        except CodecError:
            return  # Of a later version: `apply` will say what is to be said of it.
        if isinstance(command, RecordResults):
            self._transition.speculate(cib, command)

    def deadline(self) -> Instant:
        """Return when `step` is wanted next."""
        if self._membership is None or self._director is None or self._judge is None:
            return NEVER
        walk = NEVER if self._transition is None else self._transition.deadline()
        gathers_until = self._gathers_until if self._gathers_until is not None else NEVER
        restarts = self._restarts.deadline() if self._restarts is not None else NEVER
        parts = (self._membership.deadline(), self._director.deadline(), self._judge.deadline(), restarts)
        return min(*parts, self._recheck_at, walk, gathers_until)


def _ordered(effects: Iterable[Effect]) -> Iterator[OrderKey]:
    """Yield the orders that are proposed among some effects."""
    for effect in effects:
        if isinstance(effect, Propose) and isinstance(effect.command, IssueOrders):
            yield from (order.key for order in effect.command.orders)
