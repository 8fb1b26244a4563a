"""What must never be, checked at every event at which it could come to be.

Each checker is one rule of safety.md, judged by the facts of the hosts and by the log, never by what the code under
test believes of itself. A checker only looks; what it finds ends the run as a `ViolationError`.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from haclusterd.cib import codec
from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import Command, DcElected, Fenced, IssueOrders, Join, Lost, RecordResults
from haclusterd.machines.executing.stop_plan import held_by, stops_before
from haclusterd.machines.no_quorum import LonePolicy, lone_policy, promotable_resources
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import Configuration, Primitive, TicketConstraint
from haclusterd.model.fencing import FenceAction, FenceOutcome
from haclusterd.model.history import OperationRecord, ordered_records
from haclusterd.model.ids import Incarnation, NodeName, OrderKey, ResourceId, Term
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.ocf import ACTIVATING, ActionName, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.properties import fences_unseen
from haclusterd.model.records import dataclass, field
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.ports.agents import AgentCall
from haclusterd.scheduler.unpack.management import unmanaged
from haclusterd.simulator.checks.shapes import Shapes
from haclusterd.simulator.hosts.alert_agents import DeliveredAlert
from haclusterd.simulator.hosts.clocks import EPOCH_MS
from haclusterd.simulator.hosts.truth import Holding, base_of
from haclusterd.simulator.hosts.world import World


class ViolationError(Exception):
    """A rule was broken; `rule` is the checker's name."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule


class Scene(Protocol):
    """What checkers may ask of the simulated cluster."""

    world: World

    def incarnation_at(self, node: NodeName) -> Incarnation | None:
        """Return the incarnation of the daemon that runs there now."""
        ...

    def applied_at(self, node: NodeName) -> Cib | None:
        """Return the newest CIB that the main loop of the daemon there was shown."""
        ...

    def lease_left_ms(self, node: NodeName) -> int:
        """Return how long the lease there is still valid, by the page; negative when it is over."""
        ...

    def is_at_work(self, node: NodeName) -> bool:
        """Tell whether the daemon there runs undisturbed."""
        ...

    def services_on(self, node: NodeName) -> tuple[ResourceId, ...]:
        """Return what really runs there."""
        ...

    def is_hidden_from(self, node: NodeName, call: AgentCall) -> bool:
        """Tell whether what really runs there was started by another agent, or so that this call does not find it."""
        ...

    def agents_at_work(self, node: NodeName, resource: ResourceId) -> tuple[AgentCall, ...]:
        """Return the agents that work on a resource there now."""
        ...

    def stood_us(self, node: NodeName, since_us: int) -> int:
        """Return for how long the clocks there stood still in pauses that ended after an instant."""
        ...

    def boot_runs(self, node: NodeName, boot_id: str) -> bool:
        """Tell whether that boot of that host still goes on."""
        ...


@dataclass(slots=True)
class Log:
    """The replicated log as seen from outside: what any replica applied first."""

    newest: Cib = field(default_factory=Cib)
    """The CIB with the highest index that was applied anywhere."""
    cibs: dict[int, Cib] = field(default_factory=dict)
    """What the first replica to apply an index made of it."""
    orders: dict[OrderKey, Order] = field(default_factory=dict)
    """Every order that was ever accepted."""
    lost_at_us: dict[tuple[NodeName, Incarnation], int] = field(default_factory=dict)
    fenced: set[tuple[NodeName, Incarnation | None]] = field(default_factory=set)
    shapes: Shapes = field(default_factory=Shapes)
    """How many copies were wanted of everything, and when."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A command that had its effect."""

    command: Command
    proposer: NodeName
    before: Cib
    after: Cib


