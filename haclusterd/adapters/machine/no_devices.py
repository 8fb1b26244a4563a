"""The `DeviceWatch` of a node on which no devices are watched."""

from collections.abc import Callable

from haclusterd.model.devices import DeviceId
from haclusterd.ports.clock import Clock
from haclusterd.ports.devices import DevicesReport, DeviceUse


class NoDevices:
    """Sees nothing, and can say of no device whether it is used."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def watch(self, changed: Callable[[DevicesReport], None]) -> None:
        """See `DeviceWatch.watch`; there is never a report."""

    def look(self, devices: tuple[DeviceId, ...], done: Callable[[DeviceUse], None]) -> None:
        """See `DeviceWatch.look`."""
        self._clock.call_soon(lambda: done(DeviceUse(unknown=devices)))
