"""A node that is heard and cannot be fenced for what runs there: its other services run on.

What failed to stop is left alone there; what has lost its ticket is stopped.
"""

import pytest

from haclusterd.cib.commands import CleanUp, ForgetFencings, SetTicket, TicketChange
from haclusterd.cib.edits import PutConstraint, PutResource
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import Primitive, TicketConstraint
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.hosts.truth import promoted
from haclusterd.simulator.scenario import Cluster

DB = ResourceId("db")
PG = ResourceId("pg")
VIP = ResourceId("vip")
UNABLE = AgentRun(20, exit_code=1, has_effect=False)


def beside(seed: int) -> tuple[Cluster, NodeName]:
    """Return a cluster in which db and vip run on one node, and that node."""
    cluster = Cluster(seed=seed).form()
    holder = cluster.node_of("db")
    cluster.configure([configurations.primitive("vip"), configurations.prefers("vip", holder, 1000)])
    cluster.until(lambda: cluster.truth.active_nodes(VIP) == (holder,), 10_000, "both run on one node")
    return cluster, holder


def move_away(cluster: Cluster, holder: NodeName) -> None:
    """Have db stopped where it runs, which fails."""
    cluster.agent_script.write("db", "stop", UNABLE, node=holder)
    cluster.configure([configurations.prefers("db", holder, -1_000_000)])


def losses(cluster: Cluster, node: NodeName) -> int:
    return len({record.target_incarnation for record in cluster.cib.status.fencing_history if record.target == node})


@pytest.mark.parametrize("mode", [FaultMode.REFUSES, FaultMode.LIES], ids=lambda mode: mode.value)
def test_a_device_that_fails_does_not_stop_the_other_services_again_and_again(mode: FaultMode) -> None:
    """Without a limit the node joins again, its stop fails again, and all services stop again, every five seconds."""
    cluster, holder = beside(seed=3)
    cluster.switch.set(holder, mode)
    move_away(cluster, holder)
    cluster.until(lambda: len(cluster.cib.status.fencing_history) >= 10, 240_000, "it was tried ten times")
    cluster.until(lambda: cluster.runs_once("vip"), 20_000, "the other service runs")
    before = losses(cluster, holder)
    for _ in range(1200):
        cluster.run_for(100)
        assert cluster.runs_once("vip"), "it runs on"
        assert cluster.truth.active_nodes(DB) == (holder,), "what cannot be stopped is left alone"
    assert losses(cluster, holder) == before
    assert cluster.state(holder) is NodeState.ONLINE
    cluster.switch.repair()
    cluster.administer(ForgetFencings(holder, "admin"))
    cluster.administer(CleanUp(DB, holder))
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != holder, 30_000, "it is fenced")
    assert [target for _, target, _ in cluster.switch.acted] == [holder]


def test_a_clock_that_was_ahead_delays_no_fencing_by_hours() -> None:
    """The records of the failed attempts are three hours ahead of the time at which the next one is decided."""
    cluster, holder = beside(seed=3)
    for host in cluster.hosts.values():
        host.wall.offset_ms = 3 * 3_600_000
    cluster.switch.set(holder, FaultMode.REFUSES)
    move_away(cluster, holder)
    cluster.until(lambda: len(cluster.cib.status.fencing_history) >= 2, 60_000, "it has failed twice")
    cluster.until(lambda: cluster.state(holder) is NodeState.ONLINE, 60_000, "it is heard and has joined again")
    for host in cluster.hosts.values():
        host.wall.offset_ms = 0
    cluster.switch.repair()
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != holder, 60_000, "it is fenced")


@pytest.mark.parametrize("ahead_ms", [0, 3_600_000, -3_600_000])
def test_an_executor_whose_clock_is_wrong_does_not_use_up_all_attempts_at_once(ahead_ms: int) -> None:
    """By its time of the end the pause after an attempt was over, or a time that no clock can have shown yet."""
    cluster, holder = beside(seed=3)
    for name, host in cluster.hosts.items():
        host.wall.offset_ms = 0 if name == cluster.dc() else ahead_ms
    cluster.switch.set(holder, FaultMode.REFUSES)
    move_away(cluster, holder)
    cluster.run_for(30_000)
    assert {record.executor for record in cluster.cib.status.fencing_history} > {cluster.dc()}
    cluster.switch.repair()
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != holder, 60_000, "it is fenced")


