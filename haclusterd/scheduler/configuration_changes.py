"""Phase: what was started under an older configuration and must be restarted, monitored anew, or monitored no more.

Source: Pacemaker Explained, "Reloading an Agent After a Definition Change"; a record without a digest proves nothing
and leads to nothing.
"""

from dataclasses import dataclass, field

from haclusterd.model.history import ResourceHistory
from haclusterd.scheduler.digests import Digests
from haclusterd.scheduler.entities import MONITOR, Inventory, Resource
from haclusterd.scheduler.failures import Failures
from haclusterd.scheduler.nodes import Node
from haclusterd.scheduler.operation_settings import recurring_operations
from haclusterd.scheduler.settings import Settings

_STARTING = frozenset({MONITOR, "start", "promote", "migrate_from"})


@dataclass(frozen=True, slots=True)
class Cancellation:
    """A recurring action that runs and should not."""

    resource: Resource
    node: Node
    interval_ms: int
    why: str


@dataclass(slots=True)
class ConfigurationChanges:
    """What has to be put right; restarts and reloads are marked on the resources."""

    cancellations: list[Cancellation] = field(default_factory=list)
    deletions: list[tuple[Resource, Node]] = field(default_factory=list)
    """Histories that say nothing any more and are to be deleted; of this cluster's own CIB there are none."""


def find_configuration_changes(
    inventory: Inventory, failures: Failures, digests: Digests, settings: Settings
) -> ConfigurationChanges:
    """Mark what has changed, and return what is to be cancelled and to be deleted."""
    changes = ConfigurationChanges()
    for resource in inventory.primitives():
        if resource.is_removed:
            continue
        wanted: set[int] | None = None
        for name, history in resource.histories.items():
            node = inventory.nodes_by_name[name]
            if not (node.is_maintenance or node.is_available):
                continue
            if node not in resource.active_nodes:
                if history.agent != resource.agent:
                    resource.known_on.discard(name)
                continue
            if wanted is None:
                wanted = {item.interval_ms for item in recurring_operations(resource, settings) if item.name == MONITOR}
            changes.cancellations.extend(_unwanted(resource, node, wanted, settings))
            if _has_changed(resource, node, history, wanted, digests) and failures.effective_count(resource, history):
                failures.forget(node, resource, "its definition has changed")
    return changes


def _unwanted(resource: Resource, node: Node, wanted: set[int], settings: Settings) -> list[Cancellation]:
    running = sorted(interval for name, interval in resource.registered if name == node.name)
    if resource.is_maintenance or node.is_maintenance:
        return [Cancellation(resource, node, interval, "maintenance") for interval in running]
    if not settings.cancels_removed:
        return []
    why = "this monitor is no longer configured"
    return [Cancellation(resource, node, interval, why) for interval in running if interval not in wanted]


def _has_changed(resource: Resource, node: Node, history: ResourceHistory, wanted: set[int], digests: Digests) -> bool:
    """Compare what is recorded with what would be recorded now."""
    if history.agent != resource.agent:
        resource.definition_changed = True
        resource.required_stops.add(node.name)
        return True
    is_changed = False
    for record in history.records.values():
        if record.interval_ms and record.interval_ms not in wanted:
            is_changed = True
            continue
        if not record.digest or not (record.interval_ms or record.operation in _STARTING):
            continue
        if record.digest == digests.of(resource, record.operation, record.interval_ms):
            continue
        is_changed = True
        if record.interval_ms:
            resource.changed_recurring.add((node.name, record.interval_ms))
        elif record.exit_code is record.target_exit_code or record.is_probe:
            resource.definition_changed = True
    return is_changed
