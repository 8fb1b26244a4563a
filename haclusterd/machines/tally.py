"""Counters of a daemon since its start: events, operations, fencings, and outages of services with their causes.

For metrics only: no decision depends on it. Each node counts everything in the log, so all nodes count the same, each
from its own start on.

An outage of a primitive lasts from when its last serving instance was lost, failed or was stopped, until an instance
serves again. A stop counts only if the same transition started the resource again: then it was moved or restarted, and
not switched off.
"""

from collections import Counter
from typing import Final

from haclusterd.cib.changes import Applied, Change, ChangeKind
from haclusterd.cib.commands import RecordResults
from haclusterd.model.activity import history_says_active
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.counted import Counted, Spans
from haclusterd.model.history import OperationRecord, ordered_records
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.model.orders import ResultKind
from haclusterd.model.records import dataclass, field

NODE_LOST: Final = "node-lost"
NODE_FENCED: Final = "node-fenced"
"""The node was fenced for another reason than silence."""
FAILURE: Final = "failure"
PLANNED: Final = "planned"
CAUSES: Final = (NODE_LOST, NODE_FENCED, FAILURE, PLANNED)
_ENDS: Final = frozenset({ChangeKind.OPERATION_SUCCEEDED, ChangeKind.OPERATION_FAILED})
_SERVING: Final = frozenset({ActionName.START, ActionName.MONITOR, ActionName.MIGRATE_FROM, ActionName.PROMOTE})


@dataclass(frozen=True, slots=True)
class _Outage:
    since: WallTime
    cause: str
    transition: str = ""
    """For a stopped resource: the transition that stopped it."""


@dataclass(slots=True)
class _Loss:
    """A node that was lost with its resources."""

    since: WallTime
    cause: str
    status: NodeStatus
    """Its status before the loss."""
    ended: set[ResourceId] = field(default_factory=set)


class Tally:
    """Counts from applied entries."""

    def __init__(self) -> None:
        self._events: Counter[str] = Counter()
        self._operations: Counter[tuple[str, str]] = Counter()
        self._operations_ms: Counter[str] = Counter()
        self._fencings: Counter[tuple[str, str, str]] = Counter()
        self._spans: dict[str, Spans] = {cause: Spans() for cause in CAUSES}
        self._outages: dict[ResourceId, _Outage] = {}
        self._losses: dict[NodeName, _Loss] = {}

    def counted(self) -> Counted:
        """Return all counters."""
        return Counted(
            dict(self._events), dict(self._operations), dict(self._operations_ms), dict(self._fencings),
            dict(self._spans),
        )  # fmt: skip

    def observe(self, before: Cib, applied: Applied) -> None:
        """Count what one entry did to the CIB before it."""
        envelope = applied.envelope
        if envelope is None or applied.refusal is not None:
            return
        for change in applied.changes:
            self._events[change.kind] += 1
            self._follow(before, applied.cib, change, envelope.at)
        if isinstance(envelope.command, RecordResults):
            self._count_operations(envelope.command)
        if applied.cib.status.fencing_history is not before.status.fencing_history:
            known = {record.key for record in before.status.fencing_history}
            for record in applied.cib.status.fencing_history:
                if record.key not in known:
                    self._fencings[record.target, str(record.action), str(record.outcome)] += 1

    def _count_operations(self, command: RecordResults) -> None:
        for result in command.results:
            outcome = str(result.kind)
            if result.kind is ResultKind.FINISHED:
                is_probe = result.operation == ActionName.MONITOR and not result.interval_ms
                is_ok = is_probe or result.exit_code is result.target_exit_code
                outcome = "ok" if is_ok else "failed"
            self._operations[result.operation, outcome] += 1
            self._operations_ms[result.operation] += result.executed_ms

    # -- outages ----------------------------------------------------------------------------------------------------

    def _follow(self, before: Cib, after: Cib, change: Change, at: WallTime) -> None:
        if change.node is None:
            return
        was = before.status.nodes.get(change.node)
        is_fenced_alive = change.kind is ChangeKind.NODE_FENCED and was is not None and was.state is NodeState.ONLINE
        if was is not None and (change.kind is ChangeKind.NODE_LOST or is_fenced_alive):
            cause = NODE_FENCED if is_fenced_alive else NODE_LOST
            # Which of its resources are missed is found out when they start: there may be thousands.
            self._losses[change.node] = _Loss(at, cause, was)
        elif change.kind in _ENDS and change.resource is not None:
            self._operation_ended(before, after, change.node, change.resource, at)

    def _operation_ended(
        self, before: Cib, after: Cib, node: NodeName, resource: ResourceId, at: WallTime
    ) -> None:
        record = _newest(after.status.nodes.get(node), resource)
        if record is None or _is_served(after, resource, besides=node):
            self._outages.pop(resource, None)
            return
        if _serves(after.status.nodes.get(node), resource):
            if record.operation in _SERVING and not _serves(before.status.nodes.get(node), resource):
                self._end(resource, at, record)
        elif resource not in self._outages and _serves(before.status.nodes.get(node), resource):
            is_stopped = record.operation == ActionName.STOP and not record.is_failure
            transition = _transition_of(record) if is_stopped else ""
            self._outages[resource] = _Outage(at, PLANNED if is_stopped else FAILURE, transition)

    def _end(self, resource: ResourceId, at: WallTime, record: OperationRecord) -> None:
        outage = self._outages.pop(resource, None)
        for loss in self._losses.values():
            if resource in loss.ended or not _may_have_served(loss.status, resource):
                continue
            loss.ended.add(resource)
            if outage is None or loss.since < outage.since:
                outage = _Outage(loss.since, loss.cause)
        if outage is None or (outage.cause == PLANNED and outage.transition != _transition_of(record)):
            return
        self._spans[outage.cause] = self._spans[outage.cause].and_one(max(0, at - outage.since))


def _newest(status: NodeStatus | None, resource: ResourceId) -> OperationRecord | None:
    history = None if status is None else status.histories.get(resource)
    records = [] if history is None else ordered_records(history)
    return records[-1] if records else None


def _may_have_served(status: NodeStatus, resource: ResourceId) -> bool:
    history = status.histories.get(resource)
    return history is not None and history_says_active(history)


def _serves(status: NodeStatus | None, resource: ResourceId) -> bool:
    if status is None or status.state is not NodeState.ONLINE or not _may_have_served(status, resource):
        return False
    newest = _newest(status, resource)
    return newest is not None and not newest.is_failure


def _is_served(cib: Cib, resource: ResourceId, *, besides: NodeName) -> bool:
    return any(name != besides and _serves(status, resource) for name, status in cib.status.nodes.items())


def _transition_of(record: OperationRecord) -> str:
    """Return TERM.TRANSITION of the order that a record answers."""
    return "" if record.order is None else str(record.order).rpartition(".")[0]
