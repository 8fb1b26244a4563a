"""One daemon with plain stand-ins for its ports: its clock moves and its log commits only when a test says so."""

import heapq
import random
from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeVar

from haclusterd.cib import commands
from haclusterd.cib.changes import Applied as CibApplied
from haclusterd.cib.codec import decode_envelope, encode_envelope
from haclusterd.model.agent_calls import AdoptedAction, AgentCall, AgentResult, FenceCall, FenceCallResult
from haclusterd.model.alerts import AlertCall, AlertCallResult
from haclusterd.model.cluster import Cib, HistoryMark, Member
from haclusterd.model.device_reports import DevicesReport, DeviceUse
from haclusterd.model.devices import DeviceId
from haclusterd.model.graph import Plan, TransitionGraph
from haclusterd.model.history_chain import chained
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, RequestId, ResourceId, Term
from haclusterd.model.instants import NEVER, Instant, WallTime
from haclusterd.model.loop_stalls import LoopStall
from haclusterd.model.machine_load import MachineLoad
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport, PacerSettings
from haclusterd.model.planning import PlanAnswer
from haclusterd.model.remembered import FollowedRow
from haclusterd.ports.agents import AgentMetadata
from haclusterd.ports.background import WorkFailed
from haclusterd.ports.crashes import CrashRecord
from haclusterd.ports.event_log import FieldValue, Priority
from haclusterd.ports.fencing import FenceMetadata
from haclusterd.ports.history import (
    Comparison,
    FollowAnswer,
    FollowQuery,
    HistoryAnswer,
    HistoryQuery,
    HistoryRow,
    HistorySummary,
    Horizon,
    KeptVersion,
    NewVersion,
    Position,
    VersionAnswer,
    VersionQuery,
)
from haclusterd.ports.store import Applied, LeadershipChanged, PeerPlaces, StoreEvent, VoterLinks
from haclusterd.runtime.node import NodeRuntime
from haclusterd.runtime.ports import NodePorts
from haclusterd.runtime.replica import Replica
from haclusterd.runtime.settings import NodeSettings
from haclusterd.simulator.hosts.secrets import SimulatedKeeper

N1, N2, N3 = NAMES = tuple(NodeName(name) for name in ("n1", "n2", "n3"))
MEMBERS = tuple(Member(name, (("127.0.0.1", 7000),)) for name in NAMES)
START = 1_000_000
T = TypeVar("T")


class _Timer:
    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class ManualClock:
    """Time that is moved by hand."""

    def __init__(self) -> None:
        self.at = START
        self._serial = count()
        self._timers: list[tuple[int, int, _Timer]] = []

    def now(self) -> Instant:
        return Instant(self.at)

    def wall(self) -> WallTime:
        return WallTime(self.at)

    def call_at(self, when: Instant, call: Callable[[], None]) -> _Timer:
        timer = _Timer(call)
        heapq.heappush(self._timers, (max(when, self.at), next(self._serial), timer))
        return timer

    def call_soon(self, call: Callable[[], None]) -> None:
        self.call_at(self.now(), call)

    def run(self, span_ms: int = 0) -> int:
        """Let time pass; return how many calls were made."""
        end = self.at + span_ms
        calls = 0
        while self._timers and self._timers[0][0] <= end:
            when, _, timer = heapq.heappop(self._timers)
            self.at = max(self.at, when)
            if timer.call is not None:
                timer.call()
                calls += 1
        self.at = end
        return calls


class Entropy:
    """Tokens one after the other."""

    def __init__(self) -> None:
        self._serial = count(1)

    def token(self) -> str:
        return f"{next(self._serial):016x}"

    def fraction(self) -> float:
        return 0.5


