"""A graph that could make one copy too many is refused, no matter what made it."""

import pytest

from haclusterd.model.graph import ActionKind, GraphAction, TransitionGraph
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.scheduler.graph.invariants import check_graph
from haclusterd.scheduler.model.options import DEFAULT_OPTIONS
from haclusterd.scheduler.model.settings import unpack_settings
from tests.scheduled_clusters import ScheduledCluster, configured

CONFIGURATION = """
primitive power stonith:fence_local
primitive web ocf:haclusterd:dummy
primitive cache ocf:haclusterd:dummy
primitive db ocf:haclusterd:dummy
clone caches cache meta clone-max={clone_max}
ms dbs db
location web-1 web 100: n1
location dbs-1 dbs rule $role=Promoted 10: #uname eq n1
location caches-1 caches 100: n1
location caches-2 caches 50: n2
"""


def lost(clone_max: int = 2) -> ScheduledCluster:
    """All run, the database promoted on n1; then n1 is lost and not fenced yet."""
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    cluster.configure(configured(CONFIGURATION.format(clone_max=clone_max)))
    cluster.settle()
    cluster.lose("n1")
    return cluster


def action(number: int, name: str, resource: str, node: str, *after: int) -> GraphAction:
    return GraphAction(number, ActionKind.RESOURCE, name, ResourceId(resource), NodeName(node), after)


def fence(number: int, node: str, *after: int) -> GraphAction:
    return GraphAction(number, ActionKind.FENCE, "off", None, NodeName(node), after)


def check(cluster: ScheduledCluster, *actions: GraphAction) -> None:
    settings = unpack_settings(cluster.cib.configuration, cluster.now, DEFAULT_OPTIONS)
    check_graph(TransitionGraph({item.id: item for item in actions}), cluster.cib, settings)


@pytest.mark.parametrize("name", ["start", "migrate_from"])
def test_a_second_copy_without_fencing_is_refused(name: str) -> None:
    with pytest.raises(AssertionError, match="lost and not fenced, may run it"):
        check(lost(), action(1, name, "web", "n2"))


def test_a_second_copy_beside_the_fencing_is_refused() -> None:
    with pytest.raises(AssertionError, match="does not wait for the fencing of n1"):
        check(lost(), fence(1, "n1"), action(2, "start", "web", "n2"))


def test_a_copy_after_the_fencing_is_none_too_many() -> None:
    check(lost(), fence(1, "n1"), action(2, "stop", "cache", "n2", 1), action(3, "start", "web", "n2", 2))


def test_the_fencing_of_another_node_is_no_help() -> None:
    with pytest.raises(AssertionError, match="lost and not fenced, may run it"):
        check(lost(), fence(1, "n3"), action(2, "start", "web", "n2", 1))


def test_another_instance_may_start_while_there_may_be_more() -> None:
    check(lost(clone_max=3), action(1, "start", "cache", "n3"))


def test_an_instance_too_many_waits_for_the_fencing() -> None:
    with pytest.raises(AssertionError, match="lost and not fenced, may run it"):
        check(lost(clone_max=2), action(1, "start", "cache", "n3"))


def test_an_instance_that_moves_takes_its_place_along() -> None:
    check(lost(clone_max=2), action(1, "stop", "cache", "n2"), action(2, "start", "cache", "n3", 1))


def test_an_instance_that_moves_is_stopped_first() -> None:
    with pytest.raises(AssertionError, match="lost and not fenced, may run it"):
        check(lost(clone_max=2), action(1, "start", "cache", "n3"), action(2, "stop", "cache", "n2"))


def test_a_demotion_leaves_the_place_of_an_instance_taken() -> None:
    with pytest.raises(AssertionError, match="lost and not fenced, may run it"):
        check(lost(clone_max=2), action(1, "demote", "cache", "n2"), action(2, "start", "cache", "n3", 1))


def test_a_second_promotion_waits_for_the_fencing() -> None:
    with pytest.raises(AssertionError, match="lost and not fenced, may run it"):
        check(lost(), action(1, "promote", "db", "n2"))


def test_what_waits_for_what_comes_later_is_refused() -> None:
    with pytest.raises(AssertionError, match="comes later or not at all"):
        check(lost(), action(1, "stop", "web", "n2", 2), action(2, "stop", "cache", "n2"))
