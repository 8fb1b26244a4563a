"""One recurring monitor: when it is due, and which of its results are reported.

The interval runs from the completion of one run to the start of the next. The first result answers the order; after
that only a changed result is reported.
"""

from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order
from haclusterd.model.records import dataclass, replace

HURRY_FIRST_MS = 200
"""After a false alarm (a process died, the monitor says "running"): pause before the next early run; it doubles."""
HURRY_MAX_MS = 30_000
LOOKS_AGAIN = 5
"""How often the monitor is repeated after a death that the agent does not see. A process that has just exited is a
zombie until its parent reaps it, and many agents (`kill -0`) take it for alive."""


@dataclass(slots=True)
class Recurring:
    """A recurring monitor of one resource."""

    order: Order
    due_at: Instant
    is_unanswered: bool = True
    newest: tuple[ExitCode, ExecutionStatus, str] | None = None
    is_hurried: bool = False
    hurry_after: Instant = Instant(0)
    hurry_wait_ms: int = HURRY_FIRST_MS
    looks_left: int = 0

    @staticmethod
    def begin(order: Order, now: Instant) -> "Recurring":
        """Return a monitor that is armed for its first run."""
        return Recurring(order, after(now, order.start_delay_ms))

    def hurry(self, now: Instant) -> None:
        """A process of the service died: run now, or as soon as the limit on false alarms allows."""
        self.is_hurried = True
        self.looks_left = LOOKS_AGAIN
        self.due_at = min(self.due_at, max(now, self.hurry_after)) if self.due_at != NEVER else self.due_at

    def answered(self, result: OperationResult, now: Instant) -> OperationResult | None:
        """Take a result; return it if it must be reported, None if nothing has changed."""
        interval_ms = self.order.interval_ms
        self.due_at = after(now, interval_ms)
        if self.is_hurried:
            self.is_hurried = False
            is_alive = result.exit_code is self.order.target_exit_code
            self.hurry_after = after(now, self.hurry_wait_ms if is_alive else HURRY_FIRST_MS)
            self.hurry_wait_ms = min(HURRY_MAX_MS, self.hurry_wait_ms * 2) if is_alive else HURRY_FIRST_MS
            if is_alive and self.looks_left:
                self.looks_left -= 1
                self.is_hurried = True
                self.due_at = min(self.due_at, self.hurry_after)
        news = (result.exit_code, result.status, result.exit_reason)
        is_first, self.is_unanswered = self.is_unanswered, False
        is_changed = news != self.newest
        self.newest = news
        if is_first:
            return result
        return replace(result, order=None) if is_changed else None
