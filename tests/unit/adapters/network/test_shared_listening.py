"""Connections of clients from anywhere share a few places: who waits for nothing gives way, and no source has all."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.network import shared_listening
from haclusterd.adapters.network.shared_listening import TLS_BUFFER_BYTES, Places, SharedListeners
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.ports.listening import Place
from tests.unit.api.certified_clients import Authority


class Echo(asyncio.Protocol):
    """Answers what it is sent; `busy` in it keeps the place."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        if data == b"busy":
            self.place.begins()
        self.transport.write(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        del exc
        self.place.leave()


@pytest.fixture
def pair() -> Iterator[Callable[[], socket.socket]]:
    made: list[socket.socket] = []

    def make() -> socket.socket:
        made.extend(socket.socketpair())
        return made[-1]

    yield make
    for each in made:
        each.close()


def few(monkeypatch: pytest.MonkeyPatch, connections: int, of_source: int) -> None:
    monkeypatch.setattr(shared_listening, "CONNECTIONS_MAX", connections)
    monkeypatch.setattr(shared_listening, "CONNECTIONS_OF_SOURCE_MAX", of_source)


def test_who_is_pushed_out(monkeypatch: pytest.MonkeyPatch, pair: Callable[[], socket.socket]) -> None:
    async def play() -> None:
        places = Places()
        first, second, third = (places.enter(pair(), "192.0.2.1") for _ in range(3))
        other = places.enter(pair(), "192.0.2.2")
        assert None not in (first, second, third, other)
        assert first is not None
        first.begins()
        assert places.enter(pair(), "192.0.2.1") is not None, "a source at its limit"
        assert second not in places.waiting, "its own that waited longest, and nothing is done on it"
        fifth = places.enter(pair(), "192.0.2.3")
        assert fifth is not None
        sixth = places.enter(pair(), "192.0.2.4")
        assert sixth is not None, "all places are taken"
        assert third not in places.waiting, "the source with the most loses one"
        assert other in places.waiting
        for each in tuple(places.waiting):
            each.begins()
        assert places.enter(pair(), "192.0.2.5") is None, "something is done on all"
        fifth.gives_way()
        assert places.enter(pair(), "192.0.2.5") is not None, "one waits for its client to go on"
        fifth.leave()
        fifth.leave()

    few(monkeypatch, 5, 3)
    asyncio.run(play())


def test_one_network_of_ipv6_is_one_source(
    monkeypatch: pytest.MonkeyPatch, pair: Callable[[], socket.socket]
) -> None:
    async def play() -> None:
        places = Places()
        first = places.enter(pair(), "2001:db8::1")
        assert first is not None
        first.begins()
        assert places.enter(pair(), "2001:db8::2") is None

    few(monkeypatch, 5, 1)
    asyncio.run(play())


def test_a_flood_of_silent_connections_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        (port,) = free_ports("127.0.0.1", 1)
        listeners = SharedListeners(None)
        await listeners.open("127.0.0.1", port, Echo)
        opened = []
        try:
            for _ in range(200):
                opened.append(socket.socket())
                opened[-1].settimeout(0)
                opened[-1].connect_ex(("127.0.0.1", port))
            for word in (b"busy", b"idle"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(word)
                async with asyncio.timeout(30):
                    assert await reader.readexactly(4) == word
                opened.append(writer)
        finally:
            for each in opened:
                each.close()
            listeners.close()

    few(monkeypatch, 8, 6)
    asyncio.run(play())


def test_those_on_which_nothing_is_asked_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        (port,) = free_ports("127.0.0.1", 1)
        listeners = SharedListeners(None)
        await listeners.open("127.0.0.1", port, Echo)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(30):
                assert await reader.read() == b""
            writer.close()
        finally:
            listeners.close()

    monkeypatch.setattr(shared_listening, "IDLE_S", 0.0)
    monkeypatch.setattr(shared_listening, "SWEEP_EVERY_S", 0.01)
    asyncio.run(play())


def test_a_connection_over_tls_holds_a_small_buffer(tmp_path: Path) -> None:
    async def play() -> None:
        authority = Authority(tmp_path, "authority")
        own = authority.signed("localhost")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(own)
        (port,) = free_ports("127.0.0.1", 1)
        listeners, made = SharedListeners(context), []

        def make(place: Place) -> asyncio.Protocol:
            made.append(Echo(place))
            return made[-1]

        await listeners.open("127.0.0.1", port, make)
        try:
            _, silent = await asyncio.open_connection("127.0.0.1", port)
            silent.write(b"no handshake")
            trusting = ssl.create_default_context(cafile=authority.file)
            trusting.check_hostname = False
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
            writer.write(b"idle")
            assert await reader.readexactly(4) == b"idle"
            assert len(made[-1].transport._ssl_protocol._ssl_buffer) == TLS_BUFFER_BYTES, "of each of a thousand"
            for each in (silent, writer):
                each.close()
        finally:
            listeners.close()

    asyncio.run(play())
