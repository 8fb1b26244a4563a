"""Who is lost, by whose evidence, and when: tables for the DC's judgement."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.cib import commands
from haclusterd.cib.commands import Join, Lost
from haclusterd.cib.edits import PutSets
from haclusterd.machines.effects import Effect, Propose, TransferLeadership
from haclusterd.machines.membership import MembershipMachine
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.followers import Follower, Followers
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport
from haclusterd.model.records import replace
from haclusterd.model.timing import derive
from tests.unit.situations import N1, N2, N3, NAMES, TERM, Cluster, life, moment, without_lease

TIMING = derive(2000, 10_000)
T = TIMING.node_timeout_ms
OFFICE = 1_000_000
"""When n1 became DC."""
NOW = OFFICE + 60_000


def heard(
    name: NodeName,
    age_ms: int | None = 50,
    hears: Mapping[NodeName, int] | None = None,
    *,
    incarnation: Incarnation | None = None,
    brain: BrainState = BrainState.ALIVE,
    away_ms: int = 0,
) -> HeardNode:
    others = hears if hears is not None else {other: 50 for other in NAMES if other != name}
    known = incarnation or (life(name) if age_ms is not None else None)
    return HeardNode(name, known, age_ms, brain, away_ms, others)


def report(*nodes: HeardNode, at: int = NOW, stalled_at: int | None = None) -> PacerReport:
    return PacerReport(Instant(at), Instant(stalled_at) if stalled_at is not None else None, nodes)


class Dc:
    """n1 as DC of n1 to n3, or of five nodes."""

    def __init__(self, cluster: Cluster | None = None, *, since: int = OFFICE) -> None:
        self.cluster = cluster or Cluster()
        self.machine = MembershipMachine(N1, TERM, TIMING, Instant(since))
        self.machine.step(self.cluster.cib, None, moment(since))

    def judge(self, *nodes: HeardNode, at: int = NOW, stalled_at: int | None = None) -> Sequence[Effect]:
        return self.machine.step(self.cluster.cib, report(*nodes, at=at, stalled_at=stalled_at), moment(at))

    def lost(self, *nodes: HeardNode, at: int = NOW, stalled_at: int | None = None) -> list[NodeName]:
        return lost(self.judge(*nodes, at=at, stalled_at=stalled_at))


def lost(effects: Sequence[Effect]) -> list[NodeName]:
    found = []
    for effect in effects:
        if isinstance(effect, Propose):
            assert isinstance(effect.command, Lost)
            found.append(effect.command.node)
    return found


# -- silence ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own_age_ms", "age_at_n3_ms", "is_lost"),
    [
        (50, 50, False),
        (T - 1, T, False),
        (T, T, True),
        (T + 100, T + 100, True),
        (T + 100, T - 1, False),
        (T + 100, 50, False),
    ],
)
def test_a_node_is_lost_when_no_voter_heard_it_for_node_timeout(
    own_age_ms: int, age_at_n3_ms: int, is_lost: bool
) -> None:
    found = Dc().lost(heard(N2, own_age_ms), heard(N3, 50, {N1: 50, N2: age_at_n3_ms}))
    assert found == ([N2] if is_lost else [])


def test_what_a_voter_said_some_time_ago_proves_no_silence_since() -> None:
    """n3's newest heartbeat is 1.9 s old: it may have heard n2 just now."""
    dc = Dc()
    assert dc.lost(heard(N2, T + 50), heard(N3, 1900, {N1: 50, N2: 150})) == []
    assert NOW < dc.machine.deadline() <= NOW + 100, "then n3 itself is silent, and its word counts no more"


def test_a_voter_that_has_just_begun_to_listen_proves_no_silence() -> None:
    dc = Dc()
    assert dc.lost(heard(N2, T), heard(N3, 50, {N1: 50})) == []
    assert dc.lost(heard(N2, T + T), heard(N3, 50, {N1: 50}), at=NOW + T) == [N2]


def test_the_word_of_a_voter_that_is_itself_silent_does_not_count() -> None:
    cluster = Cluster(names=five(), joined=five())
    nodes = [heard(name, 50, {N2: T, N3: 50}) for name in five()[3:]]
    assert Dc(cluster).lost(heard(N2, T), heard(N3, T, {N2: 50}), *nodes) == [N2]


