"""Pacemaker's public scheduler cases, and random CIBs that Pacemaker decided.

    python -m tests.conformance.public_cases [--corpus public|random-public] [--cases NAME[,NAME]] [--tag TAG] [--diff]
                                             [--failing] [--json FILE] [--baseline FILE]

The cases and the comparison come from ../shared/conformance/scheduler, beside this repository; without it nothing is
run. The archives are unpacked below build/ once. A case counts as covered when the reader of CIB XML has nothing to
report that a plan depends on; `--forced` judges the others too, without what could not be held. The percentages of the
last line are of all cases: one that is not covered does not agree.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tarfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, field, replace
from tests.outside_modules import load

HERE = Path(__file__).parent
KNOWN = HERE / "known.txt"
HARNESS = HERE.parents[2] / "shared" / "conformance" / "scheduler"
CORE = ("L1", "L2", "L3", "L4")
LEVELS = ("L1", "L2", "L3", "L3p", "L4", "P")
PROCESSES = 2
PUBLIC, RANDOM = "public", "random-public"
UNPACKED = HERE.parents[1] / "build" / "conformance"


def absence() -> str:
    """Say why nothing can be run; empty when it can."""
    needed = ("conformance.py", f"{PUBLIC}.tar.xz", f"{RANDOM}.tar.xz")
    missing = [name for name in needed if not (HARNESS / name).is_file()]
    return f"{' and '.join(missing)} not found in {HARNESS}" if missing else ""


@dataclass(frozen=True, slots=True)
class Case:
    """A case, by the place of its files."""

    name: str
    folder: Path
    tags: tuple[str, ...] = ()

    @property
    def xml(self) -> str:
        return (self.folder / "xml" / f"{self.name}.xml").read_text()

    @property
    def expected(self) -> dict[str, Any]:
        """What Pacemaker made of it, with the shared parameter sets in the actions that use them."""
        expected: dict[str, Any] = json.loads((self.folder / "expected" / f"{self.name}.json").read_text())
        for action in expected["actions"]:
            if "params" in action:
                action["params"] = expected["param_sets"][action["params"]]
        return expected


@dataclass(slots=True)
class Result:
    name: str
    not_held: tuple[str, ...] = ()
    """What of the case the reader could not hold; such a case is not compared."""
    error: str = ""
    differs: tuple[str, ...] = ()
    """Levels that differ."""
    missing_orders: int = 0
    """Orders between actions of both sides that ours does not have: unsafe."""
    extra_orders: int = 0
    """Orders between actions of both sides that only ours has: slower."""
    details: list[str] = field(default_factory=list)
    tags: tuple[str, ...] = ()
    is_forced: bool = False

    @property
    def is_covered(self) -> bool:
        return not self.not_held or self.is_forced

    @property
    def first_difference(self) -> str:
        """The first of the levels that count and differ."""
        return next((level for level in CORE if level in self.differs), "")

    @property
    def agrees(self) -> bool:
        return self.is_covered and not self.first_difference


@cache
def harness() -> ModuleType:
    """Load the comparison."""
    return load(HARNESS / "conformance.py")


def unpacked(corpus: str) -> Path:
    """Return the folder of an archive's cases, which is unpacked when it is new."""
    archive = HARNESS / f"{corpus}.tar.xz"
    folder = UNPACKED / hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    if not folder.is_dir():
        UNPACKED.mkdir(parents=True, exist_ok=True)
        partial = Path(mkdtemp(dir=UNPACKED))
        with tarfile.open(archive) as content:
            content.extractall(partial, filter="data")
        try:
            partial.rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(partial)
    return folder / corpus


def cases(names: Sequence[str] = (), tag: str = "", corpus: str = PUBLIC) -> Iterator[Case]:
    """Yield the cases of an archive, in order of their names."""
    folder = unpacked(corpus)
    for name, about in sorted(json.loads((folder / "index.json").read_text()).items()):
        tags = tuple(about["tags"])
        if (not names or name in names) and (not tag or tag in tags):
            yield Case(name, folder, tags)


def judge(case: Case, *, is_detailed: bool = False, is_forced: bool = False) -> Result:
    """Plan a case and compare it with what Pacemaker expects."""
    context = Context(Cib(), WallTime(0), "tests")
    expected = case.expected
    arguments = {"text": case.xml, "source": f"{case.name}.xml", "date": expected["date"]}
    outcome = registry.run("simulate", arguments, context)
    not_held: tuple[str, ...] = ()
    if outcome.is_refused and is_forced:
        not_held = _not_held(outcome)
        outcome = registry.run("simulate", arguments, replace(context, is_forced=True))
    if outcome.is_refused:
        failed = [item.message for item in outcome.reports if item.code == "SCHEDULER_FAILED"]
        if failed:
            return Result(case.name, error=failed[0], differs=LEVELS, tags=case.tags)
        return Result(case.name, not_held=_not_held(outcome), tags=case.tags)
    result = _compared(case.name, expected, outcome.data, is_detailed=is_detailed)
    result.not_held, result.tags, result.is_forced = not_held, case.tags, is_forced
    return result


