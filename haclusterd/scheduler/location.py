"""Phase: scores that resources have for nodes by themselves: location constraints, health and stickiness.

Source: Pacemaker Explained, "Deciding Which Nodes a Resource Can Run On". A group's preference is its first member's; a
clone's is every instance's; a preference for a node that has no score yet (asymmetric cluster) is its score. What is
said of a role counts only while the resource is to have that role; of the promoted role the promotion decides
(`promotion`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from haclusterd.model.configuration import Configuration, Location
from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import Role
from haclusterd.scheduler.entities import Discovery, Inventory, Resource, RoleLocation, Variant
from haclusterd.scheduler.health import health_words, judge_health, unpack_health_strategy
from haclusterd.scheduler.settings import Settings


@dataclass(frozen=True, slots=True, eq=False)
class Preference:
    """One location constraint of one resource: what it adds to the scores of nodes."""

    resource: Resource
    source: str
    """Where it comes from, for a person: a constraint's id, or the health of a node."""
    scores: Mapping[NodeName, int]
    role: Role = Role.UNKNOWN
    """It counts only for this role; UNKNOWN: always."""
    discovery: Discovery = Discovery.ALWAYS


def unpack_health(inventory: Inventory, configuration: Configuration) -> list[Preference]:
    """Judge the nodes' health and make the preferences of every resource at the top that follow from it."""
    judge_health(inventory.nodes, unpack_health_strategy(configuration))
    return [
        Preference(top, health_words(node), {node.name: node.health})
        for node in inventory.nodes
        if node.health != 0
        for top in inventory.tops
        if node.health > 0 or not top.allows_unhealthy_nodes
    ]


def unpack_locations(inventory: Inventory, configuration: Configuration) -> Iterator[Preference]:
    """Yield the preferences of the location constraints, in the order of the document."""
    for location in configuration.constraints.values():
        if isinstance(location, Location):
            resource = inventory.by_id.get(location.resource)
            if resource is not None and location.node in inventory.nodes_by_name:
                yield Preference(resource, location.id, {location.node: location.score})


def apply_locations(preferences: Iterable[Preference]) -> None:
    """Add the scores of all preferences, the newest first."""
    for preference in reversed(list(preferences)):
        resource = preference.resource
        if preference.role is not Role.UNKNOWN:
            resource.role_locations.append(RoleLocation(preference.source, preference.role, preference.scores))
        _apply(resource, preference)


def _apply(resource: Resource, preference: Preference) -> None:
    if preference.role is Role.UNKNOWN or preference.role is resource.next_role:
        for node, score in preference.scores.items():
            resource.add_score(node, score, preference.source)
            _discover(resource, node, preference.discovery)
    if resource.variant is Variant.GROUP:
        _apply_to_members(resource, preference)
    elif resource.variant is Variant.CLONE:
        for instance in resource.children:
            _apply(instance, preference)
    elif resource.variant is Variant.BUNDLE:
        _apply_to_bundle(resource, preference)


def _discover(resource: Resource, node: NodeName, discovery: Discovery) -> None:
    if discovery > resource.discovery.get(node, Discovery.ALWAYS):
        resource.discovery[node] = discovery


def _apply_to_members(group: Resource, preference: Preference) -> None:
    if not group.children:
        return
    first, *others = group.children
    _apply(first, preference)
    rest = preference
    if group.is_collocated:
        rest = Preference(
            group, preference.source, dict.fromkeys(preference.scores, 0), preference.role, preference.discovery
        )
    for member in others:
        _apply(member, rest)


def _apply_to_bundle(bundle: Resource, preference: Preference) -> None:
    for replica in bundle.replicas:
        _apply(replica.container, preference)
        if replica.ip is not None:
            _apply(replica.ip, preference)


def apply_stickiness(inventory: Inventory, settings: Settings) -> None:
    """Let each primitive prefer the node where it is active."""
    for resource in inventory.primitives():
        if resource.stickiness < 1 or not resource.is_managed or len(resource.active_nodes) != 1:
            continue
        node = resource.active_nodes[0].name
        if settings.is_symmetric or node in resource.allowed:
            resource.add_score(node, resource.stickiness, "stickiness")
