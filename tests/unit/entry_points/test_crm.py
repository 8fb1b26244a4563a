"""`crm` as a process: quick, honest about its exit status, and complete without a cluster."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from haclusterd.cib.codec import decode_cib, encode_cib
from tests.administered_clusters import running
from tests.written_cibs import cib

SLOW = ("asyncio", "yaml", "haclusterd.commands", "haclusterd.cib", "haclusterd.scheduler", "haclusterd.formats", "ssl",
        "difflib", "prompt_toolkit", "pathlib", "urllib", "haclusterd.verbs.answers.crm", "typing_extensions",
        "inspect", "ast", "dataclasses", "logging", "shutil", "subprocess", "tempfile", "threading", "argparse",
        "locale")  # fmt: skip


def crm(*words: str, stdin: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "haclusterd.entry_points.crm", *words],
        input=stdin, capture_output=True, text=True, env={"PATH": os.environ["PATH"], **environment}, timeout=60,
        cwd=Path(__file__).parents[3], check=False,
    )  # fmt: skip


def test_asking_a_daemon_imports_nothing_slow() -> None:
    program = (
        "import sys; sys.argv = ['crm', 'status']\n"
        "from haclusterd.entry_points.crm import main\n"
        "assert main() == 69\n"
        "print(*sys.modules)"
    )
    # Without the files of site-packages, which may import anything.
    result = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, timeout=60,
        env={
            "HACLUSTERD_SOCKET": "/nowhere",
            "PYTHONPATH": f"{Path(__file__).parents[3]}:{Path(msgspec.__file__).parents[1]}",
        },
    )  # fmt: skip
    assert [name for name in result.stdout.split() if name in SLOW] == []


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (("simulate", "--cib", "empty.xml"), "haclusterd.scheduler.schedule"),
        (("--cib-file", "empty.xml", "configure", "show"), "haclusterd.formats.crm.writer"),
    ],
)
def test_what_is_asked_about_a_file_imports_only_what_that_needs(
    tmp_path: Path, words: tuple[str, ...], needed: str
) -> None:
    (tmp_path / "empty.xml").write_text(cib())
    program = (
        f"import sys; sys.argv = {['crm', *words]!r}\n"
        "from haclusterd.entry_points.crm import main\n"
        "assert main() == 0\n"
        "print('MODULES', *sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip
    modules = result.stdout.partition("MODULES")[2].split()
    others = ("asyncio", "yaml", "http.client", "ssl", "tempfile", "haclusterd.commands.registry",
              "haclusterd.cib.commands", "haclusterd.cib.apply", "haclusterd.formats.crm.parser")  # fmt: skip
    assert needed in modules
    assert [name for name in modules if name in others] == []


def test_no_daemon() -> None:
    result = crm("status", HACLUSTERD_SOCKET="/nowhere/control.sock")
    assert result.returncode == 69
    assert "/nowhere/control.sock" in result.stderr


def test_the_option_wins_over_the_environment() -> None:
    result = crm("--socket", "/other", "status", HACLUSTERD_SOCKET="/nowhere/control.sock")
    assert "/other" in result.stderr


def test_a_state_file_is_changed_in_place(tmp_path: Path) -> None:
    state = tmp_path / "state.cib"
    state.write_bytes(encode_cib(running().cib))
    state.chmod(0o640)
    result = crm("configure", "property", "node-timeout=3s", CIB_file=str(state))
    assert (result.returncode, result.stderr) == (0, "INFO: committed property node-timeout=3s\n")
    assert decode_cib(state.read_bytes()).version.epoch == 8
    assert state.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["state.cib"]


@pytest.mark.parametrize(("content", "status"), [(None, 66), (b"not a state", 65)])
def test_a_state_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, status: int) -> None:
    state = tmp_path / "state.cib"
    if content is not None:
        state.write_bytes(content)
    result = crm("--cib-file", str(state), "status")
    assert result.returncode == status
    assert "state.cib" in result.stderr


def test_the_whole_state_as_a_file(tmp_path: Path) -> None:
    state, copy = tmp_path / "state.cib", tmp_path / "copy.cib"
    state.write_bytes(encode_cib(running().cib))
    assert crm("--cib-file", str(state), "cluster", "export", str(copy)).returncode == 0
    assert copy.read_bytes() == state.read_bytes()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert crm("--cib-file", str(state), "cluster", "export", str(copy)).returncode == 74


def test_a_script_on_the_standard_input(tmp_path: Path) -> None:
    state = tmp_path / "state.cib"
    state.write_bytes(encode_cib(running().cib))
    result = crm("configure", stdin="property node-timeout=3s\ndelete db-likes-n2\n", CIB_file=str(state))
    assert result.stdout.splitlines()[-1] == "version 7 -> 8"


def test_completion_from_a_state_file(tmp_path: Path) -> None:
    state = tmp_path / "state.cib"
    state.write_bytes(encode_cib(running().cib))
    assert crm("--complete", "--cib-file", str(state), "resource", "move", "").stdout.split() == [
        "address", "db", "power", "site", "web"
    ]  # fmt: skip


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    state = tmp_path / "state.cib"
    state.write_bytes(encode_cib(running().cib))
    crm_status = f"{sys.executable} -m haclusterd.entry_points.crm --cib-file {state} status"
    command = f"{crm_status} | true; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60, cwd=Path(__file__).parents[3]
    )
    assert (result.stdout, result.stderr) == ("0\n", "")


def test_setting_up_a_cluster(tmp_path: Path) -> None:
    nodes = [word for n in (1, 2, 3) for word in ("--node", f"n{n}=10.0.0.{n}:7400")]
    result = crm("cluster", "setup", "--name", "web", *nodes, "--output", str(tmp_path / "web"))
    assert (result.returncode, result.stderr) == (0, "")
    assert {path.name for path in (tmp_path / "web").iterdir()} == {"authority", "n1", "n2", "n3"}
    again = crm("cluster", "setup", "--name", "web", *nodes, "--output", str(tmp_path / "web"))
    assert again.returncode == 107
    assert "not empty" in again.stderr


def test_everything_wrong_with_a_set_up_is_reported_at_once(tmp_path: Path) -> None:
    result = crm("cluster", "setup", "--node", "n1", "--node", "n 2=h:1", "--node", "n3=h:99999", "--node", "a=h:1",
                 "--node", "a=h:1", "--output", str(tmp_path / "x"))  # fmt: skip
    assert result.returncode == 2
    assert [line.partition(" (")[0] for line in result.stderr.splitlines()] == [
        "ERROR: --node n1: the address is missing",
        "ERROR: --node n 2=h:1: 'n 2' cannot be a node's name",
        "ERROR: --node n3=h:99999: 'h:99999' is no HOST:PORT",
        "ERROR: --node a=h:1: it is named twice",
        "ERROR: --node a=h:1: the address is taken",
        "ERROR: cluster setup: --name is missing: it is needed",
    ]
    assert not (tmp_path / "x").exists()
