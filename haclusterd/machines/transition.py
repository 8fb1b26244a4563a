"""Walks one transition graph: issues what is ready as orders, and watches how they end.

An action is issued when all its inputs have succeeded. Any end that was not expected, and any change of the world that
the plan did not know, aborts the graph: nothing more is issued, what was issued but not begun is voided, and the
controller plans again. Orders of an older graph that are still open block the resources they are bound to by
constraints, until their executors have answered (Pacemaker Development, "Controller": transition engine).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from haclusterd.cib.activity import copies_of, unfenced_holders
from haclusterd.cib.changes import Change, ChangeKind
from haclusterd.cib.commands import CleanUp, ForgetHistory, IssueOrders, Lost, VoidOrders
from haclusterd.machines.affinity import Affinity
from haclusterd.machines.effects import Effect, Note, Propose
from haclusterd.machines.moment import Moment
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.fencing import FenceAction, FenceOutcome
from haclusterd.model.graph import ActionKind, GraphAction, TransitionGraph
from haclusterd.model.history import operation_key
from haclusterd.model.ids import FenceKey, NodeName, OrderKey, Term
from haclusterd.model.ocf import ACTIVATING, ActionName
from haclusterd.model.orders import Order
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules

BATCH_CHARACTERS = 24_000
"""Of orders in one command, roughly: encoded it stays well below the store's limit."""
ORDER_CHARACTERS = 700
"""Of an order without its parameters."""

CLEAR_FAILCOUNT = "clear_failcount"
FORGETTING = frozenset({"delete", "lrm_delete"})
"""Actions that make the cluster forget what is recorded of a resource on a node."""

EXPECTED_CHANGES = frozenset(
    {
        ChangeKind.ORDER_ISSUED,
        ChangeKind.ORDER_VOIDED,
        ChangeKind.OPERATION_SUCCEEDED,
        ChangeKind.FENCING_ORDERED,
        ChangeKind.FENCING_AGENT_SUCCEEDED,
        ChangeKind.FENCING_FAILED,
        ChangeKind.FENCINGS_FORGOTTEN,
        ChangeKind.NODE_UNFENCED,
        ChangeKind.DEVICE_PROVEN,
        ChangeKind.REFUSED,
        ChangeKind.LEADER_REQUESTED,
        ChangeKind.HISTORY_FORGOTTEN,
    }
)
"""Changes that do not by themselves make a plan wrong."""


class _Stage(Enum):
    WAITING = 0
    ISSUED = 1
    DONE = 2


class TransitionState(Enum):
    """Where a transition stands."""

    RUNNING = "running"
    DONE = "done"
    ABORTED = "aborted"


