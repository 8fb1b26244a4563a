"""How available services were, as text."""

from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, folded, span
from haclusterd.verbs.answers.availability import Availabilities, ServiceAvailability, ShownOutage

_COLOURS = {"up": Colour.GREEN, "down": Colour.RED, "unknown": Colour.YELLOW}
_OUTAGES_SHOWN = 10
"""Of one service."""


def render(screen: Screen, data: Availabilities) -> list[str]:
    """Write a line for each service, and the newest outages; or what was asked for as comma-separated values."""
    if data.csv is not None:
        return data.csv.splitlines()
    if not data.services:
        return ["nothing is known yet: no resource was ever up, or failed to be"]
    rows: list[list[Cell | str]] = [
        ["resource", "now", "up", "planned", "unplanned", "unknown", "outages", "longest", "known from"]
    ]
    rows += [_row(screen, each, data.now) for each in data.services]
    lines = columns(screen, rows)
    for each in data.services:
        if each.judged_by:
            continue  # Its last member has the same.
        for outage in each.outages[-_OUTAGES_SHOWN:]:
            lines += folded(_outage(screen, each, outage, data.now), indent="  ", later="    ")
    return lines


def _row(screen: Screen, service: ServiceAvailability, now: int) -> list[Cell | str]:
    return [
        Cell(_name(service), Colour.BOLD),
        Cell(f"{service.state} {span(max(0, now - service.since))}", _COLOURS.get(service.state)),
        percent(service.up_ppm),
        span(service.planned_ms), span(service.unplanned_ms), span(service.unknown_ms),
        f"{service.planned}+{service.unplanned}",
        span(service.longest_ms) if service.unplanned else "-",
        screen.clock(service.known_from, now),
    ]  # fmt: skip


def _outage(screen: Screen, service: ServiceAvailability, outage: ShownOutage, now: int) -> str:
    kind = "planned" if outage.is_planned else "unplanned"
    end = f"for {span(outage.ms)}" if outage.until is not None else f"for {span(outage.ms)} so far"
    return f"{screen.clock(outage.since, now)} {_name(service)} down {end}: {outage.cause} ({kind})"


def _name(service: ServiceAvailability) -> str:
    return f"{service.resource} {'(group)' if service.judged_by else service.role}".strip()


def percent(ppm: int | None) -> str:
    """Write millionths as a percentage with four digits after the point; they are never rounded up."""
    return "-" if ppm is None else f"{ppm // 10_000}.{ppm % 10_000:04d}%"
