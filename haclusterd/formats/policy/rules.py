"""Rules in policy YAML: `{score: S, all: [CONDITION...]}` or `any`; a key of each condition says its kind.

A rule in which something is wrong is reported; what is returned for it is not to be used.
"""

from collections.abc import Callable, Mapping

from haclusterd.formats.generated_ids import allocate, rule_base
from haclusterd.formats.policy.fields import Fields, Findings, as_list, as_map, as_text, read_id
from haclusterd.formats.policy.yaml_tree import Map, Tree
from haclusterd.formats.rule_words import (
    COMPARISONS,
    DATE_OPERATIONS,
    DURATION_UNITS,
    PRESENCE,
    SOURCES,
    SPEC_FIELDS,
    TYPES,
    read_number,
    read_range,
)
from haclusterd.model import scores
from haclusterd.model.operations import read_role
from haclusterd.model.rules import (
    MAX_DEPTH,
    AttributeExpression,
    Condition,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
)
from haclusterd.model.words import bad_character
from haclusterd.reports.codes import Code

_KEYS = ("id", "score", "score-attribute", "role", "all", "any")
NESTED_KEYS = ("id", "all", "any")
"""The keys of a rule that has neither score nor role: one in a rule, one of a lifetime."""


def choice(words: tuple[str, ...]) -> Callable[[str], str]:
    """Return a reader of one of these words; it raises ValueError for others."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is not one of: {', '.join(words)}")
        return text

    return read


def read_attribute_name(text: str) -> str:
    """Read the name of a node attribute; raise ValueError otherwise."""
    if not text or bad_character(text):
        raise ValueError(f"{text!r} cannot be a name")
    return text


def read_rules(
    findings: Findings, trees: list[Tree], where: str, owner: str, *, keys: tuple[str, ...] = _KEYS
) -> tuple[Rule, ...]:
    """Read all rules of one owner, a constraint or a block; `owner` is its id, `keys` are those that its rules have."""
    fields = [Fields(findings, f"{where}: rule", tree, keys) for tree in trees]
    ids = allocate([(each.value("id", read_id), rule_base(owner)) for each in fields])
    return tuple(_rule(each, id_, 1) for each, id_ in zip(fields, ids, strict=True))


def _rule(fields: Fields, id_: str, depth: int) -> Rule:
    is_any = fields.tree("any") is not None
    if is_any and fields.tree("all") is not None:
        fields.findings.note(Code.SYNTAX, fields.map.place, problem=f"{fields.where}: write all or any, not both")
    items = fields.items("any" if is_any else "all")
    nested = [_nested(fields, item) for item in items]
    if depth == MAX_DEPTH and any(each is not None for each in nested):
        fields.findings.note(Code.TOO_LARGE, fields.map.place, what="a rule", limit=f"{MAX_DEPTH} rules in each other")
        return Rule(id_)
    ids = iter(allocate([(each.value("id", read_id), rule_base(id_)) for each in nested if each is not None]))
    conditions = [
        _rule(own, next(ids), depth + 1) if own is not None else _condition(fields.findings, item, fields.where)
        for item, own in zip(items, nested, strict=True)
    ]
    return Rule(
        id=id_,
        conditions=tuple(each for each in conditions if each is not None),
        is_any=is_any and len(conditions) > 1,
        score=fields.value("score", scores.parse) if "score" in fields.map.entries else None,
        score_attribute=fields.value("score-attribute", read_attribute_name),
        role=fields.value("role", read_role),
    )


def _nested(fields: Fields, item: Tree) -> Fields | None:
    """Return a rule in the rule; None when the condition is of another kind."""
    if not isinstance(item, Map) or "rule" not in item.entries:
        return None
    outer = Fields(fields.findings, fields.where, item, ("rule",))
    return Fields(fields.findings, fields.where, outer.map.entries["rule"], NESTED_KEYS)


def _condition(findings: Findings, item: Tree, where: str) -> Condition | None:
    entries = as_map(findings, item, f"{where}: condition").entries
    named = [kind for kind in _CONDITIONS if kind in entries]
    if len(named) != 1:
        if isinstance(item, Map):
            problem = f"{where}: a condition needs exactly one of the keys {', '.join(_CONDITIONS)}, rule"
            findings.note(Code.SYNTAX, item.place, remedy="as in {attribute: rack, is: eq, value: 4}", problem=problem)
        return None
    return _CONDITIONS[named[0]](findings, item, f"{where}: {named[0]}")


def _attribute(findings: Findings, item: Tree, where: str) -> AttributeExpression:
    fields = Fields(findings, where, item, ("attribute", "is", "value", "source", "type"), ("is",))
    operation = fields.value("is", choice((*COMPARISONS, *PRESENCE))) or "eq"
    is_comparison = operation in COMPARISONS
    if is_comparison and "value" not in fields.map.entries:
        findings.note(Code.MISSING_KEY, fields.map.place, where=where, key="value")
    for key in ("value", "source", "type"):
        if not is_comparison and key in fields.map.entries:
            fields.findings.note(Code.UNKNOWN_KEY, fields.map.key_places[key], where=f"{where}: {operation}", key=key)
    return AttributeExpression(
        fields.value("attribute", read_attribute_name) or "",
        operation,
        fields.text("value"),
        fields.value("source", choice(SOURCES)),
        fields.value("type", choice(TYPES)),
    )


def _date(findings: Findings, item: Tree, where: str) -> DateExpression:
    fields = Fields(findings, where, item, ("date", "start", "end", "duration", "spec"))
    return DateExpression(
        fields.value("date", choice(DATE_OPERATIONS)) or "in_range",
        fields.text("start"),
        fields.text("end"),
        _parts(fields, "duration", DURATION_UNITS, read_number),
        _parts(fields, "spec", SPEC_FIELDS, read_range),
    )


def _parts(
    fields: Fields, key: str, known: tuple[str, ...], read: Callable[[str], str]
) -> tuple[tuple[str, str], ...]:
    tree = fields.tree(key)
    if tree is None:
        return ()
    parts = Fields(fields.findings, f"{fields.where}: {key}", tree, known)
    return tuple((name, parts.value(name, read) or "") for name in parts.map.entries if name in known)


def _agent(findings: Findings, item: Tree, where: str) -> ResourceExpression:
    outer = Fields(findings, where, item, ("agent",))
    fields = Fields(findings, where, outer.map.entries["agent"], ("class", "provider", "type"))
    return ResourceExpression(fields.text("class"), fields.text("provider"), fields.text("type"))


def _operation(findings: Findings, item: Tree, where: str) -> OperationExpression:
    fields = Fields(findings, where, item, ("operation", "interval"))
    return OperationExpression(fields.text("operation") or "", fields.text("interval"))


_CONDITIONS: Mapping[str, Callable[[Findings, Tree, str], Condition]] = {
    "attribute": _attribute,
    "date": _date,
    "agent": _agent,
    "operation": _operation,
}


def read_words(findings: Findings, tree: Tree | None, where: str) -> list[tuple[str, Tree]]:
    """Return the texts of a list, each with its tree."""
    found = []
    for item in as_list(findings, tree, where) if tree is not None else ():
        text = as_text(findings, item, where)
        if text is not None:
            found.append((text, item))
    return found
