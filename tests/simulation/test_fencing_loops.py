"""Fencing that would go on and on ends by itself: a stop that fails everywhere, a node that is lost after each boot."""

from itertools import pairwise

from haclusterd.model.cluster import NodeState
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.scenario import Cluster, Setup

DB = ResourceId("db")
REFUSED = AgentRun(20, exit_code=6, has_effect=False)


def fencings(cluster: Cluster, node: str) -> int:
    history = cluster.cib.status.fencing_history
    return sum(record.target == node and record.outcome is FenceOutcome.FENCED for record in history)


def test_a_stop_that_fails_on_every_node_costs_one_node_and_not_one_after_the_other() -> None:
    cluster = Cluster(seed=2).form()
    cluster.agent_script.write("db", "start", REFUSED)
    cluster.agent_script.write("db", "stop", REFUSED)
    cluster.kill_service("db")
    cluster.run_for(120_000)
    assert len(cluster.switch.acted) == 1, cluster.switch.acted
    assert cluster.all_online()
    assert cluster.runs_once("ip", "web"), "what has nothing to do with it runs"
    assert not cluster.truth.active_nodes(DB)


def test_a_stop_that_fails_never_costs_the_last_nodes_of_a_quorum() -> None:
    cluster = Cluster(seed=3).form()
    holder = cluster.node_of("db")
    away = cluster.others(holder)[0]
    cluster.switch.boot_after_ms = 100_000
    cluster.power_off(away)
    cluster.until(lambda: cluster.state(away) is NodeState.FENCED, 10_000, "one node is away")
    cluster.switch.acted.clear()
    cluster.agent_script.write("db", "stop", AgentRun(20, exit_code=1, has_effect=False))
    cluster.configure([configurations.prefers("db", holder, -1_000_000)])
    cluster.run_for(30_000)
    assert cluster.truth.active_nodes(DB) == (holder,), "left alone where it is"
    assert not cluster.switch.acted
    assert cluster.runs_once("ip", "web")
    cluster.until(lambda: bool(cluster.switch.acted), 120_000, "fenced once another voter is back")
    assert cluster.switch.acted[0][1] == holder


def test_a_node_that_is_lost_soon_after_each_boot_is_fenced_at_growing_intervals() -> None:
    """Its network fails a little after each boot; what it was given runs on another node each time.

    It takes half an hour: heartbeats and monitors are rare, and one service is enough.
    """
    cluster = Cluster(5, Setup(node_timeout_ms=8000, brain_timeout_ms=20_000))
    quiet = configurations.properties(
        node_timeout="8s", brain_timeout="20s", fencing_timeout="5s", start_failure_is_fatal="false"
    )
    service = configurations.primitive("db", monitor_ms=10_000)
    cluster.form([quiet, configurations.device(cluster.names), service, configurations.prefers("db", "n1")])
    victim = NodeName("n1")
    times = []
    for _ in range(8):
        before = fencings(cluster, victim)
        cluster.isolate(victim)
        cluster.until(lambda before=before: fencings(cluster, victim) > before, 700_000, "fenced")
        times.append(cluster.world.now_ms)
        cluster.rejoin(victim)
        cluster.until(cluster.all_online, 30_000, "back")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert max(gaps[:2]) < 30_000, "a few times at once"
    # The clock of the DC may be fast.
    assert all(gap >= 0.98 * (60_000 << index) for index, gap in enumerate(gaps[2:6])), gaps
    assert max(gaps) < 640_000, "a bound: it never stays away for ever"
    cluster.until(lambda: cluster.runs_once("db"), 30_000, "it runs")


def test_a_node_that_lives_on_by_its_boot_id_after_each_fencing_is_fenced_at_growing_intervals() -> None:
    """A container, or the port of a network switch that `reboot` opens again: the record is disproved each time."""
    cluster = Cluster(seed=1).form()
    victim = cluster.others(cluster.dc())[0]
    cluster.hosts[victim].keeps_boot_id = True
    cluster.isolate(victim)
    cluster.until(lambda: fencings(cluster, victim) == 1, 10_000, "fenced")
    cluster.rejoin(victim)
    cluster.run_for(180_000)
    assert 3 <= fencings(cluster, victim) <= 6
    assert cluster.runs_once(*configurations.SERVICES)
    cluster.hosts[victim].keeps_boot_id = False
    cluster.until(lambda: cluster.state(victim) is NodeState.ONLINE, 640_000, "another boot is let in")
