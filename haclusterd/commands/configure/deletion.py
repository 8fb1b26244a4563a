"""Deleting objects: nothing is changed silently (crmsh drops and re-points what depends on them).

Without `cascade` an object that others use is not deleted. With it, constraints that name it go (sets, tags and fencing
levels only lose it, and go when nothing is left), a group loses the member, a clone of it goes, and what is made from a
template becomes what the template says. The members of a deleted group stay, each on its own.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from haclusterd.commands.configure.dependants import TOPOLOGY, as_own, dependants, named_by, retargeted
from haclusterd.commands.names import primitives_of
from haclusterd.commands.status.resource_state import instances
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import (
    Bundle,
    Clone,
    Configuration,
    Constraint,
    Group,
    Primitive,
    Resource,
    Tag,
    contained,
)
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.templates import expanded
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import SHOW_ALL, did_you_mean

_Key = TypeVar("_Key", bound=str)
_Value = TypeVar("_Value")


@dataclass(slots=True)
class _Deletion:
    cib: Cib
    cascade: bool
    is_forced: bool
    is_as_crmsh: bool
    named: frozenset[str]
    configuration: Configuration
    reports: list[ReportItem] = field(default_factory=list)


def delete(
    cib: Cib, ids: Sequence[str], *, cascade: bool, is_forced: bool, is_as_crmsh: bool = False
) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Return the configuration without these objects; not to be used when there are errors.

    `is_as_crmsh`: constraints that name a group or clone name its first member then.
    """
    work = _Deletion(cib, cascade, is_forced, is_as_crmsh, frozenset(ids), cib.configuration)
    for id_ in dict.fromkeys(ids):
        _delete_one(work, id_)
    return work.configuration, tuple(work.reports)


def _delete_one(work: _Deletion, id_: str) -> None:
    configuration = work.cib.configuration
    if id_ in configuration.constraints:
        work.configuration = replace(work.configuration, constraints=_without(work.configuration.constraints, id_))
    elif id_ in configuration.alerts:
        work.configuration = replace(work.configuration, alerts=_without(work.configuration.alerts, id_))
    elif id_ in configuration.acl_roles:
        _delete_role(work, id_)
    elif id_ in configuration.acl_groups:
        work.configuration = replace(work.configuration, acl_groups=_without(work.configuration.acl_groups, id_))
    elif id_ in configuration.resources or id_ in configuration.templates or id_ in configuration.tags:
        _delete_named(work, id_)
    elif id_ == TOPOLOGY and configuration.fencing_levels:
        work.configuration = replace(work.configuration, fencing_levels=())
    elif id_ in configuration.nodes:
        _delete_node(work, NodeName(id_))
    elif id_ in configuration.acl_targets:
        work.configuration = replace(work.configuration, acl_targets=_without(work.configuration.acl_targets, id_))
    elif not _delete_set(work, id_):
        known = [*configuration.resources, *configuration.constraints, *configuration.nodes, *configuration.templates,
                 *configuration.tags, *configuration.alerts, *configuration.acl_roles, *configuration.acl_targets,
                 *configuration.acl_groups]  # fmt: skip
        work.reports.append(report(Code.UNKNOWN_OBJECT, id=repr(id_), remedy=did_you_mean(id_, known, SHOW_ALL)))


def _without(objects: Mapping[_Key, _Value], gone: str) -> dict[_Key, _Value]:
    return {key: each for key, each in objects.items() if key != gone}


def _delete_role(work: _Deletion, id_: str) -> None:
    """Delete a role; with cascade from those who have it, too: who has none left may do nothing."""
    before = work.configuration
    users = [each.id for each in before.acl_holders() if id_ in each.roles and each.id not in work.named]
    if users and not work.cascade:
        work.reports.append(report(Code.HAS_DEPENDANTS, id=id_, dependants=", ".join(users)))
        return
    work.configuration = replace(
        before,
        acl_roles=_without(before.acl_roles, id_),
        acl_targets={key: replace(each, roles=_others(each.roles, id_)) for key, each in before.acl_targets.items()},
        acl_groups={key: replace(each, roles=_others(each.roles, id_)) for key, each in before.acl_groups.items()},
    )


def _others(roles: Sequence[str], gone: str) -> tuple[str, ...]:
    return tuple(role for role in roles if role != gone)


def _delete_named(work: _Deletion, id_: str) -> None:
    """Delete a resource, template or tag, which others can name."""
    if work.is_as_crmsh:
        _name_the_first_inside(work, id_)
    users = [each for each in dict.fromkeys(dependants(work.configuration, id_)) if each not in work.named]
    if users and not work.cascade:
        remedy = None
        if id_ in work.configuration.templates:
            remedy = "with --cascade they keep what it says as their own"
        work.reports.append(report(Code.HAS_DEPENDANTS, remedy=remedy, id=id_, dependants=", ".join(users)))
        return
    if id_ in work.cib.configuration.resources and not _may_stop(work, ResourceId(id_)):
        return
    gone = [id_]
    while gone:
        gone += _take_out(work, gone.pop())


