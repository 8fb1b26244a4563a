"""`python -m haclusterd.simulator`: swarms of seeds of the whole daemon, and the replay of one; see `command_line`."""

import sys

from haclusterd.simulator import swarm
from haclusterd.simulator.command_line import main

if __name__ == "__main__":
    sys.exit(main(swarm.run, module="haclusterd.simulator", safety_ms=swarm.SAFETY_PHASE_MS))
