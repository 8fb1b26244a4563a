"""The store's guards as switches, which only tests have: what the store does without one of them.

A guard is a part of production code that stands there because of a way to lose data (docs/design/0002-store.md, S1 to
S13). Nothing in the daemon can switch one off. Here a switch puts in its place what the library does as shipped, or
what a naive program would do, for as long as a scenario runs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from haclusterd.model.records import dataclass, fields, replace
from haclusterd.ports.store import StoreDamagedError
from haclusterd.raft import consensus as raft_consensus
from haclusterd.raft import core as raft_core
from haclusterd.raft import journal as raft_journal
from haclusterd.raft.consensus import Consensus
from haclusterd.raft.core import RaftCore
from haclusterd.raft.identity import Identity
from haclusterd.raft.journal import JOURNAL_NAME, NO_OPERATION, Journal, create_journal, open_journal
from haclusterd.raft.promises import Promises
from haclusterd.raft.settings import RaftTimers
from haclusterd.raft.snapshot import load_snapshot
from haclusterd.raft.voter_sets import VoterSets
from haclusterd.runtime.requests.dialogue import Dialogue
from tests.simulation import store_world


@dataclass(frozen=True, slots=True)
class StoreGuards:
    """Which guards of the store are in force; the meaning of each stands in the text behind it."""

    commit_follows_comparison: bool = True
    """A commit index counts only as far as the same message compared the log; that of a snapshot not at all (S1)."""
    journal_is_aligned: bool = True
    """At start the journal is aligned with the snapshot, and what comes after it is kept (S2)."""
    rewrite_is_atomic: bool = True
    """Compaction writes a new file and renames it (S3)."""
    entries_are_synced: bool = True
    """What is appended is synced before it counts (S4)."""
    votes_are_synced: bool = True
    """No message shows a term or a vote before it is synced (S4)."""
    frames_are_checked: bool = True
    """Every record of the journal has a checksum (S5)."""
    frames_fill_pages: bool = True
    """A write touches no page with anything that was synced before: torn, it ruins nothing but itself."""
    kept_is_written_again: bool = True
    """What a start finds counts once it was written into a new file and synced: an earlier sync may have failed."""
    older_copies_are_recognised: bool = True
    """A node whose data is older than what others remember of it stops for good, before it votes."""
    replicas_are_compared: bool = True
    """A node whose state is not that of a majority of the voters ends for good."""
    damage_ends_the_start: bool = True
    """A node whose snapshot is damaged does not start; it never starts empty (S6)."""
    truncates_at_conflicts_only: bool = True
    """Entries that are here already stay when a message comes a second time (S10)."""
    votes_count_once: bool = True
    """One vote for each peer and term (S10)."""
    acknowledgements_have_terms: bool = True
    """An acknowledgement counts for the term in which it was given (S10)."""
    emptied_disks_are_refused: bool = True
    """A node that lost its data does not come back under its name (S11)."""
    leader_counts_what_it_has: bool = True
    """A leader's own copy of an entry counts when it is synced, not before (safety.md §7)."""
    io_errors_are_final: bool = True
    """After an error of the disk the process ends (safety.md §7)."""
    asks_before_campaigning: bool = True
    """Pre-vote: a returning node does not depose a healthy leader (safety.md §7)."""
    steps_down_first: bool = True
    """A leader that is cut off steps down before another can be elected (safety.md §7)."""
    heartbeats_pass_a_slow_disk: bool = True
    """Messages that reveal nothing unsynced do not wait for the disk (safety.md §7)."""
    proposals_are_capped: bool = True
    """In flight and waiting there is a bounded number of proposals; more are refused (safety.md §7)."""
    removals_are_announced: bool = True
    """The state machine hears of entries that will never be committed, and takes back what it did for them."""
    one_vote_at_a_time: bool = True
    """Voters change by one at most, so that majorities before and after have a voter in common (safety.md §7)."""
    own_commit_before_voters: bool = True
    """A leader changes the voters only after an entry of its own term is committed (Raft thesis §4.1)."""
    one_change_at_a_time: bool = True
    """The voters change again only when the change before is committed (safety.md §7)."""
    leaders_have_votes: bool = True
    """A leader that is to lose its vote hands over first (safety.md §7)."""
    learners_do_not_campaign: bool = True
    """Who has no vote does not stand for election (Raft thesis §4.2.1)."""
    voters_are_taken_back: bool = True
    """When a change of the voters is truncated, the voters before it count again (Raft thesis §4.1)."""
    answers_keep_their_term: bool = True
    """What is proposed because of an entry that is not committed follows it in a log, or is in none (safety.md §1)."""
    consistent_reads_go_through_the_log: bool = True
    """A read with `--consistent` is answered after an entry of its own was applied (safety.md §7)."""


