"""What a rule may look at, where a running cluster reads a block without the scheduler.

Time alone decides rules on dates; the DC judges these, and commits what is in force (`model.dated_blocks`), so they may
guard anything. Every other rule is evaluated by the scheduler, for a node, an agent or an operation. What fences, what
`apply` and what pacers read is refused under such a rule, by name.
"""

from collections.abc import Iterable, Iterator

from haclusterd.commands.verify.judgement import Judgement
from haclusterd.model.configuration import AttributeSet, Location, Primitive, Template
from haclusterd.model.properties import property_row
from haclusterd.model.rules import (
    AttributeExpression,
    DateExpression,
    ResourceExpression,
    Rule,
    conditions_of,
    looks_at_dates_only,
)
from haclusterd.reports.codes import Code
from haclusterd.scheduler.unpack.fence_executors import meant_devices

PLANNED_PROPERTIES = frozenset(
    {
        "maintenance-mode", "stop-all-resources", "stop-removed-resources",
        "cancel-removed-actions", "placement-strategy", "cluster-name",
    }
)  # fmt: skip
"""The properties that only plans depend on, or that everybody reads with their rules."""

UNPLANNED_META = frozenset({"promotable", "promoted-max", "clone-max", "globally-unique", "master-max", "provides"})
"""Meta-attributes that are read without a plan: how many copies there may be, and who lets nodes in."""

_DATES_ONLY = "a rule that looks at dates only"
_OTHER_RULE = "a rule that looks at more than dates"
_Path = tuple[str, ...]


def check_ruled(judgement: Judgement) -> None:
    """Judge blocks with rules, and rules on the nodes from which a device may be used."""
    configuration = judgement.configuration
    for name, rule in _ruled(configuration.properties):
        row = property_row(name)
        if row is not None:
            _check(judgement, ("properties", name), name, rule, is_unplanned=row.name not in PLANNED_PROPERTIES)
    for name, rule in _ruled(configuration.resource_defaults):
        is_unplanned = name in UNPLANNED_META or (name == "target-role" and _may_mean_devices(rule))
        _check(judgement, ("resource_defaults", name), f"the default {name}", rule, is_unplanned=is_unplanned)
    for owner in (*configuration.resources.values(), *configuration.templates.values()):
        kind = "resource" if owner.id in configuration.resources else "template"
        is_device = isinstance(owner, Primitive | Template) and owner.agent.standard == "stonith"
        for name, rule in _ruled(owner.meta):
            is_unplanned = name in UNPLANNED_META or (is_device and name == "target-role")
            where = f"{owner.id}: {name}"
            _check(judgement, (kind, owner.id, "meta", name), where, rule, is_unplanned=is_unplanned)
        for name, rule in _ruled(owner.parameters) if is_device else ():
            if not looks_at_dates_only(rule):
                instead = f"{_DATES_ONLY}, or two devices, each with a location of its own"
                where = f"{owner.id}: a fence device's {name}"
                _refuse(judgement, (kind, owner.id, "params", name), f"{where} under {_OTHER_RULE}", instead)
    _check_places_of_devices(judgement)


def _check(judgement: Judgement, path: _Path, where: str, rule: Rule, *, is_unplanned: bool) -> None:
    """Judge one name under a rule: of what is read without a plan, and of what only plans depend on."""
    if looks_at_dates_only(rule):
        return
    if is_unplanned:
        _refuse(judgement, path, f"{where} under {_OTHER_RULE}", _DATES_ONLY)
    elif any(isinstance(each, AttributeExpression) for each in conditions_of(rule)):
        problem = "it compares attributes of nodes, and is evaluated for no node: they count as not defined"
        judgement.note(Code.RULE_WITHOUT_EFFECT, path, remedy=f"write {_DATES_ONLY}", where=where, problem=problem)


def _check_places_of_devices(judgement: Judgement) -> None:
    for location in judgement.configuration.constraints.values():
        if isinstance(location, Location) and any(map(_has_date, location.rules)):
            for device in meant_devices(judgement.configuration, location):
                _refuse(judgement, ("constraint", location.id), f"a date in the location {location.id} of {device}",
                        "a location without dates: who may fence must not depend on a clock")  # fmt: skip


def _has_date(rule: Rule) -> bool:
    return any(isinstance(each, DateExpression) for each in conditions_of(rule))


def _may_mean_devices(rule: Rule) -> bool:
    """Tell whether a rule looks at agents, those of fence devices among them."""
    named = [each.standard for each in conditions_of(rule) if isinstance(each, ResourceExpression)]
    return any(standard in (None, "stonith") for standard in named)


def _ruled(blocks: Iterable[AttributeSet]) -> Iterator[tuple[str, Rule]]:
    return ((name, block.rule) for block in blocks if block.rule is not None for name, _ in block.pairs)


def _refuse(judgement: Judgement, path: _Path, construct: str, instead: str) -> None:
    judgement.note(Code.NOT_YET, path, remedy=f"write {instead}", construct=construct)
