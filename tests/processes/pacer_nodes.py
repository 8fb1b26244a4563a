"""Pacers in processes of their own, each with a daemon that the test plays."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.adapters.pacer.link import PacerLink
from haclusterd.agents.process_table import read_stat
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.pacer import HeardNode, PacerReport, PacerSettings, PeerAddress
from haclusterd.model.records import replace

DEADLINE_S = 20
STAMP_S = 0.02
NAMES = tuple(NodeName(name) for name in ("n1", "n2", "n3"))
N1, N2, N3 = NAMES


def boottime() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Wait for a condition, or fail."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, what or "the awaited never happened"
        await asyncio.sleep(0.005)


def free_port() -> int:
    return free_ports("127.0.0.1", 1)[0]


def key_of(one: NodeName, other: NodeName) -> bytes:
    return "-".join(sorted((one, other))).encode().ljust(32, b"k")


def incarnation(node: NodeName, number: int = 1) -> Incarnation:
    return Incarnation(f"boot-{node}", f"{int(node[1:]):08x}{number:08x}")


class Node:
    """One pacer process and its daemon: this process's link, and a task that stamps."""

    def __init__(self, name: NodeName, directory: Path, settings: PacerSettings) -> None:
        self.name = name
        self.directory = directory
        self.settings = settings
        self.process: subprocess.Popen[bytes] | None = None
        self.link = self.new_link()
        self.reports: list[PacerReport] = []
        self.is_stamping = True
        self.stamping: asyncio.Task[None] | None = None

    def new_link(self) -> PacerLink:
        loop = asyncio.get_running_loop()
        return PacerLink(self.directory, BoottimeClock(loop), loop)

    def start_pacer(self, stderr: int | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "haclusterd.entry_points.pacer", "--runtime-directory", str(self.directory)],
            stderr=stderr,
        )

    def start_brain(self) -> None:
        self.link.start(self.settings, self.reports.append)
        self.link.withdrawals_known()
        self.stamping = asyncio.get_running_loop().create_task(self.stamp())

    def restart_brain(self, number: int) -> None:
        self.link.stop()
        self.link = self.new_link()
        self.settings = replace(self.settings, incarnation=incarnation(self.name, number))
        self.link.start(self.settings, self.reports.append)
        self.link.withdrawals_known()

    async def stamp(self) -> None:
        while True:
            if self.is_stamping:
                self.link.stamp_main()
                self.link.stamp_raft()
            await asyncio.sleep(STAMP_S)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    @asynccontextmanager
    async def pacer_stopped(self) -> AsyncIterator[None]:
        """Let the pacer stand still meanwhile: what it would do is not done yet."""
        assert self.process is not None
        pid = self.process.pid
        self.signal(signal.SIGSTOP)
        try:
            await until(lambda: (stat := read_stat(pid)) is not None and stat.state == "T")
            yield
        finally:
            self.signal(signal.SIGCONT)

    def has_lease(self) -> bool:
        return self.link.lease_until() > boottime()

    async def renewal(self) -> None:
        """Wait until its lease is renewed: one that it has may be its last, and one renewed late is back soon."""
        known = self.link.lease_until()
        await until(lambda: self.has_lease() and self.link.lease_until() > known)

    def sees(self, name: NodeName) -> HeardNode:
        report = self.link.report()
        assert report is not None
        return next(node for node in report.nodes if node.name == name)

    def hears(self, name: NodeName) -> bool:
        return self.link.report() is not None and self.sees(name).age_ms is not None

    def end(self) -> None:
        if self.stamping is not None:
            self.stamping.cancel()
        self.link.stop()
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()
            self.process.wait()


def make_nodes(directory: Path, node_timeout_ms: int, brain_timeout_ms: int) -> dict[NodeName, Node]:
    addresses = {name: (("127.0.0.1", free_port()),) for name in NAMES}
    nodes = {}
    for name in NAMES:
        own = directory / name
        own.mkdir()
        peers = tuple(
            PeerAddress(peer, addresses[peer], key_of(name, peer), is_voter=True) for peer in NAMES if peer != name
        )
        nodes[name] = Node(
            name,
            own,
            PacerSettings(
                name,
                incarnation(name),
                is_voter=True,
                listen=addresses[name],
                peers=peers,
                node_timeout_ms=node_timeout_ms,
                brain_timeout_ms=brain_timeout_ms,
            ),
        )
    return nodes
