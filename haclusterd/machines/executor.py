"""Executes this node's orders, at most once each, and runs its recurring monitors.

The rules it keeps (safety.md §1, §2, §4):

* It considers orders only after its own process's Join was applied, and only those that name its own incarnation.
* Just before an activating action begins: the lease is fresh, the order is open and not voided, its deadline has not
  passed. Otherwise it answers "not begun", and never begins it.
* What an older life of this boot was ordered, and what can make something active, is answered with "unknown" once its
  agents have ended.
* One action of a resource at a time, first come, first served. What an earlier incarnation of this boot left running
  blocks its resource until it has ended.
* When the lease ends it kills what activates, stops everything that may be active here, in the order of the
  constraints, and takes no orders until it has joined under a new incarnation. What is unmanaged runs on, and so does
  what must not stop before it.

It owns no clock and runs nothing: it gets the time and answers with effects.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from haclusterd.cib.activity import possibly_active
from haclusterd.cib.commands import RecordResults
from haclusterd.machines.acting_alone import (
    RECORDED_DEAD,
    RESETS,
    ActingAlone,
    LoneAction,
    Reset,
    ResetEvent,
    Situation,
    described,
)
from haclusterd.machines.effects import (
    Condemn,
    Effect,
    KillAgent,
    Note,
    Propose,
    PublishEmpty,
    RunAgent,
    Scope,
    UnwatchService,
    WatchService,
)
from haclusterd.machines.moment import Moment
from haclusterd.machines.no_quorum import LonePolicy, lone_policy, panics
from haclusterd.machines.recurring import Recurring
from haclusterd.model.activity import may_hold_anything
from haclusterd.model.agent_calls import AdoptedAction, AgentCall, AgentResult
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, OrderKey, ResourceId
from haclusterd.model.instants import NEVER, Instant, WallTime, after
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order, ResultKind
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.scheduler.model.digests import restart_digest_of

CHECK_LEVEL = "OCF_CHECK_LEVEL"
RESULTS_MAX = 10
"""Results in one command: with their output they stay below the store's limit."""
OUTPUT_MAX = 800
"""Characters of each of an agent's outputs that are kept: the end, where the cause usually stands."""
REASON_MAX = 500
UNDYING_MS = 5000
"""How long an agent of an older life is waited for after its kill; one in uninterruptible sleep may never die."""
_SHOWS_ACTIVE = (ActionName.START, ActionName.PROMOTE, ActionName.MIGRATE_FROM, ActionName.MONITOR)
DEATHS = (FenceOutcome.FENCED, FenceOutcome.CONFIRMED)
IN_FORCE = (NodeState.ONLINE, NodeState.LOST)
"""States in which the CIB knows what may be active on a node."""


@dataclass(slots=True)
class _Running:
    """An agent that is executing."""

    key: str
    action: str
    order: Order | None
    interval_ms: int
    began_at: Instant
    is_own_stop: bool = False
    is_dropped: bool = False
    """Its result concerns nobody any more."""


@dataclass(slots=True)
class _Adopted:
    """An agent that an older life of this boot left running."""

    action: str
    ends_at: Instant
    """When it is killed, or was."""


@dataclass(slots=True)
class _ResourceQueue:
    """Everything about one resource on this node."""

    resource: ResourceId
    orders: list[Order] = field(default_factory=list)
    running: _Running | None = None
    adopted: dict[str, _Adopted] = field(default_factory=dict)
    """Agents of older lives, by their keys."""
    recurring: dict[int, Recurring] = field(default_factory=dict)
    is_watched: bool = False

    @property
    def is_free(self) -> bool:
        return self.running is None and not self.adopted


