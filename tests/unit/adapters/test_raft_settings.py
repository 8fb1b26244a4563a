import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.adapters.raft_settings import RaftTimers, next_beat_s


@pytest.mark.parametrize(
    ("node_timeout_ms", "minimum"), [(500, 187), (600, 225), (1000, 375), (2000, 750), (3000, 750), (60_000, 750)]
)
def test_timers_follow_node_timeout(node_timeout_ms: int, minimum: int) -> None:
    timers = RaftTimers.derive(node_timeout_ms)
    assert timers.election_min_ms == minimum
    assert timers.election_max_ms == 2 * minimum
    assert timers.append_ms == (minimum - timers.tick_ms) // 3
    round_trip_ms = minimum // 10
    assert timers.fallback_ms < minimum - 2 * timers.tick_ms - round_trip_ms
    assert timers.fallback_ms > 2 * timers.append_ms, "two lost heartbeats do not depose a leader"
    assert timers.ping_ms <= timers.silence_ms // 2


@given(st.floats(0, 1e6), st.floats(0.1, 2))
def test_a_beat_is_never_more_than_a_period_away_nor_the_one_that_was_just_kept(now_s: float, period_s: float) -> None:
    beat_s = next_beat_s(now_s, period_s)
    assert now_s < beat_s <= now_s + 1.02 * period_s
    assert next_beat_s(beat_s - period_s / 200, period_s) > beat_s + period_s / 2
