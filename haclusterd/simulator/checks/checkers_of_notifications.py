"""Notifications of a clone: before and after what they announce, once, and to each instance that is there.

Judged by the log alone. Source: Pacemaker Explained, "Clone Notifications"; what an aborted transition sends, and that
a new DC sends nothing of the one before, is in docs/design/0005-scheduler.md, "What is in flight".
"""

from collections.abc import Iterator

from haclusterd.cib.commands import IssueOrders, RecordResults
from haclusterd.model.activity import history_says_active
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.configuration import Clone, Group, Resource
from haclusterd.model.history import ordered_records
from haclusterd.model.ids import Incarnation, NodeName, OrderKey, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus
from haclusterd.model.orders import Order
from haclusterd.model.records import dataclass, field, replace
from haclusterd.scheduler.unpack.management import unmanaged
from haclusterd.simulator.checks.checker import Accepted, Checker, Log, Scene
from haclusterd.simulator.hosts.clocks import EPOCH_MS

ANNOUNCED = (ActionName.START, ActionName.STOP, ActionName.PROMOTE, ActionName.DEMOTE)
_OF_ROLES = (ActionName.PROMOTE, ActionName.DEMOTE)
LIMIT_US = 20_000_000
"""So long after the last of what was announced has succeeded, and nothing of the clone is ordered, all are notified."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """What is announced: one action of one clone in one transition."""

    term: Term
    transition: int
    resource: ResourceId
    action: str


@dataclass(frozen=True, slots=True)
class Instance:
    """One running instance: the same life of its node, started by the same order."""

    node: NodeName
    incarnation: Incarnation | None
    started_by: OrderKey | None


@dataclass(slots=True)
class _Succeeded:
    """What is to be announced afterwards."""

    there: frozenset[Instance]
    """The instances that ran and were managed when it was ordered."""
    configured: tuple[Resource, ...]
    since_us: int


@dataclass(slots=True)
class _Seen:
    """What was ordered on one occasion."""

    before: set[NodeName] = field(default_factory=set)
    after: set[NodeName] = field(default_factory=set)
    there: frozenset[Instance] = frozenset()


class InstancesAreNotified(Checker):
    """Nothing begins before everybody has been notified, nobody is notified twice, and all are notified afterwards."""

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self._seen: dict[Occasion, _Seen] = {}
        self._acting: dict[Occasion, int] = {}
        """How many orders of what is announced were issued on an occasion."""
        self._succeeded: dict[Occasion, _Succeeded] = {}
        self._done: set[Occasion] = set()
        """What was announced and has succeeded, on one node at least."""

    def another_log_begins(self) -> None:
        """See `Checker`."""
        self._seen.clear()
        self._acting.clear()
        self._succeeded.clear()
        self._done.clear()

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if isinstance(command, IssueOrders):
            for order in command.orders:
                if order.action is ActionName.NOTIFY:
                    self._notified(accepted.after, order)
                elif order.action in ANNOUNCED:
                    self._ordered(accepted.after, order)
        elif isinstance(command, RecordResults) and self._seen:
            for result in command.results:
                answered = self.log.orders.get(result.order) if result.order is not None else None
                is_well = result.status is ExecutionStatus.DONE and result.exit_code is result.target_exit_code
                if answered is not None and answered.action in _OF_ROLES and is_well:
                    self._well_done(accepted.after, answered)

    def _notified(self, after: Cib, order: Order) -> None:
        kind, action = order.meta["notify_type"], order.meta["notify_operation"]
        occasion = Occasion(order.dc_term, order.transition, order.resource, action)
        seen = self._seen.setdefault(occasion, _Seen())
        known = seen.before if kind == "pre" else seen.after
        what = f"{order.resource} on {order.node} is notified {kind}-{action}"
        if order.node in known:
            self.object_to(f"{what} a second time in transition {order.dc_term}.{order.transition}")
        known.add(order.node)
        if kind == "pre":
            if self._acting.get(occasion):
                self.object_to(f"{what} after the {action} that it announces")
            if any(each.action == action for each in _open(after, order.resource)):
                self.object_to(f"{what} while a {action} is under way")
        elif any(each.action == action and _is_of(each, occasion) for each in _open(after, order.resource)):
            self.object_to(f"{what} while the {action} that it announces is under way")

    def _ordered(self, after: Cib, order: Order) -> None:
        occasion = Occasion(order.dc_term, order.transition, order.resource, order.action)
        seen = self._seen.get(occasion)
        if seen is None:
            return
        self._acting[occasion] = self._acting.get(occasion, 0) + 1
        there = _instances(after, order.resource)
        seen.there = seen.there or frozenset(
            each for each in there
            if not (self._leaves_alone(after, each.node, order.resource) or _is_blocked(after, each, order.resource))
        )  # fmt: skip
        for each in _open(after, order.resource):
            is_before = each.action is ActionName.NOTIFY and each.meta["notify_type"] == "pre"
            if is_before and each.meta["notify_operation"] == order.action and _is_of(each, occasion):
                self.object_to(f"{order.action} of {order.resource} on {order.node} before {each.node} is notified")

    def _well_done(self, after: Cib, order: Order) -> None:
        occasion = Occasion(order.dc_term, order.transition, order.resource, order.action)
        seen = self._seen.get(occasion)
        if seen is not None:
            self._done.add(occasion)
            there = seen.there & _instances(after, order.resource)
            self._succeeded[occasion] = _Succeeded(there, _configured(after, order.resource), self.scene.world.now_us)

    def looked_at(self, node: NodeName) -> None:
        """See `Checker`."""
        cib = self.log.newest
        controller = cib.status.controller
        if not self._succeeded or controller is None or controller.node != node:
            return
        for occasion, succeeded in tuple(self._succeeded.items()):
            is_changed = _configured(cib, occasion.resource) != succeeded.configured
            if controller.term != occasion.term or is_changed or self._is_left_alone(cib, occasion.resource):
                del self._succeeded[occasion]  # Another DC knows nothing of it, or people have changed what is to be.
            elif not self.scene.is_at_work(node) or any(_open(cib, occasion.resource)) or _waits(cib, succeeded):
                succeeded.since_us = self.scene.world.now_us
            elif self.scene.world.now_us - succeeded.since_us >= LIMIT_US:
                del self._succeeded[occasion]
                if not self._is_partly_done(cib, occasion):
                    self._judge(cib, occasion, succeeded)

    def _is_left_alone(self, cib: Cib, resource: ResourceId) -> bool:
        return any(self._leaves_alone(cib, node, resource) for node in cib.status.nodes)

    def _leaves_alone(self, cib: Cib, node: NodeName, resource: ResourceId) -> bool:
        """Tell whether nobody manages a resource on a node: its agent is not called there, not to notify it either."""
        return bool(unmanaged(cib, node, frozenset({resource}), WallTime(EPOCH_MS + self.scene.world.now_ms)))

    def _is_partly_done(self, cib: Cib, occasion: Occasion) -> bool:
        """Tell whether another member of its group was announced with it, and nothing came of that.

        All members of a cloned group are notified together, when what was announced of all of them has happened.
        """
        base, colon, number = occasion.resource.partition(":")
        groups = (each for each in cib.in_force.resources.values() if isinstance(each, Group))
        fellows = {name for each in groups if base in each.members for name in each.members}
        together = (replace(occasion, resource=ResourceId(f"{name}{colon}{number}")) for name in fellows)
        return any(each not in self._done and each in self._seen and bool(self._seen[each].before) for each in together)

    def _judge(self, cib: Cib, occasion: Occasion, succeeded: _Succeeded) -> None:
        notified = self._seen[occasion].after
        missed = sorted(
            each.node for each in succeeded.there & _instances(cib, occasion.resource)
            if each.node not in notified and not _is_blocked(cib, each, occasion.resource)
        )  # fmt: skip
        if missed:
            text = f"{occasion.action} of {occasion.resource} in transition {occasion.term}.{occasion.transition}"
            self.object_to(f"{', '.join(missed)} was never notified after the {text}")


def _open(cib: Cib, resource: ResourceId) -> Iterator[Order]:
    """Yield the open orders of a resource on nodes that are there: nobody waits for the others."""
    for status in cib.status.nodes.values():
        if status.state is NodeState.ONLINE:
            yield from (order for order in status.orders.values() if order.resource == resource)


def _waits(cib: Cib, succeeded: _Succeeded) -> bool:
    """Tell whether a node of the instances has orders open: one more may be above the limit of its actions."""
    return any(cib.status.nodes[each.node].orders for each in succeeded.there if each.node in cib.status.nodes)


def _is_of(order: Order, occasion: Occasion) -> bool:
    return (order.dc_term, order.transition) == (occasion.term, occasion.transition)


def _instances(cib: Cib, resource: ResourceId) -> frozenset[Instance]:
    found = (
        (name, status, status.histories[resource])
        for name, status in cib.status.nodes.items()
        if status.state is NodeState.ONLINE and resource in status.histories and resource not in status.unverified
    )
    return frozenset(
        Instance(name, status.incarnation, record.order if (record := history.records.get("start_0")) else None)
        for name, status, history in found
        if history_says_active(history)
    )


def _is_blocked(cib: Cib, instance: Instance, resource: ResourceId) -> bool:
    """Tell whether its stop has failed and nothing fences its node: no agent is called for it, as in Pacemaker."""
    newest = ordered_records(cib.status.nodes[instance.node].histories[resource])[-1]
    return newest.operation == ActionName.STOP and newest.is_failure


def _configured(cib: Cib, resource: ResourceId) -> tuple[Resource, ...]:
    """Return the primitive and what contains it."""
    resources = cib.in_force.resources
    clones = (each for each in resources.values() if isinstance(each, Clone) and each.child == resource)
    return tuple(each for each in (resources.get(resource), *clones) if each is not None)
