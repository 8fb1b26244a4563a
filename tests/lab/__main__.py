"""`make lab`: plays faults on clusters of real daemons, and says of each whether what came of it was its verdict."""

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType

from tests.lab import false_alarms, gpu_lab, nspawn, packages_lab, packages_rows, systemd_bad_units, systemd_rows
from tests.lab.databases import DatabaseLab
from tests.lab.faults import BY_NAME, Cluster, Fault, Verdict
from tests.lab.faults_watchdog import WATCHDOG_MS
from tests.lab.guests import GuestLab
from tests.lab.lab import Lab, obstacle
from tests.lab.matrix import FAULTS
from tests.lab.namespaces import LabError
from tests.lab.nspawn import LabUnavailableError, NspawnError
from tests.lab.packages_lab import PackagesLab
from tests.lab.rounds import Round, Tally
from tests.lab.site import NotAsExpectedError
from tests.lab.systemd_lab import SystemdLab
from tests.lab.systemd_rows import Played, Row, is_good, play, result

SKIPPED = 77
"""The exit status when this machine lacks what the lab needs (automake's, which test drivers know)."""
HOLDS_SHARE = 0.25
"""Of the faults that are drawn; there are few kinds that hold, and much depends on them."""
REBUILDS_MAX = 5
HUNDREDS = 300
"""From so many faults on, those that take long are among them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play; return 0 when everything went as expected, 77 when this machine cannot."""
    options = _parser().parse_args(arguments)
    if options.only.startswith("gpu-"):
        return gpu_lab.main(["--only", options.only])
    is_systemd = options.only.startswith("systemd-")
    why = nspawn.obstacle() if is_systemd else obstacle()
    if why:
        return _skip(why)
    signal.signal(signal.SIGTERM, _interrupt)
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-lab-"))
    is_good = False
    try:
        if is_systemd:
            is_good = _play_rows(directory, options.only)
        elif options.only == false_alarms.NAME:
            is_good = false_alarms.watch(directory, options.minutes)
        else:
            is_good = _play_all(directory, options)
    except LabUnavailableError as error:
        is_good = True
        return _skip(str(error))
    finally:
        if options.keep or not is_good:
            print(f"logs: {directory}", file=sys.stderr)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return 0 if is_good else 1


def _skip(why: str) -> int:
    print(f"RESULT skipped=1 reason={'-'.join(why.split())}")
    return SKIPPED


def _play_rows(directory: Path, only: str) -> bool:
    """Play the rows of machines that systemd boots, on one cluster as long as it becomes whole again."""
    kinds: tuple[tuple[type[SystemdLab], Sequence[Row], str], ...] = (
        (SystemdLab, (*systemd_rows.ROWS, *systemd_bad_units.ROWS), ""),
        (PackagesLab, packages_rows.ROWS, packages_lab.obstacle()),
    )  # fmt: skip
    chosen = [
        (kind, [row for row in rows if any(fnmatchcase(row.name, each) for each in only.split(","))], why)
        for kind, rows, why in kinds
    ]
    if not any(rows for _, rows, _ in chosen):
        print(f"no such row; there are: {' '.join(row.name for _, rows, _ in kinds for row in rows)}", file=sys.stderr)
        return False
    played: list[Played] = []
    broken = 0
    for kind, rows, why in chosen:
        if rows and why:
            print(f"{', '.join(row.name for row in rows)}: not played, {why}", flush=True)
            broken += len(rows)
        elif rows:
            broken += _play_on_machines(kind, directory / kind.__name__, list(rows), played)
    print(result(played, broken), flush=True)
    return is_good(played) and not broken


def _play_on_machines(kind: type[SystemdLab], directory: Path, left: list[Row], played: list[Played]) -> int:
    """Play rows on one kind of machines; return how often the lab failed, and how many rows were not played."""
    for build in range(REBUILDS_MAX):
        if not left:
            break
        lab = kind(directory / str(build))
        try:
            print(f"3 machines with systemd formed in {lab.start():.1f} s; {len(left)} rows to play", flush=True)
            while left:
                played.append(play(lab, left.pop(0)))
                if not played[-1].is_whole:
                    break
        except (LabError, NspawnError, NotAsExpectedError) as error:
            print(f"lab: {error}", file=sys.stderr)
            return 1 + len(left)
        finally:
            lab.close()
    return len(left)


