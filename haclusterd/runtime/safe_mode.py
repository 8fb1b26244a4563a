"""Safe mode: a daemon whose controller crashes repeatedly with one configuration runs without it (safety.md §4).

Raft, apply, pacer and monitors continue. It ends with the next version of the configuration, and never by itself.
"""

from collections.abc import Iterable

from haclusterd.model.instants import Instant
from haclusterd.ports.crashes import CrashRecord

AFTER_CRASHES = "correct the configuration, then: systemctl restart haclusterd"
AFTER_DIFFERENCE = (
    "let every voter come back: a majority says who is right. Where there is none, stop haclusterd on all nodes; "
    "then, on the one that is right: crm cluster recover"
)
"""Remedy while it is unknown which replica is right; a restart changes nothing."""
CRASH_LOOP_COUNT = 3
CRASH_LOOP_WINDOW_MS = 600_000


class SafeMode:
    """Whether, and why, there is no controller in this process."""

    def __init__(self) -> None:
        self.reason = ""
        """Empty when there is a controller."""
        self._epoch = -1
        self._is_held = False

    @property
    def remedy(self) -> str:
        """What ends safe mode; empty when there is a controller."""
        if not self.reason:
            return ""
        return AFTER_DIFFERENCE if self._is_held else AFTER_CRASHES

    def judge(self, crashes: Iterable[CrashRecord], now: Instant) -> None:
        """Enter it at the third crash as controller with one configuration in ten minutes."""
        recent = [each for each in crashes if each.was_controller and now - each.at < CRASH_LOOP_WINDOW_MS]
        same = [each for each in recent if each.epoch == recent[-1].epoch]
        if len(same) >= CRASH_LOOP_COUNT:
            self._epoch = same[-1].epoch
            self.reason = f"the controller crashed {len(same)} times at configuration {self._epoch}: {same[-1].detail}"

    def hold(self, why: str) -> None:
        """Enter it because it is unknown which replica is right; with an empty `why`, leave it if it was entered so."""
        if why:
            self._is_held, self.reason = True, why
        elif self._is_held:
            self._is_held, self.reason = False, ""

    def is_over_at(self, epoch: int) -> bool:
        """Return whether this version of the configuration ends it; 0 (none known yet) does not."""
        if not self.reason or self._is_held or epoch in (0, self._epoch):
            return False
        self.reason = ""
        return True
