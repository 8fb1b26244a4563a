"""Phase: the monitors that are to run where a resource is active, and those that are to end.

Source: Pacemaker Explained, "Monitoring Resources for Failure". A monitor is ordered again when its record is missing,
when its parameters have changed, or when its resource starts anew.
"""

from collections.abc import Iterable

from haclusterd.model.configuration import Operation
from haclusterd.model.ocf import ExitCode, Role
from haclusterd.scheduler.actions import ActionTable
from haclusterd.scheduler.configuration_changes import Cancellation
from haclusterd.scheduler.entities import (
    CANCEL,
    FIRST_IMPLIES_THEN,
    MONITOR,
    ORDERED,
    START,
    STOP,
    UNRUNNABLE_FIRST_BLOCKS,
    Action,
    Resource,
)
from haclusterd.scheduler.nodes import Node
from haclusterd.scheduler.operation_settings import recurring_operations
from haclusterd.scheduler.settings import Settings


def cancel_monitors(cancellations: Iterable[Cancellation], table: ActionTable) -> None:
    """Create the cancellations that a changed configuration, or maintenance, demands."""
    for item in cancellations:
        cancel = _cancel(item.resource, item.node, item.interval_ms, table)
        cancel.why = item.why
        for stop in item.resource.actions.get((STOP, 0), ()):
            if stop.node is item.node:
                table.relate(stop, cancel, ORDERED)


def _cancel(resource: Resource, node: Node, interval_ms: int, table: ActionTable) -> Action:
    cancel = table.make(resource, CANCEL, node, required=True, interval_ms=interval_ms)
    cancel.is_cancel = True
    return cancel


def create_monitors(resource: Resource, nodes: tuple[Node, ...], table: ActionTable, settings: Settings) -> None:
    """Create the recurring actions of one primitive."""
    if resource.is_blocked or resource.is_maintenance or not resource.operations:
        return
    operations = [item for item in recurring_operations(resource, settings) if item.name == MONITOR]
    node = resource.assigned
    if node is not None and not node.is_maintenance:
        is_up = resource.next_role is not Role.STOPPED or not resource.is_managed
        start = table.make(resource, START, node, required=False) if is_up and operations else None
        for operation in operations:
            if start is not None and operation.role != Role.STOPPED.name.capitalize():
                _monitor_active(resource, operation, node, start, table)
    for operation in operations:
        if operation.role == Role.STOPPED.name.capitalize():
            _monitor_inactive(resource, operation, nodes, table)


def _monitor_active(resource: Resource, operation: Operation, node: Node, start: Action, table: ActionTable) -> None:
    key = (node.name, operation.interval_ms)
    is_running = start.is_optional and key in resource.registered
    wanted = (operation.role or "").lower()
    next_role = resource.next_role
    is_match = next_role is not Role.PROMOTED if not wanted else wanted == str(next_role).lower()
    if wanted in ("master", "slave"):
        is_match = wanted == {Role.PROMOTED: "master", Role.UNPROMOTED: "slave"}.get(next_role)
    if not is_match:
        if is_running and key not in resource.changed_recurring:
            _cancel(resource, node, operation.interval_ms, table).why = "another role"
        return
    is_kept = is_running and key not in resource.changed_recurring
    monitor = table.make(resource, MONITOR, node, required=not is_kept, interval_ms=operation.interval_ms)
    monitor.expected = ExitCode.PROMOTED if next_role is Role.PROMOTED else ExitCode.OK
    if not start.is_runnable or node.is_unclean:
        monitor.is_runnable = False
    if not monitor.is_optional:
        is_changed = start.is_optional and key in resource.changed_recurring
        monitor.why = "its parameters have changed" if is_changed else "it watches what runs"
    if resource.is_managed:
        table.relate(start, monitor, FIRST_IMPLIES_THEN | UNRUNNABLE_FIRST_BLOCKS)


def _monitor_inactive(resource: Resource, operation: Operation, nodes: tuple[Node, ...], table: ActionTable) -> None:
    """A monitor with role Stopped runs on every node where the resource is not, and expects to find nothing."""
    for node in nodes:
        key = (node.name, operation.interval_ms)
        is_running = key in resource.registered
        if node is resource.assigned and resource.next_role is not Role.STOPPED:
            if is_running:
                cancel = _cancel(resource, node, operation.interval_ms, table)
                cancel.why = "it is to run here"
                for start in resource.actions.get((START, 0), ()):
                    table.relate(cancel, start, UNRUNNABLE_FIRST_BLOCKS)
            continue
        if not node.is_online or node.is_unclean:
            continue
        is_kept = is_running and key not in resource.changed_recurring
        monitor = table.make(resource, MONITOR, node, required=not is_kept, interval_ms=operation.interval_ms)
        monitor.expected = ExitCode.NOT_RUNNING
        monitor.why = "it must not run here"
        for before in (*resource.actions.get((MONITOR, 0), ()), *resource.actions.get((STOP, 0), ())):
            if before.node is node:
                flags = UNRUNNABLE_FIRST_BLOCKS | (FIRST_IMPLIES_THEN if before.task == STOP else 0)
                table.relate(before, monitor, flags)
