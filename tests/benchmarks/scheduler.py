"""Our scheduler beside Pacemaker's, on the same CIBs, in one run: CPU time, peak memory, how both grow.

    python -m tests.benchmarks.scheduler [--sizes 24x600p,32x1000p] [--limit 120] [--rounds 1]

Whole processes are measured, alternating: `crm_simulate -R -G` and `crm simulate --cib` read the same file, plan, and
write the whole transition. `replan` is the time of one plan in a running process that has made the plan before, after
one resource's monitor failed. The last line is for machines: RESULT name=value ...
"""

import argparse
import gc
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from haclusterd.model.records import dataclass
from tests.benchmarks.generated_cibs import Size, cold, histories_after, without_node

SIZES = ("6x150p", "12x300p", "24x600p", "32x1000p", "100x1000p", "100x1000", "100x5000")
COMPARED = frozenset({"6x150p", "12x300p", "24x600p", "32x1000p", "100x1000", "100x5000"})
"""Sizes that Pacemaker's scheduler ends in reasonable time."""
PEER = "crm_simulate"
OURS = (sys.executable, "-m", "haclusterd.entry_points.crm", "simulate", "--format", "json", "--cib")
GROWTH = (("100x1000", 1000), ("100x5000", 5000))
"""Two sizes with equally many nodes, and how many resources they have."""


@dataclass(frozen=True, slots=True)
class Run:
    """One process."""

    cpu_s: float
    memory_mib: float
    is_done: bool


def measured(command: Sequence[str], limit_s: float) -> Run:
    """Run a command to its end, or until it has used its time; count its own CPU time and memory."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = math.ceil(limit_s)
    resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds + 5))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, process.returncode == 0)


@dataclass(slots=True)
class Row:
    """One situation of one size, measured with both."""

    size: Size
    situation: str
    ours: list[Run]
    peers: list[Run]

    @property
    def ours_s(self) -> float:
        return statistics.median(run.cpu_s for run in self.ours)

    @property
    def peer_s(self) -> float | None:
        done = [run.cpu_s for run in self.peers if run.is_done]
        return statistics.median(done) if done else None

    @property
    def ratio(self) -> float | None:
        return self.ours_s / self.peer_s if self.peer_s else None

    def text(self) -> str:
        peer = f"{self.peer_s:9.2f}" if self.peer_s is not None else "        -"
        ratio = f"{self.ratio:6.2f}" if self.ratio is not None else "     -"
        memory = max(run.memory_mib for run in self.ours)
        peer_memory = f"{max(run.memory_mib for run in self.peers):7.0f}" if self.peers else "      -"
        failed = "" if all(run.is_done for run in self.ours) else "  NOT FINISHED"
        figures = f"{self.ours_s:9.2f}{peer}{ratio}{memory:8.0f}{peer_memory}"
        return f"{self.size.name:>10} {self.situation:<12}{figures}{failed}"


class Benchmark:
    """Measures one size after the other in a directory of its own."""

    def __init__(self, directory: Path, limit_s: float, rounds: int) -> None:
        self._directory = directory
        self._limit_s = limit_s
        self._rounds = rounds
        self._has_peer = shutil.which(PEER) is not None

    def situations(self, size: Size) -> list[tuple[str, Path]]:
        """Write the CIBs: nothing runs yet; all runs; a node of that is lost. The peer's plan makes the last two."""
        start = self._write(f"{size.name}.cold.xml", cold(size))
        found = [("cold start", start)]
        graph = self._directory / "graph.xml"
        if self._has_peer and not size.has_probes:
            subprocess.run((PEER, "-x", str(start), "-R", "-Q", "-G", str(graph)), check=True, capture_output=True)
            steady = cold(size, histories_after(graph.read_text()))
            found.append(("steady", self._write(f"{size.name}.steady.xml", steady)))
            found.append(("node lost", self._write(f"{size.name}.lost.xml", without_node(steady, 3))))
        return found

    def _write(self, name: str, text: str) -> Path:
        file = self._directory / name
        file.write_text(text)
        return file

    def measure(self, size: Size, situation: str, file: Path) -> Row:
        """Run both, alternating."""
        row = Row(size, situation, [], [])
        for _ in range(self._rounds):
            row.ours.append(measured((*OURS, str(file)), self._limit_s))
            if self._has_peer and size.name in COMPARED:
                peer = (PEER, "-x", str(file), "-R", "-Q", "-G", str(self._directory / "graph.xml"))
                row.peers.append(measured(peer, self._limit_s))
        return row


def replan_s(text: str) -> float:
    """Return the seconds of CPU of one plan that follows another after one event, with the cache."""
    from tests.benchmarks.replanning import replan

    return replan(text)


def read_size(text: str) -> Size:
    """Read `24x600p`."""
    nodes, _, rest = text.partition("x")
    return Size(int(nodes), int(rest.rstrip("p")), rest.endswith("p"))


def main() -> int:
    """Measure, print a table, and the result in one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(SIZES), help="as 24x600p: nodes, resources, p with probes")
    parser.add_argument("--limit", type=float, default=120, help="CPU seconds that one process may take")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    if shutil.which(PEER) is None:
        print(f"{PEER} is not installed (apt-get install pacemaker-cli-utils): only ours is measured")
    print(f"{'size':>10} {'situation':<12}{'ours s':>9}{PEER[:8]:>9}{'ratio':>6}{'MiB':>8}{'MiB':>7}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as directory:
        benchmark = Benchmark(Path(directory), arguments.limit, arguments.rounds)
        for size in map(read_size, arguments.sizes.split(",")):
            for situation, file in benchmark.situations(size):
                row = benchmark.measure(size, situation, file)
                rows.append(row)
                print(row.text(), flush=True)
                if (size.name, situation) == ("100x1000", "steady"):
                    gc.collect()
                    began = time.perf_counter()
                    seconds = replan_s(file.read_text())
                    prepared_s = time.perf_counter() - began
                    print(f"{size.name:>10} {'re-plan':<12}{seconds:9.3f}  (prepared in {prepared_s:.1f} s)")
                    rows.append(Row(size, "re-plan", [Run(seconds, 0, is_done=True)], []))
    print(_result(rows))
    return 0 if all(run.is_done for row in rows for run in row.ours) else 1


def _result(rows: Sequence[Row]) -> str:
    starts = {row.size.name: row for row in rows if row.situation == "cold start"}
    figures = {name: row.ratio for name, row in starts.items() if name in ("24x600p", "32x1000p", "100x5000")}
    words = [f"{name}={value:.2f}" for name, value in figures.items() if value is not None]
    if "100x1000p" in starts:
        words.append(f"100x1000p_s={starts['100x1000p'].ours_s:.1f}")
    if all(name in starts for name, _ in GROWTH):
        (small, few), (large, many) = GROWTH
        growth = math.log(starts[large].ours_s / starts[small].ours_s) / math.log(many / few)
        words.append(f"exponent={growth:.2f}")
    if "32x1000p" in starts and starts["32x1000p"].peers:
        row = starts["32x1000p"]
        words.append(f"memory_32x1000p={row.ours[0].memory_mib / row.peers[0].memory_mib:.2f}")
    words.extend(f"replan_s={row.ours_s:.3f}" for row in rows if row.situation == "re-plan")
    return f"RESULT {' '.join(words)}"


if __name__ == "__main__":
    sys.exit(main())
