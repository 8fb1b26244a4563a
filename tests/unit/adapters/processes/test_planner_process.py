"""The planning worker as a real process: it follows, it plans, and whatever ends it is an answer."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.adapters.processes.failed_plans import KEPT, FailedPlans
from haclusterd.adapters.processes.planner_process import COMMAND, PlannerProcess
from haclusterd.agents.process_table import list_pids, read_stat
from haclusterd.cib import commands
from haclusterd.cib.apply import apply
from haclusterd.cib.codec import decode_cib, encode_envelope, iter_fragments
from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.model.cluster import Cib
from haclusterd.model.graph import Plan
from haclusterd.model.ids import NodeName, RequestId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.planning import PlanAnswer
from haclusterd.model.records import replace
from haclusterd.ports.store import Applied
from haclusterd.scheduler.schedule import schedule
from tests.benchmarks.generated_cibs import Size, cold

NOW = WallTime(1_700_000_000_000)
CIB = read_cib(cold(Size(4, 60)), "cib.xml").cib
SILENT = (sys.executable, "-c", "import sys; sys.stdin.buffer.read()")


class Bench:
    """A planner, its answers, and the CIB that its owner has."""

    def __init__(self, clock: BoottimeClock, directory: Path, **options) -> None:
        self.answers: list[PlanAnswer] = []
        self.cib = CIB
        self.directory = directory
        failed = FailedPlans(directory, iter_fragments)
        loop = asyncio.get_running_loop()
        self.planner = PlannerProcess(clock, loop, fragments=iter_fragments, failed=failed, **options)
        self.planner.start(self.answers.append)

    def apply(self, command: commands.Command) -> None:
        index = self.cib.index + 1
        envelope = commands.Envelope(RequestId(f"n1:x:{index}"), NodeName("n1"), NOW, command)
        self.cib = apply(self.cib, envelope, index=index, term=Term(1)).cib
        self.planner.applied(Applied(index, Term(1), None, encode_envelope(envelope)))

    def ask(self, number: int = 1) -> None:
        self.planner.ask(number, self.cib, NOW)


def walked(plan: Plan) -> Plan:
    """What of a plan the DC gets."""
    return replace(plan, placements={}, changes=(), listing={})


def workers() -> set[int]:
    """All children of this process; of those that were there before a test, some may go meanwhile."""
    found = set()
    for pid in list_pids():
        stat = read_stat(pid)
        if stat is not None and stat.parent == os.getpid():
            found.add(pid)
    return found


@pytest.fixture
async def make(clock: BoottimeClock, tmp_path: Path) -> AsyncIterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def build(**options) -> Bench:
        made.append(Bench(clock, tmp_path / "failed", **options))
        return made[-1]

    yield build
    for bench in made:
        bench.planner.stop()


async def test_it_plans_as_the_scheduler_does_and_follows_the_log(make, until) -> None:
    bench = make()
    bench.planner.prepare(bench.cib)
    bench.ask(1)
    await until(lambda: len(bench.answers) == 1)
    assert bench.answers[0] == PlanAnswer(1, walked(schedule(bench.cib, NOW)))
    for node in ("node01", "node02"):
        bench.apply(commands.SetTransientAttribute(NodeName(node), "x", "1"))
    bench.planner.applied(Applied(bench.cib.index + 1, Term(1), None, b"no envelope"))
    bench.cib = replace(bench.cib, index=bench.cib.index + 1)
    bench.ask(2)
    await until(lambda: len(bench.answers) == 2)
    assert bench.answers[1] == PlanAnswer(2, walked(schedule(bench.cib, NOW)))


async def test_the_first_question_begins_it_and_rest_ends_it(make, until) -> None:
    bench = make()
    before = workers()
    bench.apply(commands.SetTransientAttribute(NodeName("node01"), "x", "1"))
    assert workers() <= before, "nothing is paid for before it is needed"
    bench.ask()
    await until(lambda: bench.answers)
    assert bench.answers[0].plan is not None
    assert len(workers() - before) == 1
    bench.planner.rest()
    await until(lambda: workers() <= before)


async def test_a_worker_that_is_killed_is_an_answer_and_the_next_question_has_a_new_one(make, until) -> None:
    bench = make(timeout_ms=20_000)
    before = workers()
    bench.planner.prepare(bench.cib)
    await until(lambda: workers() - before)
    [pid] = workers() - before
    os.kill(pid, signal.SIGSTOP)
    bench.ask(1)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: bench.answers)
    assert bench.answers[0].plan is None
    assert bench.answers[0].problem.startswith("the worker was ended by signal 9")
    bench.ask(2)
    await until(lambda: len(bench.answers) == 2)
    assert bench.answers[1].plan is not None


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (SILENT, "no plan within 300 ms"),
        ((sys.executable, "-c", "raise SystemExit(3)"), "the worker ended with status 3"),
        (("/no/such/program",), "/no/such/program: No such file or directory"),
        ((sys.executable, "-c", "import os, time; os.write(0, b'x' * 5000); time.sleep(60)"), "cannot be understood"),
    ],
    ids=["silent", "ends", "not there", "babbles"],
)
async def test_no_plan_is_an_answer_with_its_reason_and_the_cib_is_kept(make, until, command, problem: str) -> None:
    bench = make(command=command, timeout_ms=300 if command is SILENT else 20_000)
    before = workers()
    bench.ask()
    await until(lambda: bench.answers)
    [answer] = bench.answers
    assert answer.plan is None
    assert problem in answer.problem
    path = bench.directory / f"index-{bench.cib.index}.cib"
    assert str(path) in answer.problem
    await until(path.exists)
    assert decode_cib(path.read_bytes()) == bench.cib
    await until(lambda: workers() <= before)


async def test_a_worker_that_is_out_of_step_is_ended(make, until) -> None:
    bench = make()
    bench.planner.prepare(bench.cib)
    bench.cib = replace(bench.cib, index=bench.cib.index + 1)
    bench.ask(1)
    await until(lambda: bench.answers)
    assert "the worker ended with status 1" in bench.answers[0].problem
    bench.ask(2)
    await until(lambda: len(bench.answers) == 2)
    assert bench.answers[1].plan is not None


async def test_what_was_asked_before_rest_is_not_answered(make, until) -> None:
    bench = make()
    bench.ask(1)
    bench.planner.rest()
    bench.ask(2)
    await until(lambda: bench.answers)
    assert [answer.number for answer in bench.answers] == [2]


async def test_nothing_is_left_after_stop(make) -> None:
    bench = make()
    before = workers()
    bench.ask()
    bench.planner.stop()
    assert workers() <= before


async def test_a_worker_ends_with_its_daemon() -> None:
    """Whatever ends the daemon closes the socket."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = await asyncio.create_subprocess_exec(*COMMAND, stdin=theirs.fileno())
    ours.close()
    assert await asyncio.wait_for(process.wait(), 20) == 0


async def test_only_the_newest_cibs_without_a_plan_are_kept(tmp_path: Path, until) -> None:
    kept = FailedPlans(tmp_path, iter_fragments)
    for index in range(1, KEPT + 3):
        path = kept.keep(Cib(index=index))
        await until(path.exists)
        await until(lambda: len(list(tmp_path.iterdir())) <= KEPT)
        # The next one is newer also where the clock of the file system has not moved on by then.
        os.utime(path, (index, index))
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"index-{index}.cib" for index in range(3, KEPT + 3)]
