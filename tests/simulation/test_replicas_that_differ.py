"""A DC that decides nothing, because nobody can say which replica is right, and then may again (0002-store.md)."""

from haclusterd.model.ids import ResourceId
from haclusterd.ports.store import ReplicasDiffer
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.scenario import Cluster

DB = ResourceId("db")
STOPPED = configurations.primitive("db", meta={"target-role": "Stopped"})
LONG_MS = 10_000
"""Longer than anything takes that is at work, shorter than `cluster-recheck-interval`."""


def tell(cluster: Cluster, why: str) -> None:
    """Let the store of the DC say that the replicas differ; empty: that they agree again."""
    cluster.brain_of(cluster.dc()).runtime._store_event(ReplicasDiffer(why))


def formed() -> Cluster:
    cluster = Cluster(5).form()
    cluster.until_settled(60_000, "settled")
    return cluster


def test_what_was_changed_meanwhile_is_done_when_the_replicas_agree_again() -> None:
    cluster = formed()
    dc = cluster.dc()
    tell(cluster, "the replicas differ at entry 7")
    cluster.edit([STOPPED])
    cluster.run_for(LONG_MS)
    assert cluster.truth.active_nodes(DB), "nothing is planned"
    tell(cluster, "")
    cluster.until(lambda: not cluster.truth.active_nodes(DB), LONG_MS, "db is stopped")
    cluster.until_settled(LONG_MS, "settled")
    assert cluster.dc() == dc


def test_no_plan_from_before_is_walked_on() -> None:
    """db was to move to n2 when the replicas differed; by now it is to be stopped."""
    cluster = formed()
    cluster.agent_script.write(DB, "stop", AgentRun(duration_ms=2000), times=1)
    home = cluster.node_of("db")
    cluster.edit([configurations.prefers("db", cluster.others(home)[0], 1000)])
    cluster.until(lambda: bool(cluster.agents_at_work(home, DB)), LONG_MS, "db is being stopped")
    tell(cluster, "the replicas differ at entry 7")
    cluster.edit([STOPPED])
    cluster.run_for(LONG_MS)
    tell(cluster, "")
    for _ in range(LONG_MS // 50):
        cluster.run_for(50)
        assert not cluster.truth.active_nodes(DB)
    cluster.until_settled(LONG_MS, "settled")
