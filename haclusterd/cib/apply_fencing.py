"""`apply` for the life cycle of fencing (safety.md §5)."""

from collections.abc import Sequence

from haclusterd.cib import commands
from haclusterd.cib.changes import ChangeKind, Facts, RefusalCode
from haclusterd.cib.migrations import without_orders_of
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse, with_status
from haclusterd.model.cluster import Cib, NodeState, NodeStatus, Status
from haclusterd.model.fence_parameters import lets_nodes_in
from haclusterd.model.fencing import (
    DEATHS,
    UNFENCED_MARK,
    AbandonedFencing,
    DeviceProof,
    FenceAction,
    FenceOrder,
    FenceOutcome,
    FenceState,
    FencingRecord,
    ProofState,
)
from haclusterd.model.ids import FenceKey, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.timing import abandoned_fencing_ms
from haclusterd.model.watchdog import WATCHDOG

REMEMBERED_FENCINGS = 100
REMEMBERED_FAILURES = 20
"""Maximum number of remembered failed attempts on one incarnation: endless retries must not displace other records."""
_CALLS_OF_ORDER = 2
"""After so many of its longest calls an order counts as ended, if its executor's clock shows a later time."""

_PROOF = {
    FenceOutcome.FENCED: ProofState.TESTED,
    FenceOutcome.FAILED: ProofState.FAILING,
    FenceOutcome.TIMEOUT: ProofState.FAILING,
    FenceOutcome.LIED: ProofState.LIED,
}


UNSUCCESSFUL = frozenset({FenceOutcome.FAILED, FenceOutcome.TIMEOUT, FenceOutcome.LIED, FenceOutcome.UNKNOWN})

_DONE = {FenceAction.OFF: "is off", FenceAction.ON: "is on", FenceAction.REBOOT: "was reset"}


def proof_key(device: ResourceId, target: NodeName) -> str:
    """Return the key of the evidence about one device and one target."""
    return f"{device}/{target}"


def issue_fence(cib: Cib, command: commands.IssueFence, entry: Entry) -> Verdict:
    """Commit the intent to fence one incarnation of a lost node."""
    order = command.order
    refusal = _objection(cib, order, entry)
    if refusal is not None:
        return refusal
    text = f"{order.target} is to be fenced ({order.action}) with {order.device} by {order.executor}: {order.reason}"
    letting_in = tuple(device for device in order.devices if lets_nodes_in(cib.in_force, device))
    orders = {**cib.status.fence_orders, order.key: replace(order, letting_in=letting_in)}
    return accept(
        with_status(cib, replace(cib.status, fence_orders=orders)),
        change(ChangeKind.FENCING_ORDERED, text, node=order.target, resource=order.device, facts=_facts_of(order)),
    )


def _objection(cib: Cib, order: FenceOrder, entry: Entry) -> Verdict | None:
    controller = cib.status.controller
    if entry.rules.refuse_old_term and (controller is None or controller.term != order.dc_term):
        return refuse(cib, RefusalCode.OLD_TERM, f"term {order.dc_term} is not the DC's")
    if any(known.target == order.target for known in cib.status.fence_orders.values()):
        return refuse(cib, RefusalCode.FENCING_IN_FLIGHT, f"{order.target} is being fenced already")
    abandoned = may_be_let_in(cib, order.target, after=order.devices)
    if abandoned is not None and order.action is not FenceAction.ON and entry.rules.abandoned_agent_holds_fencing:
        text = f"{abandoned.executor} was lost while it let {order.target} in, and may do so afterwards"
        return refuse(cib, RefusalCode.FENCING_IN_FLIGHT, text)
    target = cib.status.nodes.get(order.target)
    wanted = NodeState.ONLINE if order.action is FenceAction.ON else NodeState.LOST
    if target is None or target.state is not wanted or target.incarnation != order.target_incarnation:
        return refuse(cib, RefusalCode.OLD_INCARNATION, f"that incarnation of {order.target} is not {wanted}")
    executor = cib.status.nodes.get(order.executor)
    if executor is None or executor.incarnation != order.executor_incarnation:
        return refuse(cib, RefusalCode.OLD_INCARNATION, f"that incarnation of {order.executor} is over")
    if executor.state is not NodeState.ONLINE and entry.rules.executor_answers_before_leaving:
        return refuse(cib, RefusalCode.WRONG_NODE_STATE, f"{order.executor} is {executor.state}: it fences nobody")
    return None


def order_at_work(cib: Cib, node: NodeName) -> FenceOrder | None:
    """Return an order for which a fence agent may be at work on a node; None: there is none."""
    return next(
        (
            order
            for _, order in sorted(cib.status.fence_orders.items())
            if order.executor == node and order.state is FenceState.OPEN and WATCHDOG not in order.devices
        ),
        None,
    )


