"""What an executor begins, what it refuses, and what it says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.cib import commands
from haclusterd.machines.effects import (
    UnwatchService,
    WatchService,
)
from haclusterd.machines.executing.executor import ExecutorMachine
from haclusterd.machines.executing.recurring import Recurring
from haclusterd.machines.executing.resource_queue import ResourceQueue
from haclusterd.model.agent_calls import AdoptedAction, AgentCall
from haclusterd.model.ids import OrderKey, ResourceId
from haclusterd.model.instants import NEVER, Instant, WallTime
from haclusterd.model.ocf import ACTIVATING, ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order, ResultKind
from haclusterd.model.records import replace
from tests.unit.machines.executing import GRACE_MS, Node, start
from tests.unit.situations import (
    DB,
    N2,
    WALL,
    WEB,
    Cluster,
    ended,
    life,
    order,
    probe,
)


@pytest.fixture
def node() -> Node:
    """n2, joined, with its lease."""
    made = Node()
    made.see()
    return made


# -- what it begins ---------------------------------------------------------------------------------------------------


def test_an_order_is_run_and_its_result_is_reported(node: Node) -> None:
    node.cluster.issue(order("a"))
    node.see()
    assert node.begun() == [("db", "start")]
    node.finish("a")
    assert node.answers() == [("a", ResultKind.FINISHED)]
    assert node.cluster.status(N2).orders == {}


@pytest.mark.parametrize(("ahead_ms", "is_wrong"), [(3000, False), (600_000, True), (-600_000, True)])
def test_times_are_by_the_clock_of_the_dc_where_this_nodes_is_wrong(
    node: Node, ahead_ms: int, *, is_wrong: bool
) -> None:
    issued_at = WallTime(WALL - ahead_ms)
    node.cluster.issue(replace(order("a"), issued_at=issued_at))
    node.see()
    node.finish("a", 1)
    [answer] = node.reported
    assert answer.run_at == (issued_at if is_wrong else WALL) - answer.executed_ms


def test_an_order_that_stays_open_is_begun_once(node: Node) -> None:
    node.cluster.issue(order("a"))
    for _ in range(3):
        node.see()
        node.tick(100)
    assert node.begun() == [("db", "start")]


def test_nothing_is_begun_before_its_own_join_is_applied() -> None:
    cluster = Cluster()
    cluster.must(commands.Join(N2, life(N2, token=9)))
    cluster.issue(order("a", incarnation=life(N2, token=9)))
    node = Node(cluster)
    node.see()
    assert node.begun() == []


def test_an_order_for_another_life_is_not_begun_even_if_the_cib_holds_it(node: Node) -> None:
    """`apply` lets none in; the executor does not rely on it."""
    status = node.cluster.cib.status
    foreign = replace(status.nodes[N2], orders={OrderKey("a"): order("a", incarnation=life(N2, token=9))})
    cib = replace(node.cluster.cib, status=replace(status, nodes={**status.nodes, N2: foreign}))
    node.perform(node.executor.cib_changed(cib, node.moment()))
    assert node.begun() == []


def test_nothing_is_begun_once_it_is_lost(node: Node) -> None:
    node.cluster.issue(order("a", ActionName.STOP))
    node.cluster.lose(N2)
    node.see()
    node.tick(1000)
    assert node.begun() == []


@pytest.mark.parametrize("action", sorted(ACTIVATING))
def test_what_activates_is_not_begun_without_a_lease(node: Node, action: ActionName) -> None:
    node.executor.retimed(GRACE_MS)
    node.cluster.issue(replace(order("a", action), meta={"migrate_source": "n2", "migrate_target": "n1"}))
    node.has_lease = False
    node.now = GRACE_MS - 1
    node.see()
    assert node.begun() == []
    assert node.answers() == [("a", ResultKind.NOT_BEGUN)]


@pytest.mark.parametrize("action", [ActionName.STOP, ActionName.MONITOR, ActionName.DEMOTE])
def test_what_does_not_activate_needs_no_lease(node: Node, action: ActionName) -> None:
    node.cluster.issue(order("a", action))
    node.has_lease = False
    node.now = GRACE_MS - 1
    node.see()
    assert [action for _, action in node.begun()] == [action]


def test_a_voided_order_is_answered_and_never_begun(node: Node) -> None:
    node.cluster.issue(order("a"))
    node.cluster.void("a")
    node.see()
    assert node.begun() == []
    assert node.answers() == [("a", ResultKind.NOT_BEGUN)]


def test_an_order_voided_while_it_waits_is_answered_and_never_begun(node: Node) -> None:
    node.cluster.issue(probe("p"), order("a"))
    node.see()
    node.cluster.void("a")
    node.see()
    node.finish("p", ExitCode.NOT_RUNNING)
    assert node.begun() == [("db", "monitor")]
    assert ("a", ResultKind.NOT_BEGUN) in node.answers()


def test_a_voided_order_that_has_begun_goes_on_and_is_answered_as_it_ended(node: Node) -> None:
    node.cluster.issue(order("a"))
    node.see()
    node.cluster.void("a")
    node.see()
    assert node.killed == []
    node.finish("a")
    assert node.answers() == [("a", ResultKind.FINISHED)]


@pytest.mark.parametrize(("waited_ms", "is_begun"), [(10_000, True), (10_001, False)])
def test_an_order_that_waited_past_its_deadline_is_not_begun(node: Node, waited_ms: int, is_begun: bool) -> None:
    node.cluster.issue(probe("p"), order("a", deadline_ms=10_000))
    node.see()
    node.now += waited_ms
    node.finish("p", ExitCode.NOT_RUNNING)
    assert (("db", "start") in node.begun()) is is_begun
    assert (("a", ResultKind.NOT_BEGUN) in node.answers()) is not is_begun


def test_one_action_of_a_resource_at_a_time_others_beside_it(node: Node) -> None:
    node.cluster.issue(probe("p"), order("a"), order("b", resource=WEB))
    node.see()
    assert node.begun() == [("db", "monitor"), ("web", "start")]


def test_no_more_agents_than_allowed_run_at_once() -> None:
    node = Node(actions_max=1)
    node.cluster.issue(order("a"), order("b", resource=WEB))
    node.see()
    assert node.begun() == [("db", "start")]
    node.finish("a")
    assert node.begun() == [("db", "start"), ("web", "start")]


def test_what_an_earlier_life_left_running_is_waited_for() -> None:
    node = Node()
    node.executor.adopted([AdoptedAction("old", DB, "start", Instant(10**9), is_running=True)])
    node.cluster.issue(probe("p"))
    node.see()
    assert node.begun() == []
    node.perform(node.executor.adopted_ended("old", node.moment()))
    assert node.begun() == [("db", "monitor")]


def test_what_an_earlier_life_has_ended_is_not_waited_for() -> None:
    node = Node()
    node.executor.adopted([AdoptedAction("old", DB, "start", Instant(0), is_running=False)])
    node.cluster.issue(probe("p"))
    node.see()
    assert node.begun() == [("db", "monitor")]


def test_what_ends_after_this_life_was_lost_is_not_reported(node: Node) -> None:
    node.cluster.issue(order("a"))
    node.see()
    node.cluster.lose(N2)
    node.see()
    node.finish("a")
    assert node.reported == []


@pytest.mark.parametrize(
    ("wanted", "exit_code", "how", "reported"),
    [
        (order("a"), 0, ExecutionStatus.DONE, (ExitCode.OK, ExecutionStatus.DONE)),
        (order("a"), 190, ExecutionStatus.DONE, (ExitCode.OK, ExecutionStatus.DONE)),
        (order("a"), 1, ExecutionStatus.DONE, (ExitCode.ERROR, ExecutionStatus.ERROR)),
        (order("a"), 77, ExecutionStatus.DONE, (ExitCode.ERROR, ExecutionStatus.ERROR)),
        (order("a"), 5, ExecutionStatus.DONE, (ExitCode.NOT_INSTALLED, ExecutionStatus.NOT_INSTALLED)),
        (order("a"), 1, ExecutionStatus.TIMEOUT, (ExitCode.ERROR, ExecutionStatus.TIMEOUT)),
        (probe("a"), 7, ExecutionStatus.DONE, (ExitCode.NOT_RUNNING, ExecutionStatus.DONE)),
        (probe("a"), 0, ExecutionStatus.DONE, (ExitCode.OK, ExecutionStatus.DONE)),
        (probe("a"), 1, ExecutionStatus.DONE, (ExitCode.ERROR, ExecutionStatus.ERROR)),
    ],
)
def test_how_an_action_ended_is_reported_in_ocfs_and_pacemakers_words(
    node: Node, wanted: Order, exit_code: int, how: ExecutionStatus, reported: tuple[ExitCode, ExecutionStatus]
) -> None:
    node.cluster.issue(wanted)
    node.see()
    node.finish("a", exit_code, how)
    [result] = node.reported
    assert (result.exit_code, result.status, result.target_exit_code) == (*reported, wanted.target_exit_code)


def test_the_reason_of_a_failure_is_reported_and_that_of_a_success_is_not(node: Node) -> None:
    for key, exit_code, expected in (("a", 1, "no disk"), ("b", 0, "")):
        node.cluster.issue(order(key))
        node.see()
        del node.at_work[key]
        with_reason = replace(ended(key, exit_code), exit_reason="no disk")
        node.perform(node.executor.agent_finished(with_reason, node.moment()))
        assert node.reported[-1].exit_reason == expected
        node.see()


def test_the_numbers_of_executions_grow_over_all_lives_of_a_boot(node: Node) -> None:
    start(node)
    node.executor = ExecutorMachine(N2, life(N2, token=2), Instant(node.now), lease_grace_ms=GRACE_MS)
    node.cluster.must(commands.Join(N2, life(N2, token=2)))
    node.cluster.issue(replace(probe("p"), incarnation=life(N2, token=2)))
    node.see()
    node.finish("p")
    assert [result.call_id for result in node.reported] == [1, 2]


# -- recurring monitors -----------------------------------------------------------------------------------------------


def monitored(node: Node, interval_ms: int = 10_000) -> None:
    start(node)
    node.cluster.issue(order("m", ActionName.MONITOR, interval_ms=interval_ms))
    node.see()
    node.finish("m.1")


def test_a_recurring_monitor_answers_its_order_once_and_then_tells_changes_only(node: Node) -> None:
    monitored(node)
    node.reported.clear()
    node.tick(10_000)
    node.finish("m.2")
    assert node.reported == []
    node.tick(10_000)
    node.finish("m.3", ExitCode.NOT_RUNNING)
    assert [(result.order, result.exit_code) for result in node.reported] == [(None, ExitCode.NOT_RUNNING)]


def test_of_many_monitors_only_those_that_are_due_are_looked_at(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node looks after every event, and has hundreds of resources in which nothing happens."""
    resources = [ResourceId(f"r{number:03}") for number in range(100)]
    node.cluster.issue(
        *(order(f"m-{each}", ActionName.MONITOR, resource=each, interval_ms=10_000 + number)
          for number, each in enumerate(resources))
    )  # fmt: skip
    node.see()
    for key in list(node.at_work):
        node.finish(key)
    looked_at: list[ResourceId] = []
    look = ResourceQueue.most_overdue

    def counted(queue: ResourceQueue, now: Instant) -> Recurring | None:
        looked_at.append(queue.resource)
        return look(queue, now)

    monkeypatch.setattr(ResourceQueue, "most_overdue", counted)
    assert node.executor.deadline(node.moment()) == node.now + 10_000
    node.tick(5000)
    assert looked_at == []
    node.tick(5002)
    assert {str(call.resource) for call in node.at_work.values()} == {"r000", "r001", "r002"}
    assert set(looked_at) == {*resources[:3]}
    assert node.executor.deadline(node.moment()) == node.now + 1


