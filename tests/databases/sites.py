"""Sites of the lab whose service is a database: a writer outside, and who asks each node whether it takes writes."""

import shutil
import subprocess
import sys
import threading
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from tests.benchmarks.failover_pacemaker import PacemakerSite
from tests.databases.database import Database
from tests.databases.losses import Acknowledged
from tests.databases.stores import ALONE, STORES
from tests.lab.lab import REPOSITORY, Lab
from tests.lab.machine import Machine
from tests.lab.namespaces import ENVIRONMENT, LabError, enter_network
from tests.lab.site import AGENT_MOUNT, Site
from tests.lab.switch import SERVICE_ADDRESS
from tests.lab.witnesses import Held, OutsideClient, overlaps

DISK_BYTES = 640 * 1024 * 1024
NODES = 3
READ_S = 60.0
FIRST_S = 120.0
TOOLS = Path(__file__).with_name("peer_sbin")


class Writer(OutsideClient):
    """Knows which numbers were acknowledged."""

    kind = ""

    def _command(self, period_ms: int) -> tuple[str, ...]:
        environment = f"PYTHONPATH={REPOSITORY}"
        return ("env", environment, sys.executable, "-m", "tests.databases.writer", self.kind, SERVICE_ADDRESS,
                str(period_ms))  # fmt: skip

    def __init__(self, kind: str, site: Site, period_ms: int) -> None:
        self.kind = kind
        self.acknowledged: list[Acknowledged] = []
        super().__init__(site.switch, site.machines, period_ms)

    def take(self, words: list[str]) -> None:
        super().take(words)
        if words[3] == "1":
            self.acknowledged.append(Acknowledged(int(words[5]), int(words[2]), words[4]))


