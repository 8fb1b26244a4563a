"""Every fault has an expected verdict: it recovers in time, it holds, or nothing at all happens (safety.md §9)."""

from collections.abc import Callable

import pytest

from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentBehaviour, AgentRun
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.hosts.network import NetworkConditions
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster

DB = ResourceId("db")
QUICK = AgentBehaviour(start_ms=(40, 80), stop_ms=(20, 40))


def formed(seed: int = 1) -> Cluster:
    cluster = Cluster(seed)
    cluster.agent_script.behaviour = QUICK
    return cluster.form()


def interruptions(cluster: Cluster) -> list[object]:
    """Collect services that end from now on."""
    ended: list[object] = []
    cluster.truth.when_service_ends.append(ended.append)
    return ended


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_dead_host_is_recovered_within_three_seconds(seed: int) -> None:
    cluster = formed(seed)
    cluster.run_for(1000 + 31 * seed)
    cluster.switch.usual.latency_ms = 80
    cluster.power_off(cluster.node_of("db"))
    assert cluster.until(lambda: cluster.runs_once("db"), 6000, "db recovered") <= 3000
    cluster.until(cluster.is_settled, 20_000, "settled")


def test_a_dead_service_is_started_again_within_half_a_second() -> None:
    cluster = formed()
    cluster.kill_service("db")
    assert cluster.until(lambda: cluster.runs_once("db"), 3000, "db started again") <= 500


def kill_dc_brain(cluster: Cluster) -> None:
    cluster.kill_brain(cluster.dc())


def kill_every_brain(cluster: Cluster) -> None:
    for name in cluster.names:
        cluster.kill_brain(name)


def kill_holder_brain(cluster: Cluster) -> None:
    cluster.kill_brain(cluster.node_of("db"))


def kill_pacers(cluster: Cluster) -> None:
    for name in cluster.names:
        cluster.kill_pacer(name)


def pause_holder_brain(cluster: Cluster) -> None:
    node = cluster.node_of("db")
    cluster.pause_brain(node)
    cluster.run_for(5000)
    cluster.resume_brain(node)


def pause_dc_brain(cluster: Cluster) -> None:
    node = cluster.dc()
    cluster.pause_brain(node)
    cluster.run_for(5000)
    cluster.resume_brain(node)


def stall_holder_briefly(cluster: Cluster) -> None:
    node = cluster.node_of("db")
    cluster.stall(node)
    cluster.run_for(1500)
    cluster.go_on(node)


def set_wall_clocks(cluster: Cluster) -> None:
    for jump_ms in (3_600_000, -3_600_000, 0):
        cluster.hosts[cluster.dc()].wall.offset_ms = jump_ms
        cluster.run_for(5000)


def lose_five_percent(cluster: Cluster) -> None:
    cluster.network.set_conditions(NetworkConditions(loss=0.05))
    cluster.run_for(60_000)
    cluster.network.set_conditions(NetworkConditions())


def load_every_disk(cluster: Cluster) -> None:
    for host in cluster.hosts.values():
        host.disk.sync_us = (20 * MS, 300 * MS)
    cluster.run_for(60_000)
    cluster.heal()


def cut_dc_and_holder(cluster: Cluster) -> None:
    dc = cluster.dc()
    other = cluster.others(dc)[0]
    cluster.cut(dc, other)
    cluster.run_for(5000)
    cluster.restore(dc, other)


NO_ALARM: tuple[Callable[[Cluster], None], ...] = (
    kill_dc_brain,
    kill_every_brain,
    kill_holder_brain,
    kill_pacers,
    pause_holder_brain,
    pause_dc_brain,
    stall_holder_briefly,
    set_wall_clocks,
    lose_five_percent,
    load_every_disk,
    cut_dc_and_holder,
)


@pytest.mark.parametrize("fault", NO_ALARM, ids=lambda fault: fault.__name__)
def test_no_service_is_interrupted_and_no_node_fenced(fault: Callable[[Cluster], None]) -> None:
    cluster = formed()
    cluster.run_for(2000)
    ended = interruptions(cluster)
    fault(cluster)
    cluster.until(cluster.is_settled, 20_000, "settled")
    cluster.run_for(3000)
    assert not ended
    assert not cluster.switch.acted
    assert not cluster.checkers.log.lost_at_us


