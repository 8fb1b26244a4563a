"""What a text says, brought to how it is kept.

Words are spelled as the tables of `model` spell them, and what only Pacemaker's daemons read is left out. Of a CIB that
other tools wrote, more is taken as Pacemaker takes it: a value that cannot be read is replaced by what counts then, a
misspelled name and a constraint on what does not exist are left out. Whatever is left out or replaced is reported by
name; hand-written text is left as it is, for verification to judge.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import TypeVar

from haclusterd.commands.attribute_sets import every_block
from haclusterd.commands.context import Context
from haclusterd.formats.cib_xml.notes import AS_IN_PACEMAKER
from haclusterd.formats.cib_xml.upgrade import renamed
from haclusterd.model import durations
from haclusterd.model.configuration import (
    AttributeSet,
    Colocation,
    Configuration,
    Constraint,
    Location,
    NodeEntry,
    Operation,
    Ordering,
    Primitive,
    Resource,
    ResourceSet,
    Tag,
    Template,
    TicketConstraint,
    rules_of,
)
from haclusterd.model.ids import ConstraintId, ResourceId
from haclusterd.model.operations import DEFAULTABLE, ONE_SHOT, OPERATION_ATTRIBUTES, operation_row
from haclusterd.model.pair_notes import without_notes
from haclusterd.model.properties import BOOTSTRAP_OPTIONS, is_of_others, is_own_meta, meta_row, property_row
from haclusterd.model.property_tables import (
    BOOKKEEPING,
    FORMER_INFRASTRUCTURES,
    META_NAMES,
    NOT_IN_SCHEMA,
    PACEMAKERS_PROPERTIES,
    PROPERTY_NAMES,
    WATCHDOG_TIMEOUTS,
)
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.rows import Row, ValueType, canonical, foreign_objection, objection, replacement
from haclusterd.model.rules import DateExpression, Rule
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.places import Places
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.scheduler.model.references import cut_at_missing

WATCHDOG_FENCING = "watchdog-fencing"
WATCHDOG_AGENT = "stonith:fence_watchdog"
HAVE_WATCHDOG = "have-watchdog"

_WITH_NEEDS = ("start", "promote")
_OPERATION_NAMES = tuple(row.name for row in OPERATION_ATTRIBUTES)
_Path = tuple[str, ...]
_Made = TypeVar("_Made", Primitive, Template)


@dataclass(slots=True)
class _Settling:
    """One configuration on its way in."""

    places: Places
    is_foreign: bool
    reports: list[ReportItem] = field(default_factory=list)

    def note(
        self, code: Code, path: _Path, *, severity: Severity | None = None, remedy: str | None = None, **details: object
    ) -> None:
        self.reports.append(report(code, place=self.places.find(*path), severity=severity, remedy=remedy, **details))

    def value(self, row: Row, text: str, name: str, path: _Path) -> str:
        """Return a value as it is kept."""
        problem = objection(row, text)
        if problem is None and self.is_foreign:
            problem = foreign_objection(row, text)
        if problem is None:
            return canonical(row, text)
        if not self.is_foreign:
            return text
        instead = replacement(row, text)
        counts = f"{instead} counts instead" if instead else "it counts as not given"
        self.note(
            Code.BAD_VALUE, path, severity=Severity.WARNING, remedy=f"set it to what is meant: {row.doc}",
            name=name, problem=f"{problem}; {counts}, {AS_IN_PACEMAKER}",
        )  # fmt: skip
        return instead

    def left_out(self, path: _Path, problem: str, remedy: str, severity: Severity = Severity.WARNING) -> None:
        self.note(Code.LEFT_OUT, path, severity=severity, remedy=remedy, problem=problem)


def settle(
    configuration: Configuration, places: Places, *, is_foreign: bool = False
) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Return a configuration as it is kept, and what was changed on the way.

    `is_foreign`: other tools wrote it, so that what they accept is accepted. What is settled stays as it is when it is
    settled again.
    """
    work = _Settling(places, is_foreign)
    configuration = _without_watchdog_devices(work, configuration)
    made = replace(
        configuration,
        properties=tuple(_properties(work, block) for block in configuration.properties),
        resource_defaults=_meta(work, configuration.resource_defaults, "resource defaults", ("resource_defaults",)),
        operation_defaults=_attributes(
            work, configuration.operation_defaults, "operation defaults", ("operation_defaults",)
        ),
        resources={id_: _resource(work, each) for id_, each in configuration.resources.items()},
        templates={id_: _settled(work, each, "template") for id_, each in configuration.templates.items()},
    )
    if is_foreign:
        made = replace(made, nodes={name: _node(work, each) for name, each in made.nodes.items()})
        made = replace(made, tags=dict(_tags(work, made)))
        made = replace(made, constraints=dict(_constraints(work, made)))
        _note_local_times(work, made)
    return without_notes(made), tuple(work.reports)


