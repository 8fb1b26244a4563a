"""`failure-timeout` counts from when a failure was known: an action may take longer than that."""

from haclusterd.model.ids import NodeName
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.scenario import Cluster

N1 = NodeName("n1")
SHORT = {"failure-timeout": "2s", "migration-threshold": "1"}


def test_what_hangs_when_it_starts_runs_on_another_node() -> None:
    """Its start is given up after 5 s: that it failed counts for 2 s from then on."""
    cluster = Cluster(1).form()
    cluster.agent_script.write("shop", "start", AgentRun(10, hangs=True, has_effect=False), node=N1)
    cluster.configure([configurations.primitive("shop", meta=SHORT), configurations.prefers("shop", N1)])
    cluster.until(lambda: cluster.runs_once("shop") and cluster.node_of("shop") != N1, 30_000, "on another node")


def test_what_hangs_when_it_is_looked_for_is_recovered() -> None:
    """A failed stop was cleaned up, and the probe after it hangs for longer than a failure counts (seed 440022)."""
    cluster = Cluster(1).form()
    cluster.configure([configurations.primitive("shop", meta=SHORT), configurations.prefers("shop", N1)])
    cluster.until(lambda: cluster.runs_once("shop"), 10_000, "it runs")
    cluster.agent_script.write("shop", "monitor", AgentRun(10, hangs=True, has_effect=False), node=N1)
    cluster.kill_brain(N1)
    cluster.until(lambda: cluster.runs_once("shop") and cluster.node_of("shop") != N1, 60_000, "on another node")
