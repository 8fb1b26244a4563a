"""What an agent cannot do as it is configured is not tried again before something changes."""

from collections.abc import Mapping

import pytest

from haclusterd.cib.commands import CleanUp
from haclusterd.cib.edits import Delete, PutResource
from haclusterd.model.configuration import AttributeSet, Primitive
from haclusterd.model.history import OperationRecord
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.truth import promoted
from haclusterd.simulator.scenario import Cluster
from tests.simulation import copies_scenarios as copies

WRONG = AgentRun(20, exit_code=6, has_effect=False)


def vip() -> Primitive:
    made = configurations.primitive("vip").resource
    assert isinstance(made, Primitive)
    return made


def records_on_n1(cluster: Cluster) -> Mapping[str, OperationRecord]:
    history = cluster.cib.status.nodes[NodeName("n1")].histories.get(vip().id)
    return history.records if history is not None else {}


def calls(cluster: Cluster) -> int:
    return sum("agent vip" in line and " ends " in line for line in cluster.world.recorded())


@pytest.mark.parametrize("away_ms", [0, 100, 3000], ids=["at once", "while it stops", "when it has stopped"])
def test_a_probe_that_says_so_of_what_another_agent_ran_under_that_name_is_not_repeated(away_ms: int) -> None:
    cluster = Cluster(seed=2).form()
    address = (AttributeSet("vip-parameters", (("ip", "10.0.0.9"),)),)
    before = replace(vip(), agent=AgentReference("ocf", "simulated", "other"), parameters=address)
    cluster.configure([PutResource(before)])
    cluster.until(cluster.is_settled, 10_000, "it runs")
    cluster.configure([Delete("resource", "vip")])
    cluster.run_for(away_ms)
    for action in ("monitor", "start"):
        cluster.agent_script.write("vip", action, WRONG)
    cluster.configure([PutResource(vip())])
    cluster.run_for(5000)
    after_5_s, index = calls(cluster), cluster.cib.index
    cluster.run_for(30_000)
    assert calls(cluster) == after_5_s
    assert cluster.cib.index == index, "nothing is decided again and again"
    assert not cluster.switch.acted
    cluster.agent_script.clear()
    cluster.configure([PutResource(replace(vip(), parameters=address))])
    cluster.until(lambda: cluster.runs_once("vip"), 10_000, "it starts once it is configured")


def test_a_probe_that_says_so_costs_no_stop_and_no_node() -> None:
    cluster = Cluster(seed=2).form()
    for action in ("monitor", "start", "stop"):
        cluster.agent_script.write("vip", action, WRONG)
    cluster.configure([PutResource(vip())])
    cluster.run_for(30_000)
    assert calls(cluster) <= len(cluster.names), "one probe on each node"
    assert not cluster.switch.acted


def test_what_ran_before_is_not_forgotten_by_a_probe_that_could_not_look() -> None:
    """A daemon starts again, and the agent cannot look: it counts as running there, and is stopped before all else."""
    cluster = Cluster(seed=2).form()
    cluster.configure([PutResource(vip())])
    cluster.until(cluster.is_settled, 10_000, "it runs")
    holder = cluster.node_of("vip")
    cluster.agent_script.write("vip", "monitor", WRONG, node=holder, times=1)
    cluster.kill_brain(holder)
    cluster.until(lambda: not cluster.runs_once("vip"), 20_000, "it is stopped")
    cluster.run_for(10_000)
    assert not cluster.truth.active_nodes(vip().id), "it starts nowhere before a person has looked"
    cluster.administer(CleanUp(vip().id, None))
    cluster.until(lambda: cluster.runs_once("vip"), 10_000, "it runs again")


MISSING = (2, 5)
"""OCF's exit codes where the configuration of a service is missing, or its program."""


@pytest.mark.parametrize("code", MISSING)
def test_what_runs_is_stopped_before_it_starts_on_another_node_though_its_program_was_taken_away(code: int) -> None:
    """A package is being upgraded while the daemon starts again: no probe can look, and the service runs on."""
    cluster = Cluster(seed=1).form()
    cluster.agent_script.write("db", "monitor", AgentRun(20, exit_code=code), node="n1")
    cluster.kill_brain("n1")
    cluster.edit([configurations.prefers("db", "n2", 1000)])
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") == "n2", 20_000, "it runs on n2")
    cluster.until_settled(20_000, "settled")
    assert not cluster.switch.acted


