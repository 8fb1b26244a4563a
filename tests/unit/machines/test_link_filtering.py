"""When the kernel is asked to drop what is not of a peer's known life: in a flood, not for long (safety.md §3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.machines.link_filtering import FLOOD, OVER_MS, Admitted, LetThrough, LinkFiltering
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import NEVER, Instant
from haclusterd.model.pacer import HeardIncarnation, Link
from haclusterd.model.records import replace
from tests.unit.machines.pacing import PERIOD, life, settings

BEGIN = 100_000
N2 = NodeName("n2")


def link_to(name: str) -> Link:
    return (("127.0.0.1", 5001), ("127.0.0.1", 5000 + int(name[1:])))


LINK = link_to("n2")
OLD, NEW = life("n2"), life("n2", 2)
OWN_LIFE = Admitted(N2, OLD.boot_id, OLD.token)
OWN_BOOT = Admitted(N2, OLD.boot_id, None)


class Subject:
    """The filtering of n1, and the time."""

    def __init__(self) -> None:
        self.now = Instant(BEGIN)
        self.filtering = LinkFiltering()
        self.filtering.configured(settings())
        self.heard: dict[NodeName, HeardIncarnation] = {}
        self.admitted: dict[Link, Admitted | None] = {}

    def hear(self, name: str = "n2", number: int = 1, boot: int = 1) -> None:
        self.heard[NodeName(name)] = HeardIncarnation(life(name, number, boot), self.now)

    def flood(self, count: int = FLOOD, link: Link = LINK) -> None:
        for _ in range(count):
            self.filtering.refused(link)

    def step(self, later_ms: int = 0) -> Admitted | None:
        """Let time pass, and return who passes on the link to n2."""
        self.now = Instant(self.now + later_ms)
        for change in self.filtering.step(self.heard.get, self.now):
            assert change.admitted != self.admitted.get(change.link), "a change"
            self.admitted[change.link] = change.admitted
        return self.admitted.get(LINK)


@pytest.fixture
def subject() -> Subject:
    made = Subject()
    made.hear()
    return made


def test_without_a_flood_nothing_is_filtered(subject: Subject) -> None:
    for _ in range(50):
        subject.flood(FLOOD - 1)
        assert subject.step() is None
        assert subject.step(PERIOD) is None
    assert subject.admitted == {}
    assert subject.filtering.wake_at == NEVER


def test_in_a_flood_only_the_known_life_passes_on_that_link(subject: Subject) -> None:
    subject.hear("n3")
    subject.flood()
    assert subject.step() == OWN_LIFE
    assert subject.admitted == {LINK: OWN_LIFE}
    assert subject.filtering.filtered == (LINK,)


def test_a_flood_is_counted_over_a_period(subject: Subject) -> None:
    subject.flood(FLOOD // 2)
    assert subject.step() is None
    subject.flood(FLOOD // 2)
    assert subject.step(PERIOD - 1) == OWN_LIFE


def test_while_nobody_is_heard_there_is_nothing_to_filter_by(subject: Subject) -> None:
    subject.heard.clear()
    subject.flood()
    assert subject.step() is None
    subject.hear(number=2)
    assert subject.step() == Admitted(N2, NEW.boot_id, NEW.token), "as soon as it is heard"


def test_a_life_that_falls_silent_gives_way_to_its_boot_and_then_to_everybody(subject: Subject) -> None:
    subject.flood()
    subject.step()
    for at, admitted in ((PERIOD * 3 // 2, OWN_BOOT), (PERIOD * 3, None)):
        assert subject.filtering.wake_at == BEGIN + at
        assert subject.step(BEGIN + at - 1 - subject.now) != admitted
        assert subject.step(1) == admitted


def test_the_filter_follows_to_a_new_life(subject: Subject) -> None:
    subject.flood()
    subject.step()
    assert subject.step(PERIOD * 2) == OWN_BOOT
    subject.hear(number=2)
    assert subject.step() == Admitted(N2, NEW.boot_id, NEW.token)
    subject.step(PERIOD * 3)
    subject.hear(boot=2)
    assert subject.step() == Admitted(N2, "boot-n2-2", OLD.token)


def test_when_the_flood_is_over_everything_passes(subject: Subject) -> None:
    subject.flood()
    subject.step()
    subject.step(PERIOD)
    for _ in range(OVER_MS // PERIOD - 1):
        subject.hear()
        assert subject.step(PERIOD) == OWN_LIFE
    subject.hear()
    assert subject.step(PERIOD) is None
    assert subject.filtering.filtered == ()
    assert subject.filtering.wake_at == NEVER


def test_a_flood_goes_on_while_the_kernel_drops(subject: Subject) -> None:
    subject.flood()
    subject.step()
    assert not subject.filtering.dropped(LINK, 7, subject.now), "it may have dropped these before there was a filter"
    for count in range(8, 8 + OVER_MS * 3 // PERIOD):
        subject.hear()
        assert subject.filtering.dropped(LINK, count, subject.now)
        assert subject.step(PERIOD) == OWN_LIFE
    assert not subject.filtering.dropped(LINK, count, subject.now)
    subject.hear()
    assert subject.step(OVER_MS) is None
    assert not subject.filtering.dropped(LINK, count + 1, subject.now), "no filter, no judgement"


def test_links_that_stay_keep_their_filter_and_others_are_forgotten(subject: Subject) -> None:
    subject.hear("n3")
    subject.flood()
    subject.flood(link=link_to("n3"))
    subject.step()
    assert len(subject.filtering.filtered) == 2
    assert subject.filtering.configured(settings(("n1", "n2"))) == (LetThrough(link_to("n3"), None),)
    assert subject.filtering.filtered == (LINK,)
    subject.flood(link=link_to("n3"))
    assert subject.filtering.step(subject.heard.get, subject.now) == ()
    subject.filtering.configured(settings(("n1",)))
    subject.step()
    assert subject.filtering.wake_at == NEVER


def test_a_peer_at_the_address_of_another_one_is_not_kept_out_by_its_filter(subject: Subject) -> None:
    subject.flood()
    assert subject.step() == OWN_LIFE
    given = settings()
    replaced = tuple(replace(peer, name=NodeName("n4")) if peer.name == N2 else peer for peer in given.peers)
    assert subject.filtering.configured(replace(given, peers=replaced)) == (LetThrough(LINK, None),)
    assert subject.filtering.filtered == ()
    assert subject.filtering.configured(replace(given, peers=replaced)) == ()


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans(), st.booleans()), max_size=60))
def test_no_life_is_kept_out_for_longer_than_its_bound(steps: list[tuple[int, bool, bool]]) -> None:
    subject = Subject()
    for later_ms, is_flooded, is_heard in steps:
        subject.now = Instant(subject.now + later_ms)
        if is_heard:
            subject.hear()
        if is_flooded:
            subject.flood()
        admitted = subject.step()
        known = subject.heard.get(N2)
        silent_ms = subject.now - known.silent_since if known else NEVER
        if silent_ms >= PERIOD * 3:
            assert admitted is None
        elif silent_ms >= PERIOD * 3 // 2:
            assert admitted in {None, OWN_BOOT}
        else:
            assert admitted in {None, OWN_LIFE}
            assert admitted == OWN_LIFE or not is_flooded
        assert subject.filtering.wake_at > subject.now
