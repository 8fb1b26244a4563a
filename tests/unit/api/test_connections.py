"""Clients that do not go on with what they began keep nobody out."""

import asyncio
import gzip
import socket
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from haclusterd.adapters.network import shared_listening
from haclusterd.adapters.network.shared_listening import SharedListeners
from haclusterd.api.server import BODIES_BYTES_MAX, BODY_BYTES_MAX, SMALL_BODY_BYTES, ApiServer, listen
from haclusterd.api.settings import ApiSettings
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.requests import Progress, Request, Response
from haclusterd.protocol.control import shown_report
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report
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


class Judging(Daemon):
    """Accepts one token."""

    async def call(self, request: Request, progress: Callable[[Progress], None]) -> Response:
        answer = await super().call(request, progress)
        if request.credential == "hacl_known":
            return answer
        item = report(Code.NOT_AUTHENTICATED, problem="there is no such token")
        return Response(request.id, int(item.exit_status), (shown_report(item),))


def played(scenario: Callable[[str, int], Awaitable[None]]) -> None:
    """Play against an interface at a URL, and its port."""

    async def play() -> None:
        (port,) = free_ports("127.0.0.1", 1)
        close = await listen(ApiServer(Judging()), ApiSettings((("127.0.0.1", port),)), SharedListeners(None))
        try:
            await scenario(f"http://127.0.0.1:{port}", port)
        finally:
            await close()

    asyncio.run(play())


def head(token: str, length: int, more: str = "") -> bytes:
    return (
        f"POST /v1/configure/load HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n"
    ).encode()


def test_clients_without_a_token_that_counts_do_not_take_what_bodies_may_take() -> None:
    async def scenario(url: str, port: int) -> None:
        opened = []
        for length in (*[BODY_BYTES_MAX] * 4, BODIES_BYTES_MAX - 4 * BODY_BYTES_MAX):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head("hacl_guessed", length) + b"{")
            opened.append(writer)
            assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer hacl_known"}) as client:
            for text in ("small", "large" * SMALL_BODY_BYTES):
                async with client.post(f"{url}/v1/configure/load", json={"text": text}) as answer:
                    assert answer.status == 200
        for writer in opened:
            writer.close()

    played(scenario)


def test_a_compressed_body_is_refused_before_it_is_read() -> None:
    async def scenario(_url: str, port: int) -> None:
        body = gzip.compress(b'{"text":"' + b"a" * (BODY_BYTES_MAX - 100))
        for coding in ("gzip", "deflate", "br"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head("hacl_known", len(body) + 1, f"Content-Encoding: {coding}\r\n") + body)
            assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 415 ")
            writer.close()

    played(scenario)


def test_the_description_that_nobody_reads_takes_no_room_of_answers() -> None:
    async def scenario(url: str, port: int) -> None:
        opened = []
        for _ in range(100):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            connection.settimeout(0)
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
            connection.sendall(b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
            opened.append(connection)
        async with aiohttp.ClientSession() as client:
            for _ in range(20):
                async with client.get(f"{url}/v1/openapi.json") as answer:
                    assert answer.status == 200
        for connection in opened:
            connection.close()

    played(scenario)
