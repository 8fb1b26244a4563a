"""Filters that drop one kind of packet, TCP or UDP, between nodes (safety.md §4)."""

import pytest

from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.configurations import SERVICES
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.scenario import Cluster, Setup


def formed(nodes: int = 3, seed: int = 1) -> Cluster:
    cluster = Cluster(seed, Setup(nodes=nodes)).form()
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


def alive(cluster: Cluster, node: str) -> list[str]:
    """Return the other nodes on which services run."""
    return [name for name in cluster.others(node) if cluster.truth.services_on(name)]


def lost_because_of(cluster: Cluster, node: str) -> str:
    return cluster.cib.status.nodes[NodeName(node)].detail


RECOVERED_MS = 4000
"""A service that died on a healthy node runs again: its monitor, a plan, a stop and a start."""
GIVEN_UP_MS = 10_000 + 6000
"""brain-timeout, and an election where the DC itself was filtered."""
DEAF_MS = 4 * 2000 + 1000
"""The lease of a DC that hears nobody ends, stays away for node-timeout, and the next DC counts from its own start."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("whom", ["dc", "first", "last"])
@pytest.mark.parametrize("nodes", [3, 5])
def test_a_node_whose_streams_are_filtered_holds_back_nobody_and_is_given_up(
    nodes: int, whom: str, restarts: bool
) -> None:
    cluster = formed(nodes)
    dc = cluster.dc()
    rest = cluster.others(dc)
    node = {"dc": dc, "first": rest[0], "last": rest[-1]}[whom]
    held = cluster.truth.services_on(node)
    cluster.drop_streams_of(node)
    cluster.run_for(3000)
    if restarts:
        cluster.kill_brain(node)
        cluster.run_for(1500)
    for other in cluster.others(node):
        for service in cluster.truth.services_on(other):
            if service in SERVICES:
                cluster.truth.service_ends(other, service)
                cluster.until(lambda service=service: cluster.runs_once(service), RECOVERED_MS, f"{service} again")
    cluster.until(lambda: cluster.state(node) is not NodeState.ONLINE, GIVEN_UP_MS, "it is given up")
    assert "TCP" in lost_because_of(cluster, node)
    cluster.until(lambda: any(target == node for _, target, _ in cluster.switch.acted), 5000, "it is fenced")
    cluster.until(lambda: cluster.runs_once(*SERVICES), 5000, "everything runs")
    assert not any(service in cluster.truth.services_on(node) for service in held)
    cluster.run_for(30_000)
    assert len(cluster.switch.acted) == 1, "it is fenced once"
    cluster.end_filters()
    cluster.until(cluster.is_settled, 30_000, "settled")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("whom", ["dc", "first", "last"])
@pytest.mark.parametrize("nodes", [3, 5])
def test_a_node_whose_datagrams_are_filtered_is_lost_also_when_it_is_the_dc(nodes: int, whom: str) -> None:
    """Its sessions work, so it stays Raft's leader: without a lease it may judge nobody, and nobody judges it."""
    cluster = formed(nodes)
    dc = cluster.dc()
    rest = cluster.others(dc)
    node = {"dc": dc, "first": rest[0], "last": rest[-1]}[whom]
    cluster.drop_datagrams_of(node)
    cluster.until(lambda: cluster.state(node) is not NodeState.ONLINE, DEAF_MS, "it is lost")
    cluster.until(lambda: cluster.runs_once(*SERVICES), RECOVERED_MS, "everything runs")
    cluster.until(lambda: bool(cluster.switch.acted), 5000, "it is fenced")
    cluster.end_filters()
    cluster.until(cluster.is_settled, 30_000, "settled")
    assert [target for _, target, _ in cluster.switch.acted] == [node]


def test_the_leadership_does_not_go_round_where_no_datagram_passes() -> None:
    cluster = formed()
    for node in cluster.names:
        cluster.drop_datagrams_of(node)
    cluster.run_for(60_000)
    controller = cluster.cib.status.controller
    cluster.run_for(120_000)
    assert cluster.cib.status.controller == controller
    assert not cluster.switch.acted
    cluster.end_filters()
    cluster.until(lambda: cluster.runs_once(*SERVICES), 30_000, "everything runs")


def test_a_service_that_dies_on_a_filtered_node_runs_again_on_another() -> None:
    cluster = formed()
    home = cluster.node_of("db")
    cluster.drop_streams_of(home)
    cluster.run_for(3000)
    for service in cluster.truth.services_on(home):
        cluster.truth.service_ends(home, service)
    cluster.until(lambda: cluster.runs_once(*SERVICES), GIVEN_UP_MS + 5000, "everything runs")
    assert cluster.lease_left_ms(home) <= 0 or not cluster.truth.services_on(home)


@pytest.mark.parametrize("is_from_node", [True, False])
def test_streams_filtered_in_one_direction_are_as_bad_as_in_both(is_from_node: bool) -> None:
    cluster = formed()
    node = cluster.others(cluster.dc())[0]
    for other in cluster.others(node):
        cluster.drop_streams_one_way(*((node, other) if is_from_node else (other, node)))
    cluster.until(lambda: cluster.state(node) is not NodeState.ONLINE, GIVEN_UP_MS, "it is given up")
    cluster.until(lambda: cluster.runs_once(*SERVICES), 8000, "everything runs")


@pytest.mark.parametrize("restarts", [False, True])
def test_two_filtered_nodes_of_five_are_both_given_up(restarts: bool) -> None:
    cluster = formed(5)
    first, second = cluster.others(cluster.dc())[:2]
    for node in (first, second):
        cluster.drop_streams_of(node)
        if restarts:
            cluster.kill_brain(node)
    for node in (first, second):
        cluster.until(lambda node=node: cluster.state(node) is not NodeState.ONLINE, GIVEN_UP_MS, f"{node} given up")
    cluster.until(lambda: cluster.runs_once(*SERVICES), 8000, "everything runs")
    cluster.end_filters()
    cluster.until(cluster.is_settled, 30_000, "settled")


