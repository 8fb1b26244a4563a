"""Machines that are paused and go on later, with clocks that stood still or ran on (docs/design/safety.md §2)."""

import pytest

from haclusterd.cib.commands import RequestLeader
from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.scenario import Cluster
from tests.simulation import watchdog_scenarios as watchdogs

DB = ResourceId("db")
N1 = NodeName("n1")
CLOCKS = pytest.mark.parametrize("with_clocks", [True, False], ids=["clocks stand still", "clocks run on"])


def formed() -> Cluster:
    cluster = Cluster(3).form()
    cluster.run_for(2000)
    assert cluster.node_of("db") == N1
    return cluster


@CLOCKS
def test_a_clock_that_stood_still_goes_on_where_it_was(with_clocks: bool) -> None:
    cluster = formed()
    boot = cluster.hosts[N1].boot
    assert boot is not None
    before, wall = boot.clock.now(), cluster.hosts[N1].wall.now()
    cluster.stall("n1", with_clocks=with_clocks)
    cluster.run_for(1000)
    cluster.go_on("n1")
    passed = boot.clock.now() - before
    assert passed == (0 if with_clocks else pytest.approx(1000, abs=10))
    assert cluster.hosts[N1].wall.now() - wall == (0 if with_clocks else 1000)


@CLOCKS
def test_a_machine_that_is_paused_for_a_moment_is_not_missed(with_clocks: bool) -> None:
    cluster = formed()
    ended: list[object] = []
    cluster.truth.when_service_ends.append(ended.append)
    cluster.stall("n1", with_clocks=with_clocks)
    cluster.run_for(1500)
    cluster.go_on("n1")
    cluster.run_for(20_000)
    assert cluster.all_online()
    assert not ended
    assert not cluster.cib.status.fencing_history


@CLOCKS
@pytest.mark.parametrize("is_dc", [True, False], ids=["DC", "no DC"])
def test_nothing_of_a_paused_machine_goes_on_that_was_fenced_by_power(with_clocks: bool, is_dc: bool) -> None:
    cluster = formed()
    cluster.administer(RequestLeader(NodeName("n1" if is_dc else "n2"), "scenario"))
    cluster.until(lambda: (cluster.dc() == "n1") == is_dc, 10_000, "the wanted DC")
    cluster.run_for(1000)
    boot = cluster.hosts[N1].boot
    cluster.stall("n1", with_clocks=with_clocks)
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != N1, 10_000, "db recovered")
    assert cluster.hosts[N1].boot is not boot, "what was paused has no power any more"
    cluster.go_on("n1")
    cluster.until(cluster.is_settled, 40_000, "settled")


@CLOCKS
@pytest.mark.parametrize("pause_ms", [2500, 6000, 30_000])
def test_a_paused_machine_that_nothing_could_fence_comes_back_to_what_only_it_runs(
    with_clocks: bool, pause_ms: int
) -> None:
    """Its lease looks fresh when its clock stood still: it ends with the next heartbeats, which bring no echo."""
    cluster = formed()
    cluster.switch.set("n1", FaultMode.DEAD)
    cluster.stall("n1", with_clocks=with_clocks)
    cluster.run_for(pause_ms)
    assert cluster.state("n1") is NodeState.LOST
    assert cluster.truth.active_nodes(DB) == (N1,), "nothing of it is recovered"
    lease_ms = cluster.timing.lease_ms
    cluster.go_on("n1")
    assert cluster.lease_left_ms(N1) > 0 if with_clocks else cluster.lease_left_ms(N1) <= 0
    cluster.run_for(lease_ms + 100)
    cluster.heal()
    cluster.until(cluster.is_settled, 60_000, "settled")


@CLOCKS
def test_a_watchdog_that_counts_by_itself_resets_a_paused_machine_in_time(with_clocks: bool) -> None:
    cluster = watchdogs.formed()
    cluster.stall("n1", with_clocks=with_clocks)
    cluster.until(lambda: cluster.hosts[N1].watchdog_resets == 1, watchdogs.T_WD + 1000, "n1 is reset")
    cluster.until(cluster.is_settled, 40_000, "settled")


def test_a_watchdog_that_stands_still_with_its_machine_is_no_fencing_and_a_checker_sees_it() -> None:
    """Why an emulated device is shown as weak: no wait of the survivors covers it."""
    cluster = watchdogs.formed()
    watchdogs.device_of(cluster, "n1").is_emulated = True
    cluster.stall("n1", with_clocks=True)
    with pytest.raises(ViolationError) as caught:
        cluster.run_for(watchdogs.W + 10_000)
    assert caught.value.rule in ("FencedNodesAreDead", "NeverTwoActive")
