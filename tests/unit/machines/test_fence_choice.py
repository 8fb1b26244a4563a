"""Who asks which devices next."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.edits import PutResource
from haclusterd.machines.fence_choice import executor_of
from haclusterd.machines.fencing_director import FencingDirector, Wanted
from haclusterd.model.fencing import FenceAction, FenceOutcome, FencingRecord
from haclusterd.model.ids import AgentReference, FenceKey, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, ResultKind
from haclusterd.model.records import replace
from haclusterd.model.timing import derive
from tests.unit.situations import N1, N2, N3, TERM, Cluster, commands_of, life, moment, order, primitive

POWER = ResourceId("power")
STARTED, FAILED = ExitCode.OK, ExitCode.ERROR


def cluster_with(started: dict[NodeName, ExitCode]) -> Cluster:
    """Return a cluster in which the device was started on some nodes, with these results; n2 is lost."""
    cluster = Cluster()
    cluster.configure(PutResource(primitive("power", "stonith:fence_test")))
    for number, (node, code) in enumerate(started.items()):
        start = replace(order(f"s{number}", node=node, resource=POWER), agent=AgentReference.parse("stonith:fence_x"))
        cluster.issue(start)
        status = ExecutionStatus.DONE if code is ExitCode.OK else ExecutionStatus.ERROR
        result = OperationResult(
            ResultKind.FINISHED, start.key, POWER, ActionName.START, 0, code, status, 1, WallTime(0)
        )
        cluster.must(commands.RecordResults(node, life(node), (result,)), by=node)
    cluster.lose(N2)
    return cluster


def tried_by(node: NodeName) -> FencingRecord:
    now = WallTime(0)
    return FencingRecord(
        FenceKey("f"), N2, life(N2), FenceAction.REBOOT, POWER, node, FenceOutcome.FAILED, "", now, now, ""
    )


@pytest.mark.parametrize(
    ("started", "tried", "expected"),
    [
        ({}, (), N1),
        ({N3: STARTED}, (), N3),
        ({N1: FAILED}, (), N3),
        ({N1: FAILED}, (N3,), N1),
        ({N3: STARTED}, (N3,), N1),
        ({N3: STARTED}, (N3, N1), N3),
        ({N2: STARTED}, (), N1),
    ],
    ids=[
        "nobody has asked it: the DC", "who has it started", "failing here", "each once", "the next one",
        "again from the start", "never the target",
    ],
)  # fmt: skip
def test_who_reaches_the_device_best_asks_it(
    started: dict[NodeName, ExitCode], tried: tuple[NodeName, ...], expected: NodeName
) -> None:
    cluster = cluster_with(started)
    failed = [tried_by(node) for node in tried]
    assert executor_of(cluster.cib, N2, (POWER,), failed, dc=N1, is_unfencing=False) == expected


def test_a_node_that_waits_to_leave_fences_where_nobody_else_can_do_it_as_well() -> None:
    cluster = cluster_with({N3: STARTED})
    cluster.must(commands.RequestLeave(N3, life(N3)))
    assert executor_of(cluster.cib, N2, (POWER,), [], dc=N1, is_unfencing=False) == N1
    assert executor_of(cluster.cib, N2, (POWER,), [tried_by(N1)], dc=N1, is_unfencing=False) == N3


def test_an_order_says_how_much_later_the_node_is_fenced() -> None:
    cluster = cluster_with({})
    director = FencingDirector(N1, TERM, derive(2000))
    [command] = commands_of(
        director.step(cluster.cib, None, moment(1000), Wanted(delay_ms=lambda node: 5000 if node == N2 else 0))
    )
    assert isinstance(command, commands.IssueFence)
    assert command.order.delay_ms == 5000
