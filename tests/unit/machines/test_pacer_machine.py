"""One pacer's machine, event by event: lease, withdrawal, the own daemon, the watchdog."""

import pytest

from haclusterd.machines.pacer import FOLLOWERS_REPORT, majority_newest
from haclusterd.model.ids import Incarnation
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import NO_LEASE, BrainState, HeldLease, PageReading, Receipt
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES
from haclusterd.model.watchdog import Watchdog
from tests.unit.machines.pacing import BEGIN, BRAIN_TIMEOUT, OTHER_OWN, OWN, Subject, T, begun, life, page, settings


@pytest.fixture
def subject() -> Subject:
    return begun()


# The lease


def test_at_start_there_is_no_lease(subject: Subject) -> None:
    assert subject.lease == HeldLease(OWN.token, NO_LEASE)
    assert [(effect.peer, effect.heartbeat.sent_at) for effect in subject.sent] == [("n2", BEGIN), ("n3", BEGIN)]


def test_lease_counts_from_the_sending_and_not_from_the_echos_arrival(subject: Subject) -> None:
    subject.run_until(BEGIN + 1_700)
    subject.hear("n2", echo=BEGIN)
    assert subject.lease_until() == BEGIN + T


def test_an_echo_that_comes_after_the_lease_would_have_ended_gives_no_life(subject: Subject) -> None:
    subject.run_until(BEGIN + 3 * T)
    subject.hear("n2", echo=BEGIN)
    assert subject.lease_until() == BEGIN + T < subject.now


def test_without_the_rule_a_late_echo_gives_false_life() -> None:
    naive = Subject(settings(), rules=replace(ALL_RULES, echo_send_time=False))
    naive.run_until(BEGIN + 3 * T)
    naive.hear("n2", echo=BEGIN)
    assert naive.lease_until() > naive.now


def test_echoes_out_of_order_never_shorten_the_lease(subject: Subject) -> None:
    subject.run_until(BEGIN + 400)
    subject.hear("n2", echo=BEGIN + 400)
    subject.hear("n2", echo=BEGIN + 200)
    assert subject.lease_until() == BEGIN + 400 + T


def test_silence_of_one_voter_does_not_end_the_lease_while_another_echoes(subject: Subject) -> None:
    for step in range(20):
        subject.run_until(BEGIN + 200 * step)
        if step < 5:
            subject.hear("n2", echo=subject.now)
        subject.hear("n3", echo=subject.now)
    assert subject.lease_until() == subject.now + T


def test_a_voter_alone_among_three_has_no_lease(subject: Subject) -> None:
    subject.run_until(BEGIN + 5 * T)
    assert subject.lease_until() == NO_LEASE


def test_a_single_voter_needs_nobody() -> None:
    alone = Subject(settings(voters=["n1"]))
    alone.tick()
    assert alone.lease_until() == BEGIN + T


def test_two_voters_need_each_other() -> None:
    pair = Subject(settings(voters=["n1", "n2"]))
    pair.run_until(BEGIN + 400)
    assert pair.lease_until() == NO_LEASE
    pair.hear("n2", echo=BEGIN + 200)
    assert pair.lease_until() == BEGIN + 200 + T


def test_non_voters_do_not_count() -> None:
    subject = Subject(settings(others=["n4", "n5", "n6"]))
    subject.run_until(BEGIN + 200)
    for name in ("n4", "n5", "n6"):
        subject.hear(name, echo=BEGIN + 200)
    assert subject.lease_until() == NO_LEASE
    subject.hear("n3", echo=BEGIN)
    assert subject.lease_until() == BEGIN + T


def test_a_non_voter_does_not_count_itself_and_echoes_nobody() -> None:
    remote = Subject(settings(voters=["n2", "n3"], others=["n1"]))
    remote.run_until(BEGIN + 200)
    remote.hear("n2", echo=BEGIN + 200)
    assert remote.lease_until() == NO_LEASE
    remote.hear("n3", echo=BEGIN)
    assert remote.lease_until() == BEGIN + T
    remote.run_until(BEGIN + 400)
    assert remote.last_to("n2").echo is None


