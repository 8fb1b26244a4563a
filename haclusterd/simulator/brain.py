"""One run of a simulated daemon: the production runtime over simulated ports.

This is the simulator's composition root; `entry_points.daemon` is the other one. What they share is everything
below the ports.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from haclusterd.adapters.network.peer_messages import RaftPeerMessages
from haclusterd.cib.changes import Applied
from haclusterd.cib.codec import FEATURE_LEVEL
from haclusterd.cib.commands import IssueOrders
from haclusterd.cib.levels import rules_at
from haclusterd.model.cluster import Cib, HistoryMark, Member
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.loop_stalls import LoopStall
from haclusterd.model.records import dataclass, field
from haclusterd.model.rules_in_force import SafetyRules
from haclusterd.model.timing import Timing
from haclusterd.model.watchdog import WatchdogSettings
from haclusterd.ports import store as store_port
from haclusterd.ports.background import WorkFailed
from haclusterd.ports.crashes import CrashRecord
from haclusterd.ports.event_log import FieldValue, Priority
from haclusterd.ports.history import (
    Comparison,
    FollowAnswer,
    FollowQuery,
    HistoryAnswer,
    HistoryQuery,
    HistoryRow,
    Horizon,
    KeptVersion,
    NewVersion,
    Position,
    VersionAnswer,
    VersionQuery,
)
from haclusterd.ports.store import StoreDamagedError, StoreEvent, StoreRefusedError, StoreUnwritableError
from haclusterd.raft.settings import RaftSettings, RaftTimers
from haclusterd.runtime.node import NodeRuntime
from haclusterd.runtime.ports import NodePorts
from haclusterd.runtime.replica import Replica
from haclusterd.runtime.requests.control import ControlService
from haclusterd.runtime.settings import NodeSettings
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.checks.checkers import Checkers
from haclusterd.simulator.checks.coverage import Coverage
from haclusterd.simulator.checks.folding import SharedFolding
from haclusterd.simulator.checks.observed import ObservedMachine, ObservedRuntime, ObservedStore
from haclusterd.simulator.hosts.agents import HostAgents, SimulatedAgents
from haclusterd.simulator.hosts.alert_agents import AlertBehaviour, DeliveredAlert, SimulatedAlertAgents
from haclusterd.simulator.hosts.clocks import ProcessClock, SeededEntropy
from haclusterd.simulator.hosts.devices import SimulatedDevices
from haclusterd.simulator.hosts.fence_devices import PowerSwitch, SimulatedFenceAgents
from haclusterd.simulator.hosts.hosts import Boot, Host
from haclusterd.simulator.hosts.network import Streams
from haclusterd.simulator.hosts.pacers import SimulatedPacer
from haclusterd.simulator.hosts.planner import PlannerBehaviour, Scheduler, SimulatedPlanner
from haclusterd.simulator.hosts.raft import SimulatedRaft
from haclusterd.simulator.hosts.secrets import SimulatedKeeper
from haclusterd.simulator.hosts.truth import Truth
from haclusterd.simulator.hosts.world import MS, Life, World

T = TypeVar("T")


class Installs(Protocol):
    """Takes note of snapshots that are read."""

    def __call__(self, node: NodeName, *, is_under_way: bool) -> None:
        """It begins, or ends."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all daemons of a cluster have in common."""

    world: World
    members: tuple[Member, ...]
    cluster_uuid: str
    timing: Timing
    rules: SafetyRules
    streams: Streams
    switch: PowerSwitch
    truth: Truth
    checkers: Checkers
    alert_behaviour: AlertBehaviour
    scheduler: Scheduler
    planners: PlannerBehaviour
    folding: SharedFolding
    may_crash: Callable[[NodeName, Exception], bool]
    """Whether a scenario expects a daemon to crash of this."""
    coverage: Coverage
    installs: Installs
    """Called when a node begins to read a snapshot that came from another one, and when that ends."""
    snapshot_every: int = 1000
    actions_max: int = 16
    watchdog_ms: int = 0
    alerts: list[DeliveredAlert] = field(default_factory=list)
    """Calls of alerts' agents, in the order in which they began."""
    feature_levels: Mapping[NodeName, int] = field(default_factory=dict)
    """What daemons of older versions read, where one is installed."""

    def alert_begins(self, delivered: DeliveredAlert) -> None:
        """Note a call of an alert's agent, and have it judged."""
        self.alerts.append(delivered)
        self.checkers.alert_begins(delivered)

    def level_of(self, node: NodeName) -> int:
        """Return what a node's daemon reads; of the rules, too, it has those of this level."""
        return self.feature_levels.get(node, FEATURE_LEVEL)


