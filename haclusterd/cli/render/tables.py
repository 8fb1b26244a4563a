"""The smaller answers as text: nodes, members, timers, events, configuration, changes."""

from collections import Counter

from haclusterd.cli.render.fields import Fields, flag, listed, maybe_number, number, part, text, texts
from haclusterd.cli.render.history import difference_lines
from haclusterd.cli.render.status import node_lines, resource_lines
from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, counted, folded, span


def render_nodes(screen: Screen, data: Fields) -> list[str]:
    """Write nodes with their attributes and resources."""
    lines: list[str] = []
    for node in listed(data, "nodes"):
        lines += node_lines(screen, {"now": data.get("now"), "nodes": [node]})
        for title, pairs in (
            ("attributes", part(node, "attributes")),
            ("until reboot", part(node, "transient_attributes")),
            ("utilization", part(node, "utilization")),
        ):
            if pairs:
                words = " ".join(f"{name}={text(pairs, name)}" for name in pairs)
                lines += folded(f"{title}: {words}", indent="      ", later="        ")
        running = ", ".join(texts(node, "resources"))
        if running:
            lines += folded(f"resources: {running}", indent="      ", later="        ")
    return lines


def render_attributes(_: Screen, data: Fields) -> list[str]:
    """Write node attributes, one a line, as Pacemaker's crm_attribute does."""
    return [
        f"{text(node, 'name')}: scope={scope} name={name} value={text(part(node, lifetime), name)}"
        for node in listed(data, "nodes")
        for lifetime, scope in (("reboot", "status"), ("private", "private"), ("forever", "nodes"))
        for name in part(node, lifetime)
    ]


def render_resources(screen: Screen, data: Fields) -> list[str]:
    """Write where resources run."""
    return resource_lines(screen, listed(data, "resources"))


def render_members(screen: Screen, data: Fields) -> list[str]:
    """Write who belongs to the cluster and who is heard."""
    lines = [f"Cluster {text(data, 'cluster')} ({text(data, 'uuid')}), leader {text(data, 'leader') or 'none'}"]
    lease = maybe_number(data, "lease_remaining_ms")
    if text(data, "answered_by"):
        held = "no lease" if lease is None else f"lease for {span(lease)} more"
        lines.append(f"{text(data, 'answered_by')}: {held}")
    rows: list[list[Cell | str]] = [["", "state", "vote", "heard", "round trip", "raft", "addresses"]]
    for member in listed(data, "members"):
        rows.append([
            Cell(text(member, "name"), Colour.BOLD),
            Cell(text(member, "state"), Colour.GREEN if text(member, "state") == "online" else Colour.YELLOW),
            _vote(member),
            _heard(member),
            _maybe_span(member, "round_trip_ms"),
            {True: "connected", False: "-"}.get(member.get("is_connected") is True, ""),
            " ".join(texts(member, "addresses")),
        ])
    return [*lines, *columns(screen, rows, indent=2)]


def _vote(member: Fields) -> str:
    if not flag(member, "is_voter"):
        return "soon" if flag(member, "wants_vote") else "no"
    return "witness" if flag(member, "is_witness") else "yes"


def _heard(member: Fields) -> str:
    if flag(member, "is_local"):
        return "itself"
    age = maybe_number(member, "heard_age_ms")
    return "never" if age is None else f"{span(age)} ago"


def _maybe_span(of: Fields, name: str) -> str:
    value = maybe_number(of, name)
    return "-" if value is None else span(value)


def render_timing(screen: Screen, data: Fields) -> list[str]:
    """Write every timer; those that are set are bold, the others follow from them."""
    rows: list[list[Cell | str]] = []
    for timer in listed(data, "timers"):
        colour = Colour.BOLD if flag(timer, "is_set") else None
        rows.append([Cell(text(timer, "name"), colour), f"{number(timer, 'value_ms')} ms", text(timer, "meaning")])
    lines = columns(screen, rows)
    watchdogs = list(listed(data, "watchdogs"))
    if watchdogs:
        lines += ["", "Watchdogs:", *columns(screen, [_watchdog(each) for each in watchdogs])]
    if watchdogs and not flag(watchdogs[0], "is_counted_on"):
        lines.append("Nobody counts on them: crm configure property watchdog-fencing=true")
    lines += [
        f"stop of {text(each, 'resource')} may take {number(each, 'stop_timeout_ms')} ms: "
        f"{number(each, 'fits_ms')} ms after the end of the lease the node is reset"
        for each in listed(data, "long_stops")
    ]
    return [*lines, "", "Set: crm configure property node-timeout=... brain-timeout=..."]


def _watchdog(of: Fields) -> list[Cell | str]:
    weakness = text(of, "weakness")
    rating = Cell(f"weak: {weakness}", Colour.YELLOW) if weakness else ""
    return [
        text(of, "node"),
        f"{number(of, 'timeout_ms')} ms",
        f"counts as fenced {number(of, 'wait_ms')} ms after its loss",
        f"{text(of, 'device')} ({text(of, 'identity')})",
        rating,
    ]