def settled_for(
    context: Context, configuration: Configuration, places: Places
) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Settle what was written for this cluster; what is in a CIB of Pacemaker stays as Pacemaker keeps it."""
    return _without_refused_notes(configuration, places) if context.is_foreign else settle(configuration, places)


def _without_refused_notes(
    configuration: Configuration, places: Places
) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Leave out what tools of old releases noted, and what today's schemas have no place for."""
    work = _Settling(places, is_foreign=True)
    blocks = tuple(_with_pairs(block, list(_taken(work, block))) for block in configuration.properties)
    return (replace(configuration, properties=blocks) if work.reports else configuration), tuple(work.reports)


def _taken(work: _Settling, block: AttributeSet) -> Iterator[tuple[str, str]]:
    for name, value in block.pairs:
        is_former = name == "cluster-infrastructure" and value in FORMER_INFRASTRUCTURES
        if is_former or (name in NOT_IN_SCHEMA and name in BOOKKEEPING):
            problem = f"the property {name}={value}: Pacemaker takes no CIB that has it any more"
            work.left_out(("properties", name), problem, "nothing to do", Severity.INFO)
        else:
            yield name, value


def _without_watchdog_devices(work: _Settling, configuration: Configuration) -> Configuration:
    """Store a device `stonith:fence_watchdog` as what it stands for (Pacemaker Explained, "Watchdog Fencing").

    One that something else names stays: verification refuses it.
    """
    parents = configuration.parents()
    named = {device for level in configuration.fencing_levels for device in level.devices}
    named |= {each for constraint in configuration.constraints.values() for each in _named(constraint)}
    named |= {ResourceId(each) for tag in configuration.tags.values() for each in tag.references}
    kept, properties = dict(configuration.resources), configuration.properties
    for device in configuration.primitives():
        if str(device.agent) != WATCHDOG_AGENT or device.id in named or device.id in parents:
            continue
        del kept[device.id]
        if not any(block.get(WATCHDOG_FENCING) is not None for block in properties):
            properties = _with_watchdog_fencing(properties)
        what = f"{device.id} ({WATCHDOG_AGENT})"
        work.note(Code.STORED_AS, ("resource", device.id), what=what, stored=f"{WATCHDOG_FENCING}=true")
    if len(kept) == len(configuration.resources):
        return configuration
    return replace(configuration, resources=kept, properties=properties)


def _with_watchdog_fencing(properties: tuple[AttributeSet, ...]) -> tuple[AttributeSet, ...]:
    added = (WATCHDOG_FENCING, "true")
    for index, block in enumerate(properties):
        if block.id == BOOTSTRAP_OPTIONS:
            return (*properties[:index], replace(block, pairs=(*block.pairs, added)), *properties[index + 1 :])
    return (*properties, AttributeSet(BOOTSTRAP_OPTIONS, (added,)))


def bad_values(configuration: Configuration, places: Places) -> tuple[ReportItem, ...]:
    """Return what cannot be read in a CIB of Pacemaker, each with what counts instead."""
    _, reports = settle(configuration, places, is_foreign=True)
    return tuple(each for each in reports if each.code is Code.BAD_VALUE)


def _properties(work: _Settling, block: AttributeSet) -> AttributeSet:
    pairs: list[tuple[str, str]] = []
    for written, value in block.pairs:
        name, path = renamed(written), ("properties", written)
        row = property_row(name)
        if name != written:
            work.note(Code.STORED_AS, path, what=f"{written}={value}", stored=name)
        if name in PACEMAKERS_PROPERTIES or name in WATCHDOG_TIMEOUTS:
            pairs += _pacemakers(work, block, name, value)
        elif row is not None:
            pairs.append((name, work.value(row, value, name, path)))
        elif work.is_foreign and (name in NOT_IN_SCHEMA or not is_of_others(block.id, name)):
            problem = f"the property {name}, which there is not, {AS_IN_PACEMAKER}"
            work.left_out(path, problem, did_you_mean(name, PROPERTY_NAMES))
        else:
            pairs.append((name, value))
    return _with_pairs(block, pairs)


