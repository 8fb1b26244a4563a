"""Keeps the pacer and the daemon on time: memory in RAM, and precedence over ordinary processes.

Both need a privilege or a limit that the unit gives; without them the process runs all the same. Stdlib only: the pacer
imports this.

Every thread of the daemon has the precedence: one without it that has the interpreter lock when a busy machine takes
the CPU from it would delay the others. A better niceness would not help: it counts only within a session or a control
group, which the daemon shares with its own agents.
"""

import os
import resource

MCL_CURRENT = 1
MCL_FUTURE = 2
LOWEST_PRIORITY = 1
"""In the real-time class: above every ordinary process, below every other real-time one. For helper threads."""
LOOP_PRIORITY = 2
"""For the main loop and the Raft thread: above helpers, whose longest work takes seconds."""
PACER_PRIORITY = 3
"""Above the daemon; for the pacer."""


def lock_memory() -> str | None:
    """Keep this process's memory from being paged out (mlockall(2)); return why that is not possible, or None.

    Later mappings are locked too only if no limit could make such a mapping fail.
    """
    import ctypes

    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    is_unlimited = soft == resource.RLIM_INFINITY or os.geteuid() == 0
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(MCL_CURRENT | MCL_FUTURE if is_unlimited else MCL_CURRENT) == 0:
        return None
    return os.strerror(ctypes.get_errno())


def run_first(priority: int = LOWEST_PRIORITY) -> str | None:
    """Set the SCHED_RR class (sched(7)) for the calling thread, not for threads and processes that it starts.

    Return why that is not possible, or None.
    """
    return _run_first(0, priority)


def runs_first() -> bool:
    """Return whether the calling thread has the class that `run_first` sets."""
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR


def let_run_first(child: int) -> bool:
    """Set it for a child of this process, as for a helper thread; return whether that was possible."""
    return _run_first(child, LOWEST_PRIORITY) is None


def let_run_ordinarily(child: int) -> None:
    """Take it from a child that is not reaped."""
    os.sched_setscheduler(child, os.SCHED_OTHER, os.sched_param(0))


def _run_first(process: int, priority: int) -> str | None:
    try:
        os.sched_setscheduler(process, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    except OSError as error:
        return os.strerror(error.errno or 0)
    return None
