"""The scheduler's own nouns: resources, colocations, actions and relations, as one plan sees them.

They are mutable, live for one plan and never leave this room. Nothing here decides anything; the phases do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from haclusterd.model.configuration import Operation
from haclusterd.model.history import ResourceHistory
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode, Role
from haclusterd.model.scores import INFINITY, add
from haclusterd.scheduler.nodes import Node

UNAME = "#uname"
START = ActionName.START.value
STOP = ActionName.STOP.value
PROMOTE = ActionName.PROMOTE.value
DEMOTE = ActionName.DEMOTE.value
MONITOR = ActionName.MONITOR.value
CANCEL = ActionName.CANCEL.value
RUNNING = "running"
STOPPED = "stopped"

ORDERED = 1
"""Sequence only."""
FIRST_IMPLIES_THEN = 2
"""A required first makes the other required."""
THEN_IMPLIES_FIRST = 4
"""A required second brings the first into the graph, if that is required too."""
UNRUNNABLE_FIRST_BLOCKS = 8
INTERMEDIATE_STOP = 16
"""A resource's stop before its start: a required start that follows makes the stop required."""
ASYMMETRIC = 32
"""A mandatory ordering of a user that is not undone in reverse."""
IF_REQUIRED_ON_SAME_NODE = 64
"""Two resources that must be apart: only when the first really leaves the node that the second comes to."""
THEN_IMPLIES_FIRST_GRAPHED = 128
FIRST_IMPLIES_THEN_GRAPHED = 256
SERIALIZE = 512
AFTER_FENCING = 1024
"""A stop that fencing does: never without it."""


class Variant(IntEnum):
    """What kind of thing it is; larger ones contain smaller ones."""

    PRIMITIVE = 0
    GROUP = 1


class Needs(Enum):
    """What must be before a resource may start."""

    NOTHING = "nothing"
    QUORUM = "quorum"
    FENCING = "fencing"


class MultipleActive(Enum):
    """What to do when it is found active on several nodes."""

    STOP_START = "stop_start"
    STOP_ONLY = "stop_only"
    BLOCK = "block"
    STOP_UNEXPECTED = "stop_unexpected"


class Resource:
    """One primitive or group, and what the plan makes of it."""

    __slots__ = (
        "actions", "active_nodes", "addends", "agent", "allowed", "assigned", "banned_by", "changed_recurring",
        "children", "definition_changed", "failed_because", "fails_off_on", "failure_timeout_ms", "histories", "id",
        "ignores_failure", "is_assigned", "is_assigning", "is_blocked", "is_critical", "is_failed",
        "is_fence_device", "is_maintenance", "is_managed", "is_removed", "is_restarting", "is_start_pending",
        "known_on", "migration_threshold", "multiple_active", "must_stop_when_failed", "needs", "next_role",
        "operations", "orders_in_flight", "original_role", "parameters", "parent", "pending_stops", "priority",
        "registered", "required_stops", "stickiness", "stops_unexpected_only", "target_role_stopped", "this_with",
        "unverified_on", "updating_scores", "variant", "with_this",
    )  # fmt: skip

    def __init__(self, identifier: ResourceId, variant: Variant) -> None:
        self.id = identifier
        self.variant = variant
        self.parent: Resource | None = None
        self.children: list[Resource] = []
        self.agent: AgentReference | None = None
        self.operations: tuple[Operation, ...] = ()
        self.parameters: Mapping[str, str] = {}
        self.is_fence_device = False
        self.is_removed = False
        self.histories: dict[NodeName, ResourceHistory] = {}
        # meta-attributes
        self.priority = 0
        self.stickiness = 0
        self.migration_threshold = INFINITY
        self.failure_timeout_ms = 0
        self.multiple_active = MultipleActive.STOP_START
        self.needs = Needs.FENCING
        self.is_critical = True
        self.is_managed = True
        self.is_maintenance = False
        self.target_role_stopped = False
        # what the history says
        self.original_role = Role.UNKNOWN
        self.next_role = Role.UNKNOWN
        self.active_nodes: list[Node] = []
        self.known_on: set[NodeName] = set()
        self.unverified_on: set[NodeName] = set()
        self.is_blocked = False
        self.is_failed = False
        self.must_stop_when_failed = False
        self.ignores_failure = False
        self.is_start_pending = False
        self.fails_off_on: dict[NodeName, str] = {}
        self.failed_because = ""
        self.registered: set[tuple[NodeName, int]] = set()
        self.changed_recurring: set[tuple[NodeName, int]] = set()
        self.definition_changed = False
        self.required_stops: set[NodeName] = set()
        self.pending_stops: set[NodeName] = set()
        self.orders_in_flight: list[tuple[NodeName, str, int]] = []
        # scores and assignment
        self.allowed: dict[NodeName, int] = {}
        self.banned_by: dict[NodeName, str] = {}
        """What forbids a node, for a person."""
        self.addends: dict[NodeName, list[tuple[int, str]]] | None = None
        self.this_with: list[Together] = []
        self.with_this: list[Together] = []
        self.assigned: Node | None = None
        self.is_assigned = self.is_assigning = self.updating_scores = False
        # actions
        self.actions: dict[tuple[str, int], list[Action]] = {}
        self.is_restarting = False
        self.stops_unexpected_only = False

    def __repr__(self) -> str:
        return f"Resource({self.id})"

    @property
    def top(self) -> Resource:
        """The outermost resource that contains this one."""
        return self.parent.top if self.parent is not None else self

    def is_inside(self, other: Resource) -> bool:
        """Tell whether `other` contains this resource, or is it."""
        return self is other or (self.parent is not None and self.parent.is_inside(other))

    def current_node(self) -> Node | None:
        """Return where it runs; of several nodes a healthy one, when it need not wait for fencing."""
        if not self.active_nodes:
            return None
        if self.needs is not Needs.FENCING:
            healthy = (node for node in self.active_nodes if node.is_online and not node.is_unclean)
            return next(healthy, self.active_nodes[0])
        return self.active_nodes[0]

    def add_score(self, node: NodeName, value: int, source: str) -> None:
        """Add to a node's score; a node that had none gets exactly this one."""
        known = self.allowed.get(node)
        self.allowed[node] = value if known is None else add(known, value)
        if value <= -INFINITY:
            self.banned_by.setdefault(node, source)
        if self.addends is not None:
            self.addends.setdefault(node, []).append((value, source))

    def ban_everywhere(self, source: str) -> None:
        """Give all nodes -INFINITY."""
        for node in self.allowed:
            self.add_score(node, -INFINITY, source)


