"""Filters that drop one kind of packet, TCP or UDP, between nodes (safety.md §4)."""

import pytest

from haclusterd.simulator.scenario import Cluster, Shape


def formed(nodes: int = 3, seed: int = 1) -> Cluster:
    cluster = Cluster(seed, Shape(nodes=nodes)).form()
    cluster.run_for(5000)
    return cluster


def test_a_filter_of_streams_ends_sessions_and_lets_heartbeats_pass() -> None:
    cluster = formed()
    follower = cluster.others(cluster.dc())[0]
    cluster.drop_streams_of(follower)
    cluster.until(lambda: not cluster.brain_of(follower).runtime.links, 3000, "no session left")
    report = cluster.brain_of(follower).runtime.ports.pacer.report()
    assert report is not None
    assert all(node.age_ms is not None and node.age_ms < 1000 for node in report.nodes)
    cluster.end_filters()
    cluster.until(lambda: len(cluster.brain_of(follower).runtime.links) == 2, 3000, "sessions again")


@pytest.mark.parametrize("is_from_dc", [True, False])
def test_a_filter_of_one_direction_of_streams_ends_the_session(is_from_dc: bool) -> None:
    cluster = formed()
    dc = cluster.dc()
    follower = cluster.others(dc)[0]
    cluster.drop_streams_one_way(*((dc, follower) if is_from_dc else (follower, dc)))
    cluster.until(lambda: dc not in cluster.brain_of(follower).runtime.links, 3000, "no session left")
