"""Addresses of links: several for one voter, IPv6, names; real sockets on loopback."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from haclusterd.adapters.network import name_resolution
from haclusterd.adapters.raft import transport as raft_transport
from haclusterd.entry_points.free_ports import free_ports
from tests.unit.adapters.raft.raft_links import N1, N2, Network, until


@pytest.fixture
async def network(tmp_path: Path) -> AsyncIterator[Network]:
    network = Network(tmp_path)
    yield network
    for end in network.ends:
        await end.transport.stop()


@pytest.mark.parametrize("host", ["::1", "127.0.0.2", "localhost"])
async def test_voters_meet_at_any_kind_of_address(network: Network, host: str) -> None:
    # A name is listened on at all addresses of the machine.
    for name, port in zip((N1, N2), free_ports("::" if host == "localhost" else host, 2), strict=True):
        network.addresses[name] = (host, port)
    first, second = await network.start(N1), await network.start(N2)
    await until(lambda: first.reported == ["+n2"] and second.reported == ["+n1"])
    second.transport.send(N1, b"hello")
    await until(lambda: first.frames == [(N2, b"hello")])


async def test_a_peer_whose_first_addresses_are_dead_is_met_at_the_last_without_waiting_for_them(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one takes connections and says nothing, the second refuses, the third is a name nobody knows."""
    # What waits for the dead ones waits for longer than this test does, and n1 does not dial.
    monkeypatch.setattr(raft_transport, "GREETING_TIMEOUT_S", 60)
    monkeypatch.setattr(name_resolution, "LOOKUP_TIMEOUT_S", 60)
    monkeypatch.setattr(raft_transport, "OLD_SESSION_WAIT_S", 60)
    first = await network.start(N1)
    living = network.addresses[N1]
    silent = socket.create_server(("127.0.0.3", 0))
    network.addresses[N1] = silent.getsockname()
    network.more_addresses[N1] = (("127.0.0.3", 1), ("no-such-name.invalid", 7), living)
    second = await network.start(N2)
    await until(lambda: second.reported == ["+n1"] and first.reported == ["+n2"])
    silent.close()


async def test_a_link_is_made_again_at_the_other_address_when_its_own_dies(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One relay on the way of each address; the one in use goes dead without a word, as a pulled cable does."""
    # No session ends by its silence, and n1 does not dial: a dead one can only be replaced, by another way.
    monkeypatch.setattr(raft_transport._Session, "was_silent", property(lambda _: False, lambda _, value: None))
    monkeypatch.setattr(raft_transport, "OLD_SESSION_WAIT_S", 60)
    living = network.addresses[N1]
    relays = [Relay(living), Relay(living)]
    places = [await relay.start() for relay in relays]
    network.addresses[N1], network.more_addresses[N1] = places[0], (places[1],)
    first_place = network.addresses[N1]
    network.addresses[N1] = living
    first = await network.start(N1)
    network.addresses[N1], network.more_addresses[N1] = first_place, (places[1],)
    second = await network.start(N2)
    await until(lambda: second.reported == ["+n1"] and first.reported == ["+n2"])

    def way() -> tuple[str, int]:
        place: tuple[str, int] = second.transport._sessions[N1].link.transport.get_extra_info("peername")
        return place

    [other_place] = set(places) - {way()}
    relays[places.index(way())].is_cut = True
    await until(lambda: way() == other_place)
    assert second.reported[-3:] == ["+n1", "-n1", "+n1"]
    second.transport.send(N1, b"by the other way")
    await until(lambda: (N2, b"by the other way") in first.frames)
    for relay in relays:
        await relay.stop()


class Relay:
    """A network between two ends, which can be cut."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.is_cut = False
        self.tasks: set[asyncio.Task[None]] = set()
        self.server: asyncio.Server

    async def start(self) -> tuple[str, int]:
        self.server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self.server.sockets[0].getsockname()
        return host, port

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        out_reader, out_writer = await asyncio.open_connection(*self.target)
        for source, sink in ((reader, out_writer), (out_reader, writer)):
            task = asyncio.get_running_loop().create_task(self._pass_on(source, sink))
            self.tasks.add(task)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                if not self.is_cut:
                    sink.write(data)
        except ConnectionError:
            pass
        finally:
            sink.transport.abort()

    async def stop(self) -> None:
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