def test_five_voters_take_the_majority_th_newest() -> None:
    five = Subject(settings(voters=["n1", "n2", "n3", "n4", "n5"]))
    five.run_until(BEGIN + 1_000)
    expected = {
        ("n2", 600): NO_LEASE,
        ("n3", 200): BEGIN + 200 + T,
        ("n4", 800): BEGIN + 600 + T,
        ("n5", 1_000): BEGIN + 800 + T,
    }
    for (name, echoed), until in expected.items():
        five.hear(name, echo=BEGIN + echoed)
        assert five.lease_until() == until


@pytest.mark.parametrize(
    ("votes", "voters", "newest"),
    [
        ([5], 1, 5),
        ([None], 1, None),
        ([9, 3], 2, 3),
        ([9, None], 2, None),
        ([9, 3, None], 3, 3),
        ([1, 2, 3, 4], 4, 2),
        ([1, 2, 3, 4, 5], 5, 3),
        ([], 0, None),
    ],
)
def test_the_newest_instant_that_a_majority_has_reached(
    votes: list[int | None], voters: int, newest: int | None
) -> None:
    assert majority_newest([None if vote is None else Instant(vote) for vote in votes], voters) == newest


def test_echoes_of_another_incarnation_do_not_count(subject: Subject) -> None:
    subject.hear("n2", echo=BEGIN)
    assert subject.lease_until() == BEGIN + T
    subject.run_until(BEGIN + 200)
    subject.configure(settings(own=OTHER_OWN))
    assert subject.lease == HeldLease(OTHER_OWN.token, NO_LEASE)
    subject.page = page(OTHER_OWN)
    subject.run_until(BEGIN + 400)
    subject.hear("n2", echo=BEGIN + 200, own=OWN)
    assert subject.lease_until() == NO_LEASE
    subject.hear("n2", echo=BEGIN + 400, own=OTHER_OWN)
    assert subject.lease_until() == BEGIN + 400 + T


def test_an_echo_of_what_was_never_sent_does_not_count(subject: Subject) -> None:
    subject.hear("n2", echo=BEGIN + 10_000)
    assert subject.lease_until() == NO_LEASE


def test_a_voters_restart_does_not_undo_what_it_has_echoed(subject: Subject) -> None:
    subject.hear("n2", echo=BEGIN)
    subject.run_until(BEGIN + 200)
    subject.hear("n2", number=2, sent_at=1)
    assert subject.node("n2").incarnation == life("n2", 2)
    assert subject.lease_until() == BEGIN + T


def test_when_a_voter_is_removed_what_it_gave_stays_and_it_gives_no_more(subject: Subject) -> None:
    subject.run_until(BEGIN + 200)
    subject.hear("n2", echo=BEGIN)
    subject.configure(settings(voters=["n1", "n3"], others=["n2"]))
    assert subject.lease_until() == BEGIN + T
    subject.run_until(BEGIN + 400)
    subject.hear("n2", echo=BEGIN + 200)
    assert subject.lease_until() == BEGIN + T
    subject.hear("n3", echo=BEGIN + 200)
    assert subject.lease_until() == BEGIN + 200 + T


def test_the_pacers_restart_leaves_the_lease_of_the_same_brain() -> None:
    held = HeldLease(OWN.token, Instant(BEGIN + 900))
    restarted = Subject(settings(), inherited=held)
    restarted.tick()
    assert restarted.lease in (None, held)
    restarted.hear("n2", echo=BEGIN)
    assert restarted.lease_until() == BEGIN + T


def test_the_pacers_restart_drops_the_lease_of_an_earlier_brain() -> None:
    restarted = Subject(settings(), inherited=HeldLease(OTHER_OWN.token, Instant(BEGIN + 900)))
    assert restarted.lease == HeldLease(OWN.token, NO_LEASE)


# Withdrawal


def test_everybody_heard_is_echoed_with_the_send_time_it_put(subject: Subject) -> None:
    subject.hear("n2", sent_at=4_711)
    subject.run_until(BEGIN + 200)
    assert subject.last_to("n2").echo == Receipt(life("n2").token, Instant(4_711))
    assert subject.last_to("n3").echo is None


