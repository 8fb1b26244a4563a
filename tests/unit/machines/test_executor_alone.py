"""What an executor does without a lease, and when its node is proven to run nothing."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.edits import PutConstraint, PutResource, PutSets
from haclusterd.machines.effects import Condemn
from haclusterd.machines.executing.executor import UNKILLABLE_MS, ExecutorMachine
from haclusterd.model.agent_calls import AdoptedAction
from haclusterd.model.configuration import AttributeSet, Clone, Group, Operation, Ordering, Primitive
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import AgentReference, OrderKey, ResourceId
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, ResultKind
from haclusterd.model.records import replace
from haclusterd.model.rules import DateExpression, Rule
from haclusterd.model.watchdog import Watchdog
from tests.unit.machines.executing import GRACE_MS, Node, start
from tests.unit.situations import (
    DB,
    N2,
    N3,
    WEB,
    Cluster,
    commands_of,
    life,
    moment,
    order,
    primitive,
    probe,
)


@pytest.fixture
def node() -> Node:
    """n2, joined, with its lease."""
    made = Node()
    made.see()
    return made


# -- alone ------------------------------------------------------------------------------------------------------------


def test_at_the_end_of_the_lease_everything_active_is_stopped(node: Node) -> None:
    start(node)
    node.lose_lease()
    assert node.executor.has_acted_alone
    assert node.begun()[-1] == ("db", "stop")
    assert node.executor.is_stopping_alone
    node.finish(node.calls[-1].key)
    assert not node.executor.is_stopping_alone


@pytest.mark.parametrize("is_over", [True, False])
def test_what_only_the_start_had_is_not_in_its_own_stop(node: Node, *, is_over: bool) -> None:
    node.cluster.issue(replace(order("a"), parameters={"a": "1", "warm_up": "yes"}, resource_parameters={"a": "1"}))
    node.see()
    if is_over:
        node.finish("a")
        node.see()
    node.lose_lease()
    if not is_over:
        node.finish("a")
    assert node.begun()[-1] == ("db", "stop")
    assert node.calls[-1].parameters == {"a": "1"}


def test_it_is_woken_when_its_lease_ends(node: Node) -> None:
    assert node.executor.deadline(moment(10_000, lease_until=11_500)) == 11_500


def test_it_is_woken_at_once_when_its_lease_has_ended_since_the_last_step(node: Node) -> None:
    node.perform(node.executor.ticked(moment(11_400, lease_until=11_500)))
    assert node.executor.deadline(moment(11_510, lease_until=11_500)) == 11_500
    node.perform(node.executor.ticked(moment(11_510, lease_until=11_500)))
    assert node.executor.has_acted_alone


def test_a_daemon_that_has_just_started_waits_for_its_first_lease() -> None:
    node = Node()
    node.has_lease = False
    node.now = GRACE_MS - 1
    node.see()
    assert not node.executor.has_acted_alone
    node.tick(1)
    assert node.executor.has_acted_alone


def test_a_start_in_progress_is_killed_and_then_stopped(node: Node) -> None:
    node.cluster.issue(order("a"))
    node.see()
    node.lose_lease()
    assert node.killed == ["a"]
    assert node.begun() == [("db", "start")]
    node.finish("a", 1, ExecutionStatus.CANCELLED)
    assert node.begun() == [("db", "start"), ("db", "stop")]
    assert node.reported == [], "what was interrupted is not reported: it is found out by a probe of the next life"


def test_what_is_being_probed_is_stopped_at_the_end_of_the_lease(node: Node) -> None:
    """The CIB does not say that it is active, nor that it is not: that is what was to be found out."""
    node.cluster.issue(probe("p"))
    node.see()
    node.lose_lease()
    assert node.killed == ["p"]
    node.finish("p", 1, ExecutionStatus.CANCELLED)
    assert node.begun() == [("db", "monitor"), ("db", "stop")]


def test_own_stops_follow_the_constraints_in_reverse(node: Node) -> None:
    node.cluster.configure(
        *(PutResource(primitive(name)) for name in ("db", "web")),
        PutResource(Group(ResourceId("g"), (DB, WEB))),
    )
    start(node)
    start(node, WEB)
    node.lose_lease()
    assert node.begun()[2:] == [("web", "stop")]
    node.finish(node.calls[-1].key)
    assert node.begun()[3:] == [("db", "stop")]


def managed(name: str, value: str) -> Primitive:
    meta = (AttributeSet(f"{name}-meta", (("is-managed", value),)),)
    return replace(primitive(name), meta=meta)


def test_what_is_unmanaged_is_not_stopped_and_the_node_is_not_empty(node: Node) -> None:
    node.cluster.configure(*(PutResource(each) for each in (managed("db", "false"), primitive("web"))))
    start(node)
    start(node, WEB)
    node.lose_lease()
    assert node.begun()[2:] == [("web", "stop")]
    node.finish(node.calls[-1].key)
    assert not node.executor.is_stopping_alone
    assert not node.is_empty()


def test_in_maintenance_mode_nothing_is_stopped_and_nothing_is_killed(node: Node) -> None:
    node.cluster.configure(
        PutResource(primitive("db")),
        PutSets("properties", (AttributeSet("cib-bootstrap-options", (("maintenance-mode", "true"),)),)),
    )
    start(node)
    node.cluster.issue(order("a", resource=WEB))
    node.see()
    node.lose_lease()
    assert node.executor.has_acted_alone
    assert node.begun() == [("db", "start"), ("web", "start")]
    assert node.killed == []


def in_a_group(node: Node, **managed_by: str) -> None:
    """Have db and web run, web after db; of each, whether it is managed."""
    node.cluster.configure(
        *(PutResource(managed(name, value)) for name, value in managed_by.items()),
        PutResource(Group(ResourceId("g"), (DB, WEB))),
    )
    start(node)
    start(node, WEB)


def test_what_must_stop_before_something_unmanaged_is_stopped(node: Node) -> None:
    in_a_group(node, db="false", web="true")
    node.lose_lease()
    assert node.begun()[2:] == [("web", "stop")], "nobody looks at db, which holds nothing"


@pytest.mark.parametrize(
    ("exit_code", "status"),
    [
        (ExitCode.OK, ExecutionStatus.DONE),
        (ExitCode.ERROR, ExecutionStatus.DONE),
        (ExitCode.NOT_RUNNING, ExecutionStatus.TIMEOUT),
        (ExitCode.NOT_RUNNING, ExecutionStatus.CANCELLED),
    ],
)
def test_what_must_stop_after_something_unmanaged_that_may_run_runs_on(
    node: Node, exit_code: int, status: ExecutionStatus
) -> None:
    """Pacemaker: "Stop fs due to unrunnable db stop (blocked)"."""
    in_a_group(node, db="true", web="false")
    node.lose_lease()
    assert node.begun()[2:] == [("web", "monitor")], "db must stop after it, if it runs"
    assert node.calls[-1].meta["interval"] == "0", "a probe"
    node.finish(node.calls[-1].key, exit_code, status)
    assert node.begun()[3:] == []
    assert not node.executor.is_stopping_alone
    assert not node.is_empty()


def test_what_must_stop_after_something_unmanaged_that_has_died_is_stopped(node: Node) -> None:
    """No monitor recurs on a node that acts alone: it would never learn that nothing holds db."""
    in_a_group(node, db="true", web="false")
    node.lose_lease()
    node.finish(node.calls[-1].key, ExitCode.NOT_RUNNING)
    assert node.begun()[2:] == [("web", "monitor"), ("db", "stop")]
    node.finish(node.calls[-1].key)
    assert not node.executor.is_stopping_alone
    assert not node.is_empty(), "a person may start web at any moment"


def test_one_that_has_died_does_not_free_what_another_one_holds(node: Node) -> None:
    ip, app = ResourceId("ip"), ResourceId("app")
    node.cluster.configure(
        *(PutResource(primitive(name)) for name in ("ip", "db")),
        *(PutResource(managed(name, "false")) for name in ("web", "app")),
        PutResource(Group(ResourceId("g"), (ip, DB, WEB))),
        PutConstraint(Ordering("o", ip, app)),
    )
    for name in (ip, DB, WEB, app):
        start(node, name)
    node.lose_lease()
    assert node.begun()[4:] == [("app", "monitor"), ("web", "monitor")]
    looks = {str(call.resource): call.key for call in node.calls[4:]}
    node.finish(looks["web"], ExitCode.NOT_RUNNING)
    assert node.begun()[6:] == [], "ip is held, and app was not looked at"
    node.finish(looks["app"])
    assert node.begun()[6:] == [("db", "stop")]
    node.finish(node.calls[-1].key)
    assert node.begun()[7:] == [], "app runs, and ip must stop after it"


def test_what_was_looked_at_when_the_node_is_recorded_as_fenced_is_stopped(node: Node) -> None:
    in_a_group(node, db="true", web="false")
    node.lose_lease()
    look = node.calls[-1].key
    node.cluster.lose(N2)
    fenced(node)
    node.see()
    assert node.killed == [look]
    node.finish(look, 1, ExecutionStatus.CANCELLED)
    assert node.begun()[3:] == [("web", "stop")]


def test_what_becomes_unmanaged_while_another_stops_is_left_alone(node: Node) -> None:
    node.cluster.configure(
        *(PutResource(primitive(name)) for name in ("ip", "db", "web")),
        PutResource(Group(ResourceId("g"), (ResourceId("ip"), DB, WEB))),
    )
    for name in (ResourceId("ip"), DB, WEB):
        start(node, name)
    node.lose_lease()
    assert node.begun()[3:] == [("web", "stop")]
    node.cluster.configure(PutResource(managed("db", "false")))
    node.see()
    node.finish(node.calls[-1].key)
    assert node.begun()[3:] == [("web", "stop")], "neither db, nor ip, which stops after it"
    assert not node.executor.is_stopping_alone
    assert not node.is_empty()


def test_what_is_managed_again_before_the_lease_is_back_is_not_stopped_for_that(node: Node) -> None:
    node.cluster.configure(PutResource(managed("db", "false")))
    start(node)
    node.lose_lease()
    node.cluster.configure(PutResource(managed("db", "true")))
    node.see()
    assert node.begun()[1:] == []
    assert not node.is_empty()


def test_a_node_that_is_recorded_as_fenced_stops_what_is_unmanaged_too(node: Node) -> None:
    """By the record nothing runs here: what is managed again starts on another node at once."""
    node.cluster.configure(PutResource(managed("db", "false")))
    start(node)
    node.cluster.lose(N2)
    node.cluster.must(commands.Fenced(N2, life(N2), None, FenceOutcome.CONFIRMED, "it is down"))
    node.see()
    assert node.begun()[-1] == ("db", "stop")


def fenced(node: Node) -> None:
    node.cluster.must(commands.Fenced(N2, life(N2), None, FenceOutcome.CONFIRMED, "it is down"))


def test_what_was_left_alone_is_stopped_when_the_node_is_recorded_as_fenced_later(node: Node) -> None:
    members = [managed("db", "true"), managed("web", "false")]
    node.cluster.configure(
        *(PutResource(each) for each in members), PutResource(Group(ResourceId("g"), (DB, WEB)))
    )
    start(node)
    start(node, WEB)
    node.lose_lease()
    node.cluster.lose(N2)
    node.see()
    node.finish(node.calls[-1].key)
    assert node.begun()[3:] == [], "web is unmanaged and runs, and db must stop after it"
    fenced(node)
    node.see()
    assert node.begun()[3:] == [("web", "stop")]
    assert not node.is_empty()
    node.finish(node.calls[-1].key)
    assert node.begun()[4:] == [("db", "stop")]
    node.finish(node.calls[-1].key)
    assert not node.executor.is_stopping_alone
    assert node.is_empty()


def test_a_start_of_something_unmanaged_is_killed_when_the_node_is_recorded_as_fenced(node: Node) -> None:
    node.cluster.configure(PutResource(managed("db", "false")))
    node.cluster.issue(order("a"))
    node.see()
    node.lose_lease()
    node.cluster.lose(N2)
    assert node.killed == []
    fenced(node)
    node.see()
    assert node.killed == ["a"]
    node.finish("a", 1, ExecutionStatus.CANCELLED)
    assert node.begun() == [("db", "start"), ("db", "stop")]


@pytest.mark.parametrize("is_disproved", [False, True])
def test_the_next_life_stops_what_the_one_before_has_left_alone(node: Node, is_disproved: bool) -> None:
    """The record came after the life that left it alone; disproved at once, it may never be seen by itself."""
    node.cluster.configure(*(PutResource(each) for each in (managed("db", "false"), primitive("web"))))
    start(node)
    start(node, WEB)
    node.lose_lease()
    node.finish(node.calls[-1].key)
    node.perform(node.executor.reincarnated(life(N2, token=2), node.moment()))
    node.cluster.lose(N2)
    fenced(node)
    if is_disproved:
        node.cluster.lose(N2)
    node.see()
    assert node.executor.has_acted_alone
    assert node.begun()[2:] == [("web", "stop"), ("db", "stop")], "web once"


def test_a_node_that_runs_on_without_a_lease_stops_when_it_is_recorded_as_fenced(node: Node) -> None:
    """With `no-quorum-policy=freeze`, and though the record was disproved before the node saw it."""
    policy = AttributeSet("cib-bootstrap-options", (("no-quorum-policy", "freeze"),))
    node.cluster.configure(PutResource(primitive("db")), PutSets("properties", (policy,)))
    start(node)
    node.lose_lease()
    node.cluster.lose(N2)
    node.see()
    assert node.begun() == [("db", "start")]
    fenced(node)
    node.cluster.lose(N2)
    node.see()
    assert node.begun()[1:] == [("db", "stop")]


def test_an_unpromoted_instance_that_runs_on_is_stopped_when_the_node_is_recorded_as_fenced(node: Node) -> None:
    policy = AttributeSet("cib-bootstrap-options", (("no-quorum-policy", "demote"),))
    promotable = Clone(ResourceId("clone"), DB, meta=(AttributeSet("meta", (("promotable", "true"),)),))
    node.cluster.configure(
        *(PutResource(each) for each in (primitive("db"), promotable)),
        PutSets("properties", (policy,)),
    )
    start(node, ResourceId("db"))
    node.lose_lease()
    assert node.begun()[1:] == []
    node.cluster.lose(N2)
    fenced(node)
    node.see()
    assert node.begun()[1:] == [("db", "stop")]


def test_what_can_be_promoted_no_more_is_not_kept_by_no_quorum_policy_demote(node: Node) -> None:
    """Seed 414851: what a lost node kept becomes a primitive."""
    policy = AttributeSet("cib-bootstrap-options", (("no-quorum-policy", "demote"),))
    clone = Clone(ResourceId("clone"), DB, meta=(AttributeSet("meta", (("promotable", "true"),)),))
    node.cluster.configure(
        *(PutResource(each) for each in (primitive("db"), clone)), PutSets("properties", (policy,))
    )
    start(node, ResourceId("db"))
    node.lose_lease()
    assert node.begun()[1:] == []
    node.cluster.configure(PutResource(replace(clone, meta=())))
    node.see()
    assert node.begun()[1:] == [("db", "stop")]


def test_a_leaver_that_gives_up_leaves_alone_what_is_unmanaged(node: Node) -> None:
    node.cluster.configure(PutResource(managed("db", "false")))
    start(node)
    node.perform(node.executor.give_up("no quorum", node.moment()))
    assert node.begun() == [("db", "start")]


def test_own_stops_take_the_time_that_is_configured(node: Node) -> None:
    stop = Operation("db-stop", "stop", timeout_ms=77_000)
    node.cluster.configure(PutResource(replace(primitive("db"), operations=(stop,))))
    start(node)
    node.lose_lease()
    assert node.calls[-1].timeout_ms == 77_000


def timeout(text: str, rule: Rule | None = None) -> tuple[AttributeSet, ...]:
    return (AttributeSet("t", (("timeout", text),), rule=rule),)


TRUE = Rule("r", conditions=(DateExpression("lt", end="2099-01-01"),))
FALSE = Rule("r", conditions=(DateExpression("gt", start="2099-01-01"),))


@pytest.mark.parametrize(
    ("own", "defaults", "expected"),
    [
        ((), timeout("90s"), 90_000),
        (timeout("80s"), timeout("90s"), 80_000),
        ((), timeout("90s", TRUE), 90_000),
        ((), timeout("90s", FALSE), 20_000),
        (timeout("80s", FALSE), timeout("90s"), 90_000),
    ],
)
def test_own_stops_take_the_time_of_meta_attributes_and_defaults(
    own: tuple[AttributeSet, ...], defaults: tuple[AttributeSet, ...], expected: int, node: Node
) -> None:
    stop = Operation("db-stop", "stop", meta=own)
    node.cluster.configure(
        PutResource(replace(primitive("db"), operations=(stop,))),
        PutSets("operation_defaults", defaults),
    )
    start(node)
    node.lose_lease()
    assert node.calls[-1].timeout_ms == expected


def test_what_was_stopped_by_an_order_is_not_stopped_again(node: Node) -> None:
    start(node)
    node.cluster.issue(order("s", ActionName.STOP))
    node.see()
    node.finish("s")
    node.lose_lease()
    assert node.begun() == [("db", "start"), ("db", "stop")]


def test_a_leaver_without_a_leader_stops_everything_though_its_lease_holds(node: Node) -> None:
    start(node)
    node.perform(node.executor.give_up("no quorum", node.moment()))
    assert node.begun()[-1] == ("db", "stop")
    assert node.executor.give_up("no quorum", node.moment()) == ()


def test_orders_are_not_taken_once_it_has_acted_alone(node: Node) -> None:
    node.lose_lease()
    node.has_lease = True
    node.cluster.issue(order("a"))
    node.see()
    node.tick(1000)
    assert node.begun() == []


def test_fence_devices_are_not_stopped(node: Node) -> None:
    node.cluster.issue(replace(order("f", resource=ResourceId("power")), agent=AgentReference("stonith", None, "x")))
    node.see()
    node.finish("f")
    node.lose_lease()
    assert node.begun() == [("power", "start")]


def begin_another_life(node: Node) -> None:
    """Let db run, be stopped at the end of the lease, and be ordered to start in the next life (`b`)."""
    start(node)
    node.lose_lease()
    node.finish(node.calls[-1].key)
    node.has_lease = True
    node.perform(node.executor.reincarnated(life(N2, token=2), node.moment()))
    node.cluster.must(commands.Join(N2, life(N2, token=2)))
    node.cluster.issue(order("b", incarnation=life(N2, token=2)))
    node.see()


def test_a_new_life_takes_orders_again(node: Node) -> None:
    begin_another_life(node)
    assert node.begun()[-1] == ("db", "start")


def test_what_the_next_life_runs_again_is_stopped_again_at_the_end_of_its_lease(node: Node) -> None:
    begin_another_life(node)
    node.finish("b")
    node.tick(GRACE_MS)
    node.lose_lease()
    assert node.begun()[-2:] == [("db", "start"), ("db", "stop")]


def test_an_agent_of_the_old_life_blocks_its_resource_and_its_order_ends_with_it(node: Node) -> None:
    node.cluster.issue(order("a"))
    node.see()
    node.perform(node.executor.reincarnated(life(N2, token=2), node.moment()))
    node.cluster.must(commands.Join(N2, life(N2, token=2)))
    node.cluster.issue(order("b", incarnation=life(N2, token=2)))
    node.see()
    assert node.begun() == [("db", "start")]
    assert node.reported == []
    node.finish("a")
    assert node.answers() == [("a", ResultKind.UNKNOWN)]
    assert node.begun() == [("db", "start"), ("db", "start")]


def test_a_node_that_is_recorded_as_fenced_but_lives_stops_what_it_ran(node: Node) -> None:
    """Its lease may even hold: it was fenced by hand. What it ran may start on another node at once."""
    start(node)
    node.cluster.lose(N2)
    node.cluster.must(commands.Fenced(N2, life(N2), None, FenceOutcome.CONFIRMED, "it is down"))
    node.see()
    assert node.executor.has_acted_alone
    assert node.begun()[-1] == ("db", "stop")


def test_what_an_older_boot_ran_is_not_stopped() -> None:
    node = Node()
    start_on_older_boot(node)
    node.lose_lease()
    assert node.executor.has_acted_alone
    assert node.begun() == []


def start_on_older_boot(node: Node) -> None:
    node.cluster.issue(order("a"))
    finished = OperationResult(
        ResultKind.FINISHED, OrderKey("a"), DB, "start", 0, ExitCode.OK, ExecutionStatus.DONE, 1, WallTime(0)
    )
    node.cluster.must(commands.RecordResults(N2, life(N2), (finished,)))
    node.executor = ExecutorMachine(N2, life(N2, boot=2), Instant(0), lease_grace_ms=GRACE_MS)
    node.see()


# -- empty ------------------------------------------------------------------------------------------------------------


def test_a_node_is_empty_when_nothing_can_be_active_on_it(node: Node) -> None:
    assert node.is_empty()
    node.cluster.issue(order("a"))
    node.see()
    assert not node.is_empty()
    node.finish("a")
    assert not node.is_empty()
    node.cluster.issue(order("s", ActionName.STOP))
    node.see()
    node.finish("s")
    assert node.is_empty()


def test_a_node_that_stopped_everything_by_itself_is_empty_also_in_its_next_life(node: Node) -> None:
    start(node)
    node.lose_lease()
    assert not node.is_empty()
    node.finish(node.calls[-1].key)
    assert node.is_empty()
    node.perform(node.executor.reincarnated(life(N2, token=2), node.moment()))
    assert node.is_empty()


@pytest.mark.parametrize(
    ("exit_code", "status"), [(1, ExecutionStatus.DONE), (0, ExecutionStatus.TIMEOUT), (1, ExecutionStatus.ERROR)]
)
def test_a_failed_stop_leaves_the_node_not_empty(node: Node, exit_code: int, status: ExecutionStatus) -> None:
    start(node)
    node.lose_lease()
    node.finish(node.calls[-1].key, exit_code, status)
    assert not node.is_empty()


def test_a_life_that_never_joined_proves_nothing() -> None:
    """Its CIB may be older than what its predecessor started."""
    cluster = Cluster()
    node = Node(cluster)
    node.executor = ExecutorMachine(N2, life(N2, token=2), Instant(0), lease_grace_ms=GRACE_MS)
    node.has_lease = False
    node.see()
    assert node.executor.has_acted_alone
    assert not node.is_empty()


@pytest.mark.parametrize("deadline", [Instant(0), Instant(60_000)], ids=["unkillable", "at work"])
def test_an_adopted_agent_of_a_resource_that_the_cib_does_not_know_leaves_the_node_not_empty(
    node: Node, deadline: Instant
) -> None:
    node.executor.adopted([AdoptedAction("old", DB, "start", deadline, is_running=True)])
    node.lose_lease()
    node.perform(node.executor.adopted_ended("old", node.moment()))
    assert not node.is_empty()


@pytest.mark.parametrize(("action", "is_killed"), [("start", True), ("promote", True), ("stop", False)])
def test_without_a_lease_agents_of_older_lives_are_killed_too(action: str, is_killed: bool) -> None:
    cluster = Cluster()
    cluster.issue(order("a", ActionName(action)))
    cluster.must(commands.Join(N2, life(N2, token=2)))
    node = Node(cluster)
    node.executor.adopted([AdoptedAction("a", DB, action, Instant(node.now + 60_000), is_running=True)])
    node.perform(node.executor.reincarnated(life(N2, token=2), node.moment()))
    node.see()
    node.lose_lease()
    node.tick(GRACE_MS)
    assert node.killed == (["a"] if is_killed else [])
    node.tick(1)
    assert node.killed == (["a"] if is_killed else [])
    assert node.begun() == []
    node.perform(node.executor.adopted_ended("a", node.moment()))
    assert node.begun() == [("db", "demote" if action == "promote" else "stop")]


def test_a_node_to_which_something_migrates_is_not_empty_when_it_has_stopped_everything(node: Node) -> None:
    sending = replace(order("to", ActionName.MIGRATE_TO, node=N3), meta={"migrate_source": N3, "migrate_target": N2})
    node.cluster.issue(sending)
    node.see()
    node.lose_lease()
    assert node.begun() == [("db", "stop")]
    node.finish(node.calls[-1].key)
    assert not node.is_empty()


def test_what_came_by_migration_is_stopped_also_where_a_node_without_a_lease_learns_of_it_late(node: Node) -> None:
    start(node)
    node.cluster.issue(order("s", ActionName.STOP))
    node.see()
    node.finish("s")
    node.lose_lease()
    assert node.is_empty()
    sending = replace(order("to", ActionName.MIGRATE_TO, node=N3), meta={"migrate_source": N3, "migrate_target": N2})
    node.cluster.issue(sending)
    node.see()
    assert node.begun() == [("db", "start"), ("db", "stop"), ("db", "stop")]
    assert not node.is_empty()
    node.finish(node.calls[-1].key)
    assert not node.is_empty(), "it may still be on its way"
    node.see()
    assert node.begun() == [("db", "start"), ("db", "stop"), ("db", "stop")]


@pytest.mark.parametrize(
    ("ends_after_ms", "status"), [(999, ExecutionStatus.UNKNOWN), (1000, ExecutionStatus.CANCELLED)]
)
def test_a_new_life_answers_for_the_old_one_once_its_agent_has_ended(ends_after_ms: int, status: str) -> None:
    """And says whether that agent came to its end, or was killed at its deadline."""
    cluster = Cluster()
    cluster.issue(order("a"))
    cluster.must(commands.Join(N2, life(N2, token=2)))
    node = Node(cluster)
    deadline = Instant(node.now + 1000)
    node.executor.adopted([AdoptedAction("a", DB, "start", deadline, is_running=True)])
    node.perform(node.executor.reincarnated(life(N2, token=2), node.moment()))
    node.see()
    assert node.answers() == []
    node.now += ends_after_ms
    node.perform(node.executor.adopted_ended("a", node.moment()))
    node.see()
    assert node.answers() == [("a", ResultKind.UNKNOWN)]
    assert node.reported[0].status == status
    assert not cluster.status(N2).orders


def test_an_agent_of_an_older_life_that_no_kill_ends_does_not_hold_its_resource_for_ever() -> None:
    """It sleeps uninterruptibly: its order is closed as unknown, so that the resource is looked at again."""
    cluster = Cluster()
    cluster.issue(order("a"))
    cluster.must(commands.Join(N2, life(N2, token=2)))
    node = Node(cluster)
    node.executor.adopted([AdoptedAction("a", DB, "start", Instant(node.now + 1000), is_running=True)])
    node.perform(node.executor.reincarnated(life(N2, token=2), node.moment()))
    node.see()
    node.tick(1000 + UNKILLABLE_MS - 1)
    assert node.answers() == []
    assert node.executor.deadline(node.moment()) == node.now + 1
    node.tick(1)
    node.see()
    assert node.answers() == [("a", ResultKind.UNKNOWN)]
    assert node.reported[0].status == ExecutionStatus.CANCELLED
    assert not cluster.status(N2).orders
    assert not node.is_empty()


def test_each_life_answers_again_for_what_is_still_open() -> None:
    cluster = Cluster()
    cluster.issue(order("a"))
    cluster.must(commands.Join(N2, life(N2, token=2)))
    node = Node(cluster)
    node.executor.reincarnated(life(N2, token=2), node.moment())
    lost = node.executor.cib_changed(cluster.cib, node.moment())
    assert commands_of(lost), "its answer never reaches the log"
    node.perform(node.executor.reincarnated(life(N2, token=3), node.moment()))
    cluster.must(commands.Join(N2, life(N2, token=3)))
    node.see()
    assert node.answers() == [("a", ResultKind.UNKNOWN)]
    node.see()
    assert not cluster.status(N2).orders
    assert node.begun() == []


# -- lost, with a watchdog --------------------------------------------------------------------------------------------


def with_watchdog(node: Node, reaction: str) -> None:
    """Give n2 a watchdog, and say what a node does that finds itself lost (`fence-reaction`)."""
    node.cluster.must(commands.PublishWatchdog(N2, life(N2), Watchdog(10_000, "/dev/watchdog")))
    wanted = AttributeSet("cib-bootstrap-options", (("fence-reaction", reaction),))
    node.cluster.configure(PutSets("properties", (wanted,)))
    node.see()


@pytest.mark.parametrize(("reaction", "is_reset"), [("stop", False), ("panic", True)])
def test_a_node_that_finds_itself_lost_is_reset_by_its_watchdog_where_it_is_to_panic(
    node: Node, reaction: str, *, is_reset: bool
) -> None:
    with_watchdog(node, reaction)
    node.cluster.lose(N2)
    assert node.executor.awaits_reset(node.cluster.cib) is is_reset, "though its executor has not seen it yet"
    condemned = [each for each in node.see() if isinstance(each, Condemn)]
    assert condemned == ([Condemn(is_condemned=True)] if is_reset else [])
    assert node.executor.awaits_reset(node.cluster.cib) is is_reset


@pytest.mark.parametrize("reaction", ["stop", "panic"])
def test_a_daemon_that_begins_again_in_a_boot_whose_death_is_recorded_waits_for_the_reset_too(
    node: Node, reaction: str
) -> None:
    with_watchdog(node, reaction)
    node.cluster.lose(N2)
    fenced(node)
    again = ExecutorMachine(N2, life(N2, token=2), Instant(node.now), lease_grace_ms=GRACE_MS, actions_max=16)
    again.cib_changed(node.cluster.cib, node.moment())
    assert again.awaits_reset(node.cluster.cib) is (reaction == "panic")


def test_what_ends_on_a_node_that_is_lost_and_runs_on_is_not_reported(node: Node) -> None:
    policy = AttributeSet("cib-bootstrap-options", (("no-quorum-policy", "freeze"),))
    node.cluster.configure(PutSets("properties", (policy,)))
    node.cluster.issue(order("a"))
    node.see()
    node.cluster.lose(N2)
    node.see()
    node.finish("a")
    assert node.reported == []
