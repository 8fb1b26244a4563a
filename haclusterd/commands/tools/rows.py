"""Nodes and resources as Pacemaker's tools tell them: what crm_mon, crm_resource and their readers look at.

The rows mean what those of Pacemaker 2.1.5 mean on the same state; tests/golden/tools compares them with what its own
crm_mon printed. Nothing here decides anything.
"""

from collections.abc import Iterator

from haclusterd.cib.activity import history_says_promoted
from haclusterd.cib.derived.wishes import node_flag
from haclusterd.commands.context import Context
from haclusterd.commands.status.node_health import votes
from haclusterd.commands.status.overview import overview_of
from haclusterd.commands.status.resource_state import (
    Instance,
    InstanceState,
    base_of,
    can_be_promoted,
    instances_on,
    meta_flag,
    pending_operation,
)
from haclusterd.formats.cib_xml.status_writer import FEATURE_SET, node_numbers, recorded
from haclusterd.model.cluster import NodeState, NodeStatus
from haclusterd.model.configuration import Bundle, Clone, Group, Primitive, Resource, contained, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName
from haclusterd.model.properties import read_boolean, read_boolean_or
from haclusterd.model.records import dataclass
from haclusterd.model.scores import parse
from haclusterd.scheduler.model.name_order import name_order

