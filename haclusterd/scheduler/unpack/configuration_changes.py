"""Phase: what was started under an older configuration and must be restarted, reloaded, monitored again, or monitored
no more.

Source: Pacemaker Explained, "Reloading an Agent After a Definition Change"; a record of our own without a digest proves
nothing and leads to nothing, one of Pacemaker's counts as changed.
"""

from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.records import dataclass, field, replace
from haclusterd.scheduler.model.digests import ActionDigests, Consequence, depends_on_placement
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.operation_settings import configured_recurring
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import MIGRATE_FROM, MONITOR, PROMOTE, START
from haclusterd.scheduler.unpack.failures import Failures
from haclusterd.scheduler.unpack.replay import records_in_order
from haclusterd.scheduler.unpack.unpack_history import active_window

_DEVICE_CHANGES = {
    Consequence.RESTART: "Device parameters changed",
    Consequence.RELOAD: "Device parameters changed (reload)",
    Consequence.RESCHEDULE: "Device parameters changed (reschedule)",
}
_STARTING = frozenset({MONITOR, START, PROMOTE, MIGRATE_FROM})


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
    unfencings: list[tuple[Node, str]] = field(default_factory=list)
    """Nodes on which a fence device has changed, so that it may have to let them in again, and why."""


def find_configuration_changes(
    inventory: Inventory, failures: Failures, digests: ActionDigests, settings: Settings
) -> ConfigurationChanges:
    """Mark what has changed, and return what is to be cancelled and to be deleted."""
    finder = _Finder(inventory, failures, digests, settings)
    for resource in inventory.primitives():
        if not depends_on_placement(resource):
            finder.look_at(resource)
    if settings.options.is_pacemaker_compatible:
        finder.look_at_namesakes()
    return finder.changes


def find_late_changes(
    inventory: Inventory, changes: ConfigurationChanges, failures: Failures, digests: ActionDigests, settings: Settings
) -> None:
    """Do the same for connections whose address is the node that their container is placed on, once that is known.

    What was found before and has no place now is stopped, and its monitors end with it: they need no cancellation.
    """
    changes.cancellations = [item for item in changes.cancellations if item.resource.assignment.node is not None]
    failures.judge_late()
    finder = _Finder(inventory, failures, digests, settings, changes)
    for resource in inventory.primitives():
        if depends_on_placement(resource):
            finder.look_at(resource)


