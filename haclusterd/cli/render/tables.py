"""The smaller answers as text: nodes, members, timers, events, configuration, changes."""

import re
from collections import Counter

from haclusterd.cli.render.history import difference_lines
from haclusterd.cli.render.status import node_lines, resource_lines
from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, folded, span
from haclusterd.model import durations
from haclusterd.reports.rendering import counted, printable
from haclusterd.verbs.answers.alerts import Alerts, AlertTests
from haclusterd.verbs.answers.answer import read
from haclusterd.verbs.answers.cluster import (
    Identity,
    Invitation,
    PublishedWatchdog,
    ShownToken,
    Tickets,
    Timers,
    Token,
    Tokens,
)
from haclusterd.verbs.answers.configuration import (
    AgentVerdicts,
    Change,
    ConfigurationText,
    Graph,
    Interruption,
    Judgement,
    Preview,
    Properties,
    Schema,
)
from haclusterd.verbs.answers.crm import Setup, ShownShadows
from haclusterd.verbs.answers.history import Events
from haclusterd.verbs.answers.node import AttributesOfNodes, Certificates, ClusterMember, Members, Nodes
from haclusterd.verbs.answers.resource import Setting
from haclusterd.verbs.answers.secrets import SecretTable, SecretValue
from haclusterd.verbs.answers.status import Resources, Verdict


def render_nodes(screen: Screen, data: Nodes) -> list[str]:
    """Write nodes with their attributes and resources."""
    lines: list[str] = []
    for node in data.nodes:
        lines += node_lines(screen, [node], data.now)
        for title, pairs in (
            ("attributes", node.attributes),
            ("until reboot", node.transient_attributes),
            ("utilization", node.utilization),
        ):
            if pairs:
                words = " ".join(f"{name}={pairs[name]}" for name in pairs)
                lines += folded(f"{title}: {words}", indent="      ", later="        ")
        running = ", ".join(node.resources)
        if running:
            lines += folded(f"resources: {running}", indent="      ", later="        ")
    return lines


def render_attributes(_: Screen, data: AttributesOfNodes) -> list[str]:
    """Write node attributes, one a line, as Pacemaker's crm_attribute does."""
    return [
        f"{node.name}: scope={scope} name={name} value={value}"
        for node in data.nodes
        for values, scope in ((node.reboot, "status"), (node.private, "private"), (node.forever, "nodes"))
        for name, value in (values or {}).items()
    ]


def render_resources(screen: Screen, data: Resources) -> list[str]:
    """Write where resources run."""
    return resource_lines(screen, data.resources)


def render_members(screen: Screen, data: Members) -> list[str]:
    """Write who belongs to the cluster and who is heard."""
    lines = [f"Cluster {data.cluster} ({data.uuid}), leader {data.leader or 'none'}"]
    lease = data.lease_remaining_ms
    if data.answered_by:
        held = "no lease" if lease is None else f"lease for {span(lease)} more"
        lines.append(f"{data.answered_by}: {held}")
    rows: list[list[Cell | str]] = [["", "state", "vote", "heard", "round trip", "raft", "addresses"]]
    for member in data.members:
        rows.append([
            Cell(member.name, Colour.BOLD),
            Cell(member.state, Colour.GREEN if member.state == "online" else Colour.YELLOW),
            _vote(member),
            _heard(member),
            _maybe_span(member.round_trip_ms),
            "connected" if member.is_connected else "-",
            " ".join(member.addresses),
        ])
    return [*lines, *columns(screen, rows, indent=2)]


def _vote(member: ClusterMember) -> str:
    if not member.is_voter:
        return "soon" if member.wants_vote else "no"
    return "witness" if member.is_witness else "yes"


def _heard(member: ClusterMember) -> str:
    if member.is_local:
        return "itself"
    age = member.heard_age_ms
    return "never" if age is None else f"{span(age)} ago"


def _maybe_span(value: int | None) -> str:
    return "-" if value is None else span(value)


def render_timing(screen: Screen, data: Timers) -> list[str]:
    """Write every timer; those that are set are bold, the others follow from them."""
    rows: list[list[Cell | str]] = []
    for timer in data.timers:
        colour = Colour.BOLD if timer.is_set else None
        rows.append([Cell(timer.name, colour), f"{timer.value_ms} ms", timer.meaning])
    lines = columns(screen, rows)
    watchdogs = list(data.watchdogs)
    if watchdogs:
        lines += ["", "Watchdogs:", *columns(screen, [_watchdog(each) for each in watchdogs])]
    if watchdogs and not watchdogs[0].is_counted_on:
        lines.append("Nobody counts on them: crm configure property watchdog-fencing=true")
    lines += [
        f"stop of {each.resource} may take {each.stop_timeout_ms} ms: "
        f"{each.fits_ms} ms after the end of the lease the node is reset"
        for each in data.long_stops
    ]
    return [*lines, "", "Set: crm configure property node-timeout=... brain-timeout=..."]


