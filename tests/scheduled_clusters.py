"""A cluster whose plans are carried out: the real `apply`, the real `schedule`, and a truth of what runs where.

What a plan orders is committed as orders and answered by results, as executors would. `running` is the truth that
probes and monitors tell; it is never read by anything but them and the tests.
"""

from collections.abc import Iterable, Sequence

from haclusterd.cib import commands
from haclusterd.cib.apply import apply
from haclusterd.cib.edits import difference
from haclusterd.formats.crm.syntax import assemble, parse_script
from haclusterd.model.cluster import Cib, Member, NodeState
from haclusterd.model.configuration import Configuration
from haclusterd.model.devices import Device
from haclusterd.model.fencing import FailedOperation, FenceOutcome
from haclusterd.model.graph import ActionKind, GraphAction, Plan
from haclusterd.model.ids import Incarnation, NodeName, OrderKey, RequestId, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order, ResultKind
from haclusterd.model.records import dataclass, field, replace
from haclusterd.reports.items import has_errors
from haclusterd.scheduler.model.options import DEFAULT_OPTIONS, ScheduleOptions
from haclusterd.scheduler.schedule import schedule

TERM = Term(4)
BEGIN = WallTime(1_767_268_800_000)
"""2026-01-01 12:00:00 UTC."""


class SurprisedError(AssertionError):
    """The plan did not lead anywhere."""


def configured(text: str) -> Configuration:
    """Read crm text that must be right."""
    script = parse_script(text, "scenario")
    made = assemble(script.statements)
    assert not has_errors((*script.reports, *made.reports)), (script.reports, made.reports)
    return made.configuration


