"""The guards, one by one, on a core whose peers are played (docs/design/0002-store.md names them)."""

from typing import Any

import pytest

from haclusterd.model.followers import Followers
from haclusterd.model.ids import NodeName, Term
from haclusterd.ports.store import (
    LeadershipChanged,
    ReplicasDiffer,
    Restored,
    StoreDamagedError,
    StoreRefusedError,
    VoterLinks,
)
from haclusterd.raft.frames import REGULAR, VOTERS
from haclusterd.raft.identity import IDENTITY_NAME
from haclusterd.raft.journal import JOURNAL_NAME
from haclusterd.raft.snapshot import SNAPSHOT_NAME, Snapshot, encode_snapshot
from tests.simulation.store_world import CLUSTER, ListMachine, spell_voters
from tests.unit.raft.raft_bench import N1, N2, N3, N4, N5, Bench


def entry(text: str, index: int, term: int) -> tuple[bytes, int, int]:
    return (b"\0" + text.encode(), index, term)


def acknowledged(bench: Bench) -> list[tuple[str, int]]:
    """Peers and next indexes of the acknowledgements that left."""
    answers = bench.take_sent("next_node_idx")
    return [(peer, message["next_node_idx"]) for peer, message in answers if message["success"]]


def acknowledged_leader() -> Bench:
    """A leader of which both peers have everything, and nothing is being written."""
    bench = Bench()
    bench.lead()
    for peer in (N2, N3):
        bench.hear_acknowledgement(peer, 3)
    bench.let_disk_work()
    return bench


# The barrier: nothing is shown before it is synced.


def test_a_vote_leaves_only_after_the_sync_and_binds_after_a_crash() -> None:
    bench = Bench()
    bench.hear(N2, "request_vote", term=5, last_log_index=1, last_log_term=0)
    assert bench.sent == []
    bench.let_disk_work()
    assert bench.take_sent() == [(N2, {"type": "response_vote", "term": 5})]
    bench.lose_power()
    bench.hear(N3, "request_vote", term=5, last_log_index=9, last_log_term=4)
    bench.let_disk_work()
    assert bench.take_sent("response_vote") == []
    assert bench.term == 5


def test_a_vote_that_was_not_synced_was_sent_to_nobody_and_may_be_given_again() -> None:
    bench = Bench()
    bench.hear(N2, "request_vote", term=5, last_log_index=1, last_log_term=0)
    bench.lose_power()
    bench.hear(N3, "request_vote", term=5, last_log_index=1, last_log_term=0)
    bench.let_disk_work()
    assert bench.take_sent("response_vote") == [(N3, {"type": "response_vote", "term": 5})]


def test_a_candidate_asks_for_votes_only_after_its_own_vote_is_synced() -> None:
    bench = Bench()
    bench.campaign()
    assert bench.term == 1
    assert bench.take_sent("request_vote") == []
    bench.let_disk_work()
    assert sorted(peer for peer, _ in bench.take_sent("request_vote")) == [N2, N3]


def test_entries_are_acknowledged_after_their_sync_and_heartbeats_at_once() -> None:
    bench = Bench()
    bench.hear_append(N2, 1, (1, 0))
    bench.let_disk_work()
    bench.take_sent()
    bench.hear_append(N2, 1, (1, 0), [entry("a", 2, 1), entry("b", 3, 1)])
    assert acknowledged(bench) == [(N2, 2)], "only what is synced"
    bench.hear_append(N2, 1, (3, 1))
    assert acknowledged(bench) == [(N2, 2)], "a slow disk does not silence a follower"
    bench.let_disk_work()
    assert acknowledged(bench)[-1] == (N2, 4)


def test_entries_are_shown_to_the_machine_before_they_are_acknowledged() -> None:
    bench = Bench()
    bench.hear_append(N2, 1, (1, 0), [entry("a", 2, 1)])
    assert bench.machine.tail == [b"a"]
    assert acknowledged(bench) == []


def test_a_leader_sends_an_entry_while_it_writes_it_and_counts_its_own_copy_afterwards() -> None:
    bench = acknowledged_leader()
    bench.take_sent()
    assert bench.core.propose(b"x")
    bench.core.tick()
    sent = [(peer, message["entries"]) for peer, message in bench.take_sent("append_entries")]
    assert sent == [(N2, [[b"\0x", 3, 1]]), (N3, [[b"\0x", 3, 1]])]
    bench.hear_acknowledgement(N2, 4)
    assert bench.core.status().commit_index == 2, "two of three have it, and one of them not on its disk"
    bench.let_disk_work()
    assert bench.applied == [b"x"]
    assert [message["commit_index"] for _, message in bench.take_sent("append_entries")] == [3, 3]


