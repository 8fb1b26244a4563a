"""Many seeds on all processors, until the time is over or a rule is broken; then the fewest faults that break it.

A seed is a task of its own, so how seeds fall to processes changes no outcome.
"""

import gc
import itertools
import logging
import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import timedelta

from haclusterd.model.records import dataclass
from haclusterd.simulator import shrinking
from haclusterd.simulator.checks.coverage import Counts, Section, table, zeros
from haclusterd.simulator.swarm import Outcome

RunSeed = Callable[[int, Sequence[int] | None], Outcome]
"""Runs a seed with all of its faults (None), or with those of these numbers only."""
SHOWN_LINES = 25
HOUR_MS = 3_600_000
SEEDS_BETWEEN_COLLECTIONS = 8
"""Each leaves some 15 MiB."""
_seeds_run = itertools.count(1)
"""By this process."""
PROGRESS_EVERY_S = 30
INTERRUPTED = 130
"""The exit code after a signal."""


@dataclass(frozen=True, slots=True)
class Limit:
    """When no new seed begins: the first of these that is there counts, from top to bottom."""

    count: int | None = None
    """Seeds have begun."""
    hours: float | None = None
    """Hours were simulated."""
    seconds: int = 0
    """Real seconds have passed."""


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
    """Make a worker quiet, and let it collect its garbage between seeds only, and not after each.

    A ^C at the terminal is for the process that has begun it: that one ends its workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    logging.disable(logging.CRITICAL)
    gc.collect()
    gc.freeze()
    gc.disable()


def _timed(run_seed: RunSeed, seed: int) -> tuple[Outcome, int]:
    began = time.process_time()
    outcome = run_seed(seed, None)
    if next(_seeds_run) % SEEDS_BETWEEN_COLLECTIONS == 0:
        gc.collect()
    return outcome, int((time.process_time() - began) * 1000)


class Campaign:
    """Runs seeds in order of their numbers, some at a time."""

    def __init__(
        self,
        run_seed: RunSeed,
        *,
        replay: str,
        jobs: int,
        shrink_seconds: int,
        sections: Sequence[Section] = (),
        is_wanted: Callable[[int], bool] = lambda _seed: True,
    ) -> None:
        """`replay` is the command that runs one seed again; `{seed}` stands for it. `sections`: what a campaign should
        exercise; one of many hours that leaves any of it out has failed. `is_wanted` tells which seeds are run."""
        self._is_wanted = is_wanted
        self._sections = tuple(sections)
        self._coverage: Counts = Counter()
        self._run_seed = run_seed
        self._replay = replay
        self._jobs = jobs
        self._shrink_seconds = shrink_seconds
        self.totals = Totals()
        self.counts: Counter[str] = Counter()
        self._failures: list[Outcome] = []
        self._is_interrupted = False
        self._limit = Limit()
        self._began = time.monotonic()
        self._reported_at = self._began

    def interrupt(self) -> None:
        """Let no further seed begin. Raises KeyboardInterrupt the second time, and while a failure is made smaller."""
        if self._is_interrupted or self._failures:
            raise KeyboardInterrupt
        self._is_interrupted = True
        print("interrupted: the seeds that have begun are finished", flush=True)

    def run(self, first_seed: int, limit: Limit) -> int:
        """Run seed after seed until the limit is reached or a rule is broken; return the exit code."""
        self._limit = limit
        self._began = self._reported_at = time.monotonic()
        seeds = self._seeds(first_seed)
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(self._jobs, mp_context=context, initializer=_settle_down) as pool:
            running: set[Future[tuple[Outcome, int]]] = set()
            for seed in seeds:
                running.add(pool.submit(_timed, self._run_seed, seed))
                while len(running) >= self._jobs:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    self._take(done)
            self._take(wait(running).done)
        for failure in sorted(self._failures, key=lambda failure: failure.seed)[:1]:
            self._tell(failure)
        missing = self._show_coverage()
        missing_words = f" never_exercised={len(missing)}" if self._sections else ""
        interrupted_words = " interrupted=1" if self._is_interrupted else ""
        print(f"RESULT {self.totals.line(self.counts)}{missing_words}{interrupted_words}", flush=True)
        if self._is_interrupted and not self._failures:
            return INTERRUPTED
        return int(bool(self._failures) or (limit.hours is not None and bool(missing)))

    def _show_coverage(self) -> tuple[str, ...]:
        """Print what was exercised, and return what was not."""
        if not self._sections:
            return ()
        print(table(self._coverage, self._sections))
        missing = zeros(self._coverage, self._sections)
        if missing:
            print(f"never exercised: {', '.join(missing)}")
        return missing

    def _seeds(self, first: int) -> Iterator[int]:
        begun, seed = 0, first
        while not self._failures and not self._is_interrupted and self._share_done(begun) < 1:
            if self._is_wanted(seed):
                yield seed
                begun += 1
            seed += 1

    def _share_done(self, seeds: int) -> float:
        """Return how much of the limit is reached, when so many seeds have begun: from 0 to 1 or more."""
        limit = self._limit
        if limit.count is not None:
            return seeds / limit.count if limit.count else 1
        if limit.hours is not None:
            return self.totals.simulated_ms / HOUR_MS / limit.hours if limit.hours else 1
        return (time.monotonic() - self._began) / limit.seconds if limit.seconds else 1

    def _take(self, done: set[Future[tuple[Outcome, int]]]) -> None:
        for future in done:
            outcome, busy_ms = future.result()
            self.totals.seeds += 1
            self.totals.simulated_ms += outcome.simulated_ms
            self.totals.busy_ms += busy_ms
            self.counts.update(dict(outcome.counts))
            self._coverage.update(dict(outcome.coverage))
            if outcome.problem:
                self.totals.violations += 1
                self._failures.append(outcome)
        self._show_progress()

    def _show_progress(self) -> None:
        """Say now and then how far it has come, and how long it will take at this pace."""
        now = time.monotonic()
        if now - self._reported_at < PROGRESS_EVERY_S:
            return
        self._reported_at = now
        elapsed_s, totals = int(now - self._began), self.totals
        share = self._share_done(totals.seeds)
        left = f"{timedelta(seconds=int(elapsed_s / share) - elapsed_s)}" if 0 < share < 1 else "0:00:00"
        hours = totals.simulated_ms / HOUR_MS
        print(
            f"{timedelta(seconds=elapsed_s)} elapsed: {hours:.2f} simulated hours, {totals.seeds} seeds, "
            f"{totals.violations} violations; about {left} left",
            flush=True,
        )

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
        for line in shortest.recorded[-SHOWN_LINES:]:
            print(f"  {line}")
        print(f"  {shortest.problem.splitlines()[0] if shortest.problem else failure.problem}")
        only = ",".join(map(str, numbers)) or "none"
        print(f"replay only these with: {replay} --faults {only}", flush=True)

    def _minimised(self, failure: Outcome) -> tuple[int, ...]:
        """Leave out what is not needed, for as long as there is time for it."""
        until = time.monotonic() + self._shrink_seconds

        def is_still_broken(numbers: Sequence[int]) -> bool:
            return time.monotonic() < until and self._run_seed(failure.seed, numbers).rule == failure.rule

        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            return shrinking.minimised(failure.begun, is_still_broken)
        finally:
            logging.disable(before)
