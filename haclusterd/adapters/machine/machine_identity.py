"""Identifiers of this machine, which differ on a machine that its disk was copied to.

A hypervisor gives each cloned machine a new UUID, which the kernel shows as that of the firmware (DMI) or of the device
tree. `/etc/machine-id` is on the disk and is copied with it: it comes last, for machines without any other identifier,
and only detects a directory that was copied to a separately installed machine.
"""

import errno
from pathlib import Path
from typing import Final

from haclusterd.model.machine_marks import MachineMark

CONFIGURED: Final = "machine-id-file"
_KERNELS: Final = (
    ("DMI product_uuid", "sys/class/dmi/id/product_uuid"),
    ("Xen uuid", "sys/hypervisor/uuid"),
    ("device tree vm,uuid", "proc/device-tree/vm,uuid"),
    ("device tree serial-number", "proc/device-tree/serial-number"),
)
_MACHINE_ID: Final = ("machine-id", "etc/machine-id")
_TRANSIENT_ID: Final = "run/machine-id"
"""It exists if systemd has made an id for this boot alone, and shows it as `/etc/machine-id`."""
_NOBODYS: Final = ("0", "f")
"""A firmware UUID that was never set consists of one of these."""
_UNINITIALIZED: Final = "uninitialized"


def machine_marks(configured: Path | None, root: Path = Path("/")) -> tuple[MachineMark, ...]:
    """Return all readable identifiers of this machine, the most reliable first; empty: none.

    `configured`: the file that the node's configuration names for it; raises OSError if that contains no identifier.
    `root`: the directory of the system's files.
    """
    sources = [(kind, root / path) for kind, path in _KERNELS]
    if not (root / _TRANSIENT_ID).exists():
        sources.append((_MACHINE_ID[0], root / _MACHINE_ID[1]))
    own = [] if configured is None else [MachineMark(CONFIGURED, _required(configured))]
    found = ((kind, _read(path)) for kind, path in sources)
    return (*own, *(MachineMark(kind, value) for kind, value in found if value))


def _required(path: Path) -> str:
    value = path.read_text(errors="replace").strip()
    if not value:
        raise OSError(errno.EINVAL, f"{CONFIGURED} names no machine: it is empty", str(path))
    return value


def _read(path: Path) -> str:
    """Return an identifier in normal form; empty if there is none, or it may not be read."""
    try:
        value = path.read_bytes().decode("utf-8", "replace").strip(" \n\0").lower()
    except OSError:
        return ""
    is_nobodys = set(value.replace("-", "")) in ({each} for each in _NOBODYS)
    return "" if is_nobodys or value == _UNINITIALIZED else value
