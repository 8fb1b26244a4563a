"""Real daemons: a configuration larger than one log entry is loaded as one change, equal on all nodes."""

import re
from typing import Any

import pytest

from haclusterd.ports.store import MAX_ENTRY_BYTES
from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes

COUNT = 100
VALUE = "".join(f"{number:04x}" for number in range(320))
"""So long that all of them are about twice what one entry of the log holds."""


def test_a_change_larger_than_one_entry_is_made_as_one(running: Scenario) -> None:
    lines = (
        f"primitive r{n} ocf:haclusterd:dummy params state=/tmp/r{n} fake={VALUE} "
        "meta target-role=Stopped op monitor interval=10s"
        for n in range(COUNT)
    )
    text = "\n".join(lines)
    assert len(text) > 2 * MAX_ENTRY_BYTES
    before = running.status()["configuration"]["version"]
    response = running.cluster.call("n1", "configure.load", wait_ms=0, mode="update", text=text, source="b")
    assert response.exit == 0, response.reports

    def newer(name: str) -> list[Any]:
        """Return what a node's history has of the versions since then."""
        data: Any = running.cluster.call(name, "history.config").data
        return [each for each in data["versions"] if each["number"] > before]

    names = running.cluster.names
    running.until("all nodes to have it", lambda: all(newer(name) for name in names))
    assert newer("n1") == newer("n2") == newer("n3")
    assert len(newer("n1")) == 1
    shown = running.cluster.call("n2", "configure.show").data
    assert isinstance(shown, dict)
    assert str(shown["text"]).count("primitive r") == COUNT
    running.until("all of it probed and nothing left to do", lambda: is_probed(running))
    assert {hold["loop"] for hold in running.status("n1")["holds"]} == {"main", "raft", "heartbeats"}


def is_probed(scenario: Scenario) -> bool:
    """Tell whether every resource was probed on every node, and nothing is left to do."""
    found = re.findall(r'resource=(r\d+) text="\1 is not running on (n\d)"', scenario.log("n1"))
    return len(set(found)) == 3 * COUNT and scenario.is_idle()


def test_a_change_that_no_log_entry_can_hold_is_taken_whole_by_every_node(running: Scenario) -> None:
    version = running.status()["configuration"]["version"]
    lines = [f"primitive r{number} ocf:haclusterd:dummy meta target-role=Stopped" for number in range(600)]
    response = running.answer("configure.script", text="\n".join(lines), source="big")
    assert [item.code for item in response.reports if item.severity == "error"] == []
    running.until(
        "every node to have it",
        lambda: all(running.status(node)["configuration"]["version"] == version + 1 for node in running.cluster.names),
    )
    assert running.online() == {"n1", "n2", "n3"}
