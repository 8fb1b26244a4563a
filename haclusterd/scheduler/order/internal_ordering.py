"""Phase: the order of actions that resources imply by themselves, collectives around what they contain.

Source: Pacemaker Explained, "Groups", "Clones", "Bundles". What is not managed implies nothing.
"""

from collections.abc import Iterator

from haclusterd.model.ocf import Role
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.ordering import Template
from haclusterd.scheduler.model.entities import (
    DELETE,
    DEMOTE,
    MONITOR,
    PROMOTE,
    START,
    STOP,
    Inventory,
    Resource,
    Variant,
)
from haclusterd.scheduler.model.relation_flags import (
    FIRST_IMPLIES_THEN,
    IF_ON_SAME_NODE,
    INTERMEDIATE_STOP,
    ORDERED,
    PROMOTED_THEN_IMPLIES_FIRST,
    THEN_CANCELS_FIRST,
    UNRUNNABLE_FIRST_BLOCKS,
)
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.order.bundle_ordering import bundle_templates, launcher_templates
from haclusterd.scheduler.order.clone_ordering import clone_templates
from haclusterd.scheduler.order.group_ordering import group_templates
from haclusterd.scheduler.order.load_ordering import load_templates


def internal_templates(inventory: Inventory, table: ActionTable, settings: Settings) -> Iterator[Template]:
    """Yield the orderings of all resources."""
    has_limits = settings.placement_strategy != "default"
    for top in inventory.tops:
        yield from _inside(top, inventory, table, has_limits=has_limits)


def _inside(resource: Resource, inventory: Inventory, table: ActionTable, *, has_limits: bool) -> Iterator[Template]:
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
) -> Iterator[Template]:
    if not resource.is_managed:
        return
    yield Template(resource, STOP, resource, START, ORDERED | FIRST_IMPLIES_THEN | INTERMEDIATE_STOP)
    if resource.top.definition.is_promotable or resource.found.original_role.value > Role.UNPROMOTED.value:
        yield Template(resource, DEMOTE, resource, STOP, PROMOTED_THEN_IMPLIES_FIRST)
        yield Template(resource, START, resource, PROMOTE, UNRUNNABLE_FIRST_BLOCKS)
    if resource.actions.get((DELETE, 0)):
        yield Template(resource, DELETE, resource, MONITOR, IF_ON_SAME_NODE | THEN_CANCELS_FIRST)
    if has_limits and resource.definition.utilization:
        yield from load_templates(resource, inventory, table)
    if resource.launcher is not None:
        yield from launcher_templates(resource, resource.launcher)
