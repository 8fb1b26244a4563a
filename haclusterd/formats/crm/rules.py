"""Rules in crm statements (cli.md §4.3): `rule [$id=ID] [role=ROLE] [SCORE:] CONDITION {and|or CONDITION}`.

Beyond crmsh, conditions may be grouped with parentheses that stand for themselves (a rule in a rule), a lone colon says
that there is no score (without it the score is INFINITY), and there are `rsc_expression` and `op_expression`. A quoted
word is always a name or a value.
"""

import re
from collections.abc import Callable, Collection

from haclusterd.formats.crm.cursor import Cursor
from haclusterd.formats.crm.tokens import Token
from haclusterd.formats.generated_ids import allocate, rule_base
from haclusterd.formats.rule_words import (
    COMPARISONS,
    DURATION_UNITS,
    OLDER_FIELDS,
    PRESENCE,
    SOURCES,
    SPEC_FIELDS,
    TYPES,
    read_number,
    read_range,
)
from haclusterd.formats.statements import REFERENCE
from haclusterd.model import scores
from haclusterd.model.ids import NCNAME
from haclusterd.model.operations import read_role
from haclusterd.model.records import dataclass, replace
from haclusterd.model.rules import (
    MAX_DEPTH,
    AttributeExpression,
    Condition,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
)
from haclusterd.model.scores import INFINITY
from haclusterd.model.words import WRITTEN_PLAINLY, bad_character
from haclusterd.reports.codes import Code

RULE, LIFETIME = "rule", "lifetime"
NO_SCORE = ":"
CONNECTIVES = ("and", "or")
DATE = "date"
DATE_WORDS = {"in": "in_range", "in_range": "in_range", "spec": "date_spec", "date_spec": "date_spec"}
RESOURCE_EXPRESSION, OPERATION_EXPRESSION = "rsc_expression", "op_expression"
RESOURCE_KEYS = ("class", "provider", "type")
OPERATION_KEYS = ("name", "interval")
RANGE_KEYS = ("start", "end", *DURATION_UNITS)
SPEC_KEYS = (*SPEC_FIELDS, *OLDER_FIELDS)

SCORE = re.compile(r"[+-]?(\d+|inf|infinity)|mandatory|advisory", re.IGNORECASE)
_SOURCE = re.compile(rf"({'|'.join(SOURCES)})\{{(.*)\}}", re.DOTALL)


@dataclass(slots=True)
class OpenRule:
    """A rule as it is being read; its id is made when all ids of its owner are known."""

    rule: Rule
    given_id: str | None = None


def is_word(token: Token | None, *words: str) -> bool:
    """Tell whether a token is one of these words; quoted words are none."""
    return token is not None and not token.is_quoted and token.text.lower() in words


def read_rule(cursor: Cursor) -> OpenRule:
    """Read what follows the word `rule`."""
    given_id: str | None = None
    role: str | None = None
    while True:
        token = cursor.peek()
        name, equals, value = token.text.partition("=") if token and not token.is_quoted else ("", "", "")
        if token is None or not equals:
            break
        match name.lower().removeprefix("$"):
            case "id" if name.startswith("$"):
                cursor.take("$id=")
                given_id = _read_id(cursor, value, token)
            case "id-ref" if name.startswith("$"):
                cursor.take("$id-ref=")
                return OpenRule(Rule(REFERENCE + _read_id(cursor, value, token)))
            case "role":
                cursor.take("role=")
                role = cursor.value("role", value, token, read_role, "")
            case _:
                break
    score, attribute = _read_score(cursor)
    rule = _read_conditions(cursor, 1)
    return OpenRule(replace(rule, score=score, score_attribute=attribute, role=role), given_id)


def read_lifetime(cursor: Cursor, owner: str) -> tuple[Rule, ...]:
    """Read `lifetime [$id=ID] CONDITION {and|or CONDITION}`, as often as it follows: rules without score and role."""
    found: list[OpenRule] = []
    while is_word(cursor.peek(), LIFETIME):
        cursor.take(LIFETIME)
        given_id = None
        token = cursor.peek()
        for name in ("$id=", "$id-ref="):
            if token is not None and not token.is_quoted and token.text.lower().startswith(name):
                cursor.take(name)
                given_id = _read_id(cursor, token.text[len(name):], token)
        if token is not None and given_id is not None and token.text.lower().startswith("$id-ref="):
            found.append(OpenRule(Rule(REFERENCE + given_id)))
        else:
            found.append(OpenRule(_read_conditions(cursor, 1), given_id))
    return finish_rules(owner, found)


