"""Walks one transition graph: issues actions that are ready as orders, and follows their results.

An action is issued when all its inputs have succeeded: their results are applied, or are in the log of the leader that
issues the order, so that the order is applied after the results or never. An unexpected result, or a change that the
plan did not know, aborts the graph: nothing more is issued, orders that are not begun are voided, and the controller
plans again. If a start's devices are not free, or devices have changed, only the orders concerned are voided. Open
orders of an older graph block the resources that constraints bind to theirs until their executors have answered
(Pacemaker Development, "Controller": transition engine). Only notifications still go out after an abort, about actions
that were under way and succeed: an aborted walk closes during the next one, and ends when nothing under way can lead to
a notification any more. A recurring monitor lets starts on its node go first, for a moment: users wait for the next
member of a group that moves.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from operator import attrgetter
from typing import Final

from haclusterd.cib.activity import copies_of, unfenced_holders
from haclusterd.cib.changes import Change, ChangeKind
from haclusterd.cib.commands import CleanUp, ForgetHistory, IssueOrders, Lost, RecordResults, VoidOrders
from haclusterd.machines.affinity import Affinity
from haclusterd.machines.effects import Effect, Note, Propose, Scope
from haclusterd.machines.moment import Moment
from haclusterd.machines.start_delays import StartDelays, delayed
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.fencing import FenceAction, FenceOutcome
from haclusterd.model.graph import ActionKind, GraphAction, TransitionGraph
from haclusterd.model.history import operation_key
from haclusterd.model.ids import FenceKey, NodeName, OrderKey, ResourceId, Term
from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.ocf import ACTIVATING, ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order, ResultKind
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass, field
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.state_tables import Transition, TransitionTable
from haclusterd.model.words import bytes_in_log

BATCH_BYTES = 24_000
"""Approximate size of the orders in one command: encoded it stays well below the store's limit."""
ORDER_BYTES = 700
"""Approximate size of an order without its parameters."""
VOIDED_MAX = 1000
"""Number of keys in one command: with many nodes more orders can be open than one entry of the log can name."""
OPEN_ON_NODE_MAX = 64
"""Maximum number of open orders on one node: more than it can run at once, few enough to keep the status small and to
be handled in one step."""

MONITORS_WAIT_MS = 250
"""How long a recurring monitor lets starts on its node go first: users wait for these."""
STARTING = frozenset({ActionName.START, ActionName.PROMOTE, ActionName.MIGRATE_FROM})
"""Actions that recurring monitors let go first."""

CLEAR_FAILCOUNT = "clear_failcount"
FORGETTING = frozenset({"delete", "lrm_delete"})
"""Actions that make the cluster forget what is recorded of a resource on a node."""

