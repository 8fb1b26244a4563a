"""Slows down a DC that walks one and the same plan again and again: an action that succeeds, and changes nothing.

Whatever is different about a plan, another node, another action, lets it begin at once. Only what was begun so often,
in so short a time, waits: at first a quarter of a second, at last five seconds between two walks.
"""

from haclusterd.model.graph import ActionKind, TransitionGraph
from haclusterd.model.instants import Instant, after

FREE_REPEATS = 10
"""So often the same plan begins without a pause."""
FORGOTTEN_MS = 10_000
"""A plan that was not begun for so long begins without a pause again."""
PAUSES_MS = (250, 5000)
"""The first pause, which doubles, and the longest."""

Signature = frozenset[tuple[str, str]]


class Repeats:
    """Counts how often the same plan has begun."""

    def __init__(self) -> None:
        self._begun: dict[Signature, tuple[int, Instant]] = {}
        """By what is to be done: how often it began, and when last."""

    def wait_until(self, graph: TransitionGraph, now: Instant) -> Instant:
        """Return when a plan may begin; `now` or earlier: at once, and that counts as its beginning."""
        signature = _signature(graph)
        self._begun = {each: known for each, known in self._begun.items() if now < after(known[1], FORGOTTEN_MS)}
        count, last = self._begun.get(signature, (0, now))
        due = last if count < FREE_REPEATS else after(last, _pause_ms(count))
        if signature and now >= due:
            self._begun[signature] = (count + 1, now)
        return due if signature else now


def _pause_ms(count: int) -> int:
    first, longest = PAUSES_MS
    return min(longest, first << min(10, count - FREE_REPEATS))


def _signature(graph: TransitionGraph) -> Signature:
    """Return what a graph does to resources; recurring monitors, which many plans order again, do not count."""
    return frozenset(
        (action.key, str(action.node))
        for action in graph.actions.values()
        if action.kind is ActionKind.RESOURCE and not action.interval_ms
    )
