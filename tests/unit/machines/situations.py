"""A small cluster as the machines see it: nodes n1 to n3, all online, n1 the DC of term 1; and what changes it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from haclusterd.cib import commands
from haclusterd.cib.apply import apply
from haclusterd.cib.changes import Applied
from haclusterd.machines.effects import Effect, Propose
from haclusterd.machines.moment import Moment
from haclusterd.model.agent_calls import AgentResult
from haclusterd.model.cluster import Cib, Member, NodeStatus
from haclusterd.model.configuration import AttributeSet, Primitive
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, OrderKey, RequestId, ResourceId, Term
from haclusterd.model.instants import NEVER, Instant, WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order

N1, N2, N3 = NAMES = tuple(NodeName(name) for name in ("n1", "n2", "n3"))
DB, WEB = ResourceId("db"), ResourceId("web")
DUMMY = AgentReference("ocf", "haclusterd", "dummy")
TERM = Term(1)
WALL = WallTime(1_000_000)


def life(node: NodeName, boot: int = 1, token: int = 1) -> Incarnation:
    return Incarnation(f"{node}-boot{boot}", f"{token:016x}")


def moment(now: int, *, lease_until: int = NEVER) -> Moment:
    return Moment(Instant(now), WALL, Instant(lease_until))


def without_lease(now: int) -> Moment:
    return moment(now, lease_until=0)


class Cluster:
    """A CIB that changes only by commands, as it does in life."""

    def __init__(self, names: Sequence[NodeName] = NAMES, joined: Sequence[NodeName] = NAMES) -> None:
        self.cib = Cib()
        self.term = TERM
        members = tuple(Member(name, (("127.0.0.1", 7000),)) for name in names)
        self.must(commands.FormCluster("uuid", "test", members))
        self.must(commands.DcElected(N1, life(N1), TERM))
        for name in joined:
            self.must(commands.Join(name, life(name)))

    def put(self, command: commands.Command, *, by: NodeName = N1) -> Applied:
        index = self.cib.index + 1
        envelope = commands.Envelope(RequestId(f"r{index}"), by, WallTime(1000 * index), command)
        applied = apply(self.cib, envelope, index=index, term=self.term)
        self.cib = applied.cib
        return applied

    def must(self, command: commands.Command, *, by: NodeName = N1) -> Applied:
        applied = self.put(command, by=by)
        assert applied.refusal is None, applied.refusal
        return applied

    def status(self, node: NodeName) -> NodeStatus:
        return self.cib.status.nodes[node]

    def configure(self, *edits: commands.Edit) -> None:
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
        parameters={"p": "1"},
        meta={},
        timeout_ms=20_000,
        deadline_ms=deadline_ms,
        target_exit_code=target,
    )


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
