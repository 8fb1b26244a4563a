"""Rows of the tables of settings: what a setting is called, what its values look like, what it means."""

import re
from dataclasses import dataclass
from enum import StrEnum

from haclusterd.model import durations, scores

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_TRUE = frozenset({"true", "on", "yes", "y", "1"})
_FALSE = frozenset({"false", "off", "no", "n", "0"})


class ValueType(StrEnum):
    """What a value must look like."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DURATION = "duration"
    SCORE = "score"
    CHOICE = "choice"
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


def read_boolean(text: str) -> bool:
    """Read a boolean as users write it; raise ValueError otherwise."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"not a boolean: {text!r} (write true or false)")


def read_integer(text: str) -> int:
    """Read a whole number of at most 18 digits; raise ValueError otherwise."""
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError(f"not a whole number: {text[:40]!r}")
    return int(text)


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
    obeyed = f"only {', '.join(row.live)}" if row.live else "nothing"
    return f"{text!r} has no effect in a running cluster; {obeyed} has one"


def _is_same(row: Row, text: str, other: str) -> bool:
    if row.type is ValueType.BOOLEAN:
        return read_boolean(text) == read_boolean(other)
    number = _read_number(row, text)
    return text == other if number is None else number == _read_number(row, other)


def _read_number(row: Row, text: str) -> int | None:
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
    return None


def _render(row: Row, value: int) -> str:
    return durations.render(value) if row.type is ValueType.DURATION else str(value)
