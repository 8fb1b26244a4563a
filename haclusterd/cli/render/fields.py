"""Reading what a daemon answered: a field that is not there or is something else counts as empty.

A newer daemon may say more and an older one less; rendering must not fail for that.
"""

from collections.abc import Mapping, Sequence

from haclusterd.model.json_value import Json

Fields = Mapping[str, Json]

_NOTHING: Fields = {}


def fields(value: Json) -> Fields:
    """Return an object."""
    return value if isinstance(value, Mapping) else _NOTHING


def part(of: Fields, name: str) -> Fields:
    """Return an object inside an object."""
    return fields(of.get(name))


def listed(of: Fields, name: str) -> list[Fields]:
    """Return the objects of a list."""
    value = of.get(name)
    if isinstance(value, str) or not isinstance(value, Sequence):
        return []
    return [fields(item) for item in value]


def texts(of: Fields, name: str) -> list[str]:
    """Return the texts of a list."""
    value = of.get(name)
    if isinstance(value, str) or not isinstance(value, Sequence):
        return []
    return [str(item) for item in value]


def text(of: Fields, name: str) -> str:
    """Return a text; empty for null."""
    value = of.get(name)
    return "" if value is None or isinstance(value, Mapping) else str(value)


def number(of: Fields, name: str) -> int:
    """Return a number; 0 for null."""
    value = of.get(name)
    return value if isinstance(value, int) else 0


def flag(of: Fields, name: str) -> bool:
    """Return a truth."""
    return of.get(name) is True
