"""`crm status` as text: the verdict, then what a person looks for, in the order in which it matters.

80 columns, or as many as the terminal has: no word that fits into a line is broken, and nothing is left out.
"""

from collections.abc import Sequence

from haclusterd.cli.render.lines import folded as lines_within
from haclusterd.cli.render.terminal import WIDTH, Cell, Colour, Screen, ago, columns, folded, span
from haclusterd.model import durations
from haclusterd.model.ocf import ExitCode
from haclusterd.reports.rendering import counted
from haclusterd.verbs.answers.node import Node
from haclusterd.verbs.answers.status import (
    FencingInShort,
    RecentFencing,
    ShownFailure,
    ShownInstance,
    ShownResource,
    Status,
)

GRAVITY = {0: Colour.GOOD, 1: Colour.WARN, 2: Colour.BAD}
"""The colour of a headline, by its gravity."""
_MAX_HEADLINES = 6
_STALE_MS = 3000


def render(screen: Screen, data: Status) -> list[str]:
    """Write the whole status."""
    lines = [*headline_lines(screen, data), *_summary(screen, data), ""]
    for title, found in (
        ("Nodes", node_lines(screen, data.nodes, data.now)),
        ("Resources", resource_lines(screen, data.resources)),
        ("Tickets", _tickets(screen, data)),
        ("In flight", in_flight_lines(screen, data)),
        ("Moves and bans", move_lines(screen, data)),
        ("Failures", failure_lines(screen, data)),
        ("Fencing", fencing_lines(screen, data)),
        ("Warnings", [line for each in data.warnings for line in _below(screen, each)]),
    ):
        if found:
            lines += [screen.paint(title, Colour.BOLD), *found, ""]
    if not screen.terminal_columns:
        return lines[:-1]
    return [part for line in lines[:-1] for part in lines_within(line, screen.terminal_columns)]


def _below(screen: Screen, text: str) -> list[str]:
    """Write a text below a title."""
    return folded(text, width=screen.width, indent="  ", later="      ")


def headline_lines(screen: Screen, data: Status, width: int = 0) -> list[str]:
    """Write what is to be known first, each with what to do about it; a `width` of 0 is the screen's."""
    width = width or screen.width
    found = data.headlines
    lines: list[str] = []
    for headline in found[:_MAX_HEADLINES]:
        verdict = headline.verdict
        remedy = headline.remedy
        folded_lines = folded(f"{verdict}: {headline.text}", width=width, later="  ")
        folded_lines[0] = folded_lines[0].replace(
            verdict, screen.paint(verdict, GRAVITY.get(headline.gravity)), 1
        )
        lines += folded_lines
        if remedy:
            lines += folded(f"-> {remedy}", width=width, indent="  ", later="     ")
    if len(found) > _MAX_HEADLINES:
        lines.append(f"and {len(found) - _MAX_HEADLINES} more of this kind, below")
    return lines


def _summary(screen: Screen, data: Status) -> list[str]:
    quorum = data.quorum
    version = data.configuration
    now = data.now
    dc = data.dc or "none"
    parts = [f"Cluster {data.cluster or '-'}", f"DC {dc} (term {data.term})"]
    if quorum.known:
        word = "quorum" if quorum.has else "NO QUORUM"
        parts.append(f"{word} {quorum.connected}/{quorum.voters}")
    else:
        parts.append(f"{quorum.voters} voters")
    parts.append(f"configuration {version.version}")
    lines = [" | ".join(parts)]
    if version.at:
        by = f"changed {ago(version.at, now)} by {version.author}"
        reason = version.reason
        lines += folded(by + (f": {reason}" if reason else ""), width=screen.width, indent="  ", later="  ")
    answered = data.answered_by or ""
    if data.at is not None:
        lines.append(screen.paint(f"as it was at {screen.clock(data.at, 0)}", Colour.YELLOW))
    elif not answered:
        lines.append(screen.paint("from a file, not from a running cluster", Colour.YELLOW))
    elif data.stale_ms > _STALE_MS:
        lines.append(screen.paint(f"STALE: as {answered} knew it {span(data.stale_ms)} ago", Colour.WARN))
    return lines


# Nodes

_STATES = {
    "online": ("online", Colour.GREEN),
    "lost": ("LOST", Colour.BAD),
    "fenced": ("fenced", Colour.YELLOW),
    "left": ("left", Colour.YELLOW),
    "unseen": ("never seen", Colour.YELLOW),
}