def pair_key(one: NodeName, other: NodeName) -> bytes:
    """Return the heartbeat key of a pair of nodes."""
    first, second = sorted((one, other))
    return f"heartbeats of {first} and {second}".encode().ljust(32, b".")


LOADING_US = (5 * MS, 250 * MS)
"""How long snapshot and journal take to read."""
RECORDED_BY_THE_HOST = ("effect.run-agent", "event.agent-finished")


class CrashesOfBoot:
    """The `CrashRecords` of one boot: a file under /run."""

    def __init__(self, boot: Boot) -> None:
        self._boot = boot

    def recent(self) -> tuple[CrashRecord, ...]:
        """See `CrashRecords.recent`."""
        return tuple(self._boot.crashes)

    def add(self, record: CrashRecord) -> None:
        """See `CrashRecords.add`."""
        self._boot.crashes.append(record)


class RecordedLog:
    """The `EventLog` of one daemon: its lines become part of the run's record."""

    def __init__(self, world: World, node: NodeName) -> None:
        self._world = world
        self._node = node

    def write(self, kind: str, /, *, priority: Priority = Priority.INFO, **fields: FieldValue) -> None:
        """See `EventLog.write`."""
        if priority is Priority.DEBUG:
            return
        rest = " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
        line = f"{self._node} {kind} {rest}"
        (self._world.mark if kind in RECORDED_BY_THE_HOST else self._world.record)(line)

    def flush(self, timeout_ms: int) -> bool:  # noqa: ARG002 (nothing is ever under way)
        """See `EventLog.flush`."""
        return True


class VersionsAlone:
    """A `History` that keeps the versions of the configuration, and no rows: the run's record has them all."""

    def __init__(self, versions: dict[int, NewVersion]) -> None:
        self._versions = versions
        """On the host's disk, by number."""

    def start(self, failed: Callable[[str], None]) -> None:
        """See `History.start`."""

    def record(
        self,
        index: int,  # noqa: ARG002 (the port has it)
        rows: tuple[HistoryRow, ...],  # noqa: ARG002 (the port has it)
        before: HistoryMark,  # noqa: ARG002 (the port has it)
        after: HistoryMark,  # noqa: ARG002 (the port has it)
        version: NewVersion | None = None,
    ) -> None:
        """See `History.record`."""
        if version is not None:
            self._versions[version.number] = version

    def restored(self, index: int, mark: HistoryMark, version: NewVersion | None = None) -> None:  # noqa: ARG002 (the port has it)
        """See `History.restored`."""
        if version is not None:
            self._versions.setdefault(version.number, version)

    def compare(self, peers: tuple[NodeName, ...], done: Callable[[Comparison], None]) -> None:
        """See `History.compare`."""
        done(Comparison((), peers))

    def horizon(self, before: WallTime, rows_max: int, done: Callable[[Horizon | None], None]) -> None:  # noqa: ARG002 (the port has it)
        """See `History.horizon`."""
        done(None)

    def query(self, query: HistoryQuery, done: Callable[[HistoryAnswer], None]) -> None:  # noqa: ARG002 (the port has it)
        """See `History.query`."""
        done(HistoryAnswer((), self.problem()))

    def follow(self, query: FollowQuery, done: Callable[[FollowAnswer], None]) -> None:
        """See `History.follow`."""
        done(FollowAnswer((), query.after or Position(0)))

    def versions(self, query: VersionQuery, done: Callable[[VersionAnswer], None]) -> None:
        """See `History.versions`."""
        known = self._versions
        listed = tuple(KeptVersion(each.number, each.at, each.author, each.reason, "")
                       for _, each in sorted(known.items()))  # fmt: skip
        contents = {number: known[number].encode() for number in query.contents if number in known}
        done(VersionAnswer(listed, contents, self.problem()))

    def problem(self) -> str:
        """See `History.problem`."""
        return ""

    def stop(self, timeout_ms: int) -> None:
        """See `History.stop`."""