def test_a_leader_whose_disk_stands_still_goes_on_with_heartbeats_and_sends_nothing_more() -> None:
    bench = acknowledged_leader()
    assert bench.core.propose(b"x")
    bench.core.tick()
    for peer in (N2, N3):
        bench.hear_acknowledgement(peer, 4)
    bench.take_sent()
    assert bench.core.propose(b"y")
    bench.wait(2 * bench.core.timers.append_ms + 10)
    appends = bench.take_sent("append_entries")
    assert len(appends) >= 4
    assert all(message["entries"] == [] and message["prevLogIdx"] == 3 for _, message in appends)
    assert all(message["commit_index"] == 2 for _, message in appends)
    assert bench.machine.tail == [b"x", b"y"], "the leader's own acknowledgement counts too"


def test_a_voter_alone_applies_only_what_is_synced() -> None:
    bench = Bench(voters=1)
    bench.wait(bench.settings.timers.election_max_ms + 1)
    bench.core.propose(b"x")
    bench.wait(500)
    assert bench.applied == []
    bench.let_disk_work()
    assert bench.applied == [b"x"]


def test_an_error_of_the_disk_stops_the_node_for_ever() -> None:
    bench = Bench()
    bench.disk.full = True
    bench.hear(N2, "request_vote", term=5, last_log_index=1, last_log_term=0)
    bench.let_disk_work()
    assert bench.failures == ["disk/journal: [Errno 28] No space left on device"]
    bench.disk.full = False
    bench.wait(5000)
    bench.hear(N3, "request_vote", term=6, last_log_index=1, last_log_term=0)
    assert bench.sent == []
    assert bench.jobs == []
    assert not bench.core.propose(b"x")


# Start.


def test_the_unapplied_tail_is_shown_at_start_before_anything_is_said() -> None:
    bench = Bench()
    bench.hear_append(N2, 1, (1, 0), [entry("a", 2, 1), entry("b", 3, 1)])
    bench.let_disk_work()
    bench.lose_power()
    assert bench.machine.tail == [b"a", b"b"]


def test_the_committed_suffix_is_applied_again_at_start() -> None:
    bench = Bench()
    bench.hear_append(N2, 1, (1, 0), [entry("a", 2, 1), entry("b", 3, 1)])
    bench.let_disk_work()
    bench.hear_append(N2, 1, (3, 1), commit=2)
    bench.wait(1100)
    bench.let_disk_work()
    assert bench.applied == [b"a"]
    bench.lose_power()
    assert bench.applied == [b"a"]
    assert bench.machine.tail == [b"b"]


@pytest.mark.parametrize(
    ("name", "replacement", "message"),
    [
        (JOURNAL_NAME, None, "has voted and promised before"),
        (IDENTITY_NAME, None, "never set up, or it was emptied"),
        (IDENTITY_NAME, CLUSTER.replace("1", "9"), "configured for cluster"),
        (IDENTITY_NAME, '"node": "n2"', "is of node n2"),
    ],
)
def test_a_directory_without_memory_or_of_another_is_refused(
    name: str, replacement: str | None, message: str
) -> None:
    bench = Bench()
    bench.core.stop()
    data = bench.disk.written(name)
    bench.disk.remove(name)
    if replacement is not None:
        old = '"node": "n1"' if "node" in replacement else CLUSTER
        bench.disk.put(name, data.replace(old.encode(), replacement.encode()))
    with pytest.raises(StoreRefusedError, match=message):
        bench.start()


def test_an_emptied_directory_is_refused() -> None:
    bench = Bench()
    bench.core.stop()
    bench.disk.files.clear()
    with pytest.raises(StoreRefusedError, match=r"haclusterd --initialize.*crm cluster remove"):
        bench.start()


def test_a_second_process_is_refused() -> None:
    bench = Bench()
    bench.disk.is_locked = True
    with pytest.raises(StoreRefusedError, match="another process"):
        bench.core.open()


@pytest.mark.parametrize("name", [JOURNAL_NAME, IDENTITY_NAME, SNAPSHOT_NAME])
def test_damage_prevents_the_start(name: str) -> None:
    bench = Bench()
    bench.core.stop()
    bench.disk.put(name, b"rubbish")
    with pytest.raises(StoreDamagedError, match=f"disk/{name}"):
        bench.start()


def test_a_snapshot_that_the_machine_cannot_read_prevents_the_start() -> None:
    bench = Bench()
    bench.core.stop()
    bench.disk.put(SNAPSHOT_NAME, encode_snapshot(Snapshot(9, Term(1), b"\xc1"), CLUSTER))
    with pytest.raises(StoreDamagedError, match="disk/snapshot"):
        bench.start()


