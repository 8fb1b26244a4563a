"""The answers of `crm ra` as text, laid out as users of crmsh know it."""

from collections.abc import Iterator, Mapping

from haclusterd.cli.render.terminal import WIDTH, Colour, Screen, folded
from haclusterd.verbs.answers.agents import AgentClasses, AgentDescription, AgentParameter, AgentTypes


def render_classes(_screen: Screen, data: AgentClasses) -> list[str]:
    """Write a class on each line; those of ocf with their providers."""
    names = " ".join(data.providers)
    return [f"{name} / {names}" if name == "ocf" else name for name in data.classes]


def render_list(_screen: Screen, data: AgentTypes) -> list[str]:
    """Write types in columns."""
    names = data.types
    if not names:
        return ["none on this machine"]
    width = max(map(len, names)) + 2
    count = max(1, WIDTH // width)
    return ["".join(f"{name:<{width}}" for name in names[at : at + count]).rstrip()
            for at in range(0, len(names), count)]  # fmt: skip


def render_info(screen: Screen, data: AgentDescription) -> list[str]:
    """Write what an agent does, its parameters, its operations."""
    short, long = data.shortdesc, data.longdesc
    lines = [screen.paint(f"{short} ({data.agent})" if short else data.agent, Colour.BOLD), ""]
    lines += [*long.splitlines(), ""] if long and long != short else []
    if data.parameters:
        lines += [screen.paint("Parameters (*: required, []: default):", Colour.BOLD), ""]
    for parameter in data.parameters:
        lines += _parameter(parameter)
    if data.actions:
        lines += [screen.paint("Operations' defaults (advisory minimum):", Colour.BOLD), ""]
        lines += (f"    {each.get('name', ''):<13} {_settings(each)}".rstrip() for each in data.actions)
    return lines


def _parameter(parameter: AgentParameter) -> Iterator[str]:
    kind = f"{parameter.type}: {', '.join(parameter.options)}" if parameter.options else parameter.type
    kind += f", [{parameter.default}]" if parameter.default else ""
    star = "*" if parameter.is_required else ""
    yield f"{parameter.name}{star} ({kind}): {parameter.shortdesc}".rstrip()
    if parameter.longdesc and parameter.longdesc != parameter.shortdesc:
        for line in parameter.longdesc.splitlines():
            yield from folded(line, indent="    ") if line else [""]
    yield ""


def _settings(action: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in action.items() if name != "name")
