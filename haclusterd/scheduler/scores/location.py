"""Phase: scores that resources have for nodes by themselves: location constraints, health, stickiness, bans by kind.

Source: Pacemaker Explained, "Deciding Which Nodes a Resource Can Run On". A group's preference is its first member's; a
clone's is every instance's; a preference for a node that has no score yet (asymmetric cluster) is its score. What is
said of a role counts only while the resource is to have that role; who is promoted is decided in `promotion`. What the
constraints say is read in `location_constraints`.
"""

from collections.abc import Iterable, Mapping

from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import Role
from haclusterd.model.records import dataclass, replace
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import Discovery, Variant
from haclusterd.scheduler.model.entities import Node, Resource, RoleLocation
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.unpack.health import health_words, judge_health, unpack_health_strategy


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


def unpack_health(inventory: Inventory, settings: Settings) -> list[Preference]:
    """Judge the nodes' health and make the preferences of every resource at the top that follow from it."""
    judge_health(inventory.nodes, unpack_health_strategy(settings))
    return [
        Preference(top, health_words(node), {node.name: node.health})
        for node in inventory.nodes
        if node.health != 0
        for top in inventory.tops
        if node.health > 0 or not top.definition.allows_unhealthy_nodes
    ]


def apply_locations(preferences: Iterable[Preference]) -> None:
    """Add the scores of all preferences, the newest first."""
    ordered = list(preferences)
    for preference in ordered:
        location = RoleLocation(preference.source, preference.role, preference.scores)
        preference.resource.scores.locations.append(location)
        if preference.resource.variant is Variant.BUNDLE and preference.role is Role.PROMOTED:
            for child in preference.resource.children:
                if child.variant is Variant.CLONE:
                    child.scores.locations.append(location)
    for preference in reversed(ordered):
        _apply(preference.resource, preference)


def _apply(resource: Resource, preference: Preference) -> None:
    if preference.role is Role.UNKNOWN or preference.role is resource.found.next_role:
        for node, score in preference.scores.items():
            resource.scores.add(node, score, preference.source)
            if preference.discovery > resource.scores.discovery.get(node, Discovery.ALWAYS):
                resource.scores.discovery[node] = preference.discovery
    if resource.variant is Variant.GROUP:
        _apply_to_members(resource, preference)
    elif resource.variant is Variant.CLONE:
        for instance in resource.children:
            _apply(instance, preference)
    elif resource.variant is Variant.BUNDLE:
        _apply_to_bundle(resource, preference)


def _apply_to_members(group: Resource, preference: Preference) -> None:
    rest = preference
    if group.definition.is_collocated:
        rest = replace(preference, scores=dict.fromkeys(preference.scores, 0))
    for index, member in enumerate(group.children):
        _apply(member, rest if index else preference)


def _apply_to_bundle(bundle: Resource, preference: Preference) -> None:
    for replica in bundle.replicas:
        _apply(replica.container, preference)
        if replica.ip is not None:
            _apply(replica.ip, preference)


def apply_exclusive_discovery(inventory: Inventory, settings: Settings) -> None:
    """Forbid the nodes that an exclusive constraint does not name, where a resource or its top has one.

    Pacemaker places a member of a group also where its own constraint forbids that it is looked for, and so do plans
    for its CIBs: only what such a constraint says of the resource at the top forbids nodes there.
    """
    is_bound_by_own = not settings.options.is_pacemaker_compatible
    for resource in (each for top in inventory.tops for each in _family(top)):
        is_own = is_bound_by_own and resource.scores.has_exclusive_discovery
        if is_own or resource.top.scores.has_exclusive_discovery:
            for node in list(resource.scores.allowed):
                if resource.scores.discovery.get(node) is not Discovery.EXCLUSIVE:
                    resource.scores.add(node, -INFINITY, "resource-discovery=exclusive on other nodes")


def _family(resource: Resource) -> Iterable[Resource]:
    yield resource
    for child in resource.children:
        yield from _family(child)


def apply_stickiness(inventory: Inventory, settings: Settings) -> None:
    """Let each primitive prefer the node where it is active."""
    for resource in inventory.primitives():
        if resource.definition.stickiness < 1 or not resource.is_managed or len(resource.found.active_nodes) != 1:
            continue
        node = resource.found.active_nodes[0].name
        if settings.is_symmetric or node in resource.scores.allowed:
            resource.scores.add(node, resource.definition.stickiness, "stickiness")


def ban_by_kind(inventory: Inventory) -> None:
    """Forbid what cannot be: fence devices and connections on remote nodes, connections inside connections.

    Source: Pacemaker Remote, "Guest nodes": a launcher must run on a cluster node, as its guest's connection does, also
    where nobody manages the connection; what a guest node's own resource launches runs beside it.
    """
    remotes = [node for node in inventory.nodes if node.is_remote]
    if not any(node.connection is not None for node in remotes):
        return
    for resource in inventory.primitives():
        launcher, definition = resource.launcher, resource.definition
        if resource.is_managed and (definition.is_fence_device or definition.is_remote_connection):
            _ban_from(remotes, resource, None)
        if launcher is not None and definition.is_remote_connection and not definition.is_nesting_allowed:
            _ban_from(remotes, launcher, f"it launches {resource.id}, which is a remote node itself")
        if launcher is not None and resource.is_managed:
            _keep_with_launching_node(resource, launcher)


def _ban_from(remotes: Iterable[Node], resource: Resource, source: str | None) -> None:
    for node in remotes:
        if node.name in resource.scores.allowed:
            resource.scores.add(node.name, -INFINITY, source or f"{node.name} is a remote node")


def _keep_with_launching_node(resource: Resource, launcher: Resource) -> None:
    node = runs_on_node_of(resource, launcher)
    if node is not None:
        for name in list(resource.scores.allowed):
            if name != node:
                resource.scores.add(name, -INFINITY, f"it runs on {node}, which {launcher.id} makes")


def runs_on_node_of(resource: Resource, launcher: Resource) -> NodeName | None:
    """Return the remote or guest node on which a launched resource has to run; None where it runs beside its launcher.

    That is so when the launcher connects to a remote node or launches a guest node.
    """
    if launcher.definition.is_remote_connection and launcher.remote_node is not None:
        return launcher.remote_node.name
    connection = next((each for each in launcher.launched if each.definition.is_remote_connection), None)
    if connection is None or connection is resource or connection.remote_node is None:
        return None
    return connection.remote_node.name
