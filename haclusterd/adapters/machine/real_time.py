"""Keeping the pacer and the daemon on time: memory in RAM, a turn before others'.

Both need a privilege or a limit that the unit gives; without them the process runs all the same. Stdlib only: the pacer
imports this.

Every thread of the daemon takes its turn first: one that does not, and has the interpreter when a busy machine takes
the CPU from it, holds up those that do. A higher niceness would not help: it counts only within a session or a control
group, which the daemon has in common with its own agents.
"""

import os
import resource

MCL_CURRENT = 1
MCL_FUTURE = 2
LOWEST_PRIORITY = 1
"""Of the real-time class: before every ordinary process, after every other real-time one. For threads that help."""
LOOP_PRIORITY = 2
"""For the main loop and the Raft thread: before helpers, whose longest work takes seconds."""
PACER_PRIORITY = 3
"""Before the daemon."""


def lock_memory() -> str | None:
    """Keep this process's memory from being paged out (mlockall(2)); return why that is not possible, or None.

    What is mapped later is locked too only where no limit could make such a mapping fail.
    """
    import ctypes

    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    is_unlimited = soft == resource.RLIM_INFINITY or os.geteuid() == 0
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(MCL_CURRENT | MCL_FUTURE if is_unlimited else MCL_CURRENT) == 0:
        return None
    return os.strerror(ctypes.get_errno())


def run_first(priority: int = LOWEST_PRIORITY) -> str | None:
    """Take the SCHED_RR class (sched(7)) for the calling thread, not for threads and processes that it starts.

    Return why that is not possible, or None.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    except OSError as error:
        return os.strerror(error.errno or 0)
    return None
