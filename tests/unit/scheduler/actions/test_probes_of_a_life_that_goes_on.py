"""A node whose boot is recorded as dead and joins all the same is asked what runs, whatever is asked at a start."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.edits import PutNode, PutResource, PutSets
from haclusterd.model.configuration import AttributeSet, Clone, Group, NodeEntry
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.scheduler.schedule import schedule
from tests.unit.situations import N1, N2, Cluster, life, order, primitive, record, result


def planned(cluster: Cluster) -> set[str]:
    plan = schedule(cluster.cib, WallTime(10**6))
    return {str(each.name) for each in plan.graph.actions.values() if each.resource == "db" and each.node == N2}


@pytest.mark.parametrize("is_asking", ["true", "false"])
def test_it_is_asked_before_anything_starts_there(is_asking: str) -> None:
    cluster = Cluster()
    cluster.configure(
        PutResource(primitive("power", "stonith:fence_test")),
        PutResource(primitive("db")),
        PutSets("properties", (AttributeSet("options", (("enable-startup-probes", is_asking),)),)),
    )
    cluster.issue(order("start"))
    cluster.must(record(result("start")))
    cluster.lose(N2)
    cluster.must(commands.Fenced(N2, life(N2), None, FenceOutcome.CONFIRMED, "a person"))
    cluster.must(commands.Join(N2, life(N2, token=2)))
    assert "monitor" in planned(cluster)


@pytest.mark.parametrize("child", ["db", "group"])
@pytest.mark.parametrize("last", [ActionName.START, ActionName.STOP])
def test_what_is_in_doubt_of_a_clone_is_asked_for_where_nothing_is_asked_at_a_start(
    last: ActionName, child: str
) -> None:
    """The doubt is noted of the instance that has the history, while no instance has a place there."""
    cluster = Cluster()
    cluster.configure(
        PutResource(primitive("power", "stonith:fence_test")),
        PutResource(primitive("db")),
        *([PutResource(Group(ResourceId("group"), (ResourceId("db"),)))] if child == "group" else []),
        PutResource(Clone(ResourceId("dbs"), child=ResourceId(child))),
        PutNode(NodeEntry(N2, (AttributeSet("n2-attributes", (("standby", "true"),)),))),
        PutSets("properties", (AttributeSet("options", (("enable-startup-probes", "false"),)),)),
    )
    for key, node, action in (("a", N1, ActionName.START), ("b", N2, ActionName.START), ("c", N2, last)):
        cluster.issue(order(key, action, node=node))
        cluster.must(record(result(key, str(action)), node))
    cluster.must(commands.Join(N2, life(N2, token=2)))
    assert "db" in cluster.cib.status.nodes[N2].unverified
    assert "monitor" in planned(cluster)