# Voters.


def test_voters_change_when_an_entry_of_this_term_is_committed_and_the_change_before_is_applied() -> None:
    """Otherwise two majorities with nobody in common could commit (Raft thesis §4.1, and its erratum)."""
    bench = Bench()
    bench.lead()
    four = spell_voters(bench.core.voter_set.version + 1, (N1, N2, N3, N4))
    assert bench.core.kind_of(four) == REGULAR, "nothing of this term is committed"
    for peer in (N2, N3):
        bench.hear_acknowledgement(peer, 3)
    bench.let_disk_work()
    assert bench.core.kind_of(four) == VOTERS
    bench.machine.allows_changes = False
    assert bench.core.kind_of(four) == REGULAR
    bench.machine.allows_changes = True
    assert bench.core.propose(four)
    bench.core.tick()
    assert bench.core.voter_set.voters == (N1, N2, N3, N4)
    five = spell_voters(bench.core.voter_set.version + 1, (N1, N2, N3, N4, N5))
    assert bench.core.kind_of(five) == REGULAR, "the change before is not applied"


# Votes and terms.


def test_one_voter_counts_once_however_often_its_vote_arrives() -> None:
    bench = Bench(voters=5)
    bench.campaign()
    bench.let_disk_work()
    for _ in range(3):
        bench.hear(N2, "response_vote", term=1)
    assert not bench.core.status().is_leader
    bench.hear(N4, "response_vote", term=1)
    assert bench.core.status().is_leader


def test_an_acknowledgement_of_another_term_commits_nothing() -> None:
    bench = Bench()
    bench.hear_append(N2, 3, (1, 0), [entry("old", 2, 3)])
    bench.let_disk_work()
    bench.lead()
    assert bench.term == 4
    bench.hear_acknowledgement(N2, 4, term=3)
    bench.hear_acknowledgement(N3, 4, term=3)
    assert bench.core.status().commit_index == 1
    bench.hear_acknowledgement(N2, 4, term=4)
    assert bench.core.status().commit_index == 3


def test_an_acknowledgement_of_what_does_not_exist_is_ignored() -> None:
    bench = Bench()
    bench.lead()
    bench.hear_acknowledgement(N2, 1000)
    assert bench.core.status().commit_index == 1
    assert bench.core.status().is_leader


def test_a_newer_term_in_an_answer_deposes_the_leader() -> None:
    bench = Bench()
    bench.lead()
    bench.hear_acknowledgement(N2, 1, term=9)
    assert not bench.core.status().is_leader
    assert bench.term == 9


def test_a_leader_of_an_old_term_learns_it() -> None:
    bench = Bench()
    bench.hear_append(N2, 5, (1, 0))
    bench.let_disk_work()
    bench.take_sent()
    bench.hear_append(N3, 4, (1, 0), [entry("late", 2, 4)])
    assert bench.take_sent("next_node_idx") == [
        (
            N3,
            {"type": "next_node_idx", "term": 5, "next_node_idx": 2, "success": False, "refused_index": 0},
        )
    ]
    assert bench.core.status().last_index == 1


def test_pre_votes_are_refused_while_the_leader_is_heard_and_raise_no_term() -> None:
    bench = Bench()
    bench.hear_append(N2, 5, (1, 0))
    bench.let_disk_work()
    bench.take_sent()
    bench.hear(N3, "request_pre_vote", term=6, last_log_index=9, last_log_term=5)
    assert [message["granted"] for _, message in bench.take_sent("response_pre_vote")] == [False]
    bench.now_ms += bench.settings.timers.election_min_ms
    bench.hear(N3, "request_pre_vote", term=6, last_log_index=9, last_log_term=5)
    assert [message["granted"] for _, message in bench.take_sent("response_pre_vote")] == [True]
    bench.hear(N3, "request_pre_vote", term=6, last_log_index=0, last_log_term=0)
    assert [message["granted"] for _, message in bench.take_sent("response_pre_vote")] == [False]
    assert bench.term == 5


def test_a_node_that_nobody_answers_does_not_raise_its_term() -> None:
    bench = Bench()
    bench.wait(60_000)
    assert bench.term == 0
    assert not bench.core.status().is_leader


def test_a_leader_without_a_majority_steps_down_before_another_can_be_elected() -> None:
    bench = Bench()
    bench.lead()
    bench.hear_acknowledgement(N2, 3)
    bench.let_disk_work()
    start = bench.now_ms
    while bench.core.status().is_leader:
        bench.wait(1)
    timers = bench.settings.timers
    assert bench.now_ms - start <= timers.fallback_ms + 1 < timers.election_min_ms


