"""What a node does that is cut off, for each no-quorum-policy (docs/design/safety.md §4)."""

from collections.abc import Sequence

import pytest

from haclusterd.cib.commands import RequestFence
from haclusterd.cib.edits import Edit
from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.hosts.truth import promoted
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster, Setup

DB = ResourceId("db")
PG = ResourceId("pg")


def with_policy(policy: str, *more: Edit, **values: str) -> Sequence[Edit]:
    usual = list(configurations.usual(["n1", "n2", "n3"]))
    usual[0] = configurations.properties(
        fencing_timeout="5s", start_failure_is_fatal="false", no_quorum_policy=policy, **values
    )
    return [*usual, *more]


def formed(policy: str, *more: Edit, **values: str) -> Cluster:
    cluster = Cluster(1).form(with_policy(policy, *more, **values))
    cluster.run_for(3000)
    assert cluster.node_of("db") == "n1"
    return cluster


def lifetimes(cluster: Cluster) -> list[object]:
    """Return a list to which each service that ends from now on is added."""
    ended: list[object] = []
    cluster.truth.when_service_ends.append(lambda *service: ended.append(service))
    return ended


@pytest.mark.parametrize("policy", ["freeze", "ignore"])
def test_a_frozen_node_runs_on_and_comes_back_with_what_it_runs(policy: str) -> None:
    cluster = formed(policy)
    cluster.switch.set("n1", FaultMode.DEAD)
    ended = lifetimes(cluster)
    boots = cluster.hosts[NodeName("n1")].boots
    cluster.isolate("n1")
    cluster.run_for(20_000)
    assert cluster.state("n1") is NodeState.LOST
    assert cluster.node_of("db") == "n1"
    cluster.rejoin("n1")
    cluster.until(lambda: cluster.state("n1") is NodeState.ONLINE, 20_000, "n1 is back")
    cluster.run_for(5000)
    assert not ended
    assert cluster.node_of("db") == "n1"
    assert cluster.hosts[NodeName("n1")].boots == boots


def test_a_frozen_node_is_fenced_before_what_it_runs_is_recovered() -> None:
    cluster = formed("freeze")
    cluster.isolate("n1")
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != "n1", 8000, "db on another node")
    assert ("n1", "reboot") in [(node, action) for _, node, action in cluster.switch.acted]


def test_without_fencing_and_quorum_two_copies_run_and_a_checker_sees_them() -> None:
    cluster = formed("ignore", fencing_enabled="false")
    cluster.isolate("n1")
    with pytest.raises(ViolationError):
        cluster.run_for(30_000)


def test_stop_and_no_fencing_leave_one_copy() -> None:
    cluster = formed("stop", fencing_enabled="true")
    cluster.switch.set("n1", FaultMode.DEAD)
    cluster.isolate("n1")
    cluster.run_for(30_000)
    assert not cluster.truth.active_nodes(DB)


def test_demote_leaves_instances_running_and_demotes_them() -> None:
    cluster = formed("demote", *configurations.promotable(["n1", "n2", "n3"]))
    cluster.switch.set("n3", FaultMode.DEAD)
    cluster.until(lambda: NodeName("n3") in cluster.truth.active_nodes(promoted(PG)), 10_000, "pg promoted on n3")
    cluster.isolate("n3")
    cluster.until(lambda: NodeName("n3") not in cluster.truth.active_nodes(promoted(PG)), 4000, "pg demoted on n3")
    cluster.run_for(20_000)
    assert NodeName("n3") in cluster.truth.active_nodes(PG)
    assert cluster.truth.services_on(NodeName("n3")) == (PG,)


@pytest.mark.parametrize(("policy", "runs_on"), [("stop", False), ("fence", False), ("freeze", True)])
def test_what_demote_has_kept_goes_on_as_the_policy_says_that_is_in_force_then(policy: str, runs_on: bool) -> None:
    """n3 hears the others, and learns of the change, while no device can fence it."""
    cluster = formed("demote", *configurations.promotable(["n1", "n2", "n3"]))
    cluster.switch.set("n3", FaultMode.DEAD)
    cluster.until(lambda: NodeName("n3") in cluster.truth.active_nodes(promoted(PG)), 10_000, "pg promoted on n3")
    cluster.administer(RequestFence(NodeName("n3"), cluster.incarnation_at("n3"), "a test"))
    cluster.until(lambda: NodeName("n3") not in cluster.truth.active_nodes(promoted(PG)), 8000, "pg demoted on n3")
    cluster.run_for(5000)
    assert NodeName("n3") in cluster.truth.active_nodes(PG)
    cluster.edit(with_policy(policy)[:1])
    cluster.run_for(10_000)
    assert (NodeName("n3") in cluster.truth.active_nodes(PG)) is runs_on


