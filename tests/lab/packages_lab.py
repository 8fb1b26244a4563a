"""Three machines of bare Debian 12 that get haclusterd as a package, with nothing but apt, or rpm on top of it.

The system below them is made by debootstrap, once, in the checkout's `build/`. What the package depends on lies in
apt's cache, for the machines have no way to an archive; nothing of it is installed before the package is.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

from haclusterd.model.records import dataclass
from tests.lab.machine import HERE, REPOSITORY
from tests.lab.nspawn import IMAGE, NspawnError
from tests.lab.site import NotAsExpectedError
from tests.lab.systemd_lab import UNITS, SystemdLab
from tests.lab.systemd_machine import LAB, STATE, WHEELS, SystemdMachine

BARE = REPOSITORY / "build" / "debian-12"
SUITE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
INCLUDED = "systemd,systemd-sysv,dbus,iproute2,procps"
TOOLS = ("debootstrap", "dpkg-deb", "rpmbuild")
RELEASES = ("1", "2")
BUILD_S = 1800.0
INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends"
PREPARE = f"""
set -e
mkdir -p /var/log/journal {STATE} {LAB} {WHEELS} /usr/local/sbin /etc/systemd/journald.conf.d
for unit in getty@ console-getty systemd-logind systemd-networkd systemd-resolved; do
    ln -sf /dev/null /etc/systemd/system/$unit.service
done
printf '[Journal]\\nStorage=persistent\\nRateLimitIntervalSec=0\\nSyncIntervalSec=1s\\n' \\
    > /etc/systemd/journald.conf.d/lab.conf
apt-get -q update
{INSTALL} --download-only install python3 python3.11 debconf resource-agents rpm
"""


@dataclass(frozen=True, slots=True)
class Debian:
    """The lowest layer of all machines, and the packages: by release, as the machines see them."""

    ground: Path
    packages: dict[str, str]
    rpms: dict[str, str]


class PackagesLab(SystemdLab):
    """`start` installs the first release on each machine, and forms a cluster by `crm cluster init` and `join`."""

    def prepare(self) -> None:
        _make_packages(self.directory / "wheels")
        _make_bare()
        packages, rpms = (_found(self.directory / "wheels", pattern) for pattern in ("*-{}_*.deb", "*-{}.*.rpm"))
        self.debian = Debian(BARE, packages, rpms)
        root = self.mounts.layer(IMAGE, BARE)
        self.mounts.run(
            "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--pipe", "--resolv-conf=copy-host",
            "--timezone=off", f"--directory={root}", "/bin/sh", "-c", PREPARE, timeout_s=600,
        )  # fmt: skip
        for agent in (HERE / "sbin").iterdir():
            self.mounts.run("install", "-m", "755", str(agent), f"{root}/usr/local/sbin/{agent.name}")
        self.mounts.run("umount", str(root))
        for name in self.machines:
            self.machine(name).prepare(self.mounts.path(IMAGE, "upper"), BARE)

    def form(self) -> float:
        for name in self.machines:
            self.machine(name).switch_on()
        for name in self.machines:
            self.until(f"{name} to boot", self.machine(name).is_booted, 60)
        for name in self.machines:
            self.install(self.machine(name), RELEASES[0])
            self.starts_nothing(self.machine(name))
        self._purged_when_asked(self.machine("n1"))
        return super().form()

    def install(self, machine: SystemdMachine, release: str) -> None:
        machine.shell(f"{INSTALL} --allow-downgrades install {self.debian.packages[release]} resource-agents",
                      timeout_s=300)  # fmt: skip

    def release(self, machine: SystemdMachine) -> str:
        """Return which release the program has that the daemons would be started with."""
        name = machine.shell("readlink /usr/lib/haclusterd/current", is_checked=False).strip()
        return next((each for each in RELEASES if f"-{each}-" in name), "")

    def starts_nothing(self, machine: SystemdMachine) -> None:
        """Demand that a package that has just been installed has neither started nor enabled anything."""
        for unit in UNITS:
            if machine.shows(unit, "ActiveState") != "inactive":
                raise NotAsExpectedError(f"{machine.name}: the package has started {unit}")
        if machine.shows("haclusterd", "UnitFileState") != "disabled":
            raise NotAsExpectedError(f"{machine.name}: the package has enabled haclusterd")

    def _purged_when_asked(self, machine: SystemdMachine) -> None:
        """Purge with the question answered by yes: keys and state go; and install again."""
        machine.shell("mkdir -p /etc/haclusterd && touch /etc/haclusterd/key && touch /var/lib/haclusterd/state")
        answer = "haclusterd haclusterd/purge-data boolean true"
        machine.shell(f"echo '{answer}' | debconf-set-selections && {INSTALL} purge haclusterd")
        # The state directory is a mount of the lab; the package's manager keeps what it needs to know that it is gone.
        aside = " -o ".join(f"-path {each}" for each in (LAB, WHEELS, "/var/lib/dpkg", "/var/log"))
        named = f"find / /run -xdev \\( {aside} \\) -prune -o -path {STATE} -o -name '*haclusterd*' -print"
        left = machine.shell(f"{named}; find {STATE} -type f", is_checked=False)
        if left:
            raise NotAsExpectedError(f"purged as asked, and there is still {left.split()[0]}")
        machine.shell("echo PURGE | debconf-communicate haclusterd", is_checked=False)
        self.install(machine, RELEASES[0])


def obstacle() -> str:
    """Say why packages cannot be tried here; empty: they can."""
    missing = [name for name in TOOLS if shutil.which(name) is None]
    return f"missing: {', '.join(missing)} (Debian: apt-get install debootstrap rpm)" if missing else ""


def _make_packages(directory: Path) -> None:
    directory.mkdir(parents=True)
    command = [sys.executable, "-m", "packages.build", "--output", str(directory), "--trial", *RELEASES]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=BUILD_S, check=False)
    if done.returncode:
        raise NspawnError(f"no packages: {(done.stderr or done.stdout).strip()[-1000:]}")


def _found(directory: Path, pattern: str) -> dict[str, str]:
    """Return the packages of one kind, by release, as the machines see them."""
    return {release: f"{WHEELS}/{next(directory.glob(pattern.format(release))).name}" for release in RELEASES}


def _make_bare() -> None:
    if BARE.is_dir():
        return
    began = time.monotonic()
    half = BARE.with_suffix(".new")
    shutil.rmtree(half, ignore_errors=True)
    # What debootstrap mounts in it ends with it, also when it is interrupted.
    command = ["unshare", "--mount", "--propagation", "private", "debootstrap", "--variant=minbase",
               f"--include={INCLUDED}", SUITE, str(half), MIRROR]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S, check=False)
    if done.returncode:
        raise NspawnError(f"debootstrap: {(done.stdout + done.stderr).strip()[-1000:]}")
    half.rename(BARE)
    print(f"a bare Debian 12 made in {time.monotonic() - began:.0f} s: {BARE}", flush=True)
