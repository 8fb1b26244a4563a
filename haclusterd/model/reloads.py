"""What a reload that did not succeed leaves behind (safety.md §1, "A reload that was cut off").

Its agent may have taken the newer parameters over, or not, and only one of the two sets finds and ends what runs. So
the history keeps both. "Not running" by one of them is no answer: the next set takes its place, and a probe looks
once more. What finds the resource settles the question.
"""

from haclusterd.model.history import OperationRecord, ReloadInDoubt, ResourceHistory
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import OperationResult, Order
from haclusterd.model.records import replace

_FOUND = (ExitCode.OK, ExitCode.PROMOTED)


def with_reload_in_doubt(history: ResourceHistory, order: Order) -> ResourceHistory:
    """Return the history after a reload was begun, and nobody knows what it has done."""
    doubt = ReloadInDoubt(order.lasting_parameters, order.definition)
    is_known = order.lasting_parameters == history.parameters or doubt in history.reloads
    return history if is_known else replace(history, reloads=(*history.reloads, doubt))


def after_reload(history: ResourceHistory, order: Order | None, result: OperationResult) -> ResourceHistory:
    """Return the history after an order was answered that may be one to reload."""
    if order is None or order.action is not ActionName.RELOAD_AGENT:
        return history
    has_succeeded = result.exit_code is result.target_exit_code
    return settled_reloads(history) if has_succeeded else with_reload_in_doubt(history, order)


def settled_reloads(history: ResourceHistory) -> ResourceHistory:
    """Return the history of what certainly goes by its parameters."""
    return replace(history, reloads=()) if history.reloads else history


def looked_for_next(history: ResourceHistory) -> ResourceHistory:
    """Return the history of what does not run by its parameters, and may by those of a reload: these are next."""
    following, *rest = history.reloads
    return replace(history, parameters=following.parameters, definition=following.definition, reloads=tuple(rest))


def is_found(record: OperationRecord) -> bool:
    """Return whether a monitor has found the resource by the parameters that it had."""
    return record.operation == ActionName.MONITOR and record.exit_code in _FOUND


def is_not_found(record: OperationRecord) -> bool:
    """Return whether an action has shown that nothing runs by the parameters that it had."""
    if record.operation == ActionName.MONITOR:
        return record.exit_code is ExitCode.NOT_RUNNING
    return record.operation == ActionName.STOP and not record.is_failure
