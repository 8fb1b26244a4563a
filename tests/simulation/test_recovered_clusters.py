"""A cluster whose majority is lost for good goes on as another one, made by a person (`crm cluster recover`)."""

import pytest

from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator import recovery
from haclusterd.simulator.faults.shapes import OTHER_GROUP, Shape, edits_to
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.configurations import SERVICES
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster
from tests.simulation.copies_scenarios import called

N1 = NodeName("n1")
DB = ResourceId("db")


def lose_all_but_n1(cluster: Cluster) -> None:
    cluster.hosts[N1].brain.disable()
    for other in cluster.others(N1):
        cluster.power_off(other)


@pytest.mark.parametrize("waits_ms", [0, 10_000])
def test_the_node_that_is_left_runs_everything_once(waits_ms: int) -> None:
    cluster = Cluster(1).form()
    cluster.run_for(3000)
    version = cluster.cib.version.epoch
    lose_all_but_n1(cluster)
    cluster.run_for(waits_ms)
    cluster.recover("n1")
    cluster.hosts[N1].brain.enable()
    cluster.until(lambda: cluster.runs_once(*SERVICES), 30_000, "everything runs on n1")
    cluster.until_settled(30_000, "settled")
    assert cluster.cib.version.epoch == version + 1
    assert tuple(cluster.cib.members) == ("n1",)


def test_what_was_asked_of_the_lost_cluster_in_vain_is_not_asked_of_the_new_one() -> None:
    """What runs is probed as it is configured, so a change before that could hide it (seed 991044)."""
    cluster = Cluster(1).form()
    cluster.run_for(3000)
    version = cluster.cib.version.epoch
    lose_all_but_n1(cluster)
    ask(cluster, "configure.statement", {"words": ["property", "batch-limit=3"]})
    cluster.recover("n1")
    cluster.hosts[N1].brain.enable()
    cluster.until(lambda: cluster.runs_once(*SERVICES), 30_000, "everything runs on n1")
    assert cluster.cib.version.epoch == version + 1


def test_an_agent_of_the_lost_cluster_is_waited_for_and_its_key_is_given_to_no_other_order() -> None:
    """It starts db for half a minute, through the recovery and two lives of the new cluster's daemon."""
    cluster = Cluster(2).form([*configurations.usual(["n1", "n2", "n3"])])
    cluster.configure([configurations.primitive("db", start_timeout_ms=60_000)])
    cluster.agent_script.write("db", "start", AgentRun(duration_ms=30_000, effect_at_percent=90), node="n1", times=1)
    cluster.until(lambda: cluster.node_of("db") == "n1", 10_000, "db runs on n1")
    cluster.kill_service("db")

    def is_starting() -> bool:
        return any(call.action == "start" for call in cluster.agents_at_work(N1, DB))

    cluster.until(is_starting, 10_000, "db is being started")
    lose_all_but_n1(cluster)
    term = cluster.recover("n1").term
    cluster.hosts[N1].brain.enable()
    cluster.run_for(3000)
    assert cluster.cib.status.controller is not None
    assert cluster.cib.status.controller.term > term
    cluster.kill_brain("n1")
    cluster.run_for(5000)
    assert is_starting()
    cluster.until(lambda: cluster.runs_once(*SERVICES), 60_000, "everything runs on n1")
    cluster.until_settled(30_000, "settled")


def test_three_nodes_begin_with_a_backup() -> None:
    cluster = Cluster(3).form()
    for name in cluster.names:
        cluster.power_off(name)
    cluster.restore_backup()
    cluster.power_all()
    cluster.until(cluster.all_online, 30_000, "all are online")
    cluster.until_settled(30_000, "settled")
    assert cluster.runs_once(*SERVICES)


@pytest.mark.parametrize("seed", [2, 3])
def test_a_backup_is_restored_while_agents_of_the_lost_cluster_are_at_work(seed: int) -> None:
    """Nobody boots the machines. The new cluster gives its orders the same terms and numbers as the lost one did."""
    cluster = Cluster(seed).form()
    cluster.configure([configurations.primitive("db", start_timeout_ms=60_000)])
    holder = cluster.node_of("db")
    cluster.agent_script.write("db", "start", AgentRun(duration_ms=20_000, effect_at_percent=90), node=holder, times=1)
    cluster.kill_service("db")

    def is_starting() -> bool:
        return any(call.action == "start" for call in cluster.agents_at_work(holder, DB))

    cluster.until(is_starting, 10_000, "db is being started")
    for host in cluster.hosts.values():
        host.brain.disable()
    cluster.restore_backup()
    for host in cluster.hosts.values():
        host.brain.enable()
    cluster.until(cluster.all_online, 10_000, "all are online")
    cluster.run_for(2000)
    cluster.kill_brain(holder)
    cluster.run_for(3000)
    assert is_starting()
    cluster.until(lambda: cluster.runs_once(*SERVICES), 60_000, "everything runs once")
    cluster.until_settled(30_000, "settled")


def test_a_restored_cluster_looks_for_what_the_lost_one_left_running_though_no_start_is_to_be_probed() -> None:
    """Nobody boots the machines: db runs on n2, and is wanted on n1."""
    cluster = Cluster(3)
    cluster.form(configurations.usual(cluster.names, enable_startup_probes="false"))
    cluster.configure([configurations.prefers("db", "n2", 500)])
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") == "n2", 20_000, "db runs on n2")
    cluster.configure([configurations.prefers("db", "n2", 0)])
    cluster.run_for(3000)
    for host in cluster.hosts.values():
        host.brain.disable()
    cluster.restore_backup()
    for host in cluster.hosts.values():
        host.brain.enable()
    cluster.until(cluster.all_online, 20_000, "all are online")
    cluster.until_settled(30_000, "settled")
    assert cluster.runs_once(*SERVICES)


@pytest.mark.parametrize("boots", [False, True])
def test_what_runs_on_is_known_by_what_it_was_started_with_though_that_has_changed(boots: bool) -> None:
    """`left` and `right` exchange their services, and nobody acts on that before the others are lost (seed 898168).

    What runs as `right` is then the service of `left`, which must not start beside it.
    """
    cluster = Cluster(4).form()
    cluster.configure([called("left", "one"), called("right", "two"), configurations.prefers("left", "n3"),
                       configurations.prefers("right", "n1")])  # fmt: skip
    cluster.until_settled(60_000, "both run")
    cluster.configure([called("left", "two"), called("right", "one")])
    lose_all_but_n1(cluster)
    if boots:
        cluster.power_off("n1")
    cluster.recover("n1")
    if boots:
        cluster.power_on("n1")
    cluster.hosts[N1].brain.enable()
    cluster.until(lambda: cluster.runs_once("left", "right"), 60_000, "both run on n1")
    cluster.until_settled(30_000, "settled")


def test_a_person_makes_no_secret_of_a_service_that_has_become_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault may leave it so (seed 450820)."""
    monkeypatch.setattr(recovery, "SECRET_SHARE", 1.0)
    cluster = Cluster(1).form()
    cluster.run_for(3000)
    for service in SERVICES:
        cluster.edit(edits_to(cluster.cib.configuration, service, Shape(OTHER_GROUP)))
        cluster.run_for(1000)
    cluster.until_settled(30_000, "settled as groups")
    recovery.begin_again(cluster, 120_000)
    assert not cluster.cib.secrets.values
