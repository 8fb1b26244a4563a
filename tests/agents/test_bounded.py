"""Programs and calls with a deadline that holds whatever they do."""

import os
import time
from pathlib import Path

import pytest

from haclusterd.agents.bounded import TimedOutError, call_in_child, run_program
from haclusterd.agents.ocf import ActionError, NodeError
from haclusterd.agents.process_table import list_pids, read_arguments, read_stat


def test_a_program_is_given_what_it_reads_and_says_how_it_ended() -> None:
    done = run_program(["sh", "-c", "cat; echo oh no >&2; exit 3"], 10, given="hello")
    assert (done.status, done.output, done.errors, done.last_words) == (3, "hello", "oh no\n", "oh no")
    assert run_program(["sh", "-c", "kill -9 $$"], 10).status == 137


def test_a_program_that_does_not_end_is_killed_with_all_that_it_started() -> None:
    began = time.monotonic()
    with pytest.raises(TimedOutError, match="sh did not end within 0 s"):
        run_program(["sh", "-c", "sleep 1007 & sleep 1007"], 0.4)
    assert time.monotonic() - began < 5
    # A killed process is gone when it has been scheduled once more.
    deadline = time.monotonic() + 10
    while any(read_arguments(pid) == ["sleep", "1007"] for pid in list_pids()):
        assert time.monotonic() < deadline, "a child still runs"


def test_a_program_that_leaves_one_behind_on_its_output_has_ended() -> None:
    began = time.monotonic()
    done = run_program(["sh", "-c", "sleep 5 & echo done"], 10)
    assert (done.output, time.monotonic() - began < 4) == ("done\n", True)


def test_a_missing_program_is_this_nodes_problem() -> None:
    with pytest.raises(NodeError, match="program 'no-such-program' is not installed"):
        run_program(["no-such-program"], 1)


def test_a_call_says_what_it_found_or_why_it_failed(tmp_path: Path) -> None:
    record = str(tmp_path / "hangs")
    assert call_in_child(lambda: "fine", 10, record) == "fine"
    with pytest.raises(ActionError, match="/no/such/file: No such file or directory"):
        call_in_child(lambda: str(os.stat("/no/such/file")), 10, record)


def test_a_call_that_hangs_is_given_up_and_not_made_again_while_it_hangs(tmp_path: Path) -> None:
    record = tmp_path / "hangs"
    with pytest.raises(TimedOutError, match="no answer within 0 s"):
        call_in_child(lambda: str(time.sleep(100)), 0.2, str(record))
    assert not record.exists()  # It could be killed.
    own = read_stat(os.getpid())
    record.write_text(f"{own.pid} {own.start_time}\n")
    with pytest.raises(TimedOutError, match=f"has not answered process {own.pid} since"):
        call_in_child(lambda: "fine", 10, str(record))
    record.write_text(f"{own.pid} {own.start_time + 1}\n")
    assert call_in_child(lambda: "fine", 10, str(record)) == "fine"
