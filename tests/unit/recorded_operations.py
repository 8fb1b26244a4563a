"""Records of operations and histories, as short as tables of cases need them."""

from haclusterd.model.history import OperationRecord, ResourceHistory, operation_key
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode

DB = ResourceId("db")
AGENT = AgentReference("ocf", "haclusterd", "stateful")
OK, NOT_RUNNING, PROMOTED = ExitCode.OK, ExitCode.NOT_RUNNING, ExitCode.PROMOTED


def record(
    call_id: int, operation: str, code: ExitCode, *, status: ExecutionStatus | None = None, interval_ms: int = 0
) -> OperationRecord:
    ended = status or (ExecutionStatus.DONE if code in (OK, NOT_RUNNING, PROMOTED) else ExecutionStatus.ERROR)
    target = NOT_RUNNING if operation == ActionName.MONITOR and not interval_ms else OK
    return OperationRecord(operation, interval_ms, call_id, code, ended, target, WallTime(0), WallTime(0))


def history(*records: OperationRecord) -> ResourceHistory:
    return ResourceHistory(DB, AGENT, {operation_key(each.operation, each.interval_ms): each for each in records})
