"""What the recorded operations of one resource on one node say about it, replayed from the oldest to the newest.

Source: Pacemaker Explained, "Status" and "Interpretation of OCF return codes". One `Replay` covers one resource on one
node; what it finds is applied by `unpack_history`.
"""

from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode, Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.entities import Resource
from haclusterd.scheduler.failures import Failures
from haclusterd.scheduler.nodes import Node
from haclusterd.scheduler.operation_settings import OnFail, resolve_on_fail
from haclusterd.scheduler.settings import Settings

_RELEVANT = frozenset({"monitor", "asyncmon", "start", "stop", "promote", "demote", "migrate_to", "migrate_from"})
_HARD = frozenset({ExitCode.ARGUMENTS, ExitCode.UNIMPLEMENTED, ExitCode.PERMISSIONS, ExitCode.NOT_INSTALLED})
_FORGIVABLE = frozenset({OnFail.BLOCK, OnFail.DEMOTE, OnFail.RESTART})
_ACTIVE_AFTER = {
    "start": Role.STARTED,
    "stop": Role.STOPPED,
    "promote": Role.PROMOTED,
    "demote": Role.UNPROMOTED,
    "migrate_from": Role.STARTED,
}


def records_in_order(history: ResourceHistory) -> list[OperationRecord]:
    """Return the records, oldest first, with the newest failure among them if it has no record any more."""
    records = list(history.records.values())
    failure = history.last_failure
    if failure is not None and failure not in records:
        records.append(failure)
    if len(records) > 1:
        records.sort(key=lambda item: (item.call_id, item.changed_at, item.operation, item.interval_ms))
    return records