def finish_rules(owner: str, found: Collection[OpenRule]) -> tuple[Rule, ...]:
    """Give the rules of one owner their ids."""
    given = [each.given_id if not each.rule.id else each.rule.id for each in found]
    ids = allocate([(id_, rule_base(owner)) for id_ in given])
    return tuple(_with_id(each.rule, id_) for each, id_ in zip(found, ids, strict=True))


def _with_id(rule: Rule, id_: str) -> Rule:
    """Give a rule its id; rules in it that have none are named after it."""
    nested = [each for each in rule.conditions if isinstance(each, Rule)]
    ids = iter(allocate([(each.id or None, rule_base(id_)) for each in nested]))
    conditions = tuple(_with_id(each, next(ids)) if isinstance(each, Rule) else each for each in rule.conditions)
    return replace(rule, id=id_, conditions=conditions)


def _read_id(cursor: Cursor, text: str, at: Token) -> str:
    if not NCNAME.match(text):
        raise cursor.refuse(Code.BAD_ID, at, id=text)
    return text


def _read_score(cursor: Cursor) -> tuple[int | None, str | None]:
    """Return the score, or the node attribute that holds it."""
    token = cursor.peek()
    if token is None or not token.text.endswith(":"):
        return INFINITY, None
    cursor.take("a score")
    text = token.text[:-1]
    if token.is_quoted:
        # A name in quotes is compared where a comparison follows, and holds the score where none does.
        if _is_operator(cursor.peek()):
            cursor.back()
            return INFINITY, None
        return None, _attribute(cursor, replace(token, text=text))
    if token.text == NO_SCORE:
        return None, None
    if SCORE.fullmatch(text):
        return cursor.value("score", text, token, scores.parse, 0), None
    if not WRITTEN_PLAINLY.match(text):
        cursor.note(Code.BAD_VALUE, token, name="score", problem=f"{text!r} is neither a score nor a node attribute")
    return None, text


def _read_conditions(cursor: Cursor, depth: int) -> Rule:
    """Read conditions up to the end of the expression; one kind of connective joins them all."""
    conditions = [_read_condition(cursor, depth)]
    connective = ""
    while is_word(token := cursor.peek(), *CONNECTIVES):
        assert token is not None
        word = token.text.lower()
        if connective not in ("", word):
            remedy = "use one of them, or group conditions with parentheses: ( A and B ) or C"
            problem = f"{connective} and {word} cannot be mixed"
            raise cursor.refuse(Code.BAD_VALUE, token, remedy=remedy, name="rule", problem=problem)
        connective = word
        cursor.take("a connective")
        conditions.append(_read_condition(cursor, depth))
    if len(conditions) == 1 and conditions[0] is None:
        return Rule()
    return Rule(conditions=tuple(each for each in conditions if each is not None), is_any=connective == "or")


def _read_condition(cursor: Cursor, depth: int) -> Condition | None:
    """Read one condition; None is `()`, that which is always true."""
    token = cursor.take("a condition, as in #uname eq n1")
    if is_word(token, "()"):
        return None
    if is_word(token, "("):
        return _read_group(cursor, token, depth)
    if is_word(token, *PRESENCE):
        attribute = cursor.take("the name of a node attribute")
        return AttributeExpression(_attribute(cursor, attribute), token.text.lower())
    for word, read in _SPECIAL.items():
        if is_word(token, word):
            return read(cursor)
    return _read_comparison(cursor, token)


def _read_group(cursor: Cursor, opened: Token, depth: int) -> Rule:
    if depth >= MAX_DEPTH:
        problem = f"more than {MAX_DEPTH} rules in each other"
        raise cursor.refuse(Code.BAD_VALUE, opened, name="rule", problem=problem)
    id_ = _read_given_id(cursor)
    made = replace(_read_conditions(cursor, depth + 1), id=id_)
    if not is_word(cursor.peek(), ")"):
        raise cursor.expected(")")
    cursor.take(")")
    return made


