"""The order in which nodes are gone through: by name, numbers in names as numbers."""

import re

_DIGITS = re.compile(r"(\d+)")


def name_order(name: str) -> tuple[tuple[object, ...], str]:
    """Sort names with their numbers as numbers: n2 before n10."""
    parts = _DIGITS.split(name.lower())
    return tuple((int(part), len(part)) if index % 2 else part for index, part in enumerate(parts)), name