def node_lines(screen: Screen, nodes: Sequence[Node], now: int) -> list[str]:
    """Write one line a node, and below it its warnings."""
    has_gpus = any(node.gpus is not None for node in nodes)
    rows: list[list[Cell | str]] = [
        [Cell(node.name, Colour.BOLD), node_state(node), *([gpus_of(node)] if has_gpus else []),
         ", ".join(_remarks(node, now))]
        for node in nodes
    ]  # fmt: skip
    lines: list[str] = []
    for node, line in zip(nodes, columns(screen, rows, indent=2), strict=True):
        lines.append(line)
        for detail in _node_details(node):
            lines += folded(detail, width=screen.width, indent="      ")
    return lines


def node_state(node: Node) -> Cell:
    """Say in a word how a node is."""
    word, colour = _STATES.get(node.state, (node.state, Colour.YELLOW))
    if word == "online":
        if node.is_witness:
            return Cell("witness", Colour.GREEN)
        if node.is_leaving:
            return Cell("leaving", Colour.YELLOW)
        if node.is_standby:
            return Cell("standby", Colour.YELLOW)
        if node.is_maintenance:
            return Cell("maintenance", Colour.YELLOW)
    return Cell(word, colour)


def gpus_of(node: Node) -> Cell:
    """Say in short how the GPUs of a node are; empty: it has none."""
    gpus = node.gpus
    if gpus is None:
        return Cell("")
    colour = Colour.GREEN if gpus.usable == gpus.total else Colour.YELLOW if gpus.usable else Colour.BAD
    return Cell(f"{gpus.usable}/{gpus.total} GPUs, {gpus.held} held", colour)


def _remarks(node: Node, now: int) -> list[str]:
    remarks = []
    if node.is_dc:
        remarks.append("DC")
    if node.is_local:
        remarks.append("this node")
    if node.state == "online":
        remarks += node.unhealthy
        age = node.heard_age_ms
        if age is not None and age >= 1000 and not node.is_local:
            remarks.append(f"silent for {span(age)}")
        if node.brain in ("restarting", "hung"):
            remarks.append(f"daemon {node.brain} for {span(node.brain_since_ms or 0)}")
        if node.unverified:
            remarks.append(f"{counted(node.unverified, 'resource')} to look for")
    elif node.since:
        remarks.append(f"for {span(max(0, now - node.since))}")
    if node.is_being_fenced:
        remarks.append("being fenced")
    if not node.is_voter:
        remarks.append("no vote")
    return remarks


def _node_details(node: Node) -> list[str]:
    details = []
    if node.state != "online" and node.detail:
        details.append(node.detail)
    if node.held_join:
        details.append(f"wants to join; held: {node.held_join}")
    return details


# Resources

MOST_NAMES = 8
"""Nodes that are named in one pair of brackets."""

_INSTANCES = {
    "started": ("started on", Colour.GREEN),
    "starting": ("starting on", Colour.CYAN),
    "stopping": ("stopping on", Colour.CYAN),
    "failed": ("FAILED on", Colour.BAD),
    "blocked": ("BLOCKED on", Colour.BAD),
    "unverified": ("being looked for on", Colour.YELLOW),
    "lost": ("may run on lost", Colour.BAD),
}


def resource_lines(screen: Screen, resources: Sequence[ShownResource]) -> list[str]:
    """Write a line a resource, members of a group indented below it."""
    rows: list[list[Cell | str]] = []
    details: list[list[str]] = []
    for resource in resources:
        _add_resource(rows, details, resource, "")
    lines: list[str] = []
    for line, below in zip(columns(screen, rows, indent=2), details, strict=True):
        lines.append(line)
        lines += [each for detail in below for each in folded(detail, width=screen.width, indent="        ")]
    return lines


def _add_resource(rows: list[list[Cell | str]], details: list[list[str]], resource: ShownResource, indent: str) -> None:
    name = indent + resource.id
    kind = resource.kind
    if kind in ("group", "clone", "bundle"):
        rows.append([Cell(name, Colour.BOLD), f"{kind}, promotable" if resource.is_promotable else kind, ""])
        details.append([])
        for member in resource.members:
            _add_resource(rows, details, member, indent + "  ")
        return
    agent = resource.agent.rpartition(":")[2]
    instances: Sequence[ShownInstance] = resource.instances or ()
    is_summed_up = bool(resource.is_cloned and instances)
    state = state_cell(resource)
    if is_summed_up:
        _, instances = _of_clone(resource, instances)
    note = management_note(resource)
    rows.append([Cell(name, Colour.BOLD), agent, state, *([Cell(note, Colour.YELLOW)] if note else [])])
    others = instances if is_summed_up else instances[1:]
    details.append([*_also(others), *_reasons(instances, is_named=is_summed_up or len(instances) > 1)])


