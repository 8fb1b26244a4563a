"""`apply` for devices: reports of nodes, claims, decisions of administrators (safety.md §11, design/0015).

Invariant: while any process of a resource may use a device, a claim of that resource is on it. So an order makes its
claims in the entry that commits it; whatever ends the resource marks the claims as over; and a claim is removed when
its node has proven that the device is free, or has booted, or did not begin the order that made it. No exit code,
fencing or administrator removes a claim.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

from haclusterd.cib import commands
from haclusterd.cib.changes import ChangeKind, Refusal, RefusalCode
from haclusterd.cib.commands import DeviceChange
from haclusterd.cib.verdict import Entry, Verdict, accept, by, change, refuse, with_status
from haclusterd.model.activity import may_be_active_or_begin
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.device_recovery import has_to_prove, with_recovery
from haclusterd.model.devices import (
    MISSING,
    Device,
    DeviceClaim,
    DeviceHold,
    DeviceId,
    DeviceRecovery,
    DeviceState,
    NodeDevices,
    RecoveryPhase,
    claim_objection,
    is_at_least,
)
from haclusterd.model.ids import Incarnation, NodeName, OrderKey
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.model.orders import Order
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import SafetyRules

_Value = TypeVar("_Value")
_CLAIMING = (ActionName.START, ActionName.MIGRATE_TO, ActionName.MIGRATE_FROM)
_STEERED = {
    DeviceChange.ACCEPT: "is accepted",
    DeviceChange.DRAIN: "is drained",
    DeviceChange.CLEAR: "is not drained any more",
    DeviceChange.FORGET: "is forgotten",
}
_UNSEEN = "not-watched: its node has not reported it since it booted"
_NAMED_MAX = 4
"""Maximum number of devices named in one line of the history; of the others it gives the number."""


def publish_devices(cib: Cib, command: commands.PublishDevices, entry: Entry) -> Verdict:
    """Record a live node's report of its devices; a device that is no longer reported is missing, not forgotten."""
    if not _is_alive(cib, command.node, command.incarnation):
        return refuse(cib, RefusalCode.OLD_INCARNATION, f"{command.node} is not online in that incarnation")
    known = cib.status.devices.get(command.node, NodeDevices())
    seen = {device.id: device for device in command.devices}
    missing = {name: _missing(device) for name, device in known.devices.items() if name not in seen}
    devices = dict(sorted({**seen, **missing}.items()))
    if (devices, command.driver, command.trouble) == (known.devices, known.driver, known.trouble):
        return accept(cib)
    new = frozenset(seen) - frozenset(known.devices) if known.devices else frozenset()
    made = replace(
        _with_returns(cib, known, seen, command, entry.at),
        devices=devices,
        since={name: _since(known, device, entry.at) for name, device in devices.items()},
        unaccepted=known.unaccepted | new,
        driver=command.driver,
        trouble=command.trouble,
        reported_at=entry.at,
    )
    text = f"devices of {command.node}: {_difference(known, made)}"
    return accept(with_devices(cib, command.node, made), change(ChangeKind.DEVICES_CHANGED, text, node=command.node))


def _with_returns(
    cib: Cib, known: NodeDevices, seen: Mapping[DeviceId, Device], command: commands.PublishDevices, at: WallTime
) -> NodeDevices:
    """Start the proof of devices that have become healthy by themselves, where that is configured."""
    back = [
        name
        for name, device in known.devices.items()
        if is_at_least(device.state, DeviceState.DRAIN) and name not in known.recoveries
        and name in seen and not is_at_least(seen[name].state, DeviceState.DRAIN)
    ]  # fmt: skip
    for name in back if back and has_to_prove(cib) else ():
        was = known.devices[name]
        reason = was.reasons[0] if was.reasons else f"it was {was.state}"
        recovery = DeviceRecovery(
            known.last_recovery + 1, RecoveryPhase.PROVING, None, command.incarnation, command.node, at, reason
        )
        known = with_recovery(known, name, recovery)
    return known


def _is_alive(cib: Cib, node: NodeName, incarnation: Incarnation) -> bool:
    status = cib.status.nodes.get(node)
    return status is not None and status.state is NodeState.ONLINE and status.incarnation == incarnation


def _missing(device: Device) -> Device:
    reasons = (f"{MISSING}: its node does not see it any more",)
    return replace(device, state=DeviceState.FAILED, reasons=reasons, strangers=())


def _since(known: NodeDevices, device: Device, at: WallTime) -> WallTime:
    before = known.devices.get(device.id)
    return known.since.get(device.id, at) if before is not None and before.state is device.state else at


def _difference(before: NodeDevices, after: NodeDevices) -> str:
    """Describe the changes in a report, with as many device names as fit."""
    parts = [_news(before, device, is_unaccepted=name in after.unaccepted) for name, device in after.devices.items()
             if before.devices.get(name) != device]  # fmt: skip
    more = len(parts) - _NAMED_MAX
    parts = [*parts[:_NAMED_MAX], f"{more} more"] if more > 0 else parts
    if before.driver != after.driver:
        parts.append(f"driver {after.driver}" if after.driver else "no driver")
    if before.trouble != after.trouble:
        parts.append(after.trouble or f"no trouble any more ({before.trouble})")
    return ", ".join(parts)


