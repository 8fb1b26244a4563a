"""The alerts that follow from an applied entry (docs/design/0013-alerts.md).

Events are derived from the CIB before and after the entry, so that they are in log order and equal on every node.
Nothing here may refuse or delay a command; without alerts in the configuration nothing is stored.
"""

from collections.abc import Iterator, Mapping

from haclusterd.cib.commands import Command, RecordResults, RequestAlertTest, SetTransientAttribute
from haclusterd.cib.verdict import by
from haclusterd.model.alerts import PENDING_MAX, AlertEvent, AlertQueue, AlertTest, selects, targets
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.configuration import AlertKind
from haclusterd.model.devices import NodeDevices, RecoveryPhase
from haclusterd.model.fencing import FenceOutcome, FencingRecord
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, ResultKind
from haclusterd.model.records import replace

TEST = "test"
MEMBER, LOST = "member", "lost"
"""The text of `CRM_alert_desc` for an event of a node."""

_CODES: Mapping[ExitCode, str] = {
    ExitCode.OK: "ok", ExitCode.ERROR: "error", ExitCode.ARGUMENTS: "invalid parameter",
    ExitCode.UNIMPLEMENTED: "unimplemented feature", ExitCode.PERMISSIONS: "insufficient privileges",
    ExitCode.NOT_INSTALLED: "not installed", ExitCode.NOT_CONFIGURED: "not configured",
    ExitCode.NOT_RUNNING: "not running", ExitCode.PROMOTED: "promoted", ExitCode.FAILED_PROMOTED: "promoted (failed)",
    ExitCode.DEGRADED: "OCF_DEGRADED", ExitCode.DEGRADED_PROMOTED: "OCF_DEGRADED_PROMOTED",
    ExitCode.UNKNOWN: "unknown",
}  # fmt: skip
_ANSWERED = frozenset({ExecutionStatus.DONE, ExecutionStatus.ERROR})
"""Statuses in which the agent has answered: the exit code tells the result."""
_ENDS: Mapping[FenceOutcome, str] = {
    FenceOutcome.FENCED: "OK", FenceOutcome.CONFIRMED: "OK", FenceOutcome.UNFENCED: "OK",
    FenceOutcome.TIMEOUT: "Timed out", FenceOutcome.FAILED: "Generic fencing error",
    FenceOutcome.LIED: "Generic fencing error", FenceOutcome.UNKNOWN: "Unknown",
}  # fmt: skip


def with_alerts(before: Cib, after: Cib, command: Command, at: WallTime, incident: str = "") -> Cib:
    """Return the CIB after an entry, with the entry's events."""
    if not after.configuration.alerts and not before.configuration.alerts:
        return after
    queue = _with_targets(after)
    alerts = after.configuration.alerts.values()
    wanted = [
        event for event in _events(before, after, command, at)
        if any(selects(alert, event.kind, event.attribute) for alert in alerts)
    ]  # fmt: skip
    if wanted:
        queue = _bounded(_with_events(queue, [replace(event, incident=incident) for event in wanted]), at)
    return after if queue is after.status.alerts else replace(after, status=replace(after.status, alerts=queue))


def with_test(cib: Cib, command: RequestAlertTest, at: WallTime) -> Cib:
    """Return a CIB with a test event for some recipients; it looks like an event of a node."""
    controller = cib.status.controller
    term, node = (Term(0), "") if controller is None else (controller.term, str(controller.node))
    text = f"{TEST}{by(command.author, command.reason)}"
    event = AlertEvent(0, term, at, AlertKind.NODES, node, text, only=command.recipients)
    queue = _with_events(_with_targets(cib), [event])
    tests = {**queue.tests, **{key: AlertTest(queue.last) for key in command.recipients}}
    return replace(cib, status=replace(cib.status, alerts=_bounded(replace(queue, tests=tests), at)))


def with_one_dropped(cib: Cib, at: WallTime) -> Cib:
    """Return a CIB that counts one more event that no recipient will get.

    The DC logs it, and `crm alert list` shows it.
    """
    queue = cib.status.alerts
    dropped = {key: queue.dropped.get(key, 0) + 1 for key in sorted({*queue.dropped, *queue.delivered})}
    return replace(cib, status=replace(cib.status, alerts=replace(queue, dropped=dropped, dropped_at=at)))


def trimmed(queue: AlertQueue) -> AlertQueue:
    """Return the queue without the events that every recipient has got."""
    through = min(queue.delivered.values(), default=queue.last)
    return replace(queue, pending=tuple(event for event in queue.pending if event.sequence > through))


def _with_targets(cib: Cib) -> AlertQueue:
    """Return the queue with new recipients, starting at the newest event, and without those no longer configured."""
    queue = cib.status.alerts
    keys = {target.key for target in targets(cib.configuration)}
    if keys == queue.delivered.keys():
        return queue
    delivered = {key: queue.delivered.get(key, queue.last) for key in sorted(keys)}
    dropped = {key: count for key, count in queue.dropped.items() if key in delivered}
    tests = {key: test for key, test in queue.tests.items() if key in delivered}
    return trimmed(replace(queue, delivered=delivered, dropped=dropped, tests=tests))


def _with_events(queue: AlertQueue, events: list[AlertEvent]) -> AlertQueue:
    numbered = tuple(replace(event, sequence=queue.last + n) for n, event in enumerate(events, start=1))
    return replace(queue, last=queue.last + len(events), pending=(*queue.pending, *numbered))


