"""The command line of a swarm.

    python -m MODULE swarm --seconds 60 --seed 1     seeds 1, 2, ... until 60 real seconds have passed
    python -m MODULE swarm --hours 24                until 24 hours were simulated
    python -m MODULE swarm --only gpu                seeds of clusters whose hosts have devices
    python -m MODULE swarm --only shapes             seeds in which resources change their shape
    python -m MODULE swarm --only databases          seeds in which data remembers that it was a primary's
    python -m MODULE replay --seed 17                one seed, with everything recorded
    python -m MODULE replay --seed 17 --faults 3,8   and with these of its faults only

With `--without RULE` a rule of `SafetyRules` is not in force, so that a person sees it missed. Before the last line,
`RESULT key=value ...`, stands a table of what was exercised. The exit code is 1 when a rule was broken, and with
`--hours` also when something was never exercised, which is named; 130 when a signal has ended it.
"""

import argparse
import logging
import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Protocol

from haclusterd.simulator.campaign import Campaign, Limit
from haclusterd.simulator.checks.coverage import Section
from haclusterd.simulator.swarm import Outcome

SHRINK_SECONDS = 240
ENDING = (signal.SIGINT, signal.SIGTERM)


class Run(Protocol):
    """What is simulated."""

    def __call__(
        self, seed: int, only: Collection[int] | None = None, *, safety_ms: int, whole_record: bool = False
    ) -> Outcome:
        """Run a seed, with all of its faults or with `only` these."""
        ...


class Weaken(Protocol):
    """Makes runs without a rule."""

    def __call__(self, rule: str) -> Run:
        """Return what runs seeds while that rule is not in force."""
        ...


def main(
    run: Run,
    *,
    module: str,
    safety_ms: int,
    without: Weaken | None = None,
    rules: Sequence[str] = (),
    sections: Sequence[Section] = (),
    only: Mapping[str, tuple[Callable[[int], bool], Sequence[Section]]] = {},
    arguments: list[str] | None = None,
) -> int:
    """Do what the command line says and return the exit code; `safety_ms` is how long faults happen by default.

    `without` is what `--without` takes one of the `rules` away with. `sections`: what a campaign should exercise.
    `only` says for the words of `--only` which seeds are meant, and what these should exercise.
    """
    options = _parser(module, safety_ms, rules, tuple(only)).parse_args(arguments)
    again = f"--safety-ms {options.safety_ms}"
    if without is not None and options.without is not None:
        run = without(options.without)
        again = f"{again} --without {options.without}"
    logging.disable(logging.CRITICAL)  # what a simulated store says when it stops is recorded anyway
    if options.verb == "replay":
        return _tell(run(options.seed, options.faults, safety_ms=options.safety_ms, whole_record=True))
    is_wanted, wanted = only.get(options.only, (_any, sections))
    campaign = Campaign(
        partial(run, safety_ms=options.safety_ms),
        replay=f"python -m {module} replay --seed {{seed}} {again}",
        jobs=options.jobs,
        shrink_seconds=options.shrink_seconds,
        sections=wanted,
        is_wanted=is_wanted,
    )
    before = {number: signal.signal(number, lambda _number, _frame: campaign.interrupt()) for number in ENDING}
    try:
        return campaign.run(options.seed, Limit(options.count, options.hours, options.seconds))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(outcome: Outcome) -> int:
    print("\n".join(outcome.recorded))
    if outcome.problem:
        print(outcome.problem)
    print(f"RESULT seed={outcome.seed} trace={outcome.trace} violations={int(bool(outcome.problem))}")
    return int(bool(outcome.problem))


def _any(_seed: int) -> bool:
    return True


def _parser(module: str, safety_ms: int, rules: Sequence[str], only: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description="Swarms of seeds, and the replay of one.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    swarming = verbs.add_parser("swarm", help="run seeds until the time is over")
    swarming.add_argument("--seconds", type=int, default=60, help="real seconds after which no new seed begins")
    swarming.add_argument("--hours", type=float, default=None, help="simulated hours after which no new seed begins")
    swarming.add_argument("--seed", type=int, default=1, help="the first seed")
    swarming.add_argument("--count", type=int, default=None, help="run exactly so many seeds")
    swarming.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="how many at a time")
    swarming.add_argument("--shrink-seconds", type=int, default=SHRINK_SECONDS, help="for one failing seed")
    if only:
        swarming.add_argument("--only", choices=only, default=None, help="seeds of these clusters alone")
    else:
        swarming.set_defaults(only=None)
    replaying = verbs.add_parser("replay", help="run one seed and print everything recorded")
    replaying.add_argument("--seed", type=int, required=True)
    replaying.add_argument("--faults", type=_numbers, default=None, help="their numbers, or none: leave out all others")
    for verb in (swarming, replaying):
        verb.add_argument("--safety-ms", type=int, default=safety_ms, help="simulated ms in which faults happen")
        if rules:
            verb.add_argument("--without", choices=rules, default=None, metavar="RULE", help="see it missed")
        else:
            verb.set_defaults(without=None)
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    return () if text == "none" else tuple(map(int, text.split(",")))
