"""What keeps a lost node from being recovered: what is waited for, since when, until when, and what to type.

Read from the CIB alone, so that every node answers the same. Every wait that is shown here has a bound or a remedy
(safety.md §9, "Every wait has a bound").
"""

from collections.abc import Sequence

from haclusterd.cib.apply_fencing import may_be_hit, may_be_let_in
from haclusterd.commands.status import fencing_cover
from haclusterd.commands.status.resource_state import newest_failure, recorded_names
from haclusterd.machines.fence_choice import (
    attempts_of,
    failures_of,
    fenced_lately,
    loop_pause_ms,
)
from haclusterd.model import durations
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.fencing import FenceOrder, FencingRecord, pause_ms
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.model.properties import ClusterProperties, fences_unseen
from haclusterd.model.records import dataclass
from haclusterd.scheduler.unpack.fence_executors import able_to_use
from haclusterd.scheduler.unpack.fencing_limits import FencingLimits, failed_operation
from haclusterd.scheduler.unpack.management import is_fencing_pointless


@dataclass(frozen=True, slots=True)
class Wait:
    """One thing that is waited for."""

    text: str
    remedy: str = ""


def wait_for_fencing(cib: Cib, status: NodeStatus, now: WallTime) -> Wait | None:
    """Say how the fencing of a lost node stands; None while all goes its usual way."""
    if not fencing_cover.is_enabled(cib):
        return None
    since = f"for {span(now - status.since)}" if status.since else "for an unknown time"
    levels = fencing_cover.levels_of(cib, status.name)
    if not levels:
        if status.incarnation is None and fences_unseen(cib.in_force):
            return _wait_for_unseen(status, since)
        text = f"{since}, and no fence device can fence it: nothing of it is recovered"
        return Wait(text, f"configure a fence device; or {by_hand(status)}")
    if is_fencing_pointless(cib, status, now):
        text = f"{since}; it is not fenced while nothing is managed"
        return Wait(text, f"end the maintenance, or boot {status.name}")
    failed = failures_of(cib, status, is_unfencing=False)
    is_ordered = _order_for(cib, status) is not None
    if not is_ordered and not any(able_to_use(cib, status.name, level) for level in levels):
        return _wait_for_executor(status, levels, since)
    late = [may_be_let_in(cib, status.name, after=level) for level in levels]
    if late[0] is not None and None not in late:
        return _wait_for_late_agent(cib, status, late[0], since, now)
    if not failed:
        return None if is_ordered else _wait_between_fencings(cib, status, now)
    return _wait_for_next_attempt(cib, status, failed, since, now)


def _wait_for_next_attempt(
    cib: Cib, status: NodeStatus, failed: Sequence[FencingRecord], since: str, now: WallTime
) -> Wait:
    """Say how often its fencing has failed, and when it is tried again."""
    attempts, last = attempts_of(failed), failed[-1]
    count = "fencing has failed once" if attempts == 1 else f"fencing has failed {attempts} times"
    next_one = _next_attempt(cib, status, attempts, last, now)
    text = f"{since}: {count}, last with {_devices(last)}{_detail(last)}; {next_one}; nothing of it is recovered"
    return Wait(text, by_hand(status))


def _wait_for_executor(status: NodeStatus, levels: Sequence[Sequence[ResourceId]], since: str) -> Wait:
    """Say that by location constraints, or symmetric-cluster=false, nobody who is online may use the devices."""
    devices = ", ".join(dict.fromkeys(device for level in levels for device in level))
    text = f"{since}, and no node that may use {devices} is online: nothing of it is recovered"
    allowed = f"allow it to one that is online: crm configure location ID {levels[0][0]} 0: NODE"
    return Wait(text, f"{allowed} (and crm configure show: constraints that forbid it); or {by_hand(status)}")


def _wait_for_late_agent(cib: Cib, status: NodeStatus, late: FenceOrder, since: str, now: WallTime) -> Wait:
    """Say that a node is not cut off before an agent of a lost executor can let it in no more."""
    text = f"{since}; it is fenced when a fence agent on {late.executor}, which was lost, can let it in no more," \
           f" {_until_it_ended(cib, late, now)}; nothing of it is recovered"
    return Wait(text, f"{_end_agent(late)}; or {by_hand(status)}")


def _wait_for_unseen(status: NodeStatus, since: str) -> Wait:
    """Say that nobody knows what a member runs; its watchdog is not known either before it has joined."""
    text = f"{since}: it was never seen since the cluster was formed, and no fence device can fence it; what has not" \
           " run in this cluster yet does not start, since it may run there"
    alone = f"if {status.name} can run nothing: crm configure property startup-fencing=false"
    first = f"start haclusterd on {status.name}; or configure a fence device"
    return Wait(text, f"{first}; or {by_hand(status)}; or, {alone}")


