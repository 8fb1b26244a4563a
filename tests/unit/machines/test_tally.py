"""What a daemon counts: outages by cause, operations, fencings."""

import pytest

from haclusterd.cib.changes import Applied, Change, ChangeKind
from haclusterd.cib.commands import Command, Envelope, ReadBarrier, RecordResults
from haclusterd.machines.tally import CAUSES, Tally
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.history import OperationRecord, ResourceHistory, operation_key
from haclusterd.model.ids import AgentReference, NodeName, OrderKey, RequestId, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, ResultKind
from haclusterd.model.records import replace
from tests.administered_clusters import Cluster, fencing_record, formed

N1, N2 = NodeName("n1"), NodeName("n2")
DB = ResourceId("db")
AGENT = AgentReference("ocf", "haclusterd", "dummy")


class Bench:
    """A cluster and what is counted of it."""

    def __init__(self) -> None:
        self.cluster: Cluster = formed()
        self.tally = Tally()
        self.calls = 0

    def observe(self, before: Cib, at_ms: int, *changes: Change, command: Command | None = None) -> None:
        envelope = Envelope(RequestId("r"), N1, WallTime(at_ms), command or ReadBarrier())
        self.tally.observe(before, Applied(self.cluster.cib, envelope, changes))

    def end(
        self, at_ms: int, operation: str, node: NodeName = N1, *, transition: str = "4.1", interval_ms: int = 0,
        code: ExitCode = ExitCode.OK,
    ) -> None:  # fmt: skip
        """Let an operation of db end."""
        before = self.cluster.cib
        status = self.cluster.node(node)
        self.calls += 1
        record = OperationRecord(
            operation, interval_ms, self.calls, code, ExecutionStatus.DONE, ExitCode.OK, WallTime(at_ms),
            WallTime(at_ms), order=OrderKey(f"{transition}.{self.calls}"),
        )  # fmt: skip
        history = status.histories.get(DB, ResourceHistory(DB, AGENT))
        history = replace(history, records={**history.records, operation_key(operation, interval_ms): record})
        self.cluster.put(replace(status, histories={**status.histories, DB: history}))
        kind = ChangeKind.OPERATION_SUCCEEDED if code is ExitCode.OK else ChangeKind.OPERATION_FAILED
        self.observe(before, at_ms, Change(kind, node, DB, ""))

    def lose(self, at_ms: int, node: NodeName, kind: ChangeKind = ChangeKind.NODE_LOST) -> None:
        before = self.cluster.cib
        state = NodeState.LOST if kind is ChangeKind.NODE_LOST else NodeState.FENCED
        histories = {} if state is NodeState.FENCED else self.cluster.node(node).histories
        self.cluster.put(replace(self.cluster.node(node), state=state, histories=histories))
        self.observe(before, at_ms, Change(kind, node, None, ""))

    def outages(self) -> dict[str, tuple[int, int]]:
        return {
            cause: (spans.count, spans.sum_ms) for cause, spans in self.tally.counted().outages.items() if spans.count
        }


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.end(1000, "start")
    made.end(1500, "monitor", interval_ms=10_000)
    assert made.outages() == {}
    return made


def test_a_lost_node_costs_from_its_loss_until_the_resource_runs_again(bench: Bench) -> None:
    bench.lose(10_000, N1)
    bench.lose(12_000, N1, ChangeKind.NODE_FENCED)
    bench.end(14_500, "start", N2, transition="4.2")
    bench.end(14_900, "monitor", N2, transition="4.2", interval_ms=10_000)
    assert bench.outages() == {"node-lost": (1, 4500)}
    within = bench.tally.counted().outages["node-lost"].within
    assert within == (0, 0, 0, 1, *[1] * (len(within) - 4))
    bench.end(90_000, "stop", N2, transition="4.9")
    bench.end(91_000, "start", N2, transition="4.9")
    assert bench.outages() == {"node-lost": (1, 4500), "planned": (1, 1000)}, "a loss is counted once"


def test_a_node_that_is_fenced_while_it_is_heard_has_a_cause_of_its_own(bench: Bench) -> None:
    bench.lose(10_000, N1, ChangeKind.NODE_FENCED)
    bench.end(13_000, "start", N2)
    assert bench.outages() == {"node-fenced": (1, 3000)}


def test_a_failure_costs_from_the_monitor_until_the_start(bench: Bench) -> None:
    bench.end(20_000, "monitor", interval_ms=10_000, code=ExitCode.NOT_RUNNING)
    bench.end(21_000, "stop", transition="4.3")
    bench.end(26_000, "start", transition="4.3")
    assert bench.outages() == {"failure": (1, 6000)}


def test_what_is_switched_off_is_no_outage_and_what_one_transition_moves_is(bench: Bench) -> None:
    bench.end(20_000, "stop", transition="4.3")
    bench.end(920_000, "start", transition="4.8")
    assert bench.outages() == {}
    bench.end(930_000, "stop", transition="4.9")
    bench.end(930_700, "start", N2, transition="4.9")
    assert bench.outages() == {"planned": (1, 700)}


def test_a_clone_that_serves_on_another_node_is_not_away(bench: Bench) -> None:
    bench.end(5000, "start", N2)
    bench.end(20_000, "monitor", interval_ms=10_000, code=ExitCode.NOT_RUNNING)
    bench.end(21_000, "stop")
    bench.end(26_000, "start")
    assert bench.outages() == {}


def test_operations_and_fencings_are_counted_by_how_they_ended(bench: Bench) -> None:
    def result(operation: str, code: ExitCode, interval_ms: int = 0) -> OperationResult:
        return OperationResult(
            ResultKind.FINISHED, None, DB, operation, interval_ms, code, ExecutionStatus.DONE, 1, WallTime(0),
            executed_ms=40,
        )  # fmt: skip

    results = (
        result("start", ExitCode.OK), result("monitor", ExitCode.NOT_RUNNING), result("start", ExitCode.ERROR),
        result("monitor", ExitCode.ERROR, 10_000),
    )  # fmt: skip
    command = RecordResults(N1, bench.cluster.node(N1).incarnation, results)
    bench.observe(bench.cluster.cib, 1, command=command)
    before = bench.cluster.cib
    record = fencing_record("n2", FenceOutcome.FENCED)
    bench.cluster.cib = replace(before, status=replace(before.status, fencing_history=(record,)))
    bench.observe(before, 2)
    counted = bench.tally.counted()
    expected = {("start", "ok"): 1, ("monitor", "ok"): 1, ("start", "failed"): 1, ("monitor", "failed"): 1}
    assert counted.operations == expected
    assert counted.operations_ms == {"start": 80, "monitor": 80}
    assert counted.fencings == {("n2", "reboot", "fenced"): 1}
    assert set(counted.outages) == set(CAUSES)
