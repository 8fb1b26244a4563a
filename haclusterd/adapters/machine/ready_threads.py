"""Threads that are there before they are needed.

A new thread does not run first before it has run at all, and a thread of Python that wants the interpreter is waited
for by the one that has it (CPython, `drop_gil`): on a busy machine a thread that is made for one piece of work stops
the main loop and Raft for as long as the scheduler of the machine likes. `threading.Thread.start()` waits for it too.
"""

import _thread
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue

from haclusterd.adapters.machine.real_time import run_first

Work = Callable[[], None]
_Inbox = SimpleQueue[Work | None]
"""What one thread is to do next; None: end."""


def ready_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """Return a pool, all of whose threads have begun; their names begin with `name`."""
    pool = ThreadPoolExecutor(threads, name, initializer=run_first)
    begun = threading.Barrier(threads + 1)
    for _ in range(threads):
        pool.submit(begun.wait)
    begun.wait()
    return pool


class ReadyThreads:
    """Threads for short work that may also wait for long: another one is made when all are at work.

    No work waits for other work, and nobody waits for these threads, neither now nor when the process ends.
    """

    def __init__(self, kept: int) -> None:
        """`kept`: how many are made now, and how many wait for work at most."""
        self._state = _State(kept)
        weakref.finalize(self, self._state.end)
        begun = threading.Barrier(kept + 1)
        for _ in range(kept):
            _thread.start_new_thread(_live, (self._state, begun.wait))
        begun.wait()

    def do(self, work: Work) -> None:
        """Have a thread do it at once. Raises RuntimeError where a thread is to be made and the machine has none."""
        try:
            inbox = self._state.idle.pop()
        except IndexError:
            _thread.start_new_thread(_live, (self._state, work))
        else:
            inbox.put(work)


class _State:
    """What the threads know of their owner, which they do not keep alive."""

    def __init__(self, kept: int) -> None:
        self.kept = kept
        self.idle: list[_Inbox] = []
        """Of those that wait for work: to append and to pop is one step for all threads."""

    def end(self) -> None:
        """Have all end that wait for work, and the others when they have done theirs."""
        self.kept = 0
        with suppress(IndexError):
            while True:
                self.idle.pop().put(None)


def _live(state: _State, first: Callable[[], object]) -> None:
    run_first()
    inbox: _Inbox = SimpleQueue()
    work: Callable[[], object] | None = first
    while work is not None:
        try:
            work()
        except Exception:  # noqa: BLE001 - shown
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), None)))
        work = None
        if len(state.idle) < state.kept:
            state.idle.append(inbox)
            if not state.kept:  # The owner went in between, and may have missed this one.
                state.end()
            work = inbox.get()
