"""Disks that forget what their node has promised: one that lies, a directory put back to an older copy, an emptied one.

One node at a time, so that a majority of the disks is honest. What is demanded then is in `forgetting`.
"""

import random
from collections.abc import Callable, Sequence

from haclusterd.model.ids import NodeName
from haclusterd.raft.identity import create_identity
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.forgetting import Forgetting
from haclusterd.simulator.hosts.world import MS, Life
from haclusterd.simulator.scenario import CLUSTER_UUID, Cluster

PACES_MS = ((500, 8_000), (500, 12_000), (2_000, 30_000))
"""Pauses between faults: peers that are interrupted all the time have no time to remember anything."""
CALM_SHARE = 0.8
"""Of the disks that forget do so when their peers know what the node has promised; the others whenever it may be."""
LOOK_MS = 200
LONGEST_WAIT_MS = 15_000

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]


class _ForgetfulDisk:
    """One disk that forgets: it is prepared, loses its power at some time, and has it again."""

    def __init__(
        self, cluster: Cluster, node: NodeName, *, waits_for_calm: bool, off_ms: int, change: Callable[[], object]
    ) -> None:
        """`change` is done while the power is off."""
        self._cluster = cluster
        self._node = node
        self._off_ms = off_ms
        self._change = change
        self._tries = LONGEST_WAIT_MS // LOOK_MS if waits_for_calm else 0
        self._is_over = False

    def begin(self, after_ms: int) -> None:
        """Cut the power after a while."""
        self._cluster.world.after(after_ms * MS, self._cut)

    def _cut(self) -> None:
        cluster, node = self._cluster, self._node
        if self._is_over or Forgetting.of(cluster).node != node:
            return
        if self._tries and not Forgetting.of(cluster).remembered():
            self._tries -= 1
            cluster.world.after(LOOK_MS * MS, self._cut)
            return
        cluster.power_off(node)
        self._change()
        cluster.world.after(self._off_ms * MS, lambda: cluster.power_on(node))

    def end(self) -> None:
        """Leave the disk as it is, and let it forget nothing more."""
        self._is_over = True
        self._cluster.hosts[self._node].disk.stop_lying()
        if self._node in self._cluster.names:
            self._cluster.power_on(self._node)
        Forgetting.of(self._cluster).ends(self._node)


class _Draw:
    """What chance decides about such a disk."""

    def __init__(self, chance: Chance) -> None:
        self.place = chance.random()
        self.waits_for_calm = chance.random() < CALM_SHARE
        self.after_ms = chance.randint(200, 12_000)
        self.off_ms = chance.choice((100, 1_000, 5_000))
        self.lasts_ms = self.after_ms + LONGEST_WAIT_MS + self.off_ms + 10_000


def _begin(
    cluster: Cluster, drawn: _Draw, prepare: Callable[[NodeName], Callable[[], object]]
) -> End | None:
    """Begin with a disk that can be chosen; `prepare` returns what is done while its power is off."""
    node = Forgetting.of(cluster).choose(drawn.place)
    if node is None:
        return None
    cluster.world.record(f"it is the disk of {node}")
    disk = _ForgetfulDisk(cluster, node, waits_for_calm=drawn.waits_for_calm, off_ms=drawn.off_ms, change=prepare(node))
    disk.begin(drawn.after_ms)
    return disk.end


def lying_disk(chance: Chance, _nodes: Nodes) -> Fault:
    """A disk says that it has synced and has not; then its host loses power."""
    drawn = _Draw(chance)

    def begin(cluster: Cluster) -> End | None:
        def prepare(node: NodeName) -> Callable[[], object]:
            cluster.hosts[node].disk.lies = True
            return lambda: None

        return _begin(cluster, drawn, prepare)

    return Drawn(f"a disk lies, and loses power after {drawn.after_ms} ms", begin, drawn.lasts_ms)


def older_directory(chance: Chance, _nodes: Nodes) -> Fault:
    """A directory is copied, and later its host comes back with the copy."""
    drawn = _Draw(chance)

    def begin(cluster: Cluster) -> End | None:
        def prepare(node: NodeName) -> Callable[[], object]:
            put_back = cluster.hosts[node].disk.copy()

            def change() -> None:
                put_back()
                Forgetting.of(cluster).forgets(node)

            return change

        return _begin(cluster, drawn, prepare)

    return Drawn(f"a directory is put back to what it was {drawn.after_ms} ms before", begin, drawn.lasts_ms)


def emptied_directory(chance: Chance, _nodes: Nodes) -> Fault:
    """Somebody empties a directory and sets it up again under the same name."""
    drawn = _Draw(chance)

    def begin(cluster: Cluster) -> End | None:
        def prepare(node: NodeName) -> Callable[[], object]:
            def change() -> None:
                disk = cluster.hosts[node].disk
                disk.empty()
                create_identity(disk.files(Life(cluster.world, "setup")), CLUSTER_UUID, node)
                Forgetting.of(cluster).forgets(node)

            return change

        return _begin(cluster, drawn, prepare)

    return Drawn(f"a directory is emptied and set up again after {drawn.after_ms} ms", begin, drawn.lasts_ms)


OF_DISKS: tuple[Kind[Cluster], ...] = (
    Kind("lying disk", 10, lying_disk),
    Kind("older directory", 10, older_directory),
    Kind("emptied directory", 5, emptied_directory),
)
OUTCOMES = ("a disk forgets", "recognised by peers", "recognised by itself", "replaced", "nothing was lost")
"""What comes of it; see `Forgetting`."""
