"""One scenario for each guard of the store: what befalls it when the guard is needed.

Each runs with every guard in force, and must then end well; and once more without its guard, and must then be caught:
by what the world checks of its own (equal histories, one leader in a term, nothing acknowledged missing), or by what
the scenario asserts.
"""

import inspect
import random
from collections.abc import Iterable

from haclusterd.model.ids import NodeName
from haclusterd.model.requests import Options, Progress, Request, Response
from haclusterd.ports.store import Appended, Applied, LeadershipChanged, StoreDamagedError, StoreRefusedError
from haclusterd.protocol.control import EncodedResponse
from haclusterd.raft.frames import Message, decode_frame
from haclusterd.raft.journal import JOURNAL_NAME, _Rewrite, decode_journal
from haclusterd.raft.snapshot import SNAPSHOT_NAME
from haclusterd.simulator.checks.linearizability import Kind, Operation, judge_register
from haclusterd.simulator.clients import CALLER
from haclusterd.simulator.scenario import Cluster
from tests.simulation.store_world import AWAITED, CLUSTER, SimulatedNode, World


def write(world: World, name: NodeName, count: int, label: bytes, pause_ms: int = 20) -> None:
    for number in range(count):
        world.nodes[name].core.propose(b"%s %d" % (label, number))
        world.nodes[name].core.tick()
        world.run(pause_ms)


def cut(world: World, some: Iterable[NodeName]) -> None:
    """Split some nodes from all others."""
    inside = set(some)
    for one in inside:
        for other in world.names:
            if other not in inside:
                world.block(one, other)
                world.block(other, one)


def others(world: World, *names: NodeName) -> list[NodeName]:
    return [name for name in world.names if name not in names]


def decoded(frame: bytes) -> Message:
    message = decode_frame(frame)
    assert message is not None
    return message


def applied_at(world: World, name: NodeName) -> set[bytes]:
    return {
        event.outcome[0] for _, node, event in world.events if node == name and isinstance(event, Applied)
    }


def settle(world: World) -> None:
    world.heal_all()
    world.run_until(world.is_settled)
    for node in world.nodes.values():
        node.failures.clear()
    world.check()


# -- what a follower believes ----------------------------------------------------------------------------------------


def pending_entries_of_an_old_leader() -> None:
    """A leader that was cut off has pending entries; the others compact their logs; it is sent the snapshot."""
    world = World(1, snapshot_every=30)
    old = world.wait_for_leader()
    write(world, old, 5, b"before")
    cut(world, [old])
    write(world, old, 5, b"isolated", pause_ms=2)
    world.run(2_000)
    new = next(name for name in world.names if name != old and world.nodes[name].core.status().is_leader)
    write(world, new, 120, b"after")
    settle(world)
    assert not [entry for entry in world.acknowledged if entry.startswith(b"isolated")]


def an_old_message_comes_twice() -> None:
    """A follower has acknowledged entries; a message from before them comes again, and the leader dies."""
    world = World(2, snapshot_every=10_000)
    leader = world.wait_for_leader()
    world.run(500)
    first, second = others(world, leader)
    frames: list[bytes] = []

    def hook(source: NodeName, target: NodeName, frame: bytes) -> bool:
        if (source, target) == (leader, first) and decoded(frame)["type"] == "append_entries":
            frames.append(frame)
        return True

    world.hook = hook
    write(world, leader, 1, b"early")
    cut(world, [second])
    write(world, leader, 10, b"late")
    assert len([entry for entry in world.acknowledged if entry.startswith(b"late")]) == 10
    held = world.nodes[first].core.status().last_index
    world.nodes[first].core.receive(leader, frames[0])
    kept = world.nodes[first].core.status().last_index
    assert kept == held, f"{first} acknowledged entry {held}, and has dropped all after {kept}"
    world.crash(leader)
    world.heal()
    world.run_until(lambda: world.leader() is not None)
    settle(world)


def entries_that_will_never_be_committed() -> None:
    """A leader that was cut off wrote what nobody else has; another leader's entries take its place."""
    world = World(3, snapshot_every=10_000)
    old = world.wait_for_leader()
    cut(world, [old])
    write(world, old, 5, b"divergent", pause_ms=1)
    world.run(2_000)
    new = next(name for name in world.names if name != old and world.nodes[name].core.status().is_leader)
    write(world, new, 10, b"after")
    settle(world)


