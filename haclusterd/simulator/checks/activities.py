"""What is under way in a simulated cluster: agents, fencings, changes, snapshots; and who waits for one to begin.

Faults at random instants meet what lasts long. What is over within milliseconds is met by a fault that waits for it.
"""

from collections.abc import Callable
from enum import StrEnum

from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import ChangeConfiguration, ChangeMembers, IssueFence, Join
from haclusterd.model.fencing import FenceAction
from haclusterd.model.ids import NodeName, OrderKey, ResourceId
from haclusterd.model.records import dataclass
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.checker import Checker, Log, Scene


class Activity(StrEnum):
    """Something that takes a while, in the middle of which something else may happen."""

    START = "start"
    STOP = "stop"
    PROMOTE = "promote"
    DEMOTE = "demote"
    MIGRATE_TO = "migrate_to"
    MIGRATE_FROM = "migrate_from"
    NOTIFY = "notify"
    RELOAD = "reload-agent"
    PROBE = "probe"
    MONITOR = "monitor"
    FENCE = "fence"
    UNFENCE = "unfence"
    CONFIGURATION = "configuration"
    MEMBERS = "members"
    SNAPSHOT = "snapshot"
    JOIN = "join"


AGENTS = frozenset({
    Activity.START, Activity.STOP, Activity.PROMOTE, Activity.DEMOTE, Activity.MIGRATE_TO, Activity.MIGRATE_FROM,
    Activity.NOTIFY, Activity.RELOAD, Activity.PROBE, Activity.MONITOR,
})  # fmt: skip
"""Those of resource agents."""


_BY_ACTION = {activity.value: activity for activity in AGENTS}


@dataclass(frozen=True, slots=True)
class Begun:
    """One activity that has just begun."""

    activity: Activity
    node: NodeName
    """Where it happens; of a fencing: who carries it out."""
    other: NodeName | None = None
    """Who is concerned beside it: the target of a fencing, the other end of a migration, the node that changes."""
    resource: ResourceId | None = None
    """Whose agent it is."""


Waiting = Callable[[Begun], bool]
"""Called when an activity begins; True: it was what was waited for."""


def activity_of(call: AgentCall, log: Log) -> Activity | None:
    """Return what a call of an agent is; None: nothing of note."""
    if call.action == "monitor":
        order = log.orders.get(OrderKey(call.key))
        return Activity.PROBE if order is not None and order.interval_ms == 0 else Activity.MONITOR
    return _BY_ACTION.get(call.action)


class Activities(Checker):
    """Sees everything begin, and notifies those that wait for it."""

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self._waiting: list[Waiting] = []

    def wait_for(self, waiting: Waiting) -> Callable[[], None]:
        """Ask `waiting` about everything that begins, until it says that this was it; return what ends that."""
        self._waiting.append(waiting)

        def end() -> None:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

        return end

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if not self._waiting:
            return
        activity = activity_of(call, self.log)
        if activity is None:
            return
        other = call.meta.get("migrate_target") or call.meta.get("migrate_source")
        is_other = other is not None and other != node
        whom = NodeName(other) if is_other and other is not None else None
        self.begins(Begun(activity, node, whom, call.resource))

    def first_applied(self, applied: Applied) -> None:
        """See `Checker`."""
        envelope, controller = applied.envelope, applied.cib.status.controller
        if not self._waiting or envelope is None or applied.refusal is not None or controller is None:
            return
        match envelope.command:
            case IssueFence(order=order):
                is_letting_in = order.action is FenceAction.ON
                activity = Activity.UNFENCE if is_letting_in else Activity.FENCE
                self.begins(Begun(activity, order.executor, order.target))
            case ChangeConfiguration():
                self.begins(Begun(Activity.CONFIGURATION, controller.node))
            case ChangeMembers():
                self.begins(Begun(Activity.MEMBERS, controller.node))
            case Join(node=node):
                self.begins(Begun(Activity.JOIN, node, controller.node))
            case _:
                pass

    def begins(self, begun: Begun) -> None:
        """Something begins."""
        for waiting in list(self._waiting):
            if waiting(begun):
                self._waiting.remove(waiting)
