"""From what was seen of NVIDIA devices to what is wrong with them: faults, their gravity, and how each one ends.

Pure. A device has one of LEVELS; a node has a colour. Principles: NVIDIA's own verdict (the recovery action of the
driver) comes first, the tables here are for drivers that have none; what cannot be seen is no fault; a device that does
not answer is not healthy, it is unknown; the errors of programs never condemn a device; and every fault has its way
back, if only a reboot. Only what concerns the whole node is red: the services of seven good devices stay when the
eighth breaks.
"""

from __future__ import annotations

from typing import Any

from haclusterd.agents import hysteresis
from haclusterd.agents.gpu_kernel_log import APPLICATION, GRAVITY, IGNORED, NEEDS_TWO, Xid

LEVELS = ("ok", "degraded", "unknown", "drain", "failed")
"""degraded: use others first. unknown: it does not answer. drain: nothing new, move what can be moved. failed: gone."""
OK, DEGRADED, UNKNOWN, DRAIN, FAILED = range(len(LEVELS))
USABLE = (OK, DEGRADED)
GREEN, YELLOW, RED = range(3)
STICKY = 10**9
"""Good samples that never come: it ends with a reboot, a reset, or when the resource is stopped."""
APPLICATION_XIDS = 3
BUSY_PERCENT = 10
HARDWARE_SLOWDOWN = 0x08 | 0x40
POWER_BRAKE = 0x80
GPU_IS_LOST, RESET_REQUIRED = 15, 16
DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, LIBRARY_MISMATCH = 9, 12, 18

DEVICE_FAULTS: dict[str, tuple[int, int]] = {
    "lost": (1, STICKY),
    "missing": (2, 2),
    "hang": (1, 3),
    "hang-lasts": (3, 3),
    "no-answer": (1, 3),
    "reset-required": (1, 1),
    "recovery-reset": (1, 1),
    "recovery-reboot": (1, 1),
    "recovery-drain-p2p": (1, 1),
    "recovery-imex": (1, 1),
    "ecc-uncorrected": (1, 1),
    "sram-exceeded": (1, STICKY),
    "remap-pending": (1, 1),
    "remap-failed": (1, STICKY),
    "pages-pending": (1, 1),
    "hot": (3, 3),
    "too-hot": (1, 3),
    "slowed-down": (3, 3),
    "power-brake": (3, 1),
    "pcie-width": (3, 3),
    "nvlink-down": (2, 2),
    "fabric-waits": (3, 1),
}
"""After how many samples in a row each fault is believed, and after how many without it it is over; others: 1 and 1."""

NODE_FAULTS: dict[str, tuple[int, int]] = {
    "driver-not-loaded": (2, 1),
    "library-missing": (2, 1),
    "library-mismatch": (1, 1),
    "driver-hangs": (1, 3),
    "driver-hangs-lasting": (3, 3),
    "driver-error": (2, 1),
    "devices-missing": (2, 1),
    "node-reboot": (1, 1),
    "no-device-usable": (1, 1),
}

RECOVERY = {
    1: ("recovery-reset", DRAIN),
    2: ("recovery-reboot", FAILED),
    3: ("recovery-drain-p2p", DEGRADED),
    4: ("recovery-reset", DRAIN),
    5: ("recovery-imex", DRAIN),
    6: ("recovery-reset", DRAIN),
    7: ("recovery-reboot", FAILED),
}
"""NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: none, GPU reset, node reboot, drain P2P, drain and reset, recover IMEX domain,
bus reset, system reboot."""


class Options:
    """What the administrator decides."""

    def __init__(
        self, *, remap_pending: int = DEGRADED, xids: dict[int, str] | None = None, hold_s: float = 600.0
    ) -> None:
        self.remap_pending = remap_pending
        self.gravity = {**GRAVITY, **(xids or {})}
        self.hold_s = hold_s


def faults_of_device(seen: dict[str, Any], links_known: int, options: Options) -> dict[str, int]:
    """Return the faults of an answer of the worker, each with its level; `links_known` NVLinks were up once."""
    if seen["error"]:
        code = seen["error"]
        return {GPU_IS_LOST: {"lost": FAILED}, RESET_REQUIRED: {"reset-required": DRAIN}}.get(
            code, {"no-answer": UNKNOWN}
        )
    found: dict[str, int] = {"no-answer": UNKNOWN} if seen["failures"] else {}
    recovery = seen.get("recovery")
    if recovery in RECOVERY:
        name, level = RECOVERY[recovery]
        found[name] = level
    if seen.get("ecc_uncorrected"):
        # A driver with a verdict of its own has seen these errors too, and wants nothing done about them.
        found["ecc-uncorrected"] = DRAIN if recovery is None else DEGRADED
    if seen.get("remap_pending"):
        found["remap-pending"] = options.remap_pending
    signs = (
        ("sram-exceeded", DRAIN, seen.get("sram_exceeded")),
        ("remap-failed", DRAIN, seen.get("remap_failed")),
        ("pages-pending", DEGRADED, seen.get("pages_pending")),
        ("slowed-down", DEGRADED, seen.get("slowdown", 0) & HARDWARE_SLOWDOWN),
        ("power-brake", DEGRADED, seen.get("slowdown", 0) & POWER_BRAKE),
        ("hot", DEGRADED, _reaches(seen, "temperature", "temperature_slowdown")),
        ("too-hot", DRAIN, _reaches(seen, "temperature", "temperature_shutdown")),
        ("pcie-width", DEGRADED, _is_busy(seen) and _is_narrow(seen)),
        ("nvlink-down", DEGRADED, "links_up" in seen and seen["links_up"] < links_known),
        ("fabric-waits", DEGRADED, seen.get("fabric_waits")),
    )
    found.update({name: level for name, level, is_there in signs if is_there})
    return found


def unjudged(seen: dict[str, Any]) -> frozenset[str]:
    """Return the faults about which this answer says nothing: an idle link is narrow to save power."""
    return frozenset() if _is_busy(seen) else frozenset({"pcie-width"})


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
        gravity = options.gravity.get(xid.code, "degraded")
        is_recent = now - xid.at < options.hold_s
        if gravity == APPLICATION:
            programs |= {xid.pid} if is_recent else set()
        elif gravity != IGNORED:
            level = LEVELS.index(gravity)
            if xid.code in NEEDS_TWO and counts[xid.code] < 2:
                level = DEGRADED
            if is_recent or (recovery is None and level >= DRAIN):
                found[f"xid-{xid.code}"] = max(level, found.get(f"xid-{xid.code}", OK))
    if len(programs) >= APPLICATION_XIDS:
        found["xid-application"] = DEGRADED
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