ALL_GUARDS = StoreGuards()


def without(*names: str) -> StoreGuards:
    """Return the guards without these."""
    return replace(ALL_GUARDS, **dict.fromkeys(names, False))


@contextmanager
def in_force(guards: StoreGuards) -> Iterator[None]:
    """Switch off what is not in force."""
    with pytest.MonkeyPatch.context() as patch:
        for field in fields(StoreGuards):
            if not getattr(guards, field.name):
                WITHOUT[field.name](patch)
        yield


Patch = pytest.MonkeyPatch


def _believe_commit_indexes(patch: Patch) -> None:
    original = RaftCore._on_install_snapshot

    def on_install_snapshot(self: RaftCore, peer: Any, message: Any) -> None:
        believed = min(message["index"], self._journal.last_index)
        if believed > self._raft.commit_index:
            self._raft.library.committed(believed)
        original(self, peer, message)

    patch.setattr(RaftCore, "_on_install_snapshot", on_install_snapshot)


def _clear_unaligned_journals(patch: Patch) -> None:
    original = raft_journal._align

    def align(content: Any, snapshot: tuple[int, int] | None, path: str) -> bool:
        if snapshot is not None and content.entries[0][1] != snapshot[0]:
            content.entries[:] = [(NO_OPERATION, *snapshot)]
        return original(content, snapshot, path)

    patch.setattr(raft_journal, "_align", align)


def _rewrite_in_place(patch: Patch) -> None:
    def rewrite(self: Any) -> None:
        self.files.remove(JOURNAL_NAME)
        self.files.append(JOURNAL_NAME, self.image)
        self.files.sync(JOURNAL_NAME)

    patch.setattr(raft_journal._Rewrite, "__call__", rewrite)


def _never_sync(patch: Patch) -> None:
    patch.setattr(raft_journal._Append, "__call__", lambda self: self.files.append(JOURNAL_NAME, self.frame))


def _tell_votes_at_once(patch: Patch) -> None:
    patch.setattr(Journal, "is_vote_synced", True)


def _trust_frames(patch: Patch) -> None:
    patch.setattr(raft_journal, "_frame_crc", lambda _: 0)


def _share_pages(patch: Patch) -> None:
    patch.setattr(raft_journal, "_padded_frame", lambda body, behind=0: raft_journal._frame(body))


def _believe_what_is_read(patch: Patch) -> None:
    def open_as_it_is(files: Any, cluster: str, node: Any, snapshot: Any) -> Journal:
        content = raft_journal.read_journal(files, cluster, node, snapshot)
        files.sync(JOURNAL_NAME)
        return Journal(files, raft_journal._names(cluster, node), content)

    patch.setattr(raft_core, "open_journal", open_as_it_is)


def _forget_promises(patch: Patch) -> None:
    patch.setattr(Promises, "heard", lambda *_: "")


def _compare_nothing(patch: Patch) -> None:
    patch.setattr(RaftCore, "_compare", lambda *_: None)


def _start_empty(patch: Patch) -> None:
    def load(files: Any, cluster: str) -> Any:
        try:
            return load_snapshot(files, cluster)
        except StoreDamagedError:
            return None

    def open_whatever(files: Any, cluster: str, node: Any, snapshot: Any) -> Journal:
        try:
            return open_journal(files, cluster, node, snapshot)
        except StoreDamagedError:
            create_journal(files, cluster, node)
            return open_journal(files, cluster, node, snapshot)

    patch.setattr(raft_core, "load_snapshot", load)
    patch.setattr(raft_core, "open_journal", open_whatever)


def _truncate_always(patch: Patch) -> None:
    original = Consensus._on_append_entries

    def on_append_entries(self: Consensus, node: Any, message: Any) -> None:
        previous = message["prevLogIdx"]
        if self._journal.base[0] <= previous < self._journal.last_index:
            self._journal.truncate(previous + 1)
        original(self, node, message)

    patch.setitem(raft_consensus._OWN_MESSAGES, "append_entries", on_append_entries)


def _count_every_vote(patch: Patch) -> None:
    patch.setattr(Consensus, "_is_new_vote", lambda *_: True)


