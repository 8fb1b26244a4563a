"""Fail counts, and when failures are forgotten (Pacemaker Explained, "Handling Resource Failure").

A failure counts until the resource's `failure-timeout` has passed since the newest one, or until somebody cleans up.
What has expired is listed in the plan so that the DC can forget it.
"""

from collections.abc import Iterator

from haclusterd.model.history import FailCount, OperationRecord, ResourceHistory, operation_key
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.records import dataclass
from haclusterd.model.scores import add
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.digests import ActionDigests, depends_on_placement
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.model.tasks import MONITOR, START

_CONCLUSIVE = frozenset(
    {ExitCode.OK, ExitCode.NOT_RUNNING, ExitCode.PROMOTED, ExitCode.DEGRADED, ExitCode.DEGRADED_PROMOTED}
)
EXPIRED = "it expired"
_OUTDATED = "resource parameters have changed"


@dataclass(frozen=True, slots=True)
class Clearing:
    """Failures of a resource on a node that are to be forgotten (`clear_failcount`)."""

    resource: Resource
    node: Node
    reason: str
    is_possible: bool = True
    """Whether the resource was managed and the node reachable when this was found: both may change later."""
    is_after_fencing: bool = False
    """Of a remote connection that waits for its next try: only once the node it leads to has been fenced."""


class Failures:
    """Knows which failures still count, and when the next one will not."""

    def __init__(self, settings: Settings, digests: ActionDigests) -> None:
        self._settings = settings
        self._digests = digests
        self._counts: dict[NodeName, dict[str, list[FailCount]]] = {}
        self._cleared: set[tuple[str, NodeName]] = set()
        self._late: list[tuple[Resource, Node, OperationRecord]] = []
        self.forgotten: dict[tuple[NodeName, ResourceId], str] = {}
        """Failures to be forgotten, with why; empty where a graph holds actions for that."""
        self.clearings: list[Clearing] = []
        """What is to be forgotten, in the order in which it was found, for graphs that hold actions for that."""

    def counts_on(self, node: Node) -> dict[str, list[FailCount]]:
        """Return what is counted on a node, by the names under which resources are recorded.

        What is counted for an instance (`web:1`) is under the bare name too, as all anonymous instances count it.
        """
        found = self._counts.get(node.name)
        if found is None:
            found = self._counts[node.name] = {}
            for history in node.status.histories.values():
                if history.fail_counts:
                    for name in {history.resource: None, bare_name(history.resource): None}:
                        found.setdefault(name, []).extend(history.fail_counts.values())
        return found

    def counted(self, resource: Resource, node: Node) -> list[FailCount]:
        """Return the fail counts of a resource on a node, whatever their age.

        What was cloned and is not any more keeps what was counted for its instances; in Pacemaker only instances do.
        """
        known = self.counts_on(node)
        if not known:
            return []
        name = resource.recorded_as
        if self._settings.options.is_pacemaker_compatible and resource.top.variant < Variant.CLONE:
            history = node.status.histories.get(name)
            return list(history.fail_counts.values()) if history is not None else []
        return known.get(name if resource.definition.is_unique else bare_name(name), [])

    def effective_count(self, resource: Resource, node: Node, *, with_launched: bool = False) -> int:
        """Return the number of failures that still count, on request with those of what it launches."""
        counted, time = self.counted(resource, node), self._settings.time
        total = 0
        if counted:
            newest = max(failure.failed_at for failure in counted)
            timeout = self._timeout_ms(resource, node)
            has_expired = newest > 0 and timeout > 0 and time.has_come(WallTime(newest + timeout + 1))
            has_expired = has_expired and not self._is_unanswered(resource, node)
            if not has_expired:
                for failure in counted:
                    total = add(total, failure.count)
        if with_launched and not resource.definition.is_replica_container:
            for launched in resource.launched:
                total = add(total, self.effective_count(launched, node))
        return total

    def is_expired(self, resource: Resource, node: Node, history: ResourceHistory, record: OperationRecord) -> bool:
        """Tell whether a record is too old to count; note what is to be forgotten or to be looked at later."""
        if record.status is ExecutionStatus.NOT_INSTALLED:
            return False
        is_last_failure = record is history.last_failure
        if not resource.found.failure_timeout_ms and not is_last_failure:
            return False
        timeout = self._timeout_ms(resource, node)
        is_old = False
        counted = self.counted(resource, node)
        if timeout > 0 and record.changed_at > 0:
            is_old = self._settings.time.has_come(WallTime(record.changed_at + timeout))
            is_old = is_old and not _waits_for_fencing(resource, record)
            if self.effective_count(resource, node):
                self._settings.time.look_again(WallTime(max(failure.failed_at for failure in counted) + timeout + 1))
                is_old = False
        if is_old and counted:
            self.forget(node, resource, EXPIRED)
        elif is_old and is_last_failure and resource.definition.reconnect_interval_ms:
            self.forget(node, resource, "reconnect interval is set")
        elif not is_old and is_last_failure:
            self._judge_parameters(resource, node, record)
        return is_old and not (record.is_probe and record.exit_code in _CONCLUSIVE)

    def _is_unanswered(self, resource: Resource, node: Node) -> bool:
        """Tell whether nothing was done on a node since a recurring monitor failed there: then it does not expire.

        A node whose clock is behind by more than the timeout records failures that are as old already, and what fails
        there would never be recovered. Pacemaker takes the times as they are.
        """
        if self._settings.options.is_pacemaker_compatible:
            return False
        history = node.status.histories.get(resource.recorded_as)
        records = history.records.values() if history is not None else ()
        newest = max(records, key=lambda record: record.call_id, default=None)
        return newest is not None and newest.is_failure and newest.interval_ms > 0

    def judge_late(self) -> None:
        """Judge failures of what is reached at the node that it is placed on, once that is known."""
        for resource, node, record in self._late:
            if self._digests.ran_with_others(resource, node, record):
                self.forget(node, resource, _OUTDATED)

    def forget(self, node: Node, resource: Resource, why: str, *, waits_for_fencing: bool = True) -> None:
        """Note that a resource's failures on a node count no more.

        What a connection's records say is forgotten once its node is fenced, what was changed in the configuration at
        once.
        """
        is_reachable = node.is_online and not node.is_unclean
        if (resource.id, node.name) in self._cleared:
            return
        is_compatible = self._settings.options.is_pacemaker_compatible
        if is_reachable and not is_compatible:
            for name in _names_of_failures(resource, node):
                self.forgotten.setdefault((node.name, name), why)
        if is_reachable or is_compatible:
            self._cleared.add((resource.id, node.name))
            definition = resource.definition
            is_reconnected = definition.is_remote_connection and bool(definition.reconnect_interval_ms)
            is_after = waits_for_fencing and is_reconnected
            is_possible = resource.is_managed and (node.is_online or (node.is_guest and not node.must_be_reset))
            self.clearings.append(Clearing(resource, node, why, is_possible, is_after))

    def is_cleared(self, resource: Resource, node: Node) -> bool:
        """Tell whether a resource's failures on a node are to be forgotten."""
        return (resource.id, node.name) in self._cleared

    def _timeout_ms(self, resource: Resource, node: Node) -> int:
        if resource.found.failure_timeout_ms and self.counted(resource, node) and _is_blocking(resource, node):
            resource.found.failure_timeout_ms = 0
        return resource.found.failure_timeout_ms

    def _judge_parameters(self, resource: Resource, node: Node, record: OperationRecord) -> None:
        """A start or monitor that failed with parameters that are no longer configured says nothing any more."""
        is_skipped = resource.found.is_removed and not self._settings.options.is_pacemaker_compatible
        if record.operation not in (START, MONITOR) or is_skipped:
            return
        if depends_on_placement(resource):
            self._late.append((resource, node, record))
        elif self._digests.ran_with_others(resource, node, record):
            self.forget(node, resource, _OUTDATED)


