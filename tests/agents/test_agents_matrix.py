"""The matrix of agents x actions: what it is made of, and that it says so where it cannot be played."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents_matrix.__main__ import Line, _result, obstacle, tried
from tests.agents_matrix.cases import CASES, Case

CHECKOUT = Path(__file__).parents[2]


def test_every_shipped_agent_and_many_stock_agents_are_in_it() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    shipped = {each.name for each in (CHECKOUT / "resource_agents").iterdir() if not each.suffix} - {"fence_local"}
    assert {case.agent.partition(":")[2] for case in CASES if case.agent.startswith("haclusterd:")} == shipped
    assert sum(not case.agent.startswith("haclusterd:") for case in CASES) > 40


def test_what_cannot_be_run_says_why() -> None:
    assert obstacle(Case("haclusterd:dummy")) == ""
    assert obstacle(Case("haclusterd:no-such")) == "the agent is not installed"
    assert obstacle(Case("haclusterd:dummy", programs=("no-such-program",))) == "missing: no-such-program"
    assert obstacle(Case("haclusterd:dummy", why_not="it is alone")) == "it is alone"


def test_only_findings_on_own_agents_are_failures(capsys: pytest.CaptureFixture[str]) -> None:
    good, foreign = Line(Case("haclusterd:dummy")), Line(Case("heartbeat:Dummy"), finding="start: 1, not 0")
    left_out = Line(Case("heartbeat:Xen"), why_not="the agent is not installed")
    assert _result([good, foreign, left_out]) == 0
    expected = "RESULT agents=3 ran=2 unmodified=1 with_findings=1 not_run=1 actions=0 own_failed=0\n"
    assert capsys.readouterr().out == expected
    assert _result([good, Line(Case("haclusterd:exec"), finding="start: 1, not 0")]) == 1
    assert _result([left_out]) == 1


def test_without_its_tools_it_says_so_and_is_no_success(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.agents_matrix"], cwd=CHECKOUT, env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.startswith("RESULT skipped=1 reason=")) == (77, True)


@pytest.mark.slow
def test_trials_are_counted(tmp_path: Path) -> None:
    counts, found, why_not = tried(Case("haclusterd:dummy", lambda here: {"state": f"{here}/state"}), tmp_path)
    assert (counts["failed"], found, why_not) == (0, [], "")
    assert counts["passed"] > 10
