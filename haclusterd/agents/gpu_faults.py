"""From what was seen of NVIDIA devices to what is wrong with them: faults, their gravity, and how each one ends.

Pure, but for the table, which is read once. A device has one of LEVELS; a node has a colour. Principles: NVIDIA's own
verdict (the recovery action of the driver) comes first, the tables here are for drivers that have none; what cannot be
seen is no fault; a device that does not answer is not healthy, it is unknown; the errors of programs never condemn a
device; and every fault has its way back, if only a reboot. Only what concerns the whole node is red: the services of
seven good devices stay when the eighth breaks.
"""

from __future__ import annotations

from haclusterd.agents import hysteresis
from haclusterd.agents.gpu_fault_table import (
    APPLICATION,
    DEGRADED,
    DRAIN,
    IGNORED,
    OK,
    Table,
    code_of,
    level,
    load,
)
from haclusterd.agents.gpu_kernel_log import Xid

TYPE_CHECKING = False  # As typing says it; importing that takes half a megabyte.
if TYPE_CHECKING:
    from typing import Any

USABLE = (OK, DEGRADED)
GREEN, YELLOW, RED = range(3)
APPLICATION_XIDS = 3
BUSY_PERCENT = 10
HARDWARE_SLOWDOWN = 0x08 | 0x40
POWER_BRAKE = 0x80
SOFTWARE_THERMAL = 0x20
POWER_CAP = 0x04
COMPUTE_PROHIBITED = 2
CORRUPTED_INFOROM, GPU_IS_LOST, RESET_REQUIRED = 14, 15, 16
DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, LIBRARY_MISMATCH = 9, 12, 18

RECOVERY = {
    1: "recovery-reset",
    2: "recovery-reboot",
    3: "recovery-drain-p2p",
    4: "recovery-reset",
    5: "recovery-imex",
    6: "recovery-reset",
    7: "recovery-reboot",
}
"""NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: none, GPU reset, node reboot, drain P2P, drain and reset, recover IMEX domain,
bus reset, system reboot."""


class Options:
    """What the administrator decides: the table of faults, and what is said beside it."""

    def __init__(
        self,
        table: Table | None = None,
        *,
        levels: dict[str, int] | None = None,
        xids: dict[int, str] | None = None,
        hold_s: float = 600.0,
    ) -> None:
        """`levels` and `xids` overrule the table's rows; without a table it is the one that came with the program."""
        self._table = table
        self.hold_s = hold_s
        self._levels = levels or {}
        self._xids = xids or {}

    @property
    def table(self) -> Table:
        """The table, read when it is first wanted."""
        self._table = self._table or load()
        return self._table

    def level(self, name: str, *, has_verdict: bool = False) -> int:
        """Return how grave a fault is; `has_verdict`: of a device of which the driver says what is to be done."""
        if name in self._levels:
            return self._levels[name]
        fault = self.table.faults[name]
        return fault.level_with_verdict if has_verdict else fault.level

    def gravity(self, code: int) -> str:
        """Return the severity of an Xid."""
        return self._xids.get(code) or self.table.xid(code).severity


def faults_of_device(seen: dict[str, Any], links_known: int, options: Options) -> dict[str, int]:
    """Return the faults of an answer of the worker, each with its level; `links_known` NVLinks were up once."""
    if seen["error"]:
        names = {GPU_IS_LOST: "lost", RESET_REQUIRED: "reset-required", CORRUPTED_INFOROM: "inforom"}
        name = names.get(seen["error"], "no-answer")
        return {name: options.level(name)}
    codes = set(seen["failures"].values())
    recovery = seen.get("recovery")
    mig, ecc = seen.get("mig_mode", (0, 0)), seen.get("ecc_mode", (0, 0))
    slowdown = seen.get("slowdown", 0)
    signs = (
        ("no-answer", codes - {CORRUPTED_INFOROM}),
        ("inforom", CORRUPTED_INFOROM in codes),
        (RECOVERY.get(recovery or 0, ""), recovery in RECOVERY),
        ("ecc-uncorrected", seen.get("ecc_uncorrected")),
        ("remap-pending", seen.get("remap_pending")),
        ("sram-exceeded", seen.get("sram_exceeded")),
        ("remap-failed", seen.get("remap_failed")),
        ("pages-pending", seen.get("pages_pending")),
        ("slowed-down", slowdown & HARDWARE_SLOWDOWN),
        ("power-brake", slowdown & POWER_BRAKE),
        ("power-cap", slowdown & POWER_CAP),
        ("persistence-off", seen.get("persistence") == 0),
        ("remap-reserve", seen.get("remap_reserve")),
        ("straggler", seen.get("is_slow")),
        ("stuck-process", seen.get("stuck")),
        ("software-thermal", "mig_mode" in seen and slowdown & SOFTWARE_THERMAL),
        ("hot", _reaches(seen, "temperature", "temperature_slowdown")),
        ("too-hot", _reaches(seen, "temperature", "temperature_shutdown")),
        ("pcie-width", _is_busy(seen) and _is_narrow(seen)),
        ("nvlink-down", "links_up" in seen and seen["links_up"] < links_known),
        ("fabric-waits", seen.get("fabric_waits")),
        ("compute-prohibited", seen.get("compute_mode") == COMPUTE_PROHIBITED),
        ("mig-pending", mig[0] != mig[1]),
        ("mig-empty", mig[0] == mig[1] == 1 and not seen.get("instances")),
        ("ecc-pending", ecc[0] != ecc[1]),
        ("memory-held", seen.get("memory_held")),
    )
    # A driver with a verdict of its own has seen these errors too, and wants nothing done about them.
    has_verdict = recovery is not None
    return {name: options.level(name, has_verdict=has_verdict) for name, is_there in signs if is_there}


