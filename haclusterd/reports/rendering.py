"""Reports as text for people (cli.md §5). The text is never parsed by anything."""

from haclusterd.reports.items import ReportItem


def render(item: ReportItem) -> str:
    """Write one report on one line: level, place, message, remedy."""
    place = f"{item.place}: " if item.place else ""
    remedy = f" ({item.remedy})" if item.remedy else ""
    return printable(f"{item.severity.upper()}: {place}{item.message}{remedy}")


def counted(number: int, one: str, many: str = "") -> str:
    """Write how many of something: `1 node`, `2 nodes`; `many` where that is not `one` with an s."""
    return f"{number} {one}" if number == 1 else f"{number} {many or one + 's'}"


def printable(text: str) -> str:
    """Escape what could steer a terminal or break the line: parameters are the user's own words."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
