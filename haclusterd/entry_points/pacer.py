"""`haclusterd-pacer`: take the turn that a pacer has, then load and run it (pacer_process.py).

Stdlib only, and as little of it as possible: what is imported here is imported at ordinary priority.
"""

import sys

from haclusterd.adapters.machine.real_time import PACER_PRIORITY, run_first


def main(arguments: list[str] | None = None) -> int:
    """Run the pacer; return the exit code (pacer_process.py)."""
    # To load the rest costs 0.2 s of processor time. At ordinary priority that is seconds on a busy machine, and the
    # node of a pacer that is started again is declared lost meanwhile. Where it is refused, the pacer says so later.
    run_first(PACER_PRIORITY)
    from haclusterd.entry_points.pacer_process import main as run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