def _read_given_id(cursor: Cursor) -> str:
    """Return the id of a rule in a rule; empty when it is to be made."""
    token = cursor.peek()
    if token is None or token.is_quoted or not token.text.lower().startswith("$id="):
        return ""
    cursor.take("$id=")
    return _read_id(cursor, token.text.partition("=")[2], token)


def _is_operator(token: Token | None) -> bool:
    if token is None or token.is_quoted:
        return False
    type_, _, operation = token.text.lower().rpartition(":")
    return operation in COMPARISONS and type_ in ("", *TYPES)


def _attribute(cursor: Cursor, token: Token) -> str:
    is_fine = not bad_character(token.text) if token.is_quoted and token.text else WRITTEN_PLAINLY.match(token.text)
    if not is_fine:
        cursor.note(Code.BAD_VALUE, token, name="attribute name", problem=f"{token.text!r} cannot be a name")
    return token.text


def _read_comparison(cursor: Cursor, token: Token) -> AttributeExpression:
    attribute = _attribute(cursor, token)
    if not _is_operator(cursor.peek()):
        raise cursor.expected(f"one of: {', '.join(COMPARISONS)}")
    type_, _, operation = cursor.take("a comparison").text.lower().rpartition(":")
    value = cursor.take("a value to compare with")
    found = None if value.is_quoted else _SOURCE.fullmatch(value.text)
    source, text = (found[1], found[2]) if found else (None, value.text)
    character = bad_character(text)
    if character:
        cursor.note(Code.BAD_CHARACTER, value, name=attribute, character=character)
    return AttributeExpression(attribute, operation, text, source, type_ or None)


def _read_date(cursor: Cursor) -> DateExpression:
    token = cursor.take("in, lt, gt or spec")
    word = token.text.lower()
    if word in ("lt", "gt") and not token.is_quoted:
        instant = cursor.take("a date, as in 2030-01-01T00:00:00Z").text
        return DateExpression("lt", end=instant) if word == "lt" else DateExpression("gt", start=instant)
    operation = None if token.is_quoted else DATE_WORDS.get(word)
    if operation is None:
        cursor.back()
        raise cursor.expected("in, lt, gt or spec")
    if operation == "date_spec":
        spec = _read_keys(cursor, SPEC_KEYS, read_range)
        return DateExpression(operation, spec=tuple((OLDER_FIELDS.get(key, key), text) for key, text in spec.items()))
    keys = _read_keys(cursor, RANGE_KEYS, read_number)
    duration = tuple((key, text) for key, text in keys.items() if key in DURATION_UNITS)
    return DateExpression(operation, keys.get("start"), keys.get("end"), duration)


def _read_keys(cursor: Cursor, known: Collection[str], read: Callable[[str], str] | None = None) -> dict[str, str]:
    """Read `key=value` words for as long as the keys are known."""
    found: dict[str, str] = {}
    while True:
        token = cursor.peek()
        name, equals, value = token.text.partition("=") if token and not token.is_quoted else ("", "", "")
        if token is None or not equals or name.lower() not in known:
            return found
        cursor.take("a key")
        key = name.lower()
        if key in found:
            cursor.note(Code.DUPLICATE_NAME, token, name=key)
        if read is not None and key in (*DURATION_UNITS, *SPEC_KEYS):
            value = cursor.value(key, value, token, read, "")
        found[key] = value


def _read_resource_expression(cursor: Cursor) -> ResourceExpression:
    keys = _read_keys(cursor, RESOURCE_KEYS)
    return ResourceExpression(keys.get("class"), keys.get("provider"), keys.get("type"))


def _read_operation_expression(cursor: Cursor) -> OperationExpression:
    keys = _read_keys(cursor, OPERATION_KEYS)
    if "name" not in keys:
        raise cursor.expected("name=OPERATION")
    return OperationExpression(keys["name"], keys.get("interval"))


_SPECIAL: dict[str, Callable[[Cursor], Condition]] = {
    DATE: _read_date,
    RESOURCE_EXPRESSION: _read_resource_expression,
    OPERATION_EXPRESSION: _read_operation_expression,
}
