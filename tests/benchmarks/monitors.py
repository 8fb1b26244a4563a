"""`make bench-monitors`: hundreds of resources with frequent monitors on one node of a cluster of real daemons.

    python -m tests.benchmarks.monitors [--count 500] [--interval-s 10] [--seconds 120]

Each run of an agent is on record with its time. A monitor is due an interval after the one before has ended, so two
records of a resource are an interval apart, the run of the agent itself, and the delay: the two together are measured
here, for a resource's owner notices both. The processor time of the node's daemon, pacer and planning worker is
counted without that of the agents, which are its children.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from haclusterd.entry_points.local_cluster import LocalCluster
from haclusterd.model.records import dataclass, field
from tests.benchmarks.measured_cluster import MeasuredCluster

FORMED_WITHIN_S = 60.0
STARTED_WITHIN_S = 300.0
DELAY_MS_P99 = 1000
CORE_PERCENT = 15.0
NEVER_MS = 10**9
PROGRAMS = {"worker": b"planning_worker", "pacer": b"entry_points.pacer", "daemon": b"entry_points.haclusterd"}
TICKS = os.sysconf("SC_CLK_TCK")


def configuration(count: int, interval_s: int, directory: Path) -> str:
    """Return crm text of so many resources, all at home on n1."""
    lines = ["property fencing-enabled=false"]
    for number in range(count):
        lines += [
            f"primitive r{number} ocf:haclusterd:dummy params state={directory}/r{number} record={directory}/record "
            f"op monitor interval={interval_s}s timeout=20s op start timeout=60s op stop timeout=60s",
            f"location r{number}-home r{number} inf: n1",
        ]
    return "\n".join(lines) + "\n"


def delays_ms(record: str, interval_ms: int, since_ms: int) -> list[int]:
    """Return how much later than its interval each monitor of n1 ended after the one before, in order of size.

    `record` has a line a run: time in ms since the epoch, node, instance, action, exit code.
    """
    ended: dict[str, list[int]] = defaultdict(list)
    for line in record.splitlines():
        at, node, instance, action, _ = line.split()
        if action == "monitor" and node == "n1" and int(at) >= since_ms:
            ended[instance].append(int(at))
    return sorted(later - earlier - interval_ms for times in ended.values() for earlier, later in pairwise(times))


class Load(NamedTuple):
    """Processor time of n1 since its start, in ticks."""

    own: Mapping[tuple[str, int], int]
    """Of each process, by program and id, without its children; the planning worker is replaced now and then."""
    agents: int


def load_of(pids: Iterable[int], proc: Path = Path("/proc"), programs: Mapping[str, bytes] = PROGRAMS) -> Load:
    """Return the processor time of these processes, as far as they are one of the programs, by words of their calls.

    `proc`: where they are seen.
    """
    own: dict[tuple[str, int], int] = {}
    agents = 0
    for pid in pids:
        try:
            command = (proc / str(pid) / "cmdline").read_bytes()
            fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        name = next((name for name, word in programs.items() if word in command), "")
        if name:
            own[name, pid] = int(fields[11]) + int(fields[12])
        if name == "daemon":
            agents += int(fields[13]) + int(fields[14])
    return Load(own, agents)


@dataclass(slots=True)
class Figures:
    """What was measured."""

    count: int
    interval_s: int
    started_s: float = 0.0
    delays_ms: list[int] = field(default_factory=list)
    percent: dict[str, float] = field(default_factory=dict)
    agents_percent: float = 0.0
    is_dc: bool = False

    def used(self, before: Load, after: Load, elapsed_s: float) -> None:
        """Take in what was used of a core between two looks."""

        def percent(ticks: int) -> float:
            return 100 * ticks / TICKS / elapsed_s

        for (name, pid), ticks in after.own.items():
            self.percent[name] = self.percent.get(name, 0.0) + percent(ticks - before.own.get((name, pid), 0))
        self.agents_percent = percent(after.agents - before.agents)

    def delay_ms(self, part: int) -> int:
        """Return what so many in a hundred delays are not above."""
        late = self.delays_ms
        return late[min(len(late) - 1, len(late) * part // 100)] if late else NEVER_MS

    @property
    def is_good(self) -> bool:
        """Whether everything is within its bounds."""
        return self.delay_ms(99) <= DELAY_MS_P99 and sum(self.percent.values()) <= CORE_PERCENT

    def line(self) -> str:
        """Return the last line of the run; `load`: how many processes want a processor of this machine."""
        words = {
            "resources": self.count, "interval_s": self.interval_s, "monitors": len(self.delays_ms),
            "started_s": f"{self.started_s:.1f}",
            **{f"delay_ms_{name}": self.delay_ms(part) for name, part in (("p50", 50), ("p99", 99), ("max", 100))},
            "core_percent": f"{sum(self.percent.values()):.1f}",
            **{f"{name}_percent": f"{value:.1f}" for name, value in sorted(self.percent.items())},
            "agents_percent": f"{self.agents_percent:.1f}", "dc": int(self.is_dc), "load": f"{os.getloadavg()[0]:.1f}",
            "good": int(self.is_good),
        }  # fmt: skip
        return "RESULT " + " ".join(f"{name}={value}" for name, value in words.items())


class Bench(MeasuredCluster):
    """One cluster and its figures."""

    def __init__(self, cluster: LocalCluster, figures: Figures) -> None:
        super().__init__(cluster)
        self.figures = figures

    def start(self, text: str) -> None:
        """Load the configuration, and wait until each resource has had a monitor."""
        answer = self.cluster.call("n1", "configure.load", text=text, mode="update", format="crm")
        if answer.exit:
            raise SystemExit(f"the configuration is refused: {answer.reports}")
        began = time.monotonic()
        self.until("all to run", lambda: self._running() >= self.figures.count, STARTED_WITHIN_S)
        self.figures.started_s = time.monotonic() - began
        print(f"{self.figures.count} resources run after {self.figures.started_s:.1f} s", flush=True)
        time.sleep(self.figures.interval_s)

    def _running(self) -> int:
        return sum(1 for each in self.status("n1").get("resources", ()) if each.get("instances"))

    def _load(self) -> Load:
        return load_of(self.cluster.processes("n1"))

    def measure(self, seconds: float, record: Path) -> None:
        """Ask nothing for a while, then read what was done in it."""
        found = self.figures
        since_ms, began, before = time.time_ns() // 10**6, time.monotonic(), self._load()
        time.sleep(seconds)
        found.used(before, self._load(), time.monotonic() - began)
        found.delays_ms = delays_ms(record.read_text(), found.interval_s * 1000, since_ms)
        found.is_dc = self.status("n1").get("dc") == "n1"


def main() -> int:
    """Load, wait, measure, print; 1 when a figure is above its bound."""
    parser = argparse.ArgumentParser(prog="bench-monitors", description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--interval-s", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # So that nothing is left running.
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-monitors-"))
    cluster = LocalCluster(directory, environment={"PYTHONUNBUFFERED": "1", **dict(os.environ)})
    cluster.setup()
    bench = Bench(cluster, Figures(options.count, options.interval_s))
    try:
        bench.form(FORMED_WITHIN_S)
        bench.start(configuration(options.count, options.interval_s, directory))
        bench.measure(options.seconds, directory / "record")
    except BaseException:
        print(f"logs: {directory}", file=sys.stderr)
        raise
    finally:
        cluster.sweep()
    shutil.rmtree(directory, ignore_errors=True)
    print(bench.figures.line())
    return 0 if bench.figures.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
