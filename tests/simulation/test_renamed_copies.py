"""One service that becomes the instance of a unique clone, or is so no more, has another name (safety.md §1).

What runs under the old name has stopped before anything starts under the new one, on whatever node, and when daemons
die in the middle. So it is with a service that somebody calls by another name.
"""

from collections.abc import Callable

import pytest

from haclusterd.cib.edits import Delete, Edit, PutResource
from haclusterd.model.configuration import AttributeSet, Clone, Primitive
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import replace
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.truth import Holding
from haclusterd.simulator.scenario import Cluster
from tests.simulation.copies_scenarios import is_ordered

DB, DBS, COPY = ResourceId("db"), ResourceId("dbs"), ResourceId("db:0")
SLOW = AgentRun(duration_ms=3000, effect_at_percent=90)


def clone(*, is_unique: bool) -> Edit:
    pairs = (("globally-unique", str(is_unique).lower()), ("clone-max", "1"))
    return PutResource(Clone(DBS, DB, meta=(AttributeSet("dbs-meta", pairs),)))


def formed(*edits: Edit) -> Cluster:
    """Return a cluster with a service that takes long to stop."""
    cluster = Cluster(3).form()
    cluster.configure([configurations.primitive("db"), *edits])
    cluster.until_settled(60_000, "settled")
    cluster.agent_script.write(DB, "stop", SLOW)
    cluster.agent_script.write(COPY, "stop", SLOW)
    return cluster


def _nothing(_cluster: Cluster, _holder: NodeName) -> None:
    pass


def _the_stopping_daemon_dies(cluster: Cluster, holder: NodeName) -> None:
    cluster.kill_brain(holder)


def _its_host_dies(cluster: Cluster, holder: NodeName) -> None:
    cluster.power_off(holder)


def _the_dc_dies(cluster: Cluster, _holder: NodeName) -> None:
    controller = cluster.dc()
    assert controller is not None
    cluster.kill_brain(controller)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("meanwhile", [_nothing, _the_stopping_daemon_dies, _its_host_dies, _the_dc_dies])
@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        ((), (clone(is_unique=True),), DB, COPY),
        ((clone(is_unique=True),), (clone(is_unique=False),), COPY, DB),
        ((clone(is_unique=False),), (clone(is_unique=True),), DB, COPY),
        ((clone(is_unique=True),), (Delete("resource", DBS),), COPY, DB),
    ],
    ids=["cloned", "anonymous", "unique", "alone"],
)
def test_the_new_name_starts_when_the_old_one_has_stopped(
    before: tuple[Edit, ...],
    after: tuple[Edit, ...],
    old: ResourceId,
    new: ResourceId,
    meanwhile: Callable[[Cluster, NodeName], None],
) -> None:
    cluster = formed(*before)
    (holder,) = cluster.truth.active_nodes(old)
    cluster.edit([*after, configurations.prefers("db", next(name for name in cluster.names if name != holder))])
    cluster.until(lambda: is_ordered(cluster, holder, old, ActionName.STOP), 5000, "the old one is to stop")
    meanwhile(cluster, holder)
    cluster.until(lambda: len(cluster.truth.active_nodes(new)) == 1, 60_000, "the new one runs")
    cluster.until_settled(60_000, "settled")
    assert not cluster.truth.active_nodes(old)


SHOP = ResourceId("shop")


def service(name: str) -> Edit:
    resource = configurations.primitive(name).resource
    assert isinstance(resource, Primitive)
    return PutResource(replace(resource, parameters=(AttributeSet(f"{name}-parameters", (("size", "5"),)),)))


class NeverBoth:
    """Looks whether the service runs under both names at any instant."""

    def __init__(self, cluster: Cluster) -> None:
        self._truth = cluster.truth
        self._truth.show_to(self)

    def holders_changed(self, begun: Holding, others: tuple[Holding, ...], *, has_moved: bool) -> None:
        assert not (self._truth.holders(DB) and self._truth.holders(SHOP))

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        pass


@pytest.mark.parametrize("meanwhile", [_nothing, _the_stopping_daemon_dies, _its_host_dies, _the_dc_dies])
def test_a_service_that_is_renamed_has_stopped_before_it_starts_under_its_new_name(
    meanwhile: Callable[[Cluster, NodeName], None],
) -> None:
    cluster = formed(service("db"))
    NeverBoth(cluster)
    (holder,) = cluster.truth.active_nodes(DB)
    constraints = [Delete("constraint", name) for name in ("cache-with-db", "db-then-cache", "db-on-n1")]
    other = next(name for name in cluster.names if name != holder)
    cluster.edit([*constraints, Delete("resource", DB), service("shop"), configurations.prefers("shop", other)])
    cluster.until(lambda: is_ordered(cluster, holder, DB, ActionName.STOP), 5000, "it is to stop")
    meanwhile(cluster, holder)
    cluster.until(lambda: cluster.runs_once("shop"), 60_000, "it runs")
    cluster.until_settled(60_000, "settled")


@pytest.mark.parametrize("meanwhile", [_nothing, _the_stopping_daemon_dies, _its_host_dies, _the_dc_dies])
def test_a_service_that_gets_its_former_name_back_has_stopped_before_it_starts_under_it(
    meanwhile: Callable[[Cluster, NodeName], None],
) -> None:
    cluster = formed(service("db"))
    NeverBoth(cluster)
    cluster.agent_script.write(SHOP, "stop", SLOW)
    constraints = [Delete("constraint", name) for name in ("cache-with-db", "db-then-cache", "db-on-n1")]
    cluster.configure([*constraints, Delete("resource", DB), service("shop"), configurations.prefers("shop", "n2")])
    cluster.until_settled(60_000, "it runs under its new name")
    (holder,) = cluster.truth.active_nodes(SHOP)
    cluster.edit([Delete("constraint", "shop-on-n2"), Delete("resource", SHOP), service("db"),
                  configurations.prefers("db", "n1" if holder != "n1" else "n3")])  # fmt: skip
    cluster.until(lambda: is_ordered(cluster, holder, SHOP, ActionName.STOP), 5000, "it is to stop")
    meanwhile(cluster, holder)
    cluster.until(lambda: cluster.runs_once("db"), 60_000, "it runs")
    cluster.until_settled(60_000, "settled")


def test_a_renamed_service_does_not_start_where_what_is_no_longer_configured_is_left_alone() -> None:
    cluster = formed(service("db"), configurations.properties(**{"stop-removed-resources": "false"}))
    (holder,) = cluster.truth.active_nodes(DB)
    constraints = [Delete("constraint", name) for name in ("cache-with-db", "db-then-cache", "db-on-n1")]
    cluster.edit([*constraints, Delete("resource", DB), service("shop")])
    cluster.until_settled(60_000, "settled")
    assert (cluster.truth.active_nodes(DB), cluster.truth.active_nodes(SHOP)) == ((holder,), ())
