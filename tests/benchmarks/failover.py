"""`make bench-failover`: real corosync and Pacemaker beside haclusterd, the same faults, the same client, in one run.

Both clusters stand on machines of the lab (tests/lab): namespaces of this kernel, a power switch, witnesses. They are
hit in turn, and only when both are whole. What is compared is what a client outside misses.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType

from tests.benchmarks import failover_pacemaker
from tests.benchmarks.failover_contenders import Contender, Ours, Pacemaker
from tests.benchmarks.failover_cost import measure_changes, measure_idle
from tests.benchmarks.failover_scenarios import AT_DEFAULTS, AT_EQUAL_TOLERANCE, Scenario, play
from tests.benchmarks.failover_table import Figures, result, table
from tests.lab.lab import obstacle
from tests.lab.namespaces import LabError
from tests.lab.site import NotAsExpectedError

RUNS = 6
IDLE_S = 30.0
FORM, COST = "form", "cost"
TOKEN_MS, NODE_TIMEOUT = 1000, "1s"


class Bench:
    """One run. `only`: names of what to measure, or patterns; empty: everything."""

    def __init__(self, directory: Path, *, runs: int, only: str, seed: int) -> None:
        self._directory, self._runs, self._only = directory, runs, [each for each in only.split(",") if each]
        self._chance = random.Random(seed)
        self._began = time.monotonic()
        self.figures = Figures()

    def wants(self, name: str) -> bool:
        return not self._only or any(fnmatchcase(name, each) for each in self._only)

    def run(self) -> None:
        """Measure with defaults, then with equal tolerance."""
        at_defaults = [each for each in AT_DEFAULTS if self.wants(each.name)]
        if at_defaults or self.wants(FORM) or self.wants(COST):
            self._phase("defaults", lambda place: [Ours(place / "ours", "10s"), Pacemaker(place / "peer", "10s")],
                        at_defaults, has_cost=True)  # fmt: skip
        at_equal = [each for each in AT_EQUAL_TOLERANCE if self.wants(each.name)]
        if at_equal:
            self._phase(
                "equal",
                lambda place: [Ours(place / "ours", "1s", NODE_TIMEOUT), Pacemaker(place / "peer", "1s", TOKEN_MS)],
                at_equal,
                has_cost=False,
            )

    def _phase(self, name: str, make: Callable[[Path], list[Contender]], scenarios: list[Scenario], *,
               has_cost: bool) -> None:  # fmt: skip
        contenders: list[Contender] = []
        try:
            contenders = make(self._directory / name)
            for contender in contenders:
                self._formed(contender, contender.start())
            if has_cost and self.wants(COST):
                for number in range(self._runs):
                    self.say(f"{COST:<12}{number + 1:>3} idle for {IDLE_S:g} s")
                    measure_idle(contenders, IDLE_S, self.figures.costs)
                measure_changes(contenders, self.figures.costs)
            for number in range(self._runs):
                for scenario in scenarios:
                    self._round(contenders, scenario, number)
            for number in range(self._runs if has_cost and self.wants(FORM) else 0):
                for contender in self._in_turn(contenders, number):
                    self._form_again(contender)
        finally:
            for contender in contenders:
                contender.site.close()

    @staticmethod
    def _in_turn(contenders: list[Contender], number: int) -> list[Contender]:
        return contenders if number % 2 == 0 else contenders[::-1]

    def _round(self, contenders: list[Contender], scenario: Scenario, number: int) -> None:
        for contender in self._in_turn(contenders, number):
            for each in contenders:
                each.settle()
            trial = play(contender, scenario, on_dc=number % 2 == 0, chance=self._chance)
            self.figures.trials.append(trial)
            victim = "" if not scenario.by_dc else "DC" if trial.is_dc else "not DC"
            line = f"{scenario.name:<12}{number + 1:>3} {contender.name:<11}{victim:<7}{trial.outage_ms:>6} ms"
            self.say("  ".join([line, *trial.problems, *(f"HELD TWICE: {each}" for each in trial.double_holders)]))

    def _form_again(self, contender: Contender) -> None:
        for machine in contender.site.machines.values():
            machine.switch_off()
        self._formed(contender, contender.site.form())
        contender.settle()

    def _formed(self, contender: Contender, took_s: float) -> None:
        self.figures.forms_ms.setdefault(contender.name, []).append(round(took_s * 1000))
        self.say(f"{FORM:<15} {contender.name:<11}       {took_s * 1000:>6.0f} ms")

    def say(self, text: str) -> None:
        elapsed_s = int(time.monotonic() - self._began)
        print(f"{elapsed_s // 60:3d}:{elapsed_s % 60:02d}  {text}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and the result in one line; 1 when anything was held twice, or lost."""
    parser = argparse.ArgumentParser(prog="bench-failover", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each scenario, with each of the two")
    parser.add_argument("--only", default="", help="scenarios, comma separated, * allowed: crash,*_tuned,form,cost")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    why = obstacle() or failover_pacemaker.obstacle()
    if why:
        print(f"bench-failover: {why}", file=sys.stderr)
        print(f"RESULT skipped=1 reason={why.replace(' ', '-')}")
        return 0
    signal.signal(signal.SIGTERM, _interrupt)
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-bench-"))
    bench = Bench(directory, runs=options.runs, only=options.only, seed=options.seed)
    is_complete = False
    try:
        bench.run()
        is_complete = True
    except (LabError, NotAsExpectedError) as error:
        print(f"bench-failover: {error}; logs: {directory}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    finally:
        scenarios = (*AT_DEFAULTS, *AT_EQUAL_TOLERANCE)
        print(table(bench.figures, scenarios))
        print(result(bench.figures, scenarios) + ("" if is_complete else " incomplete=1"), flush=True)
    is_good = is_complete and not bench.figures.lost and not bench.figures.double_holders
    if is_good:
        shutil.rmtree(directory, ignore_errors=True)
    return 0 if is_good else 1


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
