"""The answers of `crm agent` as text. Programs read the last line: RESULT key=value ..."""

import shlex

from haclusterd.cli.render.terminal import WIDTH, Colour, Screen, folded
from haclusterd.verbs.answers.agents import AgentEnvironment, AgentLint, AgentRun, AgentTrials, NewAgent

_COLOURS = {
    "passed": Colour.GOOD, "failed": Colour.BAD, "error": Colour.BAD, "warning": Colour.WARN,
}  # fmt: skip


def render_new(_screen: Screen, data: NewAgent) -> list[str]:
    """Write what to do next with a new agent."""
    return [f"wrote {data.file}", "", "Next:", *(f"  {step}" for step in data.next_steps)]


def render_environment(_screen: Screen, data: AgentEnvironment) -> list[str]:
    """Write a command line and its environment as a shell reads them."""
    lines = [f"{name}={shlex.quote(value)}" for name, value in data.environment.items()]
    return [*lines, f"# {shlex.join(data.command)}"]


def render_run(screen: Screen, data: AgentRun) -> list[str]:
    """Write what an action printed, and how it ended."""
    lines = []
    for stream, printed in (("stdout", data.stdout), ("stderr", data.stderr)):
        lines += [screen.paint(f"{stream}:", Colour.BOLD), *printed.splitlines()] if printed else []
    lines.append(f"{data.action}: {data.name} after {data.wall_ms} ms")
    lines += [f"reason: {data.reason}"] if data.reason else []
    shown = "none" if data.code is None else str(data.code)
    return [*lines, f"RESULT action={data.action} code={shown} wall_ms={data.wall_ms}"]


def render_lint(screen: Screen, data: AgentLint) -> list[str]:
    """Write each finding with the place where it is."""
    lines = []
    for agent in data.agents:
        for finding in agent.findings:
            place = f"{agent.file}:{finding.line}" if finding.line else agent.file
            painted = screen.paint(finding.severity, _COLOURS.get(finding.severity))
            lines.append(f"{place}: {painted}: {finding.message} [{finding.code}]")
    counts = data.counts
    counted = f"errors={counts.error} warnings={counts.warning} notes={counts.note}"
    return [*lines, f"RESULT agents={len(data.agents)} {counted}"]


def render_test(screen: Screen, data: AgentTrials) -> list[str]:
    """Write a table of the trials: what was found, or what was tried where it passed."""
    longest = max((len(each.name) for each in data.trials), default=0)
    lines = []
    for each in data.trials:
        shown = each.what if each.verdict == "passed" else each.detail
        head = f"{each.name:<{longest}}  {each.wall_ms:>6} ms  "
        start = len("skipped  ") + len(head)
        first, *more = folded(shown, width=WIDTH - start) or [""]
        lines.append(f"{screen.paint(f'{each.verdict:<7}', _COLOURS.get(each.verdict))}  {head}{first}".rstrip())
        lines += [" " * start + line for line in more]
    counts = data.counts
    counted = f"passed={counts.passed} failed={counts.failed} skipped={counts.skipped}"
    return [*lines, f"RESULT agent={data.agent} {counted} wall_ms={data.wall_ms}"]
