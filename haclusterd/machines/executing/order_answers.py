"""The executor's answers to its orders, and its reports of changed results of recurring monitors.

Answers are gathered during one step and proposed together. Each has a number, which increases over all incarnations of
a boot. Their times are by the DC's clock, as far as orders have shown it: the DC judges by its own when failures
expire. On a node whose clock is behind they would expire at once, and what fails there would never move away.
"""

from collections.abc import Iterator, Sequence

from haclusterd.cib.commands import RecordResults
from haclusterd.machines.effects import Propose, Scope
from haclusterd.model.agent_calls import REASON_MAX, AgentResult
from haclusterd.model.ids import Incarnation, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order, ResultKind
from haclusterd.model.records import replace
from haclusterd.model.words import bytes_in_log
from haclusterd.scheduler.model.digests import restart_digest_of

RESULTS_MAX = 10
"""Maximum number of results in one command."""
RESULTS_BYTES = 32_000
"""Approximate size of the results in one command, which stays well below the store's limit, as one result does."""
RESULT_BYTES = 600
"""Approximate size of a result without its texts."""
RESTART_PARAMETERS_BYTES = 8_000
"""If the names of the parameters that only a restart changes take more, each change of a parameter is a restart."""
OUTPUT_MAX = 800
"""Characters that are kept of each of an agent's outputs: its end, where the cause usually is."""
CLOCK_SLACK_MS = 5000
"""How much this node's clock may differ from the DC's; less is left alone, since an order takes time to arrive."""


class OrderAnswers:
    """The answers of one node that are not proposed yet."""

    def __init__(self, node: NodeName) -> None:
        self._node = node
        self._call_id = 0
        self._results: list[OperationResult] = []
        self._ahead_ms = 0
        """How far this node's clock was ahead of the DC's when the newest order came; 0: by less than the slack."""

    def compare_clocks(self, order: Order, wall: WallTime) -> None:
        """Note the time of the DC's clock, which issued an order that has just come, and of this node's."""
        ahead_ms = wall - order.issued_at
        self._ahead_ms = ahead_ms if order.issued_at and abs(ahead_ms) > CLOCK_SLACK_MS else 0

    def _time(self, wall: int) -> WallTime:
        """Return the DC's time at which this node's clock showed `wall`."""
        return WallTime(max(0, wall - self._ahead_ms))

    def number_from(self, last_call_id: int) -> None:
        """Continue the numbers after `last_call_id`."""
        self._call_id = max(self._call_id, last_call_id)

    def _next_call_id(self) -> int:
        self._call_id += 1
        return self._call_id

    def add(self, result: OperationResult) -> None:
        """Add a result to be proposed."""
        self._results.append(result)

    def drop(self) -> None:
        """Discard what was gathered."""
        self._results.clear()

    def proposals(self, incarnation: Incarnation) -> Sequence[Propose]:
        """Return proposals of everything gathered, in as few commands as possible."""
        if not self._results:
            return ()
        results, self._results = self._results, []
        effects: list[Propose] = []
        for batch in _batches(results):
            key = f"results:{batch[0].order or batch[0].resource}:{batch[0].call_id}"
            effects.append(Propose(Scope.INCARNATION, key, RecordResults(self._node, incarnation, batch)))
        return effects

    # -- kinds of answers -------------------------------------------------------------------------------------------

    def of_agent(
        self, resource: ResourceId, order: Order, result: AgentResult, *, queued_ms: int, wall: WallTime
    ) -> OperationResult:
        """Return an agent's result as an answer to its order; the caller decides whether it is to be reported."""
        exit_code = _exit_code_of(result)
        answer = OperationResult(
            kind=ResultKind.FINISHED,
            order=order.key,
            resource=resource,
            operation=str(order.action),
            interval_ms=order.interval_ms,
            exit_code=exit_code,
            status=_status_of(result, exit_code, order),
            call_id=self._next_call_id(),
            run_at=self._time(wall - result.executed_ms),
            executed_ms=result.executed_ms,
            queued_ms=queued_ms,
            exit_reason=result.exit_reason[:REASON_MAX] if exit_code is not order.target_exit_code else "",
            target_exit_code=order.target_exit_code,
            output={"stdout": result.stdout[-OUTPUT_MAX:], "stderr": result.stderr[-OUTPUT_MAX:]},
        )
        names = result.restart_parameters
        if names is None or sum(map(bytes_in_log, names)) > RESTART_PARAMETERS_BYTES:
            return answer
        digest = restart_digest_of(order.lasting_parameters, names)
        return replace(answer, restart_digest=digest, restart_parameters=names)

    def not_begun(self, order: Order, reason: str, wall: WallTime) -> None:
        """Answer that the order's agent was not called, and never will be."""
        self._answer(order, ResultKind.NOT_BEGUN, ExecutionStatus.CANCELLED, reason[:REASON_MAX], wall)

    def cancelled(self, order: Order) -> None:
        """Answer that a recurring monitor was ended before its first result: nothing was learned or changed."""
        self.not_begun(order, "cancelled", WallTime(0))

    def done(self, order: Order, wall: WallTime) -> None:
        """Answer that the ordered state already holds; no agent was called."""
        self._answer(order, ResultKind.FINISHED, ExecutionStatus.DONE, "", wall)

    def of_earlier_incarnation(self, order: Order, wall: WallTime, *, is_whole: bool) -> None:
        """Answer that the outcome is unknown; `is_whole`: the agent ended by itself."""
        status = ExecutionStatus.UNKNOWN if is_whole else ExecutionStatus.CANCELLED
        self._answer(order, ResultKind.UNKNOWN, status, "the daemon was restarted in the middle of it", wall)

    def _answer(self, order: Order, kind: ResultKind, status: ExecutionStatus, reason: str, wall: WallTime) -> None:
        is_done = kind is ResultKind.FINISHED
        self._results.append(
            OperationResult(
                kind=kind,
                order=order.key,
                resource=order.resource,
                operation=str(order.action),
                interval_ms=order.interval_ms,
                exit_code=ExitCode.OK if is_done else ExitCode.UNKNOWN,
                status=status,
                call_id=self._next_call_id(),
                run_at=self._time(wall),
                exit_reason=reason,
                target_exit_code=ExitCode.OK if is_done else order.target_exit_code,
            )
        )


