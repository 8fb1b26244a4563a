"""`make bench-databases`: databases under continuous writes on machines of the lab, their primaries lost over and over.

Judged from outside: whether each acknowledged write is there afterwards, whether two nodes ever took writes at the same
time, and for how long nobody did. Beside it, in the same run, the same under real corosync and Pacemaker.

The machines' disks are files in memory: what is compared is the managers, and a disk shared by six databases would be
measured instead. A machine that loses its power keeps what was written, as with a disk that keeps its promises.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType

from tests.benchmarks import failover_pacemaker
from tests.benchmarks.failover import NODE_TIMEOUT, TOKEN_MS
from tests.databases.database import Database
from tests.databases.faults import FAULTS, Fault, Trial, play
from tests.databases.galera import Galera
from tests.databases.mariadb import MariaDb
from tests.databases.postgres import OwnPostgres, PafPostgres, StockPostgres
from tests.databases.redis import Redis
from tests.databases.selection import selected
from tests.databases.sites import DatabaseSite, OurDatabases, PeerDatabases
from tests.databases.table import OURS, PEER, is_good, result, table
from tests.lab.lab import obstacle
from tests.lab.namespaces import LabError
from tests.lab.site import NotAsExpectedError

SKIPPED = 77
INSIDE = "HACLUSTERD_BENCH_DATABASES"
INTERRUPTED = "interrupted"
WRITER_PERIOD_MS = 20
SETTLED_S = 180.0
FIRST_S = 480.0
"""The stock agent promotes nothing before it has seen the same positions in several monitors in a row."""
KINDS = (StockPostgres, OwnPostgres, PafPostgres, Redis, MariaDb, Galera)
DATABASES: dict[str, type[Database]] = {each.name: each for each in KINDS}


class Bench:
    """One database under one agent."""

    def __init__(self, database: Database, directory: Path, options: argparse.Namespace) -> None:
        self._database, self._directory, self._options = database, directory, options
        self._chance = random.Random(options.seed)
        self._began = time.monotonic()
        self.trials: list[Trial] = []

    def play(self, faults: Sequence[Fault]) -> str:
        """Play; return why it ended early, an empty text when it did not."""
        try:
            self._run(faults)
        except (LabError, NotAsExpectedError, subprocess.TimeoutExpired) as error:
            print(f"bench-databases: {self._database.name}: {error}", file=sys.stderr)
            return str(error)
        except KeyboardInterrupt:
            print(INTERRUPTED, file=sys.stderr)
            return INTERRUPTED
        return ""

    def _run(self, faults: Sequence[Fault]) -> None:
        """Play each fault so many times in turn, on each manager in turn."""
        sites: list[DatabaseSite] = []
        try:
            if OURS in self._options.managers:
                timeout = NODE_TIMEOUT if self._options.equal else ""
                sites.append(OurDatabases(self._database, self._directory / "ours", timeout))
            if PEER in self._options.managers:
                token_ms = TOKEN_MS if self._options.equal else None
                sites.append(PeerDatabases(self._database, self._directory / "peer", token_ms))
            for site in sites:
                site.wait_s_max = FIRST_S
                took_s = site.start(WRITER_PERIOD_MS)
                self._say(f"{site.manager} formed in {took_s:.1f} s; {site.holder()} is primary")
            for number in range(self._options.runs):
                for fault in faults:
                    for site in sites if number % 2 == 0 else sites[::-1]:
                        self._trial(site, fault, number)
        finally:
            for site in sites:
                site.close()

    def _trial(self, site: DatabaseSite, fault: Fault, number: int) -> None:
        site.until(f"{site.manager} to be whole", site.is_whole, SETTLED_S)
        trial = play(site, fault, self._chance)
        self.trials.append(trial)
        found = [f"{self._database.name:<9}{fault.name:<8}{number + 1:>3} {site.manager:<11}{trial.outage_ms:>7} ms",
                 f"{trial.acknowledged:>5} acknowledged"]  # fmt: skip
        found += [f"{trial.rejoined} copied again"] if trial.rejoined else []
        found += [f"LOST {trial.lost} by the {trial.reason.culprit}"] if trial.reason else []
        self._say("  ".join([*found, *trial.problems, *(f"TWO PRIMARIES: {each}" for each in trial.double_primaries)]))

    def _say(self, text: str) -> None:
        elapsed_s = int(time.monotonic() - self._began)
        print(f"{elapsed_s // 60:3d}:{elapsed_s % 60:02d}  {text}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print the table and the results; 1 when something was lost, 77 when nothing can be played here."""
    parser = argparse.ArgumentParser(prog="bench-databases", description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="of each fault, with each of the two")
    parser.add_argument("--only", default="*", help="databases and faults, comma separated, * allowed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--managers", default=[OURS, PEER], type=lambda text: text.split(","), help="who is measured")
    parser.add_argument("--equal", action="store_true", help="both take a node for lost after a second, not by default")
    options = parser.parse_args(arguments)
    try:
        chosen = selected(options.only.split(","), list(DATABASES), [each.name for each in FAULTS])
    except ValueError as problem:
        parser.error(str(problem))
    why = obstacle() or (failover_pacemaker.obstacle() if PEER in options.managers else "")
    databases = [DATABASES[name]() for name in chosen.databases]
    obstacles = {each.name: why or each.obstacle() for each in databases}
    if INSIDE not in os.environ:
        for name, reason in obstacles.items():
            if reason:
                print(f"RESULT database={name} skipped=1 reason={'-'.join(reason.split())}", flush=True)
        if all(obstacles.values()):
            return SKIPPED
        return _go_inside(sys.argv[1:] if arguments is None else list(arguments))
    faults = [each for each in FAULTS if each.name in chosen.faults]
    signal.signal(signal.SIGTERM, _interrupt)
    return _play_all([each for each in databases if not obstacles[each.name]], faults, options)


def _play_all(databases: Iterable[Database], faults: Sequence[Fault], options: argparse.Namespace) -> int:
    """Play one database after the other, each on machines of its own; print what came of it."""
    trials: list[Trial] = []
    results: list[str] = []
    code = 0
    Path(os.environ[INSIDE]).chmod(0o755)
    for database in databases:
        directory = Path(os.environ[INSIDE]) / database.name
        directory.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(directory)], check=True)
        bench = Bench(database, directory, options)
        why = bench.play(faults)
        if why or not is_good(bench.trials):
            _keep_logs(directory)
            code = 1
        subprocess.run(["umount", "--lazy", str(directory)], check=False)
        trials += bench.trials
        remarks = (" tolerance=equal" if options.equal else "") + (" incomplete=1" if why else "")
        results.append(result(database, bench.trials) + remarks)
        if why == INTERRUPTED:
            break
    print(table(trials))
    print("\n".join(results), flush=True)
    return code


def _keep_logs(directory: Path) -> None:
    kept = Path(tempfile.mkdtemp(prefix="bench-databases-logs-", dir="/var/tmp"))
    for log in directory.glob("*/n*/log"):
        shutil.copytree(log, kept / log.parent.parent.name / log.parent.name)
    print(f"logs: {kept}", file=sys.stderr)


def _go_inside(arguments: list[str]) -> int:
    """Run this program where it may mount memory that ends with it."""
    command = ["unshare", "--mount", "--propagation", "private", "--", sys.executable, "-m", "tests.databases",
               *arguments]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-databases-", dir="/var/tmp") as place:
        return subprocess.run(command, env={**os.environ, INSIDE: place}, check=False).returncode


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
