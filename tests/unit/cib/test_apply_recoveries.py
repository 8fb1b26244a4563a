"""Recoveries of devices: the intent before the act, nothing while anything is claimed, and proof before it is given
out again (safety.md §11)."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.commands import (
    DeviceChange,
    EndDeviceStorm,
    PublishDevices,
    RecordRecovery,
    RecoveryOutcome,
    SteerDevice,
)
from haclusterd.cib.edits import PutAlert
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import Alert
from haclusterd.model.device_recovery import RETURN_MS_MIN, objection_to_recovery, return_after_ms, wanted_rung
from haclusterd.model.devices import (
    Device,
    DeviceId,
    DeviceKind,
    DeviceRecovery,
    DeviceState,
    RecoveryPhase,
    Rung,
    claim_objection,
    state_in_force,
)
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from tests.unit.cib.claimed_devices import A, B, claims, ended, known, proven, publish, release, stopped, wants
from tests.unit.cib.recovered_devices import bad, begin, having, phase
from tests.unit.situations import DB, N1, N2, N3, WEB, Cluster, issue, life

MIG = DeviceId("MIG-a1")


@pytest.fixture
def log() -> Cluster:
    """Three nodes online; GPU-a of n2 has to be drained, GPU-b is well."""
    made = Cluster()
    made.must(publish(bad(), Device(B)))
    return made


def says(outcome: RecoveryOutcome, *, number: int = 1, token: int = 1, device: DeviceId = A) -> RecordRecovery:
    return RecordRecovery(N2, life(N2, token=token), device, number, outcome, "said")


def objection(log: Cluster, rung: Rung = Rung.RESET, *, is_automatic: bool = False, later_ms: int = 0) -> str:
    at = WallTime(1000 * log.index + later_ms)
    found = objection_to_recovery(log.cib, N2, A, rung, at, is_automatic=is_automatic)
    return found.text if found is not None else ""


# --- the intent ------------------------------------------------------------------------------------------------------


def test_an_intent_keeps_every_claim_off_until_the_device_is_proven_well(log: Cluster) -> None:
    text = log.must(begin()).changes[0].text
    assert text == "GPU-a of n2 is reset by root: xid-119"
    assert known(log).recoveries[A].incarnation == life(N2)
    refused = log.must_refuse(issue(wants("start", A)), RefusalCode.DEVICE_NOT_FREE)
    assert "is not free: reset of GPU-a is under way" in refused.text
    log.must(issue(wants("web", B, resource=WEB)))
    log.must(says(RecoveryOutcome.DONE))
    log.must(publish(Device(A), Device(B)))
    assert (phase(log), state_in_force(known(log), A)) == (RecoveryPhase.PROVING, DeviceState.UNKNOWN)
    log.must_refuse(issue(wants("start", A)), RefusalCode.DEVICE_NOT_FREE)
    changes = log.must(says(RecoveryOutcome.PROVEN)).changes
    assert [(each.kind, each.text) for each in changes] == [
        (ChangeKind.DEVICE_RECOVERY_ENDED, "GPU-a of n2 has proven to be well: said")
    ]
    log.must(issue(wants("start", A)))


def test_no_recovery_begins_while_anything_claims_what_it_would_hit(log: Cluster) -> None:
    log.must(issue(wants("start", A)))
    log.must_refuse(begin(), RefusalCode.DEVICE_NOT_FREE)
    ended(log, "start")
    stopped(log)
    refused = log.must_refuse(begin(), RefusalCode.DEVICE_NOT_FREE)
    assert refused.text == "GPU-a of n2 is held by db, which has ended and is not proven to use it no more"
    log.must(release(proven()))
    log.must(begin())


@pytest.mark.parametrize("rung", [Rung.RELOAD, Rung.REBOOT])
def test_what_hits_the_whole_node_needs_all_of_its_devices_free(log: Cluster, rung: Rung) -> None:
    log.must(issue(wants("web", B, resource=WEB)))
    refused = log.must_refuse(begin(rung=rung), RefusalCode.DEVICE_NOT_FREE)
    assert refused.text == "GPU-a of n2 cannot be recovered: GPU-b is held by web"
    log.must(begin())


def test_while_a_driver_is_loaded_again_nothing_of_its_node_is_claimed(log: Cluster) -> None:
    log.must(begin(rung=Rung.RELOAD))
    refused = log.must_refuse(issue(wants("web", B, resource=WEB)), RefusalCode.DEVICE_NOT_FREE)
    assert "reload of its node, for GPU-a is under way" in refused.text
    log.must(says(RecoveryOutcome.DONE))
    log.must(issue(wants("web", B, resource=WEB)))


def test_a_device_is_not_reset_under_its_instances_nor_they_claimed_meanwhile(log: Cluster) -> None:
    instance = Device(MIG, DeviceKind.MIG, parent=A)
    log.must(publish(bad(is_partitioned=True), Device(B), instance))
    log.must(SteerDevice(N2, MIG, DeviceChange.ACCEPT, "root"))
    log.must(issue(wants("start", MIG)))
    log.must_refuse(begin(), RefusalCode.DEVICE_NOT_FREE)
    log.must_refuse(begin(MIG), RefusalCode.DEVICE_NOT_FREE)
    ended(log, "start")
    stopped(log)
    log.must(release(replace(proven(), device=MIG)))
    log.must(begin())
    log.must_refuse(issue(wants("again", MIG)), RefusalCode.DEVICE_NOT_FREE)


def test_a_strangers_process_keeps_a_device_from_being_reset(log: Cluster) -> None:
    log.must(publish(bad(strangers=("4711 python",)), Device(B)))
    refused = log.must_refuse(begin(), RefusalCode.DEVICE_NOT_FREE)
    assert refused.text == "GPU-a of n2 is used by 4711 python"


def test_one_node_does_one_thing_at_a_time(log: Cluster) -> None:
    log.must(begin())
    log.must_refuse(begin(B), RefusalCode.DEVICE_NOT_FREE)
    log.must_refuse(begin(), RefusalCode.DEVICE_NOT_FREE)


def test_nothing_is_intended_of_a_node_that_is_away(log: Cluster) -> None:
    log.lose(N2)
    log.must_refuse(begin(), RefusalCode.DEVICE_NOT_FREE)


# --- what came of it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "then"),
    [
        (RecoveryOutcome.NOT_BEGUN, None),
        (RecoveryOutcome.DONE, RecoveryPhase.PROVING),
        (RecoveryOutcome.FAILED, RecoveryPhase.HELD),
        (RecoveryOutcome.INTERRUPTED, RecoveryPhase.PROVING),
        (RecoveryOutcome.PROVEN, RecoveryPhase.ACTING),
    ],
)
def test_what_becomes_of_an_intent(log: Cluster, outcome: RecoveryOutcome, then: RecoveryPhase | None) -> None:
    log.must(begin())
    log.must(says(outcome))
    assert phase(log) == then


def test_a_later_life_cannot_say_that_nothing_was_done(log: Cluster) -> None:
    log.must(begin())
    log.must(commands.Join(N2, life(N2, token=2)))
    log.must_refuse(says(RecoveryOutcome.NOT_BEGUN), RefusalCode.OLD_INCARNATION)
    log.must(says(RecoveryOutcome.NOT_BEGUN, token=2))
    assert phase(log) is RecoveryPhase.PROVING


def test_what_was_held_before_and_is_not_begun_stays_held(log: Cluster) -> None:
    log.must(begin())
    log.must(says(RecoveryOutcome.FAILED))
    log.must(begin())
    log.must(says(RecoveryOutcome.NOT_BEGUN, number=2))
    assert phase(log) is RecoveryPhase.HELD
    log.must(says(RecoveryOutcome.PROVEN, number=2))
    assert phase(log) is RecoveryPhase.HELD, "only a person or another recovery ends that"
    log.must(SteerDevice(N2, A, DeviceChange.ACCEPT, "root"))
    assert phase(log) is None


def test_what_is_said_of_an_older_recovery_is_passed_over(log: Cluster) -> None:
    log.must(begin())
    log.must(says(RecoveryOutcome.DONE))
    log.must(begin())
    for outcome in RecoveryOutcome:
        log.must(says(outcome))
        assert phase(log) is RecoveryPhase.ACTING, outcome


def test_a_person_cannot_accept_or_forget_what_is_being_recovered(log: Cluster) -> None:
    log.must(begin())
    for wanted in (DeviceChange.ACCEPT, DeviceChange.FORGET):
        log.must_refuse(SteerDevice(N2, A, wanted, "root"), RefusalCode.DEVICE_NOT_FREE)
    log.must(says(RecoveryOutcome.DONE))
    log.must(publish(Device(B)))
    log.must(SteerDevice(N2, A, DeviceChange.FORGET, "root"))
    assert (known(log).recoveries, dict(known(log).recovered_at)) == ({}, {})


def test_an_intent_outlives_its_node_and_a_boot(log: Cluster) -> None:
    log.must(begin())
    log.lose(N2)
    assert phase(log) is RecoveryPhase.ACTING


# --- by policy -------------------------------------------------------------------------------------------------------


def test_by_policy_only_what_it_allows_for_what_is_bad(log: Cluster) -> None:
    assert objection(log, is_automatic=True) == "is not recovered like this: gpu-recovery-reset=ask"
    having(log, gpu_recovery_reset="auto")
    assert objection(log, is_automatic=True) == ""
    assert "gpu-recovery-reload=ask" in objection(log, Rung.RELOAD, is_automatic=True)
    log.must(publish(bad(state=DeviceState.DEGRADED), Device(B)))
    assert objection(log, is_automatic=True) == "is degraded, for which nothing is done by policy"
    assert objection(log) == ""
    having(log, gpu_recovery_reset="off")
    assert objection(log) == "is not recovered like this: gpu-recovery-reset=off"


def test_budgets_bind_policies_and_not_persons(log: Cluster) -> None:
    having(log, gpu_recovery_reset="auto", gpu_recovery_limit="1", gpu_recovery_window="1h")
    log.must(begin(is_automatic=True))
    log.must(says(RecoveryOutcome.FAILED))
    refused = log.must_refuse(begin(is_automatic=True), RefusalCode.DEVICE_NOT_FREE)
    assert refused.text.endswith("was recovered 1 times in 3600 s (gpu-recovery-limit): a person has to look")
    assert objection(log) == ""
    assert objection(log, is_automatic=True, later_ms=3_600_001) == ""


def test_a_storm_stops_policies_until_a_person_ends_it(log: Cluster) -> None:
    having(log, gpu_recovery_reset="auto", gpu_storm_devices="2", gpu_storm_window="10min")
    log.must(publish(bad(), bad(B)))
    changes = log.must(begin(is_automatic=True)).changes
    assert [each.kind for each in changes] == [ChangeKind.DEVICE_STORM]
    assert changes[0].text == (
        "no device is recovered without a person's word: 2 devices of 1 node (n2) went bad at once"
    )
    assert phase(log) is None
    log.must_refuse(begin(is_automatic=True), RefusalCode.DEVICE_NOT_FREE)
    log.must(begin())
    log.must(says(RecoveryOutcome.NOT_BEGUN))
    log.must(EndDeviceStorm("root", "the air conditioning"))
    log.must(begin(is_automatic=True))
    assert phase(log) is RecoveryPhase.ACTING, "what went bad before the person's word counts no more"
    assert not log.must(EndDeviceStorm("root")).changes


def test_devices_of_many_nodes_are_a_storm_too(log: Cluster) -> None:
    having(log, gpu_recovery_reset="auto", gpu_storm_nodes="2", gpu_storm_window="10min")
    log.must(publish(bad(DeviceId("GPU-x")), node=N3))
    assert "2 devices of 2 nodes (n2, n3) went bad at once" in objection(log, is_automatic=True)
    assert objection(log, is_automatic=True, later_ms=601_000) == ""


def test_a_reboot_is_a_fencing_and_leaves_a_quorum(log: Cluster) -> None:
    log.must(begin(rung=Rung.REBOOT))
    assert log.status(N2).state is NodeState.LOST
    assert log.status(N2).is_fence_requested
    other = Cluster()
    other.must(publish(bad(), Device(B)))
    other.lose(N3)
    refused = other.must_refuse(begin(rung=Rung.REBOOT), RefusalCode.DEVICE_NOT_FREE)
    assert refused.text.endswith("without n2 1 of 3 voters would be online, which is no quorum")


def test_the_next_rung_after_what_did_not_help(log: Cluster) -> None:
    assert wanted_rung(known(log), known(log).devices[A]) is Rung.RESET
    for number, then in ((1, Rung.RELOAD), (2, Rung.REBOOT)):
        rung = (Rung.RESET, Rung.RELOAD)[number - 1]
        log.must(begin(rung=rung))
        log.must(says(RecoveryOutcome.FAILED, number=number))
        assert wanted_rung(known(log), known(log).devices[A]) is then
    assert wanted_rung(known(log), bad(rung="")) is None
    held = DeviceRecovery(9, RecoveryPhase.HELD, Rung.REBOOT, life(N2), "root", WallTime(0), "")
    assert wanted_rung(replace(known(log), recoveries={A: held}), known(log).devices[A]) is None


def test_a_device_that_hangs_after_its_holder_ended_is_proven_free_by_a_boot_alone(log: Cluster) -> None:
    hung = replace(bad(state=DeviceState.FAILED), reasons=("hang-lasts: it has not answered for long",))
    log.must(publish(Device(A), Device(B)))
    log.must(issue(wants("start", A)))
    ended(log, "start")
    log.must(publish(hung, Device(B)))
    assert wanted_rung(known(log), hung) is Rung.REBOOT
    refused = log.must_refuse(begin(rung=Rung.REBOOT), RefusalCode.DEVICE_NOT_FREE)
    assert refused.text.endswith("is held by db"), "nothing is rebooted under what runs"
    stopped(log)
    assert claims(log)[A] == [("db", True)]
    log.must_refuse(begin(), RefusalCode.DEVICE_NOT_FREE)
    log.must(begin(rung=Rung.REBOOT))
    assert log.status(N2).is_fence_requested


# --- the way back ----------------------------------------------------------------------------------------------------


def test_what_is_well_again_by_itself_proves_it_where_that_is_wanted(log: Cluster) -> None:
    log.must(publish(Device(A), Device(B)))
    assert phase(log) is None
    having(log, gpu_return_after="30s")
    log.must(publish(bad(), Device(B)))
    log.must(publish(Device(A), Device(B)))
    assert (phase(log), known(log).recoveries[A].rung) == (RecoveryPhase.PROVING, None)
    assert claim_objection(known(log), A, DB, 0) == "is not proven to be well yet"
    assert claim_objection(known(log), B, DB, 0) == ""


def test_who_stays_on_a_device_may_come_back_while_it_proves_itself(log: Cluster) -> None:
    having(log, gpu_return_after="30s")
    log.must(issue(wants("start", A)))
    log.must(publish(Device(A), Device(B)))
    assert claim_objection(known(log), A, DB, 0) == ""
    assert claim_objection(known(log), A, WEB, 0) == "is not proven to be well yet"


def test_the_proof_takes_longer_each_time(log: Cluster) -> None:
    def span() -> int:
        return return_after_ms(log.cib, known(log), A, WallTime(1000 * log.index))

    log.must(begin())
    assert span() == RETURN_MS_MIN
    having(log, gpu_return_after="30s")
    for number, wanted in ((1, 30_000), (2, 60_000), (3, 120_000), (4, 240_000)):
        assert span() == wanted
        log.must(says(RecoveryOutcome.FAILED, number=number))
        log.must(begin())
    assert return_after_ms(log.cib, known(log), A, WallTime(1000 * log.index + 86_400_001)) == 30_000


def test_another_node_has_nothing_to_do_with_it(log: Cluster) -> None:
    log.must(begin())
    assert NodeName(N1) not in log.cib.status.devices
    assert log.must(PublishDevices(N2, life(N2), (bad(), Device(B)))).changes == ()


def test_people_are_called_for_a_device_that_was_not_helped_and_for_a_storm_once(log: Cluster) -> None:
    having(log, gpu_recovery_reset="auto", gpu_storm_devices="2")
    log.configure(PutAlert(Alert("mail", "/usr/bin/mail")))
    log.must(begin())
    log.must(says(RecoveryOutcome.FAILED))
    log.must(publish(bad(), bad(B)))
    for _ in range(2):
        log.put(begin(B, is_automatic=True))
    said = [(event.node, event.task, event.description) for event in log.cib.status.alerts.pending]
    assert said == [
        ("n2", "gpu-recovery", "device GPU-a is held after reset: said"),
        ("n1", "gpu-storm", "devices wait for a person: 2 devices of 1 node (n2) went bad at once"),
    ]
