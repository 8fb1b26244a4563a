"""The answers of `crm agent` as text. What a program is to read stands in the last line: RESULT key=value ..."""

import shlex

from haclusterd.cli.render.fields import Fields, listed, maybe_number, number, part, text, texts
from haclusterd.cli.render.terminal import WIDTH, Colour, Screen, folded

_COLOURS = {
    "passed": Colour.GOOD, "failed": Colour.BAD, "error": Colour.BAD, "warning": Colour.WARN,
}  # fmt: skip


def render_new(_screen: Screen, data: Fields) -> list[str]:
    """Write what to do next with a new agent."""
    return [f"wrote {text(data, 'file')}", "", "Next:", *(f"  {step}" for step in texts(data, "next_steps"))]


def render_environment(_screen: Screen, data: Fields) -> list[str]:
    """Write a command line and its environment as a shell reads them."""
    environment = part(data, "environment")
    lines = [f"{name}={shlex.quote(text(environment, name))}" for name in environment]
    return [*lines, f"# {shlex.join(texts(data, 'command'))}"]


def render_run(screen: Screen, data: Fields) -> list[str]:
    """Write what an action printed, and how it ended."""
    lines = []
    for stream in ("stdout", "stderr"):
        printed = text(data, stream)
        lines += [screen.paint(f"{stream}:", Colour.BOLD), *printed.splitlines()] if printed else []
    ended = text(data, "name")
    lines.append(f"{text(data, 'action')}: {ended} after {number(data, 'wall_ms')} ms")
    reason = text(data, "reason")
    lines += [f"reason: {reason}"] if reason else []
    code = maybe_number(data, "code")
    shown = "none" if code is None else str(code)
    return [*lines, f"RESULT action={text(data, 'action')} code={shown} wall_ms={number(data, 'wall_ms')}"]


def render_lint(screen: Screen, data: Fields) -> list[str]:
    """Write each finding with the place where it is."""
    lines = []
    agents = listed(data, "agents")
    for agent in agents:
        for finding in listed(agent, "findings"):
            line = number(finding, "line")
            place = f"{text(agent, 'file')}:{line}" if line else text(agent, "file")
            severity = text(finding, "severity")
            painted = screen.paint(severity, _COLOURS.get(severity))
            lines.append(f"{place}: {painted}: {text(finding, 'message')} [{text(finding, 'code')}]")
    counts = part(data, "counts")
    counted = " ".join(f"{name}s={number(counts, name)}" for name in ("error", "warning", "note"))
    return [*lines, f"RESULT agents={len(agents)} {counted}"]


def render_test(screen: Screen, data: Fields) -> list[str]:
    """Write a table of the trials: what was found, or what was tried where it passed."""
    trials = listed(data, "trials")
    longest = max((len(text(each, "name")) for each in trials), default=0)
    lines = []
    for each in trials:
        verdict, name = text(each, "verdict"), text(each, "name")
        said = text(each, "what") if verdict == "passed" else text(each, "detail")
        head = f"{name:<{longest}}  {number(each, 'wall_ms'):>6} ms  "
        start = len("skipped  ") + len(head)
        first, *more = folded(said, width=WIDTH - start) or [""]
        lines.append(f"{screen.paint(f'{verdict:<7}', _COLOURS.get(verdict))}  {head}{first}".rstrip())
        lines += [" " * start + line for line in more]
    counts = part(data, "counts")
    counted = " ".join(f"{name}={number(counts, name)}" for name in ("passed", "failed", "skipped"))
    return [*lines, f"RESULT agent={text(data, 'agent')} {counted} wall_ms={number(data, 'wall_ms')}"]
