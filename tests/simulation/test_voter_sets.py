"""Who votes changes while the cluster runs: one vote at a time, and nothing is lost on the way (Raft thesis §4)."""

import os

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.raft.frames import VOTERS, decode_frame
from tests.simulation.store_swarm import MEMBERS_CHANGE_EVERY, run
from tests.simulation.store_world import World, spell_voters

N1, N2, N3, N4, N5, N6, N7 = (NodeName(f"n{number}") for number in range(1, 8))
MEMBER_SEEDS = range(MEMBERS_CHANGE_EVERY - 1, MEMBERS_CHANGE_EVERY * int(os.environ.get("VOTER_SEEDS", "9")), 3)
"""Every fourth of them with frames that are lost, late, repeated and reordered."""


def write(world: World, count: int = 20) -> None:
    """Have entries committed by the leader."""
    world.written = getattr(world, "written", 0)
    for _ in range(count):
        world.written += 1
        leader = world.wait_for_leader()
        word = b"word %d" % world.written
        world.nodes[leader].core.propose(word)
        world.run_until(lambda word=word: word in world.acknowledged)


def in_force(world: World, entry: bytes) -> bool:
    """Whether the log took the entry for a change of voters."""
    leader = world.nodes[world.wait_for_leader()]
    return leader.core.voter_set == leader.machine.proposed_voters(entry)


def settle_and_check(world: World) -> None:
    world.heal_all()
    world.run_until(world.is_settled, limit_ms=30_000)
    world.check()


def test_three_become_seven_and_three_again_while_everything_is_written_down() -> None:
    world = World(1)
    write(world)
    for newcomer, voters in ((N4, (N1, N2, N3)), (N5, (N1, N2, N3, N4)), (N6, (N1, N2, N3, N4, N5))):
        world.add_machine(newcomer)
        world.change_voters(voters, (newcomer,))
        write(world, 60)
        world.run_until(lambda name=newcomer: len(world.nodes[name].machine.items) > 50)
        world.change_voters((*voters, newcomer))
        write(world)
    assert world.voter_set().voters == (N1, N2, N3, N4, N5, N6)
    for gone in (N6, N5, N4):
        if world.leader() == gone:
            world.nodes[gone].core.transfer_leadership(N1)
            world.run_until(lambda name=gone: world.leader() not in (None, name))
        world.change_voters(tuple(name for name in world.voter_set().voters if name != gone))
        world.crash(gone)
        world.names = tuple(name for name in world.names if name != gone)
        del world.nodes[gone]
        write(world)
    settle_and_check(world)


def test_one_voter_alone_becomes_three() -> None:
    world = World(2, 1)
    write(world)
    for newcomer in (N2, N3):
        world.add_machine(newcomer)
        voters = world.voter_set().voters
        world.change_voters(voters, (newcomer,))
        world.run_until(lambda name=newcomer: len(world.nodes[name].machine.items) >= 20)
        world.change_voters((*voters, newcomer))
    world.crash(N1)
    write(world)
    settle_and_check(world)


def test_a_learner_gets_a_snapshot_and_never_campaigns() -> None:
    world = World(3, snapshot_every=20)
    write(world, 100)
    world.add_machine(N4)
    world.change_voters((N1, N2, N3), (N4,))
    world.run_until(lambda: len(world.nodes[N4].machine.items) >= 100)
    terms = set(world.leaders)
    for other in (N1, N2, N3):
        world.block(other, N4)
        world.block(N4, other)
    world.run(20_000)
    assert set(world.leaders) == terms
    assert N4 not in world.leaders.values()
    settle_and_check(world)


def test_a_learner_that_is_there_does_not_help_a_majority() -> None:
    world = World(4)
    world.add_machine(N4)
    world.change_voters((N1, N2, N3), (N4,))
    write(world)
    leader = world.wait_for_leader()
    for other in (N1, N2, N3):
        if other != leader:
            world.crash(other)
    world.nodes[leader].core.propose(b"alone")
    world.run(10_000)
    assert b"alone" not in world.acknowledged
    settle_and_check(world)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(10, 20))
def test_the_leader_dies_at_the_commit_and_the_rest_goes_on(seed: int) -> None:
    """Who holds an uncommitted change and who lacks it must both be able to go on, whatever the leader knew."""
    world = World(seed)
    world.add_machine(N4)
    world.change_voters((N1, N2, N3), (N4,))
    write(world)
    leader = world.wait_for_leader()
    others = [name for name in (N1, N2, N3) if name != leader]
    world.block(leader, others[1])
    entry = world.ask_for_voters(world.voter_set().version + 1, (N1, N2, N3, N4))
    world.run_until(lambda: entry in world.acknowledged)
    world.crash(leader)
    world.heal()
    world.run_until(lambda: world.leader() not in (None, leader))
    write(world)
    assert world.voter_set().voters == (N1, N2, N3, N4)
    settle_and_check(world)


