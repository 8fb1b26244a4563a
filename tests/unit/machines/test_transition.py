"""How a graph is walked: what is issued when, what ends the walk, what holds it up."""

from collections.abc import Sequence

import pytest

from haclusterd.cib import commands
from haclusterd.cib.changes import Change, ChangeKind
from haclusterd.cib.codec import encode_envelope
from haclusterd.cib.commands import Envelope
from haclusterd.cib.edits import PutConstraint, PutResource, PutSets
from haclusterd.machines.effects import Effect, Note
from haclusterd.machines.transitions.admission import MONITORS_WAIT_MS
from haclusterd.machines.transitions.order_commands import order_key
from haclusterd.machines.transitions.transition import TransitionMachine, TransitionState
from haclusterd.model.configuration import AttributeSet, Colocation, Group
from haclusterd.model.devices import Device, DeviceId
from haclusterd.model.graph import ActionKind, GraphAction, TransitionGraph
from haclusterd.model.ids import ConstraintId, NodeName, OrderKey, RequestId, ResourceId
from haclusterd.model.instants import NEVER, WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order, ResultKind
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY
from haclusterd.ports.store import MAX_ENTRY_BYTES
from tests.unit.machines.planned import act
from tests.unit.situations import (
    DB,
    N1,
    N2,
    N3,
    TERM,
    WEB,
    Cluster,
    commands_of,
    life,
    moment,
    order,
    primitive,
    without_lease,
)


def pseudo(number: int, after: Sequence[int]) -> GraphAction:
    return GraphAction(number, ActionKind.PSEUDO, "all_stopped", None, None, tuple(after))


def fence(number: int, node: NodeName) -> GraphAction:
    return GraphAction(number, ActionKind.FENCE, "reboot", None, node, reason="db failed to stop")


