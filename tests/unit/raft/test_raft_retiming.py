"""A voter takes the timers of a changed node-timeout while it runs."""

import pytest

from haclusterd.raft.settings import RaftTimers
from tests.unit.raft.raft_bench import N2, N3, Bench


@pytest.mark.parametrize(("node_timeout_ms", "is_due"), [(2000, False), (600, True)])
def test_a_follower_takes_shorter_timers_at_once(node_timeout_ms: int, is_due: bool) -> None:
    bench = Bench()
    bench.hear_append(N2, 1, (1, 0))
    bench.let_disk_work()
    bench.take_sent()
    bench.core.retime(RaftTimers.derive(node_timeout_ms))
    bench.wait(RaftTimers.derive(600).election_max_ms + 1)
    assert bool(bench.take_sent("request_pre_vote")) is is_due


@pytest.mark.parametrize("node_timeout_ms", [600, 2000, 10_000])
def test_a_leader_keeps_the_pace_of_its_new_timers(node_timeout_ms: int) -> None:
    bench = Bench()
    bench.lead()
    bench.core.retime(RaftTimers.derive(node_timeout_ms))
    timers = bench.core.timers
    bench.hear_acknowledgement(N2, 3)
    bench.take_sent()
    bench.wait(timers.append_ms + 1)
    assert {peer for peer, _ in bench.take_sent("append_entries")} == {N2, N3}
    assert bench.core.due() <= bench.now_ms + timers.append_ms + 1
    bench.wait(timers.fallback_ms + timers.append_ms)
    assert not bench.core.status().is_leader
