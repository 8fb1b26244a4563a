"""Who may do what, as text."""

from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns
from haclusterd.verbs.answers.access import AclListing, AclRights, AclVerdict

_COLOURS = {"write": Colour.GOOD, "read": Colour.CYAN, "deny": Colour.BAD}
_NOT_IN_FORCE = "access control lists are not in force: enable-acl is not true"


def render_verdict(screen: Screen, data: AclVerdict) -> list[str]:
    """Write yes or no, and why."""
    word = screen.paint("yes", Colour.GOOD) if data.is_permitted else screen.paint("no", Colour.BAD)
    asked = f"{data.verb} {data.object}".strip()
    return [f"{word}: {data.who} {'may' if data.is_permitted else 'may not'} {asked}", f"  {data.why}"]


def render_rights(screen: Screen, data: AclRights) -> list[str]:
    """Write a table of elements with their rights and rules."""
    rows: list[list[Cell | str]] = [["right", "element", "rule"]]
    rows += ([Cell(each.right, _COLOURS[each.right]), each.element, each.rule] for each in data.elements)
    lines = [f"{data.who}: {data.why}", *columns(screen, rows)]
    if data.left_out:
        lines.append(f"{data.left_out} more; name an element")
    return lines


def render_list(screen: Screen, data: AclListing) -> list[str]:
    """Write roles with their permissions, and who has them."""
    lines = []
    if not data.is_in_force:
        lines.append(f"{_NOT_IN_FORCE}; haclient may {data.control_group_permission}")
    lines.append("roles:")
    for role in data.roles:
        kind = " (simple)" if role.is_simple else ""
        doc = f": {role.description}" if role.description else ""
        lines.append(f"  {screen.paint(role.role, Colour.BOLD)}{kind}{doc}")
        lines += [f"    {each}" for each in role.permissions]
    if data.holders:
        rows = [["who", "name", "roles"], *([each.kind, each.name, ", ".join(each.roles)] for each in data.holders)]
        lines += ["", *columns(screen, rows)]
    return lines