class Walk:
    """A transition of n1 in term 1, and the executors' answers."""

    def __init__(self, *actions: GraphAction, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster()
        graph = TransitionGraph({action.id: action for action in actions})
        self.machine = TransitionMachine(N1, TERM, 7, graph, self.cluster.cib)
        self.issued: list[str] = []
        self.voided: list[OrderKey] = []
        self.call_id = 0

    def step(self, *changes: Change, at_lease: bool = True) -> Sequence[Effect]:
        """Step once and commit what is proposed."""
        now = moment(1000) if at_lease else without_lease(1000)
        return self.take(self.machine.step(self.cluster.cib, changes, now))

    def take(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        for command in commands_of(effects):
            applied = self.cluster.put(command)
            if isinstance(command, commands.IssueOrders):
                if applied.refusal is not None:
                    self.machine.refused(self.cluster.cib, applied.refusal.text)
                else:
                    self.machine.committed(each.key for each in command.orders)
                    self.issued += [f"{each.resource}_{each.action} on {each.node}" for each in command.orders]
            elif isinstance(command, commands.VoidOrders):
                self.voided += command.keys
        return effects

    def open_order(self, resource: ResourceId = DB) -> Order:
        [found] = [
            each
            for status in self.cluster.cib.status.nodes.values()
            for each in status.orders.values()
            if each.resource == resource
        ]
        return found

    def answer(
        self, resource: ResourceId = DB, exit_code: ExitCode | None = None, kind: ResultKind = ResultKind.FINISHED
    ) -> Sequence[Effect]:
        """Let the executor answer the open order of a resource; then step."""
        applied = self.cluster.must(self.result(resource, exit_code, kind))
        return self.step(*applied.changes)

    def result(
        self, resource: ResourceId = DB, exit_code: ExitCode | None = None, kind: ResultKind = ResultKind.FINISHED
    ) -> commands.RecordResults:
        """Return what the executor would say of the open order of a resource."""
        wanted = self.open_order(resource)
        code = wanted.target_exit_code if exit_code is None else exit_code
        self.call_id += 1
        is_expected = code is wanted.target_exit_code
        result = OperationResult(
            kind=kind,
            order=wanted.key,
            resource=resource,
            operation=str(wanted.action),
            interval_ms=wanted.interval_ms,
            exit_code=code,
            status=ExecutionStatus.DONE if is_expected else ExecutionStatus.ERROR,
            call_id=self.call_id,
            run_at=WallTime(0),
            target_exit_code=wanted.target_exit_code,
        )
        return commands.RecordResults(wanted.node, wanted.incarnation, (result,))

    def speculate(self, command: commands.RecordResults) -> list[commands.Command]:
        """Show results that stand in the log; return what is proposed then, and is not committed yet."""
        self.machine.speculate(self.cluster.cib, command)
        return commands_of(self.machine.step(self.cluster.cib, (), moment(1000)))


MOVE = (
    act(1, ActionName.STOP, node=N2),
    act(2, ActionName.START, node=N3, after=[1]),
    act(3, ActionName.MONITOR, node=N3, after=[2]),
)


def moving() -> Walk:
    """db runs on n2 and is to run on n3."""
    cluster = Cluster()
    cluster.issue(order("was", node=N2))
    walk = Walk(*MOVE, cluster=cluster)
    started = OperationResult(
        ResultKind.FINISHED, OrderKey("was"), DB, "start", 0, ExitCode.OK, ExecutionStatus.DONE, 1, WallTime(0)
    )
    cluster.must(commands.RecordResults(N2, life(N2), (started,)))
    walk.call_id = 1
    walk.step()
    return walk


def test_an_action_is_issued_when_all_before_it_have_succeeded() -> None:
    walk = moving()
    assert walk.issued == ["db_stop on n2"]
    walk.answer()
    assert walk.issued == ["db_stop on n2", "db_start on n3"]
    walk.answer()
    assert walk.issued[2:] == ["db_monitor on n3"]
    walk.answer()
    assert walk.machine.state is TransitionState.DONE
    assert walk.machine.progress() == (3, 3)


def test_an_order_is_issued_once() -> None:
    walk = moving()
    for _ in range(3):
        walk.step()
    assert walk.issued == ["db_stop on n2"]


def test_orders_name_the_incarnation_and_the_term() -> None:
    walk = moving()
    issued = walk.open_order()
    assert (issued.incarnation, issued.dc_term, issued.transition) == (life(N2), TERM, 7)


def test_a_pseudo_action_is_done_when_its_inputs_are() -> None:
    walk = Walk(act(1, ActionName.STOP), pseudo(2, [1]), pseudo(3, [2]), act(4, ActionName.START, after=[3]))
    walk.step()
    walk.answer()
    assert walk.issued == ["db_stop on n2", "db_start on n2"]


@pytest.mark.parametrize(
    ("exit_code", "kind"),
    [(ExitCode.ERROR, ResultKind.FINISHED), (None, ResultKind.NOT_BEGUN), (None, ResultKind.UNKNOWN)],
)
def test_an_end_that_was_not_expected_ends_the_walk(exit_code: ExitCode | None, kind: ResultKind) -> None:
    walk = moving()
    walk.answer(exit_code=exit_code, kind=kind)
    assert walk.machine.state is TransitionState.ABORTED
    assert walk.issued == ["db_stop on n2"]


def test_a_probe_that_finds_something_running_ends_the_walk() -> None:
    walk = Walk(act(1, ActionName.MONITOR, is_probe=True), act(2, ActionName.START, node=N3, after=[1]))
    walk.step()
    walk.answer(exit_code=ExitCode.OK)
    assert walk.machine.state is TransitionState.ABORTED


def test_a_probe_that_finds_nothing_lets_the_start_go_on() -> None:
    walk = Walk(act(1, ActionName.MONITOR, is_probe=True), act(2, ActionName.START, node=N3, after=[1]))
    walk.step()
    walk.answer()
    assert walk.issued == ["db_monitor on n2", "db_start on n3"]


def test_a_probe_that_no_longer_finds_what_was_recorded_ends_the_walk() -> None:
    asking = replace(act(1, ActionName.MONITOR, is_probe=True), target_exit_code=ExitCode.OK)
    walk = Walk(asking, act(2, ActionName.MIGRATE_TO, after=[1]))
    walk.step()
    walk.answer(exit_code=ExitCode.NOT_RUNNING)
    assert walk.machine.state is TransitionState.ABORTED
    assert walk.issued == ["db_monitor on n2"]


def test_a_change_of_the_world_ends_the_walk_and_voids_what_may_not_have_begun() -> None:
    walk = Walk(act(1, ActionName.START), act(2, ActionName.STOP, WEB))
    walk.step()
    started = walk.open_order().key
    applied = walk.cluster.must(commands.Join(N3, life(N3, token=2)))
    walk.step(*applied.changes)
    assert walk.machine.state is TransitionState.ABORTED
    assert walk.voided == [started], "stops are not voided: they harm nobody"
    assert walk.step() == ()


@pytest.mark.parametrize("node", [N2, N3])
def test_a_node_that_joined_again_ends_the_walk_though_its_order_is_closed(node: NodeName) -> None:
    walk = moving()
    applied = walk.cluster.must(commands.Join(node, life(node, token=2)))
    walk.step(*applied.changes)
    assert walk.machine.state is TransitionState.ABORTED
    assert walk.issued == ["db_stop on n2"]


def test_an_order_that_another_hand_voided_ends_the_walk() -> None:
    walk = Walk(act(1, ActionName.START))
    walk.step()
    walk.cluster.void(walk.open_order().key)
    walk.step()
    assert walk.machine.state is TransitionState.ABORTED


def test_a_refused_batch_ends_the_walk() -> None:
    walk = Walk(act(1, ActionName.START), act(2, ActionName.START, WEB, after=[1]))
    walk.machine.step(walk.cluster.cib, (), moment(1000))
    effects = walk.machine.refused(walk.cluster.cib, "db is being started on n3")
    assert walk.machine.state is TransitionState.ABORTED
    (note,) = (each.text for each in effects if isinstance(each, Note))
    assert note.endswith(": db is being started on n3")


# -- what stands in the log already ----------------------------------------------------------------------------------


def test_a_success_in_the_log_lets_the_next_order_out_before_it_is_applied() -> None:
    walk = moving()
    stopped = walk.result()
    [start] = walk.speculate(stopped)
    assert isinstance(start, commands.IssueOrders)
    assert [(each.action, each.node) for each in start.orders] == [(ActionName.START, N3)]
    assert walk.speculate(stopped) == [], "a result may come twice"
    applied = walk.cluster.must(stopped)
    walk.cluster.must(start)
    walk.step(*applied.changes)
    walk.answer()
    assert walk.issued == ["db_stop on n2", "db_monitor on n3"]


def test_an_order_that_rests_on_a_result_is_refused_without_it() -> None:
    walk = moving()
    [start] = walk.speculate(walk.result())
    refusal = walk.cluster.put(start).refusal
    assert refusal is not None
    assert "may be active on n2" in refusal.text


def test_a_walk_has_not_ended_before_all_its_results_are_applied() -> None:
    walk = Walk(act(1, ActionName.START))
    walk.step()
    started = walk.result()
    walk.speculate(started)
    assert walk.machine.state is TransitionState.RUNNING
    walk.step(*walk.cluster.must(started).changes)
    assert walk.machine.state is TransitionState.DONE


@pytest.mark.parametrize(
    ("exit_code", "kind"),
    [(ExitCode.ERROR, ResultKind.FINISHED), (None, ResultKind.NOT_BEGUN), (None, ResultKind.UNKNOWN)],
)
def test_speculation_is_on_success_only(exit_code: ExitCode | None, kind: ResultKind) -> None:
    walk = moving()
    assert walk.speculate(walk.result(DB, exit_code, kind)) == []
    assert walk.machine.state is TransitionState.RUNNING


def test_a_probe_is_waited_for_whatever_it_finds() -> None:
    walk = Walk(act(1, ActionName.MONITOR, is_probe=True), act(2, ActionName.START, node=N3, after=[1]))
    walk.step()
    assert walk.speculate(walk.result()) == []


def test_there_is_no_speculation_on_results_of_another_life_or_of_an_unwanted_order() -> None:
    walk = moving()
    stopped = walk.result()
    assert walk.speculate(replace(stopped, incarnation=life(N2, token=2))) == []
    assert walk.speculate(replace(stopped, node=NodeName("unknown"))) == []
    walk.cluster.void(walk.open_order().key)
    walk.machine.speculate(walk.cluster.cib, stopped)
    assert not any(isinstance(each, commands.IssueOrders) for each in commands_of(walk.step()))


def test_a_speculation_that_does_not_come_true_ends_the_walk() -> None:
    walk = moving()
    walk.speculate(walk.result())
    walk.answer(exit_code=ExitCode.ERROR)
    assert walk.machine.state is TransitionState.ABORTED


# -- what holds it up -------------------------------------------------------------------------------------------------


def test_what_an_older_walk_still_does_holds_up_what_is_bound_to_it_and_nothing_else() -> None:
    cluster = Cluster()
    for name in ("db", "web", "other"):
        cluster.configure(PutResource(primitive(name)))
    cluster.configure(PutResource(Group(ResourceId("g"), (DB, WEB))))
    cluster.issue(order("older", ActionName.STOP, node=N3))
    walk = Walk(
        act(1, ActionName.START, WEB), act(2, ActionName.START, ResourceId("other")), cluster=cluster
    )
    walk.step()
    assert walk.issued == ["other_start on n2"]
    stopped = OperationResult(
        ResultKind.FINISHED, OrderKey("older"), DB, "stop", 0, ExitCode.OK, ExecutionStatus.DONE, 1, WallTime(0)
    )
    applied = cluster.must(commands.RecordResults(N3, life(N3), (stopped,)))
    walk.step(*applied.changes)
    assert walk.issued == ["other_start on n2", "web_start on n2"]


def test_nothing_starts_that_a_lost_node_may_hold_whatever_the_plan_says() -> None:
    cluster = Cluster()
    cluster.issue(order("was", node=N2))
    cluster.lose(N2)
    walk = Walk(act(1, ActionName.START, node=N3), cluster=cluster)
    walk.step()
    assert walk.issued == []
    assert walk.machine.state is TransitionState.RUNNING


def recurring(number: int, node: NodeName = N2, name: ActionName = ActionName.MONITOR) -> GraphAction:
    return replace(act(number, name, DB, node), interval_ms=10_000)


def test_a_monitor_lets_a_start_on_its_node_go_first() -> None:
    walk = Walk(recurring(1), act(2, ActionName.START, WEB), recurring(3, node=N3))
    walk.step()
    assert walk.issued == ["web_start on n2", "db_monitor on n3"]
    walk.answer(WEB)
    assert walk.issued[2:] == ["db_monitor on n2"]
    assert walk.machine.deadline() == NEVER


def test_a_monitor_waits_for_a_long_start_only_a_moment() -> None:
    walk = Walk(recurring(1), act(2, ActionName.START, WEB))
    walk.step()
    due = walk.machine.deadline()
    assert due == moment(1000).now + MONITORS_WAIT_MS
    walk.take(walk.machine.step(walk.cluster.cib, (), moment(due - 1)))
    assert walk.issued == ["web_start on n2"]
    walk.take(walk.machine.step(walk.cluster.cib, (), moment(due)))
    assert walk.issued == ["web_start on n2", "db_monitor on n2"]
    assert walk.machine.deadline() == NEVER


@pytest.mark.parametrize("action", [ActionName.START, ActionName.STOP, ActionName.PROMOTE])
def test_an_action_with_a_start_delay_is_ordered_when_that_is_over(action: ActionName) -> None:
    walk = Walk(replace(act(1, action), start_delay_ms=8000), act(2, ActionName.START, WEB))
    walk.step()
    assert walk.issued == ["web_start on n2"]
    due = walk.machine.deadline()
    assert due == moment(1000).now + 8000
    walk.take(walk.machine.step(walk.cluster.cib, (), moment(due - 1)))
    assert walk.issued == ["web_start on n2"]
    walk.take(walk.machine.step(walk.cluster.cib, (), moment(due)))
    assert walk.issued == ["web_start on n2", f"db_{action} on n2"]


def test_a_monitor_is_cancelled_at_once() -> None:
    walk = Walk(recurring(1, name=ActionName.CANCEL), act(2, ActionName.START, WEB))
    walk.step()
    assert walk.issued == ["db_cancel on n2", "web_start on n2"]


def test_no_more_orders_are_open_than_the_batch_limit() -> None:
    cluster = Cluster()
    cluster.configure(PutSets("properties", (AttributeSet("p", (("batch-limit", "1"),)),)))
    walk = Walk(act(1, ActionName.START), act(2, ActionName.START, WEB), cluster=cluster)
    walk.step()
    assert walk.issued == ["db_start on n2"]
    walk.answer()
    assert walk.issued == ["db_start on n2", "web_start on n2"]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, ["db_migrate_to on n2", "web_migrate_to on n2", "ip_start on n2"]),
        ({"migration-limit": "1"}, ["db_migrate_to on n2", "ip_start on n2"]),
        ({"migration-limit": "0"}, ["db_migrate_to on n2", "ip_start on n2"]),
        ({"node-action-limit": "1"}, ["db_migrate_to on n2"]),
        ({"node-action-limit": "2"}, ["db_migrate_to on n2", "web_migrate_to on n2"]),
    ],
)
def test_a_node_does_no_more_at_once_than_it_may(limits: dict[str, str], expected: list[str]) -> None:
    cluster = Cluster()
    cluster.configure(PutSets("properties", (AttributeSet("p", tuple(limits.items())),)))
    moves = act(1, ActionName.MIGRATE_TO), act(2, ActionName.MIGRATE_TO, WEB)
    walk = Walk(*moves, act(3, ActionName.START, ResourceId("ip")), cluster=cluster)
    effects = walk.machine.step(cluster.cib, (), moment(1000))
    orders = [order for each in commands_of(effects) if isinstance(each, commands.IssueOrders) for order in each.orders]
    assert [f"{each.resource}_{each.action} on {each.node}" for each in orders] == expected


