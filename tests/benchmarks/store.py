"""How fast the replicated state is, measured on whole daemons with their default timers, through their control sockets.

    leader_p50_s, leader_max_s      from kill -9 of the leader, links idle, to another one that a survivor knows
    commit_p50_ms, commit_p99_ms    one change of the configuration after another, each answered when it is committed
    commits_per_s                   the same with 64 changes in flight, all through one node that does not lead
    spread_per_s                    the same with the 64 spread over all nodes
    attributes_per_s                transient node attributes instead, spread over all nodes
    elections_idle, elections_disk  with --idle: terms begun in so many minutes of idleness, and of `dd` with fsync

Three daemons with pacers on this machine, fsync on its disk. Ends with one line `RESULT ...`, and with exit code 1 when
a bound that was measured is not met.
"""

import argparse
import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from haclusterd.adapters.control.client import ControlClient
from haclusterd.entry_points.local_cluster import LocalCluster
from haclusterd.model.ids import NodeName
from haclusterd.model.requests import Options, Progress, Request, Response
from haclusterd.protocol.control import MAX_FRAME_BYTES, decode, encode
from haclusterd.wire.framing import FrameBuffer

WAIT_S_MAX = 60.0
IDLE_S = 6.0
"""Links that carried no entry for so long count as idle."""
POLL_S = 0.005
WARM_UP = 50
IN_FLIGHT = 64
NAMES = 4
"""Attributes of each node that are changed: an entry carries all of a node."""
BOUNDS: Mapping[str, tuple[str, float]] = {
    "leader_p50_s": ("at most", 1.0),
    "leader_max_s": ("at most", 2.0),
    "commit_p50_ms": ("at most", 10.0),
    "commit_p99_ms": ("at most", 60.0),
    "commits_per_s": ("at least", 300.0),
    "elections_idle": ("at most", 0.0),
    "elections_disk": ("at most", 0.0),
}


