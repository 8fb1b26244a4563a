"""A primitive whose clone becomes unique, or is so no more: the copies of before have other names (safety.md §1)."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.changes import RefusalCode
from haclusterd.model.graph import ActionKind, GraphAction, TransitionGraph
from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import ActionName
from tests.scheduled_clusters import ScheduledCluster, configured

PRIMITIVE = "primitive db ocf:haclusterd:dummy\n"
ALONE = PRIMITIVE + "location db-first db inf: n1\n"
UNIQUE = PRIMITIVE + "clone dbs db meta globally-unique=true clone-max=1\nlocation dbs-first dbs 100: n2\n"
ANONYMOUS = PRIMITIVE + "clone dbs db meta clone-max=1\nlocation dbs-first dbs 100: n3\n"
POWER = "primitive power stonith:fence_local\n"
CHANGES = [(ALONE, UNIQUE), (UNIQUE, ALONE), (UNIQUE, ANONYMOUS), (ANONYMOUS, UNIQUE)]


def running(before: str) -> ScheduledCluster:
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    cluster.configure(configured(POWER + before))
    cluster.settle()
    assert len(copies(cluster)) == 1
    return cluster


def copies(cluster: ScheduledCluster) -> list[NodeName]:
    return [node for name, node in cluster.running if name.partition(":")[0] == "db"]


def begins(graph: TransitionGraph) -> GraphAction:
    (start,) = starts(graph)
    return start


def starts(graph: TransitionGraph) -> list[GraphAction]:
    return [
        action
        for action in graph.actions.values()
        if action.name == ActionName.START and action.kind is ActionKind.RESOURCE and action.resource != "power"
    ]


def comes_after(graph: TransitionGraph, action: GraphAction) -> set[str]:
    """Return the names of all that an action waits for."""
    seen: set[int] = set()
    waiting = list(action.inputs)
    while waiting:
        number = waiting.pop()
        if number not in seen:
            seen.add(number)
            waiting.extend(graph.actions[number].inputs)
    return {f"{graph.actions[number].name} {graph.actions[number].resource}" for number in seen}


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_the_copy_under_its_new_name_waits_for_the_stop_under_the_old_one(before: str, after: str) -> None:
    cluster = running(before)
    ((old, _),) = cluster.running - {each for each in cluster.running if each[0] == "power"}
    cluster.configure(configured(POWER + after))
    graph = cluster.plan().graph
    probed = {action.node for action in graph.actions.values() if action.is_probe and action.resource != old}
    assert probed == {"n1", "n2", "n3"}
    assert f"stop {old}" in comes_after(graph, begins(graph))
    cluster.settle()
    assert len(copies(cluster)) == 1


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_apply_refuses_it_while_the_old_one_may_be_active_on_any_node(before: str, after: str) -> None:
    cluster = running(before)
    cluster.configure(configured(POWER + after))
    start = begins(cluster.plan().graph)
    with pytest.raises(AssertionError, match=RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS.name):
        cluster.order(start)


def test_nothing_begins_under_the_new_name_while_the_old_one_is_left_alone() -> None:
    cluster = running(ALONE)
    cluster.configure(configured(POWER + UNIQUE + "property stop-removed-resources=false\n"))
    assert not starts(cluster.plan().graph)
    cluster.settle()
    assert len(copies(cluster)) == 1


def test_it_waits_for_the_fencing_of_a_lost_node_that_may_run_the_old_one() -> None:
    cluster = running(ALONE)
    cluster.lose("n1")
    cluster.configure(configured(POWER + UNIQUE))
    graph = cluster.plan().graph
    assert any(each.startswith("off") or "reboot" in each for each in comes_after(graph, begins(graph))), graph
    cluster.do(commands.CleanUp(None, None, reprobe=True))
    cluster.settle()
    assert len(copies(cluster)) == 1


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_what_is_in_doubt_under_the_old_name_is_asked_first(before: str, after: str) -> None:
    cluster = running(before)
    ((old, node),) = cluster.running - {each for each in cluster.running if each[0] == "power"}
    cluster.join(node, same_boot=True)
    cluster.configure(configured(POWER + after))
    graph = cluster.plan().graph
    assert {action.node for action in graph.actions.values() if action.is_probe and action.resource == old} == {node}
    for start in starts(graph):
        assert f"stop {old}" in comes_after(graph, start)
    cluster.settle()
    assert len(copies(cluster)) == 1


def test_what_another_resource_runs_on_a_lost_node_waits_for_its_fencing_also_where_that_one_is_changed() -> None:
    """The configuration is changed when the node is silent already: nobody has compared what runs there with it."""
    taken, given = "params state=/run/one", "params state=/run/two"
    text = "primitive a ocf:haclusterd:dummy {}\nlocation a-first a inf: n1\n"
    cluster = ScheduledCluster.of(["n1", "n2", "n3"])
    cluster.configure(configured(POWER + text.format(taken)))
    cluster.settle()
    cluster.lose("n1")
    cluster.configure(configured(POWER + text.format(given) + f"primitive b ocf:haclusterd:dummy {taken}\n"))
    graph = cluster.plan().graph
    (start,) = [each for each in starts(graph) if each.resource == "b"]
    assert {"stop a", "reboot None"} <= comes_after(graph, start)


@pytest.mark.parametrize(
    "after",
    [
        "primitive inner ocf:haclusterd:dummy\nclone db inner\n",
        "primitive inner ocf:haclusterd:dummy\nclone db inner meta globally-unique=true\n",
        "primitive inner ocf:haclusterd:dummy\ngroup db inner\n",
        "primitive inner ocf:haclusterd:dummy\ngroup db inner\nclone dbs db\n",
    ],
    ids=["clone", "unique clone", "group", "cloned group"],
)
@pytest.mark.parametrize("before", [ALONE, UNIQUE, ANONYMOUS], ids=["alone", "unique", "anonymous"])
def test_what_has_the_name_of_a_primitive_of_before_is_planned_and_that_stops(before: str, after: str) -> None:
    """Seed 1014: nodes on which `db` had been probed, where it is a clone now; no plan came about at all."""
    cluster = running(before)
    cluster.configure(configured(POWER + after))
    cluster.settle()
    assert not copies(cluster)
    assert {name.partition(":")[0] for name, _ in cluster.running} == {"power", "inner"}