def test_two_leaders_in_one_term_stop_the_node() -> None:
    bench = Bench()
    bench.lead()
    bench.hear_append(N2, bench.term, (1, 0))
    assert bench.failures == [f"n2 and n1 both lead term {bench.term}"]


# The follower's log.


def follower_with(bench: Bench, *texts: str, term: int = 1, commit: int = 1) -> None:
    entries = [entry(text, index, term) for index, text in enumerate(texts, 2)]
    bench.hear_append(N2, term, (1, 0), entries, commit)
    bench.let_disk_work()
    bench.take_sent()


def test_a_repeated_old_message_takes_nothing_back() -> None:
    bench = Bench()
    follower_with(bench, "a", "b", "c")
    bench.hear_append(N2, 1, (1, 0), [entry("a", 2, 1)])
    bench.hear_append(N2, 1, (1, 0))
    assert bench.core.status().last_index == 4
    bench.lose_power()
    assert bench.machine.tail == [b"a", b"b", b"c"]


def test_a_conflicting_tail_is_cut_and_taken_back_from_the_machine() -> None:
    bench = Bench()
    follower_with(bench, "a", "b", "c")
    bench.hear_append(N3, 2, (2, 1), [entry("other", 3, 2)])
    assert bench.machine.tail == [b"a", b"other"]
    bench.let_disk_work()
    assert acknowledged(bench)[-1] == (N3, 4)
    bench.lose_power()
    assert bench.machine.tail == [b"a", b"other"]


def test_a_conflict_at_the_previous_entry_cuts_it_and_names_the_first_of_its_term() -> None:
    bench = Bench()
    follower_with(bench, "a", "b", "c")
    bench.hear_append(N3, 5, (4, 4), [entry("x", 5, 5)])
    bench.let_disk_work()
    refusals = [message for _, message in bench.take_sent("next_node_idx") if not message["success"]]
    assert [(message["next_node_idx"], message["refused_index"]) for message in refusals] == [(2, 4)]
    assert bench.machine.tail == [b"a", b"b"]


def test_a_message_beyond_the_log_is_refused_with_the_place_to_go_on() -> None:
    bench = Bench()
    follower_with(bench, "a")
    bench.hear_append(N2, 1, (7, 1))
    assert [
        (message["success"], message["next_node_idx"], message["refused_index"])
        for _, message in bench.take_sent("next_node_idx")
    ] == [(False, 3, 7)]


def test_the_commit_index_covers_only_what_the_message_verified() -> None:
    bench = Bench()
    follower_with(bench, "mine", "mine too")
    bench.hear_append(N3, 2, (1, 0), commit=3)
    bench.let_disk_work()
    bench.wait(10)
    assert bench.applied == [], "the tail was never compared with the new leader's log"
    assert bench.core.status().commit_index == 1


def test_a_snapshot_chunk_commits_nothing() -> None:
    bench = Bench()
    follower_with(bench, "mine", "mine too")
    bench.hear(N3, "install_snapshot", term=2, index=50, total=100, offset=0, data=b"x")
    bench.let_disk_work()
    assert bench.applied == []
    assert bench.core.status().commit_index == 1


def test_a_leader_that_contradicts_a_committed_entry_stops_the_node() -> None:
    bench = Bench()
    follower_with(bench, "a", "b", commit=3)
    bench.hear_append(N3, 2, (2, 1), [entry("other", 3, 2)])
    assert bench.failures == ["the leader's log disagrees with the committed entry 3"]


# Proposals.


def test_a_follower_passes_proposals_to_the_leader() -> None:
    bench = Bench()
    bench.core.propose(b"early")
    bench.hear_append(N2, 1, (1, 0))
    bench.let_disk_work()
    assert bench.take_sent("apply_command") == [(N2, {"type": "apply_command", "command": b"early"})]


def test_what_was_proposed_without_a_leader_reaches_none_that_comes_later() -> None:
    """Who asked may have been answered "no quorum" by then; who still wants it proposes it again."""
    bench = Bench()
    bench.core.propose(b"early")
    bench.core.tick()
    bench.hear_append(N2, 1, (1, 0))
    bench.let_disk_work()
    assert bench.take_sent("apply_command") == []
    bench.core.propose(b"again")
    bench.core.tick()
    assert bench.take_sent("apply_command") == [(N2, {"type": "apply_command", "command": b"again"})]


