"""Phase: a group's own pseudo-actions and the order of its members.

Source: Pacemaker Explained, "Groups": members start in order and stop in reverse; a member that fails restarts itself
and those behind it.
"""

from haclusterd.scheduler.actions import ActionTable
from haclusterd.scheduler.entities import (
    FIRST_IMPLIES_THEN,
    FIRST_IMPLIES_THEN_GRAPHED,
    INTERMEDIATE_STOP,
    ORDERED,
    RUNNING,
    START,
    STOP,
    STOPPED,
    THEN_IMPLIES_FIRST,
    THEN_IMPLIES_FIRST_GRAPHED,
    UNRUNNABLE_FIRST_BLOCKS,
    Resource,
)
from haclusterd.scheduler.ordering import Template


def create_group_actions(group: Resource, table: ActionTable) -> None:
    """Create start, running, stop and stopped of a group."""
    for task in (START, RUNNING, STOP, STOPPED):
        table.make_pseudo(group, task)


def group_templates(group: Resource) -> list[Template]:
    """Return the orderings inside a group."""
    found = [
        Template(group, STOP, group, STOPPED, UNRUNNABLE_FIRST_BLOCKS),
        Template(group, STOPPED, group, START, ORDERED),
        Template(group, START, group, RUNNING, UNRUNNABLE_FIRST_BLOCKS),
    ]
    last_active: Resource | None = None
    previous: Resource | None = None
    for member in group.children:
        found.extend(_member_templates(group, member, previous))
        is_active = bool(member.active_nodes)
        is_gap = previous is not None and is_active and not previous.active_nodes
        if is_gap and last_active is not None:
            found.append(Template(member, STOP, last_active, STOP, ORDERED))
        if is_active:
            last_active = member
        previous = member
    return found


def _member_templates(group: Resource, member: Resource, previous: Resource | None) -> list[Template]:
    is_first = previous is None
    down = THEN_IMPLIES_FIRST_GRAPHED | (ORDERED if is_first else 0)
    stopped = FIRST_IMPLIES_THEN if is_first else FIRST_IMPLIES_THEN_GRAPHED
    running = UNRUNNABLE_FIRST_BLOCKS | FIRST_IMPLIES_THEN | FIRST_IMPLIES_THEN_GRAPHED
    found = [
        Template(group, STOP, member, STOP, down),
        Template(member, STOP, group, STOPPED, stopped),
        Template(group, START, member, START, THEN_IMPLIES_FIRST_GRAPHED),
        Template(member, START, group, RUNNING, running),
    ]
    if previous is None:
        return found
    found.append(Template(previous, START, member, START, FIRST_IMPLIES_THEN | UNRUNNABLE_FIRST_BLOCKS))
    found.append(Template(member, STOP, previous, STOP, ORDERED | INTERMEDIATE_STOP))
    if member.is_managed and member.active_nodes and not previous.active_nodes:
        found.append(Template(member, STOP, previous, START, THEN_IMPLIES_FIRST | UNRUNNABLE_FIRST_BLOCKS))
    return found
