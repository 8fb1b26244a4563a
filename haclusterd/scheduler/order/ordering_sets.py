"""Phase: orderings of sets of resources: those inside a set, and those between one set and the next.

Source: Pacemaker Explained, "Resource Sets" and "Ordering Sets of Resources". Between two sets only one that says
`sequential=true` counts as a chain with two ends; of any other each member is tied by itself.
"""

from collections.abc import Iterator
from itertools import combinations, pairwise, product

from haclusterd.model.configuration import Configuration, Ordering, OrderingKind, ResourceSet
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.ordering import (
    INVERSE,
    OrderingTemplate,
    after_mark,
    at_least,
    find_each,
    flags_of,
    inverse_flags,
    orderings_of,
    simple_templates,
)
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.entities import Action, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.references import cut_at_missing, expanded_sets, named_group
from haclusterd.scheduler.model.tasks import DEMOTE, START, STOP


def user_templates(
    inventory: Inventory, configuration: Configuration, table: ActionTable, time: EffectiveTime
) -> Iterator[OrderingTemplate]:
    """Return what all ordering constraints say that are in force, in document order."""
    for item in orderings_of(configuration, time):
        if item.sets:
            sets = expanded_sets(item.sets, inventory, configuration)
            sets = cut_at_missing(sets, lambda name: inventory.find(name) is not None, keeps_members=False)
            yield from _set_templates(item, sets, inventory, table)
            continue
        ends = _ends_as_sets(item, inventory, configuration)
        if ends:
            yield from _set_templates(item, ends, inventory, table)
            continue
        first, then = inventory.find(item.first), inventory.find(item.then)
        if first is not None and then is not None:
            yield from simple_templates(item, first, then, table)


def _ends_as_sets(item: Ordering, inventory: Inventory, configuration: Configuration) -> tuple[ResourceSet, ...]:
    """Return the two sets of an ordering with a template or tag; none of any other."""
    ends = ((item.first, item.first_action), (item.then, item.then_action or item.first_action))
    groups = [named_group(name, inventory, configuration) for name, _ in ends]
    if groups == [None, None]:
        return ()
    return tuple(
        ResourceSet(f"{item.id}-{name}", (name,) if group is None else group, is_sequential=False, action=action)
        for group, (name, action) in zip(groups, ends, strict=True)
    )


def _set_templates(
    item: Ordering, sets: tuple[ResourceSet, ...], inventory: Inventory, table: ActionTable
) -> Iterator[OrderingTemplate]:
    members = [find_each(inventory, each.members) for each in sets]
    is_symmetrical = item.is_symmetrical and item.kind is not OrderingKind.SERIALIZE
    for index, (given, resources) in enumerate(zip(sets, members, strict=True)):
        yield from _inside(item, given, resources)
        if not index:
            continue
        before = sets[index - 1], members[index - 1]
        yield from _between(item, before, (given, resources), table, is_symmetrical=is_symmetrical)
        if is_symmetrical:
            yield from _between_inverse(item, (given, resources), before, table)


def _kind(given: ResourceSet, item: Ordering) -> OrderingKind:
    kinds = {kind.value.lower(): kind for kind in OrderingKind}
    return kinds.get((given.kind or "").lower(), item.kind)


def _inside(item: Ordering, given: ResourceSet, resources: list[Resource]) -> Iterator[OrderingTemplate]:
    action, kind = given.action or START, _kind(given, item)
    is_symmetrical = item.is_symmetrical and kind is not OrderingKind.SERIALIZE
    flags = flags_of(kind, action, is_symmetrical=is_symmetrical)
    is_chain = given.is_sequential is not False
    if kind is OrderingKind.SERIALIZE:
        pairs = list(combinations(resources, 2))
    else:
        pairs = list(pairwise(resources)) if is_chain else []
    for first, then in pairs:
        yield OrderingTemplate(first, action, then, action, flags, item.id)
    if is_symmetrical and action in INVERSE:
        for first, then in pairs:
            yield OrderingTemplate(then, INVERSE[action], first, INVERSE[action], inverse_flags(kind), item.id)


def _between(
    item: Ordering,
    earlier: tuple[ResourceSet, list[Resource]],
    later: tuple[ResourceSet, list[Resource]],
    table: ActionTable,
    *,
    is_symmetrical: bool,
) -> Iterator[OrderingTemplate]:
    (first_set, firsts), (then_set, thens) = earlier, later
    first_task, then_task = first_set.action or START, then_set.action or START
    flags = flags_of(item.kind, first_task, is_symmetrical=is_symmetrical)
    if first_set.require_all is False and first_task not in (STOP, DEMOTE):
        mark = table.make_mark(f"one-or-more:{first_set.id}")
        yield from _any_of(mark, item, (firsts, first_task), (thens, then_task), flags)
        return
    for first, then in product(_end(first_set, firsts, -1), _end(then_set, thens, 0)):
        yield OrderingTemplate(first, first_task, then, then_task, flags, item.id)


def _between_inverse(
    item: Ordering,
    earlier: tuple[ResourceSet, list[Resource]],
    later: tuple[ResourceSet, list[Resource]],
    table: ActionTable,
) -> Iterator[OrderingTemplate]:
    """The way back: what was later is undone first."""
    (first_set, firsts), (then_set, thens) = earlier, later
    first_task = INVERSE.get(first_set.action or START, "")
    then_task = INVERSE.get(then_set.action or START, "")
    if not first_task or not then_task:
        return
    flags = inverse_flags(item.kind)
    if first_set.require_all is False and first_task not in (STOP, DEMOTE):
        mark = table.make_mark(f"one-or-more:{first_set.id}")
        yield from _any_of(mark, item, (firsts, first_task), (thens, then_task), flags)
        return
    for first, then in product(_end(first_set, firsts, 0), _end(then_set, thens, -1)):
        yield OrderingTemplate(first, first_task, then, then_task, flags, item.id)


def _any_of(
    mark: Action, item: Ordering, firsts: tuple[list[Resource], str], thens: tuple[list[Resource], str], flags: int
) -> Iterator[OrderingTemplate]:
    """One of the first set is enough."""
    yield from at_least(mark, 1, *firsts, item.id)
    for then in thens[0]:
        yield after_mark(mark, then, thens[1], flags, item.id)


def _end(given: ResourceSet, resources: list[Resource], index: int) -> list[Resource]:
    """Return which members stand for a set towards another one."""
    return resources[index:][:1] if given.is_sequential else resources