class _Finder:
    """Compares histories with the configuration."""

    def __init__(
        self,
        inventory: Inventory,
        failures: Failures,
        digests: ActionDigests,
        settings: Settings,
        changes: ConfigurationChanges | None = None,
    ) -> None:
        self._inventory = inventory
        self._failures = failures
        self._digests = digests
        self._settings = settings
        self._is_compatible = settings.options.is_pacemaker_compatible
        self.changes = changes if changes is not None else ConfigurationChanges()

    def look_at(self, resource: Resource) -> None:
        """Compare one primitive's histories on all nodes."""
        wanted: set[tuple[str, int]] | None = None
        for name, history in resource.found.histories.items():
            node = self._inventory.nodes_by_name[name]
            if not (node.is_maintenance or node.is_available) or not history.records:
                continue
            if resource.found.is_removed:
                self._delete_removed(resource, node)
            elif node not in resource.found.active_nodes:
                if history.agent != resource.definition.agent:
                    self._delete(resource, node)
            else:
                if wanted is None:
                    wanted = configured_recurring(resource)
                self._look_at_active(resource, node, history, wanted)

    def look_at_namesakes(self) -> None:
        """Look at each record for everything else that is known by its name, as Pacemaker does.

        Those are other instances of an anonymous clone, and what was removed: neither runs there by this record.
        """
        by_name: dict[str, list[Resource]] = {}
        for resource in self._inventory.primitives():
            for name in {resource.id, resource.found.history_id or resource.id}:
                by_name.setdefault(name, []).append(resource)
        for node in self._inventory.nodes:
            if not (node.is_maintenance or node.is_available):
                continue
            for name, history in node.status.histories.items():
                for resource in by_name.get(name, ()) if history.records else ():
                    if node.name in resource.found.histories or node in resource.found.active_nodes:
                        continue
                    if resource.found.is_removed:
                        self._delete_removed(resource, node)
                    elif history.agent != resource.definition.agent:
                        self._delete(resource, node)

    def _delete_removed(self, resource: Resource, node: Node) -> None:
        """What is removed leaves no history; an instance that an anonymous clone has too many shares another's."""
        if self._is_compatible and resource.is_managed and not resource.top.is_anonymous_clone:
            self.changes.deletions.append((resource, node))

    def _delete(self, resource: Resource, node: Node) -> None:
        """What another agent said of it says nothing."""
        if not self._is_compatible:
            resource.found.known_on.discard(node.name)
        elif resource.is_managed:
            self.changes.deletions.append((resource, node))

    def _look_at_active(
        self, resource: Resource, node: Node, history: ResourceHistory, wanted: set[tuple[str, int]]
    ) -> None:
        if history.agent != resource.definition.agent:
            resource.found.required_stops.add(node.name)
            self._unfence(resource, node, "Device definition changed")
            if not self._is_compatible:
                # Nobody asks the new agent before the old one has stopped what it started: it would find nothing.
                resource.found.definition_changed = True
                return
            resource.found.is_start_pending = True
            self._delete(resource, node)
        records = records_in_order(history)
        begin, stop = active_window(records)
        if begin < stop:
            return
        is_changed = False
        for record in records[max(begin, 0) :]:
            if record.interval_ms and (resource.found.is_maintenance or node.is_maintenance):
                self._cancel(resource, node, record, "maintenance")
            elif record.interval_ms or record.operation in _STARTING:
                is_changed |= self._has_changed(resource, node, _with_digest(record, history), wanted)
        if is_changed and self._failures.effective_count(resource, node):
            self._failures.forget(node, resource, "action definition changed", waits_for_fencing=False)

    def _cancel(self, resource: Resource, node: Node, record: OperationRecord, why: str) -> None:
        if node.is_online or (node.is_guest and not node.must_be_reset):
            self.changes.cancellations.append(Cancellation(resource, node, record.interval_ms, why))

    def _has_changed(
        self, resource: Resource, node: Node, record: OperationRecord, wanted: set[tuple[str, int]]
    ) -> bool:
        """Compare one record with what would be recorded now, and see to what follows."""
        if record.interval_ms and (record.operation, record.interval_ms) not in wanted:
            if self._settings.cancels_removed:
                self._cancel(resource, node, record, "this monitor is no longer configured")
            return True
        consequence = self._digests.judge(resource, node, record)
        if consequence in _DEVICE_CHANGES:
            self._unfence(resource, node, _DEVICE_CHANGES[consequence])
        if consequence is Consequence.RESCHEDULE:
            resource.found.changed_recurring[node.name, record.interval_ms] = False
        elif self._is_compatible or _is_conclusive(record):
            if consequence is Consequence.RELOAD:
                self._reload(resource, node)
            elif consequence is Consequence.RESTART:
                resource.found.definition_changed = True
        return consequence is not Consequence.UNCHANGED

    def _unfence(self, resource: Resource, node: Node, why: str) -> None:
        if resource.definition.is_fence_device:
            self.changes.unfencings.append((node, why))

    def _reload(self, resource: Resource, node: Node) -> None:
        if not resource.is_managed or resource.found.is_failed:
            return
        if resource.found.is_start_pending:
            resource.found.required_stops.add(node.name)
        elif node not in resource.found.reload_on:
            resource.found.reload_on.append(node)


def _with_digest(record: OperationRecord, history: ResourceHistory) -> OperationRecord:
    """Return a record of an arrival with the digest of what arrived, by which it runs on: its order had none."""
    is_arrival = record.operation == MIGRATE_FROM and record.pacemaker is None
    return replace(record, digest=history.definition) if is_arrival and not record.digest else record


def _is_conclusive(record: OperationRecord) -> bool:
    """Only what succeeded says with which parameters a resource runs."""
    return record.exit_code is record.target_exit_code or record.is_probe
