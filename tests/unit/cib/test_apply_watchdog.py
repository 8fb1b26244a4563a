"""What the CIB says of watchdog devices, and which configurations it refuses because of them or of the network."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.changes import RefusalCode
from haclusterd.cib.edits import PutSets
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.fencing import FenceAction, FenceOrder, FenceOutcome
from haclusterd.model.ids import FenceKey
from haclusterd.model.instants import WallTime
from haclusterd.model.watchdog import WATCHDOG, Watchdog
from tests.unit.situations import N1, N2, TERM, Cluster, life

DEVICE = Watchdog(10_000, "/dev/watchdog", "iTCO_wdt")
SLOWER = Watchdog(60_000, "/dev/watchdog", "iTCO_wdt")


def properties(**values: str) -> PutSets:
    pairs = tuple((name.replace("_", "-"), value) for name, value in values.items())
    return PutSets("properties", (AttributeSet("cib-bootstrap-options", pairs),))


def change(cluster: Cluster, round_trip_ms: int = 0, **values: str) -> commands.ChangeConfiguration:
    edits = (properties(**values),)
    return commands.ChangeConfiguration(cluster.cib.version.epoch, edits, "a", "", round_trip_ms=round_trip_ms)


def rejoined(token: int = 2) -> Cluster:
    cluster = Cluster()
    cluster.must(commands.Join(N2, life(N2, token=token), DEVICE))
    return cluster


def test_a_join_publishes_the_device_and_a_living_node_another_one() -> None:
    cluster = rejoined()
    assert cluster.status(N2).watchdog == DEVICE
    cluster.must(commands.PublishWatchdog(N2, life(N2, token=2), SLOWER))
    assert cluster.status(N2).watchdog == SLOWER
    cluster.must(commands.PublishWatchdog(N2, life(N2, token=2), None))
    assert cluster.status(N2).watchdog is None


def test_a_life_that_is_over_publishes_nothing() -> None:
    cluster = rejoined()
    for_old_life = commands.PublishWatchdog(N2, life(N2, token=1), SLOWER)
    assert cluster.put(for_old_life).refusal is not None
    cluster.lose(N2)
    assert cluster.put(commands.PublishWatchdog(N2, life(N2, token=2), SLOWER)).refusal is not None
    assert cluster.status(N2).watchdog == DEVICE, "what survivors count on stays"


def test_the_longest_lease_is_remembered_until_the_node_joins_after_a_boot() -> None:
    cluster = rejoined()
    assert cluster.status(N2).longest_lease_ms == 2000
    cluster.must(change(cluster, node_timeout="5s"))
    cluster.must(change(cluster, node_timeout="1s"))
    assert cluster.status(N2).longest_lease_ms == 5000
    cluster.must(commands.Join(N2, life(N2, token=3), DEVICE))
    assert cluster.status(N2).longest_lease_ms == 5000, "its daemon may not know the shorter one yet"
    cluster.must(commands.Join(N2, life(N2, boot=2), DEVICE))
    assert cluster.status(N2).longest_lease_ms == 1000


@pytest.mark.parametrize(("policy", "is_refused"), [("freeze", True), ("ignore", True), ("stop", False),
                                                    ("demote", False), ("fence", False)])  # fmt: skip
def test_a_policy_with_which_a_lost_node_runs_on_is_refused_beside_watchdog_fencing(
    policy: str, is_refused: bool
) -> None:
    cluster = Cluster()
    refusal = cluster.put(change(cluster, watchdog_fencing="true", no_quorum_policy=policy)).refusal
    assert (refusal is not None) is is_refused
    assert refusal is None or refusal.code is RefusalCode.UNSAFE_CONFIGURATION


@pytest.mark.parametrize(("round_trip_ms", "is_refused"), [(0, False), (700, False), (701, True)])
def test_a_lease_that_does_not_hold_on_this_network_is_refused(round_trip_ms: int, is_refused: bool) -> None:
    cluster = Cluster()
    applied = cluster.put(change(cluster, round_trip_ms, node_timeout="1s"))
    assert (applied.refusal is not None) is is_refused


def test_a_change_of_something_else_is_not_judged_by_the_network() -> None:
    cluster = Cluster()
    cluster.must(change(cluster, 60_000, brain_timeout="20s"))


def waiting() -> Cluster:
    """Return a cluster that waits for n2's watchdog."""
    cluster = rejoined()
    cluster.lose(N2)
    order = FenceOrder(
        key=FenceKey("w"),
        target=N2,
        target_incarnation=life(N2, token=2),
        action=FenceAction.REBOOT,
        device=WATCHDOG,
        executor=N1,
        executor_incarnation=life(N1),
        dc_term=TERM,
        timeout_ms=60_000,
        attempt=1,
        issued_at=WallTime(0),
        reason="silent",
    )
    cluster.must(commands.IssueFence(order))
    return cluster


def test_a_new_boot_ends_the_wait_and_the_same_boot_does_not() -> None:
    cluster = waiting()
    assert cluster.put(commands.Join(N2, life(N2, token=3), DEVICE)).refusal is not None
    cluster.must(commands.Join(N2, life(N2, boot=2), DEVICE))
    assert cluster.status(N2).state is NodeState.ONLINE
    assert cluster.cib.status.fence_orders == {}
    assert cluster.cib.status.fencing_history[-1].detail == "it is back after a boot"


def test_success_of_a_watchdog_proves_nothing_and_its_failure_does() -> None:
    cluster = waiting()
    cluster.must(commands.Fenced(N2, life(N2, token=2), FenceKey("w"), FenceOutcome.FENCED, "waited"))
    assert cluster.status(N2).state is NodeState.FENCED
    assert cluster.status(N2).watchdog == DEVICE
    assert cluster.cib.status.proofs == {}
    cluster = waiting()
    cluster.must(commands.RecordFenceFailure(FenceKey("w"), FenceOutcome.LIED, "heard"))
    assert list(cluster.cib.status.proofs) == ["#watchdog/n2"]
