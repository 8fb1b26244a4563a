"""The scheduler's own nouns: nodes, resources, colocations, actions and relations, as one plan sees them.

They are mutable, refer to each other, live for one plan and never leave this room. Nothing here decides anything; the
phases do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from haclusterd.model.cluster import NodeState, NodeStatus
from haclusterd.model.devices import DeviceId, NodeDevices
from haclusterd.model.fencing import FailedOperation
from haclusterd.model.history import ResourceHistory
from haclusterd.model.ids import Incarnation, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExitCode, Role
from haclusterd.model.records import dataclass, field
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import Definition, Discovery, Needs, Variant
from haclusterd.scheduler.model.looks import NodeAttributes
from haclusterd.scheduler.model.node_scores import BaseScores, NodeScores
from haclusterd.scheduler.model.readings import boolean
from haclusterd.scheduler.model.tasks import PROMOTE, START

UNAME = "#uname"
_ACTIVATING = frozenset({START, PROMOTE})
_LIMITS = (Role.STOPPED, Role.UNPROMOTED)


class NodeKind(Enum):
    """How a node belongs to the cluster."""

    MEMBER = "cluster"
    REMOTE = "remote"
    GUEST = "container"


@dataclass(frozen=True, slots=True)
class FencingPower:
    """What decides for all nodes alike whether they can be fenced."""

    is_enabled: bool = False
    has_any_device: bool | None = None
    """Whether one device is taken for all nodes, as Pacemaker does; None: each node needs one of its own."""
    has_quorum: bool = True
    """Or acts as if it had one."""
    reaches_remote_without_quorum: bool = False
    members: Mapping[NodeName, Node] = field(default_factory=dict)


NO_POWER = FencingPower()


class Node:
    """One node that can run resources, and what the plan makes of it."""

    __slots__ = (
        "are_probes_allowed", "assigned", "attributes", "base_score", "capacity", "connection", "devices",
        "fence_causes", "fence_reason", "free", "hardware", "health", "incarnation", "is_bundle_node", "is_controller",
        "is_fail_standby", "is_fence_delayed", "is_maintenance", "is_never_seen", "is_online", "is_pending",
        "is_remote_fenced", "is_seen", "is_shutting_down", "is_standby", "is_unclean", "kind", "must_be_reset",
        "name", "power", "priority", "resources_assigned", "running", "status", "uname",
    )  # fmt: skip

    def __init__(
        self, name: NodeName, status: NodeStatus, attributes: NodeAttributes, kind: NodeKind = NodeKind.MEMBER
    ) -> None:
        self.name = name
        self.uname: NodeName | None = name
        """Its value of `#uname`; None: a remote or guest node of which Pacemaker's CIB has neither entry nor state."""
        self.kind = kind
        self.connection: Resource | None = None
        """Of a remote or guest node: the resource that connects to it; a guest's has a launcher."""
        self.base_score = 0
        self.priority = 0
        """The sum of the priorities of what runs there."""
        self.health = 0
        self.capacity: dict[str, int] = {}
        self.free: dict[str, int] = {}
        """What is left of its capacity."""
        self.running: list[Resource] = []
        self.assigned: list[Resource] = []
        self.are_probes_allowed = True
        self.is_seen = kind is NodeKind.MEMBER and status.state is not NodeState.UNSEEN
        self.is_fence_delayed = False
        """Its fencing may wait for `priority-fencing-delay`: it was lost, not condemned."""
        self.must_be_reset = False
        """A remote or guest node that has to be fenced (of a guest: its launcher restarted)."""
        self.is_remote_fenced = status.is_remote_fenced
        self.status = status
        self.attributes = attributes
        self.incarnation: Incarnation | None = status.incarnation
        self.is_online = kind is NodeKind.MEMBER and status.state is NodeState.ONLINE
        """Whether it can act; of a remote or guest node that is known once its connection is."""
        self.is_pending = kind is NodeKind.MEMBER and (status.state is NodeState.UNSEEN or status.is_joining)
        self.is_shutting_down = self.is_online and status.is_leaving
        is_known = kind is NodeKind.MEMBER
        self.is_standby = is_known and (status.is_joining or boolean(attributes.get("standby"), default=False))
        self.is_maintenance = is_known and boolean(attributes.get("maintenance"), default=False)
        self.is_fail_standby = False
        self.is_unclean = False
        self.is_never_seen = False
        self.is_bundle_node = False
        """A container of a bundle: nothing but what is in the bundle may run there."""
        self.is_controller = False
        self.fence_reason = ""
        self.fence_causes: list[FailedOperation] = []
        """The failures for which it is to be fenced though it is heard."""
        self.devices: tuple[ResourceId, ...] = ()
        """Fence devices that can fence it."""
        self.hardware: NodeDevices | None = None
        """Its devices that resources claim; None: it has never reported any."""
        self.power = NO_POWER
        self.resources_assigned = 0

    @property
    def is_remote(self) -> bool:
        """Whether it is a remote or guest node."""
        return self.kind is not NodeKind.MEMBER

    @property
    def is_guest(self) -> bool:
        """Whether it is a guest node."""
        return self.kind is NodeKind.GUEST

    @property
    def is_available(self) -> bool:
        """Whether a resource may be placed here, scores aside."""
        return not (
            not self.is_online
            or self.is_shutting_down
            or self.is_unclean
            or self.is_standby
            or self.is_maintenance
            or self.is_pending
        )

    def objection(self) -> str:
        """Say why nothing may be placed here; empty when it may."""
        reasons = (
            (self.is_unclean, f"{self.name} is lost" if not self.is_online else f"{self.name} must be fenced"),
            (self.is_pending, f"{self.name} has not been seen yet"),
            (not self.is_online, f"{self.name} is offline"),
            (self.is_shutting_down, f"{self.name} is leaving"),
            (self.is_fail_standby, f"{self.name} is in standby after a failure"),
            (self.is_standby, f"{self.name} is in standby"),
            (self.is_maintenance, f"{self.name} is in maintenance"),
        )
        return next((text for holds, text in reasons if holds), "")

    @property
    def can_be_fenced(self) -> bool:
        """Whether there is a way to fence it: of a guest node, to stop its launcher wherever that may run."""
        return self._can_be_fenced(frozenset())

    def _can_be_fenced(self, inside: frozenset[NodeName]) -> bool:
        """`inside`: the guest nodes whose launchers are asked for; one that claims to run inside itself has no end."""
        connection = self.connection
        if self.is_guest and connection is not None and connection.launcher is not None:
            hosts = connection.launcher.found.active_nodes
            outer = inside | {self.name}
            return all(host.is_online or (host.name not in outer and host._can_be_fenced(outer)) for host in hosts)
        power = self.power
        if not power.is_enabled:
            return False
        if power.has_any_device is None:
            return bool(self.devices) and power.has_quorum
        return power.has_any_device and (power.has_quorum or self._is_fenceable_without_quorum())

    @property
    def is_beyond_reach(self) -> bool:
        """Whether it is to be fenced and nothing can do that: what it holds stays. Pacemaker knows no such node."""
        power = self.power
        return self.is_unclean and power.is_enabled and power.has_any_device is None and not self.can_be_fenced

    def _is_fenceable_without_quorum(self) -> bool:
        """A node that takes part here cannot be in another partition; a remote one may be connected to another."""
        if not self.is_online:
            return False
        if self.connection is None or self.power.reaches_remote_without_quorum:
            return True
        members = self.power.members
        return all(members[name].is_online for name in self.connection.scored_nodes() if name in members)