def test_proposals_are_refused_when_too_much_is_in_flight() -> None:
    bench = Bench(in_flight_max=10, waiting_max=5)
    bench.lead()
    accepted = 0
    for number in range(100):
        accepted += bench.core.propose(b"%d" % number)
        bench.core.tick()
    assert accepted == 10 - 1 + 5, "the empty entry of the term is in flight too"


def test_one_message_carries_all_that_waited_for_the_same_sync() -> None:
    bench = acknowledged_leader()
    bench.take_sent()
    for number in range(50):
        bench.core.propose(b"%d" % number)
        bench.core.tick()
    bench.let_disk_work()
    sizes = [len(message["entries"]) for peer, message in bench.take_sent("append_entries") if peer == N2]
    assert sum(sizes) == 50
    assert max(sizes) == 49, "one goes with the first sync, the others with the second"


def test_an_entry_that_was_lost_on_the_way_is_sent_again_when_the_next_heartbeat_is_refused() -> None:
    bench = Bench()
    bench.lead()
    bench.hear_acknowledgement(N2, 3)
    bench.let_disk_work()
    bench.core.propose(b"x")
    bench.core.tick()
    bench.let_disk_work()
    bench.take_sent()
    bench.wait(bench.settings.timers.append_ms + 1)
    heartbeats = [message for peer, message in bench.take_sent("append_entries") if peer == N2]
    assert [(message["prevLogIdx"], message["entries"]) for message in heartbeats] == [(3, [])]
    refusal = {"term": bench.term, "next_node_idx": 3, "success": False, "refused_index": 3}
    bench.hear(N2, "next_node_idx", **refusal)
    bench.hear_acknowledgement(N2, 3)
    sent = [message["entries"] for peer, message in bench.take_sent("append_entries") if peer == N2]
    assert sent == [[], [[b"\0x", 3, 1]]]


def test_leadership_is_handed_only_to_a_peer_that_has_the_whole_log() -> None:
    bench = Bench()
    bench.lead()
    bench.core.transfer_leadership(N3)
    assert bench.take_sent("timeout_now") == []
    bench.hear_acknowledgement(N3, 3)
    bench.core.transfer_leadership(N3)
    bench.core.transfer_leadership(N1)
    assert bench.take_sent("timeout_now") == [(N3, {"type": "timeout_now", "term": bench.term})]


def test_timeout_now_makes_a_follower_campaign_at_once() -> None:
    bench = Bench()
    follower_with(bench, "a")
    bench.hear(N2, "timeout_now", term=1)
    bench.let_disk_work()
    assert [message["term"] for _, message in bench.take_sent("request_vote")] == [2, 2]


# Events.


def test_nothing_is_applied_while_the_main_loop_has_no_room_and_all_of_it_later() -> None:
    bench = Bench()
    bench.room = 0
    follower_with(bench, "a", "b", "c", commit=4)
    bench.wait(100)
    assert bench.applied == []
    bench.room = 2
    bench.core.tick()
    assert bench.applied == [b"a", b"b"]
    bench.core.tick()
    assert bench.applied == [b"a", b"b", b"c"]


def test_leaders_and_links_are_reported_when_they_change() -> None:
    bench = Bench()
    follower_with(bench, "a")
    bench.core.peer_disconnected(N3)
    reported = [event for event in bench.events if isinstance(event, LeadershipChanged)]
    assert reported[-1] == LeadershipChanged(Term(1), N2, is_self=False)
    links = [event for event in bench.events if isinstance(event, VoterLinks)]
    assert links == [VoterLinks((N2,)), VoterLinks((N2, N3)), VoterLinks((N2,))]


# Snapshots.


def test_a_snapshot_is_durable_before_the_journal_forgets() -> None:
    bench = Bench(snapshot_every=4, retained_entries=0)
    follower_with(bench, "a", "b", "c", commit=4)
    assert bench.core.status().base_index == 4, "at an index that all nodes agree on"
    assert SNAPSHOT_NAME in bench.disk.files
    bench.lose_power()
    assert bench.events[0] == Restored(4, bench.machine.digest)
    assert bench.machine.items == [b"a", b"b", b"c"]


def test_a_restart_does_not_forget_that_the_replicas_differ() -> None:
    bench = Bench(snapshot_every=4, retained_entries=0)
    follower_with(bench, "a", "b", "c", commit=4)
    for _ in range(2):
        differ(bench)
        assert reported_of_replicas(bench)[-1].startswith("the replicas differ at entry 4: n1")
        bench.lose_power()


def differ(bench: Bench) -> None:
    bench.hear(N2, "digest", index=4, digest=b"2" * 32)
    bench.hear(N3, "digest", index=4, digest=b"3" * 32)


