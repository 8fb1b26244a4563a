"""`crm` with real daemons: clones, tickets, and the configuration in an editor."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.processes.daemons import Scenario

pytestmark = [pytest.mark.processes, pytest.mark.slow]

CLONES = (
    "primitive db ocf:haclusterd:stateful params scores='n1:10 n2:20 n3:5' "
    "op monitor interval=5s role=Promoted timeout=10s op monitor interval=6s role=Unpromoted timeout=10s",
    "clone db-clone db meta promotable=true",
    "primitive ip ocf:haclusterd:dummy params state={directory}/ip op monitor interval=5s timeout=10s",
    "colocation ip-with-primary inf: ip db-clone:Promoted",
    "rsc_ticket ip-needs-paris paris: ip loss-policy=stop",
)


def crm(scenario: Scenario, *words: str, editor: str = "") -> "subprocess.CompletedProcess[str]":
    node = scenario.cluster.nodes["n1"]
    return subprocess.run(
        [sys.executable, "-m", "haclusterd.entry_points.crm", *words],
        capture_output=True, text=True, timeout=100, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "HACLUSTERD_SOCKET": str(node.socket), "VISUAL": editor},
    )  # fmt: skip


def asked(scenario: Scenario, *words: str) -> Any:
    result = crm(scenario, "-o", "json", *words)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def nodes(scenario: Scenario, resource: str, role: str = "Started") -> list[str]:
    rows = asked(scenario, "resource", "status", resource)["resources"]
    return [each["node"] for row in rows for each in row["instances"] if each["role"] == role]


def test_a_promoted_role_moves_and_a_ticket_is_obeyed(running: Scenario, tmp_path: Path) -> None:
    running.configure(*(line.format(directory=tmp_path) for line in CLONES))
    running.until("n2, which wants it most, to be promoted", lambda: nodes(running, "db", "Promoted") == ["n2"])
    assert nodes(running, "ip") == []

    granted = crm(running, "ticket", "grant", "paris")
    assert (granted.returncode, "runs twice" in granted.stderr) == (107, True)
    assert crm(running, "ticket", "grant", "paris", "--force", "--wait").returncode == 0
    running.until("the address beside the primary", lambda: nodes(running, "ip") == ["n2"])

    moved = crm(running, "resource", "move", "db-clone", "n3", "--constraint")
    assert moved.returncode == 0, moved.stderr
    assert nodes(running, "db", "Promoted") == ["n3"]
    running.until("the address to follow", lambda: nodes(running, "ip") == ["n3"])
    assert "promoted" in crm(running, "status").stdout.lower()

    assert crm(running, "ticket", "revoke", "paris", "--force", "--wait").returncode == 0
    assert nodes(running, "ip") == []
    texts = [event["text"] for event in asked(running, "history", "events")["events"]]
    assert any("ticket paris: revoke by" in text for text in texts)


def test_the_configuration_is_changed_in_an_editor(running: Scenario, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/cluster-name=before/cluster-name=after/' \"$1\"\n")
    editor.chmod(0o755)
    assert crm(running, "configure", "property", "cluster-name=before").returncode == 0

    edited = crm(running, "configure", "edit", editor=str(editor))
    assert edited.returncode == 0, edited.stderr
    assert asked(running, "configure", "get_property", "cluster-name")["properties"][0]["value"] == "after"

    again = crm(running, "configure", "edit", editor=str(editor))
    assert (again.returncode, again.stderr) == (0, "nothing was changed\n")

    editor.write_text("#!/bin/sh\necho 'primitive' >> \"$1\"\n")
    refused = crm(running, "configure", "edit", editor=str(editor))
    assert (refused.returncode, "expected" in refused.stderr) == (65, True)

    file = tmp_path / "all.crm"
    assert crm(running, "configure", "save", str(file)).returncode == 0
    assert crm(running, "configure", "load", "replace", str(file)).returncode == 0
