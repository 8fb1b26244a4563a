"""How many examples a property is tried with.

`make test` takes a half of those that a test names, the same ones each time; `make mutants` takes all of them, and
`make fuzz-properties` as many, new ones in each round.
"""

from hypothesis import settings

WHOLE = ("new", "whole")
"""The profiles of these two."""


def examples(count: int) -> int:
    """Return how many of so many examples are to be taken now."""
    return count if settings.get_current_profile_name() in WHOLE else count // 2
