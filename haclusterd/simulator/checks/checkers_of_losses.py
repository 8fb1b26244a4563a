"""Lost nodes: none is declared lost without need, all are dead once fenced, and nothing of them is recovered before."""


from haclusterd.cib.commands import Fenced, IssueOrders, Join, Lost
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import Configuration, Primitive, TicketConstraint, effective
from haclusterd.model.fencing import FenceAction, FenceOutcome
from haclusterd.model.history import OperationRecord, ordered_records
from haclusterd.model.ids import NodeName, OrderKey, ResourceId
from haclusterd.model.ocf import ACTIVATING, ActionName, ExitCode
from haclusterd.model.properties import fences_unseen
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.checker import Accepted, Checker, Log, Scene, order_key
from haclusterd.simulator.hosts.truth import base_of


class NoRecoveryBeforeFence(Checker):
    """Nothing that a lost or unseen node may hold starts on another node before its fencing is recorded (decision 5).

    What may have several copies may start on other nodes: `NeverTwoActive` counts them.
    """

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self._without: dict[OrderKey, frozenset[NodeName]] = {}
        """By order: the nodes that certainly did not hold its resource when it was issued."""

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        if isinstance(accepted.command, IssueOrders):
            nodes = accepted.before.status.nodes.items()
            for order in accepted.command.orders:
                self._without[order.key] = frozenset(
                    name for name, status in nodes
                    if order.resource not in status.unverified and not may_have_begun(status, order.resource)
                )  # fmt: skip

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.action not in ACTIVATING:
            return
        key = order_key(call, self.log)
        limits = self.log.shapes.allowed(base_of(call.resource), key)
        is_promotion = call.action == ActionName.PROMOTE
        if max(limits.promoted if is_promotion else limits.copies, 1) > 1:
            return
        may_have = may_be_promoted if is_promotion and limits.promoted else may_hold
        without = self._without.get(key, frozenset()) if key is not None else frozenset()
        for name, status in self.log.newest.status.nodes.items():
            if name == node or not may_have(status, call.resource):
                continue
            # A daemon that restarts makes everything on its node unverified, also what cannot have begun there since.
            if name in without and not may_have_begun(status, call.resource):
                continue
            self.object_to(f"{call.resource} starts on {node}, but {name} is {status.state} and may hold it")


_IN_VAIN = (ExitCode.ARGUMENTS, ExitCode.NOT_INSTALLED, ExitCode.NOT_CONFIGURED)
"""What a probe answers that could not look."""


def may_hold(status: NodeStatus, resource: ResourceId) -> bool:
    """Tell whether a node that does not answer may hold a resource, by the log alone."""
    return status.state is NodeState.LOST and (resource in status.unverified or may_have_begun(status, resource))


def may_have_begun(status: NodeStatus, resource: ResourceId) -> bool:
    """Return whether the orders and records of a node leave a resource active there, or may have begun it."""
    if any(order.resource == resource and order.action in ACTIVATING for order in status.orders.values()):
        return True
    history = status.histories.get(resource)
    return history is not None and _leaves_active(ordered_records(history))


def may_be_promoted(status: NodeStatus, resource: ResourceId) -> bool:
    """Tell whether a node that does not answer may hold the promoted instance, by the log alone."""
    if status.state is not NodeState.LOST:
        return False
    if any(order.resource == resource and order.action is ActionName.PROMOTE for order in status.orders.values()):
        return True
    history = status.histories.get(resource)
    return history is not None and _leaves_promoted(ordered_records(history))


def _leaves_promoted(records: list[OperationRecord]) -> bool:
    for record in reversed(records):
        if record.operation in (ActionName.STOP, ActionName.DEMOTE):
            return record.is_failure
        if record.operation == ActionName.PROMOTE:
            return True
        if record.operation == ActionName.MONITOR and record.exit_code in (ExitCode.PROMOTED, ExitCode.FAILED_PROMOTED):
            return True
        if record.operation == ActionName.MONITOR and record.exit_code in (ExitCode.OK, ExitCode.NOT_RUNNING):
            return False
    return False


