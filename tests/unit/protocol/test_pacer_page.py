"""The shared page: one writer for each word, and an order of writing that never shows a false whole."""

from collections.abc import Collection
from itertools import count

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import NO_LEASE, HeldLease, PageReading
from haclusterd.protocol.pacer_page import PAGE_SIZE, WITHDRAWN_SLOTS, PacerPage, node_key, token_word

N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
BOTH = (N1, N2)
A1, A2 = "00000000000000a1", "00000000000000a2"


@pytest.fixture
def page() -> PacerPage:
    made = PacerPage(bytearray(PAGE_SIZE))
    made.format()
    return made


def test_a_new_page_is_the_safe_beginning(page: PacerPage) -> None:
    assert page.is_formatted()
    assert page.read(BOTH) == PageReading()
    assert page.held_lease() is None
    assert page.lease_until(A1) == NO_LEASE


def test_a_page_of_another_layout_is_not_taken_for_one() -> None:
    assert not PacerPage(bytearray(PAGE_SIZE)).is_formatted()
    assert not PacerPage(bytearray(b"\xff" * PAGE_SIZE)).is_formatted()


def test_what_one_view_writes_another_reads() -> None:
    memory = bytearray(PAGE_SIZE)
    brain, pacer = PacerPage(memory), PacerPage(memory)
    pacer.format()
    brain.stamp_main(Instant(5))
    brain.stamp_raft(Instant(6))
    brain.set_empty(is_empty=True)
    brain.withdraw(N2)
    brain.say_known(A1)
    assert pacer.read(BOTH) == PageReading(A1, frozenset({N2}), Instant(5), Instant(6), is_empty=True)
    brain.set_follower(is_follower=True)
    assert pacer.read(BOTH).is_follower
    brain.set_links((N3, N1))
    assert pacer.read((N1, N2, N3)).linked == {N1, N3}
    brain.set_links((N2,))
    assert pacer.read((N1, N2, N3)).linked == {N2}
    pacer.publish_lease(HeldLease(A1, Instant(900)))
    assert brain.lease_until(A1) == 900


def test_a_lease_is_only_its_holders(page: PacerPage) -> None:
    page.publish_lease(HeldLease(A1, Instant(900)))
    assert page.lease_until(A2) == NO_LEASE
    page.publish_lease(HeldLease(A2, Instant(700)))
    assert (page.lease_until(A1), page.lease_until(A2), page.held_lease()) == (
        NO_LEASE,
        700,
        HeldLease(A2, Instant(700)),
    )


def test_withdrawing_and_reinstating(page: PacerPage) -> None:
    page.withdraw(N1)
    page.withdraw(N2)
    page.withdraw(N1)
    assert page.read((N1, N2, N3)).withdrawn == {N1, N2}
    page.reinstate(N1)
    page.reinstate(N3)
    assert page.read((N1, N2, N3)).withdrawn == {N2}
    page.withdraw(N3)
    assert page.read((N1, N2, N3)).withdrawn == {N2, N3}


def test_when_no_more_can_be_withdrawn_nobody_is_vouched_for(page: PacerPage) -> None:
    page.say_known(A1)
    for number in range(WITHDRAWN_SLOTS):
        page.withdraw(NodeName(f"x{number}"))
    assert page.read(BOTH).known_by == A1
    with pytest.raises(OverflowError):
        page.withdraw(N1)
    assert page.read(BOTH).known_by is None


def test_a_new_brain_begins_without_what_the_old_one_said_but_as_empty_as_it_was(page: PacerPage) -> None:
    page.stamp_main(Instant(5))
    page.stamp_raft(Instant(6))
    page.set_empty(is_empty=True)
    page.withdraw(N2)
    page.say_known(A1)
    page.publish_lease(HeldLease(A1, Instant(900)))
    page.begin_brain()
    assert page.read(BOTH) == PageReading(is_empty=True)
    assert page.held_lease() == HeldLease(A1, Instant(900))


class Interrupted(PacerPage):
    """A page whose reader is held up while it reads the slots, and a daemon acts meanwhile."""

    def _taken_slots(self) -> Collection[int]:
        slots = super()._taken_slots()
        self.begin_brain()
        return slots


def test_a_set_that_was_revoked_while_it_was_read_is_not_known() -> None:
    page = Interrupted(bytearray(PAGE_SIZE))
    page.format()
    page.say_known(A1)
    assert page.read(BOTH).known_by is None


def test_keys_and_tokens_are_never_the_word_for_nobody() -> None:
    keys = [node_key(NodeName(f"n{number}")) for number, _ in zip(count(), range(1000), strict=False)]
    assert len(set(keys)) == 1000
    assert all(keys)
    with pytest.raises(AssertionError):
        token_word("0" * 16)