def bare_name(name: str) -> str:
    """Return the name of an instance without its number."""
    bare, _colon, number = name.rpartition(":")
    return bare if bare and number.isdecimal() else name


def _names_of_failures(resource: Resource, node: Node) -> Iterator[ResourceId]:
    """Yield the names under which a node has failures that count for a resource.

    Another name than its own has what failed while its clone was unique (`Failures.counts_on`). A clean-up of a name
    without failures would change nothing, and the plan that asked for it would never be executed.
    """
    own, is_unique = resource.recorded_as, resource.definition.is_unique
    for name, history in node.status.histories.items():
        is_meant = name == own or (not is_unique and bare_name(name) == bare_name(own))
        if is_meant and history.has_failures:
            yield name


def _waits_for_fencing(resource: Resource, record: OperationRecord) -> bool:
    """A connection that failed for good does not recover by time before the node it leads to has been fenced."""
    node, interval_ms = resource.remote_node, resource.definition.reconnect_interval_ms
    if not interval_ms or not record.interval_ms or record.operation != MONITOR or node is None:
        return False
    return node.power.is_enabled and not node.is_remote_fenced


def _is_blocking(resource: Resource, node: Node) -> bool:
    """A failure that blocks its resource never expires by itself."""
    blocking = [operation for operation in resource.definition.operations if operation.on_fail == "block"]
    if not blocking:
        return False
    failed = {(record.operation, record.interval_ms) for record in _failed_records(resource, node)}
    return any((operation.name, operation.interval_ms) in failed for operation in blocking)


def _failed_records(resource: Resource, node: Node) -> Iterator[OperationRecord]:
    history = node.status.histories.get(resource.recorded_as)
    if history is None:
        return
    for record in history.records.values():
        if record.is_failure:
            yield record
    failure = history.last_failure
    if failure is not None and operation_key(failure.operation, failure.interval_ms) not in history.records:
        yield failure


def forget_removed(inventory: Inventory, failures: Failures, settings: Settings) -> None:
    """Phase: what is no longer configured, and is to be stopped, has no failures either."""
    if not settings.stops_removed:
        return
    for resource in inventory.tops:
        for node in inventory.nodes if resource.found.is_removed else ():
            if node.is_online and failures.effective_count(resource, node):
                failures.forget(node, resource, "it is removed")


def to_ban(resource: Resource) -> Resource:
    """Return what is banned when a resource failed: the whole clone, when its instances are interchangeable."""
    if resource.definition.is_unique:
        return resource
    top = resource.top
    return top if top.variant is Variant.CLONE else resource
