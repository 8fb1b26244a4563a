"""The planner of a simulated daemon: it plans at once and answers when a worker process might have done so.

Its life ends and stands still with the main loop that it answers. What it computes is `schedule` itself; what is drawn
is only how long it takes, and whether the worker dies of it.
"""

import random
from collections.abc import Callable
from functools import partial

from haclusterd.model.cluster import Cib
from haclusterd.model.graph import Plan
from haclusterd.model.instants import WallTime
from haclusterd.model.planning import PlanAnswer
from haclusterd.model.records import dataclass
from haclusterd.ports.store import Applied
from haclusterd.simulator.hosts.world import MS, Event, Life

Scheduler = Callable[[Cib, WallTime], Plan]


@dataclass(slots=True)
class PlannerBehaviour:
    """How planners behave."""

    delay_ms: tuple[int, int] = (1, 30)
    failure: float = 0.0
    """Share of plans that end in a crash or an overrun."""


class SimulatedPlanner:
    """The `Planner` of one daemon."""

    def __init__(self, life: Life, chance: random.Random, scheduler: Scheduler, behaviour: PlannerBehaviour) -> None:
        self._life = life
        self._chance = chance
        self._scheduler = scheduler
        self._behaviour = behaviour
        self._answered: Callable[[PlanAnswer], None] = _nobody
        self._due: list[Event] = []

    def start(self, answered: Callable[[PlanAnswer], None]) -> None:
        """See `Planner.start`."""
        self._answered = answered

    def prepare(self, cib: Cib) -> None:
        """See `Planner.prepare`."""

    def applied(self, entry: Applied) -> None:
        """See `Planner.applied`."""

    def ask(self, number: int, cib: Cib, now: WallTime) -> None:
        """See `Planner.ask`."""
        is_failing = self._chance.random() < self._behaviour.failure
        delay_us = self._chance.randint(*self._behaviour.delay_ms) * MS
        self._due = [event for event in self._due if event.call is not None]
        # Computed when it is due: an answer that nobody waits for any more costs nothing.
        answer = partial(self._answer, number, cib, now, is_failing=is_failing)
        self._due.append(self._life.after(delay_us, lambda: self._answered(answer())))

    def rest(self) -> None:
        """See `Planner.rest`."""
        for event in self._due:
            event.cancel()
        self._due.clear()

    def stop(self) -> None:
        """See `Planner.stop`."""
        self.rest()

    def _answer(self, number: int, cib: Cib, now: WallTime, *, is_failing: bool) -> PlanAnswer:
        if is_failing:
            return PlanAnswer(number, None, "the simulated worker has died")
        try:
            return PlanAnswer(number, self._scheduler(cib, now))
        except Exception as bug:  # noqa: BLE001 (as the worker does: a scheduler that fails is an answer)
            return PlanAnswer(number, None, f"{type(bug).__name__}: {bug}")


def _nobody(_: PlanAnswer) -> None:
    return None
