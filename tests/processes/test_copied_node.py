"""A copy of a running machine is started beside it: certificate, journal and configuration are the same, the boot is
another one. It must not pass for the machine that was started again, whose services nobody runs any more."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from haclusterd.entry_points.free_ports import free_ports
from haclusterd.entry_points.local_cluster import LocalCluster, LocalNode
from haclusterd.model.ids import NodeName
from haclusterd.runtime.settings import CONFIGURATION_FILE
from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes


class Copy:
    """A copy of a node's disk in another machine, which is reached at another address."""

    def __init__(self, scenario: Scenario, name: str, directory: Path) -> None:
        original = scenario.cluster.nodes[NodeName(name)]
        self.name = name
        home = directory / name
        node = LocalNode(
            NodeName(name), home / "bundle", home / "state", home / "run", home / "log", home / "boot_id",
            free_ports("127.0.0.1", 1)[0],
        )  # fmt: skip
        shutil.copytree(original.bundle, node.bundle)
        shutil.copytree(original.state, node.state)
        node.logs.mkdir()
        file = node.bundle / CONFIGURATION_FILE
        text = file.read_text().replace(str(original.state.parent), str(home))
        assert f":{original.port}" in text
        file.write_text(text.replace(f":{original.port}", f":{node.port}"))
        self.cluster = LocalCluster(directory, (name,), mark=f"{scenario.cluster.mark}-copy", nodes={node.name: node})
        self.cluster.nodes_directory.mkdir()

    def boot(self) -> None:
        self.cluster.boot(self.name)
        self.cluster.start()

    def warnings(self) -> str:
        status: Any = self.cluster.call(self.name, "status").data
        return " ".join(status["warnings"]) if status else ""


@pytest.fixture
def copy(running: Scenario, tmp_path: Path) -> Iterator[Copy]:
    """A copy of the node that runs the service."""
    holder = running.holder()
    assert holder is not None
    made = Copy(running, holder, tmp_path / "copy")
    try:
        yield made
    finally:
        made.cluster.sweep()
        running.close()


def test_a_node_that_starts_again_at_once_comes_back(running: Scenario) -> None:
    # Without fencing: a node that was long in starting would be fenced for its silence, and be off.
    running.configure("property fencing-enabled=false")
    name = str(running.holder())
    joins = len(running.events("node-joined"))
    running.cluster.power_off(name)
    running.cluster.boot(name)
    running.cluster.start([name])
    running.until("it to be back", lambda: len(running.events("node-joined")) > joins)
    running.until("all online", lambda: running.online() == set(running.cluster.names))
    running.until("the service to run", lambda: running.holder() is not None)


def test_a_copy_is_kept_out_while_the_first_one_lives_and_after_its_loss(running: Scenario, copy: Copy) -> None:
    name = copy.name
    services = running.service_pids(name)
    others = [each for each in running.cluster.names if each != name]
    joins = len(running.events("node-joined"))
    copy.boot()

    def tells(node: str) -> bool:
        return f"a copy of {name} is kept out" in " ".join(running.status(node)["warnings"])

    for other in others:
        running.until(f"{other} to tell of the copy", partial(tells, other))
    running.until("the copy to say who keeps it out", lambda: all(each in copy.warnings() for each in others))
    for other in others:
        assert running.log(other).count(f"a copy of {name} is kept out") == 1
    assert running.service_pids(name) == services
    assert running.online() == set(running.cluster.names)
    assert len(running.events("node-joined")) == joins

    running.cluster.power_off(name)
    running.until("the service to run on another node", lambda: running.holder() in others)
    running.until("nothing in flight", lambda: running.is_idle() and running.states()[name] == "fenced")
    running.hold("the copy stays out", lambda: running.states()[name] == "fenced", 3)

    # Who makes the copy the node starts it again, now that the first one is gone.
    copy.cluster.power_off(name)
    copy.boot()
    running.until("the copy to be the node", lambda: running.online() == set(running.cluster.names))
