"""What is unmanaged stays as it is: at the end of a lease, after a loss, when a daemon leaves (safety.md §4)."""

from collections.abc import Sequence

import pytest

from haclusterd.cib.edits import Edit, PutNode, PutSets
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import AttributeSet, NodeEntry
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.scenario import Cluster

N1 = NodeName("n1")


def formed() -> Cluster:
    cluster = Cluster(5).form()
    cluster.run_for(2000)
    assert cluster.node_of("db") == N1
    return cluster


def usual_properties(**values: str) -> PutSets:
    return configurations.properties(fencing_timeout="5s", start_failure_is_fatal="false", **values)


def places(cluster: Cluster) -> dict[str, tuple[NodeName, ...]]:
    return {name: cluster.truth.active_nodes(ResourceId(name)) for name in configurations.SERVICES}


def ended_services(cluster: Cluster) -> list[str]:
    """Return a list to which each service that ends from now on is added."""
    ended: list[str] = []
    cluster.truth.when_service_ends.append(lambda holding: ended.append(f"{holding.resource} on {holding.node}"))
    return ended


def drain(cluster: Cluster, node: str) -> None:
    """SIGTERM, and systemd does not start it again."""
    brain = cluster.hosts[NodeName(node)].brain
    brain.is_enabled = False
    cluster.brain_of(node).runtime.drain()


IN_MAINTENANCE = [usual_properties(maintenance_mode="true")]
MANAGED = [usual_properties()]
DB_UNMANAGED = [configurations.primitive("db", meta={"is-managed": "false"})]
DB_MANAGED = [configurations.primitive("db", meta={"failure-timeout": "10s"})]


def test_a_network_outage_in_maintenance_stops_nothing() -> None:
    cluster = formed()
    cluster.configure(IN_MAINTENANCE)
    cluster.run_for(3000)
    before, ended = places(cluster), ended_services(cluster)
    for name in cluster.names:
        cluster.isolate(name)
    cluster.run_for(8000)
    assert places(cluster) == before
    for name in cluster.names:
        cluster.rejoin(name)
    cluster.until(cluster.all_online, 30_000, "all are back")
    cluster.run_for(5000)
    assert places(cluster) == before
    cluster.configure(MANAGED)
    cluster.until(cluster.is_settled, 20_000, "settled")
    assert not ended
    assert not cluster.cib.status.fencing_history


def test_a_node_that_is_lost_in_maintenance_is_fenced_when_that_ends_and_only_then_recovered() -> None:
    cluster = formed()
    cluster.configure(IN_MAINTENANCE)
    cluster.run_for(3000)
    cluster.isolate("n1")
    cluster.until(lambda: cluster.state("n1") is NodeState.LOST, 5000, "n1 is lost")
    cluster.run_for(15_000)
    assert cluster.node_of("db") == N1, "it is neither stopped, nor fenced, nor recovered"
    assert not cluster.cib.status.fencing_history
    cluster.configure(MANAGED)
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != N1, 8000, "db recovered")


@pytest.mark.parametrize(
    "edits",
    [
        DB_UNMANAGED,
        [PutSets("resource_defaults", (AttributeSet("rsc-options", (("is-managed", "false"),)),))],
        [PutNode(NodeEntry(N1, (AttributeSet("nodes-n1", (("maintenance", "true"),)),)))],
    ],
    ids=["resource", "defaults", "node"],
)
def test_a_node_without_a_lease_leaves_what_is_unmanaged_alone(edits: Sequence[Edit]) -> None:
    cluster = formed()
    cluster.switch.set("n1", FaultMode.DEAD)
    cluster.configure(edits)
    cluster.run_for(3000)
    ended = ended_services(cluster)
    cluster.isolate("n1")
    cluster.run_for(20_000)
    assert cluster.truth.active_nodes(ResourceId("db")) == (N1,)
    assert "db on n1" not in ended
    cluster.rejoin("n1")
    cluster.heal()
    cluster.until(lambda: cluster.state("n1") is NodeState.ONLINE, 60_000, "n1 is back")


