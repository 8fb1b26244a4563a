"""Phase: the nodes, as far as the CIB decides about them (Pacemaker's determination of online and unclean).

Here the cluster's own node states take the place of Pacemaker's membership fields: they were decided by the membership
machine and committed, so nothing is guessed from ages or process lists (safety.md §4, §6).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import NodeEntry
from haclusterd.model.ids import Incarnation, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.scheduler.fencing_capability import usable_devices_by_node
from haclusterd.scheduler.readings import boolean, integer
from haclusterd.scheduler.rules import RuleContext, by_strength, merge
from haclusterd.scheduler.settings import NoQuorumPolicy, Settings

if TYPE_CHECKING:
    from haclusterd.scheduler.entities import Resource

_DIGITS = re.compile(r"(\d+)")


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
        "are_probes_allowed", "assigned", "attributes", "base_score", "connection", "devices",
        "fence_reason", "health", "incarnation", "is_bundle_node", "is_controller", "is_expected_up", "is_fail_standby",
        "is_fence_delayed", "is_maintenance", "is_never_seen", "is_online", "is_pending", "is_remote_fenced",
        "is_seen", "is_shutting_down", "is_standby", "is_unclean", "kind", "must_be_reset", "name", "power", "priority",
        "resources_assigned", "running", "status", "utilization", "was_told_maintenance",
    )  # fmt: skip

    def __init__(
        self, name: NodeName, status: NodeStatus, attributes: dict[str, str], kind: NodeKind = NodeKind.MEMBER
    ) -> None:
        self.name = name
        self.kind = kind
        self.connection: Resource | None = None
        """Of a remote or guest node: the resource that connects to it; a guest's has a launcher."""
        self.base_score = 0
        self.priority = 0
        """The sum of the priorities of what runs there."""
        self.health = 0
        self.utilization: dict[str, int] = {}
        """What is left of its capacity."""
        self.running: list[Resource] = []
        self.assigned: list[Resource] = []
        self.are_probes_allowed = True
        self.is_seen = kind is NodeKind.MEMBER and status.state is not NodeState.UNSEEN
        self.is_expected_up = False
        self.is_fence_delayed = False
        """Its fencing may wait for `priority-fencing-delay`: it was lost, not condemned."""
        self.must_be_reset = False
        """A remote or guest node that has to be fenced (of a guest: its launcher restarted)."""
        self.is_remote_fenced = status.is_remote_fenced
        self.was_told_maintenance = status.is_remote_maintenance
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
        self.devices: tuple[ResourceId, ...] = ()
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
        connection = self.connection
        if self.is_guest and connection is not None and connection.launcher is not None:
            return all(host.is_online or host.can_be_fenced for host in connection.launcher.active_nodes)
        power = self.power
        if not power.is_enabled:
            return False
        if power.has_any_device is None:
            return bool(self.devices) and power.has_quorum
        return power.has_any_device and (power.has_quorum or self._is_fenceable_without_quorum())

    def _is_fenceable_without_quorum(self) -> bool:
        """A node that takes part here cannot be in another partition; a remote one may be connected to another."""
        if not self.is_online:
            return False
        if self.connection is None or self.power.reaches_remote_without_quorum:
            return True
        members = self.power.members
        return all(members[name].is_online for name in self.connection.allowed if name in members)

    def demand_fencing(self, reason: str, *, is_delayed: bool = False) -> None:
        """Require that this node is fenced; the first reason stays.

        A guest node is fenced by restarting its launcher: the node itself stays clean.
        """
        connection = self.connection
        if connection is not None and self.is_guest:
            self._reset_guest(connection)
            return
        if connection is not None and connection.is_managed:
            self.must_be_reset = True
        if not self.is_unclean or (self.is_remote and not self.fence_reason):
            self.is_unclean = True
            self.is_fence_delayed = is_delayed
            self.fence_reason = reason

    def _reset_guest(self, connection: Resource) -> None:
        launcher = connection.launcher
        if launcher is None or connection.is_removed_launched:
            connection.is_failed = connection.must_stop_when_failed = True
        elif launcher.is_managed and not launcher.is_failed:
            self.must_be_reset = True
            launcher.is_failed = launcher.must_stop_when_failed = True


def name_order(name: str) -> tuple[tuple[object, ...], str]:
    """Sort names with their numbers as numbers: n2 before n10."""
    parts = _DIGITS.split(name.lower())
    return tuple((int(part), len(part)) if index % 2 else part for index, part in enumerate(parts)), name


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
        node.utilization = node_capacity(entry, status, settings)
        node.base_score = entry.score if entry is not None else 0
        node.devices = devices[name]
        node.power = power
        node.is_controller = cib.status.controller is not None and cib.status.controller.node == name
        node.is_never_seen = status.state is NodeState.UNSEEN and settings.is_startup_fencing
        if settings.is_fencing_enabled:
            _judge_membership(node, settings)
        elif settings.options.is_pacemaker_compatible and status.state is NodeState.LOST:
            node.demand_fencing(status.detail)
        nodes[name] = node
    return tuple(nodes.values())


def node_attributes(cib: Cib, name: NodeName, kind: NodeKind, settings: Settings) -> dict[str, str]:
    """Return what rules can ask of a node: its own attributes, transient ones first, and what every node has."""
    entry, status = cib.configuration.nodes.get(name), cib.status.nodes.get(name)
    blocks = entry.attributes if entry is not None else ()
    written = merge(by_strength(blocks), RuleContext(settings.time)) if blocks else {}
    controller = cib.status.controller
    is_controller = controller is not None and controller.node == name
    found = {"#uname": name, "#id": name, "#is_dc": "true" if is_controller else "false", "#kind": kind.value}
    cluster_name = settings.cluster_name or cib.cluster_name
    if cluster_name:
        found["#cluster-name"] = cluster_name
    site_name = written.get("site-name", cluster_name)
    if site_name:
        found["#site-name"] = site_name
    return {**found, **written, **(status.attributes if status is not None else {})}


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
        node.demand_fencing(status.detail)
    elif _is_unfenced(status):
        node.demand_fencing(status.detail or "it is lost", is_delayed=not status.is_fence_requested)
    elif _has_joined_too_slowly(status, settings):
        node.demand_fencing("peer pending timed out on joining the process group")
    if node.is_online and not settings.options.has_quorum and settings.no_quorum_policy is NoQuorumPolicy.FENCE:
        node.demand_fencing("cluster does not have quorum")


def _is_unfenced(status: NodeStatus) -> bool:
    """A lost node is unclean until the death of its newest incarnation is recorded (safety.md §5)."""
    if status.state is not NodeState.LOST:
        return False
    return status.incarnation is None or status.fenced_incarnation != status.incarnation


def _has_joined_too_slowly(status: NodeStatus, settings: Settings) -> bool:
    """Apply `node-pending-timeout` to a node that is a member and whose controller has not answered yet."""
    timeout = settings.node_pending_timeout_ms
    if not (status.is_joining and timeout > 0 and status.since > 0):
        return False
    settings.time.look_again(WallTime(status.since + timeout))
    return settings.now >= status.since + timeout
