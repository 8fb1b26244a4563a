"""A thread that runs first does so alone: what it starts has its turn like others."""

import json
import os
import subprocess
import sys

import pytest

FIRST_AND_BESIDE = """
import json, os, subprocess, sys, threading
from haclusterd.adapters.machine.real_time import run_first
assert run_first() is None
seen = [os.sched_getscheduler(0) == os.SCHED_RR | os.SCHED_RESET_ON_FORK]
beside = threading.Thread(target=lambda: seen.append(os.sched_getscheduler(0)))
beside.start()
beside.join()
policy = "import os; print(os.sched_getscheduler(0))"
seen.append(int(subprocess.run([sys.executable, "-c", policy], check=True, capture_output=True).stdout))
print(json.dumps(seen))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a turn before others is root's to give")
def test_threads_and_processes_that_it_starts_do_not_run_first() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_AND_BESIDE], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == [True, os.SCHED_OTHER, os.SCHED_OTHER]
