"""What the judge makes of the health of nodes, and what it objects to."""

from collections.abc import Mapping

import pytest

from haclusterd.model.cluster import Cib, NodeState, NodeStatus, Status
from haclusterd.model.configuration import AttributeSet, Configuration
from haclusterd.model.graph import Plan
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY
from haclusterd.simulator.checks import health
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.checks.versions import DECIDED_US
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

N1 = NodeName("n1")
RED, YELLOW = {"#health-disk": "red"}, {"#health": "yellow"}
SCORES: tuple[tuple[dict[str, str], Mapping[str, str], int], ...] = (
    ({"node-health-strategy": "migrate-on-red"}, RED, -INFINITY),
    ({"node-health-strategy": "migrate-on-red"}, {"health": "red", **YELLOW}, 0),
    ({"node-health-strategy": "only-green"}, YELLOW, -INFINITY),
    ({"node-health-strategy": "progressive", "node-health-base": "5", "node-health-red": "-30"}, RED, -25),
    ({"node-health-strategy": "custom", "node-health-base": "5", "node-health-red": "-30"}, RED, -30),
    ({"node-health-strategy": "custom", "node-health-yellow": "-INFINITY", "node-health-red": "INFINITY"},
     {**RED, **YELLOW}, -INFINITY),
    ({"node-health-strategy": "custom"}, {"#health-a": "-7", "#health-b": "RED", "#health-c": "12"}, -INFINITY),
    ({"node-health-strategy": "progressive"}, {"#health-a": "-7", "#health-b": "12", "#health-c": "green"}, 5),
)  # fmt: skip


@pytest.mark.parametrize(("properties", "attributes", "score"), SCORES)
def test_votes_are_added(properties: dict[str, str], attributes: Mapping[str, str], score: int) -> None:
    configuration = Configuration(properties=(AttributeSet("options", tuple(properties.items())),))
    nodes = {N1: NodeStatus(N1, NodeState.ONLINE, attributes=attributes)}
    cib = Cib(configuration=configuration, status=Status(nodes=nodes))
    assert health.scores(cib) == {N1: score}


def unhealthy(**more: str) -> Cluster:
    """Return a cluster in which n1, where db ran, is red."""
    cluster = Cluster().form()
    values = {"node_health_strategy": "migrate-on-red", **more}
    cluster.configure((configurations.properties(**configurations.USUAL_PROPERTIES, **values),))
    ask(cluster, "node.attribute", {"node": "n1", "action": "set", "name": "#health-disk", "value": "red",
                                    "lifetime": "reboot"})  # fmt: skip
    cluster.until(lambda: cluster.node_of("db") != N1 if cluster.runs_once("db") else False, 10_000, "n1 is left")
    cluster.until_settled(10_000, "settled")
    return cluster


def test_a_copy_on_a_red_node_is_named() -> None:
    cluster = unhealthy()
    home = cluster.node_of("db")
    cluster.truth.service_ends(home, ResourceId("db"))
    cluster.truth.service_begins(N1, ResourceId("db"))
    assert cluster.objection() == "db runs on n1, whose health forbids it"


def test_a_copy_that_stays_on_a_red_node_ends_the_run() -> None:
    cluster = unhealthy()
    home = cluster.node_of("db")
    for name in cluster.names:
        cluster.pause_brain(name)
    cluster.truth.service_ends(home, ResourceId("db"))
    cluster.truth.service_begins(N1, ResourceId("db"))
    with pytest.raises(ViolationError, match="db runs on n1, whose health forbids it, and stays for"):
        cluster.run_for(40_000)


def test_what_is_allowed_on_unhealthy_nodes_is_expected_there() -> None:
    cluster = Cluster().form()
    values = {"node_health_strategy": "only-green"}
    cluster.configure((configurations.properties(**configurations.USUAL_PROPERTIES, **values),))
    ask(cluster, "resource.setting", {"resource": "db", "section": "meta", "action": "set",
                                      "name": "allow-unhealthy-nodes", "value": "true"})  # fmt: skip
    for node in cluster.names:
        ask(cluster, "node.attribute", {"node": node, "action": "set", "name": "#health", "value": "yellow",
                                        "lifetime": "reboot"})  # fmt: skip
    cluster.until(lambda: cluster.truth.active_nodes(ResourceId("ip")) == (), 20_000, "all nodes are left")
    cluster.until_settled(20_000, "settled")
    assert cluster.runs_once("db")
    cluster.kill_service("db")
    assert cluster.objection().startswith("db runs nowhere, and could on")


def test_an_order_to_begin_on_a_red_node_ends_the_run() -> None:
    """The controllers' scheduler takes health for none, as a wrong one would."""
    cluster = unhealthy()
    cluster.run_for(DECIDED_US // 1000)
    right = cluster.scheduler

    def wrong(cib: Cib, now: WallTime) -> Plan:
        properties = configurations.properties(**configurations.USUAL_PROPERTIES).sets
        return right(replace(cib, configuration=replace(cib.configuration, properties=properties)), now)

    cluster.scheduler = wrong
    cluster.edit((configurations.prefers("db", N1, 1000),))
    with pytest.raises(ViolationError, match=r"is to start .* on n1, which its health has forbidden for"):
        cluster.run_for(20_000)
