"""Names that name nothing, and things of the same name.

A constraint may name a resource, a template (all that is made from it) or a tag (all that it stands for).
"""

from collections.abc import Iterator

from haclusterd.commands.verify.judgement import Judgement
from haclusterd.model.configuration import (
    AttributeSet,
    Bundle,
    Colocation,
    Configuration,
    Constraint,
    Location,
    Operation,
    Ordering,
    Primitive,
    Template,
    TicketConstraint,
    rules_of,
)
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.rules import Rule
from haclusterd.reports.codes import Code

Path = tuple[str, ...]


def check_references(judgement: Judgement) -> None:
    """Judge ids, and what constraints, tags, templates and fencing levels name."""
    _check_ids(judgement)
    for id_, constraint in judgement.configuration.constraints.items():
        _check_constraint(judgement, id_, constraint)
    for tag in judgement.configuration.tags.values():
        for reference in tag.references:
            _check_tagged(judgement, tag.id, reference)
    for primitive in judgement.configuration.primitives():
        template, path = primitive.template, ("resource", primitive.id, "agent")
        if template is not None and template not in judgement.configuration.templates:
            judgement.note(Code.UNKNOWN_TEMPLATE, path, where=primitive.id, id=template)
    _check_configured_nodes(judgement)


def _check_constraint(judgement: Judgement, id_: ConstraintId, constraint: Constraint) -> None:
    for each in constraint.sets:
        for member in each.members:
            _check_resource(judgement, id_, member, "resource")
    match constraint:
        case Location():
            _check_location(judgement, id_, constraint)
        case Colocation(dependent=dependent, primary=primary) if not constraint.sets:
            _check_pair(judgement, id_, (dependent, "dependent"), (primary, "primary"))
        case Ordering(first=first, then=then) if not constraint.sets:
            _check_pair(judgement, id_, (first, "first"), (then, "then"))
        case TicketConstraint(resource=resource) if not constraint.sets:
            _check_resource(judgement, id_, resource, "resource")


def _check_location(judgement: Judgement, id_: ConstraintId, location: Location) -> None:
    if location.resource or not (location.pattern or location.sets):
        _check_resource(judgement, id_, location.resource, "resource")
    if location.node or not location.rules:
        _check_node(judgement, id_, location.node)


def _check_pair(
    judgement: Judgement, id_: ConstraintId, one: tuple[ResourceId, str], other: tuple[ResourceId, str]
) -> None:
    _check_resource(judgement, id_, *one)
    _check_resource(judgement, id_, *other)
    if one[0] and one[0] == other[0]:
        judgement.note(Code.CONSTRAINT_WITH_ITSELF, ("constraint", id_, other[1]), id=id_, resource=one[0])


def _check_resource(judgement: Judgement, id_: ConstraintId, resource: ResourceId, part: str) -> None:
    configuration = judgement.configuration
    known = (configuration.resources, configuration.templates, configuration.tags)
    if any(resource in names for names in known):
        return
    guess = judgement.nearest(resource, [name for names in known for name in names])
    remedy = f"did you mean {guess}?" if guess else None
    path = ("constraint", id_, part)
    judgement.note(Code.UNKNOWN_RESOURCE, path, remedy=remedy, where=f"constraint {id_}", id=resource)


def _check_tagged(judgement: Judgement, tag: str, reference: str) -> None:
    configuration = judgement.configuration
    known = (configuration.resources, configuration.templates, configuration.constraints, configuration.nodes,
             configuration.tags)  # fmt: skip
    if any(reference in names for names in known):
        return
    guess = judgement.nearest(reference, configuration.resources)
    remedy = f"did you mean {guess}?" if guess else None
    judgement.note(Code.UNKNOWN_RESOURCE, ("tag", tag, reference), remedy=remedy, where=f"tag {tag}", id=reference)


def _check_node(judgement: Judgement, id_: ConstraintId, node: NodeName) -> None:
    known = {*judgement.members, *judgement.configuration.nodes}
    if known and node not in known:
        guess = judgement.nearest(node, known)
        remedy = f"did you mean {guess}?" if guess else None
        path = ("constraint", id_, "node")
        judgement.note(Code.UNKNOWN_NODE, path, remedy=remedy, where=f"constraint {id_}", node=node)


def _check_configured_nodes(judgement: Judgement) -> None:
    for node, entry in judgement.configuration.nodes.items():
        if judgement.members and node not in judgement.members and not entry.is_remote:
            guess = judgement.nearest(node, judgement.members)
            remedy = f"did you mean {guess}?" if guess else None
            judgement.note(Code.NODE_NOT_A_MEMBER, ("node", node), remedy=remedy, node=node)


