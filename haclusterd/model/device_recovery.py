"""What may be done about a device, by whom, and how long it has to be well before it is given out again.

One judgement for all who ask: `apply` refuses by it, nodes propose nothing that it objects to, and persons are shown
it. It knows claims, strangers and budgets; that no process uses a device only the node can prove, right before it acts.
"""

from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.devices import (
    Device,
    DeviceId,
    DeviceKind,
    DeviceRecovery,
    DeviceState,
    NodeDevices,
    RecoveryPhase,
    Rung,
    is_at_least,
)
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass, replace

RUNGS = tuple(Rung)
RETURN_MS_MIN = 10_000
"""How long a device is well after a recovery at least."""
RETURN_MS_MAX = 3_600_000
REMEMBERED_MAX = 8
"""Recoveries of a device whose times are kept."""


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a recovery may not begin now."""

    text: str
    """The rest of a sentence about the device."""
    is_storm: bool = False
    """So many devices went bad at once: who begins one by policy finds the storm, which is to be recorded."""


def policy(cib: Cib, rung: Rung) -> str:
    """Return `off`, `ask` or `auto`."""
    return ClusterProperties(cib.in_force).text(f"gpu-recovery-{rung}")


def objection_to_recovery(
    cib: Cib, node: NodeName, device: DeviceId, rung: Rung, now: WallTime, *, is_automatic: bool
) -> Objection | None:
    """Say why a device may not be recovered like this now; None: it may."""
    known = cib.status.devices.get(node, NodeDevices())
    seen = known.devices.get(device)
    if seen is None:
        return Objection("was never reported")
    text = _objection_of_node(cib, node, seen) or _objection_to_use(known, seen, rung) or _under_way(known)
    if not text and rung is Rung.REBOOT:
        text = _objection_to_reboot(cib, node)
    if not text:
        text = _objection_of_policy(cib, known, seen, rung, now, is_automatic=is_automatic)
    if text:
        return Objection(text)
    if not is_automatic:
        return None
    standing = cib.status.device_storm
    if standing is not None and not standing.is_over:
        return Objection(f"waits for a person: {standing.text}")
    storm = storm_in(cib, now)
    return Objection(f"waits for a person: {storm}", is_storm=True) if storm else None


def _objection_of_node(cib: Cib, node: NodeName, device: Device) -> str:
    status = cib.status.nodes.get(node)
    if status is None or status.state is not NodeState.ONLINE or status.incarnation is None:
        return f"is of {node}, which is not online"
    if device.kind is not DeviceKind.GPU:
        return f"is part of {device.parent}, which is recovered instead" if device.parent else "is no GPU"
    return ""


def _objection_to_use(known: NodeDevices, device: Device, rung: Rung) -> str:
    """Say what uses what would be hit: the device with its instances, or all devices of the node.

    A boot of the node ends what a claim that is over is not proven of, so it does not wait for that proof.
    """
    hit = [each for each in known.devices.values() if rung is not Rung.RESET or device.id in (each.id, each.parent)]
    for each in hit:
        name = "" if each.id == device.id else f"cannot be recovered: {each.id} "
        standing = [claim for claim in known.claims.get(each.id, ()) if rung is not Rung.REBOOT or not claim.is_over]
        if standing:
            ending = ", which has ended and is not proven to use it no more" if standing[0].is_over else ""
            return f"{name}is held by {standing[0].resource}{ending}"
        stranger = next(iter(each.strangers), "")
        if stranger:
            return f"{name}is used by {stranger}"
    return ""


def _under_way(known: NodeDevices) -> str:
    """Say what is done at the moment: on one node one thing at a time."""
    for name, recovery in known.recoveries.items():
        if recovery.phase is RecoveryPhase.ACTING:
            return f"waits: {recovery.rung} of {name} is under way"
    return ""


def _objection_to_reboot(cib: Cib, node: NodeName) -> str:
    """Say why a node cannot be spared: without it there would be no majority of the voters online."""
    voters = cib.voters()
    online = [
        name for name in voters if name in cib.status.nodes and cib.status.nodes[name].state is NodeState.ONLINE
    ]
    left = [name for name in online if name != node]
    if node in voters and 2 * len(left) <= len(voters):
        count = f"{len(left)} of {len(voters)} voters"
        return f"cannot be recovered: without {node} {count} would be online, which is no quorum"
    if not ClusterProperties(cib.in_force).boolean("fencing-enabled"):
        return f"cannot be recovered: nothing fences {node} (fencing-enabled=false)"
    return ""


def _objection_of_policy(
    cib: Cib, known: NodeDevices, device: Device, rung: Rung, now: WallTime, *, is_automatic: bool
) -> str:
    wanted = policy(cib, rung)
    if wanted == "off" or (is_automatic and wanted != "auto"):
        return f"is not recovered like this: gpu-recovery-{rung}={wanted}"
    if not is_automatic:
        return ""
    if not is_at_least(device.state, DeviceState.DRAIN) or device.is_missing:
        return f"is {device.state}, for which nothing is done by policy"
    properties = ClusterProperties(cib.in_force)
    limit, window_ms = properties.integer("gpu-recovery-limit"), properties.duration_ms("gpu-recovery-window")
    count = len(recent(known, device.id, now, window_ms))
    if count >= limit:
        return f"was recovered {count} times in {window_ms // 1000} s (gpu-recovery-limit): a person has to look"
    return ""


def recent(known: NodeDevices, device: DeviceId, now: WallTime, window_ms: int) -> tuple[WallTime, ...]:
    """Return when a device was recovered, or returned, within a window."""
    return tuple(at for at in known.recovered_at.get(device, ()) if now - at < window_ms)


def storm_in(cib: Cib, now: WallTime) -> str:
    """Say of how many devices or nodes so many went bad within the window that a person has to look; empty: of few."""
    properties = ClusterProperties(cib.in_force)
    begins = now - properties.duration_ms("gpu-storm-window")
    if cib.status.device_storm is not None:
        begins = max(begins, cib.status.device_storm.at)
    bad = [
        (node, name)
        for node, known in cib.status.devices.items()
        for name, device in known.devices.items()
        if device.kind is DeviceKind.GPU and is_at_least(device.state, DeviceState.DRAIN)
        and known.since.get(name, known.reported_at) > begins
    ]  # fmt: skip
    nodes = sorted({node for node, _ in bad})
    limits = properties.integer("gpu-storm-devices"), properties.integer("gpu-storm-nodes")
    if len(bad) < limits[0] and len(nodes) < limits[1]:
        return ""
    names = ", ".join(nodes[:4]) + (" ..." if len(nodes) > 4 else "")
    return f"{len(bad)} devices of {len(nodes)} node{'s' if len(nodes) > 1 else ''} ({names}) went bad at once"


def wanted_rung(known: NodeDevices, device: Device) -> Rung | None:
    """Return what a device's fault wants done, or, where that did not help, what is next; None: nothing that we can."""
    if device.rung not in RUNGS:
        return None
    # Of what hangs nobody can say that its last holder is gone: only a boot proves that.
    is_unprovable = device.is_hung and bool(known.claims.get(device.id))
    rung = Rung.REBOOT if is_unprovable else Rung(device.rung)
    tried = known.recoveries.get(device.id)
    if tried is not None and tried.rung is not None and tried.phase is RecoveryPhase.HELD:
        later = RUNGS.index(tried.rung) + 1
        if later == len(RUNGS):
            return None
        rung = max(rung, RUNGS[later], key=RUNGS.index)
    return rung


