"""When a node is not fenced for a failed operation: what fencing it has cost already, or cannot do."""

import pytest

from haclusterd.cib.edits import PutConstraint, PutResource
from haclusterd.model.configuration import Location, Primitive
from haclusterd.model.fencing import FailedOperation, FenceAction, FenceOutcome, FencingRecord
from haclusterd.model.ids import AgentReference, ConstraintId, FenceKey, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.unpack.fencing_limits import FencingLimits
from tests.unit.situations import DB, N1, N2, N3, Cluster, life

POWER = ResourceId("power")
STOP_FAILED = FailedOperation(DB, "stop", "error")
NOW = WallTime(10_000_000)
TRIED_AT = WallTime(NOW - 60_000)


def with_power(*banned: NodeName) -> Cluster:
    cluster = Cluster()
    cluster.configure(PutResource(Primitive(POWER, AgentReference("stonith", None, "fence_local"))))
    for name in banned:
        cluster.configure(PutConstraint(Location(ConstraintId(f"not-{name}"), POWER, name, -INFINITY)))
    return cluster


def tried(number: int, outcome: FenceOutcome, *, is_for_failure: bool = True, token: int = 1) -> FencingRecord:
    return FencingRecord(
        FenceKey(f"f{number}"), N2, life(N2, token=token), FenceAction.REBOOT, POWER, N1, outcome, "",
        TRIED_AT, TRIED_AT, "", causes=(STOP_FAILED,) if is_for_failure else (),
    )


def objection(cluster: Cluster, *history: FencingRecord) -> str:
    cib = replace(cluster.cib, status=replace(cluster.cib.status, fencing_history=history))
    return FencingLimits.of(cib, NOW, ClusterProperties(cib.in_force)).objection(N2, STOP_FAILED, NOW)


def test_after_ten_failed_attempts_a_node_that_is_heard_is_not_fenced_for_a_failure() -> None:
    cluster = with_power()
    outcomes = (FenceOutcome.FAILED, FenceOutcome.TIMEOUT, FenceOutcome.LIED)
    history = [tried(number, outcomes[number % 3], token=number // 2 + 1) for number in range(10)]
    assert objection(cluster, *history[:9]) == ""
    said = objection(cluster, *history)
    assert "has failed 10 times within 1h (fencing-max-attempts)" in said
    assert "crm fencing cleanup n2" in said


@pytest.mark.parametrize(("failures", "pause_ms"), [(1, 0), (2, 1000), (3, 2000), (6, 16_000), (9, 30_000)])
def test_between_failed_attempts_its_services_run_on_for_a_growing_time(failures: int, pause_ms: int) -> None:
    history = [tried(number, FenceOutcome.FAILED) for number in range(failures)]
    cib = with_power().cib
    cib = replace(cib, status=replace(cib.status, fencing_history=tuple(history)))
    due = WallTime(TRIED_AT + pause_ms)
    assert FencingLimits.of(cib, due, ClusterProperties(cib.in_force)).objection(N2, STOP_FAILED, TRIED_AT) == ""
    if pause_ms:
        limits = FencingLimits.of(cib, WallTime(due - 1), ClusterProperties(cib.in_force))
        said = limits.objection(N2, STOP_FAILED, TRIED_AT)
        assert said == f"fencing it has failed {failures} times, and is tried again after a pause"
        assert limits.time.recheck_at == due


def test_a_record_from_the_future_delays_nothing() -> None:
    """The clock of the DC that wrote it was three hours ahead, and has been set right."""
    due = WallTime(TRIED_AT + 1000)
    history = [tried(1, FenceOutcome.FAILED), replace(tried(2, FenceOutcome.FAILED), ended_at=due + 3 * 3_600_000)]
    cib = with_power().cib
    cib = replace(cib, status=replace(cib.status, fencing_history=tuple(history)))
    limits = FencingLimits.of(cib, due, ClusterProperties(cib.in_force))
    assert limits.objection(N2, STOP_FAILED, TRIED_AT) == ""


def test_attempts_for_another_reason_and_those_before_a_success_do_not_count() -> None:
    cluster = with_power()
    silent = [tried(number, FenceOutcome.FAILED, is_for_failure=False) for number in range(20)]
    assert objection(cluster, *silent) == ""
    failed = [tried(number, FenceOutcome.FAILED) for number in range(10)]
    other = replace(tried(10, FenceOutcome.FENCED), causes=(replace(STOP_FAILED, ending="timeout"),))
    assert objection(cluster, *failed, other) == ""


def test_it_is_not_fenced_while_nobody_who_stays_may_use_its_device() -> None:
    assert objection(with_power(N1)) == ""
    assert objection(with_power(N1, N3)) == "no node that may use power is online"
    cluster = with_power(N1)
    cluster.lose(N3)
    assert objection(cluster) == "no node that may use power is online"
