"""What the kernel log says of NVIDIA devices: Xid errors, and devices that have fallen off the bus.

A second channel beside NVML, which a dead device or driver does not answer. The numbers are NVIDIA's (docs.nvidia.com,
"Xid Errors"); the table says how grave each is and is data: an administrator can overrule a row, because the catalogue
grows. Reading never blocks.
"""

from __future__ import annotations

import os
import re

APPLICATION, IGNORED = "application", "ignored"
RECORDS_MAX = 200_000

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(.*)")
_OFF_BUS = re.compile(
    r"NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F:.]+).*fallen off the bus"
)
_PID = re.compile(r"pid='?(\d+)")
OFF_BUS_XID = 79


def _codes(text: str) -> list[int]:
    found: list[int] = []
    for word in text.split():
        first, _, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


_ROWS = (
    ("failed", "79 95 140 167"),
    ("drain", "46 48 54 62 64 109 110 119 120 136 143 156-158 171 172"),
    ("degraded", "63 74 78 92 93 144-150 151 155 159"),
    (APPLICATION, "8 11 13 25 31 32 39-41 43 45 60 68-71 75-77 80 82-86 88 89 94 96-105 126-135 139"),
    (IGNORED, "14 37 38 44 66 67 106 107 121 137 141 152-154 160 161"),
)
GRAVITY: dict[int, str] = {code: gravity for gravity, codes in _ROWS for code in _codes(codes)}
"""By Xid: failed, drain, degraded, `application` (an error of the program that used the device, counted only) or
`ignored`. One that is not here is degraded: never guess a reboot."""
NEEDS_TWO = frozenset({109})
"""Sources disagree on these; the second within the holding time counts."""


class Xid:
    """One error: of which device (PCI domain, bus and device), which number, when (seconds since boot), of whom."""

    __slots__ = ("at", "bus", "code", "pid")

    def __init__(self, bus: str, code: int, at: float, pid: str) -> None:
        self.bus = bus
        self.code = code
        self.at = at
        self.pid = pid


def bus_of(text: str) -> str:
    """Return a PCI address without its function, as `0000:1a:00`, however it was written."""
    domain, _, rest = text.lower().split(".")[0].partition(":")
    return f"{domain[-4:]:0>4}:{rest}"


def read(path: str, cursor: int) -> tuple[list[Xid], int]:
    """Return the errors after record `cursor` of a file like /dev/kmsg, and the new cursor; raises OSError."""
    found: list[Xid] = []
    for sequence, at, text in _records(path):
        if sequence <= cursor:
            continue
        cursor = sequence
        xid = _read_text(text, at)
        if xid is not None:
            found.append(xid)
    return found, cursor


def _read_text(text: str, at: float) -> Xid | None:
    match = _XID.search(text)
    if match is not None:
        pid = _PID.search(match[3])
        return Xid(bus_of(match[1]), int(match[2]), at, pid[1] if pid is not None else "")
    match = _OFF_BUS.search(text)
    return None if match is None else Xid(bus_of(match[1].rstrip(":.")), OFF_BUS_XID, at, "")


def _records(path: str) -> list[tuple[int, float, str]]:
    """Return (sequence number, seconds since boot, text) of what is there now (Documentation/ABI/testing/dev-kmsg)."""
    found: list[tuple[int, float, str]] = []
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    rest = b""
    try:
        for _ in range(RECORDS_MAX):
            try:
                data = os.read(descriptor, 8192)
            except BrokenPipeError:
                continue  # Records were overwritten while we read; the next read goes on with those that are left.
            except BlockingIOError:
                break
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            found += [record for line in lines if (record := _record(line.decode("utf-8", "replace"))) is not None]
    finally:
        os.close(descriptor)
    return found


def _record(line: str) -> tuple[int, float, str] | None:
    head, semicolon, text = line.partition(";")
    fields = head.split(",")
    if not semicolon or len(fields) < 3 or not (fields[1].isdigit() and fields[2].isdigit()):
        return None
    return int(fields[1]), int(fields[2]) / 1e6, text
