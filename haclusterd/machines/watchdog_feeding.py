"""When the pacer opens, feeds and closes the watchdog device (safety.md §2, "Feed").

Invariant: a feed is requested only while the feed rule holds: with a valid lease and a recent verdict on the daemon, or
when the node is proven empty. It carries the time until which that holds, since the writer looks at the clock again. A
device is opened only when it may also be fed, since opening starts it.

The timeout of a device must never be changed while anything may run here: survivors count on the published one.
"""

from haclusterd.model.instants import NEVER, Instant, after, elapsed_ms
from haclusterd.model.records import dataclass
from haclusterd.model.watchdog import FEEDS_PER_TIMEOUT, PanicAction, Watchdog, WatchdogSettings

RETRY_MS = 1000
"""Pause between two attempts to open a device."""
WAIT_MS_MAX = 2000
"""How long a device that may not be fed yet is not reported as a problem: a restarted pacer needs a moment."""
LOOK_MS = 50
"""Pause between two checks whether something forbidden has become allowed."""
PANIC_SHARE_PERCENT = 88
"""Percent of T_wd after the newest feed at which the kernel is asked to panic, before the device expires."""


@dataclass(frozen=True, slots=True)
class OpenWatchdog:
    """Open the device, which starts it; `watchdog_opened` or `watchdog_failed` follows at once."""

    settings: WatchdogSettings
    may_set_timeout: bool
    """Whether its timeout may be set: only while nothing runs here, and nothing can be started."""


@dataclass(frozen=True, slots=True)
class FeedWatchdog:
    """Feed the device, if `until` has not passed at the moment of writing."""

    until: Instant


@dataclass(frozen=True, slots=True)
class Panic:
    """Have the kernel end this machine at once."""

    action: PanicAction


WatchdogEffect = OpenWatchdog | FeedWatchdog | Panic


@dataclass(frozen=True, slots=True)
class FeedRule:
    """What the pacer knows, at one moment, of the conditions for feeding."""

    until: Instant | None
    """Until when the device may be fed; None: it may not."""
    is_idle: bool
    """Whether nothing runs here and no lease permits starting anything."""
    is_condemned: bool
    """Whether the daemon wants this node to be reset (no-quorum-policy fence)."""


class WatchdogFeeding:
    """The pacer's handling of the device; see the module."""

    def __init__(self) -> None:
        self._settings: WatchdogSettings | None = None
        self._watchdog: Watchdog | None = None
        self._problem = ""
        self._next_at = NEVER
        self._fed_at: Instant | None = None
        self._has_panicked = False
        self._waits_since: Instant | None = None
        """Since when a device is not opened because it may not be fed."""

    @property
    def watchdog(self) -> Watchdog | None:
        """The armed device."""
        return self._watchdog

    @property
    def problem(self) -> str:
        """Why a configured device is not armed, or cannot be fed; empty: no problem."""
        return self._problem

    @property
    def wake_at(self) -> Instant:
        """When `step` is due."""
        return self._next_at

    def configured(self, settings: WatchdogSettings | None, now: Instant) -> None:
        """Take the daemon's settings for the device; one that is open stays open with its present timeout."""
        is_new = settings != self._settings
        self._settings = settings
        if settings is not None and self._watchdog is None and is_new:
            self._next_at = now

    def opened(self, watchdog: Watchdog, now: Instant) -> None:
        """Note that the device is open and counting; it may have been inherited from the program before this one."""
        self._watchdog = watchdog
        self._problem = ""
        self._fed_at = now
        self._next_at = now

    def failed(self, problem: str, now: Instant) -> None:
        """Note that the device could not be opened, or fed."""
        self._problem = problem
        if self._watchdog is None:
            self._next_at = after(now, RETRY_MS)

    def fed(self, now: Instant) -> None:
        """Note that the device was fed, before `now`."""
        self._fed_at = now
        self._problem = ""

    def step(self, rule: FeedRule, now: Instant) -> tuple[WatchdogEffect, ...]:
        """Return what is due."""
        if now < self._next_at:
            return ()
        if self._watchdog is None:
            return self._open(rule, now)
        if rule.until is not None:
            self._next_at = after(now, max(1, self._watchdog.timeout_ms // FEEDS_PER_TIMEOUT))
            return (FeedWatchdog(rule.until),)
        self._next_at = after(now, LOOK_MS)
        return self._panic(rule, self._watchdog, now)

    def _open(self, rule: FeedRule, now: Instant) -> tuple[WatchdogEffect, ...]:
        if self._settings is None:
            self._next_at = NEVER
            return ()
        if rule.until is None:
            # A restarted pacer finds a device that is counting: every moment matters.
            self._next_at = after(now, LOOK_MS)
            self._waits_since = now if self._waits_since is None else self._waits_since
            if elapsed_ms(self._waits_since, now) >= WAIT_MS_MAX:
                self._problem = f"{self._settings.device} is not opened before this node has a lease"
            return ()
        self._next_at = after(now, RETRY_MS)
        return (OpenWatchdog(self._settings, may_set_timeout=rule.is_idle),)

    def _panic(self, rule: FeedRule, watchdog: Watchdog, now: Instant) -> tuple[WatchdogEffect, ...]:
        action = self._settings.panic if self._settings is not None else PanicAction.NONE
        if action is PanicAction.NONE or self._has_panicked or self._fed_at is None:
            return ()
        is_due = elapsed_ms(self._fed_at, now) * 100 >= watchdog.timeout_ms * PANIC_SHARE_PERCENT
        if not is_due and not rule.is_condemned:
            return ()
        self._has_panicked = True
        return (Panic(action),)
