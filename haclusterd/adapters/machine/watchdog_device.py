"""The watchdog device: Linux's character device (Documentation/watchdog/watchdog-api), or a stand-in that takes writes.

Opening starts the count, each write restarts it, and closing ends it after the letter V was written; without that the
device keeps counting, so that a machine whose pacer was killed is reset. A stand-in (a FIFO, a terminal) answers no
ioctl: its timeout is the one in the settings, and it is used only if they permit it.

Nothing here waits: a write that a stand-in does not read in time is no feed. Standard library only.
"""

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import MutableMapping
from pathlib import Path

from haclusterd.model.watchdog import PanicAction, Watchdog, WatchdogSettings, weakness_of

GET_SUPPORT = 0x80285700
SET_TIMEOUT = 0xC0045706
GET_TIMEOUT = 0x80045707
SET_PRETIMEOUT = 0xC0045708
"""Linux, include/uapi/linux/watchdog.h."""
HAS_PRETIMEOUT = 0x0200
CAN_SET_TIMEOUT = 0x0080

INHERITED = "HACLUSTERD_WATCHDOG"
"""Environment: descriptor, timeout in ms, weakness, identity and path of a device that this program inherits."""
SYSRQ_TRIGGER = Path("/proc/sysrq-trigger")
CPU_INFORMATION = Path("/proc/cpuinfo")

_INFORMATION = struct.Struct("=II32s")
_NUMBER = struct.Struct("=i")
_SYSRQ = {PanicAction.REBOOT: b"b", PanicAction.CRASH: b"c"}


class WatchdogDevice:
    """An open device. It stays open when this object is deleted: only `disarm` ends the count."""

    def __init__(self, descriptor: int, watchdog: Watchdog) -> None:
        self._descriptor = descriptor
        self.watchdog = watchdog

    def feed(self) -> None:
        """Restart the count. Raises OSError when the device does not accept the write."""
        os.write(self._descriptor, b"\0")

    def disarm(self) -> None:
        """End the count and close. Raises OSError."""
        os.write(self._descriptor, b"V")
        os.close(self._descriptor)

    def hand_over(self) -> dict[str, str]:
        """Return the environment by which a program that is executed in this process finds the open device."""
        _survive_execution(self._descriptor, survives=True)
        device = self.watchdog
        fields = (str(self._descriptor), str(device.timeout_ms), device.weakness, device.identity, device.device)
        return {INHERITED: "\n".join(fields)}


def inherited_device(environment: MutableMapping[str, str]) -> WatchdogDevice | None:
    """Take over a device from the program that this process ran before; None: there is none."""
    text = environment.pop(INHERITED, "")
    if not text:
        return None
    descriptor, timeout_ms, weakness, identity, path = text.split("\n")
    _survive_execution(int(descriptor), survives=False)
    return WatchdogDevice(int(descriptor), Watchdog(int(timeout_ms), path, identity, weakness))


def _survive_execution(descriptor: int, *, survives: bool) -> None:
    fcntl.fcntl(descriptor, fcntl.F_SETFD, 0 if survives else fcntl.FD_CLOEXEC)


def open_device(settings: WatchdogSettings, *, may_set_timeout: bool) -> WatchdogDevice:
    """Open the device, set it where that is permitted, and ask for its properties; raises OSError with the cause.

    A device that cannot be used is disarmed again.
    """
    descriptor = os.open(settings.device, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        device = WatchdogDevice(descriptor, _armed(descriptor, settings, may_set_timeout=may_set_timeout))
        device.feed()
    except OSError:
        _let_go(descriptor)
        raise
    return device


def _armed(descriptor: int, settings: WatchdogSettings, *, may_set_timeout: bool) -> Watchdog:
    support = _support(descriptor)
    if support is None:
        if not settings.may_be_stand_in:
            raise OSError(errno.ENOTTY, "not a watchdog (only a daemon with `development: true` feeds a stand-in)")
        weakness = weakness_of("", is_virtual=False, is_stand_in=True)
        return Watchdog(settings.timeout_ms, settings.device, "stand-in", weakness)
    options, identity = support
    if may_set_timeout:
        _set(descriptor, options, settings)
    (timeout_s,) = _NUMBER.unpack(fcntl.ioctl(descriptor, GET_TIMEOUT, _NUMBER.pack(0)))
    weakness = weakness_of(identity, is_virtual=is_virtual_machine(), is_stand_in=False)
    return Watchdog(timeout_s * 1000, settings.device, identity, weakness)


def _support(descriptor: int) -> tuple[int, str] | None:
    """Return the device's options and identity; None when it is no watchdog of the kernel."""
    try:
        raw = fcntl.ioctl(descriptor, GET_SUPPORT, bytes(_INFORMATION.size))
    except OSError as error:
        if error.errno in (errno.ENOTTY, errno.EINVAL):
            return None
        raise
    options, _, identity = _INFORMATION.unpack(raw)
    return options, identity.partition(b"\0")[0].decode("ascii", "replace")


def _set(descriptor: int, options: int, settings: WatchdogSettings) -> None:
    """Set timeout and pretimeout, as far as the device supports that; the values that it reports afterwards count."""
    if options & CAN_SET_TIMEOUT:
        fcntl.ioctl(descriptor, SET_TIMEOUT, _NUMBER.pack(max(1, -(-settings.timeout_ms // 1000))))
    if options & HAS_PRETIMEOUT and settings.pretimeout_ms:
        fcntl.ioctl(descriptor, SET_PRETIMEOUT, _NUMBER.pack(-(-settings.pretimeout_ms // 1000)))


def _let_go(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.write(descriptor, b"V")
    os.close(descriptor)


def is_virtual_machine(information: Path = CPU_INFORMATION) -> bool:
    """Return whether this machine runs under a hypervisor, according to its processor."""
    try:
        return any("hypervisor" in line.split() for line in information.read_text().splitlines())
    except OSError:
        return False


def panic(action: PanicAction, trigger: Path = SYSRQ_TRIGGER) -> str:
    """Have the kernel reboot or crash this machine at once (sysrq); return why it did not, if it did not."""
    command = _SYSRQ.get(action)
    if command is None:
        return ""
    try:
        descriptor = os.open(trigger, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, command)
        finally:
            os.close(descriptor)
    except OSError as error:
        return f"{trigger}: {error.strerror}"
    return "the kernel did not obey"
