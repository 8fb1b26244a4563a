"""Constraints, tags and fencing topology in policy YAML: one function a kind of object."""

from collections.abc import Iterator, Mapping

from haclusterd.formats.crm.constraints import read_discovery, read_loss_policy
from haclusterd.formats.crm.sets import read_action, read_ordering
from haclusterd.formats.generated_ids import allocate, set_base
from haclusterd.formats.policy.fields import Fields, Findings, as_map, read_id
from haclusterd.formats.policy.resources import Kind
from haclusterd.formats.policy.rules import NESTED_KEYS, read_attribute_name, read_rules, read_words
from haclusterd.formats.policy.yaml_tree import Tree
from haclusterd.formats.stated import stated
from haclusterd.formats.statements import Define, DefineLevels
from haclusterd.model import scores
from haclusterd.model.configuration import (
    Colocation,
    FencingLevel,
    Location,
    Ordering,
    OrderingKind,
    ResourceSet,
    Tag,
    TicketConstraint,
)
from haclusterd.model.ids import CONFIGURED_NODE_NAME, NCNAME, ConstraintId, NodeName, ResourceId
from haclusterd.model.operations import read_role
from haclusterd.model.properties import read_boolean
from haclusterd.model.rules import Rule
from haclusterd.reports.codes import Code

_SET_KEYS = ("id", "resources", "sequential", "require-all", "action", "role", "score", "kind", "ordering")
_LEVEL_KEYS = ("id", "target", "pattern", "attribute", "value", "index", "devices")


def _mark_all(fields: Fields, id_: str, **parts: str) -> None:
    for part, key in parts.items():
        fields.mark(key, "constraint", id_, part)


def _needs(fields: Fields, *keys: str) -> None:
    """Report keys that are missing where there are no sets."""
    for key in keys:
        if key not in fields.map.entries and "sets" not in fields.map.entries:
            fields.findings.note(Code.MISSING_KEY, fields.map.place, where=fields.where, key=key)


def _needs_one(fields: Fields, *keys: str) -> None:
    if sum(key in fields.map.entries for key in keys) != 1:
        problem = f"{fields.where} needs exactly one of the keys {', '.join(keys)}"
        fields.findings.note(Code.SYNTAX, fields.map.place, problem=problem)


def _location(fields: Fields, id_: str) -> Location:
    _mark_all(fields, id_, resource="resource", node="node", score="score")
    fields.mark("pattern", "constraint", id_, "resource")
    _needs_one(fields, "resource", "pattern", "sets")
    _needs_one(fields, "node", "rules")
    if "node" in fields.map.entries and "score" not in fields.map.entries:
        fields.findings.note(Code.MISSING_KEY, fields.map.place, where=fields.where, key="score")
    return Location(
        id=ConstraintId(id_),
        resource=ResourceId(fields.value("resource", read_id) or ""),
        node=NodeName(fields.text("node") or ""),
        score=fields.value("score", scores.parse) or 0,
        rules=read_rules(fields.findings, list(fields.items("rules")), fields.where, id_),
        pattern=fields.text("pattern") or "",
        sets=_sets(fields, id_),
        role=fields.value("role", read_role),
        discovery=fields.value("resource-discovery", read_discovery),
    )


def _colocation(fields: Fields, id_: str) -> Colocation:
    _mark_all(fields, id_, dependent="resource", primary="with", score="score")
    _needs(fields, "resource", "with")
    return Colocation(
        id=ConstraintId(id_),
        score=fields.value("score", scores.parse) or 0,
        dependent=ResourceId(fields.value("resource", read_id) or ""),
        primary=ResourceId(fields.value("with", read_id) or ""),
        dependent_role=fields.value("role", read_role),
        primary_role=fields.value("with-role", read_role),
        node_attribute=fields.text("node-attribute"),
        influence=fields.value("influence", read_boolean),
        sets=_sets(fields, id_),
        lifetime=_lifetime(fields, id_),
    )


def _order(fields: Fields, id_: str) -> Ordering:
    _mark_all(fields, id_, first="first", then="then")
    _needs(fields, "first", "then")
    symmetrical, require_all = fields.value("symmetrical", read_boolean), fields.value("require-all", read_boolean)
    return Ordering(
        id=ConstraintId(id_),
        first=ResourceId(fields.value("first", read_id) or ""),
        then=ResourceId(fields.value("then", read_id) or ""),
        kind=fields.value("kind", _kind) or OrderingKind.MANDATORY,
        first_action=fields.value("first-action", read_action) or "start",
        then_action=fields.value("then-action", read_action),
        is_symmetrical=symmetrical is not False,
        require_all=require_all is not False,
        sets=_sets(fields, id_),
        stated=stated(fields.text("kind"), fields.text("first-action")),
        lifetime=_lifetime(fields, id_),
    )


def _lifetime(fields: Fields, id_: str) -> tuple[Rule, ...]:
    """Read the rules of a lifetime: conditions only."""
    return read_rules(fields.findings, list(fields.items("lifetime")), fields.where, id_, keys=NESTED_KEYS)


