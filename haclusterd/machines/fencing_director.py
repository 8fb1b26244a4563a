"""The DC's side of fencing: whom to fence, by which device and node, and when to record it (safety.md §5).

A lost node is fenced as soon as its loss is committed; a node that a plan wants unfenced (`on`) is unfenced before
anything that needs it starts there. The fence agent's success is not enough: the target must then stay silent, heard by
no live voter for a whole heartbeat period, before its fencing is recorded. If the target is heard afterwards, the
device's success was false (`FenceOutcome.LIED`); another device is tried.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from haclusterd.cib.apply_fencing import may_be_let_in
from haclusterd.cib.commands import EndAbandonedFencing, Fenced, IssueFence, Lost, RecordFenceFailure, RecordProof
from haclusterd.machines.effects import Effect, Note, Propose, Scope
from haclusterd.machines.fence_choice import (
    attempts_of,
    executor_of,
    failures_of,
    least_tried,
    loop_pause_ms,
    unfencing_levels_for,
)
from haclusterd.machines.fence_evidence import evidence_since, is_alive_since
from haclusterd.machines.fencer import longest_call_ms
from haclusterd.machines.moment import Moment
from haclusterd.machines.watchdog_wait import WatchdogWait
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.fencing import (
    DeviceProof,
    FenceAction,
    FenceOrder,
    FenceOutcome,
    FenceState,
    ProofState,
    pause_ms,
)
from haclusterd.model.ids import FenceKey, Incarnation, NodeName, Term
from haclusterd.model.instants import NEVER, Instant, WallTime, after
from haclusterd.model.pacer import PacerReport
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.timing import Timing
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.scheduler.unpack.fence_executors import Level, able_to_use, levels_for
from haclusterd.scheduler.unpack.management import is_fencing_pointless


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a plan demands of fencing in addition to the CIB."""

    unfencings: Mapping[NodeName, str] = field(default_factory=dict)
    """The nodes that their devices must unfence, and why."""
    delay_ms: Callable[[NodeName], int | None] = lambda _node: 0
    """By how many ms a node's fencing is delayed (`priority-fencing-delay`); None: not known yet."""


NOTHING_WANTED = Wanted()


