"""Virtual time: one heap of events, seeded chance, and the lives that events belong to.

Time is an integer of microseconds that passes only from event to event. Equal instants keep the order in which they
were asked for. An event that belongs to a life is dropped when that life has ended, and held back, in order, while it
is paused: that is all that SIGKILL and SIGSTOP are here.
"""

import hashlib
import heapq
import random
from collections.abc import Callable

Call = Callable[[], None]

MS = 1000
SECOND = 1_000_000


def between(chance: random.Random, span: tuple[int, int]) -> int:
    """Draw a whole number from a span, both ends included: what `randint` draws, in a fraction of its time."""
    lowest, highest = span
    count = highest - lowest + 1
    assert count > 0, span
    bits = count.bit_length()
    drawn = chance.getrandbits(bits)
    while drawn >= count:
        drawn = chance.getrandbits(bits)
    return lowest + drawn


class SimulationStuckError(Exception):
    """Virtual time stands still: events make more events without end."""


class Event:
    """A call that will happen; `cancel` makes it not happen, and is harmless afterwards."""

    __slots__ = ("call", "life")

    def __init__(self, call: Call, life: "Life | None") -> None:
        self.call: Call | None = call
        self.life = life

    def cancel(self) -> None:
        """Drop the call."""
        self.call = None


class World:
    """The clock behind all clocks."""

    EVENTS_PER_INSTANT_MAX = 200_000

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now_us = 0
        self._heap: list[tuple[int, int, Event]] = []
        self._sequence = 0
        self._digest = hashlib.sha256()
        self._recorded: list[str] = []

    @property
    def now_ms(self) -> int:
        """Return the virtual time in milliseconds."""
        return self.now_us // MS

    def chance(self, name: str) -> random.Random:
        """Return a source of chance of its own, so that a new draw in one place moves no draw in another."""
        return random.Random(f"{self.seed}/{name}")

    def at(self, when_us: int, call: Call, life: "Life | None" = None) -> Event:
        """Make `call` happen at `when_us`, or now when that is past."""
        event = Event(call, life)
        now_us = self.now_us
        self._sequence += 1
        heapq.heappush(self._heap, (when_us if when_us > now_us else now_us, self._sequence, event))
        return event

    def after(self, span_us: int, call: Call, life: "Life | None" = None) -> Event:
        """Make `call` happen after `span_us`."""
        event = Event(call, life)
        self._sequence += 1
        heapq.heappush(self._heap, (self.now_us + span_us, self._sequence, event))
        return event

    def record(self, line: str) -> None:
        """Add a line to the record of the run, and to its digest."""
        text = f"{self.now_us} {line}"
        self._digest.update(f"{text}\n".encode())
        self._recorded.append(text)

    def mark(self, line: str) -> None:
        """Add a line to the digest only: what happens too often to be shown."""
        self._digest.update(f"{self.now_us} {line}\n".encode())

    def recorded(self, newest: int | None = None) -> list[str]:
        """Return the recorded lines, or the newest of them."""
        return self._recorded if newest is None else self._recorded[-newest:]

    def trace(self) -> str:
        """Return the digest of everything recorded: equal runs have equal digests."""
        return self._digest.hexdigest()

    def run_until(self, when_us: int, is_done: Callable[[], bool] | None = None) -> bool:
        """Run events up to `when_us`; stop early, and return True, when `is_done` holds after an event."""
        if is_done is not None and is_done():
            return True
        pop, heap = heapq.heappop, self._heap
        at_this_instant = 0
        while heap and heap[0][0] <= when_us:
            when, _, event = pop(heap)
            call, life = event.call, event.life
            if call is None or (life is not None and not life.is_running and not life.admits(event)):
                continue
            at_this_instant = at_this_instant + 1 if when == self.now_us else 0
            if at_this_instant > self.EVENTS_PER_INSTANT_MAX:
                raise SimulationStuckError(f"more than {at_this_instant} events at {self.now_us} us")
            self.now_us = when
            event.call = None
            try:
                call()
            except Exception as error:
                if life is None or not life.crash(error):
                    raise
            if is_done is not None and is_done():
                return True
        self.now_us = when_us
        return False

    def take_out(self, is_of: Callable[["Life"], bool]) -> list[tuple[int, Event]]:
        """Take the events of some lives out; return them in order, each with the virtual time that it still had."""
        taken = [item for item in self._heap if item[2].life is not None and is_of(item[2].life)]
        if taken:
            numbers = {number for _, number, _ in taken}
            self._heap[:] = [item for item in self._heap if item[1] not in numbers]
            heapq.heapify(self._heap)
        return [(when_us - self.now_us, event) for when_us, _, event in sorted(taken, key=lambda item: item[:2])]

    def _push(self, when_us: int, event: Event) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (when_us, self._sequence, event))


