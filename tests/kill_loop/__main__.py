"""Kill, stop and starve real processes, and judge the answers of their clients.

Two clusters after each other: voters of the store alone (two thirds of the time), then whole daemons with pacers and
fencing, written to through their control sockets. Ends with one line `RESULT ...`; exit code 1 on any violation, and
then the directory with records and logs is kept and named.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.kill_loop import daemon_nodes, store_nodes
from tests.kill_loop.private_mounts import enter_private_namespace
from tests.kill_loop.record import Judgement
from tests.kill_loop.torment import Counts, ViolationError

RUNS: dict[str, Callable[..., tuple[Counts, Judgement]]] = {"store": store_nodes.run, "daemons": daemon_nodes.run}
SHARES = {"store": 2 / 3, "daemons": 1 / 3}


def main() -> int:
    """Run, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--nodes", type=int, choices=(3, 5), default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=("store", "daemons", "both"), default="both")
    options = parser.parse_args()
    without_mounts = enter_private_namespace()
    if without_mounts:
        print(f"no full disk: {without_mounts}")
    modes = list(RUNS) if options.mode == "both" else [options.mode]
    kept = Path(tempfile.mkdtemp(prefix="haclusterd-kill-loop-"))
    counts, total = Counts(), Judgement()
    for mode in modes:
        seconds = options.seconds * (SHARES[mode] if len(modes) > 1 else 1)
        began = time.monotonic()
        try:
            found, judgement = RUNS[mode](kept / mode, nodes=options.nodes, seconds=seconds, seed=options.seed)
        except ViolationError as violation:
            total.problems.append(f"{mode}: {violation}")
            total.is_equal = False
            continue
        took_s = time.monotonic() - began
        print(
            f"{mode}: {found.kills} kills, {found.pauses} pauses, {found.full_disks} full disks; "
            f"{judgement.asked} asked, {judgement.acknowledged} acknowledged; "
            f"{len(judgement.problems)} problems; {took_s:.0f} s",
            flush=True,
        )
        _add(counts, total, mode, found, judgement)
    return _report(options.seed, options.nodes, kept, counts, total)


def _add(counts: Counts, total: Judgement, mode: str, found: Counts, judgement: Judgement) -> None:
    counts.kills += found.kills
    counts.pauses += found.pauses
    counts.full_disks += found.full_disks
    total.acknowledged += judgement.acknowledged
    total.asked += judgement.asked
    total.lost += judgement.lost
    total.duplicated += judgement.duplicated
    total.is_equal &= judgement.is_equal
    total.problems += [f"{mode}: {problem}" for problem in judgement.problems]


def _report(seed: int, nodes: int, kept: Path, counts: Counts, total: Judgement) -> int:
    for problem in total.problems:
        print(f"VIOLATION {problem}")
    if total.problems:
        print(f"records and logs are kept in {kept}")
    else:
        shutil.rmtree(kept)
    print(
        f"RESULT seed={seed} nodes={nodes} kills={counts.kills} pauses={counts.pauses} full_disks={counts.full_disks} "
        f"acknowledged={total.acknowledged} lost={total.lost} duplicated={total.duplicated} "
        f"digests={'equal' if total.is_equal else 'different'} violations={len(total.problems)}"
    )
    return 1 if total.problems else 0


if __name__ == "__main__":
    sys.exit(main())
