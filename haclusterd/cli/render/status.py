"""`crm status` as text: the verdict, then what a person looks for, in the order in which it matters. 80 columns."""

from haclusterd.cli.render.fields import Fields, flag, listed, maybe_number, number, part, text, texts
from haclusterd.cli.render.terminal import WIDTH, Cell, Colour, Screen, ago, columns, counted, folded, span

_GRAVITY = {0: Colour.GOOD, 1: Colour.WARN, 2: Colour.BAD}
_MAX_HEADLINES = 6
_STALE_MS = 3000


def render(screen: Screen, data: Fields) -> list[str]:
    """Write the whole status."""
    lines = [*_headlines(screen, data), *_summary(screen, data), ""]
    for title, found in (
        ("Nodes", node_lines(screen, data)),
        ("Resources", resource_lines(screen, listed(data, "resources"))),
        ("Tickets", _tickets(screen, data)),
        ("In flight", _in_flight(screen, data)),
        ("Moves and bans", _moves(screen, data)),
        ("Failures", _failures(screen, data)),
        ("Fencing", _fencing(screen, data)),
        ("Warnings", [f"  {each}" for each in texts(data, "warnings")]),
    ):
        if found:
            lines += [screen.paint(title, Colour.BOLD), *found, ""]
    return lines[:-1]


def _headlines(screen: Screen, data: Fields) -> list[str]:
    found = listed(data, "headlines")
    lines: list[str] = []
    for headline in found[:_MAX_HEADLINES]:
        verdict = text(headline, "verdict")
        remedy = text(headline, "remedy")
        folded_lines = folded(f"{verdict}: {text(headline, 'text')}", later="  ")
        folded_lines[0] = folded_lines[0].replace(
            verdict, screen.paint(verdict, _GRAVITY.get(number(headline, "gravity"))), 1
        )
        lines += folded_lines
        if remedy:
            lines += folded(f"-> {remedy}", indent="  ", later="     ")
    if len(found) > _MAX_HEADLINES:
        lines.append(f"and {len(found) - _MAX_HEADLINES} more of this kind, below")
    return lines


def _summary(screen: Screen, data: Fields) -> list[str]:
    quorum = part(data, "quorum")
    version = part(data, "configuration")
    now = number(data, "now")
    dc = text(data, "dc") or "none"
    parts = [f"Cluster {text(data, 'cluster') or '-'}", f"DC {dc} (term {number(data, 'term')})"]
    if flag(quorum, "known"):
        word = "quorum" if flag(quorum, "has") else "NO QUORUM"
        parts.append(f"{word} {number(quorum, 'connected')}/{number(quorum, 'voters')}")
    else:
        parts.append(f"{number(quorum, 'voters')} voters")
    parts.append(f"configuration {number(version, 'version')}")
    lines = [" | ".join(parts)]
    if number(version, "at"):
        by = f"changed {ago(number(version, 'at'), now)} by {text(version, 'author')}"
        reason = text(version, "reason")
        lines += folded(by + (f": {reason}" if reason else ""), indent="  ", later="  ")
    answered = text(data, "answered_by")
    if not answered:
        lines.append(screen.paint("from a file, not from a running cluster", Colour.YELLOW))
    elif number(data, "stale_ms") > _STALE_MS:
        lines.append(screen.paint(f"STALE: as {answered} knew it {span(number(data, 'stale_ms'))} ago", Colour.WARN))
    return lines


# Nodes

_STATES = {
    "online": ("online", Colour.GREEN),
    "lost": ("LOST", Colour.BAD),
    "fenced": ("fenced", Colour.YELLOW),
    "left": ("left", Colour.YELLOW),
    "unseen": ("never seen", Colour.YELLOW),
}


def node_lines(screen: Screen, data: Fields) -> list[str]:
    """Write one line a node, and below it what is to be said of it."""
    now = number(data, "now")
    nodes = listed(data, "nodes")
    rows: list[list[Cell | str]] = [
        [Cell(text(node, "name"), Colour.BOLD), _node_state(node), ", ".join(_remarks(node, now))] for node in nodes
    ]
    lines: list[str] = []
    for node, line in zip(nodes, columns(screen, rows, indent=2), strict=True):
        lines.append(line)
        lines += [each for detail in _node_details(node) for each in folded(detail, indent="      ")]
    return lines


def _node_state(node: Fields) -> Cell:
    word, colour = _STATES.get(text(node, "state"), (text(node, "state"), Colour.YELLOW))
    if word == "online":
        if flag(node, "is_witness"):
            return Cell("witness", Colour.GREEN)
        if flag(node, "is_leaving"):
            return Cell("leaving", Colour.YELLOW)
        if flag(node, "is_standby"):
            return Cell("standby", Colour.YELLOW)
        if flag(node, "is_maintenance"):
            return Cell("maintenance", Colour.YELLOW)
    return Cell(word, colour)


