"""How a bundle is assigned: its containers to nodes, then what belongs to each container, then what runs inside.

Source: Pacemaker Explained, "Bundles". Each container is a guest node, and the only place of its instance of the
bundled primitive.
"""

from haclusterd.model.ids import NodeName
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.assign.assign_clone import Instances
from haclusterd.scheduler.assign.instance_order import InstanceOrder
from haclusterd.scheduler.assign.placing import Placing
from haclusterd.scheduler.assign.steps import Steps, Wanted, remember_scores
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import ColocationPair, Replica, Resource
from haclusterd.scheduler.scores.colocation import attach

_INSIDE = "it runs inside its container only"


def assign_bundle(bundle: Resource, placing: Placing) -> Steps:
    """Assign everything that a bundle is made of."""
    bundle.assignment.is_assigning = True
    remember_scores(bundle)
    containers = InstanceOrder(placing).sorted([replica.container for replica in bundle.replicas])
    yield from Instances(bundle, len(bundle.replicas), bundle.definition.clone_node_max, placing).steps(containers)
    for replica in bundle.replicas:
        yield from _assign_replica(replica)
    bundled = next((child for child in bundle.children if child.variant is Variant.CLONE), None)
    if bundled is not None:
        inside = {replica.node.name for replica in bundle.replicas if replica.node is not None}
        for name in bundled.assignment.allowed:
            _set(bundled, name, 0 if name in inside else -INFINITY, _INSIDE)
        yield Wanted(bundled)
    bundle.assignment.is_assigned = True
    bundle.assignment.is_assigning = False


def _set(resource: Resource, name: NodeName, score: int, source: str) -> None:
    """Give a node a score whatever it was."""
    resource.assignment.allowed[name] = score
    if resource.assignment.addends is not None:
        resource.assignment.addends[name] = [(score, source)]


def _assign_replica(replica: Replica) -> Steps:
    if replica.ip is not None:
        yield Wanted(replica.ip)
    connection, host = replica.connection, replica.container.assignment.node
    if connection is not None:
        if host is not None and host.is_remote and host.connection is not None:
            source = f"{replica.container.id} runs on {host.name}"
            attach([ColocationPair(source, INFINITY, connection, host.connection, is_configured=False)])
        yield Wanted(connection)
    if replica.child is not None:
        yield from _assign_child(replica, replica.child)


def _assign_child(replica: Replica, child: Resource) -> Steps:
    """The bundled primitive can only be inside its container."""
    node = replica.node
    for name in child.assignment.allowed:
        if node is None or name != node.name:
            child.assignment.add(name, -INFINITY, _INSIDE)
        elif child.assignment.allowed[name] > -INFINITY:
            _set(child, name, INFINITY, _INSIDE)
    clone = child.parent
    if clone is not None:
        clone.assignment.is_assigning = True
    yield Wanted(child, node)
    if clone is not None:
        clone.assignment.is_assigning = False
