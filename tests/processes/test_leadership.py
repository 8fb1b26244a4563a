"""Real daemons: leadership goes where a person wants it, timers follow node-timeout, a consistent read is not stale."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from haclusterd.model.ids import NodeName
from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes


def crm(scenario: Scenario, node: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "haclusterd.entry_points.crm", *words],
        capture_output=True, text=True, timeout=100, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "HACLUSTERD_SOCKET": str(scenario.cluster.nodes[NodeName(node)].socket)},
    )  # fmt: skip


def leader(scenario: Scenario, node: str) -> Any:
    return json.loads(crm(scenario, node, "-o", "json", "cluster", "members").stdout)["leader"]


def test_leadership_goes_where_it_is_wanted(running: Scenario) -> None:
    for wanted in ("n1", "n2", "n3", "n2"):
        asker = "n1" if wanted != "n1" else "n3"
        moved = crm(running, asker, "cluster", "transfer-leader", wanted)
        assert moved.returncode == 0, moved.stderr
        assert leader(running, asker) == wanted
    lost = crm(running, "n1", "cluster", "transfer-leader", "n9")
    assert lost.returncode == 68, lost.stderr


def test_raft_follows_a_changed_node_timeout(running: Scenario) -> None:
    first = running.dc()
    terms = set()
    # The timers follow up to 2 s only. Much less than that, and a pause of this machine would be an election.
    for timeout_ms in (1_900, 5_000, 1_800):
        assert crm(running, "n1", "configure", "property", f"node-timeout={timeout_ms}ms").returncode == 0
        line = f"daemon.retimed node_timeout_ms={timeout_ms}"
        running.until("the daemons to follow", lambda line=line: is_in_all_logs(running, line))
        terms.add(running.status()["term"])
    assert running.dc() == first
    assert len(terms) == 1


def is_in_all_logs(scenario: Scenario, line: str) -> bool:
    return all(line in scenario.log(name) for name in scenario.cluster.names)


def test_a_consistent_read_sees_what_another_node_acknowledged_or_refuses(running: Scenario) -> None:
    before = running.status()["configuration"]["version"]
    names = list(running.cluster.names)
    for number in range(1, 16):
        writer, reader = names[number % 3], names[(number + 1) % 3]
        assert crm(running, writer, "configure", "property", f"batch-limit={number}").returncode == 0
        shown = crm(running, reader, "-o", "json", "configure", "show", "--consistent")
        assert shown.returncode == 0, shown.stderr
        answer = json.loads(shown.stdout)
        assert answer["version"] == before + number
        assert [each["code"] for each in answer["reports"]] == ["READ_CONFIRMED"]
    running.cluster.power_off("n2")
    running.cluster.power_off("n3")
    assert crm(running, "n1", "configure", "show").returncode == 0
    refused = crm(running, "n1", "configure", "show", "--consistent")
    assert (refused.returncode, refused.stdout) == (106, ""), refused.stderr
