"""What turns out about an assignment once actions are made: less than was chosen may be possible."""

from haclusterd.model.ocf import Role
from haclusterd.scheduler.model.entities import Resource


def settle_role(resource: Resource) -> None:
    """Let a primitive that may have any role run where it has a node."""
    assignment = resource.assignment
    if assignment.next_role is Role.UNKNOWN:
        assignment.next_role = Role.STARTED if assignment.node is not None else Role.STOPPED


def limit_role(resource: Resource, role: Role) -> None:
    """Let a resource have no higher role than this one."""
    if resource.assignment.next_role.value > role.value:
        resource.assignment.next_role = role


def unassign(resource: Resource) -> bool:
    """Let a primitive run nowhere; tell whether it had a node."""
    had_node = resource.assignment.node is not None
    if had_node:
        resource.assignment.node = None
        resource.assignment.claim((), 0)
        resource.assignment.next_role = Role.STOPPED
    return had_node
