"""Executes this node's orders, at most once each, and runs its recurring monitors.

The rules it keeps (safety.md §1, §2, §4):

* It considers orders only after its own process's Join was applied, and only those that name its own incarnation.
* Just before an activating action starts: the lease is fresh, the order is open and not voided, its deadline has not
  passed. Otherwise the order is answered with "not begun", and is never started.
* Activating orders of an earlier incarnation of this boot are answered with "unknown" once their agents have ended.
* A start that claims devices begins only when the node has proven that nothing uses them except what shares them. It
  waits in its queue until then; after a bounded time it fails, and no agent has run.
* One action of a resource at a time, first come, first served. An agent that an earlier incarnation of this boot left
  running blocks its resource until it has ended.
* When the lease ends it kills activating actions, stops everything that may be active here in the order of the
  constraints, and takes no orders until it has joined under a new incarnation. Unmanaged resources run on, and so do
  those that must not stop before them.

It has no clock and does no I/O: it is given the time and returns effects.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from haclusterd.cib.activity import possibly_active
from haclusterd.machines.effects import Effect, KillAgent, Note, PublishEmpty, RunAgent, WatchService
from haclusterd.machines.executing.acting_alone import (
    RECORDED_DEAD,
    ActingAlone,
    LoneAction,
    Reset,
    ResetEvent,
    ResetWish,
    Situation,
    described,
)
from haclusterd.machines.executing.device_proofs import DeviceProofs, order_of
from haclusterd.machines.executing.order_answers import OrderAnswers
from haclusterd.machines.executing.own_record import OwnRecord
from haclusterd.machines.executing.recurring import Recurring
from haclusterd.machines.executing.resource_queue import (
    MONITORS,
    UNKILLABLE_MS,
    WANTED,
    Adopted,
    AgentAtWork,
    QueueEvent,
    QueueState,
    ResourceQueue,
)
from haclusterd.machines.moment import Moment
from haclusterd.machines.no_quorum import LonePolicy, panics
from haclusterd.model.activity import Way, ways_of
from haclusterd.model.agent_calls import AdoptedAction, AgentCall, AgentResult
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.device_reports import DeviceUse
from haclusterd.model.devices import ACCELERATORS, DeviceId, DeviceKind, NodeDevices
from haclusterd.model.ids import Incarnation, NodeName, OrderKey, ResourceId
from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.ocf import BEGINNINGS, ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.state_tables import Transition, TransitionTable

CHECK_LEVEL = "OCF_CHECK_LEVEL"
_SHOWS_ACTIVE = (ActionName.START, ActionName.PROMOTE, ActionName.MIGRATE_FROM, ActionName.MONITOR)


class IncarnationState(StrEnum):
    """Whether one incarnation of this node takes orders."""

    BEFORE_JOIN = "has not joined"
    JOINED = "takes orders, unless it acts alone"
    OUTSIDE = "had joined"


class IncarnationEvent(StrEnum):
    """What changes that."""

    ONLINE = "the CIB has this incarnation online"
    NOT_ONLINE = "the CIB has it lost, fenced, gone, or has another"
    NEW_INCARNATION = "a new incarnation was drawn"


INCARNATIONS: Final = TransitionTable(
    "An incarnation of a node, as its executor sees it",
    "Only an incarnation that has joined knows all that this boot may have started.",
    (IncarnationState.BEFORE_JOIN,),
    (
        Transition(
            (IncarnationState.BEFORE_JOIN, IncarnationState.OUTSIDE), IncarnationEvent.ONLINE, IncarnationState.JOINED
        ),
        Transition((IncarnationState.JOINED,), IncarnationEvent.NOT_ONLINE, IncarnationState.OUTSIDE),
        Transition(tuple(IncarnationState), IncarnationEvent.NEW_INCARNATION, IncarnationState.BEFORE_JOIN),
    ),
)


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
        self._record = OwnRecord(node, incarnation, rules)
        self._state = IncarnationState.BEFORE_JOIN
        self._queues: dict[ResourceId, ResourceQueue] = {}
        self._at_work: dict[str, ResourceQueue] = {}
        """By the agent's key: the queues whose agent, called by this daemon, is at work."""
        self._held: list[ResourceQueue] = []
        """Queues that agents of earlier incarnations may block."""
        self._due: list[tuple[Instant, ResourceId, int]] = []
        """A heap of (due time, resource, interval) of recurring monitors. An outdated entry stays until its time."""
        self._startable: set[ResourceId] = set()
        """Resources with waiting orders or a monitor that was due at the last step; others have nothing to start."""
        self._room = 0
        """How many more actions may start in this step."""
        self._received: dict[OrderKey, Instant] = {}
        """The open orders of this incarnation that were taken in, and when: each is taken in once."""
        self._known_orders: Mapping[OrderKey, Order] | None = None
        """The open orders of this node at the last step: the same object has not changed."""
        self._inherited: dict[OrderKey, Order] = {}
        """Open orders of an earlier incarnation of this boot, which this one answers when their agents have ended."""
        self._unkillable: dict[str, ResourceId] = {}
        """Agents of earlier incarnations that outlived their kill; nothing waits for them any more."""
        self._ran_to_its_end: set[str] = set()
        """Agents of earlier incarnations that ended without being killed."""
        self._answered_orders: set[OrderKey] = set()
        """The inherited orders that this incarnation has answered."""
        self._answers = OrderAnswers(node)
        self._runs = 0
        self._lease_grace_ms = lease_grace_ms
        self._started_at = self._stepped_at = now
        self._grace_until = after(now, lease_grace_ms)
        """The time until which a daemon that has just started waits for its first lease."""
        self._alone: ActingAlone | None = None
        """The stops of this incarnation without orders; None: it has not acted alone."""
        self._proofs = DeviceProofs()
        self._reset = ResetWish()
        self._stopped_alone: set[ResourceId] = set()
        """What was stopped without orders by incarnations of this process since the last one that took orders."""
        self._is_empty: bool | None = None
        """What was last published; None: nothing yet."""

    @property
    def has_acted_alone(self) -> bool:
        """Whether the lease ended and this node stopped its resources: it must join under a new incarnation."""
        return self._alone is not None

    @property
    def stopped_alone(self) -> frozenset[ResourceId]:
        """What was stopped here without an order, and is not yet stopped in the CIB."""
        return frozenset(self._stopped_alone)

    @property
    def keeps_running(self) -> bool:
        """Whether this node leaves its resources running when it has no lease."""
        return self._record.policy.keeps_running

    def awaits_reset(self, cib: Cib) -> bool:
        """Return whether this node is lost in a CIB, which the executor may not have seen yet, and is to be reset.

        No other incarnation starts before the reset.
        """
        return self._reset.state is Reset.AWAITED or (self._record.is_given_up(cib) and panics(cib.in_force))

    @property
    def is_stopping_alone(self) -> bool:
        """Whether stops without orders are still under way."""
        return (self._alone is not None and self._alone.has_more_to_begin) or bool(self._stopping_now())

    # -- events -----------------------------------------------------------------------------------------------------

    def adopted(self, actions: Sequence[AdoptedAction]) -> None:
        """Take over agents that earlier incarnations of this boot left running."""
        for action in actions:
            if action.is_running and self._rules.adopt_running_agents:
                adopted = Adopted(action.action, max(action.deadline, self._started_at))
                queue = self._queue(action.resource)
                queue.adopt(action.key, adopted)
                self._held.append(queue)
            elif not action.is_running:
                self._ran_to_its_end.add(action.key)

    def adopted_ended(self, key: str, moment: Moment) -> Sequence[Effect]:
        """Take the end of an adopted agent."""
        self._unkillable.pop(key, None)
        for queue in self._queues.values():
            if key in queue.adopted and moment.now < queue.release(key).ends_at:
                self._ran_to_its_end.add(key)
        return self._step(moment)

    def reincarnated(self, incarnation: Incarnation, moment: Moment) -> Sequence[Effect]:
        """Start a new incarnation: earlier orders are void; an agent at work blocks its resource until it ends."""
        effects: list[Effect] = []
        self._incarnation = incarnation
        self._record.begin_incarnation(incarnation)
        self._state = INCARNATIONS.after(self._state, IncarnationEvent.NEW_INCARNATION)
        self._known_orders = None
        self._inherited.clear()
        self._answered_orders.clear()
        self._alone = None
        effects.extend(self._reset.happened(ResetEvent.NEW_INCARNATION))
        self._grace_until = after(moment.now, self._lease_grace_ms)
        for queue in self._queues.values():
            queue.orders.clear()
            effects.extend(self._forget_recurring(queue))
            queue.abandon()
        self._answers.drop()
        return [*effects, *self._step(moment)]

    def cib_changed(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Take the newest applied CIB."""
        self._record.take(cib)
        status = self._record.status
        is_joined = self._record.is_joined
        if is_joined is not (self._state is IncarnationState.JOINED):
            event = IncarnationEvent.ONLINE if is_joined else IncarnationEvent.NOT_ONLINE
            self._state = INCARNATIONS.after(self._state, event)
            if is_joined and status is not None:
                self._answers.number_from(status.last_call_id)
        if is_joined and status is not None and self._alone is None:
            self._stopped_alone.clear()
            self._take_in(status, moment)
        return self._step(moment)

    def agent_finished(self, result: AgentResult, moment: Moment) -> Sequence[Effect]:
        """Take the result of an agent."""
        queue = self._at_work.get(result.key)
        if queue is None:
            return ()
        del self._at_work[result.key]
        agent, state = queue.end()
        effects: list[Effect] = []
        if state is QueueState.ACTING_ALONE:
            self._own_action_ended(queue.resource, agent, result)
        elif state in WANTED:
            effects.extend(self._conclude(queue, agent, state, result, moment))
        elif result.status is ExecutionStatus.DONE:
            self._ran_to_its_end.add(agent.key)
        return [*effects, *self._step(moment)]

    def service_died(self, resource: ResourceId, moment: Moment) -> Sequence[Effect]:
        """Note that a process of an active resource has exited: run its monitor at once."""
        queue = self._queues.get(resource)
        if queue is not None and queue.recurring:
            shortest = queue.recurring[min(queue.recurring)]
            shortest.hurry(moment.now)
            self._note_due(resource, shortest)
        return self._step(moment)

    def devices_looked(self, key: str, use: DeviceUse, moment: Moment) -> Sequence[Effect]:
        """Take what uses the devices of an order that waits for them."""
        wanted = order_of(key)
        known = self._record.cib.status.devices.get(self._node, NodeDevices())
        for queue in self._queues.values():
            for order in queue.orders:
                if order.key == wanted:
                    self._proofs.answered(order, key, use, known, moment.now)
        return self._step(moment)

    def give_up(self, cause: str, moment: Moment) -> Sequence[Effect]:
        """Stop everything without orders: this node is to leave, and no order to stop came in time."""
        if self._alone is not None:
            return ()
        return [*self._begin_to_act_alone(cause, moment), *self._step(moment)]

    def retimed(self, lease_grace_ms: int) -> None:
        """Note that the administrator changed node-timeout."""
        self._lease_grace_ms = lease_grace_ms

    def ticked(self, moment: Moment) -> Sequence[Effect]:
        """Note that time has passed."""
        return self._step(moment)

    def deadline(self, moment: Moment) -> Instant:
        """Return when `ticked` must be called next; it is in the past if something fell due since the last step."""
        since = self._stepped_at
        due = [self._proofs.deadline(since), self._next_due(since)]
        for queue in self._held:
            due += [after(adopted.ends_at, UNKILLABLE_MS) for adopted in queue.adopted.values()]
        if self._alone is None:
            due.append(max(moment.lease_until, self._grace_until))
        return min([instant for instant in due if instant > since], default=NEVER)

    # -- taking orders in -------------------------------------------------------------------------------------------

    def _take_in(self, status: NodeStatus, moment: Moment) -> None:
        open_orders = status.orders
        if open_orders is self._known_orders:
            return
        self._known_orders = open_orders
        self._received = {key: at for key, at in self._received.items() if key in open_orders}
        self._proofs.keep(open_orders)
        for queue in self._queues.values():
            dropped = [order for order in queue.orders if self._is_unwanted(open_orders.get(order.key))]
            for order in dropped:
                queue.orders.remove(order)
                self._answers.not_begun(order, "no longer wanted", moment.wall)
        self._answered_orders &= set(open_orders)
        self._inherited = {
            key: order
            for key, order in open_orders.items()
            if order.incarnation != self._incarnation and key not in self._answered_orders
        } if self._rules.order_names_incarnation else {}
        for key, order in open_orders.items():
            if key in self._received:
                continue
            if order.incarnation != self._incarnation and self._rules.order_names_incarnation:
                continue
            self._received[key] = moment.now
            self._answers.compare_clocks(order, moment.wall)
            if order.is_voided and self._rules.order_still_open_before_exec:
                self._answers.not_begun(order, "no longer wanted", moment.wall)
            else:
                self._queue(order.resource).orders.append(order)
                self._startable.add(order.resource)

    def _is_unwanted(self, order: Order | None) -> bool:
        if not self._rules.order_still_open_before_exec:
            return False
        return order is None or order.is_voided

    def _queue(self, resource: ResourceId) -> ResourceQueue:
        queue = self._queues.get(resource)
        if queue is None:
            queue = self._queues[resource] = ResourceQueue(resource)
        return queue

    def _occupy(self, queue: ResourceQueue, event: QueueEvent, agent: AgentAtWork) -> None:
        """Note an agent that is called now."""
        queue.begin(event, agent)
        self._at_work[agent.key] = queue

    def _note_due(self, resource: ResourceId, recurring: Recurring) -> None:
        """Note when a monitor is due; to be called after each change of that."""
        heapq.heappush(self._due, (recurring.due_at, resource, recurring.order.interval_ms))

    def _next_due(self, now: Instant) -> Instant:
        """Return when the next monitor is due after `now`; the resources of those already due become startable."""
        while self._due:
            due_at, resource, interval_ms = self._due[0]
            recurring = self._queues[resource].recurring.get(interval_ms)
            if recurring is not None and recurring.due_at == due_at:
                if due_at > now:
                    return due_at
                self._startable.add(resource)
            heapq.heappop(self._due)
        return NEVER

    # -- one step ---------------------------------------------------------------------------------------------------

    def _step(self, moment: Moment) -> list[Effect]:
        effects: list[Effect] = []
        self._stepped_at = moment.now
        self._give_up_unkillable(moment)
        cause = self._must_act_alone(moment)
        if cause:
            effects.extend(self._begin_to_act_alone(cause, moment))
        effects.extend(self._react_to_loss())
        if self._alone is not None:
            effects.extend(self._continue_alone(self._alone, moment))
        elif self._state is IncarnationState.JOINED:
            self._answer_for_earlier_incarnations(moment)
            for queue in self._queues_to_advance(moment.now):
                effects.extend(self._advance(queue, moment))
        effects.extend(self._report())
        return [*self._publish_empty(), *effects]

    def _give_up_unkillable(self, moment: Moment) -> None:
        """Stop waiting for an agent of an earlier incarnation that outlived its kill.

        It runs no more code of its own. While it is there, the next action of the resource fails, as after a timeout in
        this incarnation, and a stop that fails is a reason to fence.
        """
        for queue in self._held:
            self._unkillable.update(dict.fromkeys(queue.release_unkillable(moment.now), queue.resource))
        self._held = [queue for queue in self._held if queue.adopted]

    def _report(self) -> Sequence[Effect]:
        """Propose all results since the last step; an incarnation that has not joined reports nothing."""
        if self._state is not IncarnationState.JOINED:
            return ()
        return self._answers.proposals(self._incarnation)

    def _publish_empty(self) -> list[Effect]:
        """Return the effect that says whether nothing managed can be active here (safety.md §2, "Feed").

        An incarnation that has not joined starts nothing, and may know less than its predecessor: it proves nothing
        new, and the last statement before it, or at boot, stands.
        """
        has_joined = self._state is not IncarnationState.BEFORE_JOIN
        if self._is_empty is None and not has_joined and not self._is_busy():
            return []
        is_proven = self._is_empty is True
        if self._alone is not None:
            is_proven = (is_proven or has_joined) and self._alone.is_proven_empty
        elif self._state is IncarnationState.JOINED:
            is_proven = self._record.holds_nothing
        is_empty = is_proven and not self._is_busy()
        if is_empty == self._is_empty:
            return []
        self._is_empty = is_empty
        return [PublishEmpty(is_empty)]

    def _is_busy(self) -> bool:
        """Return whether an agent is at work, or may soon be."""
        return bool(self._unkillable or self._at_work) or any(
            queue.adopted or queue.orders for queue in self._queues.values()
        )

    def _advance(self, queue: ResourceQueue, moment: Moment) -> list[Effect]:
        effects: list[Effect] = []
        if queue.orders and queue.state in MONITORS:
            if self._ends_monitors(queue.orders[0]):
                effects.extend(queue.kill_monitor())
            return effects
        while queue.orders and queue.is_free and self._room > 0:
            effects.extend(self._prove_devices(queue.orders[0], moment))
            if self._awaits_devices(queue.orders[0], moment):
                break
            effects.extend(self._begin(queue, queue.orders.pop(0), moment))
            self._room -= queue.at_work is not None
        if queue.is_free and not queue.orders:
            effects.extend(self._run_due_monitor(queue, moment))
        return effects

    def _queues_to_advance(self, now: Instant) -> Iterator[ResourceQueue]:
        """Yield the queues in which something may start now, in order of the resources' names.

        There is a queue for each resource, and most are idle: only those with orders or with a due monitor are visited.
        While no action may start, only those are visited in which something must be ended to make room for an order.
        """
        self._next_due(now)
        self._room = self._actions_max - sum(queue.state not in MONITORS for queue in self._at_work.values())
        for resource in sorted(self._startable):
            queue = self._queues[resource]
            if queue.orders:
                if self._room > 0 or queue.state in MONITORS:
                    yield queue
            elif queue.most_overdue(now) is not None:
                yield queue
            else:
                self._startable.discard(resource)

    @staticmethod
    def _ends_monitors(order: Order) -> bool:
        return order.action not in (ActionName.MONITOR, ActionName.NOTIFY)

    def _prove_devices(self, order: Order, moment: Moment) -> Sequence[Effect]:
        """Request a check of the devices of an order that may start."""
        if not self._is_bound_to_proof(order) or self._objection(order, moment):
            return ()
        return self._proofs.ask(order, moment.now)

    def _is_bound_to_proof(self, order: Order) -> bool:
        return self._rules.device_is_free_at_start and self._proofs.is_needed(order)

    def _awaits_devices(self, order: Order, moment: Moment) -> bool:
        if not self._is_bound_to_proof(order) or self._objection(order, moment):
            return False
        return not self._proofs.is_proven(order, moment.now) and not self._proofs.failure(order, moment.now)

    def _begin(self, queue: ResourceQueue, order: Order, moment: Moment) -> list[Effect]:
        objection = self._objection(order, moment)
        if objection:
            self._answers.not_begun(order, objection, moment.wall)
            return []
        used = self._proofs.failure(order, moment.now) if self._is_bound_to_proof(order) else ""
        if used:
            # It is not a failure of the service, so it adds to no fail count and bans no node.
            self._answers.not_begun(order, used, moment.wall)
            return []
        effects: list[Effect] = []
        if self._ends_monitors(order) and order.action is not ActionName.CANCEL:
            effects.extend(self._forget_recurring(queue))
        if order.action is ActionName.CANCEL:
            self._end_recurring(queue, order.interval_ms)
            self._answers.done(order, moment.wall)
            return effects
        if order.action is ActionName.MONITOR and order.interval_ms:
            self._end_recurring(queue, order.interval_ms)
            recurring = queue.recurring[order.interval_ms] = Recurring.begin(order, moment.now)
            self._note_due(queue.resource, recurring)
            return effects
        if order.action is ActionName.STOP:
            effects.extend(queue.unwatch())
        call = self._call(order, str(order.key))
        self._occupy(queue, QueueEvent.BEGIN_ORDER, AgentAtWork(call.key, order.action, order, moment.now))
        effects.append(RunAgent(call))
        return effects

    def _objection(self, order: Order, moment: Moment) -> str:
        """Return why an order must not start now; empty when it may."""
        if not order.is_activating:
            return ""
        if self._rules.lease_before_exec and not moment.has_lease:
            return "this node holds no lease"
        waited = moment.now - self._received.get(order.key, moment.now)
        if self._rules.order_deadline and waited > order.deadline_ms:
            return f"its deadline passed ({waited} ms after its receipt)"
        return ""

    def _end_recurring(self, queue: ResourceQueue, interval_ms: int) -> None:
        unanswered = queue.disarm(interval_ms)
        if unanswered is not None:
            self._answers.cancelled(unanswered)

    def _forget_recurring(self, queue: ResourceQueue) -> Sequence[Effect]:
        for interval_ms in tuple(queue.recurring):
            self._end_recurring(queue, interval_ms)
        return queue.kill_monitor()

    def _run_due_monitor(self, queue: ResourceQueue, moment: Moment) -> list[Effect]:
        recurring = queue.most_overdue(moment.now)
        if recurring is None:
            return []
        self._runs += 1
        call = self._call(recurring.order, f"{recurring.order.key}.{self._runs}")
        agent = AgentAtWork(call.key, ActionName.MONITOR, recurring.order, moment.now)
        self._occupy(queue, QueueEvent.BEGIN_MONITOR, agent)
        return [RunAgent(call)]

    # -- results ----------------------------------------------------------------------------------------------------

    def _conclude(
        self, queue: ResourceQueue, agent: AgentAtWork, state: QueueState, result: AgentResult, moment: Moment
    ) -> Sequence[Effect]:
        order = agent.order
        assert order is not None
        if not result.is_begun:
            self._answers.not_begun(order, result.exit_reason, moment.wall)
            return ()
        queued_ms = agent.began_at - self._received.get(order.key, agent.began_at)
        answer = self._answers.of_agent(queue.resource, order, result, queued_ms=queued_ms, wall=moment.wall)
        if state is QueueState.MONITORING:
            recurring = queue.recurring.get(order.interval_ms)
            if recurring is None or result.status is ExecutionStatus.CANCELLED:
                return ()
            news = recurring.answered(answer, moment.now)
            self._note_due(queue.resource, recurring)
            if news is not None:
                self._answers.add(news)
        else:
            self._answers.add(answer)
            if order.is_probe and answer.exit_code is ExitCode.NOT_RUNNING:
                # `apply` drops the records of its monitors, so that no order would end them.
                return [*self._forget_recurring(queue), *queue.unwatch()]
        return self._watch(queue, order, answer.exit_code)

    def _watch(self, queue: ResourceQueue, order: Order, exit_code: ExitCode) -> Sequence[Effect]:
        is_active = exit_code in (ExitCode.OK, ExitCode.PROMOTED) and order.action in _SHOWS_ACTIVE
        if not is_active or order.agent.standard == "stonith":
            return ()
        is_new = order.action is not ActionName.MONITOR or not queue.is_watched
        queue.is_watched = True
        return (WatchService(queue.resource, str(queue.resource)),) if is_new else ()

    def _answer_for_earlier_incarnations(self, moment: Moment) -> None:
        """Close open orders of an earlier incarnation of this boot once no agent works on their resource any more.

        Their outcome is unknown: the resource is probed, and so it is at the other end of a migration. The status says
        whether the agent ended by itself, or may have been killed midway.
        """
        ended = [key for key, order in self._inherited.items() if self._queue(order.resource).is_free]
        for key in ended:
            self._answered_orders.add(key)
            is_whole = str(key) in self._ran_to_its_end
            self._answers.of_earlier_incarnation(self._inherited.pop(key), moment.wall, is_whole=is_whole)

    # -- acting alone -----------------------------------------------------------------------------------------------

    def _must_act_alone(self, moment: Moment) -> str:
        """Return why this node must stop its resources; empty when it need not."""
        if self._alone is not None:
            return ""
        status = self._record.status
        is_own = status is not None and status.incarnation == self._incarnation
        if self._record.is_recorded_dead() and (is_own or self._possibly_active_here()):
            return RECORDED_DEAD
        is_lost = status is not None and is_own and status.state is NodeState.LOST and not status.has_detached
        if is_lost and self._rules.stop_on_lease_end and (self._record.panics or not self.keeps_running):
            return "this node was declared lost"
        if self.keeps_running:
            return ""
        if moment.has_lease or not self._rules.stop_on_lease_end or moment.now < self._grace_until:
            return ""
        return "the lease ended"

    def _react_to_loss(self) -> Sequence[Effect]:
        """Have the watchdog reset a node that is lost by its own CIB, if configured (`fence-reaction=panic`)."""
        record = self._record
        if self._reset.state is Reset.AWAITED or not record.panics or not record.is_given_up(record.cib):
            return ()
        text = "this node was declared lost or recorded as fenced: its watchdog resets it"
        return (Note("panic", text), *self._reset.happened(ResetEvent.GIVEN_UP))

    def _begin_to_act_alone(self, cause: str, moment: Moment) -> list[Effect]:
        effects: list[Effect] = []
        active = self._possibly_active_here()
        alone = self._alone = ActingAlone(self._node, self._rules, active, self._situation(moment), self._origin)
        if alone.has_more_to_begin or alone.held:
            effects.extend(self._condemn_by_policy())
        for queue in self._queues.values():
            queue.orders.clear()
            effects.extend(self._forget_recurring(queue))
            agent = queue.at_work
            if agent is not None and agent.action != ActionName.STOP:
                queue.abandon()
                if queue.resource not in alone.untouched:
                    effects.append(KillAgent(agent.key))
            if queue.resource not in alone.untouched:
                effects.extend(queue.kill_adopted(moment.now))
            effects.extend(queue.unwatch())
        self._answers.drop()
        done = alone.describe()
        if done:
            effects.append(Note("acting-alone", f"{cause}; {done}"))
        return effects

    def _condemn_by_policy(self) -> Sequence[Effect]:
        """Have the watchdog reset a node on which something ran (`no-quorum-policy=fence`)."""
        is_fencing_itself = self._record.policy is LonePolicy.FENCE
        return self._reset.happened(ResetEvent.FENCES_ITSELF) if is_fencing_itself else ()

    def _situation(self, moment: Moment) -> Situation:
        record = self._record
        return Situation(record.cib, record.in_force, record.is_recorded_dead(), record.policy, moment.wall)

    def _possibly_active_here(self) -> frozenset[ResourceId]:
        """Return what may run here; resources of an earlier boot died with it."""
        begun = {queue.resource for queue in self._queues.values() if queue.at_work is not None or queue.adopted}
        begun |= {*self._unkillable.values()}
        in_force = self._record.in_force
        known = possibly_active(in_force) if in_force is not None else frozenset()
        return (known - self._stopped_alone) | begun

    def _origin(self, resource: ResourceId) -> tuple[Way, ...]:
        """Return the alternatives by which a resource may run here."""
        agent, in_force = self._queue(resource).at_work, self._record.in_force
        known = ways_of(in_force, resource) if in_force is not None else ()
        if agent is None or agent.order is None:
            return known
        asked = (agent.order.agent, agent.order.lasting_parameters)
        return (asked, *(way for way in known if way != asked))

    def _continue_alone(self, alone: ActingAlone, moment: Moment) -> list[Effect]:
        situation = self._situation(moment)
        effects: list[Effect] = []
        ended = alone.end_what_was_left(situation, self._possibly_active_here, self._origin)
        if ended:
            effects.append(Note("acting-alone", f"{RECORDED_DEAD}; {described(ended)}"))
            effects.extend(self._kill_agents_of(ended, moment))
        kept = alone.stop_what_was_kept(situation, self._possibly_active_here, self._origin)
        if kept:
            effects.extend(self._condemn_by_policy())
            text = f"no-quorum-policy={situation.policy} keeps it no longer; {described(kept)}"
            effects.append(Note("acting-alone", text))
        freed = alone.stop_what_nothing_holds(situation, self._possibly_active_here, self._origin)
        if freed:
            effects.append(Note("acting-alone", f"nothing unmanaged runs that must stop first; {described(freed)}"))
        come = alone.stop_what_has_come(situation, self._possibly_active_here, self._origin)
        if come:
            effects.extend(self._condemn_by_policy())
            effects.append(Note("acting-alone", f"recorded only now as possibly active here; {described(come)}"))
        left = alone.leave_what_became_unmanaged(situation)
        if left:
            effects.append(Note("acting-alone", left))
        for action in alone.next_actions(lambda resource: self._queue(resource).is_free, self._stopping_now()):
            effects.append(self._act_alone(action, moment))
        return effects

    def _stopping_now(self) -> list[ResourceId]:
        """Return the resources on which an agent that this node called without an order is at work."""
        return [queue.resource for queue in self._at_work.values() if queue.state is QueueState.ACTING_ALONE]

    def _kill_agents_of(self, resources: frozenset[ResourceId], moment: Moment) -> list[Effect]:
        effects: list[Effect] = []
        for queue in (self._queue(resource) for resource in sorted(resources)):
            agent = queue.at_work
            is_own = queue.state is QueueState.ACTING_ALONE and agent is not None and agent.action != ActionName.MONITOR
            if agent is not None and not is_own and agent.action != ActionName.STOP:
                effects.append(KillAgent(agent.key))
            effects.extend(queue.kill_adopted(moment.now))
        return effects

    def _act_alone(self, action: LoneAction, moment: Moment) -> Effect:
        self._runs += 1
        meta = {"timeout": str(action.timeout_ms), "name": str(action.action), "on_node": str(self._node)}
        if action.action is ActionName.MONITOR:
            meta["interval"] = "0"
        call = AgentCall(
            key=f"alone-{self._incarnation.token}-{self._runs}",
            resource=action.resource,
            instance=str(action.resource),
            agent=action.agent,
            action=action.action,
            parameters=action.parameters,
            meta=meta,
            timeout_ms=action.timeout_ms,
            incarnation=self._incarnation,
        )
        agent = AgentAtWork(call.key, action.action, None, moment.now)
        self._occupy(self._queue(action.resource), QueueEvent.BEGIN_ALONE, agent)
        return RunAgent(self._with_devices(call, None))

    def _own_action_ended(self, resource: ResourceId, agent: AgentAtWork, result: AgentResult) -> None:
        if self._alone is not None and self._alone.ended(resource, agent.action, result):
            self._stopped_alone.add(resource)

    # -- calls ------------------------------------------------------------------------------------------------------

    def _call(self, order: Order, key: str) -> AgentCall:
        parameters = {name: value for name, value in order.parameters.items() if name != CHECK_LEVEL}
        call = AgentCall(
            key=key,
            resource=order.resource,
            instance=str(order.resource),
            agent=order.agent,
            action=str(order.action),
            parameters=parameters,
            meta=order.meta,
            timeout_ms=order.timeout_ms,
            incarnation=self._incarnation,
            check_level=order.parameters.get(CHECK_LEVEL),
        )
        return self._with_devices(call, order)

    def _with_devices(self, call: AgentCall, order: Order | None) -> AgentCall:
        """Return a call with its devices: those of its order if it activates, later those that it was started with."""
        resource, in_force = call.resource, self._record.in_force
        history = in_force.histories.get(resource) if in_force is not None else None
        devices = history.devices if history is not None else ()
        if order is not None and order.action in BEGINNINGS:
            devices = order.devices
        elif order is None and in_force is not None:
            begun = (each for each in in_force.orders.values() if each.resource == resource)
            devices = next((each.devices for each in begun if each.action in BEGINNINGS), devices)
        if not devices:
            return call
        known = self._record.cib.status.devices.get(self._node, NodeDevices()).devices
        kinds = {name: known[DeviceId(name)].kind for name in devices if name in known}
        accelerators = tuple(name for name in devices if kinds.get(name, DeviceKind.GPU) in ACCELERATORS)
        return replace(call, devices=devices, accelerators=accelerators)