@dataclass(slots=True)
class _Tracked:
    action: GraphAction
    stage: _Stage = _Stage.WAITING
    order: OrderKey | None = None
    is_committed: bool = False
    """Its order has been seen in the CIB."""
    unfencings: frozenset[FenceKey] = frozenset()
    """Of an `on`: those of its node that were recorded before."""


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
        rules: SafetyRules = ALL_RULES,
    ) -> None:
        """`planned_for` is the CIB that the scheduler saw: since then the world may have moved on."""
        self._node = node
        self._term = term
        self._number = number
        self._rules = rules
        self._tracked = {action.id: _Tracked(action) for action in graph.actions.values()}
        self._by_order: dict[OrderKey, _Tracked] = {}
        self._state = TransitionState.RUNNING
        self._abort_reason = ""
        self._batches = 0
        self._foreign = frozenset(_activating(planned_for))
        """Activating orders of older transitions that the plan knew."""

    @property
    def state(self) -> TransitionState:
        """Where it stands."""
        return self._state

    @property
    def number(self) -> int:
        """Which transition of its DC's term it is."""
        return self._number

    @property
    def abort_reason(self) -> str:
        """Why it was aborted."""
        return self._abort_reason

    def wanted_unfencings(self) -> Mapping[NodeName, str]:
        """Return the nodes that must be let in by their devices before the plan goes on, and why."""
        return {
            tracked.action.node: tracked.action.reason
            for tracked in self._tracked.values()
            if tracked.stage is _Stage.ISSUED and _is_unfencing(tracked.action) and tracked.action.node is not None
        }

    def progress(self) -> tuple[int, int]:
        """Return (done, all) actions."""
        return sum(1 for item in self._tracked.values() if item.stage is _Stage.DONE), len(self._tracked)

    def step(self, cib: Cib, changes: Iterable[Change], moment: Moment) -> Sequence[Effect]:
        """Take in what happened and issue what is ready."""
        if self._state is not TransitionState.RUNNING:
            return ()
        unexpected = next((change for change in changes if change.kind not in EXPECTED_CHANGES), None)
        if unexpected is not None:
            return self._abort(cib, unexpected.text)
        failure = self._settle(cib) or self._overtaken(cib)
        if failure:
            return self._abort(cib, failure)
        effects = [*self._finish_pseudo(), *self._issue(cib, moment)]
        if all(item.stage is _Stage.DONE for item in self._tracked.values()):
            self._state = TransitionState.DONE
        return effects

    def refused(self, cib: Cib, text: str) -> Sequence[Effect]:
        """A batch of orders was refused: the world is not what the plan thought."""
        return self._abort(cib, text) if self._state is TransitionState.RUNNING else ()

    # -- what happened ----------------------------------------------------------------------------------------------

    def _settle(self, cib: Cib) -> str:
        """Mark what has ended; return what went wrong, empty when nothing did."""
        for tracked in self._tracked.values():
            is_unfencing = tracked.stage is _Stage.ISSUED and _is_unfencing(tracked.action)
            if is_unfencing and _unfencings(cib, tracked.action) - tracked.unfencings:
                tracked.stage = _Stage.DONE
        for key, tracked in self._by_order.items():
            if tracked.stage is not _Stage.ISSUED:
                continue
            node = tracked.action.node
            status = cib.status.nodes.get(node) if node is not None else None
            if status is None:
                return f"{node} is gone"
            if key in status.orders:
                tracked.is_committed = True
                if status.orders[key].is_voided:
                    return f"{tracked.action.key} on {node} was voided"
            elif tracked.is_committed:
                if not _succeeded(cib, tracked.action, key):
                    return f"{tracked.action.key} on {node} did not end as expected"
                tracked.stage = _Stage.DONE
        return ""

    def _overtaken(self, cib: Cib) -> str:
        """Say which order that this plan did not know was committed since: proposed by an older plan, it came late.

        Its outcome may be all that the plan wants; whatever the plan would do next rests on a world that is gone.
        """
        if not self._rules.one_active_copy:
            return ""
        late = sorted(key for key in _activating(cib) if key not in self._foreign and key not in self._by_order)
        return f"order {late[0]} of an older transition came late" if late else ""

    def committed(self, keys: Iterable[OrderKey]) -> None:
        """These orders were applied (and may have ended in the same moment)."""
        for key in keys:
            tracked = self._by_order.get(key)
            if tracked is not None:
                tracked.is_committed = True

    def _finish_pseudo(self) -> list[Effect]:
        """End what nobody executes; the cluster's own bookkeeping is proposed when its turn has come."""
        effects: list[Effect] = []
        is_moving = True
        while is_moving:
            is_moving = False
            for tracked in self._tracked.values():
                if _needs_no_hand(tracked.action) and tracked.stage is _Stage.WAITING and self._is_ready(tracked):
                    tracked.stage = _Stage.DONE
                    is_moving = True
                    effects.extend(self._keep_books(tracked.action))
        return effects

    def _keep_books(self, action: GraphAction) -> Sequence[Effect]:
        """Propose what a bookkeeping action means; a node that was emptied leaves by itself (`do_shutdown`)."""
        if action.node is None or action.resource is None:
            return ()
        key = f"{action.name}:{self._term}.{self._number}.{action.id}"
        if action.name == CLEAR_FAILCOUNT:
            return (Propose(key, CleanUp(action.resource, action.node)),)
        if action.name in FORGETTING:
            return (Propose(key, ForgetHistory(action.node, action.resource)),)
        return ()

    def _is_ready(self, tracked: _Tracked) -> bool:
        return all(
            before not in self._tracked or self._tracked[before].stage is _Stage.DONE
            for before in tracked.action.inputs
        )

    def _abort(self, cib: Cib, reason: str) -> Sequence[Effect]:
        self._state = TransitionState.ABORTED
        self._abort_reason = reason
        open_keys = tuple(
            key
            for status in cib.status.nodes.values()
            for key, order in status.orders.items()
            if key in self._by_order and order.is_activating and not order.is_voided
        )
        note = Note("transition-aborted", f"transition {self._term}.{self._number}: {reason}")
        if not open_keys:
            return (note,)
        return (note, Propose(f"void:{self._term}.{self._number}", VoidOrders(self._term, open_keys, reason)))

    # -- what is next -----------------------------------------------------------------------------------------------

    def _issue(self, cib: Cib, moment: Moment) -> list[Effect]:
        ready = [
            tracked
            for tracked in self._tracked.values()
            if tracked.stage is _Stage.WAITING and self._is_ready(tracked)
        ]
        effects: list[Effect] = []
        orders: list[Order] = []
        blocked = self._blocked_resources(cib)
        room = self._room(cib)
        for tracked in sorted(ready, key=lambda item: (-item.action.priority, item.action.id)):
            action = tracked.action
            if action.kind is ActionKind.FENCE:
                effects.extend(self._fence(cib, action, tracked, moment))
            elif len(orders) < room and not self._is_blocked(cib, action, blocked):
                order = self._order(cib, action, moment)
                if order is not None:
                    tracked.stage, tracked.order = _Stage.ISSUED, order.key
                    self._by_order[order.key] = tracked
                    orders.append(order)
        for batch in _batches(orders):
            self._batches += 1
            key = f"orders:{self._term}.{self._number}.{self._batches}"
            effects.append(Propose(key, IssueOrders(self._term, batch)))
        return effects

    def _room(self, cib: Cib) -> int:
        limit = ClusterProperties(cib.configuration).integer("batch-limit")
        if limit == 0:
            return len(self._tracked)
        return max(0, limit - sum(len(status.orders) for status in cib.status.nodes.values()))

    def _blocked_resources(self, cib: Cib) -> Affinity | None:
        """Return what is bound to a resource that an older graph's order is still working on; None: nothing."""
        foreign = {
            order.resource
            for status in cib.status.nodes.values()
            if status.state is NodeState.ONLINE
            for key, order in status.orders.items()
            if key not in self._by_order
            and (self._rules.open_orders_possibly_active or not order.is_activating)
        }
        return Affinity(cib.configuration, foreign) if foreign else None

    def _is_blocked(self, cib: Cib, action: GraphAction, blocked: Affinity | None) -> bool:
        if action.resource is None or action.node is None:
            return True
        if blocked is not None and blocked.touches(action.resource):
            return True
        is_activating = action.name in ACTIVATING and self._rules.fence_before_recovery
        if not is_activating or not ClusterProperties(cib.configuration).boolean("fencing-enabled"):
            return False
        holders = unfenced_holders(cib, action.resource)
        return bool(holders) and len(holders) >= copies_of(cib).most(action.resource)

    def _fence(self, cib: Cib, action: GraphAction, tracked: _Tracked, moment: Moment) -> Sequence[Effect]:
        """A lost node is fenced, and one to be let in is unfenced, by the director; another is first declared lost."""
        if not moment.has_lease and self._rules.dc_needs_fresh_lease:
            return ()
        tracked.stage = _Stage.ISSUED
        tracked.unfencings = _unfencings(cib, action)
        status = cib.status.nodes.get(action.node) if action.node is not None else None
        if status is None or status.state is not NodeState.ONLINE or _is_unfencing(action):
            return ()
        command = Lost(status.name, status.incarnation, self._term, action.reason)
        return (Propose(f"lost:{status.name}:{status.incarnation}:{self._term}", command),)

    def _order(self, cib: Cib, action: GraphAction, moment: Moment) -> Order | None:
        status = cib.status.nodes.get(action.node) if action.node is not None else None
        if status is None or status.incarnation is None or action.resource is None or action.agent is None:
            return None
        return Order(
            key=OrderKey(f"{self._term}.{self._number}.{action.id}"),
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
            digest=action.digest,
            start_delay_ms=action.start_delay_ms,
            reason=action.reason,
            issued_at=moment.wall,
            transition=self._number,
            is_probe=action.is_probe,
        )


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
    """Yield the open orders after which a resource may be active."""
    for status in cib.status.nodes.values():
        for key, order in status.orders.items():
            if order.is_activating:
                yield key


