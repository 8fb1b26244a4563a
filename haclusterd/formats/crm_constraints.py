"""Constraints of the crm language: location, colocation, order, in their two-resource forms (cli.md §4.4)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from haclusterd.formats.crm_blocks import read_score
from haclusterd.formats.crm_cursor import Cursor
from haclusterd.formats.crm_tokens import Token
from haclusterd.formats.statements import Define
from haclusterd.model.configuration import Colocation, Location, Ordering, OrderingKind
from haclusterd.model.ids import NCNAME, ConstraintId, NodeName, ResourceId
from haclusterd.model.operations import read_role
from haclusterd.model.properties import read_boolean
from haclusterd.reports.codes import Code
from haclusterd.reports.suggestions import did_you_mean

ACTIONS = ("start", "stop", "promote", "demote")
_BRACKETS = ("(", ")", "[", "]", "{", "}")
_KINDS = {kind.value.lower(): kind for kind in OrderingKind}


def read_location(cursor: Cursor) -> Define:
    """Read `location ID RSC SCORE: NODE`."""
    id_ = cursor.id("the constraint's id")
    token = cursor.take("a resource")
    if token.text.startswith("/"):
        raise cursor.not_yet("a pattern of resources", token)
    if token.text.startswith(_BRACKETS):
        raise cursor.not_yet("a resource set", token)
    cursor.back()
    resource = cursor.id("a resource")
    cursor.mark("constraint", id_, "resource", at=token)
    _refuse_location_attributes(cursor)
    score = _take_score(cursor, id_, "SCORE: NODE, as in 100: node1")
    node_token = cursor.peek()
    node = cursor.node_name()
    assert node_token is not None
    cursor.mark("constraint", id_, "node", at=node_token)
    _refuse_location_attributes(cursor)
    cursor.end()
    return _define(cursor, Location(ConstraintId(id_), ResourceId(resource), NodeName(node), score))


def _refuse_location_attributes(cursor: Cursor) -> None:
    token = cursor.peek()
    if token is None:
        return
    if token.text.lower() == "rule":
        raise cursor.not_yet("rule", token)
    name, equals, _ = token.text.partition("=")
    if equals:
        name = name.removeprefix("$").lower()
        if name in ("role", "resource-discovery"):
            raise cursor.not_yet(f"location attribute {name}", token)
        raise cursor.refuse(Code.UNEXPECTED, token, construct="location", found=token.text)


def read_colocation(cursor: Cursor) -> Define:
    """Read `colocation ID SCORE: RSC[:ROLE] WITH[:ROLE] [node-attribute=A] [influence=BOOL]`."""
    id_ = cursor.id("the constraint's id")
    score = _take_score(cursor, id_, "SCORE:, as in inf:")
    members, attributes = _read_members(cursor, ("node-attribute", "influence"))
    dependent, primary = (
        _qualified(cursor, id_, token, side, read_role)
        for token, side in zip(members, ("dependent", "primary"), strict=True)
    )
    influence = attributes.get("influence")
    return _define(
        cursor,
        Colocation(
            id=ConstraintId(id_),
            score=score,
            dependent=dependent.resource,
            primary=primary.resource,
            dependent_role=dependent.qualifier,
            primary_role=primary.qualifier,
            node_attribute=attributes["node-attribute"].value if "node-attribute" in attributes else None,
            influence=_boolean(cursor, "influence", influence) if influence else None,
        ),
    )


def read_order(cursor: Cursor) -> Define:
    """Read `order ID [KIND:|SCORE:] FIRST[:ACTION] THEN[:ACTION] [symmetrical=BOOL] [require-all=BOOL]`."""
    id_ = cursor.id("the constraint's id")
    kind = _take_kind(cursor)
    members, attributes = _read_members(cursor, ("symmetrical", "require-all"))
    first, then = (
        _qualified(cursor, id_, token, side, read_action)
        for token, side in zip(members, ("first", "then"), strict=True)
    )
    symmetrical, require_all = attributes.get("symmetrical"), attributes.get("require-all")
    return _define(
        cursor,
        Ordering(
            id=ConstraintId(id_),
            first=first.resource,
            then=then.resource,
            kind=kind,
            first_action=first.qualifier or "start",
            then_action=then.qualifier,
            is_symmetrical=_boolean(cursor, "symmetrical", symmetrical) if symmetrical else True,
            require_all=_boolean(cursor, "require-all", require_all) if require_all else True,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Member:
    resource: ResourceId
    qualifier: str | None
    """A role or an action."""


@dataclass(frozen=True, slots=True)
class _Attribute:
    value: str
    token: Token


def _define(cursor: Cursor, constraint: Location | Colocation | Ordering) -> Define:
    cursor.mark("constraint", constraint.id, at=cursor.line.tokens[1])
    return Define(constraint, cursor.line.place, cursor.places, cursor.line.comments)


def _take_score(cursor: Cursor, id_: str, expected: str) -> int:
    token = cursor.peek()
    score = read_score(token) if token else None
    if token is None or (score is None and not token.text.endswith(":")):
        raise cursor.expected(expected)
    if score is None:
        text = token.text[:-1]
        raise cursor.refuse(
            Code.BAD_VALUE, token, name="score", problem=f"not a score: {text!r}", remedy="a number, inf or -inf"
        )
    cursor.take(expected)
    cursor.mark("constraint", id_, "score", at=token)
    return score


def _take_kind(cursor: Cursor) -> OrderingKind:
    token = cursor.peek()
    if token is None or not token.text.endswith(":"):
        return OrderingKind.MANDATORY
    cursor.take("a kind")
    score = read_score(token)
    if score is not None:
        return OrderingKind.MANDATORY if score else OrderingKind.OPTIONAL
    kind = _KINDS.get(token.text[:-1].lower())
    if kind is None:
        problem = f"{token.text[:-1]!r} is not one of: {', '.join(OrderingKind)}"
        raise cursor.refuse(Code.BAD_VALUE, token, name="kind", problem=problem, remedy="or a score")
    return kind


def _read_members(cursor: Cursor, known: tuple[str, ...]) -> tuple[list[Token], Mapping[str, _Attribute]]:
    """Read exactly two resources and any attributes, in any order after the score."""
    members: list[Token] = []
    attributes: dict[str, _Attribute] = {}
    while not cursor.is_at_end:
        token = cursor.take("a resource")
        name, equals, value = token.text.partition("=")
        if token.text.startswith(_BRACKETS):
            raise cursor.not_yet("a resource set", token)
        if not equals:
            members.append(token)
        elif name.lower() in known:
            if name.lower() in attributes:
                cursor.note(Code.DUPLICATE_NAME, token, name=name)
            attributes[name.lower()] = _Attribute(value, token)
            cursor.pair(token)
        else:
            raise cursor.refuse(
                Code.UNEXPECTED, token, remedy=did_you_mean(name, known), construct=cursor.construct, found=token.text
            )
    if len(members) > 2:
        raise cursor.not_yet("a resource set (more than two resources)", members[2])
    if len(members) < 2:
        raise cursor.expected("two resources")
    return members, attributes


def _qualified(cursor: Cursor, id_: str, token: Token, side: str, read: Callable[[str], str]) -> _Member:
    resource, colon, qualifier = token.text.partition(":")
    if not NCNAME.match(resource):
        raise cursor.refuse(Code.BAD_ID, token, id=resource)
    cursor.mark("constraint", id_, side, at=token)
    name = "action" if read is read_action else "role"
    return _Member(ResourceId(resource), cursor.value(name, qualifier, token, read, "") if colon else None)


def read_action(text: str) -> str:
    """Read the action of an ordering; raise ValueError otherwise."""
    if text.lower() not in ACTIONS:
        raise ValueError(f"{text!r} is not one of: {', '.join(ACTIONS)}")
    return text.lower()


def _boolean(cursor: Cursor, name: str, attribute: _Attribute) -> bool:
    return cursor.value(name, attribute.value, attribute.token, read_boolean, otherwise=False)
