"""A resource that is to be run in another way: what runs is neither found nor ended as it is configured now.

So what may run is probed, watched and stopped by the agent and with the parameters that it was started with, before
anything starts in the new way (safety.md §1): otherwise there would be two copies, one of which no history names.
"""

from collections.abc import Callable

import pytest

from haclusterd.cib.commands import CleanUp, RotateSecrets
from haclusterd.cib.edits import PutResource
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.rules_in_force import ALL_RULES
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.truth import Maker
from haclusterd.simulator.people import ask
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


def test_a_secret_of_what_has_ended_may_be_deleted_whatever_restarts_afterwards() -> None:
    """A probe by the parameters of before would answer, again and again, that the secret is unknown."""
    cluster = Cluster(3).form()
    n1 = NodeName("n1")
    ask(cluster, "secret.set", {"name": "place", "value": "one.pid"})
    cluster.until(lambda: "place" in cluster.cib.secrets.values, 10_000, "the secret is there")
    copies.change_db(cluster, Maker(copies.SERVICE, "secret:place"))
    cluster.until(lambda: copies.is_run_as(cluster, Maker(copies.SERVICE, "one.pid")), 60_000, "db runs with it")
    assert cluster.node_of("db") == n1
    copies.change_db(cluster, Maker(copies.SERVICE), target_role="Stopped")
    cluster.until(lambda: not cluster.truth.active_nodes(copies.DB), 60_000, "db is stopped")
    cluster.until_settled(30_000, "settled")
    ask(cluster, "secret.delete", {"name": "place"})
    cluster.until(lambda: not cluster.cib.secrets.values, 10_000, "the secret is deleted")
    cluster.kill_brain("n1")
    cluster.until(lambda: copies.DB in cluster.cib.status.nodes[n1].unverified, 10_000, "n1 is back")
    cluster.until(lambda: copies.DB in cluster.cib.status.nodes[n1].probed, 30_000, "nothing runs on n1")
    copies.change_db(cluster, Maker(copies.SERVICE))
    cluster.until(lambda: copies.is_run_as(cluster, Maker(copies.SERVICE)), 60_000, "db runs without it")
    cluster.until_settled(30_000, "settled")


def test_what_was_to_start_by_a_secret_that_there_is_not_runs_once_it_needs_none() -> None:
    """Nothing was run with it, so that it is looked for as it is configured now (seed 600066)."""
    cluster = Cluster(3).form()
    copies.change_db(cluster, Maker(copies.SERVICE), target_role="Stopped")
    cluster.until(lambda: not cluster.truth.active_nodes(copies.DB), 60_000, "db is stopped")
    copies.change_db(cluster, Maker(copies.SERVICE, "secret:place"))
    cluster.until(lambda: _failed_starts(cluster) > 0, 20_000, "a start fails")
    copies.change_db(cluster, Maker(copies.SERVICE))
    ask(cluster, "resource.cleanup", {})
    cluster.until(lambda: copies.is_run_as(cluster, Maker(copies.SERVICE)), 20_000, "db runs without it")
    cluster.until_settled(30_000, "settled")


def test_a_secret_by_which_something_runs_is_not_forgotten_with_its_key() -> None:
    """Otherwise it is found no more: with another value a second copy starts, or it is probed in vain for ever."""
    cluster = Cluster(3).form()
    ask(cluster, "secret.set", {"name": "place", "value": "one.pid"})
    cluster.until(lambda: "place" in cluster.cib.secrets.values, 10_000, "the secret is there")
    copies.change_db(cluster, Maker(copies.SERVICE, "secret:place"))
    cluster.until(lambda: copies.is_run_as(cluster, Maker(copies.SERVICE, "one.pid")), 60_000, "db runs with it")
    cluster.until_settled(30_000, "settled")
    secrets = cluster.cib.secrets
    cluster.administer(RotateSecrets(secrets.version, "another key", secrets.keys, {}, "scenario"))
    cluster.run_for(2000)
    assert cluster.cib.secrets == secrets
    ask(cluster, "secret.set", {"name": "place", "value": "two.pid"})
    cluster.until(lambda: copies.is_run_as(cluster, Maker(copies.SERVICE, "two.pid")), 60_000, "db goes by another")
    cluster.until_settled(30_000, "settled")


def _failed_starts(cluster: Cluster) -> int:
    histories = (status.histories.get(copies.DB) for status in cluster.cib.status.nodes.values())
    return sum(bool(history.fail_counts) for history in histories if history is not None)


def test_a_service_that_becomes_a_fence_device_is_stopped_as_it_was_started() -> None:
    cluster = Cluster().form()
    service = cluster.cib.configuration.resources[ResourceId("cache")]
    cluster.configure([configurations.device(["nobody"], "cache")])
    cluster.until(lambda: cluster.truth.active_nodes(ResourceId("cache")) == (), 20_000, "it has stopped")
    cluster.until_settled(20_000, "the device is ready")
    cluster.configure([PutResource(service)])
    cluster.until(lambda: cluster.runs_once("cache"), 20_000, "it is a service again")
    cluster.until_settled(20_000, "settled")
