"""Cluster properties, meta-attributes and defaults: known names, and values that fit them.

The tables of names and types are `model/properties.py` and `model/operations.py`; nothing is listed here.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from haclusterd.commands.verify.judgement import Judgement, pairs
from haclusterd.formats.cib_xml.upgrade import successor
from haclusterd.model.configuration import MAX_INSTANCES, AttributeSet, Clone, Group, Primitive, Resource, Template
from haclusterd.model.operations import DEFAULTABLE, operation_row
from haclusterd.model.properties import (
    collective_meta,
    is_of_others,
    is_own_meta,
    meta_row,
    property_row,
)
from haclusterd.model.property_tables import (
    META_NAMES,
    NOT_IN_SCHEMA,
    PACEMAKERS_PROPERTIES,
    PROPERTY_NAMES,
    WATCHDOG_TIMEOUTS,
)
from haclusterd.model.words import HIDDEN, bad_character
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.suggestions import did_you_mean, nearest, with_all_parts

_PROPERTIES, _DEFAULTS, _OPERATION_DEFAULTS = "property", "rsc_defaults", "op_defaults"
_SECTIONS: Mapping[str, Collection[str]] = {
    _DEFAULTS: META_NAMES, _OPERATION_DEFAULTS: tuple(DEFAULTABLE), _PROPERTIES: PROPERTY_NAMES,
}  # fmt: skip
"""The names of settings of the whole cluster, by the statement that sets them."""
_DIGITS = 10
"""A number with more is refused by its table."""
_CAPACITY = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")


def check_values(judgement: Judgement) -> None:
    """Judge every name and value that the cluster itself reads."""
    configuration = judgement.configuration
    for block in configuration.properties:
        _check_aliases(judgement, block)
        for name, value in block.pairs:
            _check_property(judgement, block.id, name, value)
    for name, value in pairs(configuration.resource_defaults):
        _check_meta(judgement, name, value, "resource defaults", ("resource_defaults", name))
    for name, value in pairs(configuration.operation_defaults):
        _check_operation_default(judgement, name, value)
    for resource in configuration.resources.values():
        _check_blocks(judgement, resource, "resource")
        if isinstance(resource, Clone):
            _check_instances(judgement, resource)
    for template in configuration.templates.values():
        _check_blocks(judgement, template, "template")
    _check_nodes(judgement)


def _check_nodes(judgement: Judgement) -> None:
    for node in judgement.configuration.nodes.values():
        for name, value in pairs(node.attributes):
            own = ("node", node.name, "attributes", name)
            _check_characters(judgement, value, f"{node.name}: {name}", own)
            if name == "terminate":
                why = f"set until reboot it has the node fenced, as does: crm node fence {node.name}"
                judgement.note(Code.WITHOUT_EFFECT, own, what=f"{node.name}: the attribute {name}", why=why)
    for where, blocks, path in _utilizations(judgement):
        for name, value in pairs(blocks):
            _check_capacity(judgement, value, f"{where}: {name}", (*path, name))


def _check_instances(judgement: Judgement, clone: Clone) -> None:
    """Refuse more instances of a group than can be planned in time: its members count as well."""
    group = judgement.configuration.resources.get(clone.child)
    number = collective_meta(judgement.configuration, clone).get("clone-max", "")
    if not isinstance(group, Group) or not (number.isascii() and number.isdecimal() and len(number) < _DIGITS):
        return
    count, members = int(number), len(group.members)
    if count > len(judgement.nodes()) and count * members > MAX_INSTANCES:
        problem = f"{count} instances of {members} members are more than {MAX_INSTANCES} resources"
        remedy = "leave clone-max out for one instance on each node"
        path = ("resource", clone.id, "meta", "clone-max")
        judgement.note(Code.BAD_VALUE, path, remedy=remedy, name=f"{clone.id}: clone-max", problem=problem)


def _check_blocks(judgement: Judgement, owner: Resource | Template, kind: str) -> None:
    for name, value in pairs(owner.meta):
        _check_meta(judgement, name, value, owner.id, (kind, owner.id, "meta", name))
    for name, value in pairs(owner.parameters):
        _check_characters(judgement, value, f"{owner.id}: {name}", (kind, owner.id, "params", name))
    for index, operation in enumerate(owner.operations if isinstance(owner, Primitive | Template) else ()):
        for name, value in pairs(operation.parameters):
            own = (kind, owner.id, "operation", str(index), "params", name)
            _check_characters(judgement, value, f"{owner.id}: {operation.name}: {name}", own)


def _utilizations(judgement: Judgement) -> Iterator[tuple[str, tuple[AttributeSet, ...], tuple[str, ...]]]:
    configuration = judgement.configuration
    for node in configuration.nodes.values():
        yield node.name, node.utilization, ("node", node.name, "utilization")
    for template in configuration.templates.values():
        yield template.id, template.utilization, ("template", template.id, "utilization")
    for primitive in configuration.primitives():
        yield primitive.id, primitive.utilization, ("resource", primitive.id, "utilization")


def _check_capacity(judgement: Judgement, value: str, name: str, path: tuple[str, ...]) -> None:
    """Capacities are whole numbers (Pacemaker Explained, "Utilization and Placement Strategy")."""
    if not _CAPACITY.fullmatch(value):
        judgement.note(Code.BAD_VALUE, path, name=name, problem=f"{value!r} is not a whole number")


def _check_aliases(judgement: Judgement, block: AttributeSet) -> None:
    """Two names of one property in one block: only one of them could count."""
    seen: dict[str, str] = {}
    for name, _ in block.pairs:
        row = property_row(name)
        if row is not None and seen.setdefault(row.name, name) != name:
            remedy = f"remove {seen[row.name]}: it is the same property"
            judgement.note(Code.DUPLICATE_NAME, ("properties", name), remedy=remedy, name=row.name)


def _check_property(judgement: Judgement, block: str, name: str, value: str) -> None:
    row, path = property_row(name), ("properties", name)
    if judgement.is_foreign and (name in PACEMAKERS_PROPERTIES or name in WATCHDOG_TIMEOUTS):
        return
    if row is None and name not in NOT_IN_SCHEMA and is_of_others(block, name):
        why = "the cluster does not read it, agents may"
        judgement.note(Code.KEPT, path, what=f"the property {name}", why=why)
        return
    if row is None:
        former = successor(name)
        remedy = f"write today: {former}" if former is not None else _meant(
            name, PROPERTY_NAMES, _PROPERTIES, "leave it out; all are shown by: crm configure get_property"
        )
        if name in NOT_IN_SCHEMA:
            judgement.note(Code.UNKNOWN_PROPERTY, path, remedy=remedy, name=name)
        else:
            judgement.unknown(Code.UNKNOWN_PROPERTY, path, remedy=remedy, name=name)
        return
    judgement.check_value(row, value, name, path)


def _check_meta(judgement: Judgement, name: str, value: str, where: str, path: tuple[str, ...]) -> None:
    row = meta_row(name)
    is_default = path[0] == "resource_defaults"
    if row is None and is_own_meta(name):
        why = f"agents get it as OCF_RESKEY_CRM_meta_{name.replace('-', '_')}"
        meant = (_in_another_place(name, _DEFAULTS) if is_default else "") or did_you_mean(name, META_NAMES, "")
        severity = Severity.WARNING if meant else None
        what = f"{where}: the meta-attribute {name}"
        judgement.note(Code.KEPT, path, remedy=meant or None, severity=severity, what=what, why=why)
        if not judgement.is_foreign:
            _check_characters(judgement, value, f"{where}: {name}", path)
        return
    if row is None:
        remedy = _meant(name, META_NAMES, _DEFAULTS) if is_default else did_you_mean(name, META_NAMES)
        judgement.unknown(Code.UNKNOWN_META, path, remedy=remedy, where=where, name=name)
        return
    judgement.check_value(row, value, f"{where}: {name}", path)


def _check_operation_default(judgement: Judgement, name: str, value: str) -> None:
    path, where = ("operation_defaults", name), "operation defaults"
    row = operation_row(name) if name in DEFAULTABLE else None
    if row is None:
        remedy = _meant(name, DEFAULTABLE, _OPERATION_DEFAULTS)
        judgement.unknown(Code.UNKNOWN_OPERATION_ATTRIBUTE, path, remedy=remedy, where=where, name=name)
        return
    judgement.check_value(row, value, f"{where}: {name}", path)


def _meant(name: str, known: Iterable[str], section: str, otherwise: str = "remove it") -> str:
    """Write the remedy for an unknown name of a section.

    It is a part of one of its names, or belongs to another section, or is like a name of its own or another section.
    """
    names = tuple(known)
    place = "" if with_all_parts(name, names) else _in_another_place(name, section)
    return place or did_you_mean(name, names, _near_in_another_place(name, section, otherwise))


def _in_another_place(name: str, section: str) -> str:
    """Return where a name belongs that is none of a section's; empty: nowhere."""
    places = (f"write: crm configure {other} {name}=VALUE" for other, names in _SECTIONS.items() if name in names)
    return "" if name in _SECTIONS[section] else next(places, "")


def _near_in_another_place(name: str, section: str, otherwise: str) -> str:
    for other, names in _SECTIONS.items():
        guess = nearest(name, names) if other != section else None
        if guess is not None:
            return f"did you mean: crm configure {other} {guess}=VALUE?"
    return otherwise


def _check_characters(judgement: Judgement, value: str, name: str, path: tuple[str, ...]) -> None:
    if value == HIDDEN:
        judgement.note(Code.SECRET_HIDDEN, path, name=name)
    character = bad_character(value)
    if character:
        judgement.note(Code.BAD_CHARACTER, path, name=name, character=character)
