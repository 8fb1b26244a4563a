"""Fencing as text: who can be fenced with what, what was fenced, what would happen."""

from collections.abc import Sequence

from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns
from haclusterd.model import durations
from haclusterd.verbs.answers.fencing import DelayedDevice, Fencing, FencingHistory, FencingPlan, FencingTopology

_PROOFS = {"tested": Colour.GREEN, "untested": Colour.YELLOW, "failing": Colour.BAD, "lied": Colour.BAD}
_OUTCOMES = {"fenced": Colour.GREEN, "confirmed": Colour.GREEN, "unfenced": Colour.GREEN}


def render_list(screen: Screen, data: Fencing) -> list[str]:
    """Write one line for each node and device; the levels of a topology are numbered."""
    lines = [] if data.is_enabled else ["FENCING IS DISABLED (fencing-enabled=false): no device is used"]
    now = data.now
    rows: list[list[Cell | str]] = [["node", "level", "device", "proof", "when", ""]]
    for node in data.nodes:
        name = node.node
        if not node.is_covered:
            rows.append([Cell(name, Colour.BOLD), "", Cell("NO DEVICE", Colour.BAD), "", "", "it cannot fail over"])
        for number, level in enumerate(node.levels, start=1):
            for device in level:
                proof, at = device.proof, device.at
                when = screen.clock(at, now) if at is not None else ""
                rows.append([Cell(name, Colour.BOLD), str(number), device.device,
                             Cell(proof, _PROOFS.get(proof)), when, device.detail])  # fmt: skip
        for device in node.unfencing:
            is_in = node.is_unfenced
            rows.append([Cell(name, Colour.BOLD), "on", device.device,
                         Cell("let in" if is_in else "not let in", Colour.GREEN if is_in else Colour.YELLOW), "", ""])
    return [*lines, *columns(screen, rows)]


def render_history(screen: Screen, data: FencingHistory) -> list[str]:
    """Write what was fenced, newest last, and what is being fenced."""
    now = data.now
    rows: list[list[Cell | str]] = []
    for record in data.records:
        outcome, ended = record.outcome, record.ended
        took = durations.render(ended - record.began)
        manner = f"with {', '.join(record.devices) or 'no device'} by {record.executor or ''} in {took}"
        rows.append([
            screen.clock(ended, now), record.target, record.action,
            Cell(outcome, _OUTCOMES.get(outcome, Colour.BAD)), manner, record.detail or record.reason,
        ])  # fmt: skip
    for order in data.under_way:
        manner = f"with {', '.join(order.devices)} by {order.executor or ''}"
        rows.append([
            screen.clock(order.since, now), order.target, order.action,
            Cell("under way", Colour.YELLOW), f"{manner}, attempt {order.attempt}", order.reason,
        ])  # fmt: skip
    return columns(screen, rows) if rows else ["nothing was fenced yet"]


def render_topology(screen: Screen, data: FencingTopology) -> list[str]:
    """Write the configured levels, and what they come to for each node."""
    configured = data.configured
    lines = ["Configured levels:" if configured else "No topology is configured: each device is a level of its own."]
    rows: list[list[Cell | str]] = [
        [level.target, str(level.index), " + ".join(level.devices)]
        for level in configured
    ]
    lines += columns(screen, rows, indent=2)
    lines += ["In this order each node is fenced:"]
    for node in data.nodes:
        levels = [" + ".join(level) for level in node.levels]
        lines.append(f"  {node.node}: {', else '.join(levels) or 'by no device'}")
    return lines


def render_plan(_: Screen, data: FencingPlan) -> list[str]:
    """Write what would happen if the node died now."""
    lines = [f"If {data.node} died now:"]
    for step in data.steps:
        devices = ", then ".join(_device(device) for device in step.devices)
        what = f"level {step.level}: {step.action} with {devices}"
        lines.append(f"  {what} {_by_whom(step.executors)}")
    if not data.has_quorum:
        lines.append("  nobody fences it without quorum: the nodes that are left do what no-quorum-policy says")
    elif not data.steps:
        lines.append("  no device can fence it: what ran there is not recovered until it comes back, or you confirm it")
    lines += [f"  * {action}" for action in data.actions]
    return lines + [f"  Warning: {warning}" for warning in data.warnings]


def _by_whom(executors: Sequence[str]) -> str:
    if not executors:
        return "by nobody: no node may"
    return f"by {executors[0]}" + (f" (or {', '.join(executors[1:])})" if executors[1:] else "")


def _device(device: DelayedDevice) -> str:
    least, most = device.delay_min_ms, device.delay_max_ms
    words = f"{device.device} ({device.proof})"
    if not most:
        return words
    wait = durations.render(most) if least == most else f"{durations.render(least)} to {durations.render(most)}"
    return f"{words} after {wait}"
