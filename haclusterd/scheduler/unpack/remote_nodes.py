"""Phase: the nodes that are no members: Pacemaker Remote nodes and the guests that resources are.

Source: Pacemaker Remote, "Configuration Explained". A remote node is reached through a primitive `ocf:pacemaker:remote`
of its name; a primitive with the meta-attribute `remote-node` is a guest node of that name, and the connection to it is
made here.
"""

from collections.abc import Iterator

from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.configuration import AttributeSet, Configuration, Group, Operation, Primitive, effective
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.templates import expanded
from haclusterd.scheduler.model.entities import NO_POWER, Node, NodeKind
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.looks import NodeAttributes
from haclusterd.scheduler.model.meta_attributes import is_remote_agent
from haclusterd.scheduler.model.readings import duration_ms
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.unpack.nodes import node_attributes, node_capacity

REMOTE_AGENT = AgentReference("ocf", "pacemaker", "remote")
_MONITOR_MS = 30_000
_CONNECT_TIMEOUT_MS = 60_000


def discover_remote_nodes(cib: Cib, inventory: Inventory, settings: Settings) -> list[Primitive]:
    """Add the remote and guest nodes to the inventory; return the connections to guests, which nobody configured."""
    configuration = cib.configuration

    def add(name: NodeName, kind: NodeKind) -> None:
        add_remote_node(cib, inventory, name, kind, settings)

    for name, entry in configuration.nodes.items():
        if entry.is_remote:
            add(name, NodeKind.REMOTE)
    connections: dict[ResourceId, Primitive] = {}
    for top, primitive in _candidates(configuration):
        if is_remote_agent(primitive.agent):
            if top:
                add(NodeName(primitive.id), NodeKind.REMOTE)
            continue
        meta = effective(primitive.meta)
        guest = ResourceId(meta.get("remote-node", ""))
        if guest and guest not in configuration.resources and guest not in connections:
            add(NodeName(guest), NodeKind.GUEST)
            connections[guest] = _connection(guest, primitive.id, meta)
    return list(connections.values())


def _candidates(configuration: Configuration) -> Iterator[tuple[bool, Primitive]]:
    """Yield the primitives that are not inside clones or bundles, and whether each is at the top."""
    parents = configuration.parents()
    for item in configuration.resources.values():
        if isinstance(item, Primitive):
            parent = parents.get(item.id)
            if parent is None or (parent not in parents and isinstance(configuration.resources[parent], Group)):
                yield parent is None, expanded(item, configuration)


def add_remote_node(cib: Cib, inventory: Inventory, name: NodeName, kind: NodeKind, settings: Settings) -> Node:
    """Add a node that is no member, or say of one that is known already what kind it is."""
    node = inventory.nodes_by_name.get(name)
    if node is None:
        entry = cib.configuration.nodes.get(name)
        status = cib.status.nodes.get(name) or NodeStatus(name)
        is_mentioned = entry is not None or name in cib.status.nodes
        if is_mentioned or not settings.options.is_pacemaker_compatible:
            node = Node(name, status, node_attributes(cib, name, kind, settings), kind)
        else:
            # Pacemaker gives `#uname` and the like to nodes that its CIB mentions; other remote nodes have their kind.
            node = Node(name, status, NodeAttributes({"#kind": kind.value}, settings.looks), kind)
            node.uname = None
        node.capacity = node_capacity(entry, status, settings)
        node.base_score = entry.score if entry is not None else 0
        node.power = next((each.power for each in inventory.nodes if not each.is_remote), NO_POWER)
        inventory.add_node(node)
    elif node.is_remote:
        node.kind = kind
        node.attributes.put({"#kind": kind.value})
    return node


def _connection(name: ResourceId, owner: ResourceId, meta: dict[str, str]) -> Primitive:
    meta_pairs = [("internal_rsc", "true"), ("container", owner)]
    meta_pairs += [("allow-migrate", meta["remote-allow-migrate"])] if "remote-allow-migrate" in meta else []
    meta_pairs += [("is-managed", meta["is-managed"])] if "is-managed" in meta else []
    parameters = [("addr", meta.get("remote-addr")), ("port", meta.get("remote-port"))]
    return connection_primitive(
        name,
        meta_pairs,
        [(key, value) for key, value in parameters if value is not None],
        duration_ms(meta.get("remote-connect-timeout"), _CONNECT_TIMEOUT_MS),
    )


def connection_primitive(
    name: ResourceId,
    meta: list[tuple[str, str]],
    parameters: list[tuple[str, str]],
    connect_timeout_ms: int | None = None,
) -> Primitive:
    """Return the primitive that connects to a guest node; without a timeout, that of any start."""
    operations = [Operation(f"{name}-monitor-30s", "monitor", _MONITOR_MS, timeout_ms=_MONITOR_MS)]
    if connect_timeout_ms is not None:
        operations.append(Operation(f"{name}-start-0", "start", 0, timeout_ms=connect_timeout_ms))
    return Primitive(
        name,
        REMOTE_AGENT,
        (AttributeSet(f"{name}-instance_attributes", tuple(parameters)),) if parameters else (),
        (AttributeSet(f"{name}-meta_attributes", tuple(meta)),),
        operations=tuple(operations),
    )