def test_a_dc_whose_main_loop_hangs_is_replaced() -> None:
    cluster = formed()
    dc = cluster.dc()
    home = cluster.others(dc)[0]
    cluster.configure([configurations.prefers("db", home, 1000)])
    cluster.until(cluster.is_settled, 10_000, "settled")
    cluster.hang_main_loop(dc)
    cluster.kill_service("db")
    cluster.until(lambda: cluster.runs_once("db"), 8000, "db started again")
    cluster.until(lambda: cluster.state(dc) is not NodeState.ONLINE, 15_000, "the hung node lost")


def test_a_dc_that_is_not_heard_is_replaced_and_fenced() -> None:
    cluster = formed()
    dc = cluster.dc()
    for other in cluster.others(dc):
        cluster.network.drop_datagrams(dc, other)
    cluster.until(lambda: cluster.dc() != dc, 10_000, "another DC")
    cluster.until(lambda: any(target == dc for _, target, _ in cluster.switch.acted), 20_000, "fenced")


def test_what_a_deaf_node_has_stopped_runs_on_others() -> None:
    cluster = formed()
    home = cluster.node_of("db")
    for other in cluster.others(home):
        cluster.network.drop_datagrams(other, home)
    cluster.run_for(4000)
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != home, 30_000, "db on another node")


def test_a_dead_fence_device_holds() -> None:
    cluster = formed()
    cluster.switch.set("n1", FaultMode.DEAD)
    cluster.power_off("n1")
    cluster.run_for(30_000)
    assert cluster.state("n1") is NodeState.LOST
    assert not cluster.truth.holders(DB)


def test_without_a_quorum_nothing_runs_on_and_all_comes_back() -> None:
    cluster = formed()
    for one, other in (("n1", "n2"), ("n1", "n3"), ("n2", "n3")):
        cluster.cut(one, other)
    cluster.run_for(10_000)
    assert not any(cluster.truth.services_on(name) for name in cluster.names)
    assert not cluster.switch.acted
    cluster.heal()
    cluster.until(cluster.is_settled, 30_000, "settled")


def test_a_drained_node_leaves_without_harm_and_may_return() -> None:
    cluster = formed()
    home = cluster.node_of("db")
    cluster.brain_of(home).runtime.drain()
    cluster.until(lambda: cluster.state(home) is NodeState.LEFT, 10_000, "left")
    cluster.until(lambda: cluster.runs_once(*configurations.SERVICES), 5000, "everything on other nodes")
    assert cluster.node_of("db") != home
    assert not cluster.switch.acted
    cluster.hosts[NodeName(home)].brain.enable()
    cluster.until(cluster.is_settled, 20_000, "back")


def test_a_failed_stop_is_fenced() -> None:
    cluster = formed()
    home = cluster.node_of("db")
    cluster.agent_script.write("db", "stop", AgentRun(50, exit_code=1, has_effect=False), node=home)
    cluster.configure([configurations.prefers("db", home, -1_000_000)])
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != home, 20_000, "db on another node")
    assert any(target == home for _, target, _ in cluster.switch.acted)


def test_a_damaged_journal_keeps_the_brain_down_and_the_rest_runs() -> None:
    cluster = formed()
    victim = cluster.others(cluster.node_of("db"), cluster.dc())[0]
    host = cluster.hosts[victim]
    cluster.power_off(victim)
    host.disk.damage("journal", 0.5)
    cluster.power_on(victim)
    cluster.run_for(20_000)
    assert any("does not start" in line for line in cluster.world.recorded())
    assert cluster.runs_once(*configurations.SERVICES)


def test_a_full_disk_ends_the_brain_and_not_the_services() -> None:
    cluster = formed()
    ended = interruptions(cluster)
    home = cluster.node_of("db")
    cluster.hosts[home].disk.is_full = True
    cluster.kill_service("web" if cluster.node_of("web") != home else "ip")
    cluster.run_for(4000)
    cluster.heal()
    cluster.until(cluster.is_settled, 20_000, "settled")
    assert len(ended) <= 3, "only what was killed, and what depends on it"
