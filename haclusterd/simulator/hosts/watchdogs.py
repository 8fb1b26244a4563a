"""The watchdog device of a simulated host: it resets the host unless it is fed in time.

It counts by a crystal of its own: neither a stalled host nor a drifting clock holds it back. From its expiry to the
silence of the host passes a moment (pretimeout, the panic path), in which no feed helps any more. One that a hypervisor
emulates may count by the machine's own time, and stand still with it (`is_emulated`).
"""

from collections.abc import Callable

from haclusterd.simulator.hosts.clocks import MILLION
from haclusterd.simulator.hosts.world import MS, Event, Life, World


class SimulatedWatchdog:
    """The device of one boot; see the module."""

    def __init__(
        self, world: World, timeout_ms: int, expire: Callable[[], None], *, drift_ppm: int = 0, reset_ms: int = 0
    ) -> None:
        """`drift_ppm`: by how many millionths its crystal is too fast; `reset_ms`: from its expiry to the reset."""
        self.timeout_ms = timeout_ms
        self._span_us = timeout_ms * MS * MILLION // (MILLION + drift_ppm)
        self._reset_us = reset_ms * MS
        self._is_expired = False
        self.is_broken = False
        """A device that takes every feed and never resets anything."""
        self.is_emulated = False
        """It stands still while its machine is paused with its clocks."""
        self.due_us = 0
        """When it expires, while it counts."""
        self._world = world
        self._expire = expire
        self._life = Life(world, "watchdog device")
        self._timer: Event | None = None
        self._frozen_at_us: int | None = None

    def feed(self) -> None:
        """Begin the count again; the first feed begins it."""
        if self._is_expired:
            return
        self.disarm()
        self.due_us = self._world.now_us + self._span_us
        self._timer = self._life.after(self._span_us, self._expired)

    def disarm(self) -> None:
        """End the count, as power that goes does."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def freeze(self) -> None:
        """Its machine is paused, with its clocks."""
        if self.is_emulated:
            self._frozen_at_us = self._world.now_us
            self._life.freeze()

    def thaw(self) -> None:
        """Its machine continues."""
        if self._frozen_at_us is not None:
            self.due_us += self._world.now_us - self._frozen_at_us
            self._frozen_at_us = None
        self._life.thaw()

    def _expired(self) -> None:
        self._timer = None
        if not self.is_broken:
            self._is_expired = True
            self._timer = self._life.after(self._reset_us, self._expire)
