"""Where the Raft thread and the main loop meet: two bounded queues of immutable values, and nothing else.

`QueuePair` holds the queues. `MainSide` is the `Store` of the main loop, `RaftSide` drives a `RaftCore` with the
requests. Neither knows threads: both wake-ups are injected, so the simulator runs these very classes with a seeded
interleaving, and `adapters/raft/thread.py` runs them with a real thread.

Invariant: each deque is appended to by one side and popped by the other (each operation is atomic), and no other value
is shared. Never call into the core from the main loop, or into the main loop from the Raft thread.
"""

from collections import deque
from collections.abc import Callable
from typing import TypeVar

from haclusterd.model.ids import NodeName, Term
from haclusterd.model.records import dataclass
from haclusterd.ports.store import PeerPlaces, StoreEvent
from haclusterd.raft.core import RaftCore
from haclusterd.raft.settings import MAX_ENTRY_BYTES, RaftTimers

EVENTS_RESERVE = 16
"""Slots that `room` does not offer: for a restored snapshot, and changes of leader and of links."""


@dataclass(frozen=True, slots=True)
class Propose:
    """Append an entry; with `term` only in that one."""

    entry: bytes
    term: Term | None = None


@dataclass(frozen=True, slots=True)
class Considered:
    """See `Store.considered`."""

    index: int


@dataclass(frozen=True, slots=True)
class TransferLeadership:
    """See `Store.transfer_leadership`."""

    to: NodeName


@dataclass(frozen=True, slots=True)
class Retime:
    """Take other timers."""

    node_timeout_ms: int


@dataclass(frozen=True, slots=True)
class FollowPlaces:
    """See `Store.follow_places`."""

    places: PeerPlaces


Request = Propose | Considered | TransferLeadership | Retime | FollowPlaces


class QueuePair:
    """Requests from the main loop, events from the Raft thread.

    `wake_raft` and `wake_main` are called when there is something new for that side, at most once until it has taken
    it; each is called on the other side's thread and must not run its side within the call.
    """

    def __init__(
        self,
        *,
        wake_raft: Callable[[], None],
        wake_main: Callable[[], None],
        requests_max: int = 256,
        events_max: int = 1024,
    ) -> None:
        self._wake_raft = wake_raft
        self._wake_main = wake_main
        self._requests: deque[Request] = deque()
        self._events: deque[StoreEvent] = deque()
        self._requests_max = requests_max
        self._events_max = events_max
        self._raft_is_woken = False
        self._main_is_woken = False
        self._raft_is_starved = False

    def request(self, request: Request) -> bool:
        """Queue a request (main loop); return False when the queue is full. Rare requests always have room."""
        if len(self._requests) >= self._requests_max and not isinstance(request, Retime | FollowPlaces):
            return False
        self._requests.append(request)
        if not self._raft_is_woken:
            self._raft_is_woken = True
            self._wake_raft()
        return True

    def take_requests(self) -> list[Request]:
        """Take all requests (Raft thread)."""
        # The flag is cleared before the queue is emptied: what is appended afterwards wakes again.
        self._raft_is_woken = False
        return _take(self._requests, len(self._requests))

    def room(self) -> int:
        """Return how many applied entries may be delivered now (Raft thread)."""
        room = self._free()
        if room == 0:
            # First the flag and then a second look: otherwise what the main loop takes in between would wake nobody.
            self._raft_is_starved = True
            room = self._free()
        return room

    def _free(self) -> int:
        return max(0, self._events_max - EVENTS_RESERVE - len(self._events))

    def deliver(self, event: StoreEvent) -> None:
        """Queue an event (Raft thread). Entries are delivered within `room`."""
        assert len(self._events) < self._events_max
        self._events.append(event)
        if not self._main_is_woken:
            self._main_is_woken = True
            self._wake_main()

    def take_events(self, at_most: int) -> list[StoreEvent]:
        """Take up to `at_most` events (main loop); the main side is woken again for the rest."""
        self._main_is_woken = False
        events = _take(self._events, min(at_most, len(self._events)))
        if self._events and not self._main_is_woken:
            self._main_is_woken = True
            self._wake_main()
        if self._raft_is_starved and not self._raft_is_woken:
            self._raft_is_starved = False
            self._raft_is_woken = True
            self._wake_raft()
        return events