def five() -> list[NodeName]:
    return [*NAMES, NodeName("n4"), NodeName("n5")]


def test_a_dc_without_a_lease_judges_nobody() -> None:
    dc = Dc()
    nodes = report(heard(N2, 9000), heard(N3, 50, {N1: 50, N2: 9000}))
    assert dc.machine.step(dc.cluster.cib, nodes, without_lease(NOW)) == ()
    assert lost(dc.machine.step(dc.cluster.cib, nodes, moment(NOW))) == [N2]


def test_a_dc_that_hears_no_majority_judges_nobody() -> None:
    assert Dc().lost(heard(N2, 9000), heard(N3, 9000)) == []


def test_without_a_report_nobody_is_judged() -> None:
    dc = Dc()
    assert dc.machine.step(dc.cluster.cib, None, moment(NOW)) == ()


@pytest.mark.parametrize("state", ["lost", "left"])
def test_only_who_is_there_can_be_lost(state: str) -> None:
    dc = Dc()
    if state == "lost":
        dc.cluster.lose(N2)
    else:
        dc.cluster.must(commands.Leaving(N2, life(N2)))
    assert dc.lost(heard(N2, 9000), heard(N3, 50, {N2: 9000})) == []


def test_the_loss_names_the_incarnation_that_is_in_force_and_the_dcs_term() -> None:
    [effect] = Dc().judge(heard(N2, T), heard(N3, 50, {N2: T}))
    assert isinstance(effect, Propose)
    assert isinstance(effect.command, Lost)
    assert (effect.command.incarnation, effect.command.dc_term) == (life(N2), TERM)


def test_a_rejoined_node_is_not_judged_by_the_silence_of_its_older_life() -> None:
    """Its Join is applied before its first heartbeat was accepted here."""
    dc = Dc()
    dc.lost(heard(N2, 50), heard(N3))
    dc.cluster.must(commands.Join(N2, life(N2, boot=2)))
    before = [heard(N2, 60_000), heard(N3, 50, {N1: 50, N2: 60_000})]
    assert dc.lost(*before) == []
    assert NOW < dc.machine.deadline() <= NOW + T
    assert dc.lost(*before, at=NOW + T) == [N2]


def test_a_new_dc_counts_the_silence_of_before_its_election() -> None:
    """Otherwise the loss of a DC together with another node would be found a node-timeout later."""
    assert Dc(since=NOW).lost(heard(N2, T), heard(N3, 50, {N2: T})) == [N2]


def test_a_life_that_a_new_dc_never_heard_is_waited_for_when_an_older_one_was() -> None:
    dc = Dc(since=NOW)
    nodes = [heard(N2, 60_000, incarnation=life(N2, token=9)), heard(N3, 50, {N1: 50, N2: 60_000})]
    assert dc.lost(*nodes, at=NOW + T - 1) == []
    assert dc.lost(*nodes, at=NOW + T) == [N2]


def deaf_to_n1(name: NodeName, age_ms: int | None = 50) -> HeardNode:
    return heard(name, age_ms, {N1: 9000, N2: 50, N3: 50})


@pytest.mark.parametrize(
    ("waited_ms", "nodes", "candidates"),
    [
        (T - 1, [deaf_to_n1(N2), deaf_to_n1(N3)], []),
        (T, [deaf_to_n1(N2), deaf_to_n1(N3)], [N3]),
        (2 * T, [deaf_to_n1(N2), deaf_to_n1(N3)], [N2]),
        (T, [deaf_to_n1(N2), deaf_to_n1(N3, T)], [N2]),
        (T - 1, [heard(N2, None), heard(N3, None)], []),
        (T, [deaf_to_n1(N2, T), heard(N3, None)], [N2]),
        (T, [heard(N2), heard(N3)], []),
    ],
    ids=["too early", "the first", "the next", "one is silent", "silent, too early", "all are silent", "it is heard"],
)
def test_a_dc_whose_lease_stays_away_because_it_is_not_heard_hands_over(
    waited_ms: int, nodes: list[HeardNode], candidates: list[NodeName]
) -> None:
    dc = Dc()
    effects: Sequence[Effect] = ()
    for now in (NOW, NOW + waited_ms):
        effects = dc.machine.step(dc.cluster.cib, report(*nodes, at=now), without_lease(now))
    assert [effect.to for effect in effects if isinstance(effect, TransferLeadership)] == candidates


