"""Constraints, tags and fencing levels as policy YAML."""

from collections.abc import Sequence

from haclusterd.formats.generated_ids import LEVEL_ID, are_natural, set_base
from haclusterd.formats.policy.blocks_writer import write_rules
from haclusterd.formats.policy.dumper import Inline, InlineList, Tree, flag, given, text
from haclusterd.formats.stated import written_first_action, written_kind
from haclusterd.model import scores
from haclusterd.model.configuration import (
    Colocation,
    Constraint,
    FencingLevel,
    Location,
    Ordering,
    ResourceSet,
    TicketConstraint,
)


def write_constraint(constraint: Constraint) -> Tree:
    """Write one constraint."""
    match constraint:
        case Location():
            return _location(constraint)
        case Colocation():
            return _colocation(constraint)
        case Ordering():
            return _order(constraint)
        case TicketConstraint():
            return _ticket(constraint)


def _location(constraint: Location) -> Tree:
    return given(
        {
            "location": constraint.id,
            "resource": constraint.resource or None,
            "pattern": text(constraint.pattern) or None,
            "sets": _sets(constraint.id, constraint.sets),
            "node": constraint.node or None,
            "score": None if constraint.rules else scores.render(constraint.score),
            "rules": write_rules(constraint.id, constraint.rules) or None,
            "role": constraint.role,
            "resource-discovery": constraint.discovery,
        }
    )


def _colocation(constraint: Colocation) -> Tree:
    return given(
        {
            "colocation": constraint.id,
            "resource": constraint.dependent or None,
            "with": constraint.primary or None,
            "score": scores.render(constraint.score),
            "role": constraint.dependent_role,
            "with-role": constraint.primary_role,
            "node-attribute": text(constraint.node_attribute),
            "influence": flag(constraint.influence),
            "sets": _sets(constraint.id, constraint.sets),
            "lifetime": write_rules(constraint.id, constraint.lifetime) or None,
        }
    )


def _order(constraint: Ordering) -> Tree:
    return given(
        {
            "order": constraint.id,
            "first": constraint.first or None,
            "then": constraint.then or None,
            "kind": written_kind(constraint),
            "first-action": written_first_action(constraint),
            "then-action": constraint.then_action,
            "symmetrical": None if constraint.is_symmetrical else "false",
            "require-all": None if constraint.require_all else "false",
            "sets": _sets(constraint.id, constraint.sets),
            "lifetime": write_rules(constraint.id, constraint.lifetime) or None,
        }
    )


def _ticket(constraint: TicketConstraint) -> Tree:
    return given(
        {
            "ticket-constraint": constraint.id,
            "ticket": text(constraint.ticket),
            "resource": constraint.resource or None,
            "role": constraint.role,
            "loss-policy": constraint.loss_policy,
            "sets": _sets(constraint.id, constraint.sets),
        }
    )


def _sets(constraint: str, sets: Sequence[ResourceSet]) -> Tree:
    with_ids = not are_natural([each.id for each in sets], [set_base(constraint, n) for n in range(len(sets))])
    return [
        Inline(
            given(
                {
                    "id": each.id if with_ids else None,
                    "resources": InlineList(each.members),
                    "sequential": flag(each.is_sequential),
                    "require-all": flag(each.require_all),
                    "action": each.action,
                    "role": each.role,
                    "score": None if each.score is None else scores.render(each.score),
                    "kind": text(each.kind),
                    "ordering": each.ordering,
                }
            )
        )
        for each in sets
    ] or None


def write_levels(levels: Sequence[FencingLevel]) -> Tree:
    """Write all fencing levels."""
    with_ids = not are_natural([level.id for level in levels], [LEVEL_ID] * len(levels))
    return [
        Inline(
            given(
                {
                    "id": level.id if with_ids else None,
                    "target": level.target or None,
                    "pattern": text(level.target_pattern) or None,
                    "attribute": level.target_attribute or None,
                    "value": text(level.target_value) if level.target_attribute else None,
                    "index": str(level.index),
                    "devices": InlineList(level.devices),
                }
            )
        )
        for level in levels
    ]
