"""Entries and snapshots that take long to take in cost nobody a heartbeat, and change no order (ports/store.py)."""

from itertools import pairwise

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.ports.store import LeadershipChanged, Restored
from haclusterd.raft.frames import decode_frame
from tests.simulation.store_world import World

SLOW = b"slow 900 change"
"""More steps than an election takes milliseconds."""


def propose(world: World, *entries: bytes) -> None:
    for entry in entries:
        world.nodes[world.wait_for_leader()].core.propose(entry)
        world.run(5)


def preparing(world: World) -> list[NodeName]:
    return [name for name in world.names if world.nodes[name].core.due() <= world.clock()]


def elections(world: World) -> set[int]:
    return {int(event.term) for _, _, event in world.events if isinstance(event, LeadershipChanged) and event.leader}


def settle_and_check(world: World) -> None:
    world.heal()
    world.run_until(world.is_settled, limit_ms=30_000)
    world.check()


@pytest.mark.parametrize("seed", range(4))
def test_what_comes_during_a_long_preparation_follows_it_and_no_heartbeat_is_late(seed: int) -> None:
    world = World(seed)
    leader = world.wait_for_leader()
    world.run(1_000)
    terms = elections(world)
    heartbeats: list[int] = []

    def hook(sender: NodeName, receiver: NodeName, frame: bytes) -> bool:
        message = decode_frame(frame)
        if sender == leader and message is not None and message["type"] == "append_entries":
            heartbeats.append(world.clock())
        return True

    world.hook = hook
    propose(world, b"before", SLOW, b"after 1", b"after 2")
    world.run(100)
    assert preparing(world) == list(world.names), "no follower waits for the leader's own preparation"
    assert b"after 1" not in world.acknowledged
    assert world.nodes[leader].core.status().commit_index > world.nodes[leader].core.status().applied_index
    world.run_until(lambda: b"after 2" in world.acknowledged)
    assert elections(world) == terms
    gaps = [later - earlier for earlier, later in pairwise(heartbeats)]
    assert max(gaps) <= world.timers.append_ms + 10
    settle_and_check(world)
    words = [entry for entry in world.nodes[leader].machine.items if entry in (b"before", SLOW, b"after 1", b"after 2")]
    assert words == [b"before", SLOW, b"after 1", b"after 2"]


@pytest.mark.parametrize("seed", range(4))
def test_who_is_killed_while_it_prepares_begins_again_and_agrees(seed: int) -> None:
    world = World(seed)
    leader = world.wait_for_leader()
    propose(world, SLOW, b"after")
    world.run(200)
    for name in (leader, next(each for each in world.names if each != leader)):
        assert name in preparing(world)
        world.crash(name)
        world.run(50)
        world.restart(name)
    world.run_until(lambda: b"after" in world.acknowledged)
    settle_and_check(world)
    assert all(node.machine.items.count(SLOW) == 1 for node in world.nodes.values())


def lagging(seed: int) -> tuple[World, NodeName, NodeName]:
    """Return a world in which a follower, the second of the names, was cut off and needs a snapshot."""
    world = World(seed, snapshot_every=30)
    leader = world.wait_for_leader()
    behind = next(name for name in world.names if name != leader)
    world.run(1_000)
    for other in world.names:
        if other != behind:
            world.block(behind, other)
            world.block(other, behind)
    for number in range(300):
        propose(world, b"word %d" % number)
    assert world.nodes[leader].core.status().base_index > world.nodes[behind].core.status().last_index
    return world, leader, behind


@pytest.mark.parametrize("seed", range(3))
def test_a_snapshot_that_takes_long_to_read_costs_no_election(seed: int) -> None:
    world, leader, behind = lagging(seed)
    terms = elections(world)
    world.nodes[behind].machine.steps_to_read = 900
    world.heal()
    world.run_until(lambda: behind in preparing(world))
    propose(world, b"meanwhile")
    assert not any(isinstance(event, Restored) and name == behind for _, name, event in world.events)
    world.run_until(lambda: b"meanwhile" in world.nodes[behind].machine.items)
    assert any(isinstance(event, Restored) and name == behind for _, name, event in world.events)
    assert elections(world) == terms
    assert world.leader() == leader
    settle_and_check(world)


@pytest.mark.parametrize("seed", range(3))
def test_who_is_killed_while_it_reads_a_snapshot_starts_with_it(seed: int) -> None:
    world, _, behind = lagging(seed)
    world.nodes[behind].machine.steps_to_read = 900
    world.heal()
    world.run_until(lambda: behind in preparing(world))
    world.run(100)
    world.crash(behind)
    world.restart(behind)
    settle_and_check(world)


@pytest.mark.parametrize("seed", range(3))
def test_a_snapshot_makes_the_preparation_of_an_older_entry_void(seed: int) -> None:
    world = World(seed, snapshot_every=30)
    leader = world.wait_for_leader()
    behind = next(name for name in world.names if name != leader)
    world.run(1_000)
    propose(world, b"slow 100000 for one")
    world.run(100)
    # The others are through with it at once, and far ahead; to this one it will never end.
    for name in world.names:
        if name != behind:
            node = world.nodes[name]
            while node.core.due() <= world.clock() and node.machine.prepared is None:
                node.core.tick()
            world.block(behind, name)
            world.block(name, behind)
    for number in range(300):
        propose(world, b"word %d" % number)
    world.heal()
    world.run_until(lambda: b"word 299" in world.nodes[behind].machine.items)
    assert behind not in preparing(world)
    settle_and_check(world)