# -- what survives ---------------------------------------------------------------------------------------------------


def all_restart_behind_a_snapshot() -> None:
    """Entries follow the newest snapshot when all nodes lose power."""
    world = World(4, snapshot_every=30)
    leader = world.wait_for_leader()
    write(world, leader, 45, b"kept")
    world.crash_all()
    settle(world)


def power_fails_while_the_log_is_compacted() -> None:
    """All nodes lose power, again and again, while one of them rewrites its journal."""
    world = World(5, snapshot_every=10)
    for number in range(10):
        leader = world.wait_for_leader()
        while not any(is_rewriting(node) for node in world.nodes.values()):
            write(world, leader, 1, b"round %d at %d" % (number, world.now_us), pause_ms=1)
        world.crash_all()
        world.heal_all()
    settle(world)


def is_rewriting(node: SimulatedNode) -> bool:
    """Tell whether a rewrite of the journal is under way on the node's worker."""
    works = [inspect.getclosurevars(job).nonlocals.get("work") for (job,) in node.jobs]
    return any(isinstance(work, _Rewrite) for work in works)


def all_lose_power_at_an_acknowledgement() -> None:
    """All nodes lose power at the very moment at which a client's write is acknowledged."""
    world = World(6)
    for number in range(8):
        leader = world.wait_for_leader()
        world.run(300)
        world.crash_all_at_acknowledgement = True
        write(world, leader, 2, b"round %d" % number, pause_ms=50)
        world.heal_all()
        world.run(3_000)
    settle(world)


def promises_are_durable() -> None:
    """Elections on slow disks: what a message shows of term and vote stands on the sender's disk when it leaves."""
    world = World(7, disk=(50_000, 90_000))

    def hook(source: NodeName, _: NodeName, frame: bytes) -> bool:
        message = decoded(frame)
        if message["type"] in ("request_vote", "response_vote", "append_entries", "next_node_idx"):
            disk = world.nodes[source].disk
            names = f"{CLUSTER}\0{source}".encode()
            content, _size = decode_journal(disk.durable(JOURNAL_NAME), names, "journal")
            assert content.term >= message["term"], f"{source} shows term {message['term']}, {content.term} is durable"
        return True

    world.hook = hook
    for _ in range(3):
        leader = world.wait_for_leader()
        world.run(500)
        world.crash(leader)
        world.run_until(lambda gone=leader: world.leader() not in (None, gone))
        world.restart(leader)
    settle(world)


def a_leader_with_a_slow_disk_dies() -> None:
    """A leader's disk is slower than its follower's; it dies, then the follower, and what was left off is back."""
    world = World(8, disk=(300, 600))
    leader = world.wait_for_leader()
    world.run(1_000)
    first, second = others(world, leader)
    cut(world, [second])
    world.nodes[leader].extra_disk_us = 150_000
    world.nodes[leader].core.propose(b"early")
    world.nodes[leader].core.tick()
    world.run(120)
    # Of what may become of a write under way, it is the loss of it that matters here.
    world.nodes[leader].jobs.clear()
    world.crash(leader)
    world.crash(first)
    world.nodes[leader].disk.put_back(world.nodes[leader].disk.copy())
    world.nodes[leader].extra_disk_us = 0
    world.heal()
    world.restart(leader)
    world.wait_for_leader()
    world.run(1_000)
    settle(world)


def disks_are_full() -> None:
    """All disks are full while clients write; then all lose power."""
    world = World(9)
    leader = world.wait_for_leader()
    write(world, leader, 5, b"before")
    for node in world.nodes.values():
        node.disk.full = True
    write(world, leader, 10, b"while full")
    for node in world.nodes.values():
        node.disk.full = False
    world.crash_all()
    settle(world)


class _Ruin(random.Random):
    """Every page that a power loss can ruin is ruined."""

    def random(self) -> float:
        return 0.6

    def randint(self, a: int, b: int) -> int:
        return b


