"""The clock of a real node: CLOCK_BOOTTIME, with an asyncio loop to make the calls.

The loop's own timers count CLOCK_MONOTONIC, which stops while the machine sleeps. So a timer checks CLOCK_BOOTTIME when
it fires, and waits on if it is early.
"""

import asyncio
import time
from collections.abc import Callable

from haclusterd.model.instants import Instant, WallTime

NANOSECONDS_PER_MS = 1_000_000
LONGEST_WAIT_MS = 24 * 3600 * 1000


class BoottimeClock:
    """Clock on one asyncio loop; to be used on that loop's thread (`now` and `wall`: on any)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> Instant:
        """Return CLOCK_BOOTTIME in milliseconds."""
        return Instant(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // NANOSECONDS_PER_MS)

    def wall(self) -> WallTime:
        """Return CLOCK_REALTIME in milliseconds."""
        return WallTime(time.clock_gettime_ns(time.CLOCK_REALTIME) // NANOSECONDS_PER_MS)

    def call_at(self, when: Instant, call: Callable[[], None]) -> "BoottimeTimer":
        """Call `call` at `when` or as soon as possible after it."""
        return BoottimeTimer(self, self._loop, when, call)

    def call_soon(self, call: Callable[[], None]) -> None:
        """Call `call` as soon as the present event is handled."""
        self._loop.call_soon(call)


class BoottimeTimer:
    """A scheduled call."""

    def __init__(
        self, clock: BoottimeClock, loop: asyncio.AbstractEventLoop, when: Instant, call: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._loop = loop
        self._when = when
        self._call = call
        self._arm()

    def cancel(self) -> None:
        """Cancel the call."""
        self._handle.cancel()

    def _arm(self) -> None:
        wait_ms = min(max(0, self._when - self._clock.now()), LONGEST_WAIT_MS)
        self._handle = self._loop.call_later(wait_ms / 1000, self._fire)

    def _fire(self) -> None:
        if self._clock.now() < self._when:
            self._arm()
        else:
            self._call()