def transfers_in_silence(dc: Dc, *instants: int, behind: tuple[NodeName, ...] = ()) -> list[NodeName]:
    """Return to whom a DC hands over that hears nobody, at each of these instants."""
    found = []
    for now in instants:
        silent = [Follower(name, Instant(0), Instant(0), is_linked=False) for name in behind]
        followers = Followers(Instant(now), tuple(silent))
        nodes = report(heard(N2, T + T), heard(N3, T + T), at=now)
        effects = dc.machine.step(dc.cluster.cib, nodes, without_lease(now), followers)
        found += [effect.to for effect in effects if isinstance(effect, TransferLeadership)]
    return found


def test_a_dc_that_hears_nobody_hands_over_to_a_voter_that_answers_it_in_raft() -> None:
    assert transfers_in_silence(Dc(), NOW, NOW + T, behind=(N2,)) == [N3]
    assert transfers_in_silence(Dc(), NOW, NOW + T, behind=(N2, N3)) == []


def test_each_voter_is_tried_once_while_the_lease_stays_away() -> None:
    """Where no heartbeat passes between any two, the leadership must not go round and round."""
    dc = Dc()
    assert transfers_in_silence(dc, NOW, *(NOW + number * T for number in range(1, 9))) == [N2, N3]
    dc.machine.step(dc.cluster.cib, report(heard(N2), heard(N3), at=NOW + 9 * T), moment(NOW + 9 * T))
    assert transfers_in_silence(dc, NOW + 10 * T, NOW + 11 * T) == [N2], "the lease was back: this is another silence"


# -- members never heard -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("joined", [[N1, N2, N3], [N1, N3]])
def test_a_member_that_was_never_heard_is_waited_for_and_then_lost(joined: list[NodeName]) -> None:
    dc = Dc(Cluster(joined=joined))
    nodes = [heard(N2, None), heard(N3, 50, {N1: 50})]
    early = OFFICE + TIMING.unseen_wait_ms - 1
    assert dc.lost(*nodes, at=early) == []
    assert dc.machine.deadline() == early + 1
    assert dc.lost(*nodes, at=early + 1) == [N2]


def test_an_unseen_member_that_is_heard_is_not_lost() -> None:
    assert Dc(Cluster(joined=[N1, N3])).lost(heard(N2), heard(N3)) == []


@pytest.mark.parametrize(
    ("joined", "nodes", "is_settled"),
    [
        ([N1, N2, N3], [heard(N2), heard(N3)], True),
        ([N1, N3], [heard(N2), heard(N3)], False),
        ([N1, N2, N3], [heard(N2, incarnation=life(N2, token=9)), heard(N3)], False),
        ([N1, N2, N3], [heard(N2, None), heard(N3)], False),
        ([N2, N3], [heard(N2), heard(N3)], False),
    ],
    ids=["all heard", "one unseen", "another life heard", "one not heard", "the DC has not joined"],
)
def test_plans_wait_until_every_member_is_heard_as_the_cib_knows_it(
    joined: list[NodeName], nodes: list[HeardNode], is_settled: bool
) -> None:
    dc = Dc(Cluster(joined=joined))
    assert dc.machine.is_settled(dc.cluster.cib, report(*nodes)) is is_settled


# -- daemons ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("brain", [BrainState.HUNG, BrainState.RESTARTING])
@pytest.mark.parametrize(("away_ms", "is_lost"), [(9000, False), (9949, False), (9950, True)])
def test_a_host_without_a_daemon_is_lost_after_brain_timeout(brain: BrainState, away_ms: int, is_lost: bool) -> None:
    """Its newest heartbeat is 50 ms old."""
    found = Dc().lost(heard(N2, 50, brain=brain, away_ms=away_ms), heard(N3))
    assert found == ([N2] if is_lost else [])


