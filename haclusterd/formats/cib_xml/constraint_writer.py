"""Constraints as CIB XML."""

from collections.abc import Iterator

from haclusterd.formats.cib_xml.elements import BlockWriter, element, flag
from haclusterd.formats.stated import written_first_action, written_kind
from haclusterd.model import scores
from haclusterd.model.configuration import (
    Colocation,
    Constraint,
    Location,
    Ordering,
    ResourceSet,
    TicketConstraint,
)
from haclusterd.model.records import replace
from haclusterd.model.rules import Rule


def constraint_lines(constraint: Constraint, blocks: BlockWriter) -> Iterator[str]:
    """Yield one constraint."""
    match constraint:
        case Location():
            return _location(constraint, blocks)
        case Colocation():
            return _colocation(constraint, blocks)
        case Ordering():
            return _ordering(constraint, blocks)
        case TicketConstraint():
            return _ticket(constraint, blocks)


def _location(location: Location, blocks: BlockWriter) -> Iterator[str]:
    attributes = {
        "id": location.id,
        "rsc": location.resource or None,
        "rsc-pattern": location.pattern or None,
        "role": location.role,
        "node": None if location.rules else location.node,
        "score": scores.render(location.score) if location.score or not location.rules else None,
        "resource-discovery": location.discovery,
    }
    inside = [*_sets(location.sets, blocks)]
    for rule in location.rules:
        inside += blocks.rule(rule)
    return element("rsc_location", attributes, inside)


def _colocation(colocation: Colocation, blocks: BlockWriter) -> Iterator[str]:
    attributes = {
        "id": colocation.id,
        "rsc": colocation.dependent or None,
        "with-rsc": colocation.primary or None,
        "score": scores.render(colocation.score),
        "rsc-role": colocation.dependent_role,
        "with-rsc-role": colocation.primary_role,
        "node-attribute": colocation.node_attribute,
        "influence": flag(colocation.influence),
    }
    inside = (*_lifetime(colocation.lifetime, blocks), *_sets(colocation.sets, blocks))
    return element("rsc_colocation", attributes, inside)


def _ordering(ordering: Ordering, blocks: BlockWriter) -> Iterator[str]:
    attributes = {
        "id": ordering.id,
        "first": ordering.first or None,
        "then": ordering.then or None,
        "first-action": written_first_action(ordering),
        "then-action": ordering.then_action,
        "kind": written_kind(ordering),
        "symmetrical": flag(ordering.is_symmetrical, default=True),
        "require-all": flag(ordering.require_all, default=True),
    }
    return element("rsc_order", attributes, (*_lifetime(ordering.lifetime, blocks), *_sets(ordering.sets, blocks)))


def _ticket(constraint: TicketConstraint, blocks: BlockWriter) -> Iterator[str]:
    attributes = {
        "id": constraint.id,
        "ticket": constraint.ticket,
        "rsc": constraint.resource or None,
        "rsc-role": constraint.role,
        "loss-policy": constraint.loss_policy,
    }
    return element("rsc_ticket", attributes, _sets(constraint.sets, blocks))


def _lifetime(rules: tuple[Rule, ...], blocks: BlockWriter) -> Iterator[str]:
    """Yield a lifetime; the schema wants a score of its rules, from which nothing follows."""
    if rules:
        inside = [line for rule in rules for line in blocks.rule(replace(rule, score=scores.INFINITY))]
        yield from element("lifetime", {}, inside)


def _sets(sets: tuple[ResourceSet, ...], blocks: BlockWriter) -> Iterator[str]:
    for each in sets:
        if blocks.is_repeated("resource_set", each.id, each):
            yield from element("resource_set", {"id-ref": each.id})
            continue
        attributes = {
            "id": each.id,
            "sequential": flag(each.is_sequential),
            "require-all": flag(each.require_all),
            "ordering": each.ordering,
            "action": each.action,
            "role": each.role,
            "score": None if each.score is None else scores.render(each.score),
            "kind": each.kind,
        }
        members = (line for member in each.members for line in element("resource_ref", {"id": member}))
        yield from element("resource_set", attributes, members)