def test_a_node_that_is_lost_is_fenced_for_what_is_managed_and_its_unmanaged_service_dies_with_it() -> None:
    """As with Pacemaker: one unmanaged resource does not keep the others from being recovered."""
    cluster = formed()
    cluster.configure(DB_UNMANAGED)
    cluster.run_for(2000)
    cluster.isolate("n1")
    cluster.until(lambda: bool(cluster.switch.acted), 8000, "n1 is fenced")
    cluster.run_for(10_000)
    assert cluster.truth.active_nodes(ResourceId("db")) == (), "an unmanaged resource is not started"
    cluster.rejoin("n1")
    cluster.configure(DB_MANAGED)
    cluster.until(cluster.is_settled, 60_000, "settled")


def test_a_daemon_that_is_stopped_leaves_its_unmanaged_service_and_finds_it_again() -> None:
    cluster = formed()
    cluster.configure(DB_UNMANAGED)
    cluster.run_for(2000)
    ended = ended_services(cluster)
    drain(cluster, "n1")
    cluster.until(lambda: not cluster.hosts[N1].brain.is_running, 20_000, "the daemon has ended")
    assert cluster.cib.status.nodes[N1].has_detached
    cluster.run_for(30_000)
    assert cluster.node_of("db") == N1
    assert not cluster.cib.status.fencing_history, "to leave with something unmanaged is no reason to fence"
    cluster.hosts[N1].brain.enable()
    cluster.until(lambda: cluster.state("n1") is NodeState.ONLINE, 20_000, "n1 is back")
    cluster.configure(DB_MANAGED)
    cluster.until(cluster.is_settled, 20_000, "settled")
    assert "db on n1" not in ended
    assert cluster.node_of("db") == N1


def test_what_a_stopped_daemon_left_running_is_recovered_only_after_its_node_was_fenced() -> None:
    cluster = formed()
    cluster.configure(DB_UNMANAGED)
    cluster.run_for(2000)
    drain(cluster, "n1")
    cluster.until(lambda: not cluster.hosts[N1].brain.is_running, 20_000, "the daemon has ended")
    cluster.configure(DB_MANAGED)
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != N1, 20_000, "db recovered")
    assert [node for _, node, _ in cluster.switch.acted] == [N1]


def test_a_daemon_that_is_stopped_in_maintenance_stops_nothing() -> None:
    cluster = formed()
    cluster.configure(IN_MAINTENANCE)
    cluster.run_for(2000)
    before, ended = places(cluster), ended_services(cluster)
    for name in cluster.names:
        drain(cluster, name)
        cluster.run_for(1000)
    cluster.run_for(30_000)
    assert places(cluster) == before
    for name in cluster.names:
        cluster.hosts[name].brain.enable()
    cluster.until(cluster.all_online, 40_000, "all are back")
    cluster.configure(MANAGED)
    cluster.until(cluster.is_settled, 30_000, "settled")
    assert not ended
    assert not cluster.cib.status.fencing_history


def test_what_a_resource_in_maintenance_uses_goes_on_where_everything_is_to_stop() -> None:
    cluster = formed()
    cluster.configure([configurations.primitive("web", meta={"maintenance": "true"})])
    cluster.configure([usual_properties(stop_all_resources="true")])
    cluster.until_settled(20_000, "the others have stopped")
    assert cluster.runs_once("ip")
    assert cluster.runs_once("web")
    assert not cluster.runs_once("db")
    cluster.configure([configurations.primitive("web")])
    cluster.until_settled(20_000, "it has stopped, and then what it used")
    assert not cluster.truth.copies_of(ResourceId("ip"))


def test_what_dies_on_a_node_in_maintenance_is_left_alone_until_that_ends() -> None:
    """It counts as active there, as in Pacemaker: nothing watches it (seed 420394)."""
    cluster = formed()
    home = cluster.node_of("db")
    attributes = (AttributeSet(f"nodes-{home}", (("maintenance", "true"),)),)
    cluster.configure([PutNode(NodeEntry(home, attributes))])
    cluster.run_for(2000)
    cluster.kill_service("db")
    cluster.until_settled(20_000, "everybody agrees")
    assert not cluster.truth.copies_of(ResourceId("db"))
    cluster.configure([PutNode(NodeEntry(home))])
    cluster.until(lambda: cluster.runs_once("db"), 20_000, "it is recovered")
