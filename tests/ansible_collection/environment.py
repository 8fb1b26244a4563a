"""What the collection is tried with: Ansible in a venv of its own, and the collection as it is installed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
SOURCE = CHECKOUT / "ansible"
BUILD = CHECKOUT / "build" / "ansible"
REQUIREMENTS = Path(__file__).parent / "requirements.txt"
INSTALL_TIMEOUT_S = 900


class NotInstalledError(Exception):
    """Ansible is not to be had here; the message says why."""


class Ansible:
    """The commands of Ansible, with the collection installed where they look for it."""

    def __init__(self, build: Path = BUILD) -> None:
        self._venv = build / "venv"
        self.collections = build / "collections"
        self._home = build / "home"

    def prepare(self) -> None:
        """Install Ansible, unless it is there, and the collection; raise NotInstalledError."""
        stamp = self._venv / "installed.txt"
        if not stamp.is_file() or stamp.read_text() != REQUIREMENTS.read_text():
            shutil.rmtree(self._venv, ignore_errors=True)
            _installed(sys.executable, "-m", "venv", str(self._venv))
            _installed(str(self._venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check",
                       "--requirement", str(REQUIREMENTS))  # fmt: skip
            stamp.write_text(REQUIREMENTS.read_text())
        shutil.rmtree(self.collections, ignore_errors=True)
        made = self.collections.parent / "dist"
        shutil.rmtree(made, ignore_errors=True)
        self.must("ansible-galaxy", "collection", "build", str(SOURCE), "--output-path", str(made))
        (archive,) = made.glob("*.tar.gz")
        self.must("ansible-galaxy", "collection", "install", str(archive), "--offline", "-p", str(self.collections))

    @property
    def installed(self) -> Path:
        """Where the collection is."""
        return self.collections / "ansible_collections" / "haclusterd" / "cluster"

    def program(self, name: str) -> str:
        return str(self._venv / "bin" / name)

    def run(
        self, name: str, *words: str, cwd: Path | None = None, more: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        self._home.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "HOME": str(self._home),
            "PATH": f"{self._venv / 'bin'}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
            "ANSIBLE_NOCOLOR": "1",
            # Modules are handed to Python by its standard input: otherwise each task begins with four more processes.
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_LOCALHOST_WARNING": "0",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
            "LC_ALL": "C.UTF-8",
            **(more or {}),
        }
        return subprocess.run(
            [self.program(name), *words], capture_output=True, text=True, timeout=600, check=False,
            cwd=cwd or self._home, env=environment,
        )  # fmt: skip

    def must(self, name: str, *words: str) -> str:
        done = self.run(name, *words)
        assert done.returncode == 0, (name, words, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout


def _installed(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(str(error)) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["?"]
        raise NotInstalledError(lines[-1])
