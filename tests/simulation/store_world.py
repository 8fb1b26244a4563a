"""Raft cores on one virtual clock: a network with sessions, disks that forget, a history that must not change."""

import hashlib
import heapq
import itertools
import random
import zlib
from collections.abc import Callable, Iterable

import msgpack

from haclusterd.adapters.raft.library import supported_library
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.instants import Instant
from haclusterd.model.records import dataclass, field
from haclusterd.model.steps import Steps
from haclusterd.ports.store import (
    Appended,
    Applied,
    LeadershipChanged,
    Restored,
    StoreDamagedError,
    StoreEvent,
    StoreUnwritableError,
    VoterSet,
)
from haclusterd.raft.core import RaftCore
from haclusterd.raft.identity import create_identity
from haclusterd.raft.settings import RaftSettings, RaftTimers
from haclusterd.simulator.hosts.disks import CachedFile

CLUSTER = "11111111-2222-3333-4444-555555555555"


class PowerLossError(OSError):
    pass


class SimulatedDisk:
    """`Files` in memory that knows what is on the medium (haclusterd/simulator/hosts/disks.py)."""

    def __init__(self) -> None:
        self.files: dict[str, CachedFile] = {}
        self.is_locked = False
        self.tearing = False
        self.full = False
        self.fails_syncs = False
        self.lies = False

    def written(self, name: str) -> bytes:
        """Return what a read finds."""
        return bytes(self.files[name].content)

    def durable(self, name: str) -> bytes:
        """Return what a power loss leaves."""
        return bytes(self.files[name].stable)

    def put(self, name: str, data: bytes) -> None:
        """Let a file be this, in memory and on the medium."""
        self.files[name] = CachedFile.synced(data)

    def read(self, name: str) -> bytes | None:
        return self.written(name) if name in self.files else None

    def append(self, name: str, data: bytes) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        self.files.setdefault(name, CachedFile()).append(data)

    def sync(self, name: str) -> None:
        if self.tearing:
            raise PowerLossError
        if self.fails_syncs:
            self.files[name].fail_to_flush()
            raise OSError(5, "Input/output error")
        if not self.lies:
            self.files[name].flush()

    def replace(self, name: str, data: bytes) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        if self.tearing:
            raise PowerLossError
        if self.fails_syncs:
            raise OSError(5, "Input/output error")
        if self.lies and name in self.files:
            self.files[name] = CachedFile(bytearray(data), self.files[name].stable, 0)
        else:
            self.put(name, data)

    def remove(self, name: str) -> None:
        self.files.pop(name, None)

    def lock(self) -> None:
        if self.is_locked:
            raise BlockingIOError
        self.is_locked = True

    def describe(self, name: str) -> str:
        return f"disk/{name}"

    def lose_power(self, chance: random.Random) -> None:
        """Keep what is on the medium; dirty pages are there in the old state, in the new one, or ruined."""
        for _, file in sorted(self.files.items()):
            file.lose_power(chance)

    def copy(self) -> dict[str, bytes]:
        """Copy what is on the medium."""
        return {name: bytes(file.stable) for name, file in self.files.items()}

    def put_back(self, copied: dict[str, bytes]) -> None:
        """Let the medium be what it was at the copy."""
        self.files = {name: CachedFile.synced(data) for name, data in copied.items()}


AWAITED = b"go on "
"""With this begin the entries for which somebody waits."""
RESTS_ON = b"rests on "
ANSWER_US = (100, 6_000)
"""How long a main loop thinks about such an entry."""


