"""Where resources run: each finding is entered at the node and at what contains the resource, and leads to no second
copy.

Source: Pacemaker Explained, "Resource Meta-Attributes" (`multiple-active`, `is-managed`); "Cluster Options"
(`priority-fencing-delay`).
"""

from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import MultipleActive, Needs, Variant
from haclusterd.scheduler.model.entities import Node, Resource


def mark_running(resource: Resource, node: Node, *, is_failed: bool = False) -> None:
    """Note that a resource runs on a node, and with it everything that contains it."""
    found: Resource | None = resource
    while found is not None and node not in found.found.active_nodes:
        found.found.active_nodes.append(node)
        if found.variant is Variant.PRIMITIVE:
            node.running.append(found)
            if not is_failed:
                _count_priority(found, node)
        if node.is_maintenance:
            found.found.is_managed = False
            found.found.is_maintenance = True
        if not found.is_managed:
            _leave_alone(found, node)
            return
        _judge_multiple_active(found)
        found = found.parent


def _count_priority(resource: Resource, node: Node) -> None:
    """A node is worth what runs there; a promoted resource is worth one more."""
    if not resource.assignment.priority:
        return
    worth = resource.assignment.priority + (1 if resource.found.original_role is Role.PROMOTED else 0)
    node.priority += worth
    connection = node.connection
    if node.is_guest and connection is not None and connection.launcher is not None:
        for host in connection.launcher.found.active_nodes:
            host.priority += worth


def _leave_alone(resource: Resource, node: Node) -> None:
    """What is unmanaged stays where it is."""
    resource.found.scores.append((node.name, INFINITY, "it is unmanaged and stays"))
    parent = resource.parent
    while parent is not None:
        if node not in parent.found.active_nodes:
            parent.found.active_nodes.append(node)
        parent = parent.parent


def _judge_multiple_active(resource: Resource) -> None:
    """Apply `multiple-active` to a primitive that was found on one more node."""
    nodes = resource.found.active_nodes
    if len(nodes) < 2 or resource.variant is not Variant.PRIMITIVE:
        return
    if resource.definition.needs is not Needs.FENCING:
        nodes = [node for node in nodes if node.is_online and not node.is_unclean]
    if len(nodes) < 2:
        return
    where = ", ".join(node.name for node in nodes)
    if resource.definition.multiple_active is MultipleActive.STOP_ONLY:
        resource.found.scores.append((None, -INFINITY, f"active on several nodes ({where}): multiple-active=stop_only"))
    elif resource.definition.multiple_active is MultipleActive.BLOCK:
        container = resource.parent
        is_whole = (
            container is not None
            and container.variant in (Variant.GROUP, Variant.BUNDLE)
            and container.definition.multiple_active is MultipleActive.BLOCK
        )
        for member in container.children if container is not None and is_whole else (resource,):
            member.found.is_managed = False
            member.found.is_blocked = True
            member.found.failed_because = member.failed_because or f"{resource.id} is active on several nodes ({where})"
