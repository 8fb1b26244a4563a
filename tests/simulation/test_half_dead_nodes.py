"""Nodes that are there and of no use: they hear nobody, not the DC, or their daemon never lives long (safety.md §4)."""

from haclusterd.simulator.scenario import Cluster


def formed() -> Cluster:
    cluster = Cluster(1).form()
    cluster.run_for(5000)
    return cluster


def test_a_node_that_hears_nobody_is_given_up_and_its_resources_run_elsewhere() -> None:
    cluster = formed()
    home = cluster.node_of("db")
    for other in cluster.others(home):
        cluster.cut_one_way(other, home)
    cluster.until(lambda: any(target == home for _, target, _ in cluster.switch.acted), 10_000, "it is fenced")
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != home, 5000, "db elsewhere")
    cluster.heal()
    cluster.until(cluster.is_settled, 30_000, "settled")


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
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != home, 5000, "db elsewhere")
    cluster.heal()
    cluster.until(cluster.is_settled, 30_000, "settled")
