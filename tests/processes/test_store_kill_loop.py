"""Three real voters under kill -9 and SIGSTOP: nothing acknowledged is lost or doubled, and the states are equal.

KILL_LOOP_SECONDS sets the length (default 20), KILL_LOOP_SEED the order of the kills.
"""

import datetime as dt
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.certificates import create_authority, issue_certificate, write_node_credentials
from haclusterd.adapters.files_directory import FilesDirectory
from haclusterd.adapters.raft_identity import create_identity
from haclusterd.model.ids import NodeName

ROOT = Path(__file__).parents[2]
NODES = ("n1", "n2", "n3")
UUID = "6a3bff0c-1e26-4a0e-8a4c-0d4d7b3f3a55"
ISSUED = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SECONDS = float(os.environ.get("KILL_LOOP_SECONDS", "20"))
SEED = int(os.environ.get("KILL_LOOP_SEED", "1"))


class Cluster:
    """Directories, processes and kills."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.kills = 0
        self._set_up()

    def _set_up(self) -> None:
        authority = create_authority(UUID, now=ISSUED)
        addresses = {}
        with_ports = [socket.create_server(("127.0.0.1", 0)) for _ in NODES]
        for node, listener in zip(NODES, with_ports, strict=True):
            addresses[node] = listener.getsockname()
            listener.close()
            credentials = issue_certificate(authority, NodeName(node), ["127.0.0.1"], now=ISSUED)
            write_node_credentials(self.directory / node, authority.certificate, credentials)
            files = FilesDirectory(self.directory / node / "store")
            create_identity(files, UUID, NodeName(node))
            files.close()
        description = {
            "uuid": UUID,
            "addresses": addresses,
            "rate": 40,
            "node_timeout_ms": 1000,
            "snapshot_every": 200,
        }
        (self.directory / "cluster.json").write_text(json.dumps(description))

    def start(self, node: str) -> None:
        with (self.directory / f"stderr.{node}").open("ab") as stderr:
            self.processes[node] = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("store_node.py")), str(self.directory), node],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
            )

    def kill(self, nodes: list[str]) -> None:
        for node in nodes:
            assert self.processes[node].poll() is None, self.stderr(node)
            self.processes[node].kill()
            self.kills += 1
        for node in nodes:
            self.processes[node].wait()

    def stderr(self, node: str) -> str:
        return f"{node} ended by itself: {(self.directory / f'stderr.{node}').read_text()[-3000:]}"

    def stop(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def status(self, node: str) -> dict[str, object] | None:
        try:
            status: dict[str, object] = json.loads((self.directory / f"status.{node}").read_text())
        except FileNotFoundError:
            return None
        return status


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.stop()


def wait_for(what: str, condition: object, limit_s: float) -> None:
    assert callable(condition)
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def torment(cluster: Cluster, chance: random.Random) -> None:
    """Kill or stop one, two or all three nodes, and start them again."""
    fate = chance.random()
    if fate < 0.15:
        process = cluster.processes[chance.choice(NODES)]
        process.send_signal(signal.SIGSTOP)
        time.sleep(chance.uniform(0.2, 2))
        process.send_signal(signal.SIGCONT)
        return
    count = 1 if fate < 0.7 else 2 if fate < 0.85 else 3
    victims = chance.sample(NODES, count)
    cluster.kill(victims)
    time.sleep(chance.uniform(0, 0.6))
    for node in victims:
        cluster.start(node)


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(SECONDS + 100)
def test_kill_loop_loses_nothing(cluster: Cluster) -> None:
    chance = random.Random(SEED)
    for node in NODES:
        cluster.start(node)
    ops = [cluster.directory / f"ops.{node}" for node in NODES]
    wait_for("a first acknowledgement", lambda: any("ACK" in f.read_text() for f in ops if f.exists()), 20)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.3, 2))
        torment(cluster, chance)
    (cluster.directory / "STOP").touch()

    def is_settled() -> bool:
        statuses = [cluster.status(node) for node in NODES]
        known = [status for status in statuses if status is not None]
        if len(known) < len(NODES) or any(status["waiting"] or status["tail"] for status in known):
            return False
        return len({(status["applied"], status["digest"]) for status in known}) == 1

    wait_for("equal states on all nodes", is_settled, 40)
    for node in NODES:
        assert cluster.processes[node].poll() is None, cluster.stderr(node)
    check_history(cluster)


def check_history(cluster: Cluster) -> None:
    """Compare what clients were told with the list all nodes agree on."""
    status = cluster.status(NODES[0])
    assert status is not None
    words = status["words"]
    assert isinstance(words, list)
    position = {word: index for index, word in enumerate(words)}
    assert len(position) == len(words), "a word stands twice"
    asked: dict[str, int] = {}
    acknowledged: dict[str, int] = {}
    for node in NODES:
        for line in (cluster.directory / f"ops.{node}").read_text().splitlines():
            kind, word, moment = line.split()[:3]
            (asked if kind == "INV" else acknowledged)[word] = int(moment)
    lost = [word for word in acknowledged if word not in position]
    print(f"\n{cluster.kills} kills, {len(asked)} asked, {len(acknowledged)} acknowledged, {len(lost)} lost")
    assert not lost
    assert len(acknowledged) > 20 * SECONDS / 2
    # What was acknowledged before another word was asked for stands before it.
    acks = sorted((moment, position[word]) for word, moment in acknowledged.items())
    newest, done = -1, 0
    for moment, word in sorted((asked[word], word) for word in acknowledged):
        while done < len(acks) and acks[done][0] < moment:
            newest = max(newest, acks[done][1])
            done += 1
        assert position[word] > newest, f"{word} overtook what was acknowledged before"
