import pytest

from haclusterd.raft.settings import RaftTimers


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
