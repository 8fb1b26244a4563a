"""Phase: resources that stay locked to a node while that is cleanly shut down (`shutdown-lock`).

Source: Pacemaker Explained, "Cluster Options". A resource that is active on a node which is leaving is locked to it:
it runs nowhere else until the node is back, or the lock has expired. Locks of before are in the status of the node;
one of a resource that is active is void. The stop that empties the node says so (`model.orders.LOCKS`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from haclusterd.model.instants import WallTime
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.entities import Inventory, Node, Resource, Variant
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.scores.location import Preference


@dataclass(slots=True)
class ShutdownLocks:
    """What the locks come to."""

    preferences: list[Preference] = field(default_factory=list)
    void: list[tuple[Resource, Node]] = field(default_factory=list)
    """Locks that no longer hold: the resource's record on that node is to be deleted."""


def apply_shutdown_locks(inventory: Inventory, settings: Settings) -> ShutdownLocks:
    """Lock what is to be locked; when shutdown locks are not in use there are none."""
    locks = ShutdownLocks()
    if settings.has_shutdown_lock:
        for resource in _lockable(inventory):
            _lock(resource, locks, settings)
            if resource.scores.lock_node is not None:
                locks.preferences.append(_preference(inventory, resource, resource.scores.lock_node))
    return locks


def _lockable(inventory: Inventory) -> Iterator[Resource]:
    """Primitives and members of groups; of clones and bundles nothing, fence devices and connections neither."""
    for top in inventory.tops:
        if top.variant <= Variant.GROUP:
            for resource in top.leaves():
                if not (resource.definition.is_fence_device or resource.definition.is_remote_connection):
                    yield resource


def _lock(resource: Resource, locks: ShutdownLocks, settings: Settings) -> None:
    found, since = resource.found, resource.found.lock_time
    if found.lock_node is not None:
        if found.active_nodes:
            locks.void.append((resource, found.lock_node))
        else:
            resource.scores.lock_node = found.lock_node
    elif len(resource.found.active_nodes) == 1:
        node = resource.found.active_nodes[0]
        if node.is_shutting_down and not node.is_unclean:
            resource.scores.lock_node = node
            since = _left_since(node, settings)
    if resource.scores.lock_node is not None and settings.shutdown_lock_limit_ms > 0:
        settings.time.look_again_at((since + settings.shutdown_lock_limit_ms) // 1000 + 1)


def _left_since(node: Node, settings: Settings) -> WallTime:
    """The value of the node's `shutdown` attribute is when that was asked for, in seconds."""
    text = node.attributes.get("shutdown", "")
    seconds = int(text) if text.isdecimal() and len(text) < 12 else 0
    return WallTime(seconds * 1000) if seconds else settings.now


def _preference(inventory: Inventory, resource: Resource, lock_node: Node) -> Preference:
    others = {node.name: -INFINITY for node in inventory.nodes if node is not lock_node}
    return Preference(resource, f"locked to {lock_node.name}, which is shut down", others)
