"""Time and timers."""

from collections.abc import Callable
from typing import Protocol

from haclusterd.model.instants import Instant, WallTime


class Timer(Protocol):
    """A call that will happen; `cancel` makes it not happen, and is harmless afterwards."""

    def cancel(self) -> None:
        """Drop the call."""
        ...


class Clock(Protocol):
    """This node's clocks, and calls at an instant.

    `now` is CLOCK_BOOTTIME in milliseconds and never goes back. Calls are made on the main loop, one at a time, never
    before their instant, and in the order of their instants.
    """

    def now(self) -> Instant:
        """Return this node's CLOCK_BOOTTIME."""
        ...

    def wall(self) -> WallTime:
        """Return the wall clock, for people and records only."""
        ...

    def call_at(self, when: Instant, call: Callable[[], None]) -> Timer:
        """Call `call` at `when` or as soon as possible after it."""
        ...

    def call_soon(self, call: Callable[[], None]) -> None:
        """Call `call` as soon as the present event is done."""
        ...


class Entropy(Protocol):
    """Random choices of a proposer; seeded in the simulator."""

    def token(self) -> str:
        """Return 16 random hexadecimal digits."""
        ...

    def fraction(self) -> float:
        """Return a number in [0, 1)."""
        ...
