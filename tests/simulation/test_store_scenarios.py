"""Directed faults against the store: each breaks the library as shipped, or a naive guard."""

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.ports.store import Applied, LeadershipChanged, Restored
from haclusterd.raft.frames import decode_frame
from tests.simulation.store_world import World


def write(world: World, name: NodeName, count: int, label: bytes, pause_ms: int = 20) -> None:
    for number in range(count):
        world.nodes[name].core.propose(b"%s %d" % (label, number))
        world.run(pause_ms)


def isolate(world: World, name: NodeName) -> None:
    for other in world.names:
        if other != name:
            world.block(name, other)
            world.block(other, name)


def applied(world: World) -> set[bytes]:
    return {event.outcome[0] for _, _, event in world.events if isinstance(event, Applied)}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pending_entries_of_an_old_leader_are_not_acknowledged_after_the_others_compacted(seed: int) -> None:
    world = World(seed, snapshot_every=30)
    old = world.wait_for_leader()
    write(world, old, 5, b"before")
    isolate(world, old)
    write(world, old, 5, b"isolated", pause_ms=2)
    world.run(2_000)
    new = next(name for name in world.names if name != old and world.nodes[name].core.status().is_leader)
    write(world, new, 120, b"after")
    assert world.nodes[new].core.status().base_index > world.nodes[old].core.status().last_index
    world.heal()
    world.run_until(world.is_settled)
    world.check()
    assert any(isinstance(event, Restored) and name == old for _, name, event in world.events)
    assert not [entry for entry in applied(world) if entry.startswith(b"isolated")]


def test_a_divergent_tail_catches_up_within_two_seconds_under_writes() -> None:
    world = World(4, snapshot_every=10_000)
    old = world.wait_for_leader()
    isolate(world, old)
    write(world, old, 60, b"divergent", pause_ms=1)
    world.run(2_000)
    new = next(name for name in world.names if name != old and world.nodes[name].core.status().is_leader)
    write(world, new, 100, b"after")
    world.heal()
    start = world.clock()
    while world.nodes[old].core.status().applied_index < world.nodes[new].core.status().applied_index - 2:
        write(world, new, 1, b"meanwhile %d" % world.clock())
        assert world.clock() - start < 2_000
    world.run_until(world.is_settled)
    world.check()


def test_a_voter_that_was_cut_off_neither_raises_the_term_nor_deposes_the_leader() -> None:
    world = World(5)
    leader = world.wait_for_leader()
    world.run(1_000)
    term = world.nodes[leader].core.status().term
    cut = next(name for name in world.names if name != leader)
    isolate(world, cut)
    world.run(20_000)
    world.heal()
    world.run(5_000)
    assert world.leader() == leader
    assert world.nodes[leader].core.status().term == term


def test_a_disk_that_stands_still_for_seconds_does_not_cost_the_leader_its_place() -> None:
    world = World(6)
    leader = world.wait_for_leader()
    world.run(1_000)
    world.disk_us = lambda: 5_000_000
    write(world, leader, 3, b"slow")
    world.run(20_000)
    assert world.leader() == leader
    assert len(applied(world)) == 3
    elected = [event for _, _, event in world.events if isinstance(event, LeadershipChanged) and event.is_self]
    assert len(elected) == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_leader_whose_disk_stands_still_for_long_hands_over_and_loses_nothing(seed: int) -> None:
    world = World(seed)
    old = world.wait_for_leader()
    write(world, old, 5, b"before")
    world.run(1_000)
    node = world.nodes[old]
    node.extra_disk_us = 60_000_000
    write(world, old, 5, b"stuck")
    timeout_ms = node.core.timers.disk_timeout_ms
    world.run(timeout_ms + 3_000)
    new = world.leader()
    assert new not in (None, old)
    write(world, new, 20, b"after")
    world.run(1_000)
    assert {b"after %d" % number for number in range(20)} <= applied(world)
    node.extra_disk_us = 0
    world.run(60_000)
    world.run_until(world.is_settled)
    world.check()
    assert world.leader() == new