def render_events(screen: Screen, data: Fields) -> list[str]:
    """Write what happened, newest last."""
    return event_lines(screen, data) or ["nothing that fits is in this node's history"]


def event_lines(screen: Screen, data: Fields) -> list[str]:
    """Write events, newest last; none are no line."""
    now = number(data, "now")
    lines: list[str] = []
    if number(data, "left_out"):
        lines.append(screen.paint(f"({number(data, 'left_out')} earlier ones left out: --limit)", Colour.DIM))
    for event in listed(data, "events"):
        kind = text(event, "kind")
        bad = ("lost", "failed", "refused", "unknown")
        colour = Colour.RED if any(word in kind for word in bad) else None
        what, why = text(event, "text"), text(event, "reason")
        reason = f" [{why}]" if why and why not in what else ""
        clock = screen.clock(number(event, "at"), now)
        first = f"{clock} {number(event, 'index'):>6}  "
        words = folded(f"{what}{reason}", indent=first, later=" " * len(first), width=100)
        lines += [screen.paint(line, colour) for line in words or [first.rstrip()]]
    return lines


def render_configuration(screen: Screen, data: Fields) -> list[str]:
    """Write the configuration as its text."""
    if not screen.has_colour or text(data, "format") != "crm":
        return text(data, "text").splitlines()
    return [_coloured(screen, line) for line in text(data, "text").splitlines()]


def render_shadows(screen: Screen, data: Fields) -> list[str]:
    """Write shadow CIBs, with the version that each is a copy of."""
    rows: list[list[Cell | str]] = [
        [
            Cell(text(each, "name"), Colour.BOLD if flag(each, "is_used") else None),
            f"of version {number(each, 'version')}" if number(each, "version") else "of no cluster",
            "in use" if flag(each, "is_used") else "",
        ]
        for each in listed(data, "shadows")
    ]
    return columns(screen, rows) or ["there are no shadow CIBs"]


def render_text(_: Screen, data: Fields) -> list[str]:
    """Write a text as it is."""
    return text(data, "text").splitlines()


def render_schema(_: Screen, data: Fields) -> list[str]:
    """Write the schemas of Pacemaker that are known."""
    return [f"XML is written as {text(data, 'written')}; every schema up to {text(data, 'read_up_to')} is read"]


def _coloured(screen: Screen, line: str) -> str:
    if line.startswith(("\t", " ", "#")):
        return line
    keyword, gap, rest = line.partition(" ")
    name, space, more = rest.partition(" ")
    return f"{screen.paint(keyword, Colour.YELLOW)}{gap}{screen.paint(name, Colour.BOLD)}{space}{more}"


_EDIT_COLOURS = {"+": Colour.GREEN, "~": Colour.YELLOW, "-": Colour.RED}


def render_change(screen: Screen, data: Fields) -> list[str]:
    """Write what a change did to the configuration."""
    lines = difference_lines(screen, text(data, "difference"))
    lines = lines or [screen.paint(edit, _EDIT_COLOURS.get(edit[:1])) for edit in texts(data, "edits")]
    if number(data, "from_version") != number(data, "to_version"):
        lines.append(f"version {number(data, 'from_version')} -> {number(data, 'to_version')}")
    return lines


def render_preview(screen: Screen, data: Fields) -> list[str]:
    """Write what a change would do, and what the cluster would do then."""
    change = part(data, "change")
    lines = render_change(screen, change) if text(change, "schema") == "haclusterd.change/1" else []
    actions = listed(data, "actions")
    lines.append("then the cluster would:" if actions else "the cluster would do nothing")
    probes = Counter(text(action, "node") for action in actions if flag(action, "is_probe"))
    lines += [f"  look for {counted(count, 'resource')} on {node}" for node, count in probes.items()]
    for action in actions:
        if flag(action, "is_probe"):
            continue
        reason = f" ({text(action, 'reason')})" if text(action, "reason") else ""
        lines += folded(f"{text(action, 'text')}{reason}", indent="  ", later="    ")
    return lines


def render_verify(_screen: Screen, data: Fields) -> list[str]:
    """Write the judgement in a word; the reports are shown like all others."""
    if not flag(data, "is_valid"):
        return ["not valid"]
    count = len(listed(data, "reports"))
    return ["valid" if not count else f"valid, with {count} warning{'s' if count > 1 else ''}"]


def render_validations(screen: Screen, data: Fields) -> list[str]:
    """Write what agents said of their resources' parameters."""
    colours = {"fine": Colour.GREEN, "objects": Colour.RED}
    return columns(screen, [
        [Cell(text(row, "resource"), Colour.BOLD), text(row, "agent"),
         Cell(text(row, "verdict"), colours.get(text(row, "verdict"), Colour.YELLOW)), text(row, "reason")]
        for row in listed(data, "validations")
    ])  # fmt: skip


