"""What is wrong around a machine's GPUs: switches without their manager, network ports and cards, firmware.

By files of the kernel alone, read at each sweep; nothing here asks a driver. What a machine does not have is no fault,
and a port counts only once it was seen up: one that nobody has cabled is none either.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # As typing says it; importing that takes half a megabyte.
if TYPE_CHECKING:
    from typing import Any

NVIDIA, BRIDGE = "0x10de", "0x0680"
"""Of an NVSwitch: vendor, and class of its PCI function."""
MANAGER = "nv-fabricmanager"[:15]
"""As the kernel names its process."""
SLOWER = 0.9
PEERS_MIN = 3
WORKING_PERCENT = 50


class Surroundings:
    """What was seen of them since the watcher began."""

    def __init__(self, sysfs: str, proc: str) -> None:
        self._sysfs, self._proc = sysfs, proc
        self._ports_up: set[str] = set()
        self._cards: dict[str, float] = {}

    def take_cards(self, errors: list[tuple[str, float]]) -> None:
        """Keep network cards that have failed, and when (seconds since boot), as the kernel log says."""
        self._cards.update(errors)

    def faults(self, now: float, hold_s: float) -> dict[str, str]:
        """Return the faults of the node by name, each with what it is about; an error counts for `hold_s` seconds."""
        found = {}
        if self._has_switch() and not self._is_fabric_managed():
            found["fabric-manager"] = "there are NVSwitches and no process nv-fabricmanager"
        states = self._ports()
        self._ports_up |= {name for name, state in states.items() if state.endswith("ACTIVE")}
        down = sorted(name for name in self._ports_up if not states.get(name, "").endswith("ACTIVE"))
        if down:
            found["network-port"] = f"{', '.join(down[:4])}: {states.get(down[0], 'gone') or 'no state'}"
        cards = sorted(card for card, at in self._cards.items() if now - at < hold_s)
        if cards:
            found["network-card"] = ", ".join(cards[:4])
        if states and not os.path.isdir(f"{self._sysfs}/module/nvidia_peermem"):
            found["peer-memory"] = "there are network ports, and nvidia_peermem is not loaded"
        return found

    def _has_switch(self) -> bool:
        directory = f"{self._sysfs}/bus/pci/devices"
        places = [f"{directory}/{address}" for address in _names(directory)]
        return any(_read(f"{at}/vendor") == NVIDIA and _read(f"{at}/class").startswith(BRIDGE) for at in places)

    def _is_fabric_managed(self) -> bool:
        return any(_read(f"{self._proc}/{name}/comm") == MANAGER for name in _names(self._proc) if name.isdigit())

    def _ports(self) -> dict[str, str]:
        """Return by `CARD/PORT` how each port is, as `4: ACTIVE`."""
        top = f"{self._sysfs}/class/infiniband"
        return {
            f"{card}/{port}": _read(f"{top}/{card}/ports/{port}/state")
            for card in _names(top)
            for port in _names(f"{top}/{card}/ports")
        }


def slow_ones(seen: dict[str, dict[str, Any]]) -> set[str]:
    """Return which devices have lower clocks than their peers at the same work; all are given by id as they answered.

    Peers are those of one model that are all at work; of fewer than three nobody can say which one is slow.
    """
    groups: dict[str, dict[str, int]] = {}
    for name, each in seen.items():
        if each.get("busy", 0) >= WORKING_PERCENT and each.get("clock", 0) > 0:
            groups.setdefault(each.get("model", ""), {})[name] = each["clock"]
    slow: set[str] = set()
    for clocks in groups.values():
        if len(clocks) >= PEERS_MIN:
            usual = sorted(clocks.values())[len(clocks) // 2]
            slow |= {name for name, clock in clocks.items() if clock < usual * SLOWER}
    return slow


def has_other_firmware(seen: dict[str, dict[str, Any]]) -> bool:
    """Tell whether devices of one model have different firmware."""
    versions: dict[str, set[str]] = {}
    for each in seen.values():
        if each.get("vbios"):
            versions.setdefault(each.get("model", ""), set()).add(each["vbios"])
    return any(len(each) > 1 for each in versions.values())


def is_stuck_in_driver(proc: str, pid: int) -> bool:
    """Tell whether a process that waits uninterruptibly does so in NVIDIA's driver, or its stack cannot be read."""
    stack = _read(f"{proc}/{pid}/stack")
    return not stack or "[nvidia" in stack


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            return stream.read(4096).decode("utf-8", "replace").strip()
    except OSError:
        return ""
