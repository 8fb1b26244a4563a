"""One resource on one node: the agent at work on it, the waiting orders, and the recurring monitors.

One agent of a resource is at work at a time, whether it was called by an order, a recurring monitor, or the node that
acts alone. An agent that an earlier incarnation of this boot left running blocks the resource until it has ended, or
has outlived its kill.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from haclusterd.machines.effects import KillAgent, UnwatchService
from haclusterd.machines.executing.recurring import Recurring
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import Instant, after
from haclusterd.model.ocf import ActionName
from haclusterd.model.orders import Order
from haclusterd.model.records import dataclass
from haclusterd.model.state_tables import Transition, TransitionTable

UNKILLABLE_MS = 5000
"""How long to wait for an agent of an earlier incarnation after its kill; in uninterruptible sleep it may never die."""


class QueueState(StrEnum):
    """What kind of agent is at work on one resource."""

    FREE = "no agent is at work"
    EXECUTING = "an agent executes an order"
    MONITORING = "a recurring monitor runs"
    ACTING_ALONE = "an agent runs that the node called without an order"
    ABANDONED = "an agent runs whose result concerns nobody"
    MONITOR_KILLED = "a recurring monitor was killed and has not ended yet"
    HELD = "agents of an earlier incarnation run"


class QueueEvent(StrEnum):
    """What changes that."""

    BEGIN_ORDER = "an order's turn has come"
    BEGIN_MONITOR = "a recurring monitor is due"
    BEGIN_ALONE = "the node stops or demotes it by itself"
    ABANDON = "another incarnation begins, the node acts alone, or an order ends the monitors"
    END = "the agent has ended"
    ADOPT = "an agent of an earlier incarnation is found running"
    RELEASE = "the last agent of earlier incarnations has ended, or has outlived its kill"


QUEUES: Final = TransitionTable(
    "A resource in the executor of a node",
    "From the start of the daemon to its end; a new incarnation takes over what is at work.",
    (QueueState.FREE,),
    (
        Transition((QueueState.FREE,), QueueEvent.BEGIN_ORDER, QueueState.EXECUTING),
        Transition((QueueState.FREE,), QueueEvent.BEGIN_MONITOR, QueueState.MONITORING),
        Transition((QueueState.FREE,), QueueEvent.BEGIN_ALONE, QueueState.ACTING_ALONE),
        Transition((QueueState.EXECUTING, QueueState.ABANDONED), QueueEvent.ABANDON, QueueState.ABANDONED),
        Transition((QueueState.MONITORING, QueueState.MONITOR_KILLED), QueueEvent.ABANDON, QueueState.MONITOR_KILLED),
        # Whichever incarnation called it: the end of a stop is of use to all.
        Transition((QueueState.ACTING_ALONE,), QueueEvent.ABANDON, QueueState.ACTING_ALONE),
        Transition(
            (
                QueueState.EXECUTING,
                QueueState.MONITORING,
                QueueState.ACTING_ALONE,
                QueueState.ABANDONED,
                QueueState.MONITOR_KILLED,
            ),
            QueueEvent.END,
            QueueState.FREE,
        ),
        Transition((QueueState.FREE, QueueState.HELD), QueueEvent.ADOPT, QueueState.HELD),
        Transition((QueueState.HELD,), QueueEvent.RELEASE, QueueState.FREE),
    ),
)
WANTED: Final = (QueueState.EXECUTING, QueueState.MONITORING)
"""States in which an agent's result is awaited."""
MONITORS: Final = (QueueState.MONITORING, QueueState.MONITOR_KILLED)
"""States of a recurring monitor, which does not count towards the limit on actions."""


@dataclass(frozen=True, slots=True)
class AgentAtWork:
    """An agent that this daemon has called."""

    key: str
    action: str
    order: Order | None
    """None: the node called it without an order."""
    began_at: Instant


@dataclass(slots=True)
class Adopted:
    """An agent that an earlier incarnation of this boot left running."""

    action: str
    ends_at: Instant
    """When it is to be killed, or was killed."""


