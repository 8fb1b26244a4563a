"""Voters of the store as processes (store_node.py), ill-treated and then judged."""

import datetime as dt
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.adapters.network.certificates import create_authority, issue_certificate, write_node_credentials
from haclusterd.adapters.raft.thread import EXIT_CODE_IO_ERROR
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.ids import NodeName
from haclusterd.raft.identity import create_identity
from tests.kill_loop.private_mounts import fill, make_room, mount_small, unmount_keeping_files
from tests.kill_loop.record import Judgement, Records, judge
from tests.kill_loop.torment import Counts, ViolationError, torment, wait_for

ROOT = Path(__file__).parents[2]
UUID = "6a3bff0c-1e26-4a0e-8a4c-0d4d7b3f3a55"
ISSUED = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
RATE = 120
"""Words asked for in a second, by all clients together."""
SETTLE_S = 60.0
FULL_DISK_S = 30.0


class StoreNodes:
    """Directories, processes and faults; `Victims`."""

    def __init__(self, directory: Path, count: int) -> None:
        self.directory = directory
        self.names = tuple(f"n{number}" for number in range(1, count + 1))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.lives = dict.fromkeys(self.names, 0)
        self.small: str | None = None
        directory.mkdir(parents=True, exist_ok=True)
        self._set_up()

    def _set_up(self) -> None:
        authority = create_authority(UUID, now=ISSUED)
        addresses = {}
        for name, port in zip(self.names, free_ports("127.0.0.1", len(self.names)), strict=True):
            addresses[name] = ("127.0.0.1", port)
            credentials = issue_certificate(authority, NodeName(name), ["127.0.0.1"], now=ISSUED)
            write_node_credentials(self.directory / name, authority.certificate, credentials)
        if mount_small(self.directory / self.names[-1] / "store", "48m"):
            self.small = self.names[-1]
        for name in self.names:
            files = FilesDirectory(self.directory / name / "store")
            create_identity(files, UUID, NodeName(name))
            files.close()
        description = {
            "uuid": UUID,
            "addresses": addresses,
            "rate": RATE / len(self.names),
            "node_timeout_ms": 1000,
            "snapshot_every": 400,
        }
        (self.directory / "cluster.json").write_text(json.dumps(description))

    # Victims.

    def start(self, names: Sequence[str]) -> None:
        for name in names:
            self.lives[name] += 1
            with (self.directory / f"stderr.{name}").open("ab") as stderr:
                self.processes[name] = subprocess.Popen(
                    [
                        sys.executable, str(Path(__file__).with_name("store_node.py")), str(self.directory), name,
                        str(self.lives[name]),
                    ],
                    cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
                    stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr,
                )  # fmt: skip

    revive = start

    def kill(self, names: Sequence[str]) -> None:
        self.look_after()
        for name in names:
            self.processes[name].kill()
        for name in names:
            self.processes[name].wait()

    def pause(self, names: Sequence[str]) -> None:
        for name in names:
            self.processes[name].send_signal(signal.SIGSTOP)

    def resume(self, names: Sequence[str]) -> None:
        for name in names:
            self.processes[name].send_signal(signal.SIGCONT)

    def with_full_disk(self) -> str | None:
        return self.small

    def suffer_full_disk(self, name: str) -> None:
        store = self.directory / name / "store"
        fill(store)
        try:
            code = self.processes[name].wait(FULL_DISK_S)
        except subprocess.TimeoutExpired:
            raise ViolationError(f"{name} went on for {FULL_DISK_S:.0f} s with a full disk") from None
        finally:
            make_room(store)
        # A node that was just starting does not begin without room.
        if code != EXIT_CODE_IO_ERROR and "refused: [Errno 28]" not in self._tail(name):
            raise ViolationError(f"{name} ended with {code} when its disk was full: {self._tail(name)}")
        self.start([name])

    def look_after(self) -> None:
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise ViolationError(f"{name} ended by itself with {process.returncode}: {self._tail(name)}")

    def _tail(self, name: str) -> str:
        return (self.directory / f"stderr.{name}").read_text()[-3000:]

    # The end.

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
        if self.small is not None:
            unmount_keeping_files(self.directory / self.small / "store")

    def begin(self) -> None:
        self.start(self.names)
        records = [self.directory / f"record.{name}" for name in self.names]
        wait_for(
            "a first answer",
            lambda: any('"answer"' in record.read_text() for record in records if record.exists()), SETTLE_S, self,
        )  # fmt: skip

    def settled(self) -> list[dict[str, Any]]:
        """Let the clients end, and return the equal states of all nodes."""
        (self.directory / "STOP").touch()
        found: list[dict[str, Any]] = []

        def is_settled() -> bool:
            found[:] = [json.loads(path.read_text()) for path in self._statuses() if path.exists()]
            if len(found) < len(self.names) or any(status["waiting"] or status["tail"] for status in found):
                return False
            return len({status["applied"] for status in found}) == 1

        wait_for("all nodes to have applied the same entries", is_settled, SETTLE_S, self)
        return found

    def _statuses(self) -> list[Path]:
        return [self.directory / f"status.{name}" for name in self.names]

    def judge(self, statuses: Sequence[dict[str, Any]]) -> Judgement:
        records = Records.read(self.directory / f"record.{name}" for name in self.names)
        judgement = judge(records, statuses[0]["words"])
        states = {(status["digest"], status["register"]) for status in statuses}
        if len(states) != 1:
            judgement.is_equal = False
            judgement.problems.append(f"the nodes end with {len(states)} different states")
        return judgement


def run(directory: Path, *, nodes: int, seconds: float, seed: int) -> tuple[Counts, Judgement]:
    """Run the whole loop; raise ViolationError where no judgement is possible."""
    cluster = StoreNodes(directory, nodes)
    try:
        cluster.begin()
        counts = torment(cluster, random.Random(seed), seconds, gap_s=(0.2, 1.6))
        return counts, cluster.judge(cluster.settled())
    finally:
        cluster.stop()
