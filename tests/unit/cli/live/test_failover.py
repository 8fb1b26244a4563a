"""The last failover among events: where it begins, what belongs to it, when it is over."""

from datetime import UTC

from haclusterd.cli.live.failover import QUIET_MS, last_failover, render_failover
from haclusterd.cli.render.terminal import Screen
from haclusterd.verbs.answers.history import ShownEvent


def event(at_ms: int, kind: str, text: str) -> ShownEvent:
    return ShownEvent(at_ms, at_ms, kind, None, None, text, "", "", "")


LOST = (
    event(1000, "dc-elected", "n1 is DC"),
    event(2000, "node-lost", "n2 is lost"),
    event(2300, "node-fenced", "n2 is fenced"),
    event(2310, "order-issued", "start of web on n3"),
    event(2400, "operation-succeeded", "start of web on n3 succeeded"),
    event(2500, "operation-succeeded", "monitor of web on n3 succeeded"),
)


def texts(*events: ShownEvent) -> list[str]:
    found = last_failover(events)
    return [] if found is None else [each.text for each in found.steps]


def test_it_begins_with_what_was_lost_and_has_what_moved() -> None:
    assert texts(*LOST) == ["n2 is lost", "n2 is fenced", "start of web on n3 succeeded"]
    found = last_failover(LOST)
    assert found is not None
    assert (found.began, found.recovered_ms) == (2000, 400)


def test_what_a_person_changes_afterwards_is_no_part_of_it() -> None:
    moved = event(3000, "operation-succeeded", "stop of web on n3 succeeded")
    assert len(texts(*LOST, moved)) == 4
    for end in ("configuration-changed", "node-joined"):
        assert len(texts(*LOST, event(2900, end, "..."), moved)) == 3


def test_it_is_over_when_nothing_happens_for_long() -> None:
    late = event(2400 + QUIET_MS + 1, "operation-succeeded", "stop of web on n3 succeeded")
    assert len(texts(*LOST, late)) == 3
    failed = event(2400 + QUIET_MS + 1, "operation-failed", "monitor of web on n3 failed")
    assert texts(*LOST, failed) == ["monitor of web on n3 failed"]


def test_a_second_failure_while_it_is_going_on_is_part_of_it() -> None:
    failed = event(2450, "operation-failed", "monitor of db on n3 failed")
    assert texts(*LOST[:5], failed)[-1] == "monitor of db on n3 failed"


def test_without_a_failure_there_is_none() -> None:
    assert texts() == []
    assert texts(LOST[0], *LOST[3:]) == []


def test_each_step_is_written_with_how_long_after_the_beginning_it_was() -> None:
    found = last_failover(LOST)
    assert found is not None
    assert render_failover(Screen(zone=UTC), found, 5000) == [
        "began 00:00:02; the last start succeeded after 400 ms",
        "  +0 ms    n2 is lost",
        "  +300 ms  n2 is fenced",
        "  +400 ms  start of web on n3 succeeded",
    ]
    found = last_failover(LOST[:3])
    assert found is not None
    assert "nothing was started since" in render_failover(Screen(zone=UTC), found, 5000)[0]
