"""The store alone under random faults: real cores on a virtual clock, seed after seed.

    python -m tests.simulation.store_swarm swarm --seconds 60 --seed 1

What is applied anywhere is never lost or changed, one node leads a term, and in the end all states are equal.
"""

import random
import sys
from collections.abc import Callable, Collection, Sequence

from haclusterd.model.ids import NodeName
from haclusterd.ports.store import VoterSet
from haclusterd.raft.frames import decode_frame
from haclusterd.simulator.command_line import main
from haclusterd.simulator.faults.base import Drawn, FaultRun, Kind, draw_plan
from haclusterd.simulator.swarm import Outcome
from tests.simulation.store_world import AWAITED, World, spell_voters

SAFETY_MS = 60_000
MEMBERS_CHANGE_EVERY = 3
"""Every so many seeds the members change at random."""
LIVENESS_MS = 30_000
DISKS_US = ((300, 4_000), (300, 4_000), (5_000, 60_000), (20_000, 300_000))
PAUSES_US = ((5_000, 40_000), (20_000, 200_000), (20_000, 200_000), (100_000, 1_000_000))
"""Between two writes."""
LASTS_MS = (100, 4_000)
MESSAGES = ("response_vote", "request_vote", "next_node_idx", "append_entries")

Chance = random.Random
Nodes = Sequence[NodeName]
Fault = Drawn[World]


def _blocking(text: str, directions: Sequence[tuple[NodeName, NodeName]], lasts_ms: int) -> Fault:
    def begin(world: World) -> Callable[[], None]:
        for source, target in directions:
            world.block(source, target)
        return lambda: world.unblock(directions)

    return Drawn(text, begin, lasts_ms)


def split(chance: Chance, nodes: Nodes) -> Fault:
    some = chance.sample(nodes, chance.randrange(1, len(nodes)))
    directions = [
        direction
        for one in some
        for other in nodes
        if other not in some
        for direction in ((one, other), (other, one))
    ]
    return _blocking(f"{', '.join(some)} split off", directions, chance.randint(*LASTS_MS))


def one_way(chance: Chance, nodes: Nodes) -> Fault:
    first, second = chance.sample(nodes, 2)
    return _blocking(f"nothing of {first} reaches {second}", [(first, second)], chance.randint(*LASTS_MS))


def crash(chance: Chance, nodes: Nodes) -> Fault:
    some = chance.sample(nodes, chance.randrange(1, len(nodes)))
    loses_power = chance.random() < 0.5

    def begin(world: World) -> Callable[[], None]:
        for name in some:
            world.crash(name, loses_power=loses_power)
        return lambda: _restart(world, some)

    what = "lose power" if loses_power else "are killed"
    return Drawn(f"{', '.join(some)} {what}", begin, chance.randint(*LASTS_MS))


def _restart(world: World, nodes: Nodes) -> None:
    for name in nodes:
        world.restart(name)


def crash_all(chance: Chance, nodes: Nodes) -> Fault:
    def begin(world: World) -> Callable[[], None]:
        world.crash_all()
        return lambda: _restart(world, nodes)

    return Drawn("all lose power", begin, chance.randint(*LASTS_MS))


def crash_all_at_acknowledgement(chance: Chance, nodes: Nodes) -> Fault:
    def begin(world: World) -> Callable[[], None]:
        world.crash_all_at_acknowledgement = True

        def end() -> None:
            world.crash_all_at_acknowledgement = False
            _restart(world, nodes)

        return end

    return Drawn("all lose power at the next acknowledgement", begin, chance.randint(*LASTS_MS))


def crash_after_a_frame(chance: Chance, nodes: Nodes) -> Fault:
    """The next node that sends such a message loses power right after it left."""
    kind = chance.choice(MESSAGES)

    def begin(world: World) -> Callable[[], None]:
        def hook(source: NodeName, _: NodeName, frame: bytes) -> bool:
            message = decode_frame(frame)
            if message is not None and message["type"] == kind:
                world.hook = lambda *_: True
                world.after(0, lambda: world.crash(source))
            return True

        world.hook = hook

        def end() -> None:
            world.hook = lambda *_: True
            _restart(world, nodes)

        return end

    return Drawn(f"the sender of the next {kind} loses power", begin, chance.randint(*LASTS_MS))


def pause(chance: Chance, nodes: Nodes) -> Fault:
    node = chance.choice(nodes)

    def begin(world: World) -> Callable[[], None]:
        world.pause(node)
        return lambda: world.resume(node)

    return Drawn(f"{node} stands still", begin, chance.randint(*LASTS_MS))


