"""Claims of devices: made with their order, over with what ended it, gone by proof or by a boot (safety.md §11)."""

from collections.abc import Sequence

import pytest

from haclusterd.cib import commands
from haclusterd.cib.apply import apply
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.commands import DeviceChange, SteerDevice
from haclusterd.cib.edits import Delete, PutResource
from haclusterd.model.cluster import NodeState
from haclusterd.model.devices import DeviceClaim, DeviceId, DeviceState, NodeDevices, claim_objection
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import Incarnation, OrderKey, RequestId, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import ResultKind
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import SafetyRules
from tests.unit.cib.claimed_devices import (
    A,
    B,
    C,
    claims,
    device,
    ended,
    known,
    proven,
    publish,
    release,
    stopped,
    wants,
)
from tests.unit.situations import (
    DB,
    N1,
    N2,
    N3,
    WALL,
    WEB,
    Cluster,
    Log,
    issue,
    life,
    lose,
    order,
    primitive,
    probe,
)


@pytest.fixture
def log() -> Cluster:
    """Three nodes online; n2 and n3 have reported two devices each."""
    made = Cluster()
    for node in (N2, N3):
        made.must(publish(device(A), device(B), node=node))
    return made


# --- what claims -----------------------------------------------------------------------------------------------------


def test_the_commit_of_a_start_claims_its_devices(log: Log) -> None:
    log.must(issue(wants("start", A, B)))
    assert known(log).claims == {name: (DeviceClaim(DB, OrderKey("start"), is_first=True),) for name in (A, B)}
    assert claims(log, N3) == {}


def test_what_was_started_keeps_its_claim_and_its_history_names_it(log: Log) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start")
    assert claims(log) == {A: [("db", False)]}
    assert log.cib.status.nodes[N2].histories[DB].devices == (A,)


@pytest.mark.parametrize(
    ("wanted", "code", "words"),
    [
        ((C,), RefusalCode.UNKNOWN_DEVICE, "n2 has reported no device GPU-c"),
        ((B, A), RefusalCode.DEVICE_NOT_FREE, "GPU-a of n2 is held by db"),
    ],
)
def test_devices_of_others_and_unknown_ones_are_refused(
    log: Log, wanted: Sequence[DeviceId], code: RefusalCode, words: str
) -> None:
    log.must(issue(wants("start", A)))
    refused = log.put(issue(wants("web", *wanted, resource=WEB)))
    assert refused.refusal is not None
    assert (refused.refusal.code, refused.refusal.text) == (code, words)
    assert claims(log) == {A: [("db", False)]}, "nothing of a refused command counts"


def test_two_orders_of_one_command_cannot_claim_one_device(log: Log) -> None:
    log.must_refuse(issue(wants("db", A), wants("web", A, resource=WEB)), RefusalCode.DEVICE_NOT_FREE)


def test_without_its_rule_a_device_is_given_twice(log: Log) -> None:
    log.rules = SafetyRules(device_is_held_once=False)
    log.must(issue(wants("db", A), wants("web", A, resource=WEB)))
    assert claims(log) == {A: [("db", False), ("web", False)]}


def test_a_probe_and_a_stop_claim_nothing(log: Log) -> None:
    log.must(issue(replace(probe("probe"), devices=(A,)), wants("stop", A, action=ActionName.STOP, resource=WEB)))
    assert known(log).claims == {}


# --- shared devices --------------------------------------------------------------------------------------------------


def test_a_device_is_shared_up_to_its_memory(log: Log) -> None:
    log.must(issue(wants("db", A, memory_mib=50_000), wants("web", A, resource=WEB, memory_mib=30_000)))
    assert claims(log) == {A: [("db", False), ("web", False)]}
    third = wants("third", A, resource=ResourceId("third"), memory_mib=1)
    refused = log.put(issue(third)).refusal
    assert refused is not None
    assert refused.text == "GPU-a of n2 has 80000 MiB, of which 80000 are claimed: 1 more are too many"


@pytest.mark.parametrize(("first", "second"), [(0, 1000), (1000, 0)])
def test_who_wants_a_device_alone_does_not_share_it(log: Log, first: int, second: int) -> None:
    log.must(issue(wants("db", A, memory_mib=first)))
    log.must_refuse(issue(wants("web", A, resource=WEB, memory_mib=second)), RefusalCode.DEVICE_NOT_FREE)


