"""What `configure show` accepts in place of an id: all objects of a kind, of a tag, related to one, changed.

Source: crmsh 4.4, "configure show". The objects of several words are shown together.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from haclusterd.commands.configure.dependants import TOPOLOGY, dependants, named_by
from haclusterd.commands.configure.view import ids_of
from haclusterd.model.configuration import (
    Bundle,
    Clone,
    Colocation,
    Configuration,
    Group,
    Location,
    Ordering,
    Primitive,
    TicketConstraint,
    contained,
)
from haclusterd.model.ids import ConstraintId, ResourceId
from haclusterd.model.properties import collective_flag
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import SHOW_ALL, did_you_mean

CHANGED = "changed"
TYPE, TAG, RELATED, OBSCURE = "type:", "tag:", "related:", "obscure:"


def obscured(words: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns of parameters whose values are hidden, too."""
    return tuple(word.removeprefix(OBSCURE) for word in words if word.startswith(OBSCURE))


def chosen_ids(
    configuration: Configuration, words: Sequence[str], before: Configuration
) -> tuple[dict[str, None], tuple[ReportItem, ...]]:
    """Return which objects the words mean, in their order; `before` is what `changed` compares with."""
    known = ids_of(configuration)
    found: dict[str, None] = {}
    reports: list[ReportItem] = []
    for word in dict.fromkeys(words):
        kind, _, name = word.partition(":")
        if word in known:
            found[word] = None
        elif word.startswith(OBSCURE):
            continue
        elif word == CHANGED:
            found |= dict.fromkeys(_changed(configuration, before))
        elif word.startswith(TYPE):
            reports += _of_type(configuration, name, found)
        elif word.startswith((TAG, RELATED)):
            reports += _of_object(configuration, kind, name, found)
        else:
            reports.append(_unknown(word, known))
    return found, tuple(reports)


def _unknown(word: str, known: Sequence[str]) -> ReportItem:
    return report(Code.UNKNOWN_OBJECT, id=repr(word), remedy=did_you_mean(word, known, SHOW_ALL))


def _changed(configuration: Configuration, before: Configuration) -> Iterator[str]:
    """Yield what is not as it was before; what is gone cannot be shown."""
    pairs: Sequence[tuple[Mapping[str, object], Mapping[str, object]]] = (
        (_by_name(configuration.nodes.items()), _by_name(before.nodes.items())),
        (_by_name(configuration.resources.items()), _by_name(before.resources.items())),
        (_by_name(configuration.templates.items()), _by_name(before.templates.items())),
        (_by_name(configuration.tags.items()), _by_name(before.tags.items())),
        (_by_name(configuration.alerts.items()), _by_name(before.alerts.items())),
        (_by_name(configuration.acl_roles.items()), _by_name(before.acl_roles.items())),
        (_by_name(configuration.acl_targets.items()), _by_name(before.acl_targets.items())),
        (_by_name(configuration.acl_groups.items()), _by_name(before.acl_groups.items())),
        (_by_name(configuration.constraints.items()), _by_name(before.constraints.items())),
        (_blocks(configuration), _blocks(before)),
    )
    for now, then in pairs:
        yield from (name for name, each in now.items() if then.get(name) != each)
    if configuration.fencing_levels and configuration.fencing_levels != before.fencing_levels:
        yield TOPOLOGY


def _by_name(objects: Iterable[tuple[str, object]]) -> dict[str, object]:
    return {str(name): each for name, each in objects}


def _blocks(configuration: Configuration) -> dict[str, object]:
    sets = (*configuration.properties, *configuration.resource_defaults, *configuration.operation_defaults)
    return {block.id: block for block in sets}


def _of_class(kind: type) -> Callable[[Configuration], Iterator[str]]:
    def ids(configuration: Configuration) -> Iterator[str]:
        objects = {**_by_name(configuration.resources.items()), **_by_name(configuration.constraints.items())}
        return (name for name, each in objects.items() if isinstance(each, kind))

    return ids


def _promotable(configuration: Configuration) -> Iterator[str]:
    for name, each in configuration.resources.items():
        if isinstance(each, Clone) and collective_flag(configuration, each, "promotable"):
            yield name


_TYPES: Mapping[str, Callable[[Configuration], Iterator[str]]] = {
    "node": lambda configuration: iter(configuration.nodes),
    "primitive": _of_class(Primitive),
    "group": _of_class(Group),
    "clone": _of_class(Clone),
    "ms": _promotable,
    "master": _promotable,
    "bundle": _of_class(Bundle),
    "rsc_template": lambda configuration: iter(configuration.templates),
    "tag": lambda configuration: iter(configuration.tags),
    "alert": lambda configuration: iter(configuration.alerts),
    "role": lambda configuration: iter(configuration.acl_roles),
    "acl_target": lambda configuration: iter(configuration.acl_targets),
    "acl_group": lambda configuration: iter(configuration.acl_groups),
    "location": _of_class(Location),
    "colocation": _of_class(Colocation),
    "collocation": _of_class(Colocation),
    "order": _of_class(Ordering),
    "rsc_ticket": _of_class(TicketConstraint),
    "property": lambda configuration: (block.id for block in configuration.properties),
    "rsc_defaults": lambda configuration: (block.id for block in configuration.resource_defaults),
    "op_defaults": lambda configuration: (block.id for block in configuration.operation_defaults),
    "fencing_topology": lambda configuration: iter([TOPOLOGY] if configuration.fencing_levels else []),
}


def _of_type(configuration: Configuration, name: str, found: dict[str, None]) -> Iterator[ReportItem]:
    ids = _TYPES.get(name)
    if ids is None:
        problem = f"{name!r} is no kind of object"
        yield report(Code.BAD_ARGUMENT, name="type", problem=problem, remedy=f"one of: {', '.join(_TYPES)}")
        return
    found |= dict.fromkeys(ids(configuration))


def _of_object(configuration: Configuration, kind: str, name: str, found: dict[str, None]) -> Iterator[ReportItem]:
    """Add what a tag names, or what is related to an object."""
    known = tuple(configuration.tags) if kind == "tag" else ids_of(configuration)
    if name not in known:
        yield _unknown(name, known)
    elif kind == "tag":
        found |= dict.fromkeys(configuration.tags[name].references)
    else:
        found |= dict.fromkeys(_related(configuration, name))


def _related(configuration: Configuration, name: str) -> Iterator[str]:
    """Yield an object, what it is made of or names, and what names it."""
    yield name
    resource = configuration.resources.get(ResourceId(name))
    if resource is not None:
        yield from contained(resource)
        if isinstance(resource, Primitive) and resource.template is not None:
            yield resource.template
    constraint = configuration.constraints.get(ConstraintId(name))
    if constraint is not None:
        yield from named_by(constraint)
    if name in configuration.tags:
        yield from configuration.tags[name].references
    yield from dependants(configuration, name)
    for id_, each in configuration.constraints.items():
        if isinstance(each, Location) and each.node == name:
            yield id_
