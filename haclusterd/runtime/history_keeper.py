"""Keeps the history of all nodes within its bounds: the DC finds how far back it may end, and proposes that.

What is dropped follows from one replicated command, so every node drops the same (safety.md §7, "History"). The DC
checks once an hour, and after each change of the configuration.
"""

from collections.abc import Callable

from haclusterd.cib.commands import Command, Forget
from haclusterd.machines.effects import Scope
from haclusterd.model import durations
from haclusterd.model.cluster import Cib, DesignatedController
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant, WallTime, after
from haclusterd.model.properties import ClusterProperties
from haclusterd.ports.clock import Clock, Timer
from haclusterd.ports.history import History, Horizon

EVERY_MS = 3_600_000
SOON_MS = 1_000


class HistoryKeeper:
    """One node's part: idle unless this node is DC."""

    def __init__(
        self,
        node: NodeName,
        clock: Clock,
        history: History,
        cib: Callable[[], Cib],
        propose: Callable[[Scope, str, Command], None],
    ) -> None:
        self._node = node
        self._clock = clock
        self._history = history
        self._cib = cib
        self._propose = propose
        self._timer: Timer | None = None

    def look_soon(self) -> None:
        """Check once the present burst of changes is over, and every hour from then on."""
        self._arm(SOON_MS)

    def stop(self) -> None:
        """Stop."""
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, wait_ms: int) -> None:
        self.stop()
        now: Instant = self._clock.now()
        self._timer = self._clock.call_at(after(now, wait_ms), self._look)

    def _look(self) -> None:
        self._arm(EVERY_MS)
        cib = self._cib()
        controller = cib.status.controller
        if controller is None or controller.node != self._node:
            return
        properties = ClusterProperties(cib.in_force)
        keep_ms, rows_max = properties.duration_ms("history-keep"), properties.integer("history-rows-max")
        before = WallTime(max(0, self._clock.wall() - keep_ms))
        reason = f"older than {durations.render(keep_ms)}, or more than {rows_max} rows back"
        self._history.horizon(before, rows_max, lambda found: self._found(controller, found, reason))

    def _found(self, controller: DesignatedController, found: Horizon | None, reason: str) -> None:
        if found is not None and self._cib().status.controller == controller:
            command = Forget(controller.term, found.through, found.digest, reason)
            self._propose(Scope.DC, f"retention:{controller.term}:{found.through}", command)
