"""A node whose clock is wrong by an hour: what fails there moves away, and may come back when that has expired."""

import pytest

from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.scenario import Cluster

HOUR_MS = 3_600_000
SHOP = ResourceId("shop")
FAILS = AgentRun(duration_ms=50, exit_code=1, has_effect=False)
AHEAD_MS = [0, -HOUR_MS, HOUR_MS]


def running(ahead_ms: int) -> tuple[Cluster, NodeName]:
    """Return a cluster whose shop, which leaves a node after two failures in a minute, runs on one that is not DC."""
    cluster = Cluster()
    cluster.form(configurations.usual(cluster.names))
    node = cluster.others(cluster.dc())[0]
    cluster.hosts[node].wall.offset_ms = ahead_ms
    meta = {"failure-timeout": "60s", "migration-threshold": "2"}
    cluster.configure([configurations.primitive(SHOP, meta=meta), configurations.prefers(SHOP, node)])
    cluster.until(lambda: cluster.runs_once(SHOP) and cluster.node_of(SHOP) == node, 20_000, "it runs")
    return cluster, node


def until_it_has_moved(cluster: Cluster, node: NodeName) -> None:
    cluster.until(lambda: cluster.runs_once(SHOP) and cluster.node_of(SHOP) != node, 30_000, "it runs on another node")


@pytest.mark.parametrize("ahead_ms", AHEAD_MS)
def test_what_can_neither_start_nor_be_found_there_starts_on_another_node(ahead_ms: int) -> None:
    """With the times of a clock that is behind, a failure has expired when it is recorded, and is made again."""
    cluster, node = running(ahead_ms)
    for action in ("start", "monitor"):
        cluster.agent_script.write(SHOP, action, FAILS, node=node)
    until_it_has_moved(cluster, node)


@pytest.mark.parametrize("ahead_ms", AHEAD_MS)
def test_what_dies_there_again_moves_and_its_failures_expire_in_time(ahead_ms: int) -> None:
    cluster, node = running(ahead_ms)
    cluster.kill_service(SHOP)
    cluster.until(lambda: cluster.runs_once(SHOP), 20_000, "it runs again")
    cluster.run_for(3000)
    assert cluster.node_of(SHOP) == node
    cluster.kill_service(SHOP)
    until_it_has_moved(cluster, node)
    cluster.until(lambda: not has_failures(cluster, node), 70_000, "its failures have expired")


def has_failures(cluster: Cluster, node: NodeName) -> bool:
    history = cluster.cib.status.nodes[node].histories.get(SHOP)
    return history is not None and bool(history.fail_counts)
