"""What older schemas of Pacemaker say in another way, brought to where it stands today.

Names of properties stay as they are written (`model.properties` knows the aliases); what is moved is what is in
another place today: defaults that were cluster properties, requirements that were an operation's, values and
parameters that have another name. Elements that have another name today are read by the readers of their kind.
"""

import re
from collections.abc import Mapping
from typing import TypeVar

from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.configuration import AttributeSet, Configuration, Operation, Primitive, Resource, Template
from haclusterd.model.properties import property_row
from haclusterd.model.records import replace
from haclusterd.reports.codes import Severity

Schema = tuple[int, int]

OLDEST: Schema = (1, 0)
NEWEST: Schema = (4, 0)
NEWEST_NAME = f"pacemaker-{NEWEST[0]}.{NEWEST[1]}"
_STRICT: Schema = (3, 0)
"""Since then, the names of releases before 1.0 have no meaning any more, and are ignored."""

_SCHEMA = re.compile(r"pacemaker-(\d{1,4})\.(\d{1,4})\Z")
_WITHOUT_NUMBER: Mapping[str, Schema] = {"none": NEWEST, "pacemaker-next": NEWEST}

_MOVED_TO_RESOURCE_DEFAULTS = {
    "default-resource-stickiness": "resource-stickiness",
    "default-migration-threshold": "migration-threshold",
    "is-managed-default": "is-managed",
}
_MOVED_TO_OPERATION_DEFAULTS = {"default-action-timeout": "timeout"}
_RENAMED_PROPERTIES = {
    "crmd-integration-timeout": "join-integration-timeout",
    "crmd-finalization-timeout": "join-finalization-timeout",
    "crmd-transition-delay": "transition-delay",
}
_RENAMED_VALUES = {("fencing-action", "poweroff"): "off", ("no-quorum-policy", "suicide"): "fence"}
_OLD_FENCE_PARAMETER = re.compile(r"(pcmk_[a-z]+)_cmd\Z")
_WITH_NEEDS = ("start", "promote")

_Made = TypeVar("_Made", Primitive, Template)


def schema_of(root: Element, notes: Notes) -> Schema:
    """Return which schema a CIB says that it follows; without a word it is an old one."""
    text = root.get("validate-with")
    if text is None:
        return OLDEST
    found = _SCHEMA.match(text)
    schema = (int(found[1][:9]), int(found[2][:9])) if found else _WITHOUT_NUMBER.get(text, OLDEST)
    if schema > NEWEST:
        problem = f"{text} is not known; it is read as {NEWEST_NAME}"
        notes.bad_value(root, "validate-with", problem, severity=Severity.WARNING)
    return schema


def is_known(name: str) -> bool:
    """Tell whether a schema of Pacemaker has this name."""
    found = _SCHEMA.match(name)
    return (int(found[1]), int(found[2])) <= NEWEST if found else name in _WITHOUT_NUMBER


def is_of_today(name: str | None) -> bool:
    """Tell whether what is written today is valid in the schema of this name."""
    found = _SCHEMA.match(name or "")
    return int(found[1]) >= _STRICT[0] if found else name in _WITHOUT_NUMBER


def renamed(written: str) -> str:
    """Return the name of today of a property that Pacemaker still reads under its old one."""
    return _RENAMED_PROPERTIES.get(written, written)


def name_of_today(written: str) -> str:
    """Return what a property is called today."""
    dashed = _with_dashes(written)
    return _RENAMED_PROPERTIES.get(dashed, dashed)


def successor(written: str) -> str | None:
    """Return what is written today in place of a property that Pacemaker once had; None: it never was one."""
    dashed = _with_dashes(written)
    places = {
        "rsc_defaults": _MOVED_TO_RESOURCE_DEFAULTS,
        "op_defaults": _MOVED_TO_OPERATION_DEFAULTS,
        "property": _RENAMED_PROPERTIES,
    }
    found = (f"{statement} {names[dashed]}=VALUE" for statement, names in places.items() if dashed in names)
    return next(found, None)


