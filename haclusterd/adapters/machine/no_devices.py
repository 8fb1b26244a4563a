"""The `DeviceWatch` of a node without watched devices."""

from collections.abc import Callable

from haclusterd.model.devices import DeviceId, Rung
from haclusterd.ports.clock import Clock
from haclusterd.ports.devices import DevicesReport, DeviceUse, RecoveryAnswer


class NoDevices:
    """Reports that there is no device, and answers every check as unknown."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def watch(self, changed: Callable[[DevicesReport], None]) -> None:
        """See `DeviceWatch.watch`; the only report is empty: what an earlier boot had is gone."""
        self._clock.call_soon(lambda: changed(DevicesReport(())))

    def look(self, devices: tuple[DeviceId, ...], done: Callable[[DeviceUse], None]) -> None:
        """See `DeviceWatch.look`."""
        self._clock.call_soon(lambda: done(DeviceUse(unknown=devices)))

    def recover(self, device: DeviceId, rung: Rung, done: Callable[[RecoveryAnswer], None]) -> None:
        """See `DeviceWatch.recover`."""
        self._decline(f"{rung} of {device}", done)

    def test(self, device: DeviceId, program: str, timeout_ms: int, done: Callable[[RecoveryAnswer], None]) -> None:
        """See `DeviceWatch.test`."""
        self._decline(f"{program} {device}, within {timeout_ms} ms", done)

    def _decline(self, what: str, done: Callable[[RecoveryAnswer], None]) -> None:
        answer = RecoveryAnswer(is_done=False, text=f"no devices are watched here: {what}", has_begun=False)
        self._clock.call_soon(lambda: done(answer))
