"""Machines whose process 1 is systemd: containers of systemd-nspawn over an overlay of this machine's own files.

Everything that is mounted is mounted in one namespace, the **mount space**, which ends with the lab. In it the root
is this machine's, `/run` is a tmpfs, `/sys/fs/cgroup` is the unified hierarchy alone, and `IMAGE` is what all
machines have in common. Each machine has its own writable layer above that, its own network, and is held by a
supervisor: when the pipe from the lab closes, by whatever means, the supervisor takes the machine's power away.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root",
    "TZ": "UTC",
}  # fmt: skip
GROUPS = "haclusterd-lab"
IMAGE = "image"
TOOLS = ("systemd-nspawn", "systemctl", "journalctl", "unshare", "nsenter", "ip", "nft", "mkfs.ext4", "losetup")
COMMAND_S = 120.0
BOOT_S = 60.0


class NspawnError(Exception):
    """The lab itself could not do what it should; says nothing about the cluster."""


def obstacle() -> str:
    """Say why no machine with systemd can be booted here; empty: it can be tried."""
    if os.geteuid() != 0:
        return "it needs root"
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        return f"missing: {', '.join(missing)} (Debian: apt-get install systemd-container iproute2 nftables)"
    if unified_root() is None:
        return "no unified control groups (cgroup version 2) are mounted"
    return ""


def unified_root() -> Path | None:
    """Return where the unified hierarchy is mounted on this machine."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, target, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(target)
    return None


class LabUnavailableError(NspawnError):
    """This machine does not let the lab make its mounts."""