def test_a_daemon_that_joined_a_moment_ago_was_there_a_moment_ago() -> None:
    """It took long to start; that it lives again is not yet in a heartbeat, but its Join is in the log."""
    dc = Dc(Cluster(joined=[N1, N3]))
    away = heard(N2, 50, brain=BrainState.RESTARTING, away_ms=11_000)
    dc.cluster.must(Join(N2, life(N2)))
    assert dc.lost(away, heard(N3)) == []
    assert NOW < dc.machine.deadline() <= NOW + TIMING.heartbeat_ms
    later = NOW + 2 * TIMING.heartbeat_ms
    assert dc.lost(heard(N2, 250, brain=BrainState.RESTARTING, away_ms=11_000), heard(N3), at=later) == []
    assert dc.lost(away, heard(N3), at=later) == [N2], "one that joins and ends, again and again, is not there"


def test_a_daemon_that_lives_is_never_lost_for_the_time_it_has_lived() -> None:
    assert Dc().lost(heard(N2, 50, away_ms=3_600_000), heard(N3)) == []


# -- standstill -------------------------------------------------------------------------------------------------------


def test_after_an_own_stall_what_was_never_heard_is_waited_for_again() -> None:
    dc = Dc(Cluster(joined=[N1, N3]))
    nodes = [heard(N2, None), heard(N3, 50, {N1: 50})]
    assert dc.lost(*nodes, at=NOW, stalled_at=NOW - 1) == []
    assert dc.lost(*nodes, at=NOW + TIMING.unseen_wait_ms, stalled_at=NOW - 1) == [N2]


def test_when_its_pacer_begins_again_a_node_that_joined_under_this_dc_is_waited_for_again() -> None:
    """All pacers were killed at once: the new ones have heard some already, and others not yet."""
    dc = Dc(Cluster(joined=[N1, N3]))
    dc.judge(heard(N2, None), heard(N3))
    dc.cluster.must(Join(N2, life(N2)))
    dc.judge(heard(N2), heard(N3))
    later = NOW + 2 * T
    assert dc.lost(heard(N2, None), heard(N3, 50, {N1: 50}), at=later) == []
    assert dc.lost(heard(N2, None), heard(N3, 50, {N1: 50}), at=later + TIMING.unseen_wait_ms) == [N2]


# -- cut in part ------------------------------------------------------------------------------------------------------


ONLY_N3_HEARS_N2 = [heard(N2, T, {N1: T, N3: 50}), heard(N3, 50, {N1: 50, N2: 50})]


def test_a_node_that_only_the_dc_does_not_hear_makes_it_hand_over_to_one_that_hears_all() -> None:
    effects = Dc().judge(*ONLY_N3_HEARS_N2)
    assert TransferLeadership(N3) in effects
    assert lost(effects) == []


def test_it_does_not_hand_over_to_a_node_that_does_not_hear_it() -> None:
    effects = Dc().judge(heard(N2, T, {N3: 50}), heard(N3, 50, {N1: T, N2: 50}))
    assert not any(isinstance(effect, TransferLeadership) for effect in effects)


def test_it_does_not_hand_over_to_a_node_that_is_lost() -> None:
    """A DC that is lost could declare nobody lost, and waits for its own fencing (seed 411019)."""
    dc = Dc()
    dc.cluster.lose(N3)
    assert not any(isinstance(effect, TransferLeadership) for effect in dc.judge(*ONLY_N3_HEARS_N2))


def deaf(*, hears_n3: int) -> list[HeardNode]:
    """n2 is heard by all; it has not heard the DC."""
    return [heard(N2, 50, {N1: T + 50, N3: hears_n3}), heard(N3, 50, {N1: 50, N2: 50})]


def test_a_node_that_does_not_hear_the_dc_makes_it_hand_over_after_node_timeout() -> None:
    dc = Dc()
    assert not dc.judge(*deaf(hears_n3=50))
    assert NOW < dc.machine.deadline() <= NOW + T
    effects = dc.judge(*deaf(hears_n3=50), at=NOW + T)
    assert TransferLeadership(N3) in effects
    assert lost(effects) == []