def _forget_terms(patch: Patch) -> None:
    original = Consensus._on_next_node_idx

    def on_next_node_idx(self: Consensus, node: Any, message: Any) -> None:
        original(self, node, {**message, "term": max(message["term"], self.term)})

    patch.setitem(raft_consensus._OWN_MESSAGES, "next_node_idx", on_next_node_idx)


def _take_anybody_back(patch: Patch) -> None:
    patch.setattr(raft_core, "require_identity", lambda _, cluster, node: Identity(cluster, node, is_started=False))


def _count_at_once(patch: Patch) -> None:
    patch.setattr(Journal, "synced_index", property(lambda self: self.last_index))


def _overlook_errors(patch: Patch) -> None:
    patch.setattr(RaftCore, "_stop_on_error", lambda *_: False)


def _campaign_at_once(patch: Patch) -> None:
    def prepare(self: Consensus) -> None:
        self._campaign_term = None

    patch.setattr(Consensus, "_prepare_election", prepare)


def _stay_leader(patch: Patch) -> None:
    derive = RaftTimers.derive
    patch.setattr(store_world.RaftTimers, "derive", lambda timeout_ms: replace(derive(timeout_ms), fallback_ms=30_000))


def _hold_everything_back(patch: Patch) -> None:
    def is_everything_synced(self: Any) -> bool:
        return self._sequence == self._synced_sequence and not self._is_rewrite_due and self._writing is None

    patch.setattr(Journal, "is_vote_synced", property(is_everything_synced))


def _take_every_proposal(patch: Patch) -> None:
    original = store_world.World.settings

    def settings(self: Any, name: Any) -> Any:
        return replace(original(self, name), waiting_max=1_000_000, in_flight_max=1_000_000)

    patch.setattr(store_world.World, "settings", settings)


def _announce_no_removals(patch: Patch) -> None:
    patch.setattr(RaftCore, "removed", lambda *_: None)


def _forget_whose_turn_it_was(patch: Patch) -> None:
    original = RaftCore.propose
    patch.setattr(RaftCore, "propose", lambda self, entry, _term=None: original(self, entry))


def _read_at_once(patch: Patch) -> None:
    patch.setattr(Dialogue, "_confirm", Dialogue._run)


def _switch(question: str) -> Callable[[Patch], None]:
    """Let a leader answer itself yes."""
    return lambda patch: patch.setattr(RaftCore, question, lambda *_: True)


def _let_learners_campaign(patch: Patch) -> None:
    patch.setattr(Consensus, "may_vote", True)


def _keep_voters(patch: Patch) -> None:
    patch.setattr(VoterSets, "remove_from", lambda *_: False)


WITHOUT: dict[str, Callable[[Patch], None]] = {
    "commit_follows_comparison": _believe_commit_indexes,
    "journal_is_aligned": _clear_unaligned_journals,
    "rewrite_is_atomic": _rewrite_in_place,
    "entries_are_synced": _never_sync,
    "votes_are_synced": _tell_votes_at_once,
    "frames_are_checked": _trust_frames,
    "frames_fill_pages": _share_pages,
    "kept_is_written_again": _believe_what_is_read,
    "older_copies_are_recognised": _forget_promises,
    "replicas_are_compared": _compare_nothing,
    "damage_ends_the_start": _start_empty,
    "truncates_at_conflicts_only": _truncate_always,
    "votes_count_once": _count_every_vote,
    "acknowledgements_have_terms": _forget_terms,
    "emptied_disks_are_refused": _take_anybody_back,
    "leader_counts_what_it_has": _count_at_once,
    "io_errors_are_final": _overlook_errors,
    "asks_before_campaigning": _campaign_at_once,
    "steps_down_first": _stay_leader,
    "heartbeats_pass_a_slow_disk": _hold_everything_back,
    "proposals_are_capped": _take_every_proposal,
    "removals_are_announced": _announce_no_removals,
    "one_vote_at_a_time": _switch("_is_one_step"),
    "own_commit_before_voters": _switch("_has_own_commit"),
    "one_change_at_a_time": _switch("_is_last_change_applied"),
    "leaders_have_votes": _switch("_keeps_own_vote"),
    "learners_do_not_campaign": _let_learners_campaign,
    "voters_are_taken_back": _keep_voters,
    "answers_keep_their_term": _forget_whose_turn_it_was,
    "consistent_reads_go_through_the_log": _read_at_once,
}
"""What stands in the place of each guard."""
