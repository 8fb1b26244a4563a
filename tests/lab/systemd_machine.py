"""A machine of the lab that systemd boots, and the image that all of them have in common.

The image is this machine's own files, with the program installed as docs/howto/install.md says, and without the
services that this machine itself has enabled.
"""

import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

from tests.lab.machine import HERE, REPOSITORY, Machine
from tests.lab.nspawn import IMAGE, Container, MountSpace, NspawnError
from tests.lab.switch import Switch

WHEELS = "/wheels"
LAB = "/lab"
"""Where every machine sees the lab's directory, with the sockets of power switch and witnesses."""
STATE = "/var/lib/haclusterd"
PREPARE = f"""
set -e
rm -rf /etc/systemd/system/* /etc/systemd/user/* /etc/rc?.d/* /etc/haclusterd {STATE} /var/log/journal
rm -f /usr/local/bin/crm /usr/local/bin/haclusterd /usr/local/bin/haclusterd-pacer
: > /etc/fstab
mkdir -p /var/log/journal {STATE} {LAB} {WHEELS}
for unit in getty@ console-getty systemd-logind systemd-networkd systemd-resolved; do
    ln -sf /dev/null /etc/systemd/system/$unit.service
done
mkdir -p /etc/systemd/journald.conf.d
printf '[Journal]\\nStorage=persistent\\nRateLimitIntervalSec=0\\nSyncIntervalSec=1s\\n' \\
    > /etc/systemd/journald.conf.d/lab.conf
python3 -m venv /opt/haclusterd-1
/opt/haclusterd-1/bin/pip install --quiet --no-index --find-links {WHEELS} haclusterd
ln -s haclusterd-1 /opt/haclusterd
for each in crm haclusterd haclusterd-pacer; do ln -s /opt/haclusterd/bin/$each /usr/local/bin/$each; done
"""


def make_wheels(directory: Path) -> Path:
    """Build the wheel of this checkout, and fetch those that it needs; return the first."""
    directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--wheel-dir", str(directory)]
    done = subprocess.run([*command, str(REPOSITORY)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NspawnError(f"no wheels: {done.stderr.strip()[-1000:]}")
    return next(directory.glob("haclusterd-*.whl"))


def make_image(mounts: MountSpace, wheels: Path) -> Path:
    """Install the program above this machine's files; return the layer that has what was written."""
    root = mounts.layer(IMAGE, Path("/"))
    mounts.run("mkdir", "-p", f"{root}{WHEELS}")
    mounts.run(
        "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--pipe", "--resolv-conf=off", "--timezone=off",
        f"--bind-ro={wheels}:{WHEELS}", f"--directory={root}", "/bin/sh", "-c", PREPARE,
    )  # fmt: skip
    for agent in (HERE / "sbin").iterdir():
        mounts.run("cp", str(agent), f"{root}/usr/local/sbin/{agent.name}")
        mounts.run("chmod", "755", f"{root}/usr/local/sbin/{agent.name}")
    mounts.run("umount", str(root))
    return mounts.path(IMAGE, "upper")


class SystemdMachine(Machine):
    """Starts switched off. Files, journal and state directory outlive its boots; `/run` does not."""

    def __init__(self, name: str, index: int, home: Path, switch: Switch, mounts: MountSpace) -> None:
        super().__init__(name, index, home, switch)
        self._mounts = mounts
        self.container: Container | None = None
        self.options: list[str] = []
        """More words for systemd-nspawn, from the next boot on."""
        self._boot_lock = threading.RLock()

    def prepare(self, image: Path, ground: Path = Path("/")) -> None:
        """Make its own layer above an image and the system that this was made on, and mount its disk."""
        self.root = self._mounts.layer(self.name, image, ground)
        self._mounts.run("sh", "-c", f"echo {uuid.uuid4().hex} > {self.root}/etc/machine-id")
        self._mounts.run("sh", "-c", f"echo {self.name} > {self.root}/etc/hostname")
        self.disk = self._mounts.path(self.name, "disk")
        self._mounts.run("mkdir", "-p", str(self.disk))
        self._mounts.run("mount", self._loop, str(self.disk))
        self._mounts.run("chmod", "700", str(self.disk))

    @property
    def is_on(self) -> bool:
        return self.container is not None and self.container.lives

    @property
    def init(self) -> int:
        assert self.container is not None
        return self.container.init

    def switch_on(self) -> None:
        with self._boot_lock:
            if self.container is not None:
                return
            options = [f"--bind={self.home.parent}:{LAB}", f"--bind={self.disk}:{STATE}",
                       f"--bind-ro={self.home.parent / 'wheels'}:{WHEELS}", *self.options]  # fmt: skip
            made = Container(self._mounts, self.name, self.root, options, self.logs / "console")
            self._switch.plug(self.index, made.init)
            made.boot()
            self.is_stopped = False
            self.container = self.namespaces = made

    def _end(self) -> None:
        assert self.container is not None
        self.container.end()
        self.died_at = time.monotonic_ns()
        self._switch.disconnect(self.index)
        self.container = self.namespaces = None

    # -- as an administrator ----------------------------------------------------------------------------------------

    def run(self, *command: str, stdin: str = "", is_checked: bool = True, timeout_s: float = 120.0) -> str:
        container = self.container
        if container is None:
            raise NspawnError(f"{self.name} is switched off")
        return container.run(*command, stdin=stdin, is_checked=is_checked, timeout_s=timeout_s)

    def shell(self, script: str, *, is_checked: bool = True, timeout_s: float = 120.0) -> str:
        return self.run("/bin/sh", "-c", script, is_checked=is_checked, timeout_s=timeout_s)

    def shows(self, unit: str, name: str) -> str:
        """Return a property of a unit, empty when there is nobody to ask."""
        return self.run("systemctl", "show", "-P", name, unit, is_checked=False).strip()

    def is_booted(self) -> bool:
        return self.is_on and self.run("systemctl", "is-system-running", is_checked=False).strip() in (
            "running", "degraded",
        )  # fmt: skip

    def wait_off(self, wait_s_max: float) -> bool:
        """Wait until it has ended by itself; then it is switched off as well."""
        deadline = time.monotonic() + wait_s_max
        while time.monotonic() < deadline:
            if self.has_ended():
                return True
            time.sleep(0.05)
        return False
