"""Connections that are accepted one by one and then secured."""

import asyncio
import datetime as dt
import socket
from pathlib import Path

from haclusterd.adapters.network.certificates import (
    create_authority,
    issue_certificate,
    tls_context,
    write_node_credentials,
)
from haclusterd.adapters.network.tls_listening import listen, secure_stream
from haclusterd.model.ids import NodeName

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


async def test_neither_end_holds_small_frames_back_until_earlier_ones_are_acknowledged(tmp_path: Path) -> None:
    authority = create_authority("11111111-2222-3333-4444-555555555555", now=NOW)
    write_node_credentials(
        tmp_path, authority.certificate, issue_certificate(authority, NodeName("n1"), ["127.0.0.1"], now=NOW)
    )
    with listen(("127.0.0.1", 0), 1) as listener:
        dialling = asyncio.create_task(
            asyncio.open_connection(*listener.getsockname(), ssl=tls_context(tmp_path, is_server=False))
        )
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
        _, accepted = await secure_stream(connection, tls_context(tmp_path, is_server=True), 10)
        _, dialled = await dialling
        for writer in (accepted, dialled):
            end: socket.socket = writer.get_extra_info("socket")
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.transport.abort()
