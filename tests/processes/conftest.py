from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.daemons import Scenario, SharedCluster


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[Scenario]:
    """Three nodes, set up and not yet started; every process of theirs is ended afterwards."""
    made = Scenario(tmp_path / "cluster")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedCluster]:
    made = SharedCluster(tmp_path_factory.mktemp("shared"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def running(shared_cluster: SharedCluster) -> Scenario:
    """Three nodes, online and well, that run the service: one cluster for the tests of a module, restored between.

    For what does not need a cluster that is young. A test may end daemons, machines and the service, and change the
    configuration; files of a node are to be put back.
    """
    return shared_cluster.get()
