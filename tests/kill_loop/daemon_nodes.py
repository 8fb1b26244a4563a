"""Whole daemons with pacers and fencing, ill-treated while administrators change the configuration, and then judged."""

import random
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from haclusterd.adapters.raft.thread import EXIT_CODE_IO_ERROR
from haclusterd.entry_points.daemon import EXIT_REFUSED
from haclusterd.entry_points.local_cluster import LocalCluster, LocalNode
from haclusterd.model.ids import NodeName
from tests.kill_loop.daemon_clients import Administrator
from tests.kill_loop.private_mounts import fill, make_room, mount_small, unmount_keeping_files
from tests.kill_loop.record import Judgement, Records, judge
from tests.kill_loop.torment import Counts, ViolationError, torment, wait_for

CLIENTS = 6
FORM_S = 60.0
SETTLE_S = 90.0
FULL_DISK_S = 30.0
HARVEST_EVERY_S = 3.0
VERSIONS_ASKED = 1000
"""As many as a node keeps."""
SWITCHED_OFF_S = 5.0
"""After so long without power a person switches the node on again."""
KILLED = -signal.SIGKILL


class DaemonNodes:
    """Real daemons; `Victims`. A node that is fenced boots again, as after a power cycle."""

    def __init__(self, directory: Path, count: int, chance: random.Random) -> None:
        self.names = tuple(f"n{number}" for number in range(1, count + 1))
        self.directory = directory
        self.chance = chance
        self.small = self.names[-1] if mount_small(directory / self.names[-1] / "state", "64m") else None
        self.cluster = LocalCluster(directory, names=self.names, environment={"PYTHONUNBUFFERED": "1"})
        self.cluster.setup()
        self.versions: dict[int, tuple[str, str]] = {}
        """Number: reason and digest, of every version that any node has shown."""
        self.contradictions: list[str] = []
        self.fenced = 0
        self._harvest_at = 0.0
        self._off_since: dict[str, float] = {}

    def node(self, name: str) -> LocalNode:
        return self.cluster.nodes[NodeName(name)]

    def begin(self) -> None:
        self.cluster.start()
        wait_for("all nodes online", lambda: self.online() == set(self.names), FORM_S, self)
        parameters = f'nodes_dir={self.cluster.nodes_directory} pcmk_host_list="{" ".join(self.names)}"'
        power = f"primitive power stonith:fence_local params {parameters}"
        response = self.cluster.call("n1", "configure.script", text=power + "\n", source="kill loop")
        if response.exit:
            raise ViolationError(f"the fence device was refused: {response.reports}")

    # Victims.

    def kill(self, names: Sequence[str]) -> None:
        """Kill each node's daemon, or all its processes, as when its power fails."""
        self.look_after()
        for name in names:
            brain = self.node(name).brain
            if self.chance.random() < 0.7 and brain is not None:
                brain.kill()
                brain.wait()
            else:
                self.cluster.power_off(name)

    def revive(self, names: Sequence[str]) -> None:
        self.look_after()

    def pause(self, names: Sequence[str]) -> None:
        for name in names:
            self.cluster.silence(name)

    def resume(self, names: Sequence[str]) -> None:
        for name in names:
            self.cluster.resume(name)

    def with_full_disk(self) -> str | None:
        return self.small

    def suffer_full_disk(self, name: str) -> None:
        state = self.node(name).state
        brain = self.node(name).brain
        assert brain is not None
        fill(state)
        try:
            code = brain.wait(FULL_DISK_S)
        except subprocess.TimeoutExpired:
            raise ViolationError(f"{name} went on for {FULL_DISK_S:.0f} s with a full disk") from None
        finally:
            make_room(state)
        # A daemon that was just starting does not begin without room.
        if code not in (EXIT_CODE_IO_ERROR, EXIT_REFUSED, KILLED):
            raise ViolationError(f"{name} ended with {code} when its disk was full: {self._log(name)}")
        self._restart(name, EXIT_REFUSED)

    def look_after(self) -> None:
        """Be systemd and the power supply of every node; look at the versions now and then."""
        for name in self.names:
            node = self.node(name)
            if node.brain is None or node.pacer is None:
                continue
            if (self.cluster.nodes_directory / f"{name}.off").exists():
                self._wait_for_power(name)
            elif node.brain.poll() is not None or node.pacer.poll() is not None:
                self._restart(name)
        if time.monotonic() > self._harvest_at:
            self._harvest_at = time.monotonic() + HARVEST_EVERY_S
            self.harvest(self.chance.choice(self.names))

    def _wait_for_power(self, name: str) -> None:
        since = self._off_since.setdefault(name, time.monotonic())
        if time.monotonic() - since > SWITCHED_OFF_S:
            self._boot(name)

    def _restart(self, name: str, *allowed: int) -> None:
        node = self.node(name)
        assert node.brain is not None
        assert node.pacer is not None
        codes = (node.brain.poll(), node.pacer.poll())
        if codes[0] not in (None, KILLED, EXIT_CODE_IO_ERROR, *allowed) or codes[1] not in (None, KILLED):
            raise ViolationError(f"{name} ended by itself with {codes}: {self._log(name)}")
        if None not in codes and not self.cluster.processes(name):
            self._boot(name)
        elif codes[0] is not None:
            self.cluster.start_brain(name)
        elif codes[1] is not None:
            self.cluster.start_pacer(name)

    def _boot(self, name: str) -> None:
        self.cluster.power_off(name)
        self._off_since.pop(name, None)
        self.fenced += 1
        self.cluster.boot(name)
        self.cluster.start([name])

    def _log(self, name: str) -> str:
        return "\n".join((self.node(name).logs / f"{what}.log").read_text()[-2000:] for what in ("pacer", "brain"))

    # Looking.

    def ask(self, name: str, verb: str, **arguments: Any) -> Mapping[str, Any] | None:
        """Ask one node; None while it does not answer."""
        response = self.cluster.call(name, verb, **arguments)
        return response.data if response.exit == 0 and isinstance(response.data, Mapping) else None

    def online(self) -> set[str]:
        found = []
        for name in self.names:
            data = self.ask(name, "status")
            if data is not None:
                found.append({node["name"] for node in data["nodes"] if node["state"] == "online"})
        return set.intersection(*found) if len(found) == len(self.names) else set()

    def harvest(self, name: str) -> int:
        """Collect the versions that a node knows; return the newest number."""
        brain = self.node(name).brain
        if brain is None or brain.poll() is not None:
            return 0
        data = self.ask(name, "history.config", limit=VERSIONS_ASKED)
        if data is None:
            return 0
        for version in data["versions"]:
            shown = (version["reason"], version["digest"])
            known = self.versions.setdefault(version["number"], shown)
            if known != shown:
                self.contradictions.append(f"version {version['number']} is {shown} at {name}, was {known}")
        return int(data["version"])

    def settled(self) -> list[tuple[int, str]]:
        """Wait until all nodes are online and agree; return each one's version and configuration."""
        states: list[tuple[int, str]] = []

        def agrees() -> bool:
            if self.online() != set(self.names):
                return False
            shown = [self.ask(name, "configure.show", document=True, secrets=True) for name in self.names]
            states[:] = [(data["version"], data["text"]) for data in shown if data is not None]
            return len(states) == len(self.names) and len({version for version, _ in states}) == 1

        wait_for("all nodes online with the same version", agrees, SETTLE_S, self)
        newest = states[0][0]
        wait_for(
            "the histories to follow",
            lambda: all(self.harvest(name) == newest for name in self.names), SETTLE_S, self,
        )  # fmt: skip
        return states

    def stop(self) -> None:
        self.cluster.sweep()
        if self.small is not None:
            unmount_keeping_files(self.node(self.small).state)

    def judge(self, clients: Sequence[Administrator], records: Sequence[Path], newest: int) -> Judgement:
        own = {number: self.versions[number][0] for number in sorted(self.versions) if number > 1}
        missing = sorted(set(range(2, newest + 1)) - set(own))
        # A place that nobody could tell anything of is kept, so that the others stand where they stood.
        words = [own.get(number, f"unknown-{number}") for number in range(2, newest + 1)]
        judgement = judge(Records.read(records), words, first_length=1)
        judgement.blame("contradictions between versions", self.contradictions)
        judgement.blame("versions that no node kept", missing)
        position = {word: number for number, word in own.items()}
        refused = [word for client in clients for word in client.refused]
        judgement.blame("refused changes that were made", [word for word in refused if word in position])
        judgement.blame(
            "changes made to another version than the one asked for",
            [
                word
                for client in clients
                for word, version in client.conditions.items()
                if word in position and position[word] != version + 1
            ],
        )
        return judgement


