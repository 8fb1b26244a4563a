"""Conditions one by one: what each may look at, and what counts as false."""

from datetime import UTC, datetime

import pytest

from haclusterd.model.configuration import AttributeSet
from haclusterd.model.ids import AgentReference
from haclusterd.model.instants import WallTime
from haclusterd.model.rules import (
    AttributeExpression,
    Condition,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
)
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.rules import RuleContext, by_strength, evaluate, merge, substituted

DUMMY = AgentReference("ocf", "pacemaker", "Dummy")
ATTRIBUTES = {"zone": "East", "cpus": "8", "load": "1.5", "version": "1.10.2", "web-ip": "x", "odd": "5x"}
PARAMETERS = {"want": "8"}
META = {"want": "9"}


def at(text: str) -> WallTime:
    return WallTime(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000)


def context(now: str = "2024-02-29T12:30:00") -> RuleContext:
    time = EffectiveTime(at(now))
    return RuleContext(time, ATTRIBUTES, DUMMY, "monitor", 10_000, PARAMETERS, META, ("web-1", "web"))


def holds(condition: Condition, now: str = "2024-02-29T12:30:00") -> bool:
    return evaluate(Rule(conditions=(condition,)), context(now))


TRUE = AttributeExpression("zone", "defined")
FALSE = AttributeExpression("zone", "not_defined")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(), True),
        (Rule(conditions=(TRUE, FALSE)), False),
        (Rule(conditions=(TRUE, FALSE), is_any=True), True),
        (Rule(conditions=(FALSE, Rule(conditions=(TRUE,))), is_any=True), True),
        (Rule(conditions=(TRUE, Rule(conditions=(FALSE,), is_any=True))), False),
    ],
)
def test_all_or_any(rule: Rule, *, expected: bool) -> None:
    assert evaluate(rule, context()) is expected


@pytest.mark.parametrize(
    ("attribute", "operation", "value", "kind", "expected"),
    [
        ("zone", "eq", "east", None, True),
        ("zone", "ne", "west", None, True),
        ("none", "ne", "west", None, True),
        ("none", "lt", "5", None, False),
        ("cpus", "gt", "10", None, False),
        ("cpus", "gt", "10", "string", True),
        ("cpus", "lt", "10", None, True),
        ("cpus", "eq", "08", None, False),
        ("cpus", "eq", "08", "integer", True),
        ("load", "lt", "1.25", None, False),
        ("load", "gte", "1.50", None, True),
        ("load", "eq", "1.50", "number", True),
        ("version", "gt", "1.9", "version", True),
        ("version", "lte", "1.10.2.0", "version", True),
        ("odd", "gt", "10", "integer", False),
        ("zone", "gt", "10", "integer", True),
        ("version", "eq", "1.99", "integer", True),
        ("version", "eq", "1.1", "number", True),
        ("cpus", "lt", "8.5x", "number", True),
        ("cpus", "lt", "9GiB", None, True),
        ("zone", "resembles", "east", None, False),
        ("%1-ip", "defined", None, None, True),
    ],
)
def test_node_attributes(
    attribute: str, operation: str, value: str | None, kind: str | None, *, expected: bool
) -> None:
    assert holds(AttributeExpression(attribute, operation, value, type=kind)) is expected


@pytest.mark.parametrize(("source", "expected"), [(None, False), ("literal", False), ("param", True), ("meta", False)])
def test_the_value_may_be_a_parameter_or_a_meta_attribute(source: str | None, *, expected: bool) -> None:
    assert holds(AttributeExpression("cpus", "eq", "want", source)) is expected


def test_without_a_node_only_what_is_missing_is_so() -> None:
    nowhere = RuleContext(EffectiveTime(WallTime(0)))
    assert evaluate(Rule(conditions=(FALSE,)), nowhere)
    assert not evaluate(Rule(conditions=(TRUE,)), nowhere)
    assert not evaluate(Rule(conditions=(ResourceExpression(),)), nowhere)
    assert not evaluate(Rule(conditions=(OperationExpression("monitor"),)), nowhere)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (ResourceExpression(), True),
        (ResourceExpression("ocf", "pacemaker", "Dummy"), True),
        (ResourceExpression("ocf", type="Stateful"), False),
        (OperationExpression("monitor"), True),
        (OperationExpression("monitor", "10s"), True),
        (OperationExpression("monitor", "11s"), False),
        (OperationExpression("monitor", "soon"), False),
        (OperationExpression("start"), False),
    ],
)
def test_resources_and_operations(condition: Condition, *, expected: bool) -> None:
    assert holds(condition) is expected


