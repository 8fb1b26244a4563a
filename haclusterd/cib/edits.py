"""Edits of a configuration: what they are, the difference of two versions, and its application.

Invariant: `apply_edits(old, difference(old, new)) == new`, including the order of the mappings, because the scheduler's
results depend on it. `apply_edits` is total: it is part of the fold over the log, where nothing may be refused in the
middle. An edit that does not fit (a deletion of something unknown, an arrangement of unknown ids, an unknown kind or
section) changes nothing that it names; whether edits make sense is judged before they are proposed, by verification of
the whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from haclusterd.model.access import AclGroup, AclObject, AclRole, AclTarget, kind_of
from haclusterd.model.configuration import (
    Alert,
    AttributeSet,
    Configuration,
    Constraint,
    FencingLevel,
    NodeEntry,
    Resource,
    Tag,
    Template,
)
from haclusterd.model.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class PutNode:
    """Add or replace the configuration of a node."""

    entry: NodeEntry


@dataclass(frozen=True, slots=True)
class PutResource:
    """Add or replace a resource."""

    resource: Resource


@dataclass(frozen=True, slots=True)
class PutConstraint:
    """Add or replace a constraint."""

    constraint: Constraint


@dataclass(frozen=True, slots=True)
class PutTemplate:
    """Add or replace a template."""

    template: Template


@dataclass(frozen=True, slots=True)
class PutTag:
    """Add or replace a tag."""

    tag: Tag


@dataclass(frozen=True, slots=True)
class PutAlert:
    """Add or replace an alert."""

    alert: Alert


@dataclass(frozen=True, slots=True)
class PutAccess:
    """Add or replace a role, or the roles of a user or group."""

    access: AclRole | AclTarget | AclGroup


@dataclass(frozen=True, slots=True)
class PutFencingLevels:
    """Replace the fencing levels of all targets."""

    levels: tuple[FencingLevel, ...]


@dataclass(frozen=True, slots=True)
class PutSets:
    """Replace all blocks of one kind: `properties`, `resource_defaults` or `operation_defaults`."""

    section: str
    sets: tuple[AttributeSet, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object of one kind.

    Kinds: `node`, `template`, `resource`, `constraint`, `tag`, `alert`, `acl_role`, `acl_target`, `acl_group`.
    """

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class Arrange:
    """Sort the objects of one kind into this order (all their ids are named)."""

    kind: str
    ids: tuple[str, ...]


Edit = (
    PutNode | PutTemplate | PutResource | PutConstraint | PutTag | PutAlert | PutAccess | PutFencingLevels | PutSets
    | Delete | Arrange
)  # fmt: skip

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
    edits += _deletions("alert", old.alerts, new.alerts)
    edits += [PutAlert(alert) for alert in _changed(old.alerts, new.alerts)]
    edits += _arrangement("alert", old.alerts, new.alerts)
    edits += _access(old, new)
    if new.fencing_levels != old.fencing_levels:
        edits.append(PutFencingLevels(new.fencing_levels))
    for section, sets in _sections(new).items():
        if sets != _sections(old)[section]:
            edits.append(PutSets(section, sets))
    return tuple(edits)


def _access(old: Configuration, new: Configuration) -> list[Edit]:
    pairs: tuple[tuple[str, Mapping[str, AclObject], Mapping[str, AclObject]], ...] = (
        ("acl_role", old.acl_roles, new.acl_roles),
        ("acl_target", old.acl_targets, new.acl_targets),
        ("acl_group", old.acl_groups, new.acl_groups),
    )
    edits: list[Edit] = []
    for kind, before, after in pairs:
        edits += _deletions(kind, before, after)
        edits += [PutAccess(each) for each in _changed(before, after)]
        edits += _arrangement(kind, before, after)
    return edits


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
    """Return the configuration after the edits, in order; the given one is not changed.

    Each mapping is copied once, however many edits there are.
    """
    made: dict[str, dict[str, object]] = {}

    def objects(kind: str) -> dict[str, object]:
        if kind not in made:
            made[kind] = dict(getattr(configuration, MAPPINGS[kind]))
        return made[kind]

    for edit in edits:
        match edit:
            case PutFencingLevels(levels):
                configuration = replace(configuration, fencing_levels=levels)
            case PutSets(section, sets):
                configuration = _put_sets(configuration, section, sets)
            case Delete(kind, key):
                if kind in MAPPINGS:
                    objects(kind).pop(key, None)
            case Arrange(kind, keys):
                if kind in MAPPINGS:
                    made[kind] = _in_order(objects(kind), keys)
            case _:
                kind, name, value = object_of(edit)
                objects(kind)[name] = value
    changed: dict[str, Any] = {MAPPINGS[kind]: each for kind, each in made.items()}
    return replace(configuration, **changed) if changed else configuration


MAPPINGS: Final = {
    "node": "nodes",
    "template": "templates",
    "resource": "resources",
    "constraint": "constraints",
    "tag": "tags",
    "alert": "alerts",
    "acl_role": "acl_roles",
    "acl_target": "acl_targets",
    "acl_group": "acl_groups",
}
"""The field of the configuration for each kind of object."""


_Put = PutNode | PutTemplate | PutResource | PutConstraint | PutTag | PutAlert | PutAccess


def object_of(edit: _Put) -> tuple[str, str, object]:
    """Return kind, key and object of a Put edit."""
    match edit:
        case PutNode(entry):
            return "node", entry.name, entry
        case PutTemplate(template):
            return "template", template.id, template
        case PutResource(resource):
            return "resource", resource.id, resource
        case PutConstraint(constraint):
            return "constraint", constraint.id, constraint
        case PutTag(tag):
            return "tag", tag.id, tag
        case PutAlert(alert):
            return "alert", alert.id, alert
        case PutAccess(access):
            return kind_of(access), access.id, access


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


def _in_order(objects: Mapping[_Key, _Value], keys: Sequence[str]) -> dict[_Key, _Value]:
    """Put the named objects first, in that order; the others follow in their present order."""
    ranks: dict[str, int] = {}
    for key in keys:
        ranks.setdefault(key, len(ranks))
    return dict(sorted(objects.items(), key=lambda item: ranks.get(item[0], len(ranks))))
