"""What is demanded of a node whose disk has forgotten, and when nothing can be.

A disk that lies, a directory put back to an older copy and one that was emptied take back what the node has promised,
which Raft does not allow. The node's peers remember its promises (`raft.promises`), so it must be recognised
before it takes part, as long as they are there: that is demanded. Where one of them was away, or had no time to write
down what it saw, an entry may be lost that was acknowledged (docs/design/0002-store.md, "A directory that was put
back"), and whatever comes of that is excused.
"""

from collections import deque

from haclusterd.cib.commands import Join
from haclusterd.model.ids import NodeName
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError
from haclusterd.raft.journal import FIRST_INDEX, JOURNAL_NAME, read_journal
from haclusterd.raft.snapshot import load_snapshot
from haclusterd.simulator.brain import BrainProcess
from haclusterd.simulator.checks.checker import Accepted, Checker
from haclusterd.simulator.hosts.world import MS, SECOND, Life
from haclusterd.simulator.members import MemberChanges
from haclusterd.simulator.scenario import CLUSTER_UUID, Cluster

REMEMBERED_US = 3 * SECOND
"""After so long without a disturbance every peer has on its disk what the others showed it."""
SHOWN_US = 1500 * MS
"""So long after a node has applied an entry its leader has the acknowledgement."""
SETTLED_US = SECOND
"""So long after its start a peer has linked with everybody."""
HANGING_US = 50 * MS
REMEDY = "crm cluster remove"
ASK_EVERY_MS = 500

Promise = tuple[int, int]
"""A term, and an index up to which the log was held."""