def upgraded(configuration: Configuration, schema: Schema) -> Configuration:
    """Bring what a schema says to where it stands today."""
    made = replace(configuration, properties=tuple(map(_with_new_values, configuration.properties)))
    if schema >= _STRICT:
        return made
    return replace(
        _with_defaults_apart(made),
        resources={key: _upgraded_resource(resource) for key, resource in made.resources.items()},
        templates={key: _upgraded_primitive(template) for key, template in made.templates.items()},
    )


def _with_new_values(block: AttributeSet) -> AttributeSet:
    """Give properties and their values the names that they have today."""
    pairs: list[tuple[str, str]] = []
    for written, value in block.pairs:
        name = renamed(written)
        row = property_row(name)
        pairs.append((name, _RENAMED_VALUES.get((row.name if row else name, value), value)))
    return replace(block, pairs=tuple(pairs))


def _with_defaults_apart(configuration: Configuration) -> Configuration:
    """Move defaults that were cluster properties, and give names with underscores their dashes."""
    resource_defaults: list[tuple[str, str]] = []
    operation_defaults: list[tuple[str, str]] = []
    properties: list[AttributeSet] = []
    for block in configuration.properties:
        kept: list[tuple[str, str]] = []
        for written, value in block.pairs:
            name = _with_dashes(written)
            if name in _MOVED_TO_RESOURCE_DEFAULTS:
                resource_defaults.append((_MOVED_TO_RESOURCE_DEFAULTS[name], value))
            elif name in _MOVED_TO_OPERATION_DEFAULTS:
                operation_defaults.append((_MOVED_TO_OPERATION_DEFAULTS[name], value))
            else:
                kept.append((name, value))
        properties.append(_with_new_values(replace(block, pairs=tuple(kept))))
    return replace(
        configuration,
        properties=tuple(properties),
        resource_defaults=_first(configuration.resource_defaults, "upgraded-rsc-defaults", resource_defaults),
        operation_defaults=_first(configuration.operation_defaults, "upgraded-op-defaults", operation_defaults),
    )


def _with_dashes(written: str) -> str:
    dashed = written.replace("_", "-")
    is_known = property_row(dashed) is not None or dashed in _MOVED_TO_RESOURCE_DEFAULTS
    return dashed if is_known or dashed in _MOVED_TO_OPERATION_DEFAULTS else written


def _first(
    blocks: tuple[AttributeSet, ...], identifier: str, pairs: list[tuple[str, str]]
) -> tuple[AttributeSet, ...]:
    """Put moved defaults first: of blocks with equal scores the last one wins, and what stood there before wins."""
    return (AttributeSet(identifier, tuple(pairs)), *blocks) if pairs else blocks


def _upgraded_resource(resource: Resource) -> Resource:
    return _upgraded_primitive(resource) if isinstance(resource, Primitive) else resource


def _upgraded_primitive(made: _Made) -> _Made:
    """Move what operations require to the resource; give parameters of fence devices their names of today."""
    required = [each.requires for each in made.operations if each.name in _WITH_NEEDS and each.requires is not None]
    if required:
        moved = _first(made.meta, f"upgraded-{made.id}-meta_attributes", [("requires", required[-1])])
        made = replace(made, meta=moved, operations=tuple(map(_without_needs, made.operations)))
    if made.agent.standard != "stonith":
        return made
    return replace(made, parameters=tuple(map(_with_new_parameters, made.parameters)))


def _without_needs(operation: Operation) -> Operation:
    return replace(operation, requires=None) if operation.name in _WITH_NEEDS else operation


def _with_new_parameters(block: AttributeSet) -> AttributeSet:
    pairs = tuple((_OLD_FENCE_PARAMETER.sub(r"\1_action", name), value) for name, value in block.pairs)
    return replace(block, pairs=pairs)
