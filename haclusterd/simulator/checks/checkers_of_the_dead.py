"""What hosts that died had on them, by the hosts' own facts: nobody starts it before the death is in the log.

`NoRecoveryBeforeFence` asks the CIB what a lost node may hold, so it does not see what the CIB forgets. Here the hosts
say what ran on them, or was being started, when they died.
"""

from haclusterd.cib.commands import Fenced, IssueFence, Join, Leaving, Lost
from haclusterd.model.agent_calls import FenceCall
from haclusterd.model.cluster import NodeState
from haclusterd.model.fence_parameters import lets_nodes_in
from haclusterd.model.fencing import FenceAction, FenceOrder, FenceOutcome
from haclusterd.model.ids import FenceKey, Incarnation, NodeName, ResourceId
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.checker import Accepted, Checker, Log, Scene, order_key
from haclusterd.simulator.checks.checkers_of_copies import MAKING
from haclusterd.simulator.hosts.fence_devices import PowerSwitch
from haclusterd.simulator.hosts.truth import Truth, base_of, is_promoted, number_of, promoted


class TheDeadAreFencedFirst(Checker):
    """What ran on a host when it died starts on another node only after its fencing, or its new boot, is in the log.

    And what is fenced was not in the middle of something: a node that never joined is not running in the boot in which
    it was declared lost, and a node whose watchdog is counted on has no agent at work that makes something active.
    """

    def __init__(self, scene: Scene, log: Log, truth: Truth) -> None:
        super().__init__(scene, log)
        self._truth = truth
        self._left: dict[NodeName, tuple[Incarnation | None, frozenset[ResourceId]]] = {}
        """Of each host that died and whose death is not in the log: its life in the log then, and what it had."""
        self._boots_of_the_unseen: dict[NodeName, int | None] = {}
        """In which boot a node was that was declared lost and had never joined."""
        truth.when_host_dies.append(self._host_dies)

    def another_log_begins(self) -> None:
        """See `Checker`; that the others are off a person has seen."""
        self._left.clear()
        self._boots_of_the_unseen.clear()

    def _host_dies(self, node: NodeName, held: frozenset[ResourceId]) -> None:
        status = self.log.newest.status.nodes.get(node)
        if status is None or not held:
            return
        known = self._left.get(node)
        if known is not None:
            held |= known[1]
        self._left[node] = status.incarnation, held

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.action not in MAKING or not self._left:
            return
        made = promoted(call.resource) if call.action == "promote" else call.resource
        dead = [other for other, (_, held) in self._left.items() if other != node and _has_copy(held, made)]
        if not dead or not ClusterProperties(self.log.newest.in_force).boolean("fencing-enabled"):
            return
        limits = self.log.shapes.allowed(base_of(made), order_key(call, self.log))
        most = 1 if number_of(made) is not None else limits.promoted if is_promoted(made) else limits.copies
        living = [name for name in self._truth.holders(made) if name not in (node, *dead)]
        if len(dead) + len(living) + 1 > max(most, 1):
            self.object_to(f"{call.action} of {call.resource} begins on {node}: {' and '.join(dead)} had it at death, "
                           "and neither its fencing nor its new boot is in the log")  # fmt: skip

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        match command:
            case Lost(node=node, incarnation=None):
                self._boots_of_the_unseen[node] = self._truth.boot_of(node)
            case Fenced():
                self._fenced(command, accepted)
            case Join(node=node) | Leaving(node=node):
                self._left.pop(node, None)
            case _:
                pass

    def _fenced(self, command: Fenced, accepted: Accepted) -> None:
        node = command.node
        left = self._left.get(node)
        if left is not None and command.incarnation in (None, left[0]):
            del self._left[node]
        if command.outcome not in (FenceOutcome.FENCED, FenceOutcome.CONFIRMED):
            return
        if command.incarnation is None:
            boot = self._boots_of_the_unseen.pop(node, None)
            if boot is not None and self._truth.boot_of(node) == boot:
                self.object_to(f"{node}, which has never joined, is recorded as fenced, but its boot goes on")
            return
        is_counted_on = accepted.after.status.fencing_history[-1].device == WATCHDOG
        starting = self._truth.starting_on(node)
        if is_counted_on and starting and self.scene.boot_runs(node, command.incarnation.boot_id):
            self.object_to(f"{node} counts as silenced by its watchdog, while an agent may start {sorted(starting)}")


def _has_copy(held: frozenset[ResourceId], made: ResourceId) -> bool:
    """Tell whether what a host had was a copy of that, in the same role: an instance of a unique clone is one's own."""
    number, is_role = number_of(made), is_promoted(made)
    return any(
        base_of(each) == base_of(made) and is_promoted(each) is is_role
        and (number_of(each) is None or number is None or number_of(each) == number)
        for each in held
    )  # fmt: skip


class FenceAgentsActInTime(Checker):
    """No fence agent acts for an order that is over: what is said is what arrives at the device (safety.md §5).

    It switches no node off that has joined since the order was made, and lets none in that a later order has cut off by
    a device that leaves it alive. What a device does late by itself is not the agent's doing.
    """

    def __init__(self, scene: Scene, log: Log, switch: PowerSwitch) -> None:
        super().__init__(scene, log)
        self._orders: dict[FenceKey, tuple[int, FenceOrder]] = {}
        self._cut_off: dict[NodeName, int] = {}
        """Which order has cut a node off last that lives."""
        switch.when_asked.append(self._asked)

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        if isinstance(accepted.command, IssueFence):
            order = accepted.command.order
            self._orders[order.key] = len(self._orders), order

    def _asked(self, call: FenceCall, target: NodeName) -> None:
        key = FenceKey(call.key.rpartition("/")[0])
        status = self.log.newest.status.nodes.get(target)
        if key not in self._orders or status is None:
            return
        number, order = self._orders[key]
        if order.action is not FenceAction.ON and call.action != FenceAction.ON:
            if any(lets_nodes_in(self.log.newest.in_force, device) for device in order.devices):
                self._cut_off[target] = max(number, self._cut_off.get(target, 0))
            if status.state is NodeState.ONLINE and status.incarnation != order.target_incarnation:
                self.object_to(f"{order.executor} has {target} switched off for {key}, after it has joined again")
        is_crossed = order.action is FenceAction.ON and self._cut_off.get(target, -1) > number
        if is_crossed and status.state is not NodeState.ONLINE:
            self.object_to(f"{order.executor} lets {target} in for {key}, after a later order cut it off")