class HandLog:
    """A store whose entries are committed by hand."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._deliver: Callable[[StoreEvent], None] | None = None
        self.entries: list[bytes] = []
        self.considered_index = 0
        self.index = 0
        self.term = Term(1)
        self.handed_to: list[NodeName] = []
        self.node_timeouts_ms: list[int] = []
        self.places: PeerPlaces | None = None

    def start(self, deliver: Callable[[StoreEvent], None]) -> None:
        self._deliver = deliver

    def propose(self, entry: bytes, term: Term | None = None) -> bool:
        if entry not in self.entries:
            self.entries.append(entry)
        return True

    def considered(self, index: int) -> None:
        self.considered_index = index

    def transfer_leadership(self, to: NodeName) -> None:
        self.handed_to.append(to)

    def follow_places(self, places: PeerPlaces) -> None:
        self.places = places

    def retime(self, node_timeout_ms: int) -> None:
        self.node_timeouts_ms.append(node_timeout_ms)

    def stop(self) -> None:
        self._deliver = None

    def tell(self, event: StoreEvent) -> None:
        assert self._deliver is not None
        self._deliver(event)

    def commit(self, entry: bytes) -> CibApplied:
        self.index += 1
        self._replica.appended(entry)
        replica = self._replica
        is_in_force = replica.proposed_voters(entry) is not None and replica.may_change_voters(entry)
        outcome = (replica.apply_voters if is_in_force else replica.apply)(self.index, self.term, entry)
        self.tell(Applied(self.index, self.term, outcome, entry))
        return outcome

    def commit_all(self) -> list[CibApplied]:
        entries, self.entries = self.entries, []
        return [self.commit(entry) for entry in entries]

    def proposed(self) -> list[commands.Command]:
        return [decode_envelope(entry).command for entry in self.entries]


class HandPacer:
    """A pacer that says what a test sets."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.has_lease = True
        self.heard: dict[NodeName, Incarnation] = {}
        self.settings: list[PacerSettings] = []
        self.is_empty: bool | None = None
        self.is_follower: bool | None = None
        self.stamps = 0
        self.answers = True
        self._changed: Callable[[PacerReport], None] | None = None

    def start(self, settings: PacerSettings, changed: Callable[[PacerReport], None]) -> None:
        self.settings.append(settings)
        self._changed = changed

    def tell(self) -> None:
        """Report, as it does once in a heartbeat period."""
        report = self.report()
        assert report is not None
        assert self._changed is not None
        self._changed(report)

    def configure(self, settings: PacerSettings) -> None:
        self.settings.append(settings)

    def report(self) -> PacerReport | None:
        now = self._clock.now()
        nodes = tuple(
            HeardNode(name, incarnation, 10, BrainState.ALIVE, 0, dict.fromkeys((N1, *self.heard), 10), now)
            for name, incarnation in self.heard.items()
        )
        return PacerReport(now, None, nodes)

    def is_answering(self) -> bool:
        return self.answers

    def lease_until(self) -> Instant:
        return NEVER if self.has_lease else Instant(0)

    def stamp_main(self) -> None:
        self.stamps += 1

    def stamp_raft(self) -> None:
        return None

    def set_empty(self, *, is_empty: bool) -> None:
        self.is_empty = is_empty

    def set_follower(self, *, is_follower: bool) -> None:
        self.is_follower = is_follower

    def set_links(self, nodes: tuple[NodeName, ...]) -> None:
        del nodes

    def withdraw(self, node: NodeName, incarnation: Incarnation) -> None:
        del node, incarnation

    def reinstate(self, node: NodeName, incarnation: Incarnation) -> None:
        del node, incarnation

    def withdrawals_known(self) -> None:
        return None

    def stop(self) -> None:
        return None


class HandAgents:
    """Agents that end when a test says so."""

    def __init__(self) -> None:
        self.calls: list[AgentCall] = []
        self.known: tuple[AgentReference, ...] = ()
        self._done: dict[str, Callable[[AgentResult], None]] = {}

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        self.calls.append(call)
        self._done[call.key] = done

    def finish(self, key: str, exit_code: int = 0) -> None:
        self._done.pop(key)(
            AgentResult(key, exit_code, ExecutionStatus.DONE, "", "", "", queued_ms=0, executed_ms=1)
        )

    def kill(self, key: str) -> None:
        del key

    def adopt(self, ended: Callable[[str], None]) -> tuple[AdoptedAction, ...]:
        del ended
        return ()

    def watch(self, resource: ResourceId, instance: str, died: Callable[[ResourceId], None]) -> None:
        del resource, instance, died

    def waits(self) -> tuple[str, ...]:
        return ()

    def unwatch(self, resource: ResourceId) -> None:
        del resource

    def metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        done(AgentMetadata(agent, "1", "", "", {}, {}) if agent in self.known else None)

    def exists(self, agent: AgentReference) -> bool:
        del agent
        return True

    def installed(self) -> tuple[AgentReference, ...]:
        return self.known


