"""One value of what is configured: `set ID.NAME VALUE`, `set ID.OPERATION[.INTERVAL].NAME VALUE`, and `unset`.

A name stands for the parameter or meta-attribute that has it; one that is new is a meta-attribute when it is known as
one, and else a parameter. What is no attribute of an operation is a parameter of it. What is taken away has its default
again; a cluster property needs no id.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from haclusterd.commands.attribute_sets import with_pair, with_value, without
from haclusterd.model import durations
from haclusterd.model.configuration import (
    AttributeSet,
    Bundle,
    Clone,
    Configuration,
    Group,
    Operation,
    Primitive,
    Template,
)
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.operations import read_role
from haclusterd.model.properties import meta_row, read_boolean
from haclusterd.model.records import fields, replace
from haclusterd.model.words import ATTRIBUTE_NAME
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import SHOW_ALL, did_you_mean

_Owner = TypeVar("_Owner", bound=Primitive | Group | Clone | Bundle | Template)
_SECTIONS = ("properties", "resource_defaults", "operation_defaults")
_SECTION_WORDS = ("meta", "params", "utilization", "attributes")

_OPERATION_FIELDS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "interval": ("interval_ms", durations.parse),
    "timeout": ("timeout_ms", durations.parse),
    "start-delay": ("start_delay_ms", durations.parse),
    "role": ("role", read_role),
    "on-fail": ("on_fail", str),
    "enabled": ("is_enabled", read_boolean),
    "requires": ("requires", str),
    "interval-origin": ("interval_origin", str),
    "record-pending": ("record_pending", read_boolean),
}


def set_value(configuration: Configuration, words: Sequence[str]) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Return the configuration with one value changed, not to be used when there are errors."""
    if len(words) != 2:
        return configuration, (report(Code.USAGE, problem="set needs a path and a value: set ID.NAME VALUE"),)
    path, value = words
    found = _owner(configuration, path)
    if found is None:
        known = [*configuration.resources, *configuration.templates, *configuration.nodes]
        remedy = did_you_mean(path.partition(".")[0], known, SHOW_ALL)
        return configuration, (report(Code.UNKNOWN_OBJECT, id=repr(path.partition(".")[0]), remedy=remedy),)
    rest = path[len(found) + 1 :].split(".")
    if not all(map(ATTRIBUTE_NAME.match, rest)) or len(rest) > 3:
        return configuration, (report(Code.USAGE, problem=f"{path} is not ID.NAME or ID.OPERATION[.INTERVAL].NAME"),)
    try:
        return _changed(configuration, found, rest, value), ()
    except ValueError as error:
        return configuration, (report(Code.BAD_VALUE, name=path, problem=error),)


