"""Break the program one line at a time, and see who notices.

    python -m tests.mutants                            the curated list: unit tests, scenarios, property tests
    python -m tests.mutants --swarm 600                and, apart from them, a swarm of 600 s for each mutant
    python -m tests.mutants --swarm 600 --sample 24    and a swarm for 24 of them only, drawn by --seed
    python -m tests.mutants --generated 200 --seed 1   and 200 mutants by rule: comparisons, bounds, guards
    python -m tests.mutants --only 'Replica.*'         mutants of some functions only
    python -m tests.mutants --list                     what there is, without running anything
    python -m tests.mutants --write-noticed            and write down which test noticed which mutant

The test that `noticed.txt` names for a mutant is asked before all others: when it still notices, the others are not
asked. Then those that run the mutated function, as a run of all tests before has shown (`reaching.py`): unit tests,
then scenarios, then property tests, the quickest first; then all tests, so that no mutant survives unseen. One that the
unit tests notice is not shown to the scenarios, nor one of these to the property tests; the swarm is asked about each,
since it is judged by itself. Answers are kept in build/mutants.json for as long as no file
of the program or its tests changes, so that a run that was ended goes on where it was. The last line is `RESULT
key=value ...`; the exit code is 1 when less than 95 % of the curated list were noticed by these tests, or, of a swarm
of ten minutes or more, less than 50 %.
"""

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from queue import SimpleQueue

from haclusterd.model.records import dataclass, field
from tests.mutants.curated import CURATED
from tests.mutants.generated import sample
from tests.mutants.noticing import CHECKOUT, Judgement, Level, Verdict, Workplace, files_for
from tests.mutants.reaching import Reached, function_key, in_portions
from tests.mutants.sites import MissingCodeError, Mutant, Place, find, mutated

TESTS = (Level.UNITS, Level.SCENARIOS, Level.PROPERTIES)
"""The tests that are asked about a mutant, the quickest first, until one of them notices."""
ANSWERS = CHECKOUT / "build" / "mutants.json"
NOTICED = CHECKOUT / "tests" / "mutants" / "noticed.txt"
"""Lines of level, test and mutant, with tabs between: which test noticed it when somebody last wrote it down."""
WANTED_PERCENT = 95
WANTED_OF_SWARM_PERCENT = 50
LONG_SWARM_S = 600
"""So long a swarm must be for its share to be judged."""
SWARM_SEED = 700_000
"""Where the swarms begin: seeds that no sample of the tests runs."""


@dataclass(frozen=True, slots=True)
class Case:
    """A mutant at its place."""

    name: str
    place: Place
    after: str
    listed: Mutant | None = None
    """Its entry in the curated list."""
    is_for_swarm: bool = False
    """A swarm is asked about it."""


