"""`make lab`: plays faults on a cluster of real daemons, and says of each whether what came of it was its verdict."""

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType

from tests.lab.faults import Fault
from tests.lab.lab import Lab, obstacle
from tests.lab.matrix import FAULTS
from tests.lab.namespaces import LabError
from tests.lab.rounds import Round, Tally


def main(arguments: Sequence[str] | None = None) -> int:
    """Play; return 0 when everything went as expected."""
    options = _parser().parse_args(arguments)
    why = obstacle()
    if why:
        print(f"RESULT skipped=1 reason={why.replace(' ', '-')}")
        return 0
    chosen = [fault for fault in FAULTS if not options.only or _matches(fault, options.only)]
    if not chosen:
        print(f"no such fault; there are: {' '.join(fault.name for fault in FAULTS)}", file=sys.stderr)
        return 64
    chance = random.Random(options.seed)
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-lab-"))
    tally = Tally()
    signal.signal(signal.SIGTERM, _interrupt)
    lab = Lab(directory, options.nodes)
    try:
        took_s = lab.start()
        print(f"formed in {took_s:.1f} s; {len(chosen)} kinds of faults, seed {options.seed}", flush=True)
        for number in range(options.faults or len(chosen)):
            fault = chosen[number] if number < len(chosen) else chance.choice(chosen)
            if not tally.add(Round(lab, fault, number + 1).play(chance)):
                break
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        tally.problems += 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        tally.problems += 1
    finally:
        lab.close()
        if options.keep or tally.problems:
            print(f"logs: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print(tally.result(), flush=True)
    return 1 if tally.problems else 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _matches(fault: Fault, only: str) -> bool:
    return any(fnmatchcase(fault.name, each) for each in only.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab", description=__doc__)
    parser.add_argument("--faults", type=int, default=0, help="how many; default: each kind once")
    parser.add_argument("--only", default="", help="kinds, comma separated; a * at the end stands for anything")
    parser.add_argument("--nodes", type=int, default=3, help="how many machines")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of faults")
    parser.add_argument("--keep", action="store_true", help="keep the logs even when all went well")
    return parser


if __name__ == "__main__":
    sys.exit(main())
