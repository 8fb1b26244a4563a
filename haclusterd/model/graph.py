"""The transition graph: what must be done, in which order, and why (Pacemaker Development, "Scheduler")."""

from collections.abc import Mapping
from enum import StrEnum

from haclusterd.model.fencing import FailedOperation
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExitCode, Role
from haclusterd.model.records import dataclass, field

CLEAR_FAILCOUNT = "clear_failcount"
"""The name of a cluster action: failures are forgotten before what follows it."""
PRIORITY_DELAY = "priority-fencing-delay"
"""In the meta of a fence action: by how many seconds it is delayed for the sake of what the node runs."""


class ActionKind(StrEnum):
    """What kind of hand an action needs."""

    RESOURCE = "resource"
    FENCE = "fence"
    CLUSTER = "cluster"
    """The cluster's own bookkeeping, in its place in the order: `do_shutdown`, `clear_failcount`, `lrm_delete`."""
    PSEUDO = "pseudo"
    """Nobody acts; it is done when its inputs are (for example: a group has started)."""


@dataclass(frozen=True, slots=True)
class GraphAction:
    """One action with what must be done before it."""

    id: int
    kind: ActionKind
    name: str
    """An `ActionName`, a fence action, or a pseudo-action's word."""
    resource: ResourceId | None
    node: NodeName | None
    """Where it is executed; for a fence action, its target."""
    inputs: tuple[int, ...] = ()
    """Ids of the actions that must have succeeded first."""
    interval_ms: int = 0
    agent: AgentReference | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    meta: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int = 20_000
    start_delay_ms: int = 0
    target_exit_code: ExitCode = ExitCode.OK
    digest: str = ""
    definition: str = ""
    """See `Order.definition`."""
    resource_parameters: Mapping[str, str] | None = None
    """See `Order.resource_parameters`."""
    devices: tuple[str, ...] = ()
    """Ids of the devices that it claims."""
    device_memory_mib: int = 0
    """See `Order.device_memory_mib`."""
    reason: str = ""
    priority: int = 0
    target_incarnation: Incarnation | None = None
    """For a fence action: which incarnation of the node must end."""
    is_probe: bool = False
    instance: ResourceId | None = None
    """Which instance of a clone; `resource` is then the name under which it is recorded on its node: of an anonymous
    clone the primitive's own, of a unique one the instance's."""
    notification: str = ""
    """For `notify`: its occasion, as `pre-stop`."""
    causes: tuple[FailedOperation, ...] = ()
    """For a fence action on a node that is heard: the failures that led to it."""
    router_node: NodeName | None = None
    """For actions on a Pacemaker Remote or guest node: the member whose daemon carries it out."""

    @property
    def key(self) -> str:
        """Name the action as Pacemaker does: `db_start_0`."""
        if self.kind is ActionKind.FENCE:
            return f"stonith-{self.node}-{self.name}"
        return f"{self.resource}_{self.name}_{self.interval_ms}"

    def is_named(self, action: ActionName) -> bool:
        """Return whether it is that action of a resource."""
        return self.kind is ActionKind.RESOURCE and self.name == action


@dataclass(frozen=True, slots=True)
class TransitionGraph:
    """Actions by id; inputs form a directed graph without cycles."""

    actions: Mapping[int, GraphAction] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoreAddend:
    """One named part of a node's score for a resource."""

    score: int
    source: str
    """Which constraint, stickiness, failure or rule of the cluster it comes from, for a person."""


@dataclass(frozen=True, slots=True)
class NodeScore:
    """A node's score for a resource, as a sum of named addends."""

    node: NodeName
    score: int
    addends: tuple[ScoreAddend, ...]
    is_eligible: bool
    """Whether the node could run it at all now (online, not standby, score not negative)."""
    objection: str = ""
    """Why not, when not eligible."""
    to_win: tuple[str, ...] = ()
    """What would have to change for this node to be chosen; empty for the one that is."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """How much an instance of a promotable clone is to be promoted, as a sum of named addends."""

    score: int
    addends: tuple[ScoreAddend, ...]
    to_be_promoted: tuple[str, ...] = ()
    """What would have to change for it to be promoted; empty for one that is."""


class BundlePart(StrEnum):
    """What a primitive is in a bundle."""

    CONTAINER = "container"
    ADDRESS = "address"
    CONNECTION = "connection"
    CHILD = "child"
    """What runs inside a container."""
    BARE_CONTAINER = "bare-container"
    """A container that nothing runs in."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What the scheduler decided for one primitive."""

    resource: ResourceId
    now_on: tuple[NodeName, ...]
    next_on: NodeName | None
    scores: tuple[NodeScore, ...] = ()
    verdict: str = ""
    """Why there, or why nowhere."""
    is_failed: bool = False
    """Whether what is recorded where it runs is a failure that is to be recovered from."""
    is_managed: bool = True
    is_blocked: bool = False
    """Left alone because of a failure, until a person cleans up."""
    base: ResourceId | None = None
    """For an instance of a clone: the configured primitive."""
    now_role: Role = Role.UNKNOWN
    next_role: Role = Role.UNKNOWN
    replica: str = ""
    """What is inside a bundle: which replica, as `web-bundle-0`, with its address if it has one."""
    part: BundlePart | None = None
    promotion: Promotion | None = None
    """Of an instance of a promotable clone, when scores are kept."""
    guest_of: ResourceId | None = None
    """Of the connection to a guest node (which has the same name): the resource that launches the guest."""


class ChangeKind(StrEnum):
    """What an administrator would call a change of one resource (Pacemaker's transition summary)."""

    START = "start"
    STOP = "stop"
    MOVE = "move"
    RESTART = "restart"
    RECOVER = "recover"
    """A restart or move after a failure."""
    RELOAD = "reload"
    PROMOTE = "promote"
    DEMOTE = "demote"
    REPROMOTE = "re-promote"
    """Demoted and promoted again, where it is."""
    MIGRATE = "migrate"
    """A move without a stop."""


@dataclass(frozen=True, slots=True)
class Change:
    """What will change for one primitive, or for one instance of a clone."""

    kind: ChangeKind
    resource: ResourceId
    origin: NodeName | None
    """Where it is now; None when it is nowhere."""
    target: NodeName | None
    """Where it will be; None when it only stops."""
    now_role: Role
    next_role: Role
    reason: str = ""
    is_blocked: bool = False
    """Wanted, but it cannot be done now."""
    cause: str = ""
    """What else caused it, in Pacemaker's words (`required db start`); empty: only the resource's own state."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `schedule` answers."""

    graph: TransitionGraph
    placements: Mapping[ResourceId, Placement]
    warnings: tuple[str, ...] = ()
    recheck_at: WallTime | None = None
    """When time alone may change the answer (a failure expires, a rule begins)."""
    changes: tuple[Change, ...] = ()
    """What the graph means for each resource, in the order of decision."""
    expired_failures: tuple[tuple[NodeName, ResourceId], ...] = ()
    """Failures that count no more (failure-timeout passed, or the parameters have changed): they may be forgotten."""
    impossible_fencing: tuple[tuple[NodeName, str, str], ...] = ()
    """Node, action and reason: guest nodes that cannot be fenced, since their launchers cannot be stopped."""
    held_back: frozenset[int] = frozenset()
    """Ids of actions that wait for something which has to be done and cannot be, or that would call an agent on a guest
    node which is away and stays so: crm_simulate never comes to them, nor to what follows them."""
    listing: Mapping[int, str] = field(default_factory=dict)
    """Ids of all actions in the order in which Pacemaker's graph lists them, with what it calls their resource."""
