"""What administrators write: nodes, resources, constraints, properties (Pacemaker Explained, whole).

Everything is a frozen value. Mappings keep the order of the document, which the scheduler's results depend on. A
group's members stand in `resources` like any primitive; `Configuration.parent_of` says whose they are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from haclusterd.model.ids import AgentReference, ConstraintId, NodeName, ResourceId


@dataclass(frozen=True, slots=True)
class AttributeSet:
    """One block of name-value pairs; of several, the higher score wins, name by name."""

    id: str
    pairs: tuple[tuple[str, str], ...] = ()
    score: int = 0

    def get(self, name: str) -> str | None:
        """Return the value of `name`."""
        return next((value for key, value in self.pairs if key == name), None)


def effective(sets: tuple[AttributeSet, ...]) -> dict[str, str]:
    """Merge blocks: by score descending, of equals the last in the document first; the first value of a name wins."""
    merged: dict[str, str] = {}
    for block in sorted(reversed(sets), key=lambda block: -block.score):
        for name, value in block.pairs:
            merged.setdefault(name, value)
    return merged


@dataclass(frozen=True, slots=True)
class Operation:
    """One `op` of a resource: how an action is run, or a recurring monitor when `interval_ms` is not 0."""

    id: str
    name: str
    interval_ms: int = 0
    timeout_ms: int | None = None
    role: str | None = None
    on_fail: str | None = None
    start_delay_ms: int = 0
    is_enabled: bool = True
    requires: str | None = None
    parameters: tuple[AttributeSet, ...] = ()
    meta: tuple[AttributeSet, ...] = ()


@dataclass(frozen=True, slots=True)
class Primitive:
    """One thing that an agent manages."""

    id: ResourceId
    agent: AgentReference
    parameters: tuple[AttributeSet, ...] = ()
    meta: tuple[AttributeSet, ...] = ()
    utilization: tuple[AttributeSet, ...] = ()
    operations: tuple[Operation, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Primitives that run together and start in order."""

    id: ResourceId
    members: tuple[ResourceId, ...]
    parameters: tuple[AttributeSet, ...] = ()
    meta: tuple[AttributeSet, ...] = ()
    description: str = ""


Resource = Primitive | Group


@dataclass(frozen=True, slots=True)
class Location:
    """How much a resource prefers a node."""

    id: ConstraintId
    resource: ResourceId
    node: NodeName
    score: int


@dataclass(frozen=True, slots=True)
class Colocation:
    """Where the dependent runs, given where the primary runs."""

    id: ConstraintId
    score: int
    dependent: ResourceId
    primary: ResourceId
    dependent_role: str | None = None
    primary_role: str | None = None
    node_attribute: str | None = None
    influence: bool | None = None


class OrderingKind(StrEnum):
    """How binding an ordering is."""

    MANDATORY = "Mandatory"
    OPTIONAL = "Optional"
    SERIALIZE = "Serialize"


@dataclass(frozen=True, slots=True)
class Ordering:
    """`first` happens before `then`; symmetrical orderings are undone in reverse."""

    id: ConstraintId
    first: ResourceId
    then: ResourceId
    kind: OrderingKind = OrderingKind.MANDATORY
    first_action: str = "start"
    then_action: str | None = None
    is_symmetrical: bool = True
    require_all: bool = True


Constraint = Location | Colocation | Ordering


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """What is configured about a node (its membership is in the CIB's `members`)."""

    name: NodeName
    attributes: tuple[AttributeSet, ...] = ()
    utilization: tuple[AttributeSet, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One version of everything that was configured."""

    nodes: Mapping[NodeName, NodeEntry] = field(default_factory=dict)
    resources: Mapping[ResourceId, Resource] = field(default_factory=dict)
    constraints: Mapping[ConstraintId, Constraint] = field(default_factory=dict)
    properties: tuple[AttributeSet, ...] = ()
    resource_defaults: tuple[AttributeSet, ...] = ()
    operation_defaults: tuple[AttributeSet, ...] = ()

    def primitives(self) -> Iterator[Primitive]:
        """Yield every primitive in document order."""
        return (resource for resource in self.resources.values() if isinstance(resource, Primitive))

    def groups(self) -> Iterator[Group]:
        """Yield every group in document order."""
        return (resource for resource in self.resources.values() if isinstance(resource, Group))

    def parents(self) -> dict[ResourceId, ResourceId]:
        """Return which group each member belongs to."""
        return {member: group.id for group in self.groups() for member in group.members}

    def fence_devices(self) -> Iterator[Primitive]:
        """Yield the primitives that are fence devices."""
        return (primitive for primitive in self.primitives() if primitive.agent.standard == "stonith")
