"""The pacer's UDP sockets, made such that a flood does not keep the members' heartbeats out.

Each listen address has a socket for all senders, from which heartbeats are also sent, and one connected socket for each
peer whose heartbeats arrive there: the kernel queues datagrams from the peer's address on that one, and all others on
the former. So a flood from other addresses fills a separate queue, which is read at a bounded rate; a flood with a
peer's forged address fills only that peer's queue, which is read as fast as possible, unless it is dropped before
(`let_through`).

Invariant: nothing here blocks or looks up a name. A network error is a text in `errors`, never an exception, and never
evidence about a peer (safety.md §4: refused connections cause nothing). A port in use is tried again. Stdlib only: the
pacer imports this.
"""

import os
import selectors
import socket
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from haclusterd.adapters.pacer import datagram_filter
from haclusterd.model.addresses import Address
from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.pacer import Link
from haclusterd.protocol.heartbeat import MAXIMUM_SIZE

PEER_BATCH = 64
"""Datagrams of one peer in one turn of the loop."""
OTHERS_BATCH = 16
"""Datagrams from other addresses in one turn of the loop."""
OTHERS_MAX = 256
"""Datagrams from other addresses in OTHERS_SPAN_MS: more than the heartbeats of a whole cluster, whose nodes may send
from an address that is not configured."""
OTHERS_SPAN_MS = 50
PEER_QUEUE_BYTES = 1 << 20
"""Size of a peer's queue, so that a forged flood does not fill it while the loop does other work."""
SO_RCVBUFFORCE = 33
"""socket(7); the socket module does not know it."""



class _Target(NamedTuple):
    family: int
    address: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


