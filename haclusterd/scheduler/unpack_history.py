"""Phase: from recorded operations and open orders to where each resource is, and what failed.

Three sources are believed, in this order of strength: an open order (what it can make active counts as active until
its terminal record), `unverified` (active as recorded, but asked again before anything is done), the records. On a lost
node whatever cannot be excluded counts as active (safety.md §1, §6).
"""

from collections.abc import Sequence

from haclusterd.model.activity import possibly_active
from haclusterd.model.cluster import NodeState
from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import ActionName, Role
from haclusterd.model.orders import Order
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.entities import Inventory, MultipleActive, Needs, Resource, Variant
from haclusterd.scheduler.failures import Failures
from haclusterd.scheduler.nodes import Node
from haclusterd.scheduler.operation_settings import OnFail
from haclusterd.scheduler.replay import Replay, records_in_order
from haclusterd.scheduler.settings import Settings


def unpack_history(inventory: Inventory, failures: Failures, settings: Settings) -> None:
    """Replay every node's histories, in the order of the nodes' names."""
    replayer = _Replayer(inventory, failures, settings)
    for node in inventory.nodes:
        status = node.status
        if not (node.is_online or node.is_unclean or _left_in_maintenance(node)):
            continue
        orders: dict[ResourceId, list[Order]] = {}
        for order in sorted(status.orders.values(), key=lambda order: order.key):
            orders.setdefault(order.resource, []).append(order)
        for identifier in sorted({*status.histories, *orders, *status.unverified}):
            replayer.unpack(node, identifier, orders.get(identifier, ()))
        if node.is_online and status.probed:
            _take_probed(inventory, node)
    for resource in inventory.primitives():
        _judge_multiple_active(resource)


def _left_in_maintenance(node: Node) -> bool:
    """What ran on a node that left while nobody touched its resources goes on there."""
    return node.is_maintenance and node.status.state is NodeState.LEFT


def _take_probed(inventory: Inventory, node: Node) -> None:
    for identifier in node.status.probed:
        resource = inventory.by_id.get(identifier)
        if resource is not None and identifier not in node.status.unverified:
            resource.known_on.add(node.name)


class _Replayer:
    """Takes in what is known of one resource on one node."""

    def __init__(self, inventory: Inventory, failures: Failures, settings: Settings) -> None:
        self._inventory = inventory
        self._failures = failures
        self._settings = settings

    def unpack(self, node: Node, identifier: ResourceId, orders: Sequence[Order]) -> None:
        """Replay the records, then take the orders and the doubts."""
        history = node.status.histories.get(identifier)
        resource = self._inventory.by_id.get(identifier)
        if resource is None:
            resource = self._removed_resource(identifier, history, orders)
        if resource is None or resource.agent is None:
            return
        saved, resource.original_role = resource.original_role, Role.UNKNOWN
        replay, records = self._replay(resource, node, history)
        _take_orders(resource, node, orders, replay)
        _take_doubts(resource, node, replay)
        if node.is_online:
            _register_recurring(resource, node, records)
        resource.changed_recurring.update((node.name, interval_ms) for interval_ms in replay.expired_recurring)
        resource.original_role = replay.role
        _apply_state(resource, node, replay)
        if saved.value > resource.original_role.value:
            resource.original_role = saved

    def _replay(
        self, resource: Resource, node: Node, history: ResourceHistory | None
    ) -> tuple[Replay, list[OperationRecord]]:
        assert resource.agent is not None
        known = history or ResourceHistory(resource.id, resource.agent)
        replay = Replay(resource, node, known, self._failures, self._settings)
        records = records_in_order(known)
        if history is not None:
            resource.histories[node.name] = history
            replay.run(records)
        return replay, records

    def _removed_resource(
        self, identifier: ResourceId, history: ResourceHistory | None, orders: Sequence[Order]
    ) -> Resource | None:
        """Make a resource of what is only known from its history: it is stopped, unless it is to be left alone."""
        source = history if history is not None else orders[0] if orders else None
        if source is None:
            return None
        resource = Resource(identifier, Variant.PRIMITIVE)
        resource.agent = source.agent
        resource.parameters = source.parameters
        resource.is_removed = True
        resource.is_fence_device = source.agent.standard == "stonith"
        if not self._settings.is_fencing_enabled or resource.is_fence_device:
            resource.needs = Needs.QUORUM
        resource.addends = {} if self._settings.options.is_explaining else None
        if self._settings.is_maintenance:
            resource.is_managed, resource.is_maintenance = False, True
        if not self._settings.stops_removed:
            resource.is_managed = False
        for node in self._inventory.nodes if self._settings.stops_removed else ():
            resource.add_score(node.name, -INFINITY, "it is no longer configured")
        self._inventory.add_top(resource)
        return resource


