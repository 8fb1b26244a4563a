"""Recorded operations in CIB XML: `lrm_resource` with its `lrm_rsc_op` (Pacemaker Explained, "Status")."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from haclusterd.formats.cib_xml_digests import Parameters, restart_digest, secure_digest
from haclusterd.formats.cib_xml_notes import Notes
from haclusterd.formats.cib_xml_tree import Element
from haclusterd.model import scores
from haclusterd.model.history import FailCount, OperationRecord, ResourceHistory, operation_key
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode

NOT_RECORDED = "not-recorded"
"""In the place of a digest: a record without one is taken as one of other parameters."""

_STATUS = {
    -1: ExecutionStatus.PENDING,
    0: ExecutionStatus.DONE,
    1: ExecutionStatus.CANCELLED,
    2: ExecutionStatus.TIMEOUT,
    3: ExecutionStatus.NOT_SUPPORTED,
    4: ExecutionStatus.ERROR,
    7: ExecutionStatus.NOT_INSTALLED,
    8: ExecutionStatus.NOT_CONNECTED,
    11: ExecutionStatus.NO_SECRETS,
}
_FAIL_COUNT = re.compile(r"(fail-count|last-failure)-(.+)#(.+)_(\d+)\Z")
_OLD_FAIL_COUNT = re.compile(r"(fail-count|last-failure)-(.+)\Z")
_OUTDATED = frozenset({"probe_complete"})
_DIGESTED = frozenset({"start", "monitor", "promote"})


@dataclass(slots=True)
class FailCounts:
    """Fail counts of one node while they are read: transient attributes hold them in Pacemaker."""

    counts: dict[ResourceId, dict[str, FailCount]] = field(default_factory=dict)

    def take(self, name: str, value: str) -> bool:
        """Take an attribute; False when it is none of a fail count."""
        found = _FAIL_COUNT.match(name)
        if found is None:
            return False
        kind, resource, operation, interval = found.groups()
        known = self.counts.setdefault(ResourceId(resource), {})
        key = operation_key(operation, int(interval))
        before = known.get(key, FailCount(operation, int(interval), 0, WallTime(0)))
        if kind == "fail-count":
            known[key] = replace(before, count=_score(value))
        elif value.isdecimal():
            known[key] = replace(before, failed_at=WallTime(int(value[:15]) * 1000))
        return True

    def of(self, resource: ResourceId) -> Mapping[str, FailCount]:
        """Return the fail counts of a resource; a time without a count says nothing."""
        return {key: each for key, each in self.counts.get(resource, {}).items() if each.count}


def is_old_fail_count(name: str) -> bool:
    """Tell whether an attribute is a fail count as releases before 1.1.17 wrote it, for all operations together."""
    return _OLD_FAIL_COUNT.match(name) is not None


def is_outdated(name: str) -> bool:
    """Tell whether an attribute meant something to old releases only."""
    return name in _OUTDATED


def _score(text: str) -> int:
    try:
        return scores.parse(text)
    except ValueError:
        return 0


class HistoryReader:
    """Reads the histories of one node after the other."""

    def __init__(self, parameters: Parameters, notes: Notes) -> None:
        self._parameters = parameters
        self._notes = notes

    def read(self, element: Element, counts: FailCounts) -> ResourceHistory | None:
        """Read one `lrm_resource`; None when nothing is recorded."""
        notes = self._notes
        identifier, standard = notes.required(element, "id"), notes.required(element, "class")
        type_ = notes.required(element, "type")
        if identifier is None or standard is None or type_ is None or not element.children:
            return None
        notes.expect_only(element, ("id", "class", "provider", "type"), ("lrm_rsc_op",))
        agent = AgentReference(standard, element.get("provider") or None, type_)
        resource = ResourceId(identifier)
        read = [(self._record(each, resource), each) for each in element.all("lrm_rsc_op")]
        found = [(record, each) for record, each in read if record is not None]
        newest = max((record.call_id for record, _ in found), default=0)
        records: dict[str, OperationRecord] = {}
        last_failure: OperationRecord | None = None
        for made, operation in found:
            is_pending = made.status is ExecutionStatus.PENDING
            record = replace(made, call_id=newest + 1) if is_pending and made.call_id < 0 else made
            if (operation.get("id") or "").endswith("_last_failure_0"):
                last_failure = record
                continue
            key = operation_key(record.operation, record.interval_ms)
            if key not in records or records[key].call_id <= record.call_id:
                records[key] = record
        return ResourceHistory(resource, agent, records, counts.of(resource), last_failure=last_failure)

    def _record(self, element: Element, resource: ResourceId) -> OperationRecord | None:
        notes = self._notes
        operation = notes.required(element, "operation")
        status = _STATUS.get(notes.number(element, "op-status", 99))
        if operation is None:
            return None
        if status is None:
            notes.not_yet(element, f"op-status={element.get('op-status')}")
            return None
        if element.get("migrate_source") or operation in ("migrate_to", "migrate_from"):
            notes.not_yet(element, "the record of a live migration")
            return None
        interval_ms = notes.number(element, "interval", 0)
        changed_at = notes.number(element, "last-rc-change", 0) * 1000
        return OperationRecord(
            operation,
            interval_ms,
            notes.number(element, "call-id", -1),
            ExitCode.read(notes.number(element, "rc-code", int(ExitCode.UNKNOWN))),
            status,
            _target(element.get("transition-key") or ""),
            run_at=WallTime(notes.number(element, "last-run", 0) * 1000 or changed_at),
            changed_at=WallTime(changed_at),
            executed_ms=notes.number(element, "exec-time", 0),
            queued_ms=notes.number(element, "queue-time", 0),
            exit_reason=element.get("exit-reason") or "",
            digest=self._digest(element, resource, operation, interval_ms),
        )

    def _digest(self, element: Element, resource: ResourceId, operation: str, interval_ms: int) -> str:
        """Return what the scheduler is to compare: nothing when the parameters are those of now."""
        if operation not in _DIGESTED:
            return ""
        expected = self._parameters.digest_of(resource, operation, interval_ms)
        recorded = element.get("op-digest")
        if expected is None or recorded == expected:
            return ""
        if recorded is None:
            return NOT_RECORDED
        now = self._parameters.of(resource, operation, interval_ms) or {}
        if _is_private_only(element, now):
            return ""
        restarting = element.get("op-restart-digest")
        forcing = _names(element, "force-restart")
        if restarting is not None and not interval_ms and restarting == restart_digest(now, forcing):
            self._notes.not_yet(element, "a change that needs a reload only")
        return recorded


def _names(element: Element, list_name: str) -> frozenset[str]:
    return frozenset((element.get(f"op-{list_name}") or "").split())


def _is_private_only(element: Element, now: Mapping[str, str]) -> bool:
    """A saved CIB has asterisks in the place of secrets: the digest without them is the one to believe."""
    recorded = element.get("op-secure-digest")
    return recorded is not None and recorded == secure_digest(now, _names(element, "secure-params"))


def _target(transition_key: str) -> ExitCode:
    """Return the exit code that was expected: the third part of `ACTION:TRANSITION:CODE:UUID`."""
    parts = transition_key.split(":")
    if len(parts) < 3 or not parts[2].isdecimal():
        return ExitCode.UNKNOWN
    return ExitCode.read(int(parts[2][:6]))
