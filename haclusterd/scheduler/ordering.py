"""Phase: which action comes before which: constraints of users, and what colocations and starts imply.

Source: Pacemaker Explained, "Specifying the Order in which Resources Should Start/Stop". A `Template` speaks of
resources and tasks; `relate_templates` turns it into relations between the actions that exist.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from haclusterd.model.configuration import Configuration, Ordering, OrderingKind
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.actions import ActionTable
from haclusterd.scheduler.entities import (
    ASYMMETRIC,
    DEMOTE,
    FIRST_IMPLIES_THEN,
    IF_REQUIRED_ON_SAME_NODE,
    INTERMEDIATE_STOP,
    ORDERED,
    PROMOTE,
    SERIALIZE,
    START,
    STOP,
    THEN_IMPLIES_FIRST,
    UNRUNNABLE_FIRST_BLOCKS,
    Inventory,
    Resource,
    Together,
)

_INVERSE = {START: STOP, STOP: START, PROMOTE: DEMOTE, DEMOTE: PROMOTE}
_BLOCKING = frozenset({START, PROMOTE, "migrate_from"})


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """One resource's task before another's."""

    first: Resource
    first_task: str
    then: Resource
    then_task: str
    flags: int
    id: str = ""


def user_templates(inventory: Inventory, configuration: Configuration) -> list[Template]:
    """Return what the ordering constraints say."""
    found: list[Template] = []
    for item in configuration.constraints.values():
        if not isinstance(item, Ordering):
            continue
        first, then = inventory.by_id.get(item.first), inventory.by_id.get(item.then)
        if first is None or then is None or first is then:
            continue
        found.extend(_templates(item, first, then))
    return found


def _templates(item: Ordering, first: Resource, then: Resource) -> Iterable[Template]:
    first_task = item.first_action if item.first_action in _INVERSE else START
    then_task = item.then_action if item.then_action in _INVERSE else first_task
    is_symmetrical = item.is_symmetrical and item.kind is not OrderingKind.SERIALIZE
    yield Template(first, first_task, then, then_task, _flags(item.kind, first_task, is_symmetrical), item.id)
    if is_symmetrical:
        inverse = ORDERED | (THEN_IMPLIES_FIRST if item.kind is OrderingKind.MANDATORY else 0)
        yield Template(then, _INVERSE[then_task], first, _INVERSE[first_task], inverse, item.id)


def _flags(kind: OrderingKind, first_task: str, is_symmetrical: bool) -> int:
    if kind is OrderingKind.OPTIONAL:
        return ORDERED
    if kind is OrderingKind.SERIALIZE:
        return SERIALIZE
    if not is_symmetrical:
        return ORDERED | ASYMMETRIC
    return ORDERED | FIRST_IMPLIES_THEN | (UNRUNNABLE_FIRST_BLOCKS if first_task in _BLOCKING else 0)


def apart_templates(colocations: list[Together]) -> list[Template]:
    """Two that must never be together: the one leaves before the other comes."""
    found: list[Template] = []
    for together in colocations:
        if together.score > -INFINITY:
            continue
        ends = (together.dependent, together.primary)
        for leaving, coming in (ends, ends[::-1]):
            found.append(Template(leaving, STOP, coming, START, IF_REQUIRED_ON_SAME_NODE, together.id))
    return found


def relate_own_actions(resource: Resource, table: ActionTable) -> None:
    """Put a primitive's own actions in order: demote, stop, start, promote."""
    if not resource.is_managed:
        return
    actions = resource.actions
    starts = actions.get((START, 0), ())
    for stop in actions.get((STOP, 0), ()):
        for start in starts:
            table.relate(stop, start, ORDERED | FIRST_IMPLIES_THEN | INTERMEDIATE_STOP)
        for demote in actions.get((DEMOTE, 0), ()):
            table.relate(demote, stop, ORDERED | THEN_IMPLIES_FIRST)
    for promote in actions.get((PROMOTE, 0), ()):
        for start in starts:
            table.relate(start, promote, UNRUNNABLE_FIRST_BLOCKS)


def relate_templates(templates: Iterable[Template], table: ActionTable) -> None:
    """Turn templates into relations; a first action that does not exist is made, so that it can be found impossible."""
    for template in templates:
        thens = template.then.actions.get((template.then_task, 0), ())
        if not thens:
            continue
        firsts = template.first.actions.get((template.first_task, 0), ())
        if not firsts:
            if _is_done(template):
                continue
            firsts = [table.make(template.first, template.first_task, None, required=False)]
        for first in firsts:
            for then in thens:
                table.relate(first, then, template.flags)


def _is_done(template: Template) -> bool:
    """Tell whether there is nothing to wait for: what has to be stopped is."""
    if template.first is template.then:
        return True
    role = template.first.original_role
    if template.first_task == STOP:
        return role in (Role.STOPPED, Role.UNKNOWN)
    return template.first_task == DEMOTE and role is not Role.PROMOTED
