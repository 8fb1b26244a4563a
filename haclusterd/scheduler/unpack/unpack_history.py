"""Phase: from recorded operations and open orders to where each resource is, and what failed.

Three sources are believed, in this order of strength: an open order (what it can make active counts as active until
its terminal record), `unverified` (active as recorded, but asked again before anything is done), the records. On a lost
node whatever cannot be excluded counts as active (safety.md §1, §6).
"""

from collections.abc import Sequence

from haclusterd.model.activity import could_not_look, migrating_to_or_from, possibly_active
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode, Role
from haclusterd.model.orders import Order
from haclusterd.scheduler.model.entities import Node, NodeKind, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.looks import NodeAttributes
from haclusterd.scheduler.model.operation_settings import OnFail
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import MIGRATE_FROM, MONITOR, START, STOP
from haclusterd.scheduler.unpack.failures import Failures
from haclusterd.scheduler.unpack.fencing_limits import FencingLimits
from haclusterd.scheduler.unpack.found_state import FoundStates, note_probed
from haclusterd.scheduler.unpack.history_owners import HistoryOwners
from haclusterd.scheduler.unpack.nodes import fencing_power
from haclusterd.scheduler.unpack.remote_status import finish_status, is_history_readable, take_status
from haclusterd.scheduler.unpack.replay import Replay, records_in_order


def unpack_history(cib: Cib, inventory: Inventory, failures: Failures, settings: Settings) -> None:
    """Replay every node's histories: of Pacemaker's CIBs in document order, of our own in the order of names.

    Remote and guest nodes follow as soon as it is known that they are connected; what was skipped is read at last.
    """
    unpacker = _Unpacker(cib, inventory, failures, settings)
    unpacker.run()
    unpacker.finish()


def _left_in_maintenance(node: Node) -> bool:
    """What ran on a node that left while nobody touched its resources continues there."""
    return node.status.has_detached or (node.is_maintenance and node.status.state is NodeState.LEFT)


