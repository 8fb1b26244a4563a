"""Phase: the monitors that are to run where a resource is active, and those that are to end.

Source: Pacemaker Explained, "Monitoring Resources for Failure". A monitor is ordered again when its record is missing,
when its parameters have changed, or when its resource starts again. A monitor with the role Stopped runs where the
resource is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from haclusterd.model.configuration import Operation
from haclusterd.model.ocf import ExitCode, Role
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.operation_settings import recurring_operations
from haclusterd.scheduler.model.relation_flags import FIRST_IMPLIES_THEN, ORDERED, UNRUNNABLE_FIRST_BLOCKS
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import CANCEL, DEMOTE, MONITOR, PROMOTE, RELOAD_AGENT, START, STOP
from haclusterd.scheduler.unpack.configuration_changes import Cancellation

_ROLES: Mapping[str, Role] = {
    "stopped": Role.STOPPED,
    "started": Role.STARTED,
    "unpromoted": Role.UNPROMOTED,
    "slave": Role.UNPROMOTED,
    "promoted": Role.PROMOTED,
    "master": Role.PROMOTED,
}


def cancel_monitors(cancellations: Iterable[Cancellation], table: ActionTable) -> None:
    """Create the cancellations that a changed configuration, or maintenance, demands."""
    for item in cancellations:
        _cancel(item.resource, item.node, item.interval_ms, table, item.why)


def order_cancellations(cancellations: Iterable[Cancellation], table: ActionTable) -> None:
    """Order those cancellations after the stops of their resources, also after those on other nodes."""
    for item in cancellations:
        cancel = table.find(item.resource, CANCEL, item.node, item.interval_ms)
        for stop in item.resource.actions.get((STOP, 0), ()):
            if cancel is not None:
                table.relate(stop, cancel, ORDERED)


def _cancel(resource: Resource, node: Node, interval_ms: int, table: ActionTable, why: str) -> Action:
    cancel = table.make(resource, CANCEL, node, required=True, interval_ms=interval_ms)
    cancel.is_cancel = True
    cancel.why = why
    return cancel


def create_monitors(resource: Resource, nodes: tuple[Node, ...], table: ActionTable, settings: Settings) -> None:
    """Create the recurring actions of one primitive, and the start that they follow.

    That start is made without monitors as well: what has to stop after a failed promotion, and is to be active there
    unpromoted, is started again by it.
    """
    if resource.is_blocked or resource.found.is_maintenance:
        return
    node = resource.assignment.node
    start: Action | None = None
    is_up = resource.assignment.next_role is not Role.STOPPED or not resource.is_managed
    if node is not None and not node.is_maintenance and is_up:
        start = table.make(resource, START, node, required=False)
    if not resource.definition.operations:
        return
    for operation in recurring_operations(resource, settings):
        if operation.name != MONITOR:
            continue
        role = _ROLES.get((operation.role or "").strip().lower())
        if operation.role and role is None:
            continue
        if role is Role.STOPPED:
            if not _is_interchangeable(resource):
                _monitor_inactive(resource, operation, nodes, table)
        elif start is not None:
            _monitor_active(resource, operation, role, start, table)


def _is_interchangeable(resource: Resource) -> bool:
    """Whether it is, or is inside, an instance of a clone whose instances are all alike."""
    parent = resource.parent
    while parent is not None:
        if parent.is_anonymous_clone:
            return True
        parent = parent.parent
    return False


def _monitor_active(
    resource: Resource, operation: Operation, role: Role | None, start: Action, table: ActionTable
) -> None:
    node = start.node
    assert node is not None
    key = (node.name, operation.interval_ms)
    is_kept = start.is_optional and key in resource.found.registered and key not in resource.found.changed_recurring
    next_role = resource.assignment.next_role
    is_match = next_role is not Role.PROMOTED if role is None else role is next_role
    if not is_match:
        has_expired = key in resource.found.registered and resource.found.changed_recurring.get(key, False)
        if is_kept or (start.is_optional and has_expired):
            _cancel_for_role(resource, node, operation.interval_ms, table)
        return
    monitor = table.make(resource, MONITOR, node, required=not is_kept, interval_ms=operation.interval_ms)
    monitor.expected = ExitCode.PROMOTED if next_role is Role.PROMOTED else ExitCode.OK
    if not start.is_runnable or not node.is_online or node.is_unclean:
        monitor.is_runnable = False
    if not monitor.is_optional:
        is_changed = start.is_optional and key in resource.found.changed_recurring
        monitor.why = "its parameters have changed" if is_changed else "it watches what runs"
    if resource.is_managed:
        _order_monitor(resource, monitor, table)


def _order_monitor(resource: Resource, monitor: Action, table: ActionTable) -> None:
    for task in (START, RELOAD_AGENT):
        for before in resource.actions.get((task, 0), ()):
            table.relate(before, monitor, FIRST_IMPLIES_THEN | UNRUNNABLE_FIRST_BLOCKS)
    task = ""
    if resource.assignment.next_role is Role.PROMOTED:
        task = PROMOTE
    elif resource.found.original_role is Role.PROMOTED:
        task = DEMOTE
    for before in resource.actions.get((task, 0), ()):
        table.relate(before, monitor, ORDERED | UNRUNNABLE_FIRST_BLOCKS)


def _cancel_for_role(resource: Resource, node: Node, interval_ms: int, table: ActionTable) -> None:
    """End a monitor of another role, before the role changes."""
    cancel = _cancel(resource, node, interval_ms, table, "another role")
    task = ""
    if resource.found.original_role is Role.PROMOTED:
        task = DEMOTE
    elif resource.found.original_role in (Role.STARTED, Role.UNPROMOTED):
        task = {Role.PROMOTED: PROMOTE, Role.STOPPED: STOP}.get(resource.assignment.next_role, "")
    for after in resource.actions.get((task, 0), ()):
        table.relate(cancel, after, UNRUNNABLE_FIRST_BLOCKS)


def _monitor_inactive(resource: Resource, operation: Operation, nodes: tuple[Node, ...], table: ActionTable) -> None:
    """A monitor with role Stopped runs on every node where the resource is not, and expects to find nothing."""
    for node in nodes:
        key = (node.name, operation.interval_ms)
        is_running = key in resource.found.registered
        if node is resource.assignment.node and resource.assignment.next_role is not Role.STOPPED:
            if is_running:
                cancel = _cancel(resource, node, operation.interval_ms, table, "it is to run here")
                for start in resource.actions.get((START, 0), ()):
                    table.relate(cancel, start, UNRUNNABLE_FIRST_BLOCKS)
            continue
        is_kept = is_running and key not in resource.found.changed_recurring
        monitor = table.make(resource, MONITOR, node, required=not is_kept, interval_ms=operation.interval_ms)
        monitor.expected = ExitCode.NOT_RUNNING
        monitor.why = "it must not run here"
        for probe in resource.actions.get((MONITOR, 0), ()):
            if probe.node is node and resource.is_managed:
                table.relate(probe, monitor, UNRUNNABLE_FIRST_BLOCKS)
        _after_stops(resource, monitor, node, table)
        if not node.is_online or node.is_unclean:
            monitor.is_runnable = False


def _after_stops(resource: Resource, monitor: Action, node: Node, table: ActionTable) -> None:
    for stop in resource.actions.get((STOP, 0), ()):
        if stop.node is not node:
            continue
        if not stop.is_runnable and not stop.is_pseudo:
            monitor.is_runnable = False
        if resource.is_managed:
            table.relate(stop, monitor, FIRST_IMPLIES_THEN | UNRUNNABLE_FIRST_BLOCKS)
        elif stop.is_required:
            monitor.is_optional = True