PENDING = {
    ActionName.START: "Starting", ActionName.STOP: "Stopping", ActionName.PROMOTE: "Promoting",
    ActionName.DEMOTE: "Demoting", ActionName.MIGRATE_TO: "Migrating", ActionName.MIGRATE_FROM: "Migrating",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node."""

    name: NodeName
    number: str
    is_online: bool = False
    is_standby: bool = False
    is_maintenance: bool = False
    is_pending: bool = False
    is_unclean: bool = False
    is_leaving: bool = False
    is_expected: bool = False
    is_dc: bool = False
    health: str = "green"
    running: int = 0
    kind: str = "member"
    """`member`, `remote` or `guest`."""
    launcher: str = ""
    """Of a guest node: the resource that runs it."""
    host: str = ""
    """Of a guest node: where that resource runs."""
    feature_set: str = FEATURE_SET
    is_failed_standby: bool = False
    """In standby since something failed there."""
    is_of_bundle: bool = False
    """It is a container of a bundle."""

    @property
    def is_remote(self) -> bool:
        """Whether it is no member of the cluster."""
        return self.kind != "member"


@dataclass(frozen=True, slots=True)
class PrimitiveRow:
    """A primitive, or one instance of a cloned one."""

    id: ResourceId
    agent: str
    role: str = "Stopped"
    nodes: tuple[NodeName, ...] = ()
    target_role: str = ""
    is_managed: bool = True
    is_failed: bool = False
    is_blocked: bool = False
    is_orphaned: bool = False
    is_locked: str = ""
    """The node for which it is kept while that is shut down."""
    is_promotable: bool = False
    pending_on: str = ""
    """The node on which something is under way with it that does not run there."""
    is_being_monitored: bool = False
    is_failure_ignored: bool = False
    is_away: bool = False
    """An instance that runs where nobody sees it: it is listed one by one only."""
    is_connection: bool = False
    """It connects to a guest node."""

    @property
    def is_active(self) -> bool:
        """Whether it runs, or may."""
        return bool(self.nodes)

    @property
    def is_disabled(self) -> bool:
        """Whether it is not to run, or not to be promoted."""
        return is_disabling(self.target_role, is_promotable=self.is_promotable)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group, or one instance of a cloned one (`g:0`)."""

    id: str
    members: tuple[PrimitiveRow, ...]
    is_managed: bool = True
    is_disabled: bool = False
    size: int = 0
    """How many members it has, shown or not."""


@dataclass(frozen=True, slots=True)
class CloneRow:
    """A clone with its instances, those that do not run last."""

    id: ResourceId
    child: ResourceId
    instances: "tuple[PrimitiveRow | GroupRow, ...]"
    is_promotable: bool = False
    is_unique: bool = False
    is_managed: bool = True
    is_disabled: bool = False
    target_role: str = ""
    surplus: "tuple[PrimitiveRow | GroupRow, ...]" = ()
    """Instances more than there are to be, which run nowhere; they are listed and do not count."""
    only_on: frozenset[NodeName] | None = None
    """The nodes on which it may be said to be stopped; None: all."""


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """One container of a bundle with what belongs to it."""

    number: int
    shown: PrimitiveRow
    """What runs in it, or the container, on the nodes of the container and under the replica's name."""
    parts: tuple[PrimitiveRow, ...]


@dataclass(frozen=True, slots=True)
class BundleRow:
    """A bundle."""

    id: ResourceId
    engine: str
    image: str
    replicas: tuple[ReplicaRow, ...]
    is_unique: bool = False
    is_managed: bool = True


Row = PrimitiveRow | GroupRow | CloneRow | BundleRow


class Rows:
    """The nodes and resources of one CIB."""

    def __init__(self, context: Context) -> None:
        self.cib = context.cib.as_in_force()
        self.overview = overview_of(context)
        self.numbers = node_numbers(context.cib)
        controller = context.cib.status.controller
        self.dc = None if controller is None else controller.node
        if self.dc is not None and self._status(self.dc).state is not NodeState.ONLINE:
            self.dc = None
        self._found: dict[ResourceId, dict[NodeName, list[ResourceId]]] = {}
        for name, status in sorted(self.cib.status.nodes.items()):
            for found, _ in instances_on(status):
                self._found.setdefault(base_of(found), {}).setdefault(name, []).append(found)
        self.resources = tuple(self._all())
        self._running = self._counted()

    def _status(self, name: NodeName) -> NodeStatus:
        return self.cib.status.nodes.get(name, NodeStatus(name))

    # Nodes

    def nodes(self) -> tuple[NodeRow, ...]:
        """Return every node in order of names."""
        return tuple(self.node(name) for name in sorted(self.numbers, key=name_order))

    def node(self, name: NodeName) -> NodeRow:
        """Return one node."""
        status = self._status(name)
        is_online = status.state is NodeState.ONLINE
        is_lost = status.state is NodeState.LOST
        is_fenced = any(order.target == name for order in self.cib.status.fence_orders.values())
        is_all = self.overview.properties.boolean("maintenance-mode")
        return NodeRow(
            name,
            self.numbers[name],
            is_online,
            is_standby=node_flag(self.cib, name, "standby"),
            is_maintenance=is_all or node_flag(self.cib, name, "maintenance"),
            is_pending=status.is_joining,
            is_unclean=is_lost or is_fenced or status.is_condemned,
            is_leaving=status.is_leaving,
            is_expected=is_online or is_lost,
            is_dc=name == self.dc,
            health=self.health(name),
            running=self._running.get(name, 0),
        )

    def health(self, name: NodeName) -> str:
        """Return how well a node is, as far as that counts."""
        if self.overview.properties.text("node-health-strategy") == "none":
            return "green"
        return next((colour for colour in ("red", "yellow") if votes(self.cib, name, colour)), "green")

    def _counted(self) -> dict[NodeName, int]:
        found: dict[NodeName, int] = {}
        for row in self.primitives():
            for node in row.nodes:
                found[node] = found.get(node, 0) + 1
        return found

    def places_on(self, name: NodeName) -> dict[ResourceId, int]:
        """Return in which order primitives were recorded on a node."""
        return {base_of(history.resource): at for at, history in enumerate(recorded(self._status(name)))}

    # Resources

    def primitives(self) -> Iterator[PrimitiveRow]:
        """Yield all primitives and instances, whatever contains them."""
        for row in self.resources:
            yield from primitives_in(row)

    def _all(self) -> Iterator[Row]:
        configuration = self.cib.configuration
        parents = configuration.parents()
        tops = [each for each in configuration.resources.values() if each.id not in parents]
        for resource in sorted(tops, key=self._priority, reverse=True):
            if not isinstance(resource, Bundle):
                yield self._row(resource)
        for base in self._found:
            if base not in configuration.resources:
                yield self._orphan(base)

    def _role_of(self, name: ResourceId) -> str:
        child = self.cib.configuration.resources.get(name)
        return "" if child is None else effective(child.meta).get("target-role", "")

    def _priority(self, resource: Resource) -> int:
        meta = self.overview.meta(resource) if isinstance(resource, Primitive) else self._own_meta(resource)
        try:
            return parse(meta.get("priority", "0"))
        except ValueError:
            return 0

    def _orphan(self, base: ResourceId) -> PrimitiveRow:
        nodes = tuple(self._found[base])
        history = self._status(nodes[0]).histories.get(self._found[base][nodes[0]][0])
        agent = "unknown" if history is None else str(history.agent)
        return PrimitiveRow(base, agent, "Started", nodes, is_orphaned=True)

    def _row(self, resource: Resource) -> Row:
        if isinstance(resource, Primitive):
            return self._primitive(resource, self._instances(resource.id))
        meta = self._own_meta(resource)
        role = meta.get("target-role", "")
        if isinstance(resource, Group):
            members = tuple(self._primitive(each, self._instances(each.id)) for each in self._members(resource))
            is_disabled = is_disabling(role, is_promotable=False)
            return GroupRow(resource.id, members, _is_managed(meta), is_disabled, len(members))
        assert isinstance(resource, Clone)
        is_promotable = can_be_promoted(self.cib.in_force, resource)
        return CloneRow(
            resource.id, resource.child, self._clone_instances(resource), is_promotable,
            read_boolean_or(meta.get("globally-unique"), default=False),
            _is_managed(meta), is_disabling(role, is_promotable=is_promotable), role or self._role_of(resource.child),
        )  # fmt: skip

    def _own_meta(self, resource: Resource) -> dict[str, str]:
        return {**effective(self.cib.in_force.resource_defaults), **effective(resource.meta)}

    def _members(self, group: Group) -> tuple[Primitive, ...]:
        known = self.cib.configuration.resources
        found = (known.get(member) for member in contained(group))
        return tuple(each for each in found if isinstance(each, Primitive))

    def _instances(self, base: ResourceId) -> tuple[Instance, ...]:
        return self.overview.instances(base)

    def _clone_instances(self, clone: Clone) -> tuple[PrimitiveRow | GroupRow, ...]:
        child = self.cib.configuration.resources.get(clone.child)
        if isinstance(child, Group):
            return self._cloned_groups(child)
        if not isinstance(child, Primitive):
            return ()
        active = [self._primitive(child, (each,)) for each in self._instances(child.id)]
        idle = max(0, self.overview.most_copies(child.id) - len(active))
        stopped = self._primitive(child, ())
        return (*sorted(active, key=lambda row: row.role != "Promoted"), *[stopped] * idle)

    def _cloned_groups(self, group: Group) -> tuple[GroupRow, ...]:
        members = self._members(group)
        by_node: dict[NodeName, list[PrimitiveRow]] = {}
        for member in members:
            for each in self._instances(member.id):
                by_node.setdefault(each.node, [])
        most = max((self.overview.most_copies(each.id) for each in members), default=0)
        nodes: list[NodeName | None] = [*sorted(by_node), *[None] * max(0, most - len(by_node))]
        rows = []
        for at, node in enumerate(nodes):
            own = tuple(
                self._primitive(each, tuple(i for i in self._instances(each.id) if i.node == node)) for each in members
            )
            meta = self._own_meta(group)
            is_disabled = is_disabling(meta.get("target-role", ""), is_promotable=False)
            rows.append(GroupRow(f"{group.id}:{at}", own, _is_managed(meta), is_disabled, len(own)))
        return tuple(rows)

    def _primitive(self, primitive: Primitive, found: tuple[Instance, ...]) -> PrimitiveRow:
        meta = self.overview.meta(primitive)
        nodes = tuple(dict.fromkeys(each.node for each in found))
        is_managed = (
            meta_flag(meta, "is-managed")
            and not meta_flag(meta, "maintenance")
            and not self.overview.properties.boolean("maintenance-mode")
            and not any(node_flag(self.cib, node, "maintenance") for node in nodes)
        )
        return PrimitiveRow(
            primitive.id,
            str(primitive.agent),
            self._role(primitive, found),
            nodes,
            meta.get("target-role", ""),
            is_managed,
            is_failed=any(each.state in (InstanceState.FAILED, InstanceState.BLOCKED) for each in found),
            is_blocked=any(each.state is InstanceState.BLOCKED for each in found) and not self._is_fencing(),
            is_locked="" if found else self._locked_to(primitive.id),
            is_promotable=self.overview.is_promotable(primitive.id),
        )

    def _is_fencing(self) -> bool:
        return self.overview.properties.boolean("fencing-enabled")

    def _locked_to(self, resource: ResourceId) -> str:
        nodes = sorted(self.cib.status.nodes.items())
        return next((name for name, status in nodes if resource in status.locks), "")

    def _role(self, primitive: Primitive, found: tuple[Instance, ...]) -> str:
        roles = [self._role_on(primitive, each) for each in found]
        under_way = [role for role in roles if role in PENDING.values()]
        if under_way:
            return under_way[0]
        return min(roles, key=("Promoted", "Started", "Unpromoted").index) if roles else "Stopped"

    def _role_on(self, primitive: Primitive, instance: Instance) -> str:
        status = self._status(instance.node)
        names = self._found.get(primitive.id, {}).get(instance.node, [primitive.id])
        for order in status.orders.values():
            if order.resource in names and order.action in PENDING:
                return PENDING[order.action]
        for history in (status.histories[name] for name in names if name in status.histories):
            begun = pending_operation(history)
            if begun in PENDING:
                return PENDING[ActionName(begun)]
        if not self.overview.is_promotable(primitive.id):
            return "Started"
        histories = [status.histories[name] for name in names if name in status.histories]
        is_promoted = any(history_says_promoted(history) for history in histories)
        return "Promoted" if is_promoted else "Unpromoted"


def primitives_in(row: Row) -> Iterator[PrimitiveRow]:
    """Yield the primitives and instances in a row."""
    if isinstance(row, PrimitiveRow):
        yield row
    elif isinstance(row, GroupRow):
        yield from row.members
    elif isinstance(row, BundleRow):
        for replica in row.replicas:
            yield from replica.parts
    else:
        for each in row.instances:
            yield from primitives_in(each)


def _is_managed(meta: dict[str, str]) -> bool:
    try:
        return read_boolean(meta.get("is-managed", "true")) and not read_boolean(meta.get("maintenance", "false"))
    except ValueError:
        return True


def is_disabling(target_role: str, *, is_promotable: bool) -> bool:
    """Tell whether a target role keeps something from running, or something promotable from being promoted."""
    return target_role.lower() == "stopped" or (is_promotable and target_role.lower() in ("unpromoted", "slave"))
