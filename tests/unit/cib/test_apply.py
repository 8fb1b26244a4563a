"""What the replicated state machine accepts, refuses and keeps: one test for each rule of safety.md §1, §5, §6."""

from typing import Any

import pytest

from haclusterd.cib import apply as apply_module
from haclusterd.cib import commands
from haclusterd.cib.activity import possibly_active, unfenced_holders
from haclusterd.cib.apply import REMEMBERED_REQUESTS
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.codec import decode_cib, encode_cib
from haclusterd.cib.edits import Delete, PutResource, PutSets
from haclusterd.cib.verdict import with_node
from haclusterd.model.cluster import Member, NodeState
from haclusterd.model.configuration import AttributeSet, Clone, Primitive
from haclusterd.model.devices import Device, DeviceId
from haclusterd.model.fencing import FenceOutcome, FenceState, ProofState
from haclusterd.model.ids import AgentReference, FenceKey, NodeName, OrderKey, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import LOCKS, Order, ResultKind
from haclusterd.model.records import replace
from haclusterd.model.rules import Rule
from haclusterd.model.scores import INFINITY
from haclusterd.model.watchdog import WATCHDOG
from tests.unit.situations import (
    DB,
    DUMMY,
    N1,
    N2,
    N3,
    Cluster,
    Log,
    fence_order,
    issue,
    life,
    lose,
    order,
    primitive,
    probe,
    record,
    result,
    started,
)


@pytest.fixture
def log() -> Log:
    """Three nodes online; n1 is DC in term 1."""
    return Cluster()


def test_an_order_counts_as_possibly_active_from_its_commit_until_its_result(log: Log) -> None:
    log.must(issue(order("a")))
    assert possibly_active(log.cib.status.nodes[N2]) == {DB}
    log.must(record(result("a", kind=ResultKind.NOT_BEGUN, exit_code=ExitCode.UNKNOWN)))
    assert possibly_active(log.cib.status.nodes[N2]) == frozenset()


def test_voiding_an_order_does_not_end_its_possible_activity(log: Log) -> None:
    log.must(issue(order("a")))
    log.must(commands.VoidOrders(Term(1), (OrderKey("a"),)))
    assert log.cib.status.nodes[N2].orders[OrderKey("a")].is_voided
    assert possibly_active(log.cib.status.nodes[N2]) == {DB}


def test_voiding_names_what_it_voids_once(log: Log) -> None:
    log.must(issue(order("a"), order("b"), order("c", ActionName.STOP, node=N3)))
    applied = log.must(commands.VoidOrders(Term(1), (OrderKey("a"),)))
    assert [change.kind for change in applied.changes] == [ChangeKind.ORDER_VOIDED]
    voided = [each.key for status in log.cib.status.nodes.values() for each in status.orders.values() if each.is_voided]
    assert voided == ["a"]
    again = log.must(commands.VoidOrders(Term(1), (OrderKey("a"),)))
    assert again.changes == ()


def test_a_start_leaves_what_it_ran_with_and_a_result_of_nothing_known_leaves_nothing(log: Log) -> None:
    log.must(commands.PublishDevices(N2, life(N2), (Device(DeviceId("GPU-1")),)))
    with_digest = replace(order("start"), digest="d1", devices=("GPU-1",))
    log.must(issue(with_digest))
    log.must(record(result("start")))
    history = log.cib.status.nodes[N2].histories[DB]
    assert (history.parameters, history.devices, history.records["start_0"].digest) == ({"a": "1"}, ("GPU-1",), "d1")
    log.must(issue(replace(order("m", action=ActionName.MONITOR), parameters={"a": "2"}, interval_ms=10_000)))
    log.must(record(result("m", "monitor", interval_ms=10_000, call_id=2)))
    assert log.cib.status.nodes[N2].histories[DB].parameters == {"a": "1"}
    log.must(record(result(None, "monitor", interval_ms=10_000), N3))
    assert log.cib.status.nodes[N3].histories == {}


def test_orders_of_another_term_are_refused(log: Log) -> None:
    log.term = Term(2)
    log.must(commands.DcElected(N3, life("n3"), Term(2)))
    log.must_refuse(issue(order("late")), RefusalCode.OLD_TERM)


def test_a_claim_that_outlived_its_own_raft_term_is_refused(log: Log) -> None:
    log.term = Term(3)
    log.must_refuse(commands.DcElected(N2, life("n2"), Term(2)), RefusalCode.OLD_TERM)


def test_an_order_for_an_older_incarnation_is_refused(log: Log) -> None:
    log.must(commands.Join(N2, life("n2", boot=2)))
    log.must_refuse(issue(order("old", incarnation=life("n2"))), RefusalCode.OLD_INCARNATION)


