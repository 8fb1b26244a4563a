"""What is left for the next plan, because something in flight has to end first."""

from haclusterd.model.graph import GraphAction
from haclusterd.model.ocf import ActionName
from tests.scheduled_clusters import ScheduledCluster, configured

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