@pytest.mark.parametrize("nodes", [3, 5])
def test_the_dc_moves_to_a_node_with_a_session_to_one_that_does_not_answer_it(nodes: int) -> None:
    cluster = formed(nodes)
    dc = cluster.dc()
    node = cluster.others(dc)[-1]
    cluster.drop_streams(dc, node)
    cluster.until(lambda: cluster.dc() not in (dc, node), GIVEN_UP_MS, "another DC")
    cluster.run_for(60_000)
    assert cluster.all_online()
    assert not cluster.switch.acted
    assert cluster.dc() not in (dc, node)
    cluster.truth.service_ends(cluster.node_of("db"), "db")
    cluster.until(lambda: cluster.runs_once("db"), RECOVERED_MS, "db again")


def test_a_daemon_that_restarts_without_a_session_with_the_dc_joins_under_another_one() -> None:
    cluster = Cluster(1).form()
    cluster.run_for(5000)
    dc = cluster.dc()
    node = cluster.others(dc)[0]
    cluster.drop_streams(dc, node)
    cluster.run_for(6000)
    cluster.kill_brain(node)
    cluster.until(lambda: cluster.is_up_to_date(node), 20_000, "it has joined again")
    cluster.run_for(20_000)
    assert cluster.states() == dict.fromkeys(cluster.names, NodeState.ONLINE)
    assert not cluster.switch.acted


def test_a_node_whose_disk_is_slow_is_not_given_up_and_one_whose_disk_hangs_is() -> None:
    cluster = formed()
    node = cluster.others(cluster.dc())[0]
    disk = cluster.hosts[node].disk
    disk.sync_us = (4_000_000, 6_000_000)
    for _ in range(12):
        cluster.run_for(5000)
        assert cluster.state(node) is NodeState.ONLINE
    disk.sync_us = (10_000_000_000, 10_000_000_000)
    cluster.kill_service("db")
    cluster.until(lambda: cluster.runs_once("db"), 60_000, "db again")
    cluster.kill_service("web")
    cluster.until(lambda: cluster.state(node) is not NodeState.ONLINE, 45_000, "it is given up")
    assert "disk" in lost_because_of(cluster, node)


def test_a_node_whose_older_daemon_cannot_join_is_given_up() -> None:
    cluster = formed()
    home = cluster.node_of("db")
    cluster.feature_levels[home] = cluster.cib.feature_level - 1
    cluster.kill_brain(home)
    cluster.run_for(3000)
    for service in cluster.truth.services_on(home):
        cluster.truth.service_ends(home, service)
    cluster.until(lambda: cluster.runs_once(*SERVICES), GIVEN_UP_MS + 5000, "everything runs")
    assert "has not joined" in lost_because_of(cluster, home)
    cluster.run_for(60_000)
    assert len(cluster.switch.acted) == 1, "it is fenced once, and then left alone"
    cluster.feature_levels.clear()
    cluster.kill_brain(home)
    cluster.until(cluster.is_settled, 30_000, "settled")


def test_a_dc_whose_older_daemon_cannot_join_is_given_up_by_another() -> None:
    cluster = formed()
    node = cluster.others(cluster.dc())[0]
    cluster.feature_levels[node] = cluster.cib.feature_level - 1
    cluster.kill_brain(node)
    cluster.run_for(2000)
    cluster.brain_of(cluster.dc()).store.transfer_leadership(node)
    cluster.until(lambda: cluster.dc() == node, 5000, "the DC is of an older version")
    cluster.until(lambda: cluster.state(node) is not NodeState.ONLINE, 3 * GIVEN_UP_MS, "it is given up")


def test_a_witness_leads_while_streams_are_filtered_between_the_two_others_and_nobody_is_given_up() -> None:
    cluster = Cluster(1, Setup(nodes=3, witnesses=1)).form()
    cluster.run_for(5000)
    (witness,) = cluster.witnesses
    one, other = cluster.others(witness)
    cluster.drop_streams(one, other)
    cluster.until(lambda: cluster.dc() == witness, GIVEN_UP_MS, "the witness leads")
    cluster.run_for(60_000)
    assert cluster.dc() == witness
    assert cluster.all_online()
    assert not cluster.switch.acted
    cluster.truth.service_ends(cluster.node_of("db"), ResourceId("db"))
    cluster.until(lambda: cluster.runs_once("db"), RECOVERED_MS, "db runs again")
    cluster.end_filters()
    cluster.until(lambda: cluster.dc() != witness, 10_000, "another node leads again")


def test_a_node_whose_streams_to_the_dc_are_filtered_is_given_up_where_the_third_may_not_join() -> None:
    """The third hears everybody and cannot be the DC: its join is held until it is fenced, and its device is away."""
    cluster = formed()
    cluster.configure([configurations.properties(**{**configurations.USUAL_PROPERTIES, "fencing_timeout": "60s"})])
    dc = cluster.dc()
    node, third = cluster.others(dc)
    cluster.switch.set(third, FaultMode.DEAD)
    cluster.power_off(third)
    cluster.until(lambda: cluster.state(third) is NodeState.LOST, 10_000, "the third is lost")
    cluster.power_on(third)
    cluster.run_for(10_000)
    assert cluster.state(third) is NodeState.LOST
    cluster.drop_streams(dc, node)
    cluster.until(lambda: cluster.state(node) is NodeState.LOST, GIVEN_UP_MS, "it is given up")
    assert "its daemon has not answered the DC" in lost_because_of(cluster, node)