class Replica:
    """One container of a bundle and what belongs to it."""

    __slots__ = ("address", "child", "connection", "container", "ip", "node", "number")

    def __init__(self, number: int, container: Resource) -> None:
        self.number = number
        self.container = container
        self.ip: Resource | None = None
        self.connection: Resource | None = None
        self.child: Resource | None = None
        """The bundled primitive's instance inside this container."""
        self.node: Node | None = None
        """The guest node that the container is."""
        self.address = ""


class Found:
    """What is known of a resource from its histories, from open orders, and from comparing both with its definition."""

    __slots__ = (
        "active_nodes", "changed_recurring", "dangling_sources", "definition_changed", "failed_because",
        "fails_off_on", "failure_timeout_ms", "histories", "history_id", "ignores_failure", "is_blocked",
        "is_failed", "is_maintenance", "is_managed", "is_migratable", "is_removed", "is_removed_launched",
        "is_start_pending", "known_on", "lock_node", "lock_time", "migrating_at", "must_stop_when_failed",
        "next_role", "optional_stops", "orders_in_flight", "original_role", "partial_source", "partial_target",
        "pending_action", "pending_node", "pending_stops", "registered", "reload_on", "required_demotes",
        "required_stops", "scores", "unpromoted_on", "unverified_on",
    )  # fmt: skip

    def __init__(self, definition: Definition) -> None:
        self.histories: dict[NodeName, ResourceHistory] = {}
        self.history_id: ResourceId | None = None
        """The name under which it is recorded, where that is not its id."""
        self.original_role = Role.UNKNOWN
        """The role now."""
        self.next_role = definition.target_role if definition.target_role in _LIMITS else Role.UNKNOWN
        """The role that the configuration or a failure limits it to; UNKNOWN: any."""
        self.is_managed = definition.is_managed
        self.is_maintenance = definition.is_maintenance
        self.is_migratable = definition.is_migratable
        self.is_removed = False
        """It is no longer configured, or an instance too many."""
        self.is_removed_launched = False
        self.scores: list[tuple[NodeName | None, int, str]] = []
        """What is to be added to the scores of nodes (None: of all), and why."""
        self.failure_timeout_ms = definition.failure_timeout_ms
        """0 where its failures do not expire."""
        self.active_nodes: list[Node] = []
        self.known_on: set[NodeName] = set()
        self.unverified_on: set[NodeName] = set()
        self.unpromoted_on: set[NodeName] = set()
        """Where it is active and not promoted, by that node's records; `original_role` is the highest of all nodes."""
        self.migrating_at: set[NodeName] = set()
        """Nodes to or from which an order on another node migrates it: no answer of theirs is the last word."""
        self.is_blocked = self.is_failed = False
        self.must_stop_when_failed = self.ignores_failure = False
        self.is_start_pending = False
        self.fails_off_on: dict[NodeName, str] = {}
        self.failed_because = ""
        self.registered: set[tuple[NodeName, int]] = set()
        """Recurring monitors that run: node, interval."""
        self.changed_recurring: dict[tuple[NodeName, int], bool] = {}
        """Those that are to be run again; true: only because their failure has expired."""
        self.definition_changed = False
        self.reload_on: list[Node] = []
        """Where it is to take its changed parameters without a restart."""
        self.required_stops: set[NodeName] = set()
        self.optional_stops: set[NodeName] = set()
        """Stops that were demanded before it was known that nothing runs there: they may become necessary again."""
        self.required_demotes: set[NodeName] = set()
        self.pending_stops: set[NodeName] = set()
        self.orders_in_flight: list[tuple[NodeName, str, int]] = []
        self.partial_source: Node | None = None
        self.partial_target: Node | None = None
        self.dangling_sources: list[Node] = []
        self.pending_action = ""
        self.pending_node: Node | None = None
        self.lock_node: Node | None = None
        self.lock_time = WallTime(0)


