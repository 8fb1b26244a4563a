"""What administrators write: nodes, resources, constraints, properties (Pacemaker Explained, whole).

Everything is a frozen value. Mappings keep the order of the document, which the scheduler's results depend on. What is
contained (members of groups, what a clone copies, what runs inside a bundle) is in `resources` like any other;
`Configuration.parents` says whose it is.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

from haclusterd.model.access import AclGroup, AclRole, AclTarget
from haclusterd.model.ids import AgentReference, ConstraintId, NodeName, ResourceId
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.rules import Rule


@dataclass(frozen=True, slots=True)
class PairNote:
    """What a text says of a pair beside its name and value; `model/pair_notes.py` keeps it consistent."""

    name: str
    """Of the pair, in its block."""
    id: str
    """Given to it, or of the pair that it refers to."""
    is_reference: bool = False
    says_name: bool = True
    """Of a reference: whether it says the name, too."""


@dataclass(frozen=True, slots=True)
class AttributeSet:
    """One block of name-value pairs; of several, the higher score wins, name by name."""

    id: str
    pairs: tuple[tuple[str, str], ...] = ()
    score: int = 0
    rule: Rule | None = None
    """The block counts only where and while it is true."""
    notes: tuple[PairNote, ...] = ()
    """Of pairs with ids of their own and of references, in files of Pacemaker; no plan depends on them."""
    valueless: tuple[str, ...] = ()
    """Names without a value, in files of Pacemaker: they say as much as no name at all."""

    def get(self, name: str) -> str | None:
        """Return the value of `name`."""
        return next((value for key, value in self.pairs if key == name), None)


def has_no_rule(block: AttributeSet) -> bool:
    """Return whether a block counts always."""
    return block.rule is None


def effective(
    sets: tuple[AttributeSet, ...], counts: Callable[[AttributeSet], bool] = has_no_rule
) -> dict[str, str]:
    """Merge blocks: by score descending, of equals the last in the document first; the first value of a name wins.

    `counts` tells whether a block applies; without it those with a rule do not.
    """
    merged: dict[str, str] = {}
    for block in sorted(reversed(sets), key=lambda block: -block.score):
        if counts(block):
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
    start_delay_ms: int | None = None
    """None: not said; then that of the operation defaults."""
    is_enabled: bool = True
    requires: str | None = None
    parameters: tuple[AttributeSet, ...] = ()
    meta: tuple[AttributeSet, ...] = ()
    interval_origin: str | None = None
    """ISO 8601: a recurring action runs at whole multiples of its interval since then."""
    record_pending: bool | None = None
    spelled: tuple[tuple[str, str], ...] = ()
    """`interval`, `timeout` and `start-delay` as they were written, where `durations.render` writes them otherwise."""


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
    template: ResourceId | None = None
    """The template it is made from: what that says comes before its own words (see `model.templates`)."""
    operations_id: str = ""
    """What the list of its operations is called, where it has a name."""


@dataclass(frozen=True, slots=True)
class Template:
    """What primitives made from it have in common."""

    id: ResourceId
    agent: AgentReference
    parameters: tuple[AttributeSet, ...] = ()
    meta: tuple[AttributeSet, ...] = ()
    utilization: tuple[AttributeSet, ...] = ()
    operations: tuple[Operation, ...] = ()
    description: str = ""
    operations_id: str = ""
    """What the list of its operations is called, where it has a name."""


@dataclass(frozen=True, slots=True)
class Group:
    """Primitives that run together and start in order."""

    id: ResourceId
    members: tuple[ResourceId, ...]
    parameters: tuple[AttributeSet, ...] = ()
    meta: tuple[AttributeSet, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Clone:
    """A primitive or group that runs on several nodes; promotable when its meta-attribute says so."""

    id: ResourceId
    child: ResourceId
    parameters: tuple[AttributeSet, ...] = ()
    meta: tuple[AttributeSet, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class PortMapping:
    """One port of a bundle's containers, or a range of ports."""

    id: str
    port: str = ""
    internal_port: str = ""
    port_range: str = ""


@dataclass(frozen=True, slots=True)
class StorageMapping:
    """One directory of the host inside a bundle's containers."""

    id: str
    target_directory: str
    source_directory: str = ""
    source_directory_root: str = ""
    options: str = ""


@dataclass(frozen=True, slots=True)
class BundleNetwork:
    """How a bundle's containers are reached."""

    ip_range_start: str = ""
    control_port: str = ""
    host_interface: str = ""
    host_netmask: str = ""
    adds_host: bool | None = None
    ports: tuple[PortMapping, ...] = ()


