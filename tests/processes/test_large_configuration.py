"""Real daemons: a configuration larger than one log entry is loaded as one change, equal on all nodes."""

import pytest

from haclusterd.ports.store import MAX_ENTRY_BYTES
from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes

COUNT = 100
VALUE = "".join(f"{number:04x}" for number in range(320))
"""So long that all of them are about twice what one entry of the log holds."""


def test_a_change_larger_than_one_entry_is_made_as_one(scenario: Scenario) -> None:
    scenario.form()
    lines = (
        f"primitive r{n} ocf:haclusterd:dummy params state=/tmp/r{n} fake={VALUE} "
        "meta target-role=Stopped op monitor interval=10s"
        for n in range(COUNT)
    )
    text = "\n".join(lines)
    assert len(text) > 2 * MAX_ENTRY_BYTES
    response = scenario.cluster.call("n1", "configure.load", wait_ms=0, mode="update", text=text, source="b")
    assert response.exit == 0, response.reports

    def version(name: str) -> object:
        data = scenario.cluster.call(name, "history.config").data
        assert isinstance(data, dict)
        return data["versions"]

    scenario.until("all nodes to have it", lambda: all(version(name) for name in scenario.cluster.names))
    versions = [version(name) for name in scenario.cluster.names]
    assert versions[0] == versions[1] == versions[2]
    assert len(versions[0]) == 1  # type: ignore[arg-type]
    shown = scenario.cluster.call("n2", "configure.show").data
    assert isinstance(shown, dict)
    assert str(shown["text"]).count("primitive r") == COUNT
    scenario.until("all of it probed and nothing left to do", lambda: is_probed(scenario))
    assert {hold["loop"] for hold in scenario.status("n1")["holds"]} == {"main", "raft", "heartbeats"}


def is_probed(scenario: Scenario) -> bool:
    """Tell whether every resource was probed on every node, and nothing is left to do."""
    if not scenario.is_idle():
        return False
    lines = "".join(scenario.log(name) for name in scenario.cluster.names).splitlines()
    return sum("event.agent-finished" in line for line in lines) >= 3 * COUNT