class Replay:
    """The state of one resource on one node after each record."""

    __slots__ = (
        "_failures", "_history", "_node", "_resource", "_settings", "expired_recurring", "failed_words", "last_failure",
        "on_fail", "role",
    )  # fmt: skip

    def __init__(
        self, resource: Resource, node: Node, history: ResourceHistory, failures: Failures, settings: Settings
    ) -> None:
        self._resource = resource
        self._node = node
        self._history = history
        self._failures = failures
        self._settings = settings
        self.role = Role.UNKNOWN
        self.on_fail = OnFail.IGNORE
        self.last_failure: OperationRecord | None = None
        self.failed_words = ""
        self.expired_recurring: set[int] = set()
        """Intervals of monitors whose failure since the newest start has expired: they are to be scheduled anew."""

    def run(self, records: list[OperationRecord]) -> None:
        """Replay all records."""
        for record in records:
            if record.operation not in _RELEVANT or record.status is ExecutionStatus.CANCELLED:
                continue
            if record.status is ExecutionStatus.DONE and record.exit_code is record.target_exit_code:
                self._succeeded(record, record.exit_code)
            elif record.status in (ExecutionStatus.PENDING, ExecutionStatus.UNKNOWN):
                self._undecided(record)
            else:
                self._judge(record)

    def _undecided(self, record: OperationRecord) -> None:
        """The outcome is not known: an activating operation may have succeeded, another may have had no effect."""
        if record.operation in _ACTIVE_AFTER and record.operation != ActionName.STOP:
            self.role = max(self.role, Role.STARTED, key=lambda role: role.value)

    def _judge(self, record: OperationRecord) -> None:
        """Look closer at a record that did not simply succeed."""
        code = {ExitCode.DEGRADED: ExitCode.OK, ExitCode.DEGRADED_PROMOTED: ExitCode.PROMOTED}.get(
            record.exit_code, record.exit_code
        )
        expired = self._failures.is_expired(self._resource, self._node, self._history, record)
        is_not_installed = record.status is ExecutionStatus.NOT_INSTALLED
        is_maskable = record.is_probe and (is_not_installed or code in (ExitCode.NOT_INSTALLED, ExitCode.ARGUMENTS))
        if is_maskable:
            self._mask(record, is_expired=expired)
            return
        is_judged_by_code = record.status in (ExecutionStatus.DONE, ExecutionStatus.ERROR)
        if is_judged_by_code and self._is_finding(record, code):
            return
        if expired and (record.interval_ms == 0 or self._node.is_available):
            if record.interval_ms:
                self.expired_recurring.add(record.interval_ms)
            return
        if is_judged_by_code and code is ExitCode.FAILED_PROMOTED:
            self.role = Role.PROMOTED
        self._failed(record, code)

    def _is_finding(self, record: OperationRecord, code: ExitCode) -> bool:
        """Take a record whose code is not a failure; tell whether it was one."""
        if code is record.target_exit_code:
            self._succeeded(record, code)
            return True
        if code is ExitCode.OK and record.is_probe:
            self._succeeded(record, code)
            return True
        if code is ExitCode.NOT_RUNNING and (record.is_probe or not self._resource.is_managed):
            self._succeeded(record, code)
            return True
        if code is ExitCode.PROMOTED:
            self.role = Role.PROMOTED
            if record.is_probe:
                self._succeeded(record, code)
                return True
        return False

    def _mask(self, record: OperationRecord, *, is_expired: bool) -> None:
        """A probe that cannot run here, because the agent or the service is not installed, bans and is no failure."""
        if is_expired and record.exit_code is not record.target_exit_code:
            return
        self.role = Role.STOPPED
        words = f"failed probe on {self._node.name}{_reason(record)}"
        self._resource.add_score(self._node.name, -INFINITY, words)

    def _succeeded(self, record: OperationRecord, code: ExitCode) -> None:
        """Take the state that a successful operation leaves, and forgive what it makes good."""
        if code is ExitCode.NOT_RUNNING:
            self.role = Role.STOPPED
            self.on_fail = OnFail.IGNORE
            self.failed_words = ""
            self._resource.next_role = Role.UNKNOWN
            return
        after = _ACTIVE_AFTER.get(record.operation)
        if record.operation == ActionName.START:
            self.expired_recurring.clear()
        if after is not None:
            self.role = after
            if record.operation != ActionName.DEMOTE or self.on_fail is OnFail.DEMOTE:
                self._clear()
            return
        if self.role.value < Role.STARTED.value:
            self.role = Role.STARTED
        if code is ExitCode.PROMOTED:
            self.role = Role.PROMOTED
        failure = self.last_failure
        if record.operation == ActionName.MONITOR and failure is not None and _is_same_operation(failure, record):
            self._clear()

    def _clear(self) -> None:
        if self.on_fail in _FORGIVABLE:
            self.on_fail = OnFail.IGNORE
            self.failed_words = ""
            self._resource.next_role = Role.UNKNOWN

    def _failed(self, record: OperationRecord, code: ExitCode) -> None:
        on_fail = resolve_on_fail(self._resource, record.operation, record.interval_ms, self._node, self._settings)
        words = f"failed {record.operation} on {self._node.name}{_reason(record)}"
        if record.status is ExecutionStatus.NOT_INSTALLED:
            self._resource.add_score(self._node.name, -INFINITY, words)
            if on_fail is OnFail.IGNORE:
                on_fail = OnFail.BAN
        if on_fail is OnFail.IGNORE:
            self._resource.ignores_failure = True
            self._succeeded(record, record.target_exit_code)
            return
        self.last_failure = record
        self.on_fail = max(self.on_fail, on_fail)
        self.failed_words = words
        self._take_failed_state(record, code, on_fail, words)
        self._ban_if_hard(record, code, words)

    def _take_failed_state(self, record: OperationRecord, code: ExitCode, on_fail: OnFail, words: str) -> None:
        resource = self._resource
        if record.operation == ActionName.STOP:
            resource.add_score(self._node.name, -INFINITY, words)
        elif record.operation == ActionName.PROMOTE:
            self.role = Role.PROMOTED
        elif record.operation == ActionName.DEMOTE:
            self.role = Role.STOPPED if code is ExitCode.NOT_RUNNING else Role.UNPROMOTED
        if self.role.value < Role.STARTED.value:
            is_absent = record.is_probe and code is ExitCode.NOT_INSTALLED
            self.role = Role.STOPPED if is_absent else Role.STARTED
        if on_fail is OnFail.STOP:
            resource.next_role = Role.STOPPED
            resource.failed_because = resource.failed_because or words
            resource.ban_everywhere(f"{words}: on-fail=stop")

    def _ban_if_hard(self, record: OperationRecord, code: ExitCode, words: str) -> None:
        """Errors that the same action would meet again: on this node (hard), or anywhere (fatal)."""
        is_judged_by_code = record.status in (ExecutionStatus.DONE, ExecutionStatus.ERROR)
        if is_judged_by_code and code is ExitCode.NOT_CONFIGURED:
            self._resource.ban_everywhere(words)
        elif record.status is ExecutionStatus.NO_SECRETS:
            self._resource.add_score(self._node.name, -INFINITY, words)
        elif is_judged_by_code and code in _HARD:
            if code is ExitCode.UNIMPLEMENTED and record.interval_ms:
                return
            if record.operation == ActionName.STOP and not self._node.can_be_fenced:
                self._resource.is_managed = False
                self._resource.is_blocked = True
            self._resource.add_score(self._node.name, -INFINITY, words)


def _is_same_operation(left: OperationRecord, right: OperationRecord) -> bool:
    return left.operation == right.operation and left.interval_ms == right.interval_ms


def _reason(record: OperationRecord) -> str:
    if record.exit_reason:
        return f" ({record.exit_reason})"
    if record.status is ExecutionStatus.TIMEOUT:
        return " (timeout)"
    return f" ({record.exit_code.name.lower().replace('_', ' ')})"
