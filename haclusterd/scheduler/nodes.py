"""Phase: the nodes, as far as the CIB decides about them (Pacemaker's determination of online and unclean).

Here the cluster's own node states take the place of Pacemaker's membership fields: they were decided by the membership
machine and committed, so nothing is guessed from ages or process lists (safety.md §4, §6).
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import effective
from haclusterd.model.ids import Incarnation, NodeName, ResourceId
from haclusterd.scheduler.fencing_capability import usable_devices_by_node
from haclusterd.scheduler.readings import boolean
from haclusterd.scheduler.settings import Settings

if TYPE_CHECKING:
    from haclusterd.scheduler.entities import Resource

_DIGITS = re.compile(r"(\d+)")


class NodeKind(Enum):
    """How a node belongs to the cluster."""

    MEMBER = "cluster"
    REMOTE = "remote"
    GUEST = "container"


class Node:
    """One node that can run resources, and what the plan makes of it."""

    __slots__ = (
        "are_probes_allowed", "assigned", "attributes", "base_score", "can_be_fenced", "connection", "devices",
        "fence_reason", "health", "incarnation", "is_controller", "is_expected_up", "is_fail_standby",
        "is_fence_delayed", "is_maintenance", "is_never_seen", "is_online", "is_pending", "is_remote_fenced",
        "is_seen", "is_shutting_down", "is_standby", "is_unclean", "kind", "must_be_reset", "name", "priority",
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
        self.is_seen = status.state is not NodeState.UNSEEN
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
        self.is_online = status.state is NodeState.ONLINE
        self.is_pending = status.state is NodeState.UNSEEN
        self.is_shutting_down = self.is_online and status.is_leaving
        self.is_standby = boolean(attributes.get("standby"), default=False)
        self.is_maintenance = boolean(attributes.get("maintenance"), default=False)
        self.is_fail_standby = False
        self.is_unclean = False
        self.is_never_seen = False
        self.is_controller = False
        self.fence_reason = ""
        self.devices: tuple[ResourceId, ...] = ()
        self.can_be_fenced = False
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

    def demand_fencing(self, reason: str) -> None:
        """Require that this node is fenced; the first reason stays."""
        if not self.is_unclean:
            self.is_unclean = True
            self.fence_reason = reason


def name_order(name: str) -> tuple[tuple[object, ...], str]:
    """Sort names with their numbers as numbers: n2 before n10."""
    parts = _DIGITS.split(name.lower())
    return tuple((int(part), len(part)) if index % 2 else part for index, part in enumerate(parts)), name


def unpack_nodes(cib: Cib, settings: Settings) -> tuple[Node, ...]:
    """Return the nodes that run resources, in the order of their names; witnesses run none (safety.md §5)."""
    names = sorted((name for name, member in cib.members.items() if not member.is_witness), key=name_order)
    devices = usable_devices_by_node(cib.configuration, names)
    nodes = []
    for name in names:
        status = cib.status.nodes.get(name) or NodeStatus(name)
        entry = cib.configuration.nodes.get(name)
        attributes = effective(entry.attributes) if entry is not None and entry.attributes else {}
        node = Node(name, status, {**attributes, **status.attributes})
        node.devices = devices[name]
        node.can_be_fenced = settings.is_fencing_enabled and bool(node.devices) and settings.options.has_quorum
        node.is_controller = cib.status.controller is not None and cib.status.controller.node == name
        node.is_never_seen = node.is_pending and settings.is_startup_fencing
        if settings.is_fencing_enabled and _is_unfenced(status):
            node.demand_fencing(status.detail or "it is lost")
        nodes.append(node)
    return tuple(nodes)


def _is_unfenced(status: NodeStatus) -> bool:
    """A lost node is unclean until the death of its newest incarnation is recorded (safety.md §5)."""
    if status.state is not NodeState.LOST:
        return False
    return status.incarnation is None or status.fenced_incarnation != status.incarnation
