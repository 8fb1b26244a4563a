"""Edits of a configuration: what turns one version into another, and the turning.

Invariant: `apply_edits(old, difference(old, new)) == new`, the order of the mappings included, because the scheduler's
results depend on it. `apply_edits` is total: it is part of the fold over the log, where nothing may be refused in the
middle. An edit that does not fit (deleting what is not there, arranging unknown ids, an unknown kind or section)
changes nothing of what it names; whether edits make sense is judged before they are proposed, by verification of the
whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from haclusterd.cib.commands import (
    Arrange,
    Delete,
    Edit,
    PutConstraint,
    PutFencingLevels,
    PutNode,
    PutResource,
    PutSets,
    PutTag,
    PutTemplate,
)
from haclusterd.model.configuration import AttributeSet, Configuration

_Key = TypeVar("_Key", bound=str)
_Value = TypeVar("_Value")


def difference(old: Configuration, new: Configuration) -> tuple[Edit, ...]:
    """Return the fewest edits per object that make `new` of `old`; none when they are equal in content and order."""
    edits: list[Edit] = []
    edits += _deletions("node", old.nodes, new.nodes)
    edits += [PutNode(entry) for entry in _changed(old.nodes, new.nodes)]
    edits += _arrangement("node", old.nodes, new.nodes)
    edits += _deletions("template", old.templates, new.templates)
    edits += [PutTemplate(template) for template in _changed(old.templates, new.templates)]
    edits += _arrangement("template", old.templates, new.templates)
    edits += _deletions("resource", old.resources, new.resources)
    edits += [PutResource(resource) for resource in _changed(old.resources, new.resources)]
    edits += _arrangement("resource", old.resources, new.resources)
    edits += _deletions("constraint", old.constraints, new.constraints)
    edits += [PutConstraint(constraint) for constraint in _changed(old.constraints, new.constraints)]
    edits += _arrangement("constraint", old.constraints, new.constraints)
    edits += _deletions("tag", old.tags, new.tags)
    edits += [PutTag(tag) for tag in _changed(old.tags, new.tags)]
    edits += _arrangement("tag", old.tags, new.tags)
    if new.fencing_levels != old.fencing_levels:
        edits.append(PutFencingLevels(new.fencing_levels))
    for section, sets in _sections(new).items():
        if sets != _sections(old)[section]:
            edits.append(PutSets(section, sets))
    return tuple(edits)


def _sections(configuration: Configuration) -> dict[str, tuple[AttributeSet, ...]]:
    return {
        "properties": configuration.properties,
        "resource_defaults": configuration.resource_defaults,
        "operation_defaults": configuration.operation_defaults,
    }


def _deletions(kind: str, old: Mapping[_Key, object], new: Mapping[_Key, object]) -> list[Delete]:
    return [Delete(kind, key) for key in old if key not in new]


def _changed(old: Mapping[_Key, _Value], new: Mapping[_Key, _Value]) -> list[_Value]:
    return [value for key, value in new.items() if key not in old or old[key] != value]


def _arrangement(kind: str, old: Mapping[_Key, object], new: Mapping[_Key, object]) -> list[Arrange]:
    reached = [key for key in old if key in new] + [key for key in new if key not in old]
    return [] if reached == list(new) else [Arrange(kind, tuple(new))]


def apply_edits(configuration: Configuration, edits: Iterable[Edit]) -> Configuration:
    """Return the configuration with the edits made one after the other; the given one is not changed."""
    for edit in edits:
        configuration = _apply_one(configuration, edit)
    return configuration


def _apply_one(configuration: Configuration, edit: Edit) -> Configuration:
    match edit:
        case PutFencingLevels(levels):
            return replace(configuration, fencing_levels=levels)
        case PutSets(section, sets):
            return _put_sets(configuration, section, sets)
        case Delete(kind, key):
            return _delete(configuration, kind, key)
        case Arrange(kind, keys):
            return _arrange(configuration, kind, keys)
        case _:
            return _put(configuration, edit)


def _put(
    configuration: Configuration, edit: PutNode | PutTemplate | PutResource | PutConstraint | PutTag
) -> Configuration:
    match edit:
        case PutNode(entry):
            return replace(configuration, nodes={**configuration.nodes, entry.name: entry})
        case PutTemplate(template):
            return replace(configuration, templates={**configuration.templates, template.id: template})
        case PutResource(resource):
            return replace(configuration, resources={**configuration.resources, resource.id: resource})
        case PutConstraint(constraint):
            return replace(configuration, constraints={**configuration.constraints, constraint.id: constraint})
        case PutTag(tag):
            return replace(configuration, tags={**configuration.tags, tag.id: tag})


def _put_sets(configuration: Configuration, section: str, sets: tuple[AttributeSet, ...]) -> Configuration:
    match section:
        case "properties":
            return replace(configuration, properties=sets)
        case "resource_defaults":
            return replace(configuration, resource_defaults=sets)
        case "operation_defaults":
            return replace(configuration, operation_defaults=sets)
        case _:
            return configuration


def _delete(configuration: Configuration, kind: str, key: str) -> Configuration:
    match kind:
        case "node":
            return replace(configuration, nodes=_without(configuration.nodes, key))
        case "resource":
            return replace(configuration, resources=_without(configuration.resources, key))
        case "constraint":
            return replace(configuration, constraints=_without(configuration.constraints, key))
        case "template":
            return replace(configuration, templates=_without(configuration.templates, key))
        case "tag":
            return replace(configuration, tags=_without(configuration.tags, key))
        case _:
            return configuration


def _arrange(configuration: Configuration, kind: str, keys: Sequence[str]) -> Configuration:
    match kind:
        case "node":
            return replace(configuration, nodes=_in_order(configuration.nodes, keys))
        case "resource":
            return replace(configuration, resources=_in_order(configuration.resources, keys))
        case "constraint":
            return replace(configuration, constraints=_in_order(configuration.constraints, keys))
        case "template":
            return replace(configuration, templates=_in_order(configuration.templates, keys))
        case "tag":
            return replace(configuration, tags=_in_order(configuration.tags, keys))
        case _:
            return configuration


def _without(objects: Mapping[_Key, _Value], dropped: str) -> dict[_Key, _Value]:
    return {key: value for key, value in objects.items() if key != dropped}


def _in_order(objects: Mapping[_Key, _Value], keys: Sequence[str]) -> dict[_Key, _Value]:
    """Put the named ones first, in that order; the others keep theirs and follow."""
    ranks: dict[str, int] = {}
    for key in keys:
        ranks.setdefault(key, len(ranks))
    return dict(sorted(objects.items(), key=lambda item: ranks.get(item[0], len(ranks))))
