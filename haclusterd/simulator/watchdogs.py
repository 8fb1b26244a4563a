"""The watchdog device of a simulated host: it resets the host unless it is fed in time.

It counts in true time, as a device does that has a crystal of its own: neither a stalled host nor a drifting clock
holds it back.
"""

from collections.abc import Callable

from haclusterd.simulator.world import MS, Event, Life, World


class SimulatedWatchdog:
    """The device of one boot; see the module."""

    def __init__(self, world: World, timeout_ms: int, expire: Callable[[], None]) -> None:
        self.timeout_ms = timeout_ms
        self.is_broken = False
        """A device that takes every feed and never resets anything."""
        self.due_us = 0
        """When it expires, while it counts."""
        self._world = world
        self._expire = expire
        self._life = Life(world, "watchdog device")
        self._timer: Event | None = None

    def feed(self) -> None:
        """Begin the count anew; the first feed begins it."""
        self.disarm()
        self.due_us = self._world.now_us + self.timeout_ms * MS
        self._timer = self._life.after(self.timeout_ms * MS, self._expired)

    def disarm(self) -> None:
        """End the count, as power that goes does."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        self._timer = None
        if not self.is_broken:
            self._expire()