def test_a_monitor_with_another_interval_is_run_by_its_own_alone(node: Node) -> None:
    monitored(node)
    node.cluster.issue(order("c", ActionName.CANCEL, interval_ms=10_000))
    node.see()
    node.cluster.issue(order("m2", ActionName.MONITOR, interval_ms=3000))
    node.see()
    (key,) = node.at_work
    node.finish(key)
    begun = len(node.calls)
    assert node.executor.deadline(node.moment()) == node.now + 3000
    node.tick(2999)
    assert len(node.calls) == begun
    node.tick(1)
    assert len(node.calls) == begun + 1


@pytest.mark.parametrize("late_ms", [0, 1, 40])
def test_a_monitor_that_falls_due_between_a_step_and_the_next_timer_is_not_forgotten(node: Node, late_ms: int) -> None:
    """The main loop asks for the deadline behind a long step, and sleeps until then if nothing else happens."""
    monitored(node)
    node.tick(9999)
    due_at = node.now + 1
    node.now = due_at + late_ms
    assert node.executor.deadline(node.moment()) == due_at
    node.tick()
    assert len(node.at_work) == 1
    assert node.executor.deadline(node.moment()) == NEVER


def test_the_interval_counts_from_the_end_of_one_run_to_the_begin_of_the_next(node: Node) -> None:
    start(node)
    node.cluster.issue(order("m", ActionName.MONITOR, interval_ms=10_000))
    node.see()
    node.now += 3000
    node.finish("m.1")
    assert node.executor.deadline(node.moment()) == node.now + 10_000
    node.tick(9999)
    assert len(node.calls) == 2
    node.tick(1)
    assert len(node.calls) == 3


