"""Who floods a voter's port keeps nobody out, holds few descriptors, and fills no log."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from haclusterd.adapters.raft import transport as raft_transport
from haclusterd.adapters.raft.unauthenticated import UNAUTHENTICATED_MAX, UnauthenticatedPeer, UnauthenticatedPeers
from tests.unit.adapters.raft.raft_links import N1, N2, Network, until

FLOODER = "127.0.0.66"
FLOOD = 250


@pytest.fixture
async def network(tmp_path: Path) -> AsyncIterator[Network]:
    network = Network(tmp_path)
    yield network
    for end in network.ends:
        await end.transport.stop()


async def half_open(address: tuple[str, int], stack: contextlib.ExitStack, count: int) -> None:
    """Connect, and say nothing."""
    for _ in range(count):
        link = stack.enter_context(socket.socket())
        link.settimeout(0)
        link.bind((FLOODER, 0))
        await asyncio.get_running_loop().sock_connect(link, address)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_connections_that_never_begin_a_handshake_are_few_and_keep_no_peer_out(
    network: Network, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Neither does the end of their time let the peer in, nor that n1 dials it.
    monkeypatch.setattr(raft_transport, "GREETING_TIMEOUT_S", 60)
    monkeypatch.setattr(raft_transport, "OLD_SESSION_WAIT_S", 60)
    first = await network.start(N1)
    before = descriptors()
    with contextlib.ExitStack() as stack:
        await half_open(network.addresses[N1], stack, FLOOD)
        await until(lambda: "too many connections" in caplog.text)
        second = await network.start(N2)
        await until(lambda: first.reported == ["+n2"] and second.reported == ["+n1"])
        # The whole flood came before the peer; n2 has a listener and, as n1, its end of the link.
        await until(lambda: descriptors() - before - FLOOD <= UNAUTHENTICATED_MAX + 3)
    assert caplog.text.count(f"connection from {FLOODER} closed: too many connections at a time") == 1


def test_a_full_backlog_is_accepted_long_before_a_peer_at_its_end_gives_up() -> None:
    assert raft_transport.BACKLOG * raft_transport.ACCEPT_PAUSE_S < raft_transport.GREETING_TIMEOUT_S / 2


async def test_garbage_is_reported_once_for_its_source(network: Network, caplog: pytest.LogCaptureFixture) -> None:
    await network.start(N1)
    for _ in range(30):
        reader, writer = await asyncio.open_connection(*network.addresses[N1], local_addr=(FLOODER, 0))
        writer.write(os.urandom(2000))
        with contextlib.suppress(OSError):
            assert not (await reader.read()).startswith(b"\x16"), "it answered as if that were a handshake"
        writer.close()
    lines = [line for line in caplog.text.splitlines() if FLOODER in line]
    assert len(lines) == len(set(lines))
    assert 1 <= len(lines) <= 5


def test_the_oldest_of_the_source_with_the_most_gives_way() -> None:
    with contextlib.ExitStack() as stack:

        def made(source: str) -> UnauthenticatedPeer:
            ends = [stack.enter_context(end) for end in socket.socketpair()]
            return UnauthenticatedPeer(ends[0], source)

        unauthenticated = UnauthenticatedPeers()
        peer = made("peer")
        flood = [made("flood") for _ in range(UNAUTHENTICATED_MAX - 1)]
        assert [unauthenticated.enter(each) for each in (peer, *flood)] == [None] * UNAUTHENTICATED_MAX
        assert unauthenticated.enter(made("flood")) is flood[0]
        assert unauthenticated.enter(made("another")) is flood[1]
        unauthenticated.leave(flood[2])
        assert unauthenticated.enter(made("flood")) is None
