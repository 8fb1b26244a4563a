"""Phase: what the status alone demands: stops after failures, restarts, reloads, and what is to be forgotten.

These actions exist before any resource's own are made, which find them and add to them. Graphs of a running cluster
hold no bookkeeping of failures: the controller forgets what `Plan.expired_failures` names.
"""

from collections.abc import Iterable

from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.recurring import cancel_monitors
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.relation_flags import ORDERED, THEN_CANCELS_FIRST
from haclusterd.scheduler.model.tasks import (
    CANCEL,
    CLEAR_FAILCOUNT,
    DELETE,
    DEMOTE,
    LRM_DELETE,
    MONITOR,
    RELOAD_AGENT,
    START,
    STOP,
)
from haclusterd.scheduler.unpack.configuration_changes import ConfigurationChanges
from haclusterd.scheduler.unpack.failures import Clearing

DEFINITION_CHANGE = "resource definition change"


def create_demanded_actions(inventory: Inventory, changes: ConfigurationChanges, table: ActionTable) -> None:
    """Create what failures and a changed configuration demand."""
    for resource in inventory.primitives():
        for name in sorted(resource.found.required_demotes):
            table.make(resource, DEMOTE, inventory.nodes_by_name[name], required=True)
        for name in sorted(resource.found.required_stops):
            table.make(resource, STOP, inventory.nodes_by_name[name], required=True)
        for name in sorted(resource.found.optional_stops):
            table.make(resource, STOP, inventory.nodes_by_name[name], required=resource.assignment.node is None)
        if resource.found.definition_changed:
            table.make(resource, START, None, required=True).reason = DEFINITION_CHANGE
        for node in resource.found.reload_on:
            _reload(resource, node, table)
    cancel_monitors(changes.cancellations, table)
    for resource, node in changes.deletions:
        _delete(resource, node, table)


def create_running_monitors(inventory: Inventory, table: ActionTable) -> None:
    """Create the monitors that run on remote and guest nodes: they end with the connection, and start again with it."""
    remotes = {node.name: node for node in inventory.nodes if node.is_remote}
    if not remotes:
        return
    for resource in inventory.primitives():
        for name, interval_ms in sorted(resource.found.registered):
            if name in remotes and table.find(resource, CANCEL, remotes[name], interval_ms) is None:
                monitor = table.make(resource, MONITOR, remotes[name], required=False, interval_ms=interval_ms)
                monitor.is_runnable = monitor.is_runnable and resource.assignment.node is not None


def create_clearings(clearings: Iterable[Clearing], table: ActionTable) -> None:
    """Create the actions that forget failures."""
    for item in clearings:
        action = table.make_cluster(item.resource, CLEAR_FAILCOUNT, item.node)
        action.reason = action.reason or item.reason
        action.is_runnable = item.is_possible


def create_lock_deletions(deletions: Iterable[tuple[Resource, Node]], table: ActionTable) -> None:
    """Create the actions that forget where resources were locked to nodes that were shut down."""
    for resource, node in deletions:
        table.make_cluster(resource, LRM_DELETE, node)


def _reload(resource: Resource, node: Node, table: ActionTable) -> None:
    resource.is_reloading = True
    table.make(resource, RELOAD_AGENT, node, required=True).reason = DEFINITION_CHANGE


def _delete(resource: Resource, node: Node, table: ActionTable) -> None:
    if not resource.found.is_failed and node.is_online and not node.is_unclean:
        table.make(resource, DELETE, node, required=True).is_optional = False


def relate_demanded_actions(inventory: Inventory, clearings: Iterable[Clearing], table: ActionTable) -> None:
    """Put these actions in order with the resource's own, and with the fencing they wait for."""
    for item in clearings:
        if item.is_after_fencing:
            _clear_after_fencing(item.resource, table)
    for resource in inventory.primitives():
        actions = resource.actions
        if (RELOAD_AGENT, 0) in actions:
            _order_reload(resource, table)
        for delete in actions.get((DELETE, 0), ()):
            _relate_all(actions.get((STOP, 0), ()), [delete], ORDERED, table)
            _relate_all([delete], actions.get((START, 0), ()), ORDERED, table)
        if resource.found.is_removed:
            _relate_all(actions.get((CLEAR_FAILCOUNT, 0), ()), actions.get((STOP, 0), ()), ORDERED, table)


def _clear_after_fencing(connection: Resource, table: ActionTable) -> None:
    target = connection.remote_node
    fences = [fence for (name, _), fence in table.fences.items() if target is not None and name == target.name]
    _relate_all(fences, connection.actions.get((CLEAR_FAILCOUNT, 0), ()), ORDERED, table)


def _order_reload(resource: Resource, table: ActionTable) -> None:
    actions = resource.actions
    reloads = actions[RELOAD_AGENT, 0]
    _relate_all(actions.get((MONITOR, 0), ()), reloads, ORDERED, table)
    for task in (STOP, DEMOTE):
        _relate_all(reloads, actions.get((task, 0), ()), ORDERED | THEN_CANCELS_FIRST, table)


def _relate_all(firsts: Iterable[Action], thens: Iterable[Action], flags: int, table: ActionTable) -> None:
    for first in firsts:
        for then in thens:
            table.relate(first, then, flags)