@pytest.mark.parametrize("share", [1000, 2000, 0])
def test_a_sharer_comes_back_to_its_device_when_its_older_life_is_proven_gone(log: Log, share: int) -> None:
    log.must(issue(wants("start", A, memory_mib=1000)))
    ended(log, "start")
    stopped(log)
    again = issue(wants("again", A, memory_mib=share))
    log.must_refuse(again, RefusalCode.DEVICE_NOT_FREE)
    log.must(release(proven()))
    log.must(again)


# --- how claims end --------------------------------------------------------------------------------------------------


def test_a_stop_marks_a_claim_over_and_the_device_is_not_given_out(log: Log) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start")
    stopped(log)
    assert claims(log) == {A: [("db", True)]}
    refused = log.put(issue(wants("web", A, resource=WEB))).refusal
    assert refused is not None
    assert refused.text == "GPU-a of n2 is held by db, which has ended and is not proven to use it no more"


def test_a_stop_that_failed_leaves_the_claim(log: Log) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start")
    stopped(log, exit_code=ExitCode.ERROR)
    assert claims(log) == {A: [("db", False)]}


def test_a_start_that_was_not_begun_leaves_no_claim(log: Log) -> None:
    log.must(issue(wants("start", A, B)))
    log.must(publish(device(A)))
    ended(log, "start", kind=ResultKind.NOT_BEGUN)
    assert claims(log) == {}, "nothing has used them, and nobody could prove that of the one that is missing"


def test_a_start_that_was_not_begun_leaves_the_claim_of_the_life_before_it(log: Log) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start")
    stopped(log)
    log.must(issue(wants("again", A, B)))
    ended(log, "again", kind=ResultKind.NOT_BEGUN)
    assert claims(log) == {A: [("db", True)]}, "what was stopped may use it yet"
    log.must(issue(wants("third", B, resource=WEB)))


def test_a_start_that_was_not_begun_leaves_the_claim_of_what_may_run_all_the_same(log: Log) -> None:
    log.must(issue(probe("p1")))
    log.must(issue(wants("start", A)))
    ended(log, "p1", "monitor", ExitCode.OK, target=ExitCode.NOT_RUNNING)
    ended(log, "start", kind=ResultKind.NOT_BEGUN)
    assert claims(log) == {A: [("db", False)]}


def test_another_order_that_was_not_begun_ends_no_claim(log: Log) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start", kind=ResultKind.UNKNOWN, exit_code=ExitCode.UNKNOWN)
    log.must(issue(probe("p1")))
    ended(log, "p1", "monitor", ExitCode.NOT_RUNNING, call_id=2, target=ExitCode.NOT_RUNNING)
    log.must(issue(probe("p2")))
    ended(log, "p2", "monitor", kind=ResultKind.NOT_BEGUN)
    assert claims(log) == {A: [("db", True)]}


@pytest.mark.parametrize("code", [ExitCode.ERROR, ExitCode.NOT_RUNNING])
def test_a_start_that_failed_leaves_a_claim_as_long_as_something_may_run(log: Log, code: ExitCode) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start", exit_code=code)
    assert claims(log) == {A: [("db", code is ExitCode.NOT_RUNNING)]}


def test_a_probe_that_finds_nothing_marks_a_claim_over_and_one_that_finds_it_later_does_not_take_it_back(
    log: Log,
) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start", kind=ResultKind.UNKNOWN, exit_code=ExitCode.UNKNOWN)
    assert claims(log) == {A: [("db", False)]}, "nobody knows how it ended"
    log.must(issue(probe("p1")))
    ended(log, "p1", "monitor", ExitCode.NOT_RUNNING, call_id=2, target=ExitCode.NOT_RUNNING)
    assert claims(log) == {A: [("db", True)]}
    log.must(issue(probe("p2")))
    ended(log, "p2", "monitor", ExitCode.OK, call_id=3, target=ExitCode.NOT_RUNNING)
    assert claims(log) == {A: [("db", True)]}, "what somebody else started did not claim it"


