"""Options of Pacemaker that act on nodes, obeyed by whole clusters (Pacemaker Explained, "Cluster Options")."""

import pytest

from haclusterd.cib.commands import RequestFence
from haclusterd.cib.edits import PutNode
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import AttributeSet, NodeEntry
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.checks.checkers_of_losses import FencedNodesAreDead
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.scenario import Cluster, Setup

N1 = NodeName("n1")
DB, CACHE = ResourceId("db"), ResourceId("cache")


def formed(**values: str) -> Cluster:
    cluster = Cluster(5).form()
    cluster.configure([configurations.properties(**{**configurations.USUAL_PROPERTIES, **values})])
    cluster.until(cluster.is_settled, 20_000, "settled")
    assert cluster.node_of("db") == N1
    return cluster


def drain(cluster: Cluster, node: str) -> None:
    """SIGTERM, and systemd does not start it again."""
    brain = cluster.hosts[NodeName(node)].brain
    brain.is_enabled = False
    cluster.brain_of(node).runtime.drain()
    cluster.until(lambda: cluster.state(node) is NodeState.LEFT, 30_000, f"{node} has left")


def come_back(cluster: Cluster, node: str) -> None:
    cluster.hosts[NodeName(node)].brain.is_enabled = True
    cluster.power_off(node)
    cluster.power_on(node)
    cluster.until(cluster.all_online, 60_000, f"{node} is back")


def test_what_ran_on_a_node_that_was_shut_down_waits_for_it() -> None:
    cluster = formed(shutdown_lock="true")
    drain(cluster, "n1")
    cluster.run_for(20_000)
    assert cluster.truth.active_nodes(DB) == ()
    assert cluster.truth.active_nodes(CACHE) == (), "it was beside db, and waits as well"
    assert {"db", "cache"} <= set(cluster.cib.status.nodes[N1].locks)
    come_back(cluster, "n1")
    cluster.until(lambda: cluster.truth.active_nodes(DB) == (N1,), 30_000, "db is back where it was")
    cluster.until(cluster.is_settled, 20_000, "settled")
    assert cluster.cib.status.nodes[N1].locks == {}


@pytest.mark.parametrize("ahead_ms", [0, 3_600_000, -3_600_000])
def test_it_waits_as_long_as_the_limit_whatever_the_clock_of_its_node_shows(ahead_ms: int) -> None:
    cluster = formed(shutdown_lock="true", shutdown_lock_limit="15s")
    assert cluster.dc() != N1
    cluster.hosts[N1].wall.offset_ms = ahead_ms
    drain(cluster, "n1")
    cluster.run_for(10_000)
    assert cluster.truth.active_nodes(DB) == ()
    cluster.until(lambda: len(cluster.truth.active_nodes(DB)) == 1, 15_000, "db runs on another node")
    cluster.until(lambda: not cluster.cib.status.nodes[N1].locks, 20_000, "nothing is locked")


def test_a_node_that_dies_keeps_nothing_for_itself() -> None:
    cluster = formed(shutdown_lock="true")
    cluster.power_off("n1")
    cluster.until(lambda: len(cluster.truth.active_nodes(DB)) == 1, 30_000, "db is recovered")
    assert cluster.node_of("db") != N1


def boot_of(cluster: Cluster, node: str) -> object:
    return cluster.hosts[NodeName(node)].boot


@pytest.mark.parametrize("reaction", ["stop", "panic"])
def test_a_node_that_finds_itself_lost_is_reset_by_its_watchdog_where_it_is_to_panic(reaction: str) -> None:
    cluster = Cluster(1, Setup(watchdog_ms=10_000))
    cluster.form(configurations.watched(cluster.names, fence_reaction=reaction))
    cluster.run_for(5000)
    status, boot = cluster.cib.status.nodes[N1], boot_of(cluster, "n1")
    cluster.administer(RequestFence(N1, status.incarnation, "a person"))
    cluster.run_for(11_000)
    assert (boot_of(cluster, "n1") is boot) is (reaction == "stop")
    cluster.until(cluster.all_online, 60_000, "n1 is back")
    cluster.until(lambda: cluster.runs_once("db"), 20_000, "db runs")


