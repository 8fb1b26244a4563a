"""The swarm's judges by the hosts' facts: what should run, what the dead had, and what was exercised."""

from collections import Counter

import pytest

from haclusterd.cib.edits import Delete, PutResource
from haclusterd.model.configuration import Clone
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.pacer import NO_LEASE, HeldLease
from haclusterd.model.records import replace
from haclusterd.ports.agents import AgentCall
from haclusterd.protocol.pacer_page import PacerPage
from haclusterd.simulator import swarm
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.checks.checkers_of_leases import NodesWithoutLeaseStop
from haclusterd.simulator.checks.checkers_of_losses import may_be_promoted
from haclusterd.simulator.checks.checkers_of_the_dead import TheDeadAreFencedFirst
from haclusterd.simulator.checks.coverage import Counts, Section, table, zeros
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster
from tests.unit.situations import DB, N2, order, record, result
from tests.unit.situations import Cluster as Situation


def start_of(resource: str) -> AgentCall:
    agent, life = AgentReference("ocf", "simulated", "service"), Incarnation("boot", "life")
    return AgentCall("9.9", ResourceId(resource), resource, agent, "start", {}, {}, 5000, life)


def judge(cluster: Cluster) -> TheDeadAreFencedFirst:
    return next(each for each in cluster.checkers.all if isinstance(each, TheDeadAreFencedFirst))


def test_what_a_host_had_when_it_died_starts_on_others_only_after_its_death_is_in_the_log() -> None:
    cluster = Cluster().form()
    home = cluster.node_of("db")
    other = cluster.others(home)[0]
    judge(cluster).agent_begins(other, start_of("db"))
    cluster.power_off(home)
    with pytest.raises(ViolationError, match="neither its fencing nor its new boot"):
        judge(cluster).agent_begins(other, start_of("db"))
    cluster.until(lambda: cluster.state(home) in ("fenced", "online") and cluster.runs_once("db"), 20_000, "recovered")
    judge(cluster).agent_begins(other, start_of("db"))


def test_without_a_lease_a_node_is_blamed_only_for_the_time_since_it_may_not_run_on() -> None:
    cluster = Cluster().form(configurations.usual(("n1", "n2", "n3"), no_quorum_policy="ignore"))
    judge_of_leases = next(each for each in cluster.checkers.all if isinstance(each, NodesWithoutLeaseStop))
    home = cluster.node_of("db")
    process = cluster.brain_of(home)
    boot = cluster.hosts[home].boot
    assert boot is not None
    page = PacerPage(boot.page)

    def look_without(configuration_is_known: bool) -> None:
        lease, shown = page.held_lease(), process.shown
        assert lease is not None
        page.publish_lease(HeldLease(lease.token, NO_LEASE))
        process.shown = shown if configuration_is_known else None
        judge_of_leases.looked_at(home)
        process.shown = shown
        page.publish_lease(lease)

    look_without(configuration_is_known=False)
    look_without(configuration_is_known=True)
    cluster.run_for(20_000)
    look_without(configuration_is_known=False)


def test_what_could_run_and_does_not_is_named() -> None:
    cluster = Cluster().form()
    assert cluster.objection() == ""
    cluster.kill_service("db")
    assert cluster.objection().startswith("db runs nowhere, and could on")


def test_what_was_to_be_stopped_and_runs_is_named() -> None:
    cluster = Cluster().form()
    ask(cluster, "resource.stop", {"resources": ["cache"]})
    cluster.until(lambda: not cluster.runs_once("cache"), 10_000, "stopped")
    cluster.until_settled(10_000, "nothing to do")
    cluster.truth.service_begins(NodeName("n1"), ResourceId("cache"))
    assert cluster.objection() == "cache runs on n1, and is to be stopped"


def test_the_target_role_of_a_member_wins_over_that_of_its_group() -> None:
    cluster = Cluster().form()
    ask(cluster, "resource.stop", {"resources": ["front"]})
    cluster.until(lambda: not cluster.truth.active_nodes(ResourceId("ip")), 10_000, "stopped")
    cluster.configure([configurations.primitive("ip", meta={"target-role": "Started"})])
    cluster.until(lambda: cluster.runs_once("ip"), 10_000, "started")
    cluster.until_settled(10_000, "nothing to do")
    assert not cluster.truth.active_nodes(ResourceId("web"))


