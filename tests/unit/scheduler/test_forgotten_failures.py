"""Failures that have expired are forgotten under the names under which they are recorded."""

import pytest

from haclusterd.cib import commands
from haclusterd.model.history import FailCount, ResourceHistory
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.records import replace
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.pacemaker_plans import NOW, member
from tests.scheduled_clusters import BEGIN, ScheduledCluster, configured
from tests.unit.recorded_operations import DB, history, record
from tests.unpacked_cibs import primitive
from tests.written_cibs import cib, pair, read

N1 = NodeName("n1")
WAS_UNIQUE = ResourceId("db:0")
FAILED = FailCount(ActionName.MONITOR, 10_000, 1, WallTime(BEGIN - 3_600_000))
ABSENT = replace(record(5, "monitor", ExitCode.NOT_RUNNING), changed_at=WallTime(BEGIN - 1_800_000))


def cluster_with(*histories: ResourceHistory) -> ScheduledCluster:
    """Return a cluster of n1 with an anonymous clone of db, whose failures expire after a minute."""
    cluster = ScheduledCluster.of(["n1"])
    cluster.configure(configured(
        "property fencing-enabled=false\nprimitive db ocf:haclusterd:stateful meta failure-timeout=60s"
        " op monitor interval=10s\nclone dbs db"
    ))  # fmt: skip
    status = replace(cluster.cib.status.nodes[N1], histories={each.resource: each for each in histories})
    nodes = {**cluster.cib.status.nodes, N1: status}
    cluster.cib = replace(cluster.cib, status=replace(cluster.cib.status, nodes=nodes))
    return cluster


def test_what_failed_while_its_clone_was_unique_is_forgotten_under_its_name_of_then() -> None:
    """A clean-up of the name of now would change nothing, and no plan would ever be executed."""
    counts = {"monitor_10000": FAILED}
    before = replace(history(record(1, "start", ExitCode.OK)), resource=WAS_UNIQUE, fail_counts=counts)
    cluster = cluster_with(history(ABSENT), before)
    assert cluster.plan().expired_failures == ((N1, WAS_UNIQUE),)
    cluster.do(commands.CleanUp(WAS_UNIQUE, N1))
    assert not cluster.cib.status.nodes[N1].histories[WAS_UNIQUE].has_failures
    assert cluster.plan().expired_failures == ()


def test_what_failed_by_a_clock_that_is_behind_is_recovered_before_it_expires() -> None:
    """The node's clock stands an hour behind the DC's, so each of its failures is an hour old when it is recorded."""
    start = record(1, "start", ExitCode.OK)
    failure = replace(record(2, "monitor", ExitCode.ERROR, interval_ms=10_000), changed_at=FAILED.failed_at)
    failed = replace(history(start, failure), fail_counts={"monitor_10000": FAILED}, last_failure=failure)
    plan = cluster_with(failed).plan()
    assert plan.expired_failures == ()
    assert [each.name for each in plan.graph.actions.values() if each.resource == DB] == ["stop", "start", "monitor"]
    stopped = replace(record(3, "stop", ExitCode.OK), changed_at=FAILED.failed_at)
    answered = replace(history(start, failure, stopped), fail_counts=failed.fail_counts, last_failure=failure)
    assert cluster_with(answered).plan().expired_failures == ((N1, DB),)


def test_a_failure_that_only_the_newest_failure_remembers_is_forgotten_too() -> None:
    failure = replace(record(1, "monitor", ExitCode.ERROR, interval_ms=10_000), changed_at=FAILED.failed_at)
    cluster = cluster_with(replace(history(ABSENT), last_failure=failure))
    cluster.do(commands.CleanUp(DB, N1))
    assert cluster.cib.status.nodes[N1].histories[DB].last_failure is None


@pytest.mark.parametrize(
    ("inside", "is_of_pacemaker", "starts"),
    [("{}", True, 1), ("{}", False, 0), ('<clone id="c">{}</clone>', True, 0), ('<clone id="c">{}</clone>', False, 0)],
)
def test_what_failed_as_an_instance_counts_without_a_clone_where_pacemaker_does_not_plan(
    inside: str, *, is_of_pacemaker: bool, starts: int
) -> None:
    text = cib(
        nodes='<node id="1" uname="n1"/>',
        properties=pair("stonith-enabled", "false"),
        resources=inside.format(primitive("db")),
        status=member(1, **{"fail-count-db:0#start_0": "INFINITY"}),
    )
    options = ScheduleOptions(is_pacemaker_compatible=is_of_pacemaker, has_quorum=True)
    actions = schedule(read(text).cib, NOW, options=options).graph.actions.values()
    assert len([each for each in actions if each.name == "start" and each.node]) == starts