def _news(before: NodeDevices, device: Device, *, is_unaccepted: bool) -> str:
    known = before.devices.get(device.id)
    state = f"{device.state}" + (f" ({device.reasons[0]})" if device.reasons else "")
    if known is None:
        return f"{device.id} is there, {state}" + (", and not accepted yet" if is_unaccepted else "")
    if (known.state, known.reasons) != (device.state, device.reasons):
        return f"{device.id} is {state}"
    if known.strangers != device.strangers:
        users = ", ".join(device.strangers)
        return f"{device.id} is used by {users}" if users else f"{device.id} is used by no stranger any more"
    return f"{device.id} is described otherwise"


def steer_device(cib: Cib, command: commands.SteerDevice, entry: Entry) -> Verdict:
    """Apply an administrator's decision about a device."""
    name = command.device
    known = cib.status.devices.get(command.node)
    if known is None or name not in known.devices:
        return refuse(cib, RefusalCode.UNKNOWN_DEVICE, f"{command.node} has no device {name}")
    objection = _objection_to_steering(known, name, command.change)
    if objection:
        return refuse(cib, RefusalCode.DEVICE_NOT_FREE, f"{name} of {command.node} {objection}")
    made = _steered(known, command, entry.at)
    if made == known:
        return accept(cib)
    text = f"{name} of {command.node} {_STEERED[command.change]}{by(command.author, command.reason)}"
    return accept(with_devices(cib, command.node, made), change(ChangeKind.DEVICE_STEERED, text, node=command.node))


def _steered(known: NodeDevices, command: commands.SteerDevice, at: WallTime) -> NodeDevices:
    name = command.device
    if command.change is DeviceChange.ACCEPT:
        return replace(
            known, unaccepted=known.unaccepted - {name}, recoveries=_without(known.recoveries, name)
        )
    if command.change is DeviceChange.DRAIN:
        hold = known.holds.get(name) or DeviceHold(command.author, at, command.reason)
        return replace(known, holds={**known.holds, name: hold})
    if command.change is DeviceChange.CLEAR:
        return replace(known, holds=_without(known.holds, name))
    return _forgotten(known, name)


def _objection_to_steering(known: NodeDevices, name: DeviceId, wanted: DeviceChange) -> str:
    recovery = known.recoveries.get(name)
    is_acting = recovery is not None and recovery.phase is RecoveryPhase.ACTING
    if is_acting and wanted in (DeviceChange.ACCEPT, DeviceChange.FORGET):
        return f"is being recovered ({recovery.rung})" if recovery is not None else ""
    return _objection_to_forgetting(known, name) if wanted is DeviceChange.FORGET else ""


def _objection_to_forgetting(known: NodeDevices, name: DeviceId) -> str:
    if known.claims.get(name):
        return f"is held by {known.claims[name][0].resource}"
    if not known.devices[name].is_missing:
        return "is there: only a missing device can be forgotten"
    return ""


def _forgotten(known: NodeDevices, name: DeviceId) -> NodeDevices:
    return replace(
        known,
        devices=_without(known.devices, name),
        since=_without(known.since, name),
        unaccepted=known.unaccepted - {name},
        holds=_without(known.holds, name),
        recoveries=_without(known.recoveries, name),
        recovered_at=_without(known.recovered_at, name),
    )


def _without(values: Mapping[DeviceId, _Value], name: DeviceId) -> Mapping[DeviceId, _Value]:
    return {key: value for key, value in values.items() if key != name}


def release_devices(cib: Cib, command: commands.ReleaseDevices, entry: Entry) -> Verdict:
    """End the claims that a node has proven to be free; a device that was claimed again since then stays claimed."""
    if not _is_alive(cib, command.node, command.incarnation):
        return refuse(cib, RefusalCode.OLD_INCARNATION, f"{command.node} is not online in that incarnation")
    known = cib.status.devices.get(command.node, NodeDevices())
    claims = dict(known.claims)
    ended = []
    for proven in command.claims:
        standing = claims.get(proven.device, ())
        kept = tuple(claim for claim in standing if not _is_proven(claim, proven))
        if len(kept) == len(standing):
            continue
        ended.append(proven)
        claims[proven.device] = kept
    if not ended:
        return accept(cib)
    made = replace(known, claims={name: standing for name, standing in claims.items() if standing})
    freed = [
        change(ChangeKind.DEVICES_RELEASED, f"{each.device} of {command.node} is free of {each.resource}",
               node=command.node, resource=each.resource)
        for each in ended
    ]  # fmt: skip
    return accept(with_devices(cib, command.node, made), *freed)


def _is_proven(claim: DeviceClaim, proven: commands.ProvenClaim) -> bool:
    return claim.is_over and (claim.resource, claim.order) == (proven.resource, proven.order)