def run(directory: Path, *, nodes: int, seconds: float, seed: int) -> tuple[Counts, Judgement]:
    """Run the whole loop; raise ViolationError where no judgement is possible."""
    directory.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    cluster = DaemonNodes(directory, nodes, chance)
    stopping = threading.Event()
    clients: list[Administrator] = []
    try:
        cluster.begin()
        sockets = [cluster.node(name).socket for name in cluster.names]
        records = [directory / f"record.{number}" for number in range(CLIENTS)]
        clients = [Administrator(f"a{n}", sockets, record, stopping) for n, record in enumerate(records)]
        for client in clients:
            client.start()
        counts = torment(cluster, chance, seconds, gap_s=(0.5, 3))
        stopping.set()
        for client in clients:
            client.join(60)
        states = cluster.settled()
        judgement = cluster.judge(clients, records, states[0][0])
        if len(set(states)) != 1:
            judgement.is_equal = False
            judgement.problems.append("the nodes end with different configurations")
        _tell(cluster, clients)
        return counts, judgement
    finally:
        stopping.set()
        cluster.stop()


def _tell(cluster: DaemonNodes, clients: Sequence[Administrator]) -> None:
    outcomes: dict[str, int] = {}
    for client in clients:
        for code, count in client.outcomes.items():
            outcomes[code] = outcomes.get(code, 0) + count
    answers = ", ".join(f"{count} {code or 'data'}" for code, count in sorted(outcomes.items()))
    print(f"daemons: {cluster.fenced} boots, {len(cluster.versions)} versions; answers: {answers}", flush=True)
