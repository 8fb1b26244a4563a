"""The next fencing or unfencing attempt on a node: by which devices, and from which node.

Chosen are the devices that were tried least, and the node that reaches them best. Everything is read from the CIB, so a
new DC continues where the old one was.
"""

from collections.abc import Sequence

from haclusterd.cib.activity import history_says_active
from haclusterd.cib.apply_fencing import proof_key
from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.fencing import FenceAction, FenceOutcome, FencingRecord, ProofState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.model.properties import ClusterProperties
from haclusterd.scheduler.unpack.fence_executors import Level, able_to_use
from haclusterd.scheduler.unpack.fencing_capability import unfencing_devices

LOOP_PAUSES_MS = (60_000, 600_000)
"""Pause before another fencing of a node that is fenced again and again: the first, which doubles, and the longest."""
_ENDS = (FenceOutcome.FENCED, FenceOutcome.CONFIRMED, FenceOutcome.UNFENCED)
_ASKING = (ActionName.START, ActionName.MONITOR)


def unfencing_levels_for(cib: Cib, status: NodeStatus) -> tuple[Level, ...]:
    """Return the level that unfences a node: all devices that provide unfencing, at once; empty: none does."""
    devices = unfencing_devices(cib.in_force, status.name)
    return (devices,) if devices else ()


def failures_of(cib: Cib, status: NodeStatus, *, is_unfencing: bool) -> list[FencingRecord]:
    """Return the failed attempts on this incarnation, oldest first, since its last successful fencing or unfencing."""
    failed: list[FencingRecord] = []
    for record in cib.status.fencing_history:
        is_same_kind = (record.action is FenceAction.ON) == is_unfencing
        if is_same_kind and record.target == status.name and record.target_incarnation == status.incarnation:
            failed = [] if record.outcome in _ENDS else [*failed, record]
    return failed


def attempts_of(failed: Sequence[FencingRecord]) -> int:
    """Return how many attempts have failed; the history remembers only some of them."""
    return max(len(failed), failed[-1].attempt) if failed else 0


def fenced_lately(cib: Cib, node: NodeName, now: WallTime) -> list[FencingRecord]:
    """Return the fencings of a node within `fencing-loop-window`, oldest first."""
    since = now - ClusterProperties(cib.in_force).duration_ms("fencing-loop-window")
    return [
        record
        for record in cib.status.fencing_history
        if record.target == node and record.outcome is FenceOutcome.FENCED and record.ended_at >= since
    ]


def loop_pause_ms(cib: Cib, status: NodeStatus, now: WallTime) -> int:
    """Return for how many ms the fencing of a node is delayed because it was fenced so often; 0: no delay.

    Otherwise two nodes that fence each other in turn, or one that is lost soon after each boot, would continue forever.
    During the delay the node counts as lost, and nothing of it starts on another node; if it boots and joins meanwhile,
    the boot proves that what ran there has ended. Fencing that an administrator requested is not delayed.
    """
    limit = ClusterProperties(cib.in_force).integer("fencing-loop-limit")
    fenced = fenced_lately(cib, status.name, now)
    # An incarnation that lives on after its recorded fencing is fenced again; no administrator has requested that.
    is_disproved = any(record.target_incarnation == status.incarnation for record in fenced)
    is_wanted_by_person = status.is_fence_requested and not is_disproved
    if not limit or is_wanted_by_person or len(fenced) < limit:
        return 0
    first, longest = LOOP_PAUSES_MS
    pause = min(longest, first << min(10, len(fenced) - limit))
    return max(0, min(pause, fenced[-1].ended_at + pause - now))


def least_tried(cib: Cib, target: NodeName, levels: Sequence[Level], failed: Sequence[FencingRecord]) -> Level:
    """Return the level to try next: of those tried least, the first whose devices never falsely reported success.

    A success is false if the target is heard afterwards (`ProofState.LIED`).
    """
    tried = [(record.device, *record.others) for record in failed]

    def has_lied(level: Level) -> bool:
        proofs = [cib.status.proofs.get(proof_key(device, target)) for device in level]
        return any(proof is not None and proof.state is ProofState.LIED for proof in proofs)

    return min(levels, key=lambda level: (tried.count(level), has_lied(level)))


def executor_of(
    cib: Cib, target: NodeName, level: Level, failed: Sequence[FencingRecord], *, dc: NodeName, is_unfencing: bool
) -> NodeName:
    """Return the node that is to call the level's devices next, one of those `able_to_use` it; there must be one.

    A node never fences itself. For unfencing, the target comes first: some agents can register only the node that they
    run on (`on_target`). Otherwise the order is: fewest failed attempts, not about to leave, best reach of the devices,
    and the DC, which needs no detour.
    """
    able = able_to_use(cib, target, level, is_unfencing=is_unfencing)
    with_it = [record.executor for record in failed if (record.device, *record.others) == level]

    def rank(name: NodeName) -> tuple[int, bool, bool, int, bool]:
        reach = max(_distance(cib, name, device) for device in level)
        is_leaving = cib.status.nodes[name].is_leaving
        return with_it.count(name), is_unfencing and name != target, is_leaving, reach, name != dc

    return min(able, key=rank)


def _distance(cib: Cib, node: NodeName, device: ResourceId) -> int:
    """Return how doubtful a node's reach of a device is: 0: it is started there; 1: unknown; 2: an attempt failed."""
    history = cib.status.nodes[node].histories.get(device)
    if history is None:
        return 1
    if any(record.is_failure and record.operation in _ASKING for record in history.records.values()):
        return 2
    return 0 if history_says_active(history) else 1