def unjudged(seen: dict[str, Any]) -> frozenset[str]:
    """Return the faults about which this answer says nothing: an idle link is narrow to save power."""
    return frozenset() if _is_busy(seen) else frozenset({"pcie-width", "straggler"})


def _reaches(seen: dict[str, Any], name: str, threshold: str) -> bool:
    return name in seen and 0 < int(seen.get(threshold, 0)) <= int(seen[name])


def _is_busy(seen: dict[str, Any]) -> bool:
    busy: int = seen.get("busy", 0)
    return busy >= BUSY_PERCENT


def _is_narrow(seen: dict[str, Any]) -> bool:
    return 0 < int(seen.get("pcie_width", 0)) < int(seen.get("pcie_width_max", 0))


def faults_of_log(xids: list[Xid], now: float, recovery: int | None, options: Options) -> dict[str, int]:
    """Return the faults that the kernel log tells of one device.

    An error counts for `hold_s` seconds. Where the driver gives no verdict, one that needs a reset counts until the
    device is known to be reset: until the node boots, or the resource is stopped.
    """
    found: dict[str, int] = {}
    programs: set[str] = set()
    recent = [xid for xid in xids if now - xid.at < options.hold_s]
    counts = {code: sum(1 for xid in recent if xid.code == code) for code in sorted({xid.code for xid in xids})}
    for xid in xids:
        gravity = options.gravity(xid.code)
        is_recent = now - xid.at < options.hold_s
        if gravity == APPLICATION:
            programs |= {xid.pid} if is_recent else set()
        elif gravity != IGNORED:
            grade = level(gravity)
            after = options.table.xid(xid.code).after
            if after > 1 and counts[xid.code] < after:
                grade = min(grade, DEGRADED)
            if is_recent or (recovery is None and grade >= DRAIN):
                found[f"xid-{xid.code}"] = max(grade, found.get(f"xid-{xid.code}", OK))
    if len(programs) >= APPLICATION_XIDS:
        found["xid-application"] = options.level("xid-application")
    return found


def faults_of_fleet(known: dict[str, Any], *, expected: int) -> dict[str, int]:
    """Return the faults of the node that follow from those of its devices."""
    levels = [level_of(device["tracks"]) for device in known.values()]
    signs = (
        ("devices-missing", YELLOW, len(levels) < expected),
        ("node-reboot", RED, any("recovery-reboot" in device["tracks"] for device in known.values())),
        ("no-device-usable", RED, bool(levels) and not any(level in USABLE for level in levels)),
    )
    return {name: level for name, level, is_there in signs if is_there}


OWN_RUNGS = ("reset", "reload", "reboot")
"""What the cluster can do about a device."""
_RUNG_OF_ACTION = {"reset-gpu": "reset", "restart-node": "reboot", "restart-vm": "reboot"}


def rung_for(names: list[str], options: Options) -> str:
    """Return what faults, the gravest first, want done about their device: the driver's own verdict counts first."""
    verdicts = [name for name in names if name in RECOVERY.values()]
    for name in (*verdicts, *names):
        fault, code = options.table.faults.get(name), code_of(name)
        rung = fault.rung if fault is not None else ""
        if fault is None and code is not None:
            rung = _RUNG_OF_ACTION.get(options.table.xid(code).action, "")
        if rung in OWN_RUNGS:
            return rung
        if name in verdicts:
            return ""
    return ""


def follow(
    tracks: dict[str, Any],
    present: dict[str, int],
    rules: dict[str, tuple[int, int]],
    held: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Bring the tracks of faults up to date; tracks that are back at nothing are left out."""
    new: dict[str, Any] = {}
    for name in sorted({*tracks, *present}):
        track = tracks.get(name, hysteresis.begin(OK))
        if name not in held:
            level = present.get(name, OK)
            raise_after, clear_after = rules.get(name, (1, 1))
            track = hysteresis.step(track, level, level, raise_after, clear_after)
        if track[0] or track[1]:
            new[name] = track
    return new


def level_of(tracks: dict[str, Any]) -> int:
    """Return the worst level of some tracks."""
    return max((track[0] for track in tracks.values()), default=OK)


def reasons(tracks: dict[str, Any]) -> str:
    """Return the faults in force, the gravest first."""
    active = [(-track[0], name) for name, track in tracks.items() if track[0]]
    return ",".join(name for _, name in sorted(active))


def faults_of_driver(code: int, *, is_hung: bool, expected: int) -> tuple[str, dict[str, int]]:
    """Return in a word how the driver is, and the faults of the node; `expected` devices should be there.

    A machine without the library, of which no devices are expected, is a machine without NVIDIA devices.
    """
    if is_hung:
        return "hung", {"driver-hangs": YELLOW, "driver-hangs-lasting": RED}
    if code == LIBRARY_NOT_FOUND:
        return "absent", {"library-missing": RED} if expected else {}
    if code == DRIVER_NOT_LOADED:
        return "not-loaded", {"driver-not-loaded": RED}
    if code == LIBRARY_MISMATCH:
        return "mismatch", {"library-mismatch": YELLOW}
    return ("ok", {}) if code == 0 else (f"error-{code}", {"driver-error": RED})