class HandAlertAgents:
    """Alert agents that end when a test says so."""

    def __init__(self) -> None:
        self.calls: list[AlertCall] = []
        self._done: dict[str, Callable[[AlertCallResult], None]] = {}

    def call(self, call: AlertCall, done: Callable[[AlertCallResult], None]) -> None:
        self.calls.append(call)
        self._done[call.key] = done

    def finish(self, key: str, problem: str = "") -> None:
        self._done.pop(key)(AlertCallResult(int(bool(problem)), problem, 1))


class HandDevices:
    """Devices that are seen and used as a test says."""

    def __init__(self) -> None:
        self.changed: Callable[[DevicesReport], None] = lambda _report: None
        self.looks: list[tuple[tuple[DeviceId, ...], Callable[[DeviceUse], None]]] = []

    def watch(self, changed: Callable[[DevicesReport], None]) -> None:
        self.changed = changed

    def look(self, devices: tuple[DeviceId, ...], done: Callable[[DeviceUse], None]) -> None:
        self.looks.append((devices, done))

    def answer(self, use: DeviceUse) -> None:
        self.looks.pop(0)[1](use)


class HandFenceAgents:
    """Fence agents that end when a test says so."""

    def __init__(self) -> None:
        self.calls: list[FenceCall] = []
        self.asked_about: list[str] = []
        self._done: dict[str, Callable[[FenceCallResult], None]] = {}

    def call(self, call: FenceCall, done: Callable[[FenceCallResult], None]) -> None:
        self.calls.append(call)
        self._done[call.key] = done

    def finish(self, key: str, exit_code: int = 0) -> None:
        self._done.pop(key)(FenceCallResult(key, exit_code, timed_out=False, reason="", output=""))

    def exists(self, agent: str) -> bool:
        del agent
        return True

    def metadata(self, agent: str, done: Callable[[FenceMetadata | None], None]) -> None:
        self.asked_about.append(agent)
        done(None)


