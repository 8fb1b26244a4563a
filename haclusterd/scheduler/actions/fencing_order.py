"""Phase: what waits for the fencing of a node, and what that fencing does by itself.

Source: Pacemaker Explained, "Fencing"; safety.md §5. A stop on a node that is fenced is done by the fencing: it becomes
a pseudo-action that comes after it, and so does whatever depends on that stop.
"""

from __future__ import annotations

from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.notifications import notify_after_fencing
from haclusterd.scheduler.model.entities import (
    DEMOTE,
    MIGRATE_FROM,
    MIGRATE_TO,
    PROMOTE,
    START,
    STOP,
    Action,
    Inventory,
    Needs,
    Node,
    Resource,
    Variant,
)
from haclusterd.scheduler.model.relation_flags import AFTER_FENCING, GUEST_ALLOWED, ORDERED, UNRUNNABLE_FIRST_BLOCKS
from haclusterd.scheduler.model.settings import Settings

_WAITING = (START, PROMOTE, MIGRATE_TO, MIGRATE_FROM)


def order_fencing(fence: Action, node: Node, inventory: Inventory, table: ActionTable, settings: Settings) -> None:
    """Put behind a fencing what must not be done before it, and make the stops that it stands for pseudo-actions."""
    for leaf in inventory.primitives():
        if leaf.is_managed:
            _order_starts(fence, leaf, node, table)
            _order_stops(fence, leaf, node, table, settings)


def _order_starts(fence: Action, leaf: Resource, node: Node, table: ActionTable) -> None:
    for task in _WAITING:
        for action in leaf.actions.get((task, 0), ()):
            if action.needs is Needs.FENCING:
                table.relate(fence, action, ORDERED)
            elif action.needs is Needs.QUORUM and task == START and _may_be_there(leaf, node):
                table.relate(fence, action, ORDERED | UNRUNNABLE_FIRST_BLOCKS)


def _may_be_there(leaf: Resource, node: Node) -> bool:
    parent = leaf.parent
    if parent is not None and parent.is_anonymous_clone and node.name in parent.found.known_on:
        return False
    return node.name in leaf.assignment.allowed and node.name not in leaf.found.known_on


def _order_stops(fence: Action, leaf: Resource, node: Node, table: ActionTable, settings: Settings) -> None:
    is_after = leaf.definition.needs is Needs.FENCING or node.is_guest or not settings.options.is_pacemaker_compatible
    is_in_bundle = leaf.outermost.variant is Variant.BUNDLE
    for stop in leaf.actions.get((STOP, 0), ()):
        if stop.node is not node:
            continue
        stop.is_pseudo = stop.is_runnable = True
        if is_after:
            if not is_in_bundle:
                table.relate(fence, stop, AFTER_FENCING | GUEST_ALLOWED | _blocking(settings))
            _before_outer_stop(fence, leaf, table)
        if leaf.definition.notifies:
            notify_after_fencing(fence, stop, leaf, table)
    for demote in leaf.actions.get((DEMOTE, 0), ()):
        if demote.node is not node or (node.is_online and not node.is_unclean and not leaf.found.is_failed):
            continue
        demote.is_pseudo = demote.is_runnable = True
        if is_after and not is_in_bundle:
            table.relate(fence, demote, AFTER_FENCING | GUEST_ALLOWED | ORDERED)


def _blocking(settings: Settings) -> int:
    """Pacemaker starts on another node what ran on a guest node whose launcher could not be stopped: two copies."""
    return 0 if settings.options.is_pacemaker_compatible else UNRUNNABLE_FIRST_BLOCKS


def _before_outer_stop(fence: Action, leaf: Resource, table: ActionTable) -> None:
    outer = leaf.top.actions.get((STOP, 0))
    if outer:
        table.relate(fence, outer[-1], AFTER_FENCING | GUEST_ALLOWED)