def _watchdog(of: PublishedWatchdog) -> list[Cell | str]:
    weakness = of.weakness
    rating = Cell(f"weak: {weakness}", Colour.YELLOW) if weakness else ""
    return [
        of.node,
        f"{of.timeout_ms} ms",
        f"counts as fenced {of.wait_ms} ms after its loss",
        f"{of.device} ({of.identity})",
        rating,
    ]


def render_events(screen: Screen, data: Events) -> list[str]:
    """Write what happened, newest last."""
    return event_lines(screen, data) or ["nothing that fits is in this node's history"]


def event_lines(screen: Screen, data: Events) -> list[str]:
    """Write events, newest last; none are no line."""
    now = data.now
    lines: list[str] = []
    if data.left_out:
        lines.append(screen.paint(f"({data.left_out} earlier ones left out: --limit)", Colour.DIM))
    for event in data.events:
        kind = event.kind
        bad = ("lost", "failed", "refused", "unknown")
        colour = Colour.RED if any(word in kind for word in bad) else None
        what, why = event.text, event.reason
        reason = f" [{why}]" if why and why not in what else ""
        clock = screen.clock(event.at, now)
        first = f"{clock} {event.index:>6}  "
        words = folded(f"{what}{reason}", indent=first, later=" " * len(first), width=100)
        lines += [screen.paint(line, colour) for line in words or [first.rstrip()]]
    return lines


def render_configuration(screen: Screen, data: ConfigurationText) -> list[str]:
    """Write the configuration as its text."""
    if not screen.has_colour or data.format != "crm":
        return data.text.splitlines()
    return [_coloured(screen, line) for line in data.text.splitlines()]


def render_shadows(screen: Screen, data: ShownShadows) -> list[str]:
    """Write shadow CIBs, with the version that each is a copy of."""
    rows: list[list[Cell | str]] = [
        [
            Cell(each.name, Colour.BOLD if each.is_used else None),
            f"of version {each.version}" if each.version else "of no cluster",
            "in use" if each.is_used else "",
        ]
        for each in data.shadows
    ]
    return columns(screen, rows) or ["there are no shadow CIBs"]


def render_text(_: Screen, data: Graph) -> list[str]:
    """Write a text as it is."""
    return data.text.splitlines()


def render_schema(_: Screen, data: Schema) -> list[str]:
    """Write the schemas of Pacemaker that are known."""
    return [f"XML is written as {data.written}; every schema up to {data.read_up_to} is read"]


_SECTIONS = frozenset(
    ("params", "meta", "op", "utilization", "operations", "op_params", "op_meta", "rule", "attributes")
)


def _coloured(screen: Screen, line: str) -> str:
    if line.startswith("#"):
        return line
    words = re.split(r"(\s+)", line)
    is_constraint = words[0] in ("location", "colocation", "order", "rsc_ticket", "tag", "group", "clone", "ms")
    painted = [_painted(screen, word, is_constraint) for word in words]
    if words[0]:
        painted[0] = screen.paint_as(words[0], 0)
        painted[2:3] = [screen.paint_as(word, 1) for word in words[2:3]]
    return "".join(painted)


def _painted(screen: Screen, word: str, is_constraint: bool) -> str:
    """Colour a word after the id: keywords, names and values, scores, references."""
    name, equals, value = word.partition("=")
    if equals and name:
        return f"{screen.paint_as(name, 2)}={screen.paint_as(value, 3)}"
    if word in _SECTIONS:
        return screen.paint_as(word, 0)
    if word.endswith(":"):
        return screen.paint_as(word, 4)
    return screen.paint_as(word, 5) if is_constraint and word.strip() else word


_EDIT_COLOURS = {"+": Colour.GREEN, "~": Colour.YELLOW, "-": Colour.RED}


def render_change(screen: Screen, data: Change) -> list[str]:
    """Write what a change did to the configuration."""
    lines = difference_lines(screen, data.difference or "")
    lines = lines or [screen.paint(edit, _EDIT_COLOURS.get(edit[:1])) for edit in data.edits]
    if data.from_version != data.to_version:
        lines.append(f"version {data.from_version} -> {data.to_version}")
    return lines