def no_room(chance: Chance, nodes: Nodes) -> Fault:
    node = chance.choice(nodes)

    def begin(world: World) -> Callable[[], None]:
        world.nodes[node].room = 0

        def end() -> None:
            world.nodes[node].room = 1000

        return end

    return Drawn(f"the main loop of {node} takes nothing", begin, chance.randint(*LASTS_MS))


def slow_disk(chance: Chance, nodes: Nodes) -> Fault:
    node, span_us = chance.choice(nodes), chance.choice((100_000, 1_000_000))

    def begin(world: World) -> Callable[[], None]:
        world.nodes[node].extra_disk_us = span_us

        def end() -> None:
            world.nodes[node].extra_disk_us = 0

        return end

    return Drawn(f"the disk of {node} takes {span_us // 1000} ms more", begin, chance.randint(*LASTS_MS))


def full_disk(chance: Chance, nodes: Nodes) -> Fault:
    node = chance.choice(nodes)

    def begin(world: World) -> Callable[[], None]:
        world.nodes[node].disk.full = True

        def end() -> None:
            world.nodes[node].disk.full = False
            world.nodes[node].failures.clear()
            world.restart(node)

        return end

    return Drawn(f"the disk of {node} is full", begin, chance.randint(*LASTS_MS))


def failing_disk(chance: Chance, nodes: Nodes) -> Fault:
    node = chance.choice(nodes)

    def begin(world: World) -> Callable[[], None]:
        world.nodes[node].disk.fails_syncs = True

        def end() -> None:
            world.nodes[node].disk.fails_syncs = False
            world.nodes[node].failures.clear()
            world.restart(node)

        return end

    return Drawn(f"the disk of {node} fails each fsync", begin, chance.randint(*LASTS_MS))


def put_back(chance: Chance, nodes: Nodes) -> Fault:
    """A node's directory is copied, and put back later: one node in a run, as Raft stands no more."""
    node = chance.choice(nodes)

    def begin(world: World) -> Callable[[], None] | None:
        if world.forgetful is not None:
            return None
        world.forgetful = node
        copied = world.nodes[node].disk.copy()

        def end() -> None:
            world.crash(node)
            world.nodes[node].disk.put_back(copied)
            world.restart(node)

        return end

    return Drawn(f"the directory of {node} is put back to what it is now", begin, chance.randint(*LASTS_MS))


def lying_disk(chance: Chance, nodes: Nodes) -> Fault:
    """A disk says that it synced, and loses it with the power: one node in a run."""
    node = chance.choice(nodes)

    def begin(world: World) -> Callable[[], None] | None:
        if world.forgetful is not None:
            return None
        world.forgetful = node
        world.nodes[node].disk.lies = True

        def end() -> None:
            world.crash(node)
            world.nodes[node].disk.lies = False
            world.restart(node)

        return end

    return Drawn(f"the disk of {node} lies about its syncs", begin, chance.randint(*LASTS_MS))


def disconnect(chance: Chance, nodes: Nodes) -> Fault:
    first, second = chance.sample(nodes, 2)
    return Drawn(f"the session of {first} and {second} breaks", lambda world: world.disconnect(first, second))


KINDS: tuple[Kind[World], ...] = tuple(
    Kind(draw.__name__, weight, draw)
    for weight, draw in (
        (2, split), (2, one_way), (4, crash), (1, crash_all), (1, crash_all_at_acknowledgement),
        (2, crash_after_a_frame), (2, pause), (1, no_room), (1, slow_disk), (1, full_disk),
        (1, failing_disk), (1, put_back), (1, lying_disk),
        (2, disconnect),
    )
)  # fmt: skip


class Writer:
    """Writes all the time, to any node."""

    def __init__(self, world: World, pause_us: tuple[int, int]) -> None:
        self.world = world
        self.pause_us = pause_us
        self.chance = random.Random(f"{world.seed} writer")
        self.is_over = False
        self.written = 0
        world.after(0, self.write)

    def write(self) -> None:
        if self.is_over:
            return
        node = self.world.nodes[self.chance.choice(self.world.names)]
        size = self.chance.choice((0, 0, 0, 50, 5000))
        if node.is_alive and not node.is_paused:
            self.written += 1
            head = self.chance.choice((b"", b"", b"", AWAITED))
            node.core.propose(head + b"%d %s " % (self.written, node.name.encode()) + b"x" * size)
            node.core.tick()
        self.world.after(self.chance.randrange(*self.pause_us), self.write)


