"""What the planning worker does, without its process: it follows the log, and plans on request.

It folds the same entries as every replica, so its CIB at an index is the daemon's. A scheduler that fails is an answer.
A request for another index than its own is a programmer's error and ends the worker: the daemon starts a new one.
"""

from collections.abc import Iterator

from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime
from haclusterd.model.rules_in_force import ALL_RULES
from haclusterd.model.steps import outcome_of
from haclusterd.protocol.plan_codec import plan_head, plan_parts
from haclusterd.protocol.planner_messages import (
    Entry,
    Fragment,
    Loaded,
    Message,
    PlanFailed,
    PlanFor,
    PlanMade,
    PlanPart,
)
from haclusterd.runtime.replica import Folding
from haclusterd.scheduler.model.plan_cache import PlanCache
from haclusterd.scheduler.schedule import schedule


class PlanningWorker:
    """The state of one worker."""

    def __init__(self) -> None:
        self._folding = Folding()
        self._pieces: list[bytes] = []
        self._cib = Cib()
        self._cache = PlanCache()

    @property
    def cib(self) -> Cib:
        """The CIB at the newest entry that it has followed."""
        return self._cib

    def take(self, message: Message) -> Iterator[Message]:
        """Take a message, and yield the answers."""
        match message:
            case Fragment(data=data):
                self._pieces.append(data)
            case Loaded():
                self._cib = outcome_of(self._folding.read(b"".join(self._pieces)))
                self._pieces.clear()
            case Entry():
                self._follow(message)
            case PlanFor(number=number, index=index, now=now):
                assert index == self._cib.index, f"asked about {index}, while at {self._cib.index}"
                yield from self._plan(number, now)
            case PlanPart() | PlanMade() | PlanFailed():
                raise AssertionError(f"a worker takes no {type(message).__name__}")

    def _follow(self, entry: Entry) -> None:
        self._cib = self._folding.fold(
            self._cib,
            entry.data,
            index=entry.index,
            term=entry.term,
            rules=ALL_RULES,
            is_in_force=entry.is_of_voters,
        ).cib

    def _plan(self, number: int, now: WallTime) -> Iterator[Message]:
        try:
            plan = schedule(self._cib.as_in_force(), now, cache=self._cache)
        except Exception as bug:  # noqa: BLE001 - a scheduler that fails must cost nothing but its plan
            yield PlanFailed(number, f"{type(bug).__name__}: {bug}")
            return
        for part in plan_parts(plan):
            yield PlanPart(number, part)
        yield PlanMade(number, plan_head(plan))
