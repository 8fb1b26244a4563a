"""Sequences of ordinary acts that meet in the middle of something: edits, tickets, a restore (safety.md §1)."""

from collections.abc import Callable

import pytest

from haclusterd.cib.commands import CleanUp, SetTicket, TicketChange
from haclusterd.cib.edits import Delete, PutConstraint, PutResource
from haclusterd.model.configuration import Primitive, TicketConstraint
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import replace
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import OTHER, AgentRun
from haclusterd.simulator.hosts.truth import Maker
from haclusterd.simulator.scenario import Cluster
from tests.simulation import copies_scenarios as copies
from tests.simulation.copies_scenarios import DB, SOURCE, TARGET, THIRD, VM, called, is_ordered

SHOP = ResourceId("shop")
SLOW_START = AgentRun(duration_ms=4000, effect_at_percent=30)
SLOW_STOP = AgentRun(duration_ms=3000, effect_at_percent=90)
CONSTRAINTS = tuple(Delete("constraint", name) for name in ("cache-with-db", "db-then-cache", "db-on-n1"))


def _nothing(_cluster: Cluster, _node: NodeName) -> None:
    pass


def _its_daemon_dies(cluster: Cluster, node: NodeName) -> None:
    cluster.kill_brain(node)


def _it_is_cut_off(cluster: Cluster, node: NodeName) -> None:
    cluster.isolate(node)
    cluster.world.after(15_000_000, lambda: cluster.rejoin(node))


def _all_is_probed_again(cluster: Cluster, _node: NodeName) -> None:
    cluster.administer(CleanUp(None, None, reprobe=True))


INTERRUPTIONS = (_nothing, _its_daemon_dies, _it_is_cut_off, _all_is_probed_again)
Interruption = Callable[[Cluster, NodeName], None]


@pytest.mark.parametrize("interruption", INTERRUPTIONS)
def test_a_service_is_renamed_while_it_starts(interruption: Interruption) -> None:
    cluster = Cluster(3).form()
    cluster.agent_script.write(SHOP, "start", SLOW_START, times=1)
    cluster.agent_script.write(SHOP, "stop", SLOW_STOP)
    cluster.edit([called("shop", "one"), configurations.prefers("shop", THIRD)])
    cluster.until(lambda: is_ordered(cluster, THIRD, SHOP, ActionName.START), 5000, "it is to start")
    cluster.run_for(300)
    refused = cluster.coverage.counts["refusal", "possibly-active-elsewhere"]
    cluster.edit([Delete("constraint", "shop-on-n3"), Delete("resource", "shop"), called("store", "one"),
                  configurations.prefers("store", TARGET)])  # fmt: skip
    cluster.run_for(200)
    interruption(cluster, THIRD)
    cluster.until(lambda: cluster.runs_once("store"), 60_000, "it runs under its new name")
    cluster.until_settled(60_000, "settled")
    assert cluster.coverage.counts["refusal", "possibly-active-elsewhere"] - refused < 60


@pytest.mark.parametrize("interruption", INTERRUPTIONS)
def test_a_service_is_deleted_and_configured_again_with_another_agent_while_it_stops(
    interruption: Interruption,
) -> None:
    cluster = Cluster(3).form()
    cluster.agent_script.write(DB, "stop", SLOW_STOP)
    cluster.configure([*CONSTRAINTS, Delete("resource", DB)])
    cluster.until(lambda: is_ordered(cluster, SOURCE, DB, ActionName.STOP), 5000, "it is to stop")
    resource = configurations.primitive("db").resource
    assert isinstance(resource, Primitive)
    cluster.edit([PutResource(replace(resource, agent=OTHER)), configurations.prefers("db", TARGET)])
    cluster.run_for(200)
    interruption(cluster, SOURCE)
    cluster.until(lambda: copies.is_run_as(cluster, Maker(OTHER)), 60_000, "it is run by the other agent")
    cluster.until_settled(60_000, "settled")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("policy", ["stop", "freeze", "fence"])
@pytest.mark.parametrize("interruption", INTERRUPTIONS)
def test_a_ticket_is_revoked_while_what_needs_it_migrates(interruption: Interruption, policy: str) -> None:
    cluster = Cluster(1).form()
    ticket = PutConstraint(TicketConstraint(ConstraintId("vm-ticket"), "rights", VM, None, policy))
    cluster.administer(SetTicket("rights", TicketChange.GRANT, "scenario"))
    cluster.configure([configurations.migratable(), configurations.prefers(VM, SOURCE), ticket])
    cluster.until_settled(60_000, "it runs")
    copies.make_dc(cluster, THIRD)
    cluster.agent_script.write(VM, "migrate_to", copies.MIGRATION, times=1)
    cluster.edit([configurations.prefers(VM, TARGET, 300)])
    cluster.until(lambda: is_ordered(cluster, SOURCE, VM, ActionName.MIGRATE_TO), 5000, "it is to migrate")
    cluster.run_for(600)
    cluster.administer(SetTicket("rights", TicketChange.REVOKE, "scenario"))
    cluster.run_for(100)
    interruption(cluster, SOURCE)
    cluster.run_for(30_000)
    cluster.until_settled(60_000, "settled without the ticket")
    cluster.administer(SetTicket("rights", TicketChange.GRANT, "scenario"))
    cluster.run_for(1000)
    cluster.until(lambda: cluster.runs_once(VM), 60_000, "it runs again")
    cluster.until_settled(60_000, "settled")