class Regroup:
    """Changes the members at random while everything else goes wrong."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.chance = random.Random(f"{world.seed} members")
        self.is_over = False
        world.after(1_500_000, self.change)

    def change(self) -> None:
        if self.is_over:
            return
        leader = self.world.leader()
        if leader is not None and not self.world.nodes[leader].is_paused:
            core = self.world.nodes[leader].core
            core.propose(self._next_set(core.voter_set))
            core.tick()
        self.world.after(self.chance.randrange(200_000, 2_000_000), self.change)

    def _next_set(self, current: VoterSet) -> bytes:
        names, chance = self.world.names, self.chance
        voters, learners = set(current.voters), set(current.learners)
        spare = [name for name in names if name not in voters | learners]
        step = chance.choice(("learner", "promote", "demote", "wild"))
        if step == "learner" and spare:
            learners.add(chance.choice(spare))
        elif step == "promote" and learners:
            chosen = chance.choice(sorted(learners))
            learners.remove(chosen)
            voters.add(chosen)
        elif step == "demote" and len(voters) > 1:
            chosen = chance.choice(sorted(voters))
            voters.remove(chosen)
            learners.add(chosen)
        elif step == "wild":
            voters = {*chance.sample(names, chance.randrange(1, len(names)))}
            learners -= voters
        return spell_voters(current.version + chance.choice((1, 1, 1, 2)), voters, learners)


def leave_out_others(world: World) -> None:
    """Switch off every node that is no member in the end: nobody sends it anything any more."""
    world.run_until(lambda: world.leader() is not None)
    current = world.voter_set()
    for name in world.names:
        if name not in (*current.voters, *current.learners):
            world.crash(name)
            del world.nodes[name]
    world.names = tuple(name for name in world.names if name in world.nodes)


def run(
    seed: int, only: Collection[int] | None = None, *, safety_ms: int = SAFETY_MS, whole_record: bool = False
) -> Outcome:
    """Run a seed: three voters or five; members that change; frames that are lost, late, repeated and reordered."""
    chance = random.Random(f"{seed} shape")
    world = World(
        seed,
        voters=5 if seed % 8 == 6 else 3,
        is_hostile=seed % 4 == 3,
        disk=chance.choice(DISKS_US),
        node_timeout_ms=chance.choice((1000, 2000, 2000)),
    )
    pause_us = chance.choice(PAUSES_US)
    do_members_change = seed % MEMBERS_CHANGE_EVERY == MEMBERS_CHANGE_EVERY - 1
    if do_members_change:
        for number in (1, 2):
            world.add_machine(NodeName(f"spare{number}"))
    plan = [
        fault
        for fault in draw_plan(random.Random(f"{seed} faults"), KINDS, world.names, safety_ms)
        if only is None or fault.number in only
    ]
    recorded: list[str] = []
    faults = FaultRun(world, plan, after=world.after, tell=lambda line: recorded.append(f"{world.now_us} {line}"))
    problem = rule = ""
    try:
        storm(world, faults, safety_ms, pause_us, do_members_change=do_members_change)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is this seed's problem)
        problem, rule = f"{type(error).__name__}: {error}", type(error).__name__
    is_excused = bool(problem) and world.forgetful is not None
    if is_excused:
        # A disk that forgets is outside of what Raft can bear: it is recognised as a rule, and not always in time.
        recorded.append(f"{world.now_us} excused, because {world.forgetful} forgot what it had promised: {problem}")
        problem = rule = ""
    versions = max(node.core.voter_set.version for node in world.nodes.values())
    lines = [f"{when} {name} {event}"[:200] for when, name, event in world.events] if whole_record or problem else []
    return Outcome(
        seed=seed,
        problem=problem,
        rule=rule,
        simulated_ms=world.now_us // 1000,
        trace=world.trace.hexdigest(),
        faults=tuple(str(fault) for fault in plan if fault.number in faults.begun),
        begun=tuple(faults.begun),
        counts=(
            ("acknowledged", len(world.acknowledged)),
            ("terms", len(world.leaders)),
            ("frames", world.frames),
            ("voter_sets", versions),
            ("seeds_with_forgetful_disks", int(world.forgetful is not None)),
            ("recognised", sum(node.is_out for node in world.nodes.values())),
            ("excused", int(is_excused)),
        ),
        recorded=tuple(sorted([*recorded, *lines], key=lambda line: int(line.split()[0]))),
    )


def storm(
    world: World, faults: FaultRun[World], safety_ms: int, pause_us: tuple[int, int], *, do_members_change: bool
) -> None:
    """Faults and writes; then all is healed, and nothing may be missing."""
    writer = Writer(world, pause_us)
    changes = Regroup(world) if do_members_change else None
    faults.begin()
    world.run(safety_ms)
    writer.is_over = True
    faults.end_all()
    world.heal_all()
    if changes is not None:
        changes.is_over = True
        leave_out_others(world)
    world.run_until(world.is_settled, limit_ms=LIVENESS_MS)
    world.check()


if __name__ == "__main__":
    sys.exit(main(run, module="tests.simulation.store_swarm", safety_ms=SAFETY_MS))