@pytest.mark.parametrize(
    ("actions_max", "expected"), [(1, ["db_start on n2"]), (0, ["db_start on n2", "web_start on n2"])]
)
def test_a_busy_node_does_no_more_at_once_than_its_load_leaves_it(actions_max: int, expected: list[str]) -> None:
    cluster = Cluster()
    cluster.must(commands.PublishLoad(N2, life(N2), actions_max))
    walk = Walk(act(1, ActionName.START), act(2, ActionName.START, WEB), cluster=cluster)
    walk.step()
    assert walk.issued == expected


# -- fencing ----------------------------------------------------------------------------------------------------------


def test_a_node_that_must_be_fenced_is_first_declared_lost() -> None:
    walk = Walk(fence(1, N2), act(2, ActionName.START, node=N3, after=[1]))
    effects = walk.step()
    [command] = commands_of(effects)
    assert isinstance(command, commands.Lost)
    assert (command.node, command.incarnation, command.dc_term) == (N2, life(N2), TERM)
    assert walk.issued == []


def test_a_dc_without_a_lease_declares_nobody_lost() -> None:
    walk = Walk(fence(1, N2))
    assert commands_of(walk.step(at_lease=False)) == []
    assert len(commands_of(walk.step())) == 1


def test_a_node_that_is_lost_already_is_left_to_the_director() -> None:
    walk = Walk(fence(1, N2))
    walk.cluster.lose(N2)
    assert commands_of(walk.step()) == []