def may_be_let_in(cib: Cib, node: NodeName, *, after: Sequence[ResourceId]) -> FenceOrder | None:
    """Return the order of a lost executor whose agent may unfence a node after these devices fenced it; None: none.

    That matters only if one of them leaves the node alive: a node without power runs nothing any more. A device that
    was asked for `on` is one of these, whatever its configuration says now.
    """
    abandoned = (item.order for _, item in sorted(cib.status.abandoned_fencings.items()))
    orders = [order for order in abandoned if order.target == node and order.action is FenceAction.ON]
    asked = {device for order in orders for device in order.devices}
    leaves_alive = any(device in asked or lets_nodes_in(cib.in_force, device) for device in after)
    return orders[0] if orders and leaves_alive else None


def may_be_hit(cib: Cib, node: NodeName) -> FenceOrder | None:
    """Return the order of a lost executor whose agent may still switch a node off; None: there is none."""
    orders = (abandoned.order for _, abandoned in sorted(cib.status.abandoned_fencings.items()))
    return next((order for order in orders if order.target == node and order.action is not FenceAction.ON), None)


def record_fence_agent(cib: Cib, command: commands.RecordFenceAgent, entry: Entry) -> Verdict:
    """Record the fence agent's result; a success must still be confirmed by silence."""
    order = cib.status.fence_orders.get(command.key)
    if order is None:
        return refuse(cib, RefusalCode.UNKNOWN_KEY, f"no fence order {command.key} is open")
    if command.outcome is not FenceOutcome.FENCED:
        return _failed(cib, order, command.outcome, command.detail, entry.at)
    if order.action is FenceAction.ON:
        return _unfenced(cib, order, command.detail, entry.at)
    waiting = replace(order, state=FenceState.AGENT_SUCCEEDED)
    orders = {**cib.status.fence_orders, order.key: waiting}
    text = f"{order.device} reports that {order.target} {_DONE[order.action]}; waiting for its silence"
    return accept(
        with_status(cib, replace(cib.status, fence_orders=orders)),
        change(ChangeKind.FENCING_AGENT_SUCCEEDED, text, node=order.target, resource=order.device,
               facts=_facts_of(order, "agent-succeeded")),
    )