def reported_of_replicas(bench: Bench) -> list[str]:
    return [event.why for event in bench.events if isinstance(event, ReplicasDiffer)]


def test_nor_does_it_when_the_newest_snapshot_is_of_another_index() -> None:
    bench = Bench(snapshot_every=4, retained_entries=0)
    follower_with(bench, "a", "b", "c", commit=4)
    differ(bench)
    hear_snapshot(bench, sent_snapshot([b"x", b"y"], 50, 2), 50, 2)
    bench.let_disk_work()
    for _ in range(2):
        bench.lose_power()
        assert reported_of_replicas(bench) == ["the replicas differed at entry 4, and no majority agreed since"]
        bench.core.peer_connected(N2)
        assert {message["index"] for _, message in bench.take_sent("digest")} == {4}, "it tells its peers as well"
        bench.let_disk_work()
    follow_to_the_next_agreed_index(bench)
    assert reported_of_replicas(bench)[-1] == ""
    bench.let_disk_work()
    bench.lose_power()
    assert reported_of_replicas(bench) == [], "a majority agreed"


def follow_to_the_next_agreed_index(bench: Bench) -> None:
    """Let n1 apply up to entry 52, and n2 agree with its state there."""
    bench.hear_append(N3, 2, (50, 2), [entry("z", 51, 2), entry("w", 52, 2)], commit=52)
    bench.let_disk_work()
    newest = [message for _, message in bench.take_sent("digest")][-1]
    assert newest["index"] == 52
    bench.hear(N2, "digest", index=52, digest=newest["digest"])


def test_a_replica_that_differs_from_a_majority_at_an_index_before_its_snapshot_ends_after_a_restart_too() -> None:
    bench = Bench(snapshot_every=4, retained_entries=0)
    follower_with(bench, "a", "b", "c", commit=4)
    hear_snapshot(bench, sent_snapshot([b"x", b"y"], 50, 2), 50, 2)
    bench.let_disk_work()
    bench.lose_power()
    bench.hear(N2, "digest", index=4, digest=b"2" * 32)
    assert not bench.failures
    bench.hear(N3, "digest", index=4, digest=b"2" * 32)
    assert "a majority has another state than this node" in bench.failures[0]


def test_a_kill_between_snapshot_and_compaction_loses_nothing() -> None:
    bench = Bench(snapshot_every=4, retained_entries=0)
    bench.hear_append(N2, 1, (1, 0), [entry(text, index, 1) for index, text in enumerate("abcd", 2)])
    bench.let_disk_work()
    bench.hear_append(N2, 1, (5, 1), commit=4)
    write_snapshot, _ = bench.jobs.pop(0)
    write_snapshot()
    bench.lose_power()
    assert bench.machine.items == [b"a", b"b", b"c"]
    assert bench.machine.tail == [b"d"]


def sent_snapshot(items: list[bytes], index: int, term: int) -> bytes:
    machine = ListMachine()
    for number, item in enumerate(items):
        machine.appended(item)
        machine.apply(number, Term(term), item)
    return encode_snapshot(Snapshot(index, Term(term), machine.snapshot()()), CLUSTER)


def hear_snapshot(bench: Bench, image: bytes, index: int, term: int) -> None:
    bench.hear(N3, "install_snapshot", term=term, index=index, total=len(image), offset=0, data=image)


def test_a_snapshot_of_the_leader_replaces_state_and_log_once_it_is_durable() -> None:
    bench = Bench()
    follower_with(bench, "mine", "mine too")
    hear_snapshot(bench, sent_snapshot([b"x", b"y"], 50, 2), 50, 2)
    assert bench.machine.items == []
    assert not any(isinstance(event, Restored) for event in bench.events)
    bench.let_disk_work()
    assert bench.machine.items == [b"x", b"y"]
    assert bench.machine.tail == []
    assert acknowledged(bench)[-1] == (N3, 51)
    bench.hear_append(N3, 2, (50, 2), [entry("z", 51, 2)], commit=51)
    bench.let_disk_work()
    bench.lose_power()
    assert bench.machine.items + bench.machine.tail == [b"x", b"y", b"z"]


def test_a_crash_between_a_received_snapshot_and_the_journal_is_repaired_at_start() -> None:
    bench = Bench()
    follower_with(bench, "mine", "mine too")
    hear_snapshot(bench, sent_snapshot([b"x", b"y"], 50, 2), 50, 2)
    for work, _ in bench.jobs:
        work()
    bench.lose_power()
    assert bench.machine.items == [b"x", b"y"]
    assert bench.machine.tail == []
    assert bench.core.status().last_index == 50


