"""Who notices a mutant: unit tests, directed scenarios, property tests, the swarm; each in a copy of the checkout."""

import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import pytest

from haclusterd.model.records import dataclass
from tests.mutants.reaching import ASKED, WRITTEN, Reached, load_reached
from tests.mutants.sites import PACKAGE, Place, mutated, source_of

CHECKOUT = PACKAGE.parent
COPIED = (
    "haclusterd", "tests", "policies", "resource_agents", "docs", "systemd", "shims", "monitoring", "pyproject.toml",
)  # fmt: skip
_NOTHING_WAS_ASKED = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED)
LIMIT_S = 900
"""A level that takes so much processor time never ends: it has noticed. How busy the machine is says nothing."""
STANDSTILL_S = 3600
"""Of real time: so long one test may wait for what never comes."""


class Level(StrEnum):
    """What may notice a mutant."""

    UNITS = "units"
    SCENARIOS = "scenarios"
    PROPERTIES = "properties"
    """The property tests with all their examples: they take longest, so they are asked last."""
    SWARM = "swarm"


class Verdict(StrEnum):
    """What a level says of a mutant."""

    NOTICED = "noticed"
    SURVIVED = "survived"


_RAFT = ("raft/*.py", "adapters/raft/*.py")
_UNITS: Sequence[tuple[Sequence[str], Sequence[str]]] = (
    (
        _RAFT,
        (
            "unit/raft/test_*.py",
            "unit/adapters/raft/test_*.py",
            "fuzzing/test_journal.py",
        ),
    ),
    (("adapters/*/*.py", "entry_points/*.py"), ("unit/adapters/*/test_*.py", "unit/entry_points/test_*.py")),
    (("commands/access/*.py",), ("unit/commands/access/test_*.py",)),
    (("commands/*.py", "commands/*/*.py"), ("unit/commands/**/test_*.py",)),
    (("agents/*.py", "agents/*/*.py"), ("agents/test_*.py",)),
    (("api/*.py",), ("unit/api/test_*.py",)),
    (("protocol/*.py",), ("unit/protocol/test_*.py", "unit/machines/test_*.py", "unit/adapters/pacer/test_*.py")),
    (
        ("scheduler/*/*.py", "scheduler/*.py"),
        ("unit/scheduler/**/test_*.py", "golden/test_*.py", "property/test_s*.py"),
    ),
    (
        ("*/*.py",),
        (
            "unit/machines/test_*.py",
            "unit/cib/**/test_*.py",
            "unit/model/test_*.py",
            "unit/runtime/test_*.py",
            "property/test_*.py",
        ),
    ),
)
"""Of mutated files, which tests are their units; the first row that fits counts."""
_SCENARIOS = ("simulation/test_*.py",)
_NO_SCENARIO = "simulation/test_*swarm.py"
_PROPERTIES = "property"


