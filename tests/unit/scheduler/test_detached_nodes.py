"""What may be promoted beside a node whose daemon left with unmanaged resources running (safety.md §4)."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.verdict import with_node
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import replace
from tests.scheduled_clusters import ScheduledCluster, configured

CONFIGURATION = """
node n1 attributes maintenance={maintenance}
primitive power stonith:fence_local
primitive db ocf:haclusterd:dummy
ms dbs db meta promoted-max={promoted_max}
location dbs-first db rule $role=Promoted 100: #uname eq {first}
location dbs-second db rule $role=Promoted 50: #uname eq {second}
"""
N1, DB = NodeName("n1"), ResourceId("db")


def configure(cluster: ScheduledCluster, **values: str) -> None:
    known = {"maintenance": "false", "promoted_max": "1", "first": "n2", "second": "n1", **values}
    cluster.configure(configured(CONFIGURATION.format(**known)))


def detached(promoted_max: str, promoted: str) -> ScheduledCluster:
    """All run, one of them is promoted; n1 goes into maintenance, its daemon begins again and leaves unprobed."""
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    configure(cluster, promoted_max="1", first=promoted)
    cluster.settle()
    assert cluster.promoted == {(DB, NodeName(promoted))}
    configure(cluster, maintenance="true", promoted_max="1", first=promoted)
    cluster.join("n1", same_boot=True)
    incarnation = cluster.cib.status.nodes[N1].incarnation
    assert incarnation is not None
    cluster.do(commands.Leaving(N1, incarnation, unmanaged=(DB,)))
    status = cluster.cib.status.nodes[N1]
    assert status.has_detached
    assert DB in status.unverified
    return cluster


def promotions(cluster: ScheduledCluster) -> set[str | None]:
    actions = cluster.plan().graph.actions.values()
    return {action.node for action in actions if action.name == ActionName.PROMOTE and action.resource == DB}


@pytest.mark.parametrize("promoted", ["n1", "n2"])
def test_what_nobody_asked_on_a_detached_node_may_be_promoted_and_the_plan_goes_on(promoted: str) -> None:
    cluster = detached("1", promoted)
    configure(cluster, maintenance="true", first="n3", second="n2")
    assert promotions(cluster) == set()


@pytest.mark.parametrize("promoted", ["n1", "n2"])
def test_it_takes_one_place_of_those_that_may_be_promoted(promoted: str) -> None:
    cluster = detached("2", promoted)
    configure(cluster, maintenance="true", promoted_max="2", first="n3", second="n2")
    assert promotions(cluster) == {"n3"}


def test_a_detached_node_on_which_it_is_known_to_be_unpromoted_takes_none() -> None:
    cluster = detached("1", "n2")
    status = cluster.cib.status.nodes[N1]
    cluster.cib = with_node(cluster.cib, replace(status, unverified=frozenset()))
    configure(cluster, maintenance="true", first="n3", second="n2")
    assert promotions(cluster) == {"n3"}
