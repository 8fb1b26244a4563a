"""A sample of `make fuzz-decoders`, in a process of its own: its times and its memory are the decoders' alone."""

import re
import subprocess
import sys
from pathlib import Path

from tests.fuzzing.decoders import decoders

REPOSITORY = Path(__file__).parents[2]


def test_damaged_input_is_read_or_refused_by_its_one_error() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.fuzzing.decoders", "--seconds", "10", "--seed", "7"],
        capture_output=True, text=True, timeout=120, check=False, cwd=REPOSITORY,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    inputs = {name: int(count) for name, count in re.findall(r"^ +(\S+) +(\d+) inputs", run.stdout, re.MULTILINE)}
    assert set(inputs) == {each.name for each in decoders()}
    assert min(inputs.values()) > 20
