"""Which colocations count for a resource: its own, and those of what contains it.

A group's are those of its first member, as a dependent, and of its last member, as a primary: between them the members
are chained. A clone's are those of each instance; a bundle's those of its containers. All lists are in the order of
importance of the other side; what a container adds comes, of equals, before what is there.
"""

from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import ColocationPair, Resource
from haclusterd.scheduler.scores.colocation import importance

Items = list[ColocationPair]


def this_with(resource: Resource) -> Items:
    """Return the colocations that decide where a resource runs; not to be changed."""
    items = resource.scores.this_with
    if resource.variant is Variant.GROUP:
        items = _with_primaries(items, _given_this_with(resource, resource))
        return _with_primaries(items, resource.scores.members_this_with)
    return _with_primaries(items, _given_this_with(resource, resource))


def with_this(resource: Resource) -> Items:
    """Return the colocations that depend on where a resource runs; not to be changed."""
    items = resource.scores.with_this
    if resource.variant is Variant.GROUP:
        items = _with_dependents(items, _given_with_this(resource, resource))
        return _with_dependents(items, resource.scores.members_with_this)
    return _with_dependents(items, _given_with_this(resource, resource))


def _given_this_with(resource: Resource, asker: Resource) -> Items:
    """What a resource gets from what contains it."""
    parent = resource.parent
    if parent is None:
        return []
    if parent.variant is Variant.GROUP:
        if resource is not parent.children[0]:
            return _for_later_member(parent, resource)
        items = _with_primaries(parent.scores.this_with, _given_this_with(parent, asker))
        of_members = parent.scores.members_this_with
        return _with_primaries(items, [item for item in of_members if item.dependent is not resource])
    if not _is_for(parent, resource, asker):
        return []
    return _with_primaries(parent.scores.this_with, _given_this_with(parent, asker))


def _for_later_member(group: Resource, member: Resource) -> Items:
    """What binds a group binds a later member itself when one before it is unmanaged: that may be on another node."""
    mandatory = [item for item in group.scores.this_with if item.score >= INFINITY]
    if mandatory:
        for earlier in group.children:
            if earlier is member:
                break
            if not earlier.is_managed:
                return mandatory
    return []


def _given_with_this(resource: Resource, asker: Resource) -> Items:
    parent = resource.parent
    if parent is None:
        return []
    if parent.variant is Variant.GROUP:
        if resource is not parent.children[-1]:
            return []
        items = _with_dependents(parent.scores.with_this, _given_with_this(parent, asker))
        of_members = parent.scores.members_with_this
        return _with_dependents(items, [item for item in of_members if item.primary is not resource])
    if not _is_for(parent, resource, asker):
        return []
    return _with_dependents(parent.scores.with_this, _given_with_this(parent, asker))


def _is_for(parent: Resource, child: Resource, asker: Resource) -> bool:
    """Of a bundle: for its containers; for the bundled clone only once that chooses roles."""
    if parent.variant is not Variant.BUNDLE or child.definition.is_replica_container:
        return True
    if child.variant is not Variant.CLONE:
        return False
    return child.definition.is_promotable and (child.assignment.is_choosing_roles or asker.assignment.is_assigned)


def _with_primaries(items: Items, more: Items) -> Items:
    if not more:
        return items
    if not items:
        return more
    return sorted([*reversed(more), *items], key=lambda item: importance(item.primary))


def _with_dependents(items: Items, more: Items) -> Items:
    if not more:
        return items
    if not items:
        return more
    return sorted([*reversed(more), *items], key=lambda item: importance(item.dependent))
