"""What a daemon refuses, with which message and exit code, and that nothing is overwritten."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from haclusterd.adapters.certificates import AUTHORITY_CERTIFICATE, NODE_CERTIFICATE, NODE_KEY
from haclusterd.entry_points.cluster_setup import SetupRefused, make_bundles
from haclusterd.model.cluster import Member
from haclusterd.model.ids import NodeName
from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes


def run_daemon(scenario: Scenario, node: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    bundle = scenario.cluster.nodes[NodeName(node)].bundle
    return subprocess.run(
        [sys.executable, "-m", "haclusterd.entry_points.haclusterd", "--configuration", str(bundle / "haclusterd.yaml"),
         *arguments],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


def test_a_second_daemon_on_the_same_directories(scenario: Scenario) -> None:
    scenario.form()
    second = run_daemon(scenario, "n1")
    assert second.returncode == 69
    assert "another haclusterd is running" in second.stderr
    assert scenario.online() == {"n1", "n2", "n3"}


def test_a_second_daemon_on_the_same_data_directory_only(scenario: Scenario, tmp_path: Path) -> None:
    scenario.form()
    bundle = scenario.cluster.nodes[NodeName("n1")].bundle
    text = (bundle / "haclusterd.yaml").read_text()
    other = tmp_path / "other-run"
    (bundle / "haclusterd.yaml").write_text(
        text.replace(str(scenario.cluster.nodes[NodeName("n1")].runtime), str(other))
    )
    second = run_daemon(scenario, "n1")
    assert second.returncode == 69, second.stderr
    assert "state" in second.stderr


def test_a_damaged_journal(scenario: Scenario) -> None:
    scenario.form().with_service()
    scenario.cluster.power_off("n2")
    journal = scenario.cluster.nodes[NodeName("n2")].state / "journal"
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 0x10
    journal.write_bytes(data)
    scenario.cluster.boot("n2")
    refused = run_daemon(scenario, "n2")
    assert refused.returncode == 65, refused.stderr
    assert str(journal) in refused.stderr
    assert journal.read_bytes() == bytes(data), "nothing was overwritten"


def test_a_node_without_room_does_not_join_and_is_not_fenced_again_for_it(scenario: Scenario, tmp_path: Path) -> None:
    """Its data lies on a file system of 8 MiB: it says what it needs, and stays what it was, fenced once."""
    scenario.form().with_service()
    scenario.cluster.power_off("n2")
    scenario.until("n2 fenced", lambda: scenario.states()["n2"] == "fenced")
    scenario.cluster.boot("n2")
    node = scenario.cluster.nodes[NodeName("n2")]
    configuration = node.bundle / "haclusterd.yaml"
    script = (
        f"cp -a {node.state} {tmp_path}/copied && mount -t tmpfs -o size=8m none {node.state} && "
        f"cp -a {tmp_path}/copied/. {node.state}/ && "
        f"exec {sys.executable} -m haclusterd.entry_points.haclusterd --configuration {configuration}"
    )
    namespaces = ("--mount",) if os.geteuid() == 0 else ("--user", "--map-root-user", "--mount")
    refused = subprocess.run(
        ["unshare", *namespaces, "sh", "-c", script],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert refused.returncode == 75, refused.stderr
    assert "this node does not join: [Errno 28] No space left on device" in refused.stderr
    assert "16777216 are needed to start" in refused.stderr
    scenario.hold("n2 neither joins nor is fenced again", lambda: scenario.states()["n2"] == "fenced", 3)
    assert len(scenario.events("node-fenced")) == 1


def test_an_emptied_data_directory(scenario: Scenario) -> None:
    scenario.form()
    scenario.cluster.power_off("n2")
    state = scenario.cluster.nodes[NodeName("n2")].state
    shutil.rmtree(state)
    scenario.cluster.boot("n2")
    refused = run_daemon(scenario, "n2")
    assert refused.returncode == 66, refused.stderr
    assert "never set up" in refused.stderr
    assert "crm cluster remove" in refused.stderr
    assert "crm cluster join" in refused.stderr


def test_a_busy_port(scenario: Scenario) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", scenario.cluster.nodes[NodeName("n1")].port))
        taken.listen()
        refused = run_daemon(scenario, "n1")
    assert refused.returncode == 69, refused.stderr
    assert str(scenario.cluster.nodes[NodeName("n1")].port) in refused.stderr


def test_initializing_twice(scenario: Scenario) -> None:
    refused = run_daemon(scenario, "n1", "--initialize")
    assert refused.returncode == 66
    assert "belongs to a node already" in refused.stderr


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("- a list", "expected a mapping"),
        ("node: n1", "cluster"),
        ("cluster: {name: a, uuid: b}\nnode: n9\nmembers: {n1: {addresses: ['127.0.0.1:1']}}", "not among the members"),
        ("cluster: {name: a, uuid: b}\nnode: n1\nmembers: {n1: {addresses: [nowhere]}}", "HOST:PORT"),
        ("cluster: {name: a, uuid: b}\nnode: n1\nmembers: {n1: {addresses: ['h:1']}}\nfoo: 1", "unknown key"),
        ("a: [", "not YAML"),
    ],
)
def test_a_configuration_file_that_cannot_be_used(tmp_path: Path, text: str, wanted: str) -> None:
    file = tmp_path / "haclusterd.yaml"
    file.write_text(text)
    refused = subprocess.run(
        [sys.executable, "-m", "haclusterd.entry_points.haclusterd", "--configuration", str(file)],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert refused.returncode == 78
    assert str(file) in refused.stderr
    assert wanted in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_foreign_certificate_is_let_in_by_nobody(scenario: Scenario, tmp_path: Path) -> None:
    stranger = make_bundles("other", [Member(NodeName("n3"), (("127.0.0.1", 1),))], tmp_path / "other")[NodeName("n3")]
    bundle = scenario.cluster.nodes[NodeName("n3")].bundle
    for name in (AUTHORITY_CERTIFICATE, NODE_CERTIFICATE, NODE_KEY):
        shutil.copy(stranger / name, bundle / name)
    scenario.cluster.start(["n1", "n2"])
    scenario.until("two nodes online", lambda: {"n1", "n2"} <= scenario.online())
    scenario.cluster.start(["n3"])
    scenario.until("a refusal", lambda: "certificate" in scenario.log("n1").lower() + scenario.log("n3").lower())
    assert scenario.status("n1")["dc"] in ("n1", "n2")
    assert "n3" not in scenario.online()


def test_set_up_overwrites_nothing(tmp_path: Path) -> None:
    members = [Member(NodeName("n1"), (("127.0.0.1", 1),))]
    make_bundles("a", members, tmp_path / "out")
    with pytest.raises(SetupRefused):
        make_bundles("a", members, tmp_path / "out")


def test_a_change_that_no_log_entry_can_hold_is_taken_whole_by_every_node(scenario: Scenario) -> None:
    scenario.form()
    lines = [f"primitive r{number} ocf:haclusterd:dummy meta target-role=Stopped" for number in range(600)]
    response = scenario.answer("configure.script", text="\n".join(lines), source="big")
    assert [item.code for item in response.reports if item.severity == "error"] == []
    scenario.until(
        "every node to have it",
        lambda: all(scenario.status(node)["configuration"]["version"] == 1 for node in scenario.cluster.names),
    )
    assert scenario.online() == {"n1", "n2", "n3"}


def test_an_agent_that_talks_without_end_harms_nobody(scenario: Scenario, tmp_path: Path) -> None:
    scenario.form().with_service()
    scenario.configure(
        'primitive loud ocf:haclusterd:exec params command=/bin/false log_file=/dev/null '
        f'env="LONG={"x" * 4000}" op start timeout=10s op monitor interval=10s timeout=10s'
    )
    scenario.until("its failure everywhere", lambda: len(scenario.events("operation-failed")) >= 3)
    scenario.settle()
    assert scenario.online() == {"n1", "n2", "n3"}
