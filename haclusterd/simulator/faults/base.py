"""A plan of faults: drawn from a seed before anything runs, so that it can be recorded, replayed and shortened.

A fault is drawn whole, with its instant, its length and everything chance decides about it. What it does to the run is
another matter. So a run may leave some of its faults out, and the others stay what they were: that is all that
shrinking needs.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass
from haclusterd.simulator.hosts.world import MS, World

Stage = TypeVar("Stage")
End = Callable[[], object]
Begin = Callable[[Stage], End | None]


@dataclass(frozen=True, slots=True)
class Drawn(Generic[Stage]):
    """What goes wrong: in words, and as a function that may return how it ends."""

    text: str
    begin: Callable[[Stage], End | None]
    lasts_ms: int = 0


@dataclass(frozen=True, slots=True)
class Kind(Generic[Stage]):
    """One kind of fault, and how often it is drawn beside the others."""

    name: str
    weight: int
    draw: Callable[[random.Random, Sequence[NodeName]], Drawn[Stage]]


@dataclass(frozen=True, slots=True)
class Fault(Generic[Stage]):
    """One fault of a plan."""

    number: int
    at_ms: int
    """After the beginning of the safety phase."""
    drawn: Drawn[Stage]
    kind: str = ""

    def __str__(self) -> str:
        lasts = f", for {self.drawn.lasts_ms} ms" if self.drawn.lasts_ms else ""
        return f"{self.number}: at {self.at_ms} ms {self.drawn.text}{lasts}"


class Steps:
    """What a fault does later, as long as it has not ended: nothing would take back what is done after that."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._is_over = False

    def after(self, ms: int, step: Callable[[], object]) -> None:
        """Do something so many ms from now."""
        self._world.after(ms * MS, partial(self._take, step))

    def end(self) -> None:
        """Do nothing more."""
        self._is_over = True

    def _take(self, step: Callable[[], object]) -> None:
        if not self._is_over:
            step()


PACES_MS = ((50, 4_000), (50, 4_000), (500, 12_000), (2_000, 30_000))
"""Pauses between two faults: some seeds pile fault on fault, others let the cluster find back in between."""
ALL_KINDS_SHARE = 0.4
"""Share of seeds that draw from all kinds of faults; the others from some, which then meet more often."""
SOME_KINDS = 6


def draw_plan(
    chance: random.Random,
    kinds: Sequence[Kind[Stage]],
    nodes: Sequence[NodeName],
    span_ms: int,
    *,
    always: Sequence[Kind[Stage]] = (),
    paces_ms: Sequence[tuple[int, int]] = PACES_MS,
) -> tuple[Fault[Stage], ...]:
    """Draw everything that will go wrong within a span; kinds that are `always` drawn from are never left out.

    One of `paces_ms` is the shortest and the longest pause between two faults.
    """
    pace_ms = chance.choice(paces_ms)
    if chance.random() >= ALL_KINDS_SHARE:
        kinds = chance.sample(kinds, min(SOME_KINDS, len(kinds)))
    kinds = (*kinds, *always)
    weights = [kind.weight for kind in kinds]
    plan: list[Fault[Stage]] = []
    at_ms = chance.randint(*pace_ms)
    while at_ms < span_ms:
        kind = chance.choices(kinds, weights)[0]
        plan.append(Fault(len(plan), at_ms, kind.draw(chance, nodes), kind.name))
        at_ms += chance.randint(*pace_ms)
    return tuple(plan)


class FaultRun(Generic[Stage]):
    """Brings the faults of a plan about, each in its time, and ends them."""

    def __init__(
        self,
        stage: Stage,
        plan: Iterable[Fault[Stage]],
        *,
        after: Callable[[int, Callable[[], None]], object],
        tell: Callable[[str], None],
        begun: Callable[[Fault[Stage]], None] | None = None,
    ) -> None:
        """`after(span in us, call)` is the stage's clock; `tell` adds a line to its record; `begun` is asked to look
        at each fault right before it begins."""
        self._look = begun
        self._stage = stage
        self._plan = tuple(plan)
        self._after = after
        self._tell = tell
        self._is_over = False
        self._ends: dict[int, End] = {}
        self.begun: list[int] = []
        """Numbers of the faults that have begun."""

    def begin(self) -> None:
        """Let the safety phase begin now."""
        for fault in self._plan:
            self._after(fault.at_ms * MS, partial(self._bring_about, fault))

    def end_all(self) -> None:
        """End what has begun and not ended, newest first; nothing begins any more."""
        self._is_over = True
        for number in reversed(list(self._ends)):
            self._ends.pop(number)()

    def _bring_about(self, fault: Fault[Stage]) -> None:
        if self._is_over:
            return
        self.begun.append(fault.number)
        self._tell(f"fault {fault}")
        if self._look is not None:
            self._look(fault)
        end = fault.drawn.begin(self._stage)
        if end is not None:
            self._ends[fault.number] = end
            self._after(fault.drawn.lasts_ms * MS, lambda: self._end(fault.number))

    def _end(self, number: int) -> None:
        end = self._ends.pop(number, None)
        if end is not None:
            end()
