"""Phase: the nodes, as far as the CIB decides about them (Pacemaker's determination of online and unclean).

Here the cluster's own node states take the place of Pacemaker's membership fields: they were decided by the membership
machine and committed, so nothing is guessed from ages or process lists (safety.md §4, §6).
"""

from __future__ import annotations

from collections.abc import Mapping

from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import NodeEntry
from haclusterd.model.devices import GPUS
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.scheduler.model.entities import FencingPower, Node, NodeKind
from haclusterd.scheduler.model.looks import NodeAttributes
from haclusterd.scheduler.model.name_order import name_order
from haclusterd.scheduler.model.readings import integer
from haclusterd.scheduler.model.rules import RuleContext, by_strength, merge
from haclusterd.scheduler.model.settings import NoQuorumPolicy, Settings
from haclusterd.scheduler.unpack.fencing_capability import usable_devices_by_node
from haclusterd.scheduler.unpack.fencing_demands import demand_fencing


def unpack_nodes(cib: Cib, settings: Settings) -> tuple[Node, ...]:
    """Return the nodes that run resources, in the order of their names; witnesses run none (safety.md §5)."""
    names = sorted((name for name, member in cib.members.items() if not member.is_witness), key=name_order)
    devices = settings.cache.devices
    if not devices.keys() >= set(names):
        devices.update(usable_devices_by_node(cib.configuration, names))
    nodes: dict[NodeName, Node] = {}
    power = fencing_power(settings, nodes)
    for name in names:
        status = cib.status.nodes.get(name) or NodeStatus(name)
        entry = cib.configuration.nodes.get(name)
        node = Node(name, status, node_attributes(cib, name, NodeKind.MEMBER, settings))
        node.hardware = cib.status.devices.get(name)
        node.capacity = node_capacity(entry, status, settings)
        if node.hardware is not None:
            # Which of them a resource can have is worked out device by device (`assign.devices`).
            node.capacity[GPUS] = len(node.hardware.devices)
        node.base_score = entry.score if entry is not None else 0
        node.devices = devices[name]
        if settings.is_watchdog_fencing and status.watchdog is not None:
            node.devices += (WATCHDOG,)
        node.power = power
        node.is_controller = cib.status.controller is not None and cib.status.controller.node == name
        node.is_never_seen = settings.is_startup_fencing and _was_never_seen(node, settings)
        if settings.is_fencing_enabled:
            _judge_membership(node, settings)
        elif settings.options.is_pacemaker_compatible and status.state is NodeState.LOST:
            demand_fencing(node, status.detail)
        nodes[name] = node
    return tuple(nodes.values())


def node_attributes(cib: Cib, name: NodeName, kind: NodeKind, settings: Settings) -> NodeAttributes:
    """Return what rules can ask of a node: its attributes, a member's transient ones first, and what every node has.

    The transient ones of a remote or guest node count once its status is taken (`remote_status`).
    """
    entry, status = cib.configuration.nodes.get(name), cib.status.nodes.get(name)
    blocks = entry.attributes if entry is not None else ()
    written = merge(by_strength(blocks), RuleContext(settings.time)) if blocks else {}
    controller = cib.status.controller
    is_controller = controller is not None and controller.node == name
    found = {
        "#uname": name,
        "#id": entry.id if entry is not None and entry.id else name,
        "#is_dc": "true" if is_controller else "false",
        "#kind": kind.value,
    }
    cluster_name = settings.cluster_name or cib.cluster_name
    if cluster_name:
        found["#cluster-name"] = cluster_name
    site_name = written.get("site-name", cluster_name)
    if site_name:
        found["#site-name"] = site_name
    transient = status.attributes if status is not None and kind is NodeKind.MEMBER else {}
    return NodeAttributes({**found, **written, **transient}, settings.looks)


def node_capacity(entry: NodeEntry | None, status: NodeStatus, settings: Settings) -> dict[str, int]:
    """Return how much of everything a node has for its resources; what it said itself comes first."""
    blocks = entry.utilization if entry is not None else ()
    if not blocks and not status.utilization:
        return {}
    written = {**merge(by_strength(blocks), RuleContext(settings.time)), **status.utilization}
    return {name: integer(value, 0) for name, value in written.items()}


def fencing_power(settings: Settings, members: Mapping[NodeName, Node]) -> FencingPower:
    """Return what the properties say about fencing."""
    is_compatible = settings.options.is_pacemaker_compatible
    return FencingPower(
        settings.is_fencing_enabled,
        settings.is_fence_device_configured if is_compatible else None,
        settings.options.has_quorum or settings.no_quorum_policy is NoQuorumPolicy.IGNORE,
        settings.fences_remote_without_quorum,
        members,
    )


def _judge_membership(node: Node, settings: Settings) -> None:
    """Decide whether a member is to be fenced for how it takes part in the cluster."""
    status = node.status
    if status.is_condemned:
        demand_fencing(node, status.detail)
    elif _is_unfenced(status):
        demand_fencing(node, status.detail or "it is lost", is_delayed=not status.is_fence_requested)
    elif _has_joined_too_slowly(status, settings):
        demand_fencing(node, "peer pending timed out on joining the process group")
    if node.is_online and not settings.options.has_quorum and settings.no_quorum_policy is NoQuorumPolicy.FENCE:
        demand_fencing(node, "cluster does not have quorum")


def _is_unfenced(status: NodeStatus) -> bool:
    """A lost node is unclean until the death of its newest incarnation is recorded (safety.md §5).

    One that left with unmanaged resources running is not: what it runs demands its fencing as soon as it is managed
    again, as what runs on a node that left does with Pacemaker.
    """
    if status.state is not NodeState.LOST or status.has_detached:
        return False
    return status.incarnation is None or status.fenced_incarnation != status.incarnation


def _was_never_seen(node: Node, settings: Settings) -> bool:
    """Whether nobody knows what a member runs, and nothing in the graph will end that.

    It was not seen yet, or was declared lost without ever having been seen, and nothing can fence it. Where something
    can, its fencing is in the graph, before the starts that wait for it.
    """
    if node.status.state is NodeState.UNSEEN:
        return True
    is_lost_unseen = node.status.state is NodeState.LOST and node.status.incarnation is None
    return is_lost_unseen and not settings.options.is_pacemaker_compatible and not node.can_be_fenced


def _has_joined_too_slowly(status: NodeStatus, settings: Settings) -> bool:
    """Apply `node-pending-timeout` to a node that is a member and whose controller has not answered yet."""
    timeout = settings.node_pending_timeout_ms
    if not (status.is_joining and timeout > 0 and status.since > 0):
        return False
    settings.time.look_again(WallTime(status.since + timeout))
    return settings.time.has_come(WallTime(status.since + timeout))
