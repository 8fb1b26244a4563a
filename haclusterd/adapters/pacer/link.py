"""The daemon's end of its pacer: the socket on the main loop, the page from any thread.

Invariant: a withdrawal by the Raft thread is in the page of the running pacer before the call returns. If there is no
page yet, it is written into it before that pacer learns that the withdrawn set is complete; with a new page no node is
echoed at first. The page of an earlier daemon is revoked in `start`, before anything else. The pacer gets numeric
addresses only: names are resolved here, again and again, and changes are passed on.

The lock is held only while a few words are written, never while anything waits.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from haclusterd.adapters.network.name_resolution import NameResolver, is_numeric
from haclusterd.adapters.pacer.page_file import SOCKET_NAME, MappedPage, open_page
from haclusterd.model.addresses import Address
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import NO_LEASE, PacerReport, PacerSettings
from haclusterd.model.records import replace
from haclusterd.ports.clock import Clock
from haclusterd.protocol import pacer_socket
from haclusterd.wire.framing import FrameBuffer, FrameTooLongError

RETRY_MS = 100
RECEIVE_SIZE = 65536
NAMES_EVERY_S = 10.0
"""Pause between two lookups of the addresses that are names."""
ANY_HOST = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}


class PacerLink:
    """`Pacer` over the runtime directory of a `haclusterd-pacer`."""

    def __init__(self, directory: Path, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._directory = directory
        self._clock = clock
        self._loop = loop
        self._settings: PacerSettings | None = None
        self._changed: Callable[[PacerReport], None] = _nobody
        self._report: PacerReport | None = None
        self._has_answered = False
        """Whether the connected pacer has sent a report."""
        self._connection: socket.socket | None = None
        self._frames = FrameBuffer(pacer_socket.MAXIMUM_SIZE)
        self._retry: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self._lock = threading.Lock()
        self._mapped: MappedPage | None = None
        self._withdrawn: dict[NodeName, set[Incarnation]] = {}
        self._is_known = False
        self._is_empty: bool | None = None
        self._is_condemned = False
        self._is_follower = False
        self._links: tuple[NodeName, ...] = ()
        self._names = NameResolver()
        self._looking_up: asyncio.Task[None] | None = None
        self._handed_over: PacerSettings | None = None

    def start(self, settings: PacerSettings, changed: Callable[[PacerReport], None]) -> None:
        """Revoke the page of an earlier daemon, then connect as soon as there is a pacer."""
        assert self._settings is None
        self._settings = settings
        self._changed = changed
        self._map()
        self._connect()
        self._looking_up = self._loop.create_task(self._look_up_names())

    def configure(self, settings: PacerSettings) -> None:
        """Send changed settings. A new incarnation of this process inherits the withdrawn set of the previous one."""
        with self._lock:
            self._settings = settings
            if self._mapped is not None and self._is_known:
                self._mapped.page.say_known(settings.incarnation.token)
        self._send(settings)

    def report(self) -> PacerReport | None:
        """Return the newest report, even if the loop was blocked and has not read it yet.

        After a stall of this process alone, a report from before it would make every node seem silent.
        """
        if self._drain():
            self._loop.call_soon(self._tell)
        return self._report

    def known_report(self) -> PacerReport | None:
        """Return the newest report that the main loop has read; any thread may ask."""
        return self._report

    def is_answering(self) -> bool:
        """Return whether the connected pacer has sent a report."""
        return self._has_answered

    def lease_until(self) -> Instant:
        """Return until when this incarnation holds the lease."""
        if self._mapped is None or self._settings is None:
            return NO_LEASE
        return self._mapped.page.lease_until(self._settings.incarnation.token)

    def stamp_main(self) -> None:
        """Stamp for the main loop."""
        if self._mapped is not None:
            self._mapped.page.stamp_main(self._clock.now())

    def stamp_raft(self) -> None:
        """Stamp for the Raft thread."""
        if self._mapped is not None:
            self._mapped.page.stamp_raft(self._clock.now())

    def main_silence_ms(self) -> int:
        """Return for how many ms the main loop has not stamped; 0 while it never did."""
        stamped_at = self._mapped.page.main_stamped_at() if self._mapped is not None else Instant(0)
        return self._clock.now() - stamped_at if stamped_at else 0

    def set_empty(self, *, is_empty: bool) -> None:
        """Write the flag of `Pacer.set_empty`."""
        with self._lock:
            self._is_empty = is_empty
            if self._mapped is not None:
                self._mapped.page.set_empty(is_empty=is_empty)

    def set_condemned(self, *, is_condemned: bool) -> None:
        """Write the flag of `Pacer.set_condemned`."""
        with self._lock:
            self._is_condemned = is_condemned
            if self._mapped is not None:
                self._mapped.page.set_condemned(is_condemned=is_condemned)

    def set_follower(self, *, is_follower: bool) -> None:
        """Write the flag of `Pacer.set_follower`."""
        with self._lock:
            self._is_follower = is_follower
            if self._mapped is not None:
                self._mapped.page.set_follower(is_follower=is_follower)

    def set_links(self, nodes: tuple[NodeName, ...]) -> None:
        """Write the nodes with which there are sessions."""
        with self._lock:
            self._links = nodes
            if self._mapped is not None:
                self._mapped.page.set_links(nodes)

    def withdraw(self, node: NodeName, incarnation: Incarnation) -> None:
        """Add the node to the withdrawn set."""
        with self._lock:
            self._withdrawn.setdefault(node, set()).add(incarnation)
            if self._mapped is not None:
                self._mapped.page.withdraw(node)

    def reinstate(self, node: NodeName, incarnation: Incarnation) -> None:
        """Remove the node from the withdrawn set if this was its last withdrawn incarnation."""
        with self._lock:
            left = self._withdrawn.get(node, set()) - {incarnation}
            if left:
                self._withdrawn[node] = left
                return
            self._withdrawn.pop(node, None)
            if self._mapped is not None:
                self._mapped.page.reinstate(node)

    def withdrawals_known(self) -> None:
        """Mark the withdrawn set as complete."""
        with self._lock:
            self._is_known = True
            if self._mapped is not None and self._settings is not None:
                self._mapped.page.say_known(self._settings.incarnation.token)

    def stop(self) -> None:
        """Disconnect."""
        self._is_stopped = True
        if self._looking_up is not None:
            self._looking_up.cancel()
        self._names.close()
        if self._retry is not None:
            self._retry.cancel()
        self._disconnect()

    # The page

    def _map(self) -> None:
        """Map the page of the present pacer, if it is not mapped, and write this daemon's state into it."""
        assert self._settings is not None
        with self._lock:
            if self._mapped is not None and self._mapped.is_in_place():
                return
            mapped = open_page(self._directory)
            if mapped is None:
                return
            mapped.page.begin_brain()
            for node in self._withdrawn:
                mapped.page.withdraw(node)
            if self._is_known:
                mapped.page.say_known(self._settings.incarnation.token)
            if self._is_empty is not None:
                mapped.page.set_empty(is_empty=self._is_empty)
            mapped.page.set_condemned(is_condemned=self._is_condemned)
            mapped.page.set_follower(is_follower=self._is_follower)
            mapped.page.set_links(self._links)
            self._mapped = mapped

    # The socket

    def _connect(self) -> None:
        """Connect and send the settings; if nothing listens, try again soon."""
        assert self._settings is not None
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            connection.connect(str(self._directory / SOCKET_NAME))
        except OSError:
            connection.close()
            self._retry = self._loop.call_later(RETRY_MS / 1000, self._connect)
            return
        self._connection = connection
        self._frames = FrameBuffer(pacer_socket.MAXIMUM_SIZE)
        self._loop.add_reader(connection, self._readable)
        self._map()
        self._send(self._settings)

    def _disconnect(self) -> None:
        self._has_answered = False
        if self._connection is not None:
            self._loop.remove_reader(self._connection)
            self._connection.close()
            self._connection = None

    def _reconnect(self) -> None:
        self._disconnect()
        self._retry = self._loop.call_later(RETRY_MS / 1000, self._connect)

    def _send(self, settings: PacerSettings) -> None:
        """Send the complete settings, or connect again: a pacer that does not read does not have them."""
        if self._connection is None:
            return
        self._handed_over = self._numeric(settings)
        frame = pacer_socket.encode(self._handed_over)
        try:
            is_sent = self._connection.send(frame, socket.MSG_NOSIGNAL) == len(frame)
        except OSError:
            is_sent = False
        if not is_sent:
            self._reconnect()

    def _numeric(self, settings: PacerSettings) -> PacerSettings:
        """Return the settings with names replaced by known addresses; the number of links stays the same."""
        return replace(
            settings,
            listen=tuple(map(self._listening, settings.listen)),
            peers=tuple(
                replace(peer, addresses=tuple(self._names.known(address)[0] for address in peer.addresses))
                for peer in settings.peers
            ),
        )

    def _listening(self, address: Address) -> Address:
        """Return the listen address; the local resolution of an own name does not show how others reach it."""
        known = self._names.known(address)[0]
        if is_numeric(address[0]) or not is_numeric(known[0]):
            return address
        return ANY_HOST[socket.AF_INET6 if ":" in known[0] else socket.AF_INET], address[1]

    async def _look_up_names(self) -> None:
        while True:
            settings = self._settings
            assert settings is not None
            await self._names.resolve_all((*settings.listen, *(a for peer in settings.peers for a in peer.addresses)))
            assert self._settings is not None
            if self._handed_over is not None and self._numeric(self._settings) != self._handed_over:
                self._send(self._settings)
            await asyncio.sleep(NAMES_EVERY_S)

    def _readable(self) -> None:
        if self._drain():
            self._tell()

    def _tell(self) -> None:
        if self._report is not None and not self._is_stopped:
            self._changed(self._report)

    def _drain(self) -> bool:
        """Read all that has arrived; return whether there is a newer report."""
        is_newer = False
        while self._connection is not None:
            try:
                received = self._connection.recv(RECEIVE_SIZE)
                for payload in self._frames.feed(received):
                    is_newer |= self._take(pacer_socket.decode(payload))
            except BlockingIOError:
                break
            except (OSError, FrameTooLongError):
                received = b""
            if not received:
                self._reconnect()
        return is_newer

    def _take(self, message: pacer_socket.Message) -> bool:
        match message:
            case PacerReport():
                self._report = message
                self._has_answered = True
            case pacer_socket.Refusal(reason):
                old = self._report or PacerReport(reported_at=self._clock.now(), stalled_at=None, nodes=())
                self._report = replace(old, errors=(f"daemon and pacer do not understand each other: {reason}",))
            case PacerSettings():
                return False
        return True


def _nobody(report: PacerReport) -> None:
    """Drop reports until `start` sets a receiver."""
