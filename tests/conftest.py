"""What holds for every test: examples that come again, and ports that no other worker draws."""

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from haclusterd.entry_points.free_ports import GIVEN, candidates
from tests.examples import examples, is_whole
from tests.sampled_cases import left_out
from tests.side_by_side import SideBySide
from tests.skipped_tests import summary

TESTS = Path(__file__).parent

# A pause of the machine says nothing about the code: no test is judged by its time.
settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("whole", settings.get_profile("new"), derandomize=True)
settings.register_profile("repeated", settings.get_profile("whole"), max_examples=examples(100))
settings.load_profile("repeated")


def ports_of(worker: int, workers: int, ports: Sequence[int]) -> str:
    """Return the share of one of several that run side by side, as the environment names it."""
    size = len(ports) // workers
    share = ports[worker * size : (worker + 1) * size]
    return f"{share[0]}-{share[-1]}"


if GIVEN not in os.environ and "PYTEST_XDIST_WORKER" in os.environ:
    name, count = os.environ["PYTEST_XDIST_WORKER"], os.environ["PYTEST_XDIST_WORKER_COUNT"]
    os.environ[GIVEN] = ports_of(int(name.removeprefix("gw")), int(count), candidates())


GARBAGE_FROM = 20_000
"""New objects from which on garbage is looked for; a simulated cluster makes and keeps many."""
LONGEST = ("processes", "simulation", "agents", "property", "conformance", "mutants", "fuzzing")
"""Directories of tests whose files take long, the longest first."""
LONG_FILES = (
    "processes/test_wheel.py", "processes/test_life_cycle.py", "processes/test_watchdog.py",
    "processes/test_daemon_life.py", "processes/test_documented_commands.py", "processes/test_leadership.py",
    "processes/test_certificates.py", "processes/test_pacer.py", "processes/test_node_health.py",
    "simulation/test_copies.py", "simulation/test_filters.py", "simulation/test_fencing_loops.py",
    "simulation/test_rules.py", "simulation/test_half_dead_nodes.py", "agents/test_gpu_health.py",
    "agents/test_contract.py", "agents/test_postgres.py", "agents/test_crm_agent.py", "agents/test_gpu_watcher.py",
)  # fmt: skip
"""Files that take longest in their directories (`make cost`), the longest first: none of them may be the last to begin.
"""


LEFT_OUT = pytest.StashKey[int]()
"""How many cases of functions that are sampled this run leaves to `make soak`."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the cases of sampled functions out that are not drawn, and order what is left.

    The longest files come first: a worker that came to such a file last would keep the others waiting. Those whose
    tests share a running cluster stand together, so that there is one for each worker. See also tests/side_by_side.py.
    """
    out = frozenset() if is_whole() or any("::" in each for each in config.args) else left_out(items)
    config.stash[LEFT_OUT] = len(out)
    if out:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in out])
        items[:] = [item for item in items if item.nodeid not in out]
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = sharing(items)
        items.sort(key=lambda item: _turn(item.path.relative_to(TESTS), is_shared=item.path in shared))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SideBySide | None:
    """Distribute files so that daemons are waited for while something else is computed; None: xdist's own way."""
    return SideBySide(config, log) if config.getvalue("dist") == "loadfile" else None


def sharing(items: Sequence[pytest.Item]) -> frozenset[Path]:
    """Return the files with tests that share a running cluster."""
    return frozenset(item.path for item in items if "running" in getattr(item, "fixturenames", ()))


def _turn(file: Path, *, is_shared: bool) -> tuple[int, bool, int]:
    return _place(file.parts[0], LONGEST), not is_shared, _place(str(file), LONG_FILES)


def _place(name: str, names: Sequence[str]) -> int:
    return names.index(name) if name in names else len(names)


def pytest_collection_finish() -> None:
    """Let collections of garbage be rare, and pass over the thousands of tests that stay until the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_FROM, 20, 20)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the number of cases that were left out from a worker; each worker collects all tests."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the number over from a worker."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in the last lines what was left out, how much was skipped, and for lack of what."""
    if left := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"left to make soak: {left} cases")
    reports = terminalreporter.stats.get("skipped", [])
    for line in summary(str(each.longrepr[2]) for each in reports if isinstance(each.longrepr, tuple)):
        terminalreporter.write_line(line)
