from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import sharing
from tests.processes.daemons import Scenario, SharedCluster


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[Scenario]:
    """Three nodes, set up and not yet started; every process of theirs is ended afterwards."""
    made = Scenario(tmp_path / "cluster")
    try:
        yield made
    finally:
        made.close()


SHARED = pytest.StashKey[SharedCluster]()


@pytest.fixture
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Three nodes, online and well, that run the service: one cluster for many tests, restored between them.

    For what does not need a cluster that is young. A test may end daemons, machines and the service, and change the
    configuration; files of a node are to be put back. It is closed before a file in which no test asks for it.
    """
    stash = request.config.stash
    if SHARED not in stash:
        stash[SHARED] = SharedCluster(tmp_path_factory.mktemp("shared"))
    return stash[SHARED].get()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    stash = item.config.stash
    if SHARED in stash and (nextitem is None or nextitem.path not in sharing(item.session.items)):
        stash[SHARED].close()