def test_proof_ends_a_claim_that_is_over(log: Log) -> None:
    log.must(issue(wants("start", A, B)))
    ended(log, "start")
    stopped(log)
    applied = log.must(release(proven(A)))
    assert claims(log) == {B: [("db", True)]}
    assert [(each.kind, each.text) for each in applied.changes] == [
        (ChangeKind.DEVICES_RELEASED, "GPU-a of n2 is free of db")
    ]
    assert log.must(release(proven(A))).changes == (), "asking twice does no harm"
    log.must(issue(wants("web", A, resource=WEB)))


def test_proof_of_an_older_life_does_not_end_a_newer_claim(log: Log) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start")
    log.must(release(proven()))
    assert claims(log) == {A: [("db", False)]}, "it is not over"
    stopped(log)
    log.must(issue(wants("again", A)))
    log.must(release(proven()))
    assert claims(log) == {A: [("db", False)]}, "it is claimed again"
    ended(log, "again", call_id=3)
    stopped(log, call_id=4)
    log.must(release(proven()))
    assert claims(log) == {A: [("db", True)]}, "the proof is about the life before"
    log.must(release(proven(key="again")))
    assert claims(log) == {}


def test_only_the_life_of_a_node_that_is_in_force_proves_and_reports(log: Log) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start")
    stopped(log)
    log.must_refuse(release(proven(), token=2), RefusalCode.OLD_INCARNATION)
    log.must(lose())
    log.must_refuse(release(proven()), RefusalCode.OLD_INCARNATION)
    log.must_refuse(publish(device(A)), RefusalCode.OLD_INCARNATION)


def test_without_its_rule_a_stop_ends_a_claim(log: Log) -> None:
    log.rules = SafetyRules(release_is_proven=False)
    log.must(issue(wants("start", A)))
    ended(log, "start")
    stopped(log)
    assert claims(log) == {}


def test_a_clean_up_and_a_forgotten_history_lose_no_claim(log: Log) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start", exit_code=ExitCode.ERROR)
    log.must(commands.CleanUp(DB, None, reprobe=True))
    assert claims(log) == {A: [("db", False)]}
    log.must_refuse(commands.ForgetHistory(N2, DB), RefusalCode.STILL_ACTIVE)
    stopped(log)
    log.must(commands.ForgetHistory(N2, DB))
    assert claims(log) == {A: [("db", True)]}


def test_a_resource_under_another_name_waits_for_the_proof_of_the_older_one(log: Cluster) -> None:
    log.configure(PutResource(primitive("db")))
    log.must(issue(replace(wants("start", A), definition="d1")))
    ended(log, "start")
    log.configure(Delete("resource", "db"), PutResource(primitive("sql")))
    renamed = issue(replace(wants("sql", A, resource=ResourceId("sql")), definition="d1"))
    log.must_refuse(renamed, RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS)
    log.must(issue(replace(order("stop", ActionName.STOP), definition="d1")))
    ended(log, "stop", "stop", call_id=2)
    log.must_refuse(renamed, RefusalCode.DEVICE_NOT_FREE)
    log.must(release(proven()))
    log.must(renamed)


# --- lives of nodes --------------------------------------------------------------------------------------------------


def test_a_daemon_s_restart_keeps_claims_and_tells_probes_of_their_devices(log: Log) -> None:
    log.must(issue(wants("start", A)))
    log.must(commands.Join(N2, life(N2, token=2)))
    assert claims(log) == {A: [("db", False)]}
    assert log.cib.status.nodes[N2].histories[DB].devices == (A,)


def test_a_boot_ends_all_claims_of_its_node(log: Log) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start")
    log.must(commands.Join(N2, life(N2, boot=2)))
    assert claims(log) == {}
    assert set(known(log).devices) == {A, B}, "what it has seen stays"