def _batches(results: Sequence[OperationResult]) -> Iterator[tuple[OperationResult, ...]]:
    """Split results into commands that entries of the log can hold: agents print any characters, of up to six bytes."""
    batch: list[OperationResult] = []
    size = 0
    for result in results:
        weight = _weight(result)
        if batch and (size + weight > RESULTS_BYTES or len(batch) == RESULTS_MAX):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(result)
        size += weight
    if batch:
        yield tuple(batch)


def _weight(result: OperationResult) -> int:
    texts = (result.exit_reason, *result.output.values(), *(result.restart_parameters or ()))
    return RESULT_BYTES + sum(map(bytes_in_log, texts))


def _exit_code_of(result: AgentResult) -> ExitCode:
    """Return the exit code of an agent; the degraded codes count as the ones they are degraded from."""
    code = ExitCode.read(result.exit_code)
    return {ExitCode.DEGRADED: ExitCode.OK, ExitCode.DEGRADED_PROMOTED: ExitCode.PROMOTED}.get(code, code)


def _status_of(result: AgentResult, exit_code: ExitCode, order: Order) -> ExecutionStatus:
    if result.status is not ExecutionStatus.DONE or exit_code is order.target_exit_code:
        return result.status
    is_probe = order.action is ActionName.MONITOR and order.interval_ms == 0
    if is_probe and exit_code in (ExitCode.OK, ExitCode.NOT_RUNNING, ExitCode.PROMOTED):
        return ExecutionStatus.DONE
    return ExecutionStatus.NOT_INSTALLED if exit_code is ExitCode.NOT_INSTALLED else ExecutionStatus.ERROR
