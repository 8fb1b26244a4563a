"""What a daemon refuses, with which message and exit code, and that nothing is overwritten."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from haclusterd.adapters.network.certificates import AUTHORITY_CERTIFICATE, NODE_CERTIFICATE, NODE_KEY
from haclusterd.entry_points.cluster_setup import SetupRefusedError, make_bundles
from haclusterd.entry_points.daemon import main
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


def test_a_second_daemon_on_the_same_directories(running: Scenario) -> None:
    second = run_daemon(running, "n1")
    assert second.returncode == 69
    assert "another haclusterd is running" in second.stderr
    assert running.online() == {"n1", "n2", "n3"}


def test_a_second_daemon_on_the_same_data_directory_only(running: Scenario, tmp_path: Path) -> None:
    bundle = running.cluster.nodes[NodeName("n1")].bundle
    configuration = bundle / "haclusterd.yaml"
    text = configuration.read_text()
    other = tmp_path / "other-run"
    configuration.write_text(text.replace(str(running.cluster.nodes[NodeName("n1")].runtime), str(other)))
    try:
        second = run_daemon(running, "n1")
    finally:
        configuration.write_text(text)
    assert second.returncode == 69, second.stderr
    assert "state" in second.stderr


def test_a_damaged_journal(running: Scenario) -> None:
    running.cluster.power_off("n2")
    journal = running.cluster.nodes[NodeName("n2")].state / "journal"
    whole = journal.read_bytes()
    data = bytearray(whole)
    data[len(data) // 2] ^= 0x10
    journal.write_bytes(data)
    running.cluster.boot("n2")
    refused = run_daemon(running, "n2")
    assert refused.returncode == 65, refused.stderr
    assert str(journal) in refused.stderr
    assert journal.read_bytes() == bytes(data), "nothing was overwritten"
    journal.write_bytes(whole)


def test_a_node_without_room_does_not_join_and_is_not_fenced_again_for_it(running: Scenario, tmp_path: Path) -> None:
    """Its data lies on a file system of 8 MiB: it says what it needs, and stays what it was, fenced once."""
    running.cluster.power_off("n2")
    running.until("n2 fenced", lambda: running.states()["n2"] == "fenced")
    running.cluster.boot("n2")
    node = running.cluster.nodes[NodeName("n2")]
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
    running.hold("n2 neither joins nor is fenced again", lambda: running.states()["n2"] == "fenced", 3)
    assert len(running.events("node-fenced")) == 1


def test_an_emptied_data_directory(running: Scenario, tmp_path: Path) -> None:
    running.cluster.power_off("n2")
    state = running.cluster.nodes[NodeName("n2")].state
    shutil.move(state, tmp_path / "aside")
    running.cluster.boot("n2")
    refused = run_daemon(running, "n2")
    shutil.rmtree(state, ignore_errors=True)
    shutil.move(tmp_path / "aside", state)
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
def test_a_configuration_file_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, wanted: str
) -> None:
    file = tmp_path / "haclusterd.yaml"
    file.write_text(text)
    assert main(["--configuration", str(file)]) == 78
    printed = capsys.readouterr().err
    assert str(file) in printed
    assert wanted in printed
    assert "Traceback" not in printed


def test_a_foreign_certificate_is_let_in_by_nobody(scenario: Scenario, tmp_path: Path) -> None:
    foreign = make_bundles("other", [Member(NodeName("n3"), (("127.0.0.1", 1),))], tmp_path / "other")[NodeName("n3")]
    bundle = scenario.cluster.nodes[NodeName("n3")].bundle
    for name in (AUTHORITY_CERTIFICATE, NODE_CERTIFICATE, NODE_KEY):
        shutil.copy(foreign / name, bundle / name)
    scenario.cluster.start(["n1", "n2"])
    scenario.until("two nodes online", lambda: {"n1", "n2"} <= scenario.online())
    scenario.cluster.start(["n3"])
    scenario.until("a refusal", lambda: "certificate" in scenario.log("n1").lower() + scenario.log("n3").lower())
    assert scenario.status("n1")["dc"] in ("n1", "n2")
    assert "n3" not in scenario.online()


def test_set_up_overwrites_nothing(tmp_path: Path) -> None:
    members = [Member(NodeName("n1"), (("127.0.0.1", 1),))]
    make_bundles("a", members, tmp_path / "out")
    with pytest.raises(SetupRefusedError):
        make_bundles("a", members, tmp_path / "out")


def test_an_agent_that_talks_without_end_harms_nobody(running: Scenario, tmp_path: Path) -> None:
    running.configure(
        'primitive loud ocf:haclusterd:exec params command=/bin/false log_file=/dev/null '
        f'env="LONG={"x" * 4000}" op start timeout=10s op monitor interval=10s timeout=10s'
    )
    running.until("its failure everywhere", lambda: len(running.events("operation-failed")) >= 3)
    running.settle()
    assert running.online() == {"n1", "n2", "n3"}
