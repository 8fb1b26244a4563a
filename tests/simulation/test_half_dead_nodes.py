"""Nodes that are there and of no use: they hear nobody, not the DC, or their daemon never lives long (safety.md §4)."""

from collections import Counter
from itertools import combinations

import pytest

from haclusterd.model.cluster import NodeState
from haclusterd.simulator.scenario import Cluster, Setup


def formed() -> Cluster:
    cluster = Cluster(1).form()
    cluster.run_for(5000)
    return cluster


def test_a_node_that_hears_nobody_is_given_up_and_its_resources_run_on_others() -> None:
    cluster = formed()
    home = cluster.node_of("db")
    for other in cluster.others(home):
        cluster.cut_one_way(other, home)
    cluster.until(lambda: any(target == home for _, target, _ in cluster.switch.acted), 10_000, "it is fenced")
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != home, 5000, "db on another node")
    cluster.heal()
    cluster.until(cluster.is_settled, 30_000, "settled")


def test_a_node_that_hears_too_few_is_given_up_though_one_that_hears_all_hears_it() -> None:
    cluster = Cluster(1, Setup(nodes=4)).form()
    cluster.run_for(10_000)
    dc = cluster.dc()
    deaf, silent, whole = cluster.others(dc)
    cluster.cut(deaf, dc)
    cluster.cut_one_way(silent, deaf)
    cluster.run_for(15_000)
    assert [target for _, target, _ in cluster.switch.acted] == [deaf]
    assert cluster.state(whole) is NodeState.ONLINE
    cluster.heal()
    cluster.until(cluster.is_settled, 30_000, "settled")


@pytest.mark.parametrize("is_one_way", [True, False])
def test_a_node_that_has_links_with_the_dc_alone_is_given_up_and_recovered(*, is_one_way: bool) -> None:
    """Too few echo it: it has no lease, and has stopped what it ran, while the DC hears it all the time."""
    cluster = Cluster(1, Setup(nodes=5)).form()
    cluster.run_for(5000)
    dc, home = cluster.dc(), cluster.node_of("db")
    if home == dc:
        cluster.brain_of(dc).store.transfer_leadership(cluster.others(home)[0])
        cluster.until(lambda: cluster.dc() != home, 5000, "another DC")
        dc = cluster.dc()
    for other in cluster.others(home, dc):
        cluster.cut_one_way(home, other)
        if not is_one_way:
            cluster.cut_one_way(other, home)
    cluster.until(lambda: any(target == home for _, target, _ in cluster.switch.acted), 15_000, "it is fenced")
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != home, 5000, "db on another node")
    assert [target for _, target, _ in cluster.switch.acted] == [home]
    cluster.heal()
    cluster.until(cluster.is_settled, 30_000, "settled")


def test_in_a_star_of_five_the_dc_alone_runs_anything_and_fencing_does_not_go_on_and_on() -> None:
    """No leaf has a lease, since only the DC echoes it; one of them is kept for the DC's own lease."""
    cluster = Cluster(1, Setup(nodes=5)).form()
    cluster.run_for(5000)
    dc = cluster.dc()
    for one, other in combinations(cluster.others(dc), 2):
        cluster.cut(one, other)
    cluster.until(lambda: len(cluster.switch.acted) == 9, 40_000, "three of them are fenced three times")
    fenced = Counter(target for _, target, _ in cluster.switch.acted)
    assert dc not in fenced
    assert list(fenced.values()) == [3, 3, 3], "as often as fencing-loop-limit says"
    cluster.run_for(8000)
    assert len(cluster.switch.acted) == 9, "each of them waits for a minute"
    assert cluster.dc() == dc
    assert cluster.lease_left_ms(dc) > 0
    assert cluster.truth.services_on(dc), "what is placed on it"
    assert not any(cluster.truth.services_on(leaf) or cluster.lease_left_ms(leaf) > 0 for leaf in cluster.others(dc))
    cluster.heal()
    cluster.until_settled(60_000, "settled")


def test_the_dc_moves_when_one_node_does_not_hear_it() -> None:
    cluster = formed()
    dc = cluster.dc()
    deaf = cluster.others(dc)[0]
    cluster.cut_one_way(dc, deaf)
    cluster.until(lambda: cluster.dc() not in (dc, deaf), 10_000, "another DC")
    cluster.run_for(10_000)
    assert cluster.dc() not in (dc, deaf)
    assert not cluster.switch.acted
    cluster.heal()
    cluster.until(cluster.is_settled, 20_000, "settled")


def test_a_node_whose_disk_stays_full_is_given_up() -> None:
    cluster = formed()
    home = cluster.node_of("db")
    cluster.hosts[home].disk.is_full = True
    cluster.kill_service("db")
    cluster.until(lambda: any(target == home for _, target, _ in cluster.switch.acted), 20_000, "it is fenced")
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != home, 5000, "db on another node")
    cluster.heal()
    cluster.until(cluster.is_settled, 30_000, "settled")


@pytest.mark.parametrize("is_dc", [True, False])
@pytest.mark.parametrize("thread", ["main loop", "Raft thread"])
def test_a_node_of_whose_daemon_one_thread_hangs_is_given_up(thread: str, is_dc: bool) -> None:
    cluster = formed()
    home = cluster.node_of("db")
    if (cluster.dc() == home) is not is_dc:
        leader = home if is_dc else cluster.others(home)[0]
        cluster.brain_of(cluster.dc()).store.transfer_leadership(leader)
        cluster.until(lambda: cluster.dc() == leader, 5000, "the DC is where the scenario wants it")
    (cluster.hang_main_loop if thread == "main loop" else cluster.hang_raft_thread)(home)
    cluster.kill_service("db")
    cluster.until(lambda: any(target == home for _, target, _ in cluster.switch.acted), 16_000, "it is fenced")
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != home, 5000, "db on another node")
    cluster.until(cluster.is_settled, 30_000, "settled")


def test_the_dc_dies_and_the_next_one_has_just_begun() -> None:
    """Who becomes DC with a pacer that never heard the old one takes the word of those who did."""
    began_late = 0
    for seed in range(1, 9):
        cluster = Cluster(seed).form()
        cluster.run_for(5000)
        old = cluster.dc()
        restarted = cluster.others(old)[seed % 2]
        cluster.power_off(old)
        cluster.kill_pacer(restarted)
        cluster.kill_brain(restarted)
        cluster.until(lambda c=cluster, o=old: c.state(o) is NodeState.LOST, 7000, f"seed {seed}: the old DC is lost")
        began_late += cluster.dc() == restarted
    assert began_late, "in some seed the restarted one is DC"
