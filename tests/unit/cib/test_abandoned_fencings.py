"""Which fencing of an executor ends the fence agent that it left behind."""

from dataclasses import replace

import pytest

from haclusterd.cib import commands
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.fencing import FenceAction, FenceOrder, FenceOutcome
from haclusterd.model.ids import FenceKey, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from tests.unit.machines.situations import N1, N2, N3, TERM, Cluster, life, primitive

FIVE = tuple(NodeName(f"n{number}") for number in range(1, 6))


def ordered(key: str, target: NodeName, executor: NodeName, action: FenceAction) -> commands.IssueFence:
    return commands.IssueFence(
        FenceOrder(
            key=FenceKey(key), target=target, target_incarnation=life(target), action=action,
            device=ResourceId("device"), executor=executor, executor_incarnation=life(executor), dc_term=TERM,
            timeout_ms=60_000, attempt=1, issued_at=WallTime(1), reason="lost",
        )
    )


@pytest.mark.parametrize(("provides", "is_kept"), [((), False), ((("provides", "unfencing"),), True)])
def test_a_device_that_leaves_the_executor_alive_does_not_end_its_agent(
    provides: tuple[tuple[str, str], ...], is_kept: bool
) -> None:
    cluster = Cluster(FIVE, FIVE)
    device = replace(primitive("device", "stonith:fence_test"), meta=(AttributeSet("meta", provides),))
    cluster.configure(commands.PutResource(device))
    cluster.must(ordered("on-n2", N2, N3, FenceAction.ON))
    cluster.lose(N3)
    cluster.must(commands.RecordFenceFailure(FenceKey("on-n2"), FenceOutcome.UNKNOWN, "n3 is away"))
    cluster.lose(N2)
    cluster.must(ordered("off-n3", N3, N1, FenceAction.OFF))
    cluster.must(commands.RecordFenceAgent(FenceKey("off-n3"), FenceOutcome.FENCED, ""))
    cluster.must(commands.Fenced(N3, life(N3), FenceKey("off-n3"), FenceOutcome.FENCED, ""))
    assert bool(cluster.cib.status.abandoned_fencings) is is_kept
