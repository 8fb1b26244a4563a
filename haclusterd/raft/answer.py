"""How long a leader's write waits for what follows from an entry that it is about to make durable.

A result enters the log; the DC on the same node answers with the next order within a millisecond. One sync and one
round to the followers then serve both, where each would cost its own. (PostgreSQL waits likewise before a sync:
`commit_delay`.)

Invariant: a write waits at most `DELAY_MS_MAX` from the first entry that somebody is to look at, however many come
meanwhile, and not at all for a main loop that has looked at all of them. It must never keep back a write for anything
else: without answer it costs some milliseconds, once.
"""

from haclusterd.model.instants import NEVER, Instant, after

DELAY_MS_MAX = 3


class AwaitedAnswer:
    """Entries that the main loop was shown and has not answered yet; see the module."""

    def __init__(self) -> None:
        self._shown = 0
        """The newest entry that the main loop was shown."""
        self._until: Instant | None = None
        """None: nothing is waited for."""

    def shown(self, index: int, now: Instant) -> None:
        """The main loop was shown an entry."""
        self._shown = index
        if self._until is None:
            self._until = after(now, DELAY_MS_MAX)

    def considered(self, index: int) -> None:
        """The main loop has proposed all that follows from the entries up to `index`."""
        if index >= self._shown:
            self._until = None

    def holds(self, now: Instant) -> bool:
        """Tell whether a write waits; when its time is over, the next one waits only for what is shown later."""
        if self._until is not None and now >= self._until:
            self._until = None
        return self._until is not None

    def due(self) -> Instant:
        """Return when the write begins in any case."""
        return NEVER if self._until is None else self._until
