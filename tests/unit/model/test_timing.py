"""Timers: the numbers of the design, for every node-timeout that may be configured (docs/design/safety.md §2, §7)."""

from hypothesis import given
from hypothesis import strategies as st

from haclusterd.model.timing import Timing, derive, longest_round_trip_ms, watchdog_wait_ms
from haclusterd.raft.settings import RaftTimers

NODE_TIMEOUTS = st.integers(500, 60_000)


def test_the_defaults() -> None:
    assert derive(2000) == Timing(
        node_timeout_ms=2000,
        brain_timeout_ms=10_000,
        heartbeat_ms=200,
        lease_ms=2000,
        stamp_ms=1000,
        stall_ms=500,
        election_min_ms=750,
        election_max_ms=1500,
        append_ms=240,
        tick_ms=30,
        fallback_ms=614,
        one_way_ms=6000,
        unseen_wait_ms=10_000,
    )


@given(NODE_TIMEOUTS)
def test_the_inequalities(node_timeout_ms: int) -> None:
    timing = derive(node_timeout_ms)
    assert longest_round_trip_ms(timing) >= timing.heartbeat_ms, "L >= 3h + RTT"
    assert timing.fallback_ms < timing.election_min_ms - 2 * timing.tick_ms
    assert timing.election_max_ms <= node_timeout_ms, "an election ends before a node is lost"
    assert 2 * timing.append_ms < timing.fallback_ms
    assert 2 * timing.stamp_ms <= timing.brain_timeout_ms // 4, "a daemon that lives is not called hung"


@given(NODE_TIMEOUTS)
def test_raft_runs_on_the_same_timers(node_timeout_ms: int) -> None:
    timing, raft = derive(node_timeout_ms), RaftTimers.derive(node_timeout_ms)
    assert (raft.election_min_ms, raft.election_max_ms) == (timing.election_min_ms, timing.election_max_ms)
    assert (raft.append_ms, raft.tick_ms, raft.fallback_ms) == (timing.append_ms, timing.tick_ms, timing.fallback_ms)


@given(NODE_TIMEOUTS, st.integers(1000, 60_000))
def test_the_wait_for_a_watchdog_covers_lease_feed_and_reset(node_timeout_ms: int, watchdog_ms: int) -> None:
    timing = derive(node_timeout_ms)
    wait_ms = watchdog_wait_ms(timing.lease_ms, watchdog_ms)
    assert (wait_ms - 1000) * 100 >= (timing.lease_ms + 2 * watchdog_ms) * 102
