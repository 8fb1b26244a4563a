"""With which devices, and from where, a node is fenced or let in next: what was tried least, by who reaches the device.

Read from the CIB alone, so that a new DC goes on where the old one was.
"""

from collections.abc import Sequence

from haclusterd.cib.activity import history_says_active
from haclusterd.cib.apply_fencing import proof_key
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import effective
from haclusterd.model.fencing import FenceAction, FenceOutcome, FencingRecord, ProofState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.scheduler.unpack.fence_executors import executors_of
from haclusterd.scheduler.unpack.fencing_capability import (
    fencing_levels,
    unfencing_devices,
    watchdog_levels,
)

Level = tuple[ResourceId, ...]
BACKOFF_FIRST_MS = 1000
BACKOFF_MAX_MS = 30_000
QUICK_ATTEMPTS = 2
"""So many attempts follow each other at once; later ones wait, twice as long each time."""
LOOP_PAUSES_MS = (60_000, 600_000)
"""Between two fencings of a node that is fenced again and again: the first pause, which doubles, and the longest."""
_ENDS = (FenceOutcome.FENCED, FenceOutcome.CONFIRMED, FenceOutcome.UNFENCED)
_ASKING = (ActionName.START, ActionName.MONITOR)


def levels_for(cib: Cib, status: NodeStatus) -> tuple[Level, ...]:
    """Return what fences a node, in the order of the topology."""
    entry = cib.in_force.nodes.get(status.name)
    attributes = {**(effective(entry.attributes) if entry is not None else {}), **status.attributes}
    return fencing_levels(cib.in_force, status.name, attributes) + watchdog_levels(cib.in_force, status)


def unfencing_levels_for(cib: Cib, status: NodeStatus) -> tuple[Level, ...]:
    """Return what lets a node in: all devices that provide unfencing, at once."""
    devices = unfencing_devices(cib.in_force, status.name)
    return (devices,) if devices else ()


def failures_of(cib: Cib, status: NodeStatus, *, is_unfencing: bool) -> list[FencingRecord]:
    """Return the failed attempts on this life, since it was last believed dead (or let in), by their order."""
    failed: list[FencingRecord] = []
    for record in cib.status.fencing_history:
        is_same_kind = (record.action is FenceAction.ON) == is_unfencing
        if is_same_kind and record.target == status.name and record.target_incarnation == status.incarnation:
            failed = [] if record.outcome in _ENDS else [*failed, record]
    return failed


def attempts_of(failed: Sequence[FencingRecord]) -> int:
    """Return how many attempts have failed; not all of them are remembered."""
    return max(len(failed), failed[-1].attempt) if failed else 0


def pause_ms(attempts: int, quick_until: int) -> int:
    """Return how long to wait after so many failed attempts; after `quick_until` of them the longest pause.

    Pacemaker's stonith-max-attempts means the same: it ends immediate attempts, not fencing (Pacemaker Explained,
    "Cluster Options").
    """
    if attempts >= quick_until:
        return BACKOFF_MAX_MS
    if attempts < QUICK_ATTEMPTS:
        return 0
    return min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS << min(10, attempts - QUICK_ATTEMPTS))


def fenced_lately(cib: Cib, node: NodeName, now: WallTime) -> list[FencingRecord]:
    """Return the fencings of a node within `fencing-loop-window`, oldest first."""
    since = now - ClusterProperties(cib.in_force).duration_ms("fencing-loop-window")
    return [
        record
        for record in cib.status.fencing_history
        if record.target == node and record.outcome is FenceOutcome.FENCED and record.ended_at >= since
    ]


def loop_pause_ms(cib: Cib, status: NodeStatus, now: WallTime) -> int:
    """Return how long the fencing of a node is to wait because it was fenced so often; 0: not at all.

    Two nodes that fence each other in turn, or one that is lost soon after each boot, would go on for ever. While it
    waits the node counts as lost, and nothing of it starts on another node; if it boots and joins meanwhile, the boot
    proves that what ran there has ended. What a person wants fenced does not wait.
    """
    limit = ClusterProperties(cib.in_force).integer("fencing-loop-limit")
    fenced = fenced_lately(cib, status.name, now)
    # A life that goes on after its recorded fencing is to be fenced again, and no person has asked for that.
    is_disproved = any(record.target_incarnation == status.incarnation for record in fenced)
    is_wanted_by_person = status.is_fence_requested and not is_disproved
    if not limit or is_wanted_by_person or len(fenced) < limit:
        return 0
    first, longest = LOOP_PAUSES_MS
    pause = min(longest, first << min(10, len(fenced) - limit))
    return max(0, min(pause, fenced[-1].ended_at + pause - now))


def least_tried(cib: Cib, target: NodeName, levels: Sequence[Level], failed: Sequence[FencingRecord]) -> Level:
    """Return the level to try next: of those tried least, the first without a device that lied about the target."""
    tried = [(record.device, *record.others) for record in failed]

    def has_lied(level: Level) -> bool:
        proofs = [cib.status.proofs.get(proof_key(device, target)) for device in level]
        return any(proof is not None and proof.state is ProofState.LIED for proof in proofs)

    return min(levels, key=lambda level: (tried.count(level), has_lied(level)))


def executor_of(
    cib: Cib, target: NodeName, level: Level, failed: Sequence[FencingRecord], *, dc: NodeName, is_unfencing: bool
) -> NodeName:
    """Return who of those that are `able_to_use` a level is to ask its devices next; there must be one.

    Never the target when it is to be fenced. When it is to be let in, it comes first: some agents can register only
    the node that they run on (`on_target`). Otherwise who has tried least, then who does not wait to leave, then who
    reaches the devices best, then the DC, for whom the way is the shortest.
    """
    able = able_to_use(cib, target, level, is_unfencing=is_unfencing)
    with_it = [record.executor for record in failed if (record.device, *record.others) == level]

    def rank(name: NodeName) -> tuple[int, bool, bool, int, bool]:
        reach = max(_distance(cib, name, device) for device in level)
        is_leaving = cib.status.nodes[name].is_leaving
        return with_it.count(name), is_unfencing and name != target, is_leaving, reach, name != dc

    return min(able, key=rank)


def able_to_use(cib: Cib, target: NodeName, level: Level, *, is_unfencing: bool = False) -> list[NodeName]:
    """Return the nodes that are online and may ask all devices of a level; the target is none when it is to be fenced.

    Constraints speak of devices alone: that a watchdog has done its work may be believed by anybody.
    """
    nodes = sorted(
        name
        for name, status in cib.status.nodes.items()
        if status.state is NodeState.ONLINE and (is_unfencing or name != target)
    )
    for device in level:
        nodes = nodes if device == WATCHDOG else executors_of(cib, device, nodes)
    return nodes


def _distance(cib: Cib, node: NodeName, device: ResourceId) -> int:
    """Say how sure it is that a node reaches a device: 0 it is started there, 1 nobody asked, 2 asking failed there."""
    history = cib.status.nodes[node].histories.get(device)
    if history is None:
        return 1
    if any(record.is_failure and record.operation in _ASKING for record in history.records.values()):
        return 2
    return 0 if history_says_active(history) else 1
