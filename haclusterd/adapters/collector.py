"""Python's garbage collector, kept from going through everything while something large is being built.

A full collection looks at every container that was made since the last `gc.freeze`, in one go, and stops all threads
meanwhile; while thousands of resources are read it would come again and again. What is built here are values without
cycles: they go when nobody refers to them, and the collector has nothing to find in them. Young objects are collected
as always.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NEVER = 1_000_000
"""Collections of the middle generation between two full ones."""


class FullCollections:
    """How often the collector goes through everything; may be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._builders = 0
        self._usual = 0
        """Collections of the middle generation between two full ones, when nobody builds anything."""

    def begin_building(self) -> None:
        """Have none until as many `end_building` as `begin_building` were called."""
        with self._lock:
            self._builders += 1
            if self._builders == 1:
                young, middle, self._usual = gc.get_threshold()
                gc.set_threshold(young, middle, _NEVER)

    def end_building(self, *, is_kept: bool) -> None:
        """Allow them again. `is_kept`: what was built stays, so no later one need look at it."""
        with self._lock:
            if is_kept:
                gc.freeze()
            self._builders -= 1
            if self._builders == 0:
                young, middle, _ = gc.get_threshold()
                gc.set_threshold(young, middle, self._usual)

    @contextmanager
    def avoided(self) -> Iterator[None]:
        """Have none while something is built that does not stay."""
        self.begin_building()
        try:
            yield
        finally:
            self.end_building(is_kept=False)


FULL_COLLECTIONS = FullCollections()
"""Of this process."""
