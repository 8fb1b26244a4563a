"""MariaDB's server on machines of the lab, as Debian installs it, with one file of settings from a how-to page."""

import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from tests.databases.database import Database, ask, own, run_as
from tests.lab.machine import Machine
from tests.lab.namespaces import ENVIRONMENT, LabError

USER = "mysql"
SETTINGS = Path("/etc/mysql")
SERVER = "/usr/sbin/mariadbd"
NODES = 3
FIRST_S = 60.0
SMALL = """[mariadbd]
innodb_buffer_pool_size = 32M
innodb_log_file_size = 16M
performance_schema = OFF
"""
CLIENTS = """CREATE DATABASE bench;
CREATE TABLE bench.ledger (n BIGINT PRIMARY KEY) ENGINE=InnoDB;
CREATE USER bench@'%';
GRANT SELECT, INSERT ON bench.* TO bench@'%';
"""
"""An account that may not write to a copy, as an administrator's may."""


class MariaDbServer(Database):
    """Under an agent that a subclass names."""

    process = "sbin/mariadbd "
    has_commits_twice = True

    def needs(self) -> Mapping[str, str]:
        installed = (SERVER, "/usr/bin/mariadb-install-db", str(SETTINGS / "mariadb.conf.d"))
        return {**dict.fromkeys(installed, "mariadb-server"), "/usr/bin/mariadb": "mariadb-client", "/usr/bin/bc": "bc"}

    def build(self, directory: Path) -> None:
        data, run = directory / "data", directory / "run"
        for place in (data, run):
            place.mkdir(mode=0o700)
            shutil.chown(place, USER, USER)
        run_as(USER, "mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db")
        self._write_settings(directory, "n1", 1)
        socket, settings = run / "socket", directory / "cluster.cnf"
        words = [SERVER, f"--defaults-file={settings}", f"--datadir={data}", f"--socket={socket}", f"--user={USER}",
                 f"--pid-file={run / 'pid'}", "--skip-networking", "--read-only=OFF", "--wsrep-on=OFF"]  # fmt: skip
        with open(directory / "log", "wb") as log:
            server = subprocess.Popen(words, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        client = ("mariadb", f"--socket={socket}", "--user=root")
        deadline = time.monotonic() + FIRST_S
        try:
            while subprocess.run([*client, "-e", ""], env=ENVIRONMENT, capture_output=True, check=False).returncode:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise LabError(f"mariadbd: {(directory / 'log').read_text()[-400:]}")
                time.sleep(0.1)
            done = subprocess.run(client, input=CLIENTS + self.texts().get("sql", ""), env=ENVIRONMENT, text=True,
                                  capture_output=True, check=False)  # fmt: skip
            if done.returncode:
                raise LabError(f"mariadb: {done.stderr.strip()[-400:]}")
        finally:
            server.terminate()
            server.wait(FIRST_S)

    def _write_settings(self, directory: Path, name: str, index: int) -> None:
        text = self.texts()["cnf"].replace("NODE", name).replace("NUMBER", str(index))
        (directory / "cluster.cnf").write_text(SMALL + text)

    def equip(self, machine: Machine, disk: Path) -> None:
        library, settings = (self.place(machine, disk, each) for each in ("/var/lib/mysql", str(SETTINGS)))
        subprocess.run(["cp", "-a", f"{machine.home.parent / 'base' / 'data'}/.", str(library)], check=True)
        subprocess.run(["cp", "-a", f"{SETTINGS}/.", str(settings)], check=True)
        cluster = settings / "mariadb.conf.d" / "90-cluster.cnf"
        self._write_settings(settings, machine.name, machine.index)
        (settings / "cluster.cnf").rename(cluster)
        own(USER, USER, library)
        self.name_machines(machine, disk, NODES)

    @staticmethod
    def query(machine: Machine, statement: str) -> list[list[str]]:
        """Return the rows; none when there is no answer."""
        answer = ask(machine, "mariadb", "--user=root", "--batch", "--skip-column-names", "-e", statement)
        return [line.split("\t") for line in answer.splitlines()]

    def rejoin(self, machine: Machine) -> None:
        """A node becomes a copy by its start."""
