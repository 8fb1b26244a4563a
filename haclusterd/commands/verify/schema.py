"""What a CIB of Pacemaker has no place for: its daemons would refuse the whole document (schema pacemaker-3.9).

Only files of Pacemaker are judged: what is here runs in a cluster of ours.
"""

from collections.abc import Iterator

from haclusterd.commands.verify.judgement import Judgement
from haclusterd.model.configuration import Colocation, Constraint, Location, Primitive, Template
from haclusterd.reports.codes import Code

Path = tuple[str, ...]


def check_schema(judgement: Judgement) -> None:
    """Judge what the schema excludes."""
    if not judgement.is_foreign:
        return
    configuration = judgement.configuration
    for id_, constraint in configuration.constraints.items():
        for what in _of_constraint(constraint):
            judgement.note(Code.NOT_IN_SCHEMA, ("constraint", id_), where=id_, what=what)
    for template in configuration.templates.values():
        _check_operations(judgement, template, ("template", template.id))
    for primitive in configuration.primitives():
        _check_operations(judgement, primitive, ("resource", primitive.id))


def _of_constraint(constraint: Constraint) -> Iterator[str]:
    match constraint:
        case Colocation(sets=[_, *_]) if constraint.node_attribute is not None:
            yield "node-attribute beside sets"
        case Location(sets=[_, *_]) if constraint.role is not None:
            yield "role beside sets (give it to the sets)"
        case _:
            pass


def _check_operations(judgement: Judgement, owner: Primitive | Template, path: Path) -> None:
    for index, operation in enumerate(owner.operations):
        if operation.start_delay_ms is not None and operation.interval_origin is not None:
            where = f"{owner.id}: {operation.name}"
            what = "interval-origin beside start-delay"
            judgement.note(Code.NOT_IN_SCHEMA, (*path, "operation", str(index)), where=where, what=what)
