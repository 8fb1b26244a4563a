"""Which tests run which functions of the package: one that does not run a mutated function hardly notices the mutant.

`Reached` says it of the functions that somebody asks for. It is made by a run of the tests in which this module is a
plugin of pytest (`-p tests.mutants.reaching`): it looks at every call of a function, and writes down for each test
which of those that were asked for it made.

What is missed: a function whose result a cache keeps, or a shared fixture, is seen in the first test alone. So tests
are asked in this order, and a mutant that none of them notices is shown to all others before it counts as a survivor.
"""

import ast
import json
import os
import sys
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Self

import pytest

from haclusterd.model.records import dataclass
from tests.mutants.sites import PACKAGE, Place, first_line, functions_in, source_of

ASKED = "MUTANTS_ASKED"
"""In the environment of a run: the file that names the functions, as a list in JSON."""
WRITTEN = "MUTANTS_REACHED"
"""In the environment of a run: the directory for what it finds."""


@dataclass(frozen=True, slots=True)
class Reaching:
    """A test that runs a function."""

    test: str
    """As pytest names it, without its arguments."""
    seconds: float
    """How long its longest case took."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Which tests run which functions."""

    tests: Mapping[str, Sequence[Reaching]]
    """By the function's key."""

    def by(self, place: Place) -> Sequence[Reaching]:
        """Return the tests that run the function a place is in, the quickest first."""
        return self.tests.get(function_key(place), ())

    def as_rows(self) -> Sequence[tuple[str, str, float]]:
        """Return it as rows of function, test and seconds."""
        return [(key, each.test, each.seconds) for key, tests in self.tests.items() for each in tests]

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, str, float]]) -> Self:
        """Return what `as_rows` wrote; the quickest test of a function is its first."""
        tests: dict[str, list[Reaching]] = {}
        for key, test, seconds in sorted(rows, key=lambda row: row[2]):
            tests.setdefault(key, []).append(Reaching(test, seconds))
        return cls(tests)


def function_key(place: Place) -> str:
    """Return the innermost function around a place as `path:line`; of what is in no function, the path alone."""
    line = source_of(place.path)[: place.begin].count(b"\n") + 1
    around = [node for _, node in functions_in(place.path) if _has(node, line)]
    return f"{place.path}:{first_line(around[-1])}" if around else str(place.path)


def _has(function: ast.FunctionDef | ast.AsyncFunctionDef, line: int) -> bool:
    return function.lineno <= line <= (function.end_lineno or function.lineno)


def load_reached(directory: Path) -> Reached:
    """Return what the workers of a run have written into a directory."""
    seconds: dict[tuple[str, str], float] = {}
    for file in sorted(directory.glob("*.jsonl")):
        for row in map(json.loads, file.read_text().splitlines()):
            for key in row["functions"]:
                pair = key, row["test"]
                seconds[pair] = max(seconds.get(pair, 0.0), row["seconds"])
    return Reached.from_rows((key, test, took) for (key, test), took in seconds.items())


def in_portions(tests: Iterable[Reaching], budgets: Sequence[float]) -> Sequence[Sequence[str]]:
    """Divide tests into portions of so many seconds each, and one of those that are left; none is empty."""
    portions: list[list[str]] = [[]]
    left = list(budgets)
    spent = 0.0
    for each in tests:
        if left and portions[-1] and spent + each.seconds > left[0]:
            left.pop(0)
            portions.append([])
            spent = 0.0
        portions[-1].append(each.test)
        spent += each.seconds
    return [portion for portion in portions if portion]


class _Recorder:
    """Writes down which functions each test calls."""

    def __init__(self, asked: Sequence[str], file: Path) -> None:
        self._asked = frozenset(asked)
        self._file = file
        self._package = f"{PACKAGE}{os.sep}"
        self._keys: dict[CodeType, str] = {}
        self._called: set[CodeType] = set()
        self._has_failed = False
        threading.settrace(self._call)

    def _call(self, frame: FrameType, event: str, argument: object) -> None:
        self._called.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Look at the calls of one test and its fixtures; one that fails as things are can notice nothing."""
        self._called.clear()
        self._has_failed = False
        began = time.monotonic()
        sys.settrace(self._call)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            if not self._has_failed:
                self._write(item.nodeid.partition("[")[0], time.monotonic() - began)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a failure."""
        self._has_failed |= report.failed

    def _write(self, test: str, seconds: float) -> None:
        keys = {self._key(code) for code in self._called.copy()} & self._asked
        if keys:
            row = {"test": test, "seconds": round(seconds, 3), "functions": sorted(keys)}
            with self._file.open("a") as file:
                file.write(json.dumps(row) + "\n")

    def _key(self, code: CodeType) -> str:
        key = self._keys.get(code)
        if key is None:
            inside = code.co_filename.startswith(self._package)
            key = f"{code.co_filename.removeprefix(self._package)}:{code.co_firstlineno}" if inside else ""
            self._keys[code] = key
        return key


def pytest_configure(config: pytest.Config) -> None:
    """Begin to look, in a run that was asked to."""
    if ASKED not in os.environ or WRITTEN not in os.environ:
        return
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker or not config.getoption("numprocesses", None):
        asked = json.loads(Path(os.environ[ASKED]).read_text())
        config.pluginmanager.register(_Recorder(asked, Path(os.environ[WRITTEN]) / f"{worker or 'alone'}.jsonl"))
