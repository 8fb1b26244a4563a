"""A probe that could not look says nothing: what ran, or may have arrived, is stopped before it starts again."""

from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from tests.scheduled_clusters import ScheduledCluster, configured

N1, N2, N3 = (NodeName(name) for name in ("n1", "n2", "n3"))
DB = ResourceId("db")
CONFIGURATION = """
primitive power stonith:fence_local
primitive db ocf:haclusterd:dummy meta allow-migrate=true
location power-on-n3 power 100: n3
location db-on-{node} db 100: {node}
"""


def running_on_n1() -> ScheduledCluster:
    cluster = ScheduledCluster.of([N1, N2, N3])
    cluster.configure(configured(CONFIGURATION.format(node=N1)))
    cluster.settle()
    assert (DB, N1) in cluster.running
    return cluster


def test_what_runs_where_its_program_has_gone_is_stopped_there_and_started_on_another_node() -> None:
    cluster = running_on_n1()
    cluster.not_installed.add((DB, N1))
    cluster.join(N1, same_boot=True)
    done = cluster.settle()
    assert done.index("stop db on n1") < next(done.index(each) for each in done if each.startswith("start db on"))
    assert [node for name, node in cluster.running if name == DB] != [N1]


def test_what_may_have_arrived_where_its_program_is_missing_is_stopped_there() -> None:
    cluster = running_on_n1()
    cluster.configure(configured(CONFIGURATION.format(node=N2)))
    [move] = [each for each in cluster.plan().graph.actions.values() if each.is_named(ActionName.MIGRATE_TO)]
    cluster.not_installed.add((DB, N2))
    cluster.answer(cluster.order(move), ExitCode.OK)
    cluster.join(N2, same_boot=True)
    assert "stop db on n2" in cluster.settle()
    assert len([node for name, node in cluster.running if name == DB]) == 1