def _take_doubts(resource: Resource, node: Node, replay: Replay) -> None:
    """What is unverified is asked for again; on a lost node, where nobody can ask, every doubt counts as active."""
    if node.is_online and resource.id in node.status.unverified:
        resource.unverified_on.add(node.name)
    elif not node.is_online and replay.role.value < Role.STARTED.value and resource.id in possibly_active(node.status):
        replay.role = Role.STARTED


def _take_orders(resource: Resource, node: Node, orders: Sequence[Order], replay: Replay) -> None:
    """An open order that activates makes the resource active here until it ends (safety.md §1)."""
    for order in orders:
        if order.is_activating:
            if replay.role.value < Role.STARTED.value:
                replay.role = Role.STARTED
            replay.on_fail = OnFail.IGNORE
            if order.action == ActionName.START:
                resource.is_start_pending = True
        if node.is_online:
            resource.orders_in_flight.append((node.name, str(order.action), order.interval_ms))
            if order.action == ActionName.STOP:
                resource.pending_stops.add(node.name)


def _register_recurring(resource: Resource, node: Node, records: list[OperationRecord]) -> None:
    """Note which recurring actions run: those recorded since the newest start, or since the newest stop."""
    first = 0
    for index, record in enumerate(records):
        is_start = record.operation in (ActionName.START, ActionName.MIGRATE_FROM)
        if is_start or (record.operation == ActionName.STOP and not record.is_failure):
            first = index + 1
    present = {(record.operation, record.interval_ms, record.call_id) for record in records[first:]}
    kept = resource.histories[node.name].records if node.name in resource.histories else {}
    for record in kept.values():
        if record.interval_ms and (record.operation, record.interval_ms, record.call_id) in present:
            resource.registered.add((node.name, record.interval_ms))


def _apply_state(resource: Resource, node: Node, replay: Replay) -> None:
    """Draw the consequences of what was found on one node."""
    is_active = resource.original_role.value > Role.STOPPED.value
    if resource.original_role is not Role.UNKNOWN and node.name not in resource.unverified_on:
        resource.known_on.add(node.name)
    on_fail = OnFail.IGNORE if node.is_unclean else replay.on_fail
    _react(resource, node, on_fail, replay.failed_words, is_active=is_active)
    if is_active:
        _mark_running(resource, node)
        if on_fail > OnFail.IGNORE:
            resource.is_failed = True
            if on_fail not in (OnFail.DEMOTE, OnFail.BLOCK):
                resource.must_stop_when_failed = True
    if replay.failed_words:
        resource.fails_off_on[node.name] = replay.failed_words
    if resource.target_role_stopped and resource.next_role is Role.UNKNOWN:
        resource.next_role = Role.STOPPED


def _react(resource: Resource, node: Node, on_fail: OnFail, words: str, *, is_active: bool) -> None:
    if on_fail is OnFail.FENCE:
        node.demand_fencing(f"{resource.id}: {words}")
    elif on_fail is OnFail.STANDBY:
        node.is_standby = True
        node.is_fail_standby = True
    elif on_fail is OnFail.BLOCK:
        resource.is_managed = False
        resource.is_blocked = True
        resource.failed_because = resource.failed_because or words
    elif on_fail is OnFail.BAN:
        resource.add_score(node.name, -INFINITY, words)
    elif on_fail is OnFail.STOP:
        resource.next_role = Role.STOPPED
    elif on_fail is OnFail.RESTART and is_active:
        resource.is_failed = True
        resource.must_stop_when_failed = True
        resource.required_stops.add(node.name)


def _mark_running(resource: Resource, node: Node) -> None:
    resource.active_nodes.append(node)
    if node.is_maintenance:
        resource.is_managed = False
        resource.is_maintenance = True
    if not resource.is_managed:
        resource.add_score(node.name, INFINITY, "it is unmanaged and stays")
        if resource.parent is not None:
            resource.parent.active_nodes.append(node)
        return
    if resource.parent is not None and node not in resource.parent.active_nodes:
        resource.parent.active_nodes.append(node)


def _judge_multiple_active(resource: Resource) -> None:
    """Apply `multiple-active`, once all nodes are known."""
    nodes = resource.active_nodes
    if resource.needs is not Needs.FENCING:
        nodes = [node for node in nodes if node.is_online and not node.is_unclean]
    if len(nodes) < 2 or not resource.is_managed:
        return
    where = ", ".join(node.name for node in nodes)
    if resource.multiple_active is MultipleActive.STOP_ONLY:
        resource.ban_everywhere(f"active on several nodes ({where}): multiple-active=stop_only")
    elif resource.multiple_active is MultipleActive.BLOCK:
        group = resource.parent
        is_whole = group is not None and group.multiple_active is MultipleActive.BLOCK
        for member in group.children if group is not None and is_whole else (resource,):
            member.is_managed = False
            member.is_blocked = True
            member.failed_because = member.failed_because or f"{resource.id} is active on several nodes ({where})"
