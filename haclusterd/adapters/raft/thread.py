"""The Raft thread: a core with its queues, its files, clock, log, library and links, on a loop of its own.

Invariant: the core is called on this thread only; the main loop meets it in `raft/queues.py`, and nowhere else.
"""

import asyncio
import logging
import random
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.adapters.machine.ready_threads import ready_pool
from haclusterd.adapters.machine.real_time import LOOP_PRIORITY, run_first
from haclusterd.adapters.network.certificates import NODE_CERTIFICATE, NODE_KEY, tls_context
from haclusterd.adapters.network.peer_messages import RaftPeerMessages
from haclusterd.adapters.processes.collector import keep_what_is_built
from haclusterd.adapters.raft.library import supported_library
from haclusterd.adapters.raft.transport import Links, RaftTransport
from haclusterd.model.addresses import Address
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.instants import Instant
from haclusterd.ports.store import (
    PeerPlaces,
    StateMachine,
    StoreBusyError,
    StoreDamagedError,
    StoreEvent,
    StoreRefusedError,
    StoreUnwritableError,
)
from haclusterd.raft.core import RaftCore
from haclusterd.raft.queues import MainSide, QueuePair, RaftSide
from haclusterd.raft.settings import RaftSettings

EXIT_CODE_IO_ERROR = 75
"""EX_TEMPFAIL: the exit code when disk and memory no longer agree (the injected `fail` uses it)."""
STOP_TIMEOUT_S = 5.0
ROOM_AT_START_BYTES = 16 * 1024 * 1024
"""With less free space a voter does not start: it would join, promise, and end at its first write, again and again."""

_log = logging.getLogger(__name__)


class RaftThread:
    """The real `Store`: a core on its own thread and loop, with TLS links and files in a directory."""

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
        peer_messages: RaftPeerMessages | None = None,
        heartbeat_sent: Callable[[int], None] = lambda _: None,
        objection: Callable[[NodeName, str], str] = lambda _peer, _boot_id: "",
        kept_out: Callable[[NodeName, str], None] = lambda _peer, _why: None,
    ) -> None:
        """Store the arguments; nothing is opened before `start`.

        `addresses` are those of every member, this node included, until `follow_places` changes them. `call_main` makes
        a call on the main loop soon, from any thread (`loop.call_soon_threadsafe`). `fail` must end the process with
        EXIT_CODE_IO_ERROR and not return; it is called on the Raft thread, as is `alive`. `heartbeat_sent` is called
        there while this node leads, with the milliseconds between two heartbeats. `objection` returns there why a boot
        of a peer must be refused (empty: it may connect), and `kept_out` is called there when a peer refuses this boot.
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
        self._peer_messages = peer_messages or RaftPeerMessages()
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
        """When this thread must stamp, and check its links, at the latest."""

    # Called on the main loop.

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

    # On the Raft thread.

    def _run(self, opened: "Future[None]") -> None:
        refusal: Exception = RuntimeError("the Raft thread ended before it began")
        run_first(LOOP_PRIORITY)
        try:
            with asyncio.Runner(loop_factory=self._loop_factory) as runner:
                runner.run(self._live(opened))
        except (StoreDamagedError, StoreRefusedError, StoreUnwritableError) as error:
            refusal = error
        finally:
            # Only now everything is released: a refused start may be tried again.
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
            raise StoreUnwritableError(str(error)) from error
        try:
            transport = self._make_transport()
        except OSError as error:
            raise StoreBusyError(str(error)) from error
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
            self._peer_messages.attach(self._loop.call_soon_threadsafe, transport)
        except OSError as error:
            places = ", ".join(f"{host}:{port}" for host, port in self._addresses[self._settings.node])
            raise StoreBusyError(f"{places}, {self._directory}: {error}") from error
        self._pump()

    def _connected(self, peer: NodeName) -> None:
        self._core.peer_connected(peer)
        self._peer_messages.connected(peer)

    def _disconnected(self, peer: NodeName) -> None:
        self._peer_messages.disconnected(peer)
        self._core.peer_disconnected(peer)

    async def _close(self, transport: RaftTransport) -> None:
        self._peer_messages.detach()
        if self._timer is not None:
            self._timer.cancel()
        self._core.stop()
        await transport.stop()
        await self._loop.shutdown_default_executor()

    def _follow_places(self, transport: RaftTransport, places: PeerPlaces) -> None:
        """Use new addresses of peers; if this node has got another certificate meanwhile, use that."""
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
            fraction=random.Random(secrets.randbits(64)).random,
            worker=self,
            make_library=supported_library(),
            send=transport.send,
            deliver=self._pair.deliver,
            room=self._pair.room,
            fail=self._fail,
            complain=_log.error,
        )

    def run(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        """Run blocking work on a disk thread (`raft.worker.Worker`)."""
        future = self._loop.run_in_executor(None, work)
        future.add_done_callback(lambda finished: self._done(done, finished.result()))

    def _done(self, done: Callable[[object], None], result: object) -> None:
        done(result)
        self._arm()

    def _receive(self, peer: NodeName, frame: bytes) -> bool:
        if self._peer_messages.take(peer, frame):
            return True
        is_message = self._core.receive(peer, frame)
        if self._is_beat_near():
            self._pump()
        else:
            self._arm()
        return is_message

    def _is_beat_near(self) -> bool:
        """Whether periodic work may be done now, a little early, since this thread is awake."""
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
        """Make sure that `_pump` runs when something is due, and once per ping; an earlier timer stays.

        On a follower every message postpones the election; leaving the timer alone then costs nothing.
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
        """End the process for a programmer's error on this thread; errors of the outside world are only logged."""
        error = context.get("exception")
        _log.error("%s", context.get("message"), exc_info=error)
        if not isinstance(error, OSError):
            self._fail(f"{context.get('message')}: {error!r}")


def _boot_clock() -> Instant:
    return Instant(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)
