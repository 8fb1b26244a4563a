"""Tests are found by a module's name, share nothing but builders, and say what was skipped."""

import ast
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.house.statements import statements
from tests.house.tests_of import CHECKOUT, PROGRAMS, THROUGH, files, found_for, has_behaviour, is_test, row_of
from tests.sampled_cases import left_out
from tests.skipped_tests import NOT_A_LACK, lack_of, summary


def imports_of_tests(text: str) -> list[str]:
    """Return what a file imports of files with tests."""
    found = []
    for node in statements(ast.parse(text).body):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "tests":
            found += [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        elif isinstance(node, ast.Import):
            found += [each.name for each in node.names]
    return [name for name in found if is_test(name) or any(part.startswith("test_") for part in name.split(".")[1:-1])]


def test_nothing_is_imported_from_a_file_with_tests() -> None:
    """What two share stands in a module of its own, where somebody finds it who changes it."""
    tests = [path for name, path in files().items() if name.startswith("tests.")]
    found = {str(path.relative_to(CHECKOUT)): names for path in tests if (names := imports_of_tests(path.read_text()))}
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "from tests.unit.cib.test_apply import Log",
        "from tests.unit.cib import test_apply",
        "import tests.unit.cib.test_apply as applied",
        "def build():\n    from tests.golden.test_tools import busy\n",
    ],
)
def test_an_import_from_a_file_with_tests_is_caught(text: str) -> None:
    assert imports_of_tests(text)


def modules() -> Iterator[tuple[str, str]]:
    """Yield each module whose behaviour is to be shown, with how its tests are found."""
    for name, path in files().items():
        if name.startswith("haclusterd.") and not path.name.startswith("__"):
            how = found_for(name)[0]
            # A module that is named by a test has behaviour, or asks for nothing: it need not be read.
            if how in ("name", "import") or has_behaviour(path):
                yield name, how


def test_every_module_has_tests_that_are_found_by_its_name() -> None:
    assert [name for name, how in modules() if not how] == [], "see tests/house/tests_of.py"


def test_every_row_that_leads_to_tests_is_needed() -> None:
    through = {row_of(name) for name, how in modules() if how == "room"}
    assert set(THROUGH) - through == set()
    assert [place for places in THROUGH.values() for place in places if not (CHECKOUT / place).exists()] == []
    assert set(PROGRAMS) <= set(THROUGH)


@pytest.mark.parametrize(
    ("module", "how", "expected"),
    [
        ("haclusterd.machines.executing.executor", "name", "tests/unit/machines/test_executor.py"),
        ("haclusterd.cib.activity", "import", "tests/unit/cib/test_apply.py"),
        ("haclusterd.scheduler.assign.rivals", "room", "tests/golden/test_scheduler.py"),
        ("haclusterd.agents.gpu_inventory", "room", "tests/agents/test_gpu_watcher.py"),
        ("haclusterd.entry_points.nothing", "", None),
    ],
)
def test_the_tests_of_a_module_are_found(module: str, how: str, expected: str | None) -> None:
    found, paths = found_for(module)
    assert found == how
    assert expected is None or expected in paths


def reasons(path: Path) -> Iterator[str]:
    """Yield what tests of a file give as reasons for being skipped, as far as it is written there."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if "skip" in text else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("skip", "skipif"):
            given = [word.value for word in node.keywords if word.arg == "reason"]
            given += node.args[:1] if node.func.attr == "skip" else []
            for each in given:
                if isinstance(each, ast.Constant):
                    yield str(each.value)
                elif isinstance(each, ast.JoinedStr):
                    yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in each.values)


def test_every_reason_for_a_skip_names_what_is_missing() -> None:
    found = [reason for path in files().values() if "tests" in path.parts for reason in reasons(path)]
    assert len(found) > 15
    known = [reason for reason in found if lack_of(reason) or any(each in reason for each in NOT_A_LACK)]
    assert [reason for reason in found if reason not in known] == []


@pytest.mark.parametrize(
    ("reason", "lack"),
    [
        ("Skipped: scores and cases not found in ../shared/conformance", "../shared"),
        ("Skipped: not there: corpus/public", "../shared"),
        ("Skipped: crm_simulate is not installed (apt-get install pacemaker-cli-utils)", "crm_simulate"),
        ("Skipped: needs root, pgsql and pg_ctl", "pgsql and pg_ctl"),
        ("Skipped: not installed: sbd, fence_sbd", "sbd, fence_sbd"),
        ("Skipped: forging an address is root's", "root"),
        ("Skipped: Pacemaker does not plan this CIB", ""),
    ],
)
def test_what_a_test_was_skipped_for_is_named(reason: str, lack: str) -> None:
    assert lack_of(reason) == lack


def test_what_was_skipped_is_counted() -> None:
    shared, peer, other = "not found in ../shared/x", "curl is not installed", "Pacemaker does not plan this CIB"
    assert summary([peer, shared, shared, other]) == [
        "skipped for lack of: ../shared 2, curl 1",
        "skipped because they do not apply: 1",
    ]
    assert summary([]) == []


class Case:
    """As much of a test of pytest as a sample is drawn by."""

    def __init__(self, function: str, one_in: int, **parameters: str) -> None:
        self.nodeid = f"{function}[{'-'.join(parameters.values())}]"
        self.callspec = SimpleNamespace(params=parameters)
        self.one_in = one_in

    def get_closest_marker(self, _name: str) -> Any:
        return SimpleNamespace(args=(self.one_in,)) if self.one_in else None


def test_a_sample_has_its_share_of_the_cases_and_every_value_of_each_parameter() -> None:
    phases, faults = [f"phase{number}" for number in range(8)], ["cut", "hang", "power"]
    cases: list[Any] = [Case("f", 3, phase=phase, fault=fault) for phase in phases for fault in faults]
    other = Case("g", 0, phase="phase1", fault="cut")
    left = [case for case in cases if case.nodeid not in left_out([*cases, other])]
    assert len(left) == len(cases) // 3
    assert {value for case in left for value in case.callspec.params.values()} == {*phases, *faults}
    assert other.nodeid not in left_out([*cases, other])
    assert left_out(cases) == left_out(list(reversed(cases)))


def test_of_seeds_a_share_is_drawn_however_many_there_are() -> None:
    cases: list[Any] = [Case("f", 2, seed=str(seed)) for seed in range(13)]
    assert len(cases) - len(left_out(cases)) == 7
