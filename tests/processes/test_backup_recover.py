"""Real daemons: a cluster is backed up, destroyed, restored; a lost majority is given up for one node."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from haclusterd.entry_points.cluster_setup import initialize
from haclusterd.model.ids import NodeName
from haclusterd.runtime.settings import CONFIGURATION_FILE, load
from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes

PLACES = ("state-directory", "runtime-directory", "boot-id-file", "development")


def crm(scenario: Scenario, node: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "haclusterd.entry_points.crm", *words],
        capture_output=True, text=True, timeout=100, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "HACLUSTERD_SOCKET": str(scenario.cluster.nodes[NodeName(node)].socket)},
    )  # fmt: skip


def asked(scenario: Scenario, node: str, *words: str) -> Any:
    result = crm(scenario, node, "-o", "json", *words)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def give_bundles(scenario: Scenario, made: Path) -> None:
    """Give each node of a cluster that never started the directory that was made for it, as an administrator would."""
    for name, node in scenario.cluster.nodes.items():
        own = yaml.safe_load((node.bundle / CONFIGURATION_FILE).read_text())
        document = yaml.safe_load((made / name / CONFIGURATION_FILE).read_text())
        (made / name / CONFIGURATION_FILE).write_text(yaml.safe_dump({**document, **{key: own[key] for key in PLACES}}))
        node.bundle = made / name
        shutil.rmtree(node.state)
        node.state.mkdir(mode=0o700)
        initialize(load(node.bundle / CONFIGURATION_FILE))


def test_a_damaged_backup_makes_nothing(running: Scenario, tmp_path: Path) -> None:
    file, made = tmp_path / "web.backup", tmp_path / "restored"
    assert crm(running, "n1", "cluster", "backup", str(file)).returncode == 0
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[1].replace("A", "B", 1), *lines[2:]]))
    refused = crm(running, "n1", "cluster", "restore", str(file), "--into", str(made))
    assert refused.returncode == 65
    assert f"{file}:2: checksum mismatch (use another backup; nothing of this one was used)" in refused.stderr
    assert not made.exists()


def test_one_node_goes_on_alone_after_a_lost_majority(running: Scenario) -> None:
    assert crm(running, "n1", "configure", "property", "batch-limit=7").returncode == 0
    before = running.must("configure.show")["text"]
    version = running.must("configure.show")["version"]
    old_uuid = running.must("cluster.members")["uuid"]
    node = running.cluster.nodes[NodeName("n1")]
    words = ("cluster", "recover", "--configuration", str(node.bundle / CONFIGURATION_FILE))

    running.cluster.power_off("n3")
    heard = crm(running, "n1", *words, "--i-have-checked")
    assert (heard.returncode, "n2 answers" in heard.stderr) == (1, True), heard.stderr
    running.cluster.power_off("n2")
    alive = crm(running, "n1", *words, "--i-have-checked")
    assert (alive.returncode, "the daemon runs: stop it first" in alive.stderr) == (1, True), alive.stderr
    running.cluster.power_off("n1")
    unsaid = crm(running, "n1", *words)
    assert (unsaid.returncode, "power off n2, n3 for good" in unsaid.stderr) == (107, True), unsaid.stderr

    done = crm(running, "n1", *words, "--i-have-checked")
    assert done.returncode == 0, done.stderr
    running.cluster.boot("n1")
    running.cluster.start(["n1"])
    running.until("the service to run", lambda: bool(running.service_pids("n1")))
    shown = running.cluster.call("n1", "configure.show").data
    assert isinstance(shown, dict)
    assert (shown["text"], shown["version"]) == (before, version + 1)
    assert str(shown["author"])
    members = running.cluster.call("n1", "cluster.members").data
    assert isinstance(members, dict)
    assert members["uuid"] != old_uuid
    assert [each["name"] for each in members["members"]] == ["n1"]

    # An old node with its old files is not let in, and takes nothing over.
    running.cluster.boot("n2")
    running.cluster.start(["n2"])
    running.until("n2 to answer", lambda: running.cluster.call("n2", "status").exit != 69)
    status = running.status("n2")
    assert status["dc"] is None
    assert not running.service_pids("n2")
    assert crm(running, "n1", "configure", "property", "batch-limit=8").returncode == 0
    running.close()


def test_a_cluster_is_made_again_from_its_backup(scenario: Scenario, tmp_path: Path) -> None:
    scenario.form().with_service()
    before = scenario.must("configure.show")
    old_uuid = scenario.must("cluster.members")["uuid"]
    file, made = tmp_path / "web.backup", tmp_path / "restored"

    written = crm(scenario, "n2", "cluster", "backup", str(file))
    assert written.returncode == 0, written.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    assert "PRIVATE KEY" not in file.read_text()

    refused = crm(scenario, "n1", "cluster", "restore", str(file), "--into", str(made))
    assert refused.returncode == 1
    assert "n1, n2, n3 answers" in refused.stderr
    assert not made.exists()

    for name in scenario.cluster.names:
        scenario.cluster.power_off(name)
    second = Scenario(tmp_path / "second")
    try:
        nodes = [f"--node={name}=127.0.0.1:{node.port}" for name, node in second.cluster.nodes.items()]
        done = crm(scenario, "n1", "cluster", "restore", str(file), "--into", str(made), *nodes)
        assert done.returncode == 0, done.stderr
        again = crm(scenario, "n1", "cluster", "restore", str(file), "--into", str(made), *nodes)
        assert (again.returncode, "not empty" in again.stderr) == (1, True)

        give_bundles(second, made)
        second.form()
        second.until("the service to run", lambda: second.holder() is not None)
        assert second.must("configure.show")["text"] == before["text"]
        assert second.must("cluster.members")["uuid"] != old_uuid
        for name in second.cluster.names:
            versions = asked(second, name, "history", "config")
            assert [each["number"] for each in versions["versions"]] == [1, 2], name
            assert versions["versions"][-1]["reason"] == "restored from a backup of version 1"
            assert versions["gaps"] == []
        digests = {asked(second, name, "history", "config")["versions"][0]["digest"] for name in ("n1", "n2", "n3")}
        assert len(digests) == 1
    finally:
        second.close()
