"""What a daemon loads before it can vote: not what it needs only to answer questions."""

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
