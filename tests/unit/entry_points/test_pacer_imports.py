"""The pacer stays small: what it imports is the standard library, without asyncio and without threads."""

import json
import os
import resource
import subprocess
import sys

import pytest

FORBIDDEN = {"asyncio", "threading", "concurrent", "msgpack", "pysyncobj", "psutil", "yaml", "aiohttp", "cryptography"}
LIST = "import json, sys, haclusterd.entry_points.pacer_process; print(json.dumps(sorted(sys.modules)))"


def test_importing_the_pacer_imports_the_standard_library_only() -> None:
    done = subprocess.run([sys.executable, "-c", LIST], check=True, capture_output=True, text=True)
    rooms = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert not rooms & FORBIDDEN
    foreign = rooms - set(sys.stdlib_module_names) - {"haclusterd", "__main__"}
    assert {name for name in foreign if not name.startswith(("_", "sitecustomize"))} == set()


def test_only_the_rooms_it_needs_are_entered() -> None:
    done = subprocess.run([sys.executable, "-c", LIST], check=True, capture_output=True, text=True)
    rooms = {name.split(".")[1] for name in json.loads(done.stdout) if name.startswith("haclusterd.")}
    assert rooms == {"adapters", "entry_points", "machines", "model", "protocol", "wire"}

WATCH = """
import os, sys
from haclusterd.entry_points.pacer import main

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "haclusterd.entry_points.pacer_process":
            print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, flush=True)

sys.meta_path.insert(0, Finder())
main(["--check"])
"""


def test_it_takes_its_turn_before_it_loads_what_takes_time() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
    if os.geteuid() != 0 and soft == 0:
        pytest.skip("real time is root's")
    done = subprocess.run([sys.executable, "-c", WATCH], check=True, capture_output=True, text=True)
    assert done.stdout.split() == [str(os.SCHED_RR)]