class OwnScores(NodeScores):
    """What a resource thinks of nodes by itself, and with which resources it is colocated."""

    __slots__ = (
        "discovery", "frozen_by", "has_exclusive_discovery", "locations", "lock_node", "members_this_with",
        "members_with_this", "this_with", "ticket_uses", "with_this",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.discovery: dict[NodeName, Discovery] = {}
        """Where it is not ALWAYS."""
        self.has_exclusive_discovery = False
        self.frozen_by = ""
        """What freezes it where it is since its ticket was lost; empty: nothing."""
        self.lock_node: Node | None = None
        """Where it is locked while that node is shut down."""
        self.locations: list[RoleLocation] = []
        """Location constraints of this very resource, with a role or without."""
        self.ticket_uses: list[TicketUse] = []
        self.this_with: list[ColocationPair] = []
        self.with_this: list[ColocationPair] = []
        self.members_this_with: list[ColocationPair] = []
        """Of a group: the constraints of its members, which count for its first member."""
        self.members_with_this: list[ColocationPair] = []
        """Of a group: the constraints of others with its members, which count for its last member."""


class Assignment(NodeScores):
    """The node and the role that a resource is to have, and the scores by which they were chosen."""

    __slots__ = (
        "considered", "counts", "device_change", "device_memory_mib", "device_wait", "devices", "is_assigned",
        "is_assigning", "is_choosing_roles", "is_left_alone", "lacks_devices", "next_role", "node", "priority",
        "promotion_addends", "promotion_priority", "updating_scores", "winning_scores",
    )  # fmt: skip

    def __init__(self, definition: Definition) -> None:
        super().__init__()
        self.node: Node | None = None
        self.next_role = Role.UNKNOWN
        self.is_assigned = self.is_assigning = self.updating_scores = False
        self.is_left_alone = False
        """Nothing is managed, since the cluster has no means to fence."""
        self.counts: dict[NodeName, int] = {}
        """Of a clone: how many of its instances were assigned to a node."""
        self.considered: dict[NodeName, int] | None = None
        """The scores as they were when its node was chosen; kept for the person who asks."""
        self.winning_scores: dict[NodeName, int] = {}
        """With which score each other node would have been chosen; kept for the person who asks."""
        self.is_choosing_roles = False
        """A promotable clone whose instances have nodes: from now on its bundle's colocations are its own."""
        self.priority = definition.priority
        """Of an instance of a promotable clone: what its promotion score makes of it."""
        self.promotion_priority = 0
        self.promotion_addends: list[tuple[int, str]] = []
        """What `promotion_priority` is the sum of; kept for the person who asks."""
        self.devices: tuple[DeviceId, ...] = ()
        """Those that it claims on its node."""
        self.device_memory_mib = 0
        """What it takes of each; 0: it has them for itself alone."""
        self.device_change = ""
        """Why what runs on its node must be restarted to have these devices, or for its gang; empty: it must not."""
        self.device_wait = ""
        """Why it cannot start with them yet; empty: it can."""
        self.lacks_devices = False
        """It runs without a claim, and no device is free for it: it runs on, and does not start again in this plan."""

    def claim(self, devices: tuple[DeviceId, ...], memory_mib: int) -> None:
        """Take these devices, and so much memory of each (0: all)."""
        self.devices = devices
        self.device_memory_mib = memory_mib


class Resource:
    """One primitive, group, clone or bundle (or an instance of a clone), and what the plan makes of it.

    What each stage of a plan has worked out is kept apart: that stage writes it, the later ones read it. A value that
    several stages have their part in is a property of all of them.
    """

    __slots__ = (
        "actions", "assignment", "base_id", "base_scores", "children", "definition", "found", "has_given_up_migration",
        "id", "is_reloading", "is_restarting", "launched", "launcher", "number", "parent", "remote_node", "replicas",
        "scores", "stops_unexpected_only", "timings", "variant",
    )  # fmt: skip

    def __init__(
        self,
        identifier: ResourceId,
        variant: Variant,
        definition: Definition,
        *,
        base_id: ResourceId,
        number: int | None = None,
        parent: Resource | None = None,
    ) -> None:
        self.id = identifier
        self.base_id = base_id
        """Of an instance of a clone: without its number."""
        self.number = number
        """Which instance of a clone it is, or belongs to."""
        self.variant = variant
        self.parent = parent
        self.children: list[Resource] = []
        self.definition = definition
        self.replicas: list[Replica] = []
        self.launcher: Resource | None = None
        self.launched: list[Resource] = []
        self.remote_node: Node | None = None
        """The node that this connection leads to."""
        self.timings: dict[tuple[str, int], tuple[int, int]] = {}
        """How long its actions take and wait, as far as that was asked for (`operation_settings`)."""
        self.base_scores = BaseScores()
        self.found = Found(definition)
        self.scores = OwnScores()
        self.assignment = Assignment(definition)
        self.actions: dict[tuple[str, int], list[Action]] = {}
        """By task and interval, oldest first; of several that fit, the newest counts."""
        self.is_reloading = False
        self.is_restarting = False
        self.has_given_up_migration = False
        """A live migration that had begun does not continue: both copies stop."""
        self.stops_unexpected_only = False

    def __repr__(self) -> str:
        return f"Resource({self.id})"

    @property
    def top(self) -> Resource:
        """The outermost resource that contains this one, not looking beyond a bundle."""
        found = self
        while found.parent is not None and found.parent.variant is not Variant.BUNDLE:
            found = found.parent
        return found

    @property
    def outermost(self) -> Resource:
        """The outermost resource that contains this one, bundles too."""
        found = self
        while found.parent is not None:
            found = found.parent
        return found

    @property
    def is_anonymous_clone(self) -> bool:
        """Whether its instances are interchangeable."""
        return self.variant is Variant.CLONE and not self.definition.is_unique

    @property
    def is_managed(self) -> bool:
        """Whether the cluster may start and stop it."""
        return self.found.is_managed and not self.scores.frozen_by and not self.assignment.is_left_alone

    @property
    def partial_source(self) -> Node | None:
        """The node that a live migration has left, while it is under way."""
        return None if self.has_given_up_migration else self.found.partial_source

    @property
    def partial_target(self) -> Node | None:
        """The node to which a live migration leads, while it is under way."""
        return None if self.has_given_up_migration else self.found.partial_target

    @property
    def is_blocked(self) -> bool:
        """Whether a person has to look after it first."""
        return self.found.is_blocked or bool(self.scores.frozen_by)

    @property
    def failed_because(self) -> str:
        """Why it is blocked, or must not run; for a person."""
        return self.scores.frozen_by or self.found.failed_because

    @property
    def recorded_as(self) -> ResourceId:
        """The name under which it is recorded on nodes."""
        return self.found.history_id or (self.id if self.definition.is_unique else self.base_id)

    @property
    def present_role(self) -> Role:
        """The role now; of what contains others the highest of theirs."""
        if not self.children:
            return self.found.original_role
        return max((child.present_role for child in self.children), key=lambda role: role.value)

    def reorder(self, children: list[Resource]) -> None:
        """Bring what it contains into another order: later stages go through it in that."""
        self.children = children

    def leaves(self) -> Iterator[Resource]:
        """Yield the primitives inside it, itself if it is one."""
        if self.variant is Variant.PRIMITIVE:
            yield self
            return
        for child in self.children:
            yield from child.leaves()

    def is_inside(self, other: Resource) -> bool:
        """Tell whether `other` contains this resource, or is it."""
        return self is other or (self.parent is not None and self.parent.is_inside(other))

    def scored_nodes(self) -> Iterable[NodeName]:
        """Return the nodes that have a score for it, as far as that is known."""
        return self.scores.allowed or {*self.base_scores.allowed, *(name for name, *_ in self.found.scores if name)}

    def current_node(self) -> Node | None:
        """Return where it runs; of several nodes a healthy one, when it need not wait for fencing.

        While it migrates, it runs at the source still.
        """
        nodes, source = self.found.active_nodes, self.found.partial_source
        if source is not None and source in nodes and not self.has_given_up_migration:
            return source
        if not nodes:
            return None
        if self.definition.needs is not Needs.FENCING:
            healthy = (node for node in nodes if node.is_online and not node.is_unclean)
            return next(healthy, nodes[0])
        return nodes[0]

    def place(self) -> Node | None:
        """Return the node it is to be on; of a group whose members may be apart, the one that all of them share.

        Members that are to be nowhere do not count. Such a group as a whole is assigned to no node.
        """
        if self.variant is not Variant.GROUP or self.definition.is_collocated:
            return self.assignment.node
        nodes = {node.name: node for member in self.children if (node := member.assignment.node) is not None}
        return next(iter(nodes.values())) if len(nodes) == 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class RoleLocation:
    """Scores for nodes that count while a resource has, or is to have, a role."""

    id: str
    role: Role
    scores: Mapping[NodeName, int]


@dataclass(frozen=True, slots=True, eq=False)
class TicketUse:
    """A ticket that a resource needs, for a role or at all."""

    id: str
    ticket: str
    role: Role
    loss_policy: str
    is_held: bool
    """Granted and not in standby."""


@dataclass(frozen=True, slots=True, eq=False)
class ColocationPair:
    """One colocation between two resources of this plan."""

    id: str
    score: int
    dependent: Resource
    primary: Resource
    dependent_role: Role = Role.UNKNOWN
    primary_role: Role = Role.UNKNOWN
    attribute: str = UNAME
    has_own_influence: bool = True
    is_configured: bool = True
    """False for what a group implies between its members."""

    @property
    def is_mandatory(self) -> bool:
        """Whether it is a rule rather than a weight."""
        return abs(self.score) >= INFINITY


class Action:
    """One action that may be done."""

    __slots__ = (
        "after", "before", "expected", "id", "interval_ms", "is_always", "is_cancel", "is_cluster", "is_fence",
        "is_graphed", "is_migratable", "is_migration_abort", "is_optional", "is_probe", "is_pseudo",
        "is_runnable", "linked", "meta", "needs", "node", "notification", "priority", "reason",
        "required_runnable_before", "resource", "router_node", "runnable_before", "task", "why",
    )  # fmt: skip

    def __init__(
        self, identifier: int, resource: Resource | None, task: str, interval_ms: int, node: Node | None
    ) -> None:
        self.id = identifier
        self.resource = resource
        self.task = task
        self.interval_ms = interval_ms
        self.node = node
        self.is_optional = True
        self.is_runnable = True
        self.is_pseudo = False
        self.is_always = False
        """Part of the graph even when optional."""
        self.is_probe = False
        self.is_cancel = False
        self.is_fence = False
        self.is_cluster = False
        """The cluster's own bookkeeping: `do_shutdown`, `clear_failcount`, `lrm_delete`."""
        self.is_graphed = False
        self.is_migratable = False
        self.is_migration_abort = False
        """The stop of a copy that a live migration left behind."""
        self.needs = resource.definition.needs if resource is not None and task in _ACTIVATING else Needs.NOTHING
        """What must be before it may be done."""
        self.router_node: Node | None = None
        """Of what is done on a remote or guest node: the member that carries it out."""
        self.expected = ExitCode.OK
        self.priority = 0
        self.required_runnable_before = 0
        """How many of the actions before it must be possible (MIN_RUNNABLE)."""
        self.runnable_before = 0
        self.notification = ""
        """For `notify` and its marks: the occasion, as `pre-stop`."""
        self.meta: dict[str, str] = {}
        """What the agent is given beside the ordinary, without the prefix CRM_meta_."""
        self.reason = ""
        """Why it became required or impossible, in Pacemaker's words."""
        self.why = ""
        """Why it is done, for a person."""
        self.before: list[Relation] = []
        """Relations to what comes before."""
        self.after: list[Relation] = []
        """Relations to what comes after."""
        self.linked: dict[int, list[Relation]] | None = None
        """Of an action with many followers: the relations to each of them, by the follower's id."""

    def __repr__(self) -> str:
        owner = self.resource.id if self.resource is not None else "-"
        return f"Action({owner}_{self.task}_{self.interval_ms} on {self.node.name if self.node else '-'})"

    @property
    def is_required(self) -> bool:
        """Whether it has to be done."""
        return not self.is_optional


class Relation:
    """`first` comes before `then`; the flags say what else it means, 0 that it no longer counts."""

    __slots__ = ("first", "flags", "is_waiting", "then")

    def __init__(self, first: Action, then: Action, flags: int) -> None:
        self.first = first
        self.then = then
        self.flags = flags
        self.is_waiting = False
        """Whether it is to be looked at again."""
