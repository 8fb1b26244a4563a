"""`Planner` over a worker process, which is started when this node becomes DC and ended when it no longer is.

Invariant: an open request has a worker that may answer it and a deadline; whatever ends the worker also answers the
request.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator

from haclusterd.adapters.processes.failed_plans import FailedPlans
from haclusterd.adapters.processes.worker_process import WorkerProcess
from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime, after
from haclusterd.model.planning import PlanAnswer
from haclusterd.model.records import dataclass, field
from haclusterd.ports.clock import Clock, Timer
from haclusterd.ports.store import Applied
from haclusterd.protocol.plan_codec import PlanReader
from haclusterd.protocol.planner_messages import (
    FRAME_BYTES_MAX,
    Entry,
    Fragment,
    Loaded,
    PlanFailed,
    PlanFor,
    PlanMade,
    PlanPart,
    decode,
    encode,
)
from haclusterd.wire.framing import FrameBuffer

COMMAND = (sys.executable, "-m", "haclusterd.entry_points.planning_worker")
TIMEOUT_MS = 60_000
"""Time limit of a plan."""
BACKLOG_MAX = 20_000
"""Number of entries by which a worker may lag before it counts as hung."""


@dataclass(slots=True)
class _Question:
    number: int
    cib: Cib
    timer: Timer
    reader: PlanReader = field(default_factory=PlanReader)


class PlannerProcess:
    """The planner; see the module, and the port."""

    def __init__(
        self,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        fragments: Callable[[Cib], Iterator[bytes]],
        failed: FailedPlans,
        command: tuple[str, ...] = COMMAND,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        """`fragments` encodes a CIB piece by piece, as the worker reads it; `failed` keeps CIBs without a plan."""
        self._clock = clock
        self._loop = loop
        self._fragments = fragments
        self._failed = failed
        self._command = command
        self._timeout_ms = timeout_ms
        self._answered: Callable[[PlanAnswer], None] = _nobody
        self._worker: WorkerProcess | None = None
        self._frames = FrameBuffer(FRAME_BYTES_MAX)
        self._question: _Question | None = None

    def start(self, answered: Callable[[PlanAnswer], None]) -> None:
        """See `Planner.start`."""
        self._answered = answered

    def prepare(self, cib: Cib) -> None:
        """See `Planner.prepare`."""
        if self._worker is None:
            self._frames = FrameBuffer(FRAME_BYTES_MAX)
            self._worker = WorkerProcess(self._loop, self._command, self._heard, self._lost)
            self._worker.send(self._state(cib))

    def applied(self, entry: Applied) -> None:
        """See `Planner.applied`."""
        if self._worker is None:
            return
        if self._worker.backlog > BACKLOG_MAX:
            self._give_up(f"the worker is {BACKLOG_MAX} entries behind")
            return
        self._worker.send(iter((encode(Entry(entry.index, entry.term, entry.entry, entry.is_of_voters)),)))

    def ask(self, number: int, cib: Cib, now: WallTime) -> None:
        """See `Planner.ask`."""
        assert self._question is None, "one question at a time"
        self.prepare(cib)
        assert self._worker is not None
        overrun = after(self._clock.now(), self._timeout_ms)
        timer = self._clock.call_at(overrun, lambda: self._give_up(f"no plan within {self._timeout_ms} ms"))
        self._question = _Question(number, cib, timer)
        self._worker.send(iter((encode(PlanFor(number, cib.index, now)),)))

    def rest(self) -> None:
        """See `Planner.rest`."""
        if self._question is not None:
            self._question.timer.cancel()
            self._question = None
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def stop(self) -> None:
        """See `Planner.stop`; the worker has ended when this returns: no later image of this process has it."""
        worker = self._worker
        self.rest()
        if worker is not None:
            worker.join()

    def _state(self, cib: Cib) -> Iterator[bytes]:
        for fragment in self._fragments(cib):
            yield encode(Fragment(fragment))
        yield encode(Loaded())

    def _heard(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                self._take(frame)
        except ValueError as error:
            self._give_up(f"the worker cannot be understood: {error}")

    def _take(self, frame: bytes) -> None:
        message, question = decode(frame), self._question
        if question is None:
            return
        match message:
            case PlanPart(number=question.number, data=data):
                question.reader.add(data)
            case PlanMade(number=question.number, head=head):
                self._answer(PlanAnswer(question.number, question.reader.finish(head)))
            case PlanFailed(number=question.number, problem=problem):
                self._fail(problem)
            case _:
                raise ValueError(f"no answer to question {question.number}")

    def _lost(self, problem: str) -> None:
        self._worker = None
        self._fail(problem)

    def _give_up(self, problem: str) -> None:
        if self._worker is not None:
            self._worker.end()
        self._lost(problem)

    def _fail(self, problem: str) -> None:
        if self._question is not None:
            path = self._failed.keep(self._question.cib)
            self._answer(PlanAnswer(self._question.number, None, f"{problem} (the CIB is kept in {path})"))

    def _answer(self, answer: PlanAnswer) -> None:
        assert self._question is not None
        self._question.timer.cancel()
        self._question = None
        self._answered(answer)


def _nobody(_: PlanAnswer) -> None:
    return None
