"""Why instances have failed: each reason once, with the nodes concerned."""

import pytest

from haclusterd.cli.render.status import render
from haclusterd.cli.render.terminal import Screen
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.verbs.answers.answer import read
from haclusterd.verbs.answers.status import Status
from tests.administered_clusters import NOW, SITUATIONS, Cluster


def shown(cluster: Cluster) -> str:
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    return "\n".join(render(Screen(), read(Status, registry.run("status", {}, context).data)))


def clone_that_cannot_stop(*failures: tuple[str, ExecutionStatus]) -> Cluster:
    cluster = SITUATIONS["clones"]()
    for node, status in failures:
        cluster.record("cache", node, "stop", ExitCode.ERROR, status=status)
    return cluster


@pytest.mark.parametrize(
    ("failures", "headlines", "reasons"),
    [
        ((("n1", ExecutionStatus.TIMEOUT), ("n2", ExecutionStatus.TIMEOUT)),
         ["DEGRADED: cache has failed on n1, n2: stop: timed out"],
         ["        and BLOCKED on n1, n2", "        n1, n2: stop: timed out"]),
        ((("n1", ExecutionStatus.TIMEOUT), ("n2", ExecutionStatus.DONE)),
         ["DEGRADED: cache has failed on n1: stop: timed out", "DEGRADED: cache has failed on n2: stop: error"],
         ["        and BLOCKED on n1, n2", "        n1: stop: timed out", "        n2: stop: error"]),
        ((("n2", ExecutionStatus.TIMEOUT),),
         ["DEGRADED: cache has failed on n2: stop: timed out"],
         ["        and BLOCKED on n2", "        n2: stop: timed out"]),
    ],
    ids=["equal", "different", "one"],
)  # fmt: skip
def test_equal_reasons_are_one_line_that_names_the_nodes(
    failures: tuple[tuple[str, ExecutionStatus], ...], headlines: list[str], reasons: list[str]
) -> None:
    lines = shown(clone_that_cannot_stop(*failures)).splitlines()
    assert [line for line in lines if line.startswith("DEGRADED: cache")] == headlines
    at = lines.index(reasons[0])
    assert lines[at : at + len(reasons)] == reasons
    assert not lines[at + len(reasons)].startswith(" " * 8)