def objection_to_claims(cib: Cib, order: Order, entry: Entry) -> Refusal | None:
    """Refuse an order for devices that its resource must not have, whatever the scheduler assumed."""
    if not order.devices or order.action not in _CLAIMING or not entry.rules.device_is_held_once:
        return None
    node = claiming_node(order)
    known = cib.status.devices.get(node)
    for name in map(DeviceId, order.devices):
        if known is None or name not in known.devices:
            return Refusal(RefusalCode.UNKNOWN_DEVICE, f"{node} has reported no device {name}")
        objection = claim_objection(known, name, order.resource, order.device_memory_mib)
        if objection:
            return Refusal(RefusalCode.DEVICE_NOT_FREE, f"{name} of {node} {objection}")
    return None


def claiming_node(order: Order) -> NodeName:
    """Return the node on which an order claims its devices: for a live migration, the target."""
    goes_to = order.other_node if order.action is ActionName.MIGRATE_TO else None
    return goes_to or order.node


def with_claims(cib: Cib, order: Order) -> Cib:
    """Return the CIB with an order's claims on its devices."""
    if not order.devices or order.action not in _CLAIMING:
        return cib
    node = claiming_node(order)
    known = cib.status.devices.get(node, NodeDevices())
    made = dict(known.claims)
    for name in map(DeviceId, order.devices):
        standing = made.get(name, ())
        others = tuple(each for each in standing if each.resource != order.resource)
        is_first = others == standing
        claim = DeviceClaim(order.resource, order.key, order.device_memory_mib, is_first=is_first)
        made[name] = (*others, claim)
    return with_devices(cib, node, replace(known, claims=made))


def without_unused_claims(cib: Cib, name: NodeName, not_begun: Collection[OrderKey]) -> Cib:
    """Return the CIB without the claims of orders that a node has not begun, where these claimed a device first.

    No agent has run for such a claim, and a device that is missing could never be proven free of it. A claim that has
    replaced one of the same resource stays: what had that one may use the device yet.
    """
    known, status = cib.status.devices.get(name), cib.status.nodes.get(name)
    if known is None or status is None or not not_begun:
        return cib
    claims = {
        device: tuple(each for each in standing if not _is_unused(each, status, not_begun))
        for device, standing in known.claims.items()
    }
    if claims == known.claims:
        return cib
    return with_devices(cib, name, replace(known, claims={device: each for device, each in claims.items() if each}))


def _is_unused(claim: DeviceClaim, status: NodeStatus, not_begun: Collection[OrderKey]) -> bool:
    is_for_nothing = claim.is_first and claim.order in not_begun
    return is_for_nothing and not may_be_active_or_begin(status, claim.resource)


def with_claims_over(before: Cib, verdict: Verdict, rules: SafetyRules) -> Verdict:
    """Mark the claims of resources that can no longer be active on their node, whatever ended them."""
    after = verdict.cib
    if after.status.nodes is before.status.nodes or not after.status.devices:
        return verdict
    for node, known in after.status.devices.items():
        status = after.status.nodes.get(node)
        if known.claims and status is not None and status is not before.status.nodes.get(node):
            made = _with_over(known, status, rules)
            after = with_devices(after, node, made) if made is not known else after
    return replace(verdict, cib=after) if after is not verdict.cib else verdict


def _with_over(known: NodeDevices, status: NodeStatus, rules: SafetyRules) -> NodeDevices:
    claims = {}
    for name, standing in known.claims.items():
        judged = tuple(_judged(claim, status) for claim in standing)
        claims[name] = judged if rules.release_is_proven else tuple(each for each in judged if not each.is_over)
    if claims == known.claims:
        return known
    return replace(known, claims={name: each for name, each in claims.items() if each})


def _judged(claim: DeviceClaim, status: NodeStatus) -> DeviceClaim:
    """Return a claim, marked as over if its resource has ended. It stays over until another order claims the device."""
    if claim.is_over or may_be_active_or_begin(status, claim.resource):
        return claim
    return replace(claim, is_over=True)


def booted(cib: Cib, node: NodeName, at: WallTime) -> Cib:
    """Return the CIB after a node has booted: all users of its devices are dead, so its claims are gone.

    Devices may have been replaced meanwhile, so none counts as usable before the node has reported it again.
    """
    known = cib.status.devices.get(node)
    if known is None:
        return cib
    devices = {name: _unseen(device) for name, device in known.devices.items()}
    since = {name: _since(known, device, at) for name, device in devices.items()}
    return with_devices(cib, node, replace(known, devices=devices, since=since, claims={}))


def _unseen(device: Device) -> Device:
    """Return a device as it is known before the first report of a boot: what was wrong with it stays."""
    if is_at_least(device.state, DeviceState.UNKNOWN):
        return replace(device, strangers=())
    return replace(device, state=DeviceState.UNKNOWN, reasons=(_UNSEEN,), rung="", strangers=())


def with_devices(cib: Cib, node: NodeName, known: NodeDevices) -> Cib:
    """Return the CIB with other device information of one node."""
    return with_status(cib, replace(cib.status, devices={**cib.status.devices, node: known}))
