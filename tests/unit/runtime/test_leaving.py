"""How long a node that leaves waits for others before it stops by itself what it runs."""

import pytest

from haclusterd.model.instants import NEVER, Instant
from haclusterd.runtime.leaving import Leaving, Presence
from tests.unit.runtime.one_daemon import Daemon

BEGIN = 50_000


@pytest.mark.parametrize(
    ("is_led", "after_ms", "gives_up"),
    [(True, 0, False), (True, 9_999, False), (True, 10_000, True), (False, 1_999, False), (False, 2_000, True)],
)
def test_it_gives_up_after_the_span_or_without_a_leader_for_a_lease(
    is_led: bool, after_ms: int, gives_up: bool
) -> None:
    leaving = Leaving(Instant(BEGIN + 2000))
    leaving.drain(10_000, Instant(BEGIN))
    now = Instant(BEGIN + after_ms)
    assert bool(leaving.why_to_give_up(is_led=is_led, now=now)) is gives_up
    due = leaving.deadline(is_led=is_led)
    assert due > now
    assert gives_up or due == BEGIN + (10_000 if is_led else 2000)


@pytest.mark.parametrize(("is_led", "bound_ms"), [(True, 10_000), (False, 2_000)])
def test_a_bound_that_is_reached_between_the_question_and_the_timer_is_not_forgotten(
    is_led: bool, bound_ms: int
) -> None:
    """The main loop sets its timer after steps that take time, and sleeps until then if nothing else happens."""
    leaving = Leaving(Instant(BEGIN + 2000))
    leaving.drain(10_000, Instant(BEGIN))
    assert leaving.why_to_give_up(is_led=is_led, now=Instant(BEGIN + bound_ms - 1)) == ""
    assert leaving.deadline(is_led=is_led) == BEGIN + bound_ms, "though it is later by now"
    assert leaving.why_to_give_up(is_led=is_led, now=Instant(BEGIN + bound_ms + 1))
    assert leaving.deadline(is_led=is_led) > BEGIN + bound_ms


def test_a_daemon_that_does_not_leave_waits_for_nothing() -> None:
    leaving = Leaving(Instant(BEGIN))
    assert leaving.why_to_give_up(is_led=False, now=Instant(BEGIN + 99_999)) == ""
    assert leaving.deadline(is_led=False) == NEVER


def test_a_daemon_whose_drain_nobody_ends_leaves_after_the_bound() -> None:
    daemon = Daemon().form()
    daemon.runtime.drain()
    daemon.clock.run(19 * 60_000)
    assert not daemon.has_left
    daemon.clock.run(2 * 60_000)
    assert daemon.has_left


def test_a_signal_while_the_process_ends_begins_nothing() -> None:
    leaving = Leaving(Instant(BEGIN))
    leaving.drain(10_000, Instant(BEGIN))
    leaving.left()
    leaving.drain(10_000, Instant(BEGIN + 1))
    assert leaving.presence is Presence.LEFT
    leaving.stop()
    leaving.drain(10_000, Instant(BEGIN + 2))
    assert leaving.presence is Presence.STOPPED
    assert leaving.deadline(is_led=False) == NEVER