def render_preview(screen: Screen, data: Preview) -> list[str]:
    """Write what a change would do, and what the cluster would do then."""
    change = data.change or {}
    lines = render_change(screen, read(Change, change)) if change.get("schema") == Change.SCHEMA else []
    actions = data.actions
    lines.append("then the cluster would:" if actions else "the cluster would do nothing")
    probes = Counter(action.node or "" for action in actions if action.is_probe)
    lines += [f"  look for {counted(count, 'resource')} on {node}" for node, count in probes.items()]
    for action in actions:
        if action.is_probe:
            continue
        reason = f" ({action.reason})" if action.reason else ""
        lines += folded(f"{action.text}{reason}", indent="  ", later="    ")
    for each in data.interruptions or ():
        lines += folded(_interruption(each), later="  ")
    return lines


def _interruption(interrupted: Interruption) -> str:
    """Say what stops, and for how long."""
    role = f" as {interrupted.role}" if interrupted.role else ""
    what = f"{interrupted.resource}{role} on {interrupted.node}"
    if interrupted.to is None or interrupted.at_most_ms is None:
        return f"ends: {what}"
    where = "there again" if interrupted.to == interrupted.node else f"on {interrupted.to}"
    measured, longest = interrupted.expected_ms, durations.render(interrupted.at_most_ms)
    expected = "not measured yet" if measured is None else f"{durations.render(measured)} by what was measured last"
    return f"interrupted: {what}, begun {where}: {expected}, {longest} at most"


def render_verify(_screen: Screen, data: Judgement) -> list[str]:
    """Write the judgement in a word; the reports are shown like all others."""
    if not data.is_valid:
        return ["not valid"]
    count = len(data.reports)
    return ["valid" if not count else f"valid, with {count} warning{'s' if count > 1 else ''}"]


def render_validations(screen: Screen, data: AgentVerdicts) -> list[str]:
    """Write what agents said of their resources' parameters."""
    colours = {"fine": Colour.GREEN, "objects": Colour.RED}
    return columns(screen, [
        [Cell(row.resource, Colour.BOLD), row.agent,
         Cell(row.verdict, colours.get(row.verdict, Colour.YELLOW)), row.reason]
        for row in data.validations
    ])  # fmt: skip


def render_properties(screen: Screen, data: Properties) -> list[str]:
    """Write properties with their values; of one, the value only, for scripts."""
    rows = data.properties
    if len(rows) == 1:
        return [rows[0].value]
    return columns(screen, [
        [Cell(row.name, None if row.is_default else Colour.BOLD), row.value,
         row.meaning]
        for row in rows
    ])  # fmt: skip


def render_nothing(_screen: Screen, _data: object) -> list[str]:
    """Write nothing: the reports say it."""
    return []


def render_setup(_screen: Screen, data: Setup) -> list[str]:
    """Write where a new cluster's files are, and what to do with them."""
    count = len(data.nodes)
    what = data.nodes[0] if count == 1 else f"files for {count} nodes"
    lines = [f"{data.name}: {what} in {data.directory}"]
    lines += [f"  {each}" for each in data.files]
    return [*lines, *data.next_steps]


def render_invitation(screen: Screen, data: Invitation) -> list[str]:
    """Write what to type on the new machine, and until when."""
    until = screen.clock(data.expires, data.now)
    return [
        "On the new machine, as root, type the command and then, when it asks for it, the token:",
        "",
        f"  {data.command}",
        f"  {data.token}",
        "",
        f"It is good for one machine, until {until}; this node waits for it at {' '.join(data.listens_at)}.",
    ]


def render_certificates(screen: Screen, data: Certificates) -> list[str]:
    """Write whose certificate is good for how long, and which are not accepted."""
    rows: list[list[Cell | str]] = []
    for each in data.certificates:
        standing = each.standing + (" (revoked)" if each.is_revoked else "")
        rows.append([Cell(each.node, Colour.BOLD), each.fingerprint[:16], standing])
    revoked = data.revoked
    lines = columns(screen, rows)
    return [*lines, *([f"not accepted any more: {', '.join(each[:16] for each in revoked)}"] if revoked else [])]


def render_verdict(_screen: Screen, data: Verdict) -> list[str]:
    """Write the verdict on one line, as monitoring wants it."""
    return [f"{data.verdict}: {data.text}"]


def render_setting(_: Screen, data: Setting) -> list[str]:
    """Write settings of a resource or node, one a line; of one that was asked for by its name, the value alone."""
    values = data.values
    if data.name:
        return [values[data.name]]
    return [f"{name}={values[name]}" for name in values]


