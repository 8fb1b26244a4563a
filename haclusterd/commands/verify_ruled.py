"""What may not stand under a rule in a running cluster: what is decided without the scheduler.

The scheduler judges every rule. Whoever fences, elects, counts votes or applies the log cannot: a rule may look at the
time, and replicas apply the log at different times. What those read is refused under a rule, by name.
"""

from collections.abc import Iterator

from haclusterd.commands.verify_judgement import Judgement
from haclusterd.model.configuration import AttributeSet, Location, Primitive, Template
from haclusterd.model.properties import property_row
from haclusterd.model.rules import DateExpression, Rule
from haclusterd.reports.codes import Code
from haclusterd.scheduler.fence_executors import meant_devices

PLANNED_PROPERTIES = frozenset(
    {
        "maintenance-mode", "stop-all-resources", "stop-removed-resources",
        "cancel-removed-actions", "placement-strategy", "cluster-name",
    }
)  # fmt: skip
"""The properties that only plans depend on, or that everybody reads with their rules."""

UNPLANNED_META = frozenset({"promotable", "promoted-max", "clone-max", "globally-unique", "master-max", "provides"})
"""Meta-attributes that are read without a plan: how many copies there may be, and who lets nodes in."""

_Path = tuple[str, ...]


def check_ruled(judgement: Judgement) -> None:
    """Judge blocks with rules, and rules on the nodes from which a device may be used."""
    configuration = judgement.configuration
    for block in configuration.properties:
        for name, _ in block.pairs if block.rule is not None else ():
            row = property_row(name)
            if row is not None and row.name not in PLANNED_PROPERTIES:
                _refuse(judgement, ("properties", name), f"{name} under a rule", f"{name} without a rule")
    for name in _ruled(configuration.resource_defaults):
        if name in UNPLANNED_META:
            _refuse(judgement, ("resource_defaults", name), f"the default {name} under a rule", "it without a rule")
    for owner in (*configuration.resources.values(), *configuration.templates.values()):
        kind = "resource" if owner.id in configuration.resources else "template"
        is_device = isinstance(owner, Primitive | Template) and owner.agent.standard == "stonith"
        for name in _ruled(owner.meta):
            if name in UNPLANNED_META or (is_device and name == "target-role"):
                _refuse(judgement, (kind, owner.id, "meta", name), f"{owner.id}: {name} under a rule",
                        f"{name} without a rule")  # fmt: skip
        for name in _ruled(owner.parameters) if is_device else ():
            _refuse(judgement, (kind, owner.id, "params", name), f"{owner.id}: a fence device's {name} under a rule",
                    "two devices, each with a location of its own")  # fmt: skip
    _check_places_of_devices(judgement)


def _check_places_of_devices(judgement: Judgement) -> None:
    for location in judgement.configuration.constraints.values():
        if isinstance(location, Location) and any(map(_has_date, location.rules)):
            for device in meant_devices(judgement.configuration, location):
                _refuse(judgement, ("constraint", location.id), f"a date in the location {location.id} of {device}",
                        "a location without dates: who may fence must not depend on a clock")  # fmt: skip


def _has_date(rule: Rule) -> bool:
    return any(
        isinstance(each, DateExpression) or (isinstance(each, Rule) and _has_date(each)) for each in rule.conditions
    )


def _ruled(blocks: tuple[AttributeSet, ...]) -> Iterator[str]:
    return (name for block in blocks if block.rule is not None for name, _ in block.pairs)


def _refuse(judgement: Judgement, path: _Path, construct: str, instead: str) -> None:
    judgement.note(Code.NOT_YET, path, remedy=f"write {instead}", construct=construct)
