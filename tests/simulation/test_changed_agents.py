"""A resource that is to be run by another agent: the new one neither finds nor ends what the old one has started.

So what may run is probed and stopped by the agent that started it, before anything starts under the new one
(safety.md §1): otherwise there would be two copies, one of which no history names.
"""

from collections.abc import Callable

import pytest

from haclusterd.cib.commands import CleanUp
from haclusterd.simulator.scenario import Cluster
from tests.simulation.copies_scenarios import change_agent_of_db, is_run_by_the_new_agent


def _nothing(_cluster: Cluster) -> None:
    pass


def _its_daemon_dies(cluster: Cluster) -> None:
    cluster.kill_brain("n1")


def _the_dc_dies(cluster: Cluster) -> None:
    controller = cluster.dc()
    assert controller is not None
    cluster.kill_brain(controller)


def _everything_is_probed_again(cluster: Cluster) -> None:
    cluster.administer(CleanUp(None, None, reprobe=True))


@pytest.mark.parametrize("meanwhile", [_nothing, _its_daemon_dies, _the_dc_dies, _everything_is_probed_again])
def test_what_runs_is_stopped_by_the_agent_that_started_it(meanwhile: Callable[[Cluster], None]) -> None:
    cluster = Cluster(3).form()
    assert cluster.node_of("db") == "n1"
    change_agent_of_db(cluster)
    meanwhile(cluster)
    cluster.until(lambda: is_run_by_the_new_agent(cluster), 60_000, "db is run by its new agent")
    cluster.until(cluster.is_settled, 30_000, "settled")
