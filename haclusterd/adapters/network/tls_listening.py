"""Listening sockets whose connections are accepted one by one, and secured when they have begun to speak TLS.

asyncio's own server begins the handshake with everybody at once, and holds 256 KiB for each connection meanwhile. Here
the listener decides first how many there may be, and nothing but the socket is held until a whole opening of a
handshake has come (RFC 8446 §5.1: one record).
"""

import asyncio
import socket
import ssl

from haclusterd.adapters.network.name_resolution import Address, is_numeric

RECORD_HEADER_BYTES = 5
RECORD_BYTES_MAX = 2**14
HANDSHAKE_MARK = b"\x16\x03"
"""Content type and major version of the first record (RFC 8446 §5.1)."""


class NoHandshakeError(ConnectionError):
    """The other end does not speak TLS, or ended before it did."""


def listen(address: Address, backlog: int) -> socket.socket:
    """Listen without blocking; for a host name at all addresses of this machine. Raises OSError.

    What an own name stands for here (often a loopback address) says nothing of how others reach it.
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
    """Speak TLS as the server on an accepted connection; raises OSError when that fails.

    The caller limits the time that the opening takes, and closes the connection when this fails.
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
    """Take the frames from a failure that was dealt with.

    Those of a failed handshake refer to the failure in turn, and would keep its buffers until garbage is collected.
    """
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is not None and each.__traceback__ is not None:
            each.__traceback__ = None
            pending += [each.__cause__, each.__context__]


async def _require_opening(connection: socket.socket) -> None:
    """Wait until the first record of a handshake is there, whole; nothing is taken from the connection."""
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
    """Return that many bytes when they have come, without taking them; fewer when the other end has ended."""
    loop = asyncio.get_running_loop()
    come: asyncio.Future[None] = loop.create_future()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
    loop.add_reader(connection, _settle, come)
    try:
        await come
    finally:
        loop.remove_reader(connection)
    return connection.recv(size, socket.MSG_PEEK)
