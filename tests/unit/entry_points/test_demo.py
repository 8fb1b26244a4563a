"""The demonstration where it cannot begin; its play is what `make demo` shows."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from haclusterd.entry_points.demo import main
from haclusterd.entry_points.free_ports import GIVEN
from haclusterd.entry_points.local_cluster import LocalCluster
from haclusterd.model.ids import NodeName


def test_without_ports_it_says_why_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(GIVEN, "abc")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main([]) == 1
    assert capsys.readouterr().err == (
        f"the demonstration cannot begin: {GIVEN}=abc is no range of ports; it wants to be like 20000-24999\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def kept(tmp_path: Path) -> LocalCluster:
    """A cluster that was made and of which no process runs."""
    cluster = LocalCluster(tmp_path / "kept")
    cluster.setup()
    return cluster


def test_a_kept_cluster_is_found_again(kept: LocalCluster) -> None:
    found = LocalCluster.kept(kept.directory)
    assert (found.mark, found.names, found.nodes) == (kept.mark, kept.names, kept.nodes)


def test_a_node_is_switched_off_and_what_is_wrong_is_said(
    kept: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = str(kept.directory)
    assert main(["--directory", directory, "--power-off", "n1"]) == 0
    assert capsys.readouterr().out == "n1 is off already\n"
    environment = kept._environment(kept.nodes[NodeName("n1")])
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment) as process:
        assert main(["--directory", directory, "--boot", "n1"]) == 0
        assert capsys.readouterr().out == "n1 is running already\n"
        assert main(["--directory", directory, "--power-off", "n1"]) == 0
        assert process.wait(20) == -9
    assert capsys.readouterr().out == "n1 is off\n"
    assert main(["--directory", directory, "--boot", "n9"]) == 1
    assert capsys.readouterr().err == "there is no node 'n9' (one of: n1, n2, n3)\n"
    assert main(["--directory", str(tmp_path / "none"), "--boot", "n1"]) == 1
    assert "--directory must name a kept demonstration" in capsys.readouterr().err
