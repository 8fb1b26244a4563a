"""What names this machine, and is another on a machine to which its disk was copied.

A hypervisor gives each machine that it clones a new UUID, which the kernel shows as that of the firmware (DMI) or of
the device tree. `/etc/machine-id` lies on the disk and is copied with it: it stands last, for machines of which nothing
else is known, and tells only a directory that was copied to a machine that was installed by itself.
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
"""There when systemd has made an id for this boot alone, and shows it as `/etc/machine-id`."""
_NOBODYS: Final = ("0", "f")
"""What firmware shows that was given no UUID consists of one of these."""
_UNINITIALIZED: Final = "uninitialized"


def machine_marks(configured: Path | None, root: Path = Path("/")) -> tuple[MachineMark, ...]:
    """Return all that can be read of what names this machine, the surest first; empty: nothing.

    `configured`: the file that the node's configuration names for it; raises OSError where that names nothing.
    `root`: below which the system's files are.
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
    """Return a name in one spelling; empty where there is none, or it may not be read."""
    try:
        value = path.read_bytes().decode("utf-8", "replace").strip(" \n\0").lower()
    except OSError:
        return ""
    is_nobodys = set(value.replace("-", "")) in ({each} for each in _NOBODYS)
    return "" if is_nobodys or value == _UNINITIALIZED else value