def files_for(path: Path, level: Level, checkout: Path = CHECKOUT) -> Sequence[Sequence[str]]:
    """Return the test files of a level for a file of the package: the nearest first."""
    if level is Level.SCENARIOS:
        patterns: Sequence[str] = _SCENARIOS
    else:
        patterns = next(tests for files, tests in _UNITS if any(path.match(each) for each in files))
    tests = checkout / "tests"
    found = {file for pattern in patterns for file in tests.glob(pattern)} - set(tests.glob(_NO_SCENARIO))
    if level is not Level.SCENARIOS:
        found = {file for file in found if (file.parent.name == _PROPERTIES) is (level is Level.PROPERTIES)}
    name = f"{path.parent.name}.{path.stem}"
    near = {file for file in found if path.stem in file.stem or name in file.read_text()}
    nearest = {file for file in near if path.stem in file.stem}
    units = {file for file in found - near if "unit" in file.parts}
    groups = (sorted(nearest), sorted(near - nearest), sorted(units), sorted(found - near - units))
    return [[str(file.relative_to(checkout)) for file in group] for group in groups if group]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a level said, and how long it took."""

    verdict: Verdict
    seconds: float
    words: str
    """The test or the rule that objected."""


class Workplace:
    """A copy of the checkout in which one mutant at a time is judged."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in COPIED:
            source = CHECKOUT / name
            if source.is_dir():
                shutil.copytree(source, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, directory / name)
        self._prepare_bytecode()

    def _prepare_bytecode(self) -> None:
        """Have everything compiled once: a run with a mutant compiles that file only.

        Of the package, bytecode that is held against a hash of the source (PEP 552): a mutant may be as long as what it
        replaces, and as old.
        """
        compiles = ("-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "haclusterd")
        collects = (*_PYTEST, "--collect-only", "tests")
        for command, environment in ((compiles, {}), (collects, {"PYTHONDONTWRITEBYTECODE": ""})):
            self._run(command, LIMIT_S, environment)

    @contextmanager
    def with_mutant(self, place: Place, after: str) -> Iterator[None]:
        """Have a mutant in the copy for as long as the block runs."""
        file = self.directory / "haclusterd" / place.path
        file.write_bytes(mutated(place, after))
        try:
            yield
        finally:
            file.write_bytes(source_of(place.path))

    def asks(self, tests: Sequence[str]) -> Judgement:
        """Ask tests, by their pytest ids, about what is in the copy; when one is not there any more, none is asked."""
        began = time.monotonic()
        code, output = self._run((*_PYTEST, *tests), LIMIT_S)
        says_nothing = code in (0, *_NOTHING_WAS_ASKED)
        verdict = Verdict.SURVIVED if says_nothing else Verdict.NOTICED
        return Judgement(verdict, time.monotonic() - began, "" if says_nothing else _words(output, code))

    def reach(self, keys: Sequence[str], files: Sequence[str]) -> Reached:
        """Run test files as they are, and return which of them run which of these functions (`function_key`)."""
        with tempfile.TemporaryDirectory() as directory:
            asked = Path(directory) / "asked.json"
            asked.write_text(json.dumps(keys))
            environment = {ASKED: str(asked), WRITTEN: directory}
            workers = str(len(os.sched_getaffinity(0)))
            command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants.reaching",
                       "-m", "not processes", "-n", workers, "--dist", "worksteal", "-o", f"timeout={STANDSTILL_S}",
                       *files)  # fmt: skip
            code, output = self._run(command, STANDSTILL_S, environment)
            if code != 0:
                print(f"the tests do not pass as they are: {output[-2000:]}", file=sys.stderr, flush=True)
            return load_reached(Path(directory))

    def judge(
        self, path: Path, level: Level, *, seed: int, swarm_seconds: int, first: Sequence[str] = ()
    ) -> Judgement:
        """Ask one level about what is in the copy; `path` is the file that was changed.

        `first`: those of its tests, by their pytest ids, that are asked before all others.
        """
        began = time.monotonic()
        if level is Level.SWARM:
            commands = [_swarm(path, seed, swarm_seconds)]
        else:
            groups = (first, *files_for(path, level, self.directory))
            commands = [(*_PYTEST, *group) for group in groups if group]
        code, output = 0, ""
        for command in commands:
            code, output = self._run(command, LIMIT_S + swarm_seconds)
            if code in _NOTHING_WAS_ASKED:
                raise RuntimeError(f"{' '.join(command)}: {output[-2000:]}")
            if code != 0:
                break
        verdict = Verdict.SURVIVED if code == 0 else Verdict.NOTICED
        return Judgement(verdict, time.monotonic() - began, "" if code == 0 else _words(output, code))

    def _run(
        self, command: Sequence[str], limit_s: float, environment: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        return run_limited(command, self.directory, limit_s, {**_environment(), **(environment or {})})


def run_limited(
    command: Sequence[str], directory: Path, limit_s: float, environment: Mapping[str, str]
) -> tuple[int, str]:
    """Run Python in a directory; return its exit code, -SIGXCPU after so much processor time, and its output."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (math.ceil(limit_s), math.ceil(limit_s) + 1))
        try:
            code = process.wait(limit_s + STANDSTILL_S)
        except subprocess.TimeoutExpired:
            code = -signal.SIGXCPU
        finally:
            # Also what a broken program left running in its session.
            _kill_group(process.pid)
            process.wait()
        output.seek(0)
        return code, output.read()


_PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not processes", "--no-header", "--tb=line",
           "--hypothesis-profile=whole", "-o", f"timeout={STANDSTILL_S}")  # fmt: skip


def _swarm(path: Path, seed: int, seconds: int) -> Sequence[str]:
    is_store = any(path.match(each) for each in _RAFT)
    module = "tests.simulation.store_swarm" if is_store else "haclusterd.simulator"
    limits = ("--seconds", str(seconds), "--seed", str(seed), "--jobs", "1", "--shrink-seconds", "0")
    return ("-m", module, "swarm", *limits)


def _environment() -> Mapping[str, str]:
    """Return an environment in which nothing is written beside the sources: equal sizes and times would be believed."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _words(output: str, code: int) -> str:
    """Return the line that says what was found."""
    if code == -signal.SIGXCPU:
        return f"still running after {LIMIT_S} s"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marks = ("FAILED ", "ERROR ", "violation", "broke", "breaks")
    for line in lines:
        if line.startswith(marks[:2]) or any(mark in line for mark in marks[2:]):
            return line.removeprefix("FAILED ")[:160]
    return lines[-1][:160] if lines else f"exit code {code}"
