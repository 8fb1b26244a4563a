"""`make verb-storm`: random sequences of verbs with random arguments, by several clients, against live daemons.

    python -m tests.verb_storm [--seconds 1200] [--clients 4] [--seed 1]

Three daemons on this machine, with their files in memory: a disk that three nodes share makes each wait for the
others' syncs, which no three machines do. A violation is an election, a process that ends, a client that hears nothing
for half a minute, a main loop that computes for more than 100 ms without a look at what came, and a daemon that grows
without bound. The last line is for machines: RESULT name=value ...; the exit status is 1 where anything was violated.

`longest_stall_ms` is what a main loop itself computed at a time; `longest_hold_ms` is wall time, and says also how busy
the machine was.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from haclusterd.entry_points.local_cluster import LocalCluster
from haclusterd.model.records import dataclass, field
from tests.benchmarks.measured_cluster import MeasuredCluster
from tests.verb_storm.clients import Client, Tally
from tests.verb_storm.requests import AGENT

MEMORY = "/dev/shm"
FORMED_WITHIN_S = 60.0
LOOK_S = 0.5
STALL_MS_MAX = 100
MEMORY_MIB_MAX = 512
"""Of a daemon at any time, its forked images not counted; they have bounds of their own."""
START = f"property fencing-enabled=false\nprimitive svc {AGENT} op monitor interval=10s timeout=20s\n"


@dataclass
class Storm:
    """What was seen of the daemons."""

    tally: Tally = field(default_factory=Tally)
    elections: int = 0
    longest_stall_ms: int = 0
    longest_hold_ms: int = 0
    memory_mib: int = 0
    crashed: int = 0

    def violations(self) -> list[str]:
        """Return what must not be."""
        found = list(self.tally.problems)
        if self.elections:
            found.append(f"{self.elections} elections")
        if self.crashed:
            found.append(f"{self.crashed} processes ended")
        if self.longest_stall_ms > STALL_MS_MAX:
            found.append(f"a main loop computed for {self.longest_stall_ms} ms without a look at what came")
        if self.memory_mib > MEMORY_MIB_MAX:
            found.append(f"a daemon had {self.memory_mib} MiB")
        return found

    def line(self) -> str:
        """Return the last line of the run."""
        tally = self.tally
        return (
            f"RESULT sequences={tally.sequences} requests={tally.requests} answered={tally.answered} "
            f"refused={tally.refused} left={tally.left} elections={self.elections} "
            f"longest_stall_ms={self.longest_stall_ms} longest_hold_ms={self.longest_hold_ms} "
            f"memory_mib={self.memory_mib} crashed={self.crashed}"
        )


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="verb-storm", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # So that nothing is left running.
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-storm-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    cluster = LocalCluster(directory, environment={"PYTHONUNBUFFERED": "1"})
    cluster.setup()
    storm = Storm()
    try:
        _play(MeasuredCluster(cluster), storm, options.seconds, options.clients, options.seed)
    finally:
        cluster.sweep()
    violations = storm.violations()
    for each in violations:
        print(f"VIOLATION {each}")
    if violations:
        print(f"logs are kept in {directory}")
    else:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{storm.line()} seed={options.seed} violations={len(violations)}")
    return 1 if violations else 0


def _play(measured: MeasuredCluster, storm: Storm, seconds: float, clients: int, seed: int) -> None:
    cluster = measured.cluster
    measured.form(FORMED_WITHIN_S)
    started = cluster.call("n1", "configure.script", text=START, source="storm")
    assert started.exit == 0, started.reports
    _look(measured)
    measured.terms.clear()
    sockets = [node.socket for _, node in sorted(cluster.nodes.items())]
    until = time.monotonic() + seconds
    storming = [Client(number, seed, sockets, until) for number in range(clients)]
    for client in storming:
        client.start()
    while any(client.is_alive() for client in storming):
        for client in storming:
            client.join(LOOK_S / clients)
        _look(measured)
    _look(measured)
    for client in storming:
        _add(storm.tally, client.tally)
    storm.elections = max(0, len(measured.terms) - 1)
    storm.longest_stall_ms = measured.holds.main_work_ms
    storm.longest_hold_ms = measured.holds.main_ms
    processes = [each for node in cluster.nodes.values() for each in (node.brain, node.pacer) if each is not None]
    storm.crashed = sum(process.poll() is not None for process in processes)
    brains = [node.brain.pid for node in cluster.nodes.values() if node.brain is not None]
    storm.memory_mib = max(map(_most_mib, brains))


def _look(measured: MeasuredCluster) -> None:
    for name in measured.cluster.names:
        measured.status(name)


def _add(total: Tally, found: Tally) -> None:
    total.sequences += found.sequences
    total.requests += found.requests
    total.answered += found.answered
    total.refused += found.refused
    total.left += found.left
    total.problems += found.problems


def _most_mib(pid: int) -> int:
    """Return the most memory that a process has had; 0 when it is no more."""
    with suppress(OSError):
        lines: Sequence[str] = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:")), 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