def test_a_withdrawn_node_gets_no_echo_in_whatever_incarnation(subject: Subject) -> None:
    subject.hear("n2")
    subject.page = page(withdrawn=["n2"])
    subject.run_until(BEGIN + 200)
    assert subject.last_to("n2").echo is None
    assert subject.last_to("n2").seen is not None
    subject.hear("n2", number=2, sent_at=5)
    subject.run_until(BEGIN + 400)
    assert subject.node("n2").incarnation == life("n2", 2)
    assert subject.last_to("n2").echo is None
    subject.page = page()
    subject.run_until(BEGIN + 600)
    assert subject.last_to("n2").echo == Receipt(life("n2", 2).token, Instant(5))


def test_the_lost_node_itself_withholds_its_own_vote(subject: Subject) -> None:
    subject.hear("n2", echo=BEGIN)
    subject.page = page(withdrawn=["n1"])
    subject.run_until(BEGIN + 400)
    subject.hear("n2", echo=BEGIN + 400)
    assert subject.lease_until() == BEGIN + T
    subject.hear("n3", echo=BEGIN + 400)
    assert subject.lease_until() == BEGIN + 400 + T


@pytest.mark.parametrize("known_by", [None, OTHER_OWN])
def test_a_restarted_voter_echoes_nobody_until_its_withdrawn_set_is_known(known_by: Incarnation | None) -> None:
    subject = Subject(settings())
    subject.page = page(known_by)
    subject.tick()
    subject.hear("n2", echo=BEGIN)
    subject.run_until(BEGIN + 200)
    assert subject.last_to("n2").echo is None
    assert subject.lease_until() == NO_LEASE
    subject.page = page()
    subject.run_until(BEGIN + 400)
    assert subject.last_to("n2").echo is not None
    assert subject.lease_until() == BEGIN + T


@pytest.mark.parametrize(
    ("rule_off", "shown"),
    [("withdraw_echo", page(withdrawn=["n2"])), ("rebuild_withdrawn_set", page(known_by=None))],
)
def test_without_the_rule_the_echo_is_given(rule_off: str, shown: PageReading) -> None:
    naive = Subject(settings(), rules=replace(ALL_RULES, **{rule_off: False}))
    naive.tick()
    naive.hear("n2")
    naive.page = shown
    naive.run_until(BEGIN + 200)
    assert naive.last_to("n2").echo is not None


# The own daemon


def brain_reported(subject: Subject) -> tuple[BrainState, int]:
    heartbeat = subject.last_to("n2")
    return heartbeat.brain, heartbeat.brain_since_ms


def test_a_brain_is_alive_hung_and_gone_by_its_stamps_and_its_connection(subject: Subject) -> None:
    assert brain_reported(subject) == (BrainState.RESTARTING, 0)
    subject.page = page(stamped_at=BEGIN + 150)
    subject.run_until(BEGIN + 400)
    assert brain_reported(subject) == (BrainState.ALIVE, 200)
    subject.run_until(BEGIN + 150 + 2_500)
    assert brain_reported(subject)[0] is BrainState.ALIVE
    subject.run_until(BEGIN + 2_800)
    assert brain_reported(subject) == (BrainState.HUNG, 2_650)
    subject.machine.brain_gone(Instant(subject.now))
    subject.run_until(BEGIN + 3_000)
    assert brain_reported(subject) == (BrainState.RESTARTING, 2_850)
    subject.configure(settings())
    subject.run_until(BEGIN + 3_210)
    assert brain_reported(subject) == (BrainState.RESTARTING, 3_060)
    subject.page = page(stamped_at=BEGIN + 3_300)
    subject.run_until(BEGIN + 3_410)
    assert brain_reported(subject) == (BrainState.ALIVE, 0)


def crash_after(subject: Subject, lived_ms: int) -> None:
    """The daemon comes up, lives for a while, and is gone again; that it is gone has been reported."""
    subject.configure(settings())
    begin = subject.now
    for elapsed in range(100, lived_ms + 1, 100):
        subject.page = page(stamped_at=begin + elapsed)
        subject.run_until(begin + elapsed)
    assert brain_reported(subject)[0] is BrainState.ALIVE
    subject.machine.brain_gone(Instant(subject.now))
    subject.run_until(subject.now + 400)