def render_alerts(screen: Screen, data: Alerts) -> list[str]:
    """Write who is called for what, one recipient a line."""
    lines: list[str] = []
    for row in data.alerts:
        kinds = [f"{kind} ({', '.join(row.attribute_names)})" if kind == "attributes" and row.attribute_names else kind
                 for kind in row.select]  # fmt: skip
        words = [f"{screen.paint(row.id, Colour.BOLD)}: {row.path}"]
        words += [f"to {row.recipient}"] if row.recipient else []
        words += [f"for {', '.join(kinds)}"]
        lines.append(" ".join(words) + ("" if row.is_enabled else "; switched off"))
        if row.waiting:
            lines.append(f"  {row.waiting} waiting")
        if row.dropped:
            lines.append("  " + screen.paint(f"{row.dropped} dropped: its agent is too slow", Colour.YELLOW))
    return lines or ["no alerts"]


def render_alert_tests(screen: Screen, data: AlertTests) -> list[str]:
    """Write how each agent ended, and the last that it said."""
    lines: list[str] = []
    for row in data.tests:
        if not row.is_done:
            end, colour = "not ended yet", Colour.YELLOW
        elif row.problem:
            end, colour = row.problem, Colour.RED
        else:
            end, colour = f"exit code {row.exit_code}", Colour.GREEN
        to = f" to {row.recipient}" if row.recipient else ""
        after = f" after {span(row.executed_ms)}" if row.is_done else ""
        lines.append(f"{screen.paint(row.id, Colour.BOLD)}: {row.path}{to}: {screen.paint(end, colour)}{after}")
        lines += [f"    {printable(line)}" for line in row.output.splitlines()[-5:]]
    return lines


def render_tickets(screen: Screen, data: Tickets) -> list[str]:
    """Write tickets and what needs them."""
    now = data.now
    lines: list[str] = []
    for ticket in data.tickets:
        is_granted = ticket.is_granted
        words = screen.paint("granted" if is_granted else "revoked", Colour.GREEN if is_granted else Colour.YELLOW)
        words += " (standby)" if ticket.is_standby else ""
        granted_at = ticket.last_granted
        when = f", last granted {screen.clock(granted_at, now)}" if granted_at is not None else ""
        lines.append(f"{screen.paint(ticket.ticket, Colour.BOLD)}: {words}{when}")
        for each in ticket.resources:
            role = f":{each.role}" if each.role else ""
            lines.append(f"  needed by {each.resource}{role}, when lost: {each.loss_policy}")
    return lines or ["no tickets"]


def render_token(screen: Screen, data: Token) -> list[str]:
    """Write a token that has just been made: it is never shown again."""
    lines = [data.token or ""] if data.token else []
    return [*lines, f"role {data.role}, {_until(screen, data, data.now)}"]


def render_token_list(screen: Screen, data: Tokens) -> list[str]:
    """Write the API tokens, one a line."""
    rows: list[list[Cell | str]] = [
        [Cell(each.name, Colour.BOLD), each.role, _until(screen, each, data.now),
         f"made by {each.author}"]
        for each in data.tokens
    ]  # fmt: skip
    return columns(screen, rows) if rows else ["no API tokens"]


def _until(screen: Screen, token: ShownToken, now: int) -> str:
    expires_at = token.expires_at
    if expires_at is None:
        return "does not expire"
    return f"{'expired' if expires_at <= now else 'expires'} {screen.clock(expires_at, now)}"


def render_secrets(screen: Screen, data: SecretTable) -> list[str]:
    """Write the secrets, one a line, and who cannot open them."""
    rows: list[list[Cell | str]] = [
        [Cell(each.name, Colour.BOLD), f"set {screen.clock(each.set_at, data.now)} by {each.author}",
         f"used by {', '.join(each.used_by)}" if each.used_by else "not used"]
        for each in data.secrets
    ]  # fmt: skip
    lines = columns(screen, rows) if rows else ["no secrets"]
    closed = ", ".join(data.cannot_open)
    return [*lines, screen.paint(f"cannot be opened on {closed}", Colour.WARN)] if closed else lines


def render_secret(_: Screen, data: SecretValue) -> list[str]:
    """Write the value of a secret, and nothing else."""
    return [data.value]


def render_whoami(_: Screen, data: Identity) -> list[str]:
    """Write as whom one is known."""
    restricted = "; restricted by access control lists" if data.is_restricted else ""
    return [f"{data.author}, role {data.role}{restricted}", *([f"  {data.why}"] if data.why else [])]
