"""Listening sockets whose connections are accepted one by one; TLS begins when the client has begun to speak it.

asyncio's own server begins the handshake with every client at once, and holds 256 KiB for each connection meanwhile.
Here the listener first decides how many there may be, and only the socket is held until the complete first record of a
handshake has arrived (RFC 8446 §5.1).
"""

import asyncio
import socket
import ssl

from haclusterd.adapters.network.name_resolution import is_numeric
from haclusterd.model.addresses import Address

RECORD_HEADER_BYTES = 5
RECORD_BYTES_MAX = 2**14
HANDSHAKE_MARK = b"\x16\x03"
"""Content type and major version of the first record (RFC 8446 §5.1)."""


class NoHandshakeError(ConnectionError):
    """The other end does not speak TLS, or ended before it did."""


def listen(address: Address, backlog: int) -> socket.socket:
    """Return a non-blocking listening socket; for a host name, on all addresses of this machine. Raises OSError.

    The local resolution of the node's own name (often to a loopback address) does not show how others reach it.
    """
    host, port = address
    if is_numeric(host):
        is_ipv6 = ":" in host
    else:
        host, is_ipv6 = "", socket.has_dualstack_ipv6()
    listener = socket.create_server(
        (host, port),
        family=socket.AF_INET6 if is_ipv6 else socket.AF_INET,
        backlog=backlog,
        dualstack_ipv6=is_ipv6 and not host,
    )
    listener.settimeout(0)
    return listener


async def secure_stream(
    connection: socket.socket, context: ssl.SSLContext, timeout_s: float
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Like `secure`, for code that reads and writes a stream."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport = await secure(connection, context, timeout_s, protocol)
    return reader, asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())


async def secure(
    connection: socket.socket, context: ssl.SSLContext, timeout_s: float, protocol: asyncio.Protocol
) -> asyncio.Transport:
    """Do the server's part of TLS on an accepted connection; raises OSError when that fails.

    The caller limits the time that this takes, and closes the connection when it fails.
    """
    # asyncio does so for the connections that it accepted itself. Otherwise the second of two small frames waits until
    # the first is acknowledged (Nagle, RFC 896), and the other end delays that by some 40 ms (RFC 1122 §4.2.3.2).
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    await _require_opening(connection)
    transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
        lambda: protocol, connection, ssl=context, ssl_handshake_timeout=timeout_s
    )
    return transport


def forget_frames(error: BaseException) -> None:
    """Remove the frames from a handled exception.

    The frames of a failed handshake refer to the exception in turn, and would keep its buffers until garbage is
    collected.
    """
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is not None and each.__traceback__ is not None:
            each.__traceback__ = None
            pending += [each.__cause__, each.__context__]


async def _require_opening(connection: socket.socket) -> None:
    """Wait until the complete first record of a handshake has arrived; nothing is read from the connection."""
    header = await _peek(connection, RECORD_HEADER_BYTES)
    if not header:
        raise NoHandshakeError("it sent nothing")
    size = int.from_bytes(header[3:], "big")
    is_handshake = len(header) == RECORD_HEADER_BYTES and header.startswith(HANDSHAKE_MARK)
    if not is_handshake or not 0 < size <= RECORD_BYTES_MAX:
        raise NoHandshakeError("it does not speak TLS")
    if len(await _peek(connection, RECORD_HEADER_BYTES + size)) < RECORD_HEADER_BYTES + size:
        raise NoHandshakeError("it ended within the handshake")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def _settle(come: asyncio.Future[None]) -> None:
    if not come.done():
        come.set_result(None)


async def _peek(connection: socket.socket, size: int) -> bytes:
    """Return that many bytes once they have arrived, without reading them; fewer at the end of the connection."""
    loop = asyncio.get_running_loop()
    come: asyncio.Future[None] = loop.create_future()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
    loop.add_reader(connection, _settle, come)
    try:
        await come
    finally:
        loop.remove_reader(connection)
    return connection.recv(size, socket.MSG_PEEK)
