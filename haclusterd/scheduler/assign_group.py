"""How a group is assigned: its members one after the other, each bound to the one before it.

Source: Pacemaker Explained, "Groups". Where the first member goes is decided by what all members prefer together.
"""

from collections.abc import Iterator

from haclusterd.model.ocf import Role
from haclusterd.scheduler.entities import Resource
from haclusterd.scheduler.nodes import Node

Steps = Iterator[tuple[Resource, Node | None]]
"""An assignment under way: it yields the resources that must be assigned before it goes on, with a node to prefer."""


def assign_group(group: Resource, prefer: Node | None) -> Steps:
    """Assign all members; the group is where its first member is."""
    group.is_assigning = True
    first: Node | None = None
    for index, member in enumerate(group.children):
        yield member, prefer
        if index == 0:
            first = member.assigned
    group.next_role = group.children[0].next_role
    if first is None and group.next_role is Role.UNKNOWN:
        group.next_role = Role.STOPPED
    group.assigned = first
    group.is_assigned = True
    group.is_assigning = False
