"""Answers of what `crm` does by itself as text: settings, suppositions, scripts, templates, views of the past."""

from itertools import groupby

from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, folded
from haclusterd.verbs.answers.crm import (
    NodeOutputs,
    PastView,
    Scripts,
    ShownSettings,
    ShownSuppositions,
    ShownTemplates,
    TransitionTags,
)


def render_settings(screen: Screen, data: ShownSettings) -> list[str]:
    """Write settings; those that were changed stand out."""
    rows: list[list[Cell | str]] = [
        [Cell(each.name, Colour.BOLD if each.is_changed else None), each.value or "-"] for each in data.options
    ]
    return columns(screen, rows)


def render_suppositions(_: Screen, data: ShownSuppositions) -> list[str]:
    """Write of which state it is, and what is supposed of it."""
    return [f"state: {data.origin}", *(data.supposed or ("nothing is supposed",))]


def render_scripts(screen: Screen, data: Scripts) -> list[str]:
    """Write the scripts by category, or one of them with its parameters."""
    if len(data.scripts) == 1:
        (script,) = data.scripts
        rows: list[list[Cell | str]] = [
            [Cell(each.name, Colour.BOLD), "needed" if each.is_required else each.default and f"({each.default})",
             each.help]
            for each in script.parameters
        ]  # fmt: skip
        example = " ".join(f"{each.name}={each.example}" for each in script.parameters if each.is_required)
        lines = [f"{script.name}: {script.help}", "", *columns(screen, rows, indent=2), ""]
        return [*lines, *script.statements.splitlines(), "", f"crm script run {script.name} {example} --dry-run"]
    lines = []
    for category, scripts in groupby(data.scripts, key=lambda each: each.category):
        lines += [f"{category}:", *columns(screen, [[each.name, each.help] for each in scripts], indent=2)]
    return lines


def render_templates(_: Screen, data: ShownTemplates) -> list[str]:
    """Write configurations in preparation, and scripts."""
    lines = []
    if data.templates:
        lines += ["Templates:", *folded(" ".join(data.templates), indent="  ")]
    names = [f"{name} (loaded)" if name == data.loaded else name for name in data.configs]
    return [*lines, "Configurations:", *(folded(", ".join(names), indent="  ") or ["  none"])]


def render_view(screen: Screen, data: PastView) -> list[str]:
    """Write which part of the past is looked at."""
    rows = [
        ["source", data.source],
        ["from", data.since or "the beginning"],
        ["to", data.until or "now"],
        ["nodes", ", ".join(data.nodes) or "all"],
        ["left out", ", ".join(data.excluded) or "nothing"],
        ["detail", str(data.detail)],
        ["sessions", ", ".join(data.sessions) or "none"],
    ]
    return columns(screen, rows)


def render_outputs(screen: Screen, data: NodeOutputs) -> list[str]:
    """Write what a command said, node by node."""
    lines = []
    for each in data.outputs:
        if each.output:
            lines += [screen.paint(f"== {each.node}", Colour.BOLD), *each.output.splitlines()]
    return lines


def render_tags(screen: Screen, data: TransitionTags) -> list[str]:
    """Write what kinds of things happened during a transition."""
    failed = [screen.paint(tag, Colour.RED) if tag == "error" else tag for tag in data.tags]
    return [f"{data.transition}: {', '.join(failed) or 'nothing'}"]
