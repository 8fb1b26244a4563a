"""`Background` over a few threads, for short work whose result is an object of this process, and over forked images.

The interpreter lets the main loop and the Raft thread run between the steps of such a thread; it takes its turn first
like every thread of the daemon (`real_time`), so nothing may run here that is not known to end soon.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from haclusterd.adapters.collector import FULL_COLLECTIONS
from haclusterd.adapters.forked_work import ForkedWork
from haclusterd.adapters.ready_threads import ready_pool
from haclusterd.ports.background import WorkFailed

T = TypeVar("T")

THREADS = 4


class BackgroundThreads:
    """See the module."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool = ready_pool(THREADS, "background")
        self._forked = ForkedWork(loop)

    def run(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """See `Background.run`."""

        def finished(future: "Future[T]") -> None:
            with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
                # What `work` raised is raised there, where it ends the process.
                self._loop.call_soon_threadsafe(lambda: done(future.result()))

        self._pool.submit(_without_full_collections, work).add_done_callback(finished)

    def apart(
        self, work: Callable[[], bytes], done: Callable[[bytes | WorkFailed], None], whose: str = ""
    ) -> Callable[[], None]:
        """See `Background.apart`."""
        return self._forked.do(work, done, whose)

    def stop(self) -> None:
        """End what can be ended, and wait for nothing."""
        self._forked.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _without_full_collections(work: Callable[[], T]) -> T:
    with FULL_COLLECTIONS.avoided():
        return work()
