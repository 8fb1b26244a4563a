"""One daemon: what is sent to whom, in which order, when events come in unlucky moments."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.codec import encode_cib
from haclusterd.cib.edits import PutResource
from haclusterd.machines.joining import JoinState
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.fencing import FenceAction, FenceOrder, FenceOutcome, FenceState
from haclusterd.model.graph import Plan
from haclusterd.model.ids import AgentReference, FenceKey, OrderKey, ResourceId, Term
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.records import replace
from haclusterd.ports.crashes import CrashRecord
from haclusterd.ports.store import Appended, Restored
from tests.unit.runtime.one_daemon import N1, N2, N3, START, Daemon
from tests.unit.situations import primitive

DB, WEB = ResourceId("db"), ResourceId("web")


def order(daemon: Daemon, key: str, resource: ResourceId = DB, action: ActionName = ActionName.START) -> Order:
    return Order(
        key=OrderKey(key),
        node=N1,
        incarnation=daemon.runtime.incarnation,
        dc_term=Term(1),
        resource=resource,
        action=action,
        interval_ms=0,
        agent=AgentReference("ocf", "haclusterd", "dummy"),
        parameters={},
        meta={},
        timeout_ms=20_000,
        deadline_ms=20_000,
        target_exit_code=ExitCode.NOT_RUNNING if action is ActionName.MONITOR else ExitCode.OK,
        is_probe=action is ActionName.MONITOR,
    )


def issue(daemon: Daemon, *orders: Order) -> None:
    assert daemon.put(commands.IssueOrders(Term(1), orders)).refusal is None


def begun(daemon: Daemon) -> list[str]:
    return [call.key for call in daemon.agents.calls]


def test_a_daemon_joins_runs_its_orders_and_tells_their_results() -> None:
    daemon = Daemon().form()
    assert daemon.cib.status.nodes[N1].incarnation == daemon.runtime.incarnation
    issue(daemon, order(daemon, "a"))
    daemon.clock.run()
    assert begun(daemon) == ["a"]
    daemon.agents.finish("a")
    daemon.settle()
    status = daemon.cib.status.nodes[N1]
    assert (status.orders, list(status.histories)) == ({}, [DB])


def test_an_order_that_was_voided_before_the_wake_is_not_begun_when_an_agent_ends_meanwhile() -> None:
    daemon = Daemon().form()
    issue(daemon, order(daemon, "p", action=ActionName.MONITOR), order(daemon, "a"))
    daemon.clock.run()
    assert begun(daemon) == ["p"]
    daemon.put(commands.VoidOrders(Term(1), (OrderKey("a"),)))
    daemon.agents.finish("p", ExitCode.NOT_RUNNING)
    daemon.settle()
    assert begun(daemon) == ["p"]
    assert daemon.cib.status.nodes[N1].orders == {}


def test_orders_for_a_life_that_was_lost_before_the_wake_are_not_begun() -> None:
    daemon = Daemon().form()
    issue(daemon, order(daemon, "p", action=ActionName.MONITOR), order(daemon, "a"))
    daemon.clock.run()
    daemon.put(commands.Lost(N1, daemon.runtime.incarnation, Term(1), "silent"))
    daemon.agents.finish("p", ExitCode.NOT_RUNNING)
    daemon.clock.run()
    assert "a" not in begun(daemon)


def test_results_of_a_life_that_is_over_are_repeated_no_more() -> None:
    daemon = Daemon().form()
    issue(daemon, order(daemon, "a"))
    daemon.clock.run()
    daemon.agents.finish("a")
    assert len(daemon.store.entries) == 1
    daemon.store.entries.clear()
    token = daemon.runtime.incarnation.token
    daemon.put(commands.Lost(N1, daemon.runtime.incarnation, Term(1), "silent"))
    daemon.clock.run(100)
    daemon.agents.finish(f"alone-{token}-1")
    daemon.clock.run(100)
    daemon.store.entries.clear()
    daemon.clock.run(5000)
    assert not any(isinstance(command, commands.RecordResults) for command in daemon.store.proposed())


def test_a_lost_daemon_joins_again_under_a_new_incarnation_which_its_pacer_learns() -> None:
    daemon = Daemon().form()
    first = daemon.runtime.incarnation
    daemon.put(commands.Lost(N1, first, Term(1), "silent"))
    daemon.settle()
    assert daemon.runtime.incarnation != first
    assert daemon.pacer.settings[-1].incarnation == daemon.runtime.incarnation
    assert daemon.cib.status.nodes[N1].state is NodeState.ONLINE


def test_a_lost_daemon_whose_join_takes_longer_than_a_lease_joins_all_the_same() -> None:
    daemon = Daemon().form()
    daemon.put(commands.Lost(N1, daemon.runtime.incarnation, Term(1), "silent"))
    daemon.pacer.has_lease = False
    daemon.clock.run(10 * daemon.runtime.timing.lease_ms)
    daemon.settle()
    assert daemon.cib.status.nodes[N1].state is NodeState.ONLINE
    daemon.pacer.has_lease = True
    daemon.pacer.tell()
    daemon.settle()
    issue(daemon, order(daemon, "a"))
    daemon.clock.run()
    assert begun(daemon) == ["a"]


def test_a_snapshot_is_seen_as_entries_are() -> None:
    daemon = Daemon().form()
    status = daemon.cib.status
    own = status.nodes[N1]
    with_order = replace(own, orders={OrderKey("a"): order(daemon, "a")})
    cib = replace(daemon.cib, index=500, status=replace(status, nodes={**status.nodes, N1: with_order}))
    assert encode_cib(cib)
    daemon.store.tell(Restored(500, cib))
    daemon.clock.run()
    assert begun(daemon) == ["a"]


# -- fencing ----------------------------------------------------------------------------------------------------------


def test_what_a_fence_agent_says_of_itself_is_read_before_it_is_needed() -> None:
    daemon = Daemon().form()
    for epoch, name in enumerate(("power", "backup")):
        put = PutResource(primitive(name, "stonith:fence_x"))
        daemon.put(commands.ChangeConfiguration(epoch, (put,), "a", ""))
    assert daemon.fence_agents.asked_about == ["fence_x"]


def fencing(daemon: Daemon) -> None:
    daemon.put(commands.ChangeConfiguration(0, (PutResource(primitive("power", "stonith:x")),), "a", ""))
    life = daemon.cib.status.nodes[N3].incarnation
    assert life is not None
    daemon.put(commands.Lost(N3, life, Term(1), "silent"))
    fence = FenceOrder(
        FenceKey("f"), N3, life, FenceAction.OFF, ResourceId("power"), N1, daemon.runtime.incarnation, Term(1),
        60_000, 1, WallTime(0), "",
    )  # fmt: skip
    assert daemon.put(commands.IssueFence(fence)).refusal is None
    daemon.clock.run()
    assert [call.key for call in daemon.fence_agents.calls] == ["f/1"]


def test_a_life_that_fences_does_not_end_before_its_agent_and_the_answer_is_reported_in_the_next() -> None:
    daemon = Daemon().form()
    fencing(daemon)
    first = daemon.runtime.incarnation
    daemon.put(commands.Lost(N1, first, Term(1), "silent"))
    daemon.clock.run(1000)
    assert daemon.runtime.incarnation == first
    daemon.fence_agents.finish("f/1")
    daemon.settle()
    assert daemon.runtime.incarnation != first
    assert daemon.cib.status.fence_orders[FenceKey("f")].state is FenceState.AGENT_SUCCEEDED


# -- the DC -----------------------------------------------------------------------------------------------------------


def test_a_leader_looks_at_results_before_they_are_committed_and_says_so() -> None:
    daemon = Daemon().form(leader=N1)
    issue(daemon, order(daemon, "a"))
    daemon.clock.run()
    daemon.agents.finish("a")
    daemon.clock.run()
    [entry] = daemon.store.entries
    daemon.store.tell(Appended(daemon.store.index + 1, Term(1), entry))
    assert daemon.store.considered_index == 0
    daemon.clock.run()
    assert daemon.store.considered_index == daemon.store.index + 1
    assert "a" in daemon.cib.status.nodes[N1].orders


def test_a_deposed_dc_repeats_nothing_of_its_office() -> None:
    daemon = Daemon().form(leader=N1)
    assert daemon.runtime.controller.is_dc
    daemon.pacer.heard.pop(N3)
    daemon.pacer.tell()
    daemon.clock.run(30_000)
    assert [type(command) for command in daemon.store.proposed()] == [commands.Lost]
    daemon.lead(N2, term=2)
    daemon.store.entries.clear()
    daemon.clock.run(30_000)
    assert daemon.store.entries == []


def test_a_scheduler_that_crashes_costs_nothing_but_its_plan() -> None:
    def fail(_: Cib, __: WallTime) -> Plan:
        raise ZeroDivisionError

    daemon = Daemon(fail).form(leader=N1)
    assert daemon.runtime.controller.is_dc
    assert daemon.runtime.controller.failure == "ZeroDivisionError: "


@pytest.mark.parametrize(
    ("ages_ms", "was_controller", "is_safe"),
    [
        ([1000, 2000, 3000], True, True),
        ([1000, 2000], True, False),
        ([1000, 2000, 600_000], True, False),
        ([1000, 2000, 3000], False, False),
    ],
)
def test_the_third_crash_as_controller_in_ten_minutes_leads_to_safe_mode(
    ages_ms: list[int], was_controller: bool, is_safe: bool
) -> None:
    records = [CrashRecord(Instant(START - age), 0, was_controller, "boom") for age in sorted(ages_ms, reverse=True)]
    daemon = Daemon(crashes=records).form(leader=N1)
    assert bool(daemon.runtime.safe_mode) is is_safe
    assert daemon.runtime.controller.is_dc is not is_safe


def test_safe_mode_ends_with_the_next_configuration() -> None:
    records = [CrashRecord(Instant(START - age), 0, was_controller=True, detail="boom") for age in (3, 2, 1)]
    daemon = Daemon(crashes=records).form(leader=N1)
    daemon.put(commands.ChangeConfiguration(0, (), "admin", "repaired"))
    daemon.settle()
    assert not daemon.runtime.safe_mode
    assert daemon.runtime.controller.is_dc


# -- idle and leaving -------------------------------------------------------------------------------------------------


def test_an_idle_daemon_does_little() -> None:
    daemon = Daemon().form(leader=N1)
    stamps = daemon.pacer.stamps
    calls = daemon.clock.run(60_000)
    assert calls - (daemon.pacer.stamps - stamps) < 100


def test_a_daemon_that_does_not_lead_says_so_to_its_pacer() -> None:
    daemon = Daemon().form(leader=N1)
    assert daemon.pacer.is_follower is False
    daemon.lead(None, term=2)
    assert daemon.pacer.is_follower is True


def test_a_drained_daemon_leaves() -> None:
    daemon = Daemon().form()
    daemon.runtime.drain()
    daemon.settle()
    assert daemon.runtime.joining.state is JoinState.LEFT
    assert daemon.has_left


def test_a_daemon_that_drains_without_a_leader_stops_what_it_runs_and_leaves_without_spinning() -> None:
    daemon = Daemon().form()
    issue(daemon, order(daemon, "a"))
    daemon.clock.run()
    daemon.agents.finish("a")
    daemon.settle()
    daemon.lead(None, term=2)
    daemon.runtime.drain()
    daemon.clock.run(daemon.runtime.timing.lease_ms)
    assert [call.action for call in daemon.agents.calls] == ["start", "stop"]
    assert not daemon.has_left
    assert daemon.clock.run(5000) < 200, "it waits for its stop"
    daemon.agents.finish(daemon.agents.calls[-1].key)
    daemon.clock.run()
    assert daemon.has_left


def test_a_daemon_that_was_fenced_by_mistake_stops_what_it_runs_before_it_joins_again() -> None:
    daemon = Daemon().form()
    issue(daemon, order(daemon, "a"))
    daemon.clock.run()
    daemon.agents.finish("a")
    daemon.settle()
    first = daemon.runtime.incarnation
    daemon.put(commands.Lost(N1, first, Term(1), "silent"))
    daemon.put(commands.Fenced(N1, first, None, FenceOutcome.CONFIRMED, "it is down"))
    daemon.clock.run()
    assert [call.action for call in daemon.agents.calls] == ["start", "stop"]
    assert not any(isinstance(command, commands.Join) for command in daemon.store.proposed())
    daemon.agents.finish(daemon.agents.calls[-1].key)
    daemon.settle()
    assert daemon.cib.status.nodes[N1].state is NodeState.ONLINE
    assert daemon.runtime.incarnation != first