def test_a_dying_service_is_looked_at_at_once(node: Node) -> None:
    monitored(node)
    node.now += 1000
    node.perform(node.executor.service_died(DB, node.moment()))
    assert [call.key for call in node.calls[2:]] == ["m.2"]


def test_a_stop_kills_the_monitor_that_runs_and_ends_all_others(node: Node) -> None:
    monitored(node)
    node.tick(10_000)
    node.cluster.issue(order("s", ActionName.STOP))
    node.see()
    assert node.killed == ["m.2"]
    node.finish("m.2", 1, ExecutionStatus.CANCELLED)
    assert node.begun()[-1] == ("db", "stop")
    node.finish("s")
    node.tick(20_000)
    assert node.begun()[-1] == ("db", "stop")


def test_a_cancel_ends_one_monitor_and_leaves_the_resource_alone(node: Node) -> None:
    monitored(node)
    node.cluster.issue(order("c", ActionName.CANCEL, interval_ms=10_000))
    node.see()
    assert ("c", ResultKind.FINISHED) in node.answers()
    node.tick(20_000)
    assert len(node.calls) == 2


@pytest.mark.parametrize("exit_code", [ExitCode.NOT_RUNNING, ExitCode.OK])
def test_a_probe_that_finds_nothing_ends_the_monitors(node: Node, exit_code: ExitCode) -> None:
    """After a clean-up of a failed monitor nobody orders that one to be cancelled."""
    monitored(node)
    node.cluster.issue(probe("p"))
    node.see()
    effects = node.finish("p", exit_code)
    is_found = exit_code is ExitCode.OK
    assert (UnwatchService(DB) in effects) is not is_found
    node.tick(20_000)
    assert len(node.calls) == (4 if is_found else 3)