MAX_REPLICAS = 128
"""Of a bundle. More are a slip of the pen: each is three resources and a node."""
MAX_INSTANCES = 1000
"""Of a clone on fewer nodes; of a group, of all its members together. More are a slip of the pen: each costs time."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Containers of one image on several nodes, with a primitive inside each, or none."""

    id: ResourceId
    engine: str
    """`docker` or `podman`."""
    image: str
    primitive: ResourceId | None = None
    replicas: int | None = None
    replicas_per_host: int | None = None
    promoted_max: int | None = None
    run_command: str = ""
    options: str = ""
    network_mode: str = ""
    """The container's `network` attribute."""
    network: BundleNetwork | None = None
    storage: tuple[StorageMapping, ...] = ()
    meta: tuple[AttributeSet, ...] = ()
    parameters: tuple[AttributeSet, ...] = ()
    description: str = ""


Resource = Primitive | Group | Clone | Bundle


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for several things, usable in constraints."""

    id: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResourceSet:
    """Several resources in one constraint (Pacemaker Explained, "Resource Sets"); None: as the constraint says."""

    id: str
    members: tuple[ResourceId, ...]
    is_sequential: bool | None = None
    require_all: bool | None = None
    action: str | None = None
    role: str | None = None
    score: int | None = None
    kind: str | None = None
    ordering: str | None = None
    """Of old configurations: `group` or `listed`."""


@dataclass(frozen=True, slots=True)
class Location:
    """How much resources prefer nodes.

    Which: one of `resource`, `pattern`, `sets`. How much: either `node` with `score`, or `rules`. Several rules are as
    several constraints. A `resource` may also be a template or a tag.
    """

    id: ConstraintId
    resource: ResourceId = ResourceId("")
    node: NodeName = NodeName("")
    score: int = 0
    rules: tuple[Rule, ...] = ()
    pattern: str = ""
    """A POSIX extended regular expression over ids of resources; one that begins with `!` matches those it does not."""
    sets: tuple[ResourceSet, ...] = ()
    role: str | None = None
    discovery: str | None = None
    """`always`, `never` or `exclusive`: where the resource is probed."""


@dataclass(frozen=True, slots=True)
class Colocation:
    """Where the dependent runs, given where the primary runs; or what `sets` say, and then neither."""

    id: ConstraintId
    score: int
    dependent: ResourceId = ResourceId("")
    primary: ResourceId = ResourceId("")
    dependent_role: str | None = None
    primary_role: str | None = None
    node_attribute: str | None = None
    influence: bool | None = None
    sets: tuple[ResourceSet, ...] = ()
    lifetime: tuple[Rule, ...] = ()
    """While none of them holds, the constraint says nothing. They look at dates only; no rules: always."""


class OrderingKind(StrEnum):
    """How binding an ordering is."""

    MANDATORY = "Mandatory"
    OPTIONAL = "Optional"
    SERIALIZE = "Serialize"


@dataclass(frozen=True, slots=True)
class Ordering:
    """`first` happens before `then`, or what `sets` say; symmetrical orderings are undone in reverse."""

    id: ConstraintId
    first: ResourceId = ResourceId("")
    then: ResourceId = ResourceId("")
    kind: OrderingKind = OrderingKind.MANDATORY
    first_action: str = "start"
    then_action: str | None = None
    is_symmetrical: bool = True
    require_all: bool = True
    sets: tuple[ResourceSet, ...] = ()
    stated: tuple[str, ...] = ()
    """Of `kind` and `first-action`, what was written although it is what goes without saying."""
    lifetime: tuple[Rule, ...] = ()
    """As a colocation's."""


@dataclass(frozen=True, slots=True)
class TicketConstraint:
    """A resource (or `sets`) that runs only while this cluster holds the ticket."""

    id: ConstraintId
    ticket: str
    resource: ResourceId = ResourceId("")
    role: str | None = None
    loss_policy: str | None = None
    """`stop`, `demote`, `freeze` or `fence`."""
    sets: tuple[ResourceSet, ...] = ()


Constraint = Location | Colocation | Ordering | TicketConstraint


def rules_of(constraint: Constraint) -> tuple[Rule, ...]:
    """Return the rules of a constraint: how much a location's nodes are worth, or when another one counts."""
    match constraint:
        case Location(rules=rules) | Colocation(lifetime=rules) | Ordering(lifetime=rules):
            return rules
        case TicketConstraint():
            return ()


@dataclass(frozen=True, slots=True)
class FencingLevel:
    """All `devices` together fence a target; the levels of a target are tried in the order of `index`.

    The target is named by one of: `target`, `target_pattern`, or `target_attribute` with `target_value`.
    """

    id: str
    index: int
    devices: tuple[ResourceId, ...]
    target: str = ""
    target_pattern: str = ""
    target_attribute: str = ""
    target_value: str = ""


class AlertKind(StrEnum):
    """What alerts may be about (Pacemaker Explained, "Alert Filters"): the words of `select`."""

    NODES = "nodes"
    FENCING = "fencing"
    RESOURCES = "resources"
    ATTRIBUTES = "attributes"


