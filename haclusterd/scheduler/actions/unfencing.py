"""Phase: unfencing: a node whose fence devices say so is let in by them (`on`) before anything starts there.

Source: Pacemaker Explained, "Unfencing". What needs it, and each fence device, starts after it, also when it runs
already; what needs it stops before it as well. A node is let in that does not carry the mark of an unfencing, or that
carries a list of devices in which one that lets nodes in is missing or has other parameters. While something that needs
unfencing is blocked there (a stop failed, and a person has to look), or cannot stop for what is blocked, the node is
not let in: what may still run would write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from haclusterd.model.ids import NodeName
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.ordering import OrderingTemplate
from haclusterd.scheduler.model.digests import pacemaker_digest
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.operation_settings import resource_parameters
from haclusterd.scheduler.model.relation_flags import (
    FIRST_IMPLIES_SAME_NODE_THEN,
    FIRST_IMPLIES_THEN,
    IF_ON_SAME_NODE,
    ORDERED,
    THEN_IMPLIES_FIRST,
)
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import MONITOR, START, STOP
from haclusterd.scheduler.unpack.unfencing_in_vain import Obstacle, is_let_in

UNFENCE = "on"
_LET_IN_BY = "#digests-all"
"""What Pacemaker writes with the mark: each device that let the node in, as `device:agent:digest,`."""
_LET_IN_BY_PUBLIC = "#digests-secure"
"""The same with digests of all parameters but passwords: a CIB that was saved has asterisks in their place."""
_PASSWORDS = frozenset({"passwd", "password"})


def create_unfencing(
    inventory: Inventory,
    demanded: Iterable[tuple[Node, str]],
    in_vain: Mapping[NodeName, Obstacle],
    table: ActionTable,
    settings: Settings,
) -> None:
    """Create the unfencing that starts, probes and changed devices demand, and put it before those.

    What was tried in vain is tried again, though nothing starts there meanwhile.
    """
    if not settings.is_unfencing_used:
        return
    _try_again(inventory, in_vain, table, settings)
    for node, why in demanded:
        if node.is_online and not node.is_unclean and _may_try(node, in_vain):
            _require(_unfencing_of(node, table), node, why, settings)
    for leaf in inventory.primitives():
        if not leaf.definition.is_fence_device and not leaf.definition.needs_unfencing:
            continue
        for action in (*leaf.actions.get((MONITOR, 0), ()), *leaf.actions.get((START, 0), ())):
            if action.node is not None:
                _unfence_before(action, leaf, action.node, table, settings, is_tried=_may_try(action.node, in_vain))
        for name in leaf.assignment.allowed if leaf.definition.needs_unfencing and leaf.is_managed else ():
            _unfencing_of(inventory.nodes_by_name[name], table)
    _unfence_after_changes(inventory, table, settings)


def _try_again(
    inventory: Inventory, in_vain: Mapping[NodeName, Obstacle], table: ActionTable, settings: Settings
) -> None:
    for name, obstacle in in_vain.items():
        node = inventory.nodes_by_name[name]
        table.warnings.append(f"{name} is not unfenced: {obstacle.text}")
        if obstacle.is_passing:
            _require(_unfencing_of(node, table), node, obstacle.text, settings)


def _unfence_after_changes(inventory: Inventory, table: ActionTable, settings: Settings) -> None:
    """Let in again what other devices have let in, or these ones with other parameters; also a node that leaves."""
    devices = [leaf for leaf in inventory.primitives() if leaf.definition.meta.get("provides") == "unfencing"]
    for node in inventory.nodes:
        unfence = table.fences.get((node.name, UNFENCE))
        changed = _changed_device(node, devices, settings) if unfence is not None else None
        if unfence is not None and changed is not None and _may_unfence(node, settings):
            unfence.is_optional = False
            table.warnings.append(f"{node.name} is unfenced: {changed.id} was added or changed since it last was")


def _may_try(node: Node, in_vain: Mapping[NodeName, Obstacle]) -> bool:
    obstacle = in_vain.get(node.name)
    return obstacle is None or obstacle.is_passing


def _unfence_before(
    action: Action, leaf: Resource, node: Node, table: ActionTable, settings: Settings, *, is_tried: bool
) -> None:
    unfence = _unfencing_of(node, table)
    if is_tried and not is_let_in(node):
        _require(unfence, node, f"required by {leaf.id} {action.task}", settings)
    if action.is_probe and node.name in leaf.found.unverified_on:
        return  # It asks about what stops before the unfencing: each would wait for the other.
    table.relate(unfence, action, ORDERED if action.is_probe else ORDERED | FIRST_IMPLIES_THEN)


def _require(unfence: Action, node: Node, why: str, settings: Settings) -> None:
    """Demand an unfencing, unless the node leaves or is not online: a guest node whose launcher cannot run leaves."""
    if node.is_online and not node.is_shutting_down and _may_unfence(node, settings):
        unfence.is_optional = False
        unfence.reason = unfence.why = unfence.reason or why


def _may_unfence(node: Node, settings: Settings) -> bool:
    """Tell whether a node may be let in: not while it is to be fenced, or it could write to the disks once more.

    Pacemaker lets in what it could fence; here also what no device can fence waits for those that let it in.
    """
    if node.is_unclean:
        return False
    return node.can_be_fenced if settings.options.is_pacemaker_compatible else settings.is_fencing_enabled


def _changed_device(node: Node, devices: Iterable[Resource], settings: Settings) -> Resource | None:
    """Return a device that lets nodes in and is missing in the node's list, or is listed with other parameters."""
    listed = node.attributes.get(_LET_IN_BY)
    if listed is None:
        return None
    public = node.attributes.get(_LET_IN_BY_PUBLIC, "")
    for device in devices:
        name = f"{device.id}:{device.definition.agent.type if device.definition.agent else ''}"
        parameters = resource_parameters(device, node, settings)
        shown = {key: value for key, value in parameters.items() if key not in _PASSWORDS}
        if (
            f"{name}:{pacemaker_digest(parameters)}," not in listed
            and f"{name}:{pacemaker_digest(shown)}," not in public
        ):
            return device
    return None


def _unfencing_of(node: Node, table: ActionTable) -> Action:
    return table.make_fence(node, UNFENCE, required=False)


def unfencing_templates(inventory: Inventory, table: ActionTable, settings: Settings) -> Iterator[OrderingTemplate]:
    """Yield the restarts that unfencing means: what needs it stops before and starts after."""
    if not settings.is_unfencing_used:
        return
    for leaf in inventory.primitives():
        if not leaf.definition.needs_unfencing or not (leaf.is_managed or leaf.is_blocked):
            continue
        for name in sorted({*leaf.assignment.allowed, *(node.name for node in leaf.found.active_nodes)}):
            unfence = _unfencing_of(inventory.nodes_by_name[name], table)
            yield OrderingTemplate(
                leaf, STOP, None, "", ORDERED | THEN_IMPLIES_FIRST | IF_ON_SAME_NODE, then_action=unfence
            )
            flags = FIRST_IMPLIES_SAME_NODE_THEN | IF_ON_SAME_NODE
            yield OrderingTemplate(None, "", leaf, START, flags, first_action=unfence)
