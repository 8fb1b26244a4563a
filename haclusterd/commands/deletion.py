"""Deleting objects: nothing is changed silently (crmsh drops and re-points what depends on them).

Without `cascade` an object that others use is not deleted. With it, constraints that name it go, and a group loses the
member; a group without members goes too. The members of a deleted group stay, each on its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from haclusterd.commands.names import primitives_of
from haclusterd.commands.resource_state import instances
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Colocation, Configuration, Constraint, Group, Location, Ordering
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean


@dataclass(slots=True)
class _Deletion:
    cib: Cib
    cascade: bool
    is_forced: bool
    named: frozenset[str]
    configuration: Configuration
    reports: list[ReportItem] = field(default_factory=list)


def delete(
    cib: Cib, ids: Sequence[str], *, cascade: bool, is_forced: bool
) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Return the configuration without these objects; not to be used when there are errors."""
    work = _Deletion(cib, cascade, is_forced, frozenset(ids), cib.configuration)
    for id_ in dict.fromkeys(ids):
        _delete_one(work, id_)
    return work.configuration, tuple(work.reports)


def _delete_one(work: _Deletion, id_: str) -> None:
    configuration = work.cib.configuration
    if id_ in configuration.constraints:
        _drop_constraints(work, [ConstraintId(id_)])
    elif id_ in configuration.resources:
        _delete_resource(work, ResourceId(id_))
    elif id_ in configuration.nodes:
        _delete_node(work, NodeName(id_))
    elif not _delete_set(work, id_):
        known = [*configuration.resources, *configuration.constraints, *configuration.nodes]
        work.reports.append(report(Code.UNKNOWN_OBJECT, id=repr(id_), remedy=did_you_mean(id_, known)))


def _drop_constraints(work: _Deletion, gone: Sequence[ConstraintId]) -> None:
    kept = {key: each for key, each in work.configuration.constraints.items() if key not in gone}
    work.configuration = replace(work.configuration, constraints=kept)


def _delete_resource(work: _Deletion, id_: ResourceId) -> None:
    constraints = [key for key, each in work.configuration.constraints.items() if id_ in named_by(each)]
    groups = [group.id for group in work.configuration.groups() if id_ in group.members]
    dependants = [each for each in (*groups, *constraints) if each not in work.named]
    if dependants and not work.cascade:
        work.reports.append(report(Code.HAS_DEPENDANTS, id=id_, dependants=", ".join(dependants)))
        return
    if not _may_stop(work, id_):
        return
    _drop_constraints(work, constraints)
    resources = {key: each for key, each in work.configuration.resources.items() if key != id_}
    for key in groups:
        group = resources[key]
        assert isinstance(group, Group)
        resources[key] = replace(group, members=tuple(member for member in group.members if member != id_))
    work.configuration = replace(work.configuration, resources=resources)
    for key in groups:
        _drop_empty_group(work, key)


def _drop_empty_group(work: _Deletion, id_: ResourceId) -> None:
    group = work.configuration.resources[id_]
    if not isinstance(group, Group) or group.members:
        return
    _drop_constraints(work, [key for key, each in work.configuration.constraints.items() if id_ in named_by(each)])
    resources = {key: each for key, each in work.configuration.resources.items() if key != id_}
    work.configuration = replace(work.configuration, resources=resources)


def _may_stop(work: _Deletion, id_: ResourceId) -> bool:
    """Object to the deletion of what runs; a group's members stay, so deleting it stops nothing."""
    if work.is_forced or isinstance(work.cib.configuration.resources[id_], Group):
        return True
    running = [each.node for primitive in primitives_of(work.cib.configuration, id_)
               for each in instances(work.cib, primitive)]  # fmt: skip
    if not running:
        return True
    remedy = f"stop it first: crm resource stop {id_}; or --force, and the cluster stops it"
    work.reports.append(report(Code.UNSAFE, problem=f"{id_} is running on {', '.join(running)}", remedy=remedy))
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


def named_by(constraint: Constraint) -> tuple[ResourceId, ...]:
    """Return the resources that a constraint names."""
    if isinstance(constraint, Location):
        return (constraint.resource,)
    if isinstance(constraint, Colocation):
        return (constraint.dependent, constraint.primary)
    if isinstance(constraint, Ordering):
        return (constraint.first, constraint.then)
    return (constraint.resource,)
