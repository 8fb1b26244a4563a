"""A plan that is walked again and again is slowed down; any other begins at once."""

from haclusterd.machines.repeats import FORGOTTEN_MS, FREE_REPEATS, PAUSES_MS, Repeats
from haclusterd.model.graph import TransitionGraph
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import replace
from tests.unit.machines.planned import act
from tests.unit.situations import N2, N3


def starting(node: NodeName) -> TransitionGraph:
    return TransitionGraph({1: act(1, ActionName.START, node=node)})


def walks(repeats: Repeats, every_ms: int, span_ms: int) -> list[int]:
    """Ask for the same plan so often, and execute it; return when it began."""
    begun = []
    for now in range(0, span_ms, every_ms):
        if repeats.wait_until(starting(N2), Instant(now)) <= now:
            repeats.executed(starting(N2), Instant(now))
            begun.append(now)
    return begun


def test_a_plan_repeats_a_few_times_at_once_then_with_pauses_that_grow_to_a_bound() -> None:
    begun = walks(Repeats(), 50, 60_000)
    assert begun[:FREE_REPEATS] == list(range(0, 50 * FREE_REPEATS, 50))
    gaps = [later - earlier for earlier, later in zip(begun[FREE_REPEATS - 1 :], begun[FREE_REPEATS:], strict=False)]
    assert gaps[0] == PAUSES_MS[0]
    assert gaps == sorted(gaps), "each pause is as long as the one before, or longer"
    assert gaps[-1] == PAUSES_MS[1]


def test_another_plan_begins_at_once() -> None:
    repeats = Repeats()
    walks(repeats, 50, 5000)
    assert repeats.wait_until(starting(N2), Instant(5000)) > 5000
    assert repeats.wait_until(starting(N3), Instant(5000)) <= 5000


def test_what_was_not_begun_for_a_while_is_forgotten() -> None:
    repeats = Repeats()
    begun = walks(repeats, 50, 5000)
    later = begun[-1] + FORGOTTEN_MS
    assert repeats.wait_until(starting(N2), Instant(later)) <= later


def test_recurring_monitors_alone_never_wait() -> None:
    repeats = Repeats()
    graph = TransitionGraph({1: replace(act(1, ActionName.MONITOR, node=N2), interval_ms=10_000)})
    for now in range(0, 5000, 50):
        assert repeats.wait_until(graph, Instant(now)) <= now
        repeats.executed(graph, Instant(now))


def test_a_plan_that_was_not_executed_never_waits() -> None:
    repeats = Repeats()
    assert all(repeats.wait_until(starting(N2), Instant(now)) <= now for now in range(0, 5000, 50))
