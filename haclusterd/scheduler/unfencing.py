"""Phase: unfencing: a node whose fence devices say so is let in by them (`on`) before anything starts there.

Source: Pacemaker Explained, "Unfencing". What needs it stops before it and starts after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from haclusterd.scheduler.actions import ActionTable
from haclusterd.scheduler.entities import MONITOR, START, STOP, Action, Inventory, Node, NodeKind, Resource
from haclusterd.scheduler.ordering import Template
from haclusterd.scheduler.relation_flags import FIRST_IMPLIES_SAME_NODE_THEN, IF_ON_SAME_NODE, ORDERED
from haclusterd.scheduler.settings import Settings

UNFENCE = "on"
_MARK = "#node-unfenced"


def create_unfencing(
    inventory: Inventory, demanded: Iterable[tuple[Node, str]], table: ActionTable, settings: Settings
) -> None:
    """Create the unfencing that starts, probes and changed devices demand, and put it before those."""
    if not settings.is_unfencing_used:
        return
    for node, why in demanded:
        if node.is_online and not node.is_unclean:
            _require(_unfencing_of(node, table), why)
    for leaf in inventory.primitives():
        if not leaf.is_fence_device and not leaf.needs_unfencing:
            continue
        for task in (MONITOR, START):
            for action in leaf.actions.get((task, 0), ()):
                if action.node is not None and action.node.kind is not NodeKind.GUEST:
                    _unfence_before(action, leaf, action.node, table)


def _unfence_before(action: Action, leaf: Resource, node: Node, table: ActionTable) -> None:
    unfence = _unfencing_of(node, table)
    if node.attributes.get(_MARK, "0") in ("", "0"):
        _require(unfence, f"required by {leaf.id} {action.task}")
    table.relate(unfence, action, ORDERED)


def _require(unfence: Action, why: str) -> None:
    unfence.is_optional = False
    unfence.reason = unfence.why = unfence.reason or why


def _unfencing_of(node: Node, table: ActionTable) -> Action:
    return table.make_fence(node, UNFENCE, required=False)


def unfencing_templates(inventory: Inventory, table: ActionTable, settings: Settings) -> Iterator[Template]:
    """Yield the restarts that unfencing means: what needs it stops before and starts after."""
    if not settings.is_unfencing_used:
        return
    for leaf in inventory.primitives():
        if not leaf.needs_unfencing or not leaf.is_managed:
            continue
        for name in sorted(leaf.allowed):
            unfence = _unfencing_of(inventory.nodes_by_name[name], table)
            yield Template(leaf, STOP, None, "", ORDERED | IF_ON_SAME_NODE, then_action=unfence)
            flags = FIRST_IMPLIES_SAME_NODE_THEN | IF_ON_SAME_NODE
            yield Template(None, "", leaf, START, flags, first_action=unfence)