def _bounded(queue: AlertQueue, at: WallTime) -> AlertQueue:
    """Drop the oldest events above the limit, and count them for the recipients that had not got them."""
    if len(queue.pending) <= PENDING_MAX:
        return queue
    kept = queue.pending[-PENDING_MAX:]
    through = kept[0].sequence - 1
    missed = {key: through - position for key, position in queue.delivered.items() if position < through}
    dropped = {key: queue.dropped.get(key, 0) + missed.get(key, 0) for key in sorted({*queue.dropped, *missed})}
    delivered = {key: max(position, through) for key, position in queue.delivered.items()}
    dropped_at = at if missed else queue.dropped_at
    return replace(queue, pending=kept, delivered=delivered, dropped=dropped, dropped_at=dropped_at)


def _events(before: Cib, after: Cib, command: Command, at: WallTime) -> Iterator[AlertEvent]:
    """Yield the events of an entry, without numbers yet."""
    controller = after.status.controller
    term = Term(0) if controller is None else controller.term
    yield from _of_nodes(before, after, at, term)
    yield from _of_fencing(before, after, at, term)
    yield from _of_devices(before, after, at, term)
    if isinstance(command, RecordResults):
        yield from (_of_result(command.node, each, at, term) for each in command.results
                    if _is_recorded(after, command.node, each))  # fmt: skip
    if isinstance(command, SetTransientAttribute):
        for node in command.nodes:
            value = _new_value(before, after, node, command.name)
            if value is not None:
                yield AlertEvent(0, term, at, AlertKind.ATTRIBUTES, node, attribute=command.name, value=value)


def _of_nodes(before: Cib, after: Cib, at: WallTime, term: Term) -> Iterator[AlertEvent]:
    if before.status.nodes is after.status.nodes:
        return
    for name, status in sorted(after.status.nodes.items()):
        known = before.status.nodes.get(name)
        was = known is not None and known.state is NodeState.ONLINE
        is_member = status.state is NodeState.ONLINE
        if was != is_member:
            yield AlertEvent(0, term, at, AlertKind.NODES, name, MEMBER if is_member else LOST)


def _of_devices(before: Cib, after: Cib, at: WallTime, term: Term) -> Iterator[AlertEvent]:
    """Yield events that need an administrator: a storm, and each device that its recovery has not helped."""
    storm = after.status.device_storm
    if storm is not None and storm != before.status.device_storm and not storm.is_over:
        node = "" if after.status.controller is None else str(after.status.controller.node)
        yield AlertEvent(0, term, at, AlertKind.NODES, node, f"devices wait for a person: {storm.text}", "gpu-storm")
    if after.status.devices is before.status.devices:
        return
    for node_name, known in sorted(after.status.devices.items()):
        older = before.status.devices.get(node_name, NodeDevices()).recoveries
        for name, recovery in known.recoveries.items():
            is_new = name not in older or older[name].phase is not RecoveryPhase.HELD
            if recovery.phase is RecoveryPhase.HELD and is_new:
                text = f"device {name} is held after {recovery.rung or 'return'}: {recovery.detail or recovery.reason}"
                yield AlertEvent(0, term, at, AlertKind.NODES, str(node_name), text, "gpu-recovery", exit_code=1)


def _of_fencing(before: Cib, after: Cib, at: WallTime, term: Term) -> Iterator[AlertEvent]:
    old, new = before.status.fencing_history, after.status.fencing_history
    if new is old:
        return
    known = {(record.key, record.outcome) for record in old}
    for record in new:
        if (record.key, record.outcome) not in known:
            yield _of_record(record, at, term)


def _of_record(record: FencingRecord, at: WallTime, term: Term) -> AlertEvent:
    end = _ENDS[record.outcome]
    by = record.executor or "a person"
    detail = f" ({record.detail})" if record.detail and end != "OK" else ""
    text = f"Operation {record.action} of {record.target} by {by}: {end}{detail}"
    task = str(record.action)
    code = 0 if end == "OK" else 1
    return AlertEvent(0, term, at, AlertKind.FENCING, record.target, text, task, exit_code=code)


def _is_recorded(after: Cib, node: NodeName, result: OperationResult) -> bool:
    """Return whether a result counts: it was not overtaken by a later one, and is about the resource itself."""
    if result.operation == ActionName.NOTIFY or result.kind is ResultKind.NOT_BEGUN:
        return False
    if result.kind is ResultKind.UNKNOWN:
        return True
    status = after.status.nodes.get(node)
    history = None if status is None else status.histories.get(result.resource)
    return history is not None and any(record.call_id == result.call_id for record in history.records.values())


def _of_result(node: NodeName, result: OperationResult, at: WallTime, term: Term) -> AlertEvent:
    is_known = result.kind is ResultKind.FINISHED
    status = result.status if is_known else ExecutionStatus.UNKNOWN
    text = _CODES[result.exit_code] if status in _ANSWERED else str(status)
    if status in _ANSWERED and result.exit_reason and result.exit_code is not result.target_exit_code:
        text += f" ({result.exit_reason})"
    return AlertEvent(
        0,
        term,
        at,
        AlertKind.RESOURCES,
        node,
        text,
        task=result.operation,
        resource=result.resource,
        interval_ms=result.interval_ms,
        status=status,
        exit_code=int(result.exit_code),
        target_exit_code=int(result.target_exit_code),
        executed_ms=result.executed_ms,
    )


def _new_value(before: Cib, after: Cib, node: NodeName, name: str) -> str | None:
    """Return the value that a node's attribute has now, empty where it was deleted; None where it did not change."""
    old, new = before.status.nodes.get(node), after.status.nodes.get(node)
    if old is None or new is None or old.attributes.get(name) == new.attributes.get(name):
        return None
    return new.attributes.get(name, "")
