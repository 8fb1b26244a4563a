"""The DC: from the newest CIB to the next orders (Pacemaker Development, "Controller").

A node that leads Raft first commits that it is DC. Only after that, and only in that term, does it decide which nodes
are lost, direct fencing, request plans and execute them. It keeps no state that is not in the CIB, except the
transition in progress: a new DC plans again, and actions in flight are in the CIB as open orders.

Orders that this DC has proposed and that are not committed yet are in no CIB. A plan that does not know them could
order the same action twice, so no plan is executed while there are any.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from haclusterd.cib.activity import possibly_active
from haclusterd.cib.changes import Change, Refusal
from haclusterd.cib.codec import CodecError, decode_envelope
from haclusterd.cib.commands import (
    CleanUp,
    Command,
    DcElected,
    EndRestart,
    ForgetHistory,
    FormCluster,
    IssueOrders,
    ReadBarrier,
    RecordResults,
)
from haclusterd.machines.effects import Effect, Note, PrepareToPlan, Propose, Scope, TransferLeadership
from haclusterd.machines.fencing_director import FencingDirector, Wanted
from haclusterd.machines.joining import transfer_target
from haclusterd.machines.membership import MembershipMachine
from haclusterd.machines.moment import Moment
from haclusterd.machines.planning import Planning
from haclusterd.machines.repeats import Repeats
from haclusterd.machines.rule_judge import EndedMoves, RuleJudge
from haclusterd.machines.transitions.start_delays import StartDelays
from haclusterd.machines.transitions.transition import TransitionMachine, TransitionState, has_order_ended
from haclusterd.machines.witness import WitnessDuty
from haclusterd.model import durations
from haclusterd.model.availability import MARK_MS
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.followers import Followers
from haclusterd.model.graph import Plan, TransitionGraph
from haclusterd.model.ids import Incarnation, NodeName, OrderKey, ResourceId, Term, base_of
from haclusterd.model.instants import NEVER, Instant, WallTime, after
from haclusterd.model.pacer import PacerReport
from haclusterd.model.planning import PlanAnswer
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.state_tables import Transition, TransitionTable
from haclusterd.model.timing import Timing

REFUSED_PAUSE_MS = 200
"""Pause between a refused batch of orders and the next plan, unless a change comes before."""


OUTDATED_PAUSE_MS = 2000
"""How long a transition continues at least, though more can be done than is in its plan."""
OUTDATED_PLANS_MAX = 3
"""So many plans one after another are made again because an order has ended meanwhile; the next one is executed."""
OUTDATED_PLAN_MS_MAX = 200
"""A plan that took longer is executed as it is."""
OUTDATED_PAUSE_PLANS = 10
"""And how many times as long as its plan took: nothing is ordered while the next one is made."""


class DcState(StrEnum):
    """The role of a node in the cluster."""

    FOLLOWER = "follows a leader, or has none"
    LEADER = "leads Raft, and has not committed that it is DC"
    DC = "is DC"


class DcEvent(StrEnum):
    """What changes that role."""

    ELECTED = "it leads Raft, in a term in which it did not before"
    CONFIRMED = "the CIB has it as DC in the term that it leads"
    DEPOSED = "it does not lead Raft"


DC_STATES: Final = TransitionTable(
    "A node that may be DC",
    "A term has one DC at most; a node that leads again does so in another term.",
    (DcState.FOLLOWER,),
    (
        Transition(tuple(DcState), DcEvent.ELECTED, DcState.LEADER),
        Transition((DcState.LEADER,), DcEvent.CONFIRMED, DcState.DC),
        Transition(tuple(DcState), DcEvent.DEPOSED, DcState.FOLLOWER),
    ),
)


class RestartWatch:
    """The DC's time limit on restarts: a restart that exceeds its limit is ended, and the resource may run again.

    The time is measured by the DC's own clock from when it first saw the restart; a new DC starts from zero.
    """

    def __init__(self, term: Term) -> None:
        self._term = term
        self._ends_at: dict[tuple[ResourceId, WallTime], Instant] = {}

    def step(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Propose the end of restarts that exceed their limit."""
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
        """Return when `step` must be called next."""
        return min(self._ends_at.values(), default=NEVER)


