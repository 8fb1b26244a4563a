"""A reload that nobody knows the end of: what runs may go by the older parameters or by the newer (safety.md §1).

The agents here find and end what runs by a pidfile, and take another one over while it runs.
"""

from collections.abc import Callable

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import RELOAD, SERVICE, AgentBehaviour, AgentRun
from haclusterd.simulator.hosts.truth import Maker
from haclusterd.simulator.scenario import Cluster, Setup
from tests.simulation import copies_scenarios as copies

N1, N2 = NodeName("n1"), NodeName("n2")
NEW = Maker(SERVICE, "new.pid")
EARLY, LATE = AgentRun(duration_ms=3000, effect_at_percent=10), AgentRun(duration_ms=3000, effect_at_percent=90)


def reloading(run: AgentRun, setup: Setup | None = None) -> Cluster:
    """Return a cluster in which db is being reloaded on n1, which takes 3 s."""
    setup = setup or Setup()
    cluster = Cluster(3, setup)
    cluster.agent_script.behaviour = cluster.usual_behaviour = AgentBehaviour(reloads=True)
    if setup.watchdog_ms:
        cluster.form(configurations.watched(cluster.names))
    else:
        cluster.form()
    cluster.agent_script.write("db", RELOAD, run, times=1)
    copies.change_db(cluster, NEW)
    cluster.until(lambda: _is_reloading(cluster), 5000, "the reload has begun")
    cluster.run_for(500)
    assert cluster.node_of("db") == N1
    return cluster


def _is_reloading(cluster: Cluster) -> bool:
    host = cluster.hosts[N1]
    assert host.boot is not None
    return any(call.action == RELOAD for call in cluster.agents_at_work(N1, copies.DB))


def _its_daemon_dies(cluster: Cluster) -> None:
    cluster.kill_brain(N1)


def _its_daemon_dies_twice(cluster: Cluster) -> None:
    cluster.kill_brain(N1)
    cluster.run_for(1500)
    cluster.kill_brain(N1)


def _the_dc_dies(cluster: Cluster) -> None:
    cluster.kill_brain(cluster.dc())


def _it_is_cut_off(cluster: Cluster) -> None:
    cluster.isolate(N1)
    cluster.run_for(15_000)
    cluster.rejoin(N1)


@pytest.mark.parametrize("run", [EARLY, LATE], ids=["by the newer", "by the older"])
@pytest.mark.parametrize("interruption", [_its_daemon_dies, _its_daemon_dies_twice, _the_dc_dies, _it_is_cut_off])
def test_what_a_cut_off_reload_left_is_found_before_it_starts_on_another_node(
    interruption: Callable[[Cluster], None], run: AgentRun
) -> None:
    cluster = reloading(run)
    cluster.edit([configurations.prefers("db", N2, 1000)])
    interruption(cluster)
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") == N2, 60_000, "it runs on n2")
    cluster.until_settled(60_000, "settled")
    assert copies.is_run_as(cluster, NEW)


@pytest.mark.parametrize("code", [1, 7])
@pytest.mark.parametrize("run", [EARLY, LATE], ids=["by the newer", "by the older"])
def test_what_a_failed_reload_left_is_found_before_it_starts_on_another_node(run: AgentRun, code: int) -> None:
    failing = AgentRun(run.duration_ms, exit_code=code, effect_at_percent=run.effect_at_percent)
    cluster = reloading(failing)
    cluster.edit([configurations.prefers("db", N2, 1000)])
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") == N2, 60_000, "it runs on n2")
    cluster.until_settled(60_000, "settled")
    assert copies.is_run_as(cluster, NEW)


@pytest.mark.parametrize("run", [EARLY, LATE], ids=["by the newer", "by the older"])
def test_a_node_that_acts_alone_stops_what_is_being_reloaded(run: AgentRun) -> None:
    """Nothing but its watchdog fences it: that is fed while it says that it is empty."""
    cluster = reloading(run, Setup(watchdog_ms=5000, watchdog_reset_ms=(0, 200)))
    cluster.isolate(N1)
    cluster.until(lambda: cluster.truth.active_nodes(copies.DB) == (N2,), 60_000, "it runs on another node")
    cluster.run_for(10_000)
    cluster.rejoin(N1)
    cluster.until_settled(60_000, "settled")
    assert copies.is_run_as(cluster, NEW)
