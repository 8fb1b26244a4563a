"""The longest stalls of loops that daemons report (`model/loop_stalls.py`), put together.

A stall is wall time, and beside it is how much of it the loop's own thread computed: on a machine with more to do than
it has processors the first says how busy that is, and only the second says something of the program.
"""

from collections.abc import Mapping
from typing import Any

from haclusterd.model.records import dataclass

MAIN_WORK_MS = 50
"""The most that a main loop may compute without looking at what has come."""


@dataclass(frozen=True)
class Holds:
    """The longest of several daemons."""

    main_ms: int = 0
    main_work_ms: int = 0
    raft_ms: int = 0
    raft_work_ms: int = 0
    heartbeat_gap_ms: int = 0
    """Between two heartbeats of a leader."""

    def with_status(self, data: Mapping[str, Any]) -> "Holds":
        """Return these and those of one daemon's status."""
        measured = {hold["loop"]: (int(hold["longest_ms"]), int(hold["longest_work_ms"])) for hold in data["holds"]}
        return Holds(
            max(self.main_ms, measured["main"][0]),
            max(self.main_work_ms, measured["main"][1]),
            max(self.raft_ms, measured["raft"][0]),
            max(self.raft_work_ms, measured["raft"][1]),
            max(self.heartbeat_gap_ms, measured["heartbeats"][0]),
        )

    def words(self, phase: str) -> str:
        """Return them for a RESULT line."""
        return (
            f"{phase}_main_ms={self.main_ms} {phase}_main_work_ms={self.main_work_ms} "
            f"{phase}_raft_ms={self.raft_ms} {phase}_raft_work_ms={self.raft_work_ms} "
            f"{phase}_heartbeat_gap_ms={self.heartbeat_gap_ms}"
        )
