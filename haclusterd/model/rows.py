"""Rows of the tables of settings: what a setting is called, what its values look like, what it means."""

import re
from collections.abc import Mapping
from enum import StrEnum

from haclusterd.model import durations, memory, scores
from haclusterd.model.records import dataclass, field

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_PERCENTAGE = re.compile(r"([0-9]{1,4})%?")
_PERCENTAGE_MAX = 1000
_TRUE = frozenset({"true", "on", "yes", "y", "1"})
_FALSE = frozenset({"false", "off", "no", "n", "0"})


class ValueType(StrEnum):
    """What a value must look like."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DURATION = "duration"
    SCORE = "score"
    CHOICE = "choice"
    PERCENTAGE = "percentage"
    MEMORY = "memory"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class Row:
    """One property or meta-attribute."""

    name: str
    type: ValueType
    default: str
    doc: str
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    """Of an integer, or of a duration in ms."""
    maximum: int | None = None
    live: tuple[str, ...] | None = None
    """The values that a running cluster obeys; None: all. Others only mean something in plans for Pacemaker's CIBs."""
    is_harmless: bool = False
    """A value that is not obeyed changes nothing that a resource or a node depends on: it is kept, with a warning."""
    since: int = 1
    """The feature level of the first version whose clusters obey it as they do now."""
    old_words: Mapping[str, str] = field(default_factory=dict)
    """Values that earlier releases had, in lower case, and what stands for them today."""
    invalid: str | None = None
    """What Pacemaker takes in the place of a value that it cannot read; None: the default."""


def read_boolean(text: str) -> bool:
    """Read a boolean as users write it, spaces counted, as Pacemaker does; raise ValueError otherwise."""
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"not a boolean: {text!r} (write true or false)")


def read_boolean_or(text: str | None, *, default: bool) -> bool:
    """Read a boolean; what is not set or is no boolean counts as `default`."""
    try:
        return default if text is None else read_boolean(text)
    except ValueError:
        return default


_COMPARED_WHOLE = (ValueType.BOOLEAN, ValueType.CHOICE)
"""Types of which Pacemaker compares the whole text, spaces too."""
_LEADING = re.compile(r"\s*([+-]?[0-9]{1,18})(?![0-9])")
_INFINITE = 1_000_000
"""What INFINITY is as a whole number (Pacemaker Explained, "Boolean Operations": scores)."""


def read_integer(text: str) -> int:
    """Read a whole number of at most 18 digits, or INFINITY; raise ValueError otherwise."""
    word = text.strip()
    if word.lstrip("+-").upper() == "INFINITY" and len(word) - len(word.lstrip("+-")) <= 1:
        return -_INFINITE if word.startswith("-") else _INFINITE
    if not _WHOLE.fullmatch(word):
        raise ValueError(f"not a whole number: {text[:40]!r}")
    return int(word)


def read_percentage(text: str) -> int:
    """Read a whole percentage, as in `80%` or `80`, of at most 1000; raise ValueError otherwise."""
    found = _PERCENTAGE.fullmatch(text.strip())
    if found is None or int(found[1]) > _PERCENTAGE_MAX:
        raise ValueError(f"not a percentage: {text[:40]!r} (write 80%)")
    return int(found[1])


def canonical(row: Row, text: str) -> str:
    """Return a value as it is kept: words of a list in their own spelling, those of earlier releases renamed."""
    if row.type is not ValueType.CHOICE:
        return text
    word = text.strip().lower()
    word = row.old_words.get(word, word)
    return next((choice for choice in row.choices if choice.lower() == word.lower()), text)


def replacement(row: Row, text: str) -> str:
    """Return what counts in the place of a value that cannot be read, as Pacemaker reads it.

    Of a text that begins with a whole number that number counts: `1.5` and `1e3` are 1, `0x10` is 0, `5s` is 5 (seen
    with crm_simulate 2.1.5); of anything else what the row says, or the default.
    """
    if row.type is ValueType.SCORE:
        return scores.render(scores.as_in_pacemaker(text))
    found = _LEADING.match(text)
    if found is not None and row.type in (ValueType.INTEGER, ValueType.SCORE) and objection(row, found[1]) is None:
        return found[1]
    return row.default if row.invalid is None else row.invalid


def foreign_objection(row: Row, text: str) -> str | None:
    """Say why Pacemaker does not read a value as it is read here; None when both read the same, or neither can."""
    if row.type in _COMPARED_WHOLE and text != text.strip():
        return f"{text!r} has spaces around it"
    if row.type is not ValueType.SCORE or objection(row, text) is not None:
        return None
    return None if scores.as_in_pacemaker(text) == scores.parse(text) else f"not a score: {text[:40]!r}"


def objection(row: Row, text: str) -> str | None:
    """Say what is wrong with a value of this row; None when it is valid."""
    try:
        number = _read_number(row, text)
    except ValueError as error:
        return str(error)
    if number is not None and row.minimum is not None and number < row.minimum:
        return f"{text!r} is below the minimum {_render(row, row.minimum)}"
    if number is not None and row.maximum is not None and number > row.maximum:
        return f"{text!r} is above the maximum {_render(row, row.maximum)}"
    return None


def live_objection(row: Row, text: str) -> str | None:
    """Say what is wrong with a value of this row in a running cluster; None when it is valid and obeyed."""
    problem = objection(row, text)
    if problem is not None or row.live is None:
        return problem
    if any(_is_same(row, text, obeyed) for obeyed in row.live):
        return None
    if not row.live:
        return f"{text!r} has no effect: a running cluster does not read it, whatever its value is"
    return f"{text!r} has no effect in a running cluster; only {', '.join(row.live)} has one"


def _is_same(row: Row, text: str, other: str) -> bool:
    if row.type is ValueType.BOOLEAN:
        return read_boolean(text) == read_boolean(other)
    number = _read_number(row, text)
    return canonical(row, text) == other if number is None else number == _read_number(row, other)


def _read_number(row: Row, text: str) -> int | None:
    text = canonical(row, text)
    if row.choices and text not in row.choices:
        raise ValueError(f"{text!r} is not one of: {', '.join(row.choices)}")
    if row.type is ValueType.BOOLEAN:
        read_boolean(text)
    elif row.type is ValueType.DURATION:
        return durations.parse(text)
    elif row.type is ValueType.SCORE:
        return scores.parse(text)
    elif row.type is ValueType.INTEGER:
        return read_integer(text)
    elif row.type is ValueType.PERCENTAGE:
        return read_percentage(text)
    elif row.type is ValueType.MEMORY:
        return memory.parse(text)
    return None


def _render(row: Row, value: int) -> str:
    return durations.render(value) if row.type is ValueType.DURATION else str(value)