def _remarks(node: Fields, now: int) -> list[str]:
    remarks = []
    if flag(node, "is_dc"):
        remarks.append("DC")
    if flag(node, "is_local"):
        remarks.append("this node")
    if text(node, "state") == "online":
        remarks += texts(node, "unhealthy")
        age = maybe_number(node, "heard_age_ms")
        if age is not None and age >= 1000 and not flag(node, "is_local"):
            remarks.append(f"silent for {span(age)}")
        if text(node, "brain") in ("restarting", "hung"):
            remarks.append(f"daemon {text(node, 'brain')} for {span(number(node, 'brain_since_ms'))}")
        if number(node, "unverified"):
            remarks.append(f"{counted(number(node, 'unverified'), 'resource')} to look for")
    elif number(node, "since"):
        remarks.append(f"for {span(max(0, now - number(node, 'since')))}")
    if flag(node, "is_being_fenced"):
        remarks.append("being fenced")
    if not flag(node, "is_voter"):
        remarks.append("no vote")
    return remarks


def _node_details(node: Fields) -> list[str]:
    details = []
    if text(node, "state") != "online" and text(node, "detail"):
        details.append(text(node, "detail"))
    if text(node, "held_join"):
        details.append(f"wants to join; held: {text(node, 'held_join')}")
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


def resource_lines(screen: Screen, resources: list[Fields]) -> list[str]:
    """Write a line a resource, members of a group indented below it."""
    rows: list[list[Cell | str]] = []
    details: list[list[str]] = []
    for resource in resources:
        _add_resource(rows, details, resource, "")
    lines: list[str] = []
    for line, below in zip(columns(screen, rows, indent=2), details, strict=True):
        lines.append(line)
        lines += [each for detail in below for each in folded(detail, indent="        ")]
    return lines


def _add_resource(rows: list[list[Cell | str]], details: list[list[str]], resource: Fields, indent: str) -> None:
    name = indent + text(resource, "id")
    kind = text(resource, "kind")
    if kind in ("group", "clone", "bundle"):
        rows.append([Cell(name, Colour.BOLD), f"{kind}, promotable" if flag(resource, "is_promotable") else kind, ""])
        details.append([])
        for member in listed(resource, "members"):
            _add_resource(rows, details, member, indent + "  ")
        return
    agent = text(resource, "agent").rpartition(":")[2]
    instances = listed(resource, "instances")
    is_summed_up = flag(resource, "is_cloned") and bool(instances)
    state = _instance(instances[0]) if instances else _stopped(resource)
    if is_summed_up:
        state, instances = _of_clone(resource, instances)
    notes = []
    if not flag(resource, "is_managed"):
        notes.append("unmanaged")
    if flag(resource, "is_maintenance"):
        notes.append("maintenance")
    row: list[Cell | str] = [Cell(name, Colour.BOLD), agent, state]
    if notes:
        row.append(Cell(f"({', '.join(notes)})", Colour.YELLOW))
    rows.append(row)
    below = [text(each, "detail") for each in instances if text(each, "state") in ("failed", "blocked")]
    others = instances if is_summed_up else instances[1:]
    details.append([*(_also(each) for each in others), *below])


def _of_clone(resource: Fields, instances: list[Fields]) -> tuple[Cell, list[Fields]]:
    """Sum up where instances run, by role as `crm_mon` does; return also those that are in another state."""
    by_role: dict[str, list[str]] = {}
    for each in instances:
        if text(each, "state") == "started":
            by_role.setdefault(text(each, "role"), []).append(text(each, "node"))
    order = ("Promoted", "Unpromoted") if flag(resource, "has_roles") else ("Started",)
    by_role["Stopped"] = list(texts(resource, "stopped_on"))
    words = [f"{role}: [ {_names(by_role[role])} ]" for role in (*order, "Stopped") if by_role.get(role)]
    others = [each for each in instances if text(each, "state") != "started"]
    return Cell("  ".join(words) or "started nowhere", Colour.GREEN if words else Colour.YELLOW), others


def _names(nodes: list[str]) -> str:
    if len(nodes) <= MOST_NAMES:
        return " ".join(nodes)
    return f"{' '.join(nodes[: MOST_NAMES - 1])} and {len(nodes) - MOST_NAMES + 1} more"


def _instance(instance: Fields) -> Cell:
    words, colour = _INSTANCES.get(text(instance, "state"), (text(instance, "state"), None))
    return Cell(f"{words} {text(instance, 'node')}", colour)


def _also(instance: Fields) -> str:
    return f"and {_instance(instance).text}"


def _stopped(resource: Fields) -> Cell:
    if text(resource, "not_wanted"):
        return Cell(f"stopped: {text(resource, 'not_wanted')}", Colour.DIM)
    why = text(resource, "why_stopped")
    return Cell("NOT RUNNING" + (f": {why}" if why else ""), Colour.BAD)


def _tickets(screen: Screen, data: Fields) -> list[str]:
    rows: list[list[Cell | str]] = []
    for ticket in listed(data, "tickets"):
        is_held = flag(ticket, "is_granted") and not flag(ticket, "is_standby")
        words = "granted" if flag(ticket, "is_granted") else "not granted"
        words += ", standby" if flag(ticket, "is_standby") else ""
        note = "" if flag(ticket, "is_needed") else "nothing needs it"
        rows.append([Cell(text(ticket, "ticket"), Colour.BOLD),
                     Cell(words, Colour.GREEN if is_held else Colour.YELLOW), note])  # fmt: skip
    return columns(screen, rows, indent=2)


