"""PostgreSQL on machines of the lab, set up with the texts of docs/howto/run-postgresql.md and nothing else, except
that clients need no password, and that six servers share one small machine.
"""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from tests.databases.database import Database
from tests.databases.page import texts
from tests.lab.machine import Machine
from tests.lab.namespaces import ENVIRONMENT, LabError
from tests.lab.switch import NETWORK

USER = "postgres"
PROGRAMS = Path("/usr/lib/postgresql")
DOCUMENTED_VERSION = "15"
AGENTS = Path("/usr/lib/ocf/resource.d/heartbeat")
SMALL = """shared_buffers = 16MB
min_wal_size = 32MB
max_wal_size = 96MB
log_line_prefix = '%m [%p] '
log_checkpoints = off
"""
FOLLOWERS = "SELECT application_name || ' ' || sync_state FROM pg_stat_replication WHERE state = 'streaming'"
SYNCHRONOUS = ("sync", "quorum")


class Postgres(Database):
    """Under the stock agent pgsql."""

    kind = "postgresql"
    agent = "ocf:heartbeat:pgsql"
    process = "bin/postgres "
    primitive, clone = "pgsql", "pgsql-clone"
    page = "run-postgresql.md"

    def __init__(self) -> None:
        versions = [each.parent.parent.name for each in PROGRAMS.glob("*/bin/initdb")]
        self.version = max(versions, key=int, default="")

    def texts(self) -> dict[str, str]:
        found = texts(self.page)
        return {kind: text.replace(f"/{DOCUMENTED_VERSION}/", f"/{self.version}/") for kind, text in found.items()}

    def obstacle(self) -> str:
        agent = AGENTS / self.agent.rpartition(":")[2]
        missing = [str(each) for each in (PROGRAMS / "VERSION/bin/initdb", Path("/usr/bin/psql")) if not self.version]
        missing += [str(agent)] if not agent.exists() else []
        return f"missing: {', '.join(missing)} (Debian: apt-get install {self.packages})" if missing else ""

    packages = "postgresql resource-agents"

    def build(self, directory: Path) -> None:
        data = directory / "main"
        data.mkdir(mode=0o700)
        shutil.chown(data, USER, USER)
        programs = PROGRAMS / self.version / "bin"
        self._do(programs / "initdb", "-D", data, "-A", "trust", "--no-sync", "--wal-segsize=4", "-E", "UTF8")
        statements = f"{self.texts()['sql']}; CREATE TABLE ledger (n bigint PRIMARY KEY)"
        self._do(programs / "postgres", "--single", "-D", data, "postgres",
                 stdin="\n".join(each.strip() for each in statements.split(";") if each.strip()) + "\n")  # fmt: skip

    @staticmethod
    def _do(*words: str | Path, stdin: str = "") -> None:
        done = subprocess.run(["runuser", "-u", USER, "--", *map(str, words)], input=stdin, text=True, cwd="/",
                              env=ENVIRONMENT, capture_output=True, check=False)  # fmt: skip
        if done.returncode or "ERROR" in done.stderr:
            raise LabError(f"{words[0]}: {done.stderr.strip()[-400:]}")

    def equip(self, machine: Machine, disk: Path) -> None:
        own, group = pwd.getpwnam(USER).pw_uid, pwd.getpwnam(USER).pw_gid
        library, settings = disk / "var-lib-postgresql", disk / "etc-postgresql"
        has_own_logs = (disk / "var-log").is_dir()
        log = disk / ("var-log/postgresql" if has_own_logs else "log-postgresql")
        etc = settings / self.version / "main"
        for directory in (library / self.version, etc, log):
            directory.mkdir(parents=True)
        base = machine.home.parent / "base" / "main"
        subprocess.run(["cp", "-a", str(base), str(library / self.version)], check=True)
        found = self.texts()
        places = (
            f"data_directory = '/var/lib/postgresql/{self.version}/main'\n"
            f"hba_file = '/etc/postgresql/{self.version}/main/pg_hba.conf'\n"
            f"ident_file = '/etc/postgresql/{self.version}/main/pg_ident.conf'\n"
        )
        (etc / "postgresql.conf").write_text(places + SMALL + found["postgresql.conf"])
        trusted = f"local all all trust\nhost all postgres {NETWORK}.0.0/24 trust\nhost all all 127.0.0.1/32 trust\n"
        (etc / "pg_hba.conf").write_text(trusted + found["pg_hba.conf"])
        (etc / "pg_ident.conf").write_text("")
        (library / ".pgpass").write_text(found["pgpass"])
        (library / ".pgpass").chmod(0o600)
        for top in (library, settings, log):
            for path in (top, *top.rglob("*")):
                os.chown(path, own, group)
        machine.mounts += [
            (str(machine.state / library.name), "/var/lib/postgresql", "", ""),
            (str(machine.state / settings.name), "/etc/postgresql", "", ""),
            ("tmpfs", "/run/postgresql", "tmpfs", f"mode=2775,uid={own},gid={group}"),
        ]
        if not has_own_logs:
            machine.mounts.append((str(machine.state / log.name), "/var/log/postgresql", "", ""))

    def configuration(self) -> str:
        return self.texts()["crm"]

    def is_ready(self, primary: Machine, copies: int) -> bool:
        followers = self._followers(primary)
        return len(followers) >= copies and any(state in SYNCHRONOUS for state in followers.values())

    def candidates(self, primary: Machine) -> set[str]:
        return {name for name, state in self._followers(primary).items() if state in SYNCHRONOUS}

    @staticmethod
    def _followers(primary: Machine) -> dict[str, str]:
        """Return the state of each copy that receives what the primary writes, by node."""
        if primary.namespaces is None:
            return {}
        try:
            answer = primary.namespaces.run("psql", "-h", "/run/postgresql", "-U", USER, "-Atc", FOLLOWERS)
        except (LabError, subprocess.TimeoutExpired):
            return {}
        return dict(line.split() for line in answer.splitlines())

    def rejoin(self, machine: Machine) -> None:
        assert machine.namespaces is not None
        machine.namespaces.run("sh", "-e", "-c", self.texts()["rejoin"])
