"""The pacer and the daemon take their turn before ordinary processes before they load what takes time."""

import os
import resource
import subprocess
import sys

import pytest

WATCH = """
import os, sys
from haclusterd.entry_points.{thin} import main

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "haclusterd.entry_points.{whole}":
            print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, flush=True)

sys.meta_path.insert(0, Finder())
main({arguments})
"""


@pytest.mark.parametrize(
    ("thin", "whole", "arguments", "expected"),
    [
        ("pacer", "pacer_process", ["--check"], os.SCHED_RR),
        ("haclusterd", "daemon", ["--configuration", "/nonexistent"], os.SCHED_RR),
        ("haclusterd", "daemon", ["--check", "--configuration", "/nonexistent"], os.SCHED_OTHER),
    ],
)
def test_the_turn_is_taken_before_the_program_is_loaded(
    thin: str, whole: str, arguments: list[str], expected: int
) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
    if os.geteuid() != 0 and soft == 0:
        pytest.skip("real time is root's")
    program = WATCH.format(thin=thin, whole=whole, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.stdout.split() == [str(expected)], done.stderr
