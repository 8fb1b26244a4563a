"""Scenarios of the rules about nodes that are heard and take no part (safety.md §4)."""

from haclusterd.model.cluster import NodeState
from haclusterd.model.rules_in_force import SafetyRules
from haclusterd.simulator.hosts.configurations import SERVICES
from haclusterd.simulator.scenario import Cluster


def streams_of_a_holder_are_filtered(rules: SafetyRules) -> None:
    """TCP of the node that runs db is filtered, its heartbeats pass; then db dies there."""
    cluster = Cluster(1, rules=rules).form()
    home = cluster.node_of("db")
    cluster.drop_streams_of(home)
    cluster.run_for(3000)
    cluster.kill_service("db")
    cluster.until(lambda: cluster.runs_once(*SERVICES), 20_000, "everything runs")


def streams_between_the_dc_and_one_node_are_filtered(rules: SafetyRules) -> None:
    """TCP between the DC and one node is filtered; the third has sessions with both."""
    cluster = Cluster(1, rules=rules).form()
    cluster.run_for(5000)
    dc = cluster.dc()
    node = cluster.others(dc)[0]
    cluster.drop_streams(dc, node)
    cluster.until(lambda: cluster.dc() not in (dc, node), 15_000, "another DC")
    cluster.run_for(20_000)
    assert cluster.states() == dict.fromkeys(cluster.names, NodeState.ONLINE)
