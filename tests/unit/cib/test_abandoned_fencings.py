"""Which fencing of an executor ends the fence agent that it left behind."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.changes import RefusalCode
from haclusterd.cib.edits import PutResource
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.fencing import FailedOperation, FenceAction, FenceOrder, FenceOutcome
from haclusterd.model.ids import FenceKey, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.watchdog import WATCHDOG
from tests.unit.situations import N1, N2, N3, TERM, Cluster, life, primitive

FIVE = tuple(NodeName(f"n{number}") for number in range(1, 6))


def ordered(
    key: str, target: NodeName, executor: NodeName, action: FenceAction, device: str = "device"
) -> commands.IssueFence:
    return commands.IssueFence(
        FenceOrder(
            key=FenceKey(key), target=target, target_incarnation=life(target), action=action,
            device=ResourceId(device), executor=executor, executor_incarnation=life(executor), dc_term=TERM,
            timeout_ms=60_000, attempt=1, issued_at=WallTime(1), reason="lost",
        )
    )


@pytest.mark.parametrize(("provides", "is_kept"), [((), False), ((("provides", "unfencing"),), True)])
def test_a_device_that_leaves_the_executor_alive_does_not_end_its_agent(
    provides: tuple[tuple[str, str], ...], is_kept: bool
) -> None:
    cluster = Cluster(FIVE, FIVE)
    device = replace(primitive("device", "stonith:fence_test"), meta=(AttributeSet("meta", provides),))
    cluster.configure(PutResource(device))
    cluster.must(ordered("on-n2", N2, N3, FenceAction.ON))
    cluster.lose(N3)
    cluster.must(commands.RecordFenceFailure(FenceKey("on-n2"), FenceOutcome.UNKNOWN, "n3 is away"))
    cluster.lose(N2)
    cluster.must(ordered("off-n3", N3, N1, FenceAction.OFF))
    cluster.must(commands.RecordFenceAgent(FenceKey("off-n3"), FenceOutcome.FENCED, ""))
    cluster.must(commands.Fenced(N3, life(N3), FenceKey("off-n3"), FenceOutcome.FENCED, ""))
    assert bool(cluster.cib.status.abandoned_fencings) is is_kept


def test_a_device_that_left_the_executor_alive_did_so_whatever_is_configured_afterwards() -> None:
    cluster = Cluster(FIVE, FIVE)
    letting_in = (AttributeSet("meta", (("provides", "unfencing"),)),)
    cluster.configure(PutResource(replace(primitive("device", "stonith:fence_test"), meta=letting_in)))
    cluster.must(ordered("on-n2", N2, N3, FenceAction.ON))
    cluster.lose(N3)
    cluster.must(commands.RecordFenceFailure(FenceKey("on-n2"), FenceOutcome.UNKNOWN, "n3 is away"))
    cluster.must(ordered("off-n3", N3, N1, FenceAction.OFF))
    cluster.configure(PutResource(primitive("device", "stonith:fence_test")))
    cluster.must(commands.RecordFenceAgent(FenceKey("off-n3"), FenceOutcome.FENCED, ""))
    cluster.must(commands.Fenced(N3, life(N3), FenceKey("off-n3"), FenceOutcome.FENCED, ""))
    assert FenceKey("on-n2") in cluster.cib.status.abandoned_fencings


@pytest.mark.parametrize("action", [FenceAction.OFF, FenceAction.ON])
def test_a_node_does_not_leave_before_it_has_answered_its_fence_order(action: FenceAction) -> None:
    cluster = Cluster()
    if action is FenceAction.OFF:
        cluster.lose(N2)
    cluster.must(commands.RequestLeave(N3, life(N3)))
    cluster.must(ordered("f", N2, N3, action))
    refusal = cluster.put(commands.Leaving(N3, life(N3))).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.FENCING_IN_FLIGHT
    assert cluster.status(N3).state is NodeState.ONLINE
    cluster.must(commands.RecordFenceAgent(FenceKey("f"), FenceOutcome.FENCED, ""))
    cluster.must(commands.Leaving(N3, life(N3)))


@pytest.mark.parametrize("is_lost", [True, False])
def test_nobody_who_is_gone_is_ordered_to_fence(is_lost: bool) -> None:
    cluster = Cluster(FIVE, FIVE)
    if is_lost:
        cluster.lose(N3)
    else:
        cluster.must(commands.Leaving(N3, life(N3)))
    cluster.lose(N2)
    refusal = cluster.put(ordered("f", N2, N3, FenceAction.OFF)).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.WRONG_NODE_STATE


def test_the_agent_of_an_executor_that_left_without_an_answer_has_its_time_too() -> None:
    """A version that did not refuse this may have let it go."""
    cluster = Cluster()
    cluster.lose(N2)
    cluster.must(ordered("f", N2, N3, FenceAction.OFF))
    nodes = {**cluster.cib.status.nodes, N3: replace(cluster.status(N3), state=NodeState.LEFT)}
    cluster.cib = replace(cluster.cib, status=replace(cluster.cib.status, nodes=nodes))
    cluster.must(commands.RecordFenceFailure(FenceKey("f"), FenceOutcome.UNKNOWN, "n3 is gone"))
    assert FenceKey("f") in cluster.cib.status.abandoned_fencings
    held = cluster.put(commands.Join(N2, life(N2, boot=2))).refusal
    assert held is not None
    assert held.code is RefusalCode.HELD_FENCING_IN_FLIGHT


def test_a_node_that_left_is_still_known_by_the_longest_lease_that_it_held() -> None:
    cluster = Cluster()
    longest_ms = cluster.status(N3).longest_lease_ms
    cluster.must(commands.Leaving(N3, life(N3)))
    assert cluster.status(N3).longest_lease_ms == longest_ms > 0


@pytest.mark.parametrize(("device", "is_held"), [("san", True), ("power", False), ("was-san", True)])
def test_an_agent_that_may_let_a_node_in_holds_only_devices_that_leave_it_alive(device: str, is_held: bool) -> None:
    cluster = Cluster(FIVE, FIVE)
    letting_in = (AttributeSet("meta", (("provides", "unfencing"),)),)
    for name, meta in (("san", letting_in), ("was-san", letting_in), ("power", ())):
        cluster.configure(PutResource(replace(primitive(name, "stonith:fence_test"), meta=meta)))
    cluster.must(ordered("on", N2, N3, FenceAction.ON, "was-san"))
    cluster.lose(N3)
    cluster.must(commands.RecordFenceFailure(FenceKey("on"), FenceOutcome.UNKNOWN, "n3 is gone"))
    cluster.configure(PutResource(primitive("was-san", "stonith:fence_test")))
    cluster.lose(N2)
    refusal = cluster.put(ordered("off", N2, N1, FenceAction.OFF, device)).refusal
    assert (refusal is not None) == is_held


def test_a_join_that_is_held_ends_no_wait_for_the_nodes_watchdog() -> None:
    # The wait would begin again with each Join that is asked for, each would count as a fencing, and what ran on the
    # node would not be recovered.
    cluster = Cluster(FIVE, FIVE)
    cluster.lose(N2)
    cluster.must(ordered("by-device", N2, N3, FenceAction.OFF))
    cluster.lose(N3)
    cluster.must(commands.RecordFenceFailure(FenceKey("by-device"), FenceOutcome.UNKNOWN, "n3 is gone"))
    cluster.must(ordered("by-watchdog", N2, N1, FenceAction.OFF, WATCHDOG))
    status = cluster.cib.status
    refusal = cluster.put(commands.Join(N2, life(N2, boot=2))).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.HELD_FENCING_IN_FLIGHT
    assert cluster.cib.status == status
    cluster.must(commands.Fenced(N2, life(N2), FenceKey("by-watchdog"), FenceOutcome.FENCED, ""))


def test_a_loss_that_is_refused_leaves_a_fenced_node_fenced() -> None:
    cluster = Cluster()
    cluster.lose(N2)
    cluster.must(commands.Fenced(N2, life(N2), None, FenceOutcome.CONFIRMED, ""))
    cluster.lose(N3)
    failed = FailedOperation(ResourceId("db"), "stop", "timeout")
    refusal = cluster.put(commands.Lost(N2, life(N2), TERM, "a stop failed", causes=(failed,))).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.ENDS_QUORUM
    assert cluster.status(N2).state is NodeState.FENCED
