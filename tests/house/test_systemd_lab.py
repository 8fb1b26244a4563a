"""The lab's rows for machines with systemd: all there, and never good where they cannot be played."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import packages_rows, systemd_bad_units
from tests.lab.systemd_rows import ROWS, Asked, Played, is_good, result

CHECKOUT = Path(__file__).parents[2]
PROMISED = (
    "stop-pacer-brain", "stop-brain-pacer", "stop-all", "stop-pacer", "stop-brain", "restart-all", "kill-brain",
    "kill-pacer", "upgrade", "power-cut-in-upgrade", "full-disk", "real-time-forbidden", "no-pacer", "emptied-run",
    "empty-state", "broken-reload", "network-mount", "unit-resource", "unit-shutdown", "packages",
    "packages-removed", "packages-rpm", "unit-bad",
)  # fmt: skip


def test_every_act_that_is_promised_to_be_harmless_has_its_row() -> None:
    names = [row.name for row in (*ROWS, *systemd_bad_units.ROWS, *packages_rows.ROWS)]
    assert len(set(names)) == len(names)
    assert {f"systemd-{name}" for name in PROMISED} <= set(names)


def test_nothing_is_asked_for_by_default() -> None:
    assert Asked() == Asked(may_be_fenced=(), outage_ms=500, restarts=0)


@pytest.mark.parametrize("what", ["problems", "unasked", "loops", "double_holders"])
def test_one_finding_is_enough(what: str) -> None:
    good, bad = Played(ROWS[0]), Played(ROWS[1], **{what: ["n1"]})
    assert is_good([good])
    assert not is_good([good, bad])
    assert "rows=2" in result([good, bad], 0)
    assert "unexpected=3" in result([good], 3)


def test_where_a_tool_is_missing_it_says_so_and_is_no_success(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.lab", "--only", "systemd-*"]
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 77
    assert done.stdout.startswith("RESULT skipped=1 reason=")
