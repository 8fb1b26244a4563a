"""The last failover, found among the events of the history: what failed first, what the cluster did, when it was over.

Pure. An event is known by its kind; only whether an operation moved something is read from its text, since the history
keeps no other word for it.
"""

import re
from collections.abc import Sequence

from haclusterd.cli.render.terminal import Cell, Colour, Screen, columns, span
from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.history import ShownEvent

BEGINNINGS = frozenset({"node-lost", "operation-failed", "outcome-unknown", "fencing-ordered"})
STEPS = (
    *sorted(BEGINNINGS), "dc-elected", "fence-agent-ended", "fencing-agent-succeeded", "fencing-failed",
    "node-fenced", "node-left", "operation-succeeded", "order-not-begun",
)  # fmt: skip
ENDS = ("configuration-changed", "node-joined")
"""What comes after is no part of it."""
KINDS = (*STEPS, *ENDS)
"""What is asked of the history."""
QUIET_MS = 60_000
"""After so long without a step the failover is over."""
_MOVE = re.compile(r"(start|stop|promote|demote|migrate_to|migrate_from) of ")
_RUNS = re.compile(r"(start|promote|migrate_from) of ")


@dataclass(frozen=True, slots=True)
class Failover:
    """One failover: its steps, oldest first."""

    steps: tuple[ShownEvent, ...]

    @property
    def began(self) -> int:
        """When the first thing failed; epoch ms."""
        return self.steps[0].at

    @property
    def recovered_ms(self) -> int | None:
        """How long after its beginning the last resource ran again; None: none was started."""
        started = [each.at for each in self.steps if each.kind == "operation-succeeded" and _RUNS.match(each.text)]
        return started[-1] - self.began if started else None


def last_failover(events: Sequence[ShownEvent]) -> Failover | None:
    """Return the newest failover among events, which are oldest first."""
    steps: list[ShownEvent] = []
    is_over = True
    for event in events:
        if steps and event.at - steps[-1].at > QUIET_MS:
            is_over = True
        if event.kind in ENDS:
            is_over = True
        elif is_over and event.kind in BEGINNINGS:
            steps, is_over = [event], False
        elif not is_over and _is_step(event):
            steps.append(event)
    return Failover(tuple(steps)) if steps else None


def _is_step(event: ShownEvent) -> bool:
    if event.kind == "operation-succeeded":
        return _MOVE.match(event.text) is not None
    return event.kind in STEPS


def render_failover(screen: Screen, failover: Failover, now: int) -> list[str]:
    """Write each step with how long after the beginning it was."""
    rows: list[list[Cell | str]] = [
        [f"+{span(each.at - failover.began)}", Cell(each.text, _colour(each))] for each in failover.steps
    ]
    lasted = failover.recovered_ms
    verdict = "nothing was started since" if lasted is None else f"the last start succeeded after {span(lasted)}"
    colour = Colour.YELLOW if lasted is None else Colour.GREEN
    head = f"began {screen.clock(failover.began, now)}; "
    return [head + screen.paint(verdict, colour), *columns(screen, rows, indent=2)]


def _colour(event: ShownEvent) -> Colour | None:
    if event.kind == "operation-succeeded":
        return Colour.GREEN if _RUNS.match(event.text) else None
    return Colour.RED if event.kind in BEGINNINGS or "failed" in event.kind else None
