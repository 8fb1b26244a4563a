"""fence_local ends every process of one node, and of that node only."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from haclusterd.adapters.agents.metadata import read_fence_metadata
from haclusterd.agents.process_table import list_pids, read_arguments, read_marks, read_stat
from tests.agents.conftest import AGENTS

GOLDEN = Path(__file__).parents[1] / "golden" / "agents" / "fence_local.xml"

NODE = """
sleep 2001 &
setsid sh -c 'sleep 2002 & exec sleep 2003' &
(trap '' TERM HUP INT; setsid sh -c 'while :; do sleep 1; done') &
env -i sleep 2004 &
exec sleep 2005
"""


class LocalCluster:
    """A directory and some processes that pretend to be nodes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.name = f"test-{directory.parent.name}-{os.getpid()}"
        self.children: list[subprocess.Popen[bytes]] = []
        directory.mkdir()
        (directory / "local-cluster").write_text(f"{self.name}\n")

    def add(self, node: str, cluster: str | None = None) -> subprocess.Popen[bytes]:
        (self.directory / f"{node}.node").touch()
        marks = {"HACLUSTERD_NODE": node, "HACLUSTERD_LOCAL_CLUSTER": cluster or self.name, "PATH": os.environ["PATH"]}
        marks["TEST_MARK"] = self.name
        self.children.append(subprocess.Popen(["/bin/sh", "-c", NODE], env=marks, start_new_session=True))
        return self.children[-1]

    def fence(self, action: str, node: str | None, **parameters: str) -> subprocess.CompletedProcess[str]:
        request = {"action": action, "nodes_dir": str(self.directory), **({"plug": node} if node else {}), **parameters}
        return subprocess.run(
            [AGENTS / "fence_local"],
            input="".join(f"{name}={value}\n" for name, value in request.items()),
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HACLUSTERD_NODE": "n9"},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def alive(self, node: str) -> int:
        return sum(
            1
            for pid in list_pids()
            if (marks := read_marks(pid)).get("TEST_MARK") == self.name
            and marks.get("HACLUSTERD_NODE") == node
            and (stat := read_stat(pid)) is not None
            and not stat.is_dead
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    made = LocalCluster(tmp_path / "nodes")
    yield made
    sessions = {child.pid for child in made.children}
    for pid in list_pids():
        stat = read_stat(pid)
        if read_marks(pid).get("TEST_MARK") == made.name or (stat is not None and stat.session in sessions):
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
    for child in made.children:
        child.wait(10)


def children(process: subprocess.Popen[bytes]) -> list[int]:
    return [pid for pid in list_pids() if (stat := read_stat(pid)) is not None and stat.parent == process.pid]


def has_started_all(node: subprocess.Popen[bytes]) -> bool:
    """Tell whether it runs the last of NODE's programs, and one child is the program that carries no mark."""
    programs = [read_arguments(pid) for pid in children(node)]
    return read_arguments(node.pid) == ["sleep", "2005"] and ["sleep", "2004"] in programs


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "the condition never held"


def test_metadata_is_the_golden_text_and_names_every_action() -> None:
    command = [AGENTS / "fence_local"]
    done = subprocess.run(command, input="action=metadata\n", capture_output=True, text=True, check=True)
    assert done.stdout == GOLDEN.read_text()
    metadata = read_fence_metadata(done.stdout, "fence_local")
    assert {"on", "off", "reboot", "status", "monitor", "list", "metadata"} <= metadata.actions
    assert metadata.host_argument == "plug"


def test_off_ends_everything_of_that_node_and_nothing_else(cluster: LocalCluster) -> None:
    n1, n2, foreign = cluster.add("n1"), cluster.add("n2"), cluster.add("n1", "another-cluster")
    wait_for(lambda: all(has_started_all(node) for node in (n1, n2, foreign)))
    wait_for(lambda: cluster.alive("n1") >= 10)
    wait_for(lambda: cluster.alive("n2") >= 5)
    own = children(n1)
    assert [pid for pid in own if not read_marks(pid)], "one child carries no mark"
    assert cluster.fence("status", "n1").returncode == 0
    assert cluster.fence("off", "n1").returncode == 0
    assert n1.wait(5) == -9
    left = [stat for pid in own if (stat := read_stat(pid)) is not None and not stat.is_dead]
    assert left == []
    assert cluster.alive("n2") >= 5
    assert foreign.poll() is None
    assert n2.poll() is None
    assert cluster.fence("status", "n1").returncode == 2
    assert (cluster.directory / "n1.off").exists()


def test_on_removes_the_mark_and_starts_nothing(cluster: LocalCluster) -> None:
    cluster.add("n1")
    wait_for(lambda: cluster.alive("n1") >= 1)
    assert cluster.fence("off", "n1").returncode == 0
    assert cluster.fence("on", "n1").returncode == 0
    assert not (cluster.directory / "n1.off").exists()
    assert cluster.fence("status", "n1").returncode == 2


def test_reboot_ends_the_node_and_lets_it_come_back(cluster: LocalCluster) -> None:
    node = cluster.add("n1")
    wait_for(lambda: cluster.alive("n1") >= 1)
    assert cluster.fence("reboot", "n1").returncode == 0
    assert node.wait(5) == -9
    assert not (cluster.directory / "n1.off").exists()


def test_off_of_a_node_that_is_off_succeeds(cluster: LocalCluster) -> None:
    (cluster.directory / "n1.node").touch()
    assert cluster.fence("off", "n1").returncode == 0


def test_list_and_monitor(cluster: LocalCluster) -> None:
    for node in ("n2", "n1"):
        (cluster.directory / f"{node}.node").touch()
    assert cluster.fence("monitor", None).returncode == 0
    assert cluster.fence("list", None).stdout == "n1,\nn2,\n"


@pytest.mark.parametrize(
    ("action", "node", "words"),
    [
        ("off", "n3", "n3 is not a node of local cluster"),
        ("off", None, "no plug given"),
        ("off", "../n1", "is not a node"),
        ("off", "n9", "n9 cannot switch itself off"),
        ("explode", "n1", "unsupported action"),
    ],
)
def test_an_impossible_request_is_refused_with_its_reason(
    cluster: LocalCluster, action: str, node: str | None, words: str
) -> None:
    for name in ("n1", "n9"):
        (cluster.directory / f"{name}.node").touch()
    done = cluster.fence(action, node)
    assert done.returncode == 1
    assert words in done.stderr


def test_without_its_directory_it_does_nothing(cluster: LocalCluster, tmp_path: Path) -> None:
    assert cluster.fence("off", "n1", nodes_dir="").returncode == 1
    assert cluster.fence("off", "n1", nodes_dir=str(tmp_path / "nowhere")).returncode == 1
    assert cluster.fence("monitor", None, nodes_dir=str(tmp_path)).returncode == 1
