"""What a daemon loads before it can vote: not what it needs only to answer questions, and without a search for garbage.
"""

import subprocess
import sys

PROGRAM = """
import sys
import haclusterd.entry_points.daemon
from haclusterd.commands.planning.planning import load_scheduler
print("haclusterd.scheduler.schedule" in sys.modules)
load_scheduler()
print("haclusterd.scheduler.schedule" in sys.modules)
"""


def test_the_scheduler_is_loaded_after_the_start() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "True"]


COLLECTIONS = """
import gc
from haclusterd.entry_points.haclusterd import main
main(["--check", "--configuration", "/nonexistent"])
print(gc.isenabled(), gc.get_stats()[2]["collections"])
"""


def test_no_garbage_is_looked_for_in_what_is_loaded() -> None:
    found = subprocess.run([sys.executable, "-c", COLLECTIONS], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "0"], "the collector works afterwards, and has not gone through the modules"
