"""Node attributes as colocations compare them: of a guest node sometimes its host's.

Source: Pacemaker Explained, "Bundles", "container-attribute-target".
"""

from collections.abc import Mapping

from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import UNAME, Node, Resource


def is_bundled(resource: Resource) -> bool:
    """Tell whether a resource belongs to a bundle."""
    return resource.outermost.variant is Variant.BUNDLE


def is_by_host(resource: Resource) -> bool:
    """Tell whether a guest's host may count in the place of the guest when a resource's places are compared."""
    return resource.definition.uses_host_attributes or is_bundled(resource)


def attributes_on(node: Node, resource: Resource) -> Mapping[str, str]:
    """Return a node's attributes as they are now for a resource: of a guest node its host's, if it asks for those."""
    if not resource.definition.uses_host_attributes or node.connection is None or not node.is_guest:
        return node.attributes
    launcher = node.connection.launcher
    host = launcher.current_node() if launcher is not None else None
    return host.attributes if host is not None else {}


def attributes_of_place(node: Node, resource: Resource) -> Mapping[str, str]:
    """Return a node's attributes as a resource will find them there: of a guest node those of its host to be."""
    if not resource.definition.uses_host_attributes:
        return node.attributes
    host = host_of(node)
    return host.attributes if host is not None else {}


def host_of(node: Node) -> Node | None:
    """Return the node on which a node will be: of a guest node where its launcher is placed, of another itself."""
    if not node.is_guest or node.connection is None:
        return node
    return node.connection.launcher.assignment.node if node.connection.launcher is not None else None


def value_on(node: Node, attribute: str, resource: Resource) -> str | None:
    """Return a node's value of the attribute by which a colocation compares nodes, for one of its resources.

    What is colocated with something inside a bundle cannot run inside the bundle's guest node: there the guest's host
    counts, once that is placed. So it does for a resource that asks for its host's attributes.
    """
    place = node
    connection = node.connection
    if connection is not None and node.is_guest:
        launcher = connection.launcher
        is_of_bundle = connection.parent is not None and connection.parent.variant is Variant.BUNDLE
        if resource.definition.uses_host_attributes or (is_of_bundle and is_bundled(resource)):
            if launcher is None or (launcher.assignment.is_assigned and launcher.assignment.node is None):
                return None
            place = launcher.assignment.node or node
    return place.uname if attribute == UNAME else place.attributes.get(attribute)


def is_same(left: str | None, right: str | None) -> bool:
    """Compare two values, whatever their case."""
    if left is None or right is None:
        return left is right
    return left == right or left.lower() == right.lower()


def folded(value: str | None) -> str | None:
    """Return a value in the form in which equal ones are equal."""
    return value.lower() if value is not None else None
