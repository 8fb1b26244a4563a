"""One scenario for each guard of changing voters: what befalls the store when it is needed (Raft thesis §4.1)."""

from haclusterd.model.ids import NodeName
from tests.simulation.store_guard_scenarios import cut, decoded, others, settle, write
from tests.simulation.store_world import World, spell_voters

N4, N5 = NodeName("n4"), NodeName("n5")


def propose(world: World, name: NodeName, entry: bytes) -> None:
    world.nodes[name].core.propose(entry)
    world.nodes[name].core.tick()


def leader_of(world: World, *among: NodeName) -> NodeName | None:
    """Return who of these leads."""
    return next((name for name in among if world.nodes[name].core.status().is_leader), None)


def a_leader_keeps_only_itself() -> None:
    """A leader that is cut off is asked to be the only voter; the others elect another, and both have a majority."""
    world = World(41)
    old = world.wait_for_leader()
    write(world, old, 5, b"before")
    cut(world, [old])
    propose(world, old, spell_voters(1, [old]))
    write(world, old, 3, b"alone", pause_ms=30)
    rest = others(world, old)
    world.run_until(lambda: leader_of(world, *rest) is not None)
    write(world, leader_of(world, *rest) or old, 10, b"together")
    world.run(2_000)
    settle(world)


def a_leader_takes_two_steps() -> None:
    """The same in two steps of one vote each: the first is not committed when the second is asked for."""
    world = World(42)
    old = world.wait_for_leader()
    write(world, old, 5, b"before")
    rest = others(world, old)
    cut(world, [old])
    propose(world, old, spell_voters(1, [old, rest[0]]))
    propose(world, old, spell_voters(2, [old]))
    write(world, old, 3, b"alone", pause_ms=30)
    world.run_until(lambda: leader_of(world, *rest) is not None)
    write(world, leader_of(world, *rest) or old, 10, b"together")
    world.run(2_000)
    settle(world)


def two_leaders_take_one_step_each() -> None:
    """Of four voters one adds n5 and is cut off with it; the next leader removes that one before it has committed.

    Each new majority has a voter in common with the old ones, but not the two with each other.
    """
    world = World(43, 4)
    old = world.wait_for_leader()
    write(world, old, 5, b"before")
    world.add_machine(N5)
    world.change_voters(world.founders, [N5])
    world.run_until(lambda: len(world.nodes[N5].machine.items) > 0)
    if world.leader() != old:
        old = world.wait_for_leader()
    first, second, outsider = others(world, old, N5)
    cut(world, [old, N5])
    version = world.nodes[old].core.voter_set.version + 1
    propose(world, old, spell_voters(version, [*world.founders, N5]))
    world.run_until(lambda: N5 in world.nodes[N5].core.voter_set.voters)

    def deaf_outsider(_: NodeName, target: NodeName, frame: bytes) -> bool:
        return target != outsider or decoded(frame)["type"] not in ("append_entries", "response_pre_vote")

    world.hook = deaf_outsider
    world.run_until(lambda: leader_of(world, first, second) is not None)
    new = leader_of(world, first, second)
    assert new is not None
    propose(world, new, spell_voters(version, others(world, old, N5)))
    write(world, new, 3, b"two of three", pause_ms=50)
    world.crash(first)
    world.crash(second)
    world.hook = lambda *_: True
    world.heal()
    world.run_until(lambda: leader_of(world, old, N5, outsider) is not None)
    write(world, leader_of(world, old, N5, outsider) or old, 10, b"three of five", pause_ms=50)
    settle(world)


def the_leader_is_to_lose_its_vote() -> None:
    """The leader is asked to go on without its own vote: a leader must have one."""
    world = World(44)
    old = world.wait_for_leader()
    write(world, old, 5, b"before")
    world.change_voters(others(world, old), [old])
    world.run(1_000)
    assert world.leader() in world.voter_set().voters, "a leader without a vote"
    settle(world)


def learners_outlive_the_leader() -> None:
    """A leader dies; two learners are there, and no fewer voters than before: none but a voter may follow it."""
    world = World(45)
    for name in (N4, N5):
        world.add_machine(name)
    world.change_voters(world.founders, [N4])
    world.change_voters(world.founders, [N4, N5])
    write(world, world.wait_for_leader(), 5, b"before")
    world.run_until(world.is_settled)
    for _ in range(8):
        gone = world.wait_for_leader()
        world.crash(gone)
        world.run_until(lambda gone=gone: world.leader() not in (None, gone))
        world.restart(gone)
        world.run(1_500)
    assert not {N4, N5} & set(world.leaders.values()), "a learner led"
    settle(world)


def a_change_that_nobody_else_had() -> None:
    """A leader that is cut off adds a voter, and its entry is truncated when it comes back: it counts as before."""
    world = World(46)
    old = world.wait_for_leader()
    write(world, old, 5, b"before")
    cut(world, [old])
    propose(world, old, spell_voters(1, [*world.founders, N4]))
    rest = others(world, old)
    world.run_until(lambda: leader_of(world, *rest) is not None)
    write(world, leader_of(world, *rest) or old, 10, b"after")
    settle(world)
    assert {node.core.voter_set.voters for node in world.nodes.values()} == {world.founders}
