"""What is the case in a simulated cluster, by its hosts and its log: asked by scenarios, faults and checkers.

Nothing here changes the cluster: what happens to it is in `scenario.py`.
"""

from collections.abc import Iterator
from functools import partial

from haclusterd.cib.codec import FEATURE_LEVEL
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.fencing import FenceAction
from haclusterd.model.graph import Plan
from haclusterd.model.ids import Incarnation, NodeName, RequestId, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.timing import Timing
from haclusterd.ports.agents import AgentCall
from haclusterd.protocol.pacer_page import PacerPage
from haclusterd.scheduler.model.plan_cache import PlanCache
from haclusterd.scheduler.schedule import schedule
from haclusterd.simulator.brain import BrainProcess
from haclusterd.simulator.checks import expectations
from haclusterd.simulator.checks.activities import Activity, Begun, activity_of
from haclusterd.simulator.checks.checkers import Checkers
from haclusterd.simulator.checks.checkers_of_devices import unequal_claims
from haclusterd.simulator.disabled_rules import seen_by
from haclusterd.simulator.hosts.agents import AgentScript, HostAgents
from haclusterd.simulator.hosts.clocks import EPOCH_MS
from haclusterd.simulator.hosts.hosts import Boot, Host
from haclusterd.simulator.hosts.network import Network
from haclusterd.simulator.hosts.planner import Scheduler
from haclusterd.simulator.hosts.truth import Truth, maker
from haclusterd.simulator.hosts.world import MS, World


