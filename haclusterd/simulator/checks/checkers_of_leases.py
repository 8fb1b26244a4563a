"""Leases: what needs one, when it ends, and what a node without one does by itself (safety.md §2, §4)."""

from haclusterd.cib.commands import Command, Lost
from haclusterd.machines.executing.stop_plan import held_by, stops_before
from haclusterd.machines.no_quorum import LonePolicy, lone_policy, promotable_resources
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.configuration import Configuration
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import Incarnation, NodeName, ResourceId
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.ocf import ACTIVATING
from haclusterd.model.records import dataclass
from haclusterd.ports.agents import AgentCall
from haclusterd.scheduler.unpack.management import unmanaged
from haclusterd.simulator.checks.checker import Accepted, Checker, Log, Scene
from haclusterd.simulator.hosts.clocks import EPOCH_MS
from haclusterd.simulator.hosts.truth import base_of


class StartsNeedALease(Checker):
    """An activating action begins only under a fresh lease (safety.md §1, §2)."""

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.action in ACTIVATING and self.scene.lease_left_ms(node) <= 0:
            self.object_to(f"{call.action} of {call.resource} begins on {node}, which holds no lease")


class LeaseEndsAfterLoss(Checker):
    """A lost incarnation's lease ends within L of the commit of its loss (safety.md §2).

    L is the longest that was in force for the node: people change node-timeout while it lives.
    """

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self._bounds_ms: dict[tuple[NodeName, Incarnation], int] = {}

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if isinstance(command, Lost) and command.incarnation is not None:
            status = accepted.before.status.nodes[command.node]
            self._bounds_ms.setdefault((command.node, command.incarnation), status.longest_lease_ms)

    def lease_published(self, node: NodeName, incarnation: Incarnation, until: Instant, until_us: int) -> None:
        """See `Checker`."""
        lost_us = self.log.lost_at_us.get((node, incarnation))
        lease_ms = self._bounds_ms.get((node, incarnation))
        if lost_us is None or lease_ms is None or until <= 0:
            return
        # Half a heartbeat's quantum of a millisecond clock on both ends, and the clock's own rate error. A machine that
        # was paused with its clocks counts none of that time.
        bound_us = lost_us + lease_ms * 1000 * 102 // 100 + 2000 + self.scene.stood_us(node, lost_us)
        if until_us > bound_us:
            late_ms = (until_us - bound_us) // 1000
            self.object_to(f"{node} {incarnation} was lost, yet its lease reaches {late_ms} ms too far")


class LossIsJudgedUnderLease(Checker):
    """Only a DC whose own lease is fresh declares a node lost (safety.md §4)."""

    def proposed(self, node: NodeName, command: Command) -> None:
        """See `Checker`."""
        if isinstance(command, Lost) and self.scene.lease_left_ms(node) <= 0:
            self.object_to(f"{node} declares {command.node} lost without a lease of its own")


def left_alone(scene: Scene, node: NodeName, resources: frozenset[ResourceId]) -> frozenset[ResourceId]:
    """Return what a node must not stop by itself: what is unmanaged there, and what would have to stop after that."""
    cib = scene.applied_at(node)
    if cib is None:
        return frozenset()
    untouched = unmanaged(cib, node, resources, WallTime(EPOCH_MS + scene.world.now_ms))
    return untouched | held_by(stops_before(cib.configuration, resources), untouched)


class UnmanagedIsLeftAlone(Checker):
    """A node that acts alone stops nothing that is unmanaged, unless it is recorded as fenced (safety.md §4)."""

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.action not in ("stop", "demote") or not call.key.startswith("alone-") or self._is_recorded_dead(node):
            return
        if call.resource in left_alone(self.scene, node, frozenset({call.resource, *self.scene.services_on(node)})):
            self.object_to(f"{node} begins to {call.action} {call.resource} by itself, which is not its to touch")

    def _is_recorded_dead(self, node: NodeName) -> bool:
        """Tell whether the life that the CIB names has been recorded as fenced, also where that was disproved."""
        status = self.log.newest.status.nodes.get(node)
        if status is None or status.state is NodeState.ONLINE:
            return False
        ends = (FenceOutcome.FENCED, FenceOutcome.CONFIRMED)
        records = [record for record in self.log.newest.status.fencing_history if record.target == node]
        return any(each.outcome in ends and each.target_incarnation == status.incarnation for each in records)


class NodesWithoutLeaseStop(Checker):
    """A node that has no lease stops its resources by itself, as far as no-quorum-policy wants it (safety.md §4)."""

    LIMIT_MS = 12_000
    """More than its agents need, and their timeouts, one after another."""

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self._without_since_us: dict[NodeName, int] = {}
        self._policies: dict[NodeName, tuple[Configuration | None, _Kept]] = {}
        """As each node's configuration says that it was read from last."""
        self._tried: set[tuple[NodeName, ResourceId]] = set()
        self._found: dict[NodeName, set[ResourceId]] = {}
        """What was unmanaged and ran when the node looked at it: it looks once."""
        self._left: dict[NodeName, frozenset[ResourceId]] = {}
        """What was unmanaged, or held by that, at any moment without a lease: it is not stopped later."""

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.action == "monitor" and call.key.startswith("alone-") and call.resource in self.scene.services_on(node):
            self._found.setdefault(node, set()).add(call.resource)
        elif call.action == "stop":
            self._tried.add((node, call.resource))
        elif call.action in ACTIVATING:
            self._tried.discard((node, call.resource))

    def looked_at(self, node: NodeName) -> None:
        """See `Checker`."""
        now_us = self.scene.world.now_us
        cib = self.scene.applied_at(node)
        former = self._policies.get(node)
        kept = self._kept_by(node, cib)
        if former is not None and former[1] != kept:
            self._without_since_us.pop(node, None)  # What people allowed until now has its time to stop, too.
        may_run_on = kept.policy.keeps_running or self.scene.lease_left_ms(node) > 0
        if may_run_on or not self.scene.is_at_work(node):
            self._without_since_us.pop(node, None)
            self._found.pop(node, None)
            self._left.pop(node, None)
            return
        since_us = self._without_since_us.setdefault(node, now_us)
        running = frozenset(self.scene.services_on(node))
        others = (resource for resource in running if base_of(resource) not in kept.promotable)
        wrong = {resource for resource in others if (node, resource) not in self._tried}
        if not wrong:
            return
        found = running.union(self._found.get(node, ()))
        left = self._left[node] = self._left.get(node, frozenset()) | left_alone(self.scene, node, found)
        if now_us - since_us < self.LIMIT_MS * 1000:
            return
        for resource in sorted(wrong - left):
            self.object_to(f"{node} has had no lease for {(now_us - since_us) // 1000} ms, and runs {resource} on")

    def _kept_by(self, node: NodeName, cib: Cib | None) -> "_Kept":
        configuration = None if cib is None else cib.in_force
        read_from, kept = self._policies.get(node, (None, _Kept()))
        if read_from is not configuration:
            kept = _Kept() if configuration is None else _kept(configuration)
            self._policies[node] = (configuration, kept)
        return kept


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a configuration lets run on a node without a lease."""

    policy: LonePolicy = LonePolicy.STOP
    promotable: frozenset[ResourceId] = frozenset()
    """Primitives that may run on unpromoted."""


def _kept(configuration: Configuration) -> _Kept:
    policy = lone_policy(configuration)
    return _Kept(policy, promotable_resources(configuration) if policy is LonePolicy.DEMOTE else frozenset())