class Checker:
    """One rule; the methods are called at the moment itself."""

    def __init__(self, scene: Scene, log: Log) -> None:
        self.scene = scene
        self.log = log

    def object_to(self, text: str) -> None:
        """End the run."""
        raise ViolationError(type(self).__name__, text)

    def holders_changed(self, begun: Holding, others: tuple[Holding, ...], *, has_moved: bool) -> None:
        """A node comes to hold, or may hold, a resource: see `Witness`."""

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """An agent is being executed."""

    def first_accepted(self, accepted: Accepted) -> None:
        """A command had its effect for the first time anywhere; `log` does not know it yet."""

    def first_applied(self, applied: Applied) -> None:
        """An entry was applied for the first time anywhere, whatever came of it."""

    def proposed(self, node: NodeName, command: Command) -> None:
        """A daemon asks its store for a command, for the first time."""

    def orders_received(self, node: NodeName, orders: tuple[Order, ...]) -> None:
        """A main loop was shown orders."""

    def looked_at(self, node: NodeName) -> None:
        """A moment at which a node is looked at, ten times in a second."""

    def applied(self, node: NodeName, cib: Cib) -> None:
        """A replica applied an entry, or was restored to one."""

    def lease_published(self, node: NodeName, incarnation: Incarnation, until: Instant, until_us: int) -> None:
        """A pacer published a lease that ends at `until_us` of virtual time."""

    def alert_begins(self, delivered: DeliveredAlert) -> None:
        """An agent of an alert is being executed."""

    def another_log_begins(self) -> None:
        """People make another cluster of what is left: what only the log of the one before said is over."""


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


def order_key(call: AgentCall, log: Log) -> OrderKey | None:
    """Return whose order a call executes; a recurring monitor's runs are numbered after a dot."""
    for key in (call.key, call.key.rpartition(".")[0]):
        if OrderKey(key) in log.orders:
            return OrderKey(key)
    return None


class OrdersRunOnce(Checker):
    """An order is executed at most once, no matter what restarts (safety.md §1)."""

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self._begun: dict[str, tuple[NodeName, str]] = {}
        """Where each began, and in which boot."""

    def another_log_begins(self) -> None:
        """See `Checker`; what knows of an order is in the log, and in the memory of a boot."""
        self._begun = {key: where for key, where in self._begun.items() if self.scene.boot_runs(*where)}

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.key in self._begun:
            self.object_to(f"{call.key} ({call.action} of {call.resource}) begins a second time, on {node}")
        self._begun[call.key] = node, call.incarnation.boot_id


class OneAgentPerResource(Checker):
    """While an agent works on a resource, from any life, no other one does (safety.md §1)."""

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        for other in self.scene.agents_at_work(node, call.resource):
            if other.key != call.key:
                self.object_to(f"{call.key} ({call.action}) begins on {node} while {other.key} ({other.action}) runs")


class AgentsFindWhatRuns(Checker):
    """Nothing is started where it runs and the agent cannot see it: that would be a second copy on one host.

    It was started by another agent, or with other parameters.
    """

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.action == "start" and self.scene.is_hidden_from(node, call):
            text = "where it runs, started by another agent or with other parameters"
            self.object_to(f"{call.resource} is started by {call.agent} on {node}, {text}")


class OrdersRunByTheirIncarnation(Checker):
    """An order is executed only by the incarnation that it names (safety.md §1)."""

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        incarnation = self.scene.incarnation_at(node)
        key = order_key(call, self.log)
        if key is None:
            if call.action in ACTIVATING:
                self.object_to(f"{call.action} of {call.resource} begins on {node} without an order ({call.key})")
            return
        order = self.log.orders[key]
        if order.node != node or order.incarnation != incarnation:
            self.object_to(f"{key} is for {order.node} {order.incarnation}, but runs on {node} {incarnation}")


class NothingOfReplayRuns(Checker):
    """Nothing is executed before the process has applied its own Join (safety.md §1)."""

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if order_key(call, self.log) is None:
            return
        cib = self.scene.applied_at(node)
        status = None if cib is None else cib.status.nodes.get(node)
        if status is None or status.incarnation != self.scene.incarnation_at(node):
            self.object_to(f"{call.key} begins on {node} before its own Join was applied")


class OrdersAreOpenWhenBegun(Checker):
    """An activating order is open and not voided in the node's newest applied CIB when it begins (safety.md §1)."""

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        key = order_key(call, self.log)
        cib = self.scene.applied_at(node)
        if key is None or cib is None or call.action not in ACTIVATING:
            return
        order = cib.status.nodes[node].orders.get(key)
        if order is None or order.is_voided:
            self.object_to(f"{key} ({call.action} of {call.resource}) begins on {node}, but it is not open")


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