class ClusterFacts:
    """The world of a simulated cluster, and the questions that it answers; it is the checkers' `Scene`."""

    def __init__(
        self, world: World, names: tuple[NodeName, ...], timing: Timing, *, links: int, rules: SafetyRules
    ) -> None:
        self.world = world
        self.names = names
        """Nodes of which something is expected."""
        self.timing = timing
        self.fastest = self.slowest = timing
        """With the least and the greatest node-timeout that was in force up to now."""
        self.rules = rules
        self.truth = Truth(world)
        self.network = Network(world, links)
        self.agent_script = AgentScript(world.chance("agents"))
        self.hosts: dict[NodeName, Host] = {}
        """By name, which for a copy of a node's machine is not the node's."""
        self.checkers = Checkers(self)
        self.installing: set[NodeName] = set()
        """Nodes that read a snapshot which another node has sent."""
        self.awaited: set[RequestId] = set()
        """Changes of the configuration or the members that an administrator waits for."""
        self.scheduler: Scheduler = partial(schedule, cache=PlanCache())
        """What the controllers plan with; a scenario may put a worse one in its place."""
        self.feature_levels: dict[NodeName, int] = {}
        """What is installed on a node, as the level that it reads, where that is older than the newest."""
        self._keeps_all_rules = rules == ALL_RULES
        self._plan_asked, self._plan_was_empty = (0, 0), False

    @property
    def cib(self) -> Cib:
        """Return the newest CIB that was applied anywhere."""
        return self.checkers.log.newest

    def brain_of(self, node: str) -> BrainProcess:
        """Return the process that is a node's daemon now."""
        process = self.hosts[NodeName(node)].brain.process
        assert isinstance(process, BrainProcess), f"{node} has no brain"
        return process

    def state(self, node: str) -> NodeState:
        """Return what the cluster last decided about a node."""
        return self.cib.status.nodes[NodeName(node)].state

    def states(self) -> dict[NodeName, NodeState]:
        """Return what the cluster last decided about each node."""
        return {name: status.state for name, status in self.cib.status.nodes.items()}

    def all_online(self) -> bool:
        """Tell whether the CIB has every node online."""
        return len(self.cib.status.nodes) == len(self.names) and set(self.states().values()) == {NodeState.ONLINE}

    def dc(self) -> NodeName:
        """Return the designated controller."""
        controller = self.cib.status.controller
        assert controller is not None, "there is no DC yet"
        return controller.node

    def others(self, *nodes: str) -> list[NodeName]:
        """Return the nodes that are not these."""
        return [name for name in self.names if name not in nodes]

    def node_of(self, resource: str) -> NodeName:
        """Return where a service runs; it must run on one node."""
        (node,) = self.truth.active_nodes(ResourceId(resource))
        return node

    def runs_once(self, *resources: str) -> bool:
        """Tell whether these services run on one node each."""
        return all(len(self.truth.active_nodes(ResourceId(resource))) == 1 for resource in resources)

    def has_open_orders(self) -> bool:
        """Tell whether anything is ordered and not yet answered."""
        status = self.cib.status
        return bool(status.fence_orders) or any(node.orders for node in status.nodes.values())

    def is_up_to_date(self, node: NodeName) -> bool:
        """Tell whether a daemon runs there, knows all that was ever applied, and has joined."""
        process = self.hosts[node].brain.process
        if not isinstance(process, BrainProcess) or not process.life.is_running or process.shown is None:
            return False
        is_joined = self.cib.status.nodes[node].incarnation == process.incarnation
        return is_joined and process.shown.index == self.cib.index

    def is_settled(self) -> bool:
        """Tell whether nothing is left to be done: all is online, nothing ordered, and the scheduler's plan empty."""
        return not self.objection() and self.is_plan_empty()

    def objection(self) -> str:
        """Say what is not yet as it should be, by the facts of the hosts and the configuration; empty when all is."""
        if not self.all_online():
            return f"not all online: {({name: str(state) for name, state in self.states().items()})}"
        if self.has_open_orders():
            return "something is ordered and not yet answered"
        for name in self.names:
            if not self.is_up_to_date(name):
                return f"{name} is not up to date"
        unfree = unequal_claims(self.cib, self.truth.devices)
        return unfree or expectations.objection(self.cib, self.truth)

    def under_way(self) -> dict[Activity, list[Begun]]:
        """Return everything that takes a while and is in the middle of it now."""
        found: dict[Activity, list[Begun]] = {}
        for begun in (*self._agents_under_way(), *self._changes_under_way()):
            found.setdefault(begun.activity, []).append(begun)
        return found

    def _agents_under_way(self) -> Iterator[Begun]:
        for name in self.names:
            host = self.hosts[name]
            for running in () if host.boot is None else self.agents_of(host, host.boot).records():
                activity = None if running.is_ended else activity_of(running.call, self.checkers.log)
                if activity is not None:
                    yield Begun(activity, name)

    def _changes_under_way(self) -> Iterator[Begun]:
        for order in self.cib.status.fence_orders.values():
            activity = Activity.UNFENCE if order.action is FenceAction.ON else Activity.FENCE
            yield Begun(activity, order.executor, order.target)
        controller = self.cib.status.controller
        where = self.names[0] if controller is None else controller.node
        if self.awaited:
            yield Begun(Activity.CONFIGURATION, where)
        for name in sorted(self.installing):
            yield Begun(Activity.SNAPSHOT, name)
        for name, status in self.cib.status.nodes.items():
            if name in self.names and self.incarnation_at(name) not in (None, status.incarnation):
                yield Begun(Activity.JOIN, name)
            if status.membership < self.cib.membership.version and status.state is NodeState.ONLINE:
                yield Begun(Activity.MEMBERS, name)

    def _wall_of_controller(self) -> WallTime:
        """Return the time at which the DC plans: failures expire by its clock, right or wrong."""
        controller = self.cib.status.controller
        if controller is None:
            return WallTime(EPOCH_MS + self.world.now_ms)
        return self.hosts[controller.node].wall.now()

    def is_plan_empty(self) -> bool:
        """Ask the scheduler, at most once for each CIB and half second."""
        asked = (self.cib.index, self.world.now_ms // 500)
        if self._plan_asked != asked:
            self._plan_asked = asked
            plan = self.plan(self.cib, self._wall_of_controller())
            self._plan_was_empty = not plan.graph.actions
        return self._plan_was_empty

    def is_well(self, node: NodeName) -> bool:
        """Tell whether a node is well, hears a majority of the voters, and is heard by one that hears everybody.

        Then there is no reason to declare it lost. What members without a vote hear counts for nothing (safety.md §4).
        The one that hears everybody has to be online: a voter whose join is held cannot be the DC.
        """
        long_us = (self.slowest.one_way_ms + 2000) * MS
        short_us = self.fastest.node_timeout_ms * MS
        hosts, network = self.hosts, self.network
        is_disk_hanging = hosts[node].disk.sync_us[1] >= self.timing.brain_timeout_ms * MS
        if hosts[node].calm_us() < long_us or is_disk_hanging or self.reads_less(node):
            return False
        voters = self.cib.voters()
        heard = [
            voter
            for voter in voters
            if voter != node and min(hosts[voter].calm_us(), network.calm_us(node, voter)) >= long_us
        ]
        if 2 * (len(heard) + (node in voters)) <= len(voters):
            return False
        for voter in heard:
            if self.cib.status.nodes[voter].state is not NodeState.ONLINE:
                continue
            rest = [name for name in self.names if name not in (node, voter)]
            calm = {name: min(hosts[name].calm_us(), network.calm_us(name, voter)) for name in rest}
            if all(span >= long_us or 0 <= span < short_us for span in calm.values()):
                return True
        return False

    def reads_less(self, node: NodeName) -> bool:
        """Tell whether the version that is installed on a node may not join."""
        return self.feature_levels.get(node, FEATURE_LEVEL) < self.cib.feature_level

    def plan(self, cib: Cib, now: WallTime) -> Plan:
        """Plan as the controllers do, by the rules that are in force."""
        cib = cib.as_in_force()
        return self.scheduler(cib if self._keeps_all_rules else seen_by(self.rules, cib), now)

    def agents_of(self, host: Host, boot: Boot) -> HostAgents:
        """Return the agents that run, or can be run, in one boot of a host."""
        return HostAgents(self.world, self.truth, self.agent_script, host.name, boot)

    # -- what checkers ask ------------------------------------------------------------------------------------------

    def incarnation_at(self, node: NodeName) -> Incarnation | None:
        """See `Scene.incarnation_at`."""
        process = self.hosts[node].brain.process
        return process.incarnation if isinstance(process, BrainProcess) and process.life.is_alive else None

    def applied_at(self, node: NodeName) -> Cib | None:
        """See `Scene.applied_at`."""
        process = self.hosts[node].brain.process
        return process.shown if isinstance(process, BrainProcess) else None

    def lease_left_ms(self, node: NodeName) -> int:
        """See `Scene.lease_left_ms`."""
        boot, incarnation = self.hosts[node].boot, self.incarnation_at(node)
        if boot is None or incarnation is None:
            return -1
        return PacerPage(boot.page).lease_until(incarnation.token) - boot.clock.now()

    def is_at_work(self, node: NodeName) -> bool:
        """See `Scene.is_at_work`."""
        process = self.hosts[node].brain.process
        return process is not None and process.is_at_work

    def is_hidden_from(self, node: NodeName, call: AgentCall) -> bool:
        """See `Scene.is_hidden_from`."""
        resource = call.resource
        return self.truth.is_active(node, resource) and not self.truth.is_known_to(maker(call), node, resource)

    def services_on(self, node: NodeName) -> tuple[ResourceId, ...]:
        """See `Scene.services_on`."""
        return self.truth.services_on(node)

    def agents_at_work(self, node: NodeName, resource: ResourceId) -> tuple[AgentCall, ...]:
        """See `Scene.agents_at_work`."""
        host = self.hosts[node]
        return () if host.boot is None else self.agents_of(host, host.boot).at_work(resource)

    def stood_us(self, node: NodeName, since_us: int) -> int:
        """See `Scene.stood_us`."""
        return self.hosts[node].stood_us(since_us)

    def boot_runs(self, node: NodeName, boot_id: str) -> bool:
        """See `Scene.boot_runs`."""
        boot = self.hosts[node].boot
        return boot is not None and boot.boot_id == boot_id
