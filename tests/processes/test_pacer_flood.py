"""Pacers that are flooded with forged heartbeats hear each other all the same, and log it once (safety.md §3)."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, Heartbeat, PeerAddress
from haclusterd.model.records import replace
from haclusterd.protocol import heartbeat as protocol
from tests.processes.pacer_nodes import N1, N2, Node, boottime, incarnation, key_of, make_nodes, until

pytestmark = pytest.mark.processes

FLOODING = Path(__file__).parents[1] / "flooder.py"
NODE_TIMEOUT_MS = 2_000
PERIOD_MS = NODE_TIMEOUT_MS // 10
PERIODS = 15
LONGEST_SILENCE_MS = 3 * PERIOD_MS
"""So old may the newest heartbeat of a peer be at its receiver: a lease outlives two that are missing, and the way of
the third (safety.md §2, L >= 3h + RTT). What the pacers at both ends were late themselves, by their own clocks, is
no fault of the flood."""
OTHERS_SHARE = 0.25
"""Of a processor, which what comes from addresses of no member may cost at most, however much it is."""
READABLE_RATE = 1_000
"""Datagrams a second that a pacer reads and refuses one by one, also with a small part of a processor: a flood all the
same, of 200 in a heartbeat period."""
DROPPED = "a flood, which the kernel drops"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="forging an address is root's")


def forged_heartbeat(life: Incarnation) -> bytes:
    """Return a heartbeat of n2 to n1 in every byte, but for the key."""
    beat = Heartbeat(
        sender=N2, receiver=N1, incarnation=life, sent_at=Instant(1),
        brain=BrainState.ALIVE, brain_since_ms=0, echo=None, seen=None, heard=(), is_empty=False,
    )  # fmt: skip
    return protocol.encode(beat, os.urandom(32))


@contextmanager
def flood(victim: Node, *options: str, life: Incarnation | None = None) -> Iterator[None]:
    """Forge heartbeats of this life of n2; None: by somebody who knows none."""
    ((host, port),) = victim.settings.listen
    guessed = Incarnation(secrets.token_hex(4)[:7], secrets.token_hex(8))
    datagram = forged_heartbeat(life or guessed).hex()
    command = [sys.executable, str(FLOODING), "--to", f"{host}:{port}", "--datagram", datagram]
    with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL) as flooder:
        try:
            yield
        finally:
            flooder.terminate()


def forging(peer: Node) -> tuple[str, str]:
    ((host, port),) = peer.settings.listen
    return "--forge", f"{host}:{port}"


def processor_seconds(node: Node) -> float:
    """Return how much of a processor a node's pacer has had so far."""
    assert node.process is not None
    fields = Path(f"/proc/{node.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def longest_silence_ms(victim: Node, peer: NodeName) -> int:
    """Return the greatest age of a peer's newest heartbeat in the reports so far, by the clock of the pacer itself."""
    return max(node.age_ms or 0 for report in victim.reports for node in report.nodes if node.name == peer)


def longest_pause_ms(node: Node) -> int:
    """Return by how much its pacer was late itself at most: it reports once in a period."""
    reported = [report.reported_at for report in node.reports]
    return max([0, *(later - earlier - PERIOD_MS for earlier, later in pairwise(reported))])


def refusals(victim: Node) -> list[str]:
    """Return what its log has of refused datagrams."""
    return [line for line in (victim.directory / "log").read_text().splitlines() if "refused" in line]


async def is_felt(victim: Node) -> None:
    await until(lambda: any("authentication code wrong" in line for line in refusals(victim)), "the flood to be felt")


async def is_filtered(victim: Node) -> None:
    await until(lambda: any(DROPPED in line for line in refusals(victim)), "what the kernel drops")


@asynccontextmanager
async def logged_cluster(directory: Path) -> AsyncIterator[dict[NodeName, Node]]:
    """Three nodes that hold their leases, with a log of each pacer in its directory."""
    nodes = make_nodes(directory, node_timeout_ms=NODE_TIMEOUT_MS, brain_timeout_ms=10_000)
    async with AsyncExitStack() as stack:
        for node in nodes.values():
            stack.callback(node.end)
            with (node.directory / "log").open("wb") as stream:
                node.start_pacer(stderr=stream.fileno())
            node.start_brain()
        await until(lambda: all(node.has_lease() for node in nodes.values()))
        yield nodes


async def assert_on_time(victim: Node, peer: Node) -> float:
    """Look for some periods whether the peer's heartbeats come; return the share of a processor that they cost."""
    ends = victim, peer
    for node in ends:
        del node.reports[:-1]
    began, spent, seen_until = time.monotonic(), processor_seconds(victim), boottime() + PERIODS * PERIOD_MS
    await until(lambda: all(node.reports[-1].reported_at >= seen_until for node in ends), "some periods")
    share = (processor_seconds(victim) - spent) / (time.monotonic() - began)
    pauses_ms = [longest_pause_ms(node) for node in ends]
    assert longest_silence_ms(victim, peer.name) <= LONGEST_SILENCE_MS + sum(pauses_ms), pauses_ms
    await victim.renewal()
    return share


async def test_a_flood_from_an_address_of_no_member(tmp_path: Path) -> None:
    async with logged_cluster(tmp_path) as nodes:
        with flood(nodes[N1], "--source", "127.0.66.200"):
            await is_felt(nodes[N1])
            assert await assert_on_time(nodes[N1], nodes[N2]) < OTHERS_SHARE
        assert len(refusals(nodes[N1])) == 1


@needs_root
async def test_a_flood_from_a_members_address_by_somebody_who_sees_nothing_of_its_traffic(tmp_path: Path) -> None:
    async with logged_cluster(tmp_path) as nodes:
        with flood(nodes[N1], *forging(nodes[N2])):
            await is_felt(nodes[N1])
            assert await assert_on_time(nodes[N1], nodes[N2]) < OTHERS_SHARE
            await is_filtered(nodes[N1])
        wrong, dropped = refusals(nodes[N1])
        assert "authentication code wrong" in wrong
        assert DROPPED in dropped


@needs_root
async def test_a_flood_from_a_members_address_by_somebody_who_knows_its_token(tmp_path: Path) -> None:
    async with logged_cluster(tmp_path) as nodes:
        with flood(nodes[N1], *forging(nodes[N2]), "--rate", str(READABLE_RATE), life=incarnation(N2)):
            await is_felt(nodes[N1])
            await assert_on_time(nodes[N1], nodes[N2])
        logged = refusals(nodes[N1])
        assert len(logged) == len(set(logged)), "each reason once"


@needs_root
async def test_a_daemon_that_begins_a_new_life_in_a_flood_is_heard_before_it_is_lost(tmp_path: Path) -> None:
    async with logged_cluster(tmp_path) as nodes:
        victim, peer = nodes[N1], nodes[N2]
        with flood(victim, *forging(peer)):
            await is_filtered(victim)
            del victim.reports[:-1]
            peer.restart_brain(2)
            await until(lambda: victim.sees(N2).incarnation == incarnation(N2, 2))
            assert longest_silence_ms(victim, N2) < NODE_TIMEOUT_MS
            await assert_on_time(victim, peer)


@needs_root
async def test_a_peer_that_takes_the_address_of_another_one_in_a_flood_is_heard(tmp_path: Path) -> None:
    name = NodeName("n4")
    async with logged_cluster(tmp_path) as nodes:
        victim, peer = nodes[N1], nodes[N2]
        with flood(victim, *forging(peer), "--rate", str(READABLE_RATE)):
            await is_filtered(victim)
            peer.end()
            directory = tmp_path / name
            directory.mkdir()
            own = PeerAddress(name, peer.settings.listen, key_of(N1, name), is_voter=True)
            others = tuple(other for other in victim.settings.peers if other.name != N2)
            its_peers = (PeerAddress(N1, victim.settings.listen, key_of(N1, name), is_voter=True),)
            changed = replace(peer.settings, node=name, incarnation=incarnation(name), peers=its_peers)
            new = nodes[name] = Node(name, directory, changed)
            try:
                new.start_pacer()
                new.start_brain()
                victim.link.configure(replace(victim.settings, peers=(*others, own)))
                await until(lambda: victim.reports[-1].nodes[-1].name == name and victim.hears(name), "n4 to be heard")
            finally:
                new.end()


@needs_root
async def test_a_peer_that_was_silent_in_a_flood_is_heard_again(tmp_path: Path) -> None:
    async with logged_cluster(tmp_path) as nodes:
        victim, peer = nodes[N1], nodes[N2]
        with flood(victim, *forging(peer), "--rate", str(READABLE_RATE)):
            await is_filtered(victim)
            async with peer.pacer_stopped():
                await until(lambda: (victim.sees(N2).age_ms or 0) > 4 * PERIOD_MS, "a silence after which all is read")
                again_at = boottime()
            await until(lambda: (victim.sees(N2).heard_at or 0) > again_at)
            await assert_on_time(victim, peer)