def unset_value(configuration: Configuration, words: Sequence[str]) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Return the configuration without one value, not to be used when there are errors."""
    if len(words) != 1:
        problem = "unset needs the path of a value: unset ID.NAME, or the name of a property"
        return configuration, (report(Code.USAGE, problem=problem),)
    path = words[0]
    owner = _owner(configuration, path)
    new = _without_property(configuration, path) if owner is None else None
    if owner is not None:
        rest = path[len(owner) + 1 :].split(".")
        try:
            new = _unset(configuration, owner, rest)
        except ValueError as error:
            return configuration, (report(Code.BAD_VALUE, name=path, problem=error),)
    if new is None or new == configuration:
        names = [name for block in configuration.properties for name, _ in block.pairs]
        known = [*names, *configuration.resources, *configuration.templates, *configuration.nodes]
        remedy = did_you_mean(path, known, SHOW_ALL)
        return configuration, (report(Code.UNKNOWN_OBJECT, id=repr(path), remedy=remedy),)
    return new, ()


def _without_property(configuration: Configuration, name: str) -> Configuration:
    return replace(configuration, properties=without(configuration.properties, name))


def _unset(configuration: Configuration, owner: str, rest: list[str]) -> Configuration:
    resource, template = configuration.resources.get(ResourceId(owner)), configuration.templates.get(ResourceId(owner))
    if resource is not None:
        return replace(configuration, resources={**configuration.resources, resource.id: _less(resource, rest)})
    if template is not None:
        return replace(configuration, templates={**configuration.templates, template.id: _less(template, rest)})
    if len(rest) > 1:
        raise ValueError("only primitives have operations")
    node = configuration.nodes.get(NodeName(owner))
    if node is not None:
        left = replace(
            node, attributes=without(node.attributes, rest[0]), utilization=without(node.utilization, rest[0])
        )
        return replace(configuration, nodes={**configuration.nodes, node.name: left})
    changed: dict[str, Any] = {}
    for section in _SECTIONS:
        blocks: tuple[AttributeSet, ...] = getattr(configuration, section)
        kept = [without((block,), rest[0]) if block.id == owner else (block,) for block in blocks]
        changed[section] = tuple(chain.from_iterable(kept))
    return replace(configuration, **changed)


def _less(owner: _Owner, rest: list[str]) -> _Owner:
    """Return a resource without a value."""
    if len(rest) == 1:
        left = replace(owner, parameters=without(owner.parameters, rest[0]), meta=without(owner.meta, rest[0]))
        if isinstance(left, Primitive | Template):
            left = replace(left, utilization=without(left.utilization, rest[0]))
        return left
    if not isinstance(owner, Primitive | Template):
        raise ValueError("only primitives have operations")
    chosen = _one_operation(owner.operations, rest)
    operations = (_plain(each, rest[-1]) if each is chosen else each for each in owner.operations)
    return replace(owner, operations=tuple(operations))


def _plain(operation: Operation, name: str) -> Operation:
    """Return an operation in which a setting has its default, or without a parameter."""
    known = _OPERATION_FIELDS.get(name)
    if known is None:
        left = without(operation.parameters, name), without(operation.meta, name)
        return replace(operation, parameters=left[0], meta=left[1])
    if name == "interval":
        raise ValueError("an operation without its interval is another one: delete it with crm configure edit")
    usual: dict[str, Any] = {field.name: field.default for field in fields(Operation) if field.name == known[0]}
    spelled = tuple(each for each in operation.spelled if each[0] != name)
    return replace(operation, spelled=spelled, **usual)


def _owner(configuration: Configuration, path: str) -> str | None:
    """Return the longest id that the path begins with: ids may hold dots."""
    sets = [block.id for name in _SECTIONS for block in getattr(configuration, name)]
    known = [*configuration.resources, *configuration.templates, *configuration.nodes, *sets]
    return max((id_ for id_ in known if path.startswith(f"{id_}.")), key=len, default=None)


def _changed(configuration: Configuration, owner: str, rest: list[str], value: str) -> Configuration:
    resource, template = configuration.resources.get(ResourceId(owner)), configuration.templates.get(ResourceId(owner))
    if resource is not None:
        changed = _with_value(resource, rest, value)
        return replace(configuration, resources={**configuration.resources, resource.id: changed})
    if template is not None:
        made = _with_value(template, rest, value)
        return replace(configuration, templates={**configuration.templates, template.id: made})
    if len(rest) > 1:
        raise ValueError("only primitives have operations")
    node = configuration.nodes.get(NodeName(owner))
    if node is not None:
        sets = with_value(node.attributes, owner=owner, section="attributes", name=rest[0], value=value)
        return replace(configuration, nodes={**configuration.nodes, node.name: replace(node, attributes=sets)})
    properties, resource_defaults, operation_defaults = (
        _in_section(configuration, section, owner, rest[0], value) for section in _SECTIONS
    )
    return replace(
        configuration,
        properties=properties,
        resource_defaults=resource_defaults,
        operation_defaults=operation_defaults,
    )


def _in_section(
    configuration: Configuration, section: str, block_id: str, name: str, value: str
) -> tuple[AttributeSet, ...]:
    blocks: tuple[AttributeSet, ...] = getattr(configuration, section)
    return tuple(with_pair(block, name, value) if block.id == block_id else block for block in blocks)


def _with_value(owner: _Owner, rest: list[str], value: str) -> _Owner:
    if len(rest) > 1:
        if not isinstance(owner, Primitive | Template):
            raise ValueError("only primitives have operations")
        return replace(owner, operations=_operations(owner.operations, rest, value))
    name = rest[0]
    is_parameter = any(block.get(name) is not None for block in owner.parameters)
    is_meta = any(block.get(name) is not None for block in owner.meta) or meta_row(name) is not None
    if is_meta and not is_parameter:
        return replace(owner, meta=with_value(owner.meta, owner=owner.id, section="meta", name=name, value=value))
    parameters = with_value(owner.parameters, owner=owner.id, section="params", name=name, value=value)
    return replace(owner, parameters=parameters)


def _operations(operations: tuple[Operation, ...], rest: list[str], value: str) -> tuple[Operation, ...]:
    chosen = _one_operation(operations, rest)
    return tuple(_with(each, rest[-1], value) if each is chosen else each for each in operations)


def _one_operation(operations: tuple[Operation, ...], rest: list[str]) -> Operation:
    """Return the operation that a path names; raises ValueError when there is none, or more than one."""
    action = rest[0]
    if action in _SECTION_WORDS:
        raise ValueError(f"the word {action} is left out: ID.{rest[-1]}")
    interval_ms = durations.parse(rest[1]) if len(rest) == 3 else None
    chosen = [
        operation
        for operation in operations
        if operation.name == action and interval_ms in (None, operation.interval_ms)
    ]
    if len(chosen) != 1:
        which = f"{action} {rest[1]}" if len(rest) == 3 else action
        problem = f"several operations are {which}: add .INTERVAL" if chosen else f"there is no operation {which}"
        raise ValueError(problem)
    return chosen[0]


def _with(operation: Operation, name: str, value: str) -> Operation:
    known = _OPERATION_FIELDS.get(name)
    if known is None:
        owner, blocks = operation.id, operation.parameters
        return replace(operation, parameters=with_value(blocks, owner=owner, section="params", name=name, value=value))
    field, read = known
    changes: dict[str, Any] = {field: read(value)}
    return replace(operation, **changes)
