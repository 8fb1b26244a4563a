"""Blocking work on other threads than Raft's: syncs and snapshot files.

Invariant: an error of the outside world is a result here, never an exception on another thread; the receiver decides
what it means. Work touches files, and nothing that belongs to the Raft thread.
"""

from collections.abc import Callable
from typing import Protocol


class Worker(Protocol):
    """Runs blocking work. At most one sync and one snapshot job are under way at a time."""

    def run(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        """Run `work` on another thread and later call `done(result)` on the Raft thread, never within this call.

        The simulator runs `work` and `done` together at the completion event: what a crash before it prevents was never
        synced.
        """
        ...


def catching(work: Callable[[], object]) -> Callable[[], object]:
    """Return `work` with an OSError as its result."""

    def run() -> object:
        try:
            return work()
        except OSError as error:
            return error

    return run
