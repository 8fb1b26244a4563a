"""`resource why` and `resource scores` as text: the answer first, then the sums it comes from, then what to do."""

from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, folded
from haclusterd.verbs.answers.resource import Addend, Explanation, Promotion, Scores, Why


def render_why(screen: Screen, data: Why) -> list[str]:
    """Write the explanation of a resource; a group's members one after the other."""
    lines: list[str] = []
    if data.at is not None:
        lines += [f"As it was at {screen.clock(data.at, data.now)}, with version {data.version} of the configuration:"]
        for each in data.before:
            reason = f": {each.reason}" if each.reason else ""
            first = f"  {screen.clock(each.at, data.now)}  "
            lines += folded(f"{each.text}{reason}", indent=first, later=" " * len(first))
        lines += [""]
    for resource in data.resources:
        lines += [*_resource(screen, resource), ""]
    return lines[:-1]


def _resource(screen: Screen, resource: Explanation) -> list[str]:
    lines = folded(_answer(resource), later="  ")
    lines[0] = lines[0].replace(resource.resource, screen.paint(resource.resource, Colour.BOLD), 1)
    for instance in resource.instances:
        if instance.detail:
            lines += folded(f"on {instance.node}: {instance.detail}", indent="  ", later="    ")
    lines += [f"  next: {each}" for each in resource.actions]
    lines += _nodes(screen, resource)
    lines += _promotion(screen, resource.promotion)
    for advice in resource.advice:
        lines += folded(f"-> {advice}", indent="  ", later="     ")
    return lines


def _promotion(screen: Screen, promotion: Promotion | None) -> list[str]:
    """Write how much an instance is to be promoted."""
    if not promotion:
        return []
    rows: list[list[Cell | str]] = [["promotion", promotion.score, ""]]
    rows += [["", _signed(addend), addend.source] for addend in promotion.addends]
    lines = columns(screen, rows, indent=2)
    for each in promotion.to_be_promoted:
        lines += folded(f"-> to be promoted: {each}", indent="  ", later="     ")
    return lines


def _answer(resource: Explanation) -> str:
    name = resource.resource
    group = f" (member of {resource.group})" if resource.group else ""
    now = resource.now_on
    where = f"runs on {', '.join(now)}" if now else "runs nowhere"
    following, role = resource.next_on or "", resource.next_role
    if resource.not_wanted:
        where += f" and is to be stopped: {resource.not_wanted}"
    elif not following:
        where += " and can run nowhere"
    elif following not in now:
        where += f" and is to run on {following}" + (f" as {role}" if role else "")
    elif role:
        where += f" as {role}"
    verdict = resource.verdict
    return f"{name}{group} {where}" + (f": {verdict}" if verdict else "")


def _nodes(screen: Screen, resource: Explanation) -> list[str]:
    rows: list[list[Cell | str]] = []
    for node in resource.nodes:
        mark = "*" if node.is_next else ">" if node.is_now else " "
        colour = Colour.GREEN if node.is_next else None if node.is_eligible else Colour.DIM
        note = node.objection
        if note:
            note = f"cannot: {note}"
        rows.append([mark, Cell(node.node, colour), Cell(node.score, colour), note])
        said = (node.score, node.objection)
        rows += [["", "", _signed(each), each.source] for each in node.addends if (each.score, each.source) != said]
    return columns(screen, rows, indent=2)


def _signed(addend: Addend) -> str:
    score = addend.score
    return f"  {score}" if score.startswith("-") else f"  +{score}"


def render_scores(screen: Screen, data: Scores) -> list[str]:
    """Write a table of resources and nodes, each score with its parts."""
    rows: list[list[Cell | str]] = []
    for resource in data.resources:
        name = resource.resource
        for node in resource.nodes:
            parts = ", ".join(f"{_signed(each).strip()} {each.source}" for each in node.addends)
            note = node.objection or parts
            colour = Colour.GREEN if node.is_next else None
            mark = "*" if node.is_next else ""
            rows.append([Cell(name, Colour.BOLD), Cell(node.node + mark, colour), node.score, note])
            name = ""
    return columns(screen, rows)
