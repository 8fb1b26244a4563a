"""What is known of operations that ran: results, fail counts (Pacemaker Explained, "Status")."""

from collections.abc import Mapping

from haclusterd.model.ids import AgentReference, NodeName, OrderKey, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import BEGINNINGS, ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.records import dataclass, field

_FINDINGS = frozenset({ExitCode.OK, ExitCode.PROMOTED, ExitCode.NOT_RUNNING})


def operation_key(operation: str, interval_ms: int) -> str:
    """Name one operation of a resource, as `monitor_10000`."""
    return f"{operation}_{interval_ms}"


@dataclass(frozen=True, slots=True)
class PacemakerMark:
    """What a record that Pacemaker made (CIB XML, `lrm_rsc_op`) says beside the rest; our own records have none."""

    id: str = ""
    on_node: str = ""
    """Where it was made; old releases do not say."""
    transition_magic: str = ""
    """`STATUS:CODE;ACTION:TRANSITION:EXPECTED:UUID`: which order of which plan it answers."""
    secure_digest: str = ""
    """Of the parameters without those that `private_parameters` names."""
    private_parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """The newest result of one operation of one resource on one node."""

    operation: str
    interval_ms: int
    call_id: int
    """Grows with every execution on a node; the newest of several records is the one with the highest."""
    exit_code: ExitCode
    status: ExecutionStatus
    target_exit_code: ExitCode
    run_at: WallTime
    changed_at: WallTime
    """When (exit code, status, reason) last changed."""
    executed_ms: int = 0
    queued_ms: int = 0
    exit_reason: str = ""
    digest: str = ""
    """Of the parameters it ran with; a different one now means that the resource must be restarted or reloaded."""
    order: OrderKey | None = None
    migrate_source: NodeName | None = None
    """Of the actions of a live migration: from where."""
    migrate_target: NodeName | None = None
    restart_digest: str = ""
    """Of the parameters that cannot change without a restart; only agents that can reload have one."""
    restart_parameters: tuple[str, ...] | None = None
    """Their names; None: all of them."""
    sequence: int = 0
    """Its place among the records of its history where call ids do not tell, as in CIB XML; the oldest has 1."""
    pacemaker: PacemakerMark | None = None

    @property
    def ended_at(self) -> WallTime:
        """When the result was known."""
        return WallTime(self.run_at + self.executed_ms)

    @property
    def is_probe(self) -> bool:
        """Whether it only looked."""
        return self.operation == ActionName.MONITOR and self.interval_ms == 0

    @property
    def is_undecided(self) -> bool:
        """Whether it stands for an action of which nobody will know how it ended."""
        return self.status is ExecutionStatus.UNKNOWN

    @property
    def is_expected_arrival(self) -> bool:
        """Whether it stands for a live migration that may bring, or have brought, the resource here."""
        return self.operation == ActionName.MIGRATE_FROM and self.status is ExecutionStatus.PENDING

    @property
    def is_failure(self) -> bool:
        """Whether it did not end as its order expected; a probe that finds the resource active has not failed."""
        if self.status in (ExecutionStatus.PENDING, ExecutionStatus.CANCELLED):
            return False
        if self.is_probe and self.status is ExecutionStatus.DONE:
            return self.exit_code not in _FINDINGS
        return self.status is not ExecutionStatus.DONE or self.exit_code is not self.target_exit_code


@dataclass(frozen=True, slots=True)
class FailCount:
    """How often one operation failed since it was last forgiven."""

    operation: str
    interval_ms: int
    count: int
    """INFINITY when one failure is fatal."""
    failed_at: WallTime
    """When the newest was known (Pacemaker's `last-failure-...`): an action may take longer than `failure-timeout`."""


@dataclass(frozen=True, slots=True)
class ReloadInDoubt:
    """A reload that was begun and did not succeed: what runs may go by its parameters, or by those of before."""

    parameters: Mapping[str, str]
    definition: str = ""
    """As `ResourceHistory.definition`."""


@dataclass(frozen=True, slots=True)
class ResourceHistory:
    """Everything recorded of one resource on one node."""

    resource: ResourceId
    agent: AgentReference
    records: Mapping[str, OperationRecord] = field(default_factory=dict)
    """By `operation_key`."""
    fail_counts: Mapping[str, FailCount] = field(default_factory=dict)
    """By `operation_key`."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What the newest start ran with, but for those of the operation alone: what runs is probed, watched and stopped
    with these, whatever is configured."""
    definition: str = ""
    """Digest of those of them that are the resource's own, without what single operations add; empty: not recorded."""
    devices: tuple[str, ...] = ()
    """Devices claimed by the newest start."""
    last_failure: OperationRecord | None = None
    """The newest failure that was not forgiven yet: it outlives the records that later actions supersede, because
    what on-fail and hard errors demand holds until a clean-up (Pacemaker's `last_failure_0`)."""
    launcher: ResourceId | None = None
    """The resource that it ran inside of, where that is not configured any more."""
    locked_at: WallTime | None = None
    """Only CIBs of feature levels 1 and 2 have it, and nothing is done with it: see `NodeStatus.locks`."""
    reloads: tuple[ReloadInDoubt, ...] = ()
    """How else it may run, the oldest first: looked for one after another where the parameters find nothing."""

    @property
    def failed(self) -> tuple[str, ...]:
        """The keys of the records of failures; not of actions of which nobody will know how they ended."""
        return tuple(key for key, record in self.records.items() if record.is_failure and not record.is_undecided)

    @property
    def has_failures(self) -> bool:
        """Whether there is anything that a clean-up forgets."""
        return bool(self.fail_counts or self.failed or self.last_failure is not None)


def history_of(order: Order) -> ResourceHistory:
    """Return the history of a resource of which nothing is recorded yet but this order."""
    return ResourceHistory(
        order.resource,
        order.agent,
        parameters=order.lasting_parameters,
        definition=order.definition,
        devices=order.devices if order.action in BEGINNINGS else (),
    )


def ordered_records(history: ResourceHistory) -> list[OperationRecord]:
    """Return the records, oldest first."""
    return sorted(history.records.values(), key=_age)


def _age(record: OperationRecord) -> tuple[int, int, str, int]:
    return record.sequence, record.call_id, record.operation, record.interval_ms
