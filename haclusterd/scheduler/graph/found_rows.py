"""What runs where, row by row, as Pacemaker's tools print a cluster's status.

A resource of its own has one role on all nodes where it is active. The instances of an anonymous clone are folded into
one line for each role: it names the nodes, and a group has one role there, the highest of its members. An instance of
which something is failed, unmanaged or stopped is shown member by member, and so is each of a unique clone.

Source: Pacemaker Administration, "Using Pacemaker Command-Line Tools" (crm_mon); measured with crm_simulate.
"""

from collections.abc import Iterator

from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import ActionName, Role
from haclusterd.model.records import dataclass
from haclusterd.scheduler.graph.explain import bundle_parts
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory

_CHANGING = {ActionName.PROMOTE.value: Role.UNPROMOTED, ActionName.DEMOTE.value: Role.UNPROMOTED}
"""While it is being promoted or demoted, the printed role is neither of the two, unless nobody manages it."""


@dataclass(frozen=True, slots=True)
class FoundRow:
    """One resource on one node; of a bundle the replica, in a line of folded instances the clone."""

    resource: str
    node: NodeName
    role: Role
    members: tuple[str, ...] = ()
    """Of an instance in a line of a clone's instances that have the same role: the primitives it consists of."""
    is_held: bool = False
    """Whether that line is `Unpromoted (target-role): [ ... ]`."""


def found_rows(inventory: Inventory) -> list[FoundRow]:
    """Return the rows of everything that is active."""
    return [row for top in inventory.tops for row in _of_top(top, inventory)]


def _of_top(top: Resource, inventory: Inventory) -> Iterator[FoundRow]:
    if is_out_of_sight(top):
        return
    if top.replicas:
        yield from _of_bundle(top, inventory)
    elif top.variant is Variant.CLONE:
        for instance in top.children:
            yield from _of_instance(top, instance)
    else:
        for leaf in top.leaves():
            yield from _one_by_one(leaf)


def _of_bundle(bundle: Resource, inventory: Inventory) -> Iterator[FoundRow]:
    """What runs in a container is shown where the container runs."""
    parts = bundle_parts(inventory)
    for replica in bundle.replicas:
        container, child = replica.container, replica.child
        if child is None or child.found.active_nodes:
            shown = child or container
            name, _ = parts[container.id]
            for node in container.found.active_nodes:
                yield FoundRow(name, node.name, _role(shown))


def is_out_of_sight(collective: Resource) -> bool:
    """Tell whether nothing of a group, clone or bundle is printed: all that is active was left alone, on nodes away."""
    if collective.variant is Variant.PRIMITIVE:
        return False
    active = [(leaf, node) for leaf in collective.leaves() for node in leaf.found.active_nodes]
    is_seen = any(leaf.is_managed or leaf.is_blocked or node.is_online for leaf, node in active)
    return bool(active) and not is_seen


def _of_instance(clone: Resource, instance: Resource) -> Iterator[FoundRow]:
    if is_away_with_host(clone, instance):
        return
    leaves = list(instance.leaves())
    node = _only_node(leaves)
    is_plain = all(map(_is_plain, leaves))
    if clone.definition.is_unique or instance.found.is_removed or not is_plain or node is None or node.is_unclean:
        for leaf in leaves:
            yield from _one_by_one(leaf)
        return
    role = max((_printed(leaf, leaf.found.original_role) for leaf in leaves), key=lambda each: each.value)
    members = tuple(leaf.base_id for leaf in leaves)
    lowest = clone if "target-role" in clone.definition.meta else instance
    is_lowered = lowest.definition.target_role is Role.UNPROMOTED
    is_held = clone.definition.is_promotable and role is not Role.PROMOTED and is_lowered
    yield FoundRow(clone.id, node.name, role, members, is_held)


def is_away_with_host(clone: Resource, instance: Resource) -> bool:
    """Tell whether an instance of a clone is not printed: where it is active is away, a guest node with its host."""
    leaves = list(instance.leaves())
    node = _only_node(leaves)
    if is_out_of_sight(instance):
        return True
    is_seen = clone.definition.is_unique or node is None or node.is_online or node.is_unclean
    return not is_seen and all(leaf.is_managed for leaf in leaves)


def _is_plain(leaf: Resource) -> bool:
    return bool(leaf.found.active_nodes) and leaf.is_managed and not leaf.found.is_failed


def _only_node(leaves: list[Resource]) -> Node | None:
    """Return the one node where an instance is active."""
    nodes = {node.name: node for leaf in leaves for node in leaf.found.active_nodes}
    return next(iter(nodes.values())) if len(nodes) == 1 else None


def _one_by_one(leaf: Resource) -> Iterator[FoundRow]:
    if leaf.remote_node is not None and leaf.launcher is not None:
        return
    if leaf.found.original_role is Role.STOPPED:
        return  # printed as stopped on the node where it is active
    for node in leaf.found.active_nodes:
        yield FoundRow(leaf.id, node.name, _role(leaf))


def _role(resource: Resource) -> Role:
    role = resource.found.original_role
    return _printed(resource, _CHANGING.get(resource.found.pending_action, role) if resource.is_managed else role)


def _printed(resource: Resource, role: Role) -> Role:
    if role.value > Role.STARTED.value:
        return role
    return Role.UNPROMOTED if resource.top.definition.is_promotable else Role.STARTED