class CibsAgree(Checker):
    """Equal index, equal CIB: nothing applied anywhere is ever lost or changed (Raft §5.4.3)."""

    def applied(self, node: NodeName, cib: Cib) -> None:
        """See `Checker`."""
        known = self.log.cibs.setdefault(cib.index, cib)
        if known is not cib and known != cib:
            self.object_to(f"{node} differs from an earlier replica at index {cib.index}")


class OneControllerPerTerm(Checker):
    """One node acts as DC in one term, and only it issues orders (safety.md §1)."""

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self._acting: dict[Term, tuple[NodeName, Incarnation]] = {}

    def another_log_begins(self) -> None:
        """See `Checker`."""
        self._acting.clear()

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if isinstance(command, DcElected):
            acting = self._acting.setdefault(command.term, (command.node, command.incarnation))
            if acting != (command.node, command.incarnation):
                self.object_to(f"{acting[0]} and {command.node} are both DC in term {command.term}")
        elif isinstance(command, IssueOrders):
            acting_node = self._acting.get(command.dc_term, (None, None))[0]
            if acting_node != accepted.proposer:
                self.object_to(f"{accepted.proposer} issues orders in term {command.dc_term} of {acting_node}")


class OrdersFollowTheirTerm(Checker):
    """Nothing that an older DC wants is accepted under a newer one (safety.md §1)."""

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        controller = accepted.before.status.controller
        if isinstance(command, IssueOrders | Lost) and (controller is None or controller.term != command.dc_term):
            self.object_to(f"{type(command).__name__} of term {command.dc_term} accepted under {controller}")
        if isinstance(command, DcElected) and controller is not None and command.term <= controller.term:
            self.object_to(f"{command.node} becomes DC of term {command.term} after term {controller.term}")


class LostNodesAreSilent(Checker):
    """A node that is declared lost is not alive and heard by everybody (safety.md §4), or could not stop something."""

    def __init__(self, scene: Scene, log: Log, is_well: Callable[[NodeName], bool]) -> None:
        super().__init__(scene, log)
        self._is_well = is_well

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if not isinstance(command, Lost):
            return
        if self._is_well(command.node) and not self._is_wanted(accepted.before, command.node):
            self.object_to(f"{command.node} is declared lost, but nothing was wrong with it: {command.reason}")


    def _is_wanted(self, cib: Cib, node: NodeName) -> bool:
        """Tell whether the configuration wants a node that is well to be fenced."""
        status = cib.status.nodes[node]
        return _has_failure_to_fence_for(cib.configuration, status) or _has_lost_a_deadman_ticket(cib, status)


class StopsAreOrderedOnce(Checker):
    """No node is ordered to stop what it has been ordered to stop, and has not answered for (safety.md §1)."""

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if not isinstance(command, IssueOrders):
            return
        for order in command.orders:
            status = accepted.before.status.nodes[order.node]
            for known in status.orders.values():
                is_same = order.resource == known.resource and known.action is ActionName.STOP
                if is_same and order.action is ActionName.STOP and known.incarnation == order.incarnation:
                    self.object_to(f"{order.key} stops {order.resource} on {order.node}, as {known.key} does")


class LossIsJudgedUnderLease(Checker):
    """Only a DC whose own lease is fresh declares a node lost (safety.md §4)."""

    def proposed(self, node: NodeName, command: Command) -> None:
        """See `Checker`."""
        if isinstance(command, Lost) and self.scene.lease_left_ms(node) <= 0:
            self.object_to(f"{node} declares {command.node} lost without a lease of its own")


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


class ResultsAreOfThisLife(Checker):
    """Only the incarnation in force is believed about its results (safety.md §1)."""

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if not isinstance(command, RecordResults):
            return
        incarnation = accepted.before.status.nodes[command.node].incarnation
        if incarnation != command.incarnation:
            self.object_to(f"{command.node} {command.incarnation} reports, but {incarnation} is in force")