def render_properties(screen: Screen, data: Fields) -> list[str]:
    """Write properties with their values; of one, the value only, for scripts."""
    rows = listed(data, "properties")
    if len(rows) == 1:
        return [text(rows[0], "value")]
    return columns(screen, [
        [Cell(text(row, "name"), None if flag(row, "is_default") else Colour.BOLD), text(row, "value"),
         text(row, "meaning")]
        for row in rows
    ])  # fmt: skip


def render_fence(_screen: Screen, _data: Fields) -> list[str]:
    """Write nothing: the reports say it."""
    return []


def render_setup(_screen: Screen, data: Fields) -> list[str]:
    """Write where a new cluster's files are, and what to do with them."""
    count = len(texts(data, "nodes"))
    what = texts(data, "nodes")[0] if count == 1 else f"files for {count} nodes"
    lines = [f"{text(data, 'name')}: {what} in {text(data, 'directory')}"]
    lines += [f"  {each}" for each in texts(data, "files")]
    return [*lines, *texts(data, "next_steps")]


def render_invitation(screen: Screen, data: Fields) -> list[str]:
    """Write what to type on the new machine, and until when."""
    until = screen.clock(number(data, "expires"), number(data, "now"))
    return [
        "On the new machine, as root, type the command and then, when it asks for it, the token:",
        "",
        f"  {text(data, 'command')}",
        f"  {text(data, 'token')}",
        "",
        f"It is good for one machine, until {until}; this node waits for it at {' '.join(texts(data, 'listens_at'))}.",
    ]


def render_certificates(screen: Screen, data: Fields) -> list[str]:
    """Write whose certificate is good for how long, and which are not accepted."""
    rows: list[list[Cell | str]] = []
    for each in listed(data, "certificates"):
        standing = text(each, "standing") + (" (revoked)" if flag(each, "is_revoked") else "")
        rows.append([Cell(text(each, "node"), Colour.BOLD), text(each, "fingerprint")[:16], standing])
    revoked = texts(data, "revoked")
    lines = columns(screen, rows)
    return [*lines, *([f"not accepted any more: {', '.join(each[:16] for each in revoked)}"] if revoked else [])]


def render_verdict(_screen: Screen, data: Fields) -> list[str]:
    """Write the verdict on one line, as monitoring wants it."""
    return [f"{text(data, 'verdict')}: {text(data, 'text')}"]


def render_setting(_: Screen, data: Fields) -> list[str]:
    """Write settings of a resource or node, one a line."""
    values = part(data, "values")
    return [f"{name}={text(values, name)}" for name in values]


def render_tickets(screen: Screen, data: Fields) -> list[str]:
    """Write tickets and what needs them."""
    now = number(data, "now")
    lines: list[str] = []
    for ticket in listed(data, "tickets"):
        is_granted = flag(ticket, "is_granted")
        words = screen.paint("granted" if is_granted else "revoked", Colour.GREEN if is_granted else Colour.YELLOW)
        words += " (standby)" if flag(ticket, "is_standby") else ""
        granted_at = maybe_number(ticket, "last_granted")
        when = f", last granted {screen.clock(granted_at, now)}" if granted_at is not None else ""
        lines.append(f"{screen.paint(text(ticket, 'ticket'), Colour.BOLD)}: {words}{when}")
        for each in listed(ticket, "resources"):
            role = f":{text(each, 'role')}" if text(each, "role") else ""
            lines.append(f"  needed by {text(each, 'resource')}{role}, when lost: {text(each, 'loss_policy')}")
    return lines or ["no tickets"]


def render_token(screen: Screen, data: Fields) -> list[str]:
    """Write a token that has just been made: it is never shown again."""
    lines = [text(data, "token")] if text(data, "token") else []
    return [*lines, f"role {text(data, 'role')}, {_until(screen, data, number(data, 'now'))}"]


def render_token_list(screen: Screen, data: Fields) -> list[str]:
    """Write the API tokens, one a line."""
    rows: list[list[Cell | str]] = [
        [Cell(text(each, "name"), Colour.BOLD), text(each, "role"), _until(screen, each, number(data, "now")),
         f"made by {text(each, 'author')}"]
        for each in listed(data, "tokens")
    ]  # fmt: skip
    return columns(screen, rows) if rows else ["no API tokens"]


def _until(screen: Screen, token: Fields, now: int) -> str:
    expires_at = maybe_number(token, "expires_at")
    if expires_at is None:
        return "does not expire"
    return f"{'expired' if expires_at <= now else 'expires'} {screen.clock(expires_at, now)}"


def render_whoami(_: Screen, data: Fields) -> list[str]:
    """Write as whom one is known."""
    return [f"{text(data, 'author')}, role {text(data, 'role')}"]