T = TypeVar("T")


def _take(queue: deque[T], count: int) -> list[T]:
    return [queue.popleft() for _ in range(count)]


class MainSide:
    """The `Store` of the main loop."""

    BATCH = 64
    """Maximum number of events handled before other work of the main loop gets its turn."""

    def __init__(self, pair: QueuePair, *, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """`begin` opens the core and starts the Raft side (it may raise as `RaftCore.open` does); `end` stops it."""
        self._pair = pair
        self._begin = begin
        self._end = end
        self._deliver: Callable[[StoreEvent], None] | None = None

    def start(self, deliver: Callable[[StoreEvent], None]) -> None:
        """See `Store.start`."""
        assert self._deliver is None
        self._deliver = deliver
        self._begin()

    def propose(self, entry: bytes, term: Term | None = None) -> bool:
        """See `Store.propose`; an entry above MAX_ENTRY_BYTES is a programmer's error."""
        assert len(entry) <= MAX_ENTRY_BYTES, f"entry of {len(entry)} bytes"
        return self._pair.request(Propose(entry, term))

    def considered(self, index: int) -> None:
        """See `Store.considered`."""
        self._pair.request(Considered(index))

    def transfer_leadership(self, to: NodeName) -> None:
        """See `Store.transfer_leadership`."""
        self._pair.request(TransferLeadership(to))

    def retime(self, node_timeout_ms: int) -> None:
        """See `Store.retime`."""
        self._pair.request(Retime(node_timeout_ms))

    def follow_places(self, places: PeerPlaces) -> None:
        """See `Store.follow_places`."""
        self._pair.request(FollowPlaces(places))

    def stop(self) -> None:
        """See `Store.stop`."""
        self._deliver = None
        self._end()

    def pump(self) -> None:
        """Deliver the events; called on the main loop after a wake-up."""
        for event in self._pair.take_events(self.BATCH):
            if self._deliver is not None:
                self._deliver(event)


class RaftSide:
    """Drives the core with the requests."""

    def __init__(
        self,
        pair: QueuePair,
        core: RaftCore,
        *,
        alive: Callable[[], None] = lambda: None,
        main_silence_ms: Callable[[], int] = lambda: 0,
        retimed: Callable[[RaftTimers], None] = lambda _: None,
        follow_places: Callable[[PeerPlaces], None] = lambda _: None,
    ) -> None:
        """`alive` is called at every tick: the stamp that shows the pacer that this thread runs.

        `main_silence_ms` returns how long ago the main loop last showed that it runs. A leader whose main loop hangs
        would lead forever without being DC: it hands over instead. `retimed` gets new timers once the core has them;
        `follow_places` gets the peers' addresses for the transport.
        """
        self._pair = pair
        self._core = core
        self._retimed = retimed
        self._follow_places = follow_places
        self._alive = alive
        self._main_silence_ms = main_silence_ms

    def pump(self) -> None:
        """Take requests and tick; called after a wake-up, and at `RaftCore.due` at the latest."""
        for request in self._pair.take_requests():
            match request:
                case Propose(entry, term):
                    self._core.propose(entry, term)
                case Considered(index):
                    self._core.considered(index)
                case TransferLeadership(to):
                    self._core.transfer_leadership(to)
                case Retime(node_timeout_ms):
                    self._retime(RaftTimers.derive(node_timeout_ms))
                case FollowPlaces(places):
                    self._follow_places(places)
        self._core.tick()
        if self._main_silence_ms() > self._core.main_loop_timeout_ms:
            self._core.hand_over()
        self._alive()

    def _retime(self, timers: RaftTimers) -> None:
        self._core.retime(timers)
        self._retimed(timers)
