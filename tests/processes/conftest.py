from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.daemons import Scenario


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[Scenario]:
    """Three nodes, set up and not yet started; every process of theirs is ended afterwards."""
    made = Scenario(tmp_path / "cluster")
    try:
        yield made
    finally:
        made.close()
