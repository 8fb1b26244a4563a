"""Which file of tests a worker of `make test` has next: one worker in three computes while the others wait for daemons.

Tests of daemons wait as much as they compute. Were they run by all workers at the same time, processors would be idle,
and those that only compute would have to share them afterwards. So a worker in three takes the files of real daemons
last, and the others take them first. Each worker runs what is left of the other kind in the end.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

DAEMONS = "tests/processes/"
"""What the names of files begin with whose tests run real daemons."""
WORKERS_FOR_ONE = 3
"""How many workers there are for each that computes first."""


def next_file(files: Iterable[str], worker: int) -> str:
    """Return the first file, in their order, of the kind that a worker (numbered from 0) takes first, or the first."""
    left = list(files)
    computes = worker % WORKERS_FOR_ONE == 0
    return next((file for file in left if file.startswith(DAEMONS) != computes), left[0])


class SideBySide(LoadFileScheduling):
    """Distribution by files (`--dist loadfile`), in which workers differ in what they take first."""

    def _assign_work_unit(self, node: "WorkerController") -> None:
        # xdist hands out the first file of the queue.
        worker = int(node.gateway.id.removeprefix("gw"))
        self.workqueue.move_to_end(next_file(self.workqueue, worker), last=False)
        super()._assign_work_unit(node)
