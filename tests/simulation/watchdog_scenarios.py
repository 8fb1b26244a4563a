"""What befalls clusters whose nodes have watchdog devices and no power switch (docs/design/safety.md §2)."""

from haclusterd.cib.apply_watchdog import lease_in_force_ms
from haclusterd.cib.commands import RequestLeader
from haclusterd.model.cluster import NodeState
from haclusterd.model.fencing import ProofState
from haclusterd.model.ids import NodeName
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.pacers import PacerProcess
from haclusterd.simulator.hosts.watchdogs import SimulatedWatchdog
from haclusterd.simulator.hosts.world import MS, SECOND
from haclusterd.simulator.scenario import Cluster, Setup

T_WD = 10_000
W = 23_440
"""(2 s + 2 * 10 s) * 1.02 + 1 s."""
HANGS = AgentRun(duration_ms=600_000)


def formed(rules: SafetyRules = ALL_RULES, *, nodes: int = 3) -> Cluster:
    """Return a cluster of which n1 runs db, and not as DC."""
    cluster = Cluster(1, Setup(nodes=nodes, watchdog_ms=T_WD), rules)
    cluster.form(configurations.watched(cluster.names))
    cluster.run_for(5000)
    if cluster.dc() == "n1":
        cluster.administer(RequestLeader(NodeName("n2"), "scenario"))
        cluster.until(lambda: cluster.dc() == "n2", 10_000, "n2 is DC")
    assert cluster.node_of("db") == "n1"
    return cluster


def device_of(cluster: Cluster, node: str) -> SimulatedWatchdog:
    boot = cluster.hosts[NodeName(node)].boot
    assert boot is not None
    assert boot.watchdog is not None
    return boot.watchdog


def stops_hang_on_n1(cluster: Cluster) -> None:
    for service in configurations.SERVICES:
        cluster.agent_script.write(service, "stop", HANGS, node="n1")


def cut_off_holder_cannot_stop(rules: SafetyRules) -> None:
    """n1 is cut off, and its stops hang: its watchdog resets it, and after W all runs on other nodes."""
    cluster = formed(rules)
    stops_hang_on_n1(cluster)
    cluster.isolate("n1")
    cluster.until(lambda: cluster.state("n1") is NodeState.LOST, 5000, "n1 is lost")
    cluster.run_for(W - 1000)
    assert cluster.state("n1") is NodeState.LOST
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != "n1", 5000, "db on another node")
    cluster.agent_script.clear()
    cluster.rejoin("n1")
    cluster.until(cluster.is_settled, 30_000, "settled")


def lease_was_longer_by_a_rule(rules: SafetyRules) -> None:
    """By a rule on dates node-timeout is 30 s for a while; n1 is cut off before the end, which it never sees."""
    cluster = formed(rules)
    begins = cluster.world.now_ms // 1000 + 3
    cluster.configure((configurations.dated_properties(begins, begins + 8, node_timeout="30s"),))
    cluster.until(lambda: lease_in_force_ms(cluster.cib.in_force) == 30_000, 5000, "the rule is true")
    cluster.run_for(7000)
    stops_hang_on_n1(cluster)
    cluster.isolate("n1")
    cluster.until(lambda: lease_in_force_ms(cluster.cib.in_force) == 2000, 4000, "the rule is true no more")
    cluster.until(lambda: cluster.state("n1") is NodeState.LOST, 5000, "n1 is lost")
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != "n1", 70_000, "db recovered")
    cluster.agent_script.clear()
    cluster.rejoin("n1")
    cluster.until(cluster.is_settled, 60_000, "settled")


