"""Fencing as text: who can be fenced with what, what was fenced, what would happen."""

from collections.abc import Iterator, Sequence

from haclusterd.cli.render.fields import Fields, flag, listed, maybe_number, number, text, texts
from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns
from haclusterd.model import durations
from haclusterd.model.json_value import Json

_PROOFS = {"tested": Colour.GREEN, "untested": Colour.YELLOW, "failing": Colour.BAD, "lied": Colour.BAD}
_OUTCOMES = {"fenced": Colour.GREEN, "confirmed": Colour.GREEN, "unfenced": Colour.GREEN}


def render_list(screen: Screen, data: Fields) -> list[str]:
    """Write one line for each node and device; the levels of a topology are numbered."""
    lines = [] if flag(data, "is_enabled") else ["FENCING IS DISABLED (fencing-enabled=false): no device is used"]
    now = number(data, "now")
    rows: list[list[Cell | str]] = [["node", "level", "device", "proof", "when", ""]]
    for node in listed(data, "nodes"):
        name = text(node, "node")
        if not flag(node, "is_covered"):
            rows.append([Cell(name, Colour.BOLD), "", Cell("NO DEVICE", Colour.BAD), "", "", "it cannot fail over"])
        for number_, level in enumerate(_lists(node, "levels"), start=1):
            for device in level:
                proof, at = text(device, "proof"), maybe_number(device, "at")
                when = screen.clock(at, now) if at is not None else ""
                rows.append([Cell(name, Colour.BOLD), str(number_), text(device, "device"),
                             Cell(proof, _PROOFS.get(proof)), when, text(device, "detail")])  # fmt: skip
        for device in listed(node, "unfencing"):
            is_in = flag(node, "is_unfenced")
            rows.append([Cell(name, Colour.BOLD), "on", text(device, "device"),
                         Cell("let in" if is_in else "not let in", Colour.GREEN if is_in else Colour.YELLOW), "", ""])
    return [*lines, *columns(screen, rows)]


def _lists(data: Fields, name: str) -> Iterator[list[Fields]]:
    found = data.get(name)
    for level in found if isinstance(found, list | tuple) else ():
        wrapped: dict[str, Json] = {"level": level}
        yield listed(wrapped, "level")


def render_history(screen: Screen, data: Fields) -> list[str]:
    """Write what was fenced, newest last, and what is being fenced."""
    now = number(data, "now")
    rows: list[list[Cell | str]] = []
    for record in listed(data, "records"):
        outcome, ended = text(record, "outcome"), number(record, "ended")
        took = durations.render(ended - number(record, "began"))
        manner = f"with {', '.join(texts(record, 'devices')) or 'no device'} by {text(record, 'executor')} in {took}"
        rows.append([
            screen.clock(ended, now), text(record, "target"), text(record, "action"),
            Cell(outcome, _OUTCOMES.get(outcome, Colour.BAD)), manner, text(record, "detail") or text(record, "reason"),
        ])  # fmt: skip
    for order in listed(data, "under_way"):
        manner = f"with {', '.join(texts(order, 'devices'))} by {text(order, 'executor')}"
        rows.append([
            screen.clock(number(order, "since"), now), text(order, "target"), text(order, "action"),
            Cell("under way", Colour.YELLOW), f"{manner}, attempt {number(order, 'attempt')}", text(order, "reason"),
        ])  # fmt: skip
    return columns(screen, rows) if rows else ["nothing was fenced yet"]


def render_topology(screen: Screen, data: Fields) -> list[str]:
    """Write the configured levels, and what they come to for each node."""
    configured = listed(data, "configured")
    lines = ["Configured levels:" if configured else "No topology is configured: each device is a level of its own."]
    rows: list[list[Cell | str]] = [
        [text(level, "target"), str(number(level, "index")), " + ".join(texts(level, "devices"))]
        for level in configured
    ]
    lines += columns(screen, rows, indent=2)
    lines += ["In this order each node is fenced:"]
    for node in listed(data, "nodes"):
        found = node.get("levels")
        levels = [" + ".join(map(str, level)) for level in found] if isinstance(found, list | tuple) else []
        lines.append(f"  {text(node, 'node')}: {', else '.join(levels) or 'by no device'}")
    return lines


def render_plan(_: Screen, data: Fields) -> list[str]:
    """Write what would happen if the node died now."""
    lines = [f"If {text(data, 'node')} died now:"]
    for step in listed(data, "steps"):
        devices = ", then ".join(_device(device) for device in listed(step, "devices"))
        what = f"level {number(step, 'level')}: {text(step, 'action')} with {devices}"
        lines.append(f"  {what} {_by_whom(texts(step, 'executors'))}")
    if not flag(data, "has_quorum"):
        lines.append("  nobody fences it without quorum: the nodes that are left do what no-quorum-policy says")
    elif not listed(data, "steps"):
        lines.append("  no device can fence it: what ran there is not recovered until it comes back, or you confirm it")
    lines += [f"  * {action}" for action in texts(data, "actions")]
    return lines + [f"  Warning: {warning}" for warning in texts(data, "warnings")]


def _by_whom(executors: Sequence[str]) -> str:
    if not executors:
        return "by nobody: no node may"
    return f"by {executors[0]}" + (f" (or {', '.join(executors[1:])})" if executors[1:] else "")


def _device(device: Fields) -> str:
    least, most = number(device, "delay_min_ms"), number(device, "delay_max_ms")
    words = f"{text(device, 'device')} ({text(device, 'proof')})"
    if not most:
        return words
    wait = durations.render(most) if least == most else f"{durations.render(least)} to {durations.render(most)}"
    return f"{words} after {wait}"