def state_cell(resource: ShownResource) -> Cell:
    """Say where a primitive runs; of a clone's, where its instances do."""
    instances = resource.instances or ()
    if not instances:
        return _stopped(resource)
    return _of_clone(resource, instances)[0] if resource.is_cloned else _instance(instances[0])


def management_note(resource: ShownResource) -> str:
    """Say why the cluster leaves a resource alone; empty when it does not."""
    notes = []
    if not resource.is_managed:
        notes.append("unmanaged")
    if resource.is_maintenance:
        notes.append("maintenance")
    return f"({', '.join(notes)})" if notes else ""


def _of_clone(resource: ShownResource, instances: Sequence[ShownInstance]) -> tuple[Cell, Sequence[ShownInstance]]:
    """Sum up where instances run, by role as `crm_mon` does; return also those that are in another state."""
    by_role: dict[str, list[str]] = {}
    for each in instances:
        if each.state == "started":
            by_role.setdefault(each.role, []).append(each.node)
    order = ("Promoted", "Unpromoted") if resource.has_roles else ("Started",)
    by_role["Stopped"] = list(resource.stopped_on or ())
    words = [f"{role}: [ {_names(by_role[role])} ]" for role in (*order, "Stopped") if by_role.get(role)]
    others = [each for each in instances if each.state != "started"]
    return Cell("  ".join(words) or "started nowhere", Colour.GREEN if words else Colour.YELLOW), others


def _names(nodes: Sequence[str], between: str = " ") -> str:
    if len(nodes) <= MOST_NAMES:
        return between.join(nodes)
    return f"{between.join(nodes[: MOST_NAMES - 1])} and {len(nodes) - MOST_NAMES + 1} more"


def _instance(instance: ShownInstance) -> Cell:
    words, colour = _INSTANCES.get(instance.state, (instance.state, None))
    return Cell(f"{words} {instance.node}", colour)


def _also(instances: Sequence[ShownInstance]) -> list[str]:
    """Say where else instances are, those in one state together."""
    nodes: dict[str, dict[str, None]] = {}
    for each in instances:
        nodes.setdefault(each.state, {})[each.node] = None
    words = {state: _INSTANCES.get(state, (state, None))[0] for state in nodes}
    return [f"and {words[state]} {_names(list(found), ', ')}" for state, found in nodes.items()]


def _reasons(instances: Sequence[ShownInstance], *, is_named: bool) -> list[str]:
    """Say why instances have failed, each reason once, with the nodes where several could be meant."""
    nodes: dict[str, dict[str, None]] = {}
    for each in instances:
        if each.state in ("failed", "blocked") and each.detail:
            nodes.setdefault(each.detail, {})[each.node] = None
    return [f"{_names(list(found), ', ')}: {detail}" if is_named else detail for detail, found in nodes.items()]


def _stopped(resource: ShownResource) -> Cell:
    if resource.not_wanted:
        return Cell(f"stopped: {resource.not_wanted}", Colour.DIM)
    why = resource.why_stopped or ""
    return Cell("NOT RUNNING" + (f": {why}" if why else ""), Colour.BAD)


def _tickets(screen: Screen, data: Status) -> list[str]:
    rows: list[list[Cell | str]] = []
    for ticket in data.tickets:
        is_held = ticket.is_granted and not ticket.is_standby
        words = "granted" if ticket.is_granted else "not granted"
        words += ", standby" if ticket.is_standby else ""
        note = "" if ticket.is_needed else "nothing needs it"
        rows.append([Cell(ticket.ticket, Colour.BOLD),
                     Cell(words, Colour.GREEN if is_held else Colour.YELLOW), note])  # fmt: skip
    return columns(screen, rows, indent=2)


# What is going on


