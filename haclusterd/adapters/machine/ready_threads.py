"""Threads that exist before they are needed.

A new thread has no priority before it has run for the first time, and the thread that has Python's interpreter lock
waits for one that wants it (CPython, `drop_gil`): on a busy machine, a thread that is made for one piece of work stops
the main loop and Raft until the machine's scheduler lets it run. `threading.Thread.start()` waits for it too.
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
"""The next work of a thread; None: end."""


def ready_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """Return a pool whose threads have all started; their names begin with `name`."""
    pool = ThreadPoolExecutor(threads, name, initializer=run_first)
    begun = threading.Barrier(threads + 1)
    for _ in range(threads):
        pool.submit(begun.wait)
    begun.wait()
    return pool


class ReadyThreads:
    """Threads for short work that may sometimes wait long: another one is made when all are busy.

    No work waits for other work, and nobody waits for these threads, neither now nor when the process ends.
    """

    def __init__(self, kept: int) -> None:
        """`kept`: how many are made now, and how many idle ones are kept at most."""
        self._state = _State(kept)
        weakref.finalize(self, self._state.end)
        begun = threading.Barrier(kept + 1)
        for _ in range(kept):
            _thread.start_new_thread(_live, (self._state, begun.wait))
        begun.wait()

    def do(self, work: Work) -> None:
        """Have a thread do it at once. Raises RuntimeError if a thread must be made and the machine has none."""
        try:
            inbox = self._state.idle.pop()
        except IndexError:
            _thread.start_new_thread(_live, (self._state, work))
        else:
            inbox.put(work)


class _State:
    """The shared state of the threads, which does not keep their owner alive."""

    def __init__(self, kept: int) -> None:
        self.kept = kept
        self.idle: list[_Inbox] = []
        """Idle threads: append and pop are atomic."""

    def end(self) -> None:
        """End the idle threads, and the others after their work."""
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
        except Exception:  # noqa: BLE001 (as a thread of its own would: the hook gets it)
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), None)))
        work = None
        if len(state.idle) < state.kept:
            state.idle.append(inbox)
            if not state.kept:  # The owner went in between, and may have missed this one.
                state.end()
            work = inbox.get()
