"""How long this daemon's loops were stalled by their own work, which nothing else could interrupt.

Contract: reading costs nothing, may be done from the main loop at any time, and forgets nothing by itself.
"""

from typing import Protocol

from haclusterd.model.loop_stalls import LoopStall


class LoopStalls(Protocol):
    """All loops of this daemon."""

    def longest(self) -> tuple[LoopStall, ...]:
        """Return what was measured."""
        ...
