"""What is asked of a node's devices: news of them, and what uses them."""

from collections.abc import Callable
from typing import Protocol

from haclusterd.model.device_reports import DevicesReport as DevicesReport
from haclusterd.model.device_reports import DeviceUse as DeviceUse
from haclusterd.model.device_reports import DeviceUser as DeviceUser
from haclusterd.model.device_reports import RecoveryAnswer as RecoveryAnswer
from haclusterd.model.devices import DeviceId, Rung


class DeviceWatch(Protocol):
    """Watches this node's devices; it never blocks, and each answer comes by the loop of the caller."""

    def watch(self, changed: Callable[[DevicesReport], None]) -> None:
        """Begin: the first report as soon as it is known, then one for each change. Called once."""
        ...

    def look(self, devices: tuple[DeviceId, ...], done: Callable[[DeviceUse], None]) -> None:
        """Find out what uses some devices, within a second or two; where that cannot be done they are `unknown`.

        `done` is called exactly once. What is answered was so after the call.
        """
        ...

    def recover(self, device: DeviceId, rung: Rung, done: Callable[[RecoveryAnswer], None]) -> None:
        """Reset a device, or load the driver again. From this call until what it has begun is over, even after the
        daemon's end, looks answer that nobody can say whether what it hits is used. `done` is called exactly once."""
        ...

    def test(self, device: DeviceId, program: str, timeout_ms: int, done: Callable[[RecoveryAnswer], None]) -> None:
        """Run a program with a device's id; it is no stranger on the device. `done` is called exactly once."""
        ...
