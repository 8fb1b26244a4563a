"""Phase: the order of a clone's instances towards the clone's own marks, and among themselves if it is `ordered`.

Source: Pacemaker Explained, "Clones" and "Promotable clones".
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from haclusterd.scheduler.actions.ordering import OrderingTemplate
from haclusterd.scheduler.model.entities import Resource
from haclusterd.scheduler.model.relation_flags import (
    FIRST_IMPLIES_THEN_GRAPHED,
    ORDERED,
    THEN_IMPLIES_FIRST_GRAPHED,
    UNRUNNABLE_FIRST_BLOCKS,
)
from haclusterd.scheduler.model.tasks import DEMOTE, DEMOTED, PROMOTE, PROMOTED, RUNNING, START, STOP, STOPPED

_BETWEEN_ROLES = (
    (STOPPED, START),
    (STOPPED, PROMOTE),
    (DEMOTED, STOP),
    (DEMOTED, START),
    (DEMOTED, PROMOTE),
    (RUNNING, PROMOTE),
    (DEMOTE, DEMOTED),
)


def clone_templates(clone: Resource) -> Iterator[OrderingTemplate]:
    """Yield the orderings of one clone."""
    yield OrderingTemplate(clone, STOPPED, clone, START, ORDERED)
    yield OrderingTemplate(clone, START, clone, RUNNING, UNRUNNABLE_FIRST_BLOCKS)
    yield OrderingTemplate(clone, STOP, clone, STOPPED, UNRUNNABLE_FIRST_BLOCKS)
    if clone.definition.is_promotable:
        yield OrderingTemplate(clone, DEMOTED, clone, STOP, ORDERED)
        yield OrderingTemplate(clone, RUNNING, clone, PROMOTE, UNRUNNABLE_FIRST_BLOCKS)
    instances = sorted(clone.children, key=_number) if clone.definition.is_ordered else clone.children
    for instance in instances:
        yield OrderingTemplate(clone, START, instance, START, UNRUNNABLE_FIRST_BLOCKS | THEN_IMPLIES_FIRST_GRAPHED)
        yield OrderingTemplate(instance, START, clone, RUNNING, FIRST_IMPLIES_THEN_GRAPHED)
        yield OrderingTemplate(clone, STOP, instance, STOP, THEN_IMPLIES_FIRST_GRAPHED)
        yield OrderingTemplate(instance, STOP, clone, STOPPED, FIRST_IMPLIES_THEN_GRAPHED)
    if clone.definition.is_ordered:
        for earlier, later in combinations(instances, 2):
            yield OrderingTemplate(earlier, START, later, START, ORDERED)
            yield OrderingTemplate(later, STOP, earlier, STOP, ORDERED)
    if clone.definition.is_promotable:
        yield from promotion_templates(clone, clone.children)


def promotion_templates(owner: Resource, instances: Sequence[Resource]) -> Iterator[OrderingTemplate]:
    """Yield what promotion adds, to a clone or to the bundle around one."""
    for first, then in _BETWEEN_ROLES:
        yield OrderingTemplate(owner, first, owner, then, ORDERED)
    for instance in instances:
        yield OrderingTemplate(instance, DEMOTE, instance, PROMOTE, ORDERED)
        yield OrderingTemplate(owner, PROMOTE, instance, PROMOTE, ORDERED)
        yield OrderingTemplate(instance, PROMOTE, owner, PROMOTED, ORDERED)
        yield OrderingTemplate(owner, DEMOTE, instance, DEMOTE, THEN_IMPLIES_FIRST_GRAPHED)
        yield OrderingTemplate(instance, DEMOTE, owner, DEMOTED, FIRST_IMPLIES_THEN_GRAPHED)
    if owner.definition.is_ordered:
        for earlier, later in pairwise(sorted(instances, key=_number)):
            yield OrderingTemplate(earlier, PROMOTE, later, PROMOTE, ORDERED)
            yield OrderingTemplate(later, DEMOTE, earlier, DEMOTE, ORDERED)


def _number(instance: Resource) -> int:
    return instance.number or 0
