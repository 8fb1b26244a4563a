"""What is left for the next plan, because something in flight has to end first."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.apply_fencing import UNFENCED_MARK
from haclusterd.model.fencing import FenceAction, FenceOrder
from haclusterd.model.graph import GraphAction
from haclusterd.model.ids import FenceKey, NodeName, ResourceId
from haclusterd.model.ocf import ActionName
from tests.scheduled_clusters import BEGIN, TERM, ScheduledCluster, action_line, configured

CONFIGURATION = """
primitive power stonith:fence_local
primitive db ocf:haclusterd:dummy
ms dbs db meta notify=true
location dbs-promoted dbs rule $role=Promoted 100: #uname eq {promoted}
"""


def moving() -> ScheduledCluster:
    """All run, the database promoted on n1, and n2 is to be promoted."""
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    cluster.configure(configured(CONFIGURATION.format(promoted="n1")))
    cluster.settle()
    cluster.configure(configured(CONFIGURATION.format(promoted="n2")))
    return cluster


def planned(cluster: ScheduledCluster) -> list[GraphAction]:
    return list(cluster.plan().graph.actions.values())


def order(cluster: ScheduledCluster, name: ActionName, notification: str, node: str) -> None:
    """Let one planned action be ordered, and not answered."""
    [action] = [
        each
        for each in planned(cluster)
        if each.is_named(name) and each.notification == notification and each.node == node
    ]
    cluster.order(action)


def notifications(cluster: ScheduledCluster) -> set[str]:
    return {action.notification for action in planned(cluster) if action.notification}


def test_instances_are_notified_before_a_demote_and_after_it() -> None:
    assert {"pre-demote", "post-demote", "pre-promote", "post-promote"} <= notifications(moving())


def test_nobody_is_notified_again_before_a_demote_that_is_in_flight() -> None:
    cluster = moving()
    order(cluster, ActionName.DEMOTE, "", "n1")
    assert notifications(cluster) == set()


def test_nobody_is_notified_before_what_waits_for_an_instance_that_is_being_notified() -> None:
    cluster = moving()
    order(cluster, ActionName.NOTIFY, "pre-demote", "n1")
    assert notifications(cluster) == set(), "n1 is notified, so it is not demoted by this plan"


LET_IN = """
primitive san stonith:fence_local meta provides=unfencing {more}
primitive job ocf:haclusterd:dummy
clone jobs job meta target-role={role} {gang}
"""
N3 = NodeName("n3")


def let_in(cluster: ScheduledCluster, node: NodeName) -> None:
    """Order that a node be let in at its disks, which has no answer yet."""
    life = cluster.cib.status.nodes[node].incarnation
    assert life is not None
    order = FenceOrder(
        FenceKey("u"), node, life, FenceAction.ON, ResourceId("san"), node, life, TERM, 1000, 1, BEGIN, "required"
    )
    cluster.do(commands.IssueFence(order))


@pytest.mark.parametrize(("gang", "started"), [("", ["n1", "n2"]), ("gpu-gang=all", [])])
def test_of_a_gang_nothing_starts_before_all_of_it_may(gang: str, started: list[str]) -> None:
    """Its node n3 is being let in at the disks."""
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    cluster.configure(configured(LET_IN.format(role="Stopped", gang=gang, more="")))
    for node in cluster.cib.members:
        cluster.do(commands.SetTransientAttribute(node, UNFENCED_MARK, "1"))
    cluster.settle()
    cluster.do(commands.SetTransientAttribute(N3, UNFENCED_MARK, "0"))
    cluster.configure(configured(LET_IN.format(role="Started", gang=gang, more="")))
    let_in(cluster, N3)
    assert sorted(str(each.node) for each in planned(cluster) if each.is_named(ActionName.START)) == started


@pytest.mark.parametrize(("hosts", "is_waited_for"), [("n1 n2 n3", True), ("n1 n2", False)])
def test_nothing_on_other_nodes_waits_for_a_node_that_no_device_lets_in(hosts: str, *, is_waited_for: bool) -> None:
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    more = f'params pcmk_host_list="{hosts}"'
    cluster.configure(configured(LET_IN.format(role="Started", gang="", more=more)))
    graph = cluster.plan().graph.actions
    waiting = [each.id for each in graph.values() if each.is_named(ActionName.START) and each.node == "n1"]
    before: set[int] = set()
    while waiting:
        before.add(number := waiting.pop())
        waiting += set(graph[number].inputs) - before
    assert ("fence n3 (on)" in {action_line(graph[number]) for number in before}) is is_waited_for
