"""How a group is assigned: its members one after the other, each bound to the one before it.

Source: Pacemaker Explained, "Groups". Where the first member goes is decided by what all members prefer together.
"""

from haclusterd.model.ocf import Role
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.steps import Steps, Wanted, remember_scores


def assign_group(group: Resource, prefer: Node | None, *, is_trial: bool) -> Steps:
    """Assign all members; a collocated group is where its first member is."""
    group.is_assigning = True
    remember_scores(group)
    first: Node | None = None
    for member in group.children:
        yield Wanted(member, prefer, is_trial)
        first = first or member.assigned
    group.next_role = group.children[0].next_role
    if first is None and group.next_role is Role.UNKNOWN and not is_trial:
        group.next_role = Role.STOPPED
    group.assigned = first if group.definition.is_collocated else None
    group.is_assigned = True
    group.is_assigning = False
