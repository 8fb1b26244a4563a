"""Rules: whether a condition on nodes, time, resources and operations holds (Pacemaker Explained, "Rules").

One function decides, `evaluate`; what a rule may look at is in its `RuleContext`. What makes no sense (a date that is
none, a comparison without a value) is false, never an error. Nothing but the effective time's `recheck_at` is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from haclusterd.model.configuration import AttributeSet
from haclusterd.model.ids import AgentReference
from haclusterd.model.records import dataclass
from haclusterd.model.rules import (
    AttributeExpression,
    Condition,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
)
from haclusterd.scheduler.model.dates import EffectiveTime, add_span, calendar_fields, parse_date
from haclusterd.scheduler.model.readings import duration_ms

_SPAN_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
_RANGE = re.compile(r"\s*(\d{0,9})\s*(-?)\s*(\d{0,9})\s*\Z")
_SUBMATCH = re.compile(r"%(\d)")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_LEADING_INTEGER = re.compile(r"\s*[+-]?\d{1,25}")
_LEADING_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3}(?!\d))?", re.IGNORECASE)
_INTEGER = re.compile(r"\s*[+-]?\d{1,25}\s*\Z")
_LONGEST_VERSION = 200


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What a rule may look at; None: there is no such thing here, and conditions on it are false."""

    time: EffectiveTime
    attributes: Mapping[str, str] | None = None
    """Of the node in question."""
    agent: AgentReference | None = None
    operation: str | None = None
    interval_ms: int = 0
    parameters: Mapping[str, str] | None = None
    meta: Mapping[str, str] | None = None
    submatches: tuple[str, ...] = ()
    """What a location constraint's pattern and its groups matched: `%0` to `%9`."""


def evaluate(rule: Rule, context: RuleContext) -> bool:
    """Tell whether a rule holds; one without conditions does."""
    if not rule.conditions:
        return True
    if rule.is_any:
        return any(_holds(condition, context) for condition in rule.conditions)
    return all(_holds(condition, context) for condition in rule.conditions)


def is_in_force(lifetime: tuple[Rule, ...], time: EffectiveTime) -> bool:
    """Tell whether a constraint with that lifetime counts: one without does, else one rule must hold.

    Only dates count, as in Pacemaker 2.1.5; a condition on nodes, agents or operations is false there, `not_defined`
    too. (Pacemaker 3 leaves the lifetimes of colocations and orderings out with a warning: they hold for ever.)
    """
    return not lifetime or any(_holds_by_date(rule, time) for rule in lifetime)


def _holds_by_date(rule: Rule, time: EffectiveTime) -> bool:
    if not rule.conditions:
        return True
    found = (_condition_holds_by_date(each, time) for each in rule.conditions)
    return any(found) if rule.is_any else all(found)


def _condition_holds_by_date(condition: Condition, time: EffectiveTime) -> bool:
    match condition:
        case Rule():
            return _holds_by_date(condition, time)
        case DateExpression():
            return _date_holds(condition, time)
        case _:
            return False


def merge(blocks: Iterable[AttributeSet], context: RuleContext) -> dict[str, str]:
    """Merge blocks that are in their order of strength, leaving out those whose rule does not hold.

    The value `#default` says nothing.
    """
    merged: dict[str, str] = {}
    for block in blocks:
        if block.rule is None or evaluate(block.rule, context):
            for name, value in block.pairs:
                if value != "#default":
                    merged.setdefault(name, value)
    return merged


def by_strength(blocks: tuple[AttributeSet, ...]) -> tuple[AttributeSet, ...]:
    """Sort blocks as `merge` wants them: by score descending, of equals the last in the document first."""
    return blocks if len(blocks) < 2 else tuple(sorted(reversed(blocks), key=lambda block: -block.score))


def looks_at_nodes(rule: Rule) -> bool:
    """Tell whether a rule may hold on one node and not on another."""
    return any(
        isinstance(condition, AttributeExpression) or (isinstance(condition, Rule) and looks_at_nodes(condition))
        for condition in rule.conditions
    )


def substituted(text: str, submatches: tuple[str, ...]) -> str:
    """Put the groups of a pattern in the place of `%0` to `%9`; a group that there is not leaves nothing."""
    if not submatches or "%" not in text:
        return text
    return _SUBMATCH.sub(lambda found: (*submatches, *[""] * 10)[int(found[1])], text)


def _holds(condition: Condition, context: RuleContext) -> bool:
    match condition:
        case Rule():
            return evaluate(condition, context)
        case AttributeExpression():
            return _attribute_holds(condition, context)
        case DateExpression():
            return _date_holds(condition, context.time)
        case ResourceExpression():
            return _resource_holds(condition, context.agent)
        case OperationExpression():
            return _operation_holds(condition, context)


def _resource_holds(condition: ResourceExpression, agent: AgentReference | None) -> bool:
    if agent is None:
        return False
    wanted = (condition.standard, condition.provider, condition.type)
    actual = (agent.standard, agent.provider, agent.type)
    return all(word is None or word == found for word, found in zip(wanted, actual, strict=True))