class AtOnce:
    """The `Background` of a simulated daemon: work takes no virtual time."""

    def run(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """See `Background.run`."""
        done(work())

    def apart(
        self, work: Callable[[], bytes], done: Callable[[bytes | WorkFailed], None], whose: str = ""  # noqa: ARG002 (nobody waits here)
    ) -> Callable[[], None]:
        """See `Background.apart`."""
        done(work())
        return _nothing


def _nothing() -> None:
    return None


class NoLoopStalls:
    """Simulated loops are never held up by their own work."""

    def longest(self) -> tuple[LoopStall, ...]:
        """See `LoopStalls.longest`."""
        return ()


class BrainProcess:
    """One run of a host's daemon, from its start to its end."""

    def __init__(self, around: Surroundings, host: Host, boot: Boot, hosted: HostAgents) -> None:
        world = around.world
        self.may_restart = True
        self.refusal = ""
        """Why it does not start with the data that it found."""
        self.life = Life(world, f"brain of {host.name}", boot.life)
        self.main_life = Life(world, f"main loop of {host.name}", self.life)
        self.raft_life = Life(world, f"Raft thread of {host.name}", self.life)
        self.shown: Cib | None = None
        """The newest CIB that the main loop was shown."""
        self.has_leader = False
        self._replicated = Cib()
        self._around = around
        self._host = host
        name = f"{host.name}/{host.boots}/{host.brain.starts}"
        loading_us = world.chance(f"loading/{name}").randint(*LOADING_US)
        pacer = SimulatedPacer(host, boot, self.main_life, loading_us)
        self._pacer = pacer
        rules, peer_messages = rules_at(around.rules, around.level_of(host.node)), RaftPeerMessages()
        self._replica = replica = Replica(pacer, rules=rules, folding=around.folding)
        self.raft = SimulatedRaft(
            host=host,
            boot=boot,
            main_life=self.main_life,
            raft_life=self.raft_life,
            process=self.life,
            streams=around.streams,
            settings=self._raft_settings(),
            machine=ObservedMachine(replica, self._outcome_seen, self._snapshot_read),
            chance=world.chance(f"raft/{name}"),
            pacer=pacer,
            loading_us=loading_us,
            fail=self._fail,
            greeting=self,
            peer_messages=peer_messages,
            messages_chance=world.chance(f"messages/{name}"),
        )
        self.store = self.raft.main
        ports = NodePorts(
            clock=ProcessClock(boot.clock, host.wall, self.main_life),
            entropy=SeededEntropy(world.chance(f"entropy/{name}")),
            store=ObservedStore(self.store, self._event_seen, self._proposal_seen),
            pacer=pacer,
            peer_messages=peer_messages,
            agents=SimulatedAgents(hosted, boot, self.main_life, around.truth),
            fence_agents=SimulatedFenceAgents(world, around.switch, boot, self.main_life, host.name),
            alerts=SimulatedAlertAgents(host, boot, self.main_life, around.alert_behaviour, around.alert_begins),
            log=RecordedLog(world, host.name),
            history=VersionsAlone(host.versions),
            planner=SimulatedPlanner(
                self.main_life, world.chance(f"planner/{name}"), around.scheduler, around.planners
            ),
            crashes=CrashesOfBoot(boot),
            loop_stalls=NoLoopStalls(),
            load=host,
            background=AtOnce(),
            secrets=SimulatedKeeper(host.node, world.chance(f"secrets/{name}")),
            devices=SimulatedDevices(
                around.truth.devices, host.name, self.main_life, world.chance(f"devices/{name}")
            ),
        )
        self.runtime: NodeRuntime = ObservedRuntime(self._settings(boot), ports, self._left, around.coverage)
        self.control = ControlService(self.runtime)
        """The administrator's way in."""
        self.life.when_it_raises = self._crash
        self.has_begun = False
        """Its own files are read."""
        self.life.at_end(lambda: around.installs(host.name, is_under_way=False))
        self._start()
        self.has_begun = True

    @property
    def incarnation(self) -> Incarnation:
        """Which life of the daemon this is now."""
        return self.runtime.incarnation

    @property
    def is_at_work(self) -> bool:
        """See `Process.is_at_work`."""
        return self.main_life.is_running and self.raft_life.is_running

    def objection(self, peer: NodeName, boot_id: str) -> str:
        """See `Greeting.objection`; as in `entry_points.daemon`."""
        runtime = self.runtime
        return runtime.copied_nodes.objection(
            peer,
            boot_id,
            joined=self._replica.incarnation_of(peer),
            report=self._pacer.report(),
            now=runtime.ports.clock.now(),
            heartbeat_ms=runtime.timing.heartbeat_ms,
        )

    def kept_out(self, peer: NodeName, why: str) -> None:
        """See `Greeting.kept_out`."""
        self.runtime.copied_nodes.kept_out(peer, why, self.runtime.ports.clock.now())

    def _start(self) -> None:
        try:
            self.runtime.start()
        except (StoreDamagedError, StoreRefusedError) as verdict:
            self._around.world.record(f"{self._host.name} does not start: {verdict}")
            self.refusal = str(verdict)
            self.may_restart = False
            self.life.end()
            return
        except StoreUnwritableError as verdict:
            self._around.world.record(f"{self._host.name} cannot write its data: {verdict}")
            self.life.end()
            return
        if self._host.disk.is_damaged:
            raise ViolationError("DamageIsRefused", f"{self._host.name} starts from a damaged disk")

    def _settings(self, boot: Boot) -> NodeSettings:
        around, host = self._around, self._host
        return NodeSettings(
            node=host.node,
            cluster_uuid=around.cluster_uuid,
            cluster_name="simulated",
            members=around.members,
            boot_id=boot.boot_id,
            keys={
                member.name: pair_key(host.node, member.name)
                for member in around.members
                if member.name != host.node
            },
            timing=around.timing,
            watchdog=WatchdogSettings("/dev/watchdog", around.watchdog_ms) if around.watchdog_ms else None,
            actions_max=around.actions_max,
            rules=rules_at(around.rules, around.level_of(host.node)),
            feature_level=around.level_of(host.node),
            derive_key=lambda peer, _certificate: pair_key(host.node, peer),
        )

    def _raft_settings(self) -> RaftSettings:
        voters = tuple(member.name for member in self._around.members if member.is_voter)
        timers = RaftTimers.derive(self._around.timing.node_timeout_ms)
        return RaftSettings(
            self._around.cluster_uuid,
            self._host.node,
            voters,
            timers,
            learners=tuple(member.name for member in self._around.members if not member.is_voter),
            machine=self._host.marks,
            snapshot_every=self._around.snapshot_every,
        )

    def _outcome_seen(self, outcome: object) -> None:
        if isinstance(outcome, Applied):
            self._around.checkers.applied(self._host.name, outcome, self._replicated)
            self._replicated = outcome.cib
        elif isinstance(outcome, Cib):
            self._around.checkers.restored(self._host.name, outcome)
            self._replicated = outcome

    def _snapshot_read(self, *, is_under_way: bool) -> None:
        if self.has_begun:
            self._around.installs(self._host.name, is_under_way=is_under_way)

    def _proposal_seen(self, entry: bytes) -> None:
        self._around.checkers.proposed(self._host.name, entry)

    def _event_seen(self, event: StoreEvent) -> None:
        match event:
            case store_port.Applied(outcome=Applied(cib=cib, envelope=envelope)):
                self.shown = cib
                if envelope is not None and isinstance(envelope.command, IssueOrders):
                    self._around.checkers.orders_received(self._host.name, envelope.command.orders)
            case store_port.Restored(outcome=Cib() as cib):
                self.shown = cib
            case store_port.LeadershipChanged(leader=leader):
                self.has_leader = leader is not None
            case _:
                pass

    def _fail(self, reason: str) -> None:
        self._around.world.record(f"{self._host.name} the store fails: {reason}")
        self.life.end()

    def _left(self) -> None:
        self._around.world.record(f"{self._host.name} has left")
        self.may_restart = False
        self.life.end()

    def _crash(self, error: Exception) -> bool:
        """An exception in the daemon ends it; unless the scenario expects that, it ends the run."""
        if isinstance(error, ViolationError) or not self._around.may_crash(self._host.name, error):
            return False
        self._around.world.record(f"{self._host.name} brain crashed: {type(error).__name__}: {error}")
        self.runtime.crashed(f"{type(error).__name__}: {error}")
        self.life.end()
        return True
