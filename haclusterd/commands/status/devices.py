"""What a person must know of devices: which cannot be used, by whom they are used, and what to type."""

from collections.abc import Iterator

from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.devices import (
    Device,
    DeviceId,
    DeviceState,
    NodeDevices,
    RecoveryPhase,
    Rung,
    is_at_least,
    state_in_force,
)
from haclusterd.model.ids import NodeName

GRAVITY = tuple(DeviceState)
"""From the best to the worst."""
USABLE = (DeviceState.OK, DeviceState.DEGRADED)
SIMULATED = "simulated"
"""Code of the reason of a state that was made by `crm gpu simulate-fail`."""


def claimable(known: NodeDevices) -> list[Device]:
    """Return the devices of a node that resources can claim, whatever their state; instances for a partitioned one."""
    return [device for device in known.devices.values() if not device.is_partitioned]


def usable(known: NodeDevices) -> int:
    """Return how many devices of a node something new may use."""
    return sum(state_in_force(known, device.id) in USABLE for device in claimable(known))


def device_names(cib: Cib) -> tuple[str, ...]:
    """Return the ids of all devices, in order."""
    return tuple(sorted(name for known in cib.status.devices.values() for name in known.devices))


def short_name(known: NodeDevices, name: DeviceId) -> str:
    """Return the shortest beginning of an id that means no other device of its node, with at least 12 signs."""
    others = [other for other in known.devices if other != name]
    return next((name[:size] for size in range(12, len(name)) if not any(other.startswith(name[:size])
                 for other in others)), name)  # fmt: skip


def remedies(node: NodeName, known: NodeDevices, device: Device) -> Iterator[str]:
    """Yield what a person can type about a device that is not simply in order."""
    name = device.id
    recovery = known.recoveries.get(name)
    is_acting = recovery is not None and recovery.phase is RecoveryPhase.ACTING
    is_held = recovery is not None and recovery.phase is RecoveryPhase.HELD
    if name in known.unaccepted or (recovery is not None and not is_acting):
        yield f"crm gpu accept {name}"
    if device.is_missing and not known.claims.get(name):
        yield f"crm gpu forget {name}"
    if name in known.holds:
        yield f"crm gpu clear {name}"
    if device.rung and (recovery is None or is_held) and is_at_least(device.state, DeviceState.DRAIN):
        yield from _by_hand(node, known, device)
    if device.reasons:
        code = _code(device.reasons[0])
        yield f"on {node}: crm gpu simulate-fail {name} --end" if code == SIMULATED else f"crm gpu explain {code}"


def _by_hand(node: NodeName, known: NodeDevices, device: Device) -> Iterator[str]:
    """Yield what a person can type to have a device recovered."""
    claims = known.claims.get(device.id, ())
    if not all(claim.is_over for claim in claims):
        yield f"crm gpu drain {device.id} --wait"
    elif device.rung == Rung.REBOOT:
        yield f"crm node fence {node}, when nothing uses its devices"
    elif not claims:
        yield f"crm gpu reset {device.id}{' --reload' if device.rung == Rung.RELOAD else ''}"


def _code(reason: str) -> str:
    return reason.partition(":")[0]


def storm_of(cib: Cib) -> str:
    """Say why no device is recovered without a person's word; empty: nothing keeps policies from acting."""
    storm = cib.status.device_storm
    return storm.text if storm is not None and not storm.is_over else ""


def troubles(cib: Cib) -> Iterator[tuple[str, str]]:
    """Yield a line for each node whose devices are not all in order, with what to type."""
    storm = storm_of(cib)
    if storm:
        yield f"no device is recovered by policy: {storm}; a person has to look for the common cause", "crm gpu resume"
    for node, known in sorted(cib.status.devices.items()):
        status = cib.status.nodes.get(node)
        if status is None or status.state is not NodeState.ONLINE:
            continue
        yield from _of_node(node, known)


def _of_node(node: NodeName, known: NodeDevices) -> Iterator[tuple[str, str]]:
    bad = [device for device in claimable(known) if state_in_force(known, device.id) is not DeviceState.OK]
    count = f"{usable(known)}/{len(claimable(known))} GPUs of {node} can be used"
    own = [device for device in bad if not known.trouble or _has_trouble_of_its_own(known, device)]
    trouble = f"{known.trouble}; " if known.trouble else ""
    if known.trouble and not own:
        yield f"{count}: {known.trouble}", f"crm gpu explain {_code(known.trouble)}"
    elif len(own) == 1:
        (device,) = own
        yield f"{count}: {trouble}{short_name(known, device.id)} {_how(known, device)}", next(
            remedies(node, known, device), f"crm gpu show {device.id}"
        )
    elif own:
        gravest = max(own, key=lambda device: (GRAVITY.index(state_in_force(known, device.id)), device.id))
        words = f"{len(own)} are not in order; {short_name(known, gravest.id)} {_how(known, gravest)}"
        yield f"{count}: {trouble}{words}", f"crm gpu list {node}"
    for device in known.devices.values():
        if device.strangers:
            name = short_name(known, device.id)
            yield f"{name} of {node} is used by {', '.join(device.strangers[:3])}, of no resource", (
                f"end it, or: crm gpu drain {device.id}"
            )


def _has_trouble_of_its_own(known: NodeDevices, device: Device) -> bool:
    """Tell whether something is wrong with a device beside what is wrong with all devices of its node."""
    if device.is_missing:
        return _code(known.trouble) == "devices-missing"
    return not device.reasons or _code(device.reasons[0]) != _code(known.trouble)


def _how(known: NodeDevices, device: Device) -> str:
    state = state_in_force(known, device.id)
    if device.id in known.unaccepted and state is DeviceState.UNKNOWN:
        return "is new and not accepted"
    recovery = known.recoveries.get(device.id)
    if recovery is not None:
        detail = f": {recovery.detail or recovery.reason}" if recovery.detail or recovery.reason else ""
        what = {
            RecoveryPhase.ACTING: f"is recovered ({recovery.rung}) by {recovery.author}",
            RecoveryPhase.PROVING: "has to prove that it is well",
            RecoveryPhase.HELD: f"is held after {recovery.rung or 'return'}",
        }[recovery.phase]
        return f"{what}{detail}"
    if device.state is DeviceState.OK and device.id in known.holds:
        return f"is drained by {known.holds[device.id].author}"
    return f"is {state}" + (f", {device.reasons[0]}" if device.reasons else "")
