"""The log and its orders: replicas agree, one DC gives orders, and each is executed once, in time (safety.md §1).

In time, and by the incarnation that it is for.
"""

from haclusterd.cib.commands import DcElected, IssueOrders, Lost, RecordResults
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import Incarnation, NodeName, OrderKey, Term
from haclusterd.model.ocf import ACTIVATING, ActionName
from haclusterd.model.orders import Order
from haclusterd.ports.agents import AgentCall
from haclusterd.scheduler.model.digests import digest_of
from haclusterd.simulator.checks.checker import Accepted, Checker, Log, Scene, order_key


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


class OrdersSayWhatTheyRun(Checker):
    """The digest of an order is that of its parameters, which distinguishes services (safety.md §1)."""

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        for order in command.orders if isinstance(command, IssueOrders) else ():
            if order.definition and order.definition != digest_of(order.lasting_parameters):
                text = f"{order.key} ({order.action} of {order.resource}) has another digest than its parameters"
                self.object_to(f"{text}, {dict(order.lasting_parameters)}")


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