def test_a_node_whose_device_nobody_may_use_is_not_given_up_for_a_failed_stop() -> None:
    cluster, holder = beside(seed=3)
    others = cluster.others(holder)
    cluster.configure([configurations.prefers(configurations.DEVICE, name, -1_000_000) for name in others])
    move_away(cluster, holder)
    for _ in range(300):
        cluster.run_for(100)
        assert cluster.runs_once("vip"), "it runs on"
        assert cluster.state(holder) is NodeState.ONLINE
    assert cluster.truth.active_nodes(DB) == (holder,), "what cannot be stopped is left alone"
    cluster.configure([configurations.prefers(configurations.DEVICE, others[0], 0)])
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != holder, 30_000, "it is fenced")


def test_an_instance_that_cannot_be_stopped_and_was_not_promoted_keeps_no_other_from_it() -> None:
    """Pacemaker promotes another one beside it, too (seed 521178)."""
    cluster = Cluster(seed=3).form()
    n1, n2, n3 = cluster.names
    cluster.configure([*configurations.promotable(list(cluster.names))])
    pg = cluster.cib.configuration.resources[PG]
    assert isinstance(pg, Primitive)
    cluster.configure([PutResource(replace(pg, meta=()))])  # Its failures do not expire.
    cluster.until(lambda: cluster.truth.active_nodes(promoted(PG)) == (n3,), 30_000, "it is promoted on n3")
    cluster.until_settled(60_000, "settled")
    for node in (n2, n1):
        cluster.agent_script.write(PG, "stop", UNABLE, node=node)
        cluster.configure([configurations.prefers("pgs", node, -1_000_000)])
        cluster.run_for(20_000)
        cluster.configure([configurations.prefers("pgs", node, 0)])
    assert [target for _, target, _ in cluster.switch.acted] == [n2], "its second stop that fails is no reason to fence"
    cluster.until_settled(60_000, "settled with an instance that is left alone")
    assert cluster.truth.active_nodes(promoted(PG)) == (n3,)
    cluster.power_off(n3)
    cluster.until(lambda: cluster.truth.active_nodes(promoted(PG)) == (n2,), 60_000, "n2 is promoted")


def with_lost_ticket(cluster: Cluster) -> None:
    """Have db need a ticket, whose loss is answered by fencing, and revoke that."""
    ticket = TicketConstraint(ConstraintId("db-ticket"), "rights", DB, loss_policy="fence")
    cluster.administer(SetTicket("rights", TicketChange.GRANT, "admin"))
    cluster.configure([PutConstraint(ticket)])
    cluster.run_for(3000)
    cluster.administer(SetTicket("rights", TicketChange.REVOKE, "admin"))


@pytest.mark.parametrize("mode", [FaultMode.WORKS, FaultMode.REFUSES], ids=lambda mode: mode.value)
def test_what_has_lost_its_ticket_is_stopped_where_its_node_is_fenced_in_vain(mode: FaultMode) -> None:
    cluster, holder = beside(seed=3)
    cluster.switch.set(holder, mode)
    with_lost_ticket(cluster)
    cluster.until(lambda: not cluster.truth.active_nodes(DB), 60_000, "db is stopped, or its node is")
    cluster.until(lambda: cluster.runs_once("vip"), 60_000, "the other service runs")
    cluster.until(lambda: cluster.state(holder) is NodeState.ONLINE, 60_000, "its node is back")
    cluster.until_settled(30_000, "settled")
    before = losses(cluster, holder)
    for _ in range(600):
        cluster.run_for(100)
        assert cluster.runs_once("vip"), "it runs on"
    assert losses(cluster, holder) == before
    assert [target for _, target, _ in cluster.switch.acted] == ([holder] if mode is FaultMode.WORKS else [])


def test_a_node_whose_device_nobody_may_use_stops_what_has_lost_its_ticket() -> None:
    cluster, holder = beside(seed=3)
    others = cluster.others(holder)
    cluster.configure([configurations.prefers(configurations.DEVICE, name, -1_000_000) for name in others])
    with_lost_ticket(cluster)
    cluster.until(lambda: not cluster.truth.active_nodes(DB), 10_000, "db is stopped")
    for _ in range(100):
        cluster.run_for(100)
        assert cluster.runs_once("vip"), "it runs on"
        assert cluster.state(holder) is NodeState.ONLINE
