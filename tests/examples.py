"""How many examples a property is tried with.

`make test` takes a third of those that a test names, the same ones each time; `make soak` and `make mutants` take all
of them, and `make fuzz-properties` as many, new ones in each round.
"""

from hypothesis import settings

WHOLE = ("new", "whole")
"""The profiles of these."""


def is_whole() -> bool:
    """Tell whether nothing is to be left out now."""
    return settings.get_current_profile_name() in WHOLE


def examples(count: int) -> int:
    """Return how many of so many examples are to be taken now."""
    return count if is_whole() else count // 3
