"""Nodes with a PostgreSQL server each, on this machine: sockets in their directories, no port of the network."""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from haclusterd.agents.postgres_server import Account, Server
from haclusterd.agents.postgres_session import Session
from tests.agents.answering_daemon import AnsweringDaemon

USER = "postgres"
TOOLS = Path(__file__).parents[2] / "shims"
SETTINGS = """
listen_addresses = ''
fsync = off
full_page_writes = on
wal_log_hints = on
shared_buffers = 4MB
max_wal_size = 64MB
wal_keep_size = 64MB
autovacuum = off
"""
PATIENCE_S = 20.0


def programs() -> Path | None:
    """Return where the programs of the newest installed version are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda each: int(each.parts[-3]))
    return found[-1].parent if found else None


def obstacle() -> str:
    """Say why no server can be run here; empty: one can."""
    if programs() is None:
        return "PostgreSQL is not installed (Debian: apt-get install postgresql)"
    if os.geteuid() != 0:
        return "only root runs a server as another user"
    return "" if USER in {entry.pw_name for entry in pwd.getpwall()} else f"there is no user {USER}"


def build(directory: Path) -> None:
    """Make what every copy begins with."""
    directory.mkdir(mode=0o700)
    shutil.chown(directory, USER, USER)
    place = programs()
    assert place is not None
    for words, given in (
        ([place / "initdb", "-D", directory, "-A", "trust", "--no-sync", "--wal-segsize=1", "-E", "UTF8"], ""),
        ([place / "postgres", "--single", "-D", directory, "postgres"], "CREATE TABLE ledger (n int PRIMARY KEY)\n"),
    ):
        subprocess.run(
            ["runuser", "-u", USER, "--", *map(str, words)], input=given, text=True, check=True, cwd="/",
            capture_output=True,
        )  # fmt: skip
    with open(directory / "postgresql.conf", "a") as settings:
        settings.write(SETTINGS)


def alone(place: Path, base: Path) -> dict[str, str]:
    """Make a copy in a directory; return the parameters of an agent for a server of it."""
    place.chmod(0o711)
    shutil.chown(place, USER, USER)
    subprocess.run(["cp", "-a", str(base), str(place / "data")], check=True)
    return {"pgdata": str(place / "data"), "options": f"-c unix_socket_directories={place}"}


def crash(data: Path) -> None:
    """Kill every process of the server of a directory."""
    server = Server(str(data), Account(USER))
    while members := server.members():
        for pid in members:
            kill(pid, signal.SIGKILL)
        time.sleep(0.005)


class PostgresNode:
    """One node: its copy, and the agent on it."""

    def __init__(self, name: str, directory: Path, base: Path, agent, daemon: AnsweringDaemon) -> None:
        self.name, self.directory, self.agent, self.daemon = name, directory, agent, daemon
        self.data = directory / "data"
        directory.mkdir()
        shutil.chown(directory, USER, USER)
        subprocess.run(["cp", "-a", str(base), str(self.data)], check=True)
        self.server = Server(str(self.data), Account(USER))
        agent.environment["HACLUSTERD_NODE"] = name

    def ask(self, statement: str, timeout_s: float = 10.0) -> str:
        """Return the first value of an answer."""
        with Session(str(self.directory / ".s.PGSQL.5432"), USER, "postgres", timeout_s) as session:
            return session.value(statement)

    def write(self, number: int, timeout_s: float = 10.0) -> None:
        """Return when a number is committed and acknowledged."""
        self.ask(f"INSERT INTO ledger VALUES ({number})", timeout_s)

    def numbers(self) -> set[int]:
        return {int(each) for each in self.ask("SELECT string_agg(n::text, ' ') FROM ledger").split()}

    def has(self, numbers: set[int]) -> bool:
        """Tell whether these are there, and no others."""
        return self.numbers() == numbers

    def crash(self) -> None:
        """Kill every process of the server, as when the machine loses its power."""
        crash(self.data)

    def kept(self, kind: str) -> str:
        """Return a permanent attribute of the node."""
        done = subprocess.run(
            [TOOLS / "crm_attribute", "-N", self.name, "-l", "forever", "-n", f"pg-{kind}", "-G", "-q", "-d", ""],
            env={"PATH": "/usr/bin:/bin", "HACLUSTERD_SOCKET": str(self.daemon.socket)}, text=True, check=True,
            capture_output=True,
        )  # fmt: skip
        return done.stdout.strip()

    @property
    def score(self) -> str:
        return self.daemon.attributes(self.name).get("master-pg", "")


def kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        time.sleep(0.02)