def power_fails_in_the_middle_of_a_write() -> None:
    """A follower has acknowledged an entry; power fails while it writes the next one, and the page is ruined."""
    world = World(22)
    leader = world.wait_for_leader()
    world.run(500)
    first, second = others(world, leader)
    cut(world, [second])
    write(world, leader, 1, b"kept", pause_ms=200)
    assert b"kept 0" in world.acknowledged
    world.nodes[first].extra_disk_us = 100_000
    write(world, leader, 1, b"torn", pause_ms=50)
    disk = world.nodes[first].disk
    [[job]] = world.nodes[first].jobs
    disk.tearing = True
    job()
    disk.tearing = False
    world.nodes[first].jobs.clear()
    disk.files[JOURNAL_NAME].lose_power(_Ruin())
    world.crash(first)
    world.crash(leader)
    world.nodes[first].extra_disk_us = 0
    world.heal()
    world.restart(first)
    write(world, world.wait_for_leader(), 3, b"after")
    settle(world)


def a_sync_fails_and_the_node_starts_again() -> None:
    """A follower's fsync fails and it starts again; it is asked for the entry once more; then power fails."""
    world = World(23)
    leader = world.wait_for_leader()
    world.run(500)
    first, second = others(world, leader)
    cut(world, [second])
    world.nodes[first].disk.fails_syncs = True
    write(world, leader, 1, b"believed", pause_ms=50)
    assert world.nodes[first].failures
    world.nodes[first].disk.fails_syncs = False
    world.restart(first)
    world.run(1_000)
    assert b"believed 0" in world.acknowledged
    world.crash_all()
    world.heal()
    world.restart(first)
    world.restart(second)
    write(world, world.wait_for_leader(), 3, b"after")
    settle(world)


def a_data_directory_is_put_back() -> None:
    """A follower's directory is put back to a copy from before it acknowledged entries that the third node lacks."""
    world = World(24, snapshot_every=10_000)
    leader = world.wait_for_leader()
    world.run(500)
    first, second = others(world, leader)
    copied = world.nodes[first].disk.copy()
    cut(world, [second])
    write(world, leader, 5, b"promised")
    world.run(1_500)
    assert b"promised 4" in world.acknowledged
    world.crash(first)
    world.nodes[first].disk.put_back(copied)
    # What the leader remembers of it outlives the leader's process, and its power.
    world.crash(leader)
    world.restart(leader)
    world.restart(first)
    world.run(1_000)
    world.crash(leader)
    world.heal()
    world.run(5_000)
    world.restart(leader)
    world.run(5_000)
    failures = [*world.nodes[first].failures]
    assert not failures or "older than what it promised" in failures[0]
    if failures:
        world.crash(first)
        world.nodes[first].is_out = True
    settle(world)
    assert failures, f"{first} was not recognised"


def a_replica_is_corrupted() -> None:
    """A leader's state differs from the others' in something that no entry has shown yet."""
    world = World(25, snapshot_every=20)
    leader = world.wait_for_leader()
    write(world, leader, 10, b"before")
    world.nodes[leader].machine.items[0] = b"corrupted"
    write(world, leader, 30, b"after")
    world.run(3_000)
    failures = [*world.nodes[leader].failures]
    assert not failures or "a majority has another state than this node" in failures[0]
    write(world, world.wait_for_leader(), 5, b"later")
    settle(world)
    assert failures, f"{leader} was not found"


# -- damage ----------------------------------------------------------------------------------------------------------


def a_bit_of_the_journal_flips() -> None:
    """One bit of an entry in the journal of a node is not what was written, when the node starts."""
    world = World(10, snapshot_every=10_000)
    leader = world.wait_for_leader()
    write(world, leader, 20, b"word")
    victim = others(world, leader)[0]
    world.crash(victim)
    disk = world.nodes[victim].disk
    data = bytearray(disk.durable(JOURNAL_NAME))
    data[data.index(b"word 7") + 2] ^= 1
    disk.put(JOURNAL_NAME, bytes(data))
    try:
        world.restart(victim)
    except StoreDamagedError:
        return
    settle(world)


