"""The words of rules, which all formats share (Pacemaker Explained, "Rules"), and what fits them."""

import re

COMPARISONS = ("eq", "ne", "lt", "lte", "gt", "gte")
PRESENCE = ("defined", "not_defined")
TYPES = ("string", "integer", "number", "version")
SOURCES = ("literal", "param", "meta")
DATE_OPERATIONS = ("in_range", "gt", "lt", "date_spec")
DURATION_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
SPEC_FIELDS = (
    "years", "months", "monthdays", "hours", "minutes", "seconds", "yeardays", "weekyears", "weeks", "weekdays",
)  # fmt: skip
OLDER_FIELDS = {"yearsdays": "yeardays"}
"""Fields of date specifications under names that are no longer written."""

NUMBER = re.compile(r"-?\d{1,9}\Z")
"""How many of a unit."""
RANGE = re.compile(r"(?:\d{1,9}(?:-(?:\d{1,9})?)?|-\d{1,9})\Z")
"""`N`, `N-M`, `N-` or `-M`."""


def read_number(text: str) -> str:
    """Read how many of a unit; raise ValueError otherwise."""
    if not NUMBER.match(text):
        raise ValueError(f"{text!r} is not a number")
    return text


def read_range(text: str) -> str:
    """Read `N`, `N-M`, `N-` or `-M`; raise ValueError otherwise."""
    if not RANGE.match(text):
        raise ValueError(f"{text!r} is not a number or a range of numbers such as 9-17")
    return text
