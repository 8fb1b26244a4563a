"""Each guard of the store is needed: its scenario ends well with it and is caught without it."""

from collections.abc import Callable

import pytest

from haclusterd.model.records import fields
from haclusterd.ports.store import StoreDamagedError
from tests.simulation import store_guard_scenarios as scenarios
from tests.simulation import voter_guard_scenarios as voters
from tests.simulation.store_guards import ALL_GUARDS, StoreGuards, in_force, without

Scenario = Callable[[], None]

NEEDED: tuple[tuple[str, Scenario], ...] = (
    ("commit_follows_comparison", scenarios.pending_entries_of_an_old_leader),
    ("journal_is_aligned", scenarios.all_restart_behind_a_snapshot),
    ("rewrite_is_atomic", scenarios.power_fails_while_the_log_is_compacted),
    ("entries_are_synced", scenarios.all_lose_power_at_an_acknowledgement),
    ("votes_are_synced", scenarios.promises_are_durable),
    ("frames_are_checked", scenarios.a_bit_of_the_journal_flips),
    ("frames_fill_pages", scenarios.power_fails_in_the_middle_of_a_write),
    ("kept_is_written_again", scenarios.a_sync_fails_and_the_node_starts_again),
    ("older_copies_are_recognised", scenarios.a_data_directory_is_put_back),
    ("replicas_are_compared", scenarios.a_replica_is_corrupted),
    ("damage_ends_the_start", scenarios.snapshots_of_a_majority_are_damaged),
    ("truncates_at_conflicts_only", scenarios.an_old_message_comes_twice),
    ("votes_count_once", scenarios.a_vote_comes_twice),
    ("acknowledgements_have_terms", scenarios.an_acknowledgement_of_an_old_term),
    ("emptied_disks_are_refused", scenarios.a_disk_is_replaced_under_the_old_name),
    ("leader_counts_what_it_has", scenarios.a_leader_with_a_slow_disk_dies),
    ("io_errors_are_final", scenarios.disks_are_full),
    ("asks_before_campaigning", scenarios.a_node_returns),
    ("steps_down_first", scenarios.a_leader_is_cut_off),
    ("heartbeats_pass_a_slow_disk", scenarios.the_leaders_disk_stands_still),
    ("proposals_are_capped", scenarios.a_flood_of_proposals),
    ("removals_are_announced", scenarios.entries_that_will_never_be_committed),
    ("one_vote_at_a_time", voters.a_leader_keeps_only_itself),
    ("own_commit_before_voters", voters.two_leaders_take_one_step_each),
    ("one_change_at_a_time", voters.a_leader_takes_two_steps),
    ("leaders_have_votes", voters.the_leader_is_to_lose_its_vote),
    ("learners_do_not_campaign", voters.learners_outlive_the_leader),
    ("voters_are_taken_back", voters.a_change_that_nobody_else_had),
    ("answers_keep_their_term", scenarios.an_answer_comes_after_its_term),
    ("consistent_reads_go_through_the_log", scenarios.a_cut_off_node_is_asked),
)
"""Guards and their scenarios."""


def _name(value: object) -> str:
    return value.__name__ if callable(value) else str(value)


@pytest.mark.parametrize("scenario", [scenario for _, scenario in NEEDED], ids=_name)
def test_with_every_guard_the_scenario_ends_well(scenario: Scenario) -> None:
    with in_force(ALL_GUARDS):
        scenario()


@pytest.mark.parametrize(("guard", "scenario"), NEEDED, ids=_name)
def test_without_the_guard_it_is_caught(guard: str, scenario: Scenario) -> None:
    with in_force(without(guard)), pytest.raises((AssertionError, StoreDamagedError)):
        scenario()


def test_no_guard_is_without_a_scenario() -> None:
    assert [guard for guard, _ in NEEDED] == [field.name for field in fields(StoreGuards)]