@pytest.mark.parametrize("seed", range(5))
def test_a_cut_off_leader_has_stepped_down_when_the_next_is_elected(seed: int) -> None:
    world = World(seed)
    old = world.wait_for_leader()
    world.run(1_000)
    isolate(world, old)
    before = len(world.events)
    world.run(3_000)
    events = world.events[before:]
    fell = next(when for when, name, event in events if name == old and is_fall(event))
    rose = next(when for when, name, event in events if name != old and is_rise(event))
    assert fell < rose


def is_fall(event: object) -> bool:
    return isinstance(event, LeadershipChanged) and not event.is_self and event.leader is None and event.term > 0


def is_rise(event: object) -> bool:
    return isinstance(event, LeadershipChanged) and event.is_self


def test_a_one_way_cut_costs_one_election() -> None:
    world = World(7)
    old = world.wait_for_leader()
    world.run(1_000)
    for other in world.names:
        if other != old:
            world.block(other, old)
    world.run(5_000)
    new = world.wait_for_leader()
    assert new != old
    write(world, new, 5, b"after")
    world.heal()
    world.run_until(world.is_settled)
    world.check()
    assert len(world.leaders) == 2


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_leader_is_replaced_within_two_election_timeouts(seed: int) -> None:
    world = World(seed, node_timeout_ms=2000)
    old = world.wait_for_leader()
    world.run(1_000)
    world.crash(old)
    start = world.clock()
    world.run_until(lambda: world.leader() is not None)
    assert world.clock() - start < 1.1 * world.timers.election_max_ms


def test_leadership_moves_to_the_node_that_was_asked_for_without_a_gap() -> None:
    world = World(8)
    old = world.wait_for_leader()
    write(world, old, 5, b"before")
    world.run(500)
    target = next(name for name in world.names if name != old)
    start = world.clock()
    world.nodes[old].core.transfer_leadership(target)
    world.run_until(lambda: world.nodes[target].core.status().is_leader)
    assert world.clock() - start < world.timers.election_min_ms
    write(world, target, 5, b"after")
    world.run_until(world.is_settled)
    world.check()


def test_a_proposal_is_applied_by_every_node_by_whichever_it_comes() -> None:
    world = World(9)
    world.wait_for_leader()
    world.run(1_000)
    for name in world.names:
        world.nodes[name].core.propose(b"from " + name.encode())
        world.nodes[name].core.tick()
    world.run(500)
    for node in world.nodes.values():
        assert sorted(node.machine.items) == [b"from n1", b"from n2", b"from n3"]


def test_everything_committed_survives_a_power_cut_of_all_nodes_at_once() -> None:
    world = World(10)
    leader = world.wait_for_leader()
    write(world, leader, 30, b"kept", pause_ms=3)
    world.crash_all()
    for name in world.names:
        world.restart(name)
    world.run_until(world.is_settled)
    world.check()


def test_no_frame_ever_acknowledges_an_entry_that_the_machine_has_not_seen() -> None:
    world = World(11)
    seen = dict.fromkeys(world.names, 0)

    def hook(source: NodeName, _: NodeName, frame: bytes) -> bool:
        message = decode_frame(frame)
        assert message is not None
        machine = world.nodes[source].machine
        if message["type"] == "next_node_idx" and message["success"]:
            seen[source] = max(seen[source], message["next_node_idx"] - 1)
            # Index 1 is the base, each term adds one empty entry: never fewer than what was proposed.
            assert len(machine.items) + len(machine.tail) + 1 + len(world.leaders) >= message["next_node_idx"] - 1
        return True

    world.hook = hook
    leader = world.wait_for_leader()
    write(world, leader, 50, b"x", pause_ms=2)
    world.run(500)
    assert sum(index > 50 for index in seen.values()) == 2