def has_to_prove(cib: Cib) -> bool:
    """Return whether a device that is well again by itself has to prove it."""
    properties = ClusterProperties(cib.in_force)
    return bool(properties.duration_ms("gpu-return-after") or properties.text("gpu-burn-in"))


def return_after_ms(cib: Cib, known: NodeDevices, device: DeviceId, now: WallTime) -> int:
    """Return how long a device that has to prove itself must be well: the longer, the oftener it had to lately."""
    properties = ClusterProperties(cib.in_force)
    wait_ms = properties.duration_ms("gpu-return-after")
    recovery = known.recoveries.get(device)
    if recovery is not None and recovery.rung is not None:
        wait_ms = max(wait_ms, RETURN_MS_MIN)
    count = len(recent(known, device, now, properties.duration_ms("gpu-recovery-window")))
    return min(wait_ms << max(0, count - 1), max(wait_ms, RETURN_MS_MAX))


def with_recovery(known: NodeDevices, name: DeviceId, recovery: DeviceRecovery) -> NodeDevices:
    """Return what is known of a node's devices with a recovery that begins."""
    times = (*known.recovered_at.get(name, ()), recovery.at)[-REMEMBERED_MAX:]
    return replace(
        known,
        recoveries=dict(sorted({**known.recoveries, name: recovery}.items())),
        recovered_at=dict(sorted({**known.recovered_at, name: times}.items())),
        last_recovery=recovery.number,
    )
