"""What was decided for each primitive, and why, for the person who asks."""

from collections.abc import Mapping

from haclusterd.model.graph import BundlePart, NodeScore, Placement, Promotion, ScoreAddend
from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.assign.rivals import to_be_promoted, to_win
from haclusterd.scheduler.graph.reasons import why_nowhere
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.tasks import STOP


def place_all(inventory: Inventory) -> Mapping[ResourceId, Placement]:
    """Return what was decided for each primitive; scores only where they were kept."""
    parts = bundle_parts(inventory)
    return {resource.id: _placement(inventory, resource, parts) for resource in inventory.primitives()}


def bundle_parts(inventory: Inventory) -> dict[ResourceId, tuple[str, BundlePart]]:
    """Return for each part of a bundle the name of its replica, and what it is there."""
    parts: dict[ResourceId, tuple[str, BundlePart]] = {}
    for bundle in inventory.tops:
        for replica in bundle.replicas:
            address = f" ({replica.address})" if replica.address else ""
            name = f"{bundle.id}-{replica.number}{address}"
            parts[replica.container.id] = name, BundlePart.CONTAINER
            if replica.child is None:
                parts[replica.container.id] = f"{replica.container.id}{address}", BundlePart.BARE_CONTAINER
            for part, inside in (
                (BundlePart.ADDRESS, replica.ip),
                (BundlePart.CONNECTION, replica.connection),
                (BundlePart.CHILD, replica.child),
            ):
                if inside is not None:
                    parts[inside.id] = name, part
    return parts


def _placement(
    inventory: Inventory, resource: Resource, parts: Mapping[ResourceId, tuple[str, BundlePart]]
) -> Placement:
    is_stopped = resource.assignment.next_role is Role.STOPPED
    replica, part = parts.get(resource.id, ("", None))
    is_guest_connection = resource.definition.is_remote_connection and resource.launcher is not None
    target = None if is_stopped or resource.assignment.node is None else resource.assignment.node.name
    return Placement(
        resource.id,
        tuple(node.name for node in resource.found.active_nodes),
        target,
        _scores(inventory, resource) if resource.assignment.addends is not None else (),
        _verdict(resource),
        is_failed=resource.found.is_failed,
        is_managed=resource.is_managed,
        is_blocked=resource.is_blocked and not resource.found.is_maintenance,
        base=resource.base_id if resource.number is not None else None,
        now_role=resource.found.original_role,
        next_role=resource.assignment.next_role,
        replica=replica,
        part=part,
        promotion=_promotion(resource),
        guest_of=resource.launcher.id if is_guest_connection and resource.launcher is not None else None,
    )


def _verdict(resource: Resource) -> str:
    node = resource.assignment.node
    if resource.is_blocked:
        return f"left alone: {resource.failed_because or 'blocked after a failure'}"
    if not resource.is_managed:
        return "left alone: maintenance" if resource.found.is_maintenance else "left alone: not managed"
    if node is None or resource.assignment.next_role is Role.STOPPED:
        return _held_stop(resource) or why_nowhere(resource, resource.current_node())
    stuck = [item.name for item in resource.found.active_nodes if item.is_unclean and not item.can_be_fenced]
    if stuck:
        return f"blocked: {', '.join(stuck)} may run it and cannot be fenced"
    if node in resource.found.active_nodes:
        return f"stays on {node.name}"
    if resource.found.active_nodes:
        return f"moves to {node.name}"
    wait = resource.assignment.device_wait
    return f"starts on {node.name}: {wait}" if wait else f"starts on {node.name}"


def _held_stop(resource: Resource) -> str:
    """Say which resource is left alone that would have to stop before one that is to stop; empty where none is."""
    for stop in resource.actions.get((STOP, 0), ()):
        firsts = [relation.first for relation in stop.before if relation.flags and relation.first.task == STOP]
        users = [each.resource.id for each in firsts if each.resource is not None and not each.resource.is_managed]
        if users and stop.node is not None and not stop.is_optional and not stop.is_runnable:
            return f"is to stop on {stop.node.name} after {users[0]}, which is left alone"
    return ""


def _scores(inventory: Inventory, resource: Resource) -> tuple[NodeScore, ...]:
    assert resource.assignment.addends is not None
    return tuple(_score(node, resource, resource.assignment.addends.get(node.name, [])) for node in inventory.nodes)


def _score(node: Node, resource: Resource, addends: list[tuple[int, str]]) -> NodeScore:
    score = resource.assignment.allowed.get(node.name)
    objection = node.objection()
    if not objection and score is None:
        objection = "no constraint allows it there (symmetric-cluster=false)"
    elif not objection and score is not None and score < 0:
        objection = next((source for value, source in addends if value <= -INFINITY), "its score is negative")
    return NodeScore(
        node.name,
        -INFINITY if score is None else score,
        _named(addends),
        is_eligible=not objection,
        objection=objection,
        to_win=to_win(resource, node),
    )


def _named(addends: list[tuple[int, str]]) -> tuple[ScoreAddend, ...]:
    """What a score is the sum of; what forbids once forbids for each of its reasons once."""
    found = dict.fromkeys(each for each in addends if each[0] <= -INFINITY)
    return tuple(
        ScoreAddend(value, source)
        for value, source in (*(each for each in addends if each[0] > -INFINITY and each[0] != 0), *found)
    )


def _promotion(resource: Resource) -> Promotion | None:
    """Return what decides whether an instance is promoted; a group's members are promoted as their group is."""
    instance = resource
    while instance.parent is not None and instance.parent.variant is Variant.GROUP:
        instance = instance.parent
    clone = instance.parent
    if resource.assignment.addends is None or clone is None or clone.variant is not Variant.CLONE:
        return None
    if not clone.definition.is_promotable:
        return None
    found = instance.assignment
    return Promotion(found.promotion_priority, _named(found.promotion_addends), to_be_promoted(instance, clone))
