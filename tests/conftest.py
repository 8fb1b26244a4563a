"""What holds for every test: examples that come again, and ports that no other worker draws."""

import gc
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from haclusterd.entry_points.free_ports import GIVEN, candidates
from tests.examples import examples
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


LONGEST = ("processes", "simulation", "property", "fuzzing", "conformance", "mutants", "agents")
"""Directories of tests whose files take long, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let workers begin with the longest files: one that came to such a file last would keep the others waiting.

    Those whose tests share a running cluster stand together, so that there is one for each worker.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = sharing(items)
        items.sort(key=lambda item: (_place(item.path.relative_to(TESTS).parts[0]), item.path not in shared))


def sharing(items: Sequence[pytest.Item]) -> frozenset[Path]:
    """Return the files with tests that share a running cluster."""
    return frozenset(item.path for item in items if "running" in getattr(item, "fixturenames", ()))


def _place(directory: str) -> int:
    return LONGEST.index(directory) if directory in LONGEST else len(LONGEST)


def pytest_collection_finish() -> None:
    """Let collections of garbage pass over the thousands of tests that stay until the end."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in the last lines how much was skipped, and for lack of what."""
    reports = terminalreporter.stats.get("skipped", [])
    for line in summary(str(each.longrepr[2]) for each in reports if isinstance(each.longrepr, tuple)):
        terminalreporter.write_line(line)
