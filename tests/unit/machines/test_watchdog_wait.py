"""W, how long survivors wait for a lost node's watchdog: with the longest lease that node may hold (safety.md §2)."""

import pytest

from haclusterd.machines.watchdog_wait import WatchdogWait
from haclusterd.model.cluster import NodeState, NodeStatus
from haclusterd.model.records import replace
from haclusterd.model.timing import derive
from haclusterd.model.watchdog import Watchdog
from tests.unit.situations import N2, life

DEVICE = Watchdog(timeout_ms=5000, device="/dev/watchdog")
LOST = NodeStatus(N2, state=NodeState.LOST, incarnation=life(N2), watchdog=DEVICE)


@pytest.mark.parametrize(
    ("lease_now_ms", "longest_lease_ms", "wait_ms"),
    [
        (2000, 2000, 13_240),
        (2000, 0, 13_240),
        (2000, 20_000, 31_600),
        (20_000, 2000, 31_600),
    ],
)
def test_the_longest_lease_that_was_in_force_is_waited_for(
    lease_now_ms: int, longest_lease_ms: int, wait_ms: int
) -> None:
    """(L + 2·T_wd)·1.02 + 1 s, with T_wd = 5 s."""
    waiting = WatchdogWait(derive(lease_now_ms))
    assert waiting.wait_ms(replace(LOST, longest_lease_ms=longest_lease_ms)) == wait_ms