# What is going on


def _in_flight(screen: Screen, data: Fields) -> list[str]:
    now = number(data, "now")
    progress = part(data, "transition")
    lines = []
    if progress:
        lines.append(f"  transition {number(progress, 'number')}: {number(progress, 'done')} of "
                     f"{number(progress, 'total')} actions done")  # fmt: skip
    probes: dict[str, int] = {}
    for order in listed(data, "orders"):
        if flag(order, "is_probe"):
            probes[text(order, "node")] = probes.get(text(order, "node"), 0) + 1
            continue
        if number(order, "interval_ms"):
            continue
        what = f"{text(order, 'action')} {text(order, 'resource')} on {text(order, 'node')}"
        voided = " (no longer wanted)" if flag(order, "is_voided") else ""
        reason = f": {text(order, 'reason')}" if text(order, "reason") else ""
        since = span(max(0, now - number(order, "issued_at")))
        lines += folded(f"{what}{voided}, for {since}{reason}", indent="  ", later="      ")
    lines += [f"  looking for {counted(count, 'resource')} on {node}" for node, count in probes.items()]
    return [screen.paint(line, Colour.CYAN) for line in lines]


def _moves(screen: Screen, data: Fields) -> list[str]:
    rows: list[list[Cell | str]] = []
    for move in listed(data, "moves"):
        words = "banned from" if flag(move, "is_ban") else "moved to"
        resource = text(move, "resource")
        rows.append([
            Cell(f"{resource} is {words} {text(move, 'node')}", Colour.YELLOW), f"crm resource clear {resource}"
        ])  # fmt: skip
    return columns(screen, rows, indent=2)


def _failures(screen: Screen, data: Fields) -> list[str]:
    lines: list[str] = []
    now = number(data, "now")
    for failure in listed(data, "failures"):
        lines += folded(_failure(screen, failure, now), indent="  ", later="      ")
    return [screen.paint(line, Colour.RED) for line in lines]


def _failure(screen: Screen, failure: Fields, now: int) -> str:
    interval = number(failure, "interval_ms")
    operation = text(failure, "operation") + (f"/{span(interval)}" if interval else "")
    what = f"{text(failure, 'resource')} {operation} on {text(failure, 'node')}"
    code = maybe_number(failure, "exit_code")
    if text(failure, "status") in ("done", "error") and code is not None:
        what += f": exit code {code}"
    elif text(failure, "status"):
        what += f": {text(failure, 'status')}"
    if text(failure, "exit_reason"):
        what += f" '{text(failure, 'exit_reason')}'"
    count = text(failure, "count")
    if count and count != "1":
        what += f", {'counts as INFINITY' if count == 'INFINITY' else count + ' times'}"
    if number(failure, "failed_at"):
        what += f", {screen.clock(number(failure, 'failed_at'), now)}"
    return what


def _fencing(screen: Screen, data: Fields) -> list[str]:
    fencing = part(data, "fencing")
    now = number(data, "now")
    lines: list[str] = []
    for order in listed(fencing, "open"):
        words = f"{text(order, 'target')} is being fenced ({text(order, 'action')}) with {text(order, 'device')} by " \
                f"{text(order, 'executor')}, attempt {number(order, 'attempt')}, " \
                f"for {span(max(0, now - number(order, 'issued_at')))}"  # fmt: skip
        lines += [screen.paint(each, Colour.WARN) for each in folded(words, indent="  ", later="      ")]
    for record in listed(fencing, "recent"):
        lines += folded(_record(screen, record, now), indent="  ", later="      ")
    return [*lines, *_devices(screen, fencing)]


def _record(screen: Screen, record: Fields, now: int) -> str:
    outcome = text(record, "outcome")
    how = f" with {text(record, 'device')}" if text(record, "device") else ""
    when = screen.clock(number(record, "ended_at"), now)
    if outcome in ("fenced", "confirmed"):
        words = f"{text(record, 'target')} {outcome}{how}, {when}"
    else:
        words = f"fencing of {text(record, 'target')}{how} failed ({outcome}), {when}"
    return words + (f": {text(record, 'detail')}" if text(record, "detail") else "")


def _devices(screen: Screen, fencing: Fields) -> list[str]:
    by_device: dict[tuple[str, str], list[str]] = {}
    for each in listed(fencing, "devices"):
        state = text(each, "state")
        word = {"tested": "proven", "lied": "FAILING (lied)", "failing": "FAILING"}.get(state, state)
        by_device.setdefault((text(each, "device"), word), []).append(text(each, "target"))
    rows: list[list[Cell | str]] = []
    for (device, word), targets in by_device.items():
        colour = {"proven": Colour.GREEN, "untested": Colour.YELLOW}.get(word, Colour.BAD)
        names = ", ".join(targets)
        rows.append([Cell(device, Colour.BOLD), Cell(word, colour), f"for {names[: WIDTH - 30]}"])
    return columns(screen, rows, indent=2)
