"""From statements to a configuration: what is defined twice, what exists already, what is merged, what is referred to.

References between objects are not looked at here, except where a text takes over a part of one; `commands.verify`
judges the whole.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from enum import StrEnum

from haclusterd.formats.generated_ids import LEVEL_ID, allocate, interval_text, operation_base
from haclusterd.formats.references import Referred
from haclusterd.formats.statements import AddOperation, Define, DefineLevels, MergeSet, Statement
from haclusterd.model import durations
from haclusterd.model.access import AclGroup, AclObject, AclRole, AclTarget, kind_of
from haclusterd.model.configuration import (
    Alert,
    AttributeSet,
    Bundle,
    Clone,
    Colocation,
    Configuration,
    Constraint,
    FencingLevel,
    Group,
    Location,
    NodeEntry,
    Ordering,
    Primitive,
    Resource,
    Tag,
    Template,
    TicketConstraint,
    has_no_rule,
    with_id_of,
)
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.properties import set_over
from haclusterd.model.records import dataclass, field, replace
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
    templates: dict[ResourceId, Template]
    tags: dict[str, Tag]
    alerts: dict[str, Alert]
    acl_roles: dict[str, AclRole]
    acl_targets: dict[str, AclTarget]
    acl_groups: dict[str, AclGroup]
    fencing_levels: tuple[FencingLevel, ...]
    sets: dict[str, tuple[AttributeSet, ...]]
    mode: Mode
    defined: set[tuple[str, str]] = field(default_factory=set)
    """(kind, id) of what this text has defined."""
    reports: list[ReportItem] = field(default_factory=list)
    places: dict[Path, Place] = field(default_factory=dict)

    def known(self, kind: str) -> Container[str]:
        """Return the ids of one kind."""
        kinds: Mapping[str, Container[str]] = {
            "node": self.nodes, "template": self.templates, "tag": self.tags, "constraint": self.constraints,
            "resource": self.resources, "alert": self.alerts, "acl_role": self.acl_roles,
            "acl_target": self.acl_targets, "acl_group": self.acl_groups,
        }  # fmt: skip
        return kinds[kind]

    def put_access(self, made: AclObject) -> None:
        match made:
            case AclRole():
                self.acl_roles[made.id] = made
            case AclTarget():
                self.acl_targets[made.id] = made
            case AclGroup():
                self.acl_groups[made.id] = made

    def configuration(self) -> Configuration:
        return Configuration(
            nodes=self.nodes,
            resources=self.resources,
            constraints=self.constraints,
            properties=self.sets["properties"],
            resource_defaults=self.sets["resource_defaults"],
            operation_defaults=self.sets["operation_defaults"],
            templates=self.templates,
            tags=self.tags,
            fencing_levels=self.fencing_levels,
            alerts=self.alerts,
            acl_roles=self.acl_roles,
            acl_targets=self.acl_targets,
            acl_groups=self.acl_groups,
        )


def assemble(
    statements: Sequence[Statement],
    *,
    base: Configuration | None = None,
    mode: Mode = Mode.ADD,
    members: Iterable[NodeName] = (),
) -> Assembly:
    """Make all statements' changes to `base` (none: an empty configuration), in order.

    `members` are nodes that need not be configured, for what is configured for every node.
    """
    start = base or Configuration()
    draft = _Draft(
        nodes=dict(start.nodes),
        resources=dict(start.resources),
        constraints=dict(start.constraints),
        templates=dict(start.templates),
        tags=dict(start.tags),
        alerts=dict(start.alerts),
        acl_roles=dict(start.acl_roles),
        acl_targets=dict(start.acl_targets),
        acl_groups=dict(start.acl_groups),
        fencing_levels=start.fencing_levels,
        sets={
            "properties": start.properties,
            "resource_defaults": start.resource_defaults,
            "operation_defaults": start.operation_defaults,
        },
        mode=mode,
    )
    for statement in statements:
        if isinstance(statement, Define | MergeSet):
            _apply(draft, statement)
    _resolve(draft, statements)
    for statement in statements:
        if isinstance(statement, AddOperation):
            _add_operation(draft, statement)
        elif isinstance(statement, DefineLevels):
            _add_levels(draft, statement, members)
    return Assembly(draft.configuration(), tuple(draft.reports), Places(draft.places))


def _apply(draft: _Draft, statement: Define | MergeSet) -> None:
    draft.places.update(statement.places)
    if isinstance(statement, MergeSet):
        draft.sets[statement.section] = merge_block(
            draft.sets[statement.section], statement.block, has_score=statement.has_score
        )
        return
    made = statement.object
    kind, id_ = _kind(made), made.name if isinstance(made, NodeEntry) else made.id
    is_said_again = isinstance(made, NodeEntry) and _is_said_again(draft, made)
    if not is_said_again and not _may_define(draft, statement, kind, id_, exists=id_ in draft.known(kind)):
        return
    match made:
        case NodeEntry():
            mode = Mode.ADD if is_said_again else draft.mode
            draft.nodes[made.name] = _with_what_is_there(draft.nodes.get(made.name), made, mode)
        case Template():
            draft.templates[made.id] = made
        case Tag():
            draft.tags[made.id] = made
        case Alert():
            draft.alerts[made.id] = made
        case AclRole() | AclTarget() | AclGroup():
            draft.put_access(made)
        case Location() | Colocation() | Ordering() | TicketConstraint():
            draft.constraints[made.id] = made
        case Primitive() | Group() | Clone() | Bundle():
            draft.resources[made.id] = made


def _is_said_again(draft: _Draft, made: NodeEntry) -> bool:
    """Tell whether this text names a node once more, as the same one: that adds to it, as in crmsh."""
    present = draft.nodes.get(made.name)
    return ("node", made.name) in draft.defined and present is not None and made.id in ("", present.id)


def _kind(made: NodeEntry | Resource | Constraint | Template | Tag | Alert | AclObject) -> str:
    """Return the first word of the path of such an object."""
    match made:
        case NodeEntry():
            return "node"
        case Template():
            return "template"
        case Tag():
            return "tag"
        case Alert():
            return "alert"
        case AclRole() | AclTarget() | AclGroup():
            return kind_of(made)
        case Location() | Colocation() | Ordering() | TicketConstraint():
            return "constraint"
        case _:
            return "resource"


def _may_define(draft: _Draft, statement: Define, kind: str, id_: str, *, exists: bool) -> bool:
    place = statement.places.get((kind, id_), statement.place)
    if (kind, id_) in draft.defined:
        draft.reports.append(report(Code.DUPLICATE_ID, place=place, id=id_))
        return False
    draft.defined.add((kind, id_))
    if exists and draft.mode is Mode.ADD and kind != "node":
        draft.reports.append(report(Code.EXISTS, place=place, kind=kind, id=id_))
        return False
    return True


def _with_what_is_there(present: NodeEntry | None, made: NodeEntry, mode: Mode) -> NodeEntry:
    """Return a node as a text defines it, or with what one statement adds to what is configured of it, as in crmsh.

    Nobody defines a node that is a member: `node n1 utilization memory=4096` is how it gets a value.
    """
    if present is None or mode is Mode.UPDATE:
        return with_id_of(present, made)
    return replace(
        present,
        attributes=_blocks_added(present.attributes, made.attributes),
        utilization=_blocks_added(present.utilization, made.utilization),
        description=made.description or present.description,
        is_remote=made.is_remote or present.is_remote,
        score=made.score or present.score,
        id=made.id or present.id,
    )


def _blocks_added(present: tuple[AttributeSet, ...], added: tuple[AttributeSet, ...]) -> tuple[AttributeSet, ...]:
    """Set values in the set of the same id; those without a rule otherwise in the first set that counts always."""
    for block in added:
        known = {each.id for each in present}
        first = next((each.id for each in present if has_no_rule(each)), block.id)
        target = first if block.id not in known and has_no_rule(block) else block.id
        present = merge_block(present, replace(block, id=target), has_score=bool(block.score))
    return present


def _resolve(draft: _Draft, statements: Iterable[Statement]) -> None:
    """Put in what the new objects refer to, now that every object is there."""
    defined = [statement for statement in statements if isinstance(statement, Define)]
    referred = Referred(
        draft.configuration(),
        pairs={id_: pair for statement in defined for id_, pair in statement.pairs.items()},
    )
    for statement in statements:
        if isinstance(statement, Define):
            _resolve_one(draft, referred, statement)
        elif isinstance(statement, MergeSet):
            sets = draft.sets[statement.section]
            draft.sets[statement.section] = tuple(referred.block(block, statement.place) for block in sets)
    draft.reports += referred.reports


def _resolve_one(draft: _Draft, referred: Referred, statement: Define) -> None:
    made = statement.object
    match made:
        case Tag() | Colocation() | Ordering() | TicketConstraint() | AclRole() | AclTarget() | AclGroup():
            return
        case NodeEntry():
            draft.nodes[made.name] = referred.resolved(draft.nodes[made.name], statement.place)
        case Template():
            draft.templates[made.id] = referred.resolved(made, statement.place)
        case Primitive():
            draft.resources[made.id] = _with_agent(draft, referred.resolved(made, statement.place), statement)
        case Alert():
            recipients = tuple(referred.resolved(each, statement.place) for each in made.recipients)
            draft.alerts[made.id] = replace(referred.resolved(made, statement.place), recipients=recipients)
        case Location():
            draft.constraints[made.id] = referred.resolved(made, statement.place)
        case Group() | Clone() | Bundle():
            draft.resources[made.id] = referred.resolved(made, statement.place)


def _with_agent(draft: _Draft, primitive: Primitive, statement: Define) -> Primitive:
    """Return a primitive with its template's agent, when it has a template."""
    if primitive.template is None:
        return primitive
    template = draft.templates.get(primitive.template)
    if template is None:
        place = statement.places.get(("resource", primitive.id, "agent"), statement.place)
        where = primitive.id
        draft.reports.append(report(Code.UNKNOWN_TEMPLATE, place=place, where=where, id=primitive.template))
        return primitive
    return replace(primitive, agent=template.agent)