class _Unpacker:
    """Takes in what is known, node by node."""

    def __init__(self, cib: Cib, inventory: Inventory, failures: Failures, settings: Settings) -> None:
        self._cib = cib
        self._inventory = inventory
        self._failures = failures
        self._settings = settings
        self._owners = HistoryOwners(inventory, settings)
        self._is_compatible = settings.options.is_pacemaker_compatible
        limits = FencingLimits.under(cib, settings)
        self._limits = None if self._is_compatible else limits
        """Pacemaker knows none."""
        self._states = FoundStates(settings, limits)
        self._taken: set[NodeName] = set()
        self._doubts: dict[NodeName, frozenset[ResourceId]] = {}
        self._migrating: dict[NodeName, frozenset[ResourceId]] = {}
        self._locked: dict[tuple[NodeName, ResourceId], Resource] = {}
        """Whose histories those of locked resources are, by node and name."""
        self._power = fencing_power(settings, {node.name: node for node in inventory.nodes if not node.is_remote})

    def run(self) -> None:
        """Go through the nodes until nothing new is found, then take what was skipped."""
        for node in self._inventory.nodes:
            node.power = self._power
            if node.kind is NodeKind.REMOTE and node.connection is not None:
                node.is_unclean = self._settings.is_startup_fencing
        names = list(self._cib.status.nodes) if self._is_compatible else []
        waiting = names or [node.name for node in self._inventory.nodes]
        while True:
            skipped = [name for name in waiting if not self._take(name)]
            if len(skipped) == len(waiting):
                break
            waiting = skipped
        for name in waiting if self._settings.is_fencing_enabled else ():
            self._take(name, is_last=True)
        if self._settings.has_shutdown_lock:
            self._take_locks()

    def finish(self) -> None:
        """Draw the consequences that need all nodes."""
        self._states.stop_containers()
        for node in self._inventory.nodes:
            if node.is_remote:
                finish_status(node, is_taken=node.name in self._taken)

    def _take(self, name: NodeName, *, is_last: bool = False) -> bool:
        """Take in one node, unless it is too early."""
        node = self._inventory.nodes_by_name.get(name)
        if node is None or not (is_last or self._is_ready(node)):
            return False
        self._taken.add(name)
        if node.is_remote:
            take_status(node, self._settings)
        self._unpack(node)
        return True

    def _is_ready(self, node: Node) -> bool:
        if node.is_remote:
            return is_history_readable(node, self._settings)
        if not self._is_compatible:
            return node.is_online or node.is_unclean or _left_in_maintenance(node)
        return node.is_online or self._settings.is_fencing_enabled or self._settings.has_shutdown_lock

    def _unpack(self, node: Node) -> None:
        status = node.status
        if not (self._is_compatible or node.is_online or node.is_unclean or _left_in_maintenance(node)):
            return
        if self._is_compatible:
            for name, history in status.histories.items():
                if history.records:
                    self._unpack_resource(node, name, ())
            self._link_launched(node)
            return
        orders: dict[ResourceId, list[Order]] = {}
        self._migrating[node.name] = migrating_to_or_from(self._cib, node.name)
        for order in sorted(status.orders.values(), key=lambda order: order.key):
            orders.setdefault(order.resource, []).append(order)
        for identifier in sorted({*status.histories, *orders, *status.unverified}):
            self._unpack_resource(node, identifier, orders.get(identifier, ()))
        if node.is_online and status.probed:
            self._take_probed(node)

    def _take_probed(self, node: Node) -> None:
        for identifier in sorted(node.status.probed):
            resource = self._owners.find_probed(identifier, node)
            if resource is not None and identifier not in node.status.unverified:
                note_probed(resource, node)

    def _link_launched(self, node: Node) -> None:
        """What is removed together with the launcher that it ran inside of still belongs to that."""
        for name, history in node.status.histories.items():
            if history.launcher is None:
                continue
            launched = self._inventory.by_id.get(name)
            launcher = self._inventory.by_id.get(history.launcher)
            if launched is None or launcher is None or launched.launcher is not None:
                continue
            if launched.found.is_removed_launched:
                launched.launcher = launcher
                launcher.launched.append(launched)
                if launched.remote_node is not None:
                    launched.remote_node.kind = NodeKind.GUEST

    def _unpack_resource(self, node: Node, name: ResourceId, orders: Sequence[Order]) -> None:
        """Replay the records, then take the orders and the doubts."""
        history = node.status.histories.get(name)
        resource = self._owner(node, name, history, orders)
        if resource is None or resource.definition.agent is None:
            return
        if name in node.status.locks:
            self._locked[node.name, name] = resource
        is_absent = history is not None and not orders and _is_plain_absence(resource, history)
        if history is not None and is_absent and name not in node.status.unverified:
            resource.found.histories[node.name] = history
            self._states.take_absence(resource, node)
            _restrict_to_target_role(resource)
            return
        saved, resource.found.original_role = resource.found.original_role, Role.UNKNOWN
        replay, records = self._replay(resource, node, history)
        _take_orders(resource, node, orders, replay)
        self._stop_half_migrated(resource, node, orders)
        is_in_vain = bool(records) and could_not_look(records[-1]) and replay.role.value > Role.STOPPED.value
        self._take_doubts(resource, name, node, replay, is_in_vain=is_in_vain)
        if node.is_online:
            _register_recurring(resource, node, records)
        expired = ((node.name, interval_ms) for interval_ms in replay.expired_recurring)
        resource.found.changed_recurring.update(dict.fromkeys(expired, True))
        resource.found.original_role = replay.role
        self._states.apply(resource, node, replay)
        _restrict_to_target_role(resource)
        if Role.STOPPED.value < resource.found.original_role.value < Role.PROMOTED.value:
            resource.found.unpromoted_on.add(node.name)
        if saved.value > resource.found.original_role.value:
            resource.found.original_role = saved

    def _owner(
        self, node: Node, name: ResourceId, history: ResourceHistory | None, orders: Sequence[Order]
    ) -> Resource | None:
        found = self._owners.find(name, node)
        if found is not None:
            return found
        source = history if history is not None else orders[0] if orders else None
        if source is None:
            return None
        is_launched = history is not None and history.launcher is not None
        made = self._owners.removed(name, source.agent, source.parameters, is_launched=is_launched)
        if made is not None and made.definition.is_remote_connection:
            self._lead_to_node(made)
        return made

    def _lead_to_node(self, connection: Resource) -> None:
        """A connection that is removed leads to a node that is to be left."""
        name = NodeName(connection.id)
        node = self._inventory.nodes_by_name.get(name)
        if node is None:
            status = self._cib.status.nodes.get(name) or NodeStatus(name)
            attributes = NodeAttributes({}, self._settings.looks)
            attributes.put(status.attributes)
            node = Node(name, status, attributes, NodeKind.REMOTE)
            node.power = self._power
            self._inventory.add_node(node)
        if node.connection is None:
            node.connection = connection
        connection.remote_node = node
        node.is_shutting_down = True
        if name not in self._cib.status.nodes and self._settings.is_startup_fencing:
            # Nothing was ever heard of it, and what ran on it may continue.
            node.is_never_seen = node.is_unclean = True

    def _take_locks(self) -> None:
        settings = self._settings
        limit_ms = settings.shutdown_lock_limit_ms
        for node in self._inventory.nodes:
            for name, locked_at in node.status.locks.items():
                # To ask again for the owner of a history could make one more instance of a clone.
                resource = self._locked.get((node.name, name)) or self._owners.find_probed(name, node)
                if resource is None or resource.definition.agent is None:
                    continue
                if limit_ms > 0 and settings.time.has_come(WallTime(locked_at + limit_ms + 1)):
                    self._inventory.expired_locks.append((resource, node))
                else:
                    resource.found.lock_node = node
                    resource.found.lock_time = locked_at

    def _stop_half_migrated(self, resource: Resource, node: Node, orders: Sequence[Order]) -> None:
        """What a lost node was migrating has to be stopped on the target (Pacemaker's rule for a pending migration)."""
        for order in orders:
            target = order.other_node
            if order.action is ActionName.MIGRATE_TO and node.is_unclean and target in self._inventory.nodes_by_name:
                resource.found.required_stops.add(target)

    def _take_doubts(
        self, resource: Resource, name: ResourceId, node: Node, replay: Replay, *, is_in_vain: bool
    ) -> None:
        """What is unverified is asked for again; on a lost node, where nobody can ask, every doubt counts as active.

        `is_in_vain`: it was asked for, and the agent could not look. It is stopped instead, which settles it.
        """
        if self._is_compatible:
            return
        if node.is_online:
            if name in node.status.unverified and not is_in_vain:
                resource.found.unverified_on.add(node.name)
            if name in self._migrating[node.name]:
                resource.found.migrating_at.add(node.name)
            return
        doubts = self._doubts.get(node.name)
        if doubts is None:
            doubts = self._doubts[node.name] = possibly_active(node.status)
        if replay.role.value < Role.STARTED.value and name in doubts:
            replay.role = Role.STARTED

    def _replay(
        self, resource: Resource, node: Node, history: ResourceHistory | None
    ) -> tuple[Replay, list[OperationRecord]]:
        assert resource.definition.agent is not None
        known = history or ResourceHistory(resource.recorded_as, resource.definition.agent)
        replay = Replay(
            resource,
            node,
            known,
            inventory=self._inventory,
            failures=self._failures,
            settings=self._settings,
            limits=self._limits,
        )
        records = records_in_order(known)
        if history is not None:
            resource.found.histories[node.name] = history
            replay.run(records)
        return replay, records


