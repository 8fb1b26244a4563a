"""What the names in constraints mean: resources, the users of a template, or what bears a tag.

Source: Pacemaker Explained, "Reusing Resource Definitions", "Tagging Configuration Elements". A constraint between a
template or tag and a resource is one between sets whose members have no order among themselves.
"""

from dataclasses import replace

from haclusterd.model.configuration import Configuration, ResourceSet
from haclusterd.model.ids import ResourceId
from haclusterd.scheduler.model.entities import Inventory


def named_group(name: str, inventory: Inventory, configuration: Configuration) -> tuple[ResourceId, ...] | None:
    """Return the members of a template or tag; None for a name that is a resource's, or unknown."""
    if inventory.find(name) is not None:
        return None
    users = inventory.template_users.get(ResourceId(name))
    if users is not None:
        return tuple(users)
    tag = configuration.tags.get(name)
    return tuple(ResourceId(each) for each in tag.references) if tag is not None else None


def expanded_set(given: ResourceSet, inventory: Inventory, configuration: Configuration) -> ResourceSet:
    """Return a set with its templates and tags replaced by their members, in place."""
    members: list[ResourceId] = []
    for name in given.members:
        group = named_group(name, inventory, configuration)
        members.extend((name,) if group is None else group)
    return given if tuple(members) == given.members else replace(given, members=tuple(members))
