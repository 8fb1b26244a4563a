"""Points in time and spans, as integers of milliseconds.

Two kinds that must never be mixed. An `Instant` is read from CLOCK_BOOTTIME on one node: it counts while the
machine sleeps, never jumps, and means nothing on another node. A `WallTime` is milliseconds since the epoch: it is
for people and for the replicated state, and no safety decision may rest on it.
"""

from typing import NewType

Instant = NewType("Instant", int)
"""Milliseconds on this node's CLOCK_BOOTTIME."""

WallTime = NewType("WallTime", int)
"""Milliseconds since 1970-01-01T00:00:00Z."""

NEVER = Instant(2**62)


def after(start: Instant, span_ms: int) -> Instant:
    """Return the instant `span_ms` after `start`."""
    return Instant(start + span_ms)


def elapsed_ms(since: Instant, now: Instant) -> int:
    """Return the milliseconds from `since` to `now`."""
    return now - since
