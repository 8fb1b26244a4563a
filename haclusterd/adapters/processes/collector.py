"""Python's garbage collector, kept from going through a great deal at once.

A collection stops all threads, and one of the oldest generation looks at every container that was made since the last
`gc.freeze`. While thousands of resources are read it would come again and again; or, where as much is dropped as is
made, the youngest generation grows without one, and then takes as long. What is built here are values without cycles:
they go when nobody refers to them, and the collector has nothing to find in them.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NEVER = 1_000_000
"""Collections of the middle generation between two full ones."""


def keep_what_is_built() -> None:
    """Let no later collection look at what is there now; what is young and already garbage goes first.

    To be called after each step of something large that is built to stay: then the young are few.
    """
    gc.collect(1)
    gc.freeze()


class FullCollections:
    """Whether the collector goes through everything; may be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._avoiders = 0
        self._usual = 0
        """Collections of the middle generation between two full ones, when nobody avoids them."""

    @contextmanager
    def avoided(self) -> Iterator[None]:
        """Have none while something is built that does not stay."""
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
