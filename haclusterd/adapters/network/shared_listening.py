"""Listening sockets for arbitrary clients, which share a bounded number of connections.

asyncio's own server accepts as many connections at a time as its backlog has, without asking: a flood of them takes
every descriptor of the process, and later clients wait until they repeat their packets, after 1, 3, 7, 15 and 31 s.

Invariant: there are never more than CONNECTIONS_MAX connections, and CONNECTIONS_OF_SOURCE_MAX of one source, with or
without completed TLS. When there are too many, the source with the most loses the one that has waited for its client
longest; a new one is refused only if all are being served. A few are accepted in each turn of the loop, so that
existing connections are served meanwhile. A connection without data is only a socket and its place: it costs little to
hold, and to close.
"""

import asyncio
import logging
import math
import socket
import ssl
from asyncio import sslproto
from collections import Counter
from contextlib import suppress

from haclusterd.adapters.network.refusals import source_of
from haclusterd.adapters.network.tls_listening import forget_frames
from haclusterd.ports.listening import Make

CONNECTIONS_MAX = 1024
CONNECTIONS_OF_SOURCE_MAX = 768
"""Of one address, or one IPv6 network of 64 bits: the rest is for the others."""
BACKLOG = 4096
"""Connections that the kernel holds until they are accepted; not more than `net.core.somaxconn`."""
ACCEPTS_AT_ONCE = 64
ACCEPT_PAUSE_S = 1.0
"""Pause after the machine had no descriptor or memory for a connection."""
IDLE_S = 15.0
"""Time limit of a connection without a request."""
SWEEP_EVERY_S = 5.0
TLS_TIMEOUT_S = 10.0
TLS_BUFFER_BYTES = 64 * 1024
"""Bytes that asyncio reads at a time, and holds for each connection; its default is 256 KiB."""
_log = logging.getLogger(__name__)


class _Place:
    """One connection's place."""

    __slots__ = ("_places", "connection", "is_silent", "source", "transport")

    def __init__(self, places: "Places", connection: socket.socket, source: str) -> None:
        self._places = places
        self.connection = connection
        self.source = source
        self.transport: asyncio.Transport | None = None
        self.is_silent = True
        """Whether nothing has arrived yet."""

    def begins(self) -> None:
        self._places.waiting.pop(self, None)

    def gives_way(self) -> None:
        self._places.wait(self, math.inf)

    def ends(self) -> None:
        self._places.wait(self, self._places.now() + IDLE_S)

    def leave(self) -> None:
        self._places.leave(self)

    def hang_up(self) -> None:
        """End the connection, whatever it is doing."""
        if self.transport is not None:
            self.transport.abort()
            return
        if self.is_silent:
            self._places.loop.remove_reader(self.connection)
            self.connection.close()
            return
        with suppress(OSError):  # The other end was faster.
            self.connection.shutdown(socket.SHUT_RDWR)


