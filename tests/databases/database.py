"""What the bench must know of a database and its agent, whichever cluster manager runs them."""

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tests.databases.page import texts
from tests.lab.machine import Machine
from tests.lab.namespaces import ENVIRONMENT, LabError
from tests.lab.switch import address

AGENTS = Path("/usr/lib/ocf/resource.d")


class Database(ABC):
    """One kind, under one agent."""

    name: ClassVar[str]
    """As in DATABASES of tests/databases/__main__.py."""
    kind: ClassVar[str]
    """As in tests/databases/stores.py."""
    agent: ClassVar[str]
    process: ClassVar[str]
    """What the command line of its main process has, and no other."""
    clone: ClassVar[str]
    moved: ClassVar[str] = ""
    """What an administrator moves to bring the service to another node; empty: the clone's promoted instance."""
    has_commits_twice: ClassVar[bool]
    """Whether a write is on a second node before it is acknowledged."""
    is_fenced_until_copied: ClassVar[bool] = False
    """Whether its agent cannot stop a primary that crashed, so that the node is fenced each time it is back."""
    page: ClassVar[str]
    """The how-to page whose texts are played."""
    resources: ClassVar[str] = "crm"
    """Which text of the page has the resources."""

    def texts(self) -> dict[str, str]:
        """Return the texts of the page, by what they are."""
        return texts(self.page)

    def obstacle(self) -> str:
        """Say why it cannot run here; empty: it can."""
        missing = {path: package for path, package in self._wanted().items() if not Path(path).exists()}
        packages = " ".join(dict.fromkeys(missing.values()))
        return f"missing: {', '.join(missing)} (Debian: apt-get install {packages})" if missing else ""

    @abstractmethod
    def needs(self) -> Mapping[str, str]:
        """Return programs and files that must be there, beside the agent: path -> Debian's package."""

    def _wanted(self) -> dict[str, str]:
        _, provider, name = self.agent.split(":")
        stock = {str(AGENTS / provider / name): self.agent_package} if provider != "haclusterd" else {}
        return {**self.needs(), **stock}

    agent_package: ClassVar[str] = "resource-agents"

    @abstractmethod
    def build(self, directory: Path) -> None:
        """Make what all machines begin with, in an empty directory."""

    @abstractmethod
    def equip(self, machine: Machine, disk: Path) -> None:
        """Put it on a machine's disk, which is seen here at this place; say what of it is mounted."""

    def configuration(self) -> str:
        """Return the resources, in the language of crm."""
        return self.texts()[self.resources]

    @abstractmethod
    def is_ready(self, primary: Machine, copies: int) -> bool:
        """Tell whether that many copies follow the primary, and one may be promoted without loss."""

    @abstractmethod
    def candidates(self, primary: Machine) -> set[str]:
        """Return the nodes that may be promoted without loss."""

    @abstractmethod
    def rejoin(self, machine: Machine) -> None:
        """Do what an administrator does with a node whose database does not run: its data becomes a copy again."""

    # -- what all of them need ---------------------------------------------------------------------------------------

    @staticmethod
    def place(machine: Machine, disk: Path, target: str) -> Path:
        """Make a directory on a machine's disk that it sees at this place; return where it is seen here."""
        name = target.strip("/").replace("/", "-")
        (disk / name).mkdir(exist_ok=True)
        mount = (str(machine.state / name), target, "", "")
        if mount not in machine.mounts:
            machine.mounts.append(mount)
        return disk / name

    def logs(self, machine: Machine, disk: Path, directory: str) -> Path:
        """Make this directory of /var/log, which is a machine's own already, or the host's."""
        if (disk / "var-log").is_dir():
            (disk / "var-log" / directory).mkdir()
            return disk / "var-log" / directory
        return self.place(machine, disk, f"/var/log/{directory}")

    @staticmethod
    def name_machines(machine: Machine, disk: Path, count: int) -> None:
        """Let a machine know the others by their names."""
        lines = ["127.0.0.1 localhost", *(f"{address(index, 0)} n{index}" for index in range(1, count + 1))]
        (disk / "hosts").write_text("\n".join(lines) + "\n")
        machine.mounts.append((str(machine.state / "hosts"), "/etc/hosts", "", ""))


def own(user: str, group: str, *tops: Path) -> None:
    """Give everything below these places to an account."""
    subprocess.run(["chown", "-R", f"{user}:{group}", *map(str, tops)], check=True, env=ENVIRONMENT)


def run_as(user: str, *words: str | Path, stdin: str = "") -> str:
    """Run a program of the database here, before there are machines. Raises LabError."""
    done = subprocess.run(["runuser", "-u", user, "--", *map(str, words)], input=stdin, text=True, cwd="/",
                          env=ENVIRONMENT, capture_output=True, check=False)  # fmt: skip
    if done.returncode or "ERROR" in done.stderr:
        raise LabError(f"{os.path.basename(words[0])}: {done.stderr.strip()[-400:]}")
    return done.stdout


def ask(machine: Machine, *words: str) -> str:
    """Run a client of the database on a machine; an empty text when it has no answer."""
    if machine.namespaces is None:
        return ""
    try:
        return machine.namespaces.run(*words)
    except (LabError, subprocess.TimeoutExpired):
        return ""
