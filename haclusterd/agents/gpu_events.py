"""A child process that waits for NVML's events: Xid errors, as they happen.

Run as a script. It writes {"ready": N} when it listens to N devices, then {"bus": ..., "xid": ...} for each error, and
a line {} every few seconds, so that its silence is seen. A device whose events cannot be had is left out: the kernel
log says the same. Stands alone; it loads the library itself, because the binding's structures take more memory than all
the rest of this process.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

XID_EVENTS = 0x8
WAIT_MS = 5000
TIMEOUT, GPU_IS_LOST = 10, 15
NO_LIBRARY, NO_EVENTS = 4, 5
"""Exit statuses."""


class PciInfo(ctypes.Structure):
    """`nvmlPciInfo_t`."""

    _fields_ = (
        ("legacy", ctypes.c_char * 16), ("domain", ctypes.c_uint), ("bus", ctypes.c_uint), ("device", ctypes.c_uint),
        ("id", ctypes.c_uint), ("subsystem", ctypes.c_uint), ("address", ctypes.c_char * 32),
    )  # fmt: skip


class EventData(ctypes.Structure):
    """`nvmlEventData_t`."""

    _fields_ = (
        ("device", ctypes.c_void_p), ("kind", ctypes.c_ulonglong), ("data", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint),
    )  # fmt: skip


def tell(**item: Any) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(item) + "\n")
    sys.stdout.flush()


def address_of(library: Any, device: Any) -> str:
    """Return a device's PCI address, as NVML writes it."""
    info = PciInfo()
    code = library.nvmlDeviceGetPciInfo_v3(ctypes.c_void_p(device), ctypes.byref(info))
    return "" if code else info.address.decode()


def listen(library: Any, events: Any) -> int:
    """Register all devices that have such events; return how many."""
    count, listened = ctypes.c_uint(), 0
    if library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return 0
    for index in range(count.value):
        device, kinds = ctypes.c_void_p(), ctypes.c_ulonglong()
        if library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device)):
            continue
        if library.nvmlDeviceGetSupportedEventTypes(device, ctypes.byref(kinds)) or not kinds.value & XID_EVENTS:
            continue
        listened += library.nvmlDeviceRegisterEvents(device, ctypes.c_ulonglong(XID_EVENTS), events) == 0
    return listened


def main() -> int:
    """Tell of errors for as long as somebody reads."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return NO_LIBRARY
    events = ctypes.c_void_p()
    if library.nvmlInit_v2() or library.nvmlEventSetCreate(ctypes.byref(events)):
        return NO_EVENTS
    count = listen(library, events)
    if not count:
        return NO_EVENTS
    tell(ready=count)
    while True:
        event = EventData()
        code = library.nvmlEventSetWait_v2(events, ctypes.byref(event), ctypes.c_uint(WAIT_MS))
        if code == TIMEOUT:
            tell()
        elif code:
            return NO_EVENTS  # A lost device ends the set; who started this begins another one.
        elif event.kind == XID_EVENTS:
            tell(bus=address_of(library, event.device), xid=int(event.data))


if __name__ == "__main__":
    sys.exit(main())