def test_a_change_that_was_never_committed_is_taken_back() -> None:
    world = World(5)
    write(world)
    old = world.wait_for_leader()
    for other in (N1, N2, N3):
        if other != old:
            world.block(old, other)
            world.block(other, old)
    entry = spell_voters(1, (N1, N2, N3, N4))
    world.nodes[old].core.propose(entry)
    world.nodes[old].core.tick()
    assert N4 in world.nodes[old].core.voter_set.voters
    world.run_until(lambda: world.leader() not in (None, old))
    write(world)
    world.heal()
    world.run_until(world.is_settled)
    assert world.nodes[old].core.voter_set.voters == (N1, N2, N3)
    settle_and_check(world)


@pytest.mark.parametrize(
    ("version", "voters"),
    [
        pytest.param(1, (N1,), id="two votes less"),
        pytest.param(1, (N1, N2, N3, N4, N5), id="two votes more"),
        pytest.param(1, (N1, N2, N4), id="one for another"),
        pytest.param(2, (N1, N2, N3, N4), id="a version is left out"),
        pytest.param(0, (N1, N2, N3, N4), id="an old version"),
        pytest.param(1, (), id="nobody"),
    ],
)
def test_a_change_of_more_than_one_vote_is_an_ordinary_entry(version: int, voters: tuple[NodeName, ...]) -> None:
    world = World(6)
    write(world)
    entry = world.ask_for_voters(version, voters)
    world.run_until(lambda: entry in world.acknowledged)
    assert not in_force(world, entry)
    assert world.voter_set().voters == (N1, N2, N3)


def test_the_second_change_waits_for_the_first() -> None:
    world = World(7)
    write(world)
    leader = world.wait_for_leader()
    for other in (N1, N2, N3):
        if other != leader:
            world.block(other, leader)
    first = world.ask_for_voters(1, (N1, N2, N3, N4))
    assert in_force(world, first)
    second = world.ask_for_voters(2, (N1, N2, N3, N4, N5))
    assert not in_force(world, second)


def test_a_leader_that_has_committed_nothing_yet_changes_no_voters() -> None:
    """Otherwise two leaders could count by sets that have no voter in common (the flaw of the thesis's first print)."""
    world = World(8)
    write(world)
    old = world.wait_for_leader()
    world.crash(old)
    world.run_until(lambda: world.leader() not in (None, old))
    new = world.leader()
    assert new is not None
    for other in (N1, N2, N3):
        if other != new:
            world.block(other, new)
    core = world.nodes[new].core
    if core.status().commit_index < core.status().last_index:
        entry = spell_voters(1, (N1, N2, N3, N4))
        core.propose(entry)
        core.tick()
        assert core.voter_set.version == 0


def test_a_leader_does_not_vote_itself_out_but_hands_over() -> None:
    world = World(9)
    write(world)
    leader = world.wait_for_leader()
    rest = tuple(name for name in (N1, N2, N3) if name != leader)
    for _ in range(20):
        if world.wait_for_leader() != leader:
            break
        # Only a voter that has the whole log can take over, so one request is one attempt.
        world.ask_for_voters(1, rest)
        world.run(1000)
    assert world.wait_for_leader() != leader
    world.change_voters(rest)
    world.crash(leader)
    world.names = rest
    del world.nodes[leader]
    write(world)
    settle_and_check(world)


def test_a_request_that_can_never_be_costs_no_leader_its_office() -> None:
    world = World(9)
    write(world)
    leader = world.wait_for_leader()
    rest = tuple(name for name in (N1, N2, N3) if name != leader)
    for version, voters in ((7, rest), (1, rest[:1])):
        entry = world.ask_for_voters(version, voters)
        world.run_until(lambda entry=entry: entry in world.acknowledged)
        world.run(3_000)
    assert (world.leader(), len(world.leaders)) == (leader, 1)


def test_the_state_machine_can_say_no() -> None:
    world = World(10)
    write(world)
    for node in world.nodes.values():
        node.machine.allows_changes = False
    entry = world.ask_for_voters(1, (N1, N2, N3, N4))
    world.run_until(lambda: entry in world.acknowledged)
    assert not in_force(world, entry)


def test_a_snapshot_brings_its_voters_along() -> None:
    world = World(11, snapshot_every=20)
    world.add_machine(N4)
    world.change_voters((N1, N2, N3), (N4,))
    world.run_until(lambda: len(world.nodes[N4].machine.items) >= 1)
    world.change_voters((N1, N2, N3, N4))
    write(world, 60)
    for name in (N1, N2, N3, N4):
        world.crash(name)
    settle_and_check(world)
    assert {node.core.voter_set.voters for node in world.nodes.values()} == {(N1, N2, N3, N4)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", MEMBER_SEEDS)
def test_members_change_at_random_in_a_storm(seed: int) -> None:
    outcome = run(seed)
    counts = dict(outcome.counts)
    assert not outcome.problem, (outcome.problem, outcome.faults)
    # A member that forgot what it had promised is out for good, and what is left may be no majority.
    assert counts["acknowledged"] > 50 or counts["excused"]
    assert counts["voter_sets"] > 0


def test_frames_of_the_new_kind_are_read() -> None:
    world = World(12)
    seen: list[bytes] = []

    def hook(_: NodeName, __: NodeName, frame: bytes) -> bool:
        message = decode_frame(frame)
        assert message is not None
        if message["type"] == "append_entries":
            seen.extend(command for command, _, _ in message["entries"] if command[0] == VOTERS)
        return True

    world.hook = hook
    world.change_voters((N1, N2))
    assert seen