def test_after_a_boot_no_device_counts_as_usable_before_its_node_has_reported_it(log: Log) -> None:
    """It may have been replaced while the node had no power: nothing may be started with what is not there."""
    seen = (replace(device(A), strangers=("7 train",)), device(B, DeviceState.DEGRADED), device(C, DeviceState.FAILED))
    log.must(publish(*seen))
    log.must(commands.Join(N2, life(N2, token=2)))
    assert [each.state for each in known(log).devices.values()] == ["ok", "degraded", "failed"], "its daemon is new"
    log.must(commands.Join(N2, life(N2, boot=2)))
    assert [(each.state, each.reasons, each.strangers) for each in known(log).devices.values()] == [
        ("unknown", ("not-watched: its node has not reported it since it booted",), ()),
        ("unknown", ("not-watched: its node has not reported it since it booted",), ()),
        ("failed", ("test: it is failed",), ()),
    ]
    log.must(replace(publish(device(A)), incarnation=life(N2, boot=2)))
    assert [each.state for each in known(log).devices.values()] == ["ok", "failed", "failed"]
    assert known(log).devices[B].is_missing


def test_fencing_marks_claims_over_and_only_the_boot_that_follows_ends_them(log: Log) -> None:
    """A person may be wrong, and a device may cut a node off from its storage alone: then its processes live on."""
    log.must(issue(wants("start", A)))
    ended(log, "start")
    log.must(lose())
    assert claims(log) == {A: [("db", False)]}
    log.must(commands.Fenced(N2, life(N2), None, FenceOutcome.CONFIRMED, "it is off"))
    assert claims(log) == {A: [("db", True)]}
    same_boot = Incarnation(life(N2).boot_id, f"{2:016x}")
    log.must(commands.Join(N2, same_boot))
    assert claims(log) == {A: [("db", True)]}
    log.must(commands.Join(N2, life(N2, boot=2)))
    assert claims(log) == {}


def test_who_leaves_leaves_claims_that_are_over(log: Log) -> None:
    log.must(issue(wants("start", A)))
    ended(log, "start")
    stopped(log)
    log.must(commands.Leaving(N2, life(N2)))
    assert log.cib.status.nodes[N2].state is NodeState.LEFT
    assert claims(log) == {A: [("db", True)]}


def test_who_is_dropped_from_the_members_takes_its_devices_along(log: Log) -> None:
    log.must(commands.Leaving(N2, life(N2)))
    log.must(commands.Retire(N2, "root"))
    kept = tuple(member for name, member in log.cib.members.items() if name != N2)
    change = commands.ChangeMembers(log.cib.membership.version + 1, kept, (), "root")
    envelope = commands.Envelope(RequestId("drop"), N1, WALL, change)
    log.cib = apply(log.cib, envelope, index=log.index + 1, term=log.term, is_in_force=True).cib
    assert set(log.cib.status.devices) == {N3}


# --- live migration --------------------------------------------------------------------------------------------------


def test_a_live_migration_claims_where_it_goes_and_keeps_what_it_had(log: Log) -> None:
    meta = {"migrate_source": "n2", "migrate_target": "n3"}
    log.must(issue(wants("start", A)))
    ended(log, "start")
    log.must(issue(replace(wants("to", B, action=ActionName.MIGRATE_TO), meta=meta)))
    assert (claims(log), claims(log, N3)) == ({A: [("db", False)]}, {B: [("db", False)]})
    assert log.cib.status.nodes[N3].histories[DB].devices == (B,)
    ended(log, "to", "migrate_to", call_id=2)
    log.must(issue(replace(wants("from", B, action=ActionName.MIGRATE_FROM, node=N3), meta=meta)))
    ended(log, "from", "migrate_from", node=N3)
    stopped(log, call_id=3)
    assert (claims(log), claims(log, N3)) == ({A: [("db", True)]}, {B: [("db", False)]})
    log.must_refuse(issue(wants("web", B, resource=WEB, node=N3)), RefusalCode.DEVICE_NOT_FREE)


# --- what nodes see --------------------------------------------------------------------------------------------------


def test_a_report_tells_what_has_changed(log: Log) -> None:
    text = log.must(publish(device(A, DeviceState.DEGRADED), device(B), driver="570.1")).changes[0].text
    assert text == "devices of n2: GPU-a is degraded (test: it is degraded), driver 570.1"
    seen = known(log)
    assert (seen.since[A], seen.since[B]) == (1000 * log.index, seen.since[B])
    assert seen.since[B] < seen.since[A]
    assert log.must(publish(device(A, DeviceState.DEGRADED), device(B), driver="570.1")).changes == ()


