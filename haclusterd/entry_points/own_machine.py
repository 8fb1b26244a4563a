"""What a node takes for its own when nobody says it: its name, its addresses, whether systemd starts its daemons.

It must never change anything but systemd's units, and those only by systemctl.
"""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from haclusterd.adapters.machine.installation import InstallationIncompleteError, share_directory

RAFT_PORT: Final = 7400
UNITS: Final = ("haclusterd-pacer.service", "haclusterd.service", "haclusterd-resources.target")
MAIN_UNIT: Final = "haclusterd.service"
"""The one that is enabled, started and stopped: the pacer comes and goes with it."""
_SYSTEMD_RUNS: Final = "run/systemd/system"
_UNIT_PLACES: Final = ("etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
"""Where a unit may be already; it is put into the first."""
_SYSUSERS, _TMPFILES = "sysusers.d/haclusterd.conf", "tmpfiles.d/haclusterd.conf"
_OWN, _PACKAGES = "etc", "usr/lib"
"""Where files for groups and directories may be already: an administrator's place, which they are put into, and that
of packages."""
_FILES: Final = (
    ("haclusterd.sysusers", _SYSUSERS, ("systemd-sysusers", f"/{_OWN}/{_SYSUSERS}")),
    ("haclusterd.tmpfiles", _TMPFILES, ("systemd-tmpfiles", "--create", f"/{_OWN}/{_TMPFILES}")),
)
_SIOCGIFADDR: Final = 0x8915
_ANY_REMOTE: Final = ("192.0.2.1", 9)
"""Of a network for documentation: nothing is sent there; the kernel says from which address it would be."""
COMMAND_TIMEOUT_S: Final = 60.0


def own_name() -> str:
    """Return this machine's name without its domain."""
    return socket.gethostname().partition(".")[0]


def own_address() -> str | None:
    """Return the address from which this machine reaches the rest of the world; None when it has no such address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ANY_REMOTE)
            return str(probe.getsockname()[0])
        except OSError:
            return None


def address_toward(remote: tuple[str, int]) -> str | None:
    """Return the address from which this machine reaches another one; None when it does not."""
    try:
        family, _, _, _, place = socket.getaddrinfo(*remote, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(place)
            return str(probe.getsockname()[0])
    except OSError:
        return None


def address_of(interface: str) -> str:
    """Return the first IPv4 address of an interface; raises OSError when it has none."""
    request = struct.pack("16s240x", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
    return socket.inet_ntoa(answer[20:24])


def start_services(root: Path = Path("/")) -> list[str]:
    """Let systemd start the daemons, now and at each boot; return what a person must do where that is not possible.

    `root`: below which the system's files are.
    """
    if not (root / _SYSTEMD_RUNS).is_dir() or os.geteuid() != 0:
        return [
            "No systemd runs here, so start these two, and see that they are started again when they end:",
            "  haclusterd-pacer",
            "  haclusterd",
        ]
    try:
        _install_units(root)
        _run("systemctl", "enable", "--now", MAIN_UNIT)
    except (OSError, InstallationIncompleteError, subprocess.SubprocessError) as error:
        return [f"systemd did not start it: {_problem(error)}", f"Then: systemctl enable --now {MAIN_UNIT}"]
    return []


def _install_units(root: Path) -> None:
    """Give systemd the files that belong to the package, where nobody did yet."""
    source = share_directory() / "systemd"
    for name, target, command in _FILES:
        if not any((root / place / target).exists() for place in (_OWN, _PACKAGES)):
            (root / _OWN / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, root / _OWN / target)
            _run(*command)
    missing = [unit for unit in UNITS if not any((root / place / unit).exists() for place in _UNIT_PLACES)]
    for unit in missing:
        (root / _UNIT_PLACES[0]).mkdir(parents=True, exist_ok=True)
        shutil.copy(source / unit, root / _UNIT_PLACES[0] / unit)
    if missing:
        _run("systemctl", "daemon-reload")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)


def _problem(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        printed: Sequence[str] = str(error.stderr).strip().splitlines()
        return printed[-1] if printed else f"{error.cmd[0]} ended with {error.returncode}"
    return str(error)