def _play_all(directory: Path, options: argparse.Namespace) -> bool:
    chance = random.Random(options.seed)
    tally = Tally()
    clusters = [(int(size), cluster) for cluster in Cluster for size in options.nodes.split(",")]
    chosen = {
        (size, cluster): [
            each for each in FAULTS
            if size in each.sizes and each.cluster is cluster and _matches(each, options)
        ]
        for size, cluster in clusters
    }  # fmt: skip
    if not any(chosen.values()):
        print(f"no such fault; there are: {' '.join(fault.name for fault in FAULTS)}", file=sys.stderr)
        return False
    kinds = sum(map(len, chosen.values()))
    try:
        for (size, cluster), faults in chosen.items():
            count = round((options.faults or kinds) * len(faults) / kinds)
            place = directory / f"{size}-{cluster.name.lower()}"
            _play_on(lambda build, place=place, size=size, cluster=cluster: _made(cluster, place / str(build), size),
                     _drawn(faults, count, chance), tally, chance)  # fmt: skip
    except (LabError, NotAsExpectedError) as error:
        print(f"lab: {error}", file=sys.stderr)
        tally.broken += 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        tally.broken += 1
    print(tally.result(), flush=True)
    return tally.is_good


def _made(cluster: Cluster, directory: Path, size: int) -> Lab:
    match cluster:
        case Cluster.PLAIN:
            return Lab(directory, size)
        case Cluster.WATCHDOGS:
            return Lab(directory, size, watchdog_ms=WATCHDOG_MS)
        case Cluster.GUEST:
            return GuestLab(directory, size)
        case Cluster.DATABASE:
            return DatabaseLab(directory, size)


def _drawn(faults: list[Fault], count: int, chance: random.Random) -> list[Fault]:
    """Return each kind once, in order, as far as they go, and then more at random."""
    brief = [each for each in faults if not (each.is_long or each.is_by_name)]
    holds = [each for each in brief if each.verdict is Verdict.HOLDS]
    others = [each for each in brief if each.verdict is not Verdict.HOLDS]
    drawn = faults[:count]
    while len(drawn) < count:
        pool = holds if holds and (not others or chance.random() < HOLDS_SHARE) else others
        drawn.append(chance.choice(pool or faults))
    return drawn


def _play_on(make: Callable[[int], Lab], faults: list[Fault], tally: Tally, chance: random.Random) -> None:
    """Play on a cluster, and on a new one whenever a fault has spoiled it."""
    left = list(faults)
    for build in range(REBUILDS_MAX):
        if not left:
            return
        lab = make(build)
        try:
            kind = faults[0].cluster
            print(f"{len(lab.machines)} {kind} formed in {lab.start():.1f} s; {len(left)} faults to play", flush=True)
            while left:
                if not tally.add(Round(lab, left.pop(0), len(tally.outcomes) + 1).play(chance)):
                    break
        finally:
            lab.close()
    if left:
        raise LabError(f"{len(left)} faults were not played: the cluster was spoiled too often")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _matches(fault: Fault, options: argparse.Namespace) -> bool:
    wanted = options.only.split(",") if options.only else ["*"]
    if fault.cluster in BY_NAME and "*" in wanted:
        return False
    if fault.is_by_name and fault.name not in wanted and options.faults < HUNDREDS:
        return False
    return any(fnmatchcase(fault.name, each) for each in wanted)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab", description=__doc__)
    parser.add_argument("--faults", type=int, default=0, help="how many; default: each kind once")
    help_ = "kinds, comma separated, * allowed; or false-alarm, alone; or systemd-*; or gpu-*"
    parser.add_argument("--only", default="", help=help_)
    parser.add_argument("--nodes", default="3,5", help="of machines: clusters of these sizes, in turn")
    parser.add_argument("--minutes", type=float, default=30.0, help="of false-alarm")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of faults")
    parser.add_argument("--keep", action="store_true", help="keep the logs even when all went well")
    return parser


if __name__ == "__main__":
    sys.exit(main())