class ResourceQueue:
    """All state of one resource on this node; only this class changes `state`."""

    __slots__ = ("_resource", "adopted", "at_work", "is_watched", "orders", "recurring", "state")

    def __init__(self, resource: ResourceId) -> None:
        self._resource = resource
        self.state = QueueState.FREE
        self.orders: list[Order] = []
        """Waiting orders, first come, first served."""
        self.at_work: AgentAtWork | None = None
        self.adopted: dict[str, Adopted] = {}
        """Agents of earlier incarnations, by their keys."""
        self.recurring: dict[int, Recurring] = {}
        """Recurring monitors, by interval in ms."""
        self.is_watched = False

    @property
    def resource(self) -> ResourceId:
        """The resource of this queue."""
        return self._resource

    @property
    def is_free(self) -> bool:
        """Whether an agent may start."""
        return self.state is QueueState.FREE

    def _happened(self, event: QueueEvent) -> None:
        self.state = QUEUES.after(self.state, event)

    # -- agents of this daemon --------------------------------------------------------------------------------------

    def begin(self, event: QueueEvent, agent: AgentAtWork) -> None:
        """Note an agent that is called now."""
        self._happened(event)
        self.at_work = agent

    def end(self) -> tuple[AgentAtWork, QueueState]:
        """Note that it has ended; return it, and the state in which it ran."""
        agent, state = self.at_work, self.state
        self._happened(QueueEvent.END)
        assert agent is not None
        self.at_work = None
        return agent, state

    def abandon(self) -> None:
        """Stop waiting for the agent at work, if this daemon has called one."""
        if self.at_work is not None:
            self._happened(QueueEvent.ABANDON)

    def kill_monitor(self) -> Sequence[KillAgent]:
        """Kill a recurring monitor that runs."""
        if self.state is not QueueState.MONITORING:
            return ()
        assert self.at_work is not None
        self.abandon()
        return (KillAgent(self.at_work.key),)

    # -- agents of earlier incarnations -----------------------------------------------------------------------------

    def adopt(self, key: str, adopted: Adopted) -> None:
        """Let an agent of an earlier incarnation block the resource."""
        self._happened(QueueEvent.ADOPT)
        self.adopted[key] = adopted

    def release(self, key: str) -> Adopted:
        """Remove one that has ended, and return it."""
        released = self.adopted.pop(key)
        if not self.adopted:
            self._happened(QueueEvent.RELEASE)
        return released

    def release_unkillable(self, now: Instant) -> Sequence[str]:
        """Stop waiting for those that outlived their kill; return their keys."""
        unkillable = [key for key, each in self.adopted.items() if now >= after(each.ends_at, UNKILLABLE_MS)]
        for key in unkillable:
            self.release(key)
        return unkillable

    def kill_adopted(self, now: Instant) -> Sequence[KillAgent]:
        """Kill agents of earlier incarnations, like those of this one, before a stop."""
        effects: list[KillAgent] = []
        for key, adopted in self.adopted.items():
            if adopted.action != ActionName.STOP and now < adopted.ends_at:
                adopted.ends_at = now
                effects.append(KillAgent(key))
        return effects

    # -- recurring monitors, watched processes ----------------------------------------------------------------------

    def disarm(self, interval_ms: int) -> Order | None:
        """End a recurring monitor; return its order if that was never answered."""
        recurring = self.recurring.pop(interval_ms, None)
        return recurring.order if recurring is not None and recurring.is_unanswered else None

    def most_overdue(self, now: Instant) -> Recurring | None:
        """Return the monitor to run now; None: none is due."""
        due = [interval for interval, recurring in self.recurring.items() if recurring.due_at <= now]
        if not due:
            return None
        return self.recurring[min(due, key=lambda interval: (self.recurring[interval].due_at, interval))]

    def unwatch(self) -> Sequence[UnwatchService]:
        """Stop reporting deaths of its processes."""
        if not self.is_watched:
            return ()
        self.is_watched = False
        return (UnwatchService(self._resource),)
