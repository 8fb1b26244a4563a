"""From statements to a configuration: what is defined twice, what exists already, what is merged.

References between objects are not looked at here; `commands.verify` judges the whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from haclusterd.formats.generated_ids import allocate, operation_base
from haclusterd.formats.statements import AddOperation, Define, MergeSet, Statement
from haclusterd.model.configuration import (
    AttributeSet,
    Colocation,
    Configuration,
    Constraint,
    Group,
    Location,
    NodeEntry,
    Ordering,
    Primitive,
    Resource,
)
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.reports.codes import Code
from haclusterd.reports.items import Place, ReportItem, report
from haclusterd.reports.places import Path, Places


class Mode(StrEnum):
    """What a definition does when the base has an object of that id."""

    ADD = "add"
    """It is refused."""
    UPDATE = "update"
    """It replaces the object, in its place."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """The configuration that statements make of a base; not to be used when there are errors among the reports."""

    configuration: Configuration
    reports: tuple[ReportItem, ...]
    places: Places


@dataclass(slots=True)
class _Draft:
    """A configuration while it is put together."""

    nodes: dict[NodeName, NodeEntry]
    resources: dict[ResourceId, Resource]
    constraints: dict[ConstraintId, Constraint]
    sets: dict[str, tuple[AttributeSet, ...]]
    mode: Mode
    defined: set[tuple[str, str]] = field(default_factory=set)
    """(kind, id) of what this text has defined."""
    reports: list[ReportItem] = field(default_factory=list)
    places: dict[Path, Place] = field(default_factory=dict)

    def configuration(self) -> Configuration:
        return Configuration(self.nodes, self.resources, self.constraints, **self.sets)


def assemble(statements: Sequence[Statement], *, base: Configuration | None = None, mode: Mode = Mode.ADD) -> Assembly:
    """Make all statements' changes to `base` (none: an empty configuration), in order."""
    start = base or Configuration()
    draft = _Draft(
        nodes=dict(start.nodes),
        resources=dict(start.resources),
        constraints=dict(start.constraints),
        sets={
            "properties": start.properties,
            "resource_defaults": start.resource_defaults,
            "operation_defaults": start.operation_defaults,
        },
        mode=mode,
    )
    for statement in statements:
        if not isinstance(statement, AddOperation):
            _apply(draft, statement)
    for statement in statements:
        if isinstance(statement, AddOperation):
            _add_operation(draft, statement)
    return Assembly(draft.configuration(), tuple(draft.reports), Places(draft.places))


def _apply(draft: _Draft, statement: Define | MergeSet) -> None:
    draft.places.update(statement.places)
    if isinstance(statement, MergeSet):
        draft.sets[statement.section] = merge_block(
            draft.sets[statement.section], statement.block, has_score=statement.has_score
        )
        return
    made = statement.object
    match made:
        case NodeEntry():
            if _may_define(draft, statement, "node", made.name, exists=made.name in draft.nodes):
                draft.nodes[made.name] = made
        case Primitive() | Group():
            if _may_define(draft, statement, "resource", made.id, exists=made.id in draft.resources):
                draft.resources[made.id] = made
        case Location() | Colocation() | Ordering():
            if _may_define(draft, statement, "constraint", made.id, exists=made.id in draft.constraints):
                draft.constraints[made.id] = made


def _may_define(draft: _Draft, statement: Define, kind: str, id_: str, *, exists: bool) -> bool:
    place = statement.places.get((kind, id_), statement.place)
    if (kind, id_) in draft.defined:
        draft.reports.append(report(Code.DUPLICATE_ID, place=place, id=id_))
        return False
    draft.defined.add((kind, id_))
    if exists and draft.mode is Mode.ADD:
        draft.reports.append(report(Code.EXISTS, place=place, kind=kind, id=id_))
        return False
    return True


def merge_block(sets: tuple[AttributeSet, ...], block: AttributeSet, *, has_score: bool) -> tuple[AttributeSet, ...]:
    """Set the block's pairs in the set of the same id, or add it as the last one."""
    for index, present in enumerate(sets):
        if present.id == block.id:
            pairs = {**dict(present.pairs), **dict(block.pairs)}
            score = block.score if has_score else present.score
            merged = AttributeSet(present.id, tuple(pairs.items()), score)
            return (*sets[:index], merged, *sets[index + 1 :])
    return (*sets, block)


def _add_operation(draft: _Draft, statement: AddOperation) -> None:
    primitive = draft.resources.get(statement.resource)
    if not isinstance(primitive, Primitive):
        remedy = None if primitive is None else "name a primitive: a group has no operations of its own"
        draft.reports.append(
            report(
                Code.UNKNOWN_RESOURCE,
                place=statement.places.get(("resource", statement.resource), statement.place),
                remedy=remedy,
                where="monitor",
                id=statement.resource,
            )
        )
        return
    operation = statement.operation
    wanted: list[tuple[str | None, str]] = [(present.id, "") for present in primitive.operations]
    wanted.append((None, operation_base(primitive.id, operation.name, operation.interval_ms)))
    named = replace(operation, id=allocate(wanted)[-1])
    path = ("resource", primitive.id, "operation", str(len(primitive.operations)))
    draft.places.setdefault(("resource", primitive.id), statement.place)
    draft.places[path] = statement.place
    draft.resources[primitive.id] = replace(primitive, operations=(*primitive.operations, named))
