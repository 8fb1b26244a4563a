"""Constraints of the crm language: location, colocation, order, rsc_ticket (cli.md §4.4)."""

from collections.abc import Mapping

from haclusterd.formats.constraint_words import DISCOVERIES, KINDS, LOSS_POLICIES
from haclusterd.formats.crm.blocks import read_score, section_word
from haclusterd.formats.crm.cursor import Cursor
from haclusterd.formats.crm.rules import LIFETIME, OpenRule, finish_rules, read_lifetime, read_rule
from haclusterd.formats.crm.sets import Grammar, Member, Written, one_of, read_braces, read_members
from haclusterd.formats.crm.tokens import Token
from haclusterd.formats.stated import stated
from haclusterd.formats.statements import Define
from haclusterd.model.configuration import (
    Colocation,
    Constraint,
    Location,
    Ordering,
    OrderingKind,
    ResourceSet,
    TicketConstraint,
)
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.operations import read_role
from haclusterd.model.properties import read_boolean
from haclusterd.model.words import bad_character
from haclusterd.reports.codes import Code
from haclusterd.reports.suggestions import did_you_mean

LOCATION_ATTRIBUTES = ("role", "resource-discovery")

_COLOCATION = Grammar(of_actions=False, simple=2, attributes=("node-attribute", "influence"), end=LIFETIME)
_ORDER = Grammar(of_actions=True, simple=2, attributes=("symmetrical", "require-all"), end=LIFETIME)
_TICKET = Grammar(of_actions=False, simple=1, attributes=("loss-policy",))


def read_discovery(text: str) -> str:
    """Read where a resource is probed; raise ValueError otherwise."""
    return one_of(text, DISCOVERIES)


def read_loss_policy(text: str) -> str:
    """Read what happens when a ticket is lost; raise ValueError otherwise."""
    return one_of(text, LOSS_POLICIES)


def read_location(cursor: Cursor) -> Define:
    """Read `location ID RSC|/PATTERN/|{ SET } ... {NAME=VALUE} SCORE: NODE|rule ... {rule ...}`."""
    id_ = cursor.id("the constraint's id")
    resource, pattern, sets = _read_subject(cursor, id_)
    attributes: dict[str, Written] = {}
    _read_location_attributes(cursor, attributes)
    node, score, rules = "", 0, list[OpenRule]()
    if section_word(cursor.peek()) == "rule":
        while section_word(cursor.peek()) == "rule":
            cursor.take("rule")
            rules.append(read_rule(cursor))
    else:
        score = _take_score(cursor, id_, "SCORE: NODE, as in 100: node1, or rule")
        token = cursor.peek()
        node = cursor.node_name()
        assert token is not None
        cursor.mark("constraint", id_, "node", at=token)
    _read_location_attributes(cursor, attributes)
    cursor.end()
    role, discovery = attributes.get("role"), attributes.get("resource-discovery")
    return _define(
        cursor,
        Location(
            id=ConstraintId(id_),
            resource=ResourceId(resource),
            node=NodeName(node),
            score=score,
            rules=finish_rules(id_, rules),
            pattern=pattern,
            sets=sets,
            role=cursor.value("role", role.value, role.token, read_role, "") if role else None,
            discovery=cursor.value("resource-discovery", discovery.value, discovery.token, read_discovery, "")
            if discovery
            else None,
        ),
    )


def _read_subject(cursor: Cursor, id_: str) -> tuple[str, str, tuple[ResourceSet, ...]]:
    """Return the resource, or a pattern of resources, or sets of them."""
    token = cursor.peek()
    if token is not None and token.text.startswith("/"):
        cursor.take("a pattern")
        pattern = token.text[1:-1]
        if not token.text.endswith("/") or not pattern or bad_character(pattern):
            problem = f"{token.text!r} is not a pattern between two slashes"
            raise cursor.refuse(Code.BAD_VALUE, token, name="pattern", problem=problem)
        cursor.mark("constraint", id_, "resource", at=token)
        return "", pattern, ()
    if token is not None and token.text.startswith("{") and not token.is_quoted:
        cursor.mark("constraint", id_, "resource", at=token)
        return "", "", read_braces(cursor, id_)
    resource = cursor.id("a resource")
    assert token is not None
    cursor.mark("constraint", id_, "resource", at=token)
    return resource, "", ()


def _read_location_attributes(cursor: Cursor, found: dict[str, Written]) -> None:
    while True:
        token = cursor.peek()
        name, equals, value = token.text.partition("=") if token is not None else ("", "", "")
        if token is None or not equals:
            return
        cursor.take("an attribute")
        name = name.removeprefix("$").lower()
        if name not in LOCATION_ATTRIBUTES:
            remedy = did_you_mean(name, LOCATION_ATTRIBUTES)
            raise cursor.refuse(Code.UNEXPECTED, token, remedy=remedy, construct="location", found=token.text)
        if name in found:
            cursor.note(Code.DUPLICATE_NAME, token, name=name)
        found[name] = Written(value, token)


