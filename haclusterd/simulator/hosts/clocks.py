"""A host's clocks: CLOCK_BOOTTIME, which starts at the boot and drifts, and a wall clock that jumps.

A machine that is paused takes its clocks with it or not, as hypervisors do: KVM's own clock stands still while QEMU
has stopped the machine, the time stamp counter continues.
"""

import random
from collections.abc import Callable

from haclusterd.model.instants import Instant, WallTime
from haclusterd.simulator.hosts.world import MS, Event, Life, World

MILLION = 1_000_000
EPOCH_MS = 1_800_000_000_000
"""What a right wall clock shows when virtual time begins."""


class BootClock:
    """CLOCK_BOOTTIME of one boot: it counts from `uptime_us` on and gains `drift_ppm` millionths."""

    def __init__(self, world: World, *, uptime_us: int, drift_ppm: int) -> None:
        self._world = world
        self._began_us = world.now_us
        self._uptime_us = uptime_us
        self._rate = MILLION + drift_ppm
        self._read_us = -1
        """The virtual time at which it was read last; within an event it is read again and again."""
        self._shown = Instant(0)
        self._frozen_us: int | None = None
        """The virtual time at which it was stopped, while it stands still."""

    def freeze(self) -> None:
        """Stand still from now on."""
        if self._frozen_us is None:
            self.now()
            self._frozen_us = self._world.now_us

    def thaw(self) -> int:
        """Go on from where it stood; return for how many virtual microseconds it stood still."""
        if self._frozen_us is None:
            return 0
        stood_us, self._frozen_us = self._world.now_us - self._frozen_us, None
        self._began_us += stood_us
        self._read_us = -1
        return stood_us

    def now(self) -> Instant:
        """Return the milliseconds since the boot."""
        now_us = self._world.now_us
        if now_us != self._read_us and self._frozen_us is None:
            self._read_us = now_us
            self._shown = Instant((self._uptime_us + (now_us - self._began_us) * self._rate // MILLION) // MS)
        return self._shown

    def virtual_us(self, when: Instant) -> int:
        """Return the first virtual time at which this clock shows `when`."""
        return self._began_us - (self._uptime_us - when * MS) * MILLION // self._rate


class WallClock:
    """The wall clock of one host, which people and NTP may set."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.offset_ms = 0

    def now(self) -> WallTime:
        """Return the milliseconds since the epoch, as far as this host knows."""
        return WallTime(EPOCH_MS + self._world.now_ms + self.offset_ms)


class ProcessClock:
    """The `Clock` of one process."""

    def __init__(self, boot: BootClock, wall: WallClock, life: Life) -> None:
        self._boot = boot
        self._life = life
        self.now = boot.now
        """Return this host's CLOCK_BOOTTIME."""
        self.wall = wall.now
        """Return this host's wall clock."""

    def call_at(self, when: Instant, call: Callable[[], None]) -> Event:
        """Call `call` at `when` or as soon as possible after it."""
        return self._life.at(self._boot.virtual_us(when), call)

    def call_soon(self, call: Callable[[], None]) -> None:
        """Call `call` as soon as the present event is done."""
        self._life.after(0, call)


class SeededEntropy:
    """The `Entropy` of one process."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def token(self) -> str:
        """Return 16 random hexadecimal digits."""
        return f"{self._chance.getrandbits(64) | 1:016x}"

    def fraction(self) -> float:
        """Return a number in [0, 1)."""
        return self._chance.random()