def _needs_no_hand(action: GraphAction) -> bool:
    return action.kind in (ActionKind.PSEUDO, ActionKind.CLUSTER) or action.name in FORGETTING


def _succeeded(cib: Cib, action: GraphAction, key: OrderKey) -> bool:
    """Tell whether a closed order ended as its action expected."""
    assert action.node is not None
    assert action.resource is not None
    status = cib.status.nodes[action.node]
    if action.is_named(ActionName.NOTIFY):
        return True
    if action.resource in status.unverified and action.is_named(ActionName.MONITOR):
        return False
    history = status.histories.get(action.resource)
    if history is None:
        return action.is_probe and action.resource in status.probed
    if action.is_named(ActionName.CANCEL):
        return operation_key(ActionName.MONITOR, action.interval_ms) not in history.records
    # A reload is recorded as the start that it makes unnecessary.
    name = ActionName.START if action.is_named(ActionName.RELOAD_AGENT) else action.name
    record = history.records.get(operation_key(name, action.interval_ms))
    if record is None or record.order != key:
        return action.is_probe and action.resource in status.probed
    return not record.is_failure and record.exit_code is action.target_exit_code


def _batches(orders: Sequence[Order]) -> Iterator[tuple[Order, ...]]:
    """Cut orders into commands of a size that the store takes."""
    batch: list[Order] = []
    size = 0
    for order in orders:
        texts = (*order.parameters.items(), *order.meta.items())
        weight = ORDER_CHARACTERS + len(order.reason) + sum(len(name) + len(value) for name, value in texts)
        if batch and size + weight > BATCH_CHARACTERS:
            yield tuple(batch)
            batch, size = [], 0
        batch.append(order)
        size += weight
    if batch:
        yield tuple(batch)