def _is_plain_absence(resource: Resource, history: ResourceHistory) -> bool:
    """Tell whether nothing is known but that a probe found it not running: of most resources on most nodes."""
    if len(history.records) != 1 or history.last_failure is not None:
        return False
    (record,) = history.records.values()
    return (
        record.exit_code is ExitCode.NOT_RUNNING
        and record.target_exit_code is ExitCode.NOT_RUNNING
        and record.status is ExecutionStatus.DONE
        and record.operation == MONITOR
        and not record.interval_ms
        and not resource.found.failure_timeout_ms
        and resource.found.partial_source is None
    )


def _take_orders(resource: Resource, node: Node, orders: Sequence[Order], replay: Replay) -> None:
    """An open order that activates makes the resource active here until it ends (safety.md §1)."""
    for order in orders:
        if order.is_activating:
            if replay.role.value < Role.STARTED.value:
                replay.role = Role.STARTED
            replay.on_fail = OnFail.IGNORE
            if order.action == ActionName.START:
                resource.found.is_start_pending = True
        if node.is_online:
            resource.found.orders_in_flight.append((node.name, str(order.action), order.interval_ms))
            if order.action == ActionName.STOP:
                resource.found.pending_stops.add(node.name)


def _restrict_to_target_role(resource: Resource) -> None:
    """The configured role is the most that it may come up to; a failure may have brought that down further."""
    target = resource.definition.target_role
    if target not in (Role.STOPPED, Role.UNPROMOTED):
        return
    if resource.found.next_role is Role.UNKNOWN or target.value < resource.found.next_role.value:
        resource.found.next_role = target


_BEGINNINGS = frozenset({START, MIGRATE_FROM})
_CHANGES_OF_ROLE = frozenset({ActionName.PROMOTE.value, ActionName.DEMOTE.value})
_FOUND_ACTIVE = frozenset({ExitCode.OK, ExitCode.PROMOTED})


def active_window(records: Sequence[OperationRecord]) -> tuple[int, int]:
    """Return the indexes of what began the time for which a resource is active, and of its last stop; -1 for none.

    It is not active any more when the first is smaller than the second.
    """
    begin = stop = asked = changed = -1
    for index, record in enumerate(records):
        if record.operation == STOP and record.status is ExecutionStatus.DONE:
            stop = index
        elif record.operation in _BEGINNINGS:
            begin = index
        elif record.operation in _CHANGES_OF_ROLE:
            changed = index
        elif record.operation == MONITOR and record.exit_code in _FOUND_ACTIVE and asked <= stop:
            asked = index
    if begin < 0:
        begin = changed if changed >= 0 else asked
    return begin, stop


def _register_recurring(resource: Resource, node: Node, records: list[OperationRecord]) -> None:
    """Note which recurring actions run: those recorded since the newest start, or since the newest stop."""
    if not any(record.interval_ms for record in records):
        return
    begin, stop = active_window(records)
    for record in records[stop + 1 :] if begin < stop else records[max(begin, 0) :]:
        if record.interval_ms and record.status is not ExecutionStatus.PENDING:
            resource.found.registered.add((node.name, record.interval_ms))
