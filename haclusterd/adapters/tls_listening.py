"""Listening sockets whose connections are accepted one by one and secured afterwards.

asyncio's own server begins the handshake with everybody at once; whoever uses this decides first how many there may be.
"""

import asyncio
import socket
import ssl

from haclusterd.adapters.name_resolution import Address, is_numeric


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


async def secure(
    connection: socket.socket, context: ssl.SSLContext, timeout_s: float
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Speak TLS as the server on an accepted connection; raises OSError when that fails."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(
        lambda: protocol, connection, ssl=context, ssl_handshake_timeout=timeout_s
    )
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
