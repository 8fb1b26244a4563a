"""More instances are found promoted than may be: which of them stay so."""

from haclusterd.cib.commands import SetTransientAttribute
from haclusterd.model.graph import GraphAction
from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import ActionName, ExitCode
from tests.scheduled_clusters import ScheduledCluster, configured

ROLES = {ActionName.DEMOTE, ActionName.PROMOTE}


def clustered(promoted_max: int = 1, third: int = 990) -> ScheduledCluster:
    """n1, whose promotion score is the highest, is promoted."""
    scores = {"n1": 1001, "n2": 1000, "n3": third}
    cluster = ScheduledCluster.of(scores)
    text = "".join(f"node {node} attributes master-db={score}\n" for node, score in scores.items())
    text += "primitive power stonith:fence_dummy\nprimitive db ocf:heartbeat:Stateful\n"
    text += f"clone dbs db meta promotable=true promoted-max={promoted_max}\n"
    cluster.configure(configured(text))
    cluster.settle()
    return cluster


def replaced_primary(promoted_max: int = 1, third: int = 990) -> ScheduledCluster:
    """n1 was fenced, and another instance is promoted by now; n1 joins."""
    cluster = clustered(promoted_max, third)
    cluster.fence("n1")
    cluster.settle()
    cluster.join("n1")
    return cluster


def found(cluster: ScheduledCluster, code: ExitCode) -> list[tuple[str, str | None]]:
    """Let the probe of the instance on n1 answer; return which roles are changed then, and where."""
    while True:
        action = next(iter(_orders(cluster)))
        if action.is_probe and action.resource is not None and action.resource.startswith("db"):
            break
        cluster.perform(action)
    cluster.answer(cluster.order(action), code)
    return sorted((each.name, each.node) for each in _orders(cluster) if each.name in ROLES)


def _orders(cluster: ScheduledCluster) -> list[GraphAction]:
    return [each for each in cluster.plan().graph.actions.values() if each.agent is not None]


def test_a_primary_that_failed_does_not_take_the_place_of_its_successor() -> None:
    """Its score is the one of before; the successor takes writes already (PAF, whose machine was back early)."""
    assert found(replaced_primary(), ExitCode.FAILED_PROMOTED) == [("demote", "n1")]


def test_it_is_recovered_where_too_few_others_are_promoted() -> None:
    assert found(replaced_primary(promoted_max=3), ExitCode.FAILED_PROMOTED) == [("demote", "n1"), ("promote", "n1")]


def test_two_that_failed_do_not_take_the_place_of_one_that_has_not() -> None:
    """With promoted-max=2 one of them may be promoted, once both have been demoted (seed 670032)."""
    cluster = clustered(promoted_max=2)
    for name in ("n1", "n2"):
        cluster.fence(name)
        cluster.settle()
    for name in ("n1", "n2"):
        cluster.join(name)
    found(cluster, ExitCode.FAILED_PROMOTED)
    assert found(cluster, ExitCode.FAILED_PROMOTED) == [("demote", "n1"), ("demote", "n2")]


def test_of_two_that_have_not_failed_the_score_decides() -> None:
    assert found(replaced_primary(), ExitCode.PROMOTED) == [("demote", "n2")]


def test_what_nobody_may_demote_counts_as_promoted() -> None:
    cluster = replaced_primary()
    cluster.do(SetTransientAttribute(NodeName("n1"), "maintenance", "true", "root", ""))
    assert found(cluster, ExitCode.FAILED_PROMOTED) == [("demote", "n2")]


def test_it_is_not_promoted_in_the_plan_that_fences_its_successor() -> None:
    """PAF starts its data as a primary when it is notified of that, before the plan comes to anything else."""
    cluster = replaced_primary(third=-1)
    cluster.lose("n2")
    assert found(cluster, ExitCode.FAILED_PROMOTED) == [("demote", "n1")]
    assert "promote db on n1" in " ".join(cluster.settle())


def test_so_it_is_where_nobody_knows_whether_that_was_promoted() -> None:
    cluster = clustered(third=-1)
    cluster.fence("n1")
    while True:
        action = next(iter(_orders(cluster)))
        order = cluster.order(action)
        if action.name == "promote":
            break
        cluster.answer(order, ExitCode.OK)
    cluster.join("n1")
    cluster.lose("n2")
    assert found(cluster, ExitCode.FAILED_PROMOTED) == [("demote", "n1")]


def test_it_is_not_promoted_in_the_plan_that_demotes_its_successor() -> None:
    cluster = replaced_primary(third=-1)
    cluster.do(SetTransientAttribute(NodeName("n2"), "standby", "on", "root", ""))
    assert found(cluster, ExitCode.FAILED_PROMOTED) == [("demote", "n1"), ("demote", "n2")]
    assert "promote db on n1" in " ".join(cluster.settle())