@pytest.mark.parametrize("limit", ["0", "20s"])
def test_a_node_that_comes_back_and_does_not_join_is_fenced_after_a_while_if_it_is_to(limit: str) -> None:
    cluster = formed(node_pending_timeout=limit)
    drain(cluster, "n1")
    cluster.run_for(60_000)
    assert cluster.state("n1") is NodeState.LEFT, "who is away has time"
    cluster.drop_streams_of("n1")
    cluster.hosts[N1].brain.is_enabled = True
    cluster.power_off("n1")
    cluster.power_on("n1")
    cluster.run_for(15_000)
    assert cluster.state("n1") is NodeState.LEFT
    cluster.run_for(30_000)
    fencings = [record for record in cluster.cib.status.fencing_history if record.target == "n1"]
    assert bool(fencings) is (limit != "0")
    cluster.heal()
    cluster.until(cluster.all_online, 90_000, "n1 is back")


def test_a_busy_node_is_given_less_to_do_at_once_as_long_as_it_is_busy() -> None:
    cluster = formed(load_threshold="80%")
    cluster.hosts[N1].load_percent = 100
    cluster.until(lambda: cluster.cib.status.nodes[N1].actions_max == 2, 35_000, "a quarter of two for each processor")
    cluster.hosts[N1].load_percent = 200
    cluster.until(lambda: cluster.cib.status.nodes[N1].actions_max == 1, 35_000, "one at a time")
    cluster.hosts[N1].load_percent = 0
    cluster.until(lambda: cluster.cib.status.nodes[N1].actions_max == 0, 35_000, "no limit any more")
    cluster.hosts[N1].load_percent = 200
    cluster.until(lambda: cluster.cib.status.nodes[N1].actions_max == 1, 35_000, "one at a time")
    cluster.configure([configurations.properties(**configurations.USUAL_PROPERTIES)])
    cluster.until(lambda: cluster.cib.status.nodes[N1].actions_max == 0, 5000, "nobody asks for the load")


@pytest.mark.parametrize("is_killed", [False, True], ids=["the same life", "another life of the boot"])
@pytest.mark.parametrize("reaction", ["stop", "panic"])
def test_a_node_that_finds_its_death_recorded_is_reset_where_it_is_to_panic(reaction: str, is_killed: bool) -> None:
    """The switch lies about n1, and its datagrams are filtered: the others believe it, and n1 reads the record."""
    cluster = Cluster(2, Setup(watchdog_ms=10_000))
    cluster.checkers.leave_out(FencedNodesAreDead)
    cluster.form(configurations.usual(cluster.names, fence_reaction=reaction))
    standby = AttributeSet("nodes-n1", (("standby", "on"),))
    cluster.configure([PutNode(NodeEntry(N1, (standby,)))])
    cluster.until(cluster.is_settled, 20_000, "nothing runs on n1, of which a second copy could be started")
    boot = boot_of(cluster, "n1")
    cluster.switch.set("n1", FaultMode.LIES)
    cluster.drop_datagrams_of("n1")
    if is_killed:
        cluster.pause_brain("n1")
    cluster.until(lambda: cluster.state("n1") is NodeState.FENCED, 20_000, "n1 is recorded as fenced")
    if is_killed:
        cluster.kill_brain("n1")
    cluster.run_for(13_000)
    assert (boot_of(cluster, "n1") is boot) is (reaction == "stop")
    cluster.switch.repair()
    cluster.heal()
    cluster.until(cluster.all_online, 120_000, "n1 is back")
    cluster.until(lambda: cluster.runs_once("db"), 20_000, "db runs")


@pytest.mark.parametrize("reaction", ["stop", "panic"])
def test_a_node_that_has_stopped_everything_before_it_finds_itself_lost_is_reset_too(reaction: str) -> None:
    """Nobody can fence n1, whose datagrams are filtered: its lease ends before it reads that it is lost."""
    cluster = Cluster(2, Setup(watchdog_ms=10_000))
    cluster.form(configurations.usual(cluster.names, fence_reaction=reaction))
    cluster.run_for(5000)
    boot = boot_of(cluster, "n1")
    assert cluster.node_of("db") == N1
    cluster.switch.set("n1", FaultMode.REFUSES)
    cluster.drop_datagrams_of("n1")
    cluster.until(lambda: cluster.state("n1") is NodeState.LOST, 10_000, "n1 is lost")
    assert not cluster.truth.active_nodes(DB)
    cluster.run_for(13_000)
    assert (boot_of(cluster, "n1") is boot) is (reaction == "stop")
