"""A plan as text that users of Pacemaker know how to read, and as a graph for Graphviz."""

from collections.abc import Iterator

from haclusterd.cli.render.fields import Fields, flag, listed, maybe_number, number, part, text, texts
from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns
from haclusterd.model import durations

_PLAIN_STATES = {"online": "Online", "offline": "OFFLINE"}
_COLOURS = {"start": Colour.GREEN, "stop": Colour.YELLOW, "fence": Colour.BAD, "recover": Colour.WARN}


def render(screen: Screen, data: Fields) -> list[str]:
    """Write what is so, what would change and why, in which order, and what would be so afterwards."""
    lines = [f"Cluster at {text(data, 'date')}", *_state(screen, part(data, "before"))]
    lines += ["", "Transition Summary:", *_summary(screen, data)]
    lines += [f"  * Warning: {warning}" for warning in texts(data, "warnings")]
    steps = [line for action in listed(data, "actions") for line in _step(action)]
    if steps:
        lines += ["", "In this order:", *steps, "", "Afterwards:", *_state(screen, part(data, "after"))]
    return lines


def _state(screen: Screen, state: Fields) -> list[str]:
    nodes = part(state, "nodes")
    lines = [f"  * Node {name}: {word}" for name, word in nodes.items() if word not in _PLAIN_STATES]
    for word, title in _PLAIN_STATES.items():
        names = [name for name, found in nodes.items() if found == word]
        if names:
            lines.append(f"  * {title}: [ {' '.join(names)} ]")
    rows: list[list[Cell | str]] = [
        [
            Cell(text(row, "resource"), Colour.BOLD),
            text(row, "role"),
            " ".join((text(row, "node"), *texts(row, "flags"))),
        ]
        for row in listed(state, "resources")
    ]
    return [*lines, *columns(screen, rows, indent=4)]


def _summary(screen: Screen, data: Fields) -> list[str]:
    rows = [_change(entry) for entry in listed(data, "summary")]
    return columns(screen, rows, indent=2) if rows else ["  nothing to do"]


def _change(entry: Fields) -> list[Cell | str]:
    action, reason = text(entry, "action"), text(entry, "reason")
    word = Cell(f"* {action.capitalize()}", _COLOURS.get(action))
    if action == "fence":
        return [word, text(entry, "node"), f"( {text(entry, 'op')} )", f"due to: {reason}" if reason else ""]
    here, there = text(entry, "from"), text(entry, "to")
    where = here if here == there else " -> ".join(each for each in (here, there) if each)
    blocked = "blocked" if flag(entry, "blocked") or flag(entry, "impossible") else ""
    because = f"due to: {reason}" if reason else ""
    return [word, text(entry, "resource"), f"( {where} )", " ".join(each for each in (blocked, because) if each)]


def _step(action: Fields) -> Iterator[str]:
    kind = text(action, "kind")
    name = _name(action)
    if kind == "fence":
        yield f"  * Fencing:         {name}"
    elif kind == "cluster":
        yield f"  * Cluster action:  {name}"
    elif kind == "resource":
        yield f"  * Resource action: {name}"


def _name(action: Fields) -> str:
    """Write an action: `web start on n1`."""
    every = maybe_number(action, "interval")
    task = text(action, "task") + (f" every {durations.render(every)}" if every else "")
    if text(action, "kind") == "resource" and task == "monitor":
        task = "probe"
    where = f"on {text(action, 'node')}" if text(action, "node") else ""
    return " ".join(word for word in (text(action, "resource"), task, where) if word)


def render_dot(_screen: Screen, data: Fields) -> list[str]:
    """Write the graph in the language of Graphviz; bookkeeping is orange, as in Pacemaker's."""
    names = {number(action, "id"): f"{_name(action)} #{number(action, 'id')}" for action in listed(data, "actions")}
    lines = ["digraph plan {"]
    for action in listed(data, "actions"):
        is_pseudo = text(action, "kind") == "pseudo"
        style = f'style=bold color="green" fontcolor="{"orange" if is_pseudo else "black"}"'
        lines.append(f"  {_quoted(names[number(action, 'id')])} [ {style} ]")
        for before in texts(action, "after"):
            first = names.get(int(before)) if before.isdecimal() else None
            if first is not None:
                lines.append(f"  {_quoted(first)} -> {_quoted(names[number(action, 'id')])} [ style=bold ]")
    return [*lines, "}"]


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