class Bench:
    """A running cluster, and what is asked of it."""

    def __init__(self, directory: Path) -> None:
        self.cluster = LocalCluster(directory)
        self.cluster.setup()

    def form(self) -> None:
        self.cluster.start()
        self.until("all nodes online", lambda: len(self.online()) == len(self.cluster.names))

    def until(self, what: str, condition: Callable[[], bool], poll_s: float = POLL_S) -> float:
        """Wait; return when it came, on the monotonic clock."""
        deadline = time.monotonic() + WAIT_S_MAX
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {WAIT_S_MAX:.0f} s in vain for {what}")
            time.sleep(poll_s)
        return time.monotonic()

    def status(self, name: str) -> Mapping[str, Any]:
        response = self.cluster.call(name, "status")
        return response.data if isinstance(response.data, Mapping) else {}

    def online(self) -> set[str]:
        found = self.status(self.cluster.names[0]).get("nodes", [])
        return {node["name"] for node in found if node["state"] == "online"}

    def members(self, name: str) -> Mapping[str, Any]:
        response = self.cluster.call(name, "cluster.members")
        return response.data if isinstance(response.data, Mapping) else {}

    def leader(self) -> str | None:
        """Return whom all nodes take for the leader."""
        known = {self.members(name).get("leader") for name in self.cluster.names}
        return known.pop() if len(known) == 1 else None

    def term(self) -> int:
        return max(int(self.status(name).get("term") or 0) for name in self.cluster.names)

    # What is measured.

    def leader_changes(self, runs: int) -> Iterator[float]:
        """Kill the leader again and again; yield how long it took until a survivor knew another one."""
        for number in range(runs):
            self.until("one leader, known to all", lambda: self.leader() is not None, 0.05)
            time.sleep(IDLE_S)
            old = self.leader()
            assert old is not None
            brain = self.cluster.nodes[NodeName(old)].brain
            assert brain is not None
            others = [name for name in self.cluster.names if name != old]
            killed_at = time.monotonic()
            brain.kill()
            brain.wait()
            found_at = self.until("another leader", lambda: self._is_led(others, old))  # noqa: B023 (called at once)
            took_s = found_at - killed_at
            print(f"leader {number + 1}/{runs}: {old} killed, {took_s:.3f} s", flush=True)
            yield took_s
            self.cluster.start_brain(old)
            self.until("the node to be back", lambda: len(self.online()) == len(self.cluster.names), 0.05)

    def _is_led(self, survivors: list[str], old: str) -> bool:
        return any(self.members(name).get("leader") not in (None, old) for name in survivors)

    def serial_commits(self, count: int) -> list[float]:
        """Change one property after another through each node in turn; return milliseconds."""
        took = []
        for name in self.cluster.names:
            client = ControlClient(str(self.cluster.nodes[NodeName(name)].socket))
            for number in range(WARM_UP + count // len(self.cluster.names)):
                began = time.perf_counter()
                change(client, f"s-{name}", number)
                if number >= WARM_UP:
                    took.append((time.perf_counter() - began) * 1000)
            client.close()
        return took

    def commits_in_flight(self, seconds: float, lifetime: str, through: Sequence[str]) -> float:
        """Keep 64 changes of attributes in flight, through these nodes; return changes per second."""
        sockets = [self.cluster.nodes[NodeName(name)].socket for name in through]
        clients = Clients(sockets, self.cluster.names, lifetime)
        try:
            clients.serve(2)
            before, began, cpu_s = clients.done, time.monotonic(), self.cpu_s()
            clients.serve(seconds)
            done = max(1, clients.done - before)
            rate = done / (time.monotonic() - began)
            cpu_ms = 1000 * (self.cpu_s() - cpu_s) / done
            print(f"{lifetime} through {', '.join(through)}: {rate:.0f}/s, {cpu_ms:.1f} ms of CPU each", flush=True)
        finally:
            clients.close()
        if clients.failures:
            print(f"{len(clients.failures)} changes failed, such as: {clients.failures[0]}")
        return rate

    def cpu_s(self) -> float:
        """Return the CPU time that the daemons have used."""
        brains = [node.brain for node in self.cluster.nodes.values() if node.brain is not None]
        stats = [Path(f"/proc/{brain.pid}/stat").read_text().rpartition(")")[2].split() for brain in brains]
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")

    def elections(self, minutes: float) -> int:
        """Wait; return how many terms began meanwhile."""
        before = self.term()
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            time.sleep(min(10, max(0, end - time.monotonic())))
            if self.term() != before:
                print(f"an election: term {self.term()}, {end - time.monotonic():.0f} s before the end", flush=True)
        return self.term() - before


class Clients:
    """64 clients in one thread, each with one change on its way."""

    def __init__(self, sockets: Sequence[Path], nodes: Sequence[str], lifetime: str) -> None:
        self.done = 0
        self._nodes = nodes
        self.failures: list[str] = []
        self._lifetime = lifetime
        self._selector = selectors.DefaultSelector()
        self._counts = [0] * IN_FLIGHT
        self._buffers = [FrameBuffer(MAX_FRAME_BYTES) for _ in range(IN_FLIGHT)]
        for number in range(IN_FLIGHT):
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(str(sockets[number % len(sockets)]))
            self._selector.register(connection, selectors.EVENT_READ, number)
            self._ask(connection, number)

    def _ask(self, connection: socket.socket, number: int) -> None:
        self._counts[number] += 1
        value = f"{number}-{self._counts[number]}"
        arguments = attribute(self._nodes[number % len(self._nodes)], f"f-{number % NAMES}", value, self._lifetime)
        connection.sendall(encode(Request("1", "node.attribute", arguments, Options(wait_ms=0))))

    def serve(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for key, _ in self._selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                for frame in self._buffers[key.data].feed(key.fileobj.recv(65536)):
                    answer = decode(frame)
                    if isinstance(answer, Response):
                        self.done += not answer.exit
                        if answer.exit:
                            self.failures.append(str(answer.reports))
                        self._ask(key.fileobj, key.data)

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()


def attribute(node: str, name: str, value: str, lifetime: str) -> dict[str, Any]:
    return {"action": "set", "node": node, "name": name, "value": value, "lifetime": lifetime}


def change(client: ControlClient, name: str, value: int) -> str:
    """Set an attribute of a node; return why it failed, or nothing."""
    arguments = attribute("n1", name, f"{value}", "forever")
    response = client.call(Request("1", "node.attribute", arguments, Options()), _ignore)
    return str(response.reports) if response.exit else ""


def _ignore(_: Progress) -> None:
    return None


@contextmanager
def disk_load(directory: Path) -> Iterator[None]:
    """Write and sync beside the daemons, without end."""
    target = directory / "load"
    script = 'while :; do dd if=/dev/zero of="$0" bs=1M count=64 conv=fsync status=none; done'
    process = subprocess.Popen(["sh", "-c", script, str(target)], start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, 9)
        process.wait()
        target.unlink(missing_ok=True)


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def measure(bench: Bench, options: argparse.Namespace) -> dict[str, float]:
    """Measure what was asked for."""
    figures: dict[str, float] = {}
    if options.commits:
        took = bench.serial_commits(options.commits)
        figures["commit_p50_ms"], figures["commit_p99_ms"] = statistics.median(took), percentile(took, 99)
        print(f"serial: {figures}", flush=True)
        leader = bench.leader()
        follower = next(name for name in bench.cluster.names if name != leader)
        figures["commits_per_s"] = bench.commits_in_flight(options.seconds, "forever", [follower])
        figures["spread_per_s"] = bench.commits_in_flight(options.seconds, "forever", bench.cluster.names)
        figures["attributes_per_s"] = bench.commits_in_flight(options.seconds, "reboot", bench.cluster.names)
        print(f"in flight: {figures}", flush=True)
    if options.leaders:
        took = list(bench.leader_changes(options.leaders))
        figures["leader_p50_s"], figures["leader_max_s"] = statistics.median(took), max(took)
    if options.idle:
        bench.until("one leader, known to all", lambda: bench.leader() is not None, 0.05)
        figures["elections_idle"] = bench.elections(options.idle)
        with disk_load(bench.cluster.directory):
            figures["elections_disk"] = bench.elections(options.idle)
    return figures


def misses(figures: Mapping[str, float]) -> list[str]:
    """Return the bounds that were not met."""
    found = []
    for name, (how, bound) in BOUNDS.items():
        value = figures.get(name)
        if value is not None and (value > bound if how == "at most" else value < bound):
            found.append(f"{name} {value:.3f}: {how} {bound:g}")
    return found


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leaders", type=int, default=30, help="how often the leader is killed")
    parser.add_argument("--commits", type=int, default=600, help="how many changes one after another; 0: no commits")
    parser.add_argument("--seconds", type=float, default=10, help="of changes in flight")
    parser.add_argument("--idle", type=float, default=0, metavar="MINUTES", help="count elections, idle and under load")
    parser.add_argument("--directory", type=Path, help="on whose file system (default: that of temporary files)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="haclusterd-bench-", dir=options.directory) as directory:
        bench = Bench(Path(directory) / "cluster")
        try:
            bench.form()
            figures = measure(bench, options)
        finally:
            bench.cluster.sweep()
    missed = misses(figures)
    for each in missed:
        print(f"MISSED {each}")
    print(f"RESULT {' '.join(f'{name}={value:.3f}' for name, value in figures.items())} missed={len(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