def test_a_device_that_is_seen_no_more_is_missing_and_keeps_its_claim(log: Log) -> None:
    log.must(issue(wants("start", A)))
    text = log.must(publish(device(B))).changes[0].text
    assert text == "devices of n2: GPU-a is failed (missing: its node does not see it any more)"
    assert known(log).devices[A].is_missing
    assert claims(log) == {A: [("db", False)]}
    since = known(log).since[A]
    log.must(publish(device(B, DeviceState.DRAIN)))
    assert known(log).since[A] == since
    log.must(publish(device(A), device(B)))
    assert not known(log).devices[A].is_missing
    assert known(log).unaccepted == frozenset(), "it was accepted before"


def test_what_the_first_report_did_not_have_waits_for_a_person(log: Log) -> None:
    log.must(publish(device(A), device(B), device(C)))
    assert known(log).unaccepted == {C}
    log.must_refuse(issue(wants("start", C)), RefusalCode.DEVICE_NOT_FREE)
    log.must(SteerDevice(N2, C, DeviceChange.ACCEPT, "root", "it passed its burn-in"))
    log.must(issue(wants("start", C)))


def test_a_first_report_of_trouble_alone_does_not_make_later_devices_wait() -> None:
    log = Cluster()
    log.must(publish(trouble="no driver"))
    text = log.must(publish(device(A))).changes[0].text
    assert text == "devices of n2: GPU-a is there, ok, no trouble any more (no driver)"
    assert known(log).unaccepted == frozenset()


def test_a_long_report_names_the_first_devices(log: Log) -> None:
    many = [device(DeviceId(f"GPU-{number}")) for number in range(9)]
    text = log.must(publish(*many, node=N1)).changes[0].text
    assert text.endswith("GPU-3 is there, ok, 5 more")


# --- what persons want -----------------------------------------------------------------------------------------------


def test_nothing_new_starts_on_a_drained_device_and_its_holder_may_come_back(log: Log) -> None:
    log.must(issue(wants("start", A)))
    for name in (A, B):
        text = log.must(SteerDevice(N2, name, DeviceChange.DRAIN, "root", "fan")).changes[0].text
        assert text == f"{name} of n2 is drained by root: fan"
    log.must_refuse(issue(wants("web", B, resource=WEB)), RefusalCode.DEVICE_NOT_FREE)
    ended(log, "start")
    stopped(log)
    log.must(issue(wants("again", A)))
    log.must(SteerDevice(N2, B, DeviceChange.CLEAR, "root"))
    log.must(issue(wants("web", B, resource=WEB)))


def test_only_what_is_missing_and_held_by_nobody_is_forgotten(log: Log) -> None:
    forget = SteerDevice(N2, A, DeviceChange.FORGET, "root")
    log.must_refuse(forget, RefusalCode.DEVICE_NOT_FREE)
    log.must(issue(wants("start", A)))
    log.must(publish(device(B)))
    log.must_refuse(forget, RefusalCode.DEVICE_NOT_FREE)
    ended(log, "start", kind=ResultKind.NOT_BEGUN)
    log.must(release(proven()))
    log.must(forget)
    assert set(known(log).devices) == {B}
    log.must_refuse(forget, RefusalCode.UNKNOWN_DEVICE)


# --- instances -------------------------------------------------------------------------------------------------------


def test_a_device_and_its_instances_are_one() -> None:
    instance = DeviceId("MIG-1")
    whole = NodeDevices({A: device(A), instance: replace(device(instance), parent=A)})
    held = replace(whole, claims={A: (DeviceClaim(DB, OrderKey("k")),)})
    assert claim_objection(whole, instance, WEB, 0) == ""
    assert claim_objection(held, instance, WEB, 0) == "is one with GPU-a, which db holds"
    held = replace(whole, claims={instance: (DeviceClaim(DB, OrderKey("k")),)})
    assert claim_objection(held, A, WEB, 0) == "is one with MIG-1, which db holds"
    divided = NodeDevices({A: replace(device(A), is_partitioned=True)})
    assert claim_objection(divided, A, WEB, 0) == "is divided in instances, which are claimed instead"
