"""What the recorded operations of one resource on one node say about it, replayed from the oldest to the newest.

Source: Pacemaker Explained, "Status" and "Interpretation of OCF return codes". One `Replay` covers one resource on one
node; what it finds is applied by `found_state`. What a record says about other nodes too, as those of a live migration,
is the business of `migration_history`.
"""

from haclusterd.model.fencing import FailedOperation
from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode, Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.operation_settings import OnFail, resolve_on_fail
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.unpack.failures import Failures, to_ban
from haclusterd.scheduler.unpack.fencing_limits import FencingLimits, failed_operation
from haclusterd.scheduler.unpack.migration_history import MigrationHistory

_RELEVANT = frozenset({"monitor", "asyncmon", "start", "stop", "promote", "demote", "migrate_to", "migrate_from"})
_MIGRATION = frozenset({"migrate_to", "migrate_from"})
_JUDGED_BY_CODE = frozenset({ExecutionStatus.DONE, ExecutionStatus.ERROR})
_HARD = frozenset({ExecutionStatus.HARD_ERROR, ExecutionStatus.NO_FENCE_DEVICE, ExecutionStatus.NO_SECRETS})
_FORGIVABLE = frozenset({OnFail.BLOCK, OnFail.DEMOTE, OnFail.RESTART, OnFail.RESTART_CONTAINER, OnFail.IGNORE})
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
        records.sort(key=lambda item: (item.sequence, item.call_id, item.changed_at, item.operation, item.interval_ms))
    return records


