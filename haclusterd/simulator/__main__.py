"""`python -m haclusterd.simulator`: swarms of seeds, and the replay of one.

    python -m haclusterd.simulator swarm --seconds 60 --seed 1     seeds 1, 2, ... until 60 real seconds have passed
    python -m haclusterd.simulator replay --seed 17                one seed, with its whole story

The last line is `RESULT key=value ...`; the exit code is 1 when a rule was broken.
"""

import argparse
import logging
import sys
import time

from haclusterd.simulator import swarm


def main(arguments: list[str] | None = None) -> int:
    """Run; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m haclusterd.simulator", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    swarming = verbs.add_parser("swarm", help="run seeds until the time is over")
    swarming.add_argument("--seconds", type=int, default=60, help="real seconds after which no new seed begins")
    swarming.add_argument("--seed", type=int, default=1, help="the first seed")
    swarming.add_argument("--count", type=int, default=None, help="run exactly so many seeds")
    replaying = verbs.add_parser("replay", help="run one seed and print its story")
    replaying.add_argument("--seed", type=int, required=True)
    for verb in (swarming, replaying):
        verb.add_argument(
            "--safety-ms", type=int, default=swarm.SAFETY_PHASE_MS, help="simulated ms in which faults happen"
        )
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # what a simulated store says when it stops is part of the story
    if options.verb == "replay":
        return replay(options.seed, options.safety_ms)
    return run_swarm(options.seed, options.seconds, options.count, options.safety_ms)


def run_swarm(first_seed: int, seconds: int, count: int | None, safety_ms: int) -> int:
    """Run seeds; stop at the first that breaks a rule."""
    began = time.monotonic()
    simulated_ms = lost = fenced = seeds = 0
    problem = ""
    while not problem and (seeds < count if count is not None else time.monotonic() - began < seconds):
        outcome = swarm.run(first_seed + seeds, safety_ms=safety_ms)
        seeds += 1
        simulated_ms += outcome.simulated_ms
        lost += outcome.lost
        fenced += outcome.fenced
        problem = outcome.problem
        if problem:
            print(f"seed {outcome.seed}: {problem}")
            print(
                "replay it with: "
                f"python -m haclusterd.simulator replay --seed {outcome.seed} --safety-ms {safety_ms}"
            )
    real_ms = max(1, int((time.monotonic() - began) * 1000))
    print(
        f"RESULT seeds={seeds} simulated_s={simulated_ms // 1000} real_s={real_ms // 1000} "
        f"speed={simulated_ms // real_ms} lost={lost} fenced={fenced} violations={int(bool(problem))}"
    )
    return int(bool(problem))


def replay(seed: int, safety_ms: int) -> int:
    """Run one seed and tell everything."""
    outcome = swarm.run(seed, safety_ms=safety_ms, whole_story=True)
    print("\n".join(outcome.story))
    if outcome.problem:
        print(outcome.problem)
    print(f"RESULT seed={seed} trace={outcome.trace} violations={int(bool(outcome.problem))}")
    return int(bool(outcome.problem))


if __name__ == "__main__":
    sys.exit(main())
