"""Which tests a module has: `python -m tests.house.tests_of haclusterd/machines/executing/executor.py`.

The first that finds some counts: a test file with the module's name; test files that import the module, or that import
what the tests share and what imports it; the row of `THROUGH` for its room, or for the module itself.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
THROUGH: Mapping[str, tuple[str, ...]] = {
    "haclusterd.adapters.agent_checks": ("tests/agents/test_crm_agent.py",),
    "haclusterd.adapters.control": ("tests/unit/adapters/control", "tests/processes/test_api.py"),
    "haclusterd.adapters.history": ("tests/unit/adapters/history",),
    "haclusterd.adapters.machine": ("tests/processes",),
    "haclusterd.adapters.network": ("tests/unit/adapters/network", "tests/unit/adapters/raft"),
    "haclusterd.adapters.pacer": ("tests/unit/adapters/pacer", "tests/processes/test_pacer.py"),
    "haclusterd.adapters.processes": ("tests/unit/adapters/processes", "tests/processes"),
    "haclusterd.agents": ("tests/agents",),
    "haclusterd.cib": ("tests/unit/cib/test_apply.py",),
    "haclusterd.cli": ("tests/unit/cli", "tests/unit/entry_points/test_crm.py"),
    "haclusterd.cli.render": ("tests/golden/test_crm.py",),
    "haclusterd.commands": ("tests/unit/commands", "tests/golden/test_crm.py"),
    "haclusterd.entry_points": ("tests/processes", "tests/unit/entry_points", "tests/unit/adapters/processes"),
    "haclusterd.formats": ("tests/unit/formats",),
    "haclusterd.formats.cib_xml": ("tests/unit/formats/cib_xml",),
    "haclusterd.formats.crm": ("tests/unit/formats/crm", "tests/golden/test_crm.py"),
    "haclusterd.formats.policy": ("tests/unit/formats/policy",),
    "haclusterd.machines": ("tests/unit/machines",),
    "haclusterd.model": ("tests/unit/model", "tests/unit/scheduler"),
    "haclusterd.protocol": ("tests/unit/protocol", "tests/unit/adapters/processes"),
    "haclusterd.raft": ("tests/unit/raft", "tests/simulation"),
    "haclusterd.runtime": ("tests/unit/runtime", "tests/processes"),
    "haclusterd.scheduler": ("tests/unit/scheduler", "tests/golden/test_scheduler.py", "tests/conformance"),
    "haclusterd.simulator": ("tests/simulation", "tests/unit/simulator"),
    "haclusterd.verbs": ("tests/unit/cli", "tests/unit/commands", "tests/golden/test_examples_of_commands.py"),
}
"""Rooms whose modules answer together, by their longest name: what is written there is shown by these tests."""
PROGRAMS = {"haclusterd.agents": ("resource_agents", "alert_agents", "shims")}
"""Rooms that the tests of their row reach only by programs in these directories, which they start."""
NAMED = re.compile(r"(?:from (haclusterd[\w.]*) import (\w+))|(haclusterd(?:\.\w+)+)")
"""A module in a program that is run as another process."""


def dotted(path: Path) -> str:
    """Return the name by which a file of this checkout is imported."""
    parts = path.relative_to(CHECKOUT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def files() -> Mapping[str, Path]:
    """Return the files of the package and of its tests by their dotted names."""
    return {dotted(path): path for room in ("haclusterd", "tests") for path in sorted((CHECKOUT / room).rglob("*.py"))}


@cache
def by_file_name() -> Mapping[str, Set[str]]:
    """Return the modules of the package by the names of their files, by which some are started."""
    found = defaultdict(set)
    for name, path in files().items():
        if name.startswith("haclusterd."):
            found[path.name].add(name)
    return found


@cache
def reached_in(text: str) -> frozenset[str]:
    """Return what a program imports of the package and the tests, or names in a program that it starts."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= by_file_name().get(node.value, frozenset())
            for module, name, whole in NAMED.findall(node.value) if "haclusterd" in node.value else ():
                found |= {f"{module}.{name}", module, whole}
    return frozenset(found & files().keys())


