"""What a node's watcher says of its devices: all of them when one has changed, and what uses some, when it is asked.

Two questions are answered from the latter: whether a claim that is over may end, and whether a start may begin.
"""

from collections.abc import Mapping, Sequence

from haclusterd.model.devices import Device, DeviceClaim, DeviceId
from haclusterd.model.ids import ResourceId
from haclusterd.model.records import dataclass, field


@dataclass(frozen=True, slots=True)
class DeviceUser:
    """One thing that uses a device."""

    text: str
    """`PID COMMAND` of a process, or `N MiB in use and no process`."""
    resource: str = ""
    """Whose agent has started the process, by `OCF_RESOURCE_INSTANCE` of its environment or its control group; empty:
    it does not say. Only this tells apart what shares a device."""


@dataclass(frozen=True, slots=True)
class DevicesReport:
    """All devices of this node, as its watcher sees them now."""

    devices: tuple[Device, ...]
    """In order of their ids."""
    driver: str = ""
    trouble: str = ""
    """See `NodeDevices.trouble`."""
    users: Mapping[DeviceId, tuple[DeviceUser, ...]] = field(default_factory=dict)
    """What uses them, as far as the watcher looks at that by itself: of these the strangers are made that the cluster
    is shown, beside those that a device's own `strangers` names."""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What uses some devices."""

    users: Mapping[DeviceId, tuple[DeviceUser, ...]] = field(default_factory=dict)
    """By device; one that nothing uses has no entry."""
    unknown: tuple[DeviceId, ...] = ()
    """Those of which nobody can say: they count as used."""


@dataclass(frozen=True, slots=True)
class RecoveryAnswer:
    """What came of recovering or testing a device."""

    is_done: bool
    text: str
    """What it said, or why it was not done."""
    has_begun: bool = True
    """False: nothing was done to the device, for certain."""


def obstacle_to_release(
    use: DeviceUse, device: DeviceId, resource: ResourceId, standing: Sequence[DeviceClaim]
) -> str:
    """Say why a resource's claim, which is over, may not end yet; empty: nothing of it uses the device any more.

    `standing`: all claims of the device. A process that does not say whose it is may be the resource's.
    """
    others = {claim.resource for claim in standing if claim.resource != resource}
    return _obstacle(use, device, [user for user in use.users.get(device, ()) if user.resource not in others])


def obstacle_to_start(
    use: DeviceUse, device: DeviceId, resource: ResourceId, standing: Sequence[DeviceClaim]
) -> str:
    """Say why a resource that claims a device may not be started on it yet; empty: it may.

    Nothing may use it but what shares it. What does not say whose it is belongs to a sharer where there is one: the
    resource itself has left nothing there, because it gets a shared device back only after its release.
    """
    sharers = {claim.resource for claim in standing if claim.resource != resource and claim.memory_mib}
    users = [
        user
        for user in use.users.get(device, ())
        if user.resource not in sharers and (user.resource or not sharers)
    ]
    return _obstacle(use, device, users)


def _obstacle(use: DeviceUse, device: DeviceId, users: Sequence[DeviceUser]) -> str:
    if device in use.unknown:
        return f"nobody can say whether device {device} is used"
    return f"device {device} is used by {users[0].text}" if users else ""