@pytest.mark.parametrize("action", [ActionName.CANCEL, ActionName.MONITOR])
def test_a_monitor_ended_before_its_first_answer_is_answered_for(node: Node, action: ActionName) -> None:
    """Otherwise its order stays open, and blocks its resource, for ever."""
    start(node)
    node.cluster.issue(order("m", ActionName.MONITOR, interval_ms=10_000))
    node.see()
    node.cluster.issue(order("x", action, interval_ms=10_000))
    node.see()
    node.finish("m.1", 1, ExecutionStatus.CANCELLED)
    if action is ActionName.MONITOR:
        node.finish("x.2")
    assert node.cluster.status(N2).orders == {}


def test_the_processes_of_what_runs_are_watched_until_its_stop(node: Node) -> None:
    node.cluster.issue(order("a"))
    node.see()
    assert WatchService(DB, "db") in node.finish("a")
    node.cluster.issue(order("s", ActionName.STOP))
    assert UnwatchService(DB) in node.see()


@pytest.mark.parametrize(("exit_code", "is_watched"), [(0, True), (7, False), (1, False)])
def test_what_a_probe_finds_running_is_watched_once(node: Node, exit_code: int, is_watched: bool) -> None:
    for key in ("p", "q"):
        node.cluster.issue(probe(key))
        node.see()
        effects = node.finish(key, exit_code)
        assert (WatchService(DB, "db") in effects) is (is_watched and key == "p")


def test_a_start_that_failed_is_not_watched(node: Node) -> None:
    node.cluster.issue(order("a"))
    node.see()
    assert WatchService(DB, "db") not in node.finish("a", 1)


