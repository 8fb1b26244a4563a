"""Phase: which action comes before which, as users say and as being apart implies.

Source: Pacemaker Explained, "Specifying the Order in which Resources Should Start/Stop". An `OrderingTemplate` speaks
of resources and tasks (or of actions that exist); `order_expansion` turns it into relations between actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from haclusterd.model.configuration import Configuration, Ordering, OrderingKind
from haclusterd.model.ocf import Role
from haclusterd.model.records import dataclass
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Action, ColocationPair, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.relation_flags import (
    ASYMMETRIC,
    FIRST_IMPLIES_THEN,
    FIRST_IMPLIES_THEN_GRAPHED,
    IF_REQUIRED_ON_SAME_NODE,
    MIN_RUNNABLE,
    ORDERED,
    SERIALIZE,
    THEN_IMPLIES_FIRST,
    UNRUNNABLE_FIRST_BLOCKS,
)
from haclusterd.scheduler.model.rules import is_in_force
from haclusterd.scheduler.model.tasks import (
    DEMOTE,
    DEMOTED,
    MIGRATE_FROM,
    PROMOTE,
    PROMOTED,
    RUNNING,
    START,
    STOP,
    STOPPED,
)

INVERSE = {
    START: STOP,
    STOP: START,
    PROMOTE: DEMOTE,
    DEMOTE: PROMOTE,
    RUNNING: STOPPED,
    STOPPED: RUNNING,
    PROMOTED: DEMOTED,
    DEMOTED: PROMOTED,
}
_BLOCKING = frozenset({START, PROMOTE, MIGRATE_FROM})


@dataclass(frozen=True, slots=True, eq=False)
class OrderingTemplate:
    """One resource's task before another's; an end may be an action instead, and then its resource does not matter."""

    first: Resource | None
    first_task: str
    then: Resource | None
    then_task: str
    flags: int
    id: str = ""
    first_action: Action | None = None
    then_action: Action | None = None


def flags_of(kind: OrderingKind, first_task: str, *, is_symmetrical: bool) -> int:
    """Return what a user's ordering does in its own direction."""
    if kind is OrderingKind.OPTIONAL:
        return ORDERED
    if kind is OrderingKind.SERIALIZE:
        return SERIALIZE
    if not is_symmetrical:
        return ORDERED | ASYMMETRIC
    return ORDERED | FIRST_IMPLIES_THEN | (UNRUNNABLE_FIRST_BLOCKS if first_task in _BLOCKING else 0)


def inverse_flags(kind: OrderingKind) -> int:
    """Return what a user's symmetrical ordering does in reverse."""
    return ORDERED | (THEN_IMPLIES_FIRST if kind is OrderingKind.MANDATORY else 0)


def at_least(
    mark: Action, count: int, firsts: Iterable[Resource], task: str, identifier: str
) -> Iterator[OrderingTemplate]:
    """Let a mark stand for `count` of several resources having done a task."""
    mark.required_runnable_before = count
    mark.why = f"{count} of what comes first {'is' if count == 1 else 'are'} enough"
    for first in firsts:
        yield OrderingTemplate(
            first, task, None, "", MIN_RUNNABLE | FIRST_IMPLIES_THEN_GRAPHED, identifier, then_action=mark
        )  # fmt: skip


def after_mark(mark: Action, then: Resource, task: str, flags: int, identifier: str) -> OrderingTemplate:
    """Order a task after a mark, without which it cannot be done."""
    return OrderingTemplate(None, "", then, task, flags | UNRUNNABLE_FIRST_BLOCKS, identifier, first_action=mark)


def simple_templates(item: Ordering, first: Resource, then: Resource, table: ActionTable) -> Iterator[OrderingTemplate]:
    """Return what an ordering of two resources says."""
    if first is then:
        return
    first_task = item.first_action
    then_task = item.then_action or first_task
    is_symmetrical = item.is_symmetrical and item.kind is not OrderingKind.SERIALIZE
    flags = flags_of(item.kind, first_task, is_symmetrical=is_symmetrical)
    count = _needed_instances(item, first)
    if count:
        mark = table.make_mark(f"clone-one-or-more:{item.id}")
        yield from at_least(mark, count, first.children, first_task, item.id)
        yield after_mark(mark, then, then_task, flags, item.id)
    else:
        yield OrderingTemplate(first, first_task, then, then_task, flags, item.id)
    if is_symmetrical and first_task in INVERSE and then_task in INVERSE:
        yield OrderingTemplate(then, INVERSE[then_task], first, INVERSE[first_task], inverse_flags(item.kind), item.id)


def _needed_instances(item: Ordering, first: Resource) -> int:
    """Return how many instances of a clone are enough; 0 when it counts as a whole."""
    if first.variant is not Variant.CLONE:
        return 0
    return first.definition.clone_min or (0 if item.require_all else 1)


def apart_templates(colocations: list[ColocationPair]) -> list[OrderingTemplate]:
    """Two that must never be together: the one leaves (or loses its role) before the other comes (or gains it)."""
    found: list[OrderingTemplate] = []
    for colocation in colocations:
        if colocation.score > -INFINITY or not colocation.is_configured:
            continue
        dependent = (colocation.dependent, colocation.dependent_role)
        primary = (colocation.primary, colocation.primary_role)
        for (leaving, left_role), (coming, gained_role) in ((dependent, primary), (primary, dependent)):
            for lost in _losing(left_role):
                for gained in _gaining(gained_role):
                    found.append(
                        OrderingTemplate(leaving, lost, coming, gained, IF_REQUIRED_ON_SAME_NODE, colocation.id)
                    )
    return found


def _losing(role: Role) -> tuple[str, ...]:
    if role is Role.PROMOTED:
        return (DEMOTE,)
    return (STOP, PROMOTE) if role is Role.UNPROMOTED else (STOP,)


def _gaining(role: Role) -> tuple[str, ...]:
    if role is Role.PROMOTED:
        return (PROMOTE,)
    return (START, DEMOTE) if role is Role.UNPROMOTED else (START,)


def orderings_of(configuration: Configuration, time: EffectiveTime) -> Iterator[Ordering]:
    """Yield the ordering constraints that are in force, in document order."""
    found = (item for item in configuration.constraints.values() if isinstance(item, Ordering))
    return (item for item in found if is_in_force(item.lifetime, time))


def find_each(inventory: Inventory, names: Iterable[str]) -> list[Resource]:
    """Return the resources of these names, those that do not exist left out."""
    found = (inventory.find(name) for name in names)
    return [resource for resource in found if resource is not None]
