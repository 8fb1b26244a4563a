"""What the names in constraints mean: resources, the users of a template, or what bears a tag.

Source: Pacemaker Explained, "Reusing Resource Definitions", "Tagging Configuration Elements". A constraint between a
template or tag and a resource is one between sets whose members have no order among themselves.
"""

from collections.abc import Callable
from itertools import takewhile

from haclusterd.model.configuration import Configuration, ResourceSet
from haclusterd.model.ids import ResourceId
from haclusterd.model.records import replace
from haclusterd.scheduler.model.inventory import Inventory


def named_group(name: str, inventory: Inventory, configuration: Configuration) -> tuple[ResourceId, ...] | None:
    """Return the members of a template or tag; None for a name that is a resource's, or unknown."""
    if inventory.find(name) is not None:
        return None
    users = inventory.template_users.get(ResourceId(name))
    if users is not None:
        return tuple(users)
    tag = configuration.tags.get(name)
    return tuple(ResourceId(each) for each in tag.references) if tag is not None else None


def expanded_sets(
    sets: tuple[ResourceSet, ...], inventory: Inventory, configuration: Configuration
) -> tuple[ResourceSet, ...]:
    """Return the sets of a constraint with templates and tags replaced by their members, in place.

    Where one name is unknown, nothing is replaced: templates and tags then count as missing too (seen with crm_simulate
    2.1.5 and 3.0.0, as is what the kinds of constraints make of a missing member).
    """
    names = dict.fromkeys(name for each in sets for name in each.members)
    if any(inventory.find(name) is None and named_group(name, inventory, configuration) is None for name in names):
        return sets
    return tuple(_expanded(each, inventory, configuration) for each in sets)


def cut_at_missing(
    sets: tuple[ResourceSet, ...], is_known: Callable[[ResourceId], bool], *, keeps_members: bool
) -> tuple[ResourceSet, ...]:
    """Return the sets before the first missing member, which ends the constraint.

    `keeps_members`: the members that come before it in its set count as well, as in locations and tickets; in orders
    they do not.
    """
    kept: list[ResourceSet] = []
    for each in sets:
        members = tuple(takewhile(is_known, each.members))
        if len(members) < len(each.members):
            return (*kept, replace(each, members=members)) if keeps_members and members else tuple(kept)
        kept.append(each)
    return sets


def _expanded(given: ResourceSet, inventory: Inventory, configuration: Configuration) -> ResourceSet:
    members: list[ResourceId] = []
    for name in given.members:
        group = named_group(name, inventory, configuration)
        members.extend((name,) if group is None else group)
    return given if tuple(members) == given.members else replace(given, members=tuple(members))
