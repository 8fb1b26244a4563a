"""A short sample of `make kill-loop`, and of what its judge refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kill_loop.record import Records, judge

ROOT = Path(__file__).parents[2]
SECONDS = 20


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(SECONDS + 200)
def test_kills_pauses_and_a_full_disk_lose_and_double_nothing() -> None:
    command = [sys.executable, "-m", "tests.kill_loop", "--seconds", str(SECONDS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = dict(word.split("=") for word in done.stdout.splitlines()[-1].removeprefix("RESULT ").split())
    assert (figures["lost"], figures["duplicated"], figures["digests"]) == ("0", "0", "equal")
    assert int(figures["kills"]) > 5
    assert int(figures["acknowledged"]) > 100


LINES = (
    ["ask", "n1.1.1", "append", 10, "n1.1.1", ""],
    ["answer", "n1.1.1", 20, True, ""],
    ["ask", "n2.1.1", "append", 30, "n2.1.1", ""],
    ["ask", "n1.1.2", "look", 40, "?", ""],
    ["answer", "n1.1.2", 50, True, "1"],
    ["ask", "n1.1.3", "swap", 60, "x", ""],
    ["answer", "n1.1.3", 70, True, "x"],
    ["ask", "n2.1.2", "read", 80, "?", ""],
    ["answer", "n2.1.2", 90, True, "x"],
    ["digest", 50, "aa"],
)


def records(tmp_path: Path, *lines: list[object]) -> Records:
    file = tmp_path / "record"
    file.write_text("".join(json.dumps(line) + "\n" for line in (*LINES, *lines)) + '["ask", "torn')
    return Records.read([file])


def test_a_good_run_has_no_problems(tmp_path: Path) -> None:
    judgement = judge(records(tmp_path), ["n1.1.1", "n2.1.1"])
    assert judgement.problems == []
    assert (judgement.asked, judgement.acknowledged, judgement.is_equal) == (5, 4, True)


@pytest.mark.parametrize(
    ("words", "more", "problem"),
    [
        (["n2.1.1"], [], "acknowledged words lost: n1.1.1"),
        (["n1.1.1", "n1.1.1"], [], "words twice: n1.1.1"),
        (["n1.1.1", "rubbish"], [], "words nobody asked for: rubbish"),
        (["n2.1.1", "n1.1.1"], [], "words overtook what was acknowledged before: n2.1.1"),
        (["n1.1.1"], [["ask", "a", "look", 100, "?", ""], ["answer", "a", 110, True, "0"]], "looks at the list"),
        (["n1.1.1"], [["ask", "a", "look", 100, "?", ""], ["answer", "a", 110, True, "2"]], "looks at the list"),
        (["n1.1.1"], [["ask", "a", "read", 100, "?", ""], ["answer", "a", 110, True, "y"]], "answers of the register"),
        (["n1.1.1"], [["digest", 50, "bb"]], "indices with different states: 50"),
    ],
)  # fmt: skip
def test_each_violation_is_named(tmp_path: Path, words: list[str], more: list[list[object]], problem: str) -> None:
    problems = judge(records(tmp_path, *more), words).problems
    assert any(problem in each for each in problems), problems