def test_a_node_that_hears_no_majority_has_no_lease_and_is_lost() -> None:
    dc = Dc()
    assert dc.lost(*deaf(hears_n3=T + 50)) == []
    assert dc.lost(*deaf(hears_n3=T + 50), at=NOW + T - 1) == []
    assert dc.lost(*deaf(hears_n3=T + 50), at=NOW + T) == [N2]


def test_a_node_that_hears_again_is_waited_for_as_long_again() -> None:
    dc = Dc()
    dc.lost(*deaf(hears_n3=T + 50))
    dc.lost(heard(N2), heard(N3), at=NOW + T - 1)
    assert dc.lost(*deaf(hears_n3=T + 50), at=NOW + T) == []


def test_a_pacer_that_has_just_begun_is_not_deaf() -> None:
    dc = Dc()
    assert dc.lost(heard(N2, 50, {}), heard(N3)) == []
    assert dc.lost(heard(N2, 50, {}), heard(N3), at=NOW + T - 1) == []


def cut_in_part() -> list[HeardNode]:
    """n1 does not hear n2, n3 and n5 do not hear n4: nobody hears all. Of n2's links the DC n1 knows the least."""
    names = five()
    hears = {name: {other: 50 for other in names if other != name} for name in names}
    for left, right in ((0, 1), (2, 3), (4, 3)):
        hears[names[left]][names[right]] = T + 5000
        hears[names[right]][names[left]] = T + 5000
    return [heard(name, hears[N1][name], hears[name]) for name in names[1:]]


def linked_to_the_dc_alone(*cut: NodeName, one_way: bool = False) -> list[HeardNode]:
    """Five nodes; between each of these and the others but the DC nothing passes, or only what they hear."""
    names = five()
    hears = {name: {other: 50 for other in names if other != name} for name in names}
    for node in cut:
        for other in names[1:]:
            hears[other][node] = T + 5000
            if not one_way:
                hears[node][other] = T + 5000
    return [heard(name, 50, hears[name]) for name in names[1:]]


@pytest.mark.parametrize("one_way", [True, False])
def test_a_node_that_the_dc_alone_can_echo_has_no_lease_and_is_lost(*, one_way: bool) -> None:
    dc = Dc(Cluster(names=five(), joined=five()))
    far = five()[3]
    assert dc.lost(*linked_to_the_dc_alone(far, one_way=one_way)) == []
    assert dc.lost(*linked_to_the_dc_alone(far, one_way=one_way), at=NOW + T - 1) == []
    assert dc.lost(*linked_to_the_dc_alone(far, one_way=one_way), at=NOW + T) == [far]


def test_of_nodes_that_the_dc_alone_can_echo_so_many_stay_that_a_majority_is_left() -> None:
    dc = Dc(Cluster(names=five(), joined=five()))
    star = linked_to_the_dc_alone(*five()[1:])
    dc.lost(*star)
    gone = []
    for round_ in range(1, 6):
        lost = dc.lost(*star, at=NOW + round_ * T)
        assert len(lost) == (round_ <= 2)
        for name in lost:
            dc.cluster.lose(name)
            star = [heard(name, T + 100, {}) if node.name == name else node for node in star]
        gone += lost
    assert len(gone) == 2


def test_when_nobody_hears_all_the_node_with_the_fewest_links_is_given_up_after_three_node_timeouts() -> None:
    dc = Dc(Cluster(names=five(), joined=five()))
    assert dc.lost(*cut_in_part()) == []
    assert dc.lost(*cut_in_part(), at=NOW + 3 * T - 1) == []
    assert dc.lost(*cut_in_part(), at=NOW + 3 * T) == [N2]
    assert dc.lost(*cut_in_part(), at=NOW + 4 * T - 1) == [], "at most one in each node-timeout"


def test_a_node_that_was_given_up_and_came_back_is_waited_for_as_long_again() -> None:
    dc = Dc(Cluster(names=five(), joined=five()))
    dc.lost(*cut_in_part())
    dc.cluster.lose(N2)
    dc.lost(*cut_in_part(), at=NOW + T)
    dc.cluster.must(commands.Join(N2, life(N2, token=2)))
    again = [
        heard(node.name, node.age_ms, node.hears, incarnation=life(N2, token=2) if node.name == N2 else None)
        for node in cut_in_part()
    ]
    assert dc.lost(*again, at=NOW + 3 * T) == []


