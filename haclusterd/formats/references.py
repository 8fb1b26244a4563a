"""Parts of objects that a text only refers to: blocks, rules, pairs, operations (Pacemaker Explained, "Reusing Rules,
Options and Sets of Operations").

A reference names the part's id, or an object that has one such part. What it means is put in its place as if it were
written there: the part keeps its id. A reference to a reference is none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from haclusterd.formats.statements import PAIR_REFERENCE, REFERENCE
from haclusterd.model.configuration import (
    Alert,
    AlertRecipient,
    AttributeSet,
    Bundle,
    Clone,
    Colocation,
    Configuration,
    Group,
    Location,
    NodeEntry,
    Operation,
    Ordering,
    PairNote,
    Primitive,
    Template,
)
from haclusterd.model.pair_notes import pair_with_id
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.rules import Rule
from haclusterd.reports.codes import Code
from haclusterd.reports.items import Place, ReportItem, report

Owner = (
    NodeEntry | Primitive | Template | Group | Clone | Bundle | Location | Colocation | Ordering
    | Alert | AlertRecipient
)  # fmt: skip
_Owner = TypeVar("_Owner", bound=Owner)
_Part = TypeVar("_Part")

_RULE_FIELDS = ("rules", "lifetime")
_BLOCK_FIELDS = ("parameters", "meta", "utilization", "attributes")


@dataclass(slots=True)
class Referred:
    """What can be referred to: by id, and by owner where the owner has one such part."""

    configuration: Configuration
    pairs: Mapping[str, tuple[str, str]]
    reports: list[ReportItem] = field(default_factory=list)

    def resolved(self, owner: _Owner, place: Place) -> _Owner:
        """Return an object with what it refers to put in; what is not found is reported and left out."""
        changed: dict[str, object] = {}
        for name in _BLOCK_FIELDS:
            blocks: tuple[AttributeSet, ...] | None = getattr(owner, name, None)
            if blocks is not None and any(map(_is_open, blocks)):
                changed[name] = tuple(self._blocks(blocks, name, place))
        if isinstance(owner, Primitive | Template):
            changed.update(self._operations(owner, place))
        for name in _RULE_FIELDS:
            rules: tuple[Rule, ...] = getattr(owner, name, ())
            if any(rule.id.startswith(REFERENCE) for rule in rules):
                changed[name] = tuple(self._rules(rules, place))
        return replace(owner, **changed) if changed else owner  # type: ignore[arg-type]  # names of its own fields

    def block(self, block: AttributeSet, place: Place) -> AttributeSet:
        """Return one block of a whole section with what it refers to put in."""
        made = list(self._blocks((block,), "properties", place))
        return made[0] if made else block

    def _blocks(self, blocks: Iterable[AttributeSet], name: str, place: Place) -> Iterator[AttributeSet]:
        for block in blocks:
            found = block
            if block.id.startswith(REFERENCE):
                target = block.id.removeprefix(REFERENCE)
                known = self._find(target, lambda owner: getattr(owner, name, ()), lambda part: part.id, place)
                if known is None:
                    continue
                found = known
            yield self._whole(found, place)

    def _whole(self, block: AttributeSet, place: Place) -> AttributeSet:
        """Return a block with its rule and pairs put in."""
        if block.rule is not None and block.rule.id.startswith(REFERENCE):
            rules = tuple(self._rules((block.rule,), place))
            block = replace(block, rule=rules[0] if rules else None)
        if any(name.startswith(PAIR_REFERENCE) for name, _ in block.pairs):
            block = self._with_pairs(block, place)
        return block

    def _with_pairs(self, block: AttributeSet, place: Place) -> AttributeSet:
        """Return a block with the pairs that it refers to, and a note of each that it is a reference."""
        pairs: list[tuple[str, str]] = []
        notes = list(block.notes)
        for name, value in block.pairs:
            if not name.startswith(PAIR_REFERENCE):
                pairs.append((name, value))
                continue
            target, _, other = name.removeprefix(PAIR_REFERENCE).partition(":")
            found = self.pairs.get(target) or pair_with_id(self.configuration, target)
            if found is None:
                self._unknown(target, place)
                continue
            pairs.append((other or found[0], found[1]))
            notes.append(PairNote(other or found[0], target, is_reference=True, says_name=bool(other)))
        return replace(block, pairs=tuple(pairs), notes=tuple(notes))

    def _rules(self, rules: Iterable[Rule], place: Place) -> Iterator[Rule]:
        for rule in rules:
            if not rule.id.startswith(REFERENCE):
                yield rule
                continue
            target = rule.id.removeprefix(REFERENCE)
            found = self._find(target, rules_of, lambda part: part.id, place)
            if found is not None:
                yield found

    def _operations(self, owner: Primitive | Template, place: Place) -> Mapping[str, object]:
        made: list[Operation] = []
        for operation in owner.operations:
            if operation.id.startswith(REFERENCE):
                made += self._operations_of(operation.id.removeprefix(REFERENCE), place)
            elif any(map(_is_open, operation.parameters + operation.meta)):
                parameters = tuple(self._blocks(operation.parameters, "parameters", place))
                meta = tuple(self._blocks(operation.meta, "meta", place))
                made.append(replace(operation, parameters=parameters, meta=meta))
            else:
                made.append(operation)
        return {} if tuple(made) == owner.operations else {"operations": tuple(made)}

    def _operations_of(self, target: str, place: Place) -> tuple[Operation, ...]:
        owners: tuple[Primitive | Template, ...] = (
            *self.configuration.templates.values(), *self.configuration.primitives()
        )  # fmt: skip
        found = next((owner for owner in owners if target in (owner.operations_id, owner.id)), None)
        if found is not None:
            return tuple(each for each in found.operations if not each.id.startswith(REFERENCE))
        self._unknown(target, place)
        return ()

    def _find(
        self,
        target: str,
        parts_of: Callable[[object], Iterable[_Part]],
        id_of: Callable[[_Part], str],
        place: Place,
    ) -> _Part | None:
        """Return a part by its id, or the only one of the object of that name."""
        for name, owner in _owners(self.configuration):
            parts = [part for part in parts_of(owner) if not id_of(part).startswith(REFERENCE)]
            for part in parts:
                if id_of(part) == target or (name == target and len(parts) == 1):
                    return part
        self._unknown(target, place)
        return None

    def _unknown(self, target: str, place: Place) -> None:
        self.reports.append(report(Code.UNKNOWN_OBJECT, place=place, id=repr(target)))


def _is_open(block: AttributeSet) -> bool:
    is_rule_open = block.rule is not None and block.rule.id.startswith(REFERENCE)
    has_open_pair = any(name.startswith(PAIR_REFERENCE) for name, _ in block.pairs)
    return block.id.startswith(REFERENCE) or is_rule_open or has_open_pair


def rules_of(owner: object) -> Iterator[Rule]:
    """Yield the rules of an object: a constraint's, or those of its blocks."""
    for name in _RULE_FIELDS:
        yield from getattr(owner, name, ())
    for name in _BLOCK_FIELDS:
        for block in getattr(owner, name, ()):
            if block.rule is not None:
                yield block.rule


def _owners(configuration: Configuration) -> Iterator[tuple[str, object]]:
    yield from configuration.nodes.items()
    yield from configuration.templates.items()
    yield from configuration.resources.items()
    for resource in (*configuration.templates.values(), *configuration.resources.values()):
        if isinstance(resource, Primitive | Template):
            yield from ((operation.id, operation) for operation in resource.operations)
    yield from configuration.constraints.items()
    for alert in configuration.alerts.values():
        yield alert.id, alert
        yield from ((each.id, each) for each in alert.recipients)
    for sets in (configuration.properties, configuration.resource_defaults, configuration.operation_defaults):
        yield from ((block.id, _Section((block,))) for block in sets)


@dataclass(frozen=True, slots=True)
class _Section:
    """A block of a whole section, looked at as an object with one block; of defaults, it is one of meta-attributes."""

    properties: tuple[AttributeSet, ...]

    @property
    def meta(self) -> tuple[AttributeSet, ...]:
        return self.properties
