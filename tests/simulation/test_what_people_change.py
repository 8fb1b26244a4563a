"""What people change while a cluster runs: timeouts, policies of failures, tickets, a fence device that is stopped."""

import pytest

from haclusterd.cib.commands import RequestFence, SetTicket, SetTransientAttribute, TicketChange
from haclusterd.cib.edits import PutConstraint, PutResource
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import Group, Primitive, TicketConstraint
from haclusterd.model.ids import ConstraintId, ResourceId
from haclusterd.model.records import replace
from haclusterd.simulator import healing
from haclusterd.simulator.checks import expectations
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster, Setup

DB = ResourceId("db")
SECOND = 1000


def formed(seed: int = 1, **values: str) -> Cluster:
    cluster = Cluster(seed)
    return cluster.form(configurations.usual(cluster.names, **values))


def have_done(cluster: Cluster, *words: str) -> None:
    epoch = cluster.cib.version.epoch
    ask(cluster, "configure.statement", {"words": list(words)})
    cluster.until(lambda: cluster.cib.version.epoch > epoch, 5 * SECOND, "configured")


@pytest.mark.parametrize(("before", "after"), [("1s", "10s"), ("10s", "1s"), ("2s", "500ms")])
def test_another_node_timeout_loses_nobody_and_is_kept(before: str, after: str) -> None:
    cluster = formed(node_timeout=before)
    have_done(cluster, "property", f"node-timeout={after}")
    cluster.run_for(40 * SECOND)
    assert not cluster.switch.acted
    holder = cluster.node_of("db")
    cluster.power_off(holder)
    long_ms = {"10s": 10_000, "1s": 1000, "500ms": 500}[after]
    lost_after_ms = cluster.until(lambda: cluster.state(holder) is NodeState.LOST, 30 * SECOND, "lost")
    assert 9 * long_ms // 10 - 200 <= lost_after_ms <= 2 * long_ms + 1000


def test_a_watchdog_is_waited_for_by_the_longest_lease_that_was_in_force() -> None:
    cluster = Cluster(3, Setup(watchdog_ms=5000))
    cluster.form(configurations.watched(cluster.names, node_timeout="5s"))
    have_done(cluster, "property", "node-timeout=1s")
    holder = cluster.node_of("db")
    cluster.isolate(holder)
    cluster.until(lambda: cluster.state(holder) is NodeState.FENCED, 60 * SECOND, "fenced")
    cluster.until(lambda: cluster.runs_once("db"), 10 * SECOND, "db recovered")


def test_a_longer_node_timeout_gives_no_longer_lease_to_who_is_lost_already() -> None:
    cluster = Cluster(3, Setup(watchdog_ms=5000))
    cluster.form(configurations.watched(cluster.names, node_timeout="2s"))
    cluster.run_for(3 * SECOND)
    lost = cluster.node_of("db")
    cluster.agent_script.write("db", "stop", AgentRun(duration_ms=600 * SECOND), node=lost)
    cluster.administer(RequestFence(lost, cluster.incarnation_at(lost), "scenario", "it is to go"))
    cluster.until(lambda: cluster.state(lost) is NodeState.LOST, 3 * SECOND, "lost")
    have_done(cluster, "property", "node-timeout=10s")
    cluster.run_for(3 * SECOND)
    assert cluster.lease_left_ms(lost) <= 0
    cluster.until(cluster.all_online, 60 * SECOND, "back")


def test_while_the_fence_device_is_stopped_nothing_lost_is_recovered_and_then_it_is() -> None:
    cluster = formed()
    ask(cluster, "resource.stop", {"resources": [configurations.DEVICE]})
    cluster.run_for(3 * SECOND)
    holder = cluster.node_of("db")
    cluster.isolate(holder)
    cluster.run_for(30 * SECOND)
    assert cluster.state(holder) is NodeState.LOST
    assert not cluster.switch.acted
    ask(cluster, "resource.start", {"resources": [configurations.DEVICE]})
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != holder, 40 * SECOND, "db recovered")


