"""Orders: the intent that is committed before any agent is run (safety.md §1).

An order names the incarnation that may execute it. From its commit until its terminal record (a result, "not begun",
"unknown", or the recorded fencing of that incarnation) an activating order counts as possibly active on its node.
"""

from collections.abc import Mapping
from enum import StrEnum

from haclusterd.model.ids import AgentReference, Incarnation, NodeName, OrderKey, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ACTIVATING, ActionName, ExecutionStatus, ExitCode
from haclusterd.model.records import dataclass, field

_OTHER_END = {ActionName.MIGRATE_TO: "migrate_target", ActionName.MIGRATE_FROM: "migrate_source"}
"""Which meta-attribute names the other node (Pacemaker Explained, "Migrating Resources")."""

LOCKS = "shutdown_lock"
"""A meta-attribute of a stop: once it has succeeded the resource is kept for its node (`NodeStatus.locks`)."""


@dataclass(frozen=True, slots=True)
class Order:
    """One action of one resource, for one incarnation of one node, to be executed at most once."""

    key: OrderKey
    node: NodeName
    incarnation: Incarnation
    dc_term: Term
    resource: ResourceId
    action: ActionName
    interval_ms: int
    agent: AgentReference
    parameters: Mapping[str, str]
    meta: Mapping[str, str]
    """For the agent's OCF_RESKEY_CRM_meta_*."""
    timeout_ms: int
    deadline_ms: int
    """An activating order that has not begun this long after its receipt never begins."""
    target_exit_code: ExitCode
    devices: tuple[str, ...] = ()
    """Ids of the devices that it claims."""
    device_memory_mib: int = 0
    """What it takes of each, where it shares them; 0: it has them for itself alone."""
    digest: str = ""
    definition: str = ""
    """Digest of the resource's own parameters that it goes by, without what the operation adds to them."""
    start_delay_ms: int = 0
    reason: str = ""
    issued_at: WallTime = WallTime(0)
    transition: int = 0
    """Which transition of its DC's term it belongs to."""
    is_voided: bool = False
    """Its DC no longer wants it; only the executor's answer ends it."""
    is_probe: bool = False
    resource_parameters: Mapping[str, str] | None = None
    """Those that the resource itself has, where `parameters` has some of the operation's own; None: all are its own."""

    @property
    def lasting_parameters(self) -> Mapping[str, str]:
        """What the resource goes by when this action is over: what only the action had ends with it."""
        return self.parameters if self.resource_parameters is None else self.resource_parameters

    @property
    def is_activating(self) -> bool:
        """Whether it can make the resource active."""
        return self.action in ACTIVATING

    @property
    def other_node(self) -> NodeName | None:
        """Of a live migration: the node at its other end, where the resource may be active as well as on `node`."""
        name = _OTHER_END.get(self.action)
        found = self.meta.get(name) if name is not None else None
        return NodeName(found) if found and found != self.node else None


class ResultKind(StrEnum):
    """What a result says about its order."""

    FINISHED = "finished"
    """The action ran and ended."""
    NOT_BEGUN = "not-begun"
    """The action never ran and never will."""
    UNKNOWN = "unknown"
    """The action may have run, wholly or in part; a probe must find out. Unless the status is `unknown` as well, its
    agent may have been killed in the middle."""


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The terminal record of an order, or a changed answer of a recurring monitor (`order` is then its monitor's)."""

    kind: ResultKind
    order: OrderKey | None
    resource: ResourceId
    operation: str
    interval_ms: int
    exit_code: ExitCode
    status: ExecutionStatus
    call_id: int
    run_at: WallTime
    executed_ms: int = 0
    queued_ms: int = 0
    exit_reason: str = ""
    target_exit_code: ExitCode = ExitCode.OK
    output: Mapping[str, str] = field(default_factory=dict)
    """`stdout` and `stderr` tails, for the event log; never stored in the CIB."""
    restart_digest: str = ""
    """Of a start by an agent that can reload: of the parameters that it cannot take over; see `OperationRecord`."""
    restart_parameters: tuple[str, ...] = ()