class ListMachine:
    """An append-only list with a running digest; counts what it was shown."""

    def __init__(self) -> None:
        self.items: list[bytes] = []
        self.digest = b""
        self.tail: list[bytes] = []
        self.voters: VoterSet | None = None
        self.allows_changes = True

    def appended(self, entry: bytes) -> None:
        self.tail.append(entry)

    def is_awaited(self, entry: bytes) -> bool:
        return entry.startswith(AWAITED)

    def removed(self, entry: bytes) -> None:
        assert self.tail.pop() == entry

    def prepare(self, entry: bytes) -> Steps[None] | None:
        return None

    def apply(self, index: int, term: Term, entry: bytes) -> object:
        assert self.tail.pop(0) == entry, "applied without having been shown"
        self.items.append(entry)
        self.digest = hashlib.sha256(self.digest + entry).digest()
        return (entry, self.digest)

    def apply_voters(self, index: int, term: Term, entry: bytes) -> object:
        self.voters = self.proposed_voters(entry)
        return self.apply(index, term, entry)

    def voter_set(self) -> VoterSet | None:
        return self.voters

    def proposed_voters(self, entry: bytes) -> VoterSet | None:
        """An entry of voters is written like `voters 3 n1,n2,n3 n4`: version, voters, learners."""
        if not entry.startswith(b"voters "):
            return None
        _, version, voters, learners = entry.decode().split(" ")
        return VoterSet(int(version), _names(voters), _names(learners))

    def may_change_voters(self, entry: bytes) -> bool:
        return self.allows_changes

    def snapshot(self) -> Callable[[], bytes]:
        items, digest, voters = tuple(self.items), self.digest, self.voters
        spelled = None if voters is None else [voters.version, voters.voters, voters.learners]
        return lambda: msgpack.packb([items, digest, spelled])

    def read(self, data: bytes) -> Steps[object]:
        yield from ()
        return msgpack.unpackb(data)

    def restore(self, state: object) -> object:
        assert isinstance(state, list)
        items, self.digest, spelled = state
        self.items = list(items)
        self.tail = []
        self.voters = None if spelled is None else VoterSet(spelled[0], tuple(spelled[1]), tuple(spelled[2]))
        return self.digest


class SlowMachine(ListMachine):
    """Takes its time for some entries, and for every snapshot."""

    def __init__(self) -> None:
        super().__init__()
        self.prepared: bytes | None = None
        self.preparations = 0
        """How many were begun."""
        self.steps_to_read = 0
        """Of a snapshot, beside a few."""

    @staticmethod
    def steps_of(entry: bytes) -> int:
        """Return how many steps it takes to prepare an entry; most need none, and `slow 300 ...` takes 300."""
        if entry.startswith(b"slow "):
            return int(entry.split(b" ")[1])
        return max(0, zlib.crc32(entry) % 48 - 32)

    def prepare(self, entry: bytes) -> Steps[None] | None:
        return self._prepare(entry) if self.steps_of(entry) else None

    def _prepare(self, entry: bytes) -> Steps[None]:
        assert self.tail[0] == entry, "prepared out of its turn"
        self.preparations += 1
        for _ in range(self.steps_of(entry)):
            yield
        self.prepared = entry

    def apply(self, index: int, term: Term, entry: bytes) -> object:
        assert not self.steps_of(entry) or self.prepared == entry, "applied without having been prepared"
        self.prepared = None
        return super().apply(index, term, entry)

    def read(self, data: bytes) -> Steps[object]:
        for _ in range(len(data) % 16 + self.steps_to_read):
            yield
        return msgpack.unpackb(data)

    def restore(self, state: object) -> object:
        self.prepared = None
        return super().restore(state)


def spell_voters(version: int, voters: Iterable[NodeName], learners: Iterable[NodeName] = ()) -> bytes:
    """Return an entry that changes the voters, as `ListMachine` reads it."""
    return f"voters {version} {','.join(sorted(voters))} {','.join(sorted(learners))}".encode()


def _names(text: str) -> tuple[NodeName, ...]:
    return tuple(NodeName(name) for name in text.split(",") if name)


@dataclass
class Link:
    """One session between two nodes; frames of each direction stay in order."""

    number: int
    nodes: tuple[NodeName, NodeName]
    is_open: bool = True
    last_us: dict[NodeName, int] = field(default_factory=dict)