def _check_ids(judgement: Judgement) -> None:
    """Ids share one space, whatever they name (Pacemaker Explained: ids are XML ids); node names do not.

    A block, rule or operation that occurs in several places with the same content is one that was referred to.
    """
    seen: dict[str, object] = {}
    for id_, path, part in _ids(judgement):
        if id_ in seen and (part is None or seen[id_] != part):
            judgement.note(Code.DUPLICATE_ID, path, id=id_)
        seen.setdefault(id_, part)
    nodes: set[str] = set()
    for name, node in judgement.configuration.nodes.items():
        if node.id and node.id in nodes:
            judgement.note(Code.DUPLICATE_ID, ("node", name), id=node.id)
        nodes.add(node.id)


_Found = tuple[str, Path, object]
"""An id, its place, and the part that has it; None: an object, which has no other place."""


def _ids(judgement: Judgement) -> Iterator[_Found]:
    configuration = judgement.configuration
    for template in configuration.templates.values():
        yield template.id, ("template", template.id), None
        yield from _of_primitive(template, ("template", template.id))
    for resource in configuration.resources.values():
        path = ("resource", resource.id)
        yield resource.id, path, None
        if isinstance(resource, Primitive):
            yield from _of_primitive(resource, path)
        else:
            yield from _of_blocks(resource.parameters + resource.meta, path)
        if isinstance(resource, Bundle):
            ports = resource.network.ports if resource.network is not None else ()
            yield from ((port.id, path, None) for port in ports)
            yield from ((mapping.id, path, None) for mapping in resource.storage)
    yield from _of_constraints(configuration)
    yield from ((tag, ("tag", tag), None) for tag in configuration.tags)
    for alert in configuration.alerts.values():
        yield alert.id, ("alert", alert.id), None
        yield from _of_blocks(alert.parameters + alert.meta, ("alert", alert.id))
        for number, recipient in enumerate(alert.recipients):
            own = ("alert", alert.id, "recipient", str(number))
            yield recipient.id, own, None
            yield from _of_blocks(recipient.parameters + recipient.meta, own)
    for role in configuration.acl_roles.values():
        yield role.id, ("acl_role", role.id), None
        for number, permission in enumerate(role.permissions):
            yield permission.id, ("acl_role", role.id, "permission", str(number)), None
    yield from ((group, ("acl_group", group), None) for group in configuration.acl_groups)
    yield from ((level.id, ("fencing_level", str(n)), None) for n, level in enumerate(configuration.fencing_levels))
    for node in configuration.nodes.values():
        yield from _of_blocks(node.attributes + node.utilization, ("node", node.name))
    yield from _of_blocks(configuration.properties, ("properties",))
    yield from _of_blocks(configuration.resource_defaults, ("resource_defaults",))
    yield from _of_blocks(configuration.operation_defaults, ("operation_defaults",))


def _of_constraints(configuration: Configuration) -> Iterator[_Found]:
    for id_, constraint in configuration.constraints.items():
        path = ("constraint", id_)
        yield id_, path, None
        yield from ((each.id, path, each) for each in constraint.sets)
        yield from _of_rules(rules_of(constraint), path)


def _of_primitive(resource: Primitive | Template, path: Path) -> Iterator[_Found]:
    yield from _of_blocks(resource.parameters + resource.meta + resource.utilization, path)
    for index, operation in enumerate(resource.operations):
        yield from _of_operation(operation, (*path, "operation", str(index)))


def _of_operation(operation: Operation, path: Path) -> Iterator[_Found]:
    yield operation.id, path, operation
    yield from _of_blocks(operation.parameters + operation.meta, path)


def _of_blocks(blocks: tuple[AttributeSet, ...], path: Path) -> Iterator[_Found]:
    for block in blocks:
        own = (*path, block.pairs[0][0]) if block.pairs else path
        yield block.id, own, block
        yield from (
            (note.id, (*path, note.name), (note.name, block.get(note.name))) for note in block.notes
            if not note.is_reference
        )  # fmt: skip
        yield from _of_rules((block.rule,) if block.rule is not None else (), own)


def _of_rules(rules: tuple[Rule, ...], path: Path) -> Iterator[_Found]:
    for rule in rules:
        yield rule.id, path, rule
        yield from _of_rules(tuple(each for each in rule.conditions if isinstance(each, Rule)), path)
