"""redis on machines of the lab, set up with the texts of docs/howto/run-redis.md."""

import pwd
from pathlib import Path

from tests.databases.database import Database, ask, own
from tests.lab.machine import Machine
from tests.lab.switch import RINGS, address

USER = "redis"
NODES = 3


class Redis(Database):
    """Under resource-agents' redis."""

    name = "redis"
    kind = "redis"
    agent = "ocf:heartbeat:redis"
    process = "redis-server "
    clone = "redis-clone"
    page = "run-redis.md"
    has_commits_twice = False

    def needs(self) -> dict[str, str]:
        return {"/usr/bin/redis-server": "redis-server", "/usr/bin/redis-cli": "redis-tools"}

    def build(self, directory: Path) -> None:
        """All begin with nothing."""

    def equip(self, machine: Machine, disk: Path) -> None:
        library, settings = (self.place(machine, disk, each) for each in ("/var/lib/redis", "/etc/redis"))
        log = self.logs(machine, disk, "redis")
        (settings / "redis.conf").write_text(f"{self.texts()['redis.conf']}cluster-announce-hostname {machine.name}\n")
        own(USER, USER, library, settings, log)
        account = pwd.getpwnam(USER)
        machine.mounts.append(("tmpfs", "/run/redis", "tmpfs", f"mode=755,uid={account.pw_uid},gid={account.pw_gid}"))
        self.name_machines(machine, disk, NODES)

    def is_ready(self, primary: Machine, copies: int) -> bool:
        return len(self._followers(primary)) >= copies

    def candidates(self, primary: Machine) -> set[str]:
        return self._followers(primary)

    @staticmethod
    def _followers(primary: Machine) -> set[str]:
        """Return the nodes that receive what the primary writes."""
        nodes = {address(index, ring): f"n{index}" for index in range(1, NODES + 1) for ring in RINGS}
        answer = ask(primary, "redis-cli", "info", "replication")
        lines = [line for line in answer.splitlines() if line.startswith("slave") and "state=online" in line]
        hosts = [word.removeprefix("ip=") for line in lines for word in line.partition(":")[2].split(",")[:1]]
        return {nodes[host] for host in hosts if host in nodes}

    def rejoin(self, machine: Machine) -> None:
        """A copy becomes one again by its start."""