def test_what_is_managed_again_before_the_lease_is_back_runs_on() -> None:
    """n1 learns of both changes, and has no lease for longer than any stop may take."""
    cluster = formed("stop")
    cluster.switch.set("n1", FaultMode.DEAD)
    ended = lifetimes(cluster)
    ask(cluster, "node.maintenance", {"node": "n1"})
    cluster.run_for(1000)
    cluster.administer(RequestFence(NodeName("n1"), cluster.incarnation_at("n1"), "a test"))
    cluster.until(lambda: cluster.state("n1") is NodeState.LOST, 5000, "n1 is lost")
    cluster.run_for(8000)
    ask(cluster, "node.maintenance", {"node": "n1", "ready": True})
    cluster.run_for(20_000)
    assert not ended
    assert cluster.node_of("db") == "n1"


def test_fence_ends_a_node_that_ran_something_and_no_other() -> None:
    cluster = Cluster(1, Setup(watchdog_ms=10_000))
    cluster.form(configurations.watched(cluster.names, no_quorum_policy="fence"))
    cluster.run_for(3000)
    busy = [name for name in cluster.names if cluster.truth.services_on(name)]
    idle = [name for name in cluster.names if name not in busy]
    for name in cluster.names:
        cluster.isolate(name)
    cluster.run_for(20_000)
    assert {name: cluster.hosts[name].boots for name in cluster.names} == {
        **dict.fromkeys(busy, 2), **dict.fromkeys(idle, 1)
    }
    cluster.heal()
    cluster.until(cluster.is_settled, 60_000, "settled")


def test_the_loser_begins_to_stop_no_later_than_it_is_declared_lost() -> None:
    cluster = formed("stop")
    ended_us: list[int] = []
    cluster.truth.when_service_ends.append(lambda *_: ended_us.append(cluster.world.now_us))
    cluster.switch.set("n1", FaultMode.DEAD)
    cluster.isolate("n1")
    cluster.until(lambda: cluster.state("n1") is NodeState.LOST, 5000, "n1 is lost")
    lost_us = cluster.world.now_us
    cluster.until(lambda: not cluster.truth.services_on(NodeName("n1")), 3000, "n1 has stopped")
    assert min(ended_us) <= lost_us + 500_000


def test_a_node_declared_lost_while_its_daemon_hung_stops_before_its_next_life() -> None:
    cluster = Cluster(1, Setup(brain_timeout_ms=3000)).form(with_policy("stop", brain_timeout="3s"))
    cluster.run_for(3000)
    cluster.switch.set("n1", FaultMode.DEAD)
    cluster.hang_main_loop("n1")
    cluster.until(lambda: cluster.state("n1") is NodeState.LOST, 10_000, "n1 is lost")
    before = cluster.brain_of("n1").incarnation
    cluster.resume_main_loop("n1")
    cluster.until(lambda: cluster.brain_of("n1").incarnation != before, 5000, "n1's next life")
    assert cluster.truth.services_on(NodeName("n1")) == ()


def test_a_node_without_a_lease_kills_a_start_of_its_daemons_life_before() -> None:
    """It would go on for half a minute, and the service would begin where nobody may run anything."""
    cluster = formed("stop", configurations.primitive("db", start_timeout_ms=60_000))
    cluster.switch.set("n1", FaultMode.DEAD)
    cluster.agent_script.write("db", "start", AgentRun(duration_ms=30_000, effect_at_percent=60), node="n1", times=1)
    cluster.kill_service("db")

    def is_starting() -> bool:
        return any(call.action == "start" for call in cluster.agents_at_work(NodeName("n1"), DB))

    cluster.until(is_starting, 5000, "db is being started")
    cluster.kill_brain("n1")
    cluster.run_for(1000)
    cluster.isolate("n1")
    cluster.until(lambda: not is_starting(), 5000, "the start is killed")
    cluster.run_for(30_000)
    assert not cluster.truth.active_nodes(DB)
