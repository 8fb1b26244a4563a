"""Answers about the past as text: versions of the configuration, what differs between them, transitions."""

from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, folded, span
from haclusterd.reports.rendering import counted
from haclusterd.verbs.answers.history import (
    Difference,
    HistoryCheck,
    HistoryInfo,
    KnownVersions,
    Transition,
    Transitions,
)
from haclusterd.wire.dot_text import quoted

EDITS_MAX = 4
"""Lines of one version that say what it changed."""
_LINE_COLOURS = {"+": Colour.GREEN, "-": Colour.RED, "@": Colour.CYAN}


def render_versions(screen: Screen, data: KnownVersions) -> list[str]:
    """Write versions, newest last, each on a line; missing ones in their place."""
    now = data.now
    rows: list[tuple[int, list[Cell | str]]] = []
    for version in data.versions:
        is_present = version.number == data.version
        rows.append((version.number, [
            Cell(str(version.number), Colour.BOLD if is_present else None),
            screen.clock(version.at, now), version.author, version.reason,
        ]))  # fmt: skip
    for gap in data.gaps:
        first, last = gap.first, gap.last
        name = f"{first}" if first == last else f"{first}-{last}"
        rows.append((first, [Cell(name, Colour.DIM), Cell("not in this node's history", Colour.YELLOW)]))
    left_out = data.left_out
    lines = [screen.paint(f"({left_out} earlier ones left out: --limit)", Colour.DIM)] if left_out else []
    rows.sort(key=lambda each: each[0])
    changed = {version.number: version.edits or () for version in data.versions}
    for (number, _), line in zip(rows, columns(screen, [row for _, row in rows]), strict=True):
        lines.append(line)
        edits = changed.get(number, ())
        shown = edits if len(edits) <= EDITS_MAX else edits[: EDITS_MAX - 1]
        for edit in shown:
            lines += folded(edit, indent="     ", later="       ")
        if shown != edits:
            lines.append(f"     and {len(edits) - len(shown)} more: crm history diff {number - 1} {number}")
    return lines or ["nothing is configured yet"]


def render_difference(screen: Screen, data: Difference) -> list[str]:
    """Write what differs between two versions, with who made the newer one."""
    if not data.text:
        old, new = data.old.number, data.new.number
        return [f"versions {old} and {new} do not differ"]
    return difference_lines(screen, data.text)


def difference_lines(screen: Screen, difference: str) -> list[str]:
    """Return the lines of a unified difference in their colours."""
    return [screen.paint(line, _LINE_COLOURS.get(line[:1])) for line in difference.splitlines()]


def render_transition(screen: Screen, data: Transition) -> list[str]:
    """Write what a transition ordered, with how each order ended, and what led to it."""
    now = data.now
    name = screen.paint(data.transition, Colour.BOLD)
    lines = [f"Transition {name}, {screen.clock(data.at, now)}"]
    lines += [f"because: {event.text}" for event in data.because]
    for action in data.actions:
        ended_at = action.ended_at
        end = "not ended, as far as is known" + (f"; {action.end}" if action.end else "")
        if ended_at is not None:
            end = f"{action.end} (after {span(ended_at - action.at)})"
        colour = Colour.RED if action.is_failed else None
        lines += folded(action.text, indent="  ", later="    ")
        lines += [screen.paint(line, colour) for line in folded(end, indent="    -> ", later="       ")]
    return [*lines, f"others: {', '.join(data.others)}"]


def render_transitions(screen: Screen, data: Transitions) -> list[str]:
    """Write transitions, newest last, each with what it ordered first."""
    now, left_out = data.now, data.left_out
    rows: list[list[Cell | str]] = []
    for each in data.transitions:
        failed, not_ended = each.failed, each.not_ended
        ends = [f"{failed} failed"] if failed else []
        ends += [f"{not_ended} not ended"] if not_ended else []
        more = each.actions - len(each.texts)
        rows.append([
            Cell(each.transition, Colour.BOLD), screen.clock(each.at, now),
            counted(each.actions, "action"),
            Cell(", ".join(ends) or "done", Colour.RED if failed else None),
            ", ".join(each.texts) + (f" and {more} more" if more else ""),
        ])  # fmt: skip
    lines = [screen.paint(f"({left_out} earlier ones left out: --limit)", Colour.DIM)] if left_out else []
    return [*lines, *columns(screen, rows)] or ["nothing was ordered, as far as this node knows"]


def render_info(screen: Screen, data: HistoryInfo) -> list[str]:
    """Write what a node's history is about."""
    since, until = data.since, data.until
    now = data.now
    period = "nothing"
    if since is not None and until is not None:
        period = f"{screen.clock(since, now)} to {screen.clock(until, now)}"
    more = f", {data.left_out} earlier ones left out" if data.left_out else ""
    parts = {
        "History of": data.answered_by,
        "Period": f"{period} ({counted(data.events, 'event')}{more})",
        "Nodes": " ".join(data.nodes),
        "Resources": " ".join(data.resources) or "none",
        "Transitions": " ".join(data.transitions) or "none",
    }
    return [line for title, words in parts.items() for line in folded(f"{title}: {words}", later="  ")]


def render_check(screen: Screen, data: HistoryCheck) -> list[str]:
    """Write what each node's history holds."""
    rows: list[list[Cell | str]] = [["", "entries", "rows", "versions", "missing", "chain"]]
    for node in data.nodes:
        missing = ", ".join(f"{gap.first}-{gap.last}" for gap in node.gaps)
        rows.append([
            Cell(node.node, Colour.BOLD), f"{node.forgotten + 1}-{node.last}",
            str(node.rows), str(node.versions),
            Cell(missing or "nothing", Colour.YELLOW if missing else None), node.digest,
        ])  # fmt: skip
    rows += [[Cell(name, Colour.BOLD), Cell("did not answer", Colour.YELLOW)] for name in data.silent]
    return columns(screen, rows)


def transition_as_dot(data: Transition) -> str:
    """Return what a transition ordered for Graphviz: an arrow from what had just ended when something was ordered."""
    lines = ["digraph transition {", f"  label={quoted(f'transition {data.transition}')};",
             "  rankdir=LR; node [shape=box];"]  # fmt: skip
    for each in data.actions:
        colour = "red" if each.is_failed else "grey" if each.ended_at is None else "black"
        lines.append(f"  {quoted(each.order)} [label={quoted(each.text)} color={colour}];")
    for each in data.actions:
        ended = [found.ended_at for found in data.actions if found.ended_at is not None and found.ended_at <= each.at]
        lines += [
            f"  {quoted(before.order)} -> {quoted(each.order)};"
            for before in data.actions if ended and before.ended_at == max(ended) and before.order != each.order
        ]  # fmt: skip
    return "\n".join([*lines, "}", ""])
