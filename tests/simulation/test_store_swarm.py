"""Random faults against the store alone: nothing acknowledged is lost, and all states become equal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.store_swarm import run

SEEDS = range(int(os.environ.get("STORE_SEEDS", "16")))
"""Every fourth with lost, late, repeated and reordered frames; seeds 6 and 14 with five voters."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_acknowledged_is_lost_in_a_storm(seed: int) -> None:
    outcome = run(seed)
    assert not outcome.problem, (outcome.problem, outcome.faults)
    counts = dict(outcome.counts)
    assert counts["acknowledged"] > 50 or counts["recognised"], "with a voter less the members may be too few"


def test_a_seed_is_the_same_history_in_every_process() -> None:
    program = "from tests.simulation.store_swarm import run; print(run(7, safety_ms=20_000).trace)"
    root = Path(__file__).parents[2]
    traces = {run(7, safety_ms=20_000).trace}
    for hash_seed in ("1", "2"):
        result = subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        )
        traces.add(result.stdout.strip())
    assert len(traces) == 1
