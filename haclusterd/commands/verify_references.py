"""Names that name nothing, and things of the same name."""

from collections import Counter
from collections.abc import Iterator

from haclusterd.commands.verify_judgement import Judgement
from haclusterd.model.configuration import (
    AttributeSet,
    Colocation,
    Group,
    Location,
    Operation,
    Ordering,
    Primitive,
    TicketConstraint,
)
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.reports.codes import Code

Path = tuple[str, ...]


def check_references(judgement: Judgement) -> None:
    """Judge ids, members of groups, and what constraints name."""
    _check_ids(judgement)
    _check_groups(judgement)
    for id_, constraint in judgement.configuration.constraints.items():
        match constraint:
            case Location(resource=resource, node=node):
                _check_resource(judgement, id_, resource, "resource")
                _check_node(judgement, id_, node)
            case Colocation(dependent=dependent, primary=primary):
                _check_pair(judgement, id_, (dependent, "dependent"), (primary, "primary"))
            case Ordering(first=first, then=then):
                _check_pair(judgement, id_, (first, "first"), (then, "then"))
            case TicketConstraint(resource=resource):
                _check_resource(judgement, id_, resource, "resource")
    _check_configured_nodes(judgement)


def _check_pair(
    judgement: Judgement, id_: ConstraintId, one: tuple[ResourceId, str], other: tuple[ResourceId, str]
) -> None:
    _check_resource(judgement, id_, *one)
    _check_resource(judgement, id_, *other)
    if one[0] == other[0]:
        judgement.note(Code.CONSTRAINT_WITH_ITSELF, ("constraint", id_, other[1]), id=id_, resource=one[0])


def _check_resource(judgement: Judgement, id_: ConstraintId, resource: ResourceId, part: str) -> None:
    known = judgement.configuration.resources
    if resource not in known:
        guess = judgement.nearest(resource, known)
        remedy = f"did you mean {guess}?" if guess else None
        path = ("constraint", id_, part)
        judgement.note(Code.UNKNOWN_RESOURCE, path, remedy=remedy, where=f"constraint {id_}", id=resource)


def _check_node(judgement: Judgement, id_: ConstraintId, node: NodeName) -> None:
    known = {*judgement.members, *judgement.configuration.nodes}
    if known and node not in known:
        guess = judgement.nearest(node, known)
        remedy = f"did you mean {guess}?" if guess else None
        path = ("constraint", id_, "node")
        judgement.note(Code.UNKNOWN_NODE, path, remedy=remedy, where=f"constraint {id_}", node=node)


def _check_configured_nodes(judgement: Judgement) -> None:
    for node in judgement.configuration.nodes:
        if judgement.members and node not in judgement.members:
            guess = judgement.nearest(node, judgement.members)
            remedy = f"did you mean {guess}?" if guess else None
            judgement.note(Code.NODE_NOT_A_MEMBER, ("node", node), remedy=remedy, node=node)


def _check_groups(judgement: Judgement) -> None:
    parent_of: dict[ResourceId, ResourceId] = {}
    for group in judgement.configuration.groups():
        if not group.members:
            judgement.note(Code.GROUP_EMPTY, ("resource", group.id), group=group.id)
        for member, count in Counter(group.members).items():
            if count > 1:
                judgement.note(Code.MEMBER_TWICE, ("resource", group.id, "member", member), group=group.id, id=member)
            _check_member(judgement, group, member)
            first = parent_of.setdefault(member, group.id)
            if first != group.id:
                path = ("resource", group.id, "member", member)
                judgement.note(Code.MEMBER_OF_TWO_GROUPS, path, id=member, first=first, second=group.id)


def _check_member(judgement: Judgement, group: Group, member: ResourceId) -> None:
    path = ("resource", group.id, "member", member)
    known = judgement.configuration.resources
    resource = known.get(member)
    if resource is None:
        guess = judgement.nearest(member, known)
        remedy = f"did you mean {guess}?" if guess else None
        judgement.note(Code.UNKNOWN_RESOURCE, path, remedy=remedy, where=f"group {group.id}", id=member)
    elif not isinstance(resource, Primitive):
        judgement.note(Code.MEMBER_NOT_A_PRIMITIVE, path, group=group.id, id=member)
    elif resource.agent.standard == "stonith":
        judgement.note(Code.FENCE_DEVICE_IN_GROUP, path, id=member, group=group.id)


def _check_ids(judgement: Judgement) -> None:
    """Ids share one space, whatever they name (Pacemaker Explained: ids are XML ids); node names do not."""
    seen: set[str] = set()
    for id_, path in _ids(judgement):
        if id_ in seen:
            judgement.note(Code.DUPLICATE_ID, path, id=id_)
        seen.add(id_)


def _ids(judgement: Judgement) -> Iterator[tuple[str, Path]]:
    configuration = judgement.configuration
    for resource in configuration.resources.values():
        path = ("resource", resource.id)
        yield resource.id, path
        yield from _of_blocks(resource.parameters + resource.meta, path)
        if isinstance(resource, Primitive):
            yield from _of_blocks(resource.utilization, path)
            for index, operation in enumerate(resource.operations):
                yield from _of_operation(operation, (*path, "operation", str(index)))
    for id_ in configuration.constraints:
        yield id_, ("constraint", id_)
    for node in configuration.nodes.values():
        yield from _of_blocks(node.attributes + node.utilization, ("node", node.name))
    yield from _of_blocks(configuration.properties, ("properties",))
    yield from _of_blocks(configuration.resource_defaults, ("resource_defaults",))
    yield from _of_blocks(configuration.operation_defaults, ("operation_defaults",))


def _of_operation(operation: Operation, path: Path) -> Iterator[tuple[str, Path]]:
    yield operation.id, path
    yield from _of_blocks(operation.parameters + operation.meta, path)


def _of_blocks(blocks: tuple[AttributeSet, ...], path: Path) -> Iterator[tuple[str, Path]]:
    for block in blocks:
        yield block.id, (*path, block.pairs[0][0]) if block.pairs else path