class Places:
    """All connections, by source."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time
        self.waiting: dict[_Place, float] = {}
        """Connections that wait for their client, and until when; the first one began to wait first."""
        self._held: set[_Place] = set()
        self._of_source: Counter[str] = Counter()

    def enter(self, connection: socket.socket, host: str) -> _Place | None:
        """Return a place for a new connection; None: all connections that could make room are being served."""
        source = source_of(host)
        if self._of_source[source] >= CONNECTIONS_OF_SOURCE_MAX:
            gone = self._longest(source)
        elif len(self._held) >= CONNECTIONS_MAX:
            ((largest, _),) = self._of_source.most_common(1)
            gone = self._longest(largest) or next(iter(self.waiting), None)
        else:
            return self._entered(connection, source)
        if gone is None:
            return None
        gone.hang_up()
        self.leave(gone)
        return self._entered(connection, source)

    def _entered(self, connection: socket.socket, source: str) -> _Place:
        place = _Place(self, connection, source)
        self._held.add(place)
        self._of_source[source] += 1
        place.ends()
        return place

    def _longest(self, source: str) -> _Place | None:
        return next((each for each in self.waiting if each.source == source), None)

    def wait(self, place: _Place, until: float) -> None:
        """Note that a connection waits for its client from now on."""
        if place in self._held:
            self.waiting.pop(place, None)
            self.waiting[place] = until

    def leave(self, place: _Place) -> None:
        """Note that a connection has ended; may be called again."""
        self.waiting.pop(place, None)
        if place in self._held:
            self._held.remove(place)
            self._of_source[place.source] -= 1
            if not self._of_source[place.source]:
                del self._of_source[place.source]

    def end_all(self) -> None:
        """End every connection, even those being served."""
        for place in tuple(self._held):
            place.hang_up()
            self.leave(place)

    def end_silent(self) -> None:
        """End the connections on which nothing has arrived."""
        for place in [each for each in self.waiting if each.is_silent]:
            place.hang_up()
            self.leave(place)

    def sweep(self) -> None:
        """End the connections that have waited too long."""
        now = self.now()
        for place in [each for each, until in self.waiting.items() if until < now]:
            place.hang_up()
            self.leave(place)


class SharedListeners:
    """Listening sockets whose connections share the places."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        """`context`: the TLS context of connections; None: without TLS."""
        if context is not None:
            sslproto.SSLProtocol.max_size = TLS_BUFFER_BYTES
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._places = Places()
        self._listening: list[socket.socket] = []
        self._beginning: set[asyncio.Task[None]] = set()
        self._sweeper = self._loop.create_task(self._sweep())

    async def open(self, host: str, port: int, make: Make) -> None:
        """Listen on every address of a host. Raises OSError when one is not available."""
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            listening = socket.create_server(address, family=family, backlog=BACKLOG)
            listening.settimeout(0)
            self._listening.append(listening)
            self._loop.add_reader(listening, self._accept, listening, make)

    def take(self, context: ssl.SSLContext | None) -> None:
        """Use another TLS context from now on, and end the connections with the previous one.

        With or without TLS stays as it was: a listener without TLS is on loopback only.
        """
        if self._context is not None and context is not None:
            self._context = context
            self._places.end_all()

    def close(self) -> None:
        """Stop listening; existing connections continue, those in the handshake do not."""
        self._sweeper.cancel()
        for listening in self._listening:
            self._loop.remove_reader(listening)
            listening.close()
        self._listening.clear()
        for task in self._beginning:
            task.cancel()
        self._places.end_silent()

    def _accept(self, listening: socket.socket, make: Make) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                connection, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.warning("no connection accepted for %g s: %s", ACCEPT_PAUSE_S, error.strerror)
                self._loop.remove_reader(listening)
                self._loop.call_later(ACCEPT_PAUSE_S, self._go_on, listening, make)
                return
            place = self._places.enter(connection, str(address[0]))
            if place is None:
                connection.close()
                continue
            self._loop.add_reader(connection, self._hear, place, make)

    def _hear(self, place: _Place, make: Make) -> None:
        """Handle the first data of a connection, or its end."""
        self._loop.remove_reader(place.connection)
        place.is_silent = False
        task = self._loop.create_task(self._begin(place, make))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    def _go_on(self, listening: socket.socket, make: Make) -> None:
        if listening in self._listening:
            self._loop.add_reader(listening, self._accept, listening, make)

    async def _begin(self, place: _Place, make: Make) -> None:
        """Give the connection to its protocol, after the TLS handshake if there is one."""
        connection = place.connection
        try:
            connection.settimeout(0)
            # asyncio does this for the connections that it accepted itself (adapters/network/tls_listening.py).
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            timeout_s = None if self._context is None else TLS_TIMEOUT_S
            protocol = make(place)
            assert isinstance(protocol, asyncio.Protocol)
            place.transport, _ = await self._loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=self._context, ssl_handshake_timeout=timeout_s
            )
        except OSError as error:
            forget_frames(error)
            connection.close()
            place.leave()
        except asyncio.CancelledError:
            connection.close()
            place.leave()
            raise

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            self._places.sweep()
