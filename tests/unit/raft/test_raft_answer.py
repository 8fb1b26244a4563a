"""Entries that a leader's main loop sees before they are committed, and what it answers: one sync for both."""

from haclusterd.model.ids import Term
from haclusterd.ports.store import Appended
from haclusterd.raft.answer import DELAY_MS_MAX
from haclusterd.raft.frames import REGULAR
from tests.simulation.store_world import AWAITED
from tests.unit.raft.raft_bench import N2, N3, Bench


def leading() -> Bench:
    """n1 leads, and both peers have all that it has."""
    bench = Bench()
    bench.lead()
    for peer in (N2, N3):
        bench.hear_acknowledgement(peer, bench.core.status().last_index + 1)
    bench.let_disk_work()
    bench.take_sent()
    return bench


def test_a_write_waits_for_what_follows_from_an_entry_and_one_sync_serves_both() -> None:
    bench = leading()
    bench.core.propose(AWAITED)
    bench.core.tick()
    shown = [event for event in bench.events if isinstance(event, Appended)]
    assert [(event.term, event.entry) for event in shown] == [(bench.term, AWAITED)]
    assert bench.jobs == []
    bench.core.propose(b"what follows", Term(bench.term))
    bench.core.considered(shown[0].index)
    bench.core.tick()
    assert len(bench.jobs) == 1
    sent = bench.take_sent("append_entries")
    assert [len(message["entries"]) for _, message in sent] == [2, 2]


def test_a_write_waits_for_an_answer_only_a_moment() -> None:
    bench = leading()
    bench.core.propose(AWAITED)
    bench.core.tick()
    bench.wait(DELAY_MS_MAX - 1)
    assert bench.jobs == []
    assert bench.core.due() == bench.now_ms + 1
    bench.wait(1)
    assert len(bench.jobs) == 1


def test_more_entries_to_look_at_make_no_write_wait_longer() -> None:
    bench = leading()
    for _ in range(DELAY_MS_MAX):
        bench.core.propose(AWAITED)
        bench.core.tick()
        assert bench.jobs == []
        bench.now_ms += 1
    bench.core.tick()
    assert len(bench.jobs) == 1


def test_nobody_is_shown_an_entry_that_leaves_the_main_loop_no_room() -> None:
    bench = leading()
    bench.room = 0
    bench.core.propose(AWAITED)
    bench.core.tick()
    assert not any(isinstance(event, Appended) for event in bench.events)
    assert len(bench.jobs) == 1


def test_a_followers_writes_wait_for_nobody() -> None:
    bench = Bench()
    bench.hear_append(N2, 1, (1, 0), [(bytes((REGULAR,)) + AWAITED, 2, 1)])
    assert not any(isinstance(event, Appended) for event in bench.events)
    assert len(bench.jobs) == 1


def test_a_leader_that_is_deposed_while_it_waits_writes_at_once_and_is_not_woken_for_nothing() -> None:
    bench = leading()
    bench.core.propose(AWAITED)
    bench.core.tick()
    assert bench.jobs == []
    bench.hear_append(N2, bench.term + 1, (2, 1))
    assert len(bench.jobs) == 1
    bench.now_ms += DELAY_MS_MAX
    bench.core.tick()
    assert bench.core.due() > bench.now_ms


def test_a_proposal_for_one_term_enters_no_other_log() -> None:
    bench = Bench()
    bench.core.propose(b"of a term to come", Term(bench.term + 1))
    bench.core.propose(b"of no term")
    bench.hear_append(N2, 1, (1, 0))
    bench.let_disk_work()
    assert [message["command"] for _, message in bench.take_sent("apply_command")] == [b"of no term"]
    bench = leading()
    bench.core.propose(b"of another term", Term(bench.term - 1))
    bench.core.propose(b"of this term", Term(bench.term))
    bench.core.tick()
    bench.let_disk_work()
    entries = [entry for _, message in bench.take_sent("append_entries") for entry in message["entries"]]
    assert {bytes(entry[0][1:]) for entry in entries} == {b"of this term"}
