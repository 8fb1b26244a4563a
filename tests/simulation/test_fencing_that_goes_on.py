"""Fencing goes on for as long as a node is lost, whatever its device does, and recovers soon after that works again."""

import pytest

from haclusterd.model.cluster import NodeState
from haclusterd.model.fencing import BACKOFF_MAX_MS
from haclusterd.model.ids import ResourceId
from haclusterd.model.properties import ClusterProperties
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.scenario import Cluster, Setup

DB = ResourceId("db")
RECOVERY_MS = 3000
"""Of a dead host whose device works: its fencing, and the start on another node."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", [FaultMode.DEAD, FaultMode.REFUSES], ids=lambda mode: mode.value)
def test_a_switch_that_is_away_for_ten_minutes_holds_and_then_recovers_within_the_longest_pause(
    mode: FaultMode,
) -> None:
    cluster = Cluster(seed=4).form()
    victim = cluster.node_of("db")
    cluster.switch.set(victim, mode)
    cluster.power_off(victim)
    cluster.run_for(600_000)
    assert cluster.state(victim) is NodeState.LOST
    assert not cluster.truth.active_nodes(DB)
    cluster.switch.repair()
    call_ms = ClusterProperties(cluster.cib.configuration).duration_ms("fencing-timeout")
    bound_ms = BACKOFF_MAX_MS + (call_ms if mode is FaultMode.DEAD else 0) + RECOVERY_MS
    cluster.until(lambda: cluster.runs_once("db"), bound_ms, "db recovered")


def test_a_daemon_that_is_stopped_while_its_fence_agent_takes_too_long_ends_within_its_bound() -> None:
    """It ends without having left; its agent may act later, so the node that it fences stays out until then."""
    cluster = Cluster(1, Setup(nodes=5)).form()
    values = {**configurations.USUAL_PROPERTIES, "fencing_timeout": "60s", "shutdown_escalation": "8s"}
    cluster.configure([configurations.properties(**values, fencing_action="off")])
    target = cluster.others(cluster.dc())[0]
    cluster.switch.set(target, FaultMode.DAWDLES, latency_ms=50_000)
    cluster.power_off(target)
    cluster.until(lambda: bool(cluster.cib.status.fence_orders), 10_000, "an agent is at work")
    cluster.run_for(200)
    [order] = cluster.cib.status.fence_orders.values()
    brain = cluster.hosts[order.executor].brain
    brain.is_enabled = False
    cluster.brain_of(order.executor).runtime.drain()
    cluster.run_for(6000)
    assert brain.is_running, "it waits for its agent"
    cluster.until(lambda: not brain.is_running, 5000, "the daemon has ended")
    assert cluster.state(order.executor) is NodeState.ONLINE
    cluster.switch.set(target, FaultMode.WORKS)
    cluster.switch.set(order.executor, FaultMode.REFUSES)
    cluster.until(lambda: cluster.state(target) is NodeState.FENCED, 30_000, "another node has fenced it")
    cluster.power_on(target)
    cluster.run_for(10_000)
    assert cluster.state(target) is NodeState.FENCED, "it waits to join"
    cluster.until(lambda: len(cluster.switch.acted) == 2, 50_000, "the agent has asked")
    cluster.power_on(target)
    cluster.until(lambda: cluster.state(target) is NodeState.ONLINE, 60_000, "it has joined")
