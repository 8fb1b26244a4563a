"""Pure work that takes long: done where it holds up neither the main loop nor the Raft thread.

Contract: `done` is called on the main loop with what `work` returned, once; what `work` raises is a programmer's error
and ends the process. `work` changes nothing, and reads nothing that others change.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Background(Protocol):
    """Another thread."""

    def run(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Do `work`, then call `done`; perhaps at once."""
        ...