# -- whatever is heard ------------------------------------------------------------------------------------------------


ages = st.integers(0, 3 * T)


@given(own=st.tuples(*[ages] * 4), through=st.lists(st.tuples(*[ages] * 5), min_size=4, max_size=4), since=ages)
def test_no_node_is_lost_that_a_voter_of_the_quorum_may_have_heard_within_node_timeout(
    own: tuple[int, ...], through: list[tuple[int, ...]], since: int
) -> None:
    """Cuts in part apart, whose limits have not passed at the first look."""
    names = five()
    dc = Dc(Cluster(names=names, joined=names), since=NOW - since)
    nodes = [
        heard(name, age, dict(zip(names, reported, strict=True)))
        for name, age, reported in zip(names[1:], own, through, strict=True)
    ]
    quorum = [node for node in nodes if node.age_ms is not None and node.age_ms < T]
    for name in dc.lost(*nodes):
        assert len(quorum) >= 2, "no quorum"
        [target] = [node for node in nodes if node.name == name]
        assert target.age_ms is not None
        assert target.age_ms >= T
        assert all(voter.hears[name] >= T for voter in quorum)


def test_a_new_pacer_need_not_have_heard_a_life_that_another_voter_has_heard() -> None:
    dc = Dc(since=NOW - T)
    never, silent = heard(N2, None), heard(N3, 50, {N1: 50, N2: 3 * T})
    assert dc.lost(never, silent) == []
    silent = replace(silent, hears_token={N2: life(N2).token})
    assert dc.lost(never, silent) == [N2]
    assert Dc(since=NOW - T + 1).lost(never, silent) == [], "the DC itself has to have listened as well"


# -- heard, and no part of it -----------------------------------------------------------------------------------------

BT = TIMING.brain_timeout_ms


def linked(node: HeardNode, *peers: NodeName) -> HeardNode:
    return replace(node, linked=frozenset(peers))


def behind(*followers: Follower, at: int = NOW) -> Followers:
    return Followers(Instant(at), followers)


def follower(name: NodeName, silent_ms: int, idle_ms: int | None = None, *, is_linked: bool = False) -> Follower:
    idle = silent_ms if idle_ms is None else idle_ms
    return Follower(name, Instant(NOW - silent_ms), Instant(NOW - idle), is_linked)


def take_part(dc: Dc, found: Followers, *nodes: HeardNode, at: int = NOW) -> Sequence[Effect]:
    return dc.machine.step(dc.cluster.cib, report(*nodes, at=at), moment(at), found)


@pytest.mark.parametrize(
    ("silent_ms", "idle_ms", "is_lost"),
    [
        (BT - 1, BT - 1, False),
        (BT, BT, True),
        (100, 3 * BT - 1, False),
        (100, 3 * BT, True),
    ],
)
def test_a_node_that_is_heard_and_takes_no_part_is_lost(silent_ms: int, idle_ms: int, is_lost: bool) -> None:
    dc = Dc()
    effects = take_part(dc, behind(follower(N2, silent_ms, idle_ms)), heard(N2), heard(N3))
    assert lost(effects) == ([N2] if is_lost else [])
    assert is_lost or dc.machine.deadline() == NOW + 1


def test_what_the_store_said_before_a_standstill_proves_nothing() -> None:
    dc = Dc()
    assert take_part(dc, behind(follower(N2, BT), at=NOW - T - 1), heard(N2), heard(N3)) == []
    dc = Dc(since=NOW - BT + 1)
    assert take_part(dc, behind(follower(N2, BT)), heard(N2), heard(N3)) == [], "it counts from when n1 became DC"


def test_a_voter_with_a_session_to_it_leads_first_and_once() -> None:
    given_up: dict[tuple[NodeName, Incarnation | None], Instant] = {}
    cluster = Cluster()
    machine = MembershipMachine(N1, TERM, TIMING, Instant(OFFICE), handed_over=given_up)
    nodes = (linked(heard(N2), N3), linked(heard(N3), N1, N2))
    effects = machine.step(cluster.cib, report(*nodes), moment(NOW), behind(follower(N2, BT)))
    assert [effect.to for effect in effects if isinstance(effect, TransferLeadership)] == [N3]
    assert lost(effects) == []
    again = MembershipMachine(N1, TERM, TIMING, Instant(OFFICE), handed_over=given_up)
    later = NOW + T + 1
    found = Followers(Instant(later), (follower(N2, BT),))
    assert lost(again.step(cluster.cib, report(*nodes, at=later), moment(later), found)) == [N2]


