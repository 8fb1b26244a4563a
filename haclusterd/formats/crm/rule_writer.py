"""Rules as crm text, which `formats.crm.rules` reads back as equal rules."""

from collections.abc import Sequence

from haclusterd.formats.crm.blocks import SECTION_WORDS
from haclusterd.formats.crm.rules import (
    CONNECTIVES,
    DATE,
    LIFETIME,
    NO_SCORE,
    OPERATION_EXPRESSION,
    RESOURCE_EXPRESSION,
    RULE,
    SCORE,
)
from haclusterd.formats.crm.tokens import quote, quote_value, quoted
from haclusterd.formats.generated_ids import are_natural, rule_base
from haclusterd.formats.rule_words import PRESENCE
from haclusterd.model import scores
from haclusterd.model.rules import (
    AttributeExpression,
    Condition,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
)
from haclusterd.model.scores import INFINITY
from haclusterd.model.words import WRITTEN_PLAINLY

_WORDS = frozenset({*SECTION_WORDS, *CONNECTIVES, *PRESENCE, DATE, RESOURCE_EXPRESSION, OPERATION_EXPRESSION, "()"})


def score_word(score: int) -> str:
    """Write a score as the crm language has it."""
    return {INFINITY: "inf", -INFINITY: "-inf"}.get(score, scores.render(score))


def write_rules(owner: str, rules: Sequence[Rule], *, word: str = RULE) -> list[str]:
    """Write the rules of one owner, each with a word before it; those of a lifetime have neither score nor role."""
    with_ids = not are_natural([rule.id for rule in rules], [rule_base(owner)] * len(rules))
    return [_rule(rule, word, with_id=with_ids) for rule in rules]


def _rule(rule: Rule, word: str, *, with_id: bool) -> str:
    words = [word]
    words += [f"$id={rule.id}"] if with_id else []
    words += [f"$role={rule.role}"] if rule.role is not None else []
    if word == LIFETIME:
        return " ".join([*words, _conditions(rule)])
    if rule.score_attribute is not None:
        is_number = SCORE.fullmatch(rule.score_attribute)
        words.append(f"{quoted(rule.score_attribute) if is_number else _attribute(rule.score_attribute)}:")
    elif rule.score is None:
        words.append(NO_SCORE)
    elif rule.score != INFINITY:
        words.append(f"{score_word(rule.score)}:")
    return " ".join([*words, _conditions(rule)])


def _conditions(rule: Rule) -> str:
    nested = [each for each in rule.conditions if isinstance(each, Rule)]
    with_ids = not are_natural([each.id for each in nested], [rule_base(rule.id)] * len(nested))
    written = [_condition(each, with_id=with_ids) for each in rule.conditions]
    return (" or " if rule.is_any else " and ").join(written) if written else "()"


def _condition(condition: Condition, *, with_id: bool) -> str:
    match condition:
        case Rule():
            head = f"$id={condition.id} " if with_id else ""
            return f"( {head}{_conditions(condition)} )"
        case AttributeExpression():
            return _comparison(condition)
        case DateExpression():
            return " ".join([DATE, *_date(condition)])
        case ResourceExpression(standard, provider, type_):
            keys = (("class", standard), ("provider", provider), ("type", type_))
            return " ".join([RESOURCE_EXPRESSION, *_keys(keys)])
        case OperationExpression(name, interval):
            return " ".join([OPERATION_EXPRESSION, *_keys((("name", name), ("interval", interval)))])


def _comparison(expression: AttributeExpression) -> str:
    attribute = _attribute(expression.attribute)
    if expression.operation in PRESENCE:
        return f"{expression.operation} {attribute}"
    type_ = f"{expression.type}:" if expression.type is not None else ""
    value = expression.value or ""
    if expression.value_source is not None:
        return f"{attribute} {type_}{expression.operation} {expression.value_source}{{{quote_value(value)}}}"
    is_safe = value and "{" not in value and "=" not in value
    return f"{attribute} {type_}{expression.operation} {quote(value, keywords=_WORDS) if is_safe else quoted(value)}"


def _attribute(name: str) -> str:
    """Write the name of a node attribute; in the middle of a line `#uname` is no comment."""
    is_plain = WRITTEN_PLAINLY.match(name) and not name.endswith(":") and name.lower() not in _WORDS
    return name if is_plain else quoted(name)


def _date(expression: DateExpression) -> list[str]:
    match expression.operation:
        case "lt":
            return ["lt", quote(expression.end or "")]
        case "gt":
            return ["gt", quote(expression.start or "")]
        case "date_spec":
            return ["spec", *_keys(expression.spec)]
        case _:
            return ["in", *_keys((("start", expression.start), ("end", expression.end), *expression.duration))]


def _keys(keys: Sequence[tuple[str, str | None]]) -> list[str]:
    return [f"{key}={quote_value(value)}" for key, value in keys if value is not None]
