"""The language of scenarios: a cluster, the faults that it meets, and what must hold afterwards.

    cluster = Cluster(seed=1)
    cluster.form()
    cluster.power_off(cluster.node_of("db"))
    cluster.until(lambda: cluster.runs_once("db"), within_ms=6000)

Every method that changes something acts at the present virtual instant; only `run_for` and `until` let time pass. A
rule that is broken on the way raises `ViolationError`. What may be asked of a cluster is in `facts.py`.
"""

import random
from collections.abc import Callable, Iterator, Sequence

from haclusterd.cib import codec
from haclusterd.cib.commands import ChangeConfiguration, ChangeMembers, Command, Envelope
from haclusterd.cib.edits import Edit
from haclusterd.cib.recovery import asking_what_runs, folded, status_of_the_one_left
from haclusterd.model.cluster import Cib, Member
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import Incarnation, NodeName, RequestId, ResourceId, Term
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass, replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.timing import derive
from haclusterd.raft.identity import adopt_machine, create_identity, require_identity
from haclusterd.raft.recovery import INITIAL_INDEX, LogRead, begin_log, read_log
from haclusterd.simulator.brain import BrainProcess, Surroundings
from haclusterd.simulator.checks.activities import Activities, Activity, Begun
from haclusterd.simulator.checks.checker import Checker, ViolationError
from haclusterd.simulator.checks.checkers_of_alerts import AlertsArriveInOrder
from haclusterd.simulator.checks.checkers_of_copies import NeverTwoActive
from haclusterd.simulator.checks.checkers_of_devices import judges_of_devices
from haclusterd.simulator.checks.checkers_of_health import UnhealthyNodesAreLeft
from haclusterd.simulator.checks.checkers_of_minimums import FollowersWaitForInstances
from haclusterd.simulator.checks.checkers_of_notifications import InstancesAreNotified
from haclusterd.simulator.checks.checkers_of_targets import DevicesAreAskedForTheirNodes
from haclusterd.simulator.checks.checkers_of_the_dead import FenceAgentsActInTime, TheDeadAreFencedFirst
from haclusterd.simulator.checks.coverage import Coverage
from haclusterd.simulator.checks.folding import SharedFolding
from haclusterd.simulator.facts import ClusterFacts
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentBehaviour
from haclusterd.simulator.hosts.alert_agents import AlertBehaviour, DeliveredAlert
from haclusterd.simulator.hosts.clocks import EPOCH_MS
from haclusterd.simulator.hosts.fence_devices import PowerSwitch
from haclusterd.simulator.hosts.hosts import Boot, Host
from haclusterd.simulator.hosts.network import Datagrams, Streams
from haclusterd.simulator.hosts.pacers import PacerProcess
from haclusterd.simulator.hosts.planner import PlannerBehaviour
from haclusterd.simulator.hosts.world import MS, Life, World

CLUSTER_UUID = "5f3c1e0a-0000-4000-8000-000000000001"
ADMINISTRATOR = NodeName("administrator")
ADMINISTRATOR_REPEAT_MS = 700
FORMING_MS = 30_000
LOOK_US = 100 * MS


class NotReachedError(ViolationError):
    """A condition did not come to hold in time."""

    def __init__(self, what: str, within_ms: int) -> None:
        super().__init__("NotReachedError", f"{what} not within {within_ms} ms")


@dataclass(frozen=True, slots=True)
class Setup:
    """How a cluster is built."""

    nodes: int = 3
    node_timeout_ms: int = 2000
    brain_timeout_ms: int = 10_000
    drift_ppm: int = 5000
    """Fastest and slowest clock differ by twice this at most; 1 % is what safety.md §2 allows."""
    snapshot_every: int = 1000
    actions_max: int = 16
    links: int = 1
    """So many networks connect the nodes."""
    witnesses: int = 0
    """So many of the nodes, the last ones, vote and run nothing."""
    watchdog_ms: int = 0
    """T_wd of every host's watchdog device; 0: there are none."""
    watchdog_reset_ms: tuple[int, int] = (0, 0)
    """From a device's expiry to the reset, at least and at most."""
    are_drifts_extreme: bool = False
    """Every clock and every device is as wrong as `drift_ppm` allows, in one direction or the other."""

    def drift(self, chance: random.Random) -> int:
        """Draw how wrong one clock or device is, in millionths."""
        if self.are_drifts_extreme:
            return chance.choice((-self.drift_ppm, self.drift_ppm))
        return chance.randint(-self.drift_ppm, self.drift_ppm)


