"""A CIB and the commands that make it; a small cluster of n1 to n3 as the machines see it; orders and results."""

from collections.abc import Iterable, Mapping, Sequence

from haclusterd.cib import commands
from haclusterd.cib.apply import apply
from haclusterd.cib.changes import Applied, Refusal, RefusalCode
from haclusterd.cib.edits import Edit
from haclusterd.machines.effects import Effect, Propose
from haclusterd.machines.moment import Moment
from haclusterd.model.agent_calls import AgentResult
from haclusterd.model.cluster import Cib, Member, NodeStatus
from haclusterd.model.configuration import AttributeSet, Primitive
from haclusterd.model.fencing import FenceAction, FenceOrder
from haclusterd.model.ids import AgentReference, FenceKey, Incarnation, NodeName, OrderKey, RequestId, ResourceId, Term
from haclusterd.model.instants import NEVER, Instant, WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order, ResultKind
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import SafetyRules

N1, N2, N3 = NAMES = tuple(NodeName(name) for name in ("n1", "n2", "n3"))
DB, WEB = ResourceId("db"), ResourceId("web")
DUMMY = AgentReference("ocf", "haclusterd", "dummy")
TERM = Term(1)
WALL = WallTime(1_000_000)


def life(node: str, boot: int = 1, token: int = 1) -> Incarnation:
    return Incarnation(f"{node}-boot{boot}", f"{token:016x}")


def moment(now: int, *, lease_until: int = NEVER) -> Moment:
    return Moment(Instant(now), WALL, Instant(lease_until))


def without_lease(now: int) -> Moment:
    return moment(now, lease_until=0)


class Log:
    """A CIB and the commands that make it, in the term they are appended in."""

    def __init__(self) -> None:
        self.cib = Cib()
        self.index = 0
        self.term = TERM
        self.rules = SafetyRules()

    def put(self, command: commands.Command, *, request: str = "", by: NodeName = N1) -> Applied:
        self.index += 1
        envelope = commands.Envelope(RequestId(request or f"r{self.index}"), by, WallTime(1000 * self.index), command)
        applied = apply(self.cib, envelope, index=self.index, term=self.term, rules=self.rules)
        self.cib = applied.cib
        return applied

    def must(self, command: commands.Command, *, by: NodeName = N1) -> Applied:
        applied = self.put(command, by=by)
        assert applied.refusal is None, applied.refusal
        return applied

    def must_refuse(self, command: commands.Command, code: RefusalCode) -> Refusal:
        before = self.cib
        applied = self.put(command)
        assert applied.refusal is not None
        assert applied.refusal.code is code
        assert (applied.cib.status, applied.cib.configuration) == (before.status, before.configuration)
        return applied.refusal


class Cluster(Log):
    """Three members that have joined, n1 the DC, and a CIB that changes only by commands."""

    def __init__(self, names: Sequence[NodeName] = NAMES, joined: Sequence[NodeName] = NAMES) -> None:
        super().__init__()
        members = tuple(Member(name, (("127.0.0.1", 7000),)) for name in names)
        self.must(commands.FormCluster("uuid", "test", members))
        self.must(commands.DcElected(N1, life(N1), TERM))
        for name in joined:
            self.must(commands.Join(name, life(name)))

    def status(self, node: NodeName) -> NodeStatus:
        return self.cib.status.nodes[node]

    def configure(self, *edits: Edit) -> None:
        self.must(commands.ChangeConfiguration(self.cib.version.epoch, edits, "test", ""))

    def issue(self, *orders: Order) -> None:
        self.must(commands.IssueOrders(self.term, orders))

    def void(self, *keys: str) -> None:
        self.must(commands.VoidOrders(self.term, tuple(OrderKey(key) for key in keys)))

    def lose(self, node: NodeName) -> None:
        self.must(commands.Lost(node, self.status(node).incarnation, self.term, "silent"))

    def take(self, effects: Iterable[Effect | object]) -> list[commands.Command]:
        """Commit everything that is proposed; return it."""
        proposed = commands_of(effects)
        for command in proposed:
            self.put(command)
        return proposed


def commands_of(effects: Iterable[Effect | object]) -> list[commands.Command]:
    return [effect.command for effect in effects if isinstance(effect, Propose)]


def order(
    key: str,
    action: ActionName = ActionName.START,
    *,
    node: NodeName = N2,
    resource: ResourceId = DB,
    incarnation: Incarnation | None = None,
    interval_ms: int = 0,
    deadline_ms: int = 10_000,
    target: ExitCode = ExitCode.OK,
) -> Order:
    return Order(
        key=OrderKey(key),
        node=node,
        incarnation=incarnation or life(node),
        dc_term=TERM,
        resource=resource,
        action=action,
        interval_ms=interval_ms,
        agent=DUMMY,
        parameters={"a": "1"},
        meta={},
        timeout_ms=20_000,
        deadline_ms=deadline_ms,
        target_exit_code=target,
    )


def issue(*orders: Order) -> commands.IssueOrders:
    return commands.IssueOrders(TERM, orders)


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
    log.must(issue(order("start", node=node)))
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
        dc_term=TERM,
        timeout_ms=1000,
        attempt=1,
        issued_at=WallTime(0),
        reason="lost",
    )


def lose(node: NodeName = N2) -> commands.Lost:
    return commands.Lost(node, life(node), TERM, "silent")


def probe(key: str, *, node: NodeName = N2, resource: ResourceId = DB) -> Order:
    return replace(
        order(key, ActionName.MONITOR, node=node, resource=resource, target=ExitCode.NOT_RUNNING), is_probe=True
    )


def ended(key: str, exit_code: int = 0, status: ExecutionStatus = ExecutionStatus.DONE) -> AgentResult:
    return AgentResult(key, exit_code, status, "", "", "", queued_ms=0, executed_ms=5)


def primitive(name: str, agent: str = "ocf:haclusterd:dummy", parameters: Mapping[str, str] | None = None) -> Primitive:
    pairs = tuple((parameters or {}).items())
    sets = (AttributeSet(f"{name}-instance_attributes", pairs),) if pairs else ()
    return Primitive(ResourceId(name), AgentReference.parse(agent), parameters=sets)
