"""How long a leader's write waits for the proposals that follow from an entry that it is about to make durable.

A result enters the log; the DC on the same node proposes the next order within a millisecond. One sync and one round
to the followers then serve both, instead of one each. (PostgreSQL waits likewise before a sync: `commit_delay`.)

Invariant: a write waits at most `DELAY_MS_MAX` from the first entry that the main loop has yet to consider, however
many follow, and not at all once it has considered all of them. Nothing else may delay a write: without an answer the
delay is a few milliseconds, once.
"""

from haclusterd.model.instants import NEVER, Instant, after

DELAY_MS_MAX = 3


class AwaitedAnswer:
    """Entries that the main loop was shown and has not considered yet; see the module."""

    def __init__(self) -> None:
        self._shown = 0
        """The newest entry that the main loop was shown."""
        self._until: Instant | None = None
        """When the wait ends; None: there is none."""

    def shown(self, index: int, now: Instant) -> None:
        """Note that the main loop was shown an entry."""
        self._shown = index
        if self._until is None:
            self._until = after(now, DELAY_MS_MAX)

    def considered(self, index: int) -> None:
        """Note that the main loop has proposed everything that follows from the entries up to `index`."""
        if index >= self._shown:
            self._until = None

    def holds(self, now: Instant) -> bool:
        """Return whether a write waits; when its time is over, the next one waits only for entries shown later."""
        if self._until is not None and now >= self._until:
            self._until = None
        return self._until is not None

    def due(self) -> Instant:
        """Return when the write starts at the latest."""
        return NEVER if self._until is None else self._until
