"""What a configuration can say but this version does not do yet: refused by name, never ignored.

When one of these is built, its lines here go away.
"""

from haclusterd.commands.verify_judgement import Judgement
from haclusterd.model.configuration import Colocation, Ordering, Primitive
from haclusterd.model.ids import ConstraintId
from haclusterd.reports.codes import Code

_STANDARDS = ("ocf", "stonith")
_OF_PROMOTABLES = ("Promoted", "Unpromoted", "promote", "demote")


def check_support(judgement: Judgement) -> None:
    """Judge what the scheduler and the executor cannot carry out."""
    for node in judgement.configuration.nodes.values():
        if node.utilization:
            judgement.note(Code.NOT_YET, ("node", node.name, "utilization"), construct="utilization")
    for primitive in judgement.configuration.primitives():
        _check_primitive(judgement, primitive)
    for constraint in judgement.configuration.constraints.values():
        if isinstance(constraint, Colocation):
            _check_qualifier(judgement, constraint.id, "dependent", "role", constraint.dependent_role)
            _check_qualifier(judgement, constraint.id, "primary", "role", constraint.primary_role)
        elif isinstance(constraint, Ordering):
            _check_qualifier(judgement, constraint.id, "first", "action", constraint.first_action)
            _check_qualifier(judgement, constraint.id, "then", "action", constraint.then_action)


def _check_qualifier(judgement: Judgement, id_: ConstraintId, part: str, kind: str, word: str | None) -> None:
    if word in _OF_PROMOTABLES:
        judgement.note(Code.NOT_YET, ("constraint", id_, part), construct=f"{kind} {word}")


def _check_primitive(judgement: Judgement, primitive: Primitive) -> None:
    path = ("resource", primitive.id)
    if primitive.agent.standard not in _STANDARDS:
        construct = f"an agent of class {primitive.agent.standard}"
        judgement.note(Code.NOT_YET, (*path, "agent"), construct=construct)
    if primitive.utilization:
        judgement.note(Code.NOT_YET, (*path, "utilization"), construct="utilization")
    for index, operation in enumerate(primitive.operations):
        if operation.role in _OF_PROMOTABLES:
            own = (*path, "operation", str(index), "role")
            judgement.note(Code.NOT_YET, own, construct=f"an operation with role {operation.role}")
        if operation.requires is not None:
            own = (*path, "operation", str(index), "requires")
            judgement.note(Code.NOT_YET, own, construct="requires of an operation (it is a meta-attribute)")