def lease_is_longer_than_the_one_of_its_join(rules: SafetyRules) -> None:
    """node-timeout becomes 2 s while n1's daemon starts again; n1 joins, is cut off and never sees the change."""
    cluster, holder = Cluster(1, Setup(nodes=3, watchdog_ms=T_WD // 2, snapshot_every=5), rules), NodeName("n1")
    cluster.form(configurations.watched(cluster.names, node_timeout="30s"))
    cluster.run_for(5000)
    assert cluster.node_of("db") == holder
    if cluster.dc() == holder:
        cluster.administer(RequestLeader(NodeName("n2"), "scenario"))
        cluster.until(lambda: cluster.dc() == "n2", 10_000, "n2 is DC")
    stops_hang_on_n1(cluster)
    before = cluster.cib.status.nodes[holder].incarnation
    cluster.kill_brain(holder)
    cluster.configure([configurations.properties(watchdog_fencing="true", node_timeout="2s")])
    cluster.hosts[holder].disk.sync_us = (60 * SECOND, 60 * SECOND)
    cluster.until(lambda: cluster.cib.status.nodes[holder].incarnation != before, 10_000, "it has joined")
    assert cluster.lease_left_ms(holder) > 25_000, "by the node-timeout that it knows"
    cluster.isolate(holder)
    cluster.until(lambda: cluster.state("n1") is NodeState.LOST, 15_000, "n1 is lost")
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != "n1", 120_000, "db recovered")


def cut_off_holder_leaves_it_alone(rules: SafetyRules) -> None:
    """db is unmanaged on n1, which is cut off: db runs on there until the watchdog fires, and is managed again then."""
    cluster = formed(rules)
    cluster.configure([configurations.primitive("db", meta={"is-managed": "false"})])
    cluster.run_for(2000)
    cluster.isolate("n1")
    cluster.until(lambda: cluster.state("n1") is NodeState.LOST, 5000, "n1 is lost")
    assert cluster.node_of("db") == "n1", "what is unmanaged is not stopped"
    cluster.until(
        lambda: not cluster.runs_once("cache") or cluster.node_of("cache") != "n1", 1000, "what is managed is stopped"
    )
    cluster.until(lambda: cluster.state("n1") is NodeState.FENCED, W + 3000, "the watchdog is believed")
    cluster.configure([configurations.primitive("db", meta={"failure-timeout": "10s"})])
    cluster.until(lambda: cluster.runs_once("db"), 5000, "db managed again")
    cluster.rejoin("n1")
    cluster.until(cluster.is_settled, 30_000, "settled")


def feed_is_held_back(rules: SafetyRules) -> None:
    """n1's pacer is stopped between its look at the clock and its write, until just before the device would expire."""
    cluster = formed(rules)
    stops_hang_on_n1(cluster)
    cluster.isolate("n1")
    cluster.run_for(500)
    pacer = cluster.hosts[NodeName("n1")].pacer.process
    assert isinstance(pacer, PacerProcess)
    pacer.stops_before_next_write = True
    cluster.until(lambda: not pacer.life.is_running, 2600, "the feeder is stopped")
    cluster.run_for((device_of(cluster, "n1").due_us - cluster.world.now_us) // MS - 100)
    cluster.hosts[NodeName("n1")].pacer.resume()
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != "n1", W + 5000, "db on another node")


def dc_changes_during_the_wait(rules: SafetyRules) -> None:
    """n1 is cut off and lost when another node becomes DC, whose wall clock is an hour ahead."""
    cluster = formed(rules)
    target = next(name for name in cluster.others("n1") if name != cluster.dc())
    cluster.hosts[target].wall.offset_ms = 3_600_000
    stops_hang_on_n1(cluster)
    cluster.isolate("n1")
    cluster.until(lambda: cluster.state("n1") is NodeState.LOST, 5000, "n1 is lost")
    cluster.administer(RequestLeader(target, "scenario"))
    cluster.until(lambda: cluster.dc() == target, 5000, "another DC")
    cluster.run_for(W - 1000)
    assert cluster.state("n1") is NodeState.LOST
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != "n1", 5000, "db on another node")


def boots(cluster: Cluster) -> dict[NodeName, int]:
    return {name: host.boots for name, host in cluster.hosts.items()}


def switch_reboots(_rules: SafetyRules) -> None:
    """Nobody hears anybody for a minute: everything stops, and no empty node is reset."""
    cluster = formed()
    before = boots(cluster)
    for name in cluster.names:
        cluster.isolate(name)
    cluster.run_for(60_000)
    assert not any(cluster.truth.services_on(name) for name in cluster.names)
    assert boots(cluster) == before
    cluster.heal()
    cluster.until(cluster.is_settled, 40_000, "settled")
    assert boots(cluster) == before


def cut_off_holder_stops(_rules: SafetyRules) -> None:
    """n1 is cut off and stops what it runs: it is not reset, and comes back in the same boot after its fencing."""
    cluster = formed()
    before = boots(cluster)
    cluster.isolate("n1")
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != "n1", W + 8000, "db on another node")
    cluster.rejoin("n1")
    cluster.until(cluster.is_settled, 30_000, "settled")
    cluster.run_for(20_000)
    assert boots(cluster) == before
    assert cluster.is_settled()


def brain_hangs(_rules: SafetyRules) -> None:
    """n1's daemon hangs for good while its pacer is heard: after brain-timeout nobody feeds, and n1 is reset."""
    cluster = formed()
    cluster.hang_main_loop("n1")
    cluster.until(lambda: cluster.hosts[NodeName("n1")].boots == 2, 40_000, "n1 is reset")
    cluster.until(cluster.is_settled, 60_000, "settled")


def pacer_ends_for_good(_rules: SafetyRules) -> None:
    """n1's pacer is stopped and not started again: its device goes on counting."""
    cluster = formed()
    cluster.hosts[NodeName("n1")].pacer.disable()
    cluster.agent_script.write("db", "stop", HANGS, node="n1")
    cluster.until(lambda: cluster.hosts[NodeName("n1")].boots == 2, T_WD + 3500, "n1 is reset")


def pacer_is_killed(_rules: SafetyRules) -> None:
    """n1's pacer is killed and started again: the new one keeps the lease and the device."""
    cluster = formed()
    before = boots(cluster)
    for _ in range(5):
        cluster.kill_pacer("n1")
        cluster.run_for(3000)
    cluster.run_for(30_000)
    assert boots(cluster) == before
    assert cluster.is_settled()


def broken_device(_rules: SafetyRules) -> None:
    """n1's device takes every feed and never resets: n1, whose daemon hangs, is heard, and nothing is recovered."""
    cluster = formed()
    device_of(cluster, "n1").is_broken = True
    cluster.hang_main_loop("n1")
    cluster.run_for(10_000 + W + 20_000)
    assert cluster.node_of("db") == "n1"
    proof = cluster.cib.status.proofs["#watchdog/n1"]
    assert proof.state is ProofState.LIED
    cluster.power_off("n1")
    cluster.power_on("n1")
    cluster.until(cluster.is_settled, 60_000, "settled once n1 was booted")


def node_returns_early(_rules: SafetyRules) -> None:
    """n1 loses power for a moment: its new boot proves the old one dead, and nobody waits for W."""
    cluster = formed()
    cluster.power_off("n1")
    cluster.until(lambda: bool(cluster.cib.status.fence_orders), 5000, "its watchdog is waited for")
    cluster.power_on("n1")
    cluster.until(cluster.is_settled, 10_000, "settled before W")
