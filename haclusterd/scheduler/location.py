"""Phase: scores that resources have for nodes by themselves: location constraints and stickiness.

Source: Pacemaker Explained, "Deciding Which Nodes a Resource Can Run On". A group's preference is its first member's; a
preference for a node that has no score yet (asymmetric cluster) is its score.
"""

from haclusterd.model.configuration import Configuration, Location
from haclusterd.scheduler.entities import Inventory, Resource, Variant
from haclusterd.scheduler.settings import Settings


def apply_locations(inventory: Inventory, configuration: Configuration) -> None:
    """Add the scores of all location constraints, the newest first."""
    locations = [item for item in configuration.constraints.values() if isinstance(item, Location)]
    for location in reversed(locations):
        resource = inventory.by_id.get(location.resource)
        if resource is None or location.node not in inventory.nodes_by_name:
            continue
        _apply(resource, location)


def _apply(resource: Resource, location: Location) -> None:
    resource.add_score(location.node, location.score, location.id)
    if resource.variant is not Variant.GROUP:
        return
    for index, member in enumerate(resource.children):
        if index == 0:
            member.add_score(location.node, location.score, location.id)
        elif location.node not in member.allowed:
            member.allowed[location.node] = 0


def apply_stickiness(inventory: Inventory, settings: Settings) -> None:
    """Let each primitive prefer the node where it is active."""
    for resource in inventory.primitives():
        if resource.stickiness < 1 or not resource.is_managed or len(resource.active_nodes) != 1:
            continue
        node = resource.active_nodes[0].name
        if settings.is_symmetric or node in resource.allowed:
            resource.add_score(node, resource.stickiness, "stickiness")