class Inventory:
    """All resources of one plan: those at the top in the order in which they are decided upon, and by id."""

    __slots__ = ("_leaves", "by_id", "nodes", "nodes_by_name", "tops")

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        self.nodes_by_name: dict[NodeName, Node] = {node.name: node for node in nodes}
        self.tops: list[Resource] = []
        self.by_id: dict[ResourceId, Resource] = {}
        self._leaves: list[Resource] = []

    def add_top(self, resource: Resource) -> None:
        """Add a resource that no other one contains, last."""
        self.by_id[resource.id] = resource
        self.tops.append(resource)
        self._leaves = []

    def sort(self) -> None:
        """Bring the resources into the order of decision: higher priority first, else as they are."""
        self.tops.sort(key=lambda resource: -resource.priority)
        self._leaves = []

    def primitives(self) -> list[Resource]:
        """Return all primitives in the order of decision."""
        if not self._leaves:
            for top in self.tops:
                self._leaves.extend(top.children if top.variant is Variant.GROUP else (top,))
        return self._leaves


@dataclass(frozen=True, slots=True, eq=False)
class Together:
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

    def has_influence(self) -> bool:
        """Whether the dependent's preferences may move the primary: always while that is not active."""
        return self.has_own_influence or not self.primary.active_nodes

    @property
    def is_mandatory(self) -> bool:
        """Whether it is a rule rather than a weight."""
        return abs(self.score) >= INFINITY


class Action:
    """One action that may be done."""

    __slots__ = (
        "after", "before", "expected", "id", "interval_ms", "is_always", "is_cancel", "is_fence", "is_graphed",
        "is_optional", "is_probe", "is_pseudo", "is_runnable", "node", "reason", "resource", "task", "why",
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
        self.is_graphed = False
        self.expected = ExitCode.OK
        self.reason = ""
        """Why it became required or impossible, in Pacemaker's words."""
        self.why = ""
        """Why it is done, for a person."""
        self.before: list[Relation] = []
        """Relations to what comes before."""
        self.after: list[Relation] = []
        """Relations to what comes after."""

    def __repr__(self) -> str:
        owner = self.resource.id if self.resource is not None else "-"
        return f"Action({owner}_{self.task}_{self.interval_ms} on {self.node.name if self.node else '-'})"

    @property
    def is_required(self) -> bool:
        """Whether it has to be done."""
        return not self.is_optional

    @property
    def needs(self) -> Needs:
        """What must be before it may be done."""
        if self.resource is None or self.task not in (START, PROMOTE):
            return Needs.NOTHING
        return self.resource.needs


class Relation:
    """`first` comes before `then`; the flags say what else it means, 0 that it no longer counts."""

    __slots__ = ("first", "flags", "then")

    def __init__(self, first: Action, then: Action, flags: int) -> None:
        self.first = first
        self.then = then
        self.flags = flags
