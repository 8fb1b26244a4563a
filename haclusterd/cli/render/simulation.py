"""A plan as text that users of Pacemaker know how to read, and as a graph for Graphviz."""

from collections.abc import Iterator

from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns
from haclusterd.model import durations
from haclusterd.verbs.answers.simulation import PlannedAction, PlannedChange, SimulatedState, Simulation
from haclusterd.wire.dot_text import quoted

_PLAIN_STATES = {"online": "Online", "offline": "OFFLINE"}
_COLOURS = {"start": Colour.GREEN, "stop": Colour.YELLOW, "fence": Colour.BAD, "recover": Colour.WARN}


def render(screen: Screen, data: Simulation) -> list[str]:
    """Write what is so, what would change and why, in which order, and what would be so afterwards."""
    lines = [f"Cluster at {data.date}", *_state(screen, data.before)]
    lines += ["", "Transition Summary:", *_summary(screen, data)]
    lines += [f"  * Warning: {warning}" for warning in data.warnings]
    steps = [line for action in data.actions for line in _step(action)]
    if steps:
        lines += ["", "In this order:", *steps, "", "Afterwards:", *_state(screen, data.after)]
    return lines


def _state(screen: Screen, state: SimulatedState) -> list[str]:
    lines = [f"  * Node {name}: {word}" for name, word in state.nodes.items() if word not in _PLAIN_STATES]
    for word, title in _PLAIN_STATES.items():
        names = [name for name, found in state.nodes.items() if found == word]
        if names:
            lines.append(f"  * {title}: [ {' '.join(names)} ]")
    rows: list[list[Cell | str]] = [
        [Cell(row.resource, Colour.BOLD), row.role, " ".join((row.node or "", *(row.flags or ())))]
        for row in state.resources
    ]
    return [*lines, *columns(screen, rows, indent=4)]


def _summary(screen: Screen, data: Simulation) -> list[str]:
    rows = [_change(entry) for entry in data.summary]
    return columns(screen, rows, indent=2) if rows else ["  nothing to do"]


def _change(change: PlannedChange) -> list[Cell | str]:
    word = Cell(f"* {change.action.capitalize()}", _COLOURS.get(change.action))
    because = f"due to: {change.reason}" if change.reason else ""
    if change.action == "fence":
        return [word, change.node or "", f"( {change.op or ''} )", because]
    where = change.from_ or "" if change.from_ == change.to else " -> ".join(filter(None, (change.from_, change.to)))
    blocked = "blocked" if change.blocked or change.impossible else ""
    return [word, change.resource or "", f"( {where} )", " ".join(filter(None, (blocked, because)))]


def _step(action: PlannedAction) -> Iterator[str]:
    name = _name(action)
    if action.kind == "fence":
        yield f"  * Fencing:         {name}"
    elif action.kind == "cluster":
        yield f"  * Cluster action:  {name}"
    elif action.kind == "resource":
        yield f"  * Resource action: {name}"


def _name(action: PlannedAction) -> str:
    """Write an action: `web start on n1`."""
    task = action.task + (f" every {durations.render(action.interval)}" if action.interval else "")
    if action.kind == "resource" and task == "monitor":
        task = "probe"
    where = f"on {action.node}" if action.node else ""
    return " ".join(word for word in (action.resource, task, where) if word)


def render_dot(_screen: Screen, data: Simulation) -> list[str]:
    """Write the graph in the language of Graphviz; bookkeeping is orange, as in Pacemaker's."""
    names = {action.id: f"{_name(action)} #{action.id}" for action in data.actions}
    lines = ["digraph plan {"]
    for action in data.actions:
        style = f'style=bold color="green" fontcolor="{"orange" if action.kind == "pseudo" else "black"}"'
        lines.append(f"  {quoted(names[action.id])} [ {style} ]")
        for before in action.after:
            if before in names:
                lines.append(f"  {quoted(names[before])} -> {quoted(names[action.id])} [ style=bold ]")
    return [*lines, "}"]
