"""`haclusterd`: take the turn that a daemon has, then load and run it (daemon.py).

As little as possible is imported here: it is imported at ordinary priority.
"""

import gc
import sys

from haclusterd.adapters.machine.real_time import LOOP_PRIORITY, run_first

ONLY_LOOKS = frozenset({"--check", "--initialize", "--help", "-h"})


def main(arguments: list[str] | None = None) -> int:
    """Run the daemon; return the exit code (daemon.py)."""
    # To load the rest costs half a second of processor time. At ordinary priority that is seconds on a busy machine: a
    # node whose pacer was ended too, which knows its peers from the daemon only, is declared lost meanwhile.
    if not ONLY_LOOKS & {*(sys.argv[1:] if arguments is None else arguments)}:
        run_first(LOOP_PRIORITY)
    # Modules stay: to look for garbage among them would be a quarter of the time that it takes to load them.
    gc.disable()
    from haclusterd.entry_points.daemon import main as run

    gc.freeze()
    gc.enable()
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