class OrdersBeginInTime(Checker):
    """An activating order that has not begun by its deadline after its receipt never begins (safety.md §1)."""

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self._received_us: dict[tuple[NodeName, OrderKey], int] = {}

    def another_log_begins(self) -> None:
        """See `Checker`."""
        self._received_us.clear()

    def orders_received(self, node: NodeName, orders: tuple[Order, ...]) -> None:
        """See `Checker`."""
        for order in orders:
            if order.node == node:
                self._received_us.setdefault((node, order.key), self.scene.world.now_us)

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        key = order_key(call, self.log)
        received_us = self._received_us.get((node, key)) if key is not None else None
        if key is None or received_us is None or call.action not in ACTIVATING:
            return
        waited_ms = (self.scene.world.now_us - received_us) // 1000
        deadline_ms = self.log.orders[key].deadline_ms
        if waited_ms * 100 > deadline_ms * 102:
            self.object_to(f"{key} ({call.action} of {call.resource}) begins {waited_ms} ms after its receipt")


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
            return
        since_us = self._without_since_us.setdefault(node, now_us)
        if now_us - since_us < self.LIMIT_MS * 1000:
            return
        running = frozenset(self.scene.services_on(node))
        others = (resource for resource in running if base_of(resource) not in kept.promotable)
        wrong = {resource for resource in others if (node, resource) not in self._tried}
        found = running.union(self._found.get(node, ()))
        for resource in sorted(wrong - left_alone(self.scene, node, found)) if wrong else ():
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


def _has_failure_to_fence_for(configuration: Configuration, status: NodeStatus) -> bool:
    """Tell whether something failed on a node for which it is fenced: a stop, or what has `on-fail=fence`."""
    for resource, history in status.histories.items():
        primitive = configuration.resources.get(resource)
        operations = primitive.operations if isinstance(primitive, Primitive) else ()
        fencing = {operation.name for operation in operations if operation.on_fail == "fence"}
        if any(record.is_failure and record.operation in {"stop", *fencing} for record in history.records.values()):
            return True
    return False


def _has_lost_a_deadman_ticket(cib: Cib, status: NodeStatus) -> bool:
    """Tell whether something may run on a node whose ticket is not here, and has `loss-policy=fence`."""
    for constraint in cib.configuration.constraints.values():
        if not isinstance(constraint, TicketConstraint) or constraint.loss_policy != "fence":
            continue
        ticket = cib.status.tickets.get(constraint.ticket)
        is_here = ticket is not None and ticket.is_granted and not ticket.is_standby
        if not is_here and constraint.resource in status.histories:
            return True
    return False


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


OneChecker = TypeVar("OneChecker", bound=Checker)


