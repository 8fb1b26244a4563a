"""Phase: the order of a group's members, among themselves and towards the group's own marks.

Source: Pacemaker Explained, "Groups": members start in order and stop in reverse; a member that fails restarts itself
and those behind it.
"""

from collections.abc import Iterator

from haclusterd.scheduler.actions.ordering import Template
from haclusterd.scheduler.model.entities import (
    DEMOTE,
    DEMOTED,
    PROMOTE,
    PROMOTED,
    RUNNING,
    START,
    STOP,
    STOPPED,
    Resource,
)
from haclusterd.scheduler.model.relation_flags import (
    FIRST_IMPLIES_THEN,
    FIRST_IMPLIES_THEN_GRAPHED,
    INTERMEDIATE_STOP,
    ORDERED,
    THEN_IMPLIES_FIRST,
    THEN_IMPLIES_FIRST_GRAPHED,
    UNRUNNABLE_FIRST_BLOCKS,
)


def group_templates(group: Resource) -> Iterator[Template]:
    """Yield the orderings inside a group."""
    yield Template(group, STOP, group, STOPPED, UNRUNNABLE_FIRST_BLOCKS)
    yield Template(group, STOPPED, group, START, ORDERED)
    yield Template(group, START, group, RUNNING, UNRUNNABLE_FIRST_BLOCKS)
    is_promotable = group.top.definition.is_promotable
    last_active: Resource | None = None
    previous: Resource | None = None
    for member in group.children:
        yield from _towards_group(group, member, previous)
        if is_promotable:
            yield from _promoting(group, member, previous)
        if previous is not None and group.definition.is_ordered:
            yield from _after_previous(member, previous)
            is_gap = bool(member.found.active_nodes) and not previous.found.active_nodes
            if is_gap and last_active is not None:
                yield Template(member, STOP, last_active, STOP, ORDERED)
        if member.found.active_nodes:
            last_active = member
        previous = member


def _towards_group(group: Resource, member: Resource, previous: Resource | None) -> Iterator[Template]:
    is_first = previous is None and group.definition.is_ordered
    down = THEN_IMPLIES_FIRST_GRAPHED | (ORDERED if is_first else 0)
    stopped = FIRST_IMPLIES_THEN if is_first else FIRST_IMPLIES_THEN_GRAPHED
    running = UNRUNNABLE_FIRST_BLOCKS | FIRST_IMPLIES_THEN | FIRST_IMPLIES_THEN_GRAPHED
    yield Template(group, STOP, member, STOP, down)
    yield Template(member, STOP, group, STOPPED, stopped)
    yield Template(group, START, member, START, THEN_IMPLIES_FIRST_GRAPHED)
    yield Template(member, START, group, RUNNING, running)


def _after_previous(member: Resource, previous: Resource) -> Iterator[Template]:
    yield Template(previous, START, member, START, FIRST_IMPLIES_THEN | UNRUNNABLE_FIRST_BLOCKS)
    yield Template(member, STOP, previous, STOP, ORDERED | INTERMEDIATE_STOP)
    if member.is_managed and member.found.active_nodes and not previous.found.active_nodes:
        yield Template(member, STOP, previous, START, THEN_IMPLIES_FIRST | UNRUNNABLE_FIRST_BLOCKS)


def _promoting(group: Resource, member: Resource, previous: Resource | None) -> Iterator[Template]:
    is_first = previous is None and group.definition.is_ordered
    down = THEN_IMPLIES_FIRST_GRAPHED | (ORDERED if is_first else 0)
    demoted = FIRST_IMPLIES_THEN if is_first else FIRST_IMPLIES_THEN_GRAPHED
    promoted = UNRUNNABLE_FIRST_BLOCKS | FIRST_IMPLIES_THEN | FIRST_IMPLIES_THEN_GRAPHED
    yield Template(group, DEMOTE, member, DEMOTE, down)
    yield Template(member, DEMOTE, group, DEMOTED, demoted)
    yield Template(group, PROMOTE, member, PROMOTE, THEN_IMPLIES_FIRST_GRAPHED)
    yield Template(member, PROMOTE, group, PROMOTED, promoted)
    if previous is not None and group.definition.is_ordered:
        yield Template(previous, PROMOTE, member, PROMOTE, FIRST_IMPLIES_THEN | UNRUNNABLE_FIRST_BLOCKS)
        yield Template(member, DEMOTE, previous, DEMOTE, ORDERED)
