"""Pacers that are flooded with forged heartbeats hear each other all the same, and log it once (safety.md §3)."""

import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, Heartbeat
from haclusterd.protocol import heartbeat as protocol
from tests.processes.test_pacer import N1, N2, Node, incarnation, make_nodes, until

pytestmark = pytest.mark.processes

FLOODING = Path(__file__).parents[1] / "flooder.py"
PERIODS = 15
OTHERS_SHARE = 0.25
"""Of a processor, which what comes from addresses of no member may cost at most, however much it is."""
HEARD_SHARE = 0.7
"""Of the heartbeats that a peer sends; the rest is for a machine that pauses."""


def forged_heartbeat() -> bytes:
    """Return a heartbeat of n2 to n1 in every byte, but for the key."""
    beat = Heartbeat(
        sender=N2, receiver=N1, incarnation=incarnation(N2), sent_at=Instant(1), brain=BrainState.ALIVE,
        brain_since_ms=0, echo=None, seen=None, heard=(), is_empty=False,
    )  # fmt: skip
    return protocol.encode(beat, os.urandom(32))


@contextmanager
def flood(victim: Node, *source: str) -> Iterator[None]:
    ((host, port),) = victim.settings.listen
    command = [sys.executable, str(FLOODING), "--to", f"{host}:{port}", "--datagram", forged_heartbeat().hex()]
    with subprocess.Popen([*command, *source], stdout=subprocess.DEVNULL) as flooder:
        try:
            yield
        finally:
            flooder.terminate()


def processor_seconds(node: Node) -> float:
    """Return how much of a processor a node's pacer has had so far."""
    assert node.process is not None
    fields = Path(f"/proc/{node.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def accepted(victim: Node, peer: NodeName) -> int:
    """Return how many heartbeats of a peer stand in the reports so far; a report shows the newest."""
    return len({node.heard_at for report in victim.reports for node in report.nodes if node.name == peer})


@asynccontextmanager
async def logged_cluster(directory: Path) -> AsyncIterator[dict[NodeName, Node]]:
    """Three nodes that hold their leases, with a log of each pacer in its directory."""
    nodes = make_nodes(directory, node_timeout_ms=2_000, brain_timeout_ms=10_000)
    async with AsyncExitStack() as stack:
        for node in nodes.values():
            stack.callback(node.end)
            with (node.directory / "log").open("wb") as stream:
                node.start_pacer(stderr=stream.fileno())
            node.start_brain()
        await until(lambda: all(node.has_lease() for node in nodes.values()))
        yield nodes


@pytest.mark.parametrize("is_forged", [False, True], ids=["its own address", "a member's address"])
async def test_heartbeats_of_members_get_through_a_flood(is_forged: bool, tmp_path: Path) -> None:
    if is_forged and os.geteuid() != 0:
        pytest.skip("forging an address is root's")
    async with logged_cluster(tmp_path) as nodes:
        victim, peer = nodes[N1], nodes[N2]
        ((host, port),) = peer.settings.listen
        log = victim.directory / "log"
        with flood(victim, *(["--forge", f"{host}:{port}"] if is_forged else ["--source", "127.0.66.200"])):
            await until(lambda: "authentication code wrong" in log.read_text(), "the flood to be felt")
            victim.reports.clear()
            peer.reports.clear()
            began, spent = time.monotonic(), processor_seconds(victim)
            await until(lambda: len(peer.reports) >= PERIODS, "some periods to pass")
            share = (processor_seconds(victim) - spent) / (time.monotonic() - began)
            assert is_forged or share < OTHERS_SHARE, share
            assert accepted(victim, N2) >= HEARD_SHARE * len(peer.reports)
            await victim.renewal()
        lines = [line for line in log.read_text().splitlines() if "refused" in line]
        assert len(lines) == 1, lines
