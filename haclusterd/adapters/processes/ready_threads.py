"""Pools whose threads are there before they are needed.

A thread of Python that starts another waits until that one runs, which on a busy machine takes as long as the scheduler
likes: the new one does not run first before it has run at all.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

from haclusterd.adapters.machine.real_time import run_first


def ready_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """Return a pool, all of whose threads have begun; their names begin with `name`."""
    pool = ThreadPoolExecutor(threads, name, initializer=run_first)
    begun = threading.Barrier(threads + 1)
    for _ in range(threads):
        pool.submit(begun.wait)
    begun.wait()
    return pool
