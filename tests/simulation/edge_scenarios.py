"""W >= (L + 2 T_wd)(1 + 2 rho) + R (docs/design/safety.md §2): at the edge it is enough, a second less is not."""

from haclusterd.cib.commands import RequestFence, RequestLeader
from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import NodeName
from haclusterd.model.rules_in_force import SafetyRules
from haclusterd.model.timing import WATCHDOG_RESERVE_MS
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.pacers import PacerProcess
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster, NotReachedError, Setup
from tests.simulation.watchdog_scenarios import T_WD, W, device_of, stops_hang_on_n1

N1, DC = NodeName("n1"), NodeName("n2")
SLOW, FAST = -10_000, 10_000
"""Millionths."""


def everything_at_the_edge(rules: SafetyRules) -> None:
    """n1's clock and device are slow, the DC's clock is fast, a feed is held back as long as can be, the reset is late.

    n1 is declared lost while its lease is as fresh as can be, and its newest feed is written just before the device
    would expire: all that the inequality allows for happens at once, and then nearly all of R passes.
    """
    cluster = _at_the_edge(rules)
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != N1, W + 5000, "db on another node")
    assert any("is reset by its watchdog" in line for line in cluster.world.recorded())
    cluster.heal()
    cluster.until_settled(40_000, "settled")


def _at_the_edge(rules: SafetyRules) -> Cluster:
    """Return a cluster in which n1 is lost and the write of its newest feed is held back.

    The later the feed, the nearer the edge; when a pacer begins too late the lease ends before its first feed.
    """
    for killed_after_ms in range(1500, 900, -20):
        try:
            return _held_back(rules, killed_after_ms)
        except NotReachedError:
            continue
    raise AssertionError("no feed could be held back")


def _held_back(rules: SafetyRules, killed_after_ms: int) -> Cluster:
    cluster = Cluster(1, Setup(watchdog_ms=T_WD, drift_ppm=0), rules)
    host = cluster.hosts[N1]
    host.drift_ppm, cluster.hosts[DC].drift_ppm = SLOW, FAST
    host.watchdog_drift_ppm, host.watchdog_reset_ms = SLOW, WATCHDOG_RESERVE_MS - 100
    cluster.form(configurations.watched(cluster.names))
    cluster.administer(RequestLeader(DC, "scenario"))
    cluster.until(lambda: cluster.dc() == DC, 10_000, "n2 is DC")
    cluster.until_settled(10_000, "settled")
    assert cluster.node_of("db") == N1
    stops_hang_on_n1(cluster)
    status = cluster.cib.status.nodes[N1]
    cluster.administer(RequestFence(N1, status.incarnation, "scenario", "the edge"))
    cluster.until(lambda: cluster.state(N1) is NodeState.LOST, 1000, "n1 is lost")
    cluster.isolate(N1)
    _hold_the_newest_feed_back(cluster, killed_after_ms)
    return cluster


def _hold_the_newest_feed_back(cluster: Cluster, killed_after_ms: int) -> None:
    """Let a new pacer open the device, which feeds it, and stop that pacer between the next check and its write."""
    unit = cluster.hosts[N1].pacer
    old = unit.process
    cluster.run_for(killed_after_ms)
    unit.kill()
    cluster.until(lambda: unit.process is not old and unit.is_running, 500, "a new pacer")
    pacer = unit.process
    assert isinstance(pacer, PacerProcess)
    pacer.stops_before_next_write = True
    cluster.until(lambda: not pacer.life.is_running, 500, "the feeder is stopped")
    cluster.run_for((device_of(cluster, N1).due_us - cluster.world.now_us) // MS - 1)
    unit.resume()
