"""Walks one transition graph: issues actions that are ready as orders, and follows their results.

An action is issued when all its inputs have succeeded: their results are applied, or are in the log of the leader that
issues the order, so that the order is applied after the results or never. An unexpected result, or a change that the
plan did not know, aborts the graph: nothing more is issued, orders that are not begun are voided, and the controller
plans again (Pacemaker Development, "Controller": transition engine). If a start's devices are not free, or devices
have changed, only the orders concerned are voided. Only notifications still go out after an abort, about actions that
were under way and succeed: an aborted transition closes during the next one, and ends when nothing under way can
lead to a notification any more.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from haclusterd.cib.changes import Change, ChangeKind
from haclusterd.cib.commands import CleanUp, ForgetHistory, IssueOrders, Lost, RecordResults
from haclusterd.machines.effects import Effect, Note, Propose, Scope
from haclusterd.machines.moment import Moment
from haclusterd.machines.transitions.admission import Admission
from haclusterd.machines.transitions.affinity import Affinity
from haclusterd.machines.transitions.order_commands import issuing, order_of, voiding
from haclusterd.machines.transitions.start_delays import StartDelays, delayed
from haclusterd.machines.transitions.tracked_actions import (
    BY_RANK,
    FORGETTING,
    ActionEvent,
    ActionsByNode,
    ActionState,
    TrackedAction,
    closes,
    ended_as_expected,
    gangs_of,
    is_unfencing,
    needs_no_hand,
    will_end_as_expected,
)
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.fencing import FenceAction, FenceOutcome, FencingRecord
from haclusterd.model.graph import CLEAR_FAILCOUNT, ActionKind, GraphAction, TransitionGraph
from haclusterd.model.ids import FenceKey, NodeName, OrderKey, ResourceId, Term
from haclusterd.model.instants import NEVER, Instant
from haclusterd.model.ocf import ActionName
from haclusterd.model.orders import Order
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.state_tables import Transition, TransitionTable

QUIET_CHANGES = frozenset(
    {
        ChangeKind.ORDER_ISSUED,
        ChangeKind.LOAD_CHANGED,
        ChangeKind.FENCING_ORDERED,
        ChangeKind.FENCING_AGENT_SUCCEEDED,
        ChangeKind.DEVICE_STORM,
        ChangeKind.REFUSED,
        ChangeKind.LEADER_REQUESTED,
        ChangeKind.HISTORY_FORGOTTEN,
        ChangeKind.AVAILABILITY_CHANGED,
        ChangeKind.ALERT_TESTED,
        ChangeKind.SECRET_KEY_CHANGED,
        ChangeKind.SECRET_SHOWN,
    }
)
"""Changes after which a finished plan is still valid."""
EXPECTED_CHANGES = QUIET_CHANGES | {
    ChangeKind.ORDER_VOIDED,
    ChangeKind.OPERATION_SUCCEEDED,
    ChangeKind.FENCING_FAILED,
    ChangeKind.FENCINGS_FORGOTTEN,
    ChangeKind.NODE_UNFENCED,
    ChangeKind.DEVICE_PROVEN,
    ChangeKind.DEVICES_RELEASED,
    ChangeKind.DEVICE_RECOVERY_ENDED,
}
"""Changes that do not by themselves invalidate a plan that is being executed."""


class TransitionState(StrEnum):
    """The state of a transition."""

    RUNNING = "running"
    CLOSING = "aborted, and instances may have to be notified of what is under way"
    DONE = "done"
    ABORTED = "aborted"


class TransitionEvent(StrEnum):
    """What ends it."""

    COMPLETE = "all its actions have succeeded"
    ABORT = "something was not as the plan expected, or time asks for another plan"
    CLOSE = "nothing under way can lead to a notification that is not ordered"


TRANSITIONS: Final = TransitionTable(
    "A transition",
    "The execution of one graph by one DC.",
    (TransitionState.RUNNING,),
    (
        Transition((TransitionState.RUNNING,), TransitionEvent.COMPLETE, TransitionState.DONE),
        Transition((TransitionState.RUNNING,), TransitionEvent.ABORT, TransitionState.CLOSING),
        Transition((TransitionState.CLOSING,), TransitionEvent.CLOSE, TransitionState.ABORTED),
    ),
)


class TransitionMachine:
    """One transition of one DC; see the module."""

    def __init__(
        self,
        node: NodeName,
        term: Term,
        number: int,
        graph: TransitionGraph,
        planned_for: Cib,
        *,
        delays: StartDelays | None = None,
        refused: Collection[ResourceId] = (),
        rules: SafetyRules = ALL_RULES,
    ) -> None:
        """`planned_for` is the CIB that the scheduler saw; it may have changed since.

        `delays` is what earlier transitions of this DC know of actions that wait for their start-delay. Each order of a
        resource in `refused` gets a command of its own, after all others: a command is accepted or refused as a whole,
        and an order that is refused again must not block others.
        """
        self._node = node
        self._term = term
        self._number = number
        self._rules = rules
        self._tracked = {
            action.id: TrackedAction(action, (-action.priority, action.id)) for action in graph.actions.values()
        }
        self._delays = StartDelays() if delays is None else delays
        self._refused = frozenset(refused)
        self._is_begun = False
        self._by_node = ActionsByNode()
        self._done = 0
        self._pseudo: list[TrackedAction] = []
        """Ready actions without anything to execute."""
        self._fences: list[TrackedAction] = []
        """Ready fence actions."""
        self._unfencing: list[TrackedAction] = []
        """Unfencings under way."""
        self._seen_orders: dict[NodeName | None, Mapping[OrderKey, Order]] = {}
        """The open orders of each node at the last step: the same object has not changed."""
        self._state = TransitionState.RUNNING
        self._batches = 0
        self._deadline = NEVER
        self._foreign = frozenset(_activating(planned_for))
        """Activating orders of older transitions that the plan knew."""
        self._awaited = {name: _holding_back(status) for name, status in planned_for.status.nodes.items()}
        """Orders of older transitions that the plan knew: nothing that comes after them is in it."""
        self._awaited_unfencings = frozenset(_unfencings_under_way(planned_for))
        """The same of orders to let nodes in."""
        self._link()

    @property
    def state(self) -> TransitionState:
        """The state of the transition."""
        return self._state

    @property
    def number(self) -> int:
        """The number of the transition within its DC's term."""
        return self._number

    def wanted_unfencings(self, cib: Cib) -> Mapping[NodeName, str]:
        """Return the nodes that their devices must unfence before the plan continues, and why.

        A node whose unfencing the CIB records counts as unfenced, even before the plan has taken that step.
        """
        waiting = (each for each in self._unfencing if not _unfencings(cib, each.action) - each.unfencings)
        return {each.action.node: each.action.reason for each in waiting if each.action.node is not None}

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        return self._deadline

    def progress(self) -> tuple[int, int]:
        """Return (done, all) actions."""
        return self._done, len(self._tracked)

    def step(self, cib: Cib, changes: Iterable[Change], moment: Moment) -> Sequence[Effect]:
        """Process what happened and issue what is ready; the cost depends on the number of changes."""
        if self._state is TransitionState.CLOSING:
            return self._close(cib, moment)
        if self._state is not TransitionState.RUNNING:
            return ()
        unexpected = [change for change in changes if change.kind not in EXPECTED_CHANGES]
        failure = unexpected[0].text if unexpected else self._settle(cib) or self._overtaken(cib)
        if failure:
            concerned = self._concerned_by_devices(cib, unexpected)
            return (*self._abort(cib, failure, concerned), *self.step(cib, (), moment))
        effects = self._finish_pseudo()
        self._continue_delays()
        effects += [*self._issue_fences(cib, moment), *self._issue(cib, moment)]
        if self._done == len(self._tracked) and not self._by_node.is_any_issued:
            self._state = TRANSITIONS.after(self._state, TransitionEvent.COMPLETE)
        return effects

    def _continue_delays(self) -> None:
        """At the beginning, continue the delays of actions that an earlier plan found ready too.

        One that waits for notifications alone counts as ready: each plan announces the same start again.
        """
        if not self._is_begun:
            self._is_begun = True
            self._delays.keep({delayed(tracked.action) for tracked in self._announced()})

    def _announced(self) -> Iterator[TrackedAction]:
        """Yield what is ready, and what is as soon as notifications have ended."""
        waits = {number: tracked.open_inputs for number, tracked in self._tracked.items()}
        found = [tracked for ready in self._by_node.ready.values() for tracked in ready]
        while found:
            tracked = found.pop()
            yield tracked
            if not needs_no_hand(tracked.action) and tracked.action.name != ActionName.NOTIFY:
                continue
            for following in tracked.dependants:
                waits[following.action.id] -= 1
                if not waits[following.action.id]:
                    found.append(following)

    def _link(self) -> None:
        """Find out what waits for what, and what is ready at once."""
        for tracked in self._tracked.values():
            inputs = [self._tracked[before] for before in set(tracked.action.inputs) if before in self._tracked]
            tracked.open_inputs = len(inputs)
            for before in inputs:
                before.dependants.append(tracked)
        for gang in gangs_of(self._tracked):
            for tracked in gang:
                tracked.together = gang
        for tracked in self._tracked.values():
            if not tracked.open_inputs:
                self._make_ready(tracked)

    def _make_ready(self, tracked: TrackedAction) -> None:
        tracked.happened(ActionEvent.UNBLOCK)
        action = tracked.action
        if self._state is TransitionState.CLOSING and not closes(action):
            return
        if needs_no_hand(action):
            self._pseudo.append(tracked)
        elif action.kind is ActionKind.FENCE:
            self._fences.append(tracked)
        else:
            self._by_node.add(tracked)

    def _finish(self, tracked: TrackedAction, event: ActionEvent = ActionEvent.SUCCEED) -> None:
        """Release what waits for an action; if success was speculated on, that was done before."""
        is_new = tracked.state is not ActionState.SPECULATED
        tracked.happened(event)
        if not is_new:
            return
        self._done += 1
        self._delays.done(tracked.action)
        self._by_node.succeeded(tracked)
        for following in tracked.dependants:
            following.open_inputs -= 1
            if not following.open_inputs:
                self._make_ready(following)

    def speculate(self, cib: Cib, command: RecordResults) -> None:
        """Continue from results in this leader's log before their commit: they are applied before any order issued now.

        Only plain success is speculated on, of orders that are open and wanted; everything else waits until it is
        applied. A speculated result is checked again when it is applied: if it did not come true, the transition ends
        there, as without it.
        """
        status = cib.status.nodes.get(command.node)
        if self._state is not TransitionState.RUNNING or status is None:
            return
        if status.state is not NodeState.ONLINE or status.incarnation != command.incarnation:
            return
        for result in command.results:
            order = status.orders.get(result.order) if result.order is not None else None
            tracked = self._by_node.issued.get(command.node, {}).get(order.key) if order is not None else None
            if order is None or order.is_voided or tracked is None or tracked.state is ActionState.SPECULATED:
                continue
            if will_end_as_expected(order, result):
                self._finish(tracked, ActionEvent.SPECULATE)

    def refused(self, cib: Cib, text: str) -> Sequence[Effect]:
        """Abort because a batch of orders was refused: the state is not what the plan assumed."""
        return self._abort(cib, text) if self._state is TransitionState.RUNNING else ()

    def dropped(self, keys: Iterable[OrderKey]) -> None:
        """Note that these orders were refused, or will never be decided: nothing waits for them."""
        for key in keys:
            self._by_node.dropped(key)

    def end_if_idle(self, cib: Cib, *, is_time: bool) -> Sequence[Effect]:
        """Abort a transition with nothing in flight: it waits for a fencing or an unfencing, which may take forever.

        Time alone may have changed what is wanted meanwhile (`is_time`: an expired failure, a rule), or an order of an
        earlier transition has ended, which this one left out together with all that comes after it. No order of those
        is voided. A start-delay in progress is waited for unless it is time; it continues in the next plan.
        """
        if self._state is not TransitionState.RUNNING or self._by_node.is_any_issued:
            return ()
        if self._deadline != NEVER and not is_time:
            return ()
        return self._abort(cib, "planned again, since nothing of it is under way", frozenset())

    def is_outdated(self, cib: Cib) -> bool:
        """Return whether an order of an earlier transition has ended, so that more can be done than is in this plan."""
        if self._state is not TransitionState.RUNNING:
            return False
        nodes = cib.status.nodes
        has_ended = any(keys and (name not in nodes or any(key not in nodes[name].orders for key in keys))
                        for name, keys in self._awaited.items())  # fmt: skip
        return has_ended or not self._awaited_unfencings <= set(cib.status.fence_orders)

    def end_outdated(self, cib: Cib) -> Sequence[Effect]:
        """Abort a transition so that what waited for an earlier one continues; what is under way is not voided."""
        return self._abort(cib, "planned again, since what an earlier one had ordered has ended", frozenset())

    # -- results ----------------------------------------------------------------------------------------------------

    def _settle(self, cib: Cib) -> str:
        """Process actions that have ended; return the first failure, empty when there is none."""
        for tracked in tuple(self._unfencing):
            if _unfencings(cib, tracked.action) - tracked.unfencings:
                self._unfencing.remove(tracked)
                self._finish(tracked)
            elif tracked.dependants and _failed_unfencings(cib, tracked.action) - tracked.failed_unfencings:
                return f"{tracked.action.node} could not be unfenced"
        failures = [self._settle_node(cib, node, issued) for node, issued in self._by_node.issued.items()]
        return next(filter(None, failures), "")

    def _settle_node(self, cib: Cib, node: NodeName | None, issued: dict[OrderKey, TrackedAction]) -> str:
        status = cib.status.nodes.get(node) if node is not None else None
        if status is None:
            return f"{node} is gone" if issued else ""
        if self._seen_orders.get(node) is status.orders:
            return ""
        self._seen_orders[node] = status.orders
        failure = ""
        for key, tracked in tuple(issued.items()):
            order = status.orders.get(key)
            if order is not None:
                tracked.committed()
                if order.is_voided:
                    failure = failure or f"{tracked.action.key} on {node} was voided"
            elif tracked.state is not ActionState.ORDERED:
                del issued[key]
                if not ended_as_expected(cib, tracked.action, key):
                    failure = failure or f"{tracked.action.key} on {node} did not end as expected"
                    continue
                self._finish(tracked)
        return failure

    def _overtaken(self, cib: Cib) -> str:
        """Return a text about an older plan's order, unknown to this plan, that was committed late; empty: none was.

        Its result may be all that the plan wants; further steps of the plan would rest on an outdated state.
        """
        if not self._rules.one_active_copy:
            return ""
        late = sorted(key for key in _activating(cib) if key not in self._foreign and key not in self._by_node.by_order)
        return f"order {late[0]} of an older transition came late" if late else ""

    def committed(self, keys: Iterable[OrderKey]) -> None:
        """Note that these orders were applied (they may have ended at once)."""
        for key in keys:
            tracked = self._by_node.by_order.get(key)
            if tracked is not None:
                tracked.committed()

    def _finish_pseudo(self) -> list[Effect]:
        """Finish actions that nobody executes; propose the cluster's own bookkeeping when its turn has come."""
        effects: list[Effect] = []
        while self._pseudo:
            wave, self._pseudo = self._pseudo, []
            for tracked in sorted(wave, key=lambda each: each.action.id):
                self._finish(tracked)
                effects.extend(self._propose_cleanup(tracked.action))
        return effects

    def _propose_cleanup(self, action: GraphAction) -> Sequence[Effect]:
        """Propose the effect of a bookkeeping action; a node that was emptied leaves by itself (`do_shutdown`)."""
        if action.node is None or action.resource is None:
            return ()
        key = f"{action.name}:{self._term}.{self._number}.{action.id}"
        if action.name == CLEAR_FAILCOUNT:
            return (Propose(Scope.DC, key, CleanUp(action.resource, action.node)),)
        if action.name in FORGETTING:
            return (Propose(Scope.DC, key, ForgetHistory(action.node, action.resource)),)
        return ()

    def _concerned_by_devices(self, cib: Cib, unexpected: Sequence[Change]) -> frozenset[ResourceId] | None:
        """Return the resources concerned by a start that was not begun because its device is not free, or by changed
        devices of a node; None: something else was unexpected, which may concern everything."""
        found: set[ResourceId] = set()
        for change in unexpected:
            tracked = self._by_node.by_order.get(OrderKey(change.facts.order))
            if change.kind is ChangeKind.ORDER_NOT_BEGUN and tracked is not None and tracked.action.devices:
                found |= {tracked.action.resource} if tracked.action.resource is not None else set()
            elif change.kind is ChangeKind.DEVICES_CHANGED and change.node is not None:
                status = cib.status.nodes.get(change.node)
                orders = status.orders.values() if status is not None else ()
                found |= {each.resource for each in orders if each.devices}
            else:
                return None
        return frozenset(found) if unexpected else None

    def _abort(self, cib: Cib, reason: str, concerned: frozenset[ResourceId] | None = None) -> Sequence[Effect]:
        """Issue nothing more, and void orders that are not begun.

        If the cause `concerned` only some resources, only their orders and those of resources bound to them are voided:
        other starts wait for devices of their own, and would have to start their wait again.
        """
        self._state = TRANSITIONS.after(self._state, TransitionEvent.ABORT)
        self._fences = []
        self._pseudo = [tracked for tracked in self._pseudo if closes(tracked.action)]
        for ready in self._by_node.ready.values():
            ready[:] = [tracked for tracked in ready if closes(tracked.action)]
        self._end_closing()
        bound = Affinity(cib.configuration, concerned) if concerned is not None else None
        open_keys = tuple(
            key
            for status in cib.status.nodes.values()
            for key, order in status.orders.items()
            if (key in self._by_node.by_order or (key in self._foreign and order.dc_term == self._term))
            and order.is_activating
            and not order.is_voided
            and (bound is None or bound.touches(order.resource))
        )
        note = Note("transition-aborted", f"transition {self._term}.{self._number}: {reason}")
        void = voiding(self._term, open_keys, reason)
        name = f"void:{self._term}.{self._number}"
        return (note, *(Propose(Scope.DC, f"{name}.{part}", each) for part, each in enumerate(void)))

    def _close(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Notify of actions that were under way and have succeeded; nodes that are not online are skipped."""
        self._settle(cib)
        effects = self._finish_pseudo()
        for name in {*self._by_node.issued, *self._by_node.ready}:
            status = cib.status.nodes.get(name) if name is not None else None
            if status is None or status.state is not NodeState.ONLINE:
                self._by_node.leave_out(name)
        effects += self._issue(cib, moment)
        self._end_closing()
        return effects

    def _end_closing(self) -> None:
        if not self._is_notification_due():
            self._state = TRANSITIONS.after(self._state, TransitionEvent.CLOSE)

    def _is_notification_due(self) -> bool:
        """Return whether a notification may still be ordered, provided that everything under way succeeds."""
        if self._by_node.is_any_ready:
            return True
        under_way = [tracked for issued in self._by_node.issued.values() for tracked in issued.values()]
        reached = [*self._pseudo, *(each for each in under_way if each.state is not ActionState.SPECULATED)]
        missing: dict[TrackedAction, int] = {}
        while reached:
            for following in reached.pop().dependants:
                missing[following] = missing.get(following, following.open_inputs) - 1
                if missing[following] or not closes(following.action):
                    continue
                if following.action.kind is ActionKind.RESOURCE:
                    return True
                reached.append(following)
        return False

    # -- issuing ----------------------------------------------------------------------------------------------------

    def _issue_fences(self, cib: Cib, moment: Moment) -> list[Effect]:
        waiting, self._fences = sorted(self._fences, key=BY_RANK), []
        return [effect for tracked in waiting for effect in self._fence(cib, tracked, moment)]

    def _issue(self, cib: Cib, moment: Moment) -> list[Effect]:
        self._deadline = NEVER
        if not self._by_node.is_any_ready:
            return []
        is_closing = self._state is TransitionState.CLOSING
        admission = Admission(cib, moment, self._by_node, self._delays, self._rules, is_closing=is_closing)
        chosen = admission.choose()
        self._deadline = admission.deadline
        may_begin, left = set(chosen), admission.room(otherwise=len(self._tracked))
        units: list[tuple[Order, ...]] = []
        for tracked in sorted(chosen, key=BY_RANK):
            unit = tracked.together or (tracked,)
            is_alone = left > 0 and not self._by_node.is_any_issued
            # A gang too large for the limits starts when nothing else is under way.
            has_room = len(unit) <= left and may_begin.issuperset(unit)
            if tracked.state is not ActionState.READY or not (has_room or is_alone):
                continue
            made = (order_of(cib, each.action, self._term, self._number, moment.wall) for each in unit)
            orders = tuple(order for order in made if order is not None)
            if len(orders) < len(unit):
                continue
            for each, order in zip(unit, orders, strict=True):
                self._by_node.order(each, order.key)
            units.append(orders)
            left -= len(unit)
        effects: list[Effect] = []
        common = [unit for unit in units if unit[0].resource not in self._refused]
        alone = [unit for unit in units if unit[0].resource in self._refused]
        for command in (*issuing(self._term, common), *(IssueOrders(self._term, unit) for unit in alone)):
            self._batches += 1
            key = f"orders:{self._term}.{self._number}.{self._batches}"
            effects.append(Propose(Scope.DC, key, command))
        return effects

    def _fence(self, cib: Cib, tracked: TrackedAction, moment: Moment) -> Sequence[Effect]:
        """Have the director fence a lost node, or unfence one; a node that is not lost yet is first declared lost."""
        action = tracked.action
        if not moment.has_lease and self._rules.dc_needs_fresh_lease:
            self._fences.append(tracked)
            return ()
        tracked.happened(ActionEvent.FENCE)
        if is_unfencing(action):
            tracked.unfencings = _unfencings(cib, action)
            tracked.failed_unfencings = _failed_unfencings(cib, action)
            self._unfencing.append(tracked)
            return ()
        status = cib.status.nodes.get(action.node) if action.node is not None else None
        if status is None or status.state is not NodeState.ONLINE:
            return ()
        command = Lost(status.name, status.incarnation, self._term, action.reason, causes=action.causes)
        return (Propose(Scope.DC, f"lost:{status.name}:{status.incarnation}:{self._term}", command),)


def _unfencings(cib: Cib, action: GraphAction) -> frozenset[FenceKey]:
    """Return the recorded unfencings of an action's node."""
    attempts = _attempts_to_unfence(cib, action)
    return frozenset(record.key for record in attempts if record.outcome is FenceOutcome.UNFENCED)


def _failed_unfencings(cib: Cib, action: GraphAction) -> frozenset[FenceKey]:
    """Return the recorded attempts to unfence an action's node that have failed."""
    attempts = _attempts_to_unfence(cib, action)
    return frozenset(record.key for record in attempts if record.outcome is not FenceOutcome.UNFENCED)


def _attempts_to_unfence(cib: Cib, action: GraphAction) -> Iterator[FencingRecord]:
    for record in cib.status.fencing_history:
        if record.action is FenceAction.ON and record.target == action.node:
            yield record


def _holding_back(status: NodeStatus) -> tuple[OrderKey, ...]:
    """Return a node's open orders whose end is worth giving up a transition for, since something may come after them.

    Nothing waits for a recurring monitor, and a notification is soon over.
    """
    return tuple(
        key for key, order in status.orders.items() if not order.interval_ms and order.action is not ActionName.NOTIFY
    )


def has_order_ended(planned_for: Cib, cib: Cib) -> bool:
    """Return whether an order that a plan knew to be open has ended since: what comes after it is not in that plan.

    A notification counts as well: until it has ended, its instance is busy.
    """
    nodes = cib.status.nodes
    return any(
        not order.interval_ms and (name not in nodes or key not in nodes[name].orders)
        for name, status in planned_for.status.nodes.items()
        for key, order in status.orders.items()
    )


def _unfencings_under_way(cib: Cib) -> Iterator[FenceKey]:
    return (key for key, order in cib.status.fence_orders.items() if order.action is FenceAction.ON)


def _activating(cib: Cib) -> Iterator[OrderKey]:
    """Yield the open orders that may make a resource active."""
    for status in cib.status.nodes.values():
        for key, order in status.orders.items():
            if order.is_activating:
                yield key
