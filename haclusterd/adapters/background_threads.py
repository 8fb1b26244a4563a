"""`Background` over a few threads: the interpreter lets the main loop and the Raft thread run in between."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from haclusterd.adapters.collector import FULL_COLLECTIONS
from haclusterd.adapters.ready_threads import ready_pool

T = TypeVar("T")

THREADS = 4


class BackgroundThreads:
    """See the module."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool = ready_pool(THREADS, "background")

    def run(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """See `Background.run`."""

        def finished(future: "Future[T]") -> None:
            with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
                # What `work` raised is raised there, where it ends the process.
                self._loop.call_soon_threadsafe(lambda: done(future.result()))

        self._pool.submit(_without_full_collections, work).add_done_callback(finished)

    def stop(self) -> None:
        """Wait for nothing."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _without_full_collections(work: Callable[[], T]) -> T:
    with FULL_COLLECTIONS.avoided():
        return work()