def _operation_holds(condition: OperationExpression, context: RuleContext) -> bool:
    if context.operation != condition.name:
        return False
    return condition.interval is None or duration_ms(condition.interval, -1) == context.interval_ms


def _attribute_holds(condition: AttributeExpression, context: RuleContext) -> bool:
    actual = (context.attributes or {}).get(substituted(condition.attribute, context.submatches))
    operation = condition.operation.lower()
    if operation == "defined":
        return actual is not None
    if operation == "not_defined":
        return actual is None
    wanted = _wanted(condition, context)
    order = _compare(actual, wanted, _kind(condition, operation, actual, wanted))
    if operation in ("eq", "ne"):
        return (order == 0) is (operation == "eq")
    if actual is None or wanted is None:
        return False
    return {"lt": order < 0, "lte": order <= 0, "gt": order > 0, "gte": order >= 0}.get(operation, False)


def _wanted(condition: AttributeExpression, context: RuleContext) -> str | None:
    if condition.value is None or condition.value_source in (None, "literal"):
        return condition.value
    table = context.parameters if condition.value_source == "param" else context.meta
    return (table or {}).get(condition.value)


def _kind(condition: AttributeExpression, operation: str, actual: str | None, wanted: str | None) -> str:
    if condition.type is not None:
        return condition.type
    if operation in ("eq", "ne"):
        return "string"
    return "number" if "." in (actual or "") or "." in (wanted or "") else "integer"


def _compare(left: str | None, right: str | None, kind: str) -> int:
    """Negative, zero or positive; nothing is less than anything."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if kind == "version":
        first, second = _version(left), _version(right)
        return (first > second) - (first < second)
    numbers = _number(left, kind), _number(right, kind)
    if numbers[0] is not None and numbers[1] is not None:
        return (numbers[0] > numbers[1]) - (numbers[0] < numbers[1])
    words = left.lower(), right.lower()
    return (words[0] > words[1]) - (words[0] < words[1])


def _number(text: str, kind: str) -> Decimal | None:
    """Return the number that a text begins with: what comes after it does not count ("1.9" is the integer 1)."""
    pattern = {"integer": _LEADING_INTEGER, "number": _LEADING_NUMBER}.get(kind)
    found = pattern.match(text) if pattern is not None else None
    return Decimal(found[0].strip()) if found is not None else None


def _version(text: str) -> tuple[int, ...]:
    found = _VERSION.match(text[:_LONGEST_VERSION])
    parts = [int(part) for part in found[0].split(".")] if found else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def _date_holds(condition: DateExpression, time: EffectiveTime) -> bool:
    now = time.now_s
    match condition.operation:
        case "date_spec":
            return _spec_holds(condition.spec, now)
        case "gt":
            start = _moment(condition.start)
            return start is not None and _is_after(start, time)
        case "lt":
            end = _moment(condition.end)
            if end is not None and now < end:
                time.look_again_at(end)
            return end is not None and now < end
        case "in_range":
            return _range_holds(condition, time)
        case _:
            return False


def _moment(text: str | None) -> int | None:
    return parse_date(text) if text is not None else None


def _is_after(start: int, time: EffectiveTime) -> bool:
    if time.now_s > start:
        return True
    time.look_again_at(start + 1)
    return False


def _range_holds(condition: DateExpression, time: EffectiveTime) -> bool:
    start, end = _moment(condition.start), _moment(condition.end)
    if start is None and (condition.start is not None or condition.end is None):
        return False
    if condition.end is not None and end is None:
        return False
    if start is not None and end is None and condition.duration:
        end = _after_span(start, condition.duration)
        if end is None:
            return False
    if start is not None and time.now_s < start:
        time.look_again_at(start)
        return False
    if end is None:
        return True
    if time.now_s <= end:
        time.look_again_at(end + 1)
    return time.now_s <= end


def _after_span(start: int, span: tuple[tuple[str, str], ...]) -> int | None:
    counts = dict(span)
    moment: int | None = start
    for unit in _SPAN_UNITS:
        if moment is not None and unit in counts:
            text = counts[unit]
            moment = add_span(moment, unit, int(text)) if _INTEGER.match(text) and len(text) < 12 else None
    return moment


def _spec_holds(spec: tuple[tuple[str, str], ...], now: int) -> bool:
    fields = calendar_fields(now)
    return all(_is_in(text, fields.get(name)) for name, text in spec if name != "id")


def _is_in(text: str, value: int | None) -> bool:
    """Whether a value is in `n`, `n-`, `-n` or `n-m`."""
    found = _RANGE.match(text)
    if found is None or value is None or not (found[1] or found[3]):
        return False
    low, high = found[1], found[3]
    if not found[2]:
        return not high and value == int(low)
    return (not low or int(low) <= value) and (not high or value <= int(high))
