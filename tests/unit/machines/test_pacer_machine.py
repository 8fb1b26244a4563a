"""One pacer's machine, event by event: lease, withdrawal, silence, stalls, lives of peers and brain."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from haclusterd.machines.pacer import (
    FOLLOWERS_REPORT,
    Effect,
    PacerMachine,
    PublishLease,
    Report,
    SendHeartbeat,
    majority_newest,
)
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import (
    NO_LEASE,
    BrainState,
    HeardNode,
    Heartbeat,
    HeldLease,
    PacerReport,
    PacerSettings,
    PageReading,
    PeerAddress,
    Receipt,
)
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules

T = 2000
PERIOD = T // 10
"""node-timeout; so h = 200, L = 2000, a stall is more than 500."""
BRAIN_TIMEOUT = 10_000
BEGIN = 100_000
OWN = Incarnation("boot-1", "00000000000000a1")
OTHER_OWN = Incarnation("boot-1", "00000000000000a2")
EVERYBODY = ("n1", "n2", "n3")


def life(node: str, number: int = 1) -> Incarnation:
    return Incarnation(f"boot-{node}-{number}", f"{int(node[1:]):08x}{number:08x}")


def settings(voters: Iterable[str] = EVERYBODY, others: Iterable[str] = (), own: Incarnation = OWN) -> PacerSettings:
    """Those of n1, with one link to each peer."""
    voters = tuple(voters)
    peers = sorted({*voters, *others} - {"n1"})
    return PacerSettings(
        node=NodeName("n1"),
        incarnation=own,
        is_voter="n1" in voters,
        listen=(("127.0.0.1", 5001),),
        peers=tuple(
            PeerAddress(NodeName(name), (("127.0.0.1", 5000 + int(name[1:])),), b"k" * 32, name in voters)
            for name in peers
        ),
        node_timeout_ms=T,
        brain_timeout_ms=BRAIN_TIMEOUT,
    )


def page(known_by: Incarnation | None = OWN, withdrawn: Iterable[str] = (), stamped_at: int = 0) -> PageReading:
    return PageReading(
        known_by=known_by and known_by.token,
        withdrawn=frozenset(NodeName(name) for name in withdrawn),
        main_stamped_at=Instant(stamped_at),
        raft_stamped_at=Instant(stamped_at),
    )


class Subject:
    """The machine of n1, its page, and what it did."""

    def __init__(
        self,
        given: PacerSettings | None = None,
        *,
        at: int = BEGIN,
        inherited: HeldLease | None = None,
        rules: SafetyRules = ALL_RULES,
    ) -> None:
        self.machine = PacerMachine(Instant(at), inherited, rules)
        self.page = page()
        self.now = at
        self.lease: HeldLease | None = None
        self.sent: list[SendHeartbeat] = []
        self.reports: list[PacerReport] = []
        self.peer_clock: dict[str, int] = {}
        if given is not None:
            self.configure(given)

    def take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case PublishLease(lease):
                    self.lease = lease
                case SendHeartbeat():
                    self.sent.append(effect)
                case Report(report):
                    self.reports.append(report)

    def configure(self, given: PacerSettings) -> None:
        self.take(self.machine.configured(given, Instant(self.now)))

    def tick(self) -> None:
        self.take(self.machine.tick(self.page, Instant(self.now)))

    def run_until(self, end: int) -> None:
        while self.machine.wake_at <= end:
            self.now = max(self.now, self.machine.wake_at)
            self.tick()
        self.now = end

    def hear(
        self,
        name: str,
        *,
        echo: int | None = None,
        own: Incarnation = OWN,
        number: int = 1,
        seen: int | None = None,
        sent_at: int | None = None,
        brain: BrainState = BrainState.ALIVE,
    ) -> None:
        """Let n1 hear a peer that echoes its heartbeat of `echo`, and has seen that of `seen` (else: the newest)."""
        if sent_at is None:
            sent_at = self.peer_clock.get(name, 7_000) + 1
        self.peer_clock[name] = sent_at
        if seen is None and self.sent:
            seen = self.sent[-1].heartbeat.sent_at
        heartbeat = Heartbeat(
            sender=NodeName(name),
            receiver=NodeName("n1"),
            incarnation=life(name, number),
            sent_at=Instant(sent_at),
            brain=brain,
            brain_since_ms=0,
            echo=None if echo is None else Receipt(own.token, Instant(echo)),
            seen=None if seen is None else Receipt(own.token, Instant(seen)),
            heard=(),
        )
        self.take(self.machine.heartbeat_received(NodeName(name), heartbeat, Instant(self.now)))

    def lease_until(self) -> int:
        assert self.lease is not None
        return self.lease.until

    def last_to(self, name: str) -> Heartbeat:
        return next(effect.heartbeat for effect in reversed(self.sent) if effect.peer == name)

    def node(self, name: str) -> HeardNode:
        return next(node for node in self.reports[-1].nodes if node.name == name)


@pytest.fixture
def subject() -> Subject:
    """n1 of three voters, which has just sent its first heartbeat."""
    made = Subject(settings())
    made.tick()
    return made


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
def test_majority_newest(votes: list[int | None], voters: int, newest: int | None) -> None:
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


def test_recordings_of_an_earlier_life_are_no_sign_of_life(subject: Subject) -> None:
    subject.hear("n2", sent_at=800, seen=BEGIN)
    subject.run_until(BEGIN + 200)
    subject.hear("n2", number=2, sent_at=3, seen=BEGIN + 200)
    subject.run_until(BEGIN + 400)
    subject.hear("n2", number=1, sent_at=999, seen=BEGIN)
    subject.run_until(BEGIN + 610)
    assert (subject.node("n2").incarnation, subject.node("n2").age_ms) == (life("n2", 2), 410)


def test_strangers_and_anybody_before_settings_are_ignored() -> None:
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


def test_a_silence_of_node_timeout_is_told_at_once_and_once(subject: Subject) -> None:
    subject.run_until(BEGIN + 70)
    subject.hear("n2")
    subject.run_until(BEGIN + 70 + T)
    assert subject.last_to("n3").sent_at == subject.reports[-1].reported_at == BEGIN + 70 + T
    assert subject.node("n2").age_ms == T
    told = len([report for report in subject.reports if report.reported_at == subject.now])
    assert told == 1


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
def test_after_an_own_stall_silence_is_counted_anew(subject: Subject, late_ms: int, is_stall: bool) -> None:
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


# The own brain


def brain_told(subject: Subject) -> tuple[BrainState, int]:
    heartbeat = subject.last_to("n2")
    return heartbeat.brain, heartbeat.brain_since_ms


def test_a_brain_is_alive_hung_and_gone_by_its_stamps_and_its_connection(subject: Subject) -> None:
    assert brain_told(subject) == (BrainState.RESTARTING, 0)
    subject.page = page(stamped_at=BEGIN + 150)
    subject.run_until(BEGIN + 400)
    assert brain_told(subject) == (BrainState.ALIVE, 200)
    subject.run_until(BEGIN + 150 + 2_500)
    assert brain_told(subject)[0] is BrainState.ALIVE
    subject.run_until(BEGIN + 2_800)
    assert brain_told(subject) == (BrainState.HUNG, 2_650)
    subject.machine.brain_gone(Instant(subject.now))
    subject.run_until(BEGIN + 3_000)
    assert brain_told(subject) == (BrainState.RESTARTING, 2_850)
    subject.configure(settings())
    subject.run_until(BEGIN + 3_210)
    assert brain_told(subject) == (BrainState.RESTARTING, 3_060)
    subject.page = page(stamped_at=BEGIN + 3_300)
    subject.run_until(BEGIN + 3_410)
    assert brain_told(subject) == (BrainState.ALIVE, 0)


def crash_after(subject: Subject, lived_ms: int) -> None:
    """The brain comes up, lives for a while, and is gone again; that it is gone has been told."""
    subject.configure(settings())
    begin = subject.now
    for elapsed in range(100, lived_ms + 1, 100):
        subject.page = page(stamped_at=begin + elapsed)
        subject.run_until(begin + elapsed)
    assert brain_told(subject)[0] is BrainState.ALIVE
    subject.machine.brain_gone(Instant(subject.now))
    subject.run_until(subject.now + 400)


def test_lives_too_short_to_work_in_do_not_end_the_absence_of_a_brain(subject: Subject) -> None:
    """A daemon whose disk is full starts, joins, and ends at its first write; again and again."""
    for _ in range(10):
        crash_after(subject, lived_ms=600)
    assert brain_told(subject) == (BrainState.RESTARTING, subject.now - BEGIN)


def test_a_life_of_a_quarter_of_brain_timeout_ends_the_absence_of_a_brain(subject: Subject) -> None:
    crash_after(subject, lived_ms=600)
    crash_after(subject, lived_ms=BRAIN_TIMEOUT // 4 + 300)
    state, away_ms = brain_told(subject)
    assert state is BrainState.RESTARTING
    assert away_ms <= 600


def test_a_brain_that_begins_a_new_life_in_the_same_process_is_not_gone(subject: Subject) -> None:
    """Each Join that is refused or undone makes it begin anew: told as restarting, it would be lost again at once."""
    subject.page = page(stamped_at=BEGIN + 150)
    subject.run_until(BEGIN + 400)
    subject.configure(settings(own=life("n1", 2)))
    subject.run_until(BEGIN + 600)
    assert brain_told(subject)[0] is BrainState.ALIVE


def test_both_loops_of_the_brain_must_live(subject: Subject) -> None:
    subject.page = page(stamped_at=BEGIN + 100)._replace(raft_stamped_at=Instant(0))
    subject.run_until(BEGIN + 200)
    assert brain_told(subject)[0] is BrainState.RESTARTING


def test_an_own_stall_is_not_held_against_the_brain(subject: Subject) -> None:
    subject.page = page(stamped_at=BEGIN + 100)
    subject.run_until(BEGIN + 200)
    subject.now += 60_000
    subject.tick()
    assert brain_told(subject)[0] is BrainState.ALIVE
    subject.run_until(subject.now + 3_000)
    assert brain_told(subject) == (BrainState.HUNG, 3_000)


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
    subject.now = end
    subject.tick()
    assert subject.machine.may_feed(Instant(end)) is may_feed


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


def test_a_lease_is_not_kept_longer_than_shorter_timers_allow() -> None:
    alone = Subject(settings(["n1"], ["n2"]))
    alone.tick()
    given = alone.lease_until()
    alone.configure(replace(settings(["n1", "n2"]), node_timeout_ms=T // 2))
    assert alone.lease_until() == given - T // 2


def test_a_brain_that_judges_nobody_is_told_of_ages_now_and_then_and_of_silence_at_once() -> None:
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
