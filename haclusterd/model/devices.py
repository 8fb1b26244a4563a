"""Devices of nodes, which resources claim: GPUs first, others in the same way (docs/design/0015-devices.md).

Three things are kept apart. What a node's watcher *sees* of a device (`Device`) comes and goes with its reports. What
*persons* want of it (`DeviceHold`, acceptance) stays until they want something else. Who *claims* it (`DeviceClaim`)
follows from orders and their results alone, and ends only when the device is proven free.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NewType

from haclusterd.model import memory
from haclusterd.model.ids import Incarnation, OrderKey, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, field

DeviceId = NewType("DeviceId", str)
"""The name that the driver gives a device for good (for a GPU its UUID); unique in the cluster. Never an index: these
change with a reset."""


MISSING = "missing"
"""Code of the reason of a device that was seen once and is not seen now."""

DEVICES_MAX = 256
"""Of one node; further ones are neither read nor published."""


class DeviceKind(StrEnum):
    """What a device is."""

    GPU = "gpu"
    MIG = "mig"
    """An instance of a GPU that is partitioned (NVIDIA Multi-Instance GPU)."""
    IB_PORT = "ib-port"
    NVME = "nvme"


ACCELERATORS = (DeviceKind.GPU, DeviceKind.MIG)
"""Kinds that CUDA knows by their ids."""


HANGS = frozenset({"hang", "hang-lasts", "driver-hangs", "driver-hangs-lasting"})
"""Reasons (`agents/gpu-faults.toml`) of a device whose driver does not answer."""


class DeviceState(StrEnum):
    """How fit a device is, from the best to the worst."""

    OK = "ok"
    DEGRADED = "degraded"
    """It works; others are preferred."""
    UNKNOWN = "unknown"
    """Nobody can say: nothing new starts on it, what uses it keeps running."""
    DRAIN = "drain"
    """Nothing new starts on it, and what uses it leaves unless it says that it can stay (`gpu-health`)."""
    FAILED = "failed"
    """What uses it has lost it."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device as its node's watcher sees it."""

    id: DeviceId
    kind: DeviceKind = DeviceKind.GPU
    bus: str = ""
    """PCI address as in sysfs, `0000:3b:00.0`; of a MIG instance that of its GPU."""
    model: str = ""
    memory_mib: int = 0
    link: str = ""
    """Devices of a node with the same text reach each other by NVLink; empty: it reaches none."""
    numa: int = -1
    """-1: the node has no NUMA nodes, or does not say."""
    parent: str = ""
    """Of a MIG instance: the GPU's id."""
    profile: str = ""
    """Of a MIG instance: `3g.71gb`."""
    is_partitioned: bool = False
    """MIG is on: its instances are claimed, not itself."""
    has_ecc: bool | None = None
    """None: the device has no such mode."""
    state: DeviceState = DeviceState.OK
    reasons: tuple[str, ...] = ()
    """Why it is not OK, the gravest first: `CODE: words`, as `xid-79: it has fallen off the bus`."""
    strangers: tuple[str, ...] = ()
    """Processes that use it and belong to no claim of this node: `PID COMMAND`, bounded."""
    rung: str = ""
    """What its reasons want done about it (a `Rung`, the driver's own verdict first); empty: nothing that we can do."""

    @property
    def is_missing(self) -> bool:
        """Whether its node has seen it once and does not see it now."""
        return any(reason.partition(":")[0] == MISSING for reason in self.reasons)

    @property
    def is_hung(self) -> bool:
        """Whether its driver does not answer: then nobody can say what uses it."""
        return any(reason.partition(":")[0] in HANGS for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class DeviceHold:
    """A person wants nothing new on a device, and what uses it to leave."""

    author: str
    at: WallTime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A resource may use a device; made by the commit of its start, before anything is executed."""

    resource: ResourceId
    order: OrderKey
    """The newest start or arrival that it was made for."""
    memory_mib: int = 0
    """It shares the device with others that say how much memory they need; 0: it has it for itself alone."""
    is_over: bool = False
    """Its holder was stopped or found stopped, or its node is dead. The device is not given out before its node has
    proven that nothing uses it any more, or has booted."""
    is_first: bool = False
    """The resource had no claim on the device when that order was committed: nothing of it has used the device if the
    order was not begun."""


class Rung(StrEnum):
    """What can be done about a device, from the smallest to the largest."""

    RESET = "reset"
    """The device alone."""
    RELOAD = "reload"
    """The driver: all devices of the node."""
    REBOOT = "reboot"
    """The node, by fencing."""


class RecoveryPhase(StrEnum):
    """How far the recovery of a device has come."""

    ACTING = "acting"
    """Its node acts, has acted, or is about to."""
    PROVING = "proving"
    """It has to be well for a time and to pass the test (`gpu-burn-in`)."""
    HELD = "held"
    """It did not help: a person, or the next rung, has to."""


@dataclass(frozen=True, slots=True)
class DeviceRecovery:
    """A device is recovered, and not given out before that has proven to help (design/0015, "Recovery")."""

    number: int
    """Of the recoveries of its node, counting up: what is said of an older one is passed over."""
    phase: RecoveryPhase
    rung: Rung | None
    """None: it was well again by itself, and has only to prove it."""
    incarnation: Incarnation
    """The incarnation of its node that may act; any other knows only that it may have been acted."""
    author: str
    at: WallTime
    reason: str
    """Why it was begun."""
    detail: str = ""
    """What its node has said of it last."""
    is_suspect: bool = False
    """It was not proven well when this began, so that nothing done is not good enough."""


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of one node. It outlives the node's boots; claims end with their boot or its fencing."""

    devices: Mapping[DeviceId, Device] = field(default_factory=dict)
    """What was seen last, and what was seen once and is missing now (state `failed`, reason `missing`)."""
    since: Mapping[DeviceId, WallTime] = field(default_factory=dict)
    """When each entered its state."""
    unaccepted: frozenset[DeviceId] = frozenset()
    """Seen after the node's first report, and not accepted by a person: nothing starts on them."""
    holds: Mapping[DeviceId, DeviceHold] = field(default_factory=dict)
    claims: Mapping[DeviceId, tuple[DeviceClaim, ...]] = field(default_factory=dict)
    """Of each resource one at most, the newest last."""
    driver: str = ""
    """Its version, as the node says."""
    trouble: str = ""
    """What is wrong with all devices of the node at once (driver away, library missing); empty: nothing."""
    reported_at: WallTime = WallTime(0)
    recoveries: Mapping[DeviceId, DeviceRecovery] = field(default_factory=dict)
    """Of devices that are recovered, or have to prove that they are well."""
    recovered_at: Mapping[DeviceId, tuple[WallTime, ...]] = field(default_factory=dict)
    """When recoveries of each were begun, oldest first, bounded: for budgets, and for how long the proof takes."""
    last_recovery: int = 0
    """The number of the newest."""


@dataclass(frozen=True, slots=True)
class DeviceStorm:
    """So many devices or nodes went bad at once that their cause is a common one: nothing is done without a person."""

    at: WallTime
    text: str
    is_over: bool = False
    """A person has looked, at that time: what went bad before does not count any more."""


_RANKS = {state: rank for rank, state in enumerate(DeviceState)}


def worse(first: DeviceState, second: DeviceState) -> DeviceState:
    """Return the worse of two states."""
    return max(first, second, key=_RANKS.__getitem__)


def is_at_least(state: DeviceState, limit: DeviceState) -> bool:
    """Return whether a state is as bad as a limit, or worse."""
    return _RANKS[state] >= _RANKS[limit]


def state_in_force(known: NodeDevices, device: DeviceId) -> DeviceState:
    """Return the state by which resources are placed: what is seen, and what persons want."""
    seen = known.devices.get(device)
    if seen is None:
        return DeviceState.FAILED
    wanted = DeviceState.DRAIN if device in known.holds else DeviceState.OK
    is_unproven = device in known.unaccepted or device in known.recoveries
    return worse(worse(seen.state, wanted), DeviceState.UNKNOWN if is_unproven else DeviceState.OK)


def holders(known: NodeDevices, device: DeviceId) -> tuple[ResourceId, ...]:
    """Return the resources that may use a device, with those whose end is not proven yet."""
    return tuple(claim.resource for claim in known.claims.get(device, ()))


def claim_objection(known: NodeDevices, device: DeviceId, resource: ResourceId, memory_mib: int) -> str:
    """Say why a resource cannot claim a device now, as the rest of a sentence about it; empty: it can.

    One answer for who plans and for who commits. How fit the device is, is not looked at: that is a matter of choice.
    """
    seen = known.devices.get(device)
    if seen is None:
        return "was never reported"
    if device in known.unaccepted:
        return "is not accepted yet"
    if seen.is_partitioned:
        return "is divided in instances, which are claimed instead"
    standing = known.claims.get(device, ())
    own = next((claim for claim in standing if claim.resource == resource), None)
    objection = _objection_of_recovery(known, seen, is_own=own is not None) if known.recoveries else ""
    if objection:
        return objection
    if own is None and device in known.holds:
        return f"is drained by {known.holds[device].author}"
    if own is not None and (own.memory_mib != memory_mib or (own.is_over and own.memory_mib)):
        # A sharer is not known for certain from its own earlier process, and the others got room beside its old share.
        return f"is not proven free of {resource}'s earlier process"
    family = [name for name in (DeviceId(seen.parent), *_instances(known, device)) if known.claims.get(name)]
    if family:
        return f"is one with {family[0]}, which {known.claims[family[0]][0].resource} holds"
    return _objection_to_others(seen, [claim for claim in standing if claim.resource != resource], memory_mib)


def _objection_of_recovery(known: NodeDevices, device: Device, *, is_own: bool) -> str:
    """Say which recovery keeps a device from being claimed; empty: none does."""
    for name, recovery in known.recoveries.items():
        is_its = name in (device.id, device.parent)
        if recovery.phase is RecoveryPhase.ACTING and (is_its or recovery.rung is not Rung.RESET):
            return f"is not free: {recovery.rung} of {name if is_its else 'its node, for ' + name} is under way"
        if is_its and not is_own:
            return "is not proven to be well yet" if recovery.phase is RecoveryPhase.PROVING else "was not recovered"
    return ""


def _instances(known: NodeDevices, device: DeviceId) -> list[DeviceId]:
    return [name for name, seen in known.devices.items() if seen.parent == device]


def _objection_to_others(device: Device, others: list[DeviceClaim], memory_mib: int) -> str:
    exclusive = [claim for claim in others if not claim.memory_mib or not memory_mib]
    if exclusive:
        ending = ", which has ended and is not proven to use it no more" if exclusive[0].is_over else ""
        return f"is held by {exclusive[0].resource}{ending}"
    taken = sum(claim.memory_mib for claim in others)
    if memory_mib and taken + memory_mib > device.memory_mib:
        return f"has {device.memory_mib} MiB, of which {taken} are claimed: {memory_mib} more are too many"
    return ""


GPUS = "gpus"
"""The utilization attribute by which a resource asks for devices."""
DEVICE_META = (
    "gpu-model", "gpu-memory", "gpu-link", "gpu-kind", "gpu-profile", "gpu-sharing", "gpu-health", "gpu-gang",
)  # fmt: skip
"""The meta-attributes that say more of them."""


@dataclass(frozen=True, slots=True)
class DeviceDemand:
    """Which devices a resource needs where it runs."""

    count: int
    kind: DeviceKind = DeviceKind.GPU
    model: str = ""
    """A part of the model's name, whatever the case; empty: any."""
    memory_mib: int = 0
    """What each has at least; of shared ones what the resource takes of each."""
    is_linked: bool = False
    """All of one NVLink group."""
    profile: str = ""
    """Of MIG instances: `3g.71gb`; empty: any."""
    is_shared: bool = False
    leaves_at: DeviceState | None = DeviceState.DRAIN
    """The state of a device at which what uses it leaves; None: at none."""

    def __str__(self) -> str:
        what = f"{self.model} " if self.model else ""
        kind = "MIG instance" if self.kind is DeviceKind.MIG else "GPU"
        words = f"{self.count} {what}{kind}{'' if self.count == 1 else 's'}"
        words += f" {self.profile}" if self.profile else ""
        if self.is_shared:
            words += f", {self.memory_mib} MiB of each"
        elif self.memory_mib:
            words += f" of {self.memory_mib} MiB"
        return words + (" linked by NVLink" if self.is_linked and self.count > 1 else "")


_LEAVES_AT = {
    "ignore": None,
    "degraded": DeviceState.DEGRADED,
    "drain": DeviceState.DRAIN,
    "failed": DeviceState.FAILED,
}


def demand_in(utilization: Mapping[str, int], meta: Mapping[str, str]) -> DeviceDemand | None:
    """Return the devices for which a resource asks; None: for none. What cannot be read counts as not written."""
    count = utilization.get(GPUS, 0)
    if count <= 0:
        return None
    try:
        memory_mib = memory.parse(meta.get("gpu-memory", "0"))
    except ValueError:
        memory_mib = 0
    return DeviceDemand(
        count,
        kind=DeviceKind.MIG if meta.get("gpu-kind", "").lower() == "mig" else DeviceKind.GPU,
        model=meta.get("gpu-model", ""),
        memory_mib=memory_mib,
        is_linked=meta.get("gpu-link", "").lower() == "nvlink",
        profile=meta.get("gpu-profile", ""),
        is_shared=meta.get("gpu-sharing", "").lower() == "memory" and memory_mib > 0,
        leaves_at=_LEAVES_AT.get(meta.get("gpu-health", "").lower(), DeviceState.DRAIN),
    )


def suits(device: Device, demand: DeviceDemand) -> bool:
    """Return whether a device is of the kind that a resource needs, whatever its state, and held or not."""
    return (
        device.kind is demand.kind
        and not (device.kind is DeviceKind.GPU and device.is_partitioned)
        and demand.model.lower() in device.model.lower()
        and device.memory_mib >= demand.memory_mib
        and demand.profile in ("", device.profile)
    )
