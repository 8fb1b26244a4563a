"""Recorded operations in CIB XML: `lrm_resource` with its `lrm_rsc_op` (Pacemaker Explained, "Status").

Everything that Pacemaker's scheduler looks at is kept, with its own digests; what an entry means is the scheduler's
business.
"""

from haclusterd.formats.cib_xml.fail_counts import FailCounts
from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.history import OperationRecord, PacemakerMark, ResourceHistory, operation_key
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.operation_age import oldest_first
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code, Severity

_STATUS = {
    -1: ExecutionStatus.PENDING,
    0: ExecutionStatus.DONE,
    1: ExecutionStatus.CANCELLED,
    2: ExecutionStatus.TIMEOUT,
    3: ExecutionStatus.NOT_SUPPORTED,
    4: ExecutionStatus.ERROR,
    5: ExecutionStatus.HARD_ERROR,
    6: ExecutionStatus.FATAL_ERROR,
    7: ExecutionStatus.NOT_INSTALLED,
    8: ExecutionStatus.NOT_CONNECTED,
    9: ExecutionStatus.INVALID,
    10: ExecutionStatus.NO_FENCE_DEVICE,
    11: ExecutionStatus.NO_SECRETS,
}
_CODES = {code.value: code for code in ExitCode}
_LARGEST_CODE = 255
_SAFE_LENGTH = 16
_KNOWN = ("id", "class", "provider", "type", "container", "shutdown-lock")


class HistoryReader:
    """Reads the histories of one node after the other."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def read(self, element: Element, counts: FailCounts) -> ResourceHistory | None:
        """Read one `lrm_resource`; None when nothing is recorded."""
        notes = self._notes
        identifier, standard = notes.required(element, "id"), notes.required(element, "class")
        type_ = notes.required(element, "type")
        if identifier is None or standard is None or type_ is None:
            return None
        if not (element.children or element.get("shutdown-lock")):
            return None
        notes.expect_only(element, _KNOWN, ("lrm_rsc_op",))
        resource, launcher = ResourceId(identifier), element.get("container")
        read = [record for each in element.all("lrm_rsc_op") if (record := self._record(each)) is not None]
        history = ResourceHistory(
            resource,
            AgentReference(standard, element.get("provider") or None, type_),
            fail_counts=counts.of(resource),
            launcher=ResourceId(launcher) if launcher else None,
        )
        return with_records(history, read)

    def _number(self, element: Element, name: str, default: int) -> int:
        """Read a whole number; nearly all of them are what they should be."""
        text = element.attributes.get(name)
        if text is None:
            return default
        is_plain = len(text) < _SAFE_LENGTH and text.isdecimal()
        return int(text) if is_plain else self._notes.number(element, name, default)

    def _record(self, element: Element) -> OperationRecord | None:
        number, get = self._number, element.attributes.get
        operation = self._notes.required(element, "operation")
        status = _STATUS.get(number(element, "op-status", 99))
        code = number(element, "rc-code", -1)
        if operation is not None and "rc-code" in element.attributes and not 0 <= code <= _LARGEST_CODE:
            problem = f"the record {get('id')}: its rc-code={get('rc-code')} is no exit status"
            self._notes.note(Code.LEFT_OUT, element, severity=Severity.WARNING, problem=problem)
        if operation is None or status is None or not 0 <= code <= _LARGEST_CODE:
            return None
        changed_at = number(element, "last-rc-change", 0) * 1000
        source, target = get("migrate_source"), get("migrate_target")
        return OperationRecord(
            operation,
            number(element, "interval", 0),
            number(element, "call-id", -1),
            _CODES.get(code, ExitCode.ERROR),
            status,
            _expected(get("transition-key") or ""),
            run_at=WallTime(number(element, "last-run", 0) * 1000 or changed_at),
            changed_at=WallTime(changed_at),
            executed_ms=number(element, "exec-time", 0),
            queued_ms=number(element, "queue-time", 0),
            exit_reason=get("exit-reason") or "",
            digest=get("op-digest") or "",
            migrate_source=NodeName(source) if source else None,
            migrate_target=NodeName(target) if target else None,
            restart_digest=get("op-restart-digest") or "",
            restart_parameters=_words(get("op-force-restart")) if "op-force-restart" in element.attributes else None,
            pacemaker=PacemakerMark(
                get("id") or "",
                get("on_node") or "",
                get("transition-magic") or "",
                get("op-secure-digest") or "",
                _words(get("op-secure-params")),
            ),
        )


def with_records(history: ResourceHistory, read: list[OperationRecord]) -> ResourceHistory:
    """Return a history of Pacemaker's with these records, which come in document order."""
    last_failure: OperationRecord | None = None
    records: dict[str, OperationRecord] = {}
    ordered = oldest_first(read)
    numbered = (
        ordered
        if len(ordered) < 2
        else [each if each.sequence == at else replace(each, sequence=at) for at, each in enumerate(ordered, 1)]
    )
    for record in reversed(numbered):
        key = operation_key(record.operation, record.interval_ms)
        assert record.pacemaker is not None
        if record.pacemaker.id.endswith("_last_failure_0"):
            last_failure = last_failure or record
        records.setdefault(key if key not in records else f"{key} {len(records)}", record)
    return replace(history, records=dict(reversed(records.items())), last_failure=last_failure)


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(text.split()) if text else ()


def _expected(transition_key: str) -> ExitCode:
    """Return the exit code that was expected: the third part of `ACTION:TRANSITION:CODE:UUID`."""
    parts = transition_key.split(":", 3)
    if len(parts) < 3 or not parts[2].isdecimal():
        return ExitCode.UNKNOWN
    return _CODES.get(int(parts[2][:6]), ExitCode.ERROR)
