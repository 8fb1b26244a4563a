"""A disk that takes no more: the process ends with 75, and what it acknowledged is there when there is room again."""

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.adapters.network.certificates import create_authority, issue_certificate, write_node_credentials
from haclusterd.adapters.raft.thread import EXIT_CODE_IO_ERROR
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.ids import NodeName
from haclusterd.raft.identity import create_identity
from tests.simulation.store_world import CLUSTER

ROOT = Path(__file__).parents[2]
N1 = NodeName("n1")
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    authority = create_authority(CLUSTER, now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    credentials = issue_certificate(authority, N1, ["127.0.0.1"], now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    write_node_credentials(tmp_path, authority.certificate, credentials)
    files = FilesDirectory(tmp_path / "store")
    create_identity(files, CLUSTER, N1)
    files.close()
    [port] = free_ports("127.0.0.1", 1)
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/processes/lone_voter.py"), str(tmp_path), str(port), *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.processes
def test_a_full_disk_ends_the_process_and_loses_nothing(start: Start, tmp_path: Path) -> None:
    full = start("200000")
    output, errors = full.communicate(timeout=60)
    assert full.returncode == EXIT_CODE_IO_ERROR
    assert f"{tmp_path}/store/journal: [Errno 27] File too large" in errors
    acknowledged = output.split()[1:]
    assert len(acknowledged) > 10
    again = start()
    assert again.stdout is not None
    loaded = []
    while len(loaded) < len(acknowledged):
        line = again.stdout.readline().strip()
        assert line or again.poll() is None, again.stderr
        if line != "LOADED":
            loaded.append(line)
    assert loaded == acknowledged