def _name_the_first_inside(work: _Deletion, id_: str) -> None:
    resource = work.configuration.resources.get(ResourceId(id_))
    inside = contained(resource) if isinstance(resource, Group | Clone) else ()
    first = next((each for each in inside if each not in work.named), None)
    if first is not None:
        work.configuration = retargeted(work.configuration, id_, first, work.configuration.constraints)


def _take_out(work: _Deletion, name: str) -> list[str]:
    """Take an object out, and out of everything that names it; return what can be named and is left empty."""
    before, gone = work.configuration, list[str]()

    def less(resource: Resource) -> Resource | None:
        return _less(before, resource, name)

    levels = tuple(
        replace(level, devices=tuple(device for device in level.devices if device != name))
        for level in before.fencing_levels
    )
    work.configuration = replace(
        before,
        resources=_kept(_without(before.resources, name), less, gone),
        templates=_without(before.templates, name),
        tags=_kept(_without(before.tags, name), lambda each: _less_tag(each, name), gone),
        constraints=_kept(before.constraints, lambda each: _less_constraint(each, name), []),
        fencing_levels=tuple(level for level in levels if level.devices),
    )
    return gone


def _kept(
    objects: Mapping[_Key, _Value], change: Callable[[_Value], _Value | None], gone: list[str]
) -> dict[_Key, _Value]:
    kept: dict[_Key, _Value] = {}
    for key, each in objects.items():
        changed = change(each)
        if changed is None:
            gone.append(key)
        else:
            kept[key] = changed
    return kept


def _less(configuration: Configuration, resource: Resource, name: str) -> Resource | None:
    """Return a resource that no longer names something; None: it makes no sense without."""
    match resource:
        case Group() if name in resource.members:
            members = tuple(member for member in resource.members if member != name)
            return replace(resource, members=members) if members else None
        case Clone() if resource.child == name:
            return None
        case Bundle() if resource.primitive == name:
            return replace(resource, primitive=None)
        case Primitive() if resource.template == name:
            return as_own(replace(expanded(resource, configuration), template=None), ResourceId(name))
        case _:
            return resource


def _less_tag(tag: Tag, name: str) -> Tag | None:
    references = tuple(reference for reference in tag.references if reference != name)
    return replace(tag, references=references) if references else None


def _less_constraint(constraint: Constraint, name: str) -> Constraint | None:
    if name not in named_by(constraint):
        return constraint
    if not constraint.sets:
        return None
    sets = tuple(
        replace(each, members=tuple(member for member in each.members if member != name)) for each in constraint.sets
    )
    kept = tuple(each for each in sets if each.members)
    return replace(constraint, sets=kept) if kept else None


def _may_stop(work: _Deletion, id_: ResourceId) -> bool:
    """Object to the deletion of what runs; a group's members stay, so deleting it stops nothing."""
    if work.is_forced or isinstance(work.cib.configuration.resources[id_], Group):
        return True
    running = [each.node for primitive in primitives_of(work.cib.configuration, id_)
               for each in instances(work.cib, primitive)]  # fmt: skip
    if not running:
        return True
    remedy = f"stop it first: crm resource stop {id_}; or --force, and the cluster stops it"
    names = ", ".join(dict.fromkeys(running))
    work.reports.append(report(Code.UNSAFE, problem=f"{id_} is running on {names}", remedy=remedy))
    return False


def _delete_node(work: _Deletion, name: NodeName) -> None:
    if name in work.cib.members and not work.is_forced:
        problem = f"{name} is a member of the cluster; its attributes would be lost"
        work.reports.append(report(Code.UNSAFE, problem=problem))
        return
    nodes = {key: each for key, each in work.configuration.nodes.items() if key != name}
    work.configuration = replace(work.configuration, nodes=nodes)


def _delete_set(work: _Deletion, id_: str) -> bool:
    sets = {
        "properties": work.configuration.properties,
        "resource_defaults": work.configuration.resource_defaults,
        "operation_defaults": work.configuration.operation_defaults,
    }
    if not any(block.id == id_ for blocks in sets.values() for block in blocks):
        return False
    kept = {name: tuple(block for block in blocks if block.id != id_) for name, blocks in sets.items()}
    work.configuration = replace(
        work.configuration,
        properties=kept["properties"],
        resource_defaults=kept["resource_defaults"],
        operation_defaults=kept["operation_defaults"],
    )
    return True