@pytest.mark.parametrize(
    ("condition", "expected", "again"),
    [
        (DateExpression("gt", start="2024-02-29T12:30:00Z"), False, "2024-02-29T12:30:01"),
        (DateExpression("gt", start="2024-02-29T12:29:59Z"), True, None),
        (DateExpression("lt", end="2024-02-29T12:30:00Z"), False, None),
        (DateExpression("lt", end="2024-02-29T12:30:01Z"), True, "2024-02-29T12:30:01"),
        (DateExpression(end="2024-02-29T12:30:00Z"), True, "2024-02-29T12:30:01"),
        (DateExpression(start="2024-03-01"), False, "2024-03-01T00:00:00"),
        (DateExpression(start="2024-060", end="2024-W09-4T12:00:00Z"), False, None),
        (DateExpression(start="2024-01-31", duration=(("months", "1"),)), False, None),
        (DateExpression(start="2024-01-31", duration=(("hours", "13"), ("months", "1"))), True, "2024-02-29T13:00:01"),
        (DateExpression(start="2023-02-28T12:30:00Z", duration=(("years", "1"), ("days", "1"))), True,
         "2024-02-29T12:30:01"),
        (DateExpression("date_spec", spec=(("monthdays", "29"), ("weekdays", "1-4"), ("hours", "-12"))), True, None),
        (DateExpression("date_spec", spec=(("yeardays", "61-"),)), False, None),
        (DateExpression("date_spec", spec=(("weeks", "nine"),)), False, None),
        (DateExpression("date_spec"), True, None),
        (DateExpression(start="yesterday"), False, None),
        (DateExpression(start="2024-01-01", end="tomorrow"), False, None),
        (DateExpression(), False, None),
        (DateExpression("gt"), False, None),
    ],
)  # fmt: skip
def test_dates(condition: DateExpression, again: str | None, *, expected: bool) -> None:
    given = context()
    assert evaluate(Rule(conditions=(condition,)), given) is expected
    assert given.time.recheck_at == (at(again) if again is not None else None)


def test_the_earliest_time_to_look_again_counts() -> None:
    given = context()
    for text in ("2024-03-05", "2024-03-01", "2024-03-09"):
        evaluate(Rule(conditions=(DateExpression("lt", end=text),)), given)
    assert given.time.recheck_at == at("2024-03-01")


def test_blocks_of_equal_score_count_from_the_last_to_the_first() -> None:
    no = Rule(conditions=(FALSE,))
    blocks = (
        AttributeSet("a", (("x", "a"), ("y", "a"), ("z", "a"))),
        AttributeSet("b", (("x", "b"), ("y", "#default"))),
        AttributeSet("c", (("x", "c"),), rule=no),
        AttributeSet("d", (("z", "d"),), score=5),
    )
    assert merge(by_strength(blocks), context()) == {"z": "d", "x": "b", "y": "a"}


@pytest.mark.parametrize(("text", "expected"), [("%0", "web-1"), ("%1-%2!", "web-!"), ("100%", "100%"), ("%a", "%a")])
def test_submatches(text: str, expected: str) -> None:
    assert substituted(text, ("web-1", "web")) == expected


def test_a_rule_with_absurd_numbers_is_false() -> None:
    endless = "9" * 5000
    for kind in ("integer", "number", "version"):
        assert not holds(AttributeExpression("cpus", "gt", endless, type=kind))
    assert not holds(DateExpression(start="2024-01-01", duration=(("years", endless),)))
    assert not holds(DateExpression(start="2024-01-01", duration=(("years", "99999"),)))
    assert not holds(DateExpression("date_spec", spec=(("years", f"-{endless}"),)))