def snapshots_of_a_majority_are_damaged() -> None:
    """Two of three nodes find their snapshots damaged when they start, and the third is off."""
    world = World(11, snapshot_every=20)
    leader = world.wait_for_leader()
    write(world, leader, 60, b"kept")
    world.crash_all()
    refused = 0
    for name in others(world, leader):
        disk = world.nodes[name].disk
        data = bytearray(disk.durable(SNAPSHOT_NAME))
        data[-1] ^= 1
        disk.put(SNAPSHOT_NAME, bytes(data))
        try:
            world.restart(name)
        except StoreDamagedError:
            refused += 1
    if refused == 2:
        return
    write(world, world.wait_for_leader(), 5, b"new")
    settle(world)


def a_disk_is_replaced_under_the_old_name() -> None:
    """A node that has acknowledged entries comes back with an empty disk, beside one that never had them."""
    world = World(12)
    leader = world.wait_for_leader()
    world.run(500)
    first, second = others(world, leader)
    cut(world, [second])
    write(world, leader, 10, b"kept")
    world.crash_all()
    world.nodes[first].disk.files.clear()
    world.heal()
    try:
        world.restart(first)
    except StoreRefusedError:
        return
    world.restart(second)
    write(world, world.wait_for_leader(), 5, b"new")
    settle(world)


# -- votes and acknowledgements --------------------------------------------------------------------------------------


def a_vote_comes_twice() -> None:
    """Votes come twice, and of five nodes only one hears the candidate: nobody leads without a majority."""
    world = World(13, 5)
    old = world.wait_for_leader()
    world.run(500)
    votes: dict[tuple[NodeName, int], set[NodeName]] = {}
    heard: dict[NodeName, NodeName] = {}

    def hook(source: NodeName, target: NodeName, frame: bytes) -> bool:
        message = decoded(frame)
        if message["type"] == "request_vote":
            return heard.setdefault(source, target) == target
        if message["type"] == "response_vote":
            votes.setdefault((target, message["term"]), set()).add(source)
            world.after(3_000, lambda: world.nodes[target].core.receive(source, frame))
        return True

    world.hook = hook
    begun = len(world.events)
    world.crash(old)
    world.run(5_000)
    for _, name, event in world.events[begun:]:
        if isinstance(event, LeadershipChanged) and event.is_self:
            count = 1 + len(votes.get((name, event.term), ()))
            assert count >= 3, f"{name} leads term {event.term} with {count} votes of 5"


def an_acknowledgement_of_an_old_term() -> None:
    """What a follower acknowledged was replaced by another leader; the old leader leads again, and hears it again."""
    world = World(14, 5, snapshot_every=10_000)
    old = world.wait_for_leader()
    world.run(500)
    first = others(world, old)[0]
    late: list[bytes] = []

    def hook(source: NodeName, target: NodeName, frame: bytes) -> bool:
        if (source, target) == (first, old) and decoded(frame)["type"] == "next_node_idx":
            late.append(frame)
        return True

    world.hook = hook
    cut(world, [old, first])
    write(world, old, 12, b"replaced", pause_ms=5)
    acknowledged = max(decoded(frame)["next_node_idx"] - 1 for frame in late)
    world.run(2_000)
    new = world.wait_for_leader()
    assert new not in (old, first)
    write(world, new, 2, b"after")
    world.heal()
    world.run_until(world.is_settled)
    while world.leader() != old:
        world.nodes[world.wait_for_leader()].core.transfer_leadership(old)
        world.run(1_000)
    world.run(200)
    world.hook = lambda *_: False
    for number in range(30):
        world.nodes[old].core.propose(b"alone %d" % number)
    world.nodes[old].core.tick()
    world.run(10)
    frame = next(frame for frame in late if decoded(frame)["next_node_idx"] - 1 == acknowledged)
    held = world.nodes[first].core.status().last_index
    assert held < acknowledged
    world.nodes[old].core.receive(first, frame)
    match = world.nodes[old].core._raft._progress[first].match
    assert match <= held, f"{old} believes that {first} has entry {match}, it has {held}"
    settle(world)


# -- who leads -------------------------------------------------------------------------------------------------------


