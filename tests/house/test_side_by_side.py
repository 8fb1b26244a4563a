"""Workers of `make test` differ in what they take first, and together they run every test once."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import LONG_FILES, LONGEST, TESTS
from tests.side_by_side import DAEMONS, SideBySide, next_file

FILES = ["tests/processes/a.py", "tests/simulation/b.py", "tests/processes/c.py", "tests/unit/d.py"]


@pytest.mark.parametrize(
    ("left", "worker", "taken"),
    [
        (FILES, 0, "tests/simulation/b.py"),
        (FILES, 1, "tests/processes/a.py"),
        (FILES, 2, "tests/processes/a.py"),
        (FILES, 3, "tests/simulation/b.py"),
        (FILES[::2], 0, "tests/processes/a.py"),
        (FILES[1::2], 1, "tests/simulation/b.py"),
    ],
)
def test_a_worker_takes_the_first_file_of_its_kind_and_then_of_the_other(
    left: list[str], worker: int, taken: str
) -> None:
    assert next_file(left, worker) == taken


def test_what_is_said_to_be_long_is_there() -> None:
    assert [name for name in (*LONGEST, *LONG_FILES) if not (TESTS / name).exists()] == []


class Worker:
    """What xdist's scheduler knows of a process: what it was sent, and whether nothing more comes."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.sent: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_test_is_run_once_whatever_the_number_of_workers(count: int) -> None:
    tests = [f"{file.replace('.py', str(number))}.py::test_{each}"
             for number in range(5) for file in FILES for each in range(4)]  # fmt: skip
    config: Any = SimpleNamespace(
        getvalue=lambda _: ["popen"] * count, option=SimpleNamespace(loadscopereorder=False, debug=False)
    )
    scheduler = SideBySide(config)
    workers: list[Any] = [Worker(number) for number in range(count)]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    first = [tests[worker.sent[0]].startswith(DAEMONS) for worker in workers]
    done: Counter[str] = Counter()
    run = dict.fromkeys(range(count), 0)
    while scheduler.has_pending:
        for number, worker in enumerate(workers):
            if run[number] < len(worker.sent):
                index = worker.sent[run[number]]
                run[number] += 1
                done[tests[index]] += 1
                scheduler.mark_test_complete(worker, index)
    assert done == Counter(tests), "each once"
    assert first == [number % 3 != 0 for number in range(count)]
    assert all(worker.shutting_down for worker in workers)
