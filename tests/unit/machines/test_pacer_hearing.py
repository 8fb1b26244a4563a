"""What a pacer believes of its peers: which of their lives, how long each is silent, and what its own stall was."""

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import NO_LEASE, BrainState, Heartbeat, Receipt
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES
from tests.unit.machines.pacing import BEGIN, PERIOD, Subject, T, begun, life, settings


@pytest.fixture
def subject() -> Subject:
    return begun()


# Hearing


def test_repeated_and_old_heartbeats_are_no_sign_of_life(subject: Subject) -> None:
    subject.hear("n2", sent_at=500)
    subject.run_until(BEGIN + 400)
    for old in (500, 499, 1):
        subject.hear("n2", sent_at=old, echo=BEGIN + 200)
    subject.run_until(BEGIN + 610)
    assert subject.node("n2").age_ms == 610
    assert subject.lease_until() == NO_LEASE


def test_a_life_counts_once_it_has_seen_us(subject: Subject) -> None:
    unproved = Heartbeat(NodeName("n2"), NodeName("n1"), life("n2"), Instant(5), BrainState.ALIVE, 0, None, None, ())
    subject.take(subject.machine.heartbeat_received(NodeName("n2"), unproved, Instant(subject.now)))
    subject.run_until(BEGIN + 10)
    answer = subject.last_to("n2")
    assert (answer.sent_at, answer.seen, answer.echo) == (BEGIN + 10, Receipt(life("n2").token, Instant(5)), None)
    assert subject.node("n2").age_ms is None
    subject.hear("n2", sent_at=6, seen=BEGIN + 10)
    subject.run_until(BEGIN + 20)
    assert subject.node("n2").incarnation == life("n2")
    assert subject.last_to("n2").echo == Receipt(life("n2").token, Instant(6))


def test_a_new_incarnation_resets_what_was_known_of_the_old(subject: Subject) -> None:
    subject.hear("n2", sent_at=900_000, brain=BrainState.HUNG)
    subject.run_until(BEGIN + 200)
    subject.hear("n2", number=2, sent_at=3)
    known = subject.node("n2")
    assert (known.incarnation, known.age_ms, known.brain) == (life("n2", 2), 0, BrainState.ALIVE)


def test_another_boot_counts_only_once_the_one_before_is_silent(subject: Subject) -> None:
    """A copy of the machine knows its keys; a machine that starts again was silent before."""
    subject.hear("n2")
    for at in (1, 2 * PERIOD, 3 * PERIOD - 1):
        subject.run_until(BEGIN + at)
        subject.hear("n2", number=2, boot=2)
    subject.hear("n2", sent_at=9_000)
    subject.run_until(BEGIN + 6 * PERIOD - 2)
    subject.hear("n2", number=2, boot=2)
    assert subject.node("n2").incarnation == life("n2")
    subject.run_until(BEGIN + 6 * PERIOD)
    subject.hear("n2", number=2, boot=2)
    subject.run_until(BEGIN + 7 * PERIOD)
    assert subject.node("n2").incarnation == life("n2", 2, boot=2)


def test_recordings_of_an_earlier_life_are_no_sign_of_life(subject: Subject) -> None:
    subject.hear("n2", sent_at=800, seen=BEGIN)
    subject.run_until(BEGIN + 200)
    subject.hear("n2", number=2, sent_at=3, seen=BEGIN + 200)
    subject.run_until(BEGIN + 400)
    subject.hear("n2", number=1, sent_at=999, seen=BEGIN)
    subject.run_until(BEGIN + 610)
    assert (subject.node("n2").incarnation, subject.node("n2").age_ms) == (life("n2", 2), 410)


def test_unknown_senders_and_anybody_before_settings_are_ignored() -> None:
    subject = Subject()
    subject.hear("n2", seen=BEGIN)
    assert subject.reports == []
    subject.configure(settings())
    subject.tick()
    subject.hear("n9")
    assert [node.name for node in subject.reports[-1].nodes] == ["n2", "n3"]


def test_heard_ages_of_all_travel_to_all(subject: Subject) -> None:
    subject.hear("n2")
    subject.run_until(BEGIN + 100)
    subject.hear("n3")
    subject.run_until(BEGIN + 300)
    heard = [(age.node, age.token, age.age_ms) for age in subject.last_to("n3").heard]
    assert heard == [("n2", life("n2").token, 300), ("n3", life("n3").token, 200)]


