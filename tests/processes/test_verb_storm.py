"""A short sample of `make verb-storm`.

Elections are left to the long run, on a machine that does nothing else: here other tests share the processors and the
disk with the daemons.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from haclusterd.commands import registry
from tests.verb_storm.requests import LEFT_OUT

ROOT = Path(__file__).parents[2]
SECONDS = 6


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(SECONDS + 200)
def test_whatever_is_asked_no_daemon_stalls_grows_or_ends() -> None:
    command = [sys.executable, "-m", "tests.verb_storm", "--seconds", str(SECONDS), "--clients", "3", "--seed", "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    violations = [line for line in done.stdout.splitlines() if line.startswith("VIOLATION")]
    assert [line for line in violations if not line.endswith(" elections")] == [], done.stdout + done.stderr
    figures = dict(word.split("=") for word in done.stdout.splitlines()[-1].removeprefix("RESULT ").split())
    assert figures["crashed"] == "0"
    assert int(figures["answered"]) > 50
    assert int(figures["refused"]) > 10


def test_only_what_ends_a_member_or_a_leadership_is_left_out() -> None:
    assert set(registry.VERBS) >= LEFT_OUT