def test_a_start_is_refused_while_a_lost_node_may_hold_the_resource(log: Log) -> None:
    started(log)
    log.must(lose())
    assert unfenced_holders(log.cib, DB) == (N2,)
    log.must_refuse(issue(order("b", node=N3)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


@pytest.mark.parametrize(
    ("action", "is_probe"),
    [(ActionName.START, False), (ActionName.STOP, False), (ActionName.DEMOTE, False), (ActionName.MONITOR, True)],
)
def test_another_agent_is_not_asked_about_what_may_run(log: Log, action: ActionName, is_probe: bool) -> None:
    started(log)
    other = replace(order("b", action=action), agent=AgentReference("ocf", "haclusterd", "other"), is_probe=is_probe)
    log.must_refuse(issue(other), RefusalCode.STILL_ACTIVE)
    log.must(issue(order("s", action=ActionName.STOP)))
    log.must(record(result("s", "stop", call_id=2)))
    log.must(issue(other))


def with_definition(made: Order, definition: str) -> Order:
    return replace(made, definition=definition, parameters={"pidfile": definition})


@pytest.mark.parametrize(
    ("action", "is_probe"),
    [
        (ActionName.START, False), (ActionName.STOP, False), (ActionName.PROMOTE, False), (ActionName.DEMOTE, False),
        (ActionName.MONITOR, True), (ActionName.MONITOR, False),
    ],
)  # fmt: skip
def test_what_may_run_is_not_asked_with_other_parameters(log: Log, action: ActionName, is_probe: bool) -> None:
    log.must(issue(with_definition(order("start"), "old")))
    other = with_definition(replace(order("b", action=action), is_probe=is_probe), "new")
    log.must_refuse(issue(other), RefusalCode.STILL_ACTIVE)
    log.must(record(result("start")))
    log.must_refuse(issue(other), RefusalCode.STILL_ACTIVE)
    log.must(issue(with_definition(order("s", action=ActionName.STOP), "old")))
    log.must(record(result("s", "stop", call_id=2)))
    log.must(issue(other))


def test_what_has_ended_is_looked_for_as_it_is_configured_after_a_restart_of_the_daemon(log: Log) -> None:
    log.must(issue(with_definition(order("start"), "old")))
    log.must(record(result("start")))
    log.must(issue(with_definition(order("s", action=ActionName.STOP), "old")))
    log.must(record(result("s", "stop", call_id=2)))
    again = life("n2", token=2)
    log.must(commands.Join(N2, again))
    assert possibly_active(log.cib.status.nodes[N2]) == {DB}
    probe = replace(order("probe", action=ActionName.MONITOR, incarnation=again), is_probe=True)
    log.must(issue(with_definition(probe, "new")))
    log.must(commands.RecordResults(N2, again, (result("probe", "monitor", call_id=3),)))
    found = log.cib.status.nodes[N2].histories[DB]
    assert (found.definition, found.parameters) == ("new", {"pidfile": "new"})
    stop = order("stop", action=ActionName.STOP, incarnation=again)
    log.must_refuse(issue(with_definition(stop, "old")), RefusalCode.STILL_ACTIVE)
    log.must(issue(with_definition(stop, "new")))


def test_a_start_whose_end_is_unknown_is_what_counts(log: Log) -> None:
    log.must(issue(with_definition(order("start"), "old")))
    log.must(record(result("start")))
    log.must(issue(with_definition(order("s", action=ActionName.STOP), "old")))
    log.must(record(result("s", "stop", call_id=2)))
    log.must(issue(with_definition(order("again"), "new")))
    log.must(record(result("again", kind=ResultKind.UNKNOWN, call_id=3)))
    history = log.cib.status.nodes[N2].histories[DB]
    assert (history.definition, history.parameters) == ("new", {"pidfile": "new"})
    probe = replace(order("p", action=ActionName.MONITOR), is_probe=True)
    log.must_refuse(issue(with_definition(probe, "old")), RefusalCode.STILL_ACTIVE)
    log.must(issue(with_definition(probe, "new")))


def test_what_migrates_to_a_node_is_looked_for_as_it_runs_and_not_as_it_ran_there_long_ago(log: Log) -> None:
    log.must(issue(with_definition(order("start"), "old")))
    log.must(record(result("start")))
    log.must(issue(with_definition(order("s", action=ActionName.STOP), "old")))
    log.must(record(result("s", "stop", call_id=2)))
    log.must(issue(with_definition(order("other", node=N3), "new")))
    log.must(record(result("other"), N3))
    meta = {"migrate_source": "n3", "migrate_target": "n2"}
    log.must(issue(with_definition(replace(order("m", ActionName.MIGRATE_TO, node=N3), meta=meta), "new")))
    status = log.cib.status.nodes[N2]
    assert DB in status.unverified
    assert (status.histories[DB].definition, status.histories[DB].parameters) == ("new", {"pidfile": "new"})


def test_an_attribute_of_several_nodes_is_set_on_all_or_on_none(log: Log) -> None:
    applied = log.must(commands.SetTransientAttribute(N2, "standby", "on", others=(N3,)))
    assert [each.node for each in applied.changes] == [N2, N3]
    assert {log.cib.status.nodes[each].attributes["standby"] for each in (N2, N3)} == {"on"}
    refused = log.put(commands.SetTransientAttribute(N2, "standby", None, others=(N3, NodeName("n9"))))
    assert refused.refusal is not None
    assert refused.refusal.text == "n9 is not a member of this cluster"
    assert {log.cib.status.nodes[each].attributes["standby"] for each in (N2, N3)} == {"on"}


def test_what_is_private_once_stays_so(log: Log) -> None:
    log.must(commands.SetTransientAttribute(N2, "load", "1", is_private=True))
    log.must(commands.SetTransientAttribute(N2, "load", "2"))
    status = log.cib.status.nodes[N2]
    assert (status.attributes.get("load"), status.private_attributes) == (None, {"load": "2"})


@pytest.mark.parametrize("kind", [ResultKind.FINISHED, ResultKind.UNKNOWN])
def test_what_only_an_operation_has_is_not_kept_with_what_runs(log: Log, kind: ResultKind) -> None:
    own = {"resource_parameters": {"a": "1"}, "parameters": {"a": "2", "warm_up": "yes"}}
    log.must(issue(replace(order("start"), **own)))
    log.must(record(result("start", kind=kind)))
    assert log.cib.status.nodes[N2].histories[DB].parameters == {"a": "1"}
    log.must(issue(replace(order("r", action=ActionName.RELOAD_AGENT), **own | {"resource_parameters": {"a": "3"}})))
    log.must(record(result("r", "reload-agent", call_id=2)))
    assert log.cib.status.nodes[N2].histories[DB].parameters == {"a": "3"}


def test_after_a_reload_the_next_change_is_noticed(log: Log) -> None:
    log.must(issue(replace(with_definition(order("start"), "old"), digest="old")))
    log.must(record(replace(result("start"), restart_digest="fixed", restart_parameters=("port",))))
    log.must(issue(replace(with_definition(order("r", action=ActionName.RELOAD_AGENT), "new"), digest="new")))
    log.must(record(result("r", "reload-agent", call_id=2)))
    history = log.cib.status.nodes[N2].histories[DB]
    assert history.definition == "new"
    known = history.records["start_0"]
    assert (known.digest, known.restart_digest, known.restart_parameters) == ("new", "fixed", ("port",))


def test_a_start_is_accepted_once_the_fencing_is_recorded(log: Log) -> None:
    started(log)
    log.must(lose())
    log.must(commands.IssueFence(fence_order()))
    log.must(commands.RecordFenceAgent(FenceKey("f1"), FenceOutcome.FENCED, ""))
    log.must_refuse(issue(order("b", node=N3)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    log.must(commands.Fenced(N2, life("n2"), FenceKey("f1"), FenceOutcome.FENCED, ""))
    assert log.cib.status.nodes[N2].state is NodeState.FENCED
    assert log.cib.status.proofs["power/n2"].state is ProofState.TESTED
    log.must(issue(order("b", node=N3)))


def test_a_start_is_refused_while_an_open_order_may_start_it_on_another_node(log: Log) -> None:
    log.must(issue(order("a", node=N2)))
    log.must_refuse(issue(order("b", node=N3)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


@pytest.mark.parametrize("node", [N2, N3])
@pytest.mark.parametrize(("name", "known"), [(ResourceId("db:0"), DB), (DB, ResourceId("db:0"))])
def test_a_start_is_refused_while_the_service_may_be_active_under_its_name_in_another_clone(
    log: Log, name: ResourceId, known: ResourceId, node: NodeName
) -> None:
    log.must(issue(replace(order("a", node=N2), resource=known)))
    log.must_refuse(issue(replace(order("b", node=node), resource=name)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    log.must(issue(replace(order("c", node=N3), resource=ResourceId("db2"))))


def test_instances_of_one_unique_clone_start_beside_each_other(log: Log) -> None:
    log.must(issue(replace(order("a", node=N2), resource=ResourceId("db:0"))))
    log.must(issue(replace(order("b", node=N3), resource=ResourceId("db:1"))))


def test_a_batch_with_one_bad_order_changes_nothing(log: Log) -> None:
    log.must_refuse(
        issue(order("a", node=N2), order("b", node=N3, incarnation=life("n3", token=9))), RefusalCode.OLD_INCARNATION
    )


def test_a_fence_recorded_for_an_older_incarnation_counts_for_that_one_only(log: Log) -> None:
    log.must(lose())
    log.must(commands.Join(N2, life("n2", boot=2)))
    log.must(commands.Fenced(N2, life("n2"), None, FenceOutcome.CONFIRMED, "by hand"))
    assert log.cib.status.nodes[N2].state is NodeState.ONLINE


def test_a_join_is_held_while_fencing_is_in_flight(log: Log) -> None:
    log.must(lose())
    log.must(commands.IssueFence(fence_order()))
    log.must_refuse(commands.Join(N2, life("n2", boot=2)), RefusalCode.HELD_FENCING_IN_FLIGHT)
    log.must(commands.RecordFenceAgent(FenceKey("f1"), FenceOutcome.FENCED, ""))
    log.must(commands.Fenced(N2, life("n2"), FenceKey("f1"), FenceOutcome.FENCED, ""))
    log.must(commands.Join(N2, life("n2", boot=2)))


@pytest.mark.parametrize("node", [None, N2])
def test_forgetting_the_fencings_lets_no_boot_join_that_a_device_was_recorded_to_have_ended(
    log: Log, node: NodeName | None
) -> None:
    log.must(lose())
    log.must(commands.IssueFence(fence_order()))
    log.must(commands.RecordFenceAgent(FenceKey("f1"), FenceOutcome.FENCED, ""))
    log.must(commands.Fenced(N2, life("n2"), FenceKey("f1"), FenceOutcome.FENCED, ""))
    log.must(commands.ForgetFencings(node, "admin"))
    log.must_refuse(commands.Join(N2, life("n2", token=2)), RefusalCode.HELD_FENCING_IN_FLIGHT)
    log.must(commands.Join(N2, life("n2", boot=2)))
    log.must(commands.ForgetFencings(node, "admin"))
    assert log.cib.status.fencing_history == ()


@pytest.mark.parametrize("is_tried_again", [False, True])
def test_a_boot_that_a_device_was_recorded_to_have_ended_does_not_join_because_it_took_too_long(
    log: Log, *, is_tried_again: bool
) -> None:
    """Its next incarnation is heard, and lost by node-pending-timeout; what it runs is in no record."""
    log.must(lose())
    log.must(commands.IssueFence(fence_order()))
    log.must(commands.RecordFenceAgent(FenceKey("f1"), FenceOutcome.FENCED, ""))
    log.must(commands.Fenced(N2, life("n2"), FenceKey("f1"), FenceOutcome.FENCED, ""))
    log.must(commands.Lost(N2, life("n2"), Term(1), "it is heard and does not join", is_pending=True))
    if is_tried_again:
        log.must(commands.IssueFence(replace(fence_order(), key=FenceKey("f2"))))
        log.must(commands.RecordFenceAgent(FenceKey("f2"), FenceOutcome.FAILED, "no answer"))
    log.must_refuse(commands.Join(N2, life("n2", token=2)), RefusalCode.HELD_FENCING_IN_FLIGHT)
    log.must(commands.Join(N2, life("n2", boot=2)))


def test_an_incarnation_that_was_declared_lost_cannot_come_back(log: Log) -> None:
    log.must(lose())
    log.must_refuse(commands.Join(N2, life("n2")), RefusalCode.OLD_INCARNATION)
    log.must(commands.Join(N2, life("n2", token=2)))


def test_a_node_that_a_person_wants_fenced_cannot_evade_it_by_rejoining(log: Log) -> None:
    log.must(commands.RequestFence(N2, life("n2"), "admin", "broken"))
    log.must_refuse(commands.Join(N2, life("n2", token=2)), RefusalCode.HELD_FENCING_IN_FLIGHT)


def test_where_nobody_is_left_to_fence_it_a_node_that_is_to_be_fenced_joins(log: Log) -> None:
    """Otherwise each would wait for another, and nothing would ever run again."""
    for name in (N1, N2, N3):
        log.must(commands.RequestFence(name, life(str(name)), "admin", "all of them"))
    log.must(commands.Join(N2, life("n2", token=2)))
    assert log.cib.status.nodes[N2].state is NodeState.ONLINE
    assert not log.cib.status.nodes[N2].is_fence_requested
    log.must_refuse(commands.Join(N3, life("n3", token=2)), RefusalCode.HELD_FENCING_IN_FLIGHT)


def test_a_reboot_clears_what_ran(log: Log) -> None:
    started(log)
    log.must(commands.SetTransientAttribute(N2, "x", "1"))
    log.must(commands.Join(N2, life("n2", boot=2)))
    status = log.cib.status.nodes[N2]
    assert (status.histories, status.attributes, status.orders, status.unverified) == ({}, {}, {}, frozenset())


def test_a_daemons_restart_in_the_same_boot_leaves_everything_in_doubt(log: Log) -> None:
    started(log)
    log.must(issue(order("m", action=ActionName.MONITOR, interval_ms=10_000)))
    log.must(record(result("m", "monitor", interval_ms=10_000, call_id=2)))
    log.must(commands.Join(N2, life("n2", token=2)))
    status = log.cib.status.nodes[N2]
    assert status.unverified == {DB}
    assert set(status.histories[DB].records) == {"start_0"}, "its recurring monitors died with the daemon"
    assert possibly_active(status) == {DB}


def test_an_order_in_flight_at_a_restart_leaves_its_resource_in_doubt(log: Log) -> None:
    log.must(issue(order("a")))
    log.must(commands.Join(N2, life("n2", token=2)))
    status = log.cib.status.nodes[N2]
    assert [(key, each.is_voided) for key, each in status.orders.items()] == [("a", True)]
    assert status.histories[DB].parameters == {"a": "1"}
    assert possibly_active(status) == {DB}


def test_a_probe_settles_a_doubt(log: Log) -> None:
    started(log)
    log.must(commands.Join(N2, life("n2", token=2)))
    probe = replace(
        order("p", action=ActionName.MONITOR, incarnation=life("n2", token=2), target=ExitCode.NOT_RUNNING),
        is_probe=True,
    )
    log.must(issue(probe))
    answer = result("p", "monitor", ExitCode.NOT_RUNNING, target=ExitCode.NOT_RUNNING, call_id=3)
    log.must(commands.RecordResults(N2, life("n2", token=2), (answer,)))
    status = log.cib.status.nodes[N2]
    assert (status.unverified, status.probed, status.histories) == (frozenset(), {DB}, {})


def test_an_unknown_outcome_is_a_doubt(log: Log) -> None:
    log.must(issue(order("a")))
    log.must(record(result("a", kind=ResultKind.UNKNOWN, exit_code=ExitCode.UNKNOWN)))
    assert log.cib.status.nodes[N2].unverified == {DB}


def test_results_of_an_older_incarnation_are_refused(log: Log) -> None:
    log.must(issue(order("a")))
    log.must(commands.Join(N2, life("n2", token=2)))
    log.must_refuse(record(result("a")), RefusalCode.OLD_INCARNATION)


def test_orders_of_a_lost_node_stay_possibly_active_until_its_fencing(log: Log) -> None:
    log.must(issue(order("a")))
    log.must(lose())
    assert possibly_active(log.cib.status.nodes[N2]) == {DB}
    log.must(commands.Fenced(N2, life("n2"), None, FenceOutcome.CONFIRMED, "by hand"))
    assert possibly_active(log.cib.status.nodes[N2]) == frozenset()


@pytest.mark.parametrize(
    ("operation", "exit_code", "count"),
    [("start", ExitCode.ERROR, INFINITY), ("stop", ExitCode.ERROR, INFINITY), ("monitor", ExitCode.NOT_RUNNING, 1)],
)
def test_failures_are_counted(log: Log, operation: str, exit_code: ExitCode, count: int) -> None:
    started(log)
    interval_ms = 10_000 if operation == "monitor" else 0
    log.must(issue(order("x", action=ActionName(operation), interval_ms=interval_ms)))
    log.must(record(result("x", operation, exit_code, interval_ms=interval_ms, call_id=2)))
    counts = log.cib.status.nodes[N2].histories[DB].fail_counts
    assert [item.count for item in counts.values()] == [count]


def test_a_failure_counts_from_when_it_was_known(log: Log) -> None:
    """An action may take longer than `failure-timeout`; Pacemaker's `last-failure-...` is of the end, too."""
    log.must(issue(order("a")))
    failed = replace(result("a", exit_code=ExitCode.ERROR), run_at=WallTime(5000), executed_ms=60_000)
    log.must(record(failed))
    history = log.cib.status.nodes[N2].histories[DB]
    assert [item.failed_at for item in history.fail_counts.values()] == [65_000]
    assert history.records["start_0"].changed_at == 5000


def test_clean_up_forgets_failures_and_asks_for_a_probe(log: Log) -> None:
    log.must(issue(order("a")))
    log.must(record(result("a", exit_code=ExitCode.ERROR)))
    log.must(commands.CleanUp(DB, None))
    status = log.cib.status.nodes[N2]
    assert status.histories[DB].fail_counts == {}
    assert status.unverified == {DB}


@pytest.mark.parametrize("code", [ExitCode.ARGUMENTS, ExitCode.NOT_INSTALLED, ExitCode.NOT_CONFIGURED])
@pytest.mark.parametrize("is_stop_tried", [False, True])
def test_what_failed_to_start_counts_as_active_after_a_clean_up_until_a_probe_could_look(
    log: Log, code: ExitCode, is_stop_tried: bool
) -> None:
    log.must(issue(order("a")))
    log.must(record(result("a", exit_code=ExitCode.ERROR)))
    if is_stop_tried:
        log.must(issue(order("s", action=ActionName.STOP)))
        log.must(record(result("s", "stop", ExitCode.ERROR, call_id=2)))
    log.must(commands.CleanUp(DB, None))
    log.must(issue(order("p", action=ActionName.MONITOR)))
    log.must(record(result("p", "monitor", code, call_id=3)))
    assert possibly_active(log.cib.status.nodes[N2]) == {DB}
    log.must_refuse(issue(order("b", node=N3)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    log.must(commands.CleanUp(DB, None))
    log.must(issue(order("q", action=ActionName.MONITOR)))
    log.must(record(result("q", "monitor", ExitCode.NOT_RUNNING, call_id=4)))
    log.must(issue(order("c", node=N3)))


def test_what_a_recurring_monitor_found_counts_as_active_after_a_restart_until_a_probe_could_look(log: Log) -> None:
    """A monitor for the role Stopped has found what another program started."""
    log.must(issue(order("p", action=ActionName.MONITOR)))
    log.must(record(result("p", "monitor", ExitCode.NOT_RUNNING)))
    log.must(issue(order("s", action=ActionName.STOP)))
    log.must(record(result("s", "stop", call_id=2)))
    log.must(issue(order("m", action=ActionName.MONITOR, interval_ms=11_000)))
    log.must(record(result("m", "monitor", ExitCode.OK, interval_ms=11_000, call_id=3)))
    assert possibly_active(log.cib.status.nodes[N2]) == {DB}
    log.must(commands.Join(N2, life("n2", token=2)))
    again = life("n2", token=2)
    log.must(issue(order("q", action=ActionName.MONITOR, incarnation=again)))
    answer = result("q", "monitor", ExitCode.NOT_INSTALLED, call_id=4)
    log.must(commands.RecordResults(N2, again, (answer,)))
    log.must_refuse(issue(order("b", node=N3)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_what_only_a_probe_has_found_counts_as_active_however_often_others_could_not_look_since(log: Log) -> None:
    log.must(issue(probe("found")))
    log.must(record(result("found", "monitor", ExitCode.OK, target=ExitCode.NOT_RUNNING)))
    for token in (2, 3):
        again = life("n2", token=token)
        log.must(commands.Join(N2, again))
        log.must(issue(replace(probe(f"p{token}"), incarnation=again)))
        answer = result(f"p{token}", "monitor", ExitCode.NOT_INSTALLED, target=ExitCode.NOT_RUNNING, call_id=token)
        log.must(commands.RecordResults(N2, again, (answer,)))
    log.must_refuse(issue(order("b", node=N3)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_a_recurring_monitor_that_cannot_look_is_a_failure_and_no_missing_answer(log: Log) -> None:
    """The program of what runs is gone: it is not watched any more, and has to be recovered."""
    started(log)
    log.must(issue(order("m", action=ActionName.MONITOR, interval_ms=10_000)))
    log.must(record(result("m", "monitor", interval_ms=10_000, call_id=2)))
    log.must(record(result(None, "monitor", ExitCode.NOT_INSTALLED, interval_ms=10_000, call_id=2)))
    assert log.cib.status.nodes[N2].histories[DB].records["monitor_10000"].exit_code is ExitCode.NOT_INSTALLED


def test_what_was_stopped_for_a_shutdown_is_kept_for_its_node_until_it_has_started_there(log: Log) -> None:
    started(log)
    ordered_at = WallTime(86_400_000)
    log.must(issue(replace(order("s", action=ActionName.STOP), meta={LOCKS: "true"}, issued_at=ordered_at)))
    log.must(record(result("s", "stop", call_id=2)))
    assert log.cib.status.nodes[N2].locks == {DB: ordered_at}, "by the clock of the DC, which judges when it ends"
    log.must(issue(order("again")))
    log.must(record(result("again", call_id=3)))
    assert log.cib.status.nodes[N2].locks == {}


def test_what_is_stopped_for_another_reason_is_kept_for_no_node(log: Log) -> None:
    started(log)
    log.must(issue(order("s", action=ActionName.STOP)))
    log.must(record(result("s", "stop", call_id=2)))
    assert log.cib.status.nodes[N2].locks == {}


def test_a_restart_is_over_when_what_it_stops_has_stopped_everywhere(log: Log) -> None:
    log.must(commands.ChangeConfiguration(log.cib.version.epoch, (PutResource(primitive("db")),), "a", ""))
    started(log)
    log.must(commands.RestartResource(DB, 60_000, "root", "new certificate"))
    log.must(issue(order("s", action=ActionName.STOP)))
    assert set(log.cib.status.restarts) == {DB}
    applied = log.must(record(result("s", "stop", call_id=2)))
    assert log.cib.status.restarts == {}
    assert ChangeKind.RESTART_ENDED in [change.kind for change in applied.changes]


def test_a_node_leaves_only_when_nothing_may_be_active_there(log: Log) -> None:
    started(log)
    log.must(commands.RequestLeave(N2, life("n2")))
    log.must_refuse(commands.Leaving(N2, life("n2")), RefusalCode.STILL_ACTIVE)
    log.must(issue(order("s", action=ActionName.STOP)))
    log.must(record(result("s", "stop", call_id=2)))
    log.must(commands.Leaving(N2, life("n2")))
    assert log.cib.status.nodes[N2].state is NodeState.LEFT


FENCE = AgentReference("stonith", None, "fence_ipmilan")


def test_a_node_leaves_with_a_fence_device_and_not_with_a_service_that_has_taken_its_name(log: Log) -> None:
    """The start of the service was committed behind the request to leave, before the node was found empty."""
    log.must(issue(replace(order("a"), agent=FENCE)))
    log.must(record(result("a")))
    log.must(issue(replace(order("s", ActionName.STOP), agent=FENCE)))
    log.must(record(result("s", "stop", call_id=2)))
    log.must(commands.RequestLeave(N2, life("n2")))
    log.must(issue(order("b")))
    log.must_refuse(commands.Leaving(N2, life("n2")), RefusalCode.STILL_ACTIVE)
    log.must(record(result("b", kind=ResultKind.NOT_BEGUN, exit_code=ExitCode.UNKNOWN)))
    log.must(issue(replace(order("c"), agent=FENCE)))
    log.must(record(result("c", call_id=3)))
    log.must(commands.Leaving(N2, life("n2")))
    assert log.cib.status.nodes[N2].state is NodeState.LEFT


def test_a_node_that_leaves_with_thousands_unmanaged_delays_no_loop(log: Log) -> None:
    """Names are not compared each with each: with 20,000 of them every daemon's loop would stand still for seconds."""

    class Name(str):
        __slots__ = ()
        compared = 0

        def __eq__(self, other: object) -> bool:
            Name.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    started(log)
    status = log.cib.status.nodes[N2]
    names = [ResourceId(f"r{number}") for number in range(1_000)]
    histories = dict.fromkeys((DB, *names), status.histories[DB])
    log.cib = with_node(log.cib, replace(status, histories=histories))
    log.must(commands.Leaving(N2, life("n2"), tuple(ResourceId(Name(each)) for each in (DB, *names))))
    assert len(possibly_active(log.cib.status.nodes[N2])) == 1_001
    assert Name.compared < 10_000


def test_a_node_that_leaves_with_something_unmanaged_running_counts_as_holding_it(log: Log) -> None:
    started(log)
    log.must_refuse(commands.Leaving(N2, life("n2"), (ResourceId("web"),)), RefusalCode.STILL_ACTIVE)
    log.must(commands.Leaving(N2, life("n2"), (DB,)))
    status = log.cib.status.nodes[N2]
    assert (status.state, status.has_detached, status.watchdog) == (NodeState.LOST, True, None)
    assert possibly_active(status) == {DB}
    log.must(commands.Join(N2, life("n2", token=2)))
    back = log.cib.status.nodes[N2]
    assert (back.state, back.has_detached, back.unverified) == (NodeState.ONLINE, False, {DB})


def test_a_person_may_have_a_node_fenced_that_left_with_something_running(log: Log) -> None:
    started(log)
    log.must(commands.Leaving(N2, life("n2"), (DB,)))
    log.must(commands.RequestFence(N2, life("n2"), "admin"))
    status = log.cib.status.nodes[N2]
    assert (status.state, status.has_detached, status.is_fence_requested) == (NodeState.LOST, False, True)


def test_a_lying_device_is_marked_and_nothing_is_recovered(log: Log) -> None:
    started(log)
    log.must(lose())
    log.must(commands.IssueFence(fence_order()))
    log.must(commands.RecordFenceAgent(FenceKey("f1"), FenceOutcome.FENCED, ""))
    assert log.cib.status.fence_orders[FenceKey("f1")].state is FenceState.AGENT_SUCCEEDED
    log.must(commands.RecordFenceFailure(FenceKey("f1"), FenceOutcome.LIED, "n3 heard n2 afterwards"))
    assert log.cib.status.proofs["power/n2"].state is ProofState.LIED
    assert log.cib.status.nodes[N2].state is NodeState.LOST


def abandoned(log: Log) -> None:
    """n3 fences n2, and is lost before it answers; n1 fences n2 again."""
    log.must(lose())
    log.must(commands.IssueFence(replace(fence_order(), executor=N3, executor_incarnation=life("n3"))))
    log.must(lose(N3))
    log.must(commands.RecordFenceFailure(FenceKey("f1"), FenceOutcome.UNKNOWN, "n3 is gone"))
    log.must(commands.IssueFence(replace(fence_order(), key=FenceKey("f2"))))
    log.must(commands.RecordFenceAgent(FenceKey("f2"), FenceOutcome.FENCED, ""))
    log.must(commands.Fenced(N2, life("n2"), FenceKey("f2"), FenceOutcome.FENCED, ""))
    log.must_refuse(commands.Join(N2, life("n2", boot=2)), RefusalCode.HELD_FENCING_IN_FLIGHT)


def test_a_join_is_held_while_the_fence_agent_of_a_lost_node_may_be_at_work(log: Log) -> None:
    abandoned(log)
    held = log.put(commands.Join(N2, life("n2", boot=2))).refusal
    assert held is not None
    assert "n3 was lost while it fenced it" in held.text
    log.must(commands.EndAbandonedFencing(FenceKey("f1")))
    log.must(commands.Join(N2, life("n2", boot=2)))
    log.must_refuse(commands.EndAbandonedFencing(FenceKey("f1")), RefusalCode.UNKNOWN_KEY)


@pytest.mark.parametrize("boot", [1, 2])
def test_a_fence_agent_has_ended_when_its_daemon_is_back(log: Log, boot: int) -> None:
    abandoned(log)
    log.must(commands.Join(N3, life("n3", boot=boot, token=2)))
    log.must(commands.Join(N2, life("n2", boot=2)))


def test_a_fence_agent_has_ended_when_its_node_was_fenced(log: Log) -> None:
    abandoned(log)
    log.must(commands.Fenced(N3, life("n3"), None, FenceOutcome.CONFIRMED, "a person says so"))
    log.must(commands.Join(N2, life("n2", boot=2)))


def test_a_watchdog_may_have_left_a_node_alone_that_ran_nothing_but_a_fence_agent(log: Log) -> None:
    abandoned(log)
    by_watchdog = replace(fence_order(N3), key=FenceKey("w"), device=WATCHDOG)
    log.must(commands.IssueFence(by_watchdog))
    log.must(commands.Fenced(N3, life("n3"), FenceKey("w"), FenceOutcome.FENCED, ""))
    log.must_refuse(commands.Join(N2, life("n2", boot=2)), RefusalCode.HELD_FENCING_IN_FLIGHT)


def test_the_fence_agent_of_a_daemon_that_began_again_is_dead(log: Log) -> None:
    log.must(lose())
    log.must(commands.IssueFence(replace(fence_order(), executor=N3, executor_incarnation=life("n3"))))
    log.must(commands.Join(N3, life("n3", token=2)))
    log.must(commands.RecordFenceFailure(FenceKey("f1"), FenceOutcome.UNKNOWN, "n3 is gone"))
    log.must(commands.Join(N2, life("n2", boot=2)))


def test_a_repeated_request_has_one_effect(log: Log) -> None:
    log.put(commands.SetTransientAttribute(N2, "x", "1"), request="same")
    log.must(commands.SetTransientAttribute(N2, "x", "2"))
    again = log.put(commands.SetTransientAttribute(N2, "x", "1"), request="same")
    assert again.is_repetition
    assert log.cib.status.nodes[N2].attributes == {"x": "2"}


def test_a_repeated_request_is_refused_as_it_was_although_it_would_be_accepted_now(log: Log) -> None:
    """Its proposer may have been brought past the first answer by a snapshot: no answer may turn into a success."""
    first = log.put(commands.SetTransientAttribute(NodeName("n9"), "x", "1"), request="same")
    assert first.refusal is not None
    log.cib = decode_cib(encode_cib(log.cib))
    again = log.put(commands.SetTransientAttribute(N2, "x", "1"), request="same")
    assert (again.is_repetition, again.refusal) == (True, first.refusal)
    assert log.cib.status.nodes[N2].attributes == {}


def test_refused_requests_are_remembered_as_long_as_others(log: Log) -> None:
    refused = commands.SetTransientAttribute(NodeName("n9"), "x", "1")
    for number in range(3 * REMEMBERED_REQUESTS):
        log.put(refused, request=f"q{number}")
    assert [each.request for each in log.cib.refused["n1"]] == list(log.cib.requests["n1"])
    for number in range(REMEMBERED_REQUESTS):
        log.must(commands.SetTransientAttribute(N2, "x", str(number)))
    assert log.cib.refused == {}


def test_remembered_requests_are_bounded(log: Log) -> None:
    for number in range(3 * REMEMBERED_REQUESTS):
        log.must(commands.SetTransientAttribute(N2, "x", str(number)))
    assert len(log.cib.requests["n1"]) == REMEMBERED_REQUESTS


def test_a_configuration_made_against_an_older_version_is_refused(log: Log) -> None:
    log.must(commands.ChangeConfiguration(0, (), "admin", "first"))
    log.must_refuse(commands.ChangeConfiguration(0, (), "admin", "late"), RefusalCode.CONFIGURATION_CONFLICT)


def test_a_raising_apply_is_the_same_refusal_everywhere(log: Log) -> None:
    poison = commands.IssueFence(None)
    log.must_refuse(poison, RefusalCode.INTERNAL_ERROR)


@pytest.mark.parametrize("trouble", [MemoryError, RecursionError, OSError, SystemError])
def test_what_only_this_node_may_meet_is_no_refusal(
    log: Log, monkeypatch: pytest.MonkeyPatch, trouble: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise trouble

    monkeypatch.setitem(apply_module._HANDLERS, commands.ReadBarrier, fail)
    before = log.cib
    with pytest.raises(RuntimeError, match=f"was not applied: {trouble.__name__} on this node"):
        log.put(commands.ReadBarrier())
    assert log.cib == before


# -- two copies -------------------------------------------------------------------------------------------------------


def test_one_batch_cannot_start_a_resource_in_two_places(log: Log) -> None:
    log.must_refuse(issue(order("a", node=N2), order("b", node=N3)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_a_start_is_refused_while_it_is_active_or_in_doubt_on_another_node(log: Log) -> None:
    started(log)
    log.must_refuse(issue(order("b", node=N3)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    log.must(issue(order("s", action=ActionName.STOP)))
    log.must(record(result("s", "stop", call_id=2)))
    log.must(commands.Join(N2, life("n2", token=2)))
    log.must_refuse(issue(order("b", node=N3)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_defaults_limit_how_many_copies_there_may_be(log: Log) -> None:
    primitive = Primitive(DB, DUMMY)
    defaults = AttributeSet("d", (("clone-max", "1"),))
    edits = (
        PutResource(primitive),
        PutResource(Clone(ResourceId("dbs"), DB)),
        PutSets("resource_defaults", (defaults,)),
    )
    log.must(commands.ChangeConfiguration(0, edits, "admin", ""))
    started(log)
    log.must_refuse(issue(order("b", node=N3)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_where_fencing_is_disabled_a_start_that_died_with_its_node_holds_up_nothing(log: Log) -> None:
    disabled = AttributeSet("p", (("fencing-enabled", "false"),))
    log.must(commands.ChangeConfiguration(0, (PutSets("properties", (disabled,)),), "admin", ""))
    log.must(issue(order("a", node=N2)))
    log.must_refuse(issue(order("b", node=N3)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    log.must(lose())
    log.must(issue(order("b", node=N3)))


def test_a_lost_node_is_not_believed_that_it_stopped_something(log: Log) -> None:
    started(log)
    log.must(issue(order("s", action=ActionName.STOP)))
    log.must(lose())
    log.must_refuse(record(result("s", "stop", call_id=2)), RefusalCode.WRONG_NODE_STATE)
    assert unfenced_holders(log.cib, DB) == (N2,)


# -- results out of order ---------------------------------------------------------------------------------------------


def test_an_older_answer_of_a_monitor_does_not_hide_a_newer_one(log: Log) -> None:
    started(log)
    log.must(issue(order("m", action=ActionName.MONITOR, interval_ms=10_000)))
    log.must(record(result("m", "monitor", interval_ms=10_000, call_id=3)))
    log.must(record(result(None, "monitor", ExitCode.NOT_RUNNING, interval_ms=10_000, call_id=2)))
    history = log.cib.status.nodes[N2].histories[DB]
    assert history.records["monitor_10000"].exit_code is ExitCode.OK
    assert history.fail_counts == {}


def test_a_stop_that_is_reported_late_does_not_hide_a_later_start(log: Log) -> None:
    started(log)
    log.must(issue(order("s", action=ActionName.STOP), order("b")))
    log.must(record(result("b", call_id=3)))
    log.must(record(result("s", "stop", call_id=2)))
    status = log.cib.status.nodes[N2]
    assert (possibly_active(status), status.orders) == ({DB}, {})


# -- who may say what -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        commands.Lost(N2, life("n2"), Term(1), "silent"),
        commands.VoidOrders(Term(1), (OrderKey("a"),)),
        commands.IssueFence(fence_order()),
        commands.IssueOrders(Term(1), ()),
    ],
    ids=lambda command: type(command).__name__,
)
def test_an_older_dc_is_not_heard(log: Log, command: commands.Command) -> None:
    log.term = Term(2)
    log.must(commands.DcElected(N3, life("n3"), Term(2)))
    log.must_refuse(command, RefusalCode.OLD_TERM)


def test_a_dc_of_an_older_term_is_not_elected(log: Log) -> None:
    log.must_refuse(commands.DcElected(N2, life("n2"), Term(1)), RefusalCode.OLD_TERM)


def test_a_life_that_is_over_is_not_lost_again(log: Log) -> None:
    log.must(commands.Join(N2, life("n2", token=2)))
    log.must_refuse(lose(), RefusalCode.OLD_INCARNATION)


@pytest.mark.parametrize("state", ["lost", "left"])
def test_only_who_is_there_or_was_never_seen_can_be_lost(log: Log, state: str) -> None:
    log.must(lose() if state == "lost" else commands.Leaving(N2, life("n2")))
    log.must_refuse(lose(), RefusalCode.WRONG_NODE_STATE)


def test_a_fenced_node_that_is_heard_is_lost_again_and_a_persons_wish_is_not_enough(log: Log) -> None:
    log.must(lose())
    log.must(commands.Fenced(N2, life("n2"), None, FenceOutcome.CONFIRMED, "down"))
    log.must_refuse(commands.RequestFence(N2, life("n2"), "admin"), RefusalCode.WRONG_NODE_STATE)
    log.must(lose())
    status = log.cib.status.nodes[N2]
    assert (status.state, status.fenced_incarnation) == (NodeState.LOST, None)


def test_nothing_but_a_successful_agent_about_that_very_life_ends_a_fence_order(log: Log) -> None:
    log.must(lose())
    log.must(commands.IssueFence(fence_order()))
    fenced = commands.Fenced(N2, life("n2"), FenceKey("f1"), FenceOutcome.FENCED, "")
    log.must_refuse(fenced, RefusalCode.UNKNOWN_KEY)
    log.must(commands.RecordFenceAgent(FenceKey("f1"), FenceOutcome.FENCED, ""))
    log.must_refuse(replace(fenced, node=N3, incarnation=life("n3")), RefusalCode.UNKNOWN_KEY)
    log.must_refuse(replace(fenced, incarnation=life("n2", token=9)), RefusalCode.UNKNOWN_KEY)
    assert log.cib.status.nodes[N2].state is NodeState.LOST
    log.must(fenced)


def test_a_node_does_not_join_in_the_boot_that_a_device_was_recorded_to_have_ended(log: Log) -> None:
    log.must(lose())
    log.must(commands.IssueFence(fence_order()))
    log.must(commands.RecordFenceAgent(FenceKey("f1"), FenceOutcome.FENCED, ""))
    log.must(commands.Fenced(N2, life("n2"), FenceKey("f1"), FenceOutcome.FENCED, ""))
    again = commands.Join(N2, life("n2", token=7))
    log.must_refuse(again, RefusalCode.HELD_FENCING_IN_FLIGHT)
    log.must(lose())
    log.must_refuse(again, RefusalCode.HELD_FENCING_IN_FLIGHT)
    log.must(commands.Join(N2, life("n2", boot=2)))


def test_a_node_that_a_person_took_for_dead_by_mistake_may_join_and_is_probed(log: Log) -> None:
    log.must(lose())
    log.must(commands.Fenced(N2, life("n2"), None, FenceOutcome.CONFIRMED, "down"))
    log.must(commands.Join(N2, life("n2", token=7)))
    assert not log.cib.status.nodes[N2].probed


def test_a_member_that_never_joined_is_fenced_as_such(log: Log) -> None:
    made = Log()
    made.must(commands.FormCluster("uuid", "test", (Member(N1, ()), Member(N2, ()))))
    made.must(commands.DcElected(N1, life("n1"), Term(1)))
    made.must(commands.Join(N1, life("n1")))
    made.must(commands.Lost(N2, None, Term(1), "not seen"))
    made.must(commands.IssueFence(replace(fence_order(), target_incarnation=None)))
    made.must(commands.RecordFenceAgent(FenceKey("f1"), FenceOutcome.FENCED, ""))
    made.must(commands.Fenced(N2, None, FenceKey("f1"), FenceOutcome.FENCED, ""))
    assert made.cib.status.nodes[N2].state is NodeState.FENCED


def test_a_node_that_is_no_member_does_not_join(log: Log) -> None:
    log.must_refuse(commands.Join(NodeName("n9"), life("n9")), RefusalCode.NOT_A_MEMBER)


def test_a_cluster_is_formed_once(log: Log) -> None:
    log.must_refuse(commands.FormCluster("other", "other", ()), RefusalCode.ALREADY_FORMED)


def test_a_node_is_fenced_by_one_order_at_a_time(log: Log) -> None:
    log.must(lose())
    log.must(commands.IssueFence(fence_order()))
    log.must_refuse(
        commands.IssueFence(replace(fence_order(), key=FenceKey("f2"))), RefusalCode.FENCING_IN_FLIGHT
    )


def test_only_a_lost_life_is_fenced(log: Log) -> None:
    log.must_refuse(commands.IssueFence(fence_order()), RefusalCode.OLD_INCARNATION)


@pytest.mark.parametrize(
    "command",
    [
        commands.RecordFenceAgent(FenceKey("f9"), FenceOutcome.FENCED, ""),
        commands.RecordFenceFailure(FenceKey("f9"), FenceOutcome.UNKNOWN, ""),
        commands.Fenced(N2, life("n2"), FenceKey("f9"), FenceOutcome.FENCED, ""),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_fence_order_that_is_not_open_has_no_end(log: Log, command: commands.Command) -> None:
    log.must(lose())
    log.must_refuse(command, RefusalCode.UNKNOWN_KEY)


def test_an_order_key_is_used_once_at_a_time(log: Log) -> None:
    log.must(issue(order("a")))
    log.must_refuse(issue(order("a")), RefusalCode.DUPLICATE_KEY)


@pytest.mark.parametrize("state", ["lost", "left"])
def test_orders_go_to_nodes_that_are_there(log: Log, state: str) -> None:
    log.must(lose() if state == "lost" else commands.Leaving(N2, life("n2")))
    log.must_refuse(issue(order("a", action=ActionName.STOP)), RefusalCode.WRONG_NODE_STATE)


def test_what_was_not_begun_leaves_no_trace(log: Log) -> None:
    log.must(issue(order("a")))
    log.must(record(result("a", kind=ResultKind.NOT_BEGUN, exit_code=ExitCode.UNKNOWN)))
    status = log.cib.status.nodes[N2]
    assert (status.histories, status.orders) == ({}, {})


def test_a_join_of_the_life_that_is_there_changes_nothing(log: Log) -> None:
    started(log)
    before = log.cib.status
    log.must(commands.Join(N2, life("n2")))
    assert log.cib.status == before


def renamed(**changes: Any) -> tuple[Cluster, Order]:
    """Return a cluster in which `db` is being started on n2, and is called `shop` by now; and an order to start it."""
    cluster = Cluster()
    cluster.configure(PutResource(primitive("db")))
    cluster.issue(replace(order("1.2.1"), definition="of both"))
    cluster.configure(Delete("resource", "db"), PutResource(primitive("shop")))
    again = replace(order("b", node=N1, resource=ResourceId("shop")), definition="of both")
    return cluster, replace(again, **changes)


def test_what_was_renamed_starts_when_it_has_stopped_under_its_old_name() -> None:
    cluster, again = renamed()
    cluster.must_refuse(issue(again), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    cluster.must(record(result("1.2.1")))
    cluster.must_refuse(issue(again), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    cluster.lose(N2)
    cluster.must_refuse(issue(again), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    cluster.must(commands.Fenced(N2, life(N2), None, FenceOutcome.CONFIRMED, "a person"))
    cluster.must(issue(again))


@pytest.mark.parametrize(
    "changes", [{"definition": "another"}, {"parameters": {}}, {"agent": AgentReference("ocf", "haclusterd", "other")}]
)
def test_what_only_resembles_a_removed_resource_does_not_wait_for_it(changes: dict[str, object]) -> None:
    cluster, again = renamed(**changes)
    cluster.must(issue(again))


def test_a_unit_is_the_same_service_under_whatever_name_and_without_parameters() -> None:
    unit = AgentReference("systemd", None, "web")
    cluster = Cluster()
    cluster.configure(PutResource(primitive("shop")))
    cluster.issue(replace(order("a"), definition="none", parameters={}, agent=unit))
    again = replace(order("b", node=N1, resource=ResourceId("shop")), definition="none", parameters={}, agent=unit)
    cluster.must_refuse(issue(again), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_what_runs_under_its_own_name_already_is_another_service_than_a_removed_one() -> None:
    """Both were configured to run the same when the later one started. What has stopped since says nothing."""
    cluster = Cluster()
    clone = Clone(ResourceId("shops"), ResourceId("shop"))
    cluster.configure(*(PutResource(same(name)) for name in ("db", "shop")), PutResource(clone))
    shop = replace(order("1", node=N3, resource=ResourceId("shop")), definition="of both")
    cluster.issue(replace(order("2"), definition="of both"))
    cluster.must(record(result("2")))
    cluster.issue(shop)
    cluster.must(record(replace(result("1"), resource=shop.resource), N3))
    cluster.configure(Delete("resource", "db"))
    again = replace(shop, key=OrderKey("3"), node=N1, incarnation=life(N1))
    before = cluster.cib
    cluster.must(issue(again))
    cluster.cib = before
    cluster.issue(replace(shop, key=OrderKey("4"), action=ActionName.STOP))
    cluster.must(record(replace(result("4", "stop", call_id=2), resource=shop.resource), N3))
    cluster.must_refuse(issue(again), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def same(name: str, value: str = "1") -> Primitive:
    return primitive(name, parameters={"a": value})


def by(value: str, given: Order) -> Order:
    """Return an order that goes by that value of the parameter."""
    return replace(given, parameters={"a": value}, definition=f"digest of {value}")


LEFT, RIGHT = ResourceId("left"), ResourceId("right")


def exchanged() -> Cluster:
    """Return a cluster in which `right` is being started on n2 as what `left` is configured to run by now."""
    cluster = Cluster()
    cluster.configure(PutResource(same("left", "2")), PutResource(same("right", "1")))
    cluster.issue(by("1", order("a", resource=RIGHT)))
    cluster.void("a")
    cluster.configure(PutResource(same("left", "1")), PutResource(same("right", "2")))
    return cluster


def of_right(kind: ResultKind = ResultKind.FINISHED, exit_code: ExitCode = ExitCode.OK) -> commands.RecordResults:
    return record(replace(result("a", kind=kind, exit_code=exit_code), resource=RIGHT))


@pytest.mark.parametrize("node", [N1, N2])
@pytest.mark.parametrize("action", [ActionName.START, ActionName.MIGRATE_FROM, ActionName.RELOAD_AGENT])
def test_what_one_of_two_configured_runs_does_not_begin_under_the_name_of_the_other(
    action: ActionName, node: NodeName
) -> None:
    cluster = exchanged()
    again = issue(by("1", order("b", action, node=node, resource=LEFT)))
    cluster.must_refuse(again, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    before = cluster.cib
    cluster.must(issue(by("2", order("c", action, node=node, resource=LEFT))))
    cluster.cib = before
    cluster.must(of_right(ResultKind.NOT_BEGUN, ExitCode.UNKNOWN))
    cluster.must(again)


@pytest.mark.parametrize("kind", [ResultKind.FINISHED, ResultKind.UNKNOWN])
def test_it_begins_when_that_has_stopped_or_is_fenced(kind: ResultKind) -> None:
    cluster = exchanged()
    again = issue(by("1", order("b", node=N1, resource=LEFT)))
    cluster.must(of_right(kind, ExitCode.OK if kind is ResultKind.FINISHED else ExitCode.UNKNOWN))
    cluster.must_refuse(again, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    before = cluster.cib
    cluster.issue(by("1", order("s", ActionName.STOP, resource=RIGHT)))
    cluster.must_refuse(again, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    cluster.must(record(replace(result("s", "stop", call_id=2), resource=RIGHT)))
    cluster.must(again)
    cluster.cib = before
    cluster.lose(N2)
    cluster.must_refuse(again, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    cluster.must(commands.Fenced(N2, life(N2), None, FenceOutcome.CONFIRMED, "a person"))
    cluster.must(again)


def test_it_begins_neither_after_the_daemon_has_started_again_nor_after_a_clean_up() -> None:
    cluster = exchanged()
    again = issue(by("1", order("b", node=N1, resource=LEFT)))
    cluster.must(commands.Join(N2, life(N2, token=2)))
    cluster.must_refuse(again, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    answer = replace(result("a", kind=ResultKind.UNKNOWN, exit_code=ExitCode.UNKNOWN), resource=RIGHT)
    cluster.must(commands.RecordResults(N2, life(N2, token=2), (answer,)))
    cluster.must_refuse(again, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    cluster.must(commands.CleanUp(RIGHT, None, reprobe=True))
    cluster.must_refuse(again, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_what_may_have_been_reloaded_into_it_holds_it_back() -> None:
    cluster = Cluster()
    cluster.configure(PutResource(same("left", "1")), PutResource(same("right", "2")))
    cluster.issue(by("2", order("a", resource=RIGHT)))
    cluster.must(of_right())
    cluster.configure(PutResource(same("left", "2")), PutResource(same("right", "1")))
    cluster.issue(by("1", order("r", ActionName.RELOAD_AGENT, resource=RIGHT)))
    cluster.configure(PutResource(same("left", "1")), PutResource(same("right", "2")))
    again = issue(by("1", order("b", node=N1, resource=LEFT)))
    cluster.must_refuse(again, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    answer = replace(result("r", "reload-agent", call_id=2, exit_code=ExitCode.ERROR), resource=RIGHT)
    cluster.must(record(answer))
    cluster.must_refuse(again, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_two_that_are_configured_alike_are_two_services() -> None:
    """Also where a block under a rule may give one of them that value; by an order of before it is not so."""
    cluster = exchanged()
    again = issue(by("1", order("b", node=N1, resource=LEFT)))
    attributes = (*same("right", "2").parameters, AttributeSet("night", (("a", "1"),), 5, Rule("r")))
    cluster.configure(PutResource(replace(same("right"), parameters=attributes)))
    before = cluster.cib
    cluster.must(again)
    cluster.cib = before
    cluster.configure(PutResource(same("left", "3")))
    cluster.must_refuse(again, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_what_runs_as_another_service_under_the_own_name_proves_nothing() -> None:
    cluster = Cluster()
    cluster.configure(PutResource(same("left", "2")), PutResource(same("right", "1")))
    cluster.issue(by("2", order("l", node=N1, resource=LEFT)), by("1", order("a", resource=RIGHT)))
    cluster.must(record(replace(result("l"), resource=LEFT), N1))
    cluster.configure(PutResource(same("left", "1")), PutResource(same("right", "2")))
    reload = issue(by("1", order("b", ActionName.RELOAD_AGENT, node=N1, resource=LEFT)))
    cluster.must_refuse(reload, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_what_contains_a_resource_gives_it_parameters() -> None:
    cluster = exchanged()
    again = issue(by("1", order("b", node=N1, resource=LEFT)))
    cluster.configure(
        PutResource(primitive("right")),
        PutResource(Clone(ResourceId("rights"), RIGHT, parameters=same("rights").parameters)),
    )
    cluster.must(again)


@pytest.mark.parametrize("unit", ["systemd:web", "service:web", "lsb:web", "systemd:web.service"])
def test_a_unit_is_the_same_in_all_classes_of_units(unit: str) -> None:
    cluster = Cluster()
    cluster.configure(PutResource(primitive("shop")))
    web = AgentReference("systemd", None, "web")
    cluster.issue(replace(order("a"), definition="none", parameters={}, agent=web))
    other = AgentReference.parse(unit)
    again = replace(order("b", node=N1, resource=ResourceId("shop")), definition="none", parameters={}, agent=other)
    cluster.must_refuse(issue(again), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


@pytest.mark.parametrize("code", [ExitCode.OK, ExitCode.NOT_RUNNING])
def test_what_was_only_looked_for_under_a_name_has_not_run_under_it(code: ExitCode) -> None:
    cluster, again = renamed()
    probe = replace(order("1.3.0", ActionName.MONITOR, node=N3, resource=ResourceId("shop")), is_probe=True)
    cluster.issue(probe)
    cluster.must(record(replace(result("1.3.0", "monitor", code), resource=ResourceId("shop")), N3))
    cluster.must_refuse(issue(again), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
