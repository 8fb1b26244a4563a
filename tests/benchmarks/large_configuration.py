"""`make bench-large`: thousands of resources loaded into a cluster of three real daemons on this machine.

    python -m tests.benchmarks.large_configuration [--count 5000] [--started 100] [--probe-s 600]

Every resource has a monitor; some are to run, the others are to be stopped, and all are probed everywhere. Measured are
the load, the show, and until the last probe and start: elections, and the longest time for which a main loop or a Raft
thread was held up by its own work, as the daemons tell. Any election, and a leader that changes, is a violation.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from haclusterd.entry_points.local_cluster import LocalCluster
from haclusterd.model.records import dataclass, field
from tests.benchmarks.holds import MAIN_WORK_MS, Holds
from tests.benchmarks.measured_cluster import MeasuredCluster

SHOWN_WITHIN_S = 10.0
FORMED_WITHIN_S = 60.0


def configuration(count: int, started: int, directory: Path) -> str:
    """Return crm text of so many resources, of which the first ones are to run."""
    lines = ["property fencing-enabled=false"]
    for number in range(count):
        role = "Started" if number < started else "Stopped"
        lines.append(
            f"primitive r{number} ocf:haclusterd:dummy params state={directory}/r{number} "
            f"meta target-role={role} op monitor interval=60s timeout=20s"
        )
    return "\n".join(lines) + "\n"


@dataclass
class Figures:
    """What was measured."""

    load_s: float = 0.0
    show_s: float = 0.0
    settled_s: float = 0.0
    terms: set[int] = field(default_factory=set)
    load: Holds = Holds()
    """Until all is shown everywhere."""
    settling: Holds = Holds()
    """Likewise, and until all is probed."""
    worker_pss_mib: int = 0
    brain_pss_mib: int = 0
    is_shown_everywhere: bool = False

    def line(self, count: int) -> str:
        """Return the last line of the run."""
        return (
            f"RESULT resources={count} load_s={self.load_s:.1f} show_s={self.show_s:.1f} "
            f"settled_s={self.settled_s:.1f} elections={len(self.terms) - 1} "
            f"{self.load.words('load')} {self.settling.words('settling')} "
            f"brain_pss_mib={self.brain_pss_mib} worker_pss_mib={self.worker_pss_mib}"
        )

    def violations(self) -> list[str]:
        """Return what must not be."""
        found = []
        if len(self.terms) != 1:
            found.append(f"terms {sorted(self.terms)}")
        if self.load_s + self.show_s >= SHOWN_WITHIN_S:
            found.append(f"shown after {self.load_s + self.show_s:.1f} s")
        if not self.is_shown_everywhere:
            found.append("not shown whole on every node")
        if self.load.main_work_ms > MAIN_WORK_MS:
            found.append(f"the main loop computed for {self.load.main_work_ms} ms without a look at what came")
        return found


class Bench(MeasuredCluster):
    """One cluster and its figures."""

    def __init__(self, cluster: LocalCluster) -> None:
        super().__init__(cluster)
        self.figures = Figures(terms=self.terms)

    def crm(self, *words: str) -> str:
        """Run crm on n1."""
        node = self.cluster.nodes["n1"]
        arguments = [sys.executable, "-m", "haclusterd.entry_points.crm", "--socket", str(node.socket), *words]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"crm {' '.join(words)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def load(self, count: int, started: int, directory: Path) -> None:
        """Load the configuration, and show it on another node."""
        script = directory / "large.crm"
        script.write_text(configuration(count, started, directory))
        began = time.monotonic()
        self.crm("configure", "load", "update", str(script))
        self.figures.load_s = time.monotonic() - began
        began = time.monotonic()
        shown = 0
        while shown < count and time.monotonic() - began < 60:
            data = self.cluster.call("n2", "configure.show").data
            assert isinstance(data, Mapping)
            shown = str(data["text"]).count("primitive r")
        self.figures.show_s = time.monotonic() - began
        texts = []
        for name in self.cluster.names:
            data = self.cluster.call(name, "configure.show").data
            texts.append(str(data["text"]) if isinstance(data, Mapping) else "")
        for name in self.cluster.names:
            self.status(name)
        self.figures.load = self.holds
        self.figures.is_shown_everywhere = len(set(texts)) == 1 and texts[0].count("primitive r") == count

    def settle(self, started: int, wait_s_max: float) -> None:
        """Wait until all is probed and what is to run runs."""
        began = time.monotonic()
        last_shown = [0.0]

        def is_settled() -> bool:
            statuses = [self.status(name) for name in self.cluster.names]
            self.figures.settling = self.holds
            running = sum(1 for each in statuses[0].get("resources", ()) if each.get("instances"))
            progress = next((each["transition"] for each in statuses if each.get("transition")), None)
            if time.monotonic() - last_shown[0] > 10:
                last_shown[0] = time.monotonic()
                print(f"{last_shown[0] - began:.0f} s: transition {progress}, {running} running", flush=True)
            orders = sum(len(each.get("orders", ())) for each in statuses[:1])
            return progress is None and orders == 0 and running >= started

        self.until("everything probed and started", is_settled, wait_s_max)
        self.figures.settled_s = time.monotonic() - began

    def weigh(self) -> None:
        """Measure the DC's memory."""
        dc = str(self.status("n1")["dc"])
        for pid in self.cluster.processes(dc):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"planning_worker" in command:
                self.figures.worker_pss_mib = _pss_mib(pid)
            elif b"entry_points.haclusterd" in command:
                self.figures.brain_pss_mib = _pss_mib(pid)


def _pss_mib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) // 1024
    return 0


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="bench-large", description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--started", type=int, default=100)
    parser.add_argument("--probe-s", type=float, default=900.0)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # So that nothing is left running.
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-large-"))
    cluster = LocalCluster(directory, environment={"PYTHONUNBUFFERED": "1", **dict(os.environ)})
    cluster.setup()
    bench = Bench(cluster)
    try:
        bench.form(FORMED_WITHIN_S)
        bench.terms.clear()
        bench.load(options.count, options.started, directory)
        print(f"loaded in {bench.figures.load_s:.1f} s, shown in {bench.figures.show_s:.1f} s", flush=True)
        bench.settle(options.started, options.probe_s)
        bench.weigh()
    except BaseException:
        print(f"logs: {directory}", file=sys.stderr)
        print(bench.figures.line(options.count) + " incomplete=1")
        raise
    finally:
        cluster.sweep()
    shutil.rmtree(directory, ignore_errors=True)
    violations = bench.figures.violations()
    for each in violations:
        print(f"violation: {each}")
    print(bench.figures.line(options.count) + f" violations={len(violations)}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