def merge_block(sets: tuple[AttributeSet, ...], block: AttributeSet, *, has_score: bool) -> tuple[AttributeSet, ...]:
    """Set the block's pairs in the set of the same id, or add it as the last one."""
    for index, present in enumerate(sets):
        if present.id == block.id:
            score = block.score if has_score else present.score
            merged = _with_notes_of(
                AttributeSet(present.id, set_over(present.pairs, block.pairs), score, block.rule or present.rule),
                present, block,
            )  # fmt: skip
            return (*sets[:index], merged, *sets[index + 1 :])
    return (*sets, block)


def _with_notes_of(merged: AttributeSet, present: AttributeSet, added: AttributeSet) -> AttributeSet:
    """Return a merged block with the notes of its pairs; what was set has the new one, or none."""
    if not (present.notes or added.notes or present.valueless or added.valueless):
        return merged
    names, newly = {name for name, _ in merged.pairs}, {name for name, _ in added.pairs}
    notes = (*(note for note in present.notes if note.name in names - newly), *added.notes)
    valueless = dict.fromkeys((*present.valueless, *added.valueless))
    return replace(merged, notes=notes, valueless=tuple(name for name in valueless if name not in names))


def _add_levels(draft: _Draft, statement: DefineLevels, members: Iterable[NodeName]) -> None:
    added = statement.levels
    if statement.is_for_all_nodes:
        names = sorted({*draft.nodes, *members})
        added = tuple(replace(level, target=name) for name in names for level in statement.levels)
        if not names:
            draft.reports.append(report(Code.MISSING_KEY, place=statement.place, where="fencing_topology", key="NODE:"))
    targets = {_target(level) for level in added}
    kept = tuple(level for level in draft.fencing_levels if _target(level) not in targets)
    wanted: list[tuple[str | None, str]] = [(level.id, "") for level in kept]
    wanted += [(level.id or None, LEVEL_ID) for level in added]
    ids = allocate(wanted)[len(kept) :]
    for number in range(len(added)):
        place = statement.places.get(("fencing_level", str(number % len(statement.levels))), statement.place)
        draft.places["fencing_level", str(len(kept) + number)] = place
    draft.fencing_levels = kept + tuple(replace(level, id=id_) for level, id_ in zip(added, ids, strict=True))


