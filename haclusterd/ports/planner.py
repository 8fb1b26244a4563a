"""Who makes the DC's plans, away from the main loop.

Contract:

* Every question gets exactly one answer, in the order in which they were asked, on the main loop, and never within the
  call that asked; unless `rest` or `stop` was called meanwhile.
* A planner that crashes, hangs or cannot be started is an answer with a problem, in bounded time. It is started again
by
  the next question.
* A plan is `schedule(cib, now)` of the very CIB of its question. A planner may keep a copy of its own, which follows
  what `applied` tells; it must notice when that copy is not the CIB that it is asked about.
"""

from collections.abc import Callable
from typing import Protocol

from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime
from haclusterd.model.planning import PlanAnswer
from haclusterd.ports.store import Applied


class Planner(Protocol):
    """Plans on request."""

    def start(self, answered: Callable[[PlanAnswer], None]) -> None:
        """Begin; nothing that costs memory is done before `prepare` or `ask`."""
        ...

    def prepare(self, cib: Cib) -> None:
        """Be ready to plan soon: this node has become DC. Harmless when it is."""
        ...

    def applied(self, entry: Applied) -> None:
        """Follow an entry of the log, which was applied."""
        ...

    def ask(self, number: int, cib: Cib, now: WallTime) -> None:
        """Ask for a plan for `cib`, the newest applied one; `now` decides about rules and expiry."""
        ...

    def rest(self) -> None:
        """Give back memory and drop what was asked: this node plans no more, or its CIB was replaced."""
        ...

    def stop(self) -> None:
        """End at once; nothing is answered afterwards."""
        ...
