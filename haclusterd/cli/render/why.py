"""`resource why` and `resource scores` as text: the answer first, then the sums it comes from, then what to do."""

from haclusterd.cli.render.fields import Fields, flag, listed, part, text, texts
from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, folded


def render_why(screen: Screen, data: Fields) -> list[str]:
    """Write the explanation of a resource; a group's members one after the other."""
    lines: list[str] = []
    for resource in listed(data, "resources"):
        lines += [*_resource(screen, resource), ""]
    return lines[:-1]


def _resource(screen: Screen, resource: Fields) -> list[str]:
    lines = folded(_answer(resource), later="  ")
    lines[0] = lines[0].replace(text(resource, "resource"), screen.paint(text(resource, "resource"), Colour.BOLD), 1)
    for instance in listed(resource, "instances"):
        if text(instance, "detail"):
            lines += folded(f"on {text(instance, 'node')}: {text(instance, 'detail')}", indent="  ", later="    ")
    lines += [f"  next: {each}" for each in texts(resource, "actions")]
    lines += _nodes(screen, resource)
    lines += _promotion(screen, part(resource, "promotion"))
    for advice in texts(resource, "advice"):
        lines += folded(f"-> {advice}", indent="  ", later="     ")
    return lines


def _promotion(screen: Screen, promotion: Fields) -> list[str]:
    """Write how much an instance is to be promoted."""
    if not promotion:
        return []
    rows: list[list[Cell | str]] = [["promotion", text(promotion, "score"), ""]]
    rows += [["", _signed(addend), text(addend, "source")] for addend in listed(promotion, "addends")]
    lines = columns(screen, rows, indent=2)
    for each in texts(promotion, "to_be_promoted"):
        lines += folded(f"-> to be promoted: {each}", indent="  ", later="     ")
    return lines


def _answer(resource: Fields) -> str:
    name = text(resource, "resource")
    group = f" (member of {text(resource, 'group')})" if text(resource, "group") else ""
    now = texts(resource, "now_on")
    where = f"runs on {', '.join(now)}" if now else "runs nowhere"
    following, role = text(resource, "next_on"), text(resource, "next_role")
    if text(resource, "not_wanted"):
        where += f" and is to be stopped: {text(resource, 'not_wanted')}"
    elif not following:
        where += " and can run nowhere"
    elif following not in now:
        where += f" and is to run on {following}" + (f" as {role}" if role else "")
    elif role:
        where += f" as {role}"
    verdict = text(resource, "verdict")
    return f"{name}{group} {where}" + (f": {verdict}" if verdict else "")


def _nodes(screen: Screen, resource: Fields) -> list[str]:
    rows: list[list[Cell | str]] = []
    for node in listed(resource, "nodes"):
        mark = "*" if flag(node, "is_next") else ">" if flag(node, "is_now") else " "
        colour = Colour.GREEN if flag(node, "is_next") else None if flag(node, "is_eligible") else Colour.DIM
        note = text(node, "objection")
        if note:
            note = f"cannot: {note}"
        rows.append([mark, Cell(text(node, "node"), colour), Cell(text(node, "score"), colour), note])
        rows += [["", "", _signed(addend), text(addend, "source")] for addend in listed(node, "addends")]
    return columns(screen, rows, indent=2)


def _signed(addend: Fields) -> str:
    score = text(addend, "score")
    return f"  {score}" if score.startswith("-") else f"  +{score}"


def render_scores(screen: Screen, data: Fields) -> list[str]:
    """Write a table of resources and nodes, each score with its parts."""
    rows: list[list[Cell | str]] = []
    for resource in listed(data, "resources"):
        name = text(resource, "resource")
        for node in listed(resource, "nodes"):
            parts = ", ".join(f"{_signed(each).strip()} {text(each, 'source')}" for each in listed(node, "addends"))
            note = text(node, "objection") or parts
            colour = Colour.GREEN if flag(node, "is_next") else None
            mark = "*" if flag(node, "is_next") else ""
            rows.append([Cell(name, Colour.BOLD), Cell(text(node, "node") + mark, colour), text(node, "score"), note])
            name = ""
    return columns(screen, rows)
