"""Phase: fence what must be fenced, and put everything it may have run behind that.

Source: Pacemaker Explained, "Fencing"; safety.md §5. A stop on a node that is fenced is done by the fencing itself: it
becomes a pseudo-action that comes after it, and so does whatever depends on that stop. A lost node that no device can
fence stays as it is, and what may run there stays blocked there.
"""

from haclusterd.model.cluster import NodeState
from haclusterd.scheduler.actions import ActionTable
from haclusterd.scheduler.entities import (
    AFTER_FENCING,
    DEMOTE,
    ORDERED,
    PROMOTE,
    START,
    STOP,
    UNRUNNABLE_FIRST_BLOCKS,
    Action,
    Inventory,
    Needs,
    Resource,
)
from haclusterd.scheduler.nodes import Node
from haclusterd.scheduler.settings import Settings


def create_fencing(inventory: Inventory, table: ActionTable, settings: Settings) -> list[Action]:
    """Create a fence action for each unclean node that can be fenced, the DC's last, with the orders around it."""
    leaves = inventory.primitives()
    if not any(resource.is_managed for resource in leaves):
        return []
    unclean = [node for node in inventory.nodes if node.is_unclean and node.can_be_fenced]
    fences = [table.make_fence(node, settings.fencing_action) for node in unclean]
    for fence in fences:
        assert fence.node is not None
        for other in fences:
            if fence.node.is_controller and other is not fence:
                table.relate(other, fence, ORDERED)
        for resource in leaves:
            if resource.is_managed:
                _order_starts(fence, resource, fence.node, table)
                _order_stops(fence, resource, fence.node, table)
    return fences


def _order_starts(fence: Action, resource: Resource, node: Node, table: ActionTable) -> None:
    for start in (*resource.actions.get((START, 0), ()), *resource.actions.get((PROMOTE, 0), ())):
        if start.needs is Needs.FENCING:
            table.relate(fence, start, ORDERED)
        elif start.needs is Needs.QUORUM and start.task == START and _may_be_there(resource, node):
            table.relate(fence, start, ORDERED | UNRUNNABLE_FIRST_BLOCKS)


def _may_be_there(resource: Resource, node: Node) -> bool:
    return node.name in resource.allowed and node.name not in resource.known_on


def _order_stops(fence: Action, resource: Resource, node: Node, table: ActionTable) -> None:
    if node not in resource.active_nodes:
        return
    for task in (DEMOTE, STOP):
        for action in resource.actions.get((task, 0), ()):
            if action.node is not node:
                continue
            action.is_pseudo = True
            action.is_runnable = True
            table.relate(fence, action, AFTER_FENCING)
    if resource.parent is not None:
        for stop in resource.top.actions.get((STOP, 0), ()):
            table.relate(fence, stop, AFTER_FENCING)


def fencing_warnings(inventory: Inventory, settings: Settings) -> list[str]:
    """Say what cannot be recovered, and what is recovered without certainty."""
    found: list[str] = []
    for node in inventory.nodes:
        held = sorted(resource.id for resource in inventory.primitives() if node in resource.active_nodes)
        if node.is_unclean and not node.can_be_fenced:
            cause = "no fencing device can fence it" if not node.devices else "without quorum nothing is fenced"
            what = f"; not recovered: {', '.join(held)}" if held else ""
            found.append(f"{node.name} is lost ({node.fence_reason}) and {cause}{what}")
        elif node.status.state is NodeState.LOST and not settings.is_fencing_enabled:
            found.append(
                f"FENCING IS DISABLED: {node.name} is lost, and what it ran is started elsewhere although it may still"
                " run there; data may be destroyed"
            )
    found += [
        f"{resource.id} is left alone until a person cleans up: {resource.failed_because}"
        for resource in inventory.primitives()
        if resource.is_blocked and resource.failed_because
    ]
    return found


def unseen_hold(inventory: Inventory) -> str:
    """Say why what has never run yet must not start: a member that was not seen may run it (safety.md §6)."""
    if not inventory.nodes:
        return ""
    unseen = [node.name for node in inventory.nodes if node.is_never_seen]
    return f"{', '.join(unseen)} not seen yet" if unseen else ""