def _pacemakers(work: _Settling, block: AttributeSet, name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield what stands for a property that only Pacemaker reads: mostly nothing."""
    path, is_note = ("properties", name), name in BOOKKEEPING
    if name in WATCHDOG_TIMEOUTS:
        try:
            is_used = value.strip().startswith("-") or durations.parse(value) > 0
        except ValueError:
            is_used = False
        if is_used and block.get(WATCHDOG_FENCING) is None:
            work.note(Code.STORED_AS, path, what=f"{name}={value}", stored=f"{WATCHDOG_FENCING}=true")
            yield WATCHDOG_FENCING, "true"
            return
        why, remedy = "nodes are not fenced by watchdogs", "nothing to do"
    else:
        why, remedy = PACEMAKERS_PROPERTIES[name], "nothing to do" if is_note else "see: crm configure get_property"
    if name == HAVE_WATCHDOG and value.strip().lower() in ("true", "1", "yes", "on", "y"):
        is_note = False
        remedy = f"where nodes are to be fenced by their watchdogs: crm configure property {WATCHDOG_FENCING}=true"
    severity = Severity.INFO if is_note else Severity.WARNING
    work.left_out(path, f"the property {name}={value}: {why}", remedy, severity)


def _resource(work: _Settling, resource: Resource) -> Resource:
    if isinstance(resource, Primitive):
        return _settled(work, resource, "resource")
    meta = _meta(work, resource.meta, resource.id, ("resource", resource.id, "meta"))
    return resource if meta is resource.meta else replace(resource, meta=meta)


def _settled(work: _Settling, made: _Made, kind: str) -> _Made:
    meta = _meta(work, made.meta, made.id, (kind, made.id, "meta"))
    made, meta = _with_needs(work, made, meta, kind)
    operations = tuple(
        _operation(work, each, f"{made.id}: {each.name}", (kind, made.id, "operation", str(index)))
        for index, each in enumerate(made.operations)
        if not _is_impossible(work, each, made.id, (kind, made.id, "operation", str(index)))
    )
    utilization = _utilization(work, made.utilization, made.id, (kind, made.id, "utilization"))
    return replace(made, meta=meta, operations=operations, utilization=utilization)


def _with_needs(
    work: _Settling, made: _Made, meta: tuple[AttributeSet, ...], kind: str
) -> tuple[_Made, tuple[AttributeSet, ...]]:
    """Move what a start requires to the resource, as Pacemaker's newest schema has it; of others it means nothing."""
    if all(each.requires is None for each in made.operations):
        return made, meta
    given = [each.requires for each in made.operations if each.name in _WITH_NEEDS and each.requires is not None]
    for index, each in enumerate(made.operations):
        path, where = (kind, made.id, "operation", str(index), "requires"), f"{made.id}: {each.name}"
        if each.requires is not None and each.name in _WITH_NEEDS:
            stored = f"{made.id} meta requires={each.requires}"
            work.note(Code.STORED_AS, path, what=f"{where} requires={each.requires}", stored=stored)
        elif each.requires is not None:
            work.left_out(path, f"{where} requires={each.requires}: only a start requires anything", "nothing to do")
    if given:
        # Of blocks with equal scores the last one wins: what the resource itself says stays stronger.
        meta = (AttributeSet(f"{made.id}-op-requires", (("requires", given[-1]),)), *meta)
    return replace(made, operations=tuple(replace(each, requires=None) for each in made.operations)), meta


def _is_impossible(work: _Settling, operation: Operation, where: str, path: _Path) -> bool:
    """Tell whether Pacemaker ignores an operation: a start, for one, cannot recur."""
    if not (work.is_foreign and operation.interval_ms and operation.name in ONE_SHOT):
        return False
    problem = f"{where}: the operation {operation.name} with an interval, {AS_IN_PACEMAKER}"
    work.left_out(path, problem, "write it with interval=0")
    return True


def _meta(work: _Settling, blocks: tuple[AttributeSet, ...], where: str, path: _Path) -> tuple[AttributeSet, ...]:
    return _same_or(blocks, tuple(_with_pairs(each, _meta_pairs(work, each, where, path)) for each in blocks))


def _meta_pairs(work: _Settling, block: AttributeSet, where: str, path: _Path) -> Iterator[tuple[str, str]]:
    for name, value in block.pairs:
        row, own = meta_row(name), (*path, name)
        if row is not None:
            yield name, work.value(row, value, f"{where}: {name}", own)
        elif work.is_foreign and not is_own_meta(name):
            remedy = did_you_mean(name, META_NAMES)
            work.left_out(own, f"{where}: the meta-attribute {name}, which there is not, {AS_IN_PACEMAKER}", remedy)
        else:
            yield name, value


def _attributes(work: _Settling, blocks: tuple[AttributeSet, ...], where: str, path: _Path) -> tuple[AttributeSet, ...]:
    """Settle blocks of operations' attributes."""
    return _same_or(blocks, tuple(_with_pairs(each, _attribute_pairs(work, each, where, path)) for each in blocks))


def _attribute_pairs(work: _Settling, block: AttributeSet, where: str, path: _Path) -> Iterator[tuple[str, str]]:
    for name, value in block.pairs:
        row, own = operation_row(name), (*path, name)
        if row is not None and (name in DEFAULTABLE or path != ("operation_defaults",)):
            yield name, work.value(row, value, f"{where}: {name}", own)
        elif work.is_foreign:
            remedy = did_you_mean(name, DEFAULTABLE if path == ("operation_defaults",) else _OPERATION_NAMES)
            work.left_out(own, f"{where}: {name} means nothing there, {AS_IN_PACEMAKER}", remedy)
        else:
            yield name, value


def _operation(work: _Settling, operation: Operation, where: str, path: _Path) -> Operation:
    on_fail, row = operation.on_fail, operation_row("on-fail")
    if on_fail is not None and row is not None:
        on_fail = work.value(row, on_fail, f"{where}: on-fail", (*path, "on-fail"))
    meta = _attributes(work, operation.meta, where, (*path, "meta"))
    if on_fail == operation.on_fail and meta is operation.meta:
        return operation
    return replace(operation, on_fail=on_fail, meta=meta)


def _node(work: _Settling, node: NodeEntry) -> NodeEntry:
    utilization = _utilization(work, node.utilization, node.name, ("node", node.name, "utilization"))
    return node if utilization is node.utilization else replace(node, utilization=utilization)


def _utilization(
    work: _Settling, blocks: tuple[AttributeSet, ...], where: str, path: _Path
) -> tuple[AttributeSet, ...]:
    if not work.is_foreign:
        return blocks
    return _same_or(blocks, tuple(_with_pairs(each, _capacities(work, each, where, path)) for each in blocks))


def _capacities(work: _Settling, block: AttributeSet, where: str, path: _Path) -> Iterator[tuple[str, str]]:
    for name, value in block.pairs:
        yield name, work.value(_CAPACITY, value, f"{where}: {name}", (*path, name))


_CAPACITY = Row("utilization", ValueType.INTEGER, "0", "A capacity is a whole number.")


def _with_pairs(block: AttributeSet, pairs: Iterable[tuple[str, str]]) -> AttributeSet:
    made = tuple(pairs)
    return block if made == block.pairs else replace(block, pairs=made)


def _same_or(old: tuple[AttributeSet, ...], new: tuple[AttributeSet, ...]) -> tuple[AttributeSet, ...]:
    return old if old == new else new


def _tags(work: _Settling, configuration: Configuration) -> Iterator[tuple[str, Tag]]:
    known = {
        *configuration.resources, *configuration.templates, *configuration.constraints, *configuration.nodes,
        *configuration.tags,
    }  # fmt: skip
    by_id = {node.id: name for name, node in configuration.nodes.items() if node.id}
    for id_, tag in configuration.tags.items():
        named = tuple(each if each in known else by_id.get(each, each) for each in tag.references)
        for old, new in zip(tag.references, named, strict=True):
            if old != new:
                work.note(Code.STORED_AS, ("tag", id_, old), what=f"{old} in tag {id_}", stored=new)
        missing = [each for each in named if each not in known]
        for each in missing:
            problem = f"{each} in tag {id_}: there is no such thing, {AS_IN_PACEMAKER}"
            work.left_out(("tag", id_, each), problem, f"define {each} first")
        kept = tuple(each for each in named if each in known)
        if kept:
            yield id_, replace(tag, references=kept)


def _constraints(work: _Settling, configuration: Configuration) -> Iterator[tuple[ConstraintId, Constraint]]:
    """Yield the constraints that mean anything; Pacemaker ignores the others."""
    known = {*configuration.resources, *configuration.templates, *configuration.tags}
    for id_, constraint in configuration.constraints.items():
        missing = [each for each in _named(constraint) if each not in known]
        if missing:
            kept, problem = _without(constraint, missing[0], configuration)
            work.left_out(("constraint", id_), problem, f"once it is defined: crm configure {_written(constraint)}")
            if kept is not None:
                yield id_, kept
        elif _is_with_itself(constraint):
            work.left_out(("constraint", id_), f"constraint {id_}: it relates a resource to itself", "name two")
        else:
            yield id_, constraint


def _written(constraint: Constraint) -> str:
    """Return a constraint as one line of crm text."""
    from haclusterd.formats.crm.constraint_writer import NEXT, write_constraint

    return " ".join(write_constraint(constraint).replace(NEXT, " ").split())


def _without(
    constraint: Constraint, missing: ResourceId, configuration: Configuration
) -> tuple[Constraint | None, str]:
    """Return what is left of a constraint that names what does not exist, and what to say of it."""
    problem = f"constraint {constraint.id}: there is no resource {missing}"
    if not constraint.sets:
        return None, f"{problem}, {AS_IN_PACEMAKER}"

    def is_known(name: ResourceId) -> bool:
        # Beside a missing member a template or a tag means nothing either.
        return name in configuration.resources

    if isinstance(constraint, Colocation):
        sets = tuple(replace(each, members=tuple(takewhile(is_known, each.members))) for each in constraint.sets)
        for before, cut, whole in zip(sets, sets[1:], constraint.sets[1:], strict=False):
            is_bound = bool(cut.members) if whole.is_sequential is False else cut.members == whole.members
            if not before.members or not is_bound:
                return None, f"{problem}; in Pacemaker the sets without it count"
    else:
        keeps_members = not isinstance(constraint, Ordering)
        sets = cut_at_missing(constraint.sets, is_known, keeps_members=keeps_members)
    if sum(len(each.members) for each in sets) < (1 if isinstance(constraint, Location | TicketConstraint) else 2):
        return None, f"{problem}, {AS_IN_PACEMAKER}"
    return replace(constraint, sets=sets), f"{problem}; what comes before it counts, {AS_IN_PACEMAKER}"


_OFFSET = re.compile(r"(?:Z|[+-]\d\d(?::?\d\d)?)\s*\Z")


def _note_local_times(work: _Settling, configuration: Configuration) -> None:
    """Warn of times that mean another moment here: without an offset they are UTC, in Pacemaker local time."""
    rules: list[tuple[_Path, str, Rule]] = [
        (("constraint", id_), f"constraint {id_}", rule)
        for id_, each in configuration.constraints.items() for rule in rules_of(each)
    ]  # fmt: skip
    rules += [
        (path, where, block.rule) for blocks, where, path in every_block(configuration) for block in blocks
        if block.rule is not None
    ]  # fmt: skip
    for path, where, rule in rules:
        if _is_local(rule):
            problem = "times without an offset are UTC here, and local time in Pacemaker"
            remedy = "write the offset, as in 2030-01-31T12:00:00+01:00; date_spec is UTC always"
            name = f"{where}: rule"
            work.note(Code.BAD_VALUE, path, severity=Severity.WARNING, remedy=remedy, name=name, problem=problem)


def _has_time(text: str) -> bool:
    return "T" in text or ":" in text


def _is_local(rule: Rule) -> bool:
    for each in rule.conditions:
        if isinstance(each, Rule) and _is_local(each):
            return True
        if isinstance(each, DateExpression):
            moments = [text for text in (each.start, each.end) if text is not None]
            if each.spec or not all(_has_time(text) and _OFFSET.search(text) for text in moments):
                return True
    return False


def _named(constraint: Constraint) -> Iterator[ResourceId]:
    sets: tuple[ResourceSet, ...] = constraint.sets
    yield from (member for each in sets for member in each.members)
    if sets:
        return
    match constraint:
        case Location():
            yield from () if constraint.pattern else (constraint.resource,)
        case Colocation(dependent=dependent, primary=primary):
            yield from (dependent, primary)
        case Ordering(first=first, then=then):
            yield from (first, then)
        case TicketConstraint(resource=resource):
            yield resource


def _is_with_itself(constraint: Constraint) -> bool:
    if constraint.sets:
        return False
    if isinstance(constraint, Colocation):
        return constraint.dependent == constraint.primary
    return isinstance(constraint, Ordering) and constraint.first == constraint.then