class Forgetting(Checker):
    """A node that has forgotten what its peers remember does not join, unless one of them was not there to say so."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, cluster.checkers.log)
        self._cluster = cluster
        self.node: NodeName | None = None
        """Whose disk forgets, or is about to; one at a time."""
        self.excuse = ""
        """Why Raft could not bear what came; empty: everything is demanded."""
        self._calm_since_us: int | None = None
        self._samples: deque[tuple[int, Promise]] = deque()
        self._promised: Promise = (0, 0)
        """What every peer must know of it."""
        self._is_back_older = False
        """Its data was taken back, and it has neither joined nor been refused since."""
        self._has_forgotten = False
        """What it has now is less than what peers must know."""

    @classmethod
    def of(cls, cluster: Cluster) -> "Forgetting":
        """Return the cluster's own, which looks on from the first time that it is asked for."""
        return cluster.checkers.one(cls, lambda: cls(cluster))

    def choose(self, place: float) -> NodeName | None:
        """Choose a voter whose disk shall forget, never the first, which clients write about; `place` is a share."""
        cluster = self._cluster
        voters = cluster.cib.voters()
        others = [name for name in cluster.names[1:] if name in voters and not cluster.hosts[name].disk.is_damaged]
        is_settled = set(cluster.cib.members) == set(cluster.names)
        if self.node is not None or not others or not is_settled or len(voters) < 3:
            return None
        node = others[int(place * len(others))]
        self.node = node
        self._calm_since_us = None
        self._samples.clear()
        self._promised = (0, 0)
        self._is_back_older = self._has_forgotten = False
        cluster.hosts[node].disk.when_it_forgets = lambda: self.forgets(node)
        return node

    def remembered(self) -> bool:
        """Tell whether all peers know now what the node has promised until just now."""
        return self._calm_since_us is not None and self._cluster.world.now_us - self._calm_since_us >= REMEMBERED_US

    def forgets(self, node: NodeName) -> None:
        """The disk of a node that is off has forgotten what it may have promised."""
        if node != self.node:
            return
        cluster = self._cluster
        held = self._held(node)
        self._has_forgotten = held is None or held[0] < self._promised[0] or held[1] < self._promised[1]
        self._is_back_older = True
        cluster.world.record(f"{node} has forgotten: it held {self._promised}, now {held}")
        if not self.remembered():
            self._excuse("not all peers know what it has promised")
        cluster.coverage.count("forgetting", "a disk forgets")

    def ends(self, node: NodeName) -> None:
        """The disk of a node forgets nothing any more."""
        self._cluster.hosts[node].disk.when_it_forgets = None
        if self.node == node and not self._is_back_older:
            self.node = None

    def looked_at(self, node: NodeName) -> None:
        """See `Checker`."""
        if node != self.node:
            return
        now_us = self._cluster.world.now_us
        process = self._cluster.hosts[node].brain.process
        if isinstance(process, BrainProcess) and process.refusal:
            self._refused(node, process.refusal)
        elif self._is_back_older:
            if self._cluster.hosts[node].is_powered and not peers_are_there(self._cluster, node):
                self._excuse("a peer was not there when it came back")
        elif not self._is_calm(node):
            self._calm_since_us = None
        else:
            self._calm_since_us = now_us if self._calm_since_us is None else self._calm_since_us
            self._sample(process, now_us)

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if not isinstance(command, Join) or command.node != self.node or not self._is_back_older:
            return
        if self.scene.incarnation_at(command.node) != command.incarnation:
            return
        if self._has_forgotten and not self.excuse:
            self.object_to(f"{command.node} joins, and has forgotten what it promised: {self._promised}")
        if not self._has_forgotten:
            self._cluster.coverage.count("forgetting", "nothing was lost")
        self._is_back_older = False
        disk = self._cluster.hosts[command.node].disk
        disk.when_it_forgets = None
        # Nobody looks at what it forgets from here on.
        disk.stop_lying()
        self.node = None

    def _refused(self, node: NodeName, why: str) -> None:
        """The node has ended for good: a person makes a new one of the machine, as the text says."""
        cluster = self._cluster
        if REMEDY not in why:
            self.object_to(f"{node} ended for good, and does not say what to do: {why}")
        by = "recognised by peers" if "remembers it" in why else "recognised by itself"
        cluster.coverage.count("forgetting", by)
        cluster.world.record(f"a person replaces {node}")
        self.node = None
        cluster.hosts[node].disk.when_it_forgets = None
        MemberChanges(cluster).replace(node)
        cluster.coverage.count("forgetting", "replaced")

    def _excuse(self, why: str) -> None:
        if not self.excuse:
            self._cluster.world.record(f"{self.node} is excused: {why}")
            self.excuse = why

    def _sample(self, process: object, now_us: int) -> None:
        """Remember what the node holds now; what it held a while ago is known to its peers by now."""
        if not isinstance(process, BrainProcess) or process.shown is None or not self.remembered():
            return
        self._samples.append((now_us, (process.raft.core.status().term, process.shown.index)))
        while self._samples and now_us - self._samples[0][0] >= SHOWN_US:
            term, index = self._samples.popleft()[1]
            self._promised = max(self._promised[0], term), max(self._promised[1], index)

    def _is_calm(self, node: NodeName) -> bool:
        """Tell whether nothing is wrong between the node and its peers, nor with their disks."""
        host = self._cluster.hosts[node]
        return host.calm_us() >= 0 and host.disk.sync_us[1] < HANGING_US and peers_are_there(self._cluster, node)

    def _held(self, node: NodeName) -> Promise | None:
        """Return what the medium holds; None when the node must see by itself that it is not whole."""
        files = self._cluster.hosts[node].disk.files(Life(self._cluster.world, "a look at the medium"))
        try:
            snapshot = load_snapshot(files, CLUSTER_UUID)
            if files.read(JOURNAL_NAME) is None:
                return (0, FIRST_INDEX)
            ending = None if snapshot is None else (snapshot.index, int(snapshot.term))
            content = read_journal(files, CLUSTER_UUID, node, ending)
        except (StoreDamagedError, StoreRefusedError):
            return None
        return content.term, content.entries[-1][1]


def peers_are_there(cluster: Cluster, node: NodeName) -> bool:
    """Tell whether all peers of a node run and hear each other, and nothing is between them and the node."""
    hosts, network = cluster.hosts, cluster.network
    peers = [name for name in cluster.cib.voters() if name != node]
    for place, one in enumerate(peers):
        disk = hosts[one].disk
        if hosts[one].calm_us() < SETTLED_US or disk.sync_us[1] >= HANGING_US or disk.is_full or disk.fails_syncs:
            return False
        if any(network.calm_us(one, other) < 0 for other in (node, *peers[place + 1 :])):
            return False
    return True
