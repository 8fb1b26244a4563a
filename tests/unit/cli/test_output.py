"""The standard streams of `crm`: full, closed, and read by nobody."""

import subprocess
import sys
from pathlib import Path

import pytest

from haclusterd.cib.codec import encode_cib
from tests.administered_clusters import running


def shell(line: str, state: Path) -> "subprocess.CompletedProcess[str]":
    """Run a line of bash, in which `crm` asks a state file."""
    crm_here = f'crm() {{ {sys.executable} -m haclusterd.entry_points.crm --cib-file {state} "$@"; }}; '
    return subprocess.run(["/bin/bash", "-c", crm_here + line], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", ["status", "-o json status", "configure show", "help", "--version"])
def test_an_answer_that_cannot_be_written_is_an_error(tmp_path: Path, words: str) -> None:
    state = tmp_path / "state.cib"
    state.write_bytes(encode_cib(running().cib))
    result = shell(f"crm {words} > /dev/full", state)
    assert result.returncode == 74, result.stderr
    assert result.stderr == "ERROR: the standard output cannot be written: No space left on device\n"


def test_where_the_answer_cannot_be_written_the_error_says_that_the_change_was_made(tmp_path: Path) -> None:
    state = tmp_path / "state.cib"
    state.write_bytes(encode_cib(running().cib))
    result = shell("crm configure property node-timeout=3s > /dev/full", state)
    assert result.returncode == 74, result.stderr
    assert "(the change that was asked for has been made: crm history config)" in result.stderr
    assert "node-timeout=3s" in shell("crm configure show", state).stdout


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("crm status 2> /dev/full", 0),
        ("crm status nonsense 2> /dev/full", 64),
        ("crm configure property node-timeout=3s 2> /dev/full", 0),
        ("crm status 2>&-", 0),
        ("crm status >&-", 0),
        ("crm configure show nope >&- 2>&-", 105),
        ("crm status <&-", 0),
    ],
)
def test_messages_that_nobody_gets_and_streams_that_are_closed_change_no_status(
    tmp_path: Path, line: str, status: int
) -> None:
    state = tmp_path / "state.cib"
    state.write_bytes(encode_cib(running().cib))
    result = shell(line, state)
    assert result.returncode == status, result.stderr
    assert "Traceback" not in result.stderr