class QuorumMark:
    """The DC's mark in the log of an idle cluster: until when there was a quorum, for the availability account.

    Without it, nobody could later distinguish an idle cluster from one that was without power.
    """

    def __init__(self, term: Term) -> None:
        self._term = term
        self._seen_at: WallTime | None = None
        self._due = Instant(0)
        self._marks = 0

    def step(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Propose a mark if nothing else has been written for long."""
        seen_at = cib.status.availability.seen_at
        if seen_at != self._seen_at:
            self._seen_at, self._due = seen_at, after(moment.now, MARK_MS)
        if moment.now < self._due:
            return ()
        self._due = after(moment.now, MARK_MS)
        self._marks += 1
        return (Propose(Scope.DC, f"mark:{self._term}:{self._marks}", ReadBarrier()),)

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        return self._due


class _DcTerm:
    """The DC's state of one term; dropped at the end of the term."""

    def __init__(self, node: NodeName, term: Term, timing: Timing, boot_id: str, rules: SafetyRules) -> None:
        self.number = term
        self.director = FencingDirector(node, term, timing, boot_id=boot_id, rules=rules)
        self.judge = RuleJudge(term)
        self.restarts = RestartWatch(term)
        self.ended_moves = EndedMoves(term)
        self.mark = QuorumMark(term)
        self.delays = StartDelays()
        self.membership: MembershipMachine | None = None
        """None: to be made in the next step, without any earlier observation of silence."""
        self.transition: TransitionMachine | None = None
        """The transition in progress; dropped once it is done or aborted."""
        self.kept_until = NEVER
        """Until when the transition in progress continues, whatever has become possible meanwhile."""
        self.ends_at = NEVER
        """When it is given up for that."""
        self.outdated_plans = 0
        """How many plans were made again since one was executed."""
        self.unexecuted: TransitionGraph | None = None
        """Its graph, as long as it has ordered nothing and is not done."""
        self.closing: list[TransitionMachine] = []
        """Aborted transitions, the oldest first, that may still have to send notifications for actions they started."""
        self.transitions = 0
        self.undecided: set[OrderKey] = set()
        """Orders that are proposed, and neither committed nor refused yet."""
        self.refused: set[ResourceId] = set()
        """Resources with orders in commands that were refused since a transition last ended."""
        self.unfit: dict[str, str] = {}
        """What the newest plan wants and no entry of the log can hold, and why."""

    @property
    def can_execute(self) -> bool:
        """Whether a plan that is made now may be executed."""
        return self.transition is None and not self.undecided

    def drop_transition(self) -> None:
        """End the transition in progress, except for its last notifications."""
        if self.transition is not None and self.transition.state is TransitionState.CLOSING:
            self.closing.append(self.transition)
        self.transition = None

    def close(self, cib: Cib, changes: Sequence[Change], moment: Moment) -> Sequence[Effect]:
        """Advance the aborted transitions."""
        effects = [effect for transition in self.closing for effect in transition.step(cib, changes, moment)]
        self.closing = [each for each in self.closing if each.state is TransitionState.CLOSING]
        return effects

    def decided(self, keys: Sequence[OrderKey], *, is_applied: bool) -> None:
        """Note that orders were applied, or never will be."""
        self.undecided.difference_update(keys)
        for transition in self.closing:
            (transition.committed if is_applied else transition.dropped)(keys)


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
        self._state = DcState.FOLLOWER
        self._leads_term: Term | None = None
        """The term that this node leads; None while it follows."""
        self._term: _DcTerm | None = None
        """The state of its term as DC; None while it is not DC."""
        self._planning = Planning()
        self._duty: WitnessDuty | None = None
        self._followers: Followers | None = None
        """The followers that lag behind this leader, by the newest report of the store."""
        self._outside_since: Instant | None = None
        """Since when this DC's own incarnation is not the one that the CIB has online."""
        self._handed_over: dict[tuple[NodeName, Incarnation | None], Instant] = {}
        """The nodes because of which this one handed the leadership over, and when it first did."""
        self._repeats = Repeats()

    @property
    def is_dc(self) -> bool:
        """Whether this node acts as DC."""
        return self._state is DcState.DC

    @property
    def leads(self) -> bool:
        """Whether this node leads Raft, as far as it knows."""
        return self._state is not DcState.FOLLOWER

    @property
    def failure(self) -> str:
        """Why the scheduler could not plan; empty when it could."""
        return self._planning.failure

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the newest plan warns of; nothing on a node that is not DC."""
        if self._term is None:
            return ()
        unfit = (f"{what} is not ordered: {why}" for what, why in self._term.unfit.items())
        return (*self._planning.warnings, *unfit)

    def transition_progress(self) -> tuple[int, int, int] | None:
        """Return (number, done, all) of the running transition, or of the one that is being planned."""
        if self._term is None:
            return None
        if self._planning.is_asked:
            return (self._term.transitions + 1, 0, 0)
        transition = self._term.transition
        if transition is None or transition.state is not TransitionState.RUNNING:
            return None
        return (transition.number, *transition.progress())

    def reincarnated(self, incarnation: Incarnation) -> None:
        """Start a new incarnation of this node."""
        self._incarnation = incarnation

    def retimed(self, timing: Timing) -> None:
        """Note that the administrator changed node-timeout or brain-timeout."""
        self._timing = timing
        if self._term is not None:
            self._term.director.retimed(timing)
            if self._term.membership is not None:
                self._term.membership.retimed(timing)

    def leadership_changed(self, term: Term, *, is_self: bool) -> None:
        """Note another Raft leader, or another term."""
        self._followers = None
        if is_self and term == self._leads_term:
            return
        self._duty = None
        self._leads_term = term if is_self else None
        if self._term is not None:
            self._resign()
        self._happened(DcEvent.ELECTED if is_self else DcEvent.DEPOSED)

    def _happened(self, event: DcEvent) -> None:
        self._state = DC_STATES.after(self._state, event)

    def take_followers(self, followers: Followers) -> None:
        """Take the store's report of which followers lag behind this leader."""
        self._followers = followers if self.leads else None

    def _resign(self) -> None:
        self._term = None
        self._outside_since = None
        self._planning.resign()

    # -- one step ---------------------------------------------------------------------------------------------------

    def step(
        self, cib: Cib, changes: Sequence[Change], report: PacerReport | None, moment: Moment
    ) -> Sequence[Effect]:
        """Do the DC's work, if this node is the DC; `changes` are those since the last step."""
        if self._leads_term is None:
            return ()
        effects: list[Effect] = []
        self._planning.look_at(cib, changes, moment)
        target = self._target_of_witness(cib, report, moment)
        if not self._is_controller(cib):
            return self._claim(cib) if target is None else self._claim_late(cib, target, moment)
        if self._term is None:
            effects.extend(self._begin_term())
        term = self._term
        assert term is not None
        if term.membership is None:
            term.membership = MembershipMachine(
                self._node, term.number, self._timing, moment.now, handed_over=self._handed_over, rules=self._rules
            )
        effects.extend(term.membership.step(cib, report, moment, self._followers))
        effects.extend(term.judge.step(cib, moment))
        effects.extend(term.restarts.step(cib, moment))
        effects.extend(term.ended_moves.step(cib, moment))
        effects.extend(term.mark.step(cib, moment))
        if cib.is_judged:
            effects.extend(term.director.step(cib, report, moment, self._wanted_of_fencing(term, cib)))
        effects.extend(self._hand_over(cib, moment) if target is None else (TransferLeadership(target),))
        is_time = self._planning.is_time(moment)
        effects.extend(self._close(term, cib, changes, moment))
        effects.extend(self._advance(term, cib, changes, moment))
        if is_time or self._planning.is_due:
            effects.extend(self._end_idle_transition(term, cib, is_time=is_time))
        effects.extend(self._end_outdated_transition(term, cib, moment))
        is_settled = term.membership.is_settled(cib, report) and cib.is_judged
        effects.extend(self._take_answer(term, cib, moment, is_settled=is_settled))
        if is_settled or (self._planning.is_delay_wanted and cib.is_judged):
            effects.extend(self._planning.ask(cib, moment, can_execute=term.can_execute))
        return effects

    def _is_controller(self, cib: Cib) -> bool:
        controller = cib.status.controller
        return controller is not None and controller.node == self._node and controller.term == self._leads_term

    def _target_of_witness(self, cib: Cib, report: PacerReport | None, moment: Moment) -> NodeName | None:
        """Return the node that should lead instead of this one if this one is a witness; None: none."""
        if self._duty is None:
            self._duty = WitnessDuty(self._node, moment.now)
        members = tuple(cib.members.values()) or self._form.members
        return self._duty.target(cib, members, report, self._timing, moment.now)

    def _claim_late(self, cib: Cib, target: NodeName, moment: Moment) -> Sequence[Effect]:
        """Hand over, and claim to be DC only if that fails."""
        assert self._duty is not None
        is_early = self._duty.holds_back(self._timing, moment.now)
        return (TransferLeadership(target), *(() if is_early else self._claim(cib)))

    def _claim(self, cib: Cib) -> Sequence[Effect]:
        """Commit that this node is DC; before the cluster is formed, form it."""
        assert self._leads_term is not None
        if not cib.cluster_uuid:
            return (Propose(Scope.DC, f"form:{self._leads_term}", self._form),)
        command = DcElected(self._node, self._incarnation, self._leads_term)
        return (Propose(Scope.DC, f"dc:{self._leads_term}", command),)

    def _begin_term(self) -> Sequence[Effect]:
        assert self._leads_term is not None
        self._happened(DcEvent.CONFIRMED)
        self._term = _DcTerm(self._node, self._leads_term, self._timing, self._incarnation.boot_id, self._rules)
        self._planning.want()
        return (Note("dc", f"{self._node} is DC in term {self._leads_term}"), PrepareToPlan())

    def _wanted_of_fencing(self, term: _DcTerm, cib: Cib) -> Wanted:
        unfencings = term.transition.wanted_unfencings(cib) if term.transition is not None else {}
        return Wanted(unfencings, lambda node: self._planning.priority_delay_ms(cib, node))

    def _hand_over(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Hand the leadership over when this node was declared lost: nothing is planned before its fencing has ended.

        The same holds while its own Join stays refused: a DC judges every node but itself.
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
        target = transfer_target(cib, self._node, self._followers)
        return (TransferLeadership(target),) if target is not None else ()

    # -- planning ---------------------------------------------------------------------------------------------------

    def _close(
        self, term: _DcTerm, cib: Cib, changes: Sequence[Change], moment: Moment
    ) -> Sequence[Effect]:
        effects = term.close(cib, changes, moment)
        if self._rules.own_orders_are_known:
            term.undecided.update(_ordered(effects))
        return effects

    def _advance(self, term: _DcTerm, cib: Cib, changes: Iterable[Change], moment: Moment) -> Sequence[Effect]:
        if term.transition is None:
            return ()
        effects = term.transition.step(cib, changes, moment)
        if self._rules.own_orders_are_known:
            term.undecided.update(_ordered(effects))
        if term.unexecuted is not None and (term.transition.state is TransitionState.DONE or any(_ordered(effects))):
            self._repeats.executed(term.unexecuted, moment.now)
            term.unexecuted = None
        if term.transition.state is not TransitionState.RUNNING:
            if term.transition.state is TransitionState.DONE:
                term.refused.clear()
            term.drop_transition()
            self._planning.want()
        return effects

    @staticmethod
    def _end_idle_transition(term: _DcTerm, cib: Cib, *, is_time: bool) -> Sequence[Effect]:
        effects = term.transition.end_if_idle(cib, is_time=is_time) if term.transition is not None else ()
        if effects:
            term.drop_transition()
        return effects

    @staticmethod
    def _end_outdated_transition(term: _DcTerm, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Plan again when what a transition left out can be done by now: other things in it may take long."""
        transition, term.ends_at = term.transition, NEVER
        if transition is None or not transition.is_outdated(cib):
            return ()
        if moment.now < term.kept_until:
            term.ends_at = term.kept_until
            return ()
        effects = transition.end_outdated(cib)
        term.drop_transition()
        return effects

    def answered(self, answer: PlanAnswer) -> None:
        """Take a plan, or the reason why there is none; the next step processes it."""
        self._planning.answered(answer)

    def interrupted(self) -> None:
        """Drop the plan, the transition and the judgement of silence: this machine missed events for a while.

        Its own undecided orders stay undecided, and transition numbers are not reused.
        """
        self.cib_replaced()
        if self._term is not None:
            self._term.transition = self._term.membership = None
            self._term.closing.clear()

    def cib_replaced(self) -> None:
        """Note that the whole CIB was replaced, without changes that lead to it."""
        self._planning.replaced()

    def _take_answer(self, term: _DcTerm, cib: Cib, moment: Moment, *, is_settled: bool) -> Sequence[Effect]:
        answer = self._planning.take_answer()
        if answer is None:
            return ()
        if answer.plan is None:
            self._planning.failed(answer.problem, moment)
            return (Note("scheduler-failed", answer.problem),)
        planned_for = self._planning.planned(answer.plan, can_execute=is_settled and term.transition is None)
        if planned_for is None or self._is_made_again(term, cib, planned_for, moment):
            return ()
        return self._begin(term, cib, answer.plan, planned_for, moment)

    def _is_made_again(self, term: _DcTerm, cib: Cib, planned_for: Cib, moment: Moment) -> bool:
        """Have a plan made again if an order has ended while it was made: what the plan has must end before what it
        lacks can begin, such as the same notifications once more."""
        is_cheap = self._planning.took_ms(moment) <= OUTDATED_PLAN_MS_MAX
        if not is_cheap or term.outdated_plans >= OUTDATED_PLANS_MAX or not has_order_ended(planned_for, cib):
            term.outdated_plans = 0
            return False
        term.outdated_plans += 1
        self._planning.want()
        return True

    def _begin(self, term: _DcTerm, cib: Cib, plan: Plan, planned_for: Cib, moment: Moment) -> Sequence[Effect]:
        term.unfit.clear()
        if plan.recheck_at is not None:
            wait_ms = max(1, plan.recheck_at - moment.wall)
            self._planning.recheck_by(after(moment.now, wait_ms))
        if not plan.graph.actions:
            term.delays.keep(frozenset())
        forgotten = self._forget_failures(term, cib, plan)
        removed = self._forget_removed(term, cib)
        if forgotten or not plan.graph.actions:
            return (*forgotten, *removed)
        begins_at = self._repeats.wait_until(plan.graph, moment.now)
        if moment.now < begins_at:
            self._planning.recheck_by(begins_at)
            text = "the same plan was executed again and again, without effect"
            return (*removed, Note("transition-repeats", text))
        term.transitions += 1
        term.transition = TransitionMachine(
            self._node,
            term.number,
            term.transitions,
            plan.graph,
            planned_for,
            delays=term.delays,
            refused=term.refused,
            rules=self._rules,
        )
        term.unexecuted = plan.graph
        kept_ms = max(OUTDATED_PAUSE_MS, OUTDATED_PAUSE_PLANS * self._planning.took_ms(moment))
        term.kept_until = after(moment.now, kept_ms)
        count = len(plan.graph.actions)
        note = Note("transition", f"transition {term.number}.{term.transitions}: {count} actions")
        return (note, *removed, *self._advance(term, cib, (), moment))

    @staticmethod
    def _forget_failures(term: _DcTerm, cib: Cib, plan: Plan) -> Sequence[Effect]:
        """Clean up expired failures before their plan is executed: otherwise each plan would find them again.

        A clean-up that changes nothing would lead to no other plan, so it is not waited for.
        """
        return tuple(
            Propose(Scope.DC, f"forget:{term.number}:{node}:{resource}", CleanUp(resource, node))
            for node, resource in plan.expired_failures
            if cib.status.nodes[node].state is NodeState.ONLINE
            and resource in cib.status.nodes[node].histories
            and cib.status.nodes[node].histories[resource].has_failures
        )

    @staticmethod
    def _forget_removed(term: _DcTerm, cib: Cib) -> Sequence[Effect]:
        """Forget failures of what is configured no longer, where it is at rest: nobody would ever correct their cause.

        What is removed while it is active is stopped by the plan, and forgotten by the plan's transition.
        """
        return tuple(
            Propose(Scope.DC, f"forget:{term.number}:{name}:{resource}", ForgetHistory(name, resource))
            for name, status in sorted(cib.status.nodes.items())
            if status.state is NodeState.ONLINE
            for resource, history in sorted(status.histories.items())
            if history.has_failures
            and base_of(resource) not in cib.configuration.resources
            and resource not in possibly_active(status)
            and resource not in {order.resource for order in status.orders.values()}
        )

    def applied(
        self, command: Command, refusal: Refusal | None, cib: Cib, moment: Moment
    ) -> Sequence[Effect]:
        """Take the result of one of this node's own proposals: applied or refused."""
        term = self._term
        if term is None or not isinstance(command, IssueOrders):
            return ()
        keys = tuple(order.key for order in command.orders)
        term.decided(keys, is_applied=refusal is None)
        if refusal is not None:
            term.refused.update(order.resource for order in command.orders)
        transition = term.transition
        if transition is None:
            return ()
        if refusal is None:
            transition.committed(keys)
            return ()
        transition.dropped(keys)
        effects = transition.refused(cib, refusal.text)
        term.drop_transition()
        # Without a change the next plan would be the same, and be refused again: plan again a little later.
        self._planning.recheck_at(after(moment.now, REFUSED_PAUSE_MS))
        return effects

    def not_proposed(self, command: Command, problem: str) -> None:
        """Note that one of this node's commands does not fit into a log entry and will never be decided.

        The transition does everything else that it can, and a plan is made again as time passes.
        """
        term = self._term
        if term is None or not isinstance(command, IssueOrders):
            return
        keys = tuple(order.key for order in command.orders)
        term.decided(keys, is_applied=False)
        if term.transition is not None:
            term.transition.dropped(keys)
        term.unfit.update((f"{order.action} of {order.resource} on {order.node}", problem) for order in command.orders)

    def speculate(self, cib: Cib, term: Term, entry: bytes) -> None:
        """Take an entry with results from this leader's log before its commit; the next step continues from it."""
        own = self._term
        if own is None or own.transition is None or term != own.number:
            return
        try:
            command = decode_envelope(entry).command
        except CodecError:
            return  # Written by a later version: `apply` reports it.
        if isinstance(command, RecordResults):
            own.transition.speculate(cib, command)

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        term = self._term
        if term is None or term.membership is None:
            return NEVER
        transitions = term.closing if term.transition is None else (*term.closing, term.transition)
        parts = (
            term.membership.deadline(), term.director.deadline(), term.judge.deadline(), term.restarts.deadline(),
            term.ended_moves.deadline(), term.mark.deadline(), term.ends_at,
        )  # fmt: skip
        return min(*parts, self._planning.deadline(), *(each.deadline() for each in transitions))


def _ordered(effects: Iterable[Effect]) -> Iterator[OrderKey]:
    """Yield the orders that are proposed among some effects."""
    for effect in effects:
        if isinstance(effect, Propose) and isinstance(effect.command, IssueOrders):
            yield from (order.key for order in effect.command.orders)