def _kind(text: str) -> OrderingKind:
    for kind in OrderingKind:
        if kind.lower() == text.lower():
            return kind
    raise ValueError(f"{text!r} is not one of: {', '.join(OrderingKind)}")


def _ticket(fields: Fields, id_: str) -> TicketConstraint:
    _mark_all(fields, id_, resource="resource", ticket="ticket")
    _needs(fields, "resource")
    return TicketConstraint(
        id=ConstraintId(id_),
        ticket=fields.text("ticket") or "",
        resource=ResourceId(fields.value("resource", read_id) or ""),
        role=fields.value("role", read_role),
        loss_policy=fields.value("loss-policy", read_loss_policy),
        sets=_sets(fields, id_),
    )


def _sets(fields: Fields, constraint: str) -> tuple[ResourceSet, ...]:
    where = f"{fields.where}: set"
    found = [Fields(fields.findings, where, item, _SET_KEYS, ("resources",)) for item in fields.items("sets")]
    ids = allocate([(each.value("id", read_id), set_base(constraint, number)) for number, each in enumerate(found)])
    return tuple(_set(each, id_) for each, id_ in zip(found, ids, strict=True))


def _set(fields: Fields, id_: str) -> ResourceSet:
    return ResourceSet(
        id=id_,
        members=_ids(fields, "resources"),
        is_sequential=fields.value("sequential", read_boolean),
        require_all=fields.value("require-all", read_boolean),
        action=fields.value("action", read_action),
        role=fields.value("role", read_role),
        score=fields.value("score", scores.parse),
        kind=fields.text("kind"),
        ordering=fields.value("ordering", read_ordering),
    )


def _ids(fields: Fields, key: str) -> tuple[ResourceId, ...]:
    """Return a list of at least one id."""
    found = read_words(fields.findings, fields.tree(key), f"{fields.where}: {key}")
    for text, item in found:
        if not NCNAME.match(text):
            fields.findings.note(Code.BAD_ID, item.place, id=text)
    tree = fields.tree(key)
    if tree is not None and not found:
        problem = f"{fields.where}: {key} names nothing"
        fields.findings.note(Code.SYNTAX, tree.place, problem=problem)
    return tuple(ResourceId(text) for text, _ in found)


CONSTRAINT_KINDS: Mapping[str, Kind] = {
    "location": Kind(
        "constraint",
        _location,
        ("resource", "pattern", "sets", "node", "score", "rules", "role", "resource-discovery"),
    ),
    "colocation": Kind(
        "constraint",
        _colocation,
        ("resource", "with", "score", "role", "with-role", "node-attribute", "influence", "sets", "lifetime"),
        ("score",),
    ),
    "order": Kind(
        "constraint",
        _order,
        ("first", "then", "kind", "first-action", "then-action", "symmetrical", "require-all", "sets", "lifetime"),
    ),
    "ticket-constraint": Kind(
        "constraint", _ticket, ("ticket", "resource", "role", "loss-policy", "sets"), ("ticket",)
    ),
}


def read_tags(findings: Findings, tree: Tree) -> Iterator[Define]:
    """Read the mapping of tags to what they stand for."""
    tags = as_map(findings, tree, "tags")
    for name, entry in tags.entries.items():
        local, place = Findings(findings.reports), tags.key_places[name]
        local.places["tag", name] = place
        if not NCNAME.match(name):
            local.note(Code.BAD_ID, place, id=name)
        found = read_words(local, entry, f"tag {name}")
        for text, item in found:
            local.places["tag", name, text] = item.place
            if not NCNAME.match(text):
                local.note(Code.BAD_ID, item.place, id=text)
        if not found:
            local.note(Code.SYNTAX, place, problem=f"tag {name} names nothing")
        yield Define(Tag(name, tuple(text for text, _ in found)), place, local.places)


def read_topology(findings: Findings, top: Fields, key: str) -> Iterator[DefineLevels]:
    """Read all fencing levels."""
    items = top.items(key)
    if not items:
        return
    local = Findings(findings.reports)
    levels = []
    for number, item in enumerate(items):
        local.places["fencing_level", str(number)] = item.place
        levels.append(_level(Fields(local, "fencing level", item, _LEVEL_KEYS, ("index", "devices"))))
    yield DefineLevels(tuple(levels), top.map.key_places[key], places=local.places)


def _level(fields: Fields) -> FencingLevel:
    _needs_one(fields, "target", "pattern", "attribute")
    if ("attribute" in fields.map.entries) != ("value" in fields.map.entries):
        fields.findings.note(Code.MISSING_KEY, fields.map.place, where=fields.where, key="attribute and value")
    return FencingLevel(
        id=fields.value("id", read_id) or "",
        index=fields.value("index", _index) or 0,
        devices=_ids(fields, "devices"),
        target=fields.value("target", _node_name) or "",
        target_pattern=fields.text("pattern") or "",
        target_attribute=fields.value("attribute", read_attribute_name) or "",
        target_value=fields.text("value") or "",
    )


def _index(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _node_name(text: str) -> str:
    if not CONFIGURED_NODE_NAME.match(text):
        raise ValueError(f"{text!r} cannot be a node's name")
    return text
