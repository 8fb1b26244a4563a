"""A database whose data remembers that it was a primary's, as PostgreSQL's under PAF: it is back after a reset."""

import pytest

from haclusterd.cib.commands import RequestFence, SetTransientAttribute
from haclusterd.cib.edits import Edit, PutResource
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import AttributeSet, Clone
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.checks.coverage import ANSWER
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.hosts.truth import number_of, promoted
from haclusterd.simulator.scenario import Cluster
from haclusterd.simulator.writing_agents import ScoringAgents
from tests.simulation.copies_scenarios import PG, SETTLED_MS

PRIMARY = promoted(PG)
CLONE = ResourceId("pgs")
SLOW_PROMOTE = AgentRun(duration_ms=12_000, effect_at_percent=95)


def database(*edits: Edit, is_notified: bool = True) -> Cluster:
    """Return a cluster with a primary, whose monitors have written all scores."""
    cluster = Cluster(1).form()
    cluster.truth.databases.keep(PG)
    cluster.checkers.add(ScoringAgents(cluster, PG, cluster.names, after_ms=5))
    cluster.configure([*configurations.promotable(cluster.names, is_notified=is_notified, timeout_ms=20_000), *edits])
    cluster.until_settled(SETTLED_MS, "the database settled")
    primary = cluster.node_of(PRIMARY)
    cluster.until(lambda: score(cluster, primary) == "1001", 3000, "the scores are written")
    return cluster


def score(cluster: Cluster, node: NodeName) -> str:
    (block,) = cluster.cib.configuration.nodes[node].attributes
    return dict(block.pairs)["master-pg"]


def answers(cluster: Cluster, kind: str) -> int:
    return cluster.coverage.counts[ANSWER, f"{kind} says failed promoted"]


def test_a_primary_that_is_back_while_its_successor_is_promoted_does_not_take_its_place() -> None:
    cluster = database()
    former = cluster.node_of(PRIMARY)
    cluster.agent_script.write(PG, "promote", SLOW_PROMOTE, times=1)
    cluster.power_off(former)
    cluster.until(lambda: answers(cluster, "probe") == 1, SETTLED_MS, "the former primary says what it is")
    assert score(cluster, former) == "1001"
    cluster.until_settled(SETTLED_MS, "all copies run")
    (successor,) = cluster.truth.active_nodes(PRIMARY)
    assert successor != former
    assert cluster.coverage.counts["activity", "promote"] == 2


def test_nor_is_it_promoted_before_its_successor_that_is_lost_is_fenced() -> None:
    cluster = database()
    former = cluster.node_of(PRIMARY)
    successor, third = cluster.others(former)
    cluster.administer(SetTransientAttribute(third, "standby", "on", "scenario", ""))
    cluster.until_settled(SETTLED_MS, "two nodes are left")
    cluster.agent_script.write(PG, "monitor", AgentRun(duration_ms=4500), node=former, times=1)
    cluster.switch.set(successor, FaultMode.DAWDLES, latency_ms=4000)
    cluster.power_off(former)
    cluster.until(lambda: bool(cluster.agents_at_work(former, PG)), SETTLED_MS, "the former primary is probed")
    assert cluster.node_of(PRIMARY) == successor
    for action in ("demote", "stop"):
        cluster.agent_script.write(PG, action, AgentRun(duration_ms=8000), node=successor)
    status = cluster.cib.status.nodes[successor]
    cluster.administer(RequestFence(successor, status.incarnation, "scenario", "to see what happens"))
    cluster.until(lambda: answers(cluster, "probe") == 1, SETTLED_MS, "the former primary says what it is")
    assert cluster.state(successor) is NodeState.LOST
    assert cluster.node_of(PRIMARY) == successor
    cluster.until(lambda: cluster.truth.active_nodes(PRIMARY) == (former,), SETTLED_MS, "it is promoted again")


def test_a_primary_that_is_killed_is_recovered_where_it_is() -> None:
    cluster = database()
    primary = cluster.node_of(PRIMARY)
    cluster.truth.service_ends(primary, PG)
    cluster.until(lambda: answers(cluster, "monitor") == 1, SETTLED_MS, "its monitor says what it was")
    cluster.until_settled(SETTLED_MS, "all copies run")
    assert cluster.node_of(PRIMARY) == primary


def test_instances_of_a_unique_clone_have_data_of_their_own() -> None:
    """Their probes answer nothing for a primary that ran before under the one name of all (seed 650711)."""
    cluster = database()
    clone = cluster.cib.configuration.resources[CLONE]
    assert isinstance(clone, Clone)
    unique = AttributeSet("unique", score=1, pairs=(("globally-unique", "true"), ("promotable", "true")))
    cluster.configure([PutResource(replace(clone, meta=(*clone.meta, unique)))])
    cluster.until(lambda: any(map(number_of, cluster.truth.services_on(NodeName("n1")))), SETTLED_MS, "instances run")
    cluster.until_settled(SETTLED_MS, "all instances run")
    assert answers(cluster, "probe") == 0


@pytest.mark.parametrize("is_notified", [True, False])
def test_data_that_nobody_looks_at_takes_writes_when_it_is_started(*, is_notified: bool) -> None:
    """So it is for a copy that nothing tells of its past: the judge sees two primaries."""
    properties = configurations.properties(**{**configurations.USUAL_PROPERTIES, "enable_startup_probes": "false"})
    cluster = database(properties, is_notified=is_notified)
    cluster.power_off(cluster.node_of(PRIMARY))
    with pytest.raises(ViolationError, match=r"NeverTwoActive: pg\^promoted is, or may be, active on n. and n."):
        cluster.until_settled(SETTLED_MS, "all copies run")
