"""Instances are notified before what they are notified of."""

from collections.abc import Callable

import pytest

from haclusterd.model.configuration import Configuration
from haclusterd.model.graph import GraphAction, TransitionGraph
from haclusterd.model.ocf import ActionName, ExitCode
from tests.scheduled_clusters import ScheduledCluster, configured

CONFIGURATION = """
primitive power stonith:fence_local
primitive db ocf:haclusterd:dummy
ms dbs db meta notify=true
location dbs-promoted dbs rule $role=Promoted 100: #uname eq {promoted}
primitive vip ocf:haclusterd:dummy op stop interval=0 on-fail=block
order vip-after Mandatory: dbs:{first} vip:start
"""


def with_blocked_follower(first: str) -> ScheduledCluster:
    """The database is promoted on n1, and what has to stop before it cannot be stopped."""
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    running = CONFIGURATION.format(promoted="n1", first=first)
    cluster.configure(configured(running))
    cluster.settle()
    cluster.configure(configured(running + "property stop-all-resources=true\n"))
    [stop] = [each for each in cluster.plan().graph.actions.values() if each.resource == "vip"]
    cluster.answer(cluster.order(stop), ExitCode.ERROR, "busy")
    return cluster


@pytest.mark.parametrize(("first", "action"), [("promote", ActionName.DEMOTE), ("start", ActionName.STOP)])
def test_all_are_notified_before_it_also_where_what_has_to_stop_before_is_blocked(
    first: str, action: ActionName
) -> None:
    """Pacemaker 2.1.5 does it then, too, but beside the notifications."""
    graph = with_blocked_follower(first).plan().graph
    notified = {each.id for each in graph.actions.values() if each.notification == f"pre-{action}"}
    ends = [each for each in graph.actions.values() if each.is_named(action) and each.resource == "db"]
    assert len(notified) == 3
    assert ends
    assert all(notified <= ancestors(graph, each) for each in ends)


GROUP = """
primitive power stonith:fence_local
primitive ip ocf:haclusterd:stateful
primitive web ocf:haclusterd:stateful meta is-managed={is_managed}
group front ip web
ms fronts front meta notify=true interleave=true clone-max={copies}
location fronts-promoted fronts rule $role=Promoted {promotes}: #uname eq n1
"""


def group(*, is_managed: str = "true", copies: int = 3, promotes: str = "-INFINITY") -> Configuration:
    """Return a cloned group of two members."""
    return configured(GROUP.format(is_managed=is_managed, copies=copies, promotes=promotes))


def with_an_unmanaged_member() -> ScheduledCluster:
    """One instance runs, and more of them are wanted since a member is unmanaged."""
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    cluster.configure(group(copies=1))
    cluster.settle()
    cluster.configure(group(is_managed="false"))
    return cluster


def with_half_a_promotion() -> ScheduledCluster:
    """One member of the group is promoted, and none should be any more."""
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    cluster.configure(group())
    cluster.settle()
    cluster.configure(group(promotes="100"))
    actions = cluster.plan().graph.actions.values()
    [promote] = [each for each in actions if (each.resource, each.name) == ("ip", "promote")]
    cluster.perform(promote)
    cluster.configure(group())
    return cluster


@pytest.mark.parametrize(
    ("cluster", "action"), [(with_an_unmanaged_member, ActionName.START), (with_half_a_promotion, ActionName.DEMOTE)]
)
def test_all_are_notified_after_it_also_where_a_member_of_the_group_does_not_do_it(
    cluster: Callable[[], ScheduledCluster], action: ActionName
) -> None:
    """The clone's own mark of it stands in the graph without that of the group, and does not wait for the others."""
    graph = cluster().plan().graph
    changes = {each.id for each in graph.actions.values() if each.is_named(action) and each.resource == "ip"}
    notified = [each for each in graph.actions.values() if each.notification == f"post-{action}"]
    assert changes
    assert notified
    assert all(changes <= ancestors(graph, each) for each in notified)


def ancestors(graph: TransitionGraph, action: GraphAction) -> set[int]:
    """Return the numbers of what is done before an action."""
    found: set[int] = set()
    waiting = [action]
    while waiting:
        fresh = set(waiting.pop().inputs) - found
        found |= fresh
        waiting += [graph.actions[number] for number in fresh]
    return found
