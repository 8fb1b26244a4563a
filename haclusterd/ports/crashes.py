"""What is remembered of this daemon's own crashes, so that a loop of them ends in safe mode (safety.md §4).

Contract: records live as long as the boot; reading never raises, and an unreadable record counts as none.
"""

from typing import Protocol

from haclusterd.model.instants import Instant
from haclusterd.model.records import dataclass


@dataclass(frozen=True, slots=True)
class CrashRecord:
    """One uncaught error of the main loop."""

    at: Instant
    epoch: int
    """The configuration version that was in force."""
    was_controller: bool
    """Whether this node acted as DC."""
    detail: str


class CrashRecords(Protocol):
    """This boot's crashes."""

    def recent(self) -> tuple[CrashRecord, ...]:
        """Return what was recorded, oldest first."""
        ...

    def add(self, record: CrashRecord) -> None:
        """Record a crash; called just before the process ends."""
        ...
