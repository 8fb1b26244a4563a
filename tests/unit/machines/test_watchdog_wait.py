"""W, how long survivors wait for a lost node's watchdog: with the longest lease that node may hold (safety.md §2).

And who believes then that the node was reset: a DC that has its lease, and heard nothing of that life since.
"""

import pytest

from haclusterd.cib import commands
from haclusterd.machines.moment import Moment
from haclusterd.machines.watchdog_wait import WatchdogWait
from haclusterd.model.cluster import NodeState, NodeStatus
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport
from haclusterd.model.records import replace
from haclusterd.model.timing import derive
from haclusterd.model.watchdog import WATCHDOG, Watchdog
from tests.unit.situations import N2, Cluster, commands_of, fence_order, life, moment, without_lease

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


SEEN_AT = 100_000
DUE_AT = SEEN_AT + 13_240


class Waiting:
    """A DC that saw n2's loss at SEEN_AT, and waits for its watchdog."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.must(commands.PublishWatchdog(N2, life(N2), DEVICE))
        self.cluster.lose(N2)
        self.wait = WatchdogWait(derive(2000))
        self.wait.observe(self.cluster.cib, moment(SEEN_AT))

    def step(self, now: Moment, answered_at: int | None = None) -> list[FenceOutcome]:
        """Step with what the pacer has heard until now; return the outcomes that are recorded."""
        heard = HeardNode(N2, life(N2), 50_000, BrainState.ALIVE, 0, {})
        if answered_at is not None:
            heard = replace(heard, answered_at=Instant(answered_at), heard_at=Instant(answered_at))
        order = replace(fence_order(), device=WATCHDOG)
        effects = self.wait.step(self.cluster.cib, order, PacerReport(now.now, None, (heard,)), now)
        recorded = commands_of(effects)
        assert all(isinstance(each, commands.Fenced | commands.RecordFenceFailure) for each in recorded)
        return [each.outcome for each in recorded if isinstance(each, commands.Fenced | commands.RecordFenceFailure)]


def test_a_watchdog_is_believed_when_it_has_had_the_time_and_the_node_was_silent_since() -> None:
    waiting = Waiting()
    assert waiting.step(moment(DUE_AT - 1)) == []
    assert waiting.step(moment(DUE_AT + 249)) == [], "a heartbeat may be on its way"
    assert waiting.step(moment(DUE_AT + 250)) == [FenceOutcome.FENCED]


def test_a_dc_without_a_lease_believes_no_watchdog() -> None:
    """It may hear nobody: that it does not hear n2 says nothing."""
    assert Waiting().step(without_lease(DUE_AT + 60_000)) == []


def test_a_watchdog_that_did_not_reset_its_node_has_lied() -> None:
    assert Waiting().step(moment(DUE_AT + 5000), answered_at=DUE_AT + 1) == [FenceOutcome.LIED]
    assert Waiting().step(moment(DUE_AT + 5000), answered_at=DUE_AT - 1) == [FenceOutcome.FENCED]