@pytest.mark.parametrize(
    ("of_n3", "is_linked"),
    [
        ((N1,), False),
        ((N2,), False),
        ((N1, N2), True),
    ],
)
def test_no_voter_leads_that_lacks_a_session_nor_when_the_dc_has_one(
    of_n3: tuple[NodeName, ...], is_linked: bool
) -> None:
    nodes = (linked(heard(N2), N3), linked(heard(N3), *of_n3))
    assert lost(take_part(Dc(), behind(follower(N2, BT, is_linked=is_linked)), *nodes)) == [N2]


def test_a_daemon_that_began_again_and_does_not_join_is_lost() -> None:
    dc = Dc()
    other_life = heard(N2, incarnation=life(N2, token=2))
    assert dc.lost(other_life, heard(N3)) == []
    assert dc.machine.deadline() <= NOW + BT
    assert dc.lost(other_life, heard(N3), at=NOW + BT - 1) == []
    assert dc.lost(heard(N2, incarnation=life(N2, token=3)), heard(N3), at=NOW + BT) == [N2]


def test_a_session_that_has_just_come_back_is_given_no_blame_that_its_cut_deserves() -> None:
    """The node had no time to answer the DC; a voter that it has answered all the time leads first."""
    dc = Dc()
    nodes = (linked(heard(N2), N3), linked(heard(N3), N1, N2))
    cut = Followers(Instant(NOW - 500), (follower(N2, BT - 500),))
    assert lost(dc.machine.step(dc.cluster.cib, report(*nodes, at=NOW - 500), moment(NOW - 500), cut)) == []
    effects = take_part(dc, behind(follower(N2, BT, is_linked=True)), *nodes)
    assert [effect.to for effect in effects if isinstance(effect, TransferLeadership)] == [N3]
    assert lost(effects) == []


def test_a_voter_with_a_session_to_a_daemon_that_began_again_and_cannot_reach_the_dc_leads_first() -> None:
    dc = Dc()
    nodes = (linked(heard(N2, incarnation=life(N2, token=2)), N3), linked(heard(N3), N1, N2))
    assert take_part(dc, behind(follower(N2, 100)), *nodes) == []
    later = NOW + BT
    found = Followers(Instant(later), (follower(N2, 100),))
    effects = dc.machine.step(dc.cluster.cib, report(*nodes, at=later), moment(later), found)
    assert [effect.to for effect in effects if isinstance(effect, TransferLeadership)] == [N3]
    assert lost(effects) == []


def test_a_daemon_that_joins_in_time_is_not_lost() -> None:
    dc = Dc()
    assert dc.lost(heard(N2, incarnation=life(N2, token=2)), heard(N3)) == []
    dc.cluster.must(Join(N2, life(N2, token=2)))
    assert dc.lost(heard(N2, incarnation=life(N2, token=2)), heard(N3), at=NOW + BT) == []


PENDING_MS = 30_000


@pytest.mark.parametrize(("limit", "is_lost"), [("0", False), ("30s", True)])
def test_a_node_that_is_back_has_node_pending_timeout_to_join(limit: str, *, is_lost: bool) -> None:
    dc = Dc()
    wanted = AttributeSet("cib-bootstrap-options", (("node-pending-timeout", limit),))
    dc.cluster.configure(PutSets("properties", (wanted,)))
    dc.cluster.lose(N2)
    dc.cluster.must(commands.Fenced(N2, life(N2), None, FenceOutcome.CONFIRMED, "by hand"))
    booted = heard(N2, incarnation=life(N2, boot=2))
    assert dc.lost(booted, heard(N3)) == []
    assert dc.lost(booted, heard(N3), at=NOW + PENDING_MS - 1) == []
    assert dc.lost(booted, heard(N3), at=NOW + PENDING_MS) == ([N2] if is_lost else [])
