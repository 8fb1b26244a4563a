"""Listening sockets for clients from anywhere, who share a bounded number of connections.

asyncio's own server accepts as many connections at a time as its backlog has, and asks nobody before: a flood of them
takes every descriptor of the process, and who comes behind it waits until the kernel offers their packet again,
which it does after 1, 3, 7, 15 and 31 s.

Invariant: there are never more than CONNECTIONS_MAX connections, and CONNECTIONS_OF_SOURCE_MAX of one source, whether
they are secured already or not. Where they are too many, the source with the most loses the one that has waited for its
client longest; the one that comes is refused only where something is being done on all of them. A few are accepted in
each turn of the loop, so that those who are in are served while others come. A connection on which nothing has come is
a socket and its place: it costs little to hold, and to close.
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
"""Of one address, or one IPv6 network of 64 bits: the others have the rest to themselves."""
BACKLOG = 4096
"""Connections that the kernel holds until they are accepted; not more than `net.core.somaxconn`."""
ACCEPTS_AT_ONCE = 64
ACCEPT_PAUSE_S = 1.0
"""After the machine had no descriptor or memory for one."""
IDLE_S = 15.0
"""For a connection on which nothing is asked."""
SWEEP_EVERY_S = 5.0
TLS_TIMEOUT_S = 10.0
TLS_BUFFER_BYTES = 64 * 1024
"""What asyncio reads at a time, and holds for each connection for as long as it lives; its own choice are 256 KiB."""
_log = logging.getLogger(__name__)


class _Place:
    """What one connection holds."""

    __slots__ = ("_places", "connection", "is_silent", "source", "transport")

    def __init__(self, places: "Places", connection: socket.socket, source: str) -> None:
        self._places = places
        self.connection = connection
        self.source = source
        self.transport: asyncio.Transport | None = None
        self.is_silent = True
        """Nothing has come yet."""

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
        """Those that wait for their client, and until when; the one that began first is the first."""
        self._held: set[_Place] = set()
        self._of_source: Counter[str] = Counter()

    def enter(self, connection: socket.socket, host: str) -> _Place | None:
        """Return a place for a connection that has come; None: on all that could give way, something is being done."""
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
        """This one waits for its client from now on."""
        if place in self._held:
            self.waiting.pop(place, None)
            self.waiting[place] = until

    def leave(self, place: _Place) -> None:
        """This one has ended; harmless when repeated."""
        self.waiting.pop(place, None)
        if place in self._held:
            self._held.remove(place)
            self._of_source[place.source] -= 1
            if not self._of_source[place.source]:
                del self._of_source[place.source]

    def end_all(self) -> None:
        """End every connection, whatever is being done on it."""
        for place in tuple(self._held):
            place.hang_up()
            self.leave(place)

    def end_silent(self) -> None:
        """End those on which nothing has come."""
        for place in [each for each in self.waiting if each.is_silent]:
            place.hang_up()
            self.leave(place)

    def sweep(self) -> None:
        """End those that have waited for too long."""
        now = self.now()
        for place in [each for each, until in self.waiting.items() if until < now]:
            place.hang_up()
            self.leave(place)


class SharedListeners:
    """Listening sockets whose connections share the places."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        """`context`: how connections are secured; None: not at all."""
        if context is not None:
            sslproto.SSLProtocol.max_size = TLS_BUFFER_BYTES
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._places = Places()
        self._listening: list[socket.socket] = []
        self._beginning: set[asyncio.Task[None]] = set()
        self._sweeper = self._loop.create_task(self._sweep())

    async def open(self, host: str, port: int, make: Make) -> None:
        """Listen on every address of a host. Raises OSError when one cannot be had."""
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            listening = socket.create_server(address, family=family, backlog=BACKLOG)
            listening.settimeout(0)
            self._listening.append(listening)
            self._loop.add_reader(listening, self._accept, listening, make)

    def take(self, context: ssl.SSLContext | None) -> None:
        """Secure connections in this way from now on, and end those that were secured before.

        Whether connections are secured at all stays as it was: what listens without TLS does so on loopback alone.
        """
        if self._context is not None and context is not None:
            self._context = context
            self._places.end_all()

    def close(self) -> None:
        """Listen no more; connections that are there go on, those that are being secured do not."""
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
        """Something has come, or the end."""
        self._loop.remove_reader(place.connection)
        place.is_silent = False
        task = self._loop.create_task(self._begin(place, make))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    def _go_on(self, listening: socket.socket, make: Make) -> None:
        if listening in self._listening:
            self._loop.add_reader(listening, self._accept, listening, make)

    async def _begin(self, place: _Place, make: Make) -> None:
        """Hand the connection to its protocol, secured if need be."""
        connection = place.connection
        try:
            connection.settimeout(0)
            # asyncio does so for the connections that it accepted itself (adapters/network/tls_listening.py).
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