def test_clusters_that_follow_each_other_give_no_order_the_same_key() -> None:
    one, other = "5f3c1e0a-0000-4000-8000-00003ba9c101", "9d120c44-0000-4000-8000-0000f00d5511"
    assert order_key(one, TERM, 1, 7) == f"{TERM}.1.7-3ba9c101"
    assert len({order_key(uuid, TERM, 1, number) for uuid in (one, other) for number in (7, 17)}) == 4


@pytest.mark.parametrize("kind", [ChangeKind.AVAILABILITY_CHANGED, ChangeKind.ALERT_TESTED])
def test_a_walk_goes_on_whatever_is_said_to_people(kind: ChangeKind) -> None:
    walk = Walk(act(1, ActionName.START, DB), act(2, ActionName.START, WEB, after=[1]))
    walk.step()
    applied = walk.cluster.must(walk.result())
    walk.step(*applied.changes, Change(kind, None, DB, "db is up"))
    assert walk.issued == ["db_start on n2", "web_start on n2"]
    assert walk.machine.state is TransitionState.RUNNING


# -- notifications of an aborted walk --------------------------------------------------------------------------------


def notify(number: int, occasion: str, node: NodeName, after: Sequence[int]) -> GraphAction:
    return replace(act(number, ActionName.NOTIFY, DB, node, after), notification=occasion)


