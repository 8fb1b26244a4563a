"""Many seeds on all processors, until the time is over or a rule is broken; then the shortest story of that.

A seed is a task of its own, so how seeds fall to processes changes no outcome.
"""

import gc
import logging
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass

from haclusterd.simulator import shrinking
from haclusterd.simulator.swarm import Outcome

RunSeed = Callable[[int, Sequence[int] | None], Outcome]
"""Runs a seed with all of its faults (None), or with those of these numbers only."""
STORY_LINES = 25
HOUR_MS = 3_600_000


@dataclass(slots=True)
class Totals:
    """What all seeds came to."""

    seeds: int = 0
    simulated_ms: int = 0
    busy_ms: int = 0
    violations: int = 0

    def line(self, counts: Counter[str]) -> str:
        """Say it in the words of a RESULT line."""
        pairs = [
            f"seeds={self.seeds}",
            f"simulated_hours={self.simulated_ms / HOUR_MS:.2f}",
            f"speed={self.simulated_ms // max(1, self.busy_ms)}",
            f"violations={self.violations}",
            *(f"{name}={count}" for name, count in counts.items()),
        ]
        return " ".join(pairs)


def _settle_down() -> None:
    """Make a worker quiet, and let it collect its garbage between seeds only."""
    logging.disable(logging.CRITICAL)
    gc.collect()
    gc.freeze()
    gc.disable()


def _timed(run_seed: RunSeed, seed: int) -> tuple[Outcome, int]:
    began = time.process_time()
    outcome = run_seed(seed, None)
    gc.collect()
    return outcome, int((time.process_time() - began) * 1000)


class Campaign:
    """Runs seeds in order of their numbers, some at a time."""

    def __init__(self, run_seed: RunSeed, *, replay: str, jobs: int, shrink_seconds: int) -> None:
        """`replay` is the command that runs one seed again; `{seed}` stands for it."""
        self._run_seed = run_seed
        self._replay = replay
        self._jobs = jobs
        self._shrink_seconds = shrink_seconds
        self.totals = Totals()
        self.counts: Counter[str] = Counter()
        self._failures: list[Outcome] = []

    def run(self, first_seed: int, *, seconds: int, count: int | None) -> int:
        """Run `count` seeds, or as many as begin within `seconds`; return the exit code."""
        until = time.monotonic() + seconds
        seeds = self._seeds(first_seed, until, count)
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(self._jobs, mp_context=context, initializer=_settle_down) as pool:
            running: set[Future[tuple[Outcome, int]]] = set()
            for seed in seeds:
                running.add(pool.submit(_timed, self._run_seed, seed))
                while len(running) >= self._jobs:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    self._take(done)
            self._take(wait(running).done)
        self._show_progress(end="\n")
        for failure in sorted(self._failures, key=lambda failure: failure.seed)[:1]:
            self._tell(failure)
        print(f"RESULT {self.totals.line(self.counts)}", flush=True)
        return int(bool(self._failures))

    def _seeds(self, first: int, until: float, count: int | None) -> Iterator[int]:
        seed = first
        while not self._failures and (seed < first + count if count is not None else time.monotonic() < until):
            yield seed
            seed += 1

    def _take(self, done: set[Future[tuple[Outcome, int]]]) -> None:
        for future in done:
            outcome, busy_ms = future.result()
            self.totals.seeds += 1
            self.totals.simulated_ms += outcome.simulated_ms
            self.totals.busy_ms += busy_ms
            self.counts.update(dict(outcome.counts))
            if outcome.problem:
                self.totals.violations += 1
                self._failures.append(outcome)
        self._show_progress(end="\r")

    def _show_progress(self, end: str) -> None:
        if sys.stderr.isatty():
            print(f"\x1b[K{self.totals.line(self.counts)}", end=end, file=sys.stderr, flush=True)

    # -- a violation ------------------------------------------------------------------------------------------------

    def _tell(self, failure: Outcome) -> None:
        replay = self._replay.format(seed=failure.seed)
        print(f"seed {failure.seed}: {failure.problem}")
        print(f"replay it with: {replay}", flush=True)
        numbers = self._minimised(failure)
        shortest = self._run_seed(failure.seed, numbers)
        print(f"{len(numbers)} of its {len(failure.begun)} faults are enough:")
        for line in shortest.faults or ("none at all",):
            print(f"  {line}")
        print("and then, at the end:")
        for line in shortest.story[-STORY_LINES:]:
            print(f"  {line}")
        print(f"  {shortest.problem.splitlines()[0] if shortest.problem else failure.problem}")
        only = ",".join(map(str, numbers)) or "none"
        print(f"replay only these with: {replay} --faults {only}", flush=True)

    def _minimised(self, failure: Outcome) -> tuple[int, ...]:
        """Leave out what is not needed, for as long as there is time for it."""
        logging.disable(logging.CRITICAL)
        until = time.monotonic() + self._shrink_seconds

        def is_still_broken(numbers: Sequence[int]) -> bool:
            return time.monotonic() < until and self._run_seed(failure.seed, numbers).rule == failure.rule

        return shrinking.minimised(failure.begun, is_still_broken)
