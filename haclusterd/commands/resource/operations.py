"""Verbs about what ran: the results that are recorded for a resource, and how often its operations failed.

Source: Pacemaker Explained, "Operation History" and "Handling Resource Failure".
"""

from collections.abc import Iterator
from typing import Never

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.resource.resource import chosen_records, cleanup
from haclusterd.commands.status.resource_state import failures, meta_of
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model import durations
from haclusterd.model.history import OperationRecord, ordered_records
from haclusterd.model.ids import NodeName, ResourceId, base_of
from haclusterd.model.scores import INFINITY
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report
from haclusterd.verbs.answers.history import CountedFailure, FailCounts, OperationResult, Operations
from haclusterd.verbs.answers.status import Cleanup
from haclusterd.verbs.arguments import Arguments

SET, DELETE, SHOW = "set", "delete", "show"


def operations(context: Context, arguments: Arguments) -> Outcome[Operations]:
    """Answer the newest result of each operation, oldest first (schema `haclusterd.operations/1`)."""
    chosen = chosen_records(context, arguments)
    if isinstance(chosen, Outcome):
        return chosen
    named, node = chosen
    shown = tuple(
        _record(status.name, name, record)
        for status in context.cib.status.nodes.values() if node in (None, status.name)
        for name, history in sorted(status.histories.items()) if named is None or base_of(name) in named
        for record in ordered_records(history)
    )  # fmt: skip
    return Outcome(answer=Operations(now=context.now, operations=shown))


def _record(node: NodeName, name: ResourceId, record: OperationRecord) -> OperationResult:
    return OperationResult(
        resource=name, node=node, operation=record.operation, interval_ms=record.interval_ms,
        status=str(record.status), exit_code=int(record.exit_code), is_failed=record.is_failure,
        reason=record.exit_reason, at=record.run_at, executed_ms=record.executed_ms,
        queued_ms=record.queued_ms,
    )  # fmt: skip


def failcount(context: Context, arguments: Arguments) -> Outcome[FailCounts | Cleanup]:
    """Answer how often operations failed (schema `haclusterd.failcounts/1`), or forget it."""
    words = arguments.words("words")
    match arguments.word("action"):
        case "set":
            return _forget(context, arguments, words[1:]) if words[:1] == ("0",) else _not_settable()
        case "delete":
            return _forget(context, arguments, words)
        case _:
            return _counted(context, arguments, words)


def _not_settable() -> Outcome[Never]:
    problem = "a fail count follows from the failures that are recorded; only 0 can be set"
    return refusal(report(Code.BAD_ARGUMENT, name="VALUE", problem=problem))


def _forget(context: Context, arguments: Arguments, operation: tuple[str, ...]) -> Outcome[Cleanup]:
    if operation:
        problem = "the failures of one operation are not forgotten apart from the others: leave its name out"
        return refusal(report(Code.BAD_ARGUMENT, name="OPERATION", problem=problem))
    if not arguments.word("resource"):
        return refusal(report(Code.MISSING_ARGUMENT, verb="failcount", name="RESOURCE", meaning="which resource"))
    return cleanup(context, Arguments({**arguments.values, "reprobe": None}))


def _counted(context: Context, arguments: Arguments, words: tuple[str, ...]) -> Outcome[FailCounts]:
    chosen = chosen_records(context, arguments)
    if isinstance(chosen, Outcome):
        return chosen
    operation, interval = (*words, "", "")[:2]
    try:
        interval_ms = durations.parse(interval) if interval else None
    except ValueError:
        return refusal(report(Code.BAD_ARGUMENT, name="INTERVAL", problem=f"{interval!r} is no span of time"))
    rows = tuple(_counts(context, *chosen, operation, interval_ms))
    return Outcome(answer=FailCounts(now=context.now, failures=rows))


def _counts(
    context: Context,
    named: tuple[ResourceId, ...] | None,
    node: NodeName | None,
    operation: str,
    interval_ms: int | None,
) -> Iterator[CountedFailure]:
    configuration = context.cib.configuration
    for each in failures(context.cib):
        count, base = each.count, base_of(each.resource)
        if count is None or not count.count or node not in (None, each.node):
            continue
        if (named is not None and base not in named) or operation not in ("", count.operation):
            continue
        if interval_ms not in (None, count.interval_ms):
            continue
        meta = meta_of(configuration, base) if base in configuration.resources else {}
        yield CountedFailure(
            resource=each.resource, node=each.node, operation=count.operation,
            interval_ms=count.interval_ms,
            count="INFINITY" if count.count >= INFINITY else count.count,
            failed_at=count.failed_at, threshold=meta.get("migration-threshold", "INFINITY"),
            forgotten_after=meta.get("failure-timeout", "0"),
        )  # fmt: skip



VERBS = (
    carry_out_by("resource.operations", operations, answers(Operations)),
    carry_out_by("resource.failcount", failcount, answers(FailCounts, Cleanup)),
)
