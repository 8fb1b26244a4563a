"""A plugin of pytest that says what tests cost: `make cost`, or `pytest -p tests.cost_of_tests PATH`.

The cost of a test is the processor time, in seconds, of this process and of its children that ended while the test was
set up, ran and was torn down; the time that passed meanwhile stands beside it. What a fixture of a module costs is
counted with the first and the last of its tests, so the sum of a file is right.
"""

import resource
import time
from collections import defaultdict
from collections.abc import Generator

import pytest

from haclusterd.model.records import dataclass

SHOWN = 50


@dataclass(slots=True)
class Cost:
    """Seconds of a test, or of all tests of a file."""

    processor_s: float = 0.0
    passed_s: float = 0.0

    def add(self, other: "Cost") -> None:
        self.processor_s += other.processor_s
        self.passed_s += other.passed_s


costs: dict[str, Cost] = {}


def _now() -> Cost:
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return Cost(sum(each.ru_utime + each.ru_stime for each in used), time.monotonic())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    begun = _now()
    result = yield
    ended = _now()
    costs[item.nodeid] = Cost(ended.processor_s - begun.processor_s, ended.passed_s - begun.passed_s)
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    files: defaultdict[str, Cost] = defaultdict(Cost)
    for test, cost in costs.items():
        files[test.partition("::")[0]].add(cost)
    for title, table in (("files", files), ("tests", costs)):
        terminalreporter.section(f"{title} by processor time")
        terminalreporter.write_line("processor_s  passed_s")
        for name, cost in sorted(table.items(), key=lambda item: -item[1].processor_s)[:SHOWN]:
            terminalreporter.write_line(f"{cost.processor_s:11.2f} {cost.passed_s:9.2f}  {name}")