EXPECTED_CHANGES = frozenset(
    {
        ChangeKind.ORDER_ISSUED,
        ChangeKind.LOAD_CHANGED,
        ChangeKind.ORDER_VOIDED,
        ChangeKind.OPERATION_SUCCEEDED,
        ChangeKind.FENCING_ORDERED,
        ChangeKind.FENCING_AGENT_SUCCEEDED,
        ChangeKind.FENCING_FAILED,
        ChangeKind.FENCINGS_FORGOTTEN,
        ChangeKind.NODE_UNFENCED,
        ChangeKind.DEVICE_PROVEN,
        ChangeKind.DEVICES_RELEASED,
        ChangeKind.DEVICE_RECOVERY_ENDED,
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
"""Changes that do not by themselves invalidate a plan."""


SPECULATIVE = frozenset(
    {
        ActionName.START,
        ActionName.STOP,
        ActionName.PROMOTE,
        ActionName.DEMOTE,
        ActionName.MIGRATE_TO,
        ActionName.MIGRATE_FROM,
    }
)
"""Actions on whose success others wait while a service is down; results of probes and monitors can wait."""


class ActionState(StrEnum):
    """The state of one action of a graph."""

    BLOCKED = "waits for its inputs"
    READY = "may begin"
    ORDERED = "its order is on its way"
    OPEN = "its order is in the CIB"
    FENCING = "the director has its node fenced or let in"
    SPECULATED = "its success is in the log, and counts"
    DONE = "done"


class ActionEvent(StrEnum):
    """What changes that state."""

    UNBLOCK = "all its inputs have succeeded"
    ORDER = "its order is proposed"
    FENCE = "its fencing or unfencing is wanted"
    COMMIT = "its order is applied"
    SPECULATE = "its success stands in this leader's log"
    SUCCEED = "it has succeeded"


ACTIONS: Final = TransitionTable(
    "An action of a transition",
    "What does not succeed ends the whole walk: there is no state for it.",
    (ActionState.BLOCKED,),
    (
        Transition((ActionState.BLOCKED,), ActionEvent.UNBLOCK, ActionState.READY),
        # Nobody executes it: a pseudo action, or the cluster's own bookkeeping.
        Transition((ActionState.READY,), ActionEvent.SUCCEED, ActionState.DONE),
        Transition((ActionState.READY,), ActionEvent.ORDER, ActionState.ORDERED),
        Transition((ActionState.ORDERED,), ActionEvent.COMMIT, ActionState.OPEN),
        Transition((ActionState.ORDERED, ActionState.OPEN), ActionEvent.SPECULATE, ActionState.SPECULATED),
        Transition((ActionState.OPEN, ActionState.SPECULATED), ActionEvent.SUCCEED, ActionState.DONE),
        Transition((ActionState.READY,), ActionEvent.FENCE, ActionState.FENCING),
        # An unfencing, once it is recorded. A fencing is a change that aborts the walk.
        Transition((ActionState.FENCING,), ActionEvent.SUCCEED, ActionState.DONE),
    ),
)


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
    "The walk of one graph by one DC.",
    (TransitionState.RUNNING,),
    (
        Transition((TransitionState.RUNNING,), TransitionEvent.COMPLETE, TransitionState.DONE),
        Transition((TransitionState.RUNNING,), TransitionEvent.ABORT, TransitionState.CLOSING),
        Transition((TransitionState.CLOSING,), TransitionEvent.CLOSE, TransitionState.ABORTED),
    ),
)


@dataclass(slots=True, eq=False)
class _Tracked:
    action: GraphAction
    rank: tuple[int, int]
    """Sort key among ready actions: the lowest is first."""
    state: ActionState = ActionState.BLOCKED
    unfencings: frozenset[FenceKey] = frozenset()
    """For an `on`: the unfencings of its node that were recorded before."""
    open_inputs: int = 0
    """Number of inputs that are not done yet."""
    waits_until: Instant | None = None
    """For a recurring monitor that lets others go first, or an action with a start-delay: until when it waits at
    most."""
    dependants: list["_Tracked"] = field(default_factory=list)
    """The actions that it is an input of."""
    together: tuple["_Tracked", ...] = ()
    """For a start in a gang (`gpu-gang=all`): all starts of that gang, which are ordered by one command."""

    def happened(self, event: ActionEvent) -> None:
        self.state = ACTIONS.after(self.state, event)

    def committed(self) -> None:
        """Note that its order was seen in the CIB, or has passed through it."""
        if self.state is ActionState.ORDERED:
            self.happened(ActionEvent.COMMIT)


_RANK = attrgetter("rank")


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
            action.id: _Tracked(action, (-action.priority, action.id)) for action in graph.actions.values()
        }
        self._delays = StartDelays() if delays is None else delays
        self._refused = frozenset(refused)
        self._is_begun = False
        self._by_order: dict[OrderKey, _Tracked] = {}
        self._done = 0
        self._pseudo: list[_Tracked] = []
        """Ready actions without anything to execute."""
        self._fences: list[_Tracked] = []
        """Ready fence actions."""
        self._ready: dict[NodeName | None, list[_Tracked]] = {}
        self._starting: dict[NodeName | None, set[_Tracked]] = {}
        """Other ready actions, by node; sorted by rank, except on the nodes in `_unsorted`."""
        self._unsorted: set[NodeName | None] = set()
        self._issued: dict[NodeName | None, dict[OrderKey, _Tracked]] = {}
        """Actions whose orders have not ended in the CIB, by node."""
        self._unfencing: list[_Tracked] = []
        """Unfencings under way."""
        self._seen_orders: dict[NodeName | None, Mapping[OrderKey, Order]] = {}
        """The open orders of each node at the last step: the same object has not changed."""
        self._state = TransitionState.RUNNING
        self._abort_reason = ""
        self._batches = 0
        self._deadline = NEVER
        self._foreign = frozenset(_activating(planned_for))
        """Activating orders of older transitions that the plan knew."""
        self._link()

    @property
    def state(self) -> TransitionState:
        """The state of the transition."""
        return self._state

    @property
    def number(self) -> int:
        """The number of the transition within its DC's term."""
        return self._number

    @property
    def abort_reason(self) -> str:
        """Why it was aborted."""
        return self._abort_reason

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
        if self._done == len(self._tracked) and not any(self._issued.values()):
            self._state = TRANSITIONS.after(self._state, TransitionEvent.COMPLETE)
        return effects

    def _continue_delays(self) -> None:
        """At the beginning, continue the delays of actions that an earlier plan found ready too."""
        if not self._is_begun:
            self._is_begun = True
            self._delays.keep({delayed(tracked.action) for ready in self._ready.values() for tracked in ready})

    def _link(self) -> None:
        """Find out what waits for what, and what is ready at once."""
        for tracked in self._tracked.values():
            inputs = [self._tracked[before] for before in set(tracked.action.inputs) if before in self._tracked]
            tracked.open_inputs = len(inputs)
            for before in inputs:
                before.dependants.append(tracked)
        for gang in _gangs(self._tracked):
            for tracked in gang:
                tracked.together = gang
        for tracked in self._tracked.values():
            if not tracked.open_inputs:
                self._make_ready(tracked)

    def _make_ready(self, tracked: _Tracked) -> None:
        tracked.happened(ActionEvent.UNBLOCK)
        action = tracked.action
        if self._state is TransitionState.CLOSING and not _closes(action):
            return
        if _needs_no_hand(action):
            self._pseudo.append(tracked)
        elif action.kind is ActionKind.FENCE:
            self._fences.append(tracked)
        else:
            self._ready.setdefault(action.node, []).append(tracked)
            self._unsorted.add(action.node)
            if action.name in STARTING:
                self._starting.setdefault(action.node, set()).add(tracked)

    def _finish(self, tracked: _Tracked, event: ActionEvent = ActionEvent.SUCCEED) -> None:
        """Release what waits for an action; if success was speculated on, that was done before."""
        is_new = tracked.state is not ActionState.SPECULATED
        tracked.happened(event)
        if not is_new:
            return
        self._done += 1
        self._delays.done(tracked.action)
        self._starting.get(tracked.action.node, set()).discard(tracked)
        for following in tracked.dependants:
            following.open_inputs -= 1
            if not following.open_inputs:
                self._make_ready(following)

    def speculate(self, cib: Cib, command: RecordResults) -> None:
        """Continue from results in this leader's log before their commit: they are applied before any order issued now.

        Only plain success is speculated on, of orders that are open and wanted; everything else waits until it is
        applied. A speculated result is checked again when it is applied: if it did not come true, the walk ends there,
        as without it.
        """
        status = cib.status.nodes.get(command.node)
        if self._state is not TransitionState.RUNNING or status is None:
            return
        if status.state is not NodeState.ONLINE or status.incarnation != command.incarnation:
            return
        for result in command.results:
            order = status.orders.get(result.order) if result.order is not None else None
            tracked = self._issued.get(command.node, {}).get(order.key) if order is not None else None
            if order is None or order.is_voided or tracked is None or tracked.state is ActionState.SPECULATED:
                continue
            if _will_succeed(order, result):
                self._finish(tracked, ActionEvent.SPECULATE)

    def refused(self, cib: Cib, text: str) -> Sequence[Effect]:
        """Abort because a batch of orders was refused: the state is not what the plan assumed."""
        return self._abort(cib, text) if self._state is TransitionState.RUNNING else ()

    def dropped(self, keys: Iterable[OrderKey]) -> None:
        """Note that these orders were refused, or will never be decided: nothing waits for them."""
        for key in keys:
            tracked = self._by_order.get(key)
            if tracked is not None:
                self._issued.get(tracked.action.node, {}).pop(key, None)

    def end_if_idle(self, cib: Cib) -> Sequence[Effect]:
        """Abort a walk with nothing in flight: it waits for a fencing or an unfencing, which may take forever.

        Time alone may have changed what is wanted meanwhile (an expired failure, a rule). A start-delay in progress
        continues in the next plan.
        """
        if self._state is not TransitionState.RUNNING or any(self._issued.values()):
            return ()
        return self._abort(cib, "planned again, since nothing of it is under way")

    # -- results ----------------------------------------------------------------------------------------------------

    def _settle(self, cib: Cib) -> str:
        """Process actions that have ended; return the first failure, empty when there is none."""
        for tracked in tuple(self._unfencing):
            if _unfencings(cib, tracked.action) - tracked.unfencings:
                self._unfencing.remove(tracked)
                self._finish(tracked)
        failures = [self._settle_node(cib, node, issued) for node, issued in self._issued.items()]
        return next(filter(None, failures), "")

    def _settle_node(self, cib: Cib, node: NodeName | None, issued: dict[OrderKey, _Tracked]) -> str:
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
                if not _succeeded(cib, tracked.action, key):
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
        late = sorted(key for key in _activating(cib) if key not in self._foreign and key not in self._by_order)
        return f"order {late[0]} of an older transition came late" if late else ""

    def committed(self, keys: Iterable[OrderKey]) -> None:
        """Note that these orders were applied (they may have ended at once)."""
        for key in keys:
            tracked = self._by_order.get(key)
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
            tracked = self._by_order.get(OrderKey(change.facts.order))
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
        self._abort_reason = reason
        self._fences = []
        self._pseudo = [tracked for tracked in self._pseudo if _closes(tracked.action)]
        for ready in self._ready.values():
            ready[:] = [tracked for tracked in ready if _closes(tracked.action)]
        self._end_closing()
        bound = Affinity(cib.configuration, concerned) if concerned is not None else None
        open_keys = tuple(
            key
            for status in cib.status.nodes.values()
            for key, order in status.orders.items()
            if (key in self._by_order or (key in self._foreign and order.dc_term == self._term))
            and order.is_activating
            and not order.is_voided
            and (bound is None or bound.touches(order.resource))
        )
        note = Note("transition-aborted", f"transition {self._term}.{self._number}: {reason}")
        parts = (open_keys[start : start + VOIDED_MAX] for start in range(0, len(open_keys), VOIDED_MAX))
        void = (VoidOrders(self._term, keys, reason) for keys in parts)
        name = f"void:{self._term}.{self._number}"
        return (note, *(Propose(Scope.DC, f"{name}.{part}", each) for part, each in enumerate(void)))

    def _close(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Notify of actions that were under way and have succeeded; nodes that are not online are skipped."""
        self._settle(cib)
        effects = self._finish_pseudo()
        for name in {*self._issued, *self._ready}:
            status = cib.status.nodes.get(name) if name is not None else None
            if status is None or status.state is not NodeState.ONLINE:
                self._issued.pop(name, None)
                self._ready.pop(name, None)
        effects += self._issue(cib, moment)
        self._end_closing()
        return effects

    def _end_closing(self) -> None:
        if not self._is_notification_due():
            self._state = TRANSITIONS.after(self._state, TransitionEvent.CLOSE)

    def _is_notification_due(self) -> bool:
        """Return whether a notification may still be ordered, provided that everything under way succeeds."""
        if any(self._ready.values()):
            return True
        under_way = [tracked for issued in self._issued.values() for tracked in issued.values()]
        reached = [*self._pseudo, *(each for each in under_way if each.state is not ActionState.SPECULATED)]
        missing: dict[_Tracked, int] = {}
        while reached:
            for following in reached.pop().dependants:
                missing[following] = missing.get(following, following.open_inputs) - 1
                if missing[following] or not _closes(following.action):
                    continue
                if following.action.kind is ActionKind.RESOURCE:
                    return True
                reached.append(following)
        return False

    # -- issuing ----------------------------------------------------------------------------------------------------

    def _issue_fences(self, cib: Cib, moment: Moment) -> list[Effect]:
        waiting, self._fences = sorted(self._fences, key=_RANK), []
        return [effect for tracked in waiting for effect in self._fence(cib, tracked, moment)]

    def _issue(self, cib: Cib, moment: Moment) -> list[Effect]:
        chosen = self._choose(cib, moment)
        may_begin, left = set(chosen), self._room(cib)
        units: list[tuple[Order, ...]] = []
        for tracked in sorted(chosen, key=_RANK):
            unit = tracked.together or (tracked,)
            is_alone = left > 0 and not any(self._issued.values())
            # A gang too large for the limits starts when nothing else is under way.
            has_room = len(unit) <= left and may_begin.issuperset(unit)
            if tracked.state is not ActionState.READY or not (has_room or is_alone):
                continue
            made = [(each, self._order(cib, each.action, moment)) for each in unit]
            orders = tuple(order for _, order in made if order is not None)
            if len(orders) < len(unit):
                continue
            for each, order in zip(unit, orders, strict=True):
                each.happened(ActionEvent.ORDER)
                self._by_order[order.key] = each
                self._issued.setdefault(each.action.node, {})[order.key] = each
                self._ready[each.action.node].remove(each)
            units.append(orders)
            left -= len(unit)
        effects: list[Effect] = []
        common = [unit for unit in units if unit[0].resource not in self._refused]
        alone = [unit for unit in units if unit[0].resource in self._refused]
        for batch in (*_batches(common), *alone):
            self._batches += 1
            key = f"orders:{self._term}.{self._number}.{self._batches}"
            effects.append(Propose(Scope.DC, key, IssueOrders(self._term, batch)))
        return effects

    def _choose(self, cib: Cib, moment: Moment) -> list[_Tracked]:
        """Return what may be ordered now: for each node the most urgent actions, as many as it has room for."""
        self._deadline = NEVER
        if not any(self._ready.values()):
            return []
        # A notification activates nothing: after an abort it does not wait for orders of other walks.
        is_closing = self._state is TransitionState.CLOSING
        guard = _Guard(cib, self._rules, None if is_closing else self._blocked_resources(cib))
        limits = _Limits(ClusterProperties(cib.in_force))
        chosen: list[_Tracked] = []
        for node, ready in self._ready.items():
            issued = self._issued.get(node, {})
            room = self._room_on(node, limits, cib)
            if room <= 0 or not ready:
                continue
            if node in self._unsorted:
                ready.sort(key=_RANK)
                self._unsorted.discard(node)
            is_starting = bool(self._starting.get(node))
            migrations = sum(map(_is_migration, issued.values()))
            admitted = (each for each in ready if self._may_begin(each, guard, limits, cib))
            due = (
                each
                for each in admitted
                if not any(self._waits(one, moment, is_starting) for one in each.together or (each,))
            )
            chosen.extend(islice(_few_migrations(due, limits.migrations - migrations), room))
        return chosen

    def _room_on(self, node: NodeName | None, limits: "_Limits", cib: Cib) -> int:
        status = cib.status.nodes.get(node) if node is not None else None
        issued = self._issued.get(node, {})
        open_keys = {*issued, *status.orders} if status is not None else set(issued)
        return limits.of(status) - len(open_keys)

    def _may_begin(self, tracked: _Tracked, guard: "_Guard", limits: "_Limits", cib: Cib) -> bool:
        """Return whether an action may be ordered now; a start of a gang only if all its starts may."""
        if not tracked.together:
            return guard.admits(tracked.action)
        return all(
            each.state is ActionState.READY
            and guard.admits(each.action)
            and self._room_on(each.action.node, limits, cib) > 0
            for each in tracked.together
        )

    def _waits(self, tracked: _Tracked, moment: Moment, is_starting: bool) -> bool:
        """Return whether an action has a start-delay left, or is a monitor that lets starts on its node go first.

        The executor delays the first run of a recurring monitor itself.
        """
        action = tracked.action
        if action.interval_ms:
            span_ms = MONITORS_WAIT_MS if is_starting and action.is_named(ActionName.MONITOR) else 0
        else:
            span_ms = action.start_delay_ms
        if not span_ms:
            return False
        if tracked.waits_until is None:
            ready_at = moment.now if action.interval_ms else self._delays.ready_since(action, moment.now)
            tracked.waits_until = after(ready_at, span_ms)
        if moment.now >= tracked.waits_until:
            return False
        self._deadline = min(self._deadline, tracked.waits_until)
        return True

    def _room(self, cib: Cib) -> int:
        limit = ClusterProperties(cib.in_force).integer("batch-limit")
        if limit <= 0:
            return len(self._tracked)
        return max(0, limit - sum(len(status.orders) for status in cib.status.nodes.values()))

    def _blocked_resources(self, cib: Cib) -> Affinity | None:
        """Return the resources bound to one on which an order of an older graph is at work; None: there are none."""
        foreign = {
            order.resource
            for status in cib.status.nodes.values()
            if status.state is NodeState.ONLINE
            for key, order in status.orders.items()
            if key not in self._by_order
            and (self._rules.open_orders_possibly_active or not order.is_activating)
        }
        return Affinity(cib.configuration, foreign) if foreign else None

    def _fence(self, cib: Cib, tracked: _Tracked, moment: Moment) -> Sequence[Effect]:
        """Have the director fence a lost node, or unfence one; a node that is not lost yet is first declared lost."""
        action = tracked.action
        if not moment.has_lease and self._rules.dc_needs_fresh_lease:
            self._fences.append(tracked)
            return ()
        tracked.happened(ActionEvent.FENCE)
        if _is_unfencing(action):
            tracked.unfencings = _unfencings(cib, action)
            self._unfencing.append(tracked)
            return ()
        status = cib.status.nodes.get(action.node) if action.node is not None else None
        if status is None or status.state is not NodeState.ONLINE:
            return ()
        command = Lost(status.name, status.incarnation, self._term, action.reason, causes=action.causes)
        return (Propose(Scope.DC, f"lost:{status.name}:{status.incarnation}:{self._term}", command),)

    def _order(self, cib: Cib, action: GraphAction, moment: Moment) -> Order | None:
        status = cib.status.nodes.get(action.node) if action.node is not None else None
        if status is None or status.incarnation is None or action.resource is None or action.agent is None:
            return None
        return Order(
            key=order_key(cib.cluster_uuid, self._term, self._number, action.id),
            node=status.name,
            incarnation=status.incarnation,
            dc_term=self._term,
            resource=action.resource,
            action=ActionName(action.name),
            interval_ms=action.interval_ms,
            agent=action.agent,
            parameters=action.parameters,
            meta=action.meta,
            timeout_ms=action.timeout_ms,
            deadline_ms=max(action.timeout_ms, 10_000),
            target_exit_code=action.target_exit_code,
            devices=action.devices,
            device_memory_mib=action.device_memory_mib,
            digest=action.digest,
            definition=action.definition,
            resource_parameters=action.resource_parameters,
            start_delay_ms=action.start_delay_ms,
            reason=action.reason,
            issued_at=moment.wall,
            transition=self._number,
            is_probe=action.is_probe,
        )


def order_key(cluster_uuid: str, term: Term, transition: int, number: int) -> OrderKey:
    """Return the identity of an order: TERM.TRANSITION.NUMBER, and eight digits of the cluster's uuid.

    By it executors recognise agents that an earlier incarnation left at work in this boot. That incarnation may have
    been in another cluster, restored or formed on machines that were not rebooted, whose terms and numbers may be the
    same.
    """
    return OrderKey("-".join(filter(None, (f"{term}.{transition}.{number}", cluster_uuid[-8:]))))


class _Limits:
    """How many actions one node runs at once (Pacemaker Explained, "Cluster Options")."""

    def __init__(self, properties: ClusterProperties) -> None:
        stated, migrations = properties.integer("node-action-limit"), properties.integer("migration-limit")
        self.actions = min(stated, OPEN_ON_NODE_MAX) if stated > 0 else OPEN_ON_NODE_MAX
        self.migrations = OPEN_ON_NODE_MAX if migrations < 0 else max(1, migrations)

    def of(self, status: NodeStatus | None) -> int:
        """Return how many actions a node may have open, by the properties and its load."""
        left = status.actions_max if status is not None else 0
        return min(self.actions, left) if left else self.actions


def _is_migration(tracked: _Tracked) -> bool:
    return tracked.action.is_named(ActionName.MIGRATE_TO) or tracked.action.is_named(ActionName.MIGRATE_FROM)


def _few_migrations(due: Iterable[_Tracked], room: int) -> Iterator[_Tracked]:
    """Yield what is due, with no more migrations than there is room for."""
    for tracked in due:
        if _is_migration(tracked):
            if room <= 0:
                continue
            room -= 1
        yield tracked


class _Guard:
    """What must not be ordered yet, by one CIB."""

    def __init__(self, cib: Cib, rules: SafetyRules, blocked: Affinity | None) -> None:
        self._cib = cib
        self._blocked = blocked
        is_fencing_enabled = ClusterProperties(cib.in_force).boolean("fencing-enabled")
        is_any_lost = any(status.state is NodeState.LOST for status in cib.status.nodes.values())
        self._has_holders = rules.fence_before_recovery and is_fencing_enabled and is_any_lost
        self._copies = copies_of(cib)

    def admits(self, action: GraphAction) -> bool:
        """Return whether an action may be ordered now."""
        if action.resource is None or action.node is None:
            return False
        if self._blocked is not None and self._blocked.touches(action.resource):
            return False
        if action.name not in ACTIVATING or not self._has_holders:
            return True
        holders = unfenced_holders(self._cib, action.resource)
        return not holders or len(holders) < self._copies.most(action.resource)


def _is_unfencing(action: GraphAction) -> bool:
    return action.kind is ActionKind.FENCE and action.name == FenceAction.ON


def _unfencings(cib: Cib, action: GraphAction) -> frozenset[FenceKey]:
    """Return the recorded unfencings of an action's node."""
    return frozenset(
        record.key
        for record in cib.status.fencing_history
        if record.outcome is FenceOutcome.UNFENCED and record.target == action.node
    )


def _activating(cib: Cib) -> Iterator[OrderKey]:
    """Yield the open orders that may make a resource active."""
    for status in cib.status.nodes.values():
        for key, order in status.orders.items():
            if order.is_activating:
                yield key


def _closes(action: GraphAction) -> bool:
    """Return whether an action is still done after an abort: a pseudo action, or a notification of what has happened.

    Pacemaker's scheduler gives these notifications, and the pseudo actions that lead to them, the priority INFINITY.
    """
    return action.kind is ActionKind.PSEUDO or action.notification.startswith("post-")


def _needs_no_hand(action: GraphAction) -> bool:
    return action.kind in (ActionKind.PSEUDO, ActionKind.CLUSTER) or action.name in FORGETTING


def _succeeded(cib: Cib, action: GraphAction, key: OrderKey) -> bool:
    """Return whether a closed order ended as its action expected."""
    assert action.node is not None
    assert action.resource is not None
    status = cib.status.nodes[action.node]
    if action.is_named(ActionName.NOTIFY):
        return True
    if action.resource in status.unverified and action.is_named(ActionName.MONITOR):
        return False
    history = status.histories.get(action.resource)
    is_found_stopped = action.is_probe and action.resource in status.probed
    if history is None:
        return is_found_stopped and action.target_exit_code is ExitCode.NOT_RUNNING
    if action.is_named(ActionName.CANCEL):
        return operation_key(ActionName.MONITOR, action.interval_ms) not in history.records
    # A reload is recorded as the start that it makes unnecessary.
    name = ActionName.START if action.is_named(ActionName.RELOAD_AGENT) else action.name
    record = history.records.get(operation_key(name, action.interval_ms))
    if record is None or record.order != key:
        return is_found_stopped and action.target_exit_code is ExitCode.NOT_RUNNING
    return not record.is_failure and record.exit_code is action.target_exit_code


def _will_succeed(order: Order, result: OperationResult) -> bool:
    """Return whether a result, once applied, will be the end that its order's action expects."""
    if order.action is ActionName.NOTIFY:
        return True
    return (
        order.action in SPECULATIVE
        and result.kind is ResultKind.FINISHED
        and result.operation == order.action
        and result.status is ExecutionStatus.DONE
        and result.exit_code is order.target_exit_code
        and result.target_exit_code is order.target_exit_code
    )


def _batches(units: Sequence[tuple[Order, ...]]) -> Iterator[tuple[Order, ...]]:
    """Split orders into commands of a size that the store takes; units are not split."""
    batch: list[Order] = []
    size = 0
    for unit in units:
        weight = sum(map(_weight, unit))
        if batch and size + weight > BATCH_BYTES:
            yield tuple(batch)
            batch, size = [], 0
        batch.extend(unit)
        size += weight
    if batch:
        yield tuple(batch)


def _weight(order: Order) -> int:
    """Return the approximate size of an order in the log, in bytes."""
    own = order.resource_parameters or {}
    pairs = (*order.parameters.items(), *order.meta.items(), *own.items())
    return ORDER_BYTES + bytes_in_log(order.reason) + sum(bytes_in_log(text) for pair in pairs for text in pair)


def _gangs(tracked: Mapping[int, _Tracked]) -> Iterator[tuple[_Tracked, ...]]:
    """Yield the starts of each gang, except of one whose instances wait for each other (an `ordered` clone)."""
    gangs: dict[str, list[_Tracked]] = {}
    for each in tracked.values():
        action = each.action
        if action.is_named(ActionName.START) and action.resource is not None and "gang_size" in action.meta:
            gangs.setdefault(action.resource.partition(":")[0], []).append(each)
    for gang in gangs.values():
        if not any(_comes_before(tracked, each, gang) for each in gang):
            yield tuple(gang)


def _comes_before(tracked: Mapping[int, _Tracked], last: _Tracked, others: Sequence[_Tracked]) -> bool:
    """Return whether one of several actions must be done before the last one may start."""
    wanted = {each.action.id for each in others}
    pending, seen = list(last.action.inputs), set[int]()
    while pending:
        number = pending.pop()
        if number in wanted:
            return True
        if number in tracked and number not in seen:
            seen.add(number)
            pending.extend(tracked[number].action.inputs)
    return False
