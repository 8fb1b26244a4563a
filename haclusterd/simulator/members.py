"""An administrator who changes who belongs to the cluster, and asks again until it is so.

Nothing here waits: each change is pursued in simulated time, whatever faults the cluster meets meanwhile.
"""

from collections.abc import Callable

from haclusterd.cib.commands import ChangeConfiguration, ChangeMembers, Command, Retire
from haclusterd.model.cluster import Cib, Member, NodeState
from haclusterd.model.ids import NodeName
from haclusterd.model.records import replace
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

ASK_EVERY_MS = 700
CONFIRM_AFTER_MS = 20_000
"""How long a person who gave a machine away waits for its fencing before confirming that it is off."""
AUTHOR = "scenario"


class MemberChanges:
    """Adds and drops members of a simulated cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def add(self, *, wants_vote: bool = True) -> NodeName:
        """Bring a machine and make it a member; return its name at once."""
        cluster = self._cluster
        name = cluster.add_host()
        own = replace(cluster.member_of(name), wants_vote=wants_vote)
        cluster.hosts[name].power_on()
        self._pursue(lambda cib: name in cib.members, lambda cib: changed(cib, own))
        self._pursue(self._is_covered, self._cover)
        return name

    def drop(self, node: str) -> None:
        """Switch a machine off for good, and remove it from the members once that is safe."""
        cluster, name = self._cluster, NodeName(node)
        cluster.forget_host(name)
        cluster.hosts[name].brain.disable()
        cluster.power_off(name)
        confirm_at_ms = cluster.world.now_ms + CONFIRM_AFTER_MS

        def next_step(cib: Cib) -> Command | None:
            nonlocal confirm_at_ms
            status = cib.status.nodes[name]
            if status.state is NodeState.LOST and cluster.world.now_ms >= confirm_at_ms:
                # Nothing fences it while nothing in the whole cluster is managed (safety.md §4).
                confirm_at_ms += CONFIRM_AFTER_MS
                ask(cluster, "fencing.confirm", {"node": name, "has_checked": True})
            if status.is_retired:
                return changed(cib, drop=name)
            return Retire(name, AUTHOR) if status.state in (NodeState.LEFT, NodeState.FENCED) else None

        self._pursue(lambda cib: name not in cib.status.nodes, next_step)

    def replace(self, node: str) -> NodeName:
        """Drop a machine whose daemon has ended for good, and bring another one; return its name at once."""
        self.drop(node)
        return self.add()

    def _is_covered(self, cib: Cib) -> bool:
        device = cib.configuration.resources.get(configurations.DEVICE)
        return device is None or device == configurations.device(self._listed(cib)).resource

    def _cover(self, cib: Cib) -> Command:
        """Let the power switch know the newcomer: nothing of a node without a device is ever recovered."""
        edits = (configurations.device(self._listed(cib)),)
        return ChangeConfiguration(cib.version.epoch, edits, AUTHOR, "a new member")

    def _listed(self, cib: Cib) -> list[NodeName]:
        return sorted({*cib.members, *self._cluster.names})

    def _pursue(self, is_done: Callable[[Cib], bool], next_step: Callable[[Cib], Command | None]) -> None:
        cib = self._cluster.cib
        if is_done(cib):
            return
        command = next_step(cib)
        if command is not None:
            self._cluster.administer(command)
        self._cluster.world.after(ASK_EVERY_MS * MS, lambda: self._pursue(is_done, next_step))


def changed(cib: Cib, *members: Member, drop: NodeName | None = None) -> ChangeMembers:
    """Return the next version of the members: some added or replaced, and perhaps one dropped."""
    after = {name: member for name, member in cib.members.items() if name != drop}
    after.update({member.name: member for member in members})
    return ChangeMembers(cib.membership.version + 1, tuple(after[name] for name in sorted(after)), (), AUTHOR)