def _leaves_active(records: list[OperationRecord]) -> bool:
    """Tell whether the newest record that says anything leaves a resource active; a probe in vain says nothing."""
    for record in reversed(records):
        if record.operation == ActionName.MONITOR and record.interval_ms == 0 and record.exit_code in _IN_VAIN:
            continue
        if record.operation == ActionName.STOP:
            return record.is_failure
        if record.operation == ActionName.MONITOR:
            return record.exit_code is not ExitCode.NOT_RUNNING
        if record.operation == ActionName.START:
            return record.exit_code is not ExitCode.NOT_RUNNING
    return False


class UnseenIsFenced(Checker):
    """Nothing starts while a member that was never seen may run it (safety.md §6)."""

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.action not in ACTIVATING:
            return
        for name, status in self.log.newest.status.nodes.items():
            if name != node and self._is_unknown(status) and not self._is_known(call.resource):
                self.object_to(f"{call.resource} starts on {node}, but nobody knows what {name} runs")

    def _is_unknown(self, status: NodeStatus) -> bool:
        """Whether a member has never been seen and not been fenced either, whatever it is called by now."""
        is_lost_unseen = status.state is NodeState.LOST and status.incarnation is None
        is_wanted = fences_unseen(self.log.newest.in_force)
        return is_wanted and (status.state is NodeState.UNSEEN or is_lost_unseen)

    def _is_known(self, resource: ResourceId) -> bool:
        """Whether it is recorded of a resource that it ran somewhere in this life of the cluster."""
        histories = (status.histories.get(resource) for status in self.log.newest.status.nodes.values())
        return any(history is not None and history.records for history in histories)


class LostNodesAreSilent(Checker):
    """A node that is declared lost is not alive and heard by everybody (safety.md §4), or could not stop something."""

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if not isinstance(command, Lost):
            return
        if self.scene.is_well(command.node) and not self._is_wanted(accepted.before, command.node):
            self.object_to(f"{command.node} is declared lost, but nothing was wrong with it: {command.reason}")

    def _is_wanted(self, cib: Cib, node: NodeName) -> bool:
        """Tell whether the configuration wants a node that is well to be fenced."""
        status = cib.status.nodes[node]
        has_failed = _has_failure_to_fence_for(cib.configuration, status) or _is_fenced_by_default(cib, status)
        return has_failed or _has_lost_a_deadman_ticket(cib, status)


def _has_failure_to_fence_for(configuration: Configuration, status: NodeStatus) -> bool:
    """Tell whether something failed on a node for which it is fenced: a stop, or what has `on-fail=fence`.

    The newest failure counts until it is cleaned up, though it was recovered.
    """
    for resource, history in status.histories.items():
        primitive = configuration.resources.get(resource)
        operations = primitive.operations if isinstance(primitive, Primitive) else ()
        fencing = {operation.name for operation in operations if operation.on_fail == "fence"}
        records = [*history.records.values(), *([history.last_failure] if history.last_failure else [])]
        if any(record.is_failure and record.operation in {"stop", *fencing} for record in records):
            return True
    return False


def _is_fenced_by_default(cib: Cib, status: NodeStatus) -> bool:
    """Tell whether something failed on a node for which the operation defaults have it fenced."""
    if effective(cib.in_force.operation_defaults).get("on-fail") != "fence":
        return False
    for resource, history in status.histories.items():
        primitive = cib.in_force.resources.get(resource)
        operations = primitive.operations if isinstance(primitive, Primitive) else ()
        others = {operation.name for operation in operations if operation.on_fail not in (None, "fence")}
        if any(record.is_failure and record.operation not in others for record in history.records.values()):
            return True
    return False