# -- whatever happens -------------------------------------------------------------------------------------------------


class _RandomEvents:
    """One executor and its DC under random events, and the rules it must keep at each begin of an agent."""

    def __init__(self) -> None:
        self.node = Node(actions_max=2)
        self.serial = 0
        self.token = 1
        self.run: set[str] = set()
        self.received: dict[str, int] = {}

    def step(self, event: str, pick: int) -> None:
        before = len(self.node.calls)
        getattr(self, event)(pick)
        for call in self.node.calls[before:]:
            self.check(call)

    def check(self, call: AgentCall) -> None:
        assert call.key not in self.run, "an order was run twice"
        self.run.add(call.key)
        assert call.incarnation == life(N2, token=self.token)
        busy = [other for other in self.node.at_work.values() if other.resource == call.resource]
        assert len(busy) == 1, "two agents of one resource at work"
        if ActionName(call.action) not in ACTIVATING:
            return
        assert self.node.has_lease, "begun without a lease"
        known = self.node.seen.status.nodes[N2].orders[OrderKey(call.key)]
        assert not known.is_voided, "begun after it was voided"
        assert known.incarnation == life(N2, token=self.token)
        assert self.node.now - self.received[call.key] <= known.deadline_ms, "begun past its deadline"

    def issue(self, pick: int) -> None:
        self.serial += 1
        action = (ActionName.START, ActionName.STOP, ActionName.MONITOR, ActionName.START)[pick % 4]
        status = self.node.cluster.status(N2)
        wanted = order(
            f"o{self.serial}",
            action,
            resource=(DB, WEB)[pick % 2],
            incarnation=status.incarnation,
            interval_ms=1000 if action is ActionName.MONITOR and pick % 3 else 0,
            deadline_ms=500,
        )
        self.node.cluster.put(commands.IssueOrders(self.node.cluster.term, (wanted,)))

    def void(self, pick: int) -> None:
        keys = sorted(self.node.cluster.status(N2).orders)
        if keys:
            self.node.cluster.void(keys[pick % len(keys)])

    def see(self, _: int) -> None:
        for key in self.node.cluster.status(N2).orders:
            self.received.setdefault(key, self.node.now)
        self.node.see()

    def pass_time(self, pick: int) -> None:
        self.node.tick(50 * pick)

    def finish(self, pick: int) -> None:
        keys = sorted(self.node.at_work)
        if keys:
            key = keys[pick % len(keys)]
            del self.node.at_work[key]
            result = ended(key, (0, 7, 1)[pick % 3])
            self.node.perform(self.node.executor.agent_finished(result, self.node.moment()))

    def lease_ends(self, _: int) -> None:
        self.node.has_lease = False
        self.node.tick(1)

    def lease_comes(self, _: int) -> None:
        self.node.has_lease = True
        self.node.tick(1)

    def new_life(self, _: int) -> None:
        self.token += 1
        self.node.perform(self.node.executor.reincarnated(life(N2, token=self.token), self.node.moment()))

    def join(self, _: int) -> None:
        self.node.cluster.put(commands.Join(N2, life(N2, token=self.token)))

    def be_lost(self, _: int) -> None:
        status = self.node.cluster.status(N2)
        self.node.cluster.put(commands.Lost(N2, status.incarnation, self.node.cluster.term, "x"))


EVENTS = ("issue", "issue", "issue", "see", "see", "finish", "finish", "pass_time", "void", "lease_ends",
          "lease_comes", "new_life", "join", "be_lost")  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 11)), max_size=60))
def test_whatever_happens_the_rules_of_beginning_hold(events: list[tuple[str, int]]) -> None:
    executor = _RandomEvents()
    executor.step("see", 0)
    for event, pick in events:
        executor.step(event, pick)


def test_what_the_hands_did_not_execute_for_want_of_a_lease_is_answered_as_not_begun() -> None:
    node = Node()
    node.cluster.issue(order("start-db"))
    node.see()
    del node.at_work["start-db"]
    result = replace(ended("start-db", 1, ExecutionStatus.CANCELLED), is_begun=False, exit_reason="no lease")
    node.perform(node.executor.agent_finished(result, node.moment()))
    assert node.answers() == [("start-db", ResultKind.NOT_BEGUN)]
    assert node.cluster.status(N2).orders == {}