class ExecutorMachine:
    """Executes one node's orders; see the module."""

    def __init__(
        self,
        node: NodeName,
        incarnation: Incarnation,
        now: Instant,
        *,
        lease_grace_ms: int,
        actions_max: int = 16,
        rules: SafetyRules = ALL_RULES,
    ) -> None:
        self._node = node
        self._incarnation = incarnation
        self._rules = rules
        self._actions_max = actions_max
        self._cib = Cib()
        self._queues: dict[ResourceId, _ResourceQueue] = {}
        self._sorted_queues: list[_ResourceQueue] | None = None
        """All lines in order of their names; None when there is a new one."""
        self._room = 0
        """How many more actions may begin in this step."""
        self._received: dict[OrderKey, Instant] = {}
        self._known_orders: Mapping[OrderKey, Order] | None = None
        """What was open here at the last look: the same object has not changed."""
        self._taken: set[OrderKey] = set()
        """Orders that were begun or answered: never to be begun again."""
        self._inherited: dict[OrderKey, Order] = {}
        """Open orders of an older life of this boot, which this one answers for when their agents have ended."""
        self._undying: dict[str, ResourceId] = {}
        """Agents of older lives that are there still after their kill, and nothing waits for any more."""
        self._ran_to_its_end: set[str] = set()
        """Agents of older lives that nobody killed."""
        self._disowned: set[OrderKey] = set()
        """Those that this life has answered for."""
        self._is_joined = False
        self._call_id = self._runs = 0
        self._lease_grace_ms = lease_grace_ms
        self._born_at = now
        self._grace_until = after(now, lease_grace_ms)
        """Until then a daemon that has just started waits for its first lease."""
        self._alone: ActingAlone | None = None
        """What this life has begun to do by itself; None while it has not."""
        self._policy = LonePolicy.STOP
        self._panics = False
        """Whether a node that finds itself lost has its watchdog reset it at once."""
        self._reset = Reset.NOT_WANTED
        self._in_force: NodeStatus | None = None
        """What the CIB last knew of this node in this boot: a recorded fencing drops it there, but not here."""
        self._stopped_alone: set[ResourceId] = set()
        """What lives of this process have stopped by themselves since the last one that took orders."""
        self._has_joined = False
        """Whether this life has joined: only then is all known that this boot may have started."""
        self._is_empty: bool | None = None
        self._results: list[OperationResult] = []

    @property
    def has_acted_alone(self) -> bool:
        """Whether the lease ended and this node stopped its resources: it must join under a new incarnation."""
        return self._alone is not None

    @property
    def keeps_running(self) -> bool:
        """Whether this node leaves alone what it runs when it has no lease."""
        return self._policy.keeps_running

    def awaits_reset(self, cib: Cib) -> bool:
        """Tell whether this node finds itself lost in a CIB, which it may not have been shown yet, and is to be reset.

        No other life begins before.
        """
        return self._reset is Reset.AWAITED or (self._is_given_up(cib) and panics(cib.in_force))

    @property
    def is_stopping_alone(self) -> bool:
        """Whether stops of its own are still under way."""
        return (self._alone is not None and self._alone.has_more_to_begin) or bool(self._stopping_now())

    # -- events -----------------------------------------------------------------------------------------------------

    def adopted(self, actions: Sequence[AdoptedAction]) -> None:
        """Take over what earlier incarnations of this boot left running."""
        for action in actions:
            if action.is_running and self._rules.adopt_running_agents:
                adopted = _Adopted(action.action, max(action.deadline, self._born_at))
                self._queue(action.resource).adopted[action.key] = adopted
            elif not action.is_running:
                self._ran_to_its_end.add(action.key)

    def adopted_ended(self, key: str, moment: Moment) -> Sequence[Effect]:
        """One of them has ended."""
        self._undying.pop(key, None)
        for queue in self._queues.values():
            adopted = queue.adopted.pop(key, None)
            if adopted is not None and moment.now < adopted.ends_at:
                self._ran_to_its_end.add(key)
        return self._step(moment)

    def reincarnated(self, incarnation: Incarnation, moment: Moment) -> Sequence[Effect]:
        """Begin a new life: orders of the old one are void; what still runs blocks its resource until it has ended."""
        effects: list[Effect] = []
        self._incarnation = incarnation
        self._known_orders = None
        self._inherited.clear()
        self._disowned.clear()
        self._is_joined = False
        self._alone = None
        self._has_joined = False
        effects.extend(self._reset_happened(ResetEvent.NEW_LIFE))
        self._grace_until = after(moment.now, self._lease_grace_ms)
        for queue in self._queues.values():
            queue.orders.clear()
            effects.extend(self._forget_recurring(queue))
            if queue.running is not None:
                queue.running.is_dropped = True
        self._results.clear()
        return [*effects, *self._step(moment)]

    def cib_changed(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Look at the newest applied CIB."""
        if cib.in_force is not self._cib.in_force:
            self._policy = lone_policy(cib.in_force)
            self._panics = panics(cib.in_force)
        self._cib = cib
        status = self._status()
        was_joined = self._is_joined
        self._is_joined = self._counts_as_joined(status)
        self._has_joined |= self._is_joined
        if status is not None and status.state in IN_FORCE and self._is_of_this_boot(status):
            # A record that is disproved has dropped what runs here for good: it is the state before that counts.
            self._in_force = self._in_force if self._is_recorded_dead() else status
        if self._is_joined and not was_joined and status is not None:
            self._call_id = max(self._call_id, status.last_call_id)
        if self._is_joined and status is not None and self._alone is None:
            self._stopped_alone.clear()
            self._take_in(status, moment)
        return self._step(moment)

    def _is_of_this_boot(self, status: NodeStatus) -> bool:
        return status.incarnation is not None and status.incarnation.boot_id == self._incarnation.boot_id

    def _is_recorded_dead(self, cib: Cib | None = None) -> bool:
        """Tell whether the newest life of this boot that has joined was recorded as fenced, disproved or not.

        By that record nothing runs here: whatever is managed may be started on other nodes.
        """
        cib = cib or self._cib
        status = cib.status.nodes.get(self._node)
        if status is None or not self._is_of_this_boot(status):
            return False
        return status.state is NodeState.FENCED or (
            status.state is NodeState.LOST
            and any(
                record.target == self._node
                and record.target_incarnation == status.incarnation
                and record.outcome in DEATHS
                for record in cib.status.fencing_history
            )
        )

    def agent_finished(self, result: AgentResult, moment: Moment) -> Sequence[Effect]:
        """An agent has ended."""
        queue = self._queue_of(result.key)
        if queue is None or queue.running is None:
            return ()
        running, queue.running = queue.running, None
        effects: list[Effect] = []
        if running.is_own_stop:
            self._own_stop_ended(queue.resource, result)
        elif not running.is_dropped:
            effects.extend(self._conclude(queue, running, result, moment))
        elif result.status is ExecutionStatus.DONE:
            self._ran_to_its_end.add(running.key)
        return [*effects, *self._step(moment)]

    def service_died(self, resource: ResourceId, moment: Moment) -> Sequence[Effect]:
        """A process of an active resource has exited: let its monitor look at once."""
        queue = self._queues.get(resource)
        if queue is not None and queue.recurring:
            shortest = queue.recurring[min(queue.recurring)]
            shortest.hurry(moment.now)
        return self._step(moment)

    def give_up(self, cause: str, moment: Moment) -> Sequence[Effect]:
        """Stop everything without orders: this node is to leave, and nobody orders it to in time."""
        if self._alone is not None:
            return ()
        return [*self._begin_to_act_alone(cause, moment), *self._step(moment)]

    def retimed(self, lease_grace_ms: int) -> None:
        """The administrator changed node-timeout."""
        self._lease_grace_ms = lease_grace_ms

    def ticked(self, moment: Moment) -> Sequence[Effect]:
        """Time has passed."""
        return self._step(moment)

    def deadline(self, moment: Moment) -> Instant:
        """Return when `ticked` is wanted next."""
        due = [recurring.due_at for queue in self._queues.values() for recurring in queue.recurring.values()]
        due += [after(each.ends_at, UNDYING_MS) for queue in self._queues.values() for each in queue.adopted.values()]
        if self._alone is None:
            due.append(max(moment.lease_until, self._grace_until))
        return min((instant for instant in due if instant > moment.now), default=NEVER)

    # -- taking orders in -------------------------------------------------------------------------------------------

    def _status(self) -> NodeStatus | None:
        return self._cib.status.nodes.get(self._node)

    def _counts_as_joined(self, status: NodeStatus | None) -> bool:
        if status is None:
            return False
        if not self._rules.own_join_first:
            return True
        return status.incarnation == self._incarnation and status.state is NodeState.ONLINE

    def _take_in(self, status: NodeStatus, moment: Moment) -> None:
        open_orders = status.orders
        if open_orders is self._known_orders:
            return
        self._known_orders = open_orders
        self._taken &= set(open_orders)
        self._received = {key: at for key, at in self._received.items() if key in open_orders}
        for queue in self._queues.values():
            dropped = [order for order in queue.orders if self._is_unwanted(open_orders.get(order.key))]
            for order in dropped:
                queue.orders.remove(order)
                self._answer_not_begun(order, "no longer wanted", moment)
        self._disowned &= set(open_orders)
        self._inherited = {
            key: order
            for key, order in open_orders.items()
            if order.incarnation != self._incarnation and key not in self._disowned
        } if self._rules.order_names_incarnation else {}
        for key, order in open_orders.items():
            if key in self._taken or key in self._received:
                continue
            if order.incarnation != self._incarnation and self._rules.order_names_incarnation:
                continue
            self._received[key] = moment.now
            if order.is_voided and self._rules.order_still_open_before_exec:
                self._answer_not_begun(order, "no longer wanted", moment)
            else:
                self._queue(order.resource).orders.append(order)

    def _is_unwanted(self, order: Order | None) -> bool:
        if not self._rules.order_still_open_before_exec:
            return False
        return order is None or order.is_voided

    def _queue(self, resource: ResourceId) -> _ResourceQueue:
        queue = self._queues.get(resource)
        if queue is None:
            queue = self._queues[resource] = _ResourceQueue(resource)
            self._sorted_queues = None
        return queue

    def _queue_of(self, key: str) -> _ResourceQueue | None:
        return next(
            (queue for queue in self._queues.values() if queue.running is not None and queue.running.key == key), None
        )

    # -- one step ---------------------------------------------------------------------------------------------------

    def _step(self, moment: Moment) -> list[Effect]:
        effects: list[Effect] = []
        self._give_up_undying(moment)
        cause = self._must_act_alone(moment)
        if cause:
            effects.extend(self._begin_to_act_alone(cause, moment))
        effects.extend(self._react_to_loss())
        if self._alone is not None:
            effects.extend(self._continue_alone(self._alone, moment))
        elif self._is_joined:
            self._answer_for_older_lives(moment)
            for queue in self._queues_to_advance():
                effects.extend(self._advance(queue, moment))
        effects.extend(self._report())
        return [*self._publish_empty(), *effects]

    def _give_up_undying(self, moment: Moment) -> None:
        """Wait no more for an older life's agent that its kill did not end: what is next for its resource says so.

        It runs no more code of its own. The next action of the resource fails while it is there, as after a timeout in
        this life, and a stop that fails is a reason to fence.
        """
        for queue in self._queues.values():
            for key in [key for key, each in queue.adopted.items() if moment.now >= after(each.ends_at, UNDYING_MS)]:
                del queue.adopted[key]
                self._undying[key] = queue.resource

    def _report(self) -> list[Effect]:
        """Propose everything that ended since the last step, in as few commands as it takes."""
        if not self._results or not self._is_joined:
            return []
        results, self._results = self._results, []
        effects: list[Effect] = []
        for start in range(0, len(results), RESULTS_MAX):
            batch = tuple(results[start : start + RESULTS_MAX])
            key = f"results:{batch[0].order or batch[0].resource}:{batch[0].call_id}"
            effects.append(Propose(Scope.INCARNATION, key, RecordResults(self._node, self._incarnation, batch)))
        return effects

    def _publish_empty(self) -> list[Effect]:
        """Say whether nothing that is managed can be active here (safety.md §2, "Feed").

        A life that has not joined begins nothing, and may know less than its predecessor did: it proves nothing new,
        and what was said before it, or at boot, stays.
        """
        status = self._status()
        is_busy = any(queue.running is not None or queue.adopted or queue.orders for queue in self._queues.values())
        is_busy = is_busy or bool(self._undying)
        if self._is_empty is None and not self._has_joined and not is_busy:
            return []
        is_proven = self._is_empty is True
        if self._alone is not None:
            is_proven = (is_proven or self._has_joined) and self._alone.is_proven_empty
        elif self._is_joined:
            is_proven = status is not None and not may_hold_anything(status)
        is_empty = is_proven and not is_busy
        if is_empty == self._is_empty:
            return []
        self._is_empty = is_empty
        return [PublishEmpty(is_empty)]

    def _advance(self, queue: _ResourceQueue, moment: Moment) -> list[Effect]:
        effects: list[Effect] = []
        if queue.orders and queue.running is not None and queue.running.interval_ms:
            if self._ends_monitors(queue.orders[0]) and not queue.running.is_dropped:
                queue.running.is_dropped = True
                effects.append(KillAgent(queue.running.key))
            return effects
        while queue.orders and queue.is_free and self._room > 0:
            order = queue.orders.pop(0)
            self._taken.add(order.key)
            effects.extend(self._begin(queue, order, moment))
            self._room -= queue.running is not None
        if queue.is_free and not queue.orders:
            effects.extend(self._run_due_monitor(queue, moment))
        return effects

    def _queues_to_advance(self) -> Iterator[_ResourceQueue]:
        """Yield the queues of the resources for which something may begin now, in the order of their names.

        There are as many lines as resources, and nearly always nothing happens in them: this is looked at after every
        event. While no action may begin, only what must be ended to make room for an order is looked at.
        """
        if self._sorted_queues is None:
            self._sorted_queues = sorted(self._queues.values(), key=lambda queue: queue.resource)
        running = sum(1 for queue in self._sorted_queues if queue.running is not None and not queue.running.interval_ms)
        self._room = self._actions_max - running
        for queue in self._sorted_queues:
            if queue.orders:
                if self._room > 0 or (queue.running is not None and queue.running.interval_ms):
                    yield queue
            elif queue.recurring:
                yield queue

    @staticmethod
    def _ends_monitors(order: Order) -> bool:
        return order.action not in (ActionName.MONITOR, ActionName.NOTIFY)

    def _begin(self, queue: _ResourceQueue, order: Order, moment: Moment) -> list[Effect]:
        objection = self._objection(order, moment)
        if objection:
            self._answer_not_begun(order, objection, moment)
            return []
        effects: list[Effect] = []
        if self._ends_monitors(order) and order.action is not ActionName.CANCEL:
            effects.extend(self._forget_recurring(queue))
        if order.action is ActionName.CANCEL:
            self._end_recurring(queue, order.interval_ms)
            self._answer_done(order, moment)
            return effects
        if order.action is ActionName.MONITOR and order.interval_ms:
            self._end_recurring(queue, order.interval_ms)
            queue.recurring[order.interval_ms] = Recurring.begin(order, moment.now)
            return effects
        if order.action is ActionName.STOP and queue.is_watched:
            queue.is_watched = False
            effects.append(UnwatchService(queue.resource))
        call = _call(order, str(order.key), self._incarnation)
        queue.running = _Running(call.key, order.action, order, 0, moment.now)
        effects.append(RunAgent(call))
        return effects

    def _objection(self, order: Order, moment: Moment) -> str:
        """Say why an order must not begin now; empty when it may."""
        if not order.is_activating:
            return ""
        if self._rules.lease_before_exec and not moment.has_lease:
            return "this node holds no lease"
        waited = moment.now - self._received.get(order.key, moment.now)
        if self._rules.order_deadline and waited > order.deadline_ms:
            return f"its deadline passed ({waited} ms after its receipt)"
        return ""

    def _end_recurring(self, queue: _ResourceQueue, interval_ms: int) -> None:
        recurring = queue.recurring.pop(interval_ms, None)
        if recurring is not None and recurring.is_unanswered:
            self._answer_order_unknown(recurring.order)

    def _forget_recurring(self, queue: _ResourceQueue) -> list[Effect]:
        for interval_ms in tuple(queue.recurring):
            self._end_recurring(queue, interval_ms)
        if queue.running is not None and queue.running.interval_ms and not queue.running.is_dropped:
            queue.running.is_dropped = True
            return [KillAgent(queue.running.key)]
        return []

    def _run_due_monitor(self, queue: _ResourceQueue, moment: Moment) -> list[Effect]:
        due = [interval for interval, recurring in queue.recurring.items() if recurring.due_at <= moment.now]
        if not due:
            return []
        recurring = queue.recurring[min(due, key=lambda interval: (queue.recurring[interval].due_at, interval))]
        self._runs += 1
        call = _call(recurring.order, f"{recurring.order.key}.{self._runs}", self._incarnation)
        queue.running = _Running(call.key, ActionName.MONITOR, recurring.order, recurring.order.interval_ms, moment.now)
        return [RunAgent(call)]

    # -- results ----------------------------------------------------------------------------------------------------

    def _conclude(self, queue: _ResourceQueue, running: _Running, result: AgentResult, moment: Moment) -> list[Effect]:
        order = running.order
        assert order is not None
        if not result.is_begun:
            self._answer_not_begun(order, result.exit_reason, moment)
            return []
        exit_code = _exit_code(result)
        answer = OperationResult(
            kind=ResultKind.FINISHED,
            order=order.key,
            resource=queue.resource,
            operation=str(order.action),
            interval_ms=order.interval_ms,
            exit_code=exit_code,
            status=_status_of(result, exit_code, order),
            call_id=self._next_call_id(),
            run_at=WallTime(moment.wall - result.executed_ms),
            executed_ms=result.executed_ms,
            queued_ms=running.began_at - self._received.get(order.key, running.began_at),
            exit_reason=result.exit_reason[:REASON_MAX] if exit_code is not order.target_exit_code else "",
            target_exit_code=order.target_exit_code,
            output={"stdout": result.stdout[-OUTPUT_MAX:], "stderr": result.stderr[-OUTPUT_MAX:]},
        )
        if result.restart_parameters is not None:
            names = result.restart_parameters
            digest = restart_digest_of(order.lasting_parameters, names)
            answer = replace(answer, restart_digest=digest, restart_parameters=names)
        if running.interval_ms:
            recurring = queue.recurring.get(running.interval_ms)
            if recurring is None or result.status is ExecutionStatus.CANCELLED:
                return []
            result_to_record = recurring.answered(answer, moment.now)
            if result_to_record is not None:
                self._results.append(result_to_record)
        else:
            self._results.append(answer)
        return self._watch(queue, order, exit_code)

    def _watch(self, queue: _ResourceQueue, order: Order, exit_code: ExitCode) -> list[Effect]:
        is_active = exit_code in (ExitCode.OK, ExitCode.PROMOTED) and order.action in _SHOWS_ACTIVE
        if not is_active or order.agent.standard == "stonith":
            return []
        is_new = order.action is not ActionName.MONITOR or not queue.is_watched
        queue.is_watched = True
        return [WatchService(queue.resource, str(queue.resource))] if is_new else []

    def _next_call_id(self) -> int:
        self._call_id += 1
        return self._call_id

    def _answer_not_begun(self, order: Order, reason: str, moment: Moment) -> None:
        self._taken.add(order.key)
        self._answer(order, ResultKind.NOT_BEGUN, ExecutionStatus.CANCELLED, reason, moment.wall)

    def _answer_for_older_lives(self, moment: Moment) -> None:
        """Close what an older life of this boot left open, as soon as no agent works on the resource any more.

        Nobody knows how that went: the resource is probed, and at the other end of a migration too. The status says
        whether the agent came to its end, or may have been killed in the middle.
        """
        ended = [key for key, order in self._inherited.items() if self._queue(order.resource).is_free]
        for key in ended:
            self._disowned.add(key)
            is_whole = str(key) in self._ran_to_its_end
            status = ExecutionStatus.UNKNOWN if is_whole else ExecutionStatus.CANCELLED
            reason = "the daemon was restarted in the middle of it"
            self._answer(self._inherited.pop(key), ResultKind.UNKNOWN, status, reason, moment.wall)

    def _answer_done(self, order: Order, moment: Moment) -> None:
        self._answer(order, ResultKind.FINISHED, ExecutionStatus.DONE, "", moment.wall)

    def _answer_order_unknown(self, order: Order) -> None:
        """A recurring monitor was ended before its first answer: nothing was learned, nothing was changed."""
        self._answer(order, ResultKind.NOT_BEGUN, ExecutionStatus.CANCELLED, "cancelled", WallTime(0))

    def _answer(
        self, order: Order, kind: ResultKind, status: ExecutionStatus, reason: str, wall: WallTime
    ) -> None:
        self._results.append(
            OperationResult(
                kind=kind,
                order=order.key,
                resource=order.resource,
                operation=str(order.action),
                interval_ms=order.interval_ms,
                exit_code=ExitCode.OK if kind is ResultKind.FINISHED else ExitCode.UNKNOWN,
                status=status,
                call_id=self._next_call_id(),
                run_at=wall,
                exit_reason=reason,
                target_exit_code=order.target_exit_code if kind is not ResultKind.FINISHED else ExitCode.OK,
            )
        )

    # -- acting alone -----------------------------------------------------------------------------------------------

    def _must_act_alone(self, moment: Moment) -> str:
        """Say why this node must stop what it runs; empty when it need not."""
        if self._alone is not None:
            return ""
        status = self._status()
        is_own = status is not None and status.incarnation == self._incarnation
        if self._is_recorded_dead() and (is_own or self._possibly_active_here()):
            return RECORDED_DEAD
        is_lost = status is not None and is_own and status.state is NodeState.LOST and not status.has_detached
        if is_lost and self._rules.stop_on_lease_end and (self._panics or not self.keeps_running):
            return "this node was declared lost"
        if self.keeps_running:
            return ""
        if moment.has_lease or not self._rules.stop_on_lease_end or moment.now < self._grace_until:
            return ""
        return "the lease ended"

    def _react_to_loss(self) -> Sequence[Effect]:
        """Have the watchdog reset a node that finds itself lost, where it is to (`fence-reaction=panic`)."""
        if self._reset is Reset.AWAITED or not self._panics or not self._is_given_up(self._cib):
            return ()
        text = "this node was declared lost or recorded as fenced: its watchdog resets it"
        return (Note("panic", text), *self._reset_happened(ResetEvent.GIVEN_UP))

    def _reset_happened(self, event: ResetEvent) -> Sequence[Effect]:
        """Enter the next state of the wish to be reset; say so where the watchdog's feeder must know."""
        before, self._reset = self._reset, RESETS.after(self._reset, event)
        if event is ResetEvent.GIVEN_UP or (before is Reset.NOT_WANTED) != (self._reset is Reset.NOT_WANTED):
            return (Condemn(is_condemned=self._reset is not Reset.NOT_WANTED),)
        return ()

    def _is_given_up(self, cib: Cib) -> bool:
        """Tell whether a node with a watchdog finds its present life lost, or the death of its boot recorded."""
        status = cib.status.nodes.get(self._node)
        if status is None or status.watchdog is None or status.state not in (NodeState.LOST, NodeState.FENCED):
            return False
        is_own = status.incarnation == self._incarnation and not status.has_detached
        return is_own or self._is_recorded_dead(cib)

    def _begin_to_act_alone(self, cause: str, moment: Moment) -> list[Effect]:
        effects: list[Effect] = []
        active = self._possibly_active_here()
        alone = self._alone = ActingAlone(self._node, self._rules, active, self._situation(moment), self._origin)
        if alone.has_more_to_begin or alone.held:
            effects.extend(self._condemn_by_policy())
        for queue in self._queues.values():
            queue.orders.clear()
            effects.extend(self._forget_recurring(queue))
            running = queue.running
            if running is not None and running.action != ActionName.STOP:
                running.is_dropped = True
                if queue.resource not in alone.untouched:
                    effects.append(KillAgent(running.key))
            if queue.resource not in alone.untouched:
                effects.extend(self._kill_adopted(queue, moment))
            if queue.is_watched:
                queue.is_watched = False
                effects.append(UnwatchService(queue.resource))
        self._results.clear()
        if active:
            effects.append(Note("acting-alone", f"{cause}; {alone.describe(active)}"))
        return effects

    def _condemn_by_policy(self) -> Sequence[Effect]:
        """Have the watchdog end a node on which something ran (`no-quorum-policy=fence`)."""
        return self._reset_happened(ResetEvent.FENCES_ITSELF) if self._policy is LonePolicy.FENCE else ()

    def _situation(self, moment: Moment) -> Situation:
        return Situation(self._cib, self._in_force, self._is_recorded_dead(), self._policy, moment.wall)

    def _possibly_active_here(self) -> frozenset[ResourceId]:
        """Return what may run here; what an older boot ran died with it."""
        begun = {queue.resource for queue in self._queues.values() if queue.running is not None or queue.adopted}
        begun |= {*self._undying.values()}
        known = possibly_active(self._in_force) if self._in_force is not None else frozenset()
        return (known - self._stopped_alone) | begun

    def _origin(self, resource: ResourceId) -> tuple[AgentReference, Mapping[str, str]] | None:
        """Return with which agent and parameters a resource may have been started here."""
        queue = self._queue(resource)
        if queue.running is not None and queue.running.order is not None:
            return queue.running.order.agent, queue.running.order.lasting_parameters
        if self._in_force is None:
            return None
        for order in self._in_force.orders.values():
            if order.resource == resource and order.is_activating:
                return order.agent, order.lasting_parameters
        history = self._in_force.histories.get(resource)
        return (history.agent, history.parameters) if history is not None else None

    def _continue_alone(self, alone: ActingAlone, moment: Moment) -> list[Effect]:
        situation = self._situation(moment)
        effects: list[Effect] = []
        ended = alone.end_what_was_left(situation, self._possibly_active_here, self._origin)
        if ended:
            effects.append(Note("acting-alone", f"{RECORDED_DEAD}; {described(ended)}"))
            effects.extend(self._kill_agents_of(ended, moment))
        come = alone.stop_what_has_come(situation, self._possibly_active_here, self._origin)
        if come:
            effects.extend(self._condemn_by_policy())
            effects.append(Note("acting-alone", f"came by migration; {described(come)}"))
        left = alone.leave_what_became_unmanaged(situation)
        if left:
            effects.append(Note("acting-alone", left))
        for action in alone.next_actions(lambda resource: self._queue(resource).is_free, self._stopping_now()):
            effects.append(self._act_alone(action, moment))
        return effects

    def _stopping_now(self) -> list[ResourceId]:
        """Return on what an agent is at work that this node called by itself."""
        return [
            queue.resource
            for queue in self._queues.values()
            if queue.running is not None and queue.running.is_own_stop
        ]

    def _kill_agents_of(self, resources: frozenset[ResourceId], moment: Moment) -> list[Effect]:
        effects: list[Effect] = []
        for queue in (self._queue(resource) for resource in sorted(resources)):
            if queue.running is not None and not queue.running.is_own_stop and queue.running.action != ActionName.STOP:
                effects.append(KillAgent(queue.running.key))
            effects.extend(self._kill_adopted(queue, moment))
        return effects

    @staticmethod
    def _kill_adopted(queue: _ResourceQueue, moment: Moment) -> list[Effect]:
        """End what older lives of this boot left running, as what this life runs: a stop is to follow."""
        effects: list[Effect] = []
        for key, adopted in queue.adopted.items():
            if adopted.action != ActionName.STOP and moment.now < adopted.ends_at:
                adopted.ends_at = moment.now
                effects.append(KillAgent(key))
        return effects

    def _act_alone(self, action: LoneAction, moment: Moment) -> Effect:
        self._runs += 1
        call = AgentCall(
            key=f"alone-{self._incarnation.token}-{self._runs}",
            resource=action.resource,
            instance=str(action.resource),
            agent=action.agent,
            action=action.action,
            parameters=action.parameters,
            meta={"timeout": str(action.timeout_ms), "name": str(action.action), "on_node": str(self._node)},
            timeout_ms=action.timeout_ms,
            incarnation=self._incarnation,
        )
        running = _Running(call.key, action.action, None, 0, moment.now, is_own_stop=True)
        self._queue(action.resource).running = running
        return RunAgent(call)

    def _own_stop_ended(self, resource: ResourceId, result: AgentResult) -> None:
        is_well = result.status is ExecutionStatus.DONE and result.exit_code == ExitCode.OK
        if self._alone is not None and self._alone.ended(resource, is_well=is_well):
            self._stopped_alone.add(resource)


def _call(order: Order, key: str, incarnation: Incarnation) -> AgentCall:
    parameters = {name: value for name, value in order.parameters.items() if name != CHECK_LEVEL}
    return AgentCall(
        key=key,
        resource=order.resource,
        instance=str(order.resource),
        agent=order.agent,
        action=str(order.action),
        parameters=parameters,
        meta=order.meta,
        timeout_ms=order.timeout_ms,
        incarnation=incarnation,
        check_level=order.parameters.get(CHECK_LEVEL),
    )


def _exit_code(result: AgentResult) -> ExitCode:
    """Read the agent's exit status; the degraded codes count as what they are degraded from."""
    code = ExitCode.read(result.exit_code)
    return {ExitCode.DEGRADED: ExitCode.OK, ExitCode.DEGRADED_PROMOTED: ExitCode.PROMOTED}.get(code, code)


def _status_of(result: AgentResult, exit_code: ExitCode, order: Order) -> ExecutionStatus:
    if result.status is not ExecutionStatus.DONE or exit_code is order.target_exit_code:
        return result.status
    is_probe = order.action is ActionName.MONITOR and order.interval_ms == 0
    if is_probe and exit_code in (ExitCode.OK, ExitCode.NOT_RUNNING, ExitCode.PROMOTED):
        return ExecutionStatus.DONE
    return ExecutionStatus.NOT_INSTALLED if exit_code is ExitCode.NOT_INSTALLED else ExecutionStatus.ERROR
