"""One machine of the lab: its disk, its power, its processes.

The disk is a file system of its own, in a file, whose loop device lives as long as the lab: a machine that comes up
while its predecessor is still being taken down gets the same file system, never a second one on the same blocks.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

from tests.lab.namespaces import ENVIRONMENT, Namespaces
from tests.lab.switch import Switch

FREEZER = Path("/sys/fs/cgroup/freezer/haclusterd-lab")
ACCOUNTING = Path("/sys/fs/cgroup/cpuacct/haclusterd-lab")
BLOCK_IO = Path("/sys/fs/cgroup/blkio/haclusterd-lab")
MEMORY = Path("/sys/fs/cgroup/memory/haclusterd-lab")
GROUPS = (FREEZER, ACCOUNTING, BLOCK_IO, MEMORY)
FREEZE_S = 5.0
DISK_BYTES = 48 * 1024 * 1024
HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]


class Machine:
    """Starts switched off. `home` is its directory on the host, which all machines see at the same place."""

    def __init__(self, name: str, index: int, home: Path, switch: Switch, disk_bytes: int = DISK_BYTES) -> None:
        self.name, self.index, self.home = name, index, home
        self._disk_bytes = disk_bytes
        self._switch = switch
        self.namespaces: Namespaces | None = None
        self.is_stopped = False
        self.services: list[dict[str, object]] = []
        self.watchdog_ms = 0
        """T_wd of its watchdog device, a stand-in; 0: it has none."""
        self._stand_in: subprocess.Popen[bytes] | None = None
        self.died_at = 0
        self._lock = threading.RLock()
        group = f"{home.parent.name}-{name}"
        self._groups = {top: top / f"{os.getpid()}" / group for top in GROUPS if top.parent.is_dir()}
        self._freezer = self._groups[FREEZER]
        self.mounts: list[tuple[str, str, str, str]] = []
        """Beside its own: (source, target, kind or "" to bind, options), in order; sources see the disk."""
        self.state, self.logs, self.boot_id = home / "state", home / "log", home / "boot_id"
        for directory in (self.state, self.logs):
            directory.mkdir(parents=True)
        self._loop = self._make_disk()
        self._held_loop = os.open(self._loop, os.O_RDONLY | os.O_CLOEXEC)
        # Detached while in use, it goes away with its last user, however this process ends.
        _command("losetup", "--detach", self._loop)

    def _make_disk(self) -> str:
        image = self.home / "disk"
        with open(image, "wb") as file:
            file.truncate(self._disk_bytes)
        _command("mkfs.ext4", "-q", "-F", "-E", "root_owner=0:0", str(image))
        return _command("losetup", "--find", "--show", str(image)).strip()

    @property
    def init(self) -> int:
        assert self.namespaces is not None
        return self.namespaces.init

    @property
    def is_on(self) -> bool:
        return self.namespaces is not None and self.namespaces.lives

    def switch_on(self) -> None:
        with self._lock:
            if self.namespaces is not None:
                return
            self.boot_id.write_text(f"{uuid.uuid4()}\n")
            for group in self._groups.values():
                group.mkdir(parents=True, exist_ok=True)
            mounts = [
                (self._loop, str(self.state), "ext4", ""),
                ("tmpfs", "/run", "tmpfs", "mode=755"),
                ("tmpfs", "/dev/shm", "tmpfs", "mode=1777"),
                (str(HERE / "sbin"), "/usr/local/sbin", "", ""),
                *self.mounts,
            ]
            self._start_watchdog()
            made = Namespaces({
                "hostname": self.name, "groups": [str(group) for group in self._groups.values()], "mounts": mounts,
                "directories": ["/run/lock", "/run/haclusterd", str(self.state / "haclusterd")],
                "services": self.services,
            })  # fmt: skip
            (self.home / "init").write_text(str(made.init))
            self.is_stopped = False
            self._switch.plug(self.index, made.init)
            self.namespaces = made

    def switch_off(self) -> None:
        """Take the power away: first the wires go silent, then everything ends."""
        with self._lock:
            if self.namespaces is None:
                return
            self._switch.silence(self.index)
            self._end()

    def has_ended(self) -> bool:
        """Tell whether it ended by itself, as by its watchdog; then it is switched off as well."""
        with self._lock:
            if self.namespaces is None or self.namespaces.lives:
                return False
            self._end()
            return True

    def _end(self) -> None:
        assert self.namespaces is not None
        self.namespaces.end()
        self.died_at = time.monotonic_ns()
        self._switch.disconnect(self.index)
        self.namespaces = None
        self.is_stopped = False
        self._stop_watchdog()

    # -- watchdog ---------------------------------------------------------------------------------------------------

    @property
    def watchdog(self) -> Path:
        return self.home / "watchdog"

    def _start_watchdog(self) -> None:
        """Make the device again: with the power its count went as well. It is no process of the machine."""
        if not self.watchdog_ms:
            return
        reset = f"kill -KILL $(cat {self.home / 'init'})"
        words = (str(self.watchdog), "--timeout-ms", str(self.watchdog_ms), "--", "/bin/sh", "-c", reset)
        with open(self.logs / "watchdog.log", "ab") as log:
            self._stand_in = subprocess.Popen(
                [sys.executable, "-m", "haclusterd.entry_points.watchdog_stand_in", *words],
                cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 10
        while not self.watchdog.exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _stop_watchdog(self) -> None:
        if self._stand_in is not None:
            self._stand_in.kill()
            self._stand_in.wait()
            self._stand_in = None
        self.watchdog.unlink(missing_ok=True)

    def close(self) -> None:
        self.switch_off()
        deadline = time.monotonic() + 5
        for group in self._groups.values():
            while group.exists() and time.monotonic() < deadline:
                try:
                    group.rmdir()
                except OSError:
                    time.sleep(0.02)
        os.close(self._held_loop)

    # -- processes --------------------------------------------------------------------------------------------------

    def pids(self) -> list[int]:
        try:
            return [int(word) for word in (self._freezer / "cgroup.procs").read_text().split()]
        except FileNotFoundError:
            return []

    def find(self, needle: str) -> list[int]:
        """Return the processes whose command line has this text."""
        found = []
        for pid in self.pids():
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if needle in line and pid != self.init:
                found.append(pid)
        return found

    def signal(self, needle: str, number: int) -> None:
        pids = self.find(needle)
        assert pids, f"{needle} does not run on {self.name}"
        for pid in pids:
            _signal(pid, number)

    def stop_all(self) -> None:
        """Stop every process at one instant, its kernel not: that still answers ARP, and to accept connections."""
        state = self._freezer / "freezer.state"
        self._freeze(state)
        for pid in self.pids():
            _signal(pid, signal.SIGSTOP)
        state.write_text("THAWED")
        self.is_stopped = True

    def _freeze(self, state: Path) -> None:
        """Freeze it: a thread that waits for a `vfork` cannot be frozen after its child, so both go on for a moment."""
        deadline = time.monotonic() + FREEZE_S
        while True:
            state.write_text("FROZEN")
            again = time.monotonic() + 0.05
            while time.monotonic() < again:
                if state.read_text().strip() == "FROZEN":
                    return
                time.sleep(0.0005)
            if time.monotonic() > deadline:
                raise TimeoutError(f"{state}: not frozen in {FREEZE_S} s")
            state.write_text("THAWED")
            time.sleep(0.001)

    def continue_all(self) -> None:
        for pid in self.pids():
            _signal(pid, signal.SIGCONT)
        self.is_stopped = False

    # -- accounting -------------------------------------------------------------------------------------------------

    def cpu_ns(self) -> int:
        """Return the CPU time of all its processes of this and earlier boots, those included that have ended."""
        return int((self._groups[ACCOUNTING] / "cpuacct.usage").read_text())

    def memory_kib(self, besides: str) -> int:
        """Return the PSS of its processes, without init and those whose command line has this text."""
        total = 0
        for pid in set(self.pids()) - set(self.find(besides)) - {self.init}:
            with contextlib.suppress(OSError):
                roll = Path(f"/proc/{pid}/smaps_rollup").read_text()
                total += sum(int(line.split()[1]) for line in roll.splitlines() if line.startswith("Pss:"))
        return total

    # -- disk -------------------------------------------------------------------------------------------------------

    def fill_disk(self) -> None:
        """Leave no room at all."""
        with open(f"/proc/{self.init}/root{self.state}/ballast", "wb", buffering=0) as file:
            for size in (1 << 20, 4096, 512):
                try:
                    while file.write(b"\0" * size) == size:
                        pass
                except OSError:
                    continue

    def slow_disk(self, writes_per_s: int) -> None:
        """Let its processes write to the disk only so often, each fsync being a write or two; 0: as often as it can."""
        device = os.stat(self._loop).st_rdev
        limit = self._groups[BLOCK_IO] / "blkio.throttle.write_iops_device"
        if limit.exists():
            limit.write_text(f"{os.major(device)}:{os.minor(device)} {writes_per_s}\n")

    def limit_memory(self, mib: int) -> None:
        """Let all its processes together have no more memory than this, files that they read included."""
        (self._groups[MEMORY] / "memory.limit_in_bytes").write_text(f"{mib * 1024 * 1024}\n")

    def empty_disk(self) -> None:
        namespaces = self.namespaces
        if namespaces is not None:
            with contextlib.suppress(OSError):
                Path(f"/proc/{namespaces.init}/root{self.state}/ballast").unlink()


def sweep_groups() -> None:
    """Remove what is left of this lab's groups, and of those of labs that were killed."""
    for top in GROUPS:
        owners = [each for each in top.iterdir() if each.is_dir()] if top.is_dir() else []
        gone = [each for each in owners if each.name == f"{os.getpid()}" or not Path("/proc", each.name).exists()]
        for directory in (*(group for owner in gone for group in owner.iterdir() if group.is_dir()), *gone, top):
            # What is in use, by processes or by another lab, cannot be removed.
            with contextlib.suppress(OSError):
                directory.rmdir()


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _command(*words: str) -> str:
    return subprocess.run(words, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout


def missing_tools() -> list[str]:
    """Return what must be installed before the lab can work."""
    wanted = ("ip", "nft", "ethtool", "nsenter", "mkfs.ext4", "losetup")
    return [name for name in wanted if shutil.which(name) is None]
