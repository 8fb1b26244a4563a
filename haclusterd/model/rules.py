"""Rules: conditions on node attributes, time, resources and operations (Pacemaker Explained, "Rules").

Frozen values as they were written; the scheduler evaluates them. A rule without conditions is true.
"""

from __future__ import annotations

from collections.abc import Iterator

from haclusterd.model.records import dataclass

MAX_DEPTH = 16
"""How deep rules may be nested in rules, the outermost counted."""


@dataclass(frozen=True, slots=True)
class AttributeExpression:
    """A comparison of a node attribute."""

    attribute: str
    operation: str
    """`defined`, `not_defined`, `eq`, `ne`, `lt`, `lte`, `gt`, `gte`."""
    value: str | None = None
    value_source: str | None = None
    """`literal` (default), `param` or `meta`: what `value` is."""
    type: str | None = None
    """`string`, `integer`, `number` or `version`; None: by the operation and the values."""


@dataclass(frozen=True, slots=True)
class DateExpression:
    """A condition on the time."""

    operation: str = "in_range"
    """`in_range`, `gt`, `lt` or `date_spec`."""
    start: str | None = None
    """ISO 8601."""
    end: str | None = None
    duration: tuple[tuple[str, str], ...] = ()
    """From `start`, as (unit, number): years, months, weeks, days, hours, minutes, seconds."""
    spec: tuple[tuple[str, str], ...] = ()
    """As (field, range): years, months, monthdays, hours, minutes, seconds, yeardays, weekyears, weeks, weekdays."""


@dataclass(frozen=True, slots=True)
class ResourceExpression:
    """A condition on a resource's agent; None: any."""

    standard: str | None = None
    provider: str | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True)
class OperationExpression:
    """A condition on an operation."""

    name: str
    interval: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """All or any of its conditions must hold; in a location constraint it also says how much a node is worth."""

    id: str = ""
    conditions: tuple[Condition, ...] = ()
    is_any: bool = False
    """`boolean-op=or`."""
    score: int | None = None
    score_attribute: str | None = None
    """The node attribute that holds the score."""
    role: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError when rules are nested too deeply: a walk through them needs that much stack."""
        if _depth(self) > MAX_DEPTH:
            raise ValueError(f"rules are nested more than {MAX_DEPTH} deep")


Condition = Rule | AttributeExpression | DateExpression | ResourceExpression | OperationExpression


def conditions_of(rule: Rule) -> Iterator[Condition]:
    """Yield the conditions of a rule and of the rules in it, in document order; none of them is a rule."""
    for each in rule.conditions:
        if isinstance(each, Rule):
            yield from conditions_of(each)
        else:
            yield each


def looks_at_dates_only(rule: Rule) -> bool:
    """Return whether time alone decides a rule."""
    return all(isinstance(each, DateExpression) for each in conditions_of(rule))


def _depth(rule: Rule) -> int:
    return 1 + max((_depth(inner) for inner in rule.conditions if isinstance(inner, Rule)), default=0)
