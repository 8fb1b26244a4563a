"""What the records of a live migration say about both its nodes.

A migration that has not ended cleanly may have left the resource on the source, on the target, or on both; later
records on either node outdate what it says. Source: Pacemaker Explained, "Migrating Resources".
"""

from collections.abc import Iterable

from haclusterd.model.history import OperationRecord
from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import ExecutionStatus, ExitCode, Role
from haclusterd.model.operation_age import compare_age
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.tasks import MIGRATE_FROM, MIGRATE_TO, MONITOR, START, STOP
from haclusterd.scheduler.unpack.running import mark_running

_MOVING = frozenset({START, STOP, MIGRATE_TO, MIGRATE_FROM})


class MigrationHistory:
    """Judges migrations of one resource by what is recorded on all nodes; each answer is its role on this node."""

    def __init__(self, resource: Resource, node: Node, inventory: Inventory) -> None:
        self._resource = resource
        self._node = node
        self._inventory = inventory

    def succeeded_to(self, sent: OperationRecord) -> Role | None:
        """Judge a migration that left this node; None when the record says nothing any more."""
        source, target = sent.migrate_source, sent.migrate_target
        if source != self._node.name or target is None:
            return None
        is_source_newer = self._is_later(source, sent)
        received = self._received(source, target)
        if received is not None and is_source_newer:
            return None
        is_target_newer = self._has_newer_state(target, sent, received)
        if is_source_newer and is_target_newer:
            return None
        if received is not None and _is_done(received):
            self._resource.found.dangling_sources.append(self._node)
            return Role.STOPPED
        self._judge_unfinished(target, received, is_source_newer=is_source_newer, is_target_newer=is_target_newer)
        return Role.STARTED

    def _judge_unfinished(
        self, target: NodeName, received: OperationRecord | None, *, is_source_newer: bool, is_target_newer: bool
    ) -> None:
        resource = self._resource
        node = self._inventory.nodes_by_name.get(target)
        is_target_online = node is not None and node.is_online
        is_failed = received is not None and received.status is not ExecutionStatus.PENDING
        if not is_failed and is_target_online and self._is_unknown_on(target):
            return
        if node is not None and is_target_online and not is_target_newer:
            mark_running(resource, node, is_failed=is_failed)
            if not is_failed and self._node.is_online:
                resource.found.partial_source, resource.found.partial_target = self._node, node
        elif is_failed or not is_source_newer:
            resource.found.is_failed = resource.found.must_stop_when_failed = True
            resource.found.is_migratable = False

    def failed_to(self, sent: OperationRecord) -> Role | None:
        """Judge a migration that failed on its way out of this node: it may have arrived nevertheless."""
        source, target = sent.migrate_source, sent.migrate_target
        if source != self._node.name or target is None:
            return None
        received = self._received(source, target)
        if not self._is_unknown_on(target) and not self._has_newer_state(target, sent, received):
            node = self._inventory.nodes_by_name.get(target)
            if node is not None and node.is_online:
                mark_running(self._resource, node)
        elif not self._is_later(source, sent):
            self._resource.found.dangling_sources.append(self._node)
        return Role.STARTED

    def failed_from(self, received: OperationRecord) -> Role | None:
        """Judge a migration that failed on its way into this node: the source may still have it."""
        source, target = received.migrate_source, received.migrate_target
        if source is None or target != self._node.name:
            return None
        sent = self._sent(source, target)
        if not self._is_unknown_on(source) and not self._has_newer_state(source, received, sent):
            node = self._inventory.nodes_by_name.get(source)
            if node is not None and node.is_online:
                mark_running(self._resource, node, is_failed=True)
        return Role.STARTED

    def _records(self, node: NodeName) -> Iterable[OperationRecord]:
        known = self._inventory.nodes_by_name.get(node)
        history = known.status.histories.get(self._resource.id) if known is not None else None
        return history.records.values() if history is not None else ()

    def _received(self, source: NodeName, target: NodeName) -> OperationRecord | None:
        return _newest(
            record
            for record in self._records(target)
            if record.operation == MIGRATE_FROM and record.migrate_source == source
        )

    def _sent(self, source: NodeName, target: NodeName) -> OperationRecord | None:
        return _newest(
            record
            for record in self._records(source)
            if record.operation == MIGRATE_TO and record.migrate_target == target
        )

    def _is_later(self, node: NodeName, than: OperationRecord) -> bool:
        """Tell whether something newer was done with it on a node."""
        is_here = node == self._node.name
        return any(
            record.operation in _MOVING and compare_age(record, than, is_same_node=is_here) > 0
            for record in self._records(node)
        )

    def _has_newer_state(self, node: NodeName, migration: OperationRecord, there: OperationRecord | None) -> bool:
        """Tell whether something newer is known of it on another node, newer than the migration's own record there."""
        compared = there if there is not None else migration
        for record in self._records(node):
            is_gone = (
                record.operation == MONITOR
                and record.exit_code is ExitCode.NOT_RUNNING
                and record.status is ExecutionStatus.DONE
            )
            is_newer = compare_age(record, compared, is_same_node=there is not None) > 0
            if is_newer and (is_gone or record.operation in _MOVING):
                return True
        return False

    def _is_unknown_on(self, node: NodeName) -> bool:
        return all(record.exit_code is ExitCode.UNKNOWN for record in self._records(node))


def _newest(records: Iterable[OperationRecord]) -> OperationRecord | None:
    return max(records, key=lambda record: (record.sequence, record.call_id), default=None)


def _is_done(record: OperationRecord) -> bool:
    return record.status is ExecutionStatus.DONE and record.exit_code is ExitCode.OK
