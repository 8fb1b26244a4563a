"""The DC's side of fencing: who must be fenced, with which device, by whom, and when it is believed (safety.md §5).

A lost node is fenced from the moment its loss is committed. The fence agent's word is not enough: the target must then
stay silent, heard by no live voter for a whole heartbeat period, before its fencing is recorded. A device whose target
is heard afterwards has lied; another is tried.
"""

from collections.abc import Sequence

from haclusterd.cib.apply_fencing import proof_key
from haclusterd.cib.commands import Fenced, IssueFence, Lost, RecordFenceFailure, RecordProof
from haclusterd.machines.effects import Effect, Note, Propose
from haclusterd.machines.fence_evidence import evidence_since, is_alive_since
from haclusterd.machines.moment import Moment
from haclusterd.machines.watchdog_wait import WatchdogWait
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import effective
from haclusterd.model.fencing import (
    DeviceProof,
    FenceAction,
    FenceOrder,
    FenceOutcome,
    FenceState,
    FencingRecord,
    ProofState,
)
from haclusterd.model.ids import FenceKey, NodeName, ResourceId, Term
from haclusterd.model.instants import NEVER, Instant, WallTime, after
from haclusterd.model.pacer import PacerReport
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.timing import Timing
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.scheduler.fencing_capability import executors_of, fencing_levels, watchdog_levels

BACKOFF_FIRST_MS = 1000
BACKOFF_MAX_MS = 30_000
QUICK_ATTEMPTS = 2
"""So many attempts follow each other at once; later ones wait, twice as long each time."""