@pytest.mark.parametrize("holds_ticket", [DB, ResourceId("around")])
def test_a_node_that_loses_a_ticket_with_loss_policy_fence_is_fenced_though_it_is_well(
    holds_ticket: ResourceId,
) -> None:
    """Also where the ticket is that of a group (seed 800910)."""
    cluster = formed()
    cluster.administer(SetTicket("rights", TicketChange.GRANT, "scenario"))
    needs = TicketConstraint(ConstraintId("db-ticket"), "rights", holds_ticket, None, "fence")
    around = () if holds_ticket == DB else (PutResource(Group(holds_ticket, (DB,))),)
    cluster.configure((*around, PutConstraint(needs)))
    cluster.run_for(10 * SECOND)
    holder = cluster.node_of("db")
    cluster.administer(SetTicket("rights", TicketChange.REVOKE, "scenario"))
    cluster.until(lambda: cluster.state(holder) is NodeState.FENCED, 20 * SECOND, "fenced")
    cluster.run_for(20 * SECOND)
    assert not cluster.truth.active_nodes(DB)


def test_what_a_lost_ticket_freezes_runs_on_and_nothing_starts_after_it() -> None:
    """As with Pacemaker: what is frozen cannot start, so what starts after it stops, until the ticket is back."""
    cluster = formed()
    cluster.administer(SetTicket("rights", TicketChange.GRANT, "scenario"))
    frozen = TicketConstraint(ConstraintId("ip-ticket"), "rights", ResourceId("ip"), None, "freeze")
    cluster.configure((PutConstraint(frozen),))
    cluster.run_for(5 * SECOND)
    cluster.administer(SetTicket("rights", TicketChange.REVOKE, "scenario"))
    cluster.until(lambda: not cluster.truth.active_nodes(ResourceId("web")), 5 * SECOND, "web stopped")
    cluster.until(cluster.is_settled, 5 * SECOND, "settled without web")
    cluster.run_for(20 * SECOND)
    assert cluster.runs_once("ip", "db", "cache")
    assert not cluster.objection()
    cluster.administer(SetTicket("rights", TicketChange.GRANT, "scenario"))
    cluster.until(lambda: cluster.runs_once("web"), 5 * SECOND, "web started")


def test_what_a_lost_ticket_freezes_keeps_what_it_uses_from_being_stopped() -> None:
    """`crm_simulate` 2.1.5: the stop of `ip` is blocked (seed 421255)."""
    cluster = formed()
    cluster.administer(SetTicket("rights", TicketChange.GRANT, "scenario"))
    frozen = TicketConstraint(ConstraintId("web-ticket"), "rights", ResourceId("web"), None, "freeze")
    cluster.configure((PutConstraint(frozen),))
    cluster.run_for(5 * SECOND)
    cluster.administer(SetTicket("rights", TicketChange.REVOKE, "scenario"))
    cluster.run_for(2 * SECOND)
    cluster.configure([configurations.primitive("ip", meta={"target-role": "Stopped"})])
    cluster.until(cluster.is_settled, 20 * SECOND, "settled")
    assert cluster.runs_once("ip", "web")
    assert not cluster.objection()
    cluster.administer(SetTicket("rights", TicketChange.GRANT, "scenario"))
    cluster.until(lambda: not cluster.truth.active_nodes(ResourceId("ip")), 20 * SECOND, "both have stopped")


def test_a_service_that_nothing_keeps_from_running_is_missed_though_a_ticket_freezes_another_one() -> None:
    cluster = formed()
    frozen = TicketConstraint(ConstraintId("db-ticket"), "rights", DB, None, "freeze")
    cluster.administer(SetTicket("rights", TicketChange.GRANT, "scenario"))
    cluster.configure((PutConstraint(frozen),))
    cluster.run_for(5 * SECOND)
    cluster.administer(SetTicket("rights", TicketChange.REVOKE, "scenario"))
    cluster.run_for(5 * SECOND)
    (holder,) = cluster.truth.active_nodes(ResourceId("web"))
    cluster.truth.service_ends(holder, ResourceId("web"))
    assert expectations.objection(cluster.cib, cluster.truth).startswith("web runs nowhere")