def _has_lost_a_deadman_ticket(cib: Cib, status: NodeStatus) -> bool:
    """Tell whether something may run on a node whose ticket is not here, and has `loss-policy=fence`."""
    there = _with_containing(cib.configuration, {base_of(resource) for resource in status.histories})
    for constraint in cib.configuration.constraints.values():
        if not isinstance(constraint, TicketConstraint) or constraint.loss_policy != "fence":
            continue
        ticket = cib.status.tickets.get(constraint.ticket)
        is_here = ticket is not None and ticket.is_granted and not ticket.is_standby
        if not is_here and constraint.resource in there:
            return True
    return False


def _with_containing(configuration: Configuration, resources: set[ResourceId]) -> set[ResourceId]:
    """Return resources and the groups and clones that they are in."""
    parents = configuration.parents()
    found, newest = set(resources), resources
    while newest := {parents[each] for each in newest if each in parents} - found:
        found |= newest
    return found


class JoinsWaitForFencing(Checker):
    """No node joins while a fence order on it is unfinished: a slow device would shoot it (safety.md §5).

    Being let in (`on`) shoots nobody. Where its own watchdog is waited for, nothing is under way that could, once it
    has booted.
    """

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if not isinstance(command, Join):
            return
        known = accepted.before.status.nodes[command.node].incarnation
        is_new_boot = known is not None and known.boot_id != command.incarnation.boot_id
        hits = [
            order
            for order in accepted.before.status.fence_orders.values()
            if order.target == command.node
            and order.action is not FenceAction.ON
            and not (is_new_boot and WATCHDOG in order.devices)
        ]
        if known != command.incarnation and hits:
            self.object_to(f"{command.node} joins while it is being fenced")


class DisprovedFencingIsRepeated(Checker):
    """A boot that a device was recorded to have ended does not take part again, unless nobody could fence it (§5)."""

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self._ended: set[tuple[NodeName, str]] = set()

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command, nodes = accepted.command, accepted.before.status.nodes
        if isinstance(command, Fenced) and command.key is not None and command.incarnation is not None:
            if accepted.after.status.fencing_history[-1].device != WATCHDOG:
                self._ended.add((command.node, command.incarnation.boot_id))
        elif isinstance(command, Join) and (command.node, command.incarnation.boot_id) in self._ended:
            others = [name for name, status in nodes.items() if status.state is NodeState.ONLINE]
            if nodes[command.node].incarnation != command.incarnation and others not in ([], [command.node]):
                self.object_to(f"{command.node} joins in the boot that was recorded as ended by a device")


class RebootsClear(Checker):
    """Nothing of an older boot is believed after a Join with a new boot id (safety.md §6).

    What is being migrated to the node, or from it, by an order on another one, is known by its name and
    as expected.
    """

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if not isinstance(command, Join):
            return
        old, new = accepted.before.status.nodes[command.node], accepted.after.status.nodes[command.node]
        is_reboot = old.incarnation is None or old.incarnation.boot_id != command.incarnation.boot_id
        records = (record for history in new.histories.values() for record in history.records.values())
        is_anything_recorded = any(not record.is_expected_arrival for record in records)
        if is_reboot and (is_anything_recorded or new.attributes or new.orders or new.probed):
            self.object_to(f"{command.node} has rebooted, but its status of the older boot is kept")


class FencedNodesAreDead(Checker):
    """What is recorded as fenced is dead; where its watchdog is counted on, dead or empty (safety.md §2, §5)."""

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if not isinstance(command, Fenced):
            return
        incarnation = command.incarnation
        if command.outcome not in (FenceOutcome.FENCED, FenceOutcome.CONFIRMED) or incarnation is None:
            return
        is_counted_on = accepted.after.status.fencing_history[-1].device == WATCHDOG
        if is_counted_on and not self.scene.services_on(command.node):
            return
        if self.scene.boot_runs(command.node, incarnation.boot_id):
            self.object_to(f"{command.node} {incarnation} is recorded as fenced, but it is alive")
