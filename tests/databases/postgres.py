"""PostgreSQL on machines of the lab, set up with the texts of docs/howto/run-postgresql.md and nothing else, except
that clients need no password, and that six servers share one small machine.
"""

import pwd
import shutil
import subprocess
from pathlib import Path
from typing import ClassVar

from tests.databases.database import Database, ask, own, run_as
from tests.lab.machine import Machine
from tests.lab.switch import NETWORK

USER = "postgres"
PROGRAMS = Path("/usr/lib/postgresql")
DOCUMENTED_VERSION = "15"
SMALL = """shared_buffers = 16MB
min_wal_size = 32MB
max_wal_size = 96MB
log_line_prefix = '%m [%p] '
log_checkpoints = off
"""
FOLLOWERS = "SELECT application_name || ' ' || sync_state FROM pg_stat_replication WHERE state = 'streaming'"
NOTED_S = 20
"""Two monitors of the primary: the stock agents set the scores of copies by what a monitor finds. A primary that is
lost before has no successor, since its agent had not yet said of any copy that it has every commit."""
NOTED_FOLLOWERS = f"{FOLLOWERS} AND backend_start < now() - interval '{NOTED_S} s'"
SYNCHRONOUS = ("sync", "quorum")


class Postgres(Database):
    """Under an agent that a subclass names."""

    kind = "postgresql"
    process = "bin/postgres "
    page = "run-postgresql.md"
    has_commits_twice = True
    variant: ClassVar[str] = ""
    """The ending of the names of texts that are added to those of the page's first part, or stand for them."""

    def __init__(self) -> None:
        versions = [each.parent.parent.name for each in PROGRAMS.glob("*/bin/initdb")]
        self.version = max(versions, key=int, default=DOCUMENTED_VERSION)

    def needs(self) -> dict[str, str]:
        return {str(self.programs / "initdb"): "postgresql", "/usr/bin/psql": "postgresql-client"}

    @property
    def programs(self) -> Path:
        return PROGRAMS / self.version / "bin"

    @property
    def data(self) -> str:
        return f"/var/lib/postgresql/{self.version}/main"

    def texts(self) -> dict[str, str]:
        found = super().texts()
        return {kind: text.replace(f"/{DOCUMENTED_VERSION}/", f"/{self.version}/") for kind, text in found.items()}

    def _text(self, name: str) -> str:
        """Return a text of the page's first part, and what this agent adds to it."""
        found = self.texts()
        return found[name] + (found.get(f"{name}{self.variant}", "") if self.variant else "")

    def build(self, directory: Path) -> None:
        data = directory / "main"
        data.mkdir(mode=0o700)
        shutil.chown(data, USER, USER)
        run_as(USER, self.programs / "initdb", "-D", data, "-A", "trust", "--no-sync", "--wal-segsize=4", "-E", "UTF8")
        statements = f"{self._text('sql')}; CREATE TABLE ledger (n bigint PRIMARY KEY)"
        run_as(USER, self.programs / "postgres", "--single", "-D", data, "postgres",
               stdin="\n".join(each.strip() for each in statements.split(";") if each.strip()) + "\n")  # fmt: skip

    def copy(self, machine: Machine) -> Path:
        """Return what this machine's data begins as, of what was built."""
        return machine.home.parent / "base" / "main"

    def equip(self, machine: Machine, disk: Path) -> None:
        library, settings = (self.place(machine, disk, each) for each in ("/var/lib/postgresql", "/etc/postgresql"))
        log = self.logs(machine, disk, "postgresql")
        etc = settings / self.version / "main"
        for directory in (library / self.version, etc):
            directory.mkdir(parents=True)
        subprocess.run(["cp", "-a", str(self.copy(machine)), str(library / self.version / "main")], check=True)
        places = (
            f"data_directory = '{self.data}'\n"
            f"hba_file = '/etc/postgresql/{self.version}/main/pg_hba.conf'\n"
            f"ident_file = '/etc/postgresql/{self.version}/main/pg_ident.conf'\n"
        )
        settings_text = self._text("postgresql.conf").replace("NODE", machine.name)
        (etc / "postgresql.conf").write_text(places + SMALL + settings_text)
        trusted = f"local all all trust\nhost all postgres {NETWORK}.0.0/24 trust\nhost all all 127.0.0.1/32 trust\n"
        (etc / "pg_hba.conf").write_text(trusted + self._text("pg_hba.conf"))
        (etc / "pg_ident.conf").write_text("")
        (library / ".pgpass").write_text(self._text("pgpass"))
        (library / ".pgpass").chmod(0o600)
        own(USER, USER, library, settings, log)
        account = pwd.getpwnam(USER)
        machine.mounts.append(
            ("tmpfs", "/run/postgresql", "tmpfs", f"mode=2775,uid={account.pw_uid},gid={account.pw_gid}")
        )

    def is_ready(self, primary: Machine, copies: int) -> bool:
        followers = self._followers(primary)
        return len(followers) >= copies and any(state in SYNCHRONOUS for state in followers.values())

    def candidates(self, primary: Machine) -> set[str]:
        return {name for name, state in self._followers(primary).items() if state in SYNCHRONOUS}

    followers: ClassVar[str] = FOLLOWERS

    def _followers(self, primary: Machine) -> dict[str, str]:
        """Return the state of each copy that receives what the primary writes, by node."""
        answer = ask(primary, "psql", "-h", "/run/postgresql", "-U", USER, "-Atc", self.followers)
        return dict(line.split() for line in answer.splitlines())

    def rejoin(self, machine: Machine) -> None:
        assert machine.namespaces is not None
        machine.namespaces.run("sh", "-e", "-c", self.texts()[f"rejoin{self.variant}"])


class StockPostgres(Postgres):
    """Under resource-agents' pgsql."""

    name = "pgsql"
    agent = "ocf:heartbeat:pgsql"
    clone = "pgsql-clone"
    followers = NOTED_FOLLOWERS


class OwnPostgres(Postgres):
    """Under the agent that comes along, which Pacemaker runs as well."""

    name = "postgres"
    agent = "ocf:haclusterd:postgres"
    clone = "pg-clone"
    resources = "crm-haclusterd"
    variant = "-haclusterd"

    def equip(self, machine: Machine, disk: Path) -> None:
        super().equip(machine, disk)
        self.name_machines(machine, disk, 3)


class PafPostgres(Postgres):
    """Under PostgreSQL Automatic Failover, Debian's package resource-agents-paf."""

    name = "paf"
    agent = "ocf:heartbeat:pgsqlms"
    agent_package = "resource-agents-paf"
    is_fenced_until_copied = True
    clone = "pgsql-clone"
    resources = "crm-paf"
    followers = NOTED_FOLLOWERS
    variant = "-paf"

    def build(self, directory: Path) -> None:
        super().build(directory)
        socket, copy = directory / "socket", directory / "copy"
        for place in (socket, copy):
            place.mkdir(mode=0o700)
            shutil.chown(place, USER, USER)
        control = self.programs / "pg_ctl"
        options = f"-k {socket} -c listen_addresses='' -c wal_level=replica"
        run_as(USER, control, "-D", directory / "main", "-o", options, "-l", socket / "log", "-w", "start")
        try:
            run_as(USER, self.programs / "pg_basebackup", "-h", socket, "-D", copy, "-X", "stream", "-c", "fast")
        finally:
            run_as(USER, control, "-D", directory / "main", "-m", "fast", "-w", "stop")

    def copy(self, machine: Machine) -> Path:
        return machine.home.parent / "base" / ("main" if machine.index == 1 else "copy")