@pytest.mark.parametrize("code", [*MISSING, 6])
def test_a_probe_that_could_not_look_does_not_take_the_place_of_the_one_that_found_it(code: int) -> None:
    """That db runs on n1 is known from a probe alone, since the cluster was restored from a backup."""
    cluster = Cluster(seed=1).form()
    for host in cluster.hosts.values():
        host.brain.disable()
    cluster.restore_backup()
    for host in cluster.hosts.values():
        host.brain.enable()
    cluster.until(cluster.all_online, 10_000, "all are online")
    cluster.until_settled(20_000, "everything was found")
    cluster.agent_script.write("db", "monitor", AgentRun(20, exit_code=code), node="n1")
    cluster.kill_brain("n1")
    cluster.edit([configurations.prefers("db", "n2", 1000)])
    cluster.until(lambda: not cluster.truth.active_nodes(ResourceId("db")), 20_000, "it is stopped")
    cluster.run_for(20_000)
    assert not cluster.switch.acted


@pytest.mark.parametrize("code", [*MISSING, 6])
def test_where_an_instance_may_be_promoted_a_probe_that_cannot_look_lets_no_other_be_promoted(code: int) -> None:
    """n1's daemon dies in the middle of a promote; what its next incarnation learns of it is nothing."""
    cluster = copies.promoting()
    cluster.agent_script.write("pg", "stop", AgentRun(3000, effect_at_percent=90), node="n1", times=1)
    cluster.until(lambda: bool(cluster.truth.active_nodes(promoted(copies.PG))), 20_000, "promoted on n1")
    cluster.agent_script.write("pg", "monitor", AgentRun(20, exit_code=code), node="n1")
    cluster.kill_brain("n1")
    cluster.edit([configurations.promotion_score("n1", 1)])
    cluster.until(lambda: copies.SOURCE not in cluster.truth.active_nodes(copies.PG), 30_000, "stopped on n1")
    cluster.run_for(10_000)


@pytest.mark.parametrize("exit_code", [2, 5, 6])
def test_a_start_that_a_killed_daemon_left_in_doubt_is_not_forgotten_by_a_probe_that_could_not_look(
    exit_code: int,
) -> None:
    cluster = Cluster(seed=2).form()
    cluster.configure([PutResource(vip())])
    cluster.until(cluster.is_settled, 10_000, "it runs")
    holder = cluster.node_of("vip")
    cluster.configure([PutResource(replace(vip(), meta=(AttributeSet("vip-meta", (("target-role", "Stopped"),)),)))])
    cluster.until(lambda: not cluster.truth.active_nodes(vip().id), 10_000, "it is stopped, which is recorded")
    cluster.run_for(1000)
    cluster.agent_script.write("vip", "start", AgentRun(duration_ms=3000, effect_at_percent=10), node=holder, times=1)
    cluster.agent_script.write("vip", "monitor", AgentRun(20, exit_code=exit_code, has_effect=False), node=holder)
    cluster.configure([PutResource(vip()), configurations.prefers("vip", holder)])
    cluster.until(lambda: holder in cluster.truth.active_nodes(vip().id), 10_000, "its start has begun")
    cluster.kill_brain(holder)
    most = 0
    for _ in range(300):
        cluster.run_for(100)
        most = max(most, len(cluster.truth.active_nodes(vip().id)))
    assert most == 1, "never on two nodes"


@pytest.mark.parametrize("exit_code", [*MISSING, 6])
def test_a_failed_start_is_not_forgotten_by_a_clean_up_and_a_probe_that_could_not_look(exit_code: int) -> None:
    """The start failed with the service running, its stop failed too and blocked it: a person runs a clean-up."""
    cluster = Cluster(seed=2).form()
    operations = tuple(replace(each, on_fail="block") if each.name == "stop" else each for each in vip().operations)
    cluster.agent_script.write("vip", "start", AgentRun(20, exit_code=1), node="n1", times=1)
    cluster.agent_script.write("vip", "stop", AgentRun(20, exit_code=1, has_effect=False), node="n1", times=1)
    cluster.configure([PutResource(replace(vip(), operations=operations)), configurations.prefers("vip", "n1", 1000)])
    cluster.until(lambda: "stop_0" in records_on_n1(cluster), 10_000, "its stop has failed")
    cluster.agent_script.write("vip", "monitor", AgentRun(20, exit_code=exit_code, has_effect=False), node="n1")
    cluster.administer(CleanUp(vip().id, None))
    most = 0
    for _ in range(100):
        cluster.run_for(100)
        most = max(most, len(cluster.truth.active_nodes(vip().id)))
    assert most == 1, "never on two nodes"
    cluster.until(lambda: "n1" not in cluster.truth.active_nodes(vip().id), 10_000, "it is stopped where it ran")
