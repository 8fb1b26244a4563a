"""Hysteresis: a level follows its samples only when enough of them agree, and goes back later than it came.

A node's health moves services, so one bad sample must not, and a value that swings around a threshold must not move
them to and fro. A level rises after `raise_after` samples in a row above it, to the lowest of them; it falls after
`clear_after` samples in a row below it, to the highest of them, and a sample counts as below only when it is so by a
margin. Pure: the caller keeps the track between samples.
"""

from __future__ import annotations

from collections.abc import Sequence

RED = 2
Track = tuple[int, int, int]
"""The level; how many samples in a row point to another one; which one."""


def begin(level: int) -> Track:
    """Return the track of a level without a past."""
    return level, 0, level


def step(track: Sequence[int], up: int, down: int, raise_after: int, clear_after: int) -> Track:
    """Take a sample in.

    `up` is the level that the sample has; `down` the one that it would have were it worse by the margin (`up <= down`).
    """
    level, count, toward = track
    if up > level:
        seen = up
    elif down < level:
        seen = down
    else:
        return begin(level)
    is_rising = seen > level
    if count and (toward > level) == is_rising:
        count, toward = count + 1, min(toward, seen) if is_rising else max(toward, seen)
    else:
        count, toward = 1, seen
    return begin(toward) if count >= (raise_after if is_rising else clear_after) else (level, count, toward)


def level_of(value: float, yellow: float | None, red: float | None) -> int:
    """Return 0, 1 or 2: which threshold a value has reached; None: that one is never reached."""
    if red is not None and value >= red:
        return 2
    return 1 if yellow is not None and value >= yellow else 0
