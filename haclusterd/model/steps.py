"""Long work cut into steps, so that its driver can do other things in between.

A step takes a few milliseconds. What the work comes to does not depend on who drives it or on what happens between two
steps: it looks at values that never change. Nothing here knows how long a step took.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]


def outcome_of(steps: Steps[T]) -> T:
    """Do all steps at once, and return what the work comes to."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        outcome: T = end.value
        return outcome