class Checkers:
    """All checkers of one run, and the log they share."""

    def __init__(self, scene: Scene, *, is_well: Callable[[NodeName], bool]) -> None:
        self.log = Log()
        self._scene = scene
        self._proposed: set[bytes] = set()
        self.all: list[Checker] = [
            NoRecoveryBeforeFence(scene, self.log),
            UnseenIsFenced(scene, self.log),
            OrdersRunOnce(scene, self.log),
            OneAgentPerResource(scene, self.log),
            AgentsFindWhatRuns(scene, self.log),
            OrdersRunByTheirIncarnation(scene, self.log),
            NothingOfReplayRuns(scene, self.log),
            OrdersAreOpenWhenBegun(scene, self.log),
            StartsNeedALease(scene, self.log),
            LeaseEndsAfterLoss(scene, self.log),
            CibsAgree(scene, self.log),
            OneControllerPerTerm(scene, self.log),
            OrdersFollowTheirTerm(scene, self.log),
            LostNodesAreSilent(scene, self.log, is_well),
            StopsAreOrderedOnce(scene, self.log),
            LossIsJudgedUnderLease(scene, self.log),
            JoinsWaitForFencing(scene, self.log),
            DisprovedFencingIsRepeated(scene, self.log),
            RebootsClear(scene, self.log),
            ResultsAreOfThisLife(scene, self.log),
            OrdersBeginInTime(scene, self.log),
            NodesWithoutLeaseStop(scene, self.log),
            UnmanagedIsLeftAlone(scene, self.log),
            FencedNodesAreDead(scene, self.log),
        ]
        self._concerned: dict[str, list[Checker]] = {}
        """Who looks at what: only those who have something to say are asked."""
        self._find_concerned()

    def add(self, *checkers: Checker) -> None:
        """Let some more look on."""
        self.all += checkers
        self._find_concerned()

    def one(self, kind: type[OneChecker], make: Callable[[], OneChecker]) -> OneChecker:
        """Return the checker of a kind; the first who asks for it has it made, and it looks on from then."""
        for checker in self.all:
            if isinstance(checker, kind):
                return checker
        made = make()
        self.add(made)
        return made

    def leave_out(self, kind: type[Checker]) -> None:
        """Ask a checker no more: what it objects to is what a scenario is about."""
        self.all = [each for each in self.all if not isinstance(each, kind)]
        self._find_concerned()

    def _find_concerned(self) -> None:
        for hook, base in vars(Checker).items():
            if callable(base):
                self._concerned[hook] = [each for each in self.all if getattr(type(each), hook) is not base]

    def holders_changed(self, begun: Holding, others: tuple[Holding, ...], *, has_moved: bool) -> None:
        """See `Witness`."""
        for checker in self._concerned["holders_changed"]:
            checker.holders_changed(begun, others, has_moved=has_moved)

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Witness`."""
        for checker in self._concerned["agent_begins"]:
            checker.agent_begins(node, call)

    def lease_published(self, node: NodeName, incarnation: Incarnation, until: Instant, until_us: int) -> None:
        """A pacer published a lease."""
        for checker in self._concerned["lease_published"]:
            checker.lease_published(node, incarnation, until, until_us)

    def proposed(self, node: NodeName, entry: bytes) -> None:
        """A daemon asks its store for an entry; it may have asked before."""
        if b'"Lost"' not in entry or entry in self._proposed:
            return
        self._proposed.add(entry)
        command = codec.decode_envelope(entry).command
        for checker in self._concerned["proposed"]:
            checker.proposed(node, command)

    def orders_received(self, node: NodeName, orders: tuple[Order, ...]) -> None:
        """A main loop was shown orders."""
        for checker in self._concerned["orders_received"]:
            checker.orders_received(node, orders)

    def looked_at(self, node: NodeName) -> None:
        """It is time to look at a node."""
        for checker in self._concerned["looked_at"]:
            checker.looked_at(node)

    def applied(self, node: NodeName, applied: Applied, before: Cib) -> None:
        """A replica applied an entry to the CIB `before`."""
        is_first = applied.cib.index not in self.log.cibs
        for checker in self._concerned["applied"]:
            checker.applied(node, applied.cib)
        if not is_first:
            return
        envelope = applied.envelope
        if envelope is not None and applied.refusal is None and not applied.is_repetition:
            accepted = Accepted(envelope.command, envelope.proposer, before, applied.cib)
            for checker in self._concerned["first_accepted"]:
                checker.first_accepted(accepted)
        self._note(applied)
        for checker in self._concerned["first_applied"]:
            checker.first_applied(applied)

    def restored(self, node: NodeName, cib: Cib) -> None:
        """A replica was restored from a snapshot."""
        for checker in self._concerned["applied"]:
            checker.applied(node, cib)
        if cib.index > self.log.newest.index:
            self.log.newest = cib
            self.log.shapes.configured(cib)

    def alert_begins(self, delivered: DeliveredAlert) -> None:
        """An agent of an alert is being executed."""
        for checker in self._concerned["alert_begins"]:
            checker.alert_begins(delivered)

    def another_log_begins(self) -> None:
        """People make another cluster of what is left, and have switched off whatever else there was."""
        self.log.newest = Cib()
        self.log.cibs.clear()
        self.log.shapes = Shapes()
        for checker in self.all:
            checker.another_log_begins()

    def _note(self, applied: Applied) -> None:
        log = self.log
        if applied.cib.index > log.newest.index:
            log.newest = applied.cib
            log.shapes.configured(applied.cib)
        if applied.envelope is None or applied.refusal is not None or applied.is_repetition:
            return
        match applied.envelope.command:
            case IssueOrders(orders=orders):
                log.orders.update({order.key: order for order in orders})
                for order in orders:
                    log.shapes.issued(order.key)
            case Lost(node=node, incarnation=incarnation) if incarnation is not None:
                log.lost_at_us.setdefault((node, incarnation), self._scene.world.now_us)
            case Fenced(node=node, incarnation=incarnation):
                log.fenced.add((node, incarnation))
            case _:
                pass