def read_colocation(cursor: Cursor) -> Define:
    """Read `colocation ID SCORE: RSC[:ROLE] WITH[:ROLE]|SETS [node-attribute=A] [influence=BOOL] [lifetime]`."""
    id_ = cursor.id("the constraint's id")
    score = _take_score(cursor, id_, "SCORE:, as in inf:")
    members = read_members(cursor, id_, _COLOCATION)
    dependent, primary = _sides(cursor, id_, members.pair, ("dependent", "primary"))
    attribute = members.attributes.get("node-attribute")
    lifetime = read_lifetime(cursor, id_)
    cursor.end()
    return _define(
        cursor,
        Colocation(
            id=ConstraintId(id_),
            score=score,
            dependent=dependent[0],
            primary=primary[0],
            dependent_role=dependent[1],
            primary_role=primary[1],
            node_attribute=attribute.value if attribute else None,
            influence=_boolean(cursor, members.attributes, "influence"),
            sets=members.sets,
            lifetime=lifetime,
        ),
    )


def read_order(cursor: Cursor) -> Define:
    """Read `order ID [KIND:|SCORE:] FIRST[:ACTION] THEN[:ACTION]|SETS [symmetrical=B] [require-all=B] [lifetime]`."""
    id_ = cursor.id("the constraint's id")
    before = cursor.peek()
    kind = _take_kind(cursor)
    has_kind = before is not None and before.text.endswith(":")
    members = read_members(cursor, id_, _ORDER)
    first, then = _sides(cursor, id_, members.pair, ("first", "then"))
    symmetrical = _boolean(cursor, members.attributes, "symmetrical")
    require_all = _boolean(cursor, members.attributes, "require-all")
    lifetime = read_lifetime(cursor, id_)
    cursor.end()
    return _define(
        cursor,
        Ordering(
            id=ConstraintId(id_),
            first=first[0],
            then=then[0],
            kind=kind,
            first_action=first[1] or "start",
            then_action=then[1],
            is_symmetrical=symmetrical is not False,
            require_all=require_all is not False,
            sets=members.sets,
            stated=stated(kind if has_kind else None, first[1]),
            lifetime=lifetime,
        ),
    )


def read_ticket(cursor: Cursor) -> Define:
    """Read `rsc_ticket ID TICKET: RSC[:ROLE]|SETS [loss-policy=stop|demote|freeze|fence]`."""
    id_ = cursor.id("the constraint's id")
    token = cursor.take("TICKET:")
    ticket = token.text.removesuffix(":")
    if not token.text.endswith(":") or not ticket or bad_character(ticket):
        cursor.back()
        raise cursor.expected("the ticket's name and a colon, as in paris:")
    cursor.mark("constraint", id_, "ticket", at=token)
    members = read_members(cursor, id_, _TICKET)
    (resource,) = _sides(cursor, id_, members.pair, ("resource",))
    policy = members.attributes.get("loss-policy")
    return _define(
        cursor,
        TicketConstraint(
            id=ConstraintId(id_),
            ticket=ticket,
            resource=resource[0],
            role=resource[1],
            loss_policy=cursor.value("loss-policy", policy.value, policy.token, read_loss_policy, "")
            if policy
            else None,
            sets=members.sets,
        ),
    )


_Side = tuple[ResourceId, str | None]


def _sides(cursor: Cursor, id_: str, members: tuple[Member, ...], names: tuple[str, ...]) -> tuple[_Side, ...]:
    """Return the resources of a constraint without sets, with their roles or actions."""
    if not members:
        return ((ResourceId(""), None),) * len(names)
    for member, name in zip(members, names, strict=True):
        cursor.mark("constraint", id_, name, at=member.token)
    return tuple((member.resource, member.qualifier) for member in members)


def _define(cursor: Cursor, constraint: Constraint) -> Define:
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
            Code.BAD_VALUE, token, name="score", problem=f"not a score: {text!r}", remedy="write a number, inf or -inf"
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
    kind = KINDS.get(token.text[:-1].lower())
    if kind is None:
        problem = f"{token.text[:-1]!r} is not one of: {', '.join(OrderingKind)}"
        raise cursor.refuse(Code.BAD_VALUE, token, name="kind", problem=problem, remedy="or a score")
    return kind


def _boolean(cursor: Cursor, attributes: Mapping[str, Written], name: str) -> bool | None:
    written: Written | None = attributes.get(name)
    if written is None:
        return None
    token: Token = written.token
    return cursor.value(name, written.value, token, read_boolean, otherwise=False)
