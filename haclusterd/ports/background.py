"""Work that takes long: done where it holds up neither the main loop nor the Raft thread.

Contract: `work` changes nothing of this process, and reads nothing that others change. `done` is called on the main
loop, once. What the work of `run` raises is a programmer's error and ends the process; in `apart` it ends only that
work, and is reported as its failure.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from haclusterd.model.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkFailed:
    """Why there is no result."""

    problem: str
    is_too_long: bool = False
    """Whether it was ended because it took too long."""


class Background(Protocol):
    """Somewhere beside the main loop."""

    def run(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Do `work`, then call `done`; perhaps at once. It cannot be ended: it must be known to end soon."""
        ...

    def apart(
        self, work: Callable[[], bytes], done: Callable[[bytes | WorkFailed], None], whose: str = ""
    ) -> Callable[[], None]:
        """Do `work` within bounds of priority, time and memory, and call `done` with what it returned.

        `whose` names the user that it is for; empty: root, or who runs the daemon. No user keeps another waiting for
        longer than one work of that other user takes, and none keeps root waiting. Return what ends it before; `done`
        is not called then.
        """
        ...
