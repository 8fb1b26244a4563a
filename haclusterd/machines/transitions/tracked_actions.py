"""The actions of one transition: what kind each is, its state, and those that are ready or ordered, by node.

An action becomes ready once all its inputs have succeeded. The starts of a gang (`gpu-gang=all`) are ordered together.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Final

from haclusterd.model.cluster import Cib
from haclusterd.model.fencing import FenceAction
from haclusterd.model.graph import ActionKind, GraphAction
from haclusterd.model.history import operation_key
from haclusterd.model.ids import FenceKey, NodeName, OrderKey, ResourceId, base_of
from haclusterd.model.instants import Instant
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order, ResultKind
from haclusterd.model.records import dataclass, field
from haclusterd.model.state_tables import Transition, TransitionTable

STARTING = frozenset({ActionName.START, ActionName.PROMOTE, ActionName.MIGRATE_FROM})
"""Actions that recurring monitors let go first."""

FORGETTING = frozenset({"delete", "lrm_delete"})
"""Actions that make the cluster forget what is recorded of a resource on a node."""

SPECULATIVE = frozenset(
    {
        ActionName.START,
        ActionName.STOP,
        ActionName.PROMOTE,
        ActionName.DEMOTE,
        ActionName.MIGRATE_TO,
        ActionName.MIGRATE_FROM,
    }
)
"""Actions on whose success others wait while a service is down; results of probes and monitors can wait."""


class ActionState(StrEnum):
    """The state of one action of a graph."""

    BLOCKED = "waits for its inputs"
    READY = "may begin"
    ORDERED = "its order is on its way"
    OPEN = "its order is in the CIB"
    FENCING = "the director has its node fenced or let in"
    SPECULATED = "its success is in the log, and counts"
    DONE = "done"


class ActionEvent(StrEnum):
    """What changes that state."""

    UNBLOCK = "all its inputs have succeeded"
    ORDER = "its order is proposed"
    FENCE = "its fencing or unfencing is wanted"
    COMMIT = "its order is applied"
    SPECULATE = "its success is in this leader's log"
    SUCCEED = "it has succeeded"


ACTIONS: Final = TransitionTable(
    "An action of a transition",
    "What does not succeed ends the whole transition: there is no state for it.",
    (ActionState.BLOCKED,),
    (
        Transition((ActionState.BLOCKED,), ActionEvent.UNBLOCK, ActionState.READY),
        # Nobody executes it: a pseudo action, or the cluster's own bookkeeping.
        Transition((ActionState.READY,), ActionEvent.SUCCEED, ActionState.DONE),
        Transition((ActionState.READY,), ActionEvent.ORDER, ActionState.ORDERED),
        Transition((ActionState.ORDERED,), ActionEvent.COMMIT, ActionState.OPEN),
        Transition((ActionState.ORDERED, ActionState.OPEN), ActionEvent.SPECULATE, ActionState.SPECULATED),
        Transition((ActionState.OPEN, ActionState.SPECULATED), ActionEvent.SUCCEED, ActionState.DONE),
        Transition((ActionState.READY,), ActionEvent.FENCE, ActionState.FENCING),
        # An unfencing, once it is recorded. A fencing is a change that aborts the transition.
        Transition((ActionState.FENCING,), ActionEvent.SUCCEED, ActionState.DONE),
    ),
)


@dataclass(slots=True, eq=False)
class TrackedAction:
    """One action of the graph with its progress."""

    action: GraphAction
    rank: tuple[int, int]
    """Sort key among ready actions: the lowest is first."""
    state: ActionState = ActionState.BLOCKED
    unfencings: frozenset[FenceKey] = frozenset()
    """For an `on`: the unfencings of its node that were recorded before."""
    failed_unfencings: frozenset[FenceKey] = frozenset()
    """For an `on`: the attempts on its node that had failed before."""
    open_inputs: int = 0
    """Number of inputs that are not done yet."""
    waits_until: Instant | None = None
    """For a recurring monitor that lets others go first, or an action with a start-delay: until when it waits at
    most."""
    dependants: list["TrackedAction"] = field(default_factory=list)
    """The actions that it is an input of."""
    together: tuple["TrackedAction", ...] = ()
    """For a start in a gang (`gpu-gang=all`): all starts of that gang, which are ordered by one command."""

    def happened(self, event: ActionEvent) -> None:
        """Change its state by an event."""
        self.state = ACTIONS.after(self.state, event)

    def committed(self) -> None:
        """Note that its order was seen in the CIB, or has passed through it."""
        if self.state is ActionState.ORDERED:
            self.happened(ActionEvent.COMMIT)


BY_RANK: Final = attrgetter("rank")


class ActionsByNode:
    """The actions for executors that are ready to be ordered, and those whose orders have not ended, by node."""

    def __init__(self) -> None:
        self.ready: dict[NodeName | None, list[TrackedAction]] = {}
        """Sorted by rank, except on the nodes in `_unsorted`."""
        self.issued: dict[NodeName | None, dict[OrderKey, TrackedAction]] = {}
        """Actions whose orders have not ended in the CIB."""
        self.by_order: dict[OrderKey, TrackedAction] = {}
        """All that were ever ordered, also those whose orders have ended."""
        self._starting: dict[NodeName | None, set[TrackedAction]] = {}
        self._unsorted: set[NodeName | None] = set()

    def add(self, tracked: TrackedAction) -> None:
        """Take in an action that has become ready."""
        action = tracked.action
        self.ready.setdefault(action.node, []).append(tracked)
        self._unsorted.add(action.node)
        if action.name in STARTING:
            self._starting.setdefault(action.node, set()).add(tracked)

    def order(self, tracked: TrackedAction, key: OrderKey) -> None:
        """Note that the order of a ready action is proposed."""
        tracked.happened(ActionEvent.ORDER)
        self.by_order[key] = tracked
        self.issued.setdefault(tracked.action.node, {})[key] = tracked
        self.ready[tracked.action.node].remove(tracked)

    def dropped(self, key: OrderKey) -> None:
        """Note that nothing is to be expected of an order any more."""
        tracked = self.by_order.get(key)
        if tracked is not None:
            self.issued.get(tracked.action.node, {}).pop(key, None)

    def succeeded(self, tracked: TrackedAction) -> None:
        """Note that an action has succeeded: monitors wait no longer for it."""
        self._starting.get(tracked.action.node, set()).discard(tracked)

    def leave_out(self, node: NodeName | None) -> None:
        """Forget what is ready or under way on a node."""
        self.issued.pop(node, None)
        self.ready.pop(node, None)

    def is_starting_on(self, node: NodeName | None) -> bool:
        """Return whether an action that monitors let go first is ready or under way on a node."""
        return bool(self._starting.get(node))

    def sort(self, node: NodeName | None) -> None:
        """Sort what is ready on a node by rank."""
        if node in self._unsorted:
            self.ready[node].sort(key=BY_RANK)
            self._unsorted.discard(node)

    @property
    def is_any_ready(self) -> bool:
        """Whether anything is ready to be ordered."""
        return any(self.ready.values())

    @property
    def is_any_issued(self) -> bool:
        """Whether the order of any action has not ended."""
        return any(self.issued.values())


def closes(action: GraphAction) -> bool:
    """Return whether an action is still done after an abort: a pseudo action, or a notification of what has happened.

    Pacemaker's scheduler gives these notifications, and the pseudo actions that lead to them, the priority INFINITY.
    """
    return action.kind is ActionKind.PSEUDO or action.notification.startswith("post-")


def needs_no_hand(action: GraphAction) -> bool:
    """Return whether an action is done without an order: it only links others, or is the cluster's own bookkeeping."""
    return action.kind in (ActionKind.PSEUDO, ActionKind.CLUSTER) or action.name in FORGETTING


