"""Commands that are applied to a cluster of three nodes, and the orders and results in them."""

from haclusterd.cib import commands
from haclusterd.cib.apply import apply
from haclusterd.cib.changes import Applied, RefusalCode
from haclusterd.model.cluster import Cib
from haclusterd.model.fencing import FenceAction, FenceOrder
from haclusterd.model.ids import AgentReference, FenceKey, Incarnation, NodeName, OrderKey, RequestId, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order, ResultKind
from haclusterd.model.rules_in_force import SafetyRules

N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
DB = ResourceId("db")
DUMMY = AgentReference("ocf", "haclusterd", "dummy")


def life(node: str, boot: int = 1, token: int = 1) -> Incarnation:
    return Incarnation(f"{node}-boot{boot}", f"{token:016x}")


class Log:
    """A CIB and the commands that make it, in the term they are appended in."""

    def __init__(self) -> None:
        self.cib = Cib()
        self.index = 0
        self.term = Term(1)
        self.rules = SafetyRules()

    def put(self, command: commands.Command, *, request: str = "", by: NodeName = N1) -> Applied:
        self.index += 1
        envelope = commands.Envelope(RequestId(request or f"r{self.index}"), by, WallTime(1000 * self.index), command)
        applied = apply(self.cib, envelope, index=self.index, term=self.term, rules=self.rules)
        self.cib = applied.cib
        return applied

    def must(self, command: commands.Command) -> Applied:
        applied = self.put(command)
        assert applied.refusal is None, applied.refusal
        return applied

    def must_refuse(self, command: commands.Command, code: RefusalCode) -> None:
        before = self.cib
        applied = self.put(command)
        assert applied.refusal is not None
        assert applied.refusal.code is code
        assert (applied.cib.status, applied.cib.configuration) == (before.status, before.configuration)


def order(
    key: str,
    node: NodeName = N2,
    action: ActionName = ActionName.START,
    *,
    incarnation: Incarnation | None = None,
    interval_ms: int = 0,
    target: ExitCode = ExitCode.OK,
) -> Order:
    return Order(
        key=OrderKey(key),
        node=node,
        incarnation=incarnation or life(node),
        dc_term=Term(1),
        resource=DB,
        action=action,
        interval_ms=interval_ms,
        agent=DUMMY,
        parameters={"a": "1"},
        meta={},
        timeout_ms=1000,
        deadline_ms=1000,
        target_exit_code=target,
    )


def issue(*orders: Order) -> commands.IssueOrders:
    return commands.IssueOrders(Term(1), orders)


def result(
    key: str | None,
    operation: str = "start",
    exit_code: ExitCode = ExitCode.OK,
    *,
    kind: ResultKind = ResultKind.FINISHED,
    target: ExitCode = ExitCode.OK,
    interval_ms: int = 0,
    call_id: int = 1,
) -> OperationResult:
    status = ExecutionStatus.DONE if exit_code is target else ExecutionStatus.ERROR
    return OperationResult(
        kind=kind,
        order=OrderKey(key) if key is not None else None,
        resource=DB,
        operation=operation,
        interval_ms=interval_ms,
        exit_code=exit_code,
        status=status,
        call_id=call_id,
        run_at=WallTime(5),
        target_exit_code=target,
    )


def record(item: OperationResult, node: NodeName = N2) -> commands.RecordResults:
    return commands.RecordResults(node, life(node), (item,))


def started(log: Log, node: NodeName = N2) -> None:
    log.must(issue(order("start", node)))
    log.must(record(result("start"), node))


def fence_order(target: NodeName = N2) -> FenceOrder:
    return FenceOrder(
        key=FenceKey("f1"),
        target=target,
        target_incarnation=life(target),
        action=FenceAction.OFF,
        device=ResourceId("power"),
        executor=N1,
        executor_incarnation=life("n1"),
        dc_term=Term(1),
        timeout_ms=1000,
        attempt=1,
        issued_at=WallTime(0),
        reason="lost",
    )


def lose(node: NodeName = N2) -> commands.Lost:
    return commands.Lost(node, life(node), Term(1), "silent")
