"""What may be at work on one resource, and what cannot happen to it."""

from collections.abc import Callable

import pytest

from haclusterd.machines.effects import KillAgent
from haclusterd.machines.executing.resource_queue import (
    UNKILLABLE_MS,
    Adopted,
    AgentAtWork,
    QueueEvent,
    QueueState,
    ResourceQueue,
)
from haclusterd.model.instants import Instant
from tests.unit.situations import DB, order

NOW = Instant(1000)
BEGINNINGS = (QueueEvent.BEGIN_ORDER, QueueEvent.BEGIN_MONITOR, QueueEvent.BEGIN_ALONE)


def agent(key: str) -> AgentAtWork:
    return AgentAtWork(key, "start", order(key), NOW)


def begun(event: QueueEvent) -> ResourceQueue:
    queue = ResourceQueue(DB)
    queue.begin(event, agent("a"))
    return queue


def held() -> ResourceQueue:
    queue = ResourceQueue(DB)
    queue.adopt("old", Adopted("start", Instant(2000)))
    return queue


@pytest.mark.parametrize("event", BEGINNINGS)
@pytest.mark.parametrize("second", BEGINNINGS)
def test_a_second_agent_cannot_begin_beside_the_first(event: QueueEvent, second: QueueEvent) -> None:
    queue = begun(event)
    with pytest.raises(AssertionError, match="cannot happen in state"):
        queue.begin(second, agent("b"))


@pytest.mark.parametrize("event", BEGINNINGS)
def test_an_agent_cannot_begin_beside_one_of_an_older_life(event: QueueEvent) -> None:
    queue = held()
    with pytest.raises(AssertionError, match=f"{event} cannot happen in state agents of an earlier incarnation run"):
        queue.begin(event, agent("a"))


@pytest.mark.parametrize("make", [lambda: ResourceQueue(DB), held], ids=["free", "held"])
def test_an_agent_that_was_not_called_cannot_end(make: Callable[[], ResourceQueue]) -> None:
    queue = make()
    with pytest.raises(AssertionError, match="the agent has ended cannot happen in state"):
        queue.end()


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (QueueEvent.BEGIN_ORDER, QueueState.ABANDONED),
        (QueueEvent.BEGIN_MONITOR, QueueState.MONITOR_KILLED),
        (QueueEvent.BEGIN_ALONE, QueueState.ACTING_ALONE),
    ],
)
def test_what_is_abandoned_keeps_its_resource_until_it_has_ended(event: QueueEvent, state: QueueState) -> None:
    queue = begun(event)
    queue.abandon()
    queue.abandon()
    assert not queue.is_free
    assert queue.end() == (agent("a"), state)
    assert queue.is_free


def test_a_monitor_is_killed_once_and_nothing_else_is() -> None:
    queue = begun(QueueEvent.BEGIN_MONITOR)
    assert queue.kill_monitor() == (KillAgent("a"),)
    assert queue.kill_monitor() == ()
    assert begun(QueueEvent.BEGIN_ORDER).kill_monitor() == ()


def test_the_last_agent_of_older_lives_frees_the_resource() -> None:
    queue = held()
    queue.adopt("older", Adopted("stop", Instant(2000)))
    queue.abandon()
    queue.release("old")
    assert queue.state is QueueState.HELD
    assert queue.release_unkillable(Instant(2000 + UNKILLABLE_MS - 1)) == []
    assert queue.release_unkillable(Instant(2000 + UNKILLABLE_MS)) == ["older"]
    assert queue.is_free
