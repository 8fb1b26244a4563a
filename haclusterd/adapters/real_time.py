"""Keeping one process on time: its memory in RAM, its turn before others'.

Both need a privilege or a limit that the unit gives; without them the process runs all the same. Stdlib only: the pacer
imports this.
"""

import os
import resource

MCL_CURRENT = 1
MCL_FUTURE = 2
LOWEST_PRIORITY = 1
"""Of the real-time class: before every ordinary process, after every other real-time one."""


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


def run_first() -> str | None:
    """Take the SCHED_RR class (sched(7)), not for children; return why that is not possible, or None."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(LOWEST_PRIORITY))
    except OSError as error:
        return os.strerror(error.errno or 0)
    return None