def _unfenced(cib: Cib, order: FenceOrder, detail: str, at: WallTime) -> Verdict:
    """Mark a node as unfenced; if it is lost by now, record only the end of the order."""
    status = _with_record(cib.status, _record_of(order, FenceOutcome.UNFENCED, detail, at), at)
    target = status.nodes.get(order.target)
    if target is not None and target.state is NodeState.ONLINE and target.incarnation == order.target_incarnation:
        attributes = {**target.attributes, UNFENCED_MARK: str(at // 1000)}
        status = replace(status, nodes={**status.nodes, target.name: replace(target, attributes=attributes)})
    text = f"{order.target} is unfenced (on with {', '.join(order.devices)} by {order.executor})"
    facts = _facts_of(order, str(FenceOutcome.UNFENCED))
    return accept(with_status(cib, status), change(ChangeKind.NODE_UNFENCED, text, node=order.target, facts=facts))


def fenced(cib: Cib, command: commands.Fenced, entry: Entry) -> Verdict:
    """Record that an incarnation is dead; only now may anything of it be recovered."""
    order = cib.status.fence_orders.get(command.key) if command.key is not None else None
    if command.key is not None and order is None:
        return refuse(cib, RefusalCode.UNKNOWN_KEY, f"no fence order {command.key} is open")
    target = cib.status.nodes.get(command.node)
    if target is None:
        return refuse(cib, RefusalCode.NOT_A_MEMBER, f"{command.node} is not a member of this cluster")
    if order is not None and (order.target, order.target_incarnation) != (command.node, command.incarnation):
        text = f"fence order {order.key} is about {order.target} {order.target_incarnation}, not about {command.node}"
        return refuse(cib, RefusalCode.UNKNOWN_KEY, text)
    if order is not None and order.state is not FenceState.AGENT_SUCCEEDED and WATCHDOG not in order.devices:
        text = f"no agent of fence order {order.key} has succeeded: {order.target} is not dead"
        return refuse(cib, RefusalCode.UNKNOWN_KEY, text)
    record = FencingRecord(
        key=command.key or FenceKey(f"manual-{entry.index}"),
        target=command.node,
        target_incarnation=command.incarnation,
        action=order.action if order is not None else FenceAction.OFF,
        device=order.device if order is not None else None,
        executor=order.executor if order is not None else entry.proposer,
        outcome=command.outcome,
        detail=command.detail,
        issued_at=order.issued_at if order is not None else entry.at,
        ended_at=entry.at,
        reason=order.reason if order is not None else command.detail,
        others=order.others if order is not None else (),
        causes=order.causes if order is not None else target.causes,
        attempt=order.attempt if order is not None else 0,
    )
    status = _with_record(cib.status, record, entry.at)
    if target.state is NodeState.LOST and target.incarnation == command.incarnation:
        dead = NodeStatus(
            target.name,
            state=NodeState.FENCED,
            incarnation=target.incarnation,
            since=entry.at,
            detail=target.detail,
            fenced_incarnation=command.incarnation,
            watchdog=target.watchdog,
            longest_lease_ms=target.longest_lease_ms,
            is_retired=target.is_retired,
        )
        status = replace(status, nodes={**status.nodes, target.name: dead})
        if not _may_live_on(cib, record, () if order is None else order.letting_in):
            status = without_abandoned_of(status, target.name)
        reason = f"{command.node} was fenced in the middle of it"
        status = without_orders_of(with_status(cib, status), target, reason, entry).status
    text = f"{command.node} is fenced" + (f" ({command.detail})" if command.detail else "")
    facts = Facts(action=str(record.action), outcome=str(record.outcome), order=str(record.key))
    return accept(with_status(cib, status), change(ChangeKind.NODE_FENCED, text, node=command.node, facts=facts))


def record_fence_failure(cib: Cib, command: commands.RecordFenceFailure, entry: Entry) -> Verdict:
    """Record that a fence order ended without success."""
    order = cib.status.fence_orders.get(command.key)
    if order is None:
        return refuse(cib, RefusalCode.UNKNOWN_KEY, f"no fence order {command.key} is open")
    if command.outcome is FenceOutcome.UNKNOWN:
        cib = _with_abandoned(cib, order, entry)
    return _failed(cib, order, command.outcome, command.detail, entry.at)


def _may_live_on(cib: Cib, record: FencingRecord, letting_in: Sequence[ResourceId]) -> bool:
    """Return whether a fence agent may run on after its node was fenced like this.

    A watchdog leaves an empty node alone, and a device that cuts a node off from its storage leaves it alive: one that
    was such a device when it was asked, or is one now.
    """
    devices = (record.device, *record.others) if record.device is not None else ()
    leaves_alive = bool(letting_in) or any(lets_nodes_in(cib.in_force, device) for device in devices)
    return record.device == WATCHDOG or leaves_alive


def _with_abandoned(cib: Cib, order: FenceOrder, entry: Entry) -> Cib:
    """Record that the agent of an order whose executor is gone may be at work.

    A new incarnation of the executor would have killed it. One that left has answered before, unless an older version
    let it go.
    """
    executor = cib.status.nodes.get(order.executor)
    gone = {NodeState.LOST, NodeState.LEFT} if entry.rules.executor_answers_before_leaving else {NodeState.LOST}
    if executor is None or executor.state not in gone or executor.incarnation != order.executor_incarnation:
        return cib
    if order.state is not FenceState.OPEN or WATCHDOG in order.devices:
        return cib
    longest_ms = abandoned_fencing_ms(executor.longest_lease_ms, max(order.longest_call_ms, order.timeout_ms))
    abandoned = {**cib.status.abandoned_fencings, order.key: AbandonedFencing(order, entry.at, longest_ms)}
    return with_status(cib, replace(cib.status, abandoned_fencings=abandoned))


def without_abandoned_of(status: Status, executor: NodeName) -> Status:
    """Return the status without the abandoned orders of an executor whose fence agents have ended."""
    left = {key: item for key, item in status.abandoned_fencings.items() if item.order.executor != executor}
    return replace(status, abandoned_fencings=left)


def end_abandoned_fencing(cib: Cib, command: commands.EndAbandonedFencing, entry: Entry) -> Verdict:
    """Forget an abandoned order whose agent must have ended by now."""
    known = cib.status.abandoned_fencings.get(command.key)
    if known is None:
        return refuse(cib, RefusalCode.UNKNOWN_KEY, f"no fence order {command.key} is abandoned")
    left = {key: item for key, item in cib.status.abandoned_fencings.items() if key != command.key}
    text = f"the fence agent on {known.order.executor} that was to act on {known.order.target} has ended by now"
    return accept(
        with_status(cib, replace(cib.status, abandoned_fencings=left)),
        change(ChangeKind.FENCE_AGENT_ENDED, text, node=known.order.target, resource=known.order.device),
    )


def _failed(cib: Cib, order: FenceOrder, outcome: FenceOutcome, detail: str, at: WallTime) -> Verdict:
    text = f"fencing of {order.target} with {order.device} ended: {outcome}" + (f" ({detail})" if detail else "")
    return accept(
        with_ended_order(cib, order, outcome, detail, at),
        change(ChangeKind.FENCING_FAILED, text, node=order.target, resource=order.device,
               facts=_facts_of(order, str(outcome))),
    )


def _facts_of(order: FenceOrder, outcome: str = "") -> Facts:
    return Facts(action=str(order.action), outcome=outcome, order=str(order.key))


def with_ended_order(cib: Cib, order: FenceOrder, outcome: FenceOutcome, detail: str, at: WallTime) -> Cib:
    """Return the CIB in which a fence order has ended."""
    return with_status(cib, _with_record(cib.status, _record_of(order, outcome, detail, at), at))


def _record_of(order: FenceOrder, outcome: FenceOutcome, detail: str, at: WallTime) -> FencingRecord:
    return FencingRecord(
        key=order.key,
        target=order.target,
        target_incarnation=order.target_incarnation,
        action=order.action,
        device=order.device,
        executor=order.executor,
        outcome=outcome,
        detail=detail,
        issued_at=order.issued_at,
        ended_at=_ended_at(order, at),
        reason=order.reason,
        others=order.others,
        causes=order.causes,
        attempt=order.attempt,
    )


def _ended_at(order: FenceOrder, at: WallTime) -> WallTime:
    """Return when an order ended, by the clock that issued it: pauses between attempts are measured by the DC's.

    `at` is the time of the node that recorded the end, most often the executor, whose clock may be wrong.
    """
    if not order.issued_at:
        return at
    latest = order.issued_at + _CALLS_OF_ORDER * max(order.longest_call_ms, order.timeout_ms)
    return WallTime(min(max(at, order.issued_at), latest))


def _with_record(status: Status, record: FencingRecord, at: WallTime) -> Status:
    orders = {key: order for key, order in status.fence_orders.items() if key != record.key}
    history = _remembered((*status.fencing_history, record))
    proofs = dict(status.proofs)
    proof = _PROOF.get(record.outcome)
    is_believed = record.device == WATCHDOG and record.outcome is FenceOutcome.FENCED
    is_letting_in = record.action is FenceAction.ON
    if proof is not None and record.device is not None and not is_believed and not is_letting_in:
        # A watchdog's success is inferred from the time that has passed, so it proves nothing. A failed unfencing says
        # nothing about fencing either: most often the node that asks has no lease yet.
        for device in (record.device, *record.others):
            proofs[proof_key(device, record.target)] = DeviceProof(proof, at, record.detail)
    return replace(status, fence_orders=orders, fencing_history=history, proofs=proofs)


def _remembered(history: tuple[FencingRecord, ...]) -> tuple[FencingRecord, ...]:
    """Keep the newest records; of the failed attempts that the newest one belongs to, only REMEMBERED_FAILURES."""
    newest = history[-1]
    same = [record.key for record in history if _is_same_attempt(record, newest)]
    dropped = frozenset(same[:-REMEMBERED_FAILURES])
    return tuple(record for record in history if record.key not in dropped)[-REMEMBERED_FENCINGS:]


def _is_same_attempt(record: FencingRecord, newest: FencingRecord) -> bool:
    return (
        record.outcome in UNSUCCESSFUL
        and record.target == newest.target
        and record.target_incarnation == newest.target_incarnation
        and (record.action is FenceAction.ON) == (newest.action is FenceAction.ON)
    )


def forget_fencings(cib: Cib, command: commands.ForgetFencings, entry: Entry) -> Verdict:
    """Forget ended fencings; the proofs of the devices stay, and what shows that a node which is away was ended.

    Should that boot be heard again, its device lied, and it is fenced before it joins.
    """
    kept = tuple(
        record for record in cib.status.fencing_history
        if (command.node is not None and record.target != command.node) or _is_evidence(cib, record)
    )  # fmt: skip
    count = len(cib.status.fencing_history) - len(kept)
    if not count:
        return accept(cib)
    text = f"{count} ended fencings of {command.node or 'all nodes'} forgotten"
    return accept(
        with_status(cib, replace(cib.status, fencing_history=kept)),
        change(ChangeKind.FENCINGS_FORGOTTEN, text, node=command.node),
    )


def _is_evidence(cib: Cib, record: FencingRecord) -> bool:
    """Return whether a node counts as ended by a record, and has not joined since."""
    status = cib.status.nodes.get(record.target)
    if status is None or status.state not in (NodeState.FENCED, NodeState.LOST):
        return False
    return record.outcome in DEATHS and record.target_incarnation == status.incarnation


def record_proof(cib: Cib, command: commands.RecordProof, entry: Entry) -> Verdict:
    """Record new evidence about a device."""
    proofs = {**cib.status.proofs, proof_key(command.device, command.target): command.proof}
    text = f"{command.device} for {command.target}: {command.proof.state}"
    return accept(
        with_status(cib, replace(cib.status, proofs=proofs)),
        change(ChangeKind.DEVICE_PROVEN, text, node=command.target, resource=command.device),
    )