def a_node_returns() -> None:
    """A follower was cut off for twenty seconds and comes back: the leader leads on, in its term."""
    world = World(15)
    leader = world.wait_for_leader()
    world.run(1_000)
    term = world.nodes[leader].core.status().term
    cut(world, others(world, leader)[:1])
    world.run(20_000)
    world.heal()
    world.run(5_000)
    assert world.leader() == leader, f"{leader} was deposed"
    assert world.nodes[leader].core.status().term == term, "the term was raised"


def a_leader_is_cut_off() -> None:
    """A leader is cut off: it says so of itself before anybody else is elected."""
    world = World(16)
    old = world.wait_for_leader()
    world.run(1_000)
    cut(world, [old])
    world.run_until(lambda: any(world.nodes[name].core.status().is_leader for name in others(world, old)))
    assert not world.nodes[old].core.status().is_leader, f"{old} still believes to lead"


def the_leaders_disk_stands_still() -> None:
    """A leader's disk takes seconds: nothing commits, and no election is held for it."""
    world = World(17)
    leader = world.wait_for_leader()
    world.run(1_000)
    for node in world.nodes.values():
        node.extra_disk_us = 5_000_000
    write(world, leader, 3, b"slow")
    world.run(20_000)
    assert world.leader() == leader, f"{leader} was deposed"
    assert len(world.leaders) == 1, "elections were held"


def a_flood_of_proposals() -> None:
    """Somebody proposes ten thousand entries at once to a leader that is cut off: most are refused."""
    world = World(18)
    leader = world.wait_for_leader()
    world.run(500)
    cut(world, [leader])
    core = world.nodes[leader].core
    taken = 0
    for number in range(10_000):
        taken += core.propose(b"flood %d" % number)
        if number % 50 == 0:
            core.tick()
    assert taken <= 1_000, f"{taken} proposals were taken"
    settle(world)


# -- answers before the commit ----------------------------------------------------------------------------------------


def an_answer_comes_after_its_term() -> None:
    """A leader goes on from an entry that nobody else has; when it says so, another one leads, and gets that."""
    world = World(21)
    old = world.wait_for_leader()
    world.run(500)
    cut(world, [old])
    write(world, old, 1, AWAITED)
    [event] = [each for _, name, each in world.events if name == old and isinstance(each, Appended)]
    world.run_until(lambda: world.leader() not in (None, old))
    world.heal()
    world.run_until(lambda: world.nodes[old].core.status().leader == world.leader())
    world.answer(world.nodes[old], world.nodes[old].life, event)
    world.run(2_000)
    settle(world)


# -- reads -----------------------------------------------------------------------------------------------------------


def a_cut_off_node_is_asked() -> None:
    """A client writes at one node and reads with --consistent at another one, which is cut off."""
    cluster = Cluster(1).form()
    reader, writer = cluster.others(cluster.dc())[0], cluster.dc()
    operations: list[Operation] = []

    def ask(node: NodeName, kind: Kind, value: str = "") -> None:
        began = cluster.world.now_us
        process = cluster.brain_of(node)
        arguments = {"node": "n1", "name": "register", "lifetime": "forever"}
        if kind is Kind.WRITE:
            request = Request(value, "node.attribute", {**arguments, "action": "set", "value": value})
        else:
            request = Request("read", "node.attributes", arguments, Options(is_consistent=True))

        def answered(answer: Progress | Response | EncodedResponse) -> None:
            if isinstance(answer, Response) and answer.exit == 0:
                seen = value or answer.data["nodes"][0]["forever"].get("register", "")
                operations.append(Operation(node, kind, began, cluster.world.now_us, seen))

        process.main_life.after(0, lambda: process.control.handle(request, CALLER, answered))

    ask(writer, Kind.WRITE, "first")
    cluster.until(lambda: len(operations) == 1, 5_000, "the first write answered")
    cluster.run_for(500)
    cluster.isolate(reader)
    ask(writer, Kind.WRITE, "second")
    cluster.until(lambda: len(operations) == 2, 10_000, "the second write answered")
    cluster.run_for(10)
    ask(reader, Kind.READ)
    cluster.run_for(10_000)
    verdict = judge_register(operations)
    assert verdict.is_linearizable, f"no order explains {verdict.culprit}"
