"""A child process that measures this machine with psutil: processors, memory, file systems, load, stalls.

Run as a script by `measuring_child`, with a question as JSON: {"checks": [...], "disks": [...], "procfs": "/proc"}. It
names each measurement before it makes it, because statvfs(2) of a stuck file system does not return. Stands alone: it
imports nothing of this program. Values are percentages; `cpu` is (busy, total) seconds since boot, because a
percentage needs two samples and this process makes one.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

NO_PSUTIL = 3


def tell(**item: Any) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(item) + "\n")
    sys.stdout.flush()


class Machine:
    """This machine, as psutil and the kernel tell it; one method for each check."""

    def __init__(self, psutil: Any, question: dict[str, Any]) -> None:
        self._psutil = psutil
        self._procfs: str = question["procfs"]
        self._disks: list[str] = question["disks"]

    def cpu(self) -> None:
        """Tell the seconds that all processors were busy, and all seconds; waiting for a disk is not busy."""
        times = self._psutil.cpu_times()
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        tell(check="cpu", busy=total - times.idle - getattr(times, "iowait", 0.0), total=total)

    def memory(self) -> None:
        """Tell how much of the memory cannot be had without swapping."""
        memory = self._psutil.virtual_memory()
        tell(check="memory", value=100.0 * (memory.total - memory.available) / memory.total)

    def disk(self) -> None:
        """Tell how full each file system is, by space or by inodes."""
        for path in self._disks:
            tell(at=f"disk {path}")
            try:
                used = self._psutil.disk_usage(path).percent
                status = os.statvfs(path)
            except OSError as error:
                tell(check="disk", of=path, problem=error.strerror or str(error))
                continue
            inodes = 100.0 * (status.f_files - status.f_favail) / status.f_files if status.f_files else 0.0
            tell(check="disk", of=path, value=max(used, inodes))

    def load(self) -> None:
        """Tell the load average of five minutes for each processor."""
        with open(f"{self._procfs}/loadavg") as stream:
            load = float(stream.read().split()[1])
        tell(check="load", value=100.0 * load / (self._psutil.cpu_count() or 1))

    def pressure(self) -> None:
        """Tell the share of the last minute in which nothing ran because all waited for memory or for a disk (PSI)."""
        for resource in ("memory", "io"):
            try:
                with open(f"{self._procfs}/pressure/{resource}") as stream:
                    lines = stream.read().splitlines()
            except OSError:
                continue  # A kernel without PSI, or with psi=0, cannot tell.
            for words in map(str.split, lines):
                if words[0] == "full":
                    values = dict(word.split("=") for word in words[1:])
                    tell(check="pressure", of=resource, value=float(values["avg60"]))


def main() -> int:
    """Make the measurements that were asked for."""
    question = json.loads(sys.argv[1])
    try:
        import psutil
    except ImportError as error:
        sys.stderr.write(f"{sys.executable}: {error}\n")
        return NO_PSUTIL
    psutil.PROCFS_PATH = question["procfs"]
    machine = Machine(psutil, question)
    for check in question["checks"]:
        tell(at=check)
        try:
            getattr(machine, check)()
        except (OSError, ValueError, KeyError, IndexError) as error:
            tell(check=check, problem=f"{error.__class__.__name__}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
