"""Fail counts, and when failures are forgotten (Pacemaker Explained, "Handling Resource Failure").

A failure counts until the resource's `failure-timeout` has passed since the newest one, or until somebody cleans up.
What has expired is listed in the plan so that the DC can forget it.
"""

from dataclasses import dataclass

from haclusterd.model.history import OperationRecord, ResourceHistory, operation_key
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.scores import INFINITY, add, render
from haclusterd.scheduler.digests import Digests
from haclusterd.scheduler.entities import MONITOR, Inventory, Resource
from haclusterd.scheduler.nodes import Node
from haclusterd.scheduler.settings import Settings

_CONCLUSIVE = frozenset(
    {ExitCode.OK, ExitCode.NOT_RUNNING, ExitCode.PROMOTED, ExitCode.DEGRADED, ExitCode.DEGRADED_PROMOTED}
)


@dataclass(frozen=True, slots=True)
class Clearing:
    """Failures of a resource on a node that are to be forgotten (`clear_failcount`)."""

    resource: Resource
    node: Node
    reason: str
    is_after_fencing: bool = False
    """Of a remote connection that waits for its next try: only once the node it leads to has been fenced."""


class Failures:
    """Knows which failures still count, and when the next one will not."""

    def __init__(self, settings: Settings, digests: Digests) -> None:
        self._settings = settings
        self._digests = digests
        self.forgotten: dict[tuple[NodeName, ResourceId], str] = {}
        """Failures to be forgotten, with why."""
        self.clearings: list[Clearing] = []
        """The same in the order in which they were found, for graphs that hold such actions."""
        self.recheck_at: WallTime | None = None

    def effective_count(self, resource: Resource, history: ResourceHistory) -> int:
        """Return the number of failures that still count."""
        if not history.fail_counts:
            return 0
        total = 0
        newest = 0
        for failure in history.fail_counts.values():
            total = add(total, failure.count)
            newest = max(newest, failure.failed_at)
        timeout = self._timeout_ms(resource, history)
        if newest > 0 and timeout > 0 and self._settings.now > newest + timeout:
            return 0
        return total

    def is_expired(self, resource: Resource, node: Node, history: ResourceHistory, record: OperationRecord) -> bool:
        """Tell whether a failed record is too old to count; note what is to be forgotten or to be looked at later."""
        timeout = self._timeout_ms(resource, history)
        if record.status is ExecutionStatus.NOT_INSTALLED:
            return False
        if record.is_probe and record.exit_code in _CONCLUSIVE:
            return False
        is_old = timeout > 0 and self._settings.now >= record.changed_at + timeout
        has_count = bool(history.fail_counts)
        counted = self.effective_count(resource, history)
        if timeout > 0 and has_count and counted > 0:
            self._look_again(WallTime(max(item.failed_at for item in history.fail_counts.values()) + timeout + 1))
        if is_old and has_count:
            if counted > 0:
                return False
            self.forget(node, resource, "it expired")
        elif not is_old and record is history.last_failure and self._is_outdated(resource, record):
            self.forget(node, resource, "the parameters have changed")
        return is_old

    def forget(self, node: Node, resource: Resource, why: str) -> None:
        """Note that a resource's failures on a node count no more."""
        if node.is_online and not node.is_unclean:
            self.forgotten.setdefault((node.name, resource.id), why)

    def _timeout_ms(self, resource: Resource, history: ResourceHistory) -> int:
        if resource.failure_timeout_ms and history.fail_counts and _is_blocking(resource, history):
            resource.failure_timeout_ms = 0
        return resource.failure_timeout_ms

    def _is_outdated(self, resource: Resource, record: OperationRecord) -> bool:
        """A start or monitor that failed with parameters that are no longer configured says nothing any more."""
        if record.operation not in ("start", MONITOR) or not record.digest or resource.is_removed:
            return False
        return record.digest != self._digests.of(resource, record.operation, record.interval_ms)

    def _look_again(self, at: WallTime) -> None:
        if self.recheck_at is None or at < self.recheck_at:
            self.recheck_at = at


def _is_blocking(resource: Resource, history: ResourceHistory) -> bool:
    """A failure that blocks its resource never expires by itself."""
    return any(
        operation.on_fail == "block" and _has_failed(history, operation.name, operation.interval_ms)
        for operation in resource.operations
    )


def _has_failed(history: ResourceHistory, name: str, interval_ms: int) -> bool:
    record = history.records.get(operation_key(name, interval_ms), history.last_failure)
    if record is None or (record.operation, record.interval_ms) != (name, interval_ms):
        return False
    return record.is_failure


def ban_after_failures(inventory: Inventory, failures: Failures) -> None:
    """Phase: ban resources from nodes where they failed `migration-threshold` times."""
    for resource in inventory.primitives():
        threshold = resource.migration_threshold
        if threshold == 0 or resource.ignores_failure:
            continue
        for name, history in resource.histories.items():
            if not history.fail_counts or (name, resource.id) in failures.forgotten:
                continue
            count = failures.effective_count(resource, history)
            if count >= threshold:
                resource.add_score(name, -INFINITY, _failure_words(name, history, count))


def _failure_words(node: NodeName, history: ResourceHistory, count: int) -> str:
    newest = max(history.fail_counts.values(), key=lambda failure: (failure.failed_at, failure.operation))
    record = history.last_failure
    detail = f" ({record.exit_reason})" if record is not None and record.exit_reason else ""
    if count >= INFINITY:
        return f"failed {newest.operation} on {node}{detail}"
    return f"{render(count)} failures on {node}, the newest: {newest.operation}{detail}"