@dataclass(slots=True)
class Answers:
    """Who said what of which mutant."""

    file: Path
    kept: dict[str, dict[str, Mapping[str, str | float]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, case: Case, level: str) -> Judgement | None:
        """Return what a level said before."""
        found = self.kept.get(case.name, {}).get(level)
        if found is None:
            return None
        return Judgement(Verdict(found["verdict"]), float(found["seconds"]), str(found["words"]))

    def keep(self, case: Case, level: str, judgement: Judgement) -> None:
        """Remember an answer, on disk too."""
        with self._lock:
            self.kept.setdefault(case.name, {})[level] = {
                "verdict": str(judgement.verdict),
                "seconds": round(judgement.seconds, 1),
                "words": judgement.words,
            }
            self.file.parent.mkdir(exist_ok=True)
            fresh = self.file.with_suffix(".new")
            fresh.write_text(json.dumps({"tree": tree_digest(), "answers": self.kept}, indent=1))
            fresh.replace(self.file)


@cache
def tree_digest() -> str:
    """Return a digest of all that a verdict depends on."""
    digest = hashlib.sha256()
    for folder in ("haclusterd", "tests"):
        for file in sorted((CHECKOUT / folder).rglob("*.py")):
            digest.update(str(file.relative_to(CHECKOUT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def load_answers(file: Path) -> Answers:
    """Return what is known of this very tree."""
    if not file.exists():
        return Answers(file)
    document = json.loads(file.read_text())
    return Answers(file, document["answers"]) if document["tree"] == tree_digest() else Answers(file)


def cases_of(options: argparse.Namespace) -> list[Case]:
    """Return the mutants that are asked for; a curated one that is not found raises MissingCodeError."""
    asked = swarm_sample([each.name for each in CURATED], options)
    curated = [Case(each.name, find(each), each.after, each, each.name in asked) for each in CURATED]
    generated = [
        Case(each.name, each.place, each.after, is_for_swarm=bool(options.swarm) and not options.sample)
        for each in sample(options.generated, options.seed)
        if _compiles(each.place, each.after)
    ]
    return [case for case in (*curated, *generated) if fnmatch(case.name, options.only)]


def swarm_sample(names: Sequence[str], options: argparse.Namespace) -> frozenset[str]:
    """Return which of the curated list a swarm is asked about: all, or as many as --sample says, drawn by --seed."""
    if not options.swarm:
        return frozenset()
    if not options.sample or options.sample >= len(names):
        return frozenset(names)
    return frozenset(random.Random(options.seed).sample(sorted(names), options.sample))


def _compiles(place: Place, after: str) -> bool:
    try:
        mutated(place, after)
    except SyntaxError:
        return False
    return True


@contextmanager
def workplaces(count: int) -> Iterator["SimpleQueue[Workplace]"]:
    """Make copies of the checkout, one for each job."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        free: SimpleQueue[Workplace] = SimpleQueue()
        for number in range(count):
            free.put(Workplace(Path(directory) / str(number)))
        yield free


@dataclass(frozen=True, slots=True)
class Noticing:
    """Which test noticed a mutant."""

    level: Level
    test: str
    """As pytest names it; of one with long arguments, the function."""

    @property
    def function(self) -> str:
        """The function, without its arguments."""
        return self.test.partition("[")[0]


def load_noticed(file: Path) -> Mapping[str, Noticing]:
    """Return which test noticed which mutant, by the mutant's name."""
    if not file.exists():
        return {}
    rows = (line.split("\t") for line in file.read_text().splitlines())
    return {name: Noticing(Level(level), test) for level, test, name in rows}


def write_noticed(file: Path, cases: Sequence[Case], answers: Answers) -> None:
    """Write down which test noticed which mutant, of the curated list; what is known of the others stays."""
    listed = {each.name for each in CURATED}
    known = {name: each for name, each in load_noticed(file).items() if name in listed}
    for case in cases:
        found = noticing(case, answers) if case.listed else None
        if found is not None:
            known[case.name] = found
    file.write_text("".join(f"{each.level}\t{each.test}\t{name}\n" for name, each in sorted(known.items())))


def noticing(case: Case, answers: Answers) -> Noticing | None:
    """Return the test that noticed a mutant; None where none did, or where it has no name."""
    for level in TESTS:
        judgement = answers.of(case, level)
        if judgement is not None and judgement.verdict is Verdict.NOTICED:
            test = judgement.words.removeprefix("ERROR ").partition(" - ")[0]
            test = test if test.endswith("]") else test.partition("[")[0]
            return Noticing(level, test) if test.startswith("tests/") else None
    return None


def is_noticed(case: Case, answers: Answers) -> bool:
    """Tell whether a test has noticed a mutant."""
    found = (answers.of(case, level) for level in TESTS)
    return any(each is not None and each.verdict is Verdict.NOTICED for each in found)


def _ask_known(case: Case, place: Workplace, answers: Answers, known: Noticing | None) -> bool:
    """Ask the test that noticed a mutant before; return whether it still does."""
    return known is not None and _ask(case, place, answers, known.level, [known.test])


def _ask(case: Case, place: Workplace, answers: Answers, level: Level, tests: Sequence[str]) -> bool:
    """Ask some tests of a level; return whether one notices, which is kept: that none did says nothing of the level."""
    judgement = place.asks(tests)
    if judgement.verdict is Verdict.NOTICED:
        answers.keep(case, level, judgement)
    return judgement.verdict is Verdict.NOTICED


PORTIONS_S = (2, 10, 60)
"""Of the tests that run a mutated function, so many seconds are asked at a time: beginning to ask costs seconds too."""


def _ask_reaching(
    case: Case,
    place: Workplace,
    answers: Answers,
    reached: Reached,
    levels: Mapping[Level, Sequence[str]],
) -> bool:
    """Ask the tests of some levels that run the mutated function, first those that are named; return whether one does.

    `levels`: each with the tests that noticed other mutants near by.
    """
    for level, first in levels.items():
        files = {file for group in files_for(case.place.path, level) for file in group}
        tests = [each for each in reached.by(case.place) if each.test.partition("::")[0] in files]
        tests.sort(key=lambda each: each.test not in first)
        if any(_ask(case, place, answers, level, portion) for portion in in_portions(tests, PORTIONS_S)):
            return True
    return False


NEIGHBOURS_MAX = 8


def neighbours(case: Case, level: Level, cases: Sequence[Case], answers: Answers) -> list[str]:
    """Return tests of a level that have noticed other mutants of the same file: of the same function first."""
    near = [each for each in cases if each.place.path == case.place.path and each is not case]
    near.sort(key=lambda each: each.name.partition(":")[0] != case.name.partition(":")[0])
    found = (noticing(each, answers) for each in near)
    tests = dict.fromkeys(each.function for each in found if each is not None and each.level is level)
    return [*tests][:NEIGHBOURS_MAX]


SHOWN_EACH = 20
QUICK = (Level.UNITS,)
"""Asked about all mutants before any is shown to the others: a scenario takes as long as many unit tests."""


def judge_quickly(
    case: Case,
    free: "SimpleQueue[Workplace]",
    cases: Sequence[Case],
    answers: Answers,
    known: Noticing | None,
    reached: Reached,
) -> None:
    """Ask the test that noticed a mutant before, and the unit tests that run its function; who notices is kept."""
    if any(answers.of(case, level) for level in TESTS):
        return
    place = free.get()
    try:
        with place.with_mutant(case.place, case.after):
            near = {level: neighbours(case, level, cases, answers) for level in QUICK}
            _ = _ask_known(case, place, answers, known) or _ask_reaching(case, place, answers, reached, near)
    finally:
        free.put(place)


def judge(
    case: Case,
    free: "SimpleQueue[Workplace]",
    cases: Sequence[Case],
    answers: Answers,
    reached: Reached,
    options: argparse.Namespace,
) -> Case:
    """Ask the levels about a mutant, one of `cases`, that `judge_quickly` has seen; what they say is kept."""
    place = free.get()
    try:
        with place.with_mutant(case.place, case.after):
            near = {level: neighbours(case, level, cases, answers) for level in TESTS if level not in QUICK}
            is_settled = is_noticed(case, answers) or (
                not any(answers.of(case, level) for level in TESTS)
                and _ask_reaching(case, place, answers, reached, near)
            )
            for level in () if is_settled else TESTS:
                judgement = answers.of(case, level)
                if judgement is None:
                    first = neighbours(case, level, cases, answers)
                    judgement = place.judge(case.place.path, level, seed=0, swarm_seconds=0, first=first)
                    answers.keep(case, level, judgement)
                if judgement.verdict is Verdict.NOTICED:
                    break
            key = swarm_key(options)
            if case.is_for_swarm and answers.of(case, key) is None:
                judgement = place.judge(case.place.path, Level.SWARM, seed=SWARM_SEED, swarm_seconds=options.swarm)
                answers.keep(case, key, judgement)
    finally:
        free.put(place)
    return case


def swarm_key(options: argparse.Namespace) -> str:
    """Name the answers of swarms of one length."""
    return f"{Level.SWARM} {options.swarm}"


def noticed_by(case: Case, answers: Answers, options: argparse.Namespace) -> list[str]:
    """Return the levels that noticed a mutant."""
    levels = [*TESTS, *([swarm_key(options)] if options.swarm else [])]
    found = ((level, answers.of(case, level)) for level in levels)
    return [level for level, judgement in found if judgement is not None and judgement.verdict is Verdict.NOTICED]


def is_unmutated_green(options: argparse.Namespace, cases: Sequence[Case]) -> bool:
    """Tell whether the levels say nothing of the program as it is; otherwise their words mean nothing."""
    paths = {case.place.path for case in cases}
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        place = Workplace(Path(directory))
        asked = {(tuple(_set_of(path, level)), level): path for path in sorted(paths) for level in Level}
        for (_, level), path in asked.items():
            if level is Level.SWARM and not options.swarm:
                continue
            judgement = place.judge(path, level, seed=SWARM_SEED, swarm_seconds=min(20, options.swarm or 0))
            if judgement.verdict is Verdict.NOTICED:
                print(f"the program as it is does not pass its {level}: {judgement.words}", file=sys.stderr)
                return False
    return True


REACHED_MIN = 12
"""So many mutants of which nothing is known make it worth while to run all tests once to see what they run."""


def reached_of(cases: Sequence[Case], free: "SimpleQueue[Workplace]", answers: Path) -> Reached:
    """Return which tests run the functions of the cases, from a run of them; it is kept beside the answers."""
    keys = sorted({function_key(case.place) for case in cases})
    file = answers.with_name("mutants-reached.json")
    kept = json.loads(file.read_text()) if file.exists() else {}
    if kept.get("tree") != tree_digest() or not set(keys) <= set(kept["keys"]):
        if len(cases) < REACHED_MIN:
            return Reached({})
        print(f"running the tests as they are, to see which of them run the {len(keys)} functions", flush=True)
        paths = {case.place.path for case in cases}
        files = {file for path in paths for level in TESTS for file in _set_of(path, level)}
        place = free.get()
        try:
            rows = place.reach(keys, sorted(files)).as_rows()
        finally:
            free.put(place)
        kept = {"tree": tree_digest(), "keys": keys, "rows": rows}
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(kept))
    return Reached.from_rows(kept["rows"])


def _set_of(path: Path, level: Level) -> list[str]:
    return sorted(file for group in files_for(path, level) for file in group) if level is not Level.SWARM else []


def run(options: argparse.Namespace) -> int:
    """Judge every mutant, print the table, return the exit code."""
    began = time.monotonic()
    cases = cases_of(options)
    if options.list:
        for case in cases:
            print(f"{case.name}    # {case.listed.breaks}" if case.listed else case.name)
        return 0
    answers = load_answers(options.answers)
    if not options.trust and not is_unmutated_green(options, cases):
        return 2
    noticed = load_noticed(NOTICED)
    with workplaces(options.jobs) as free, ThreadPoolExecutor(options.jobs) as pool:
        reached = reached_of([case for case in cases if case.name not in noticed], free, options.answers)
        quick = [
            pool.submit(judge_quickly, case, free, cases, answers, noticed.get(case.name), reached) for case in cases
        ]
        for number, future in enumerate(as_completed(quick), start=1):
            future.result()
            if number % SHOWN_EACH == 0 or number == len(cases):
                found = sum(is_noticed(each, answers) for each in cases)
                print(f"[{number}/{len(cases)} {time.monotonic() - began:5.0f} s] noticed: {found}", flush=True)
                if options.write_noticed:
                    write_noticed(NOTICED, cases, answers)
        waiting = [pool.submit(judge, case, free, cases, answers, reached, options) for case in cases]
        for number, future in enumerate(as_completed(waiting), start=1):
            case = future.result()
            by = ", ".join(noticed_by(case, answers, options)) or "SURVIVED"
            print(f"[{number}/{len(cases)} {time.monotonic() - began:5.0f} s] {by}: {case.name}", flush=True)
            if options.write_noticed:
                write_noticed(NOTICED, cases, answers)
    return report(cases, answers, options, time.monotonic() - began)


def report(cases: Sequence[Case], answers: Answers, options: argparse.Namespace, seconds: float) -> int:
    """Print who noticed what, survivors last, and the RESULT line; return the exit code."""
    swarm = swarm_key(options)
    columns = (*TESTS, swarm)
    print("\n" + " ".join(f"{column.partition(' ')[0]:>10}" for column in columns) + "  mutant")
    for case in cases:
        by = noticed_by(case, answers, options)
        marks = [_mark(level in by, answers.of(case, level)) for level in columns]
        print(" ".join(f"{mark:>10}" for mark in marks) + f"  {case.name}")
    survivors = [case for case in cases if not set(noticed_by(case, answers, options)) & set(TESTS)]
    for case in survivors:
        breaks, why = (case.listed.breaks, case.listed.survives) if case.listed else ("(by rule)", "")
        print(f"SURVIVED {case.name}\n    it breaks: {breaks}\n    why: {why or 'not known'}")
    curated = [case for case in cases if case.listed]
    noticed = _percent(len(curated) - sum(bool(case.listed) for case in survivors), len(curated))
    shown = [case for case in curated if case.is_for_swarm]
    by_swarm = _percent(sum(swarm in noticed_by(case, answers, options) for case in shown), len(shown))
    generated = [case for case in cases if case.listed is None]
    pairs = [f"listed={len(curated)}", f"noticed_percent={noticed}"]
    if options.swarm:
        pairs += [f"swarm_percent={by_swarm}", f"swarm_asked={len(shown)}", f"swarm_seconds={options.swarm}"]
    if generated:
        rate = _percent(len(generated) - sum(case.listed is None for case in survivors), len(generated))
        pairs += [f"generated={len(generated)}", f"generated_noticed_percent={rate}"]
    print(f"RESULT {' '.join(pairs)} survivors={len(survivors)} seconds={seconds:.0f}", flush=True)
    is_short = options.swarm >= LONG_SWARM_S and by_swarm < WANTED_OF_SWARM_PERCENT
    return int(bool(curated) and (noticed < WANTED_PERCENT or is_short))


def _mark(is_noticed: bool, judgement: Judgement | None) -> str:
    if judgement is None:
        return "-"
    return f"{judgement.seconds:.0f} s" if is_noticed else "no"


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 100.0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--only", default="*", metavar="PATTERN", help="names of mutants, with * and ?")
    made.add_argument("--generated", type=int, default=0, metavar="N", help="so many mutants by rule as well")
    made.add_argument("--seed", type=int, default=1, help="which ones of those by rule")
    made.add_argument("--swarm", type=int, default=0, metavar="SECONDS", help="also a swarm for each mutant")
    made.add_argument("--sample", type=int, default=0, metavar="N", help="a swarm for N of the curated list only")
    made.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="how many mutants at a time")
    made.add_argument("--answers", type=Path, default=ANSWERS, metavar="FILE", help="where answers are kept")
    made.add_argument("--list", action="store_true", help="print the mutants and end")
    made.add_argument("--write-noticed", action="store_true", help="write noticed.txt: which test noticed which mutant")
    made.add_argument("--trust", action="store_true", help="do not run the program as it is first")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    options = parser().parse_args(arguments)
    try:
        return run(options)
    except MissingCodeError as error:
        print(f"{error}\nThe list is tests/mutants/curated.py: let it follow the code.", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
