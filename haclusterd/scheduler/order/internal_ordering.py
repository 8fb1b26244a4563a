"""Phase: the order of actions that resources imply by themselves, collectives around what they contain.

Source: Pacemaker Explained, "Groups", "Clones", "Bundles". What is not managed implies nothing.
Members of a group start in order and stop in reverse; a member that fails restarts itself and those after it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from haclusterd.model.ocf import Role
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.ordering import OrderingTemplate
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.relation_flags import (
    FIRST_IMPLIES_THEN,
    FIRST_IMPLIES_THEN_GRAPHED,
    IF_ON_SAME_NODE,
    INTERMEDIATE_STOP,
    ORDERED,
    PROMOTED_THEN_IMPLIES_FIRST,
    THEN_CANCELS_FIRST,
    THEN_IMPLIES_FIRST,
    THEN_IMPLIES_FIRST_GRAPHED,
    UNRUNNABLE_FIRST_BLOCKS,
)
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import (
    DELETE,
    DEMOTE,
    DEMOTED,
    MONITOR,
    PROMOTE,
    PROMOTED,
    RUNNING,
    START,
    STOP,
    STOPPED,
)
from haclusterd.scheduler.order.bundle_ordering import bundle_templates, launcher_templates
from haclusterd.scheduler.order.clone_ordering import clone_templates
from haclusterd.scheduler.order.load_ordering import load_templates


class _Pair(NamedTuple):
    """An action and the one that undoes it, each with the mark at which a collective's members are through with it."""

    up: str
    up_mark: str
    down: str
    down_mark: str


_ACTIVITY = _Pair(START, RUNNING, STOP, STOPPED)
_PROMOTION = _Pair(PROMOTE, PROMOTED, DEMOTE, DEMOTED)


def internal_templates(inventory: Inventory, table: ActionTable, settings: Settings) -> Iterator[OrderingTemplate]:
    """Yield the orderings of all resources."""
    has_limits = settings.placement_strategy != "default"
    for top in inventory.tops:
        yield from _inside(top, inventory, table, has_limits=has_limits)


def _inside(
    resource: Resource, inventory: Inventory, table: ActionTable, *, has_limits: bool
) -> Iterator[OrderingTemplate]:
    if resource.variant is Variant.PRIMITIVE:
        yield from _of_primitive(resource, inventory, table, has_limits=has_limits)
        return
    for child in resource.children:
        yield from _inside(child, inventory, table, has_limits=has_limits)
    if resource.variant is Variant.BUNDLE:
        yield from bundle_templates(resource)
    elif resource.variant is Variant.GROUP:
        yield from group_templates(resource)
    elif resource.variant is Variant.CLONE:
        yield from clone_templates(resource)


def _of_primitive(
    resource: Resource, inventory: Inventory, table: ActionTable, *, has_limits: bool
) -> Iterator[OrderingTemplate]:
    if not resource.is_managed:
        return
    yield OrderingTemplate(resource, STOP, resource, START, ORDERED | FIRST_IMPLIES_THEN | INTERMEDIATE_STOP)
    if resource.top.definition.is_promotable or resource.found.original_role.value > Role.UNPROMOTED.value:
        yield OrderingTemplate(resource, DEMOTE, resource, STOP, PROMOTED_THEN_IMPLIES_FIRST)
        yield OrderingTemplate(resource, START, resource, PROMOTE, UNRUNNABLE_FIRST_BLOCKS)
    if resource.actions.get((DELETE, 0)):
        yield OrderingTemplate(resource, DELETE, resource, MONITOR, IF_ON_SAME_NODE | THEN_CANCELS_FIRST)
    if has_limits and resource.definition.utilization:
        yield from load_templates(resource, inventory, table)
    if resource.launcher is not None:
        yield from launcher_templates(resource, resource.launcher)


def group_templates(group: Resource) -> Iterator[OrderingTemplate]:
    """Yield the orderings inside a group."""
    yield OrderingTemplate(group, STOP, group, STOPPED, UNRUNNABLE_FIRST_BLOCKS)
    yield OrderingTemplate(group, STOPPED, group, START, ORDERED)
    yield OrderingTemplate(group, START, group, RUNNING, UNRUNNABLE_FIRST_BLOCKS)
    is_promotable = group.top.definition.is_promotable
    last_active: Resource | None = None
    previous: Resource | None = None
    for member in group.children:
        yield from _with_group(group, member, previous, _ACTIVITY)
        if is_promotable:
            yield from _promoting(group, member, previous)
        if previous is not None and group.definition.is_ordered:
            yield from _after_previous(member, previous)
            is_gap = bool(member.found.active_nodes) and not previous.found.active_nodes
            if is_gap and last_active is not None:
                yield OrderingTemplate(member, STOP, last_active, STOP, ORDERED)
        if member.found.active_nodes:
            last_active = member
        previous = member


def _with_group(
    group: Resource, member: Resource, previous: Resource | None, pair: _Pair
) -> Iterator[OrderingTemplate]:
    """A member acts after the group's action, and the group's mark comes when its members have acted."""
    is_first = previous is None and group.definition.is_ordered
    down = THEN_IMPLIES_FIRST_GRAPHED | (ORDERED if is_first else 0)
    ended = FIRST_IMPLIES_THEN if is_first else FIRST_IMPLIES_THEN_GRAPHED
    begun = UNRUNNABLE_FIRST_BLOCKS | FIRST_IMPLIES_THEN | FIRST_IMPLIES_THEN_GRAPHED
    yield OrderingTemplate(group, pair.down, member, pair.down, down)
    yield OrderingTemplate(member, pair.down, group, pair.down_mark, ended)
    yield OrderingTemplate(group, pair.up, member, pair.up, THEN_IMPLIES_FIRST_GRAPHED)
    yield OrderingTemplate(member, pair.up, group, pair.up_mark, begun)


def _after_previous(member: Resource, previous: Resource) -> Iterator[OrderingTemplate]:
    yield OrderingTemplate(previous, START, member, START, FIRST_IMPLIES_THEN | UNRUNNABLE_FIRST_BLOCKS)
    yield OrderingTemplate(member, STOP, previous, STOP, ORDERED | INTERMEDIATE_STOP)
    if member.found.active_nodes and not previous.found.active_nodes:
        yield OrderingTemplate(member, STOP, previous, START, THEN_IMPLIES_FIRST | UNRUNNABLE_FIRST_BLOCKS)


def _promoting(group: Resource, member: Resource, previous: Resource | None) -> Iterator[OrderingTemplate]:
    yield from _with_group(group, member, previous, _PROMOTION)
    if previous is not None and group.definition.is_ordered:
        yield OrderingTemplate(previous, PROMOTE, member, PROMOTE, FIRST_IMPLIES_THEN | UNRUNNABLE_FIRST_BLOCKS)
        yield OrderingTemplate(member, DEMOTE, previous, DEMOTE, ORDERED)
