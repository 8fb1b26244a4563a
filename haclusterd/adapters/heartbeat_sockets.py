"""The pacer's UDP sockets: one for each address it listens on; heartbeats leave from them too.

Invariant: nothing here blocks or looks up a name. What the network refuses is a text in `errors`, never an exception,
and never a sign about a peer (safety.md §4: refused connections cause nothing). A port in use is tried again. Stdlib
only: the pacer imports this.
"""

import os
import selectors
import socket
from collections.abc import Callable, Iterable
from typing import NamedTuple

from haclusterd.protocol.heartbeat import MAXIMUM_SIZE

Address = tuple[str, int]


class _Target(NamedTuple):
    family: int
    address: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


class HeartbeatSockets:
    """Sockets on the selector of one loop; `receive` is called with each datagram and the host it says it is from."""

    def __init__(self, selector: selectors.BaseSelector, receive: Callable[[bytes, str], None]) -> None:
        self._selector = selector
        self._receive = receive
        self._wanted: tuple[Address, ...] = ()
        self._open: dict[Address, socket.socket] = {}
        self._targets: dict[Address, _Target | None] = {}
        self._listen_errors: dict[Address, str] = {}
        self._send_errors: dict[Address, str] = {}

    @property
    def errors(self) -> tuple[str, ...]:
        """What does not work at present, for people."""
        return (*self._listen_errors.values(), *self._send_errors.values())

    def listen(self, addresses: Iterable[Address]) -> None:
        """Listen on these addresses and no others; those that stay are not disturbed."""
        self._wanted = tuple(addresses)
        self._targets.clear()
        self._listen_errors.clear()
        self._send_errors.clear()
        for address in [address for address in self._open if address not in self._wanted]:
            self._close(address)
        self.retry()

    def retry(self) -> None:
        """Try again to listen where that failed."""
        for address in self._wanted:
            if address not in self._open:
                self._listen(address)

    def send(self, link: int, to: Address, datagram: bytes) -> None:
        """Send one datagram, from the listen address of the link where there is one of the right family."""
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

    def close(self) -> None:
        """Close all."""
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
        self._selector.register(opened, selectors.EVENT_READ, lambda: self._read(opened))

    def _read(self, opened: socket.socket) -> None:
        """Take one datagram; the selector tells of the next after the other sockets and the clock had their turn."""
        try:
            datagram, sender = opened.recvfrom(MAXIMUM_SIZE + 1)
        except OSError:
            return
        self._receive(datagram, sender[0])

    def _close(self, address: Address) -> None:
        closed = self._open.pop(address)
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


def _resolve(host: str, port: int) -> _Target | None:
    """Read a numeric address; an empty one would mean any."""
    if not host:
        return None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None
    family, _, _, _, address = found[0]
    return _Target(family, address)
