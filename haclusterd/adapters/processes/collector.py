"""Python's garbage collector, kept from scanning very many objects at once.

A collection stops all threads, and one of the oldest generation scans every container made since the last `gc.freeze`.
While thousands of resources are read it would happen again and again; or, if as much is dropped as is made, the
youngest generation grows without a collection, and the next one takes as long. The values built here have no cycles:
they are freed with their last reference, and the collector finds nothing in them.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NEVER = 1_000_000
"""Collections of the middle generation between two full ones."""


def keep_what_is_built() -> None:
    """Exclude all present objects from later collections, after a collection of the young ones.

    To be called after each step of building something large that stays: the young objects are then few.
    """
    gc.collect(1)
    gc.freeze()


class FullCollections:
    """Whether the collector makes full collections; may be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._avoiders = 0
        self._usual = 0
        """Collections of the middle generation between two full ones, when full ones are not avoided."""

    @contextmanager
    def avoided(self) -> Iterator[None]:
        """Avoid full collections while something temporary is built."""
        with self._lock:
            self._avoiders += 1
            if self._avoiders == 1:
                young, middle, self._usual = gc.get_threshold()
                gc.set_threshold(young, middle, _NEVER)
        try:
            yield
        finally:
            with self._lock:
                self._avoiders -= 1
                if self._avoiders == 0:
                    young, middle, _ = gc.get_threshold()
                    gc.set_threshold(young, middle, self._usual)


FULL_COLLECTIONS = FullCollections()
"""Of this process."""
