"""The watchdog device: what is written to it, what a stand-in needs, and what is asked of the kernel."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.machine.watchdog_device import (
    INHERITED,
    inherited_device,
    is_virtual_machine,
    open_device,
    panic,
)
from haclusterd.model.watchdog import PanicAction, WatchdogSettings

FEED, END = b"\0", b"V"


class StandIn:
    """A FIFO, and its end that reads."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def written(self) -> bytes:
        """Return what was written since the last look."""
        try:
            return os.read(self._reader, 4096)
        except BlockingIOError:
            return b""

    def settings(self, *, may_be_stand_in: bool) -> WatchdogSettings:
        """Return settings that name it."""
        return WatchdogSettings(str(self.path), timeout_ms=4000, may_be_stand_in=may_be_stand_in)

    def close(self) -> None:
        """Give up the end that reads."""
        os.close(self._reader)


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[StandIn]:
    made = StandIn(tmp_path / "watchdog")
    yield made
    made.close()


def test_a_device_is_fed_when_it_is_opened_and_ended_by_the_letter(stand_in: StandIn) -> None:
    device = open_device(stand_in.settings(may_be_stand_in=True), may_set_timeout=True)
    assert (device.watchdog.timeout_ms, device.watchdog.device) == (4000, str(stand_in.path))
    assert device.watchdog.weakness
    assert stand_in.written() == FEED
    device.feed()
    assert stand_in.written() == FEED
    device.disarm()
    assert stand_in.written() == END


def test_what_is_no_watchdog_is_refused_and_ended_where_no_stand_in_is_permitted(stand_in: StandIn) -> None:
    with pytest.raises(OSError, match="not a watchdog") as refused:
        open_device(stand_in.settings(may_be_stand_in=False), may_set_timeout=True)
    assert refused.value.errno == errno.ENOTTY
    assert stand_in.written() == END


def test_the_program_after_a_reload_has_the_open_device_and_its_children_have_not(stand_in: StandIn) -> None:
    device = open_device(stand_in.settings(may_be_stand_in=True), may_set_timeout=False)
    environment = device.hand_over()
    descriptor = int(environment[INHERITED].split("\n")[0])
    assert os.get_inheritable(descriptor)
    taken = inherited_device(environment)
    assert taken is not None
    assert taken.watchdog == device.watchdog
    assert not os.get_inheritable(descriptor)
    assert environment == {}
    taken.disarm()
    assert stand_in.written() == FEED + END


def test_without_a_program_before_there_is_no_device() -> None:
    assert inherited_device({}) is None


@pytest.mark.parametrize(("action", "letter"), [(PanicAction.REBOOT, "b"), (PanicAction.CRASH, "c")])
def test_a_panic_asks_the_kernel_by_its_letter(tmp_path: Path, action: PanicAction, letter: str) -> None:
    trigger = tmp_path / "sysrq-trigger"
    trigger.touch()
    assert panic(action, trigger) == "the kernel did not obey"
    assert trigger.read_text() == letter


def test_no_panic_writes_nothing_and_one_that_cannot_be_asked_for_says_why(tmp_path: Path) -> None:
    trigger = tmp_path / "sysrq-trigger"
    assert panic(PanicAction.NONE, trigger) == ""
    assert panic(PanicAction.REBOOT, trigger) == f"{trigger}: No such file or directory"
    assert not trigger.exists()


@pytest.mark.parametrize(
    ("information", "is_virtual"),
    [
        ("processor\t: 0\nflags\t\t: fpu vme hypervisor lahf_lm\n", True),
        ("processor\t: 0\nflags\t\t: fpu vme lahf_lm\nmodel name\t: no-hypervisor\n", False),
        (None, False),
    ],
    ids=["it says so", "it does not", "no file"],
)
def test_a_processor_says_whether_it_is_a_virtual_machines(
    tmp_path: Path, information: str | None, is_virtual: bool
) -> None:
    file = tmp_path / "cpuinfo"
    if information is not None:
        file.write_text(information)
    assert is_virtual_machine(file) is is_virtual
