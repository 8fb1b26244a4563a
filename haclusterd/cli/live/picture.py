"""The picture of `crm monitor`: what is known, what is wanted and the size of the terminal make the lines. Pure.

Never more lines than there are rows, none wider than the columns, whatever they are; the verdict is the last to go.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from haclusterd.cli.live.failover import last_failover, render_failover
from haclusterd.cli.live.view import KEYS, Pane, View
from haclusterd.cli.render.gpus import render_devices
from haclusterd.cli.render.lines import cut, folded, plain, width_of
from haclusterd.cli.render.status import (
    GRAVITY,
    failure_lines,
    fencing_lines,
    gpus_of,
    headline_lines,
    in_flight_lines,
    management_note,
    move_lines,
    node_lines,
    node_state,
    state_cell,
)
from haclusterd.cli.render.tables import event_lines
from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, span
from haclusterd.cli.render.why import render_why
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, replace
from haclusterd.verbs.answers.answer import read
from haclusterd.verbs.answers.devices import Devices
from haclusterd.verbs.answers.history import Events, ShownEvent
from haclusterd.verbs.answers.node import AttributesOfNodes, Node, NodeAttributes
from haclusterd.verbs.answers.resource import Why
from haclusterd.verbs.answers.status import ShownInstance, ShownResource, Status

OLD_MS = 2_000
"""A picture that is older than this says so."""
PANE_FROM_ROWS = 12
"""In fewer rows a pane takes the place of the resources."""
_DEVICE = re.compile(r"gpu-(.+)-(state|why)$")
_LEVELS = {"ok": Colour.GREEN, "degraded": Colour.YELLOW, "drain": Colour.YELLOW}


@dataclass(frozen=True, slots=True)
class Size:
    """Of a terminal."""

    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Aside:
    """What was asked for a pane, and answered."""

    verb: str
    arguments: Mapping[str, Json]
    data: Json = None
    problem: str = ""
    """Why there is no answer; empty: there is one."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the cluster."""

    status: Status
    age_ms: int = 0
    """How old the status is."""
    problem: str = ""
    """Why the newest question was not answered; empty: it was."""
    remedy: str = ""
    is_followed: bool = True
    """Whether events come as they happen."""
    events: tuple[ShownEvent, ...] = ()
    """Oldest first."""
    aside: Aside | None = None


def question_of(view: View, status: Status) -> tuple[str, Mapping[str, Json]] | None:
    """Return the verb and its arguments that the pane of a view needs; None: nothing that is not known anyway."""
    if view.pane is Pane.WHY:
        resource = chosen(view, status)
        return ("resource.why", {"resource": resource}) if resource else None
    if view.pane is Pane.GPUS and any(node.gpus is not None for node in status.nodes):
        return "gpu.list", {}
    if view.pane in (Pane.ATTRIBUTES, Pane.GPUS):
        return "node.attributes", {"all": True}
    return None


def draw(screen: Screen, known: Known, view: View, size: Size) -> list[str]:
    """Return the lines of the picture."""
    rows = max(1, size.rows)
    head = _head(screen, known, view, size)
    foot = [_foot(view)] if rows >= 6 else []
    body = _body(screen, known, view, replace(size, rows=rows - len(head) - len(foot)))
    empty = [""] * (rows - len(head) - len(foot) - len(body))
    return [cut(line, max(1, size.columns)) for line in (*head, *body, *empty, *foot)][:rows]


# The head: the verdict, how old it is, what is wrong, what to type, what people forget.