def _not_held(outcome: Outcome) -> tuple[str, ...]:
    return tuple(f"{item.message} ({item.place})" for item in outcome.reports if item.severity == "error")


def _judged(work: tuple[Case, bool, bool]) -> Result:
    case, is_detailed, is_forced = work
    try:
        return judge(case, is_detailed=is_detailed, is_forced=is_forced)
    except Exception as error:  # noqa: BLE001 -- one broken case must not hide the others
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        return Result(case.name, error=text, differs=LEVELS, tags=case.tags)


def judge_all(
    chosen: Iterable[Case], *, is_detailed: bool = False, is_forced: bool = False, processes: int = PROCESSES
) -> list[Result]:
    """Judge cases in several processes; the results are in the order of the cases."""
    work = [(case, is_detailed, is_forced) for case in chosen]
    if len(work) < 2 * processes:
        return [_judged(item) for item in work]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        return list(pool.map(_judged, work, chunksize=8))


def _compared(name: str, expected: Mapping[str, Any], document: Any, *, is_detailed: bool) -> Result:
    view, differences = harness().View, harness().differences
    unique = set(expected["unique"])
    wanted, made = view(expected, unique).sets, view(document, unique).sets
    result = Result(name)
    differs = []
    for level in LEVELS:
        missing, extra = differences(wanted[level], made[level])
        if missing or extra:
            differs.append(level)
            if is_detailed and level in CORE:
                result.details += [f"{level} - {_line(item)}" for item in missing]
                result.details += [f"{level} + {_line(item)}" for item in extra]
    result.differs = tuple(differs)
    shared = set(wanted["L3"]) & set(made["L3"])
    common = [{pair for pair in side["L4"] if pair[0] in shared and pair[1] in shared} for side in (wanted, made)]
    result.missing_orders = len(common[0] - common[1])
    result.extra_orders = len(common[1] - common[0])
    return result


def _line(item: Sequence[Any]) -> str:
    if len(item) == 2 and isinstance(item[0], tuple):
        return f"{_line(item[0])}  BEFORE  {_line(item[1])}"
    return " ".join(str(word) for word in item if word not in ("", 0, None))


@dataclass(slots=True)
class Known:
    """What is known to differ: for each case the levels, and why."""

    levels: dict[str, frozenset[str]] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def read() -> "Known":
        known = Known()
        for line in KNOWN.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                name, levels, cause = line.split(maxsplit=2)
                known.levels[name] = frozenset(levels.split(","))
                known.causes[name] = cause
        return known

    def worse(self, result: Result) -> list[str]:
        """Return the levels that differ and are not recorded."""
        allowed = self.levels.get(result.name, frozenset())
        return [level for level in result.differs if level in CORE and level not in allowed]

    def better(self, result: Result) -> list[str]:
        """Return the levels that are recorded and do not differ any more."""
        recorded = self.levels.get(result.name, frozenset())
        return sorted(recorded - set(result.differs)) if result.is_covered else []


def totals(results: Sequence[Result], seconds: float) -> list[str]:
    """Write how many cases are covered, and how many of those agree, level by level."""
    covered = [result for result in results if result.is_covered]
    errors = sum(bool(result.error) for result in covered)
    lines = [f"{len(results)} cases, {len(covered)} covered, {errors} errors, {seconds:.1f} s"]
    for level in (*LEVELS, "all"):
        levels = CORE if level == "all" else (level,)
        agree = sum(not set(levels) & set(result.differs) for result in covered)
        lines.append(f"  {level:4} {agree:4} {100 * agree / max(1, len(covered)):6.1f} %")
    lines.append(f"  orders missing between common actions: {sum(r.missing_orders for r in covered)}")
    return lines


def obstacles(results: Sequence[Result]) -> list[str]:
    """Write what keeps cases from being covered, the most frequent first."""
    found: Counter[str] = Counter()
    for result in results:
        found.update({message.split(" is not supported")[0].split(" id=")[0] for message in result.not_held})
    return [f"  {count:4}  {what}" for what, count in found.most_common(30)]


def by_tag(results: Sequence[Result]) -> list[str]:
    """Write for each tag how many of its cases agree on all levels, the lowest share first, and where others differ."""
    found: dict[str, list[Result]] = {}
    for result in results:
        for tag in result.tags:
            found.setdefault(tag, []).append(result)
    rows = []
    for tag, tagged in found.items():
        firsts = Counter(result.first_difference for result in tagged if not result.agrees)
        share = 100 * sum(result.agrees for result in tagged) / len(tagged)
        begins = " ".join(f"{level or 'refused'}:{firsts[level]}" for level in ("", *CORE) if firsts[level])
        rows.append((share, tag, f"  {tag:32} {share:5.1f} % of {len(tagged):4}  {begins}".rstrip()))
    return [row[-1] for row in sorted(rows)]