def successor_of(cib: Cib) -> Cib:
    """Return what another cluster begins with that continues one: the configuration, as its next version."""
    version = replace(cib.version, epoch=cib.version.epoch + 1)
    return Cib(configuration=asking_what_runs(cib.configuration), version=version)


class Cluster(ClusterFacts):
    """A simulated cluster with every checker looking on."""

    def __init__(self, seed: int = 1, setup: Setup = Setup(), rules: SafetyRules = ALL_RULES) -> None:
        names = tuple(NodeName(f"n{number + 1}") for number in range(setup.nodes))
        timing = derive(setup.node_timeout_ms, setup.brain_timeout_ms)
        super().__init__(World(seed), names, timing, links=setup.links, rules=rules)
        self.setup = setup
        self.witnesses = names[setup.nodes - setup.witnesses :]
        self.datagrams = Datagrams(self.network)
        self.streams = Streams(self.network, silence_ms=4 * self.timing.election_min_ms)
        self.usual_behaviour = AgentBehaviour()
        """How agents behave where no fault has them behave otherwise."""
        self.begins_with = 1
        """The version of the configuration before anybody changes what the seed began with."""
        drifts = self.world.chance("drift")
        for name in names:
            self.hosts[name] = Host(self.world, self.truth, name, drift_ppm=setup.drift(drifts))
        self.switch = PowerSwitch(self.world, self.hosts)
        self.truth.show_to(self.checkers)
        self.coverage = Coverage(self, log := self.checkers.log)
        """What this run exercises."""
        self.activities = Activities(self, log)
        """What begins, for faults that wait for it."""
        self.alerts_judge = AlertsArriveInOrder(self, log)
        self.checkers.add(self.coverage, self.activities, self.alerts_judge, *self._judges())
        self.planners = PlannerBehaviour()
        """How long the controllers' plans take, and whether they come at all."""
        self.may_crash: Callable[[NodeName, Exception], bool] = lambda _node, _error: False
        """Whether the scenario expects a daemon to crash."""
        self._requests = self._clusters = 0
        self.is_being_repaired = False
        """A person is at work on what is left of it."""
        self._read_from: Configuration | None = None
        self._surroundings = Surroundings(
            world=self.world,
            members=self._first_members(),
            cluster_uuid=CLUSTER_UUID,
            timing=self.timing,
            rules=rules,
            streams=self.streams,
            switch=self.switch,
            truth=self.truth,
            checkers=self.checkers,
            alert_behaviour=AlertBehaviour(self.world.chance("alert agents")),
            scheduler=self.plan,
            planners=self.planners,
            folding=SharedFolding(),
            may_crash=self._may_crash,
            coverage=self.coverage,
            installs=self._installs,
            snapshot_every=setup.snapshot_every,
            actions_max=setup.actions_max,
            watchdog_ms=setup.watchdog_ms,
            feature_levels=self.feature_levels,
        )
        for host in self.hosts.values():
            self._equip(host, self._surroundings)
        self.world.after(LOOK_US, self._look)

    @property
    def alert_behaviour(self) -> AlertBehaviour:
        """How calls of alert agents end."""
        return self._surroundings.alert_behaviour

    def _judges(self) -> Iterator[Checker]:
        """Yield the checkers that ask more than the log and the scene."""
        log = self.checkers.log
        yield NeverTwoActive(self, log)
        yield TheDeadAreFencedFirst(self, log, self.truth)
        yield FenceAgentsActInTime(self, log, self.switch)
        yield InstancesAreNotified(self, log)
        yield UnhealthyNodesAreLeft(self, log, self.truth, self.coverage, self._is_idle)
        yield DevicesAreAskedForTheirNodes(self, log, self.switch, self.coverage)
        yield FollowersWaitForInstances(self, log, self.truth, self.coverage)
        yield from judges_of_devices(self, log, self.truth.devices)

    def _is_idle(self) -> bool:
        """Tell whether all nodes are online, nothing is ordered, and plans would be made."""
        return self.all_online() and not self.has_open_orders() and self.planners == PlannerBehaviour()

    def _look(self) -> None:
        self._read_timing()
        for name in self.names:
            self.checkers.looked_at(name)
        self.world.after(LOOK_US, self._look)

    def _read_timing(self) -> None:
        """Notice what people make of node-timeout."""
        configuration = self.cib.in_force
        if configuration is self._read_from or not self.cib.version.epoch:
            return
        self._read_from = configuration
        node_timeout_ms = ClusterProperties(configuration).duration_ms("node-timeout")
        if node_timeout_ms > self.slowest.node_timeout_ms:
            self.slowest = derive(node_timeout_ms, self.setup.brain_timeout_ms)
        if node_timeout_ms < self.fastest.node_timeout_ms:
            self.fastest = derive(node_timeout_ms, self.setup.brain_timeout_ms)

    @property
    def alerts(self) -> list[DeliveredAlert]:
        """Calls of alerts' agents, in the order in which they began."""
        return self._surroundings.alerts

    def add_host(self) -> NodeName:
        """Bring a machine that knows who the members are, and is none itself yet; return its name."""
        name = NodeName(f"n{len(self.hosts) + 1}")
        drift_ppm = self.setup.drift(self.world.chance(f"drift/{name}"))
        self.hosts[name] = host = Host(self.world, self.truth, name, drift_ppm=drift_ppm)
        known = tuple(self.cib.members.values())
        self._equip(host, replace(self._surroundings, members=(*known, self.member_of(name))))
        self.names = (*self.names, name)
        return name

    def add_copy(self, node: NodeName, machine: NodeName) -> Host:
        """Bring a machine whose daemon says that it is `node`, at another address; it has no power yet."""
        drift_ppm = self.setup.drift(self.world.chance(f"drift/{machine}"))
        copy = Host(self.world, self.truth, machine, drift_ppm=drift_ppm, node=node)
        self.hosts[machine] = copy
        self._equip(copy, replace(self._surroundings, members=tuple(self.cib.members.values())))
        copy.disk.empty()
        return copy

    def say_it_is(self, host: Host) -> None:
        """`crm cluster this-is`, on a host whose daemon does not run; then it is started."""
        life = Life(self.world, "this-is")
        files = host.disk.files(life)
        identity = require_identity(files, self._surroundings.cluster_uuid, host.node)
        adopt_machine(files, identity, host.marks)
        life.end()
        if host.boot is not None:
            host.brain.launch(host.boot)

    def is_foreign(self, host: Host) -> bool:
        """Tell whether the data on a host's disk belongs to another machine."""
        files = host.disk.files(Life(self.world, "look"))
        machine = require_identity(files, self._surroundings.cluster_uuid, host.node).machine
        return machine is not None and machine not in host.marks

    def member_of(self, node: str) -> Member:
        """Return the member that a host which was added can become, at first without a vote."""
        return Member(NodeName(node), self._addresses_of(node), is_voter=False, certificate=f"of {node}")

    def _first_members(self) -> tuple[Member, ...]:
        return tuple(Member(name, self._addresses_of(name), is_witness=name in self.witnesses) for name in self.names)

    def _addresses_of(self, node: str) -> tuple[tuple[str, int], ...]:
        """Return an address on each network."""
        return tuple((f"10.0.{link}.{node.removeprefix('n')}", 5405) for link in range(self.setup.links))

    def begin_again(self, nodes: Sequence[str], state: Cib, term: Term) -> None:
        """Make another cluster of these nodes, whose daemons are stopped; all other machines must be off for good.

        It begins with a state of which no node knows what runs, after a term.
        """
        names = tuple(map(NodeName, nodes))
        assert not any(self.hosts[name].brain.is_running for name in names)
        assert not any(host.is_powered for name, host in self.hosts.items() if name not in names)
        self._clusters += 1
        members = tuple(Member(name, self._addresses_of(name)) for name in names)
        uuid = f"{CLUSTER_UUID[:-4]}{self._clusters + 1:04}"
        around = replace(self._surroundings, members=members, cluster_uuid=uuid, folding=SharedFolding())
        self.names, self._surroundings = names, around
        self.checkers.another_log_begins()
        for host in (self.hosts[name] for name in names):
            host.disk.empty()
            files = host.disk.files(Life(self.world, "setup"))
            begin_log(files, uuid, host.name, codec.encode_cib(replace(state, index=INITIAL_INDEX)), term)
            create_identity(files, uuid, host.name)
            self._install(host, around)

    def recover(self, node: str) -> LogRead:
        """`crm cluster recover`: a node whose daemon is stopped continues alone with what its log says; return that."""
        name = NodeName(node)
        life = Life(self.world, "recovery")
        found = read_log(self.hosts[name].disk.files(life), self._surroundings.cluster_uuid, name)
        life.end()
        lost = folded(found.snapshot, found.entries)
        self.begin_again([node], replace(successor_of(lost), status=status_of_the_one_left(lost, name)), found.term)
        return found

    def restore_backup(self) -> None:
        """`crm cluster restore` on the same machines, on which no daemon runs, from a backup of this moment."""
        self.begin_again(self.names, successor_of(self.cib), Term(0))

    @property
    def clusters(self) -> int:
        """How many clusters have followed the first one, on its machines."""
        return self._clusters

    def forget_host(self, node: str) -> None:
        """Expect nothing of a machine any more; it may come back, and must do no harm."""
        self.names = tuple(name for name in self.names if name != node)

    def _equip(self, host: Host, around: Surroundings) -> None:
        host.watchdog_timeout_ms = self.setup.watchdog_ms
        if self.setup.watchdog_ms:
            crystals = self.world.chance(f"watchdog/{host.name}")
            host.watchdog_drift_ppm = self.setup.drift(crystals)
            host.watchdog_reset_ms = crystals.randint(*self.setup.watchdog_reset_ms)
        create_identity(host.disk.files(Life(self.world, "setup")), around.cluster_uuid, host.name)
        self._install(host, around)

    def _install(self, host: Host, around: Surroundings) -> None:
        def start_pacer(boot: Boot) -> PacerProcess:
            return PacerProcess(host, boot, self.datagrams, self.rules, self._lease_published)

        def start_brain(boot: Boot) -> BrainProcess:
            return BrainProcess(around, host, boot, self.agents_of(host, boot))

        host.pacer.start = start_pacer
        host.brain.start = start_brain

    def _may_crash(self, node: NodeName, error: Exception) -> bool:
        return self.may_crash(node, error)

    def _installs(self, node: NodeName, *, is_under_way: bool) -> None:
        """A node begins to read a snapshot that came from another one, or is done with that."""
        if is_under_way and node not in self.installing:
            self.installing.add(node)
            self.activities.begins(Begun(Activity.SNAPSHOT, node, self.names[0]))
        elif not is_under_way:
            self.installing.discard(node)

    def _lease_published(self, node: NodeName, incarnation: Incarnation, until: Instant) -> None:
        boot = self.hosts[node].boot
        if boot is not None:
            self.checkers.lease_published(node, incarnation, until, boot.clock.virtual_us(until))

    # -- time -------------------------------------------------------------------------------------------------------

    def run_for(self, span_ms: int) -> None:
        """Let time pass."""
        self.world.run_until(self.world.now_us + span_ms * MS)

    def until(self, condition: Callable[[], bool], within_ms: int, what: str = "the condition") -> int:
        """Let time pass until a condition holds; return after how many ms. Raises NotReachedError."""
        began_us = self.world.now_us
        if not self.world.run_until(began_us + within_ms * MS, condition):
            raise NotReachedError(what, within_ms)
        return (self.world.now_us - began_us) // MS

    def until_settled(self, within_ms: int, what: str) -> int:
        """Let time pass until nothing is left to be done, looking ten times in a second; return after how many ms."""
        began_us = self.world.now_us
        while (objection := self.objection()) or not self.is_plan_empty():
            if self.world.now_us - began_us >= within_ms * MS:
                raise NotReachedError(f"{what} ({objection or 'the plan is not empty'})", within_ms)
            self.world.run_until(self.world.now_us + LOOK_US)
        return (self.world.now_us - began_us) // MS

    # -- beginning --------------------------------------------------------------------------------------------------

    def form(self, edits: Sequence[Edit] | None = None) -> "Cluster":
        """Give power to all hosts, load a configuration, and wait until everything in it runs."""
        self.power_all()
        self.until(self.all_online, FORMING_MS, "all nodes online")
        names = list(self.names)
        usual = configurations.usual(
            names,
            node_timeout=f"{self.setup.node_timeout_ms}ms",
            brain_timeout=f"{self.setup.brain_timeout_ms}ms",
        )
        self.configure(usual if edits is None else edits)
        self.until(self.is_settled, FORMING_MS, "everything started")
        return self

    def power_all(self) -> None:
        """Give power to all hosts."""
        for name in self.names:
            self.hosts[name].power_on()

    def configure(self, edits: Sequence[Edit], within_ms: int = 5000) -> None:
        """Change the configuration and wait until that is committed."""
        epoch = self.cib.version.epoch
        self.edit(edits)
        self.until(lambda: self.cib.version.epoch > epoch, within_ms, "the configuration committed")

    def edit(self, edits: Sequence[Edit]) -> None:
        """Ask for a change of the configuration, against the version that is newest now, and do not wait."""
        self.administer(ChangeConfiguration(self.cib.version.epoch, tuple(edits), "scenario", "configured"))

    def administer(self, command: Command) -> None:
        """Have a command proposed by a node that can, again and again until it is applied."""
        self._requests += 1
        wall = WallTime(EPOCH_MS + self.world.now_ms)
        envelope = Envelope(RequestId(f"administrator-{self._requests}"), ADMINISTRATOR, wall, command)
        if isinstance(command, ChangeConfiguration | ChangeMembers):
            self.awaited.add(envelope.request)
        self._propose(envelope)

    def _propose(self, envelope: Envelope) -> None:
        if envelope.request in self.cib.requests.get(ADMINISTRATOR, ()):
            self.awaited.discard(envelope.request)
            return
        for name in self.names:
            process = self.hosts[name].brain.process
            if isinstance(process, BrainProcess) and process.life.is_running and process.has_leader:
                process.store.propose(codec.encode_envelope(envelope))
                break
        self.world.after(ADMINISTRATOR_REPEAT_MS * MS, lambda: self._propose(envelope))

    # -- faults -----------------------------------------------------------------------------------------------------

    def power_off(self, node: str) -> None:
        """Cut a host's power."""
        self.hosts[NodeName(node)].power_off()

    def power_on(self, node: str) -> None:
        """Give it back."""
        self.hosts[NodeName(node)].power_on()

    def kill_brain(self, node: str) -> None:
        """SIGKILL to the daemon; systemd starts it again."""
        self.hosts[NodeName(node)].brain.kill()

    def reload_brain(self, node: str) -> None:
        """SIGHUP to the daemon: it ends its work in order and puts a new image into its process."""
        unit = self.hosts[NodeName(node)].brain
        process = unit.process
        if not isinstance(process, BrainProcess):
            return

        def renew() -> None:
            process.runtime.stop()
            unit.renew()

        process.main_life.do(renew)

    def kill_pacer(self, node: str) -> None:
        """SIGKILL to the pacer; systemd starts it again."""
        self.hosts[NodeName(node)].pacer.kill()

    def pause_brain(self, node: str) -> None:
        """SIGSTOP to the daemon."""
        self.hosts[NodeName(node)].brain.pause()

    def resume_brain(self, node: str) -> None:
        """SIGCONT to the daemon."""
        self.hosts[NodeName(node)].brain.resume()

    def hang_main_loop(self, node: str) -> None:
        """Stop a daemon's main loop alone."""
        self.hosts[NodeName(node)].brain.hang(self.brain_of(node).main_life)

    def hang_raft_thread(self, node: str) -> None:
        """Stop a daemon's Raft thread alone."""
        self.hosts[NodeName(node)].brain.hang(self.brain_of(node).raft_life)

    def resume_main_loop(self, node: str) -> None:
        """Let a daemon's main loop continue."""
        self.hosts[NodeName(node)].brain.unhang(self.brain_of(node).main_life)

    def resume_threads(self, node: str) -> None:
        """Let a daemon's threads continue."""
        for thread in (self.brain_of(node).main_life, self.brain_of(node).raft_life):
            self.hosts[NodeName(node)].brain.unhang(thread)

    def stall(self, node: str, *, with_clocks: bool = False) -> None:
        """Stop a whole host for a while; see `Host.stall`."""
        self.hosts[NodeName(node)].stall(with_clocks=with_clocks)

    def go_on(self, node: str) -> None:
        """End its stall."""
        self.hosts[NodeName(node)].go_on()

    def cut(self, one: str, other: str) -> None:
        """Cut both directions between two nodes."""
        self.cut_one_way(one, other)
        self.cut_one_way(other, one)

    def cut_one_way(self, source: str, target: str) -> None:
        """Let nothing of `source` reach `target` any more."""
        self.network.cut(NodeName(source), NodeName(target))

    def restore(self, one: str, other: str) -> None:
        """Open both directions between two nodes."""
        self.network.restore(NodeName(one), NodeName(other))
        self.network.restore(NodeName(other), NodeName(one))

    def drop_streams(self, one: str, other: str) -> None:
        """Filter TCP between two nodes, both ways; datagrams pass."""
        self.drop_streams_one_way(one, other)
        self.drop_streams_one_way(other, one)

    def drop_streams_one_way(self, source: str, target: str) -> None:
        """Let no segment of a stream of `source` reach `target`."""
        self.network.drop_streams(NodeName(source), NodeName(target))

    def drop_streams_of(self, node: str) -> None:
        """Filter all TCP of a node, both ways; its heartbeats pass."""
        for other in self.others(node):
            self.drop_streams(node, other)

    def drop_datagrams(self, one: str, other: str) -> None:
        """Filter UDP between two nodes, both ways; streams pass."""
        self.drop_datagrams_one_way(one, other)
        self.drop_datagrams_one_way(other, one)

    def drop_datagrams_one_way(self, source: str, target: str) -> None:
        """Let no datagram of `source` reach `target`."""
        self.network.drop_datagrams(NodeName(source), NodeName(target))

    def drop_datagrams_of(self, node: str) -> None:
        """Filter all UDP of a node, both ways; its streams pass."""
        for other in self.others(node):
            self.drop_datagrams(node, other)

    def end_filters(self) -> None:
        """End every filter of streams or datagrams alone."""
        for source in self.names:
            for target in self.others(source):
                self.network.pass_streams(source, target)
                self.network.pass_datagrams(source, target)

    def isolate(self, node: str) -> None:
        """Cut a node off from all others."""
        for other in self.names:
            if other != node:
                self.cut(node, other)

    def rejoin(self, node: str) -> None:
        """End its isolation."""
        for other in self.names:
            if other != node:
                self.restore(node, other)

    def heal(self) -> None:
        """End every fault there is, and bring every host and process back, except those that were given away."""
        self.network.restore_all()
        self.network.set_conditions(type(self.network.conditions)())
        self.agent_script.clear()
        self.agent_script.behaviour = self.usual_behaviour = AgentBehaviour(units=self.usual_behaviour.units)
        self.switch.repair()
        self.truth.devices.heal()
        for host in (self.hosts[name] for name in self.names):
            host.disk.is_full = False
            host.disk.fails_syncs = False
            host.disk.sync_us = (300, 3 * MS)
            host.is_watchdog_taken = False
            host.go_on()
            for unit in (host.pacer, host.brain):
                unit.resume()
                unit.enable()
            host.power_on()

    def upgrade(self, node: NodeName) -> None:
        """Install on a node a version that reads what the cluster uses, where it has an older one."""
        if self.reads_less(node):
            self.feature_levels[node] = self.cib.feature_level
            self.reload_brain(node)

    def kill_service(self, resource: str) -> None:
        """Let a service die where it runs."""
        for node in self.truth.active_nodes(ResourceId(resource)):
            self.truth.service_ends(node, ResourceId(resource))