class Life:
    """A process, a thread, or the boot of a host: what its events end and stand still with.

    A life within another one (`within`) ends and stands still with it too.
    """

    def __init__(self, world: World, name: str, within: "Life | None" = None) -> None:
        self.world = world
        self.name = name
        self._within = within
        self.is_alive: bool = within is None or within.is_alive
        """Neither this life nor one around it has ended."""
        self.is_running: bool = self.is_alive and (within is None or within.is_running)
        """It is alive, and neither it nor a life around it is paused."""
        self._is_paused = False
        self._held: list[Event] = []
        self._frozen: list[tuple[int, Event]] | None = None
        """What was to happen when it was frozen, in order; None while it is not."""
        self._inner: list[Life] = []
        self._at_end: list[Call] = []
        self.when_it_raises: Callable[[Exception], bool] | None = None
        """What an exception in an event of this life means; True: it was a crash, and is dealt with."""
        if within is not None and within.is_alive:
            within._inner.append(self)

    def at(self, when_us: int, call: Call) -> Event:
        """Make `call` happen in this life."""
        return self.world.at(when_us, call, self)

    def after(self, span_us: int, call: Call) -> Event:
        """Make `call` happen in this life after a span."""
        return self.world.after(span_us, call, self)

    def at_end(self, call: Call) -> None:
        """Call `call` when the life ends, whatever ends it."""
        self._at_end.append(call)

    def do(self, call: Call) -> None:
        """Make `call` happen now, as an event of this life: held while it is paused, never when it has ended."""
        if self.is_running:
            try:
                call()
            except Exception as error:
                if not self.crash(error):
                    raise
        elif self.is_alive:
            self._held.append(Event(call, self))

    def admits(self, event: Event) -> bool:
        """Tell whether an event may run now; it is held for later when the life is paused."""
        if self.is_running:
            return True
        if self.is_alive:
            self._held.append(event)
        return False

    def crash(self, error: Exception) -> bool:
        """Let the innermost life that has an answer to an exception answer."""
        if self.when_it_raises is not None:
            return self.when_it_raises(error)
        return self._within is not None and self._within.crash(error)

    def end(self) -> None:
        """End it and everything within it; none of its events happens any more."""
        if not self.is_alive:
            return
        for inner in list(self._inner):
            inner.end()
        self.is_alive = self.is_running = False
        self._held.clear()
        if self._within is not None:
            self._within._inner.remove(self)
        for call in self._at_end:
            call()

    def pause(self) -> None:
        """Stop it between two events."""
        self._is_paused = True
        self._judge_running()

    def resume(self) -> None:
        """Let it continue: what was held happens now, in order."""
        self._is_paused = False
        self._judge_running()
        self._release()

    def freeze(self) -> None:
        """Stop it and its time: what was to happen later happens after `thaw` with the delay that it still had."""
        if self._frozen is None:
            self._frozen = self.world.take_out(self.is_around)
            self.pause()

    def thaw(self) -> None:
        """Let it continue where it was; harmless when it is not frozen."""
        frozen, self._frozen = self._frozen, None
        for left_us, event in frozen or ():
            self.world._push(self.world.now_us + left_us, event)
        if frozen is not None:
            self.resume()

    def is_around(self, life: "Life") -> bool:
        """Tell whether a life is this one, or one within it."""
        inner: Life | None = life
        while inner is not None and inner is not self:
            inner = inner._within
        return inner is self

    def _judge_running(self) -> None:
        is_around_running = self._within is None or self._within.is_running
        self.is_running = self.is_alive and is_around_running and not self._is_paused
        for inner in self._inner:
            inner._judge_running()

    def _release(self) -> None:
        if not self.is_running:
            return
        held, self._held = self._held, []
        for event in held:
            self.world._push(self.world.now_us, event)
        for inner in self._inner:
            inner._release()
