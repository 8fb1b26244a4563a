"""Phase: what resources think of nodes by themselves, before any of them has a place.

Here the phases are in Pacemaker's order: tickets and locks, then constraints and health (the newest first), then
stickiness, then what forbids nodes whatever was said. A resource that is active on a node which is leaving is locked to
it (`shutdown-lock`, Pacemaker Explained, "Cluster Options"): it runs on no other node until that one is back, or the
lock has expired. Locks of before are in the status of the node; that of an active resource is void. The stop that
empties the node says so (`model.orders.LOCKS`).
"""

from collections.abc import Iterable, Iterator, Mapping

from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, field
from haclusterd.model.scores import INFINITY, render
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import ColocationPair, Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.scores.colocation import unpack_colocations
from haclusterd.scheduler.scores.location import (
    Preference,
    apply_exclusive_discovery,
    apply_locations,
    apply_stickiness,
    ban_by_kind,
    unpack_health,
)
from haclusterd.scheduler.scores.location_constraints import unpack_locations
from haclusterd.scheduler.scores.tickets import apply_tickets
from haclusterd.scheduler.unpack.failures import Failures, to_ban
from haclusterd.scheduler.unpack.fencing_limits import FencingLimits
from haclusterd.scheduler.unpack.unfencing_in_vain import Obstacle


@dataclass(frozen=True, slots=True)
class ScoresFound:
    """What was found on the way."""

    colocations: list[ColocationPair]
    void_locks: list[tuple[Resource, Node]]
    """Shutdown locks that no longer hold: the resource's record on that node is to be deleted."""


def apply_own_scores(
    cib: Cib, inventory: Inventory, failures: Failures, in_vain: Mapping[NodeName, Obstacle], settings: Settings
) -> ScoresFound:
    """Give every resource its own scores for nodes, and hang the colocations on the resources.

    `in_vain`: the nodes that cannot be let in as things are, by which what needs unfencing cannot run there.
    """
    configuration = cib.configuration
    begin_scores(inventory.tops)
    compatible = settings.options.is_pacemaker_compatible
    colocations = unpack_colocations(inventory, configuration, settings.time, binds_to_itself=compatible)
    locks = apply_shutdown_locks(inventory, settings)
    limits = None if compatible else _limits(cib, inventory, settings)
    apply_tickets(inventory, configuration, cib.status.tickets, settings, limits)
    health = unpack_health(inventory, settings)
    apply_locations([*health, *unpack_locations(inventory, configuration, settings), *locks.preferences])
    apply_stickiness(inventory, settings)
    ban_after_failures(inventory, failures)
    ban_where_not_let_in(inventory, in_vain)
    apply_exclusive_discovery(inventory, settings)
    ban_by_kind(inventory)
    return ScoresFound(colocations, locks.void)


def _limits(cib: Cib, inventory: Inventory, settings: Settings) -> FencingLimits:
    """Return what may keep a node from being fenced for a ticket, besides the nodes that have to be fenced anyway."""
    limits = FencingLimits.under(cib, settings)
    limits.wanted.update((node.name, []) for node in inventory.nodes if node.is_unclean and node.is_online)
    return limits


def begin_scores(resources: Iterable[Resource]) -> None:
    """Begin with what the nodes are worth, and what was found says against them or for them."""
    for resource in resources:
        base, scores = resource.base_scores, resource.scores
        scores.begin(base)
        scores.discovery = dict(base.discovery)
        begin_scores(resource.children)
        for name, value, source in resource.found.scores:
            if name is None:
                scores.ban_everywhere(source)
            else:
                scores.add(name, value, source)
                if resource.variant is Variant.CLONE and resource.parent is None:
                    _add_inside(resource, name, value, source)


def _add_inside(collective: Resource, name: NodeName, value: int, source: str) -> None:
    """Ban the instances of a banned clone: with a promotion score they would be drawn to where they cannot go.

    Not inside a bundle, where each container is a node for its instance only.
    """
    for child in collective.children:
        child.scores.add(name, value, source)
        _add_inside(child, name, value, source)


def ban_after_failures(inventory: Inventory, failures: Failures) -> None:
    """Ban resources from nodes where they failed `migration-threshold` times.

    An anonymous instance failed for all instances: the clone is banned. Inside a bundle the instance is banned as well:
    its container is a node for it alone, whatever the scores of the bundled clone.
    """
    nodes = [node for node in inventory.nodes if failures.counts_on(node)]
    if not nodes:
        return
    for resource in inventory.primitives():
        threshold = resource.definition.migration_threshold
        if threshold == 0 or resource.found.ignores_failure:
            continue
        for node in nodes:
            if failures.is_cleared(resource, node):
                continue
            count = failures.effective_count(resource, node, with_launched=True)
            if count >= threshold:
                banned = to_ban(resource)
                why = _failure_words(resource, node, failures, count)
                banned.scores.add(node.name, -INFINITY, why)
                if banned.parent is not None and banned is not resource:
                    resource.scores.add(node.name, -INFINITY, why)
                elif banned is not resource:
                    _add_inside(banned, node.name, -INFINITY, why)


def ban_where_not_let_in(inventory: Inventory, in_vain: Mapping[NodeName, Obstacle]) -> None:
    """Ban what needs unfencing, and fence devices, from nodes that cannot be let in as things are.

    Counter-example to "it waits there": it stops where it runs, because it prefers such a node, and starts no more; and
    a promotion on another node waits for the start of an instance there.
    """
    for resource in inventory.primitives() if in_vain else ():
        if resource.definition.needs_unfencing or resource.definition.is_fence_device:
            for name, obstacle in in_vain.items():
                resource.scores.add(name, -INFINITY, f"{name} is not unfenced: {obstacle.text}")


def _failure_words(resource: Resource, node: Node, failures: Failures, count: int) -> str:
    counted = failures.counted(resource, node)
    if not counted:
        return f"{render(count)} failures on {node.name} of what it launches"
    newest = max(counted, key=lambda failure: (failure.failed_at, failure.operation))
    history = node.status.histories.get(resource.recorded_as)
    record = history.last_failure if history is not None else None
    detail = f" ({record.exit_reason})" if record is not None and record.exit_reason else ""
    if count >= INFINITY:
        return f"failed {newest.operation} on {node.name}{detail}"
    return f"{render(count)} failures on {node.name}, the newest: {newest.operation}{detail}"


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
