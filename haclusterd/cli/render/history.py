"""Answers about the past as text: versions of the configuration, what differs between them, transitions."""

from haclusterd.cli.render.fields import Fields, flag, listed, maybe_number, number, part, text, texts
from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, counted, folded, span

_LINE_COLOURS = {"+": Colour.GREEN, "-": Colour.RED, "@": Colour.CYAN}


def render_versions(screen: Screen, data: Fields) -> list[str]:
    """Write versions, newest last, each on a line; missing ones in their place."""
    now = number(data, "now")
    rows: list[tuple[int, list[Cell | str]]] = []
    for version in listed(data, "versions"):
        is_present = number(version, "number") == number(data, "version")
        rows.append((number(version, "number"), [
            Cell(text(version, "number"), Colour.BOLD if is_present else None),
            screen.clock(number(version, "at"), now), text(version, "author"), text(version, "reason"),
        ]))  # fmt: skip
    for gap in listed(data, "gaps"):
        first, last = number(gap, "first"), number(gap, "last")
        name = f"{first}" if first == last else f"{first}-{last}"
        rows.append((first, [Cell(name, Colour.DIM), Cell("not in this node's history", Colour.YELLOW)]))
    left_out = number(data, "left_out")
    lines = [screen.paint(f"({left_out} earlier ones left out: --limit, --until)", Colour.DIM)] if left_out else []
    table = columns(screen, [row for _, row in sorted(rows, key=lambda each: each[0])])
    return [*lines, *table] or ["nothing is configured yet"]


def render_difference(screen: Screen, data: Fields) -> list[str]:
    """Write what differs between two versions, with who made the newer one."""
    if not text(data, "text"):
        old, new = text(part(data, "old"), "number"), text(part(data, "new"), "number")
        return [f"versions {old} and {new} do not differ"]
    return difference_lines(screen, text(data, "text"))


def difference_lines(screen: Screen, difference: str) -> list[str]:
    """Return the lines of a unified difference in their colours."""
    return [screen.paint(line, _LINE_COLOURS.get(line[:1])) for line in difference.splitlines()]


def render_transition(screen: Screen, data: Fields) -> list[str]:
    """Write what a transition ordered, with how each order ended, and what led to it."""
    now = number(data, "now")
    name = screen.paint(text(data, "transition"), Colour.BOLD)
    lines = [f"Transition {name}, {screen.clock(number(data, 'at'), now)}"]
    lines += [f"because: {text(event, 'text')}" for event in listed(data, "because")]
    for action in listed(data, "actions"):
        ended_at = maybe_number(action, "ended_at")
        end = "not ended, as far as is known"
        if ended_at is not None:
            end = f"{text(action, 'end')} (after {span(ended_at - number(action, 'at'))})"
        colour = Colour.RED if flag(action, "is_failed") else None
        lines += folded(text(action, "text"), indent="  ", later="    ")
        lines += [screen.paint(line, colour) for line in folded(end, indent="    -> ", later="       ")]
    return [*lines, f"others: {', '.join(texts(data, 'others'))}"]


def render_transitions(screen: Screen, data: Fields) -> list[str]:
    """Write transitions, newest last, each with what it ordered first."""
    now, left_out = number(data, "now"), number(data, "left_out")
    rows: list[list[Cell | str]] = []
    for each in listed(data, "transitions"):
        failed, not_ended = number(each, "failed"), number(each, "not_ended")
        ends = [f"{failed} failed"] if failed else []
        ends += [f"{not_ended} not ended"] if not_ended else []
        more = number(each, "actions") - len(texts(each, "texts"))
        rows.append([
            Cell(text(each, "transition"), Colour.BOLD), screen.clock(number(each, "at"), now),
            counted(number(each, "actions"), "action"),
            Cell(", ".join(ends) or "done", Colour.RED if failed else None),
            ", ".join(texts(each, "texts")) + (f" and {more} more" if more else ""),
        ])  # fmt: skip
    lines = [screen.paint(f"({left_out} earlier ones left out: --limit)", Colour.DIM)] if left_out else []
    return [*lines, *columns(screen, rows)] or ["nothing was ordered, as far as this node knows"]


def render_info(screen: Screen, data: Fields) -> list[str]:
    """Write what a node's history is about."""
    since, until = maybe_number(data, "since"), maybe_number(data, "until")
    now = number(data, "now")
    period = "nothing"
    if since is not None and until is not None:
        period = f"{screen.clock(since, now)} to {screen.clock(until, now)}"
    more = f", {number(data, 'left_out')} earlier ones left out" if number(data, "left_out") else ""
    parts = {
        "History of": text(data, "answered_by"),
        "Period": f"{period} ({counted(number(data, 'events'), 'event')}{more})",
        "Nodes": " ".join(texts(data, "nodes")),
        "Resources": " ".join(texts(data, "resources")) or "none",
        "Transitions": " ".join(texts(data, "transitions")) or "none",
    }
    return [line for title, words in parts.items() for line in folded(f"{title}: {words}", later="  ")]


def render_check(screen: Screen, data: Fields) -> list[str]:
    """Write what each node's history holds."""
    rows: list[list[Cell | str]] = [["", "entries", "rows", "versions", "missing", "chain"]]
    for node in listed(data, "nodes"):
        missing = ", ".join(f"{number(gap, 'first')}-{number(gap, 'last')}" for gap in listed(node, "gaps"))
        rows.append([
            Cell(text(node, "node"), Colour.BOLD), f"{number(node, 'forgotten') + 1}-{number(node, 'last')}",
            text(node, "rows"), text(node, "versions"),
            Cell(missing or "nothing", Colour.YELLOW if missing else None), text(node, "digest"),
        ])  # fmt: skip
    rows += [[Cell(name, Colour.BOLD), Cell("did not answer", Colour.YELLOW)] for name in texts(data, "silent")]
    return columns(screen, rows)