def in_flight_lines(screen: Screen, data: Status) -> list[str]:
    """Write what is under way."""
    now = data.now
    progress = data.transition
    lines = []
    if progress:
        lines.append(f"  transition {progress.number}: {progress.done} of "
                     f"{progress.total} actions done")  # fmt: skip
    probes: dict[str, int] = {}
    for order in data.orders:
        if order.is_probe:
            probes[order.node] = probes.get(order.node, 0) + 1
            continue
        if order.interval_ms:
            continue
        what = f"{order.action} {order.resource} on {order.node}"
        voided = " (no longer wanted)" if order.is_voided else ""
        reason = f": {order.reason}" if order.reason else ""
        since = span(max(0, now - order.issued_at))
        lines += _below(screen, f"{what}{voided}, for {since}{reason}")
    lines += [f"  looking for {counted(count, 'resource')} on {node}" for node, count in probes.items()]
    return [screen.paint(line, Colour.CYAN) for line in lines]


def move_lines(screen: Screen, data: Status) -> list[str]:
    """Write the constraints that `move` and `ban` left, each with what ends it."""
    rows: list[list[Cell | str]] = []
    for move in data.moves:
        words = "banned from" if move.is_ban else "moved to"
        resource = move.resource or ""
        left = "" if move.until is None else f" for {span(max(0, move.until - data.now))} more"
        rows.append([
            Cell(f"{resource} is {words} {move.node or ''}{left}", Colour.YELLOW), f"crm resource clear {resource}"
        ])  # fmt: skip
    return columns(screen, rows, indent=2)


def failure_lines(screen: Screen, data: Status) -> list[str]:
    """Write the failures that are not forgotten."""
    lines: list[str] = []
    now = data.now
    for failure in data.failures:
        lines += _below(screen, _failure(screen, failure, now))
    return [screen.paint(line, Colour.RED) for line in lines]


def _failure(screen: Screen, failure: ShownFailure, now: int) -> str:
    interval = failure.interval_ms
    operation = failure.operation + (f"/{durations.render(interval)}" if interval else "")
    what = f"{failure.resource} {operation} on {failure.node}"
    code = failure.exit_code
    if failure.status in ("done", "error") and code is not None:
        known = ExitCode.read(code)
        is_explained = failure.exit_reason or known in (ExitCode.ERROR, ExitCode.UNKNOWN)
        what += f": exit code {code}" + ("" if is_explained else f" ({known.name.lower().replace('_', ' ')})")
    elif failure.status:
        what += f": {failure.status}"
    if failure.exit_reason:
        what += f" '{failure.exit_reason}'"
    count = failure.count or ""
    if count and count != "1":
        what += f", {'counts as INFINITY' if count == 'INFINITY' else count + ' times'}"
    if failure.failed_at:
        what += f", {screen.clock(failure.failed_at, now)}"
    return what


def fencing_lines(screen: Screen, data: Status) -> list[str]:
    """Write what is being fenced, what was fenced lately, and how far devices are proven."""
    fencing = data.fencing
    now = data.now
    lines: list[str] = []
    for order in fencing.open:
        words = f"{order.target} is being fenced ({order.action}) with {order.device or ''} by " \
                f"{order.executor or ''}, attempt {order.attempt}, " \
                f"for {span(max(0, now - order.issued_at))}"  # fmt: skip
        lines += [screen.paint(each, Colour.WARN) for each in _below(screen, words)]
    for record in fencing.recent:
        lines += _below(screen, _record(screen, record, now))
    return [*lines, *_devices(screen, fencing)]


def _record(screen: Screen, record: RecentFencing, now: int) -> str:
    outcome = record.outcome
    how = f" with {record.device}" if record.device else ""
    when = screen.clock(record.ended_at, now)
    if outcome in ("fenced", "confirmed"):
        words = f"{record.target} {outcome}{how}, {when}"
    else:
        words = f"fencing of {record.target}{how} failed ({outcome}), {when}"
    return words + (f": {record.detail}" if record.detail else "")


def _devices(screen: Screen, fencing: FencingInShort) -> list[str]:
    by_device: dict[tuple[str, str], list[str]] = {}
    for each in fencing.devices:
        state = each.state
        word = {"tested": "proven", "lied": "FAILING (lied)", "failing": "FAILING"}.get(state, state)
        by_device.setdefault((each.device, word), []).append(each.target)
    rows: list[list[Cell | str]] = []
    for (device, word), targets in by_device.items():
        colour = {"proven": Colour.GREEN, "untested": Colour.YELLOW}.get(word, Colour.BAD)
        names = ", ".join(targets)
        rows.append([Cell(device, Colour.BOLD), Cell(word, colour), f"for {names[: WIDTH - 30]}"])
    return columns(screen, rows, indent=2)