class Primaries:
    """Hears from the askers when which node took writes."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._askers: dict[str, subprocess.Popen[str]] = {}
        self._held: dict[tuple[int, int, int, str], Held] = {}

    def watch(self, machine: Machine) -> None:
        """Ask a machine that has just been switched on; its predecessor is gone."""
        self._end(machine.name)
        command = ["nsenter", "-t", str(machine.init), "-n", "--", sys.executable, "-m", "tests.databases.asker",
                   self._kind]  # fmt: skip
        asker = self._askers[machine.name] = subprocess.Popen(
            command, env={**ENVIRONMENT, "PYTHONPATH": str(REPOSITORY)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        threading.Thread(target=self._read, args=(machine.name, asker), daemon=True).start()

    def _read(self, node: str, asker: "subprocess.Popen[str]") -> None:
        assert asker.stdout is not None
        for line in asker.stdout:
            connection, first, last, group = line.split()
            who = node if group == ALONE else group
            self._held[asker.pid, int(connection), int(first), who] = Held(who, int(first), int(last))

    def overlaps(self, since: int) -> list[tuple[str, str, int]]:
        """Return who took writes at the same time; nodes of one group do so together."""
        rows = sorted(list(self._held.values()), key=lambda each: each.since)
        found = overlaps(rows, since, on_one_node=False)
        return [each for each in found if set(each[0].split("+")).isdisjoint(each[1].split("+"))]

    def _end(self, name: str) -> None:
        asker = self._askers.pop(name, None)
        if asker is not None:
            asker.kill()
            asker.wait()

    def close(self) -> None:
        for name in list(self._askers):
            self._end(name)


class DatabaseSite(Site):
    """The part that is the same whatever manages the cluster."""

    disk_bytes = DISK_BYTES
    poll_s = 0.25
    """A look asks a manager and three databases: more of them would take from what is measured."""
    manager: ClassVar[str]
    client: Writer

    def __init__(self, database: Database, directory: Path) -> None:
        self.database = database
        self.primaries = Primaries(database.kind)
        self._closers.append(self.primaries.close)

    def prepare_databases(self) -> None:
        base = self.directory / "base"
        base.mkdir()
        base.chmod(0o755)
        self.database.build(base)
        for machine in self.machines.values():
            services, machine.services = machine.services, []
            machine.switch_on()
            self.database.equip(machine, Path(f"/proc/{machine.init}/root{machine.state}"))
            machine.switch_off()
            machine.services = services

    def make_client(self, period_ms: int) -> Writer:
        return Writer(self.database.kind, self, period_ms)

    def watch(self, machine: Machine) -> None:
        super().watch(machine)
        self.primaries.watch(machine)

    def double_holders(self, since: int) -> list[str]:
        found = self.primaries.overlaps(since)
        return [
            *super().double_holders(since),
            *(f"{first} and {second} took writes for {span_ms} ms" for first, second, span_ms in found),
        ]

    def is_serving(self) -> bool:
        """Tell whether the writer is served, and every other node has a copy that follows."""
        holder = self.client.holder()
        return bool(holder) and self.database.is_ready(self.machines[str(holder)], len(self.machines) - 1)

    def idle(self) -> list[Machine]:
        """Return the machines that are on and have no database running."""
        return [each for each in self.machines.values() if each.is_on and not each.is_stopped
                and not each.find(self.database.process)]  # fmt: skip

    def missing(self, since: int, wanted: set[int]) -> set[int]:
        """Return those of the numbers, all from `since` on, that the database does not have."""
        found: list[set[int]] = []
        problems: list[OSError] = []

        def read() -> None:
            try:
                enter_network(self.switch.namespaces.init)
                store = STORES[self.database.kind](SERVICE_ADDRESS, READ_S)
                found.append(store.numbers(since, READ_S))
                store.close()
            except OSError as error:
                problems.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        reader.join()
        if not found:
            raise LabError(f"what is in the database cannot be read: {problems[0]}")
        return wanted - found[0]

    @abstractmethod
    def is_at_rest(self) -> bool:
        """Tell whether the cluster has nothing to do, and all its nodes."""

    @abstractmethod
    def cleanup(self) -> None:
        """Let the cluster forget what failed."""

    @abstractmethod
    def move(self, node: str) -> None:
        """Ask for the primary to be on a node; return when it is on its way."""

    @abstractmethod
    def end_move(self) -> None:
        """Take away what a move left."""

    @abstractmethod
    def explain(self) -> str:
        """Return in short what the cluster shows."""

    def is_whole(self) -> bool:
        return all(each.is_on for each in self.machines.values()) and self.is_serving() and self.is_at_rest()


class OurDatabases(DatabaseSite, Lab):
    """haclusterd. `node_timeout` "": its default."""

    manager = "haclusterd"

    def __init__(self, database: Database, directory: Path, node_timeout: str) -> None:
        settings = (f"property node-timeout={node_timeout}",) if node_timeout else ()
        Lab.__init__(self, directory, NODES, settings=settings)
        DatabaseSite.__init__(self, database, directory)

    def prepare(self) -> None:
        Lab.prepare(self)
        self.prepare_databases()

    def configure(self) -> None:
        self.script(
            f"primitive power stonith:fence_lab params socket={self.sockets / 'power'} "
            f'pcmk_host_list="{" ".join(self.machines)}" op monitor interval=60s timeout=10s',
            "rsc_defaults resource-stickiness=100",
            "property fencing-loop-limit=0",
            *self.settings,
        )
        self.script(self.database.configuration())

    def is_at_rest(self) -> bool:
        return all(self._is_settled(self.status(name)) for name in self.machines)

    def is_whole(self) -> bool:
        return DatabaseSite.is_whole(self)

    def cleanup(self) -> None:
        self.answer("resource.cleanup")

    def move(self, node: str) -> None:
        # It answers when the move is done; the time until then is measured by the writer.
        words = {"resource": self.database.moved or self.database.clone, "node": node}
        self._move = threading.Thread(target=self.answer, args=("resource.move",), kwargs=words, daemon=True)
        self._move.start()

    def end_move(self) -> None:
        # Its constraint stays where an agent gave the new primary no score.
        self._move.join(FIRST_S)
        self.answer("resource.clear", resource=self.database.moved or self.database.clone)

    def explain(self) -> str:
        status = self.status()
        texts = [str(each.get("text", each)) for each in status["headlines"]]
        return f"orders {len(status['orders'])}, {'; '.join(texts)}"


class PeerDatabases(DatabaseSite, PacemakerSite):
    """corosync and Pacemaker. `token_ms` None: corosync's defaults."""

    manager = "pacemaker"

    def __init__(self, database: Database, directory: Path, token_ms: int | None) -> None:
        PacemakerSite.__init__(self, directory, NODES, monitors="10s", token_ms=token_ms)
        DatabaseSite.__init__(self, database, directory)

    def prepare(self) -> None:
        PacemakerSite.prepare(self)
        self._replace_tools()
        self._add_own_agents()
        self.prepare_databases()

    def _replace_tools(self) -> None:
        """Put a program before Pacemaker's own that agents call; what it changes stands in it."""
        tools = self.directory / "sbin"
        shutil.copytree(TOOLS, tools)
        for tool in TOOLS.iterdir():
            shutil.copy2(Path("/usr/sbin") / tool.name, tools / f"{tool.name}.pacemaker")
        for machine in self.machines.values():
            machine.mounts.append(("overlay", "/usr/sbin", "overlay", f"lowerdir={tools}:/usr/sbin"))

    def _add_own_agents(self) -> None:
        """Let Pacemaker find ours, which belong to no package here."""
        agents = self.directory / "ocf"
        (agents / "haclusterd").mkdir(parents=True)
        for agent in (REPOSITORY / "resource_agents").iterdir():
            (agents / "haclusterd" / agent.name).symlink_to(agent)
        for machine in self.machines.values():
            machine.mounts.append(("overlay", AGENT_MOUNT, "overlay", f"lowerdir={agents}:{AGENT_MOUNT}"))

    def configure(self) -> None:
        power = (
            f"primitive power stonith:fence_lab params socket={self.directory / 'power'} "
            f'pcmk_host_list="{" ".join(self.machines)}" pcmk_host_check=static-list '
            "op monitor interval=60s timeout=10s\n"
            "rsc_defaults resource-stickiness=100\n"
            "property stonith-enabled=true no-quorum-policy=stop\n"
        )
        place = self.directory / "configuration.crm"
        place.write_text(power + self.database.configuration())
        # crmsh asks every agent for its metadata.
        inside = self._able().namespaces
        assert inside is not None
        inside.run("/usr/sbin/crm", "-F", "configure", "load", "update", str(place), wait_s_max=FIRST_S)

    def is_at_rest(self) -> bool:
        found = self.look()
        if not found.dc or found.online != set(self.machines):
            return False
        try:
            return "S_IDLE" in self.run("sh", "-c", f"crmadmin -S {found.dc} 2>&1")
        except (LabError, subprocess.TimeoutExpired):
            return False

    def is_whole(self) -> bool:
        return DatabaseSite.is_whole(self)

    def cleanup(self) -> None:
        self.run("crm_resource", "--cleanup")

    def move(self, node: str) -> None:
        words = ("-r", self.database.moved) if self.database.moved else ("-r", self.database.clone, "--promoted")
        self.run("crm_resource", "--move", *words, "-N", node)

    def end_move(self) -> None:
        self.run("crm_resource", "--clear", "-r", self.database.moved or self.database.clone)

    def explain(self) -> str:
        return " ".join(self.run("crm_mon", "-1", "-f").split())[-1500:]