@cache
def reached(name: str) -> frozenset[str]:
    """Return what a file reaches in one step."""
    return reached_in(files()[name].read_text())


@cache
def reached_at_last(name: str) -> frozenset[str]:
    """Return what a file reaches by any number of steps."""
    found: set[str] = set()
    todo = [name]
    while todo:
        new = reached(todo.pop()) - found
        found |= new
        todo += new
    return frozenset(found)


@cache
def readers() -> Mapping[str, Set[str]]:
    """Return the files of the tests that reach a file in one step; those of the house only read the text of all."""
    found = defaultdict(set)
    for name in files():
        if name.startswith("tests.") and not name.startswith("tests.house."):
            for each in reached(name):
                found[each].add(name)
    return found


def is_test(name: str) -> bool:
    """Say whether pytest collects a file."""
    return name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")


@cache
def has_behaviour(path: Path) -> bool:
    """Say whether a module has a function with a body; protocols, tables and plain data have none."""
    todo: list[ast.stmt] = list(ast.parse(path.read_text()).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return True
        bases = node.bases if isinstance(node, ast.ClassDef) else []
        is_protocol = any(getattr(each, "id", "") == "Protocol" for each in bases)
        for part in () if is_protocol else ("body", "orelse", "finalbody"):
            todo += getattr(node, part, [])
    return False


@cache
def files_by_stem() -> Mapping[str, Set[str]]:
    """Return the test files by what stands behind `test_` in their names."""
    found = defaultdict(set)
    for name in files():
        if is_test(name):
            found[name.rpartition(".test_")[2]].add(name)
    return found


def _by_name(module: str) -> Iterator[str]:
    storey, _, stem = module.removeprefix("haclusterd.").rpartition(".")
    for name in files_by_stem().get(stem, ()):
        if not name.startswith("tests.unit.") or name.startswith(f"tests.unit.{storey.partition('.')[0]}."):
            yield name


def _by_import(module: str) -> Iterator[str]:
    direct = readers().get(module, frozenset())
    yield from filter(is_test, direct)
    if not any(map(is_test, direct)):
        yield from (name for each in direct for name in readers().get(each, ()) if is_test(name))


def row_of(module: str) -> str:
    """Return the longest name of `THROUGH` that a module is in, or nothing."""
    return max((row for row in THROUGH if f"{module}.".startswith(f"{row}.")), key=len, default="")


def _by_row(module: str) -> Iterator[str]:
    row = row_of(module)
    by_program = any(module in reached_in(text) for text in programs(row))
    for place in THROUGH.get(row, ()):
        for name in files_below(place):
            if by_program or module in reached_at_last(name):
                yield name


@cache
def programs(row: str) -> tuple[str, ...]:
    """Return the texts of the programs in Python by which the tests of a row reach its room."""
    paths = [path for directory in PROGRAMS.get(row, ()) for path in sorted((CHECKOUT / directory).iterdir())]
    texts = [path.read_text() for path in paths if path.is_file()]
    used = [text for text in texts if text.startswith("#!") and "python" in text.partition("\n")[0]]
    inner = {each for text in used for each in reached_in(text)}
    return (*used, *(files()[name].read_text() for each in inner for name in (each, *reached_at_last(each))))


@cache
def files_below(place: str) -> tuple[str, ...]:
    """Return a test file, or those of a directory."""
    path = CHECKOUT / place
    return tuple(name for name, each in files().items() if is_test(name) and (each == path or path in each.parents))


@cache
def found_for(module: str) -> tuple[str, list[str]]:
    """Return how the tests of a module are found, and their paths; none for one without."""
    for how, found in (("name", _by_name), ("import", _by_import), ("room", _by_row)):
        if names := sorted(set(found(module))):
            return how, [str(files()[name].relative_to(CHECKOUT)) for name in names]
    return "", []


def main() -> int:
    """Print the tests of each module that is named, as paths or in dots."""
    for word in sys.argv[1:]:
        module = dotted((CHECKOUT / word).resolve()) if word.endswith(".py") else word
        how, found = found_for(module)
        print(f"# {module}: by {how}" if found else f"# {module}: none")
        print(*found, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
