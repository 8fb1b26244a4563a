"""Each safety rule is needed: its scenario ends well with it and is caught without it."""

from collections.abc import Callable

import pytest

from haclusterd.model.records import fields, replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.simulator.checks.checker import ViolationError
from tests.simulation import copies_scenarios as copies
from tests.simulation import device_scenarios as devices
from tests.simulation import edge_scenarios as edges
from tests.simulation import filter_scenarios as filters
from tests.simulation import member_scenarios as members
from tests.simulation import rule_scenarios as scenarios
from tests.simulation import watchdog_scenarios as watchdogs

Scenario = Callable[[SafetyRules], None]

NEEDED: tuple[tuple[tuple[str, ...], Scenario, frozenset[str]], ...] = (
    (
        ("own_join_first", "order_names_incarnation", "lease_before_exec"),
        scenarios.replay_after_fencing,
        frozenset({"NothingOfReplayRuns", "OrdersRunByTheirIncarnation", "OrdersRunOnce"}),
    ),
    (
        ("order_names_incarnation",),
        scenarios.order_for_an_older_incarnation,
        frozenset({"OrdersRunByTheirIncarnation"}),
    ),
    (
        ("lease_before_exec", "stop_on_lease_end"),
        scenarios.start_without_lease,
        frozenset({"StartsNeedALease"}),
    ),
    (("order_still_open_before_exec",), scenarios.voided_while_queued, frozenset({"OrdersAreOpenWhenBegun"})),
    (("order_deadline",), scenarios.begun_too_late, frozenset({"OrdersBeginInTime"})),
    (
        ("open_orders_possibly_active",),
        scenarios.voided_order_races_begun_agent,
        frozenset({"NeverTwoActive"}),
    ),
    (
        ("open_orders_possibly_active",),
        scenarios.dc_changes_with_agent_in_flight,
        frozenset({"NeverTwoActive"}),
    ),
    (("migration_counts_on_both",), copies.source_dies_after_the_hand_over, frozenset({"NeverTwoActive"})),
    (("restart_keeps_orders",), copies.migration_outlives_its_daemon, frozenset({"NeverTwoActive"})),
    (("unverified_may_be_promoted",), copies.promotion_outlives_its_daemon, frozenset({"NeverTwoActive"})),
    (("asked_as_started",), copies.agent_is_changed, frozenset({"AgentsFindWhatRuns"})),
    (("asked_as_started",), copies.parameter_is_changed, frozenset({"AgentsFindWhatRuns"})),
    (("asked_as_started",), copies.start_after_a_change_outlives_its_daemon, frozenset({"AgentsFindWhatRuns"})),
    (("asked_as_started",), copies.unmanaged_while_changed, frozenset({"AgentsFindWhatRuns"})),
    (("reload_keeps_both",), copies.reload_outlives_its_daemon, frozenset({"NeverTwoActive"})),
    (
        ("one_active_copy", "own_orders_are_known"),
        scenarios.order_of_an_aborted_plan,
        frozenset({"NeverTwoActive"}),
    ),
    (("own_orders_are_known",), scenarios.stop_of_an_aborted_plan, frozenset({"StopsAreOrderedOnce"})),
    (("refuse_old_term",), scenarios.old_dc_speaks_late, frozenset({"OrdersFollowTheirTerm"})),
    (
        ("close_orders_of_older_incarnations",),
        scenarios.results_of_an_older_life,
        frozenset({"ResultsAreOfThisLife"}),
    ),
    (("adopt_running_agents",), scenarios.restart_in_mid_start, frozenset({"OneAgentPerResource"})),
    (("adopt_running_agents",), scenarios.restart_in_mid_stop, frozenset({"OneAgentPerResource"})),
    (("unverified_is_probed",), scenarios.restart_hides_a_start, frozenset({"NeverTwoActive"})),
    (("echo_send_time",), scenarios.late_echoes, frozenset({"LeaseEndsAfterLoss"})),
    (("withdraw_echo",), scenarios.lost_while_its_brain_is_stopped, frozenset({"LeaseEndsAfterLoss"})),
    (("rebuild_withdrawn_set",), scenarios.voters_restart_after_a_loss, frozenset({"LeaseEndsAfterLoss"})),
    (("feed_needs_lease",), watchdogs.cut_off_holder_cannot_stop, frozenset({"FencedNodesAreDead"})),
    (("wait_covers_held_back_feed",), watchdogs.feed_is_held_back, frozenset({"FencedNodesAreDead"})),
    (("wait_has_reserve",), edges.everything_at_the_edge, frozenset({"FencedNodesAreDead"})),
    (("ruled_lease_is_recorded",), watchdogs.lease_was_longer_by_a_rule, frozenset({"FencedNodesAreDead"})),
    (("new_dc_waits_again",), watchdogs.dc_changes_during_the_wait, frozenset({"FencedNodesAreDead"})),
    (("stop_on_lease_end",), scenarios.isolated_holder_without_fencing, frozenset({"NodesWithoutLeaseStop"})),
    (
        ("unmanaged_is_not_empty",),
        watchdogs.cut_off_holder_leaves_it_alone,
        frozenset({"FencedNodesAreDead", "NeverTwoActive"}),
    ),
    (("lost_needs_whole_quorum",), scenarios.only_the_dc_does_not_hear, frozenset({"LostNodesAreSilent"})),
    (
        ("silence_clocks_restart_after_stall",),
        scenarios.dc_is_paused,
        frozenset({"LostNodesAreSilent", "AssertionError"}),
    ),
    (("heard_must_take_part",), filters.streams_of_a_holder_are_filtered, frozenset({"NotReachedError"})),
    (
        ("linked_node_leads_first",),
        filters.streams_between_the_dc_and_one_node_are_filtered,
        frozenset({"LostNodesAreSilent"}),
    ),
    (("dc_needs_fresh_lease",), scenarios.dc_hears_but_is_not_heard, frozenset({"LossIsJudgedUnderLease"})),
    (("fence_before_recovery",), scenarios.dead_switch, frozenset({"NoRecoveryBeforeFence"})),
    (("heard_after_fence_is_a_lie",), scenarios.lying_switch, frozenset({"FencedNodesAreDead"})),
    (
        ("same_boot_disproves_fencing",),
        scenarios.switch_lies_about_a_node_that_nobody_hears,
        frozenset({"DisprovedFencingIsRepeated"}),
    ),
    (
        ("recorded_death_ends_all",),
        scenarios.record_is_seen_where_something_unmanaged_runs,
        frozenset({"NeverTwoActive"}),
    ),
    (("join_held_while_fencing",), scenarios.slow_switch, frozenset({"JoinsWaitForFencing"})),
    (
        ("abandoned_agent_holds_join",),
        scenarios.fence_agent_outlives_its_daemon,
        frozenset({"FenceAgentsActInTime"}),
    ),
    (
        ("abandoned_agent_holds_fencing",),
        scenarios.late_agent_lets_a_fenced_node_in,
        frozenset({"FenceAgentsActInTime"}),
    ),
    (("executor_answers_before_leaving",), scenarios.executor_leaves, frozenset({"FenceAgentsActInTime"})),
    (("device_is_held_once",), devices.given_twice, frozenset({"ClaimsAddUp", "DevicesAreGivenOutFree"})),
    (("release_is_proven",), devices.stopped_and_not_free, frozenset({"WhatUsesDevicesHasClaims"})),
    (("device_is_free_at_start",), devices.older_life_hangs, frozenset({"DevicesAreHeldOnce"})),
    (("device_is_free_at_start",), devices.stranger_in_the_way, frozenset({"DevicesAreHeldOnce"})),
    (("recovery_needs_no_claim",), devices.held_device_is_reset, frozenset({"RecoveriesAndClaims"})),
    (
        ("device_is_free_at_recovery",),
        devices.stranger_on_a_device_to_be_reset,
        frozenset({"RecoveriesHitNobody"}),
    ),
    (("reboot_clears_history",), scenarios.stale_cib_after_power_loss, frozenset({"RebootsClear"})),
    (("unseen_is_fenced",), scenarios.member_never_seen, frozenset({"UnseenIsFenced"})),
    (("members_followed_first",), members.lease_by_old_voters, frozenset({"LeaseEndsAfterLoss"})),
    (("retired_before_dropped",), members.dropped_while_it_may_run, frozenset({"NeverTwoActive"})),
    (("safe_mode_after_crash_loop",), scenarios.poison_cib, frozenset({"AssertionError"})),
    (("raising_apply_is_a_refusal",), scenarios.raising_apply, frozenset({"AssertionError"})),
)
"""Rules, their scenario, and which checkers may be the first to object without them.

Two rules stand together where each alone is enough: a naive design has neither.
"""

