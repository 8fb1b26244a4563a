"""Where the Raft thread and the main loop meet: two bounded queues of immutable values, and nothing else.

`QueuePair` is the meeting point. `MainSide` is the `Store` that the main loop holds, `RaftSide` drives a `RaftCore`
with what came over. Neither knows threads: both wake-ups are injected, so the simulator runs these very classes with a
seeded interleaving, and `RaftThread` runs them with a real thread.

Invariant: each deque is appended to by one side and popped by the other (each operation is atomic), and no other value
is shared. Never call into the core from the main loop, or into the main loop from the Raft thread.
"""

import asyncio
import logging
import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.adapters.machine.real_time import LOOP_PRIORITY, run_first
from haclusterd.adapters.network.certificates import NODE_CERTIFICATE, NODE_KEY, tls_context
from haclusterd.adapters.network.peer_mail import RaftMail
from haclusterd.adapters.processes.collector import keep_what_is_built
from haclusterd.adapters.processes.ready_threads import ready_pool
from haclusterd.adapters.raft.core import RaftCore
from haclusterd.adapters.raft.settings import MAX_ENTRY_BYTES, RaftSettings, RaftTimers
from haclusterd.adapters.raft.transport import Address, Links, RaftTransport
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.instants import Instant
from haclusterd.ports.store import (
    PeerPlaces,
    StateMachine,
    StoreBusy,
    StoreDamaged,
    StoreEvent,
    StoreRefused,
    StoreUnwritable,
)

EXIT_CODE_IO_ERROR = 75
"""EX_TEMPFAIL: what the process ends with when disk and memory no longer agree (the injected `fail` does it)."""
STOP_TIMEOUT_S = 5.0
ROOM_AT_START_BYTES = 16 * 1024 * 1024
"""With less a voter does not begin: it would join, promise, and end at its first write, again and again."""

_log = logging.getLogger(__name__)

EVENTS_RESERVE = 16
"""Slots that `room` does not offer: for a restored snapshot, and changes of leader and of links."""


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask for an entry, with `term` only in that one."""

    entry: bytes
    term: Term | None = None


@dataclass(frozen=True, slots=True)
class Considered:
    """Tell what was looked at."""

    index: int


@dataclass(frozen=True, slots=True)
class TransferLeadership:
    """Ask for a hand-over."""

    to: NodeName


@dataclass(frozen=True, slots=True)
class Retime:
    """Take other timers."""

    node_timeout_ms: int


@dataclass(frozen=True, slots=True)
class FollowPlaces:
    """Reach peers there."""

    places: PeerPlaces


Request = Propose | Considered | TransferLeadership | Retime | FollowPlaces


class QueuePair:
    """Requests from the main loop, events from the Raft thread.

    `wake_raft` and `wake_main` are called when there is something new for that side, at most once until it has taken;
    each is called on the opposite side and must not run the other side inside the call.
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
        """Pass a request on (main loop); False when the queue is full. What is told once has room."""
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
            # The flag first and then a second look: what the main loop takes in between would wake nobody.
            self._raft_is_starved = True
            room = self._free()
        return room

    def _free(self) -> int:
        return max(0, self._events_max - EVENTS_RESERVE - len(self._events))

    def deliver(self, event: StoreEvent) -> None:
        """Pass an event on (Raft thread). Entries are delivered within `room`."""
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
    """The `Store` as the main loop holds it."""

    BATCH = 64
    """Events handled before other work of the main loop gets its turn."""

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
        """Deliver what came; called on the main loop after a wake-up."""
        for event in self._pair.take_events(self.BATCH):
            if self._deliver is not None:
                self._deliver(event)