def test_a_silence_of_node_timeout_is_reported_at_once_and_once(subject: Subject) -> None:
    subject.run_until(BEGIN + 70)
    subject.hear("n2")
    subject.run_until(BEGIN + 70 + T)
    assert subject.last_to("n3").sent_at == subject.reports[-1].reported_at == BEGIN + 70 + T
    assert subject.node("n2").age_ms == T
    reported = len([report for report in subject.reports if report.reported_at == subject.now])
    assert reported == 1


def test_for_a_node_timeout_after_a_silence_heartbeats_come_four_times_as_often(subject: Subject) -> None:
    subject.run_until(BEGIN + 70)
    subject.hear("n2")
    overdue_at = BEGIN + 70 + T
    subject.run_until(overdue_at + T + 450)
    times = [effect.heartbeat.sent_at - overdue_at for effect in subject.sent if effect.peer == "n3"]
    assert [at for at in times if at >= 0] == [*range(0, T, 50), T, T + 200, T + 400]


def test_a_peer_tells_which_of_our_heartbeats_it_has_seen(subject: Subject) -> None:
    subject.run_until(BEGIN + 250)
    subject.hear("n2", seen=BEGIN + 200)
    subject.hear("n3", seen=BEGIN)
    assert (subject.node("n2").answered_at, subject.node("n3").answered_at) == (BEGIN + 200, BEGIN)


def test_heartbeats_go_to_each_address_once_per_period() -> None:
    given = settings()
    two_links = replace(given.peers[0], addresses=(("127.0.0.1", 1), ("::1", 2)))
    subject = Subject(replace(given, peers=(two_links, *given.peers[1:])))
    subject.run_until(BEGIN + 199)
    assert [(effect.peer, effect.address_index) for effect in subject.sent] == [("n2", 0), ("n2", 1), ("n3", 0)]
    subject.run_until(BEGIN + 999)
    assert [effect.heartbeat.sent_at - BEGIN for effect in subject.sent if effect.peer == "n3"] == [
        *range(0, 1_000, 200)
    ]


# Own stalls


@pytest.mark.parametrize(("left_ms", "goes_out"), [(PERIOD // 20, True), (PERIOD // 20 + 1, False)])
def test_a_heartbeat_that_is_nearly_due_goes_out_with_one_that_comes_in(
    subject: Subject, left_ms: int, goes_out: bool
) -> None:
    subject.hear("n2")
    subject.run_until(BEGIN + PERIOD)
    subject.run_until(subject.sent[-1].heartbeat.sent_at + PERIOD - left_ms)
    before = len(subject.sent)
    subject.hear("n2")
    subject.run_until(subject.now)
    assert (len(subject.sent) > before) is goes_out
    assert subject.machine.wake_at - subject.now == (PERIOD if goes_out else left_ms)


@pytest.mark.parametrize(("late_ms", "is_stall"), [(0, False), (500, False), (501, True), (10_000, True)])
def test_after_an_own_stall_silence_is_counted_again(subject: Subject, late_ms: int, is_stall: bool) -> None:
    subject.hear("n2")
    subject.now = subject.machine.wake_at + late_ms
    subject.tick()
    assert subject.reports[-1].stalled_at == (subject.now if is_stall else None)
    assert subject.node("n2").age_ms == (0 if is_stall else subject.now - BEGIN)
    assert subject.node("n2").heard_at == BEGIN


def test_a_stall_is_noticed_by_whatever_event_comes_first(subject: Subject) -> None:
    subject.hear("n2")
    subject.now += 5_000
    subject.hear("n3")
    subject.tick()
    assert subject.reports[-1].stalled_at == subject.now
    assert subject.node("n2").age_ms == 0


def test_without_the_rule_an_own_stall_makes_everybody_silent() -> None:
    naive = Subject(settings(), rules=replace(ALL_RULES, silence_clocks_restart_after_stall=False))
    naive.tick()
    naive.hear("n2")
    naive.now += 5_000
    naive.tick()
    assert naive.node("n2").age_ms == 5_000