def failing(results: Sequence[Result]) -> list[str]:
    """Write each differing case with the first level that differs."""
    lines = []
    for result in results:
        if result.first_difference:
            levels = ",".join(level for level in result.differs if level in CORE)
            unsafe = f"{result.missing_orders} orders missing; " if result.missing_orders else ""
            problem = result.error or f"{levels:12} {unsafe}{' '.join(result.tags)}"
            lines.append(f"  {result.first_difference} {result.name:44} {problem}")
    return sorted(lines)


def _details(results: Sequence[Result], known: Known, *, is_detailed: bool, is_chosen: bool) -> Iterator[str]:
    for result in results:
        if result.not_held and is_chosen:
            yield from (f"{result.name}: not held", *(f"    {each}" for each in result.not_held))
        if result.error or (is_detailed and result.first_difference):
            cause = known.causes.get(result.name, "not known")
            yield f"{result.name}: {result.error or ','.join(result.differs)}  [{cause}]"
            yield from (f"    {each}" for each in result.details[:60])


def percent(results: Sequence[Result]) -> float:
    """Return how many of all cases agree on all levels."""
    return 100 * sum(result.agrees for result in results) / max(1, len(results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", choices=(PUBLIC, RANDOM), help="only these; without it both")
    parser.add_argument("--cases", default="", help="only these, comma-separated")
    parser.add_argument("--tag", default="", help="only those with this tag")
    parser.add_argument("--forced", action="store_true", help="judge also what is not covered")
    parser.add_argument("--diff", action="store_true", help="show what differs")
    parser.add_argument("--failing", action="store_true", help="list the cases that differ, by the first level")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write which levels of which case differ")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="an earlier --json to compare with")
    parser.add_argument("-j", type=int, default=PROCESSES, dest="processes", help="how many processes")
    return parser.parse_args()


def _judge_corpus(corpus: str, given: argparse.Namespace) -> list[Result]:
    """Judge the chosen cases of one archive, and print what is to be said of them."""
    known, began = Known.read(), time.monotonic()
    names = [name for name in given.cases.split(",") if name]
    chosen = list(cases(names, given.tag, corpus))
    results = judge_all(chosen, is_detailed=given.diff, is_forced=given.forced, processes=given.processes)
    if not results:
        return results
    lines = list(_details(results, known, is_detailed=given.diff, is_chosen=bool(names)))
    if not names:
        lines += ["what the reader cannot hold, and in how many cases:", *obstacles(results)]
        lines += ["agreement by tag:", *by_tag(results)]
    lines += ["cases that differ:", *failing(results)] if given.failing else []
    lines += [f"{corpus}:", *totals(results, time.monotonic() - began)]
    worse = {result.name: known.worse(result) for result in results if not result.not_held}
    lines += [f"WORSE THAN RECORDED: {name} {','.join(levels)}" for name, levels in worse.items() if levels]
    lines += [f"better than recorded: {r.name} {','.join(known.better(r))}" for r in results if known.better(r)]
    print("\n".join(lines))
    return results


def _compare_with_baseline(results: Sequence[Result], baseline: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for result in results:
        before, now = set(baseline.get(result.name, ())), set(_differing(result))
        if now - before:
            yield f"worse than the baseline: {result.name} {','.join(sorted(now - before))}"
        if before - now:
            yield f"better than the baseline: {result.name} {','.join(sorted(before - now))}"


def _differing(result: Result) -> list[str]:
    return ["refused"] if not result.is_covered else [level for level in LEVELS if level in result.differs]


def main() -> int:
    given = _arguments()
    if absence():
        print(f"skipped: {absence()}")
        return 0
    judged = {corpus: _judge_corpus(corpus, given) for corpus in (PUBLIC, RANDOM) if given.corpus in (None, corpus)}
    results = [result for each in judged.values() for result in each]
    if given.baseline:
        print("\n".join(_compare_with_baseline(results, json.loads(given.baseline.read_text()))))
    if given.json:
        given.json.write_text(json.dumps({result.name: _differing(result) for result in results}))
    shares = " ".join(
        f"{key}_percent={percent(judged[corpus]):.1f}"
        for key, corpus in (("public", PUBLIC), ("random", RANDOM))
        if judged.get(corpus)
    )
    missing, extra = sum(r.missing_orders for r in results), sum(r.extra_orders for r in results)
    print(f"RESULT {shares} missing={missing} extra={extra}")
    known = Known.read()
    return 1 if any(known.worse(result) for result in results if not result.not_held) else 0


if __name__ == "__main__":
    sys.exit(main())