def test_a_majority_that_is_switched_off_comes_back_when_people_find_no_quorum() -> None:
    """Three of five are fenced with `off` at one time, before any of it is recorded: nobody can record it then."""
    cluster = Cluster(setup=Setup(nodes=5))
    cluster.form(configurations.usual(cluster.names, fencing_action="off"))
    doomed = cluster.names[2:]
    for name in doomed:
        cluster.switch.set(name, FaultMode.REFUSES)
        cluster.administer(RequestFence(name, cluster.incarnation_at(name), "scenario", "it is to go"))
    cluster.until(lambda: all(cluster.state(name) is NodeState.LOST for name in doomed), 10 * SECOND, "lost")
    cluster.switch.repair()
    cluster.until(lambda: not any(map(cluster.switch.is_on, doomed)), 120 * SECOND, "all three off")
    cluster.run_for(60 * SECOND)
    assert not cluster.truth.active_nodes(DB), "no quorum, no services"
    healing.look_after(cluster)
    cluster.until(cluster.is_settled, 60 * SECOND, "settled")


def test_a_monitor_that_fails_with_on_fail_fence_has_its_node_fenced() -> None:
    cluster = formed()
    db = cluster.cib.configuration.resources[DB]
    assert isinstance(db, Primitive)
    operations = tuple(replace(each, on_fail="fence") if each.interval_ms else each for each in db.operations)
    cluster.configure((PutResource(replace(db, operations=operations)),))
    cluster.run_for(10 * SECOND)
    holder = cluster.node_of("db")
    cluster.kill_service("db")
    cluster.until(lambda: cluster.state(holder) is NodeState.FENCED, 20 * SECOND, "fenced")
    cluster.until(lambda: cluster.runs_once("db"), 20 * SECOND, "db recovered")


def test_a_failure_that_was_recovered_and_not_cleaned_up_is_fenced_for_when_on_fail_becomes_fence() -> None:
    """As with Pacemaker (`crm_simulate` 2.1.5), which keeps the newest failure until a clean-up (seed 800614)."""
    cluster = formed()
    cluster.run_for(5 * SECOND)
    holder = cluster.node_of("db")
    cluster.kill_service("db")
    cluster.until(lambda: cluster.runs_once("db"), 20 * SECOND, "recovered where it was")
    cluster.run_for(3 * SECOND)
    assert cluster.node_of("db") == holder
    ask(cluster, "configure.set", {"path": "db.monitor.on-fail", "value": "fence"})
    cluster.until(lambda: cluster.state(holder) is NodeState.FENCED, 20 * SECOND, "fenced")
    cluster.until(lambda: cluster.runs_once("db"), 20 * SECOND, "db recovered")


def test_a_node_that_was_fenced_often_is_waited_for_as_long_as_the_rule_says() -> None:
    cluster = formed()
    assert expectations.fencing_pause_ms(cluster.cib) == 0
    for _ in range(3):
        cluster.power_off("n2")
        cluster.until(lambda: cluster.state("n2") is NodeState.FENCED, 20 * SECOND, "fenced")
        cluster.until(cluster.all_online, 30 * SECOND, "back")
    assert expectations.fencing_pause_ms(cluster.cib) == 120 * SECOND
    cluster.configure((configurations.properties(**configurations.USUAL_PROPERTIES, fencing_loop_limit="0"),))
    assert expectations.fencing_pause_ms(cluster.cib) == 0


def test_a_watchdog_that_another_program_holds_is_counted_on_by_nobody_until_it_is_free_again() -> None:
    cluster = Cluster(3, Setup(watchdog_ms=5000))
    cluster.form(configurations.watched(cluster.names))
    host = cluster.hosts[cluster.names[1]]
    host.is_watchdog_taken = True
    host.pacer.kill()
    cluster.until(lambda: cluster.cib.status.nodes[host.name].watchdog is None, 3 * SECOND, "published as missing")
    cluster.until(lambda: host.watchdog_resets == 1, 6 * SECOND, "what it had armed before resets it")
    cluster.until(lambda: cluster.state(host.name) is NodeState.LOST, 4 * SECOND, "lost")
    cluster.until(cluster.all_online, 10 * SECOND, "back, without a device")
    assert cluster.cib.status.nodes[host.name].watchdog is None
    host.is_watchdog_taken = False
    cluster.until(lambda: cluster.cib.status.nodes[host.name].watchdog is not None, 3 * SECOND, "published again")