PROMOTION = (
    notify(1, "pre-promote", N3, []),
    act(2, ActionName.PROMOTE, after=[1]),
    pseudo(3, [2]),
    notify(4, "post-promote", N2, [3]),
    notify(5, "post-promote", N3, [3]),
    pseudo(6, [4, 5]),
    act(7, ActionName.START, WEB, after=[6]),
    act(8, ActionName.START, ResourceId("other"), N3, after=[2]),
)
PROMOTED = ["db_notify on n3", "db_promote on n2"]
NOTIFIED = [*PROMOTED, "db_notify on n2", "db_notify on n3"]


def promoting() -> Walk:
    """An instance is being promoted on n2; both were notified before, and are to be afterwards."""
    walk = Walk(*PROMOTION)
    walk.step()
    walk.answer()
    assert walk.issued == PROMOTED
    return walk


def write(walk: Walk) -> Sequence[Change]:
    """Let an agent write an attribute."""
    return walk.cluster.must(commands.SetTransientAttribute(N3, "db-status", "HS:sync")).changes


def test_instances_are_notified_of_what_was_under_way_when_the_walk_was_aborted_and_nothing_else_follows() -> None:
    walk = promoting()
    walk.step(*write(walk))
    assert walk.machine.state is TransitionState.CLOSING
    walk.answer()
    assert walk.issued == NOTIFIED
    assert walk.machine.state is TransitionState.ABORTED