@dataclass(frozen=True, slots=True)
class AlertRecipient:
    """One address that an alert's agent is called for."""

    id: str
    value: str
    description: str = ""
    parameters: tuple[AttributeSet, ...] = ()
    """Environment variables of the agent, before those of the alert."""
    meta: tuple[AttributeSet, ...] = ()


@dataclass(frozen=True, slots=True)
class Alert:
    """A program that is called for what happens in the cluster, once for each recipient; without any, once."""

    id: str
    path: str
    description: str = ""
    select: tuple[AlertKind, ...] | None = None
    """In the order of `AlertKind`; None: not written, which means nodes, fencing and resources."""
    attribute_names: tuple[str, ...] = ()
    """Of the kind `attributes`: these names only; empty: all."""
    parameters: tuple[AttributeSet, ...] = ()
    meta: tuple[AttributeSet, ...] = ()
    recipients: tuple[AlertRecipient, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """What is configured about a node (its membership is in the CIB's `members`)."""

    name: NodeName
    attributes: tuple[AttributeSet, ...] = ()
    utilization: tuple[AttributeSet, ...] = ()
    description: str = ""
    is_remote: bool = False
    """A Pacemaker Remote node: no member, reached through the resource of its name."""
    score: int = 0
    """What every resource's score for this node starts from."""
    id: str = ""
    """What Pacemaker's CIB calls it beside its name; empty: its name."""


def with_id_of(before: NodeEntry | None, entry: NodeEntry) -> NodeEntry:
    """Return a node with the id that it had before where it is given none: rules on `#id` still mean it."""
    return replace(entry, id=before.id) if before is not None and before.id and not entry.id else entry


@dataclass(frozen=True, slots=True)
class Configuration:
    """One version of everything that was configured."""

    nodes: Mapping[NodeName, NodeEntry] = field(default_factory=dict)
    resources: Mapping[ResourceId, Resource] = field(default_factory=dict)
    constraints: Mapping[ConstraintId, Constraint] = field(default_factory=dict)
    properties: tuple[AttributeSet, ...] = ()
    resource_defaults: tuple[AttributeSet, ...] = ()
    operation_defaults: tuple[AttributeSet, ...] = ()
    templates: Mapping[ResourceId, Template] = field(default_factory=dict)
    tags: Mapping[str, Tag] = field(default_factory=dict)
    fencing_levels: tuple[FencingLevel, ...] = ()
    alerts: Mapping[str, Alert] = field(default_factory=dict)
    acl_roles: Mapping[str, AclRole] = field(default_factory=dict)
    acl_targets: Mapping[str, AclTarget] = field(default_factory=dict)
    acl_groups: Mapping[str, AclGroup] = field(default_factory=dict)

    def acl_holders(self) -> Iterator[AclTarget | AclGroup]:
        """Yield the users and groups that have roles."""
        yield from self.acl_targets.values()
        yield from self.acl_groups.values()

    def primitives(self) -> Iterator[Primitive]:
        """Yield every primitive in document order."""
        return (resource for resource in self.resources.values() if isinstance(resource, Primitive))

    def groups(self) -> Iterator[Group]:
        """Yield every group in document order."""
        return (resource for resource in self.resources.values() if isinstance(resource, Group))

    def parents(self) -> dict[ResourceId, ResourceId]:
        """Return which resource directly contains each contained one."""
        return {child: each.id for each in self.resources.values() for child in contained(each)}

    def top_of(self, resource: ResourceId) -> ResourceId:
        """Return the outermost resource that contains this one."""
        parents = self.parents()
        seen = {resource}
        while resource in parents and parents[resource] not in seen:
            resource = parents[resource]
            seen.add(resource)
        return resource

    def fence_devices(self) -> Iterator[Primitive]:
        """Yield the primitives that are fence devices."""
        return (primitive for primitive in self.primitives() if primitive.agent.standard == "stonith")


def contained(resource: Resource) -> tuple[ResourceId, ...]:
    """Return what a resource directly contains."""
    if isinstance(resource, Group):
        return resource.members
    if isinstance(resource, Clone):
        return (resource.child,)
    if isinstance(resource, Bundle) and resource.primitive is not None:
        return (resource.primitive,)
    return ()


def parts_of(configuration: Configuration, resource: ResourceId) -> tuple[ResourceId, ...]:
    """Return a resource and everything in it, containers before what they contain."""
    found: dict[ResourceId, None] = {}
    pending = [resource]
    while pending:
        step = pending.pop()
        known = configuration.resources.get(step)
        if step not in found and known is not None:
            found[step] = None
            pending += reversed(contained(known))
    return tuple(found)


def primitives_of(configuration: Configuration, resource: ResourceId) -> tuple[ResourceId, ...]:
    """Return the primitives that a resource is made of, in their order."""
    parts = parts_of(configuration, resource)
    return tuple(each for each in parts if isinstance(configuration.resources.get(each), Primitive))