def test_lives_too_short_to_work_in_do_not_end_the_absence_of_a_brain(subject: Subject) -> None:
    """A daemon whose disk is full starts, joins, and ends at its first write; again and again."""
    for _ in range(10):
        crash_after(subject, lived_ms=600)
    assert brain_reported(subject) == (BrainState.RESTARTING, subject.now - BEGIN)


def test_a_life_of_a_quarter_of_brain_timeout_ends_the_absence_of_a_brain(subject: Subject) -> None:
    crash_after(subject, lived_ms=600)
    crash_after(subject, lived_ms=BRAIN_TIMEOUT // 4 + 300)
    state, away_ms = brain_reported(subject)
    assert state is BrainState.RESTARTING
    assert away_ms <= 600


def test_a_brain_that_begins_a_new_life_in_the_same_process_is_not_gone(subject: Subject) -> None:
    """Each Join that is refused or undone makes it begin again: as a restarting one it would be lost again at once."""
    subject.page = page(stamped_at=BEGIN + 150)
    subject.run_until(BEGIN + 400)
    subject.configure(settings(own=life("n1", 2)))
    subject.run_until(BEGIN + 600)
    assert brain_reported(subject)[0] is BrainState.ALIVE


def test_both_loops_of_the_brain_must_live(subject: Subject) -> None:
    subject.page = page(stamped_at=BEGIN + 100)._replace(raft_stamped_at=Instant(0))
    subject.run_until(BEGIN + 200)
    assert brain_reported(subject)[0] is BrainState.RESTARTING


def test_an_own_stall_is_not_held_against_the_brain(subject: Subject) -> None:
    subject.page = page(stamped_at=BEGIN + 100)
    subject.run_until(BEGIN + 200)
    subject.now += 60_000
    subject.tick()
    assert brain_reported(subject)[0] is BrainState.ALIVE
    subject.run_until(subject.now + 3_000)
    assert brain_reported(subject) == (BrainState.HUNG, 3_000)


def test_heartbeats_go_on_without_a_brain(subject: Subject) -> None:
    subject.machine.brain_gone(Instant(subject.now))
    subject.run_until(BEGIN + 4_000)
    assert subject.last_to("n3").sent_at == BEGIN + 4_000
    assert subject.last_to("n3").incarnation == OWN


# Feeding


@pytest.mark.parametrize(
    ("has_lease", "brain_silent_ms", "is_empty", "may_feed"),
    [
        (True, 0, False, True),
        (True, BRAIN_TIMEOUT - 1, False, True),
        (True, BRAIN_TIMEOUT, False, False),
        (True, None, False, False),
        (False, 0, False, False),
        (False, None, True, True),
    ],
)
def test_feed_only_with_lease_and_young_verdict_or_when_empty(
    subject: Subject, has_lease: bool, brain_silent_ms: int | None, is_empty: bool, may_feed: bool
) -> None:
    end = BEGIN + 20_000
    if brain_silent_ms is not None:
        subject.page = page(stamped_at=end - brain_silent_ms)
        subject.run_until(end - brain_silent_ms + 200)
    subject.run_until(end)
    subject.page = subject.page._replace(is_empty=is_empty)
    if has_lease:
        subject.hear("n2", echo=end)
    subject.machine.watchdog_opened(Watchdog(8_000, "/dev/watchdog", "iTCO_wdt"), Instant(end))
    subject.tick()
    assert [feed.until > end for feed in subject.feeds] == ([True] if may_feed else [])


def test_a_feed_that_is_held_back_is_not_made_after_the_end_of_the_lease(subject: Subject) -> None:
    subject.page = page(stamped_at=BEGIN + 200)
    subject.run_until(BEGIN + 400)
    subject.hear("n2", echo=BEGIN + 400)
    subject.machine.watchdog_opened(Watchdog(8_000, "/dev/watchdog", "iTCO_wdt"), Instant(BEGIN + 400))
    subject.tick()
    assert [feed.until for feed in subject.feeds] == [subject.lease_until()]


def test_a_new_voter_ends_no_lease_and_one_that_stays_mute_does_in_the_end() -> None:
    """Growing from one voter to two: n2 votes from the instant in which n1 follows, and has echoed nothing yet."""
    alone = Subject(settings(["n1"], ["n2"]))
    alone.tick()
    given = alone.lease_until()
    assert given > alone.now
    alone.configure(settings(["n1", "n2"]))
    assert alone.lease_until() == given
    alone.run_until(BEGIN + 600)
    assert alone.lease_until() == given, "n1 alone adds nothing"


def test_a_new_voter_that_echoes_late_takes_nothing_from_the_lease_that_was_given_without_it(subject: Subject) -> None:
    """Of four voters three must echo: n3's last echo is older than the one that the lease of three rests on."""
    subject.hear("n3", echo=BEGIN)
    subject.run_until(BEGIN + 1000)
    newest = subject.sent[-1].heartbeat.sent_at
    subject.hear("n2", echo=newest)
    given = subject.lease_until()
    assert given == newest + T > BEGIN + T
    subject.configure(settings(["n1", "n2", "n3", "n4"]))
    subject.tick()
    assert subject.lease_until() == given


def test_a_lease_is_not_kept_longer_than_shorter_timers_allow() -> None:
    alone = Subject(settings(["n1"], ["n2"]))
    alone.tick()
    given = alone.lease_until()
    alone.configure(replace(settings(["n1", "n2"]), node_timeout_ms=T // 2))
    assert alone.lease_until() == given - T // 2


def test_a_longer_node_timeout_lengthens_no_lease_that_was_given_before(subject: Subject) -> None:
    """Who is lost learns of it as well, and its survivors count on what was in force before."""
    subject.hear("n2", echo=BEGIN)
    subject.now += 10
    subject.configure(replace(settings(), node_timeout_ms=3 * T))
    assert subject.lease_until() == BEGIN + T
    subject.configure(replace(settings(), node_timeout_ms=5 * T))
    assert subject.lease_until() == BEGIN + T
    subject.run_until(BEGIN + T)
    newest = subject.sent[-1].heartbeat.sent_at
    assert newest > BEGIN + 10
    subject.hear("n2", echo=newest)
    assert subject.lease_until() == newest + 5 * T


def test_an_image_that_follows_a_reload_counts_no_echo_of_heartbeats_that_it_did_not_send(subject: Subject) -> None:
    """It does not know whether node-timeout was raised since they were sent; the page has what they gave."""
    subject.hear("n2", echo=BEGIN)
    subject.run_until(BEGIN + 200)
    held_back = subject.sent[-1].heartbeat.sent_at
    subject.configure(replace(settings(), node_timeout_ms=5 * T))
    assert subject.lease_until() == BEGIN + T
    reloaded = Subject(replace(settings(), node_timeout_ms=5 * T), at=BEGIN + 250, inherited=subject.lease)
    reloaded.tick()
    assert reloaded.lease_until() == BEGIN + T
    reloaded.hear("n2", echo=held_back)
    assert reloaded.lease_until() == BEGIN + T, "that heartbeat was sent when the shorter node-timeout was in force"
    reloaded.hear("n2", echo=BEGIN + 250)
    assert reloaded.lease_until() == BEGIN + 250 + 5 * T


def test_a_brain_that_judges_nobody_gets_ages_now_and_then_and_silence_at_once() -> None:
    subject = Subject(settings())

    def live(until: int, *heard: str) -> None:
        while subject.now < until:
            subject.page = page(stamped_at=subject.now)._replace(is_follower=True)
            for name in heard:
                subject.hear(name)
            subject.run_until(min(until, subject.now + 200))

    live(BEGIN + 2_000, "n2", "n3")
    subject.reports.clear()
    live(BEGIN + 10_000, "n2", "n3")
    assert len(subject.reports) == 40 // FOLLOWERS_REPORT
    heard_at = subject.now - 200
    live(heard_at + T - 1, "n2")
    subject.reports.clear()
    live(heard_at + T, "n2")
    assert [report.reported_at for report in subject.reports] == [heard_at + T]
