"""Real daemons that reach each other by IPv6 and by name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes


@pytest.fixture(params=["::1", "localhost"])
def scenario(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scenario]:
    made = Scenario(tmp_path / "cluster", host=request.param)
    try:
        yield made
    finally:
        made.close()


def test_a_cluster_forms_and_elects_again(scenario: Scenario) -> None:
    scenario.form()
    first = scenario.dc()
    scenario.cluster.power_off(first)
    others = {name for name in scenario.cluster.names if name != first}
    scenario.until("another DC", lambda: scenario.status(min(others))["dc"] in others)
    scenario.until("the loss to be seen", lambda: scenario.states()[first] == "lost")