class Replay:
    """The state of one resource on one node after each record."""

    __slots__ = (
        "_failures", "_history", "_inventory", "_is_arriving", "_limits", "_node", "_resource", "_settings",
        "active_role", "expired_recurring", "failed_words", "fenced_for", "is_bundled", "last_failure", "on_fail",
        "role",
    )  # fmt: skip

    def __init__(
        self,
        resource: Resource,
        node: Node,
        history: ResourceHistory,
        *,
        inventory: Inventory,
        failures: Failures,
        settings: Settings,
        limits: FencingLimits | None = None,
    ) -> None:
        """`limits`: what may keep a node from being fenced for a failure; None: nothing."""
        self._limits = limits
        self._resource = resource
        self._node = node
        self._history = history
        self._inventory = inventory
        self._failures = failures
        self._settings = settings
        top = resource.top
        self.active_role = Role.UNPROMOTED if top.definition.is_promotable else Role.STARTED
        self.is_bundled = top.parent is not None
        self.role = Role.UNKNOWN
        self._is_arriving = False
        """A live migration may have brought it here: only a probe that could look says that it has not."""
        self.on_fail = OnFail.IGNORE
        self.last_failure: OperationRecord | None = None
        self.failed_words = ""
        self.fenced_for: list[FailedOperation] = []
        """The failures that demand fencing."""
        self.expired_recurring: set[int] = set()
        """Intervals of monitors whose failure since the newest start has expired: they are to be scheduled again."""

    def run(self, records: list[OperationRecord]) -> None:
        """Replay all records."""
        for record in records:
            if record.operation not in _RELEVANT or record.status is ExecutionStatus.CANCELLED:
                continue
            if record.is_expected_arrival and not self._settings.options.is_pacemaker_compatible:
                self._is_arriving = True
            elif record.status is ExecutionStatus.PENDING:
                if not self._is_forgotten(record):
                    self._pending(record)
            elif record.is_undecided:
                self._undecided(record)
            else:
                self._judge(record)

    def _undecided(self, record: OperationRecord) -> None:
        """The outcome is not known: an activating operation may have succeeded, another may have had no effect."""
        if record.operation in _ACTIVE_AFTER and record.operation != ActionName.STOP:
            self.role = max(self.role, Role.STARTED, key=lambda role: role.value)
        if record.operation == ActionName.MIGRATE_FROM:
            # Whatever a probe finds here may be a part that never became whole.
            self.on_fail = max(self.on_fail, OnFail.RESTART)
            self.failed_words = f"broken-off migration to {self._node.name}{_reason(record)}"

    def _pending(self, record: OperationRecord) -> None:
        """An operation has begun and not ended, unless the newest failure is its end."""
        failure = self.last_failure
        if failure is not None and _is_same_operation(failure, record) and failure.changed_at >= record.changed_at:
            return
        resource = self._resource
        if record.operation == ActionName.START:
            resource.found.is_start_pending = True
            self.role = self.active_role
        elif record.operation == ActionName.PROMOTE:
            self.role = Role.PROMOTED
        elif record.operation == ActionName.MIGRATE_TO and self._node.is_unclean:
            target = record.migrate_target
            resource.found.required_stops.update(name for name in (target,) if name in self._inventory.nodes_by_name)
        if not resource.found.pending_action and not record.is_probe:
            resource.found.pending_action = record.operation
            resource.found.pending_node = self._node

    def _judge(self, record: OperationRecord) -> None:
        """Take in an operation that has ended."""
        is_expired = self._failures.is_expired(self._resource, self._node, self._history, record)
        code = {ExitCode.DEGRADED: ExitCode.OK, ExitCode.DEGRADED_PROMOTED: ExitCode.PROMOTED}.get(
            record.exit_code, record.exit_code
        )
        if self._is_maskable(record, code):
            self._mask(record, is_expired=is_expired)
            return
        status = record.status
        if status in _JUDGED_BY_CODE:
            status = self._judge_by_code(record, code, is_expired=is_expired)
        is_expected = code is record.target_exit_code and status is ExecutionStatus.DONE
        if is_expired and not is_expected and self._forget(record):
            return
        if status is ExecutionStatus.DONE:
            self._succeeded(record, code)
        else:
            self._failed(record, code, status)

    def _is_forgotten(self, record: OperationRecord) -> bool:
        """Tell whether an operation began so long ago that nobody waits for its end any more."""
        is_expired = self._failures.is_expired(self._resource, self._node, self._history, record)
        return is_expired and self._forget(record)

    def _forget(self, record: OperationRecord) -> bool:
        """Let an expired record count no more, if it need not; a monitor is ordered again where that can be done."""
        if not record.interval_ms:
            return True
        if self._node.is_online and not self._node.is_unclean:
            self.expired_recurring.add(record.interval_ms)
            return True
        return False

    def _is_maskable(self, record: OperationRecord, code: ExitCode) -> bool:
        """Tell whether a probe could not look for a resource that is not known to have run here.

        Pacemaker masks some such answers in any case, and so forgets what runs; where the configuration is wrong, it
        takes the resource for running and stops it, and fences the node when the same wrong parameter fails the stop.
        """
        if not record.is_probe or self.is_bundled:
            return False
        is_missing = code in (ExitCode.NOT_INSTALLED, ExitCode.ARGUMENTS)
        is_missing = is_missing or record.status is ExecutionStatus.NOT_INSTALLED
        if self._settings.options.is_pacemaker_compatible:
            return is_missing
        is_wrong = code is ExitCode.NOT_CONFIGURED and record.status in _JUDGED_BY_CODE
        return (is_missing or is_wrong) and self.role.value <= Role.STOPPED.value and not self._is_arriving

    def _mask(self, record: OperationRecord, *, is_expired: bool) -> None:
        """What cannot be probed is not there: the node is banned, and nothing has failed."""
        if is_expired and record.exit_code is not record.target_exit_code:
            if self.role.value <= Role.STOPPED.value:
                self.role = Role.UNKNOWN
            return
        self.role = Role.STOPPED
        words = f"failed probe on {self._node.name}{_reason(record)}"
        if record.exit_code is ExitCode.NOT_CONFIGURED:
            self._ban_if_hard(ExecutionStatus.FATAL_ERROR, words)
        to_ban(self._resource).found.scores.append((self._node.name, -INFINITY, words))

    def _judge_by_code(self, record: OperationRecord, code: ExitCode, *, is_expired: bool) -> ExecutionStatus:
        """Return what an exit code makes of an operation: a success, or which kind of error."""
        expected = record.target_exit_code
        is_expected = code is expected and expected is not ExitCode.UNKNOWN
        status = ExecutionStatus.DONE if is_expected else ExecutionStatus.ERROR
        match code:
            case ExitCode.OK:
                is_finding = expected is ExitCode.NOT_RUNNING or record.pacemaker is None
                return ExecutionStatus.DONE if record.is_probe and is_finding else status
            case ExitCode.NOT_RUNNING:
                return self._judge_not_running(record, status, is_expected=is_expected)
            case ExitCode.PROMOTED:
                if not is_expired or is_expected:
                    self.role = Role.PROMOTED
                return ExecutionStatus.DONE if record.is_probe else status
            case ExitCode.FAILED_PROMOTED:
                if not is_expired:
                    self.role = Role.PROMOTED
                return ExecutionStatus.ERROR
            case ExitCode.NOT_CONFIGURED:
                return ExecutionStatus.FATAL_ERROR
            case ExitCode.UNIMPLEMENTED:
                return self._judge_unimplemented(record, is_expired=is_expired)
            case ExitCode.ARGUMENTS | ExitCode.PERMISSIONS | ExitCode.NOT_INSTALLED:
                self._leave_alone_if_stop_failed(record, is_expired=is_expired)
                return ExecutionStatus.HARD_ERROR
            case _:
                return status

    def _judge_not_running(
        self, record: OperationRecord, status: ExecutionStatus, *, is_expected: bool
    ) -> ExecutionStatus:
        if not (record.is_probe or is_expected or not self._resource.is_managed):
            return status
        self.role = Role.STOPPED
        self.on_fail = OnFail.IGNORE
        self.failed_words = ""
        self._resource.found.next_role = Role.UNKNOWN
        return ExecutionStatus.DONE

    def _judge_unimplemented(self, record: OperationRecord, *, is_expired: bool) -> ExecutionStatus:
        if record.interval_ms:
            return ExecutionStatus.NOT_SUPPORTED
        self._leave_alone_if_stop_failed(record, is_expired=is_expired)
        return ExecutionStatus.HARD_ERROR

    def _leave_alone_if_stop_failed(self, record: OperationRecord, *, is_expired: bool) -> None:
        """What cannot be stopped, on a node that cannot be fenced, is left to a person."""
        if not is_expired and record.operation == ActionName.STOP and not self._node.can_be_fenced:
            self._resource.found.is_managed = False
            self._resource.found.is_blocked = True

    def _succeeded(self, record: OperationRecord, code: ExitCode) -> None:
        """Take the state that a successful operation leaves, and forgive what it makes good."""
        if code is ExitCode.NOT_INSTALLED:
            self.role = Role.STOPPED
            return
        if code is ExitCode.NOT_RUNNING:
            self._clear()
            return
        operation = record.operation
        if operation == ActionName.MIGRATE_TO:
            self._take_migration(self._migrations().succeeded_to(record))
            return
        after = _ACTIVE_AFTER.get(operation)
        if after is not None:
            if operation == ActionName.START:
                self.expired_recurring.clear()
            self.role = after
            if operation != ActionName.DEMOTE or self.on_fail is OnFail.DEMOTE:
                self._clear()
            return
        if self.role.value < Role.STARTED.value:
            self.role = self.active_role
        failure = self.last_failure
        if operation == ActionName.MONITOR and failure is not None and _is_same_operation(failure, record):
            self._clear()

    def _clear(self) -> None:
        is_reset = self.on_fail is OnFail.RESET_REMOTE and not self._resource.definition.reconnect_interval_ms
        if self.on_fail in _FORGIVABLE or is_reset:
            self.on_fail = OnFail.IGNORE
            self.failed_words = ""
            self._resource.found.next_role = Role.UNKNOWN

    def _failed(self, record: OperationRecord, code: ExitCode, status: ExecutionStatus) -> None:
        resource, node = self._resource, self._node
        on_fail = resolve_on_fail(resource, record.operation, record.interval_ms, node, self._settings)
        words = f"failed {record.operation} on {node.name}{_reason(record)}"
        if on_fail is OnFail.FENCE and self._limits is not None and node.is_online and not node.is_remote:
            on_fail, words = self._limited(record, words)
        if status is ExecutionStatus.NOT_INSTALLED:
            if on_fail is OnFail.IGNORE:
                on_fail = OnFail.BAN
            to_ban(resource).found.scores.append((node.name, -INFINITY, words))
        elif status is ExecutionStatus.NOT_CONNECTED and node.connection is not None and node.connection.is_managed:
            node.connection.found.is_failed = node.connection.found.must_stop_when_failed = True
        is_container_stop = on_fail is OnFail.RESTART_CONTAINER and record.operation == ActionName.STOP
        if on_fail is OnFail.IGNORE or is_container_stop:
            resource.found.ignores_failure = True
            self._succeeded(record, record.target_exit_code)
            if is_container_stop and self.on_fail <= OnFail.RESTART:
                self.on_fail = on_fail
            return
        self.last_failure = record
        self.on_fail = max(self.on_fail, on_fail)
        self.failed_words = words
        self._take_failed_state(record, code, on_fail)
        self._restrict_next_role(record, on_fail, words)
        self._ban_if_hard(status, words)

    def _limited(self, record: OperationRecord, words: str) -> tuple[OnFail, str]:
        """Return what a failure that demands fencing leads to: where that may not be, the resource is left alone."""
        assert self._limits is not None
        failed = failed_operation(self._resource.recorded_as, record)
        held = self._limits.objection(self._node.name, failed, record.run_at)
        if held:
            remedy = f"crm resource cleanup {self._resource.id} {self._node.name}"
            return OnFail.BLOCK, f"{words}; {self._node.name} is not fenced for it: {held}; after correction: {remedy}"
        self.fenced_for.append(failed)
        return OnFail.FENCE, words

    def _take_failed_state(self, record: OperationRecord, code: ExitCode, on_fail: OnFail) -> None:
        resource, operation = self._resource, record.operation
        if operation == ActionName.STOP:
            resource.found.scores.append((self._node.name, -INFINITY, self.failed_words))
        elif operation == ActionName.PROMOTE:
            self.role = Role.PROMOTED
        elif operation == ActionName.DEMOTE:
            if on_fail is OnFail.BLOCK:
                self.role = Role.PROMOTED
                resource.found.next_role = Role.STOPPED
            else:
                self.role = Role.STOPPED if code is ExitCode.NOT_RUNNING else Role.UNPROMOTED
        elif operation in _MIGRATION:
            migrations = self._migrations()
            judge = migrations.failed_to if operation == ActionName.MIGRATE_TO else migrations.failed_from
            self._take_migration(judge(record))
        if record.is_probe and code is ExitCode.NOT_INSTALLED and self._settings.options.is_pacemaker_compatible:
            self.role = Role.STOPPED
        elif self.role.value < Role.STARTED.value:
            self.role = self.active_role

    def _restrict_next_role(self, record: OperationRecord, on_fail: OnFail, words: str) -> None:
        """After some failures a resource may not come up to its role any more."""
        resource = self._resource
        after = Role.UNPROMOTED if record.operation == ActionName.PROMOTE else Role.STARTED
        is_waiting = on_fail is OnFail.RESET_REMOTE and bool(resource.definition.reconnect_interval_ms)
        if on_fail is OnFail.STOP or is_waiting:
            after = Role.STOPPED
        if after is not Role.STARTED and resource.found.next_role.value < after.value:
            resource.found.next_role = after
        if after is Role.STOPPED:
            resource.found.failed_because = resource.failed_because or words
            self._ban_everywhere(f"{words}: on-fail=stop" if on_fail is OnFail.STOP else words)

    def _ban_everywhere(self, words: str) -> None:
        """Replace all scores, those of nodes that had none too."""
        banned = self._resource
        top = banned.top
        if top.is_anonymous_clone:
            banned = top
        for node in self._inventory.nodes:
            banned.found.scores.append((node.name, -INFINITY, words))

    def _ban_if_hard(self, status: ExecutionStatus, words: str) -> None:
        """Errors that the same action would meet again: on this node (hard), or anywhere (fatal)."""
        if status in _HARD:
            to_ban(self._resource).found.scores.append((self._node.name, -INFINITY, words))
        elif status is ExecutionStatus.FATAL_ERROR:
            banned = to_ban(self._resource)
            for node in self._inventory.nodes:
                banned.found.scores.append((node.name, -INFINITY, words))

    def _migrations(self) -> MigrationHistory:
        return MigrationHistory(self._resource, self._node, self._inventory)

    def _take_migration(self, role: Role | None) -> None:
        if role is not None:
            self.role = role


def _is_same_operation(left: OperationRecord, right: OperationRecord) -> bool:
    return left.operation == right.operation and left.interval_ms == right.interval_ms


def _reason(record: OperationRecord) -> str:
    if record.exit_reason:
        return f" ({record.exit_reason})"
    if record.status is ExecutionStatus.TIMEOUT:
        return " (timeout)"
    return f" ({record.exit_code.name.lower().replace('_', ' ')})"