def test_instances_are_notified_when_what_was_under_way_succeeds_together_with_the_change_that_aborts() -> None:
    walk = promoting()
    applied = walk.cluster.must(walk.result())
    walk.step(*applied.changes, *write(walk))
    assert walk.issued == NOTIFIED
    assert walk.machine.state is TransitionState.ABORTED


def test_instances_are_notified_of_what_had_begun_when_its_order_was_voided() -> None:
    walk = promoting()
    walk.step(*write(walk))
    assert walk.voided == [walk.open_order().key]
    walk.step()
    assert walk.machine.state is TransitionState.CLOSING
    walk.answer()
    assert walk.issued == NOTIFIED


@pytest.mark.parametrize(
    ("exit_code", "kind"), [(ExitCode.ERROR, ResultKind.FINISHED), (None, ResultKind.NOT_BEGUN)]
)
def test_instances_are_not_notified_of_what_failed_or_never_began(exit_code: ExitCode | None, kind: ResultKind) -> None:
    walk = promoting()
    walk.step(*write(walk))
    walk.answer(exit_code=exit_code, kind=kind)
    assert walk.issued == PROMOTED
    assert walk.machine.state is TransitionState.ABORTED


def test_an_aborted_walk_does_not_wait_for_what_a_lost_node_was_doing() -> None:
    walk = promoting()
    walk.step(*walk.cluster.must(commands.Lost(N2, life(N2), TERM, "silent")).changes)
    assert walk.issued == PROMOTED
    assert walk.machine.state is TransitionState.ABORTED


def test_a_lost_node_is_not_notified_and_the_others_are() -> None:
    walk = promoting()
    walk.step(*walk.cluster.must(commands.Lost(N3, life(N3), TERM, "silent")).changes)
    assert walk.machine.state is TransitionState.CLOSING
    walk.answer()
    assert walk.issued == [*PROMOTED, "db_notify on n2"]
    assert walk.machine.state is TransitionState.ABORTED


def test_an_aborted_walk_does_not_wait_for_orders_that_were_refused() -> None:
    walk = promoting()
    walk.step(*write(walk))
    walk.machine.dropped([walk.open_order().key])
    walk.step()
    assert walk.machine.state is TransitionState.ABORTED


def test_a_walk_that_is_aborted_before_what_was_announced_begins_notifies_of_nothing() -> None:
    walk = Walk(*PROMOTION)
    walk.step()
    walk.step(*write(walk))
    assert walk.machine.state is TransitionState.ABORTED
    walk.answer()
    assert walk.issued == ["db_notify on n3"]


def claiming(number: int, resource: ResourceId, node: NodeName, after: Sequence[int] = ()) -> GraphAction:
    return replace(act(number, ActionName.START, resource, node, after), devices=(f"GPU-{resource}",))


CACHE = ResourceId("cache")


