"""A node's data on another machine: real daemons refuse it, until a person says that the machine is the node."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.runtime.settings import CONFIGURATION_FILE
from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes

N2 = NodeName("n2")


class Machine:
    """The machine on which n2 is, which is known by a file."""

    def __init__(self, scenario: Scenario, directory: Path) -> None:
        self._scenario = scenario
        self._node = scenario.cluster.nodes[N2]
        self._file = directory / "machine-id"
        self.configuration = self._node.bundle / CONFIGURATION_FILE
        self._kept = {path: path.read_bytes() for path in (self.configuration, self._node.state / "identity")}

    def off(self) -> None:
        self._scenario.cluster.power_off("n2")
        self._scenario.until("n2 fenced", lambda: self._scenario.states()["n2"] == "fenced")

    def boot(self, identity: str) -> None:
        """Boot it, or another machine with its disk."""
        self._file.write_text(identity + "\n")
        self._scenario.cluster.boot("n2")

    def start(self) -> None:
        self._scenario.cluster.start(["n2"])
        self._scenario.until("n2 online", lambda: "n2" in self._scenario.online())

    def daemon(self) -> "subprocess.CompletedProcess[str]":
        return _run("haclusterd", "--configuration", str(self.configuration))

    def this_is(self, node: str, *words: str, configuration: Path | None = None) -> "subprocess.CompletedProcess[str]":
        file = str(configuration or self.configuration)
        return _run("crm", "cluster", "this-is", node, "--configuration", file, *words)

    def name_by_file(self) -> None:
        with self.configuration.open("a") as file:
            file.write(f"machine-id-file: {self._file}\n")

    def put_back(self) -> None:
        for path, content in self._kept.items():
            path.write_bytes(content)


def _run(program: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", f"haclusterd.entry_points.{program}", *words],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ},
    )  # fmt: skip


def test_a_disk_in_another_machine_is_refused_until_a_person_says_that_it_is_the_node(
    running: Scenario, tmp_path: Path
) -> None:
    machine = Machine(running, tmp_path)
    machine.off()
    machine.name_by_file()
    machine.boot("first")
    machine.start()

    # Typed where a copy of the files lies, while the node runs.
    node = running.cluster.nodes[N2]
    copied = tmp_path / "copied"
    shutil.copytree(node.bundle, copied)
    shutil.copytree(node.state, tmp_path / "copied-state")
    file = copied / CONFIGURATION_FILE
    (tmp_path / "machine-id-of-the-copy").write_text("second\n")
    text = file.read_text().replace(str(node.state), str(tmp_path / "copied-state"))
    file.write_text(text.replace(str(tmp_path / "machine-id"), str(tmp_path / "machine-id-of-the-copy")))
    beside = machine.this_is("n2", "--i-have-checked", configuration=file)
    assert (beside.returncode, "something answers as n2 at 127.0.0.1" in beside.stderr) == (1, True), beside.stderr
    recovered = _run("crm", "cluster", "recover", "--i-have-checked", "--configuration", str(file))
    assert recovered.returncode == 1, recovered.stderr
    runs = machine.this_is("n2", "--i-have-checked")
    assert (runs.returncode, "the daemon runs: stop it first" in runs.stderr) == (1, True), runs.stderr

    machine.off()
    machine.boot("second")
    refused = machine.daemon()
    assert refused.returncode == 66, refused.stderr
    assert "the machine with machine-id-file first, and this one has machine-id-file second" in refused.stderr
    assert "crm cluster this-is n2" in refused.stderr
    assert running.states()["n2"] == "fenced"

    other = machine.this_is("n1")
    assert (other.returncode, "is of n2, not of n1" in other.stderr) == (1, True), other.stderr
    unsaid = machine.this_is("n2")
    assert (unsaid.returncode, "crm cluster this-is n2 --i-have-checked" in unsaid.stderr) == (107, True), unsaid.stderr
    assert machine.daemon().returncode == 66
    ended = machine.this_is("n2", "--i-have-checked")
    assert (ended.returncode, "this machine is n2 now" in ended.stderr) == (0, True), ended.stderr
    again = machine.this_is("n2", "--i-have-checked")
    assert (again.returncode, "nothing to do" in again.stdout + again.stderr) == (0, True), again.stderr
    machine.start()

    machine.off()
    machine.put_back()
    machine.boot("second")
    machine.start()
