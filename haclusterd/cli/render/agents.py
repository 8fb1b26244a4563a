"""The answers of `crm ra` as text, laid out as users of crmsh know it."""

from collections.abc import Iterator

from haclusterd.cli.render.fields import Fields, flag, listed, text, texts
from haclusterd.cli.render.terminal import WIDTH, Colour, Screen, folded


def render_classes(_screen: Screen, data: Fields) -> list[str]:
    """Write a class on each line; those of ocf with their providers."""
    names = " ".join(texts(data, "providers"))
    return [f"{name} / {names}" if name == "ocf" else name for name in texts(data, "classes")]


def render_list(_screen: Screen, data: Fields) -> list[str]:
    """Write types in columns."""
    names = texts(data, "types")
    if not names:
        return ["none on this machine"]
    width = max(map(len, names)) + 2
    count = max(1, WIDTH // width)
    return ["".join(f"{name:<{width}}" for name in names[at : at + count]).rstrip()
            for at in range(0, len(names), count)]  # fmt: skip


def render_info(screen: Screen, data: Fields) -> list[str]:
    """Write what an agent does, its parameters, its operations."""
    short = text(data, "shortdesc")
    lines = [screen.paint(f"{short} ({text(data, 'agent')})" if short else text(data, "agent"), Colour.BOLD), ""]
    long = text(data, "longdesc")
    lines += [*long.splitlines(), ""] if long and long != short else []
    parameters = listed(data, "parameters")
    if parameters:
        lines += [screen.paint("Parameters (*: required, []: default):", Colour.BOLD), ""]
    for parameter in parameters:
        lines += _parameter(parameter)
    actions = listed(data, "actions")
    if actions:
        lines += [screen.paint("Operations' defaults (advisory minimum):", Colour.BOLD), ""]
        lines += (f"    {text(each, 'name'):<13} {_settings(each)}".rstrip() for each in actions)
    return lines


def _parameter(parameter: Fields) -> Iterator[str]:
    kind = text(parameter, "type")
    options = texts(parameter, "options")
    kind = f"{kind}: {', '.join(options)}" if options else kind
    default = text(parameter, "default")
    star = "*" if flag(parameter, "is_required") else ""
    short = text(parameter, "shortdesc")
    yield f"{text(parameter, 'name')}{star} ({kind}{f', [{default}]' if default else ''}): {short}".rstrip()
    long = text(parameter, "longdesc")
    if long and long != short:
        for line in long.splitlines():
            yield from folded(line, indent="    ") if line else [""]
    yield ""


def _settings(action: Fields) -> str:
    return " ".join(f"{name}={value}" for name, value in action.items() if name != "name")
