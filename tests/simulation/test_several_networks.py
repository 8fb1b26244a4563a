"""Where several networks connect the nodes, the end of one of them costs nothing; without all a node is lost."""

from collections.abc import Callable

import pytest

from haclusterd.model.cluster import NodeState
from haclusterd.simulator.scenario import Cluster, Setup


def formed(seed: int = 1, links: int = 2) -> Cluster:
    return Cluster(seed, Setup(links=links)).form()


def interruptions(cluster: Cluster) -> list[object]:
    ended: list[object] = []
    cluster.truth.when_service_ends.append(ended.append)
    return ended


def lose_network(cluster: Cluster, link: int) -> None:
    for source in cluster.names:
        for target in cluster.others(source):
            cluster.network.cut_link(source, target, link)


def lose_first(cluster: Cluster) -> None:
    lose_network(cluster, 0)


def lose_second(cluster: Cluster) -> None:
    lose_network(cluster, 1)


def holder_only_receives_on_the_first(cluster: Cluster) -> None:
    holder = cluster.node_of("db")
    for other in cluster.others(holder):
        cluster.network.cut_link(holder, other, 0)


def each_pair_has_one_network_left(cluster: Cluster) -> None:
    """The first network is cut between the first two nodes, the second one between all others."""
    one, other, *rest = cluster.names
    for source, target in ((one, other), (other, one)):
        cluster.network.cut_link(source, target, 0)
    for source in rest:
        for target in cluster.others(source):
            cluster.network.cut_link(source, target, 1)
            cluster.network.cut_link(target, source, 1)


def first_is_slow(cluster: Cluster) -> None:
    cluster.network.slow_link(0, 200)


@pytest.mark.parametrize(
    "fault",
    [lose_first, lose_second, holder_only_receives_on_the_first, each_pair_has_one_network_left, first_is_slow],
)
def test_while_each_pair_has_one_network_nothing_is_lost_or_interrupted(fault: Callable[[Cluster], None]) -> None:
    cluster = formed()
    ended = interruptions(cluster)
    fault(cluster)
    cluster.run_for(30_000)
    assert not ended
    assert not cluster.switch.acted
    cluster.until(cluster.is_settled, 5000, "settled")


def test_the_store_goes_on_over_the_other_network() -> None:
    cluster = formed()
    lose_first(cluster)
    cluster.run_for(3000)
    cluster.kill_service("db")
    assert cluster.until(lambda: cluster.runs_once("db"), 3000, "db started again") <= 500


def test_a_node_that_no_network_reaches_is_lost_and_recovered() -> None:
    cluster = formed()
    holder = cluster.node_of("db")
    for link in (0, 1):
        for other in cluster.others(holder):
            cluster.network.cut_link(holder, other, link)
            cluster.network.cut_link(other, holder, link)
    cluster.until(lambda: cluster.state(holder) is NodeState.LOST, 4000, "lost")
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != holder, 10_000, "db recovered")