def _head(screen: Screen, known: Known, view: View, size: Size) -> list[str]:
    top = _top(screen, known, view)
    if size.rows < 3:
        return [top]
    lines = [known.problem, f"  -> {known.remedy}"] if known.remedy else [known.problem] if known.problem else []
    lines += headline_lines(screen, known.status, size.columns)
    lines += [each.strip() for each in move_lines(screen, known.status)]
    shown = [part for line in lines for part in folded(line, max(1, size.columns))]
    room = max(1, size.rows // 3)
    return [top, *_gravest(shown, room)]


def _gravest(lines: Sequence[str], room: int) -> list[str]:
    """Return as many lines as there is room for: the first ones, and a command to type, if there is any."""
    if len(lines) <= room:
        return list(lines)
    advice = [line for line in lines if plain(line).lstrip().startswith("->")][:1] if room > 1 else []
    more = [f"and {len(lines) - room + 1} more lines: crm status"] if room > 2 else []
    kept = list(lines[: room - len(more)])
    if advice and advice[0] not in kept:
        kept[-1] = advice[0]
    return [*kept, *more]


def _top(screen: Screen, known: Known, view: View) -> str:
    status, quorum = known.status, known.status.quorum
    verdict = screen.paint(status.verdict or "UNKNOWN", GRAVITY.get(status.gravity))
    has = "quorum" if quorum.has else "NO QUORUM"
    votes = f"{has} {quorum.connected}/{quorum.voters}" if quorum.known else f"{quorum.voters} voters"
    parts = [verdict, _age(screen, known, view), f"DC {status.dc or 'none'}", votes,
             f"configuration {status.configuration.version}", status.cluster]  # fmt: skip
    if status.moves:
        number = len(status.moves)
        parts.insert(2, screen.paint("1 move or ban" if number == 1 else f"{number} moves and bans", Colour.YELLOW))
    if status.maintenance:
        parts.insert(2, screen.paint("maintenance", Colour.YELLOW))
    if status.transition is not None:
        parts.insert(2, f"{status.transition.done} of {status.transition.total} actions")
    if known.problem:
        parts = [screen.paint("NO ANSWER", Colour.BAD), parts[1], f"was {verdict}", *parts[2:]]
    return " | ".join(part for part in parts if part)


def _age(screen: Screen, known: Known, view: View) -> str:
    old = screen.paint(f"{span(known.age_ms)} OLD", Colour.WARN)
    if view.is_paused:
        return f"{screen.paint('PAUSED', Colour.WARN)}, {span(known.age_ms)} old"
    if known.problem or known.age_ms > OLD_MS:
        return old
    return "live" if known.is_followed else "asked every few seconds"


def _foot(view: View) -> str:
    if view.is_typing:
        return f"filter: {view.filter}_ (Enter, Esc)"
    only = f"filter {view.filter}  " if view.filter else ""
    return f"{only}?=keys q=quit w=why t=failover h=history f=failures a=attributes n=nodes g=GPUs /=filter"


# The body: resources above, a pane below, each with the room that the other leaves.


def _body(screen: Screen, known: Known, view: View, size: Size) -> list[str]:
    room = size.rows
    if room < 1:
        return []
    if view.pane is Pane.NONE:
        return _resources(screen, known, view, size)
    if room < PANE_FROM_ROWS:
        return _resources(screen, known, view, size) if view.pane is Pane.TIMELINE else _pane(screen, known, view, size)
    below = _pane_lines(screen, known, view, size.columns)
    above = max(room - len(below) - 2, room // 2)
    shown = _resources(screen, known, view, replace(size, rows=above))
    return [*shown, "", *_pane(screen, known, view, replace(size, rows=room - len(shown) - 1))]


def _pane(screen: Screen, known: Known, view: View, size: Size) -> list[str]:
    lines = _pane_lines(screen, known, view, size.columns)
    about = f" {chosen(view, known.status)}" if view.pane is Pane.WHY else ""
    title = f"-- {view.pane}{about} --"
    room = size.rows - 1
    # The newest events are the last ones: their pane begins at its end, and scrolls back.
    is_from_end = view.pane is Pane.HISTORY
    most = max(0, len(lines) - room)
    scroll = min(view.scroll, most)
    first = most - scroll if is_from_end else scroll
    if most:
        title += f" {first + 1}-{min(first + room, len(lines))} of {len(lines)} lines, PageUp PageDown"
    return [screen.paint(title, Colour.BOLD), *lines[first : first + max(0, room)]]


def _pane_lines(screen: Screen, known: Known, view: View, width: int) -> list[str]:
    lines = _PANES[view.pane](screen, known, view)
    return [part for line in lines for part in folded(line, max(1, width))]


def _timeline(screen: Screen, known: Known, _: View) -> list[str]:
    found = last_failover(known.events)
    lines = in_flight_lines(screen, known.status)
    if found is None:
        return [*lines, "nothing has failed, as far as this node's history goes"]
    return [*render_failover(screen, found, known.status.now), *lines]


def _history(screen: Screen, known: Known, _: View) -> list[str]:
    events = Events(known.status.now, 0, 0, known.events, "")
    return event_lines(screen, events) or ["nothing is in this node's history"]


def _failures(screen: Screen, known: Known, _: View) -> list[str]:
    failures = failure_lines(screen, known.status) or ["no failure is remembered"]
    return [*failures, *fencing_lines(screen, known.status)]


def _why(screen: Screen, known: Known, view: View) -> list[str]:
    return _answered(known, view, lambda data: render_why(screen, read(Why, data)))


def _attributes(screen: Screen, known: Known, view: View) -> list[str]:
    return _answered(known, view, lambda data: [
        line for node in read(AttributesOfNodes, data).nodes for line in _attributes_of(screen, node)
    ])  # fmt: skip


def _attributes_of(screen: Screen, node: NodeAttributes) -> Iterator[str]:
    yield screen.paint(node.name, Colour.BOLD)
    for values, lifetime in ((node.forever, ""), (node.reboot, " (until reboot)")):
        for name in sorted(values or {}):
            yield f"  {name}={(values or {})[name]}{lifetime}"


def _gpus(screen: Screen, known: Known, view: View) -> list[str]:
    def lines(data: Json) -> list[str]:
        if known.aside is not None and known.aside.verb == "gpu.list":
            return render_devices(screen, read(Devices, data))
        nodes = read(AttributesOfNodes, data).nodes
        return [line for node in nodes for line in _gpus_of(screen, node)] or [
            "no node has GPUs, or publishes them: crm ra info ocf:haclusterd:gpu-health"
        ]

    return _answered(known, view, lines)


def _gpus_of(screen: Screen, node: NodeAttributes) -> list[str]:
    values = node.reboot or {}
    devices: dict[str, dict[str, str]] = {}
    for name, value in values.items():
        found = _DEVICE.match(name)
        if found:
            devices.setdefault(found[1], {})[found[2]] = value
    if not devices and "gpu-driver" not in values:
        return []
    why = values.get("gpu-why", "")
    head = f"{node.name}: driver {values.get('gpu-driver', 'unknown')}, {values.get('gpu-usable', '?')} usable"
    rows: list[list[Cell | str]] = [
        [bus, Cell(each.get("state", "unknown"), _LEVELS.get(each.get("state", ""), Colour.BAD)), each.get("why", "")]
        for bus, each in sorted(devices.items())
    ]
    return [screen.paint(head, Colour.BOLD) + (f": {why}" if why else ""), *columns(screen, rows, indent=2)]


def _answered(known: Known, view: View, lines: Callable[[Json], list[str]]) -> list[str]:
    """Return the lines of an answer that was asked for this pane."""
    aside = known.aside
    if aside is None or (aside.verb, aside.arguments) != question_of(view, known.status):
        return ["asking ..."] if question_of(view, known.status) else ["there is nothing to ask about"]
    return [aside.problem] if aside.problem else lines(aside.data)


def _keys(screen: Screen, _known: Known, _view: View) -> list[str]:
    return columns(screen, [list(row) for row in KEYS], indent=2)


def _nothing(_screen: Screen, _known: Known, _view: View) -> list[str]:
    return []


_PANES: Mapping[Pane, Callable[[Screen, Known, View], list[str]]] = {
    Pane.NONE: _nothing, Pane.TIMELINE: _timeline, Pane.WHY: _why, Pane.HISTORY: _history, Pane.FAILURES: _failures,
    Pane.ATTRIBUTES: _attributes, Pane.GPUS: _gpus, Pane.HELP: _keys,
}  # fmt: skip


# Resources


@dataclass(frozen=True, slots=True)
class _Row:
    resource: ShownResource
    depth: int

    @property
    def name(self) -> str:
        return "  " * self.depth + self.resource.id


def selectable(view: View, status: Status) -> tuple[str, ...]:
    """Return the resources that a view shows, in their order."""
    return tuple(dict.fromkeys(row.resource.id for row in _rows(view, status)))


def chosen(view: View, status: Status) -> str:
    """Return the selected resource, the first one where none that is shown is selected; empty: none is shown."""
    known = selectable(view, status)
    return view.selected if view.selected in known else next(iter(known), "")


def _rows(view: View, status: Status) -> list[_Row]:
    return [row for resource in status.resources for row in _below(view, resource, 0, is_wanted=False)]


def _below(view: View, resource: ShownResource, depth: int, *, is_wanted: bool) -> list[_Row]:
    """Return the rows of a resource and its members; of what contains others, only with a member that is shown."""
    is_found = is_wanted or view.filter.lower() in resource.id.lower()
    if resource.members:
        inside = [row for each in resource.members for row in _below(view, each, depth + 1, is_wanted=is_found)]
        return [_Row(resource, depth), *inside] if inside else []
    instances = resource.instances or ()
    is_there = any(view.filter.lower() in each.node.lower() for each in instances)
    is_hidden = not view.has_stopped and bool(resource.not_wanted) and not instances
    return [_Row(resource, depth)] if (is_found or is_there) and not is_hidden else []


def _resources(screen: Screen, known: Known, view: View, size: Size) -> list[str]:
    """Return the rows that fit, with the selected one among them."""
    head, body, marked = _table(screen, known.status, view, size.columns)
    if not body:
        return ["no resource fits the filter" if view.filter else "there are no resources"][: size.rows]
    head = head if size.rows > len(head) + 1 else []
    room = size.rows - len(head)
    first = max(0, min(marked - room // 2, len(body) - room))
    shown = body[first : first + room]
    if len(body) > room and head:
        place = f"{first + 1}-{first + len(shown)} of {len(body)}"
        empty = len(head[0]) - len(head[0].lstrip())
        head[0] = place + head[0][len(place) :] if len(place) < empty else head[0]
    return [*head, *shown]


def _table(screen: Screen, status: Status, view: View, width: int) -> tuple[list[str], list[str], int]:
    """Return the lines above the rows, the rows, and the number of the first selected one."""
    rows, choice = _rows(view, status), chosen(view, status)
    head: list[str] = []
    if view.is_by_node:
        lines, names = _by_node(screen, status, rows)
    else:
        head, lines = _grid(screen, status, rows, width - 2) or ([], _list(screen, rows))
        names = [row.resource.id for row in rows]
    marks = [name == choice for name in names]
    body = [_marked(screen, line, is_marked=mark) for line, mark in zip(lines, marks, strict=True)]
    return [f"  {each}" for each in head], body, marks.index(True) if True in marks else 0


def _marked(screen: Screen, line: str, *, is_marked: bool) -> str:
    return screen.paint(f"> {plain(line)}", Colour.CHOSEN) if is_marked else f"  {line}"


def _grid(
    screen: Screen, status: Status, rows: Sequence[_Row], width: int
) -> tuple[list[str], list[str]] | None:
    """Return a table of resources and nodes, its head apart; None: it is too wide."""
    nodes = [node for node in status.nodes if not node.is_witness]
    table: list[list[Cell | str]] = [
        ["", *(Cell(node.name, Colour.BOLD) for node in nodes)],
        ["", *(node_state(node) for node in nodes)],
    ]
    if any(node.gpus is not None for node in nodes):
        table.append([Cell("GPUs", Colour.DIM), *(_gpus_in_short(node) for node in nodes)])
    heads = len(table)
    for row in rows:
        by_node = {each.node: each for each in row.resource.instances or ()}
        cells = [_on_node(by_node[node.name]) if node.name in by_node else Cell("-", Colour.DIM) for node in nodes]
        table.append([Cell(row.name, Colour.BOLD), *(cells if not row.resource.members else ())])
    lines = columns(screen, table)
    wide = max(map(width_of, lines))
    if wide > width:
        return None
    # A remark that is too long for the terminal is cut: `why` has all of it.
    remarks = [_remark(row.resource) for row in rows]
    body = [
        f"{line}{' ' * (wide - width_of(line) + 2)}{screen.paint(remark.text, remark.colour)}" if remark.text else line
        for line, remark in zip(lines[heads:], remarks, strict=True)
    ]
    return lines[:heads], body


def _gpus_in_short(node: Node) -> Cell:
    cell = gpus_of(node)
    return Cell(cell.text.replace(" GPUs", "") or "-", cell.colour or Colour.DIM)


_WORDS = {
    "starting": ("starting", Colour.CYAN), "stopping": ("stopping", Colour.CYAN), "failed": ("FAILED", Colour.BAD),
    "blocked": ("BLOCKED", Colour.BAD), "unverified": ("looked for", Colour.YELLOW), "lost": ("may run", Colour.BAD),
}  # fmt: skip


def _on_node(instance: ShownInstance) -> Cell:
    if instance.state == "started":
        return Cell(instance.role.lower() or "started", Colour.GREEN)
    word, colour = _WORDS.get(instance.state, (instance.state, Colour.YELLOW))
    return Cell(word, colour)


def _remark(resource: ShownResource) -> Cell:
    if resource.members:
        return Cell(f"{resource.kind}, promotable" if resource.is_promotable else resource.kind, Colour.DIM)
    details = [each.detail for each in resource.instances or () if each.state in ("failed", "blocked") and each.detail]
    words = [management_note(resource), *details]
    if not resource.instances:
        stopped = state_cell(resource)
        return Cell(" ".join(word for word in (stopped.text, *words) if word), stopped.colour)
    return Cell(" ".join(word for word in words if word), Colour.YELLOW)


def _list(screen: Screen, rows: Sequence[_Row]) -> list[str]:
    """Return a line for each resource, where the table is too wide."""
    return columns(screen, [
        [Cell(row.name, Colour.BOLD), _remark(row.resource) if row.resource.members else state_cell(row.resource),
         management_note(row.resource) if row.resource.instances else ""]
        for row in rows
    ])  # fmt: skip


def _by_node(screen: Screen, status: Status, rows: Sequence[_Row]) -> tuple[list[str], list[str]]:
    """Return each node with what runs there below it, what runs nowhere last; and the resource of each line."""
    lines: list[str] = []
    names: list[str] = []
    primitives = [row.resource for row in rows if not row.resource.members]
    for node in status.nodes:
        found = [line.strip() for line in node_lines(screen, [node], status.now)]
        here = [(each, one) for each in primitives for one in each.instances or () if one.node == node.name]
        lines += found
        names += [""] * len(found)
        lines += columns(screen, [[each.id, _on_node(one)] for each, one in here], indent=2)
        names += [each.id for each, _ in here]
    nowhere = [each for each in primitives if not each.instances]
    if nowhere:
        lines += ["on no node", *columns(screen, [[each.id, state_cell(each)] for each in nowhere], indent=2)]
        names += ["", *(each.id for each in nowhere)]
    return lines, names
