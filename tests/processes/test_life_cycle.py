"""Real daemons: a cluster is begun with one node, grown, mended and shrunk by `crm` alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.growing_cluster import GrowingCluster

pytestmark = pytest.mark.processes


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[GrowingCluster]:
    made = GrowingCluster(tmp_path / "cluster")
    try:
        yield made
    finally:
        made.close()


def test_a_cluster_grows_from_one_node_to_three(cluster: GrowingCluster) -> None:
    cluster.begin("n1")
    cluster.until("n1 to be the DC", lambda: cluster.status()["dc"] == "n1")
    cluster.grow("n2", "n3")
    assert cluster.voters() == {"n1", "n2", "n3"}
    assert cluster.members_by_node() == dict.fromkeys(("n1", "n2", "n3"), ("n1", "n2", "n3"))