def _target(level: FencingLevel) -> tuple[str, str, str, str]:
    return level.target, level.target_pattern, level.target_attribute, level.target_value


def _add_operation(draft: _Draft, statement: AddOperation) -> None:
    owners: Mapping[ResourceId, Resource | Template] = {**draft.templates, **draft.resources}
    owner = owners.get(statement.resource)
    if not isinstance(owner, Primitive | Template):
        remedy = None if owner is None else "name a primitive: only it has operations of its own"
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
    if any((each.name, each.interval_ms) == (operation.name, operation.interval_ms) for each in owner.operations):
        draft.reports.append(
            report(
                Code.EXISTS,
                place=statement.place,
                kind="operation",
                id=f"{operation.name} of {owner.id} with interval {durations.render(operation.interval_ms)}",
                remedy=f"give it another interval, or change the one that is there: crm configure edit {owner.id}",
            )
        )
        return
    wanted: list[tuple[str | None, str]] = [(present.id, "") for present in owner.operations]
    wanted.append((None, operation_base(owner.id, operation.name, interval_text(operation))))
    named = replace(operation, id=allocate(wanted)[-1])
    kind = "resource" if isinstance(owner, Primitive) else "template"
    path = (kind, owner.id, "operation", str(len(owner.operations)))
    draft.places.setdefault((kind, owner.id), statement.place)
    draft.places[path] = statement.place
    if isinstance(owner, Primitive):
        draft.resources[owner.id] = replace(owner, operations=(*owner.operations, named))
    else:
        draft.templates[owner.id] = replace(owner, operations=(*owner.operations, named))
