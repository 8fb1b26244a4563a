"""Clients that do not go on with what they began keep nobody out."""

import asyncio

import aiohttp
import pytest

from haclusterd.adapters.network import shared_listening
from haclusterd.adapters.network.shared_listening import SharedListeners
from haclusterd.api.server import ApiServer, listen
from haclusterd.api.settings import ApiSettings
from haclusterd.entry_points.free_ports import free_ports
from tests.unit.api.certified_clients import Daemon

BODY_TO_COME = (
    b"POST /v1/resource/stop HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hacl_none\r\n"
    b"Content-Type: application/json\r\nContent-Length: 10\r\n\r\n"
)
UNREAD = b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 20


@pytest.mark.parametrize("begun", [BODY_TO_COME, UNREAD])
def test_requests_that_are_not_ended_and_answers_that_are_not_read_give_way(
    monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    async def play() -> None:
        (port,) = free_ports("127.0.0.1", 1)
        settings = ApiSettings((("127.0.0.1", port),))
        close = await listen(ApiServer(Daemon()), settings, SharedListeners(None))
        opened = []
        try:
            for _ in range(10):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(begun)
                opened.append(writer)
            async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/") as answer:
                assert answer.status == 200
        finally:
            for writer in opened:
                writer.close()
            await close()

    monkeypatch.setattr(shared_listening, "CONNECTIONS_MAX", 4)
    asyncio.run(play())
