"""A node that acts alone, and a reload that did not come to its end: what one way misses may run by the other."""

from collections.abc import Mapping

import pytest

from haclusterd.cib.edits import PutResource, PutSets
from haclusterd.machines.executing.acting_alone import described
from haclusterd.model.configuration import AttributeSet, Clone, Group
from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.records import replace
from tests.unit.machines.executing import Node, start
from tests.unit.situations import DB, WEB, order, primitive

OLD, NEW = {"pidfile": "old"}, {"pidfile": "new"}
PROMOTABLE = Clone(ResourceId("dbs"), DB, meta=(AttributeSet("dbs-meta", (("promotable", "true"),)),))
DEMOTES = PutSets("properties", (AttributeSet("cib-bootstrap-options", (("no-quorum-policy", "demote"),)),))


@pytest.fixture
def node() -> Node:
    """n2, joined, with its lease."""
    made = Node()
    made.see()
    return made


def by(made: Order, parameters: Mapping[str, str]) -> Order:
    return replace(made, parameters=parameters, definition=parameters["pidfile"])


def is_being_reloaded(node: Node, resource: ResourceId = DB) -> None:
    """Let a resource run by the older parameters, and begin to take the newer ones over."""
    node.cluster.issue(by(order("starts", resource=resource), OLD))
    node.see()
    node.finish("starts")
    node.cluster.issue(by(order("reloads", ActionName.RELOAD_AGENT, resource=resource), NEW))
    node.see()


def reload_in_doubt(node: Node, resource: ResourceId = DB) -> None:
    is_being_reloaded(node, resource)
    node.finish("reloads", ExitCode.ERROR)


def calls_since(node: Node, count: int) -> list[tuple[str, str, str]]:
    return [(str(call.resource), call.action, call.parameters.get("pidfile", "")) for call in node.calls[count:]]


def test_it_is_stopped_in_each_way(node: Node) -> None:
    reload_in_doubt(node)
    node.lose_lease()
    node.finish(node.calls[-1].key)
    assert not node.is_empty()
    node.finish(node.calls[-1].key)
    assert calls_since(node, 2) == [("db", "stop", "old"), ("db", "stop", "new")]
    assert node.is_empty()


def test_what_is_being_reloaded_is_stopped_by_the_newer_parameters_and_by_the_older(node: Node) -> None:
    is_being_reloaded(node)
    node.lose_lease()
    assert node.killed == ["reloads"]
    node.finish("reloads", ExitCode.ERROR, ExecutionStatus.CANCELLED)
    node.finish(node.calls[-1].key)
    assert not node.is_empty()
    node.finish(node.calls[-1].key)
    assert calls_since(node, 2) == [("db", "stop", "new"), ("db", "stop", "old")]
    assert node.is_empty()


def test_a_monitor_that_does_not_find_it_in_one_way_does_not_say_that_it_has_died(node: Node) -> None:
    """What has to stop after it is unmanaged with it, as long as that may run."""
    unmanaged = replace(primitive("db"), meta=(AttributeSet("db-meta", (("is-managed", "false"),)),))
    node.cluster.configure(
        PutResource(unmanaged),
        PutResource(primitive("web")),
        PutResource(Group(ResourceId("g"), (WEB, DB))),
    )
    start(node, WEB)
    reload_in_doubt(node)
    begun = len(node.calls)
    node.lose_lease()
    assert calls_since(node, begun) == [("db", "monitor", "old")]
    node.finish(node.calls[-1].key, ExitCode.NOT_RUNNING)
    assert calls_since(node, begun + 1) == [], "web must stop after db, which may run by the newer parameters"
    assert not node.is_empty()


def test_it_is_not_kept_unpromoted_since_a_demotion_may_have_missed_it(node: Node) -> None:
    node.cluster.configure(PutResource(primitive("db")), PutResource(PROMOTABLE), DEMOTES)
    reload_in_doubt(node, ResourceId("db"))
    node.lose_lease()
    for _ in range(3):
        node.finish(node.calls[-1].key)
    assert calls_since(node, 2) == [("db", "demote", "old"), ("db", "stop", "old"), ("db", "stop", "new")]
    assert node.is_empty()


def test_what_is_kept_is_not_described_as_stopped() -> None:
    text = described(frozenset({WEB}), kept=frozenset({DB}))
    assert text == "stopping web; keeping unpromoted db (no-quorum-policy=demote)"
