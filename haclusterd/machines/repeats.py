"""Slows down a DC that executes the same plan again and again: actions that succeed without changing anything.

A plan with any difference, such as another node or another action, starts at once. Only a plan that was executed so
often, in so short a time, waits: a quarter of a second at first, five seconds at last. One that was aborted before any
of its actions was ordered was not executed: a start that waits for a fencing is planned again at every change of an
attribute, and must not wait any longer once the node is fenced.
"""

from haclusterd.model.graph import ActionKind, TransitionGraph
from haclusterd.model.instants import Instant, after

FREE_REPEATS = 10
"""How often the same plan may be executed without a pause."""
FORGOTTEN_MS = 10_000
"""After this time without being executed, a plan starts without a pause again."""
PAUSES_MS = (250, 5000)
"""The pause: the first, which doubles, and the longest."""

Signature = frozenset[tuple[str, str]]


class Repeats:
    """Counts how often the same plan was executed."""

    def __init__(self) -> None:
        self._begun: dict[Signature, tuple[int, Instant]] = {}
        """By plan: how often it was executed, and when last."""

    def wait_until(self, graph: TransitionGraph, now: Instant) -> Instant:
        """Return when a plan may start; `now` or earlier: at once."""
        self._begun = {each: known for each, known in self._begun.items() if now < after(known[1], FORGOTTEN_MS)}
        count, last = self._begun.get(_signature(graph), (0, now))
        return last if count < FREE_REPEATS else after(last, _pause_ms(count))

    def executed(self, graph: TransitionGraph, now: Instant) -> None:
        """Note that a plan ordered its first action, or was completed; call it once for each transition."""
        signature = _signature(graph)
        if signature:
            count, _ = self._begun.get(signature, (0, now))
            self._begun[signature] = (count + 1, now)


def _pause_ms(count: int) -> int:
    first, longest = PAUSES_MS
    return min(longest, first << min(10, count - FREE_REPEATS))


def _signature(graph: TransitionGraph) -> Signature:
    """Return what identifies a plan: its actions, without recurring monitors, which many plans order again."""
    return frozenset(
        (action.key, str(action.node))
        for action in graph.actions.values()
        if action.kind is ActionKind.RESOURCE and not action.interval_ms
    )