ALWAYS: tuple[Scenario, ...] = (
    scenarios.one_node_stays_dark,
    devices.daemon_dies_while_a_device_is_reset,
    devices.policy_resets_what_has_failed,
    devices.gang_takes_a_device_and_its_old_one_is_reset,
    watchdogs.switch_reboots,
    watchdogs.cut_off_holder_stops,
    watchdogs.brain_hangs,
    watchdogs.pacer_ends_for_good,
    watchdogs.pacer_is_killed,
    watchdogs.broken_device,
    watchdogs.node_returns_early,
    watchdogs.lease_is_longer_than_the_one_of_its_join,
    members.lease_by_old_voters_of_a_restarted_daemon,
)
"""Scenarios of no single rule."""


def _name(value: object) -> str:
    if callable(value):
        return value.__name__
    return "+".join(value) if isinstance(value, tuple) else ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scenario", [*dict.fromkeys(case[1] for case in NEEDED), *ALWAYS], ids=_name)
def test_with_every_rule_the_scenario_ends_well(scenario: Scenario) -> None:
    scenario(ALL_RULES)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("off", "scenario", "checkers"), NEEDED, ids=_name)
def test_without_the_rule_a_checker_objects(off: tuple[str, ...], scenario: Scenario, checkers: frozenset[str]) -> None:
    without = replace(ALL_RULES, **dict.fromkeys(off, False))
    with pytest.raises((ViolationError, AssertionError)) as caught:
        scenario(without)
    who = caught.value.rule if isinstance(caught.value, ViolationError) else "AssertionError"
    assert who in checkers, str(caught.value)


def test_no_rule_is_without_a_scenario() -> None:
    covered = {name for off, _, _ in NEEDED for name in off}
    assert covered == {field.name for field in fields(SafetyRules)}