@dataclass(slots=True)
class ScheduledCluster:
    """One cluster, as its scheduler changes it."""

    cib: Cib = field(default_factory=Cib)
    now: WallTime = BEGIN
    options: ScheduleOptions = DEFAULT_OPTIONS
    running: set[tuple[ResourceId, NodeName]] = field(default_factory=set)
    promoted: set[tuple[ResourceId, NodeName]] = field(default_factory=set)
    calls: int = 0
    not_installed: set[tuple[ResourceId, NodeName]] = field(default_factory=set)
    """Where probes find that a resource cannot run."""
    are_devices_kept: bool = False
    """Whether devices are still in use after their holders were stopped."""

    # -- situations -------------------------------------------------------------------------------------------------

    @staticmethod
    def of(
        nodes: Iterable[str], *, witnesses: Sequence[str] = (), joined: Iterable[str] | None = None
    ) -> "ScheduledCluster":
        """Form a cluster; its nodes join, witnesses too, unless only some are to."""
        cluster = ScheduledCluster()
        names = list(nodes)
        members = [Member(NodeName(name), ((name, 7400),)) for name in names]
        members += [Member(NodeName(name), ((name, 7400),), is_witness=True) for name in witnesses]
        cluster.do(commands.FormCluster("0b6f", "demo", tuple(members)))
        cluster.do(commands.DcElected(NodeName(names[0]), Incarnation("boot", "0" * 16), TERM))
        for name in [*names, *witnesses] if joined is None else joined:
            cluster.join(name)
        return cluster

    def do(self, command: commands.Command) -> None:
        """Fold a command, which must be accepted."""
        index = self.cib.index + 1
        envelope = commands.Envelope(RequestId(f"r{index}"), NodeName("n1"), self.now, command)
        applied = apply(self.cib, envelope, index=index, term=TERM)
        assert applied.refusal is None, applied.refusal
        self.cib = applied.cib

    def configure(self, configuration: Configuration) -> None:
        """Make this the configuration."""
        edits = difference(self.cib.configuration, configuration)
        if edits:
            self.do(commands.ChangeConfiguration(self.cib.version.epoch, edits, "root", "scenario"))

    def join(self, node: str, *, same_boot: bool = False) -> None:
        """Let a node's daemon join: after a reboot, or again in the same boot."""
        name = NodeName(node)
        self.calls += 1
        known = self.cib.status.nodes[name].incarnation
        boot = known.boot_id if same_boot and known is not None else f"boot{self.calls}"
        if not same_boot:
            self._forget(name)
        self.do(commands.Join(name, Incarnation(boot, f"{self.calls:016x}")))

    def lose(
        self, node: str, reason: str = "silent for 2034 ms", causes: tuple[FailedOperation, ...] = ()
    ) -> None:
        """Declare a node lost; what runs there goes on."""
        status = self.cib.status.nodes[NodeName(node)]
        self.do(commands.Lost(status.name, status.incarnation, TERM, reason, causes=causes))

    def _causes_of(self, node: NodeName) -> tuple[FailedOperation, ...]:
        """Return for which failures the present plan would fence a node."""
        fences = (each for each in self.plan().graph.actions.values() if each.kind is ActionKind.FENCE)
        return next((each.causes for each in fences if each.node == node), ())

    def fence(self, node: str) -> None:
        """Record that a node is dead; first it is declared lost, if nobody did."""
        name = NodeName(node)
        if self.cib.status.nodes[name].state is not NodeState.LOST:
            self.lose(node, "to be fenced", self._causes_of(name))
        incarnation = self.cib.status.nodes[name].incarnation
        self._forget(name)
        self.do(commands.Fenced(name, incarnation, None, FenceOutcome.CONFIRMED, "off"))

    def _forget(self, node: NodeName) -> None:
        self.running = {(resource, where) for resource, where in self.running if where != node}
        self.promoted = {(resource, where) for resource, where in self.promoted if where != node}

    # -- plans ------------------------------------------------------------------------------------------------------

    def plan(self, *, is_explaining: bool = False) -> Plan:
        """Return the present plan."""
        return schedule(self.cib, self.now, options=replace(self.options, is_explaining=is_explaining))

    def settle(self, *, rounds: int = 20) -> list[str]:
        """Plan and carry out until there is nothing to do; return what was done."""
        done: list[str] = []
        for _ in range(rounds):
            plan = self.plan()
            if not plan.graph.actions:
                return done
            for action in plan.graph.actions.values():
                done.append(action_line(action))
                if not self.perform(action):
                    break
        raise SurprisedError(f"still not settled: {done}")

    def perform(self, action: GraphAction) -> bool:
        """Carry out one action as it should end; tell whether it ended as the plan expected."""
        if action.kind in (ActionKind.PSEUDO, ActionKind.CLUSTER):
            return True
        assert action.node is not None
        if action.kind is ActionKind.FENCE:
            self.fence(action.node)
            return True
        code = self._truth(action)
        self.answer(self.order(action), code)
        self.release(action.node)
        return code is action.target_exit_code

    def order(self, action: GraphAction) -> Order:
        """Commit the order for an action."""
        assert action.node is not None
        assert action.resource is not None
        assert action.agent is not None
        incarnation = self.cib.status.nodes[action.node].incarnation
        assert incarnation is not None
        self.calls += 1
        order = Order(
            OrderKey(f"4.1.{self.calls}"),
            action.node,
            incarnation,
            TERM,
            action.resource,
            ActionName(action.name),
            action.interval_ms,
            action.agent,
            action.parameters,
            action.meta,
            action.timeout_ms,
            30_000,
            action.target_exit_code,
            digest=action.digest,
            definition=action.definition,
            devices=action.devices,
            device_memory_mib=action.device_memory_mib,
            is_probe=action.is_probe,
            resource_parameters=action.resource_parameters,
        )
        self.do(commands.IssueOrders(TERM, (order,)))
        return order

    def answer(self, order: Order, code: ExitCode, reason: str = "", kind: ResultKind = ResultKind.FINISHED) -> None:
        """Record how an order ended."""
        self.calls += 1
        status = ExecutionStatus.DONE if code is order.target_exit_code else ExecutionStatus.ERROR
        result = OperationResult(
            kind,
            order.key,
            order.resource,
            order.action,
            order.interval_ms,
            code,
            status,
            self.calls,
            self.now,
            exit_reason=reason,
            target_exit_code=order.target_exit_code,
        )
        self.do(commands.RecordResults(order.node, order.incarnation, (result,)))

    def publish(self, node: str, devices: Iterable[Device]) -> None:
        """Let a node report these devices."""
        name = NodeName(node)
        incarnation = self.cib.status.nodes[name].incarnation
        assert incarnation is not None
        self.do(commands.PublishDevices(name, incarnation, tuple(sorted(devices, key=lambda device: device.id))))

    def release(self, node: NodeName) -> None:
        """Let a node prove that nothing uses the devices of claims that are over."""
        known = self.cib.status.devices.get(node)
        over = [
            commands.ProvenClaim(device, claim.resource, claim.order)
            for device, claims in (known.claims.items() if known is not None else ())
            for claim in claims
            if claim.is_over
        ]
        incarnation = self.cib.status.nodes[node].incarnation
        if over and not self.are_devices_kept and incarnation is not None:
            self.do(commands.ReleaseDevices(node, incarnation, tuple(over)))

    def fail(self, resource: str, node: str, operation: str, interval_ms: int, code: ExitCode, reason: str) -> None:
        """Let a recurring monitor answer something else than before; a service that is not running has stopped."""
        name = NodeName(node)
        self.calls += 1
        status = self.cib.status.nodes[name]
        assert status.incarnation is not None
        if code is ExitCode.NOT_RUNNING:
            self.running.discard((ResourceId(resource), name))
        result = OperationResult(
            ResultKind.FINISHED, None, ResourceId(resource), operation, interval_ms, code, ExecutionStatus.ERROR,
            self.calls, self.now, exit_reason=reason,
        )  # fmt: skip
        self.do(commands.RecordResults(name, status.incarnation, (result,)))

    def _truth(self, action: GraphAction) -> ExitCode:
        assert action.resource is not None
        assert action.node is not None
        here = (action.resource, action.node)
        if action.name in (ActionName.START, ActionName.MIGRATE_FROM):
            self.running.add(here)
        elif action.name == ActionName.PROMOTE:
            self.promoted.add(here)
        elif action.name in (ActionName.STOP, ActionName.DEMOTE):
            self.promoted.discard(here)
            if action.name == ActionName.STOP:
                self.running.discard(here)
        elif action.is_probe and here in self.not_installed:
            return ExitCode.NOT_INSTALLED
        elif action.name == ActionName.MONITOR:
            is_up = ExitCode.PROMOTED if here in self.promoted else ExitCode.OK
            return is_up if here in self.running else ExitCode.NOT_RUNNING
        return ExitCode.OK


def action_line(action: GraphAction) -> str:
    """Write an action in a line, without its reason and inputs."""
    if action.kind is ActionKind.FENCE:
        return f"fence {action.node} ({action.name})"
    name = "probe" if action.is_probe else action.name
    interval = f"/{action.interval_ms // 1000}s" if action.interval_ms else ""
    where = f" on {action.node}" if action.node is not None else ""
    mark = "~ " if action.kind is ActionKind.PSEUDO else ""
    occasion = f" {action.notification}" if action.notification and action.kind is ActionKind.RESOURCE else ""
    what = f" {action.resource}" if action.resource is not None else ""
    devices = f" with {','.join(action.devices)}" if action.devices else ""
    return f"{mark}{name}{interval}{what}{where}{occasion}{devices}"
