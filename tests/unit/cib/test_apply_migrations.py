"""An open migration counts on both its nodes, whatever becomes of either (safety.md §1, "Live migration")."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.activity import possibly_active
from haclusterd.cib.changes import RefusalCode
from haclusterd.cib.edits import PutResource, PutSets
from haclusterd.model.activity import history_says_active, migrating_to_or_from, possibly_promoted
from haclusterd.model.configuration import AttributeSet, Clone
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.history import OperationRecord
from haclusterd.model.ids import NodeName, OrderKey, ResourceId
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order, ResultKind
from haclusterd.model.records import replace
from tests.unit.situations import (
    DB,
    N1,
    N2,
    N3,
    Cluster,
    Log,
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

MOVE = {"migrate_source": "n2", "migrate_target": "n3"}


@pytest.fixture
def log() -> Log:
    """db runs on n2; n1 is DC."""
    made = Cluster()
    started(made)
    return made


def send(key: str = "to", node: NodeName = N2, target: str = "n3") -> Order:
    meta = {"migrate_source": node, "migrate_target": target}
    return replace(order(key, ActionName.MIGRATE_TO, node=node), meta=meta)


def receive(key: str = "from") -> Order:
    return replace(order(key, ActionName.MIGRATE_FROM, node=N3), meta=MOVE)


def sent(exit_code: ExitCode = ExitCode.OK, kind: ResultKind = ResultKind.FINISHED) -> commands.RecordResults:
    return record(result("to", "migrate_to", exit_code, call_id=2, kind=kind))


def probed(log: Log, node: NodeName, exit_code: ExitCode, key: str = "probe", token: int = 1) -> None:
    log.must(issue(replace(probe(key, node=node), incarnation=life(node, token=token))))
    answer = result(key, "monitor", exit_code, target=ExitCode.NOT_RUNNING, call_id=50)
    log.must(commands.RecordResults(node, life(node, token=token), (answer,)))


def is_doubted(log: Log, node: NodeName = N3) -> bool:
    status = log.cib.status.nodes[node]
    return DB in status.unverified and DB in possibly_active(status) and DB not in status.probed


def refuses_start(log: Log, node: NodeName = N1) -> bool:
    applied = log.put(issue(order(f"start-{log.index}", node=node)))
    return applied.refusal is not None and applied.refusal.code is RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS


def test_the_target_is_in_doubt_from_the_commit_until_a_probe_after_the_end(log: Log) -> None:
    probed(log, N3, ExitCode.NOT_RUNNING, "before")
    log.must(issue(send()))
    assert is_doubted(log)
    probed(log, N3, ExitCode.NOT_RUNNING, "meanwhile")
    assert is_doubted(log), "it may arrive after this answer"
    log.must(sent())
    assert is_doubted(log)
    probed(log, N3, ExitCode.NOT_RUNNING, "afterwards")
    assert not is_doubted(log)


def test_what_may_arrive_is_newer_than_the_stop_that_was_the_last_action_of_the_target() -> None:
    """A probe that cannot look falls back on what is recorded."""
    log = Cluster()
    started(log, N3)
    log.must(issue(order("stop", ActionName.STOP, node=N3)))
    log.must(record(result("stop", "stop", call_id=2), N3))
    started(log)
    assert not history_says_active(log.status(N3).histories[DB])
    log.must(issue(send()))
    assert history_says_active(log.status(N3).histories[DB])


def test_a_migrate_from_that_succeeds_settles_the_target(log: Log) -> None:
    log.must(issue(send()))
    log.must(sent())
    log.must(issue(receive()))
    assert is_doubted(log, N2), "it may go back"
    log.must(record(result("from", "migrate_from", call_id=3), N3))
    assert not is_doubted(log)
    assert possibly_active(log.cib.status.nodes[N3]) == {DB}
    log.must(issue(order("stop", ActionName.STOP, node=N2)))
    log.must(record(result("stop", "stop", call_id=4)))
    assert possibly_active(log.cib.status.nodes[N2]) == frozenset()


@pytest.mark.parametrize("exit_code", [ExitCode.NOT_RUNNING, ExitCode.OK])
def test_the_source_is_in_doubt_when_it_has_sent_until_it_is_probed_or_stopped(log: Log, exit_code: ExitCode) -> None:
    log.must(issue(send()))
    assert not is_doubted(log, N2), "by its order it counts there"
    log.must(sent())
    assert is_doubted(log, N2), "it is recorded as started, and has left"
    probed(log, N2, exit_code)
    assert not is_doubted(log, N2)


def test_a_migrate_to_that_fails_leaves_its_failure_to_the_scheduler(log: Log) -> None:
    log.must(issue(send()))
    log.must(sent(ExitCode.ERROR))
    assert DB not in log.cib.status.nodes[N2].unverified
    assert history_says_active(log.status(N2).histories[DB])
    assert is_doubted(log)


def test_a_migrate_from_that_fails_settles_nothing(log: Log) -> None:
    log.must(issue(send()))
    log.must(sent())
    log.must(issue(receive()))
    log.must(record(result("from", "migrate_from", ExitCode.ERROR, call_id=3), N3))
    assert is_doubted(log)
    assert is_doubted(log, N2)


@pytest.mark.parametrize("phase", ["open", "sent", "not begun", "failed"])
@pytest.mark.parametrize("end", ["fenced", "rebooted", "restarted"])
def test_nothing_starts_on_others_when_the_source_is_gone(log: Log, phase: str, end: str) -> None:
    probed(log, N3, ExitCode.NOT_RUNNING, "before")
    log.must(issue(send()))
    if phase == "sent":
        log.must(sent())
    elif phase == "failed":
        log.must(sent(ExitCode.ERROR))
    elif phase == "not begun":
        log.must(sent(ExitCode.UNKNOWN, kind=ResultKind.NOT_BEGUN))
    if end == "fenced":
        log.must(lose())
        log.must(commands.Fenced(N2, life("n2"), None, FenceOutcome.CONFIRMED, "by hand"))
    else:
        log.must(commands.Join(N2, life("n2", 2 if end == "rebooted" else 1, 2)))
    assert refuses_start(log)
    if end != "restarted":
        probed(log, N3, ExitCode.NOT_RUNNING, "afterwards")
        assert not refuses_start(log)


def test_a_restart_of_the_source_keeps_the_order_until_its_next_life_answers(log: Log) -> None:
    log.must(issue(send()))
    log.must(commands.Join(N2, life("n2", token=2)))
    assert log.cib.status.nodes[N2].orders["to"].is_voided
    probed(log, N3, ExitCode.NOT_RUNNING, "early")
    probed(log, N2, ExitCode.NOT_RUNNING, "early-2", token=2)
    assert refuses_start(log)
    answer = result("to", "migrate_to", ExitCode.UNKNOWN, kind=ResultKind.UNKNOWN, call_id=60)
    log.must(commands.RecordResults(N2, life("n2", token=2), (answer,)))
    assert is_doubted(log)
    assert is_doubted(log, N2)
    probed(log, N3, ExitCode.NOT_RUNNING, "late")
    assert refuses_start(log)
    probed(log, N2, ExitCode.NOT_RUNNING, "late-2", token=2)
    assert not refuses_start(log)


def test_a_target_that_reboots_in_mid_migration_is_in_doubt_again(log: Log) -> None:
    log.must(issue(send()))
    log.must(commands.Join(N3, life("n3", boot=2)))
    assert is_doubted(log)


@pytest.mark.parametrize(
    ("status", "is_cut_off"), [(ExecutionStatus.CANCELLED, True), (ExecutionStatus.UNKNOWN, False)]
)
def test_what_was_cut_off_is_recorded_at_the_target_and_survives_a_clean_up(
    log: Log, status: ExecutionStatus, is_cut_off: bool
) -> None:
    log.must(issue(send()))
    log.must(commands.Join(N2, life("n2", token=2)))
    answer = result("to", "migrate_to", ExitCode.UNKNOWN, kind=ResultKind.UNKNOWN, call_id=60)
    log.must(commands.RecordResults(N2, life("n2", token=2), (replace(answer, status=status),)))
    log.must(commands.CleanUp(DB, None))
    arrival = _arrival(log)
    assert arrival is not None
    assert arrival.is_undecided == is_cut_off


def test_what_a_fenced_node_was_sending_is_cut_off(log: Log) -> None:
    log.must(issue(send()))
    log.must(lose())
    log.must(commands.Fenced(N2, life("n2"), None, FenceOutcome.CONFIRMED, "by hand"))
    arrival = _arrival(log)
    assert arrival is not None
    assert (arrival.migrate_source, arrival.status) == (N2, ExecutionStatus.UNKNOWN)
    probed(log, N3, ExitCode.NOT_RUNNING)
    assert _arrival(log) is None


def test_a_probe_that_could_not_look_does_not_fall_back_on_one_from_before_the_arrival(log: Log) -> None:
    log.must(issue(send()))
    probed(log, N3, ExitCode.NOT_RUNNING, "too early")
    log.must(sent(ExitCode.UNKNOWN, kind=ResultKind.UNKNOWN))
    probed(log, N2, ExitCode.NOT_RUNNING, "source")
    probed(log, N3, ExitCode.NOT_INSTALLED, "target")
    assert is_doubted(log), "it may have arrived after the first answer"
    assert refuses_start(log)
    probed(log, N3, ExitCode.NOT_RUNNING, "later")
    assert not refuses_start(log)


def test_nor_where_failures_from_before_are_still_counted() -> None:
    log = Cluster()
    log.must(issue(order("failing", node=N3)))
    log.must(record(result("failing", exit_code=ExitCode.ERROR), N3))
    log.must(issue(order("stop", ActionName.STOP, node=N3)))
    log.must(record(result("stop", "stop", call_id=2), N3))
    started(log)
    log.must(issue(send()))
    probed(log, N3, ExitCode.NOT_RUNNING, "too early")
    log.must(sent())
    probed(log, N2, ExitCode.NOT_RUNNING, "source")
    probed(log, N3, ExitCode.NOT_INSTALLED, "target")
    assert refuses_start(log)


def test_a_migrate_from_whose_end_nobody_knows_is_not_forgotten_by_a_probe_that_could_not_look(log: Log) -> None:
    log.must(issue(send()))
    log.must(sent())
    probed(log, N3, ExitCode.NOT_RUNNING, "too early")
    log.must(issue(receive()))
    log.must(record(result("from", "migrate_from", ExitCode.UNKNOWN, kind=ResultKind.UNKNOWN, call_id=70), N3))
    probed(log, N2, ExitCode.NOT_RUNNING, "source")
    probed(log, N3, ExitCode.NOT_INSTALLED, "target")
    assert refuses_start(log)


def _arrival(log: Log) -> OperationRecord | None:
    history = log.cib.status.nodes[N3].histories.get(DB)
    return history.records.get("migrate_from_0") if history is not None else None


def test_a_lost_target_is_fenced_before_anything_starts(log: Log) -> None:
    log.must(issue(send()))
    log.must(lose(N3))
    log.must(sent(ExitCode.ERROR))
    log.must(issue(order("stop", ActionName.STOP, node=N2)))
    log.must(record(result("stop", "stop", call_id=4)))
    assert refuses_start(log)
    log.must(commands.Fenced(N3, life("n3"), None, FenceOutcome.CONFIRMED, "by hand"))
    assert not refuses_start(log)


def test_a_target_in_doubt_does_not_leave(log: Log) -> None:
    log.must(issue(send()))
    log.must(commands.RequestLeave(N3, life("n3")))
    log.must_refuse(commands.Leaving(N3, life("n3")), RefusalCode.STILL_ACTIVE)
    log.must_refuse(commands.ForgetHistory(N3, DB), RefusalCode.STILL_ACTIVE)


def test_nothing_migrates_to_where_it_may_be_or_to_a_node_that_is_not_there(log: Log) -> None:
    log.must(issue(send("first")))
    log.must(record(result("first", "migrate_to", ExitCode.ERROR, call_id=2)))
    log.must_refuse(issue(send()), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    log.must_refuse(issue(send(target="n9")), RefusalCode.NOT_A_MEMBER)
    log.must(lose(N1))
    log.must_refuse(issue(send(target="n1")), RefusalCode.WRONG_NODE_STATE)


def _cloned(log: Log) -> None:
    """Let what was one service become a clone, of which three copies may run."""
    clone = Clone(ResourceId("dbs"), DB, meta=(AttributeSet("dbs-meta", (("clone-max", "3"),)),))
    edits = PutResource(primitive("db")), PutResource(clone)
    log.must(commands.ChangeConfiguration(log.cib.version.epoch, edits, "test", ""))


def test_what_becomes_a_clone_on_its_way_starts_no_copy_where_it_may_arrive_or_come_back(log: Log) -> None:
    log.must(issue(send()))
    _cloned(log)
    assert refuses_start(log, N3)
    log.must(issue(order("third", node=N1)))
    log.must(sent())
    log.must(issue(receive()))
    assert refuses_start(log, N2), "it may go back"
    log.must(record(result("from", "migrate_from", call_id=3), N3))
    assert not refuses_start(log, N2)


def test_a_copy_of_a_clone_does_not_migrate_to_where_another_may_run(log: Log) -> None:
    _cloned(log)
    log.must(issue(order("there", node=N3)))
    log.must_refuse(issue(send()), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    log.must(record(result("there"), N3))
    log.must_refuse(issue(send()), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_a_migration_is_not_received_from_a_lost_node(log: Log) -> None:
    log.must(issue(send()))
    log.must(sent())
    log.must(lose())
    log.must_refuse(issue(receive()), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)


def test_without_fencing_nobody_waits_for_a_lost_source(log: Log) -> None:
    pairs = (AttributeSet("options", (("fencing-enabled", "false"),)),)
    edit = PutSets("properties", pairs)
    log.must(commands.ChangeConfiguration(log.cib.version.epoch, (edit,), "test", ""))
    log.must(issue(send()))
    log.must(lose())
    assert migrating_to_or_from(log.cib, N3) == frozenset()
    probed(log, N3, ExitCode.NOT_RUNNING)
    assert not refuses_start(log)


# -- promotion -------------------------------------------------------------------------------------------------------


def _promoted(call_id: int, key: str = "promote") -> OperationResult:
    return result(key, "promote", call_id=call_id)


def test_a_promote_is_possible_until_the_next_life_has_answered_and_a_probe_too(log: Log) -> None:
    log.must(issue(order("promote", ActionName.PROMOTE, node=N2)))
    log.must(commands.Join(N2, life("n2", token=2)))
    on_another = issue(order("other", ActionName.PROMOTE, node=N3))
    log.must_refuse(on_another, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    answer = result("promote", "promote", ExitCode.UNKNOWN, kind=ResultKind.UNKNOWN, call_id=60)
    log.must(commands.RecordResults(N2, life("n2", token=2), (answer,)))
    log.must_refuse(on_another, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    probed(log, N2, ExitCode.OK, token=2)
    log.must(on_another)


def test_an_unknown_demote_leaves_a_promoted_instance_possible(log: Log) -> None:
    log.must(issue(order("promote", ActionName.PROMOTE, node=N2)))
    log.must(record(_promoted(2)))
    log.must(issue(order("demote", ActionName.DEMOTE, node=N2)))
    log.must(record(result("demote", "demote", ExitCode.UNKNOWN, kind=ResultKind.UNKNOWN, call_id=3)))
    assert possibly_promoted(log.cib.status.nodes[N2], DB)


def _unique(log: Log, promoted_max: int) -> commands.ChangeConfiguration:
    pairs = (("globally-unique", "true"), ("promotable", "true"), ("promoted-max", str(promoted_max)))
    clone = Clone(ResourceId("dbs"), DB, meta=(AttributeSet("dbs-meta", (*pairs, ("clone-node-max", "2"))),))
    edits = PutResource(primitive("db")), PutResource(clone)
    return commands.ChangeConfiguration(log.cib.version.epoch, edits, "test", "")


@pytest.mark.parametrize("node", [N2, N3], ids=["beside it", "on another node"])
@pytest.mark.parametrize(("promoted_max", "is_refused"), [(1, True), (2, False)])
@pytest.mark.parametrize("first", ["open", "done", "demote unknown"])
def test_instances_of_a_unique_clone_count_together_in_the_promoted_role(
    first: str, promoted_max: int, is_refused: bool, node: NodeName
) -> None:
    log = Cluster()
    log.must(_unique(log, promoted_max))
    one, other = ResourceId("db:0"), ResourceId("db:1")
    for key, name, where in (("a", one, N2), ("b", other, node)):
        log.must(issue(order(key, node=where, resource=name)))
        log.must(record(replace(result(key), resource=name), where))
    log.must(issue(order("p", ActionName.PROMOTE, node=N2, resource=one)))
    if first != "open":
        log.must(record(replace(_promoted(2, "p"), resource=one)))
    if first == "demote unknown":
        log.must(issue(order("d", ActionName.DEMOTE, node=N2, resource=one)))
        unknown = result("d", "demote", ExitCode.UNKNOWN, kind=ResultKind.UNKNOWN, call_id=3)
        log.must(record(replace(unknown, resource=one)))
    applied = log.put(issue(order("q", ActionName.PROMOTE, node=node, resource=other)))
    assert (applied.refusal is not None) == is_refused
    if applied.refusal is not None:
        assert applied.refusal.text == "db:1 may be promoted on n2 as db:0"


def test_a_monitor_that_fails_says_nothing_about_the_role(log: Log) -> None:
    log.must(issue(order("promote", ActionName.PROMOTE, node=N2)))
    log.must(record(_promoted(2)))
    watching = order("monitor", ActionName.MONITOR, node=N2, interval_ms=1000, target=ExitCode.PROMOTED)
    log.must(issue(watching))
    failed = result("monitor", "monitor", ExitCode.ERROR, target=ExitCode.PROMOTED, interval_ms=1000, call_id=3)
    log.must(record(failed))
    assert possibly_promoted(log.cib.status.nodes[N2], DB)


def test_every_replica_spells_the_doubts_that_a_batch_of_probes_leaves_alike(log: Log) -> None:
    """Replicas are compared by the bytes of their CIBs, and a set of names has another order in each process."""
    machines = [ResourceId(f"vm{number:02}") for number in range(20)]
    for name in machines:
        log.must(issue(replace(send(f"to-{name}"), resource=name)))
    for name in machines:
        log.must(issue(probe(f"probe-{name}", node=N3, resource=name)))
    answer = result("", "monitor", ExitCode.NOT_RUNNING, target=ExitCode.NOT_RUNNING, call_id=50)
    answers = [replace(answer, order=OrderKey(f"probe-{name}"), resource=name) for name in machines]
    log.must(commands.RecordResults(N3, life("n3"), tuple(answers)))
    assert list(log.cib.status.nodes[N3].histories) == machines


@pytest.mark.parametrize("action", [ActionName.MONITOR, ActionName.STOP])
def test_nothing_migrates_to_where_an_answer_to_come_would_say_that_nothing_runs(log: Log, action: ActionName) -> None:
    """The answer of before the arrival is recorded after it, when the order of the migration has ended."""
    looked = replace(order("look", action, node=N3), target_exit_code=ExitCode.NOT_RUNNING)
    log.must(issue(looked))
    log.must_refuse(issue(send()), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    log.must(commands.RecordResults(N3, life("n3"), (result("look", str(action), ExitCode.NOT_RUNNING,
                                                            target=ExitCode.NOT_RUNNING, call_id=50),)))  # fmt: skip
    log.must(issue(send()))


@pytest.mark.parametrize(
    ("is_unique", "wanted", "refused"), [(False, "db", "db:0"), (True, "db:0", "db"), (True, "db:1", "db:2")]
)
def test_a_plan_of_before_starts_nothing_that_a_change_has_taken_away(
    log: Log, *, is_unique: bool, wanted: str, refused: str
) -> None:
    """Seed 1016: the stop of `vm` ends right behind the change, and the starts of its instances are ordered."""
    pairs = (("globally-unique", str(is_unique).lower()), ("clone-max", "2"))
    clone = Clone(ResourceId("dbs"), DB, meta=(AttributeSet("dbs-meta", pairs),))
    edits = PutResource(primitive("db")), PutResource(clone)
    log.must(commands.ChangeConfiguration(log.cib.version.epoch, edits, "test", ""))
    log.must(record(result("start", "stop", call_id=9)))
    strange = replace(order("strange", node=N3), resource=ResourceId(refused))
    log.must_refuse(issue(strange), RefusalCode.NOT_CONFIGURED)
    log.must(issue(replace(order("other", node=N3), resource=ResourceId(wanted))))


@pytest.mark.parametrize("state", ["active", "lost"])
def test_an_instance_does_not_start_while_others_that_are_to_stop_are_as_many_as_there_may_be(state: str) -> None:
    """`clone-max` was lowered after the plan was made, and the surplus instance has not stopped yet."""
    clone = Clone(ResourceId("dbs"), DB, meta=(AttributeSet("dbs-meta", (("globally-unique", "true"),)),))
    limits = AttributeSet("limits", (("clone-max", "2"),)), AttributeSet("limits", (("clone-max", "1"),))
    log = Cluster()
    log.configure(PutResource(primitive("db")), PutResource(clone))
    log.configure(PutSets("resource_defaults", limits[:1]))
    surplus, wanted = ResourceId("db:1"), ResourceId("db:0")
    log.must(issue(order("a", node=N2, resource=surplus)))
    log.must(record(replace(result("a"), resource=surplus)))
    log.configure(PutSets("resource_defaults", limits[1:]))
    if state == "lost":
        log.lose(N2)
    refusal = log.must_refuse(issue(order("b", node=N3, resource=wanted)), RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    assert refusal.text == "db:1 on n2 may be active, and there may be no more"
    if state == "active":
        log.must(issue(order("s", ActionName.STOP, node=N2, resource=surplus)))
        log.must(record(replace(result("s", "stop", call_id=2), resource=surplus)))
    else:
        log.must(commands.Fenced(N2, life("n2"), None, FenceOutcome.CONFIRMED, ""))
    log.must(issue(order("c", node=N3, resource=wanted)))
