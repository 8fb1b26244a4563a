"""`Background` over a few threads, for short work whose result is an object of this process, and over forked images.

The interpreter lets the main loop and the Raft thread run between the steps of such a thread. The thread has the
priority of the daemon's threads (`real_time`), so only work that is known to be short may run here.

An image that is forked while a thread imports a module hangs if it needs that module too: it inherits the module's
lock, but not the thread that would release it. The daemon imports everything in `load`; until that has ended, no image
is forked while a thread is busy.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from haclusterd.adapters.machine.ready_threads import ready_pool
from haclusterd.adapters.processes.collector import FULL_COLLECTIONS
from haclusterd.adapters.processes.forked_work import ForkedWork
from haclusterd.ports.background import WorkFailed

T = TypeVar("T")

THREADS = 4


class BackgroundThreads:
    """See the module, and the port."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool = ready_pool(THREADS, "background")
        self._forked = ForkedWork(loop, may_fork=lambda: self._has_loaded or not self._at_work)
        self._at_work = 0
        self._has_loaded = False

    def load(self, work: Callable[[], None]) -> None:
        """Run on a thread what imports the last modules that this process needs."""
        self.run(work, self._loaded)

    def run(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """See `Background.run`."""

        def finished(future: "Future[T]") -> None:
            with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
                self._loop.call_soon_threadsafe(self._finished, future, done)

        self._at_work += 1
        self._pool.submit(_without_full_collections, work).add_done_callback(finished)

    def apart(
        self, work: Callable[[], bytes], done: Callable[[bytes | WorkFailed], None], whose: str = ""
    ) -> Callable[[], None]:
        """See `Background.apart`."""
        return self._forked.do(work, done, whose)

    def _finished(self, future: "Future[T]", done: Callable[[T], None]) -> None:
        self._at_work -= 1
        # An exception of `work` is raised here, where it ends the process.
        done(future.result())
        self._forked.begin()

    def _loaded(self, _: None) -> None:
        self._has_loaded = True

    def stop(self) -> None:
        """End what can be ended, without waiting."""
        self._forked.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _without_full_collections(work: Callable[[], T]) -> T:
    with FULL_COLLECTIONS.avoided():
        return work()