class SimulatedNode:
    """One core, its disk and its main loop."""

    def __init__(self, world: "World", name: NodeName) -> None:
        self.world = world
        self.name = name
        self.disk = SimulatedDisk()
        create_identity(self.disk, CLUSTER, name)
        self.life = 0
        self.is_alive = False
        self.is_paused = False
        self.backlog: list[Callable[[], None]] = []
        self.jobs: list[list[Callable[[], object]]] = []
        self.is_hurried = False
        self.room = 1000
        self.extra_disk_us = 0
        """How much longer than usual its disk takes."""
        self.failures: list[str] = []
        self.is_out = False
        """It ended for good, or is about to."""
        self.start()

    def start(self) -> None:
        world = self.world
        self.life += 1
        life = self.life
        self.is_alive = True
        self.is_paused = False
        self.backlog = []
        self.disk.is_locked = False
        self.machine = SlowMachine()
        self.jobs = []
        self.is_hurried = False

        def deliver(event: StoreEvent) -> None:
            if self.is_alive and life == self.life:
                world.observe(self, event)

        self.core = RaftCore(
            settings=world.settings(self.name),
            files=self.disk,
            machine=self.machine,
            clock=world.clock,
            fraction=random.Random(f"{world.seed} {self.name} {life}").random,
            worker=self,
            make_library=supported_library(),
            send=lambda peer, frame: world.send(self, peer, frame),
            deliver=deliver,
            room=lambda: self.room,
            fail=self._fail,
            complain=lambda _: None,
        )
        try:
            self.core.open()
        except StoreUnwritableError:
            # Its systemd starts it again; here the end of the fault does.
            self.is_alive = False
            return
        except StoreDamagedError:
            if not self.is_out and self.name != world.forgetful:
                raise
            self.is_out = True
            self.is_alive = False
            return
        self._tick(life)

    def _fail(self, why: str) -> None:
        self.failures.append(why)
        self.is_out = self.is_out or "crm cluster remove" in why
        self.world.crash(self.name, loses_power=False)

    def _tick(self, life: int) -> None:
        if not self.is_alive or life != self.life:
            return
        self.when_running(self.core.tick)
        if self.is_alive:
            due_ms = max(self.core.due() - self.world.clock(), 1)
            self.world.after(1000 * min(due_ms, self.world.tick_ms), lambda: self._tick(life))

    def when_running(self, call: Callable[[], None]) -> None:
        """Make the call, now or when the process is continued."""
        if self.is_paused:
            self.backlog.append(call)
        else:
            call()
            self._hurry()

    def _hurry(self) -> None:
        """Tick soon when the call has begun something that goes on in ticks."""
        if not self.is_alive or self.is_hurried or self.core.due() > self.world.clock():
            return
        self.is_hurried = True
        life = self.life

        def tick() -> None:
            if life == self.life:
                self.is_hurried = False
                self.when_running(self.core.tick)

        self.world.after(1000, tick)

    def run(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        job = [work]
        self.jobs.append(job)
        life = self.life

        def complete() -> None:
            if not self.is_alive or life != self.life:
                return
            self.jobs.remove(job)
            result = work()

            def tell() -> None:
                if self.is_alive and life == self.life:
                    done(result)

            self.when_running(tell)

        self.world.after(self.world.disk_us() + self.extra_disk_us, complete)


class World:
    """The clock, the network and the history."""

    def __init__(
        self,
        seed: int,
        voters: int = 3,
        *,
        snapshot_every: int = 40,
        is_hostile: bool = False,
        latency_us: tuple[int, int] = (200, 2000),
        disk: tuple[int, int] = (300, 4000),
        node_timeout_ms: int = 1000,
    ) -> None:
        """`is_hostile`: frames are lost, repeated and out of order, and those of closed sessions still arrive."""
        self.seed = seed
        self.chance = random.Random(f"{seed} world")
        self.names = tuple(NodeName(f"n{i + 1}") for i in range(voters))
        self.founders = self.names
        self.snapshot_every = snapshot_every
        self.is_hostile = is_hostile
        self.latency_us = latency_us
        self.disk_range = disk
        self.timers = RaftTimers.derive(node_timeout_ms)
        self.tick_ms = 100
        self.now_us = 1_000_000
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.count = itertools.count()
        self.trace = hashlib.sha256()
        self.frames = 0
        self.links: dict[frozenset[NodeName], Link] = {}
        self.blocked: set[tuple[NodeName, NodeName]] = set()
        self.history: dict[int, tuple[bytes, bytes]] = {}
        self.acknowledged: dict[bytes, int] = {}
        self.leaders: dict[int, NodeName] = {}
        self.events: list[tuple[int, NodeName, StoreEvent]] = []
        self.crash_all_at_acknowledgement = False
        self.forgetful: NodeName | None = None
        """Whose disk lied, or was put back to an older copy."""
        self.hook: Callable[[NodeName, NodeName, bytes], bool] = lambda *_: True
        self.nodes: dict[NodeName, SimulatedNode] = {}
        for name in self.names:
            self.nodes[name] = SimulatedNode(self, name)
        self._keep_connected()

    def settings(self, name: NodeName) -> RaftSettings:
        return RaftSettings(
            cluster=CLUSTER,
            node=name,
            voters=self.founders,
            learners=() if name in self.founders else (name,),
            timers=self.timers,
            snapshot_every=self.snapshot_every,
            retained_entries=self.snapshot_every // 4,
        )

    # Members.

    def add_machine(self, name: NodeName) -> None:
        """Start a node with an empty disk; it gets the log as soon as a leader counts it among the members."""
        self.names = (*self.names, name)
        self.nodes[name] = SimulatedNode(self, name)

    def voter_set(self) -> VoterSet:
        """Return the voters as the leader of the newest term has them."""
        name = self.leader()
        assert name is not None
        return self.nodes[name].core.voter_set

    def ask_for_voters(self, version: int, voters: Iterable[NodeName], learners: Iterable[NodeName] = ()) -> bytes:
        """Propose a voter set to the leader, and return the entry."""
        entry = spell_voters(version, voters, learners)
        leader = self.wait_for_leader()
        self.nodes[leader].core.propose(entry)
        self.nodes[leader].core.tick()
        return entry

    def change_voters(self, voters: Iterable[NodeName], learners: Iterable[NodeName] = ()) -> None:
        """Ask until it is so."""
        wanted = (tuple(sorted(voters)), tuple(sorted(learners)))

        def is_so() -> bool:
            leader = self.leader()
            if leader is None:
                return False
            core = self.nodes[leader].core
            current = core.voter_set
            if (current.voters, current.learners) == wanted:
                return self.nodes[leader].machine.voter_set() == current
            if not any(entry.startswith(b"voters ") for entry in self.nodes[leader].machine.tail):
                self.ask_for_voters(current.version + 1, *wanted)
            return False

        self.run_until(is_so)

    # Time.

    def clock(self) -> Instant:
        return Instant(self.now_us // 1000)

    def after(self, span_us: int, call: Callable[[], None]) -> None:
        heapq.heappush(self.queue, (self.now_us + span_us, next(self.count), call))

    def run(self, span_ms: int) -> None:
        end = self.now_us + 1000 * span_ms
        while self.queue and self.queue[0][0] <= end:
            self.now_us, _, call = heapq.heappop(self.queue)
            call()
        self.now_us = end

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 20_000) -> None:
        end = self.now_us + 1000 * limit_ms
        while not condition():
            assert self.now_us < end, "the condition did not come true"
            self.run(10)

    def disk_us(self) -> int:
        return self.chance.randint(*self.disk_range)

    # Network.

    def _keep_connected(self) -> None:
        for first, second in itertools.combinations(self.names, 2):
            self._connect(first, second)
        self.after(100_000, self._keep_connected)

    def _connect(self, first: NodeName, second: NodeName) -> None:
        pair = frozenset((first, second))
        ends = [self.nodes[first], self.nodes[second]]
        is_blocked = (first, second) in self.blocked or (second, first) in self.blocked
        if pair in self.links or is_blocked or not all(node.is_alive and not node.is_paused for node in ends):
            return
        self.links[pair] = Link(next(self.count), (first, second))
        ends[0].core.peer_connected(second)
        if pair in self.links:
            ends[1].core.peer_connected(first)

    def disconnect(self, first: NodeName, second: NodeName) -> None:
        link = self.links.pop(frozenset((first, second)), None)
        if link is None:
            return
        link.is_open = False
        for own, other in ((first, second), (second, first)):
            node = self.nodes[own]
            if node.is_alive:
                life = node.life

                def tell(node: SimulatedNode = node, other: NodeName = other, life: int = life) -> None:
                    if node.is_alive and node.life == life:
                        node.core.peer_disconnected(other)

                node.when_running(tell)

    def block(self, source: NodeName, target: NodeName) -> None:
        """Drop frames from now on; the session ends after a while, as TCP's would."""
        self.blocked.add((source, target))
        link = self.links.get(frozenset((source, target)))
        self.after(1000 * self.timers.silence_ms, lambda: self._end_if_blocked(link))

    def _end_if_blocked(self, link: Link | None) -> None:
        if link is None or not link.is_open:
            return
        first, second = link.nodes
        if (first, second) in self.blocked or (second, first) in self.blocked:
            self.disconnect(first, second)

    def unblock(self, directions: Iterable[tuple[NodeName, NodeName]]) -> None:
        """Let frames of these directions pass again, in new sessions: in the old ones some are missing."""
        for source, target in directions:
            self.blocked.discard((source, target))
            self.disconnect(source, target)

    def heal(self) -> None:
        self.blocked.clear()
        for pair in list(self.links):
            # What was dropped in the middle of a stream is gone: only a new session is in order.
            first, second = sorted(pair)
            self.disconnect(first, second)

    def send(self, source: SimulatedNode, target: NodeName, frame: bytes) -> None:
        link = self.links.get(frozenset((source.name, target)))
        if link is None or not self.hook(source.name, target, frame):
            return
        is_lost = self.is_hostile and self.chance.random() < 0.03
        if is_lost or (source.name, target) in self.blocked:
            return
        when = self.now_us + self.chance.randint(*self.latency_us)
        if not self.is_hostile:
            when = max(when, link.last_us.get(target, 0) + 1)
            link.last_us[target] = when
        self._arrive(link, source.name, target, frame, when)
        if self.is_hostile and self.chance.random() < 0.05:
            self._arrive(link, source.name, target, frame, when + self.chance.randrange(2_000_000))

    def _arrive(self, link: Link, source: NodeName, target: NodeName, frame: bytes, when: int) -> None:
        def arrive() -> None:
            node = self.nodes.get(target)
            if node is None or not node.is_alive or not (link.is_open or self.is_hostile):
                return
            life = node.life

            def handle() -> None:
                if node.is_alive and node.life == life:
                    self.frames += 1
                    self.trace.update(f"{self.now_us} {source} {target} ".encode() + frame)
                    assert node.core.receive(source, frame)

            node.when_running(handle)

        heapq.heappush(self.queue, (when, next(self.count), arrive))

    # Faults.

    def crash(self, name: NodeName, *, loses_power: bool = True) -> None:
        node = self.nodes[name]
        if not node.is_alive:
            return
        node.is_alive = False
        node.core.stop()
        for job in node.jobs:
            # A write under way at the crash: not begun, finished but not acknowledged, or torn.
            drawn = self.chance.randrange(3)
            if drawn == 1:
                job[0]()
            elif drawn == 2:
                node.disk.tearing = True
                job[0]()
                node.disk.tearing = False
        if loses_power:
            node.disk.lose_power(self.chance)
        for other in self.names:
            if other != name:
                self.disconnect(name, other)

    def crash_all(self) -> None:
        for name in self.names:
            self.crash(name)

    def restart(self, name: NodeName) -> None:
        if not self.nodes[name].is_alive:
            self.nodes[name].start()

    def pause(self, name: NodeName) -> None:
        self.nodes[name].is_paused = True

    def resume(self, name: NodeName) -> None:
        node = self.nodes[name]
        node.is_paused = False
        backlog, node.backlog = node.backlog, []
        for call in backlog:
            call()

    # The history.

    def observe(self, node: SimulatedNode, event: StoreEvent) -> None:
        self.events.append((self.now_us, node.name, event))
        if isinstance(event, Appended):
            life = node.life
            self.after(self.chance.randint(*ANSWER_US), lambda: self.answer(node, life, event))
        elif isinstance(event, Applied):
            known = self.history.setdefault(event.index, event.outcome)
            assert known == event.outcome, f"{node.name} applied another entry at {event.index}"
            if known[0].startswith(RESTS_ON):
                ground, _, entry = known[0].removeprefix(RESTS_ON).partition(b" ")
                assert int(ground) < event.index, f"{known[0]!r} stands before what it rests on"
                decided = self.history.get(int(ground), (b"",))[0]
                assert decided == entry, f"{known[0]!r} rests on what was never decided"
            is_new = known[0] not in self.acknowledged
            self.acknowledged.setdefault(known[0], event.index)
            if is_new and self.crash_all_at_acknowledgement:
                self.crash_all_at_acknowledgement = False
                self.after(0, self.crash_all)
        elif isinstance(event, Restored):
            indexes = [index for index in self.history if index <= event.index]
            if indexes:
                assert self.history[max(indexes)][1] == event.outcome, f"{node.name} restored another state"
        elif isinstance(event, LeadershipChanged) and event.is_self:
            leader = self.leaders.setdefault(event.term, node.name)
            assert leader == node.name, f"{leader} and {node.name} both lead term {event.term}"

    def answer(self, node: SimulatedNode, life: int, event: Appended) -> None:
        """Propose what follows from an entry that is not committed yet."""
        if not node.is_alive or node.life != life or node.is_paused:
            return
        node.core.propose(RESTS_ON + b"%d %s" % (event.index, event.entry), event.term)
        node.core.considered(event.index)

    def leader(self) -> NodeName | None:
        names = [name for name in self.names if self.nodes[name].is_alive and self.nodes[name].core.status().is_leader]
        return max(names, key=lambda name: self.nodes[name].core.status().term, default=None)

    def wait_for_leader(self) -> NodeName:
        self.run_until(lambda: self.leader() is not None)
        name = self.leader()
        assert name is not None
        return name

    def heal_all(self) -> None:
        self.heal()
        self.hook = lambda *_: True
        self.crash_all_at_acknowledgement = False
        for name in self.names:
            self.resume(name)
            self.restart(name)
            self.nodes[name].room = 1000

    def is_settled(self) -> bool:
        """All nodes are up and hold the same applied state."""
        states = [node.core.status() for node in self.nodes.values() if node.is_alive]
        return (
            len(states) == sum(not node.is_out for node in self.nodes.values())
            and sum(state.is_leader for state in states) == 1
            and len({state.applied_index for state in states}) == 1
            and all(state.last_index == state.applied_index for state in states)
        )

    def check(self) -> None:
        """Everything that was ever applied anywhere is in the state of every node, once, and the states are equal."""
        members = [node for node in self.nodes.values() if not node.is_out]
        digests = {node.machine.digest for node in members}
        assert len(digests) == 1
        for node in members:
            assert not node.failures, node.failures
            items = set(node.machine.items)
            lost = [entry for entry in self.acknowledged if entry not in items]
            assert not lost, f"{node.name} lost {len(lost)} acknowledged entries, the first is {lost[0]!r}"
            assert not node.machine.tail
