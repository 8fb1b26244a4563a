"""The watchdog's part of the pacer: opened when it may be fed, fed by the rule, never set while anything may run."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.machines.watchdog_feeding import FeedRule, FeedWatchdog, OpenWatchdog, Panic, WatchdogFeeding
from haclusterd.model.instants import NEVER, Instant
from haclusterd.model.watchdog import PanicAction, Watchdog, WatchdogSettings, longest_stop_ms, weakness_of

T_WD = 8000
SETTINGS = WatchdogSettings("/dev/watchdog", T_WD)
DEVICE = Watchdog(T_WD, "/dev/watchdog", "iTCO_wdt")
BEGIN = Instant(100_000)
IDLE = FeedRule(Instant(BEGIN + 60_000), is_idle=True, is_condemned=False)
LEASED = FeedRule(Instant(BEGIN + 60_000), is_idle=False, is_condemned=False)
FORBIDDEN = FeedRule(None, is_idle=False, is_condemned=False)
CONDEMNED = FeedRule(None, is_idle=False, is_condemned=True)


def at(offset_ms: int) -> Instant:
    return Instant(BEGIN + offset_ms)


def armed(settings: WatchdogSettings = SETTINGS) -> WatchdogFeeding:
    feeding = WatchdogFeeding()
    feeding.configured(settings, BEGIN)
    feeding.opened(DEVICE, BEGIN)
    return feeding


@pytest.mark.parametrize(
    ("rule", "effects"),
    [
        (IDLE, (OpenWatchdog(SETTINGS, may_set_timeout=True),)),
        (LEASED, (OpenWatchdog(SETTINGS, may_set_timeout=False),)),
        (FORBIDDEN, ()),
        (CONDEMNED, ()),
    ],
)
def test_a_device_is_opened_when_it_may_be_fed_and_set_only_where_nothing_runs(
    rule: FeedRule, effects: Sequence[object]
) -> None:
    feeding = WatchdogFeeding()
    feeding.configured(SETTINGS, BEGIN)
    assert feeding.step(rule, BEGIN) == effects
    assert feeding.problem == ""
    feeding.step(rule, at(2000))
    assert bool(feeding.problem) == (not effects)


def test_without_settings_nothing_is_opened() -> None:
    feeding = WatchdogFeeding()
    feeding.configured(None, BEGIN)
    assert feeding.wake_at == NEVER
    assert feeding.step(IDLE, BEGIN) == ()


def test_a_device_that_cannot_be_opened_is_tried_again_and_named() -> None:
    feeding = WatchdogFeeding()
    feeding.configured(SETTINGS, BEGIN)
    feeding.step(IDLE, BEGIN)
    feeding.failed("/dev/watchdog: busy", BEGIN)
    assert (feeding.watchdog, feeding.problem, feeding.wake_at) == (None, "/dev/watchdog: busy", at(1000))
    assert feeding.step(IDLE, at(999)) == ()
    assert feeding.step(IDLE, at(1000)) == (OpenWatchdog(SETTINGS, may_set_timeout=True),)
    feeding.opened(DEVICE, at(1000))
    assert (feeding.watchdog, feeding.problem) == (DEVICE, "")


def test_it_is_fed_four_times_in_its_timeout() -> None:
    feeding = armed()
    fed = [now for now in range(T_WD + 1) if feeding.step(LEASED, at(now))]
    assert fed == [0, 2000, 4000, 6000, 8000]


def test_new_settings_do_not_touch_an_open_device() -> None:
    feeding = armed()
    feeding.step(LEASED, BEGIN)
    feeding.configured(WatchdogSettings("/dev/watchdog1", 60_000), at(10))
    assert feeding.step(LEASED, at(2000)) == (FeedWatchdog(at(60_000)),)
    assert feeding.watchdog == DEVICE


@given(st.lists(st.tuples(st.integers(1, 3000), st.sampled_from((LEASED, FORBIDDEN, CONDEMNED))), max_size=60))
def test_it_is_fed_only_when_the_rule_permits_and_then_at_once(steps: list[tuple[int, FeedRule]]) -> None:
    feeding, now = armed(), 0
    for span_ms, rule in steps:
        now += span_ms
        was_due = at(now) >= feeding.wake_at
        effects = feeding.step(rule, at(now))
        assert effects == ((FeedWatchdog(LEASED.until or BEGIN),) if rule is LEASED and was_due else ())
        assert feeding.wake_at <= at(now + T_WD // 4)


def test_the_kernel_is_asked_once_to_panic_shortly_before_the_device_expires() -> None:
    feeding = armed(WatchdogSettings("/dev/watchdog", T_WD, panic=PanicAction.CRASH))
    feeding.step(LEASED, BEGIN)
    feeding.fed(BEGIN)
    panics = [now for now in range(0, T_WD, 10) if feeding.step(FORBIDDEN, at(now)) == (Panic(PanicAction.CRASH),)]
    assert len(panics) == 1
    assert T_WD * 88 // 100 <= panics[0] < T_WD


def test_a_condemned_node_panics_at_once() -> None:
    feeding = armed(WatchdogSettings("/dev/watchdog", T_WD, panic=PanicAction.REBOOT))
    assert feeding.step(CONDEMNED, BEGIN) == (Panic(PanicAction.REBOOT),)


def test_without_being_asked_to_it_never_panics() -> None:
    feeding = armed()
    assert not any(feeding.step(FORBIDDEN, at(now)) for now in range(0, 3 * T_WD, 10))


@pytest.mark.parametrize(
    ("identity", "is_virtual", "is_stand_in", "is_weak"),
    [
        ("Software Watchdog", False, False, True),
        ("i6300ESB timer", False, False, True),
        ("iTCO_wdt", False, False, False),
        ("iTCO_wdt", True, False, True),
        ("SP5100 TCO timer", False, False, False),
        ("stand-in", False, True, True),
    ],
)
def test_what_does_not_cover_a_dead_kernel_or_a_paused_machine_is_weak(
    identity: str, is_virtual: bool, is_stand_in: bool, is_weak: bool
) -> None:
    assert bool(weakness_of(identity, is_virtual=is_virtual, is_stand_in=is_stand_in)) is is_weak


@given(st.integers(1000, 600_000))
def test_a_stop_that_fits_ends_before_the_device_expires(timeout_ms: int) -> None:
    newest_feed_before_the_lease_ended_ms = timeout_ms // 4
    assert longest_stop_ms(timeout_ms) + newest_feed_before_the_lease_ended_ms <= timeout_ms
