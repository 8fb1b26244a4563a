"""Event loops that measure how long their own work keeps them from handling new events (loop stalls).

Waiting for events is no stall; everything else is, including the wait for the interpreter lock and for a processor:
during that time nothing on the loop could have been on time.
"""

import asyncio
import selectors
import time
from collections.abc import Callable

from haclusterd.model.loop_stalls import LoopStall

NS_PER_MS = 1_000_000
PERIOD_NS = 60_000 * NS_PER_MS


class HoldMeter:
    """The stalls of one loop; written on its thread, read on any."""

    def __init__(self, loop: str) -> None:
        self._loop = loop
        self._longest_ns = 0
        self._longest_work_ns = 0
        self._is_reset = False
        self._periods = (0, 0)
        """The longest in the present period, and in the one before."""
        self._period_began_ns = time.monotonic_ns()

    def add(self, hold_ns: int, now_ns: int, work_ns: int = 0) -> None:
        """Record one stall, in `work_ns` of which the thread used the processor."""
        if self._is_reset:
            # It began before the reset.
            self._is_reset = False
            return
        self._longest_work_ns = max(self._longest_work_ns, work_ns)
        present, before = self._periods
        if now_ns - self._period_began_ns >= PERIOD_NS:
            self._period_began_ns = now_ns
            present, before = 0, present
        present = max(present, hold_ns)
        self._periods = present, before
        self._longest_ns = max(self._longest_ns, hold_ns)

    def reset(self) -> None:
        """Drop all measurements: the daemon is ready only now."""
        self._longest_ns = 0
        self._longest_work_ns = 0
        self._periods = (0, 0)
        self._is_reset = True

    def read(self) -> LoopStall:
        """Return the measurements."""
        return LoopStall(
            self._loop,
            self._longest_ns // NS_PER_MS,
            max(self._periods) // NS_PER_MS,
            self._longest_work_ns // NS_PER_MS,
        )


class MeasuredLoops:
    """`LoopStalls` over the loops that it made."""

    def __init__(self) -> None:
        self._meters: list[HoldMeter] = []

    def factory(self, loop: str) -> Callable[[], asyncio.AbstractEventLoop]:
        """Return a function that makes a measured loop of this name."""
        meter = HoldMeter(loop)
        self._meters.append(meter)
        return lambda: asyncio.SelectorEventLoop(_MeasuredSelector(meter))

    def heartbeats(self) -> Callable[[int], None]:
        """Return a function that takes the milliseconds between two heartbeats; they are shown beside the stalls."""
        meter = HoldMeter("heartbeats")
        self._meters.append(meter)
        return lambda gap_ms: meter.add(gap_ms * NS_PER_MS, time.monotonic_ns())

    def longest(self) -> tuple[LoopStall, ...]:
        """See `LoopStalls.longest`."""
        return tuple(meter.read() for meter in self._meters)

    def reset(self) -> None:
        """Measure from now on."""
        for meter in self._meters:
            meter.reset()


class _MeasuredSelector(selectors.EpollSelector):
    """Measures the time between one `select` and the next, in which the loop works."""

    def __init__(self, meter: HoldMeter) -> None:
        super().__init__()
        self._meter = meter
        self._left_ns = time.monotonic_ns()
        self._left_work_ns = time.thread_time_ns()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events; the time since the last wait was a stall."""
        now_ns = time.monotonic_ns()
        self._meter.add(now_ns - self._left_ns, now_ns, time.thread_time_ns() - self._left_work_ns)
        ready = super().select(timeout)
        self._left_ns = time.monotonic_ns()
        self._left_work_ns = time.thread_time_ns()
        return ready
