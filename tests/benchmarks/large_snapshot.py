"""`make bench-snapshot`: a state of many MiB is written as a snapshot, and installed on a voter that lags.

    python -m tests.benchmarks.large_snapshot [--mib 16]

Three real daemons begin with the state: thousands of templates, which nobody probes. One is switched off while the
others go on until each has taken a snapshot and dropped from its log what that one lacks; then it is started again.
Measured are the longest holds of main loops and Raft threads and the longest time between two heartbeats of the leader,
of the taking by the two and of the installing by all three. Any election, and a main loop that computes for too long,
is a violation.
"""

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from haclusterd.adapters.control.client import ControlClient
from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.cib.codec import encode_cib
from haclusterd.entry_points.local_cluster import LocalCluster, LocalNode
from haclusterd.model.cluster import Cib, ConfigurationVersion
from haclusterd.model.configuration import AttributeSet, Configuration, Operation, Template
from haclusterd.model.ids import AgentReference, NodeName, ResourceId, Term
from haclusterd.model.requests import Options, Request
from haclusterd.raft.journal import create_journal
from haclusterd.raft.recovery import INITIAL_INDEX
from haclusterd.raft.settings import RaftSettings, RaftTimers
from haclusterd.raft.snapshot import SNAPSHOT_NAME, Snapshot, index_of, write_snapshot
from haclusterd.runtime.settings import CONFIGURATION_FILE, load
from tests.benchmarks.holds import MAIN_WORK_MS
from tests.benchmarks.measured_cluster import MeasuredCluster

_RESTORED = re.compile(r"store\.restored index=(\d+)")

TEMPLATE_BYTES = 454
"""What one takes in the encoded state."""
ASKERS = 8
WAIT_S_MAX = 120.0
NODE_TIMEOUT_MS = 2000
LAGGING = "n3"


def state(mib: int) -> Cib:
    """Return a state of so many MiB, in pieces as small as those of most clusters."""
    templates: dict[ResourceId, Template] = {}
    for number in range(mib * 2**20 // TEMPLATE_BYTES):
        name = ResourceId(f"template-{number:06d}")
        parameters = AttributeSet(f"{name}-instance_attributes", (("state", f"/run/{name}"), ("size", str(number))))
        meta = AttributeSet(f"{name}-meta_attributes", (("target-role", "Stopped"),))
        monitor = Operation(f"{name}-monitor-60s", "monitor", 60_000, 20_000)
        agent = AgentReference("ocf", "haclusterd", "dummy")
        templates[name] = Template(name, agent, (parameters,), (meta,), operations=(monitor,))
    properties = AttributeSet("cib-bootstrap-options", (("fencing-enabled", "false"),))
    configuration = Configuration(properties=(properties,), templates=templates)
    return Cib(configuration=configuration, version=ConfigurationVersion(1, "bench"), index=INITIAL_INDEX)


def give(node: LocalNode, data: bytes) -> None:
    """Let a node begin with an encoded state."""
    installation = load(node.bundle / CONFIGURATION_FILE)
    files = FilesDirectory(node.state)
    create_journal(files, installation.cluster_uuid, installation.node)
    write_snapshot(files, Snapshot(INITIAL_INDEX, Term(0), data), installation.cluster_uuid)
    files.close()


class Bench(MeasuredCluster):
    """One cluster, whose log is made long enough for a snapshot, and its voter that lags."""

    def snapshot_index(self, name: str) -> int:
        """Return where a node's snapshot ends."""
        with open(self.cluster.nodes[NodeName(name)].state / SNAPSHOT_NAME, "rb") as stream:
            return index_of(stream.read(256))

    def fill_log(self) -> None:
        """Have entries applied that mean nothing, until two snapshots were taken."""
        limits = RaftSettings("", NodeName("n1"), (NodeName("n1"),), timers=RaftTimers.derive(NODE_TIMEOUT_MS))
        count = 2 * limits.snapshot_every + limits.retained_entries
        socket = str(self.cluster.nodes[NodeName("n1")].socket)

        def ask(number: int) -> None:
            client = ControlClient(socket)
            try:
                for serial in range(number, count, ASKERS):
                    client.call(Request(str(serial), "status", {}, Options(is_consistent=True)), lambda _: None)
            finally:
                client.close()

        before = {name: self.snapshot_index(name) for name in ("n1", "n2")}
        with ThreadPoolExecutor(ASKERS) as pool:
            list(pool.map(ask, range(ASKERS)))

        def are_taken() -> bool:
            far = count - limits.snapshot_every
            return all(self.snapshot_index(name) >= index + far for name, index in before.items())

        self.until("the snapshots", are_taken, WAIT_S_MAX)

    def start_lagging(self) -> float:
        """Start the node that lags; return after how many seconds it is online."""
        self.cluster.boot(LAGGING)
        began = time.monotonic()
        self.cluster.start([LAGGING])
        log = self.cluster.nodes[NodeName(LAGGING)].logs / "brain.log"

        def is_installed() -> bool:
            self.status("n1")
            return any(int(index) > INITIAL_INDEX for index in _RESTORED.findall(log.read_text()))

        self.until("the snapshot on the node that lags", is_installed, WAIT_S_MAX)

        def is_online() -> bool:
            nodes = self.status(LAGGING).get("nodes", ())
            return {node["name"] for node in nodes if node["state"] == "online"} == set(self.cluster.names)

        self.until("the node that lags online", is_online, WAIT_S_MAX)
        return time.monotonic() - began


def run(cluster: LocalCluster, mib: int) -> tuple[str, list[str]]:
    """Return the figures, as words of the RESULT line, and what must not be."""
    cluster.setup()
    data = encode_cib(state(mib))
    for node in cluster.nodes.values():
        give(node, data)
    bench = Bench(cluster)
    bench.form(WAIT_S_MAX)
    print(f"formed with {len(data) / 2**20:.1f} MiB", flush=True)
    cluster.power_off(LAGGING)
    bench.terms.clear()
    bench.fill_log()
    for name in ("n1", "n2"):
        bench.status(name)
    taken = bench.holds
    print(f"two snapshots were taken: {taken.words('taken')}", flush=True)
    install_s = bench.start_lagging()
    for name in cluster.names:
        bench.status(name)
    violations = []
    if len(bench.terms) != 1:
        violations.append(f"terms {sorted(bench.terms)}")
    if bench.holds.main_work_ms > MAIN_WORK_MS:
        violations.append(f"a main loop computed for {bench.holds.main_work_ms} ms without a look at what came")
    figures = (
        f"mib={len(data) / 2**20:.1f} elections={len(bench.terms) - 1} install_s={install_s:.1f} "
        f"{taken.words('taken')} {bench.holds.words('installed')}"
    )
    return figures, violations


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="bench-snapshot", description=__doc__)
    parser.add_argument("--mib", type=int, default=16)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # So that nothing is left running.
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-snapshot-"))
    cluster = LocalCluster(directory, environment={"PYTHONUNBUFFERED": "1", **dict(os.environ)})
    try:
        figures, violations = run(cluster, options.mib)
    except BaseException:
        print(f"logs: {directory}", file=sys.stderr)
        print("RESULT incomplete=1")
        raise
    finally:
        cluster.sweep()
    shutil.rmtree(directory, ignore_errors=True)
    for each in violations:
        print(f"violation: {each}")
    print(f"RESULT {figures} violations={len(violations)}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