class HeartbeatSockets:
    """Sockets on the selector of one loop.

    `receive` is called with each datagram, its source host, and the link whose peer has that address.
    """

    def __init__(
        self, selector: selectors.BaseSelector, receive: Callable[[bytes, str, Link | None], None]
    ) -> None:
        self._selector = selector
        self._receive = receive
        self._wanted: tuple[Address, ...] = ()
        self._links: frozenset[Link] = frozenset()
        self._open: dict[Address, socket.socket] = {}
        self._connected: dict[Link, socket.socket] = {}
        self._targets: dict[Address, _Target | None] = {}
        self._listen_errors: dict[Address, str] = {}
        self._send_errors: dict[Address, str] = {}
        self._others_left = OTHERS_MAX
        self._others_until = Instant(0)
        """When datagrams from other addresses may be read again."""
        self._is_deaf_to_others = False

    @property
    def errors(self) -> tuple[str, ...]:
        """Present problems, as text for administrators."""
        return (*self._listen_errors.values(), *self._send_errors.values())

    @property
    def wake_at(self) -> Instant:
        """When `turn` is due; NEVER while everything is read."""
        return self._others_until if self._is_deaf_to_others else NEVER

    def turn(self, now: Instant) -> None:
        """Start a turn of the loop."""
        if now < self._others_until:
            return
        self._others_left = OTHERS_MAX
        self._others_until = after(now, OTHERS_SPAN_MS)
        if self._is_deaf_to_others:
            self._is_deaf_to_others = False
            for opened in self._open.values():
                self._selector.register(opened, selectors.EVENT_READ, partial(self._read_others, opened))

    def listen(self, addresses: Iterable[Address], peers: Iterable[Sequence[Address]] = ()) -> None:
        """Listen on these addresses and no others; sockets that stay are not disturbed.

        `peers`: the addresses of each peer. Each sends to the one of ours with the same index.
        """
        self._wanted = tuple(addresses)
        self._targets.clear()
        self._listen_errors.clear()
        self._send_errors.clear()
        self._links = frozenset(link for peer in peers for link in zip(self._wanted, peer, strict=False))
        for link in [link for link in self._connected if link not in self._links or link[0] not in self._wanted]:
            self._disconnect(link)
        for address in [address for address in self._open if address not in self._wanted]:
            self._close(address)
        self.retry()

    def retry(self) -> None:
        """Try again to listen where that failed, and to connect where there was no route to a peer."""
        for address in self._wanted:
            if address not in self._open:
                self._listen(address)
        for link in sorted(self._links):
            if link not in self._connected and link[0] in self._open:
                self._connect(link)

    def send(self, link: int, to: Address, datagram: bytes) -> None:
        """Send one datagram, from the listen address of the link if that has the right family."""
        target = self._target(to)
        sender = None if target is None else self._sender(link, target.family)
        if target is None or sender is None:
            reason = "not a numeric address" if target is None else "no listening address of its family"
            self._send_errors[to] = f"cannot send to {to[0]} port {to[1]}: {reason}"
            return
        try:
            sender.sendto(datagram, target.address)
        except BlockingIOError:
            return
        except OSError as error:
            self._send_errors[to] = f"cannot send to {to[0]} port {to[1]}: {os.strerror(error.errno or 0)}"
        else:
            self._send_errors.pop(to, None)

    def let_through(self, link: Link, pieces: Sequence[datagram_filter.Piece]) -> str:
        """Queue only datagrams with these pieces on a link from now on; no pieces: all. What is queued stays.

        Return why that is not possible, or an empty text.
        """
        connected = self._connected.get(link)
        if connected is None:
            return ""
        try:
            if pieces:
                datagram_filter.attach(connected, pieces, MAXIMUM_SIZE)
            else:
                datagram_filter.detach(connected)
        except OSError as error:
            return os.strerror(error.errno or 0)
        return ""

    def dropped(self, link: Link) -> int:
        """Return how many datagrams the kernel has dropped on a link so far."""
        connected = self._connected.get(link)
        return 0 if connected is None else datagram_filter.dropped(connected)

    def close(self) -> None:
        """Close all sockets."""
        for link in list(self._connected):
            self._disconnect(link)
        for address in list(self._open):
            self._close(address)

    def _listen(self, address: Address) -> None:
        host, port = address
        target = self._target(address)
        if target is None:
            self._listen_errors[address] = f"cannot listen on {host} port {port}: not a numeric address"
            return
        opened = socket.socket(target.family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        try:
            if target.family == socket.AF_INET6:
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened.bind(target.address)
        except OSError as error:
            opened.close()
            reason = os.strerror(error.errno or 0)
            self._listen_errors[address] = f"cannot listen on {host} port {port}: {reason}; trying again"
            return
        self._listen_errors.pop(address, None)
        self._open[address] = opened
        if not self._is_deaf_to_others:
            self._selector.register(opened, selectors.EVENT_READ, partial(self._read_others, opened))

    def _connect(self, link: Link) -> None:
        """Make a connected socket for a peer; if that is not possible now, its datagrams arrive with all others."""
        own, peer = self._target(link[0]), self._target(link[1])
        if own is None or peer is None or own.family != peer.family:
            return
        made = socket.socket(own.family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        beside = [self._open[link[0]], *(each for (at, _), each in self._connected.items() if at == link[0])]
        try:
            if own.family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            _enlarge(made)
            # A port is shared on purpose, and for a moment only: another process must find it in use.
            for each in (*beside, made):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            made.bind(own.address)
            made.connect(peer.address)
        except OSError:
            made.close()
            return
        finally:
            for each in beside:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
        self._connected[link] = made
        self._selector.register(made, selectors.EVENT_READ, partial(self._read_peer, made, link))

    def _read_peer(self, connected: socket.socket, link: Link) -> None:
        """Read what has arrived from one peer's address."""
        receive, host = self._receive, link[1][0]
        for _ in range(PEER_BATCH):
            try:
                datagram = connected.recv(MAXIMUM_SIZE + 1)
            except OSError:
                return
            receive(datagram, host, link)

    def _read_others(self, opened: socket.socket) -> None:
        """Read some datagrams from other addresses; above the limit, none for a while."""
        for _ in range(min(OTHERS_BATCH, self._others_left)):
            try:
                datagram, sender = opened.recvfrom(MAXIMUM_SIZE + 1)
            except OSError:
                return
            self._others_left -= 1
            self._receive(datagram, sender[0], None)
        if not self._others_left and not self._is_deaf_to_others:
            self._is_deaf_to_others = True
            for each in self._open.values():
                self._selector.unregister(each)

    def _close(self, address: Address) -> None:
        closed = self._open.pop(address)
        if not self._is_deaf_to_others:
            self._selector.unregister(closed)
        closed.close()

    def _disconnect(self, link: Link) -> None:
        closed = self._connected.pop(link)
        self._selector.unregister(closed)
        closed.close()

    def _sender(self, link: int, family: int) -> socket.socket | None:
        if link < len(self._wanted):
            own = self._open.get(self._wanted[link])
            if own is not None and own.family == family:
                return own
        return next((other for other in self._open.values() if other.family == family), None)

    def _target(self, address: Address) -> _Target | None:
        if address not in self._targets:
            self._targets[address] = _resolve(*address)
        return self._targets[address]


def _enlarge(made: socket.socket) -> None:
    try:
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, PEER_QUEUE_BYTES)
    except OSError:  # Only root may go beyond net.core.rmem_max.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PEER_QUEUE_BYTES)


def _resolve(host: str, port: int) -> _Target | None:
    """Return a numeric address as a target; an empty one would mean any address."""
    if not host:
        return None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None
    family, _, _, _, address = found[0]
    return _Target(family, address)
