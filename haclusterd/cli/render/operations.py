"""Answers about operations as text: their newest results, and how often they failed."""

from collections.abc import Iterator

from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, folded, span
from haclusterd.model import durations
from haclusterd.verbs.answers.history import CountedFailure, FailCounts, OperationResult, Operations


def render_operations(screen: Screen, data: Operations) -> list[str]:
    """Write results, oldest first on each node."""
    now = data.now
    rows: list[list[Cell | str]] = [
        [
            Cell(each.resource, Colour.BOLD), each.node, _operation(each),
            Cell(_result(each), Colour.RED if each.is_failed else None),
            f"{screen.clock(each.at, now)}, took {span(each.executed_ms)}",
        ]
        for each in data.operations
    ]  # fmt: skip
    return columns(screen, rows) or ["no operation is recorded"]


def _operation(of: OperationResult | CountedFailure) -> str:
    every = of.interval_ms
    is_probe = of.operation == "monitor" and not every
    name = "probe" if is_probe else of.operation
    return f"{name} every {durations.render(every)}" if every else name


def _result(of: OperationResult) -> str:
    reason = f": {of.reason}" if of.reason else ""
    return f"{of.status} (exit {of.exit_code}){reason}"


def render_failcounts(screen: Screen, data: FailCounts) -> list[str]:
    """Write what failed how often, and what follows from it."""
    return [line for each in data.failures for line in _failure(screen, each, data.now)] or [
        "no failures are counted"
    ]


def _failure(screen: Screen, of: CountedFailure, now: int) -> Iterator[str]:
    where = f"{of.resource} on {of.node}"
    last = f"last at {screen.clock(of.failed_at, now)}"
    threshold = of.threshold
    limit = "any number is allowed" if threshold.upper() == "INFINITY" else f"it moves away at {threshold}"
    after = of.forgotten_after
    forgotten = "never forgotten by itself" if after in ("0", "") else f"forgotten {after} after the last"
    yield from folded(
        f"{screen.paint(where, Colour.BOLD)}: {of.count} of {_operation(of)}; {last}; {limit}; {forgotten}",
        later="  ",
    )
