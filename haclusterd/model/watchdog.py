"""A node's watchdog device: its settings, what it says of itself, and how long survivors wait for it.

A watchdog resets its machine unless it is fed in time. With one, a node whose kernel or daemons hang, or whose services
do not stop, is silenced from inside (safety.md §2). The device counts T_wd from each feed.

Invariant: T_wd is what the device itself reports, never what was asked of it; it is replicated before anything runs
under it.
"""

from enum import StrEnum

from haclusterd.model.ids import ResourceId
from haclusterd.model.records import dataclass

WATCHDOG = ResourceId("#watchdog")
"""Stands for a node's own watchdog where fence devices are named; no resource can have that name."""

FEEDS_PER_TIMEOUT = 4
"""The period of feeding is at most T_wd / 4 (safety.md §2)."""
DEFAULT_TIMEOUT_MS = 10_000

ALWAYS_WEAK = ("software watchdog", "softdog", "i6300esb", "ib700")
"""Beginnings of identities: softdog is a timer of the kernel that it should watch; the others exist only emulated."""


class PanicAction(StrEnum):
    """What the pacer asks of the kernel shortly before the device expires (Linux, sysrq)."""

    NONE = "none"
    REBOOT = "reboot"
    CRASH = "crash"
    """With a crash kernel loaded, it leaves a dump."""


@dataclass(frozen=True, slots=True)
class WatchdogSettings:
    """What a node's daemon knows of its device."""

    device: str
    """Path."""
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    """What the device is asked for; it may answer with another."""
    pretimeout_ms: int = 0
    """How long before its expiry the device should raise an interrupt, where it can; 0: not at all."""
    panic: PanicAction = PanicAction.NONE
    may_be_stand_in: bool = False
    """Whether something that answers no watchdog ioctl is fed nevertheless: development only."""


@dataclass(frozen=True, slots=True)
class Watchdog:
    """An armed device, as a node publishes it."""

    timeout_ms: int
    """T_wd."""
    device: str = ""
    identity: str = ""
    weakness: str = ""
    """Why it does not cover what a watchdog should; empty when it does."""


def weakness_of(identity: str, *, is_virtual: bool, is_stand_in: bool) -> str:
    """Say what a device does not cover; empty: nothing.

    A device that the kernel or the hypervisor emulates does not reset a machine whose kernel is dead, or that is paused
    (safety.md §2).
    """
    if is_stand_in:
        return "a stand-in for development"
    if identity.lower().startswith(ALWAYS_WEAK[:2]):
        return "a timer of the kernel itself: it does not cover a dead kernel"
    if identity.lower().startswith(ALWAYS_WEAK) or is_virtual:
        return "emulated in a virtual machine: it does not cover a paused one"
    return ""


def longest_stop_ms(timeout_ms: int) -> int:
    """Return how long a stop may take that begins when the lease ends.

    The newest feed may by then be as old as the period of feeding, and the device counts from it.
    """
    return timeout_ms - timeout_ms // FEEDS_PER_TIMEOUT
