"""A resource that is to be run in another way: what runs is neither found nor ended as it is configured now.

So what may run is probed, watched and stopped by the agent and with the parameters that it was started with, before
anything starts in the new way (safety.md §1): otherwise there would be two copies, one of which no history names.
"""

from collections.abc import Callable

import pytest

from haclusterd.cib.commands import CleanUp
from haclusterd.model.rules_in_force import ALL_RULES
from haclusterd.simulator.hosts.truth import Maker
from haclusterd.simulator.scenario import Cluster
from tests.simulation import copies_scenarios as copies


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


@pytest.mark.parametrize("made", copies.CHANGED, ids=["agent", "pidfile"])
@pytest.mark.parametrize("meanwhile", [_nothing, _its_daemon_dies, _the_dc_dies, _everything_is_probed_again])
def test_what_runs_is_stopped_as_it_was_started(meanwhile: Callable[[Cluster], None], made: Maker) -> None:
    cluster = Cluster(3).form()
    assert cluster.node_of("db") == "n1"
    copies.change_db(cluster, made)
    meanwhile(cluster)
    cluster.until(lambda: copies.is_run_as(cluster, made), 60_000, "db is run as configured")
    cluster.until(cluster.is_settled, 30_000, "settled")


def test_a_start_whose_end_nobody_knows_is_looked_for_where_it_was_ordered() -> None:
    copies.start_after_a_change_outlives_its_daemon(ALL_RULES)


def test_monitors_of_what_is_unmanaged_look_where_it_runs() -> None:
    copies.unmanaged_while_changed(ALL_RULES)
