"""`make bench-databases`: a database under continuous writes on machines of the lab, its primary lost over and over.

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
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType

from tests.benchmarks import failover_pacemaker
from tests.databases.database import Database
from tests.databases.faults import FAULTS, Fault, Trial, play
from tests.databases.postgres import Postgres
from tests.databases.sites import DatabaseSite, OurDatabases, PeerDatabases
from tests.databases.table import OURS, PEER, result, table
from tests.lab.lab import obstacle
from tests.lab.namespaces import LabError
from tests.lab.site import NotAsExpectedError

SKIPPED = 77
INSIDE = "HACLUSTERD_BENCH_DATABASES"
WRITER_PERIOD_MS = 20
SETTLED_S = 180.0
FIRST_S = 480.0
"""The stock agent promotes nothing before it has seen the same positions in several monitors in a row."""
DATABASES: dict[str, type[Database]] = {"pgsql": Postgres}


class Bench:
    """One database under one agent."""

    def __init__(self, database: Database, directory: Path, options: argparse.Namespace) -> None:
        self._database, self._directory, self._options = database, directory, options
        self._chance = random.Random(options.seed)
        self._began = time.monotonic()
        self.trials: list[Trial] = []

    def run(self, faults: Sequence[Fault]) -> None:
        """Play each fault so many times in turn, on each manager in turn."""
        sites: list[DatabaseSite] = []
        try:
            if OURS in self._options.managers:
                sites.append(OurDatabases(self._database, self._directory / "ours", ""))
            if PEER in self._options.managers:
                sites.append(PeerDatabases(self._database, self._directory / "peer", None))
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
        found = [f"{fault.name:<8}{number + 1:>3} {site.manager:<11}{trial.outage_ms:>7} ms",
                 f"{trial.acknowledged:>5} acknowledged"]  # fmt: skip
        found += [f"{trial.rejoined} copied again"] if trial.rejoined else []
        found += [f"LOST {trial.lost}"] if trial.lost else []
        self._say("  ".join([*found, *trial.problems, *(f"TWO PRIMARIES: {each}" for each in trial.double_primaries)]))

    def _say(self, text: str) -> None:
        elapsed_s = int(time.monotonic() - self._began)
        print(f"{elapsed_s // 60:3d}:{elapsed_s % 60:02d}  {text}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print the table and the result; 1 when something was lost, 77 when it cannot be played here."""
    parser = argparse.ArgumentParser(prog="bench-databases", description=__doc__)
    parser.add_argument("--runs", type=int, default=2, help="of each fault, with each of the two")
    parser.add_argument("--database", default="pgsql", choices=DATABASES)
    parser.add_argument("--only", default="*", help="faults, comma separated, * allowed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--managers", default=[OURS, PEER], type=lambda text: text.split(","), help="who is measured")
    options = parser.parse_args(arguments)
    database = DATABASES[options.database]()
    why = obstacle() or database.obstacle() or (failover_pacemaker.obstacle() if PEER in options.managers else "")
    if why:
        print(f"RESULT skipped=1 reason={'-'.join(why.split())}")
        return SKIPPED
    if INSIDE not in os.environ:
        return _go_inside(sys.argv[1:] if arguments is None else list(arguments))
    directory = Path(os.environ[INSIDE])
    faults = [each for each in FAULTS if any(fnmatchcase(each.name, word) for word in options.only.split(","))]
    signal.signal(signal.SIGTERM, _interrupt)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(directory)], check=True)
    bench = Bench(database, directory, options)
    is_complete = False
    try:
        bench.run(faults)
        is_complete = True
    except (LabError, NotAsExpectedError, subprocess.TimeoutExpired) as error:
        print(f"bench-databases: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    finally:
        is_good = is_complete and not any(
            each.problems or each.lost or each.double_primaries for each in bench.trials if each.manager == OURS
        )
        if not is_good:
            _keep_logs(directory)
        print(table(bench.trials))
        print(result(database, bench.trials) + ("" if is_complete else " incomplete=1"), flush=True)
    return 0 if is_good else 1


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