def three_that_claim() -> Walk:
    """Return a walk in which three starts wait for their devices, and cache has to run beside db."""
    cluster = Cluster()
    together = Colocation(ConstraintId("cache-with-db"), INFINITY, CACHE, DB)
    cluster.configure(PutResource(primitive(CACHE)), PutConstraint(together))
    for node in (N1, N2):
        devices = tuple(Device(DeviceId(f"GPU-{each}")) for each in (DB, WEB, CACHE))
        cluster.must(commands.PublishDevices(node, life(node), devices, "", ""))
    walk = Walk(claiming(1, DB, N2), claiming(2, WEB, N1), claiming(3, CACHE, N2), cluster=cluster)
    walk.step()
    return walk


def resources_of(walk: Walk, keys: Sequence[OrderKey]) -> set[str]:
    statuses = walk.cluster.cib.status.nodes.values()
    return {each.resource for status in statuses for key, each in status.orders.items() if key in keys}


def test_a_start_whose_device_is_not_free_voids_only_what_is_bound_to_it() -> None:
    walk = three_that_claim()
    walk.answer(kind=ResultKind.NOT_BEGUN)
    assert walk.machine.state is not TransitionState.RUNNING
    assert resources_of(walk, walk.voided) == {CACHE}


def test_a_start_without_devices_that_was_not_begun_voids_all() -> None:
    """Its node has lost its lease, say: that may concern everything."""
    cluster = Cluster()
    cluster.configure(PutResource(primitive(DB)), PutResource(primitive(WEB)))
    walk = Walk(act(1, ActionName.START, DB, N2), act(2, ActionName.START, WEB, N1), cluster=cluster)
    walk.step()
    walk.answer(kind=ResultKind.NOT_BEGUN)
    assert walk.machine.state is not TransitionState.RUNNING
    assert resources_of(walk, walk.voided) == {WEB}


def test_devices_of_a_node_that_change_void_what_claims_any_there() -> None:
    walk = three_that_claim()
    walk.step(Change(ChangeKind.DEVICES_CHANGED, N1, None, "devices of n1: GPU-web is drain"))
    assert walk.machine.state is not TransitionState.RUNNING
    assert resources_of(walk, walk.voided) == {WEB}


def test_what_was_left_open_is_voided_by_the_next_walk_that_goes_wrong() -> None:
    walk = three_that_claim()
    walk.answer(kind=ResultKind.NOT_BEGUN)
    later = Walk(cluster=walk.cluster)
    later.step(Change(ChangeKind.CONFIGURATION_CHANGED, None, None, "another configuration"))
    assert resources_of(later, later.voided) == {WEB}


def test_a_start_that_was_not_begun_for_another_reason_voids_all() -> None:
    walk = three_that_claim()
    applied = walk.cluster.must(walk.result(kind=ResultKind.NOT_BEGUN))
    walk.step(*applied.changes, Change(ChangeKind.CONFIGURATION_CHANGED, None, None, "another configuration"))
    assert resources_of(walk, walk.voided) == {CACHE, WEB}


GANG = {"gang_size": "2"}


def gang_start(number: int, resource: str, node: NodeName, after: Sequence[int] = ()) -> GraphAction:
    return replace(act(number, ActionName.START, ResourceId(resource), node, after), meta=GANG)


def limit(walk: Walk, name: str, value: str) -> None:
    walk.cluster.configure(PutSets("properties", (AttributeSet("limits", ((name, value),)),)))


def together(walk: Walk) -> list[list[str]]:
    """Step, and return which resources are ordered by each command."""
    return ordered_together(walk.step())


def ordered_together(effects: Sequence[Effect]) -> list[list[str]]:
    ordered = [each for each in commands_of(effects) if isinstance(each, commands.IssueOrders)]
    return [[each.resource for each in command.orders] for command in ordered]


@pytest.mark.parametrize("probed_as", [1, 9], ids=["the probe is ordered first", "the gang would be"])
def test_a_gang_starts_by_one_command_when_all_of_it_may(probed_as: int) -> None:
    probe = act(probed_as, ActionName.MONITOR, DB, N2, is_probe=True)
    walk = Walk(probe, gang_start(2, "w:0", N1), gang_start(3, "w:1", N2, after=(probed_as,)))
    assert together(walk) == [["db"]]
    walk.answer()
    assert walk.issued[-2:] == ["w:0_start on n1", "w:1_start on n2"]


