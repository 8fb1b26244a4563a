"""What is asked of a node's devices: news of them, and proof that nothing uses them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from haclusterd.model.devices import Device, DeviceId


@dataclass(frozen=True, slots=True)
class DevicesReport:
    """All devices of this node, as its watcher sees them now."""

    devices: tuple[Device, ...]
    """In order of their ids."""
    driver: str = ""
    trouble: str = ""
    """See `NodeDevices.trouble`."""


@dataclass(frozen=True, slots=True)
class DeviceUser:
    """One thing that uses a device."""

    text: str
    """`PID COMMAND` of a process, or `N MiB in use and no process`."""
    resource: str = ""
    """Whose agent has started the process, by `OCF_RESOURCE_INSTANCE` of its environment or its control group; empty:
    it does not say. Only this tells apart what shares a device."""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What uses some devices."""

    users: Mapping[DeviceId, tuple[DeviceUser, ...]] = field(default_factory=dict)
    """By device; one that nothing uses has no entry."""
    unknown: tuple[DeviceId, ...] = ()
    """Those of which nobody can say: they count as used."""


class DeviceWatch(Protocol):
    """Watches this node's devices; it never blocks, and each answer comes by the loop of the caller."""

    def watch(self, changed: Callable[[DevicesReport], None]) -> None:
        """Begin: the first report as soon as it is known, then one for each change. Called once."""
        ...

    def look(self, devices: tuple[DeviceId, ...], done: Callable[[DeviceUse], None]) -> None:
        """Find out what uses some devices, within a second or two; where that cannot be done they are `unknown`.

        `done` is called exactly once.
        """
        ...