class RaftSide:
    """The core, fed with requests."""

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
        """`alive` is called at every tick: the stamp that tells the pacer that this thread lives.

        `main_silence_ms` tells how long ago the main loop showed life. A leader whose main loop hangs would lead for
        ever, and nobody would be DC: it hands over instead. `retimed` is told new timers, once the core has them;
        `follow_places` where the transport reaches its peers.
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
        if self._main_silence_ms() > self._core.patience_ms:
            self._core.hand_over()
        self._alive()

    def _retime(self, timers: RaftTimers) -> None:
        self._core.retime(timers)
        self._retimed(timers)


class RaftThread:
    """The real `Store`: a core in its own thread and loop, with TLS links and files in a directory."""

    def __init__(
        self,
        *,
        settings: RaftSettings,
        directory: Path,
        credentials: Path,
        addresses: Mapping[NodeName, tuple[Address, ...]],
        machine: StateMachine,
        call_main: Callable[[Callable[[], None]], None],
        fail: Callable[[str], None],
        alive: Callable[[], None] = lambda: None,
        main_silence_ms: Callable[[], int] = lambda: 0,
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
        mail: RaftMail | None = None,
        heartbeat_sent: Callable[[int], None] = lambda _: None,
        objection: Callable[[NodeName, str], str] = lambda _peer, _boot_id: "",
        kept_out: Callable[[NodeName, str], None] = lambda _peer, _why: None,
    ) -> None:
        """Keep what is given; nothing is opened before `start`.

        `addresses` are those of every member, this node included, until `follow_places` says more. `call_main`
        makes a call on the main loop soon, from any thread (`loop.call_soon_threadsafe`). `fail` must end the
        process with EXIT_CODE_IO_ERROR and not return; it is called on the Raft thread, as is `alive`.
        `heartbeat_sent` is told there, while this node leads, how many milliseconds after the one before each was.
        `objection` is asked there why a boot of a peer must not be talked to (empty: it may), and `kept_out` told when
        a peer objects to this one.
        """
        self._settings = settings
        self._directory = directory
        self._credentials = credentials
        self._certificate = b""
        self._addresses = dict(addresses)
        self._machine = machine
        self._fail = fail
        self._alive = alive
        self._main_silence_ms = main_silence_ms
        self._loop_factory = loop_factory
        self._mail = mail or RaftMail()
        self._pair = QueuePair(wake_raft=self._wake_raft, wake_main=lambda: call_main(self._front.pump))
        self._front = MainSide(self._pair, begin=self._begin, end=self._end)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event
        self._core: RaftCore
        self._transport: RaftTransport
        self._side: RaftSide
        self._timer: asyncio.TimerHandle | None = None
        self._heartbeat_sent = heartbeat_sent
        self._objection = objection
        self._kept_out = kept_out
        self._heartbeat_at: Instant | None = None
        self._beat_at_s = 0.0
        """When this thread has to show life, and to look after its links, at the latest."""

    # What the main loop calls.

    def start(self, deliver: Callable[[StoreEvent], None]) -> None:
        """See `Store.start`; returns when the data is loaded and the node listens."""
        self._front.start(deliver)

    def propose(self, entry: bytes, term: Term | None = None) -> bool:
        """See `Store.propose`."""
        return self._front.propose(entry, term)

    def considered(self, index: int) -> None:
        """See `Store.considered`."""
        self._front.considered(index)

    def transfer_leadership(self, to: NodeName) -> None:
        """See `Store.transfer_leadership`."""
        self._front.transfer_leadership(to)

    def retime(self, node_timeout_ms: int) -> None:
        """See `Store.retime`."""
        self._front.retime(node_timeout_ms)

    def follow_places(self, places: PeerPlaces) -> None:
        """See `Store.follow_places`."""
        self._front.follow_places(places)

    def stop(self) -> None:
        """See `Store.stop`."""
        self._front.stop()

    def _begin(self) -> None:
        opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(opened,), name="raft", daemon=True)
        self._thread.start()
        opened.result()

    def _end(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._call_raft(self._stopping.set)
            thread.join(STOP_TIMEOUT_S)

    def _wake_raft(self) -> None:
        if self._thread is not None:
            self._call_raft(self._pump)

    def _call_raft(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            _log.info("the Raft thread has ended")

    # What runs on the Raft thread.

    def _run(self, opened: "Future[None]") -> None:
        refusal: Exception = RuntimeError("the Raft thread ended before it began")
        run_first(LOOP_PRIORITY)
        try:
            with asyncio.Runner(loop_factory=self._loop_factory) as runner:
                runner.run(self._live(opened))
        except (StoreDamaged, StoreRefused, StoreUnwritable) as error:
            refusal = error
        finally:
            # Only now everything is released: who is refused may try again.
            if not opened.done():
                opened.set_exception(refusal)

    async def _live(self, opened: "Future[None]") -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._on_loop_error)
        self._loop.set_default_executor(ready_pool(2, "raft-disk"))
        self._stopping = asyncio.Event()
        try:
            files = FilesDirectory(self._directory)
            files.require_room(ROOM_AT_START_BYTES)
        except OSError as error:
            raise StoreUnwritable(str(error)) from error
        try:
            transport = self._make_transport()
        except OSError as error:
            raise StoreBusy(str(error)) from error
        try:
            await self._open(files, transport)
            opened.set_result(None)
            await self._stopping.wait()
            await self._close(transport)
        finally:
            files.close()

    async def _open(self, files: FilesDirectory, transport: RaftTransport) -> None:
        self._core = core = self._make_core(files, transport)
        self._transport = transport
        self._side = RaftSide(
            self._pair,
            core,
            alive=self._alive,
            main_silence_ms=self._main_silence_ms,
            retimed=partial(setattr, transport, "timers"),
            follow_places=partial(self._follow_places, transport),
        )
        try:
            core.open()
            await transport.start(Links(self._connected, self._disconnected, self._receive))
            self._mail.attach(self._loop, transport)
        except OSError as error:
            places = ", ".join(f"{host}:{port}" for host, port in self._addresses[self._settings.node])
            raise StoreBusy(f"{places}, {self._directory}: {error}") from error
        self._pump()

    def _connected(self, peer: NodeName) -> None:
        self._core.peer_connected(peer)
        self._mail.connected(peer)

    def _disconnected(self, peer: NodeName) -> None:
        self._mail.disconnected(peer)
        self._core.peer_disconnected(peer)

    async def _close(self, transport: RaftTransport) -> None:
        self._mail.detach()
        if self._timer is not None:
            self._timer.cancel()
        self._core.stop()
        await transport.stop()
        await self._loop.shutdown_default_executor()

    def _follow_places(self, transport: RaftTransport, places: PeerPlaces) -> None:
        """Reach peers there; when this node was given another certificate meanwhile, show that one."""
        certificate = (self._credentials / NODE_CERTIFICATE).read_bytes()
        if certificate != self._certificate:
            self._certificate = certificate
            for context in (transport.server_context, transport.client_context):
                context.load_cert_chain(self._credentials / NODE_CERTIFICATE, self._credentials / NODE_KEY)
            transport.renew()
        transport.follow(places)

    def _make_transport(self) -> RaftTransport:
        self._certificate = (self._credentials / NODE_CERTIFICATE).read_bytes()
        return RaftTransport(
            node=self._settings.node,
            cluster=self._settings.cluster,
            places=PeerPlaces(0, self._addresses),
            server_context=tls_context(self._credentials, is_server=True),
            client_context=tls_context(self._credentials, is_server=False),
            timers=self._settings.timers,
            boot_id=self._settings.boot_id,
            objection=self._objection,
            kept_out=self._kept_out,
        )

    def _make_core(self, files: FilesDirectory, transport: RaftTransport) -> RaftCore:
        return RaftCore(
            settings=self._settings,
            files=files,
            machine=self._machine,
            clock=_boot_clock,
            chance=random.Random(secrets.randbits(64)),
            worker=self,
            send=transport.send,
            deliver=self._pair.deliver,
            room=self._pair.room,
            fail=self._fail,
        )

    def run(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        """Run blocking work on a disk thread (`raft_worker.Worker`)."""
        future = self._loop.run_in_executor(None, work)
        future.add_done_callback(lambda finished: self._done(done, finished.result()))

    def _done(self, done: Callable[[object], None], result: object) -> None:
        done(result)
        self._arm()

    def _receive(self, peer: NodeName, frame: bytes) -> bool:
        if self._mail.take(peer, frame):
            return True
        is_message = self._core.receive(peer, frame)
        if self._is_beat_near():
            self._pump()
        else:
            self._arm()
        return is_message

    def _is_beat_near(self) -> bool:
        """Whether what is to be done once in a while may be done now, since this thread is awake."""
        return self._loop.time() >= self._beat_at_s - self._core.timers.append_ms / 1000

    def _pump(self) -> None:
        self._side.pump()
        if self._core.is_at_long_work:
            keep_what_is_built()
        if self._is_beat_near():
            self._beat_at_s = self._loop.time() + self._core.timers.ping_ms / 1000
            self._transport.beat()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._arm()

    def _arm(self) -> None:
        """See that `_pump` comes when something is due, and once per ping; an earlier timer stays.

        On a follower every message moves the election on, and a timer that it does not move costs nothing.
        """
        self._note_heartbeat()
        now_s = self._loop.time()
        due_s = now_s + max(self._core.due() - _boot_clock(), 1) / 1000
        at = min(due_s, self._beat_at_s)
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._pump)

    def _note_heartbeat(self) -> None:
        before, self._heartbeat_at = self._heartbeat_at, self._core.heartbeat_at
        if before is not None and self._heartbeat_at is not None:
            self._heartbeat_sent(self._heartbeat_at - before)

    def _on_loop_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A programmer's error on this thread ends the process; the world's errors are logged."""
        error = context.get("exception")
        _log.error("%s", context.get("message"), exc_info=error)
        if not isinstance(error, OSError):
            self._fail(f"{context.get('message')}: {error!r}")


def _boot_clock() -> Instant:
    return Instant(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)