class FencingDirector:
    """Directs fencing while this node is DC; made anew each time."""

    def __init__(self, node: NodeName, term: Term, timing: Timing, *, rules: SafetyRules = ALL_RULES) -> None:
        self._node = node
        self._term = term
        self._timing = timing
        self._rules = rules
        self._succeeded_at: dict[FenceKey, Instant] = {}
        """When this DC saw each agent's success: the target must be silent from then on."""
        self._fenced_at: dict[tuple[NodeName, WallTime], Instant] = {}
        """When this DC saw each recorded fencing first, named by when it was recorded."""
        self._retry_at: dict[NodeName, tuple[int, Instant]] = {}
        """For each lost node: after how many failed attempts, until when the next waits."""
        self._told: set[tuple[NodeName, str]] = set()
        self._watchdogs = WatchdogWait(timing, rules=rules)
        self._wake_at = NEVER

    def retimed(self, timing: Timing) -> None:
        """The administrator changed node-timeout or brain-timeout."""
        self._timing = timing
        self._watchdogs.retimed(timing)

    def deadline(self) -> Instant:
        """Return when `step` is wanted next."""
        return min(self._wake_at, self._watchdogs.wake_at)

    def step(self, cib: Cib, report: PacerReport | None, moment: Moment) -> Sequence[Effect]:
        """Move every fencing on."""
        self._wake_at = NEVER
        effects: list[Effect] = []
        self._watchdogs.observe(cib, moment)
        for order in cib.status.fence_orders.values():
            effects.extend(self._supervise(cib, order, report, moment))
        being_fenced = {order.target for order in cib.status.fence_orders.values()}
        for name, status in sorted(cib.status.nodes.items()):
            if status.state is NodeState.LOST and name not in being_fenced:
                effects.extend(self._order(cib, status, moment))
            elif status.state is NodeState.FENCED:
                effects.extend(self._distrust(cib, status, report, moment))
        return effects

    # -- orders under way -------------------------------------------------------------------------------------------

    def _supervise(
        self, cib: Cib, order: FenceOrder, report: PacerReport | None, moment: Moment
    ) -> Sequence[Effect]:
        if WATCHDOG in order.devices:
            return self._watchdogs.step(cib, order, report, moment)
        if order.state is FenceState.OPEN:
            executor = cib.status.nodes.get(order.executor)
            is_there = executor is not None and executor.state is NodeState.ONLINE
            if is_there and executor is not None and executor.incarnation == order.executor_incarnation:
                return ()
            return (_failed(order, FenceOutcome.UNKNOWN, f"{order.executor} is gone; whether it acted is unknown"),)
        succeeded_at = self._succeeded_at.setdefault(order.key, moment.now)
        evidence = evidence_since(cib, order, self._node, report, since=succeeded_at, timing=self._timing)
        if self._rules.heard_after_fence_is_a_lie:
            if evidence.listener is not None:
                return (_failed(order, FenceOutcome.LIED, f"{evidence.listener} heard {order.target} afterwards"),)
            if not evidence.is_complete:
                self._wake_at = min(self._wake_at, after(moment.now, self._timing.heartbeat_ms))
                return ()
        detail = f"{order.action} with {order.device} by {order.executor}"
        command = Fenced(order.target, order.target_incarnation, order.key, FenceOutcome.FENCED, detail)
        return (Propose(f"fenced:{order.key}", command),)

    def _distrust(
        self, cib: Cib, status: NodeStatus, report: PacerReport | None, moment: Moment
    ) -> Sequence[Effect]:
        """Fence a node again that is heard, in the boot that should have ended, after its fencing was recorded.

        What was under way when this DC first saw the record is no evidence, nor is what lay there after an own stall:
        it must have seen a heartbeat that was sent since, or be heard for a node-timeout.
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
        return (*self._mark_liar(cib, status, text, moment), Propose(key, lost))

    def _mark_liar(self, cib: Cib, status: NodeStatus, text: str, moment: Moment) -> Sequence[Effect]:
        records = [record for record in cib.status.fencing_history if record.target == status.name]
        device = records[-1].device if records else None
        if device is None:
            return ()
        proof = DeviceProof(ProofState.LIED, moment.wall, text)
        return (Propose(f"lied:{device}:{status.incarnation}", RecordProof(device, status.name, proof)),)

    # -- new orders -------------------------------------------------------------------------------------------------

    def _order(self, cib: Cib, status: NodeStatus, moment: Moment) -> Sequence[Effect]:
        properties = ClusterProperties(cib.configuration)
        levels = fencing_levels(cib.configuration, status.name, _attributes(cib, status))
        levels += watchdog_levels(cib.configuration, status)
        if not properties.boolean("fencing-enabled") or not levels:
            return self._tell_once(status, "no usable fencing device: nothing of it is recovered")
        failed = _failures_since_loss(cib, status)
        if len(failed) >= properties.integer("fencing-max-attempts"):
            why = f"fencing failed {len(failed)} times; mend the device, raise fencing-max-attempts, or boot the node"
            return self._tell_once(status, why)
        wait_until = self._wait_until(status.name, len(failed), moment)
        if moment.now < wait_until:
            self._wake_at = min(self._wake_at, wait_until)
            return ()
        level = _least_tried(cib, status.name, levels, failed)
        device = level[0]
        executors = self._executors(cib, status.name, level)
        if not executors:
            return self._tell_once(status, f"no node that may use {', '.join(level)} is online")
        with_it = [record.executor for record in failed if record.device == device]
        executor = min(executors, key=with_it.count)
        incarnation = cib.status.nodes[executor].incarnation
        assert incarnation is not None
        order = FenceOrder(
            key=FenceKey(f"{self._term}.{status.name}.{status.since}.{len(failed)}"),
            target=status.name,
            target_incarnation=status.incarnation,
            action=FenceAction(properties.text("fencing-action")),
            device=device,
            executor=executor,
            executor_incarnation=incarnation,
            dc_term=self._term,
            timeout_ms=properties.duration_ms("fencing-timeout"),
            attempt=len(failed) + 1,
            issued_at=moment.wall,
            reason=status.detail,
            others=level[1:],
        )
        return (Propose(f"fence:{order.key}", IssueFence(order)),)

    def _wait_until(self, node: NodeName, failures: int, moment: Moment) -> Instant:
        if failures < QUICK_ATTEMPTS:
            return moment.now
        known = self._retry_at.get(node)
        if known is None or known[0] != failures:
            wait_ms = min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS << min(10, failures - QUICK_ATTEMPTS))
            known = (failures, after(moment.now, wait_ms))
            self._retry_at[node] = known
        return known[1]

    def _executors(self, cib: Cib, target: NodeName, level: Sequence[ResourceId]) -> list[NodeName]:
        """Return who may run the agents: the DC first, then the other online nodes; never the target."""
        online = sorted(
            name
            for name, status in cib.status.nodes.items()
            if status.state is NodeState.ONLINE and name != target
        )
        for device in level:
            online = executors_of(cib.configuration, device, online)
        return sorted(online, key=lambda name: (name != self._node, name))

    def _tell_once(self, status: NodeStatus, text: str) -> Sequence[Effect]:
        self._told &= {item for item in self._told if item[0] != status.name or item[1] == text}
        if (status.name, text) in self._told:
            return ()
        self._told.add((status.name, text))
        return (Note("fencing", f"{status.name}: {text}"),)


def _least_tried(
    cib: Cib, target: NodeName, levels: Sequence[tuple[ResourceId, ...]], failed: Sequence[FencingRecord]
) -> tuple[ResourceId, ...]:
    """Return the level to try next: of those tried least, the first without a device that lied about the target."""
    tried = [(record.device, *record.others) for record in failed]

    def has_lied(level: tuple[ResourceId, ...]) -> bool:
        proofs = [cib.status.proofs.get(proof_key(device, target)) for device in level]
        return any(proof is not None and proof.state is ProofState.LIED for proof in proofs)

    return min(levels, key=lambda level: (tried.count(level), has_lied(level)))


def _was_silenced_by_its_watchdog(cib: Cib, status: NodeStatus) -> bool:
    """A watchdog does not reset an empty node, which may be heard then."""
    records = [record for record in cib.status.fencing_history if record.target == status.name]
    return bool(records) and records[-1].device == WATCHDOG


def _attributes(cib: Cib, status: NodeStatus) -> dict[str, str]:
    entry = cib.configuration.nodes.get(status.name)
    return {**(effective(entry.attributes) if entry is not None else {}), **status.attributes}


def _failures_since_loss(cib: Cib, status: NodeStatus) -> list[FencingRecord]:
    """Return the attempts on this life since it was last believed dead, by their order: clocks differ."""
    failed: list[FencingRecord] = []
    for record in cib.status.fencing_history:
        if record.target == status.name and record.target_incarnation == status.incarnation:
            is_dead = record.outcome in (FenceOutcome.FENCED, FenceOutcome.CONFIRMED)
            failed = [] if is_dead else [*failed, record]
    return failed


def _failed(order: FenceOrder, outcome: FenceOutcome, detail: str) -> Effect:
    return Propose(f"fence-failed:{order.key}", RecordFenceFailure(order.key, outcome, detail))