def test_a_gang_is_not_cut_by_a_batch_limit() -> None:
    walk = Walk(gang_start(1, "w:0", N1), gang_start(2, "w:1", N2), act(3, ActionName.START, WEB, N1))
    limit(walk, "batch-limit", "1")
    assert together(walk) == [["w:0", "w:1"]]


def test_a_gang_waits_until_a_batch_limit_leaves_room_for_all_of_it() -> None:
    walk = Walk(act(1, ActionName.START, WEB, N1), gang_start(2, "w:0", N1), gang_start(3, "w:1", N2))
    limit(walk, "batch-limit", "2")
    assert together(walk) == [["web"]]
    walk.answer(WEB)
    assert walk.issued[1:] == ["w:0_start on n1", "w:1_start on n2"]


def test_a_gang_waits_for_a_node_without_room() -> None:
    walk = Walk(act(1, ActionName.START, WEB, N2), gang_start(2, "w:0", N1), gang_start(3, "w:1", N2, after=(1,)))
    limit(walk, "node-action-limit", "1")
    assert together(walk) == [["web"]]
    walk.answer(WEB)
    assert walk.issued[1:] == ["w:0_start on n1", "w:1_start on n2"]


def test_of_a_clone_that_is_ordered_one_instance_of_a_gang_starts_after_the_other() -> None:
    walk = Walk(gang_start(1, "w:0", N1), gang_start(2, "w:1", N2, after=(1,)))
    assert together(walk) == [["w:0"]]


def test_a_gang_that_was_refused_is_ordered_by_one_command_of_its_own() -> None:
    actions = {each.id: each for each in (gang_start(1, "w:0", N1), gang_start(2, "w:1", N2),
                                          act(3, ActionName.START, WEB, N1))}  # fmt: skip
    cluster = Cluster()
    refused = (ResourceId("w:0"), ResourceId("w:1"))
    machine = TransitionMachine(N1, TERM, 7, TransitionGraph(actions), cluster.cib, refused=refused)
    assert ordered_together(machine.step(cluster.cib, (), moment(1000))) == [["web"], ["w:0", "w:1"]]


@pytest.mark.parametrize("letter", ["a", "\u6f22", '"'])
def test_orders_with_long_parameters_fit_into_entries_of_the_log(letter: str) -> None:
    """Of letters that take several bytes too, and where an order holds its resource's parameters twice."""
    given = {"config": letter * 2000}
    resources = [ResourceId(f"r{number}") for number in range(30)]
    actions = (
        replace(act(number, ActionName.START, resource), parameters={**given, "once": "1"}, resource_parameters=given)
        for number, resource in enumerate(resources)
    )
    walk = Walk(*actions)
    issued = [command for command in commands_of(walk.step()) if isinstance(command, commands.IssueOrders)]
    assert sum(len(command.orders) for command in issued) == 30
    envelopes = (Envelope(RequestId("n1:token:1"), N1, WallTime(0), command) for command in issued)
    assert max(len(encode_envelope(each)) for each in envelopes) < MAX_ENTRY_BYTES


def test_more_orders_are_voided_than_one_entry_of_the_log_can_name() -> None:
    """Thirty-two nodes with 64 open orders each; here one node has them all."""
    walk = Walk(act(1, ActionName.STOP, WEB, N3))
    opened = [order(f"1.6.{number}.01234567", resource=ResourceId(f"r{number}")) for number in range(2048)]
    status = replace(walk.cluster.status(N2), orders={each.key: each for each in opened})
    cib = walk.cluster.cib
    cib = replace(cib, status=replace(cib.status, nodes={**cib.status.nodes, N2: status}))
    machine = TransitionMachine(N1, TERM, 7, TransitionGraph({1: act(1, ActionName.STOP, WEB, N3)}), cib)
    voids = [each for each in commands_of(machine.refused(cib, "n2 is lost")) if isinstance(each, commands.VoidOrders)]
    assert sorted(key for each in voids for key in each.keys) == sorted(each.key for each in opened)
    envelopes = (Envelope(RequestId("n1:token:1"), N1, WallTime(0), command) for command in voids)
    assert max(len(encode_envelope(each)) for each in envelopes) < MAX_ENTRY_BYTES
