"""Phase: colocation constraints, and what one does to the scores of the resource that depends on it.

Source: Pacemaker Explained, "Placing Resources Relative to other Resources". A mandatory colocation decides where the
dependent may run; an optional one is a weight. How dependents pull on their primary is in `neighbour_scores`.
"""

from __future__ import annotations

from haclusterd.model.configuration import Colocation, Configuration
from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY, add
from haclusterd.scheduler.entities import UNAME, Inventory, Resource, Together, Variant
from haclusterd.scheduler.nodes import Node

_ROLES = {
    "stopped": Role.STOPPED,
    "unpromoted": Role.UNPROMOTED,
    "slave": Role.UNPROMOTED,
    "promoted": Role.PROMOTED,
    "master": Role.PROMOTED,
}


def unpack_colocations(inventory: Inventory, configuration: Configuration) -> list[Together]:
    """Make the colocations of users and of groups, and hang them on the resources, most important first."""
    found = [
        together
        for item in configuration.constraints.values()
        if isinstance(item, Colocation) and (together := _read(inventory, item)) is not None
    ]
    for top in inventory.tops:
        for before, member in zip(top.children, top.children[1:], strict=False):
            found.append(
                Together(
                    f"group {top.id}", INFINITY, member, before,
                    has_own_influence=member.is_critical, is_configured=False,
                )
            )  # fmt: skip
    for together in reversed(found):
        together.dependent.this_with.append(together)
        together.primary.with_this.append(together)
    for resource in {id(end): end for item in found for end in (item.dependent, item.primary)}.values():
        resource.this_with.sort(key=lambda item: _importance(item.primary))
        resource.with_this.sort(key=lambda item: _importance(item.dependent))
    return found


def _importance(resource: Resource) -> tuple[int, int, str]:
    return (-resource.priority, -resource.variant, resource.id)


def _read(inventory: Inventory, item: Colocation) -> Together | None:
    dependent, primary = inventory.by_id.get(item.dependent), inventory.by_id.get(item.primary)
    if dependent is None or primary is None or item.score == 0 or dependent is primary:
        return None
    if dependent.is_inside(primary) or primary.is_inside(dependent):
        return None
    return Together(
        item.id,
        item.score,
        dependent,
        primary,
        _ROLES.get((item.dependent_role or "").lower(), Role.UNKNOWN),
        _ROLES.get((item.primary_role or "").lower(), Role.UNKNOWN),
        item.node_attribute or UNAME,
        item.influence if item.influence is not None else dependent.is_critical,
    )


def this_with(resource: Resource) -> list[Together]:
    """Return the colocations that decide where a resource runs; a group's belong to its first member."""
    group = resource.parent
    if group is None:
        if resource.variant is not Variant.GROUP:
            return resource.this_with
        return _merged([resource, *resource.children], "this_with")
    if resource is not group.children[0]:
        if not any(not member.is_managed for member in group.children[: group.children.index(resource)]):
            return resource.this_with
        mandatory = [item for item in group.this_with if item.score >= INFINITY]
        return _sorted_with(resource.this_with + mandatory, "this_with")
    others = [item for member in group.children[1:] for item in member.this_with if item.is_configured]
    if not group.this_with and not others:
        return resource.this_with
    return _sorted_with(resource.this_with + group.this_with + others, "this_with")


def with_this(resource: Resource) -> list[Together]:
    """Return the colocations that depend on where a resource runs; a group's belong to its last member."""
    group = resource.parent
    if group is None:
        if resource.variant is not Variant.GROUP:
            return resource.with_this
        return _merged([resource, *resource.children], "with_this")
    if resource is not group.children[-1]:
        return resource.with_this
    others = [item for member in group.children[:-1] for item in member.with_this if item.is_configured]
    if not group.with_this and not others:
        return resource.with_this
    return _sorted_with(resource.with_this + group.with_this + others, "with_this")


def _merged(resources: list[Resource], side: str) -> list[Together]:
    found: list[Together] = []
    for index, resource in enumerate(resources):
        items: list[Together] = resource.this_with if side == "this_with" else resource.with_this
        found.extend(item for item in items if index == 0 or item.is_configured)
    return _sorted_with(found, side)


def _sorted_with(items: list[Together], side: str) -> list[Together]:
    if side == "this_with":
        return sorted(items, key=lambda item: _importance(item.primary))
    return sorted(items, key=lambda item: _importance(item.dependent))


def apply_to_dependent(resource: Resource, together: Together, nodes: dict[NodeName, Node]) -> None:
    """Change a dependent's scores after its primary was assigned (or found to have no node).

    Of two that depend on each other, the one that is assigned first is not bound.
    """
    if resource.is_assigned:
        return
    primary = _representative(together)
    if not primary.is_assigned:
        return
    if together.dependent_role is not Role.UNKNOWN and together.dependent_role is not resource.next_role:
        return
    if together.primary_role is not Role.UNKNOWN and together.primary_role is not primary.next_role:
        return
    if primary.assigned is None and together.score < 0:
        return
    table = _followed(resource.allowed, together, primary.assigned, nodes)
    if together.is_mandatory or any_available(table, nodes):
        replace_scores(resource, table, _words(together, primary))


def _followed(
    scores: dict[NodeName, int], together: Together, primary_node: Node | None, nodes: dict[NodeName, Node]
) -> dict[NodeName, int]:
    """Return a dependent's scores, given where its primary is."""
    if primary_node is None:
        return {name: add(value, -together.score) for name, value in scores.items()}
    wanted = attribute_of(primary_node, together.attribute)
    table = {}
    for name, value in scores.items():
        is_with_it = _equal(attribute_of(nodes[name], together.attribute), wanted)
        if together.score >= INFINITY:
            table[name] = value if is_with_it else -INFINITY
        else:
            table[name] = add(value, together.score) if is_with_it else value
    return table


def _representative(together: Together) -> Resource:
    """A group stands for its last member where all of it must be there, else for its first."""
    primary = together.primary
    if primary.variant is not Variant.GROUP:
        return primary
    return primary.children[-1] if together.is_mandatory else primary.children[0]


def _words(together: Together, primary: Resource) -> str:
    if together.primary.assigned is None and primary.assigned is None:
        return f"{together.id}: {together.primary.id} runs nowhere"
    return f"{together.id}: {'apart from' if together.score < 0 else 'with'} {together.primary.id}"


def attribute_of(node: Node, name: str) -> str | None:
    """Return a node's value of the attribute by which a colocation compares nodes."""
    return node.name if name == UNAME else node.attributes.get(name)


def _equal(left: str | None, right: str | None) -> bool:
    if left is None or right is None:
        return left is right
    return left == right or left.lower() == right.lower()


def any_available(table: dict[NodeName, int], nodes: dict[NodeName, Node]) -> bool:
    """Tell whether a node of the table could be used."""
    return any(value >= 0 and nodes[name].is_available for name, value in table.items())


def replace_scores(resource: Resource, table: dict[NodeName, int], source: str) -> None:
    """Give a resource new scores, keeping what forbids a node and, if wanted, what each score is the sum of."""
    for name, value in table.items():
        if value <= -INFINITY and resource.allowed[name] > -INFINITY:
            resource.banned_by.setdefault(name, source)
    if resource.addends is not None:
        for name, value in table.items():
            before = resource.allowed.get(name, 0)
            if value != before:
                change = value if abs(value) >= INFINITY else value - before
                resource.addends.setdefault(name, []).append((change, source))
    resource.allowed = table
