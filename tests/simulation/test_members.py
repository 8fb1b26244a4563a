"""Whole clusters that grow, shrink and replace members while services run; every checker looks on."""

import pytest

from haclusterd.cib.commands import ChangeMembers
from haclusterd.cib.edits import PutSets
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.ids import NodeName
from haclusterd.simulator.members import MemberChanges, changed
from haclusterd.simulator.scenario import Cluster, Setup

MINUTE_MS = 60_000


def voters_of(cluster: Cluster) -> tuple[NodeName, ...]:
    return cluster.cib.voters()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(1, 5))
def test_three_become_five_and_the_new_ones_carry_the_cluster(seed: int) -> None:
    cluster = Cluster(seed).form()
    members = MemberChanges(cluster)
    fourth = members.add()
    cluster.until(lambda: fourth in voters_of(cluster), MINUTE_MS, "n4 votes")
    fifth = members.add()
    cluster.until(lambda: fifth in voters_of(cluster), MINUTE_MS, "n5 votes")
    cluster.until_settled(MINUTE_MS, "settled with five")
    cluster.power_off("n1")
    cluster.power_off("n2")
    cluster.until(lambda: cluster.runs_once("db", "ip", "web", "cache"), MINUTE_MS, "recovered by three of five")
    cluster.heal()
    cluster.until_settled(MINUTE_MS, "settled again")


def test_a_dead_member_is_replaced_under_a_new_name() -> None:
    cluster = Cluster(11).form()
    members = MemberChanges(cluster)
    members.drop("n2")
    cluster.until(lambda: "n2" not in cluster.cib.members, MINUTE_MS, "n2 is dropped")
    newcomer = members.add()
    cluster.until(lambda: newcomer in voters_of(cluster), MINUTE_MS, "the newcomer votes")
    cluster.until_settled(MINUTE_MS, "settled")
    assert voters_of(cluster) == ("n1", "n3", "n4")
    assert cluster.cib.membership.retired == ("n2",)


def test_in_maintenance_a_dead_member_is_dropped_once_a_person_says_that_it_is_off() -> None:
    """Nothing fences it: there is nothing that could be recovered."""
    cluster = Cluster(14).form()
    maintenance = AttributeSet("maintenance", (("maintenance-mode", "true"),))
    cluster.configure((PutSets("properties", (*cluster.cib.configuration.properties, maintenance)),))
    MemberChanges(cluster).drop("n3")
    cluster.until(lambda: "n3" not in cluster.cib.members, MINUTE_MS, "n3 is dropped")
    assert not cluster.switch.acted


def test_a_dropped_machine_that_comes_back_does_no_harm() -> None:
    cluster = Cluster(12).form()
    MemberChanges(cluster).drop("n3")
    cluster.until(lambda: "n3" not in cluster.cib.members, MINUTE_MS, "n3 is dropped")
    terms = cluster.cib.status.controller
    cluster.hosts[NodeName("n3")].brain.enable()
    cluster.power_on("n3")
    cluster.run_for(30_000)
    assert cluster.cib.status.controller == terms, "it deposed the leader"
    assert "n3" not in cluster.cib.status.nodes
    assert not cluster.truth.services_on(NodeName("n3"))


def test_the_controller_itself_is_replaced() -> None:
    cluster = Cluster(13).form()
    first = cluster.dc()
    members = MemberChanges(cluster)
    members.drop(first)
    cluster.until(lambda: first not in cluster.cib.members, MINUTE_MS, "the first DC is dropped")
    cluster.until_settled(MINUTE_MS, "settled with two")
    assert len(voters_of(cluster)) == 2


def three_voters_and_one_without_a_vote(seed: int) -> Cluster:
    cluster = Cluster(seed).form()
    fourth = MemberChanges(cluster).add(wants_vote=False)
    cluster.until(lambda: cluster.all_online() and fourth in cluster.cib.members, MINUTE_MS, "n4 is online")
    cluster.until_settled(MINUTE_MS, "settled with four")
    cluster.run_for(10_000)
    return cluster


def test_a_member_that_nobody_but_one_without_a_vote_hears_is_given_up() -> None:
    cluster = three_voters_and_one_without_a_vote(15)
    cluster.cut("n1", "n2")
    cluster.cut("n1", "n3")
    cluster.until(lambda: cluster.state("n1") is NodeState.FENCED, MINUTE_MS, "n1 is given up")
    cluster.until(lambda: cluster.runs_once("db", "ip", "web", "cache"), MINUTE_MS, "recovered without n1")
    cluster.heal()
    cluster.until_settled(MINUTE_MS, "settled again")


def test_a_member_without_a_vote_runs_services_and_counts_for_no_quorum() -> None:
    cluster = three_voters_and_one_without_a_vote(14)
    assert voters_of(cluster) == ("n1", "n2", "n3")
    cluster.power_off("n2")
    cluster.power_off("n3")
    cluster.run_for(20_000)
    assert cluster.state("n2") is NodeState.ONLINE, "two of four members are no majority of three voters"
    cluster.heal()
    cluster.until_settled(2 * MINUTE_MS, "settled again")


def test_the_next_change_waits_until_everybody_online_follows_the_last() -> None:
    """A pacer that follows old voters keeps a lease by a majority that nobody else counts any more."""
    cluster = Cluster(15).form()
    victim = next(name for name in cluster.names if name != cluster.dc())
    cluster.hang_main_loop(victim)
    added = MemberChanges(cluster).add(wants_vote=False)
    cluster.until(lambda: added in cluster.cib.members, 5000, "n4 is a member")
    second: ChangeMembers = changed(cluster.cib, cluster.member_of("n9"))
    for _ in range(5):
        cluster.administer(second)
        cluster.run_for(500)
    assert cluster.cib.membership.version == 1
    cluster.resume_threads(victim)
    cluster.until(lambda: cluster.cib.status.nodes[victim].membership == 1, 5000, "it follows")
    cluster.administer(changed(cluster.cib, cluster.member_of("n9")))
    cluster.until(lambda: cluster.cib.membership.version == 2, 5000, "the next change")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(21, 27))
def test_members_come_and_go_while_hosts_fail(seed: int) -> None:
    cluster = Cluster(seed, Setup(snapshot_every=30)).form()
    chance = cluster.world.chance("test")
    members = MemberChanges(cluster)
    for _ in range(4):
        newcomer = members.add()
        victim = chance.choice([name for name in cluster.names if name != newcomer])
        cluster.run_for(chance.randrange(0, 3000))
        chance.choice((cluster.kill_brain, cluster.kill_pacer, cluster.power_off, cluster.isolate))(victim)
        cluster.run_for(chance.randrange(1000, 20_000))
        cluster.heal()
        cluster.until(
            lambda newcomer=newcomer: newcomer in cluster.cib.voters(), 2 * MINUTE_MS, "the newcomer votes"
        )
        cluster.until_settled(2 * MINUTE_MS, "settled")
        if len(cluster.names) > 4:
            members.drop(chance.choice(cluster.names))
            size = len(cluster.names)
            cluster.until(lambda size=size: len(cluster.cib.members) == size, 2 * MINUTE_MS, "it is dropped")
    cluster.until_settled(2 * MINUTE_MS, "settled at the end")