class MountSpace:
    """The namespace of all mounts. `place`: a directory that is a tmpfs inside."""

    def __init__(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.place = place
        script = f"""
            set -e
            mount --make-rprivate /
            mount -t tmpfs -o mode=755 tmpfs /run
            mount -t tmpfs -o mode=755,size=6g tmpfs {place}
            umount -R /sys/fs/cgroup 2>/dev/null || umount -lR /sys/fs/cgroup
            mount -t cgroup2 cgroup2 /sys/fs/cgroup
            echo ready
            exec cat
        """
        self._holder = subprocess.Popen(
            ["unshare", "-m", "--", "/bin/sh", "-c", script],
            env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._holder.stdout is not None
        if self._holder.stdout.readline().strip() != "ready":
            self._holder.wait()
            raise LabUnavailableError("the mounts of the lab cannot be made here")

    def enter(self, *command: str) -> list[str]:
        """Return the command as it runs in the mount space."""
        return ["nsenter", "-t", str(self._holder.pid), "-m", "--", *command]

    def run(self, *command: str, stdin: str = "", timeout_s: float = COMMAND_S) -> str:
        """Run a command in the mount space; return its output. Raises NspawnError."""
        done = subprocess.run(
            self.enter(*command), env=ENVIRONMENT, input=stdin, capture_output=True, text=True, timeout=timeout_s,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise NspawnError(f"{' '.join(command)}: {done.stderr.strip()[-2000:] or done.stdout.strip()[-2000:]}")
        return done.stdout

    def path(self, *parts: str) -> Path:
        return self.place.joinpath(*parts)

    def layer(self, name: str, *below: Path) -> Path:
        """Mount a writable layer above others, the first of them uppermost; return where."""
        root, upper, work = (self.path(name, part) for part in ("root", "upper", "work"))
        self.run("mkdir", "-p", str(root), str(upper), str(work))
        lower = ":".join(map(str, below))
        self.run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}",
                 str(root))  # fmt: skip
        return root

    def close(self) -> None:
        assert self._holder.stdin is not None
        self._holder.stdin.close()
        self._holder.wait()


class Container:
    """One life of one machine, from power on to power off.

    It is made in two steps, so that its cables are there before it boots: `init` is a process in its network until
    `boot`, and its process 1 from then on.
    """

    def __init__(self, mounts: MountSpace, name: str, root: Path, options: list[str], console: Path) -> None:
        self._name = name
        self.group = f"{GROUPS}/{os.getpid()}-{name}"
        spec = {"group": self.group, "name": name, "root": str(root), "options": options}
        with open(console, "ab") as log:
            self._shepherd = subprocess.Popen(
                mounts.enter("unshare", "-n", "--", sys.executable, "-I", "-S", __file__, json.dumps(spec)),
                env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        self.init = self._events()
        self._has_ended = threading.Event()

    def _events(self) -> int:
        assert self._shepherd.stdout is not None
        line = self._shepherd.stdout.readline()
        if not line:
            self._shepherd.wait()
            raise NspawnError(f"{self._name} did not start; its console has the reason")
        return int(line)

    def boot(self) -> None:
        """Let systemd begin; return when it is process 1."""
        assert self._shepherd.stdin is not None
        self._shepherd.stdin.write(b"boot\n")
        self._shepherd.stdin.flush()
        self.init = self._events()

    @property
    def lives(self) -> bool:
        return self._shepherd.poll() is None

    def end(self) -> None:
        """Take the power away: every process is killed at once; return when nothing of it is left."""
        if self._shepherd.stdin is not None and not self._shepherd.stdin.closed:
            self._shepherd.stdin.close()
        self._shepherd.wait()

    def enter(self, *command: str) -> list[str]:
        return ["nsenter", "-t", str(self.init), "-m", "-u", "-i", "-n", "-p", "-C", "--", *command]

    def run(self, *command: str, stdin: str = "", is_checked: bool = True, timeout_s: float = COMMAND_S) -> str:
        """Run a command inside; return its output. Raises NspawnError."""
        try:
            done = subprocess.run(
                self.enter(*command), env={**ENVIRONMENT, "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}, input=stdin,
                capture_output=True, text=True, timeout=timeout_s, check=False, cwd="/",
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise NspawnError(f"{self._name}: {' '.join(command)}: not done after {timeout_s:g} s") from error
        if is_checked and done.returncode:
            raise NspawnError(f"{self._name}: {' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout


# -- the supervisor, in the mount space and in the machine's network ------------------------------------------------


def _shepherd(spec: dict[str, Any]) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    group = Path("/sys/fs/cgroup", spec["group"])
    group.mkdir(parents=True, exist_ok=True)
    _say(os.getpid())
    if not os.read(0, 16):
        return 0
    child = os.fork()
    if child == 0:
        (group / "cgroup.procs").write_text("0")
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(2, 1)
        words = [
            "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--capability=all", "--link-journal=no",
            "--console=pipe", "--network-namespace-path=/proc/self/ns/net", "--resolv-conf=off", "--timezone=off",
            f"--machine={spec['name']}", f"--directory={spec['root']}", *spec["options"], "--boot",
        ]  # fmt: skip
        os.execvp(words[0], words)
    leader = _leader(child)
    _say(leader)
    if leader:
        _watch(child, leader)
    _clear(group)
    return 0


def _say(number: int) -> None:
    os.write(1, f"{number}\n".encode())


def _leader(nspawn: int) -> int:
    """Return the machine's process 1 as it is called out here, once it is systemd; 0 when nspawn ended first."""
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline:
        if os.waitpid(nspawn, os.WNOHANG)[0]:
            return 0
        try:
            for child in Path(f"/proc/{nspawn}/task/{nspawn}/children").read_text().split():
                if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                    return int(child)
        except OSError:
            pass
        time.sleep(0.01)
    os.kill(nspawn, signal.SIGKILL)
    os.waitpid(nspawn, 0)
    return 0


def _watch(nspawn: int, leader: int) -> None:
    """Wait for the end of the machine, or of the lab's interest in it, which kills it."""
    ended = os.pidfd_open(nspawn)
    poller = select.poll()
    poller.register(0, select.POLLIN | select.POLLHUP)
    poller.register(ended, select.POLLIN)
    poller.poll()
    with contextlib.suppress(ProcessLookupError):
        os.kill(leader, signal.SIGKILL)
    os.waitpid(nspawn, 0)


def _clear(group: Path) -> None:
    """Remove the machine's control groups, from the innermost outward."""
    for directory in sorted((each for each in group.rglob("*") if each.is_dir()), reverse=True):
        _remove(directory)
    _remove(group)


def _remove(directory: Path) -> None:
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        try:
            directory.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(_shepherd(json.loads(sys.argv[1])))