def test_what_dies_before_a_member_that_its_ticket_freezes_waits_for_the_ticket() -> None:
    """web runs on and may not be stopped, and would have to stop before ip starts (docs/design/0007; seed 460252)."""
    cluster = Cluster(1).form()
    ticket = PutConstraint(TicketConstraint(ConstraintId("web-ticket"), "rights", ResourceId("web"), None, "freeze"))
    cluster.administer(SetTicket("rights", TicketChange.GRANT, "scenario"))
    cluster.configure([ticket])
    cluster.until_settled(60_000, "it runs")
    cluster.administer(SetTicket("rights", TicketChange.REVOKE, "scenario"))
    cluster.run_for(5000)
    assert cluster.runs_once("web"), "it is frozen"
    cluster.kill_service("ip")
    cluster.run_for(10_000)
    cluster.until_settled(60_000, "settled without the ticket")
    assert cluster.runs_once("web"), "it is frozen"
    cluster.administer(SetTicket("rights", TicketChange.GRANT, "scenario"))
    cluster.until(lambda: cluster.runs_once("ip") and cluster.runs_once("web"), 60_000, "both run again")
    cluster.until_settled(60_000, "settled")


def test_a_backup_is_restored_while_something_starts() -> None:
    """Its agent goes on in the same boot; the cluster that is restored has never heard of the order."""
    cluster = Cluster(3).form()
    cluster.agent_script.write(SHOP, "start", AgentRun(duration_ms=9000, effect_at_percent=80), times=1)
    cluster.edit([configurations.primitive("shop", start_timeout_ms=60_000), configurations.prefers("shop", THIRD)])
    cluster.until(lambda: is_ordered(cluster, THIRD, SHOP, ActionName.START), 5000, "it is to start")
    cluster.run_for(300)
    backup_has_it = SHOP in cluster.cib.configuration.resources
    assert backup_has_it
    for host in cluster.hosts.values():
        host.brain.disable()
    cluster.restore_backup()
    for host in cluster.hosts.values():
        host.brain.enable()
    cluster.until(cluster.all_online, 20_000, "all are online")
    cluster.edit([Delete("constraint", "shop-on-n3"), configurations.prefers("shop", TARGET)])
    cluster.until(lambda: cluster.runs_once("shop"), 60_000, "it runs")
    cluster.until_settled(60_000, "settled")


@pytest.mark.parametrize("interruption", INTERRUPTIONS)
def test_two_services_exchange_their_names(interruption: Interruption) -> None:
    """What is configured as `shop` is what runs as `store`, which is configured still."""
    cluster = Cluster(3).form()
    cluster.configure([called("shop", "one"), called("store", "two"), configurations.prefers("shop", SOURCE),
                       configurations.prefers("store", THIRD)])  # fmt: skip
    cluster.until_settled(60_000, "both run")
    cluster.agent_script.write("store", "stop", SLOW_STOP)
    cluster.edit([called("shop", "two"), called("store", "one")])
    cluster.until(lambda: is_ordered(cluster, THIRD, ResourceId("store"), ActionName.STOP), 5000, "it is to stop")
    interruption(cluster, THIRD)
    cluster.run_for(10_000)
    cluster.until(lambda: cluster.runs_once("shop", "store"), 60_000, "both run")
    cluster.until_settled(60_000, "settled")


def test_what_was_stopping_when_another_plan_was_made_does_not_wait_for_all_that_this_one_starts() -> None:
    cluster = Cluster()
    cluster.form([*configurations.usual(cluster.names), configurations.primitive("one")])
    cluster.until_settled(20_000, "settled")
    cluster.agent_script.write("one", "stop", AgentRun(duration_ms=2000))
    cluster.agent_script.write("slow", "start", AgentRun(duration_ms=40_000))
    cluster.kill_service("one")
    cluster.run_for(700)
    cluster.configure((configurations.primitive("slow", start_timeout_ms=60_000),))
    cluster.until(lambda: cluster.runs_once("one"), 5_000, "it starts beside the other one")
    assert not cluster.runs_once("slow")
    cluster.until_settled(60_000, "and that has started")
    assert {record.outcome for record in cluster.cib.status.fencing_history} == set()