def test_a_service_with_a_start_delay_starts_in_time_though_an_attribute_changes_all_the_time() -> None:
    """An attribute of health, or of the load, that changes every few seconds has the DC plan again each time."""
    cluster = formed()
    holder = cluster.node_of("db")
    cluster.configure([configurations.primitive("db", start_delay_ms=8 * SECOND)])
    cluster.run_for(2 * SECOND)
    cluster.kill_service("db")
    for value in range(7):
        cluster.run_for(2 * SECOND)
        cluster.administer(SetTransientAttribute(holder, "load", str(value)))
    cluster.run_for(2 * SECOND)
    assert cluster.runs_once("db"), "4 s to stop, 8 s to start, and its monitor must find out first"


@pytest.mark.parametrize("operation", ["stop", "migrate_to"])
def test_what_cannot_be_stopped_or_moved_leads_to_something_though_that_is_to_be_ignored(operation: str) -> None:
    """Taken for stopped, it would be started on another node; nobody may, so it would stay where it is, down or up."""
    cluster = Cluster(1)
    resource = "db" if operation == "stop" else "vm"
    guest = (configurations.migratable(), configurations.prefers("vm", "n1"))
    cluster.form([*configurations.usual(cluster.names), *guest])
    ask(cluster, "configure.set", {"path": f"{resource}.{operation}.on-fail", "value": "ignore"})
    cluster.agent_script.write(resource, operation, AgentRun(100, exit_code=1, has_effect=False), node="n1")
    cluster.edit([configurations.prefers(resource, "n2", 1000)])
    cluster.until(lambda: cluster.runs_once(resource) and cluster.node_of(resource) == "n2", 60_000, "it runs on n2")
    cluster.until_settled(60_000, "settled")


def test_a_member_that_waits_for_what_is_stopped_keeps_those_before_it_in_its_group() -> None:
    cluster = formed()
    group = cluster.cib.configuration.resources[ResourceId("front")]
    assert isinstance(group, Group)
    first, *others = group.members
    cluster.configure([PutResource(replace(group, members=(first, ResourceId("cache"), *others)))])
    ask(cluster, "resource.stop", {"resources": ["db"]})
    cluster.until(lambda: not cluster.truth.active_nodes(DB), 10 * SECOND, "db is stopped")
    cluster.until_settled(30 * SECOND, "settled")
    assert not cluster.truth.active_nodes(first)


def test_a_secret_that_an_earlier_configuration_names_is_given_again_when_people_look_after_the_cluster() -> None:
    """Going back to it is accepted with a warning; what needs the secret does not start before (seed 801426)."""
    cluster = formed()
    ask(cluster, "secret.set", {"name": "place", "value": "one.pid"})
    cluster.run_for(2 * SECOND)
    pidfile = {"resource": "db", "section": "params", "name": "pidfile"}
    ask(cluster, "resource.setting", {**pidfile, "action": "set", "value": "secret:place"})
    cluster.run_for(5 * SECOND)
    named = cluster.cib.version.epoch
    ask(cluster, "resource.setting", {**pidfile, "action": "delete"})
    cluster.run_for(5 * SECOND)
    ask(cluster, "secret.delete", {"name": "place"})
    cluster.run_for(5 * SECOND)
    ask(cluster, "configure.rollback", {"version": named})
    cluster.until(lambda: not cluster.truth.active_nodes(DB), 20 * SECOND, "db cannot start")
    healing.look_after(cluster)
    cluster.until(lambda: cluster.runs_once("db"), 60 * SECOND, "db started")
