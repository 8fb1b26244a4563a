"""A program that is to be executed instead of the running one answers in time, or is refused by name."""

import os
import resource
import selectors
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.pacer.reload_check import TIMEOUT_MS, ReloadCheck
from haclusterd.model.instants import Instant


class Bench:
    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.answers: list[str] = []
        self.check = ReloadCheck(self.selector, self.answers.append)

    def loop_once(self) -> None:
        for key, _ in self.selector.select(10):
            key.data()


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.selector.close()


@pytest.mark.parametrize(
    ("program", "objection"),
    [
        ("pass", ""),
        ("raise SystemExit(3)", "the one that is installed now ends with 3"),
        ("import os; os.abort()", "the one that is installed now is ended by signal 6"),
    ],
)
def test_what_answers_is_believed(bench: Bench, program: str, objection: str) -> None:
    bench.check.ask([sys.executable, "-c", program], Instant(0))
    bench.loop_once()
    bench.check.step(Instant(TIMEOUT_MS))
    assert bench.answers == [objection]


def test_what_cannot_be_executed_is_refused(bench: Bench, tmp_path: Path) -> None:
    bench.check.ask([str(tmp_path / "none")], Instant(0))
    bench.loop_once()
    assert len(bench.answers) == 1
    assert "No such file or directory" in bench.answers[0]


def test_what_does_not_answer_is_killed_and_refused_and_the_next_one_is_asked(bench: Bench, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    hangs = [sys.executable, "-c", f"import os, time; open('{begun}', 'w').write(str(os.getpid())); time.sleep(600)"]
    bench.check.ask(hangs, Instant(1_000))
    bench.check.ask(hangs, Instant(2_000))
    end = time.monotonic() + 30
    while not (begun.exists() and begun.read_text()):
        assert time.monotonic() < end
    bench.check.step(Instant(1_000 + TIMEOUT_MS - 1))
    assert bench.answers == []
    bench.check.step(Instant(1_000 + TIMEOUT_MS))
    bench.check.step(Instant(1_000 + 2 * TIMEOUT_MS))
    assert bench.answers == [f"{' '.join(hangs)} did not answer within 60 s"]
    bench.loop_once()
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)
    assert len(bench.answers) == 1
    bench.check.ask([sys.executable, "-c", "pass"], Instant(0))
    bench.loop_once()
    assert bench.answers[1:] == [""]


def test_an_exec_that_is_stuck_delays_nothing_but_the_answer(bench: Bench, tmp_path: Path, hold_exec) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    release = hold_exec(program)
    bench.check.ask([str(program)], Instant(0))
    assert bench.answers == []
    bench.check.step(Instant(TIMEOUT_MS))
    assert bench.answers == [f"{program} did not answer within 60 s"]
    release()
    bench.loop_once()
    bench.check.ask([str(program)], Instant(TIMEOUT_MS))
    bench.loop_once()
    assert bench.answers[1:] == [""]


def test_a_child_of_which_no_descriptor_can_be_had_is_killed_and_reaped(bench: Bench) -> None:
    used = os.listdir("/proc/self/fd")
    lowest = os.pipe()
    for each in lowest:
        os.close(each)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(lowest) + 1, hard))  # Two are left, for the pipe.
    try:
        bench.check.ask([sys.executable, "-c", "import time; time.sleep(600)"], Instant(0))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(bench.answers) == 1
    assert "Too many open files" in bench.answers[0]
    [child] = bench.check._killed
    end = time.monotonic() + 30
    while bench.check._killed:
        assert time.monotonic() < end
        bench.check.step(Instant(0))
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    bench.check.ask([sys.executable, "-c", "pass"], Instant(0))
    bench.loop_once()
    assert bench.answers[1:] == [""]
    assert os.listdir("/proc/self/fd") == used
