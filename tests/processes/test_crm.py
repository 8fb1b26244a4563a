"""`crm` with real daemons: what it says of them, what it makes them do, and what it says when they cannot."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes


def crm(scenario: Scenario, node: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "haclusterd.entry_points.crm", *words],
        capture_output=True, text=True, timeout=100, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "HACLUSTERD_SOCKET": str(scenario.cluster.nodes[node].socket)},
    )  # fmt: skip


def asked(scenario: Scenario, node: str, *words: str) -> Any:
    """Ask for an answer as data."""
    result = crm(scenario, node, "-o", "json", *words)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def constraints(scenario: Scenario, node: str) -> list[str]:
    return [move["id"] for move in scenario.status(node)["moves"]]


def test_a_move_leaves_nothing_behind_whether_or_not_it_is_waited_for(running: Scenario) -> None:
    first = running.holder()
    second, third = (name for name in running.cluster.names if name != first)

    moved = crm(running, third, "resource", "move", "svc", second)
    assert (moved.returncode, running.holder()) == (0, second), moved.stderr
    assert "constraint cli-prefer-svc removed" in moved.stderr
    assert constraints(running, third) == []

    assert crm(running, second, "resource", "move", "svc", third, "--no-wait").returncode == 0
    running.until("the service to run there", lambda: running.holder() == third)
    running.until("the constraint to go", lambda: constraints(running, third) == [])
    assert asked(running, third, "why", "svc")["resources"][0]["now_on"] == [third]


def test_a_ban_with_a_lifetime_ends_by_itself(running: Scenario) -> None:
    first = running.holder()
    banned = crm(running, first, "resource", "ban", "svc", first, "6s", "--wait")
    assert (banned.returncode, running.holder() == first) == (0, False), banned.stderr
    [shown] = running.status(first)["moves"]
    assert (shown["id"], shown["node"], shown["until"] > 0) == (f"cli-ban-svc-on-{first}", first, True)
    running.until("the ban to go", lambda: constraints(running, first) == [])
    changed = asked(running, first, "history", "config", "--limit", "1")["versions"][-1]
    assert (changed["author"], changed["reason"]) == ("cluster", "the lifetime is over")


def test_standby_restart_and_stop_are_waited_for(running: Scenario) -> None:
    first = running.holder()
    assert first is not None

    assert crm(running, first, "node", "standby", "--wait", "--reason", "new kernel").returncode == 0
    assert running.holder() not in (None, first)
    assert crm(running, first, "node", "online", "--wait").returncode == 0

    holder = running.holder()
    assert holder is not None
    before = running.service_pids(holder)
    restarted = crm(running, first, "resource", "restart", "svc")
    assert restarted.returncode == 0, restarted.stderr
    holder = running.holder()
    assert holder is not None
    assert running.service_pids(holder) != before
    assert "target-role" not in asked(running, first, "configure", "show", "svc")["text"]

    assert crm(running, first, "resource", "stop", "svc", "--wait").returncode == 0
    assert running.holder() is None
    assert any("new kernel" in event["text"] for event in asked(running, first, "history", "events")["events"])


def tool(scenario: Scenario, node: str, name: str, *words: str) -> "tuple[int, str]":
    done = subprocess.run(
        [Path(__file__).parents[2] / "shims" / name, *words], capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": "/usr/bin:/bin", "HACLUSTERD_SOCKET": str(scenario.cluster.nodes[node].socket)},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_pacemakers_tools_are_answered_by_every_daemon(running: Scenario) -> None:
    first = running.holder()
    second, third = (name for name in running.cluster.names if name != first)
    where = f'<resource id="svc" .* role="Started" .*nodes_running_on="1">\\s*<node name="{first}" '
    assert re.search(where, tool(running, second, "crm_mon", "-1", "--output-as=xml")[1])
    assert tool(running, third, "crm_resource", "-W", "-r", "svc") == (0, f"resource svc is running on: {first}\n")
    assert tool(running, third, "crm_resource", "--wait") == (0, "")
    assert tool(running, second, "crm_resource", "--move", "-r", "svc", "-N", third) == (0, "")
    assert tool(running, first, "crm_resource", "--wait", "-T", "30") == (0, "")
    assert running.holder() == third
    gone = "Removing constraint: cli-prefer-svc\n"
    assert tool(running, first, "crm_resource", "--clear", "-r", "svc") == (0, gone)
    assert tool(running, third, "crm_node", "-p") == (0, f"{' '.join(sorted(running.cluster.names))} \n")

    assert tool(running, second, "crm_attribute", "-N", third, "-l", "reboot", "-n", "lag", "-v", "3") == (0, "")
    assert tool(running, second, "crm_attribute", "-N", third, "-l", "reboot", "-n", "lag", "-G", "-q") == (0, "3\n")
    seen = f"//node_state[@uname='{third}']//nvpair[@name='lag']"
    running.until("the others to see it", lambda: 'value="3"' in tool(running, first, "cibadmin", "-Q", "-A", seen)[1])
    property_ = ("crm_attribute", "-n", "svc_STATE", "-s", "svc_replication")
    assert tool(running, second, *property_, "-v", first) == (0, "")
    assert tool(running, second, *property_, "-G", "-q") == (0, f"{first}\n")
    assert tool(running, third, "crm_simulate", "-L")[1].startswith("Current cluster status:\n")
    assert tool(running, third, "crm_simulate", "-LS")[1].count("Transition Summary:\n") == 1


def test_a_dry_run_changes_nothing(running: Scenario) -> None:
    holder = running.holder()
    before = running.status()["configuration"]
    tried = crm(running, "n1", "node", "standby", str(holder), "--dry-run")
    assert tried.returncode == 0
    assert f"stop svc on {holder}" in tried.stdout
    assert running.status()["configuration"] == before


def test_what_an_agent_says_of_new_parameters_is_a_warning_of_the_change(running: Scenario) -> None:
    words = ("configure", "primitive", "job", "ocf:haclusterd:exec", "params", "command=/bin/true", "stop_signal=NONE")
    tried = crm(running, "n1", "--dry-run", *words)
    assert tried.returncode == 0
    assert "job: agent ocf:haclusterd:exec objects on n1: " in tried.stderr
    silent = crm(running, "n1", "--dry-run", "--no-validate", *words)
    assert silent.returncode == 0
    assert "objects on" not in silent.stderr


def test_what_is_wrong_with_a_file_is_reported_and_nothing_changes(running: Scenario, tmp_path: Path) -> None:
    version = running.status()["configuration"]["version"]
    policy = tmp_path / "web.yaml"
    policy.write_text("resources:\n  - primitive: web\n    agent: ocf:haclusterd:htp-service\nconstraints:\n"
                      "  - location: l1\n    resource: wbe\n    node: n9\n    score: 5\n")  # fmt: skip
    refused = crm(running, "n1", "configure", "load", "update", str(policy))
    assert refused.returncode == 78
    errors = [line for line in refused.stderr.splitlines() if line.startswith("ERROR")]
    assert [line.removeprefix(f"ERROR: {policy}:").partition(":")[0] for line in errors] == ["3", "6"]
    assert f"WARNING: {policy}:7" in refused.stderr
    assert running.status()["configuration"]["version"] == version


def test_without_quorum_changes_are_refused_and_status_says_why(running: Scenario) -> None:
    for name in ("n2", "n3"):
        running.brain(name).send_signal(signal.SIGKILL)
        running.pacer(name).send_signal(signal.SIGKILL)
    running.until("n1 to know", lambda: running.status("n1")["verdict"] == "NO QUORUM")
    running.until("it to give the leader up", lambda: running.status("n1")["leader"] is None)
    status = crm(running, "n1", "status")
    assert status.stdout.startswith("NO QUORUM: n1 reaches 1 of 3 voters; missing: n2, n3\n")
    refused = crm(running, "n1", "resource", "stop", "svc")
    assert (refused.returncode, refused.stdout) == (106, "")
    assert refused.stderr == (
        "ERROR: no quorum: 1 of 3 voters reachable; missing: n2, n3 (bring a missing voter back)\n"
    )
    version = running.status("n1")["configuration"]["version"]
    for name in ("n2", "n3"):
        running.cluster.power_off(name)
        running.cluster.boot(name)
    running.cluster.start(["n2", "n3"])
    change = ("configure", "property", "batch-limit=7")
    running.until("a quorum", lambda: crm(running, "n1", *change).returncode == 0)
    assert running.status("n1")["configuration"]["version"] == version + 1, "what was refused does not come later"