def test_entries_behind_a_received_snapshot_are_kept_and_shown_again() -> None:
    bench = Bench()
    follower_with(bench, "a", "b", "c")
    hear_snapshot(bench, sent_snapshot([b"a", b"b"], 3, 1), 3, 1)
    bench.let_disk_work()
    assert bench.machine.items == [b"a", b"b"]
    assert bench.machine.tail == [b"c"]
    bench.lose_power()
    assert bench.machine.items + bench.machine.tail == [b"a", b"b", b"c"]


@pytest.mark.parametrize("flaw", ["a flipped bit", "another index", "another cluster"])
def test_a_damaged_snapshot_of_the_leader_is_not_installed(flaw: str) -> None:
    bench = Bench()
    image = bytearray(sent_snapshot([b"x"], 50 if flaw != "another index" else 49, 2))
    if flaw == "a flipped bit":
        image[-1] ^= 1
    if flaw == "another cluster":
        image = bytearray(encode_snapshot(Snapshot(50, Term(2), b""), CLUSTER.replace("1", "9")))
    hear_snapshot(bench, bytes(image), 50, 2)
    bench.let_disk_work()
    assert bench.core.status().applied_index == 1
    # The next heartbeat is answered with how much is held: nothing, so the leader begins again.
    bench.hear("n3", "install_snapshot", term=2, index=50, total=len(image), offset=len(image), data=b"")
    assert bench.take_sent("snapshot_received")[-1][1]["offset"] == 0


def test_an_older_snapshot_never_replaces_a_newer_one() -> None:
    bench = Bench(snapshot_every=3, retained_entries=0)
    follower_with(bench, "a", "b", "c", commit=4)
    hear_snapshot(bench, sent_snapshot([b"a"], 2, 1), 2, 1)
    bench.let_disk_work()
    assert acknowledged(bench)[-1] == (N3, 3)
    bench.lose_power()
    assert bench.machine.items == [b"a", b"b", b"c"]


def test_a_peer_behind_the_journal_is_sent_the_snapshot_in_a_window_of_chunks() -> None:
    bench = Bench(snapshot_every=3, retained_entries=0)
    for index in range(2, 34):
        bench.hear_append(N2, 1, (index - 1, int(index > 2)), [entry("x" * 60_000, index, 1)], commit=index)
        bench.let_disk_work()
    bench.lead()
    refusal: dict[str, Any] = {"term": bench.term, "next_node_idx": 2, "success": False, "refused_index": 33}
    bench.hear(N3, "next_node_idx", **refusal)
    received = bytearray()
    for _ in range(100):
        chunks = [message for peer, message in bench.take_sent("install_snapshot") if peer == N3]
        for message in chunks:
            assert message["offset"] == len(received)
            received += message["data"]
        assert len(chunks) <= 9
        if len(received) == chunks[0]["total"]:
            break
        fields = {"term": bench.term, "index": chunks[0]["index"], "offset": len(received)}
        bench.hear(N3, "snapshot_received", **fields)
        assert bench.core.status().is_leader
    assert bytes(received) == bench.disk.durable(SNAPSHOT_NAME)
    bench.hear_acknowledgement(N3, 34)
    bench.wait(100)
    assert {message["prevLogIdx"] for peer, message in bench.take_sent("append_entries") if peer == N3} >= {33}


# What is not a message.


@pytest.mark.parametrize("frame", [b"", b"\x80\x02}q\x00.", b"\x93\x01\x02\x03", b"x" * 2_000_000])
def test_what_is_not_a_message_closes_the_link_and_changes_nothing(frame: bytes) -> None:
    bench = Bench()
    before = bench.core.status()
    assert not bench.core.receive(N2, frame)
    assert bench.core.status() == before


def test_an_unconnected_peer_is_not_heard() -> None:
    bench = Bench()
    bench.core.peer_disconnected(N2)
    bench.hear(N2, "request_vote", term=9, last_log_index=1, last_log_term=0)
    assert bench.term == 0


# Who has fallen behind.


def reported(bench: Bench) -> list[Followers]:
    return [event for event in bench.events if isinstance(event, Followers)]