def _wait_between_fencings(cib: Cib, status: NodeStatus, now: WallTime) -> Wait | None:
    """Say that a node is not fenced at once because it was fenced again and again."""
    fenced = fenced_lately(cib, status.name, status.since)
    left_ms = loop_pause_ms(cib, status, status.since) - (now - status.since)
    if left_ms <= 0:
        return None
    window = durations.render(ClusterProperties(cib.in_force).duration_ms("fencing-loop-window"))
    text = f"and was fenced {len(fenced)} times within {window} (fencing-loop-limit): it is fenced again in" \
           f" {span(left_ms)}; nothing of it is recovered before"
    at_once = f"at once: crm fencing cleanup {status.name}"
    return Wait(text, f"find out why it is lost so often; {at_once}; or {by_hand(status)}")


def wait_for_unfencing(cib: Cib, status: NodeStatus, now: WallTime) -> Wait | None:
    """Say how letting a node in stands, when its devices have not done it."""
    failed = failures_of(cib, status, is_unfencing=True)
    if not failed:
        return None
    attempts, last = attempts_of(failed), failed[-1]
    next_one = _next_attempt(cib, status, attempts, last, now)
    text = f"{_devices(last)} failed {attempts} times to let it in (unfencing){_detail(last)}; {next_one}"
    return Wait(text, "correct the device; the next attempt comes by itself")


def wait_to_join(cib: Cib, status: NodeStatus, now: WallTime) -> Wait | None:
    """Say that a node may not come back yet since a fence agent could switch it off; None: it may."""
    order = may_be_hit(cib, status.name)
    if status.state is NodeState.ONLINE or order is None:
        return None
    text = f"waits to join: a fence agent on {order.executor}, which was lost, may still be at work on it, " \
           f"{_until_it_ended(cib, order, now)}"
    return Wait(text, _end_agent(order))


def _until_it_ended(cib: Cib, order: FenceOrder, now: WallTime) -> str:
    abandoned = cib.status.abandoned_fencings[order.key]
    left_ms = min(abandoned.longest_ms, abandoned.since + abandoned.longest_ms - now)
    return f"for {span(left_ms)} at most" if left_ms >= 1000 else "which ends now"


def _end_agent(order: FenceOrder) -> str:
    return f"at once: start haclusterd on {order.executor}, or fence it"


def wait_for_correction(cib: Cib, resource: ResourceId, node: NodeName, now: WallTime) -> Wait | None:
    """Say why a resource whose stop failed is left alone instead of its node being fenced; None: it is not."""
    if not fencing_cover.is_enabled(cib) or not fencing_cover.levels_of(cib, node):
        return None
    limits = FencingLimits.of(cib, now, ClusterProperties(cib.in_force))
    for name in recorded_names(cib.status.nodes[node], resource):
        history = cib.status.nodes[node].histories.get(name)
        record = newest_failure(history) if history is not None else None
        if record is None or record.operation != ActionName.STOP:
            continue
        held = limits.objection(node, failed_operation(name, record), record.run_at)
        if held:
            remedy = f"correct what its stop needs, then: crm resource cleanup {resource} {node}"
            return Wait(f"; it is left alone there since {node} is not fenced for it: {held}", remedy)
    return None


def by_hand(status: NodeStatus) -> str:
    """Say what a person can do in the place of a fence device."""
    name = status.name
    return f"cut the power of {name} by hand, look that it is off, then: crm fencing confirm {name} --i-have-checked"


def span(span_ms: int) -> str:
    """Write how long something takes, in the unit that a person would take."""
    seconds = max(0, span_ms) // 1000
    if seconds >= 7200:
        return durations.render(seconds // 3600 * 3_600_000)
    return durations.render((seconds // 60 * 60 if seconds >= 120 else seconds) * 1000)


def _next_attempt(cib: Cib, status: NodeStatus, attempts: int, last: FencingRecord, now: WallTime) -> str:
    order = _order_for(cib, status)
    if order is not None:
        return f"attempt {order.attempt} is under way for {span(now - order.issued_at)}"
    pause = pause_ms(attempts, ClusterProperties(cib.in_force).integer("fencing-max-attempts"))
    left_ms = min(pause, last.ended_at + pause - now)
    return f"the next attempt is in {span(left_ms)}" if left_ms > 0 else "the next attempt is due"


def _order_for(cib: Cib, status: NodeStatus) -> FenceOrder | None:
    return next((order for order in cib.status.fence_orders.values() if order.target == status.name), None)


def _devices(record: FencingRecord) -> str:
    return ", ".join(each for each in (record.device, *record.others) if each is not None)


def _detail(record: FencingRecord) -> str:
    return f": {record.detail}" if record.detail else f": {record.outcome}"