def test_what_is_unmanaged_is_not_expected_to_run() -> None:
    cluster = Cluster().form()
    ask(cluster, "resource.manage", {"resources": ["cache"], "unmanage": True})
    cluster.run_for(2000)
    cluster.kill_service("cache")
    assert "cache" not in cluster.objection()


def test_what_was_removed_may_run_on_where_removed_resources_are_not_stopped() -> None:
    cluster = Cluster().form()
    ask(cluster, "configure.statement", {"words": ["property", "stop-removed-resources=false"]})
    ask(cluster, "configure.delete", {"ids": ["cache"], "cascade": True})
    cluster.until(lambda: "cache" not in cluster.cib.configuration.resources, 10_000, "removed")
    cluster.until_settled(10_000, "nothing to do")
    assert cluster.runs_once("cache")


def test_a_promotable_clone_without_a_promoted_instance_is_named() -> None:
    cluster = Cluster().form()
    cluster.configure(configurations.promotable(cluster.names))
    cluster.until_settled(20_000, "promoted")
    cluster.kill_service("pg^promoted")
    assert cluster.objection().startswith("pg is promoted nowhere")


def test_zeros_are_named_unless_they_are_exempt() -> None:
    counts: Counts = Counter({("command", "Join"): 2})
    wanted = (Section("command", ("Join", "Lost", "Forget"), {"Forget": "too short a run"}),)
    assert zeros(counts, wanted) == ("command Lost",)
    assert "        0  Forget  (too short a run)" in table(counts, wanted)


def test_a_run_counts_what_it_exercises() -> None:
    outcome = swarm.run(2, safety_ms=5000)
    counted = {section for (section, _), _ in outcome.coverage}
    assert {"command", "change", "effect", "activity"} <= counted


@pytest.mark.parametrize(
    ("codes", "is_promoted"),
    [
        ((ExitCode.PROMOTED,), True),
        ((ExitCode.PROMOTED, ExitCode.OK), False),
        ((ExitCode.PROMOTED, ExitCode.NOT_RUNNING), False),
        ((ExitCode.PROMOTED, ExitCode.ERROR), True),
        ((ExitCode.OK, ExitCode.FAILED_PROMOTED), True),
    ],
)
def test_what_a_monitor_has_found_unpromoted_on_a_lost_node_is_not_promoted(
    codes: tuple[ExitCode, ...], *, is_promoted: bool
) -> None:
    """Seed 5000265: a node that acts alone has demoted, joins, is watched, and is lost before it is fenced."""
    cluster = Situation()
    cluster.issue(order("start"))
    cluster.must(record(result("start")))
    for number, code in enumerate(codes, start=2):
        cluster.issue(order(f"{number}", ActionName.MONITOR, interval_ms=1000 * number, target=ExitCode.PROMOTED))
        answer = result(f"{number}", "monitor", code, call_id=number, interval_ms=1000 * number)
        cluster.must(record(replace(answer, target_exit_code=ExitCode.PROMOTED)))
    assert not may_be_promoted(cluster.status(N2), DB), "it answers"
    cluster.lose(N2)
    assert may_be_promoted(cluster.status(N2), DB) is is_promoted


def test_what_is_removed_is_left_alone_everywhere_while_it_runs_on_a_node_in_maintenance_too() -> None:
    """Seed 5000332: a clone is deleted, and one of its nodes stays in maintenance."""
    cluster = Cluster().form()
    copy = configurations.primitive("copy")
    cluster.configure([copy, PutResource(Clone(ResourceId("copies"), ResourceId("copy")))])
    cluster.until_settled(20_000, "it runs on all nodes")
    ask(cluster, "node.maintenance", {"node": "n3", "ready": False})
    cluster.run_for(2000)
    cluster.configure([Delete("resource", "copies"), Delete("resource", "copy")])
    cluster.run_for(10_000)
    assert cluster.truth.active_nodes(ResourceId("copy")) == cluster.names
    assert not cluster.objection()
    ask(cluster, "node.maintenance", {"node": "n3", "ready": True})
    cluster.run_for(2000)
    cluster.until_settled(20_000, "it has stopped")
    assert not cluster.truth.active_nodes(ResourceId("copy"))