def answer_for(bench: Bench, span_ms: int, peers: dict[NodeName, int]) -> None:
    """Let some peers answer all the time, each with its next index."""
    for _ in range(span_ms // 100):
        bench.wait(100)
        for peer, next_index in peers.items():
            bench.hear_acknowledgement(peer, next_index)
        bench.let_disk_work()


def test_a_leader_tells_who_does_not_answer_and_when_nobody_is_behind_any_more() -> None:
    bench = Bench()
    bench.lead()
    began = bench.now_ms
    answer_for(bench, 1000, {N2: 3, N3: 3})
    assert reported(bench) == []
    answer_for(bench, 2000, {N2: 3})
    [silent] = reported(bench)[-1].behind
    assert (silent.name, silent.is_linked) == (N3, True)
    assert began + 1000 <= silent.answered_at <= began + 1100
    answer_for(bench, 500, {N2: 3, N3: 3})
    assert reported(bench)[-1].behind == ()


def test_a_leader_tells_who_answers_and_takes_no_entry() -> None:
    bench = Bench()
    bench.lead()
    answer_for(bench, 500, {N2: 3, N3: 3})
    assert bench.core.propose(b"x")
    answer_for(bench, 3000, {N2: 4, N3: 3})
    [slow] = reported(bench)[-1].behind
    assert slow.name == N3
    assert bench.now_ms - slow.answered_at < 500 < 2000 < bench.now_ms - slow.advanced_at


def test_after_a_standstill_of_the_leader_nobody_is_behind() -> None:
    bench = Bench()
    bench.lead()
    answer_for(bench, 2000, {N2: 3})
    bench.now_ms += 60_000
    bench.hear_acknowledgement(N2, 3)
    bench.core.tick()
    assert all(bench.now_ms - each.answered_at < 5000 for each in reported(bench)[-1].behind)


# -- what others remember ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "remembered",
    [
        {"term": 4, "index": 0, "led_term": 0, "led_index": 0},
        {"term": 3, "index": 4, "led_term": 0, "led_index": 0},
        {"term": 3, "index": 0, "led_term": 3, "led_index": 4},
    ],
    ids=["a term", "a committed entry", "an entry that it acknowledged to the leader of its term"],
)
def test_a_node_that_is_behind_what_a_peer_remembers_ends_for_good(remembered: dict[str, int]) -> None:
    bench = Bench()
    bench.hear_append(N2, 3, (1, 0), [(b"\0a", 2, 3), (b"\0b", 3, 3)])
    bench.let_disk_work()
    bench.hear(N2, "recall", **remembered)
    assert "n2 remembers it in term" in bench.failures[0]
    assert "crm cluster remove" in bench.failures[0]
    bench.core.stop()
    bench.disk.is_locked = False
    with pytest.raises(StoreDamagedError, match="ended for good: the data of this node is older than what it promised"):
        bench.start()


def test_a_node_that_holds_what_a_peer_remembers_goes_on() -> None:
    bench = Bench()
    bench.hear_append(N2, 3, (1, 0), [(b"\0a", 2, 3), (b"\0b", 3, 3)])
    bench.let_disk_work()
    bench.hear(N2, "recall", term=3, index=3, led_term=2, led_index=9)
    bench.hear(N3, "recall", term=0, index=0, led_term=0, led_index=0)
    assert not bench.failures


def test_a_node_that_has_just_started_votes_when_all_voters_have_said_what_they_remember() -> None:
    restarted = Bench().restart_deaf()
    ask = {"term": 5, "last_log_index": 9, "last_log_term": 1}
    restarted.hear(N2, "request_vote", **ask)
    restarted.let_disk_work()
    assert restarted.take_sent("response_vote") == []
    for peer in (N2, N3):
        restarted.hear(peer, "recall", term=0, index=0, led_term=0, led_index=0)
    restarted.hear(N2, "request_vote", **ask)
    restarted.let_disk_work()
    assert [peer for peer, _ in restarted.take_sent("response_vote")] == [N2]


def test_a_node_votes_without_those_that_are_silent_after_the_longest_election() -> None:
    bench = Bench().restart_deaf()
    bench.now_ms += bench.settings.timers.election_max_ms
    bench.hear(N2, "request_vote", term=5, last_log_index=9, last_log_term=1)
    bench.let_disk_work()
    assert [peer for peer, _ in bench.take_sent("response_vote")] == [N2]


def test_what_a_peer_showed_is_remembered_after_a_restart() -> None:
    bench = Bench()
    bench.lead()
    bench.core.propose(b"x")
    bench.core.tick()
    bench.let_disk_work()
    bench.hear_acknowledgement(N2, bench.core.status().last_index + 1)
    bench.hear_acknowledgement(N2, bench.core.status().last_index + 1)
    bench.wait(2_000)
    bench.let_disk_work()
    term, index = bench.term, bench.core.status().commit_index
    bench.lose_power()
    bench.take_sent()
    bench.core.peer_connected(N2)
    assert bench.take_sent("recall") == [
        (N2, {"type": "recall", "term": term, "index": index, "led_term": 0, "led_index": 0})
    ]
