"""What the kernel log says of NVIDIA devices: Xid errors, and devices that have fallen off the bus.

A second channel beside NVML, which a dead device or driver does not answer. The numbers are NVIDIA's (docs.nvidia.com,
"Xid Errors"); gpu-faults.toml says how grave each is. Reading never blocks.
"""

from __future__ import annotations

import os
import re

RECORDS_MAX = 200_000

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(.*)")
_OFF_BUS = re.compile(
    r"NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F:.]+).*fallen off the bus"
)
_PID = re.compile(r"pid='?(\d+)")
_CARD = re.compile(
    r"mlx5_core ([0-9a-fA-F]{4}:[0-9a-fA-F:.]+):.*"
    r"(insufficient power|High Temperature|health compromised|[Ff]atal|unrecoverable)"
)
_SWITCH = re.compile(r"SXid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)")
OFF_BUS_XID = 79


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


def address_of(text: str) -> str:
    """Return a PCI address as sysfs writes it, `0000:1a:00.0`, however it was written."""
    return f"{bus_of(text)}.{text.partition('.')[2] or '0'}"


class KernelLog:
    """The kernel log from now on, and what it holds already; for who reads on and on."""

    def __init__(self, path: str) -> None:
        """Raises OSError."""
        self.descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._rest = b""

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)

    def read(self) -> tuple[list[Xid], list[Xid], list[tuple[str, float]]]:
        """Return what was not read before: errors of devices, errors of switches (`bus` is the switch's), and the
        addresses of network cards that have failed, with when.
        """
        records, self._rest = _read_records(self.descriptor, self._rest)
        devices = [xid for _, at, text in records if (xid := _read_text(text, at)) is not None]
        matches = [(at, _SWITCH.search(text)) for _, at, text in records]
        switches = [Xid(bus_of(match[1]), int(match[2]), at, "") for at, match in matches if match is not None]
        cards = [(match[1].rstrip(":."), at) for _, at, text in records if (match := _CARD.search(text)) is not None]
        return devices, switches, cards


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
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return _read_records(descriptor, b"")[0]
    finally:
        os.close(descriptor)


def _read_records(descriptor: int, rest: bytes) -> tuple[list[tuple[int, float, str]], bytes]:
    """Read what is there now, after a `rest` of an earlier reading; return the records, and what is not yet one."""
    found: list[tuple[int, float, str]] = []
    for _ in range(RECORDS_MAX):
        try:
            data = os.read(descriptor, 8192)
        except BrokenPipeError:
            continue  # Records were overwritten while we read; the next read continues with those that are left.
        except BlockingIOError:
            break
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        found += [record for line in lines if (record := _record(line.decode("utf-8", "replace"))) is not None]
    return found, rest


def _record(line: str) -> tuple[int, float, str] | None:
    head, semicolon, text = line.partition(";")
    fields = head.split(",")
    if not semicolon or len(fields) < 3 or not (fields[1].isdigit() and fields[2].isdigit()):
        return None
    return int(fields[1]), int(fields[2]) / 1e6, text