class FencingDirector:
    """Directs fencing while this node is DC; made for each term."""

    def __init__(
        self, node: NodeName, term: Term, timing: Timing, *, boot_id: str = "", rules: SafetyRules = ALL_RULES
    ) -> None:
        """`boot_id`: the boot in which this DC runs, which may be one that was to be fenced."""
        self._node = node
        self._boot_id = boot_id
        self._term = term
        self._timing = timing
        self._rules = rules
        self._succeeded_at: dict[FenceKey, Instant] = {}
        """When this DC saw each agent's success: the target must be silent from then on."""
        self._unseen_incarnations: dict[FenceKey, Incarnation | None] = {}
        """For each order about a member that never joined: the incarnation of it that was heard before its agent
        ended."""
        self._fenced_at: dict[tuple[NodeName, WallTime], Instant] = {}
        """When this DC first saw each recorded fencing, by the time of the record."""
        self._retry_at: dict[NodeName, tuple[FenceKey, Instant]] = {}
        """For each node: the newest failed attempt, and until when the next one waits."""
        self._held_until: dict[tuple[NodeName, WallTime], Instant] = {}
        """For each loss of a node: until when its fencing is delayed because there were so many."""
        self._abandoned_at: dict[FenceKey, Instant] = {}
        """When this DC first saw each order whose executor was lost, and whose agent may be at work."""
        self._noted: set[tuple[NodeName, str]] = set()
        self._watchdogs = WatchdogWait(timing, rules=rules)
        self._orders = 0
        self._wake_at = NEVER

    def retimed(self, timing: Timing) -> None:
        """Note that the administrator changed node-timeout or brain-timeout."""
        self._timing = timing
        self._watchdogs.retimed(timing)

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        return min(self._wake_at, self._watchdogs.wake_at)

    def step(
        self, cib: Cib, report: PacerReport | None, moment: Moment, wanted: Wanted = NOTHING_WANTED
    ) -> Sequence[Effect]:
        """Advance every fencing; `wanted` is what the plan demands in addition to the CIB."""
        self._wake_at = NEVER
        effects: list[Effect] = []
        self._watchdogs.observe(cib, moment)
        for order in cib.status.fence_orders.values():
            effects.extend(self._supervise(cib, order, report, moment))
        effects.extend(self._wait_for_abandoned(cib, moment))
        being_fenced = {order.target for order in cib.status.fence_orders.values()}
        lost: list[NodeStatus] = []
        for name, status in sorted(cib.status.nodes.items()):
            if name not in being_fenced and status.state is NodeState.LOST:
                lost.append(status)
            elif name not in being_fenced and status.state is NodeState.ONLINE and name in wanted.unfencings:
                effects.extend(self._order(cib, status, moment, wanted))
            elif status.state is NodeState.FENCED:
                effects.extend(self._distrust(cib, status, report, moment))
        effects.extend(self._order_fencings(cib, lost, moment, wanted))
        return effects

    def _order_fencings(
        self, cib: Cib, lost: Sequence[NodeStatus], moment: Moment, wanted: Wanted
    ) -> Iterator[Effect]:
        """Order the fencing of lost nodes; without concurrent-fencing, of one at a time.

        In the latter case the node with the fewest attempts comes first, so that one that cannot be fenced does not
        delay the others forever.
        """
        if not lost:
            return
        if ClusterProperties(cib.in_force).boolean("concurrent-fencing"):
            for status in lost:
                yield from self._order(cib, status, moment, wanted)
            return
        if any(order.action is not FenceAction.ON for order in cib.status.fence_orders.values()):
            return
        for status in sorted(lost, key=lambda each: attempts_of(failures_of(cib, each, is_unfencing=False))):
            effects = self._order(cib, status, moment, wanted)
            yield from effects
            if any(isinstance(each, Propose) and isinstance(each.command, IssueFence) for each in effects):
                return

    # -- orders under way -------------------------------------------------------------------------------------------

    def _supervise(
        self, cib: Cib, order: FenceOrder, report: PacerReport | None, moment: Moment
    ) -> Sequence[Effect]:
        if WATCHDOG in order.devices:
            return self._watchdogs.step(cib, order, report, moment)
        order = self._about_heard_incarnation(order, report)
        if order.state is FenceState.OPEN:
            executor = cib.status.nodes.get(order.executor)
            is_there = executor is not None and executor.state is NodeState.ONLINE
            if is_there and executor is not None and executor.incarnation == order.executor_incarnation:
                return ()
            return (_failed(order, FenceOutcome.UNKNOWN, f"{order.executor} is gone; whether it acted is unknown"),)
        succeeded_at = self._succeeded_at.setdefault(order.key, moment.now)
        evidence = evidence_since(cib, order, self._node, report, since=succeeded_at, timing=self._timing)
        if self._rules.heard_after_fence_is_a_lie:
            if self._is_in_the_boot_of(order):
                return (_failed(order, FenceOutcome.LIED, f"{order.target} itself is DC afterwards"),)
            if evidence.listener is not None:
                return (_failed(order, FenceOutcome.LIED, f"{evidence.listener} heard {order.target} afterwards"),)
            if not evidence.is_complete:
                self._wake_at = min(self._wake_at, after(moment.now, self._timing.heartbeat_ms))
                return ()
        detail = f"{order.action} with {order.device} by {order.executor}"
        incarnation = cib.status.fence_orders[order.key].target_incarnation
        command = Fenced(order.target, incarnation, order.key, FenceOutcome.FENCED, detail)
        return (Propose(Scope.DC, f"fenced:{order.key}", command),)

    def _wait_for_abandoned(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Wait until the agents of lost executors must have ended; a new DC starts the wait again."""
        effects: list[Effect] = []
        abandoned = cib.status.abandoned_fencings
        self._abandoned_at = {key: self._abandoned_at.get(key, moment.now) for key in abandoned}
        for key, seen_at in sorted(self._abandoned_at.items()):
            ended_at = after(seen_at, abandoned[key].longest_ms)
            if moment.now >= ended_at:
                effects.append(Propose(Scope.DC, f"abandoned:{key}", EndAbandonedFencing(key)))
            else:
                self._wake_at = min(self._wake_at, ended_at)
        return effects

    def _about_heard_incarnation(self, order: FenceOrder, report: PacerReport | None) -> FenceOrder:
        """Return an order about a member that never joined with the incarnation of it that was heard, if any was."""
        if order.target_incarnation is not None:
            return order
        if order.state is FenceState.OPEN and report is not None:
            heard = next((node for node in report.nodes if node.name == order.target), None)
            self._unseen_incarnations[order.key] = heard.incarnation if heard is not None else None
        return replace(order, target_incarnation=self._unseen_incarnations.get(order.key))

    def _is_in_the_boot_of(self, order: FenceOrder) -> bool:
        """Return whether the order is about this DC's own boot: a node does not hear itself; silence proves nothing."""
        target = order.target_incarnation
        return order.target == self._node and target is not None and target.boot_id == self._boot_id

    def _distrust(
        self, cib: Cib, status: NodeStatus, report: PacerReport | None, moment: Moment
    ) -> Sequence[Effect]:
        """Declare a node lost again that is heard in the fenced boot after its fencing was recorded.

        Messages under way when this DC first saw the record, or queued during a stall of its own, are no evidence: the
        node must have seen a heartbeat sent since then, or be heard a node-timeout later.
        """
        seen_at = self._fenced_at.setdefault((status.name, status.since), moment.now)
        if report is None or not moment.has_lease:
            return ()
        since = max(seen_at, report.stalled_at or seen_at)
        heard = next((node for node in report.nodes if node.name == status.name), None)
        if heard is None or not is_alive_since(heard, since, self._timing):
            return ()
        if heard.incarnation is None or status.incarnation is None:
            return ()
        if heard.incarnation.boot_id != status.incarnation.boot_id:
            return ()
        if heard.is_empty and _was_silenced_by_its_watchdog(cib, status):
            return ()
        text = "it is heard after its fencing was recorded"
        lost = Lost(status.name, status.incarnation, self._term, text)
        key = f"lost:{status.name}:{status.incarnation}:{self._term}"
        return (*self._record_false_success(cib, status, text, moment), Propose(Scope.DC, key, lost))

    def _record_false_success(self, cib: Cib, status: NodeStatus, text: str, moment: Moment) -> Sequence[Effect]:
        records = [record for record in cib.status.fencing_history if record.target == status.name]
        device = records[-1].device if records else None
        if device is None:
            return ()
        proof = DeviceProof(ProofState.LIED, moment.wall, text)
        return (Propose(Scope.DC, f"lied:{device}:{status.incarnation}", RecordProof(device, status.name, proof)),)

    # -- new orders -------------------------------------------------------------------------------------------------

    def _order(self, cib: Cib, status: NodeStatus, moment: Moment, wanted: Wanted) -> Sequence[Effect]:
        """Order the next attempt: to fence a lost node, or to unfence one that is online."""
        is_unfencing = status.state is NodeState.ONLINE
        properties = ClusterProperties(cib.in_force)
        levels = levels_for(cib, status) if not is_unfencing else unfencing_levels_for(cib, status)
        if not properties.boolean("fencing-enabled") or not levels:
            what = "nothing that needs unfencing starts there" if is_unfencing else "nothing of it is recovered"
            return self._note_once(status, f"no usable fencing device: {what}")
        if not is_unfencing and is_fencing_pointless(cib, status, moment.wall):
            return self._note_once(status, "what it runs is unmanaged: it is fenced when that ends, unless it is back")
        failed = failures_of(cib, status, is_unfencing=is_unfencing)
        attempts = attempts_of(failed)
        wait_ms = pause_ms(attempts, properties.integer("fencing-max-attempts"))
        wait_until = self._wait_until(status.name, failed[-1].key, wait_ms, moment) if failed else moment.now
        if not failed and not is_unfencing:
            wait_until = self._loop_pause_until(cib, status, moment)
        if moment.now < wait_until:
            self._wake_at = min(self._wake_at, wait_until)
            return ()
        levels, late = (levels, None) if is_unfencing else self._that_hold(cib, status.name, levels)
        if late is not None:
            text = f"a fence agent on {late.executor} may still let it in: it is fenced when that has ended"
            return self._note_once(status, text)
        usable = [level for level in levels if able_to_use(cib, status.name, level, is_unfencing=is_unfencing)]
        if not usable:
            devices = dict.fromkeys(device for level in levels for device in level)
            return self._note_once(status, f"no node that may use {', '.join(devices)} is online")
        level = least_tried(cib, status.name, usable, failed)
        executor = executor_of(cib, status.name, level, failed, dc=self._node, is_unfencing=is_unfencing)
        delay_ms = 0 if is_unfencing else wanted.delay_ms(status.name)
        if delay_ms is None:
            return ()
        incarnation = cib.status.nodes[executor].incarnation
        assert incarnation is not None
        self._orders += 1
        timeout_ms = properties.duration_ms("fencing-timeout")
        order = FenceOrder(
            key=FenceKey(f"{self._term}.{status.name}.{status.since}.{attempts}.{self._orders}"),
            target=status.name,
            target_incarnation=status.incarnation,
            action=FenceAction.ON if is_unfencing else FenceAction(properties.text("fencing-action")),
            device=level[0],
            executor=executor,
            executor_incarnation=incarnation,
            dc_term=self._term,
            timeout_ms=timeout_ms,
            attempt=attempts + 1,
            issued_at=moment.wall,
            reason=wanted.unfencings[status.name] if is_unfencing else status.detail,
            others=level[1:],
            delay_ms=delay_ms,
            causes=status.causes,
            longest_call_ms=longest_call_ms(cib, level, timeout_ms),
        )
        return (Propose(Scope.DC, f"fence:{status.name}", IssueFence(order)),)

    def _that_hold(
        self, cib: Cib, target: NodeName, levels: tuple[Level, ...]
    ) -> tuple[tuple[Level, ...], FenceOrder | None]:
        """Return the levels after which no lost executor's agent can unfence the target; without any, such an order."""
        if not self._rules.abandoned_agent_holds_fencing:
            return levels, None
        late = {level: may_be_let_in(cib, target, after=level) for level in levels}
        usable = tuple(level for level in levels if late[level] is None)
        return usable, None if usable else late[levels[0]]

    def _loop_pause_until(self, cib: Cib, status: NodeStatus, moment: Moment) -> Instant:
        """Return until when the fencing of a repeatedly fenced node waits; decided when this DC first sees its loss.

        A change of the wall clock does not prolong it.
        """
        if not loop_pause_ms(cib, status, moment.wall):
            return moment.now
        loss = (status.name, status.since)
        if loss not in self._held_until:
            self._held_until = {known: until for known, until in self._held_until.items() if known[0] != status.name}
            self._held_until[loss] = after(moment.now, loop_pause_ms(cib, status, moment.wall))
        return self._held_until[loss]

    def _wait_until(self, node: NodeName, newest: FenceKey, wait_ms: int, moment: Moment) -> Instant:
        known = self._retry_at.get(node)
        if known is None or known[0] != newest:
            known = self._retry_at[node] = (newest, after(moment.now, wait_ms))
        return known[1]

    def _note_once(self, status: NodeStatus, text: str) -> Sequence[Effect]:
        self._noted &= {item for item in self._noted if item[0] != status.name or item[1] == text}
        if (status.name, text) in self._noted:
            return ()
        self._noted.add((status.name, text))
        return (Note("fencing", f"{status.name}: {text}"),)


def _was_silenced_by_its_watchdog(cib: Cib, status: NodeStatus) -> bool:
    """Return whether the last fencing relied on the watchdog: it does not reset an empty node, which may be heard."""
    records = [record for record in cib.status.fencing_history if record.target == status.name]
    return bool(records) and records[-1].device == WATCHDOG


def _failed(order: FenceOrder, outcome: FenceOutcome, detail: str) -> Effect:
    return Propose(Scope.DC, f"fence-failed:{order.key}", RecordFenceFailure(order.key, outcome, detail))
