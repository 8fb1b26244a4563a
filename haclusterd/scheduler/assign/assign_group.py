"""How a group is assigned: its members one after the other, each bound to the one before it.

Source: Pacemaker Explained, "Groups". Where the first member goes is decided by what all members prefer together.
"""

from haclusterd.model.ocf import Role
from haclusterd.scheduler.assign.steps import Steps, Wanted, remember_scores
from haclusterd.scheduler.model.entities import Node, Resource


def assign_group(group: Resource, prefer: Node | None, *, is_trial: bool) -> Steps:
    """Assign all members; a collocated group is where its first member is."""
    group.assignment.is_assigning = True
    remember_scores(group)
    first: Node | None = None
    for member in group.children:
        yield Wanted(member, prefer, is_trial)
        first = first or member.assignment.node
    group.assignment.next_role = group.children[0].assignment.next_role
    if first is None and group.assignment.next_role is Role.UNKNOWN and not is_trial:
        group.assignment.next_role = Role.STOPPED
    group.assignment.node = first if group.definition.is_collocated else None
    group.assignment.is_assigned = True
    group.assignment.is_assigning = False