class ListLog:
    """The event log as a list."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, FieldValue]]] = []

    def write(self, kind: str, /, *, priority: Priority = Priority.INFO, **fields: FieldValue) -> None:
        del priority
        self.lines.append((kind, fields))

    def flush(self, timeout_ms: int) -> bool:
        del timeout_ms
        return True

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.lines]


class ListHistory:
    """The history as a list."""

    def __init__(self) -> None:
        self.rows: list[HistoryRow] = []
        self.kept: dict[int, tuple[NewVersion, bytes]] = {}

    def start(self, failed: Callable[[str], None]) -> None:
        del failed

    def record(
        self,
        index: int,
        rows: tuple[HistoryRow, ...],
        before: HistoryMark,
        after: HistoryMark,
        version: NewVersion | None = None,
    ) -> None:
        assert chained(before.digest, index, (row.fact for row in rows)) == after.digest
        self.rows.extend(rows)
        if version is not None:
            self.kept[version.number] = (version, version.encode())

    def restored(self, index: int, mark: HistoryMark, version: NewVersion | None = None) -> None:
        del index, mark
        if version is not None:
            self.kept.setdefault(version.number, (version, version.encode()))

    def versions(self, query: VersionQuery, done: Callable[[VersionAnswer], None]) -> None:
        listed = (KeptVersion(each.number, each.at, each.author, each.reason, "") for each, _ in self.kept.values())
        contents = {number: self.kept[number][1] for number in query.contents if number in self.kept}
        done(VersionAnswer(tuple(listed), contents))

    def query(self, query: HistoryQuery, done: Callable[[HistoryAnswer], None]) -> None:
        found = [row for row in self.rows if not query.kinds or row.kind in query.kinds]
        done(HistoryAnswer(tuple(found[-query.limit :])))

    def follow(self, query: FollowQuery, done: Callable[[FollowAnswer], None]) -> None:
        after = query.after or Position(self.rows[-1].index if self.rows else 0)
        found = [row for row in self.rows if row.index > after.index and row.kind in (query.kinds or {row.kind})]
        rows = tuple(FollowedRow(row, Position(row.index, row.n)) for row in found[: query.limit])
        done(FollowAnswer(rows, rows[-1].position if rows else after))

    def compare(self, peers: tuple[NodeName, ...], done: Callable[[Comparison], None]) -> None:
        done(Comparison((HistorySummary(N1, rows=len(self.rows)),), peers))

    def horizon(self, before: WallTime, rows_max: int, done: Callable[[Horizon | None], None]) -> None:
        old = [row.index for row in self.rows if row.at < before]
        done(Horizon(old[-1], "ab" * 32) if old else None)

    def problem(self) -> str:
        return ""

    def stop(self, timeout_ms: int) -> None:
        del timeout_ms


class PromptPlanner:
    """A planner that answers as soon as the present event is done."""

    def __init__(self, clock: ManualClock, scheduler: Callable[[Cib, WallTime], Plan]) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._answered: Callable[[PlanAnswer], None] | None = None
        self._serial = 0
        self.is_prepared = False
        self.followed: list[tuple[int, bytes]] = []
        """What a worker would have got: (index, entry)."""

    def start(self, answered: Callable[[PlanAnswer], None]) -> None:
        self._answered = answered

    def prepare(self, cib: Cib) -> None:
        del cib
        self.is_prepared = True

    def applied(self, entry: Applied) -> None:
        self.followed.append((entry.index, entry.entry))

    def ask(self, number: int, cib: Cib, now: WallTime) -> None:
        serial = self._serial
        self._clock.call_soon(lambda: self._answer(serial, number, cib, now))

    def _answer(self, serial: int, number: int, cib: Cib, now: WallTime) -> None:
        if self._answered is None or serial != self._serial:
            return
        try:
            answer = PlanAnswer(number, self._scheduler(cib, now))
        except Exception as bug:  # noqa: BLE001 (as the worker does: a scheduler that fails is an answer)
            answer = PlanAnswer(number, None, f"{type(bug).__name__}: {bug}")
        self._answered(answer)

    def rest(self) -> None:
        self.is_prepared = False
        self._serial += 1

    def stop(self) -> None:
        self._answered = None


class ByHand:
    """Background work that ends at once, or when a test says so."""

    def __init__(self) -> None:
        self.is_held = False
        self.held: list[Callable[[], None]] = []
        self.failure: WorkFailed | None = None
        """What becomes of work that is done apart; None: it ends well."""

    def run(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        if self.is_held:
            self.held.append(lambda: done(work()))
        else:
            done(work())

    def apart(
        self, work: Callable[[], bytes], done: Callable[[bytes | WorkFailed], None], whose: str = ""
    ) -> Callable[[], None]:
        is_cancelled = False

        def cancel() -> None:
            nonlocal is_cancelled
            is_cancelled = True

        def end() -> None:
            if not is_cancelled:
                done(self.failure or work())

        if self.is_held:
            self.held.append(end)
        else:
            end()
        return cancel

    def release(self) -> None:
        held, self.held = self.held, []
        for each in held:
            each()

    def release_all(self) -> int:
        """Let everything end, also what that begins; return how much it was."""
        count = 0
        while self.held:
            count += len(self.held)
            self.release()
        return count


class NoLoopStalls:
    def longest(self) -> tuple[LoopStall, ...]:
        return ()


class Idle:
    def read(self) -> MachineLoad:
        return MachineLoad(processors=4, percent=0)


class ListCrashes:
    """Crash records as a list."""

    def __init__(self, records: Sequence[CrashRecord] = ()) -> None:
        self.records = list(records)

    def recent(self) -> tuple[CrashRecord, ...]:
        return tuple(self.records)

    def add(self, record: CrashRecord) -> None:
        self.records.append(record)


class ListedMessages:
    """Messages to peers as a list; a test hands over what comes."""

    def __init__(self) -> None:
        self.sent: list[tuple[NodeName, bytes]] = []
        self.peers: tuple[NodeName, ...] = ()
        self._receivers: dict[bytes, Callable[[NodeName, bytes], None]] = {}

    def open(self, kind: bytes, received: Callable[[NodeName, bytes], None]) -> None:
        self._receivers[kind] = received

    def send(self, to: NodeName, message: bytes) -> None:
        self.sent.append((to, message))

    def reachable(self) -> tuple[NodeName, ...]:
        return self.peers

    def come(self, peer: NodeName, message: bytes) -> None:
        self._receivers[message[:1]](peer, message)


class Daemon:
    """n1's daemon in a cluster of three; it plans nothing unless a test gives it a scheduler."""

    def __init__(
        self,
        scheduler: Callable[[Cib, WallTime], Plan] = lambda _cib, _now: Plan(TransitionGraph(), {}),
        crashes: Sequence[CrashRecord] = (),
    ) -> None:
        self.clock = ManualClock()
        self.pacer = HandPacer(self.clock)
        self.store = HandLog(Replica(self.pacer))
        self.agents = HandAgents()
        self.fence_agents = HandFenceAgents()
        self.alerts = HandAlertAgents()
        self.peer_messages = ListedMessages()
        self.devices = HandDevices()
        self.log = ListLog()
        self.crashes = ListCrashes(crashes)
        self.background = ByHand()
        self.secrets = SimulatedKeeper(N1, random.Random(1))
        self.planner = PromptPlanner(self.clock, scheduler)
        self.has_left = False
        self._serial = count(1)
        ports = NodePorts(
            clock=self.clock,
            entropy=Entropy(),
            store=self.store,
            pacer=self.pacer,
            peer_messages=self.peer_messages,
            agents=self.agents,
            fence_agents=self.fence_agents,
            alerts=self.alerts,
            log=self.log,
            history=ListHistory(),
            planner=self.planner,
            loop_stalls=NoLoopStalls(),
            load=Idle(),
            devices=self.devices,
            background=self.background,
            crashes=self.crashes,
            secrets=self.secrets,
        )
        settings = NodeSettings(N1, "uuid", "test", MEMBERS, "n1-boot1", dict.fromkeys(NAMES, b"k" * 16))
        self.runtime = NodeRuntime(settings, ports, left=self._left)
        self.runtime.start()

    def _left(self) -> None:
        self.has_left = True

    @property
    def cib(self) -> Cib:
        return self.runtime.cib

    def put(self, command: commands.Command, *, by: NodeName = N2) -> CibApplied:
        """Commit a command of another node; the wake that follows has not happened yet."""
        request = RequestId(f"{by}:{next(self._serial)}")
        envelope = commands.Envelope(request, by, self.clock.wall(), command)
        return self.store.commit(encode_envelope(envelope))

    def lead(self, leader: NodeName | None, term: int = 1) -> None:
        self.store.term = Term(term)
        self.store.tell(LeadershipChanged(Term(term), leader, is_self=leader == N1))
        self.store.tell(VoterLinks(tuple(name for name in NAMES if name != N1)))

    def settle(self) -> None:
        """Commit whatever is proposed until nothing more is."""
        for _ in range(20):
            self.clock.run()
            if not self.store.entries:
                return
            self.store.commit_all()
        raise AssertionError(f"never settles: {self.store.proposed()}")

    def form(self, *, leader: NodeName = N2) -> "Daemon":
        """Make it a member of a formed cluster that another node leads; all three are online."""
        self.put(commands.FormCluster("uuid", "test", MEMBERS))
        for name in (N2, N3):
            life = Incarnation(f"{name}-boot1", "f" * 16)
            self.put(commands.Join(name, life))
            self.pacer.heard[name] = life
        self.lead(leader)
        if leader != N1:
            self.put(commands.DcElected(leader, Incarnation(f"{leader}-boot1", "f" * 16), Term(1)))
        self.settle()
        return self
