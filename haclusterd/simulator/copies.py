"""A copy of a machine beside the first one: the same directory, certificate and name, another boot and address.

Where only the disk was copied, the machine is another one and shows it: the copy does not start, though nobody may
hear the first one, until a person says that it is the node. Where the whole machine was copied, nothing but its boot
tells it apart: as long as the first one is heard, or every voter has found out which of the two the copy is, the copy
stays outside.
Where the first one was not heard before that, the copy is taken for it, started again (docs/design/safety.md §10):
whatever comes of that is excused. A copy that takes the place of a machine that is off is switched off when it joins.
What it has promised by then the first one does not know: where that is refused, a person replaces it. That is demanded
as long as all who may remember it are there when the first one returns.
"""

from haclusterd.cib.commands import Join
from haclusterd.model.ids import NodeName
from haclusterd.simulator.brain import BrainProcess
from haclusterd.simulator.checks.checker import Accepted, Checker
from haclusterd.simulator.forgetting import peers_are_there
from haclusterd.simulator.hosts.hosts import Host
from haclusterd.simulator.members import MemberChanges
from haclusterd.simulator.scenario import Cluster


class MachineCopies(Checker):
    """A copy never joins while the boot that has joined continues, unless that boot was not heard."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, cluster.checkers.log)
        self._cluster = cluster
        self._copy: Host | None = None
        """One at a time."""
        self._count = 0
        self._knowing: dict[NodeName, BrainProcess] = {}
        """Voters that know the copy for what it is, each with the life of its daemon that has found out."""
        self._unheard = ""
        """Why nothing is demanded of the copy that is there now."""
        self.excuse = ""
        self._outdone: set[NodeName] = set()
        """Nodes in whose place a copy has talked to others."""
        self._awaited: set[NodeName] = set()
        """Those of them that have not joined since."""
        self._is_foreign = False
        """Whether the copy that is there now must not start at all."""
        self._has_refused = False
        """Whether it was seen that it does not."""

    @classmethod
    def of(cls, cluster: Cluster) -> "MachineCopies":
        """Return the cluster's own, which looks on from the first time that it is asked for."""
        return cluster.checkers.one(cls, lambda: cls(cluster))

    def make(self, place: float, *, is_whole: bool) -> Host | None:
        """Copy the disk of a member that has power, into a machine that is off; `place` is a share of the members.

        `is_whole`: the machine is copied too, and its firmware says that it is the first one.

        Never that of the first one, which clients write about: a member that has a copy may have to be replaced.
        """
        cluster = self._cluster
        members, hosts = set(cluster.cib.members), cluster.hosts
        names = [name for name in cluster.names[1:] if name in members and hosts[name].is_powered]
        if self._copy is not None or not names or members != set(cluster.names):
            return None
        node = names[int(place * len(names))]
        first = cluster.hosts[node]
        if first.disk.is_damaged:
            return None
        self._count += 1
        self._copy = copy = cluster.add_copy(node, NodeName(f"{node}-copy-{self._count}"))
        first.disk.copy_to(copy.disk)
        if is_whole:
            copy.marks = first.marks
        # A disk may be copied before its daemon has started for the first time.
        self._is_foreign = cluster.is_foreign(copy)
        return copy

    def begin(self, copy: Host) -> None:
        """Give the copy power."""
        self._knowing.clear()
        self._unheard = ""
        self._has_refused = False
        copy.power_on()
        self._look(copy)
        self._cluster.coverage.count("copy", "began")

    def say_it_is_the_node(self, copy: Host) -> None:
        """A person says so of a copy that does not start, while the first machine is off."""
        cluster = self._cluster
        first = cluster.hosts[copy.node]
        if self._copy is not copy or not self._is_foreign or not copy.is_powered or first.is_powered:
            return
        self._is_foreign = False
        cluster.world.record(f"a person says that {copy.name} is {copy.node}")
        cluster.coverage.count("copy", "a person says that it is the node")
        cluster.say_it_is(copy)

    def end(self, copy: Host) -> None:
        """Switch it off for good."""
        copy.power_off()
        if self._copy is copy:
            self._copy = None

    def looked_at(self, node: NodeName) -> None:
        """See `Checker`."""
        process = self._cluster.hosts[node].brain.process
        if node in self._outdone and isinstance(process, BrainProcess) and process.refusal:
            self._cluster.world.record(f"a person replaces {node}: {process.refusal}")
            self._cluster.coverage.count("copy", "the first one is refused")
            self._outdone.discard(node)
            self._awaited.discard(node)
            MemberChanges(self._cluster).replace(node)
            return
        is_back = node in self._awaited and self._cluster.hosts[node].is_powered
        if is_back and not peers_are_there(self._cluster, node):
            self.excuse = self.excuse or f"a peer was not there when {node} came back"
        copy = self._copy
        if copy is not None and copy.node == node and copy.is_powered:
            self._look(copy)

    def _look(self, copy: Host) -> None:
        cluster, node = self._cluster, copy.node
        if self._is_foreign:
            self._look_at_foreign(copy)
            return
        if cluster.streams.has_session(copy.name):
            self._outdone.add(node)
            self._awaited.add(node)
        voters = [name for name in cluster.cib.voters() if name != node]
        for voter in voters:
            process = cluster.hosts[voter].brain.process
            if isinstance(process, BrainProcess) and process.life.is_alive and voter not in self._knowing:
                now = process.runtime.ports.clock.now()
                if any(f"copy of {node}" in text for text in process.runtime.copied_nodes.warnings(now)):
                    self._knowing[voter] = process
                    cluster.coverage.count("copy", "recognised")
        for voter, knowing in list(self._knowing.items()):
            if cluster.hosts[voter].brain.process is not knowing:
                del self._knowing[voter]
        if not self._unheard and not self._is_heard(node, voters) and not set(voters) <= set(self._knowing):
            self._unheard = f"{node} was not heard when not all voters knew its copy"
        if self._unheard and cluster.hosts[node].is_powered and cluster.streams.has_session(copy.name):
            # It votes in the first one's place, while that votes too.
            self.excuse = self.excuse or self._unheard

    def _look_at_foreign(self, copy: Host) -> None:
        if self._cluster.streams.has_session(copy.name):
            self.object_to(f"{copy.name} talks as {copy.node}, with the data of another machine")
        process = copy.brain.process
        if isinstance(process, BrainProcess) and process.refusal and not self._has_refused:
            self._has_refused = True
            self._cluster.coverage.count("copy", "does not start on another machine")

    def _is_heard(self, node: NodeName, voters: list[NodeName]) -> bool:
        cluster = self._cluster
        return cluster.hosts[node].calm_us() >= 0 and all(cluster.network.calm_us(node, each) >= 0 for each in voters)

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command, copy = accepted.command, self._copy
        if not isinstance(command, Join):
            return
        if self.scene.incarnation_at(command.node) == command.incarnation:
            self._awaited.discard(command.node)
        if copy is None or copy.boot is None:
            return
        if command.incarnation.boot_id != copy.boot.boot_id:
            return
        known = accepted.before.status.nodes[command.node].incarnation
        if known is not None and self.scene.boot_runs(command.node, known.boot_id):
            if not self._unheard:
                self.object_to(f"{copy.name} joins as {command.node}, whose boot {known.boot_id} goes on")
            self.excuse = self.excuse or self._unheard
        self._cluster.coverage.count("copy", "came in the place of a machine that was off")
        self._cluster.world.after(0, copy.power_off)
