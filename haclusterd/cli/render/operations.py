"""Answers about operations as text: their newest results, and how often they failed."""

from collections.abc import Iterator

from haclusterd.cli.render.fields import Fields, flag, listed, number, text
from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, folded, span
from haclusterd.model import durations


def render_operations(screen: Screen, data: Fields) -> list[str]:
    """Write results, oldest first on each node."""
    now = number(data, "now")
    rows: list[list[Cell | str]] = [
        [
            Cell(text(each, "resource"), Colour.BOLD), text(each, "node"), _operation(each),
            Cell(_result(each), Colour.RED if flag(each, "is_failed") else None),
            f"{screen.clock(number(each, 'at'), now)}, took {span(number(each, 'executed_ms'))}",
        ]
        for each in listed(data, "operations")
    ]  # fmt: skip
    return columns(screen, rows) or ["no operation is recorded"]


def _operation(of: Fields) -> str:
    every = number(of, "interval_ms")
    is_probe = text(of, "operation") == "monitor" and not every
    name = "probe" if is_probe else text(of, "operation")
    return f"{name} every {durations.render(every)}" if every else name


def _result(of: Fields) -> str:
    reason = f": {text(of, 'reason')}" if text(of, "reason") else ""
    return f"{text(of, 'status')} (exit {number(of, 'exit_code')}){reason}"


def render_failcounts(screen: Screen, data: Fields) -> list[str]:
    """Write what failed how often, and what follows from it."""
    return [line for each in listed(data, "failures") for line in _failure(screen, each, number(data, "now"))] or [
        "no failures are counted"
    ]


def _failure(screen: Screen, of: Fields, now: int) -> Iterator[str]:
    where = f"{text(of, 'resource')} on {text(of, 'node')}"
    last = f"last at {screen.clock(number(of, 'failed_at'), now)}"
    threshold = text(of, "threshold")
    limit = "any number is allowed" if threshold.upper() == "INFINITY" else f"it moves away at {threshold}"
    after = text(of, "forgotten_after")
    forgotten = "never forgotten by itself" if after in ("0", "") else f"forgotten {after} after the last"
    yield from folded(
        f"{screen.paint(where, Colour.BOLD)}: {text(of, 'count')} of {_operation(of)}; {last}; {limit}; {forgotten}",
        later="  ",
    )