def is_unfencing(action: GraphAction) -> bool:
    """Return whether an action has a node's devices let it in."""
    return action.kind is ActionKind.FENCE and action.name == FenceAction.ON


def is_migration(action: GraphAction) -> bool:
    """Return whether an action is one of the two halves of a live migration."""
    return action.is_named(ActionName.MIGRATE_TO) or action.is_named(ActionName.MIGRATE_FROM)


def ended_as_expected(cib: Cib, action: GraphAction, key: OrderKey) -> bool:
    """Return whether a closed order ended as its action expected."""
    assert action.node is not None
    assert action.resource is not None
    status = cib.status.nodes[action.node]
    if action.is_named(ActionName.NOTIFY):
        return True
    if action.resource in status.unverified and action.is_named(ActionName.MONITOR):
        return False
    history = status.histories.get(action.resource)
    is_found_stopped = action.is_probe and action.resource in status.probed
    if history is None:
        return is_found_stopped and action.target_exit_code is ExitCode.NOT_RUNNING
    if action.is_named(ActionName.CANCEL):
        return operation_key(ActionName.MONITOR, action.interval_ms) not in history.records
    # A reload is recorded as the start that it makes unnecessary.
    name = ActionName.START if action.is_named(ActionName.RELOAD_AGENT) else action.name
    record = history.records.get(operation_key(name, action.interval_ms))
    if record is None or record.order != key:
        return is_found_stopped and action.target_exit_code is ExitCode.NOT_RUNNING
    return not record.is_failure and record.exit_code is action.target_exit_code


def will_end_as_expected(order: Order, result: OperationResult) -> bool:
    """Return whether a result, once applied, will be the end that its order's action expects."""
    if order.action is ActionName.NOTIFY:
        return True
    return (
        order.action in SPECULATIVE
        and result.kind is ResultKind.FINISHED
        and result.operation == order.action
        and result.status is ExecutionStatus.DONE
        and result.exit_code is order.target_exit_code
        and result.target_exit_code is order.target_exit_code
    )


def gangs_of(tracked: Mapping[int, TrackedAction]) -> Iterator[tuple[TrackedAction, ...]]:
    """Yield the starts of each gang, except of one whose instances wait for each other (an `ordered` clone)."""
    gangs: dict[ResourceId, list[TrackedAction]] = {}
    for each in tracked.values():
        action = each.action
        if action.is_named(ActionName.START) and action.resource is not None and "gang_size" in action.meta:
            gangs.setdefault(base_of(action.resource), []).append(each)
    for gang in gangs.values():
        if not any(_comes_before(tracked, each, gang) for each in gang):
            yield tuple(gang)


def _comes_before(tracked: Mapping[int, TrackedAction], last: TrackedAction, others: Sequence[TrackedAction]) -> bool:
    """Return whether one of several actions must be done before the last one may start."""
    wanted = {each.action.id for each in others}
    pending, seen = list(last.action.inputs), set[int]()
    while pending:
        number = pending.pop()
        if number in wanted:
            return True
        if number in tracked and number not in seen:
            seen.add(number)
            pending.extend(tracked[number].action.inputs)
    return False
