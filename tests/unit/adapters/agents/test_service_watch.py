"""Deaths of service processes are events (safety.md §8)."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from haclusterd.adapters.agents.service_groups import ServiceGroups
from haclusterd.adapters.agents.service_watch import MarkedProcess, ServiceWatch, find_roots, scan_marked
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.agents.process_table import list_pids, read_arguments
from haclusterd.model.ids import AgentReference, NodeName
from tests.unit.adapters.agents.watched_services import R1, Deaths, watched_pids
from tests.unit.adapters.hands import Hands

EXEC = AgentReference("ocf", "haclusterd", "exec")
HTTP = AgentReference("ocf", "haclusterd", "http-service")


def process(pid: int, parent: int = 1, *, order: str | None = None, instance: str = "r1", start: int = 5):
    return MarkedProcess(pid, parent, start, instance, order)


@pytest.mark.parametrize(
    ("processes", "roots"),
    [
        ([], []),
        ([process(10)], [10]),
        ([process(10), process(11, 10), process(12, 11)], [10]),
        ([process(10), process(11, 1)], [10, 11]),
        ([process(10, instance="r2")], []),
        ([process(10, order="busy"), process(11, 10, order="busy")], []),
        ([process(10, order="busy"), process(11, 10, order="done")], [11]),
        ([process(20, start=9), process(30, start=1)], [30, 20]),
        ([process(pid) for pid in range(1, 20)], list(range(1, 9))),
    ],
)
def test_roots(processes: list[MarkedProcess], roots: list[int]) -> None:
    assert [root.pid for root in find_roots(processes, "r1", {"busy"})] == roots


@pytest.fixture
def deaths() -> Deaths:
    return Deaths()


def service_pids(hands: Hands, instance: str = "r1") -> list[int]:
    return [found.pid for found in scan_marked(hands.node, str(hands.directory)) if found.instance == instance]


def sleeping(hands: Hands, seconds: int) -> list[int]:
    """The service processes that sleep so long: those that have done their exec, within which no mark can be seen."""
    found = [pid for pid in list_pids() if read_arguments(pid) == ["sleep", str(seconds)]]
    return sorted(set(found).intersection(service_pids(hands)))


async def start(hands: Hands, agent: AgentReference, **parameters: str) -> None:
    result = await hands.run("x", "start", agent=agent, parameters=parameters)
    assert result.exit_code == 0, result.stderr


async def start_sleep(hands: Hands, until, seconds: int) -> int:
    """Start a service; return its process, which can be found from now on."""
    await start(hands, EXEC, command="sleep", args=str(seconds))
    await until(lambda: sleeping(hands, seconds))
    [pid] = service_pids(hands)
    return pid


async def test_a_killed_service_is_reported_at_once(hands: Hands, deaths: Deaths, until) -> None:
    """Nothing but its exit tells: no monitor runs here, and what is looked up again is so only after a death."""
    await start_sleep(hands, until, 3001)
    hands.agents.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(hands))
    os.kill(watched_pids(hands)[0], 9)
    await until(lambda: deaths.count)
    assert (await hands.run("x", agent=EXEC, parameters={"command": "sleep"})).exit_code == 7


async def test_a_killed_http_service_is_reported_at_once(hands: Hands, deaths: Deaths, until, free_port: int) -> None:
    command = f"python3 -S -E -m http.server --bind 127.0.0.1 {free_port}"
    await start(hands, HTTP, command=command, ready_url=f"http://127.0.0.1:{free_port}/")
    hands.agents.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(hands))
    os.kill(watched_pids(hands)[0], 9)
    await until(lambda: deaths.count)


async def test_a_stock_service_that_keeps_the_agents_marks_is_watched(hands: Hands, deaths: Deaths, until) -> None:
    hands.write("stock", "#!/bin/sh\n[ $1 = start ] && { setsid sleep 3002 >/dev/null 2>&1 & }\nexit 0\n")
    assert (await hands.run("stock", "start")).exit_code == 0
    await until(lambda: sleeping(hands, 3002))
    hands.agents.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(hands))
    os.kill(watched_pids(hands)[0], 9)
    await until(lambda: deaths.count)


async def test_agents_at_work_are_not_taken_for_services(hands: Hands, deaths: Deaths, until) -> None:
    hands.write("busy", "#!/bin/sh\nsleep 0.05 & setsid sleep 0.05 & sleep 0.02; wait; exit 0\n")
    service = await start_sleep(hands, until, 3003)
    for _ in range(10):
        ended = hands.begin(hands.call("busy"))
        hands.agents.watch(R1, "r1", deaths.report_death)
        hands.agents.watch(R1, "r1", deaths.report_death)
        assert (await ended).exit_code == 0
    await until(lambda: watched_pids(hands) == [service])
    assert deaths.count == 0


@pytest.mark.parametrize(("cluster", "node"), [("", "n2"), ("another", "n1")])
async def test_the_other_node_on_this_kernel_is_another_matter(
    hands: Hands, deaths: Deaths, until, clock: BoottimeClock, tmp_path: Path, cluster: str, node: str
) -> None:
    other = Hands(clock, tmp_path / cluster, node=node)
    foreign = await start_sleep(other, until, 3005)
    own = await start_sleep(hands, until, 3004)
    hands.agents.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(hands))
    assert watched_pids(hands) == [own]
    os.kill(foreign, 9)
    await until(lambda: not service_pids(other))
    await asyncio.sleep(0)
    assert deaths.count == 0


async def test_after_unwatch_nothing_is_reported(hands: Hands, deaths: Deaths, until) -> None:
    await start_sleep(hands, until, 3006)
    hands.agents.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(hands))
    [(pid, pidfd)] = hands.agents._watch._watched[R1].pidfds.items()
    hands.agents.unwatch(R1)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(pidfd)
    os.kill(pid, 9)
    await until(lambda: not service_pids(hands))
    assert deaths.count == 0


async def test_a_service_that_replaces_its_process_is_found_again(hands: Hands, deaths: Deaths, until) -> None:
    hands.write("phoenix", "#!/bin/sh\n(setsid sleep 3007 &) >/dev/null 2>&1\nexit 0\n")
    assert (await hands.run("phoenix", "start")).exit_code == 0
    await until(lambda: sleeping(hands, 3007))
    hands.agents.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(hands))
    first = watched_pids(hands)
    # It is looked for once after the death: the next process is there by then.
    assert (await hands.run("phoenix", "start")).exit_code == 0
    await until(lambda: len(sleeping(hands, 3007)) == 2)
    assert watched_pids(hands) == first
    os.kill(first[0], 9)
    await until(lambda: deaths.count)
    await until(lambda: watched_pids(hands) and watched_pids(hands) != first)
    os.kill(watched_pids(hands)[0], 9)
    await until(lambda: deaths.count == 2)


@pytest.fixture
async def alone(clock: BoottimeClock, tmp_path: Path) -> ServiceWatch:
    groups = ServiceGroups(None, NodeName("n77"), tmp_path)
    return ServiceWatch(clock, asyncio.get_running_loop(), NodeName("n77"), set, groups)


async def test_a_process_that_dies_between_scan_and_watch_is_reported(
    alone: ServiceWatch, deaths: Deaths, until
) -> None:
    child = subprocess.Popen(["sleep", "3008"])
    child.kill()
    child.wait()
    alone.watch(R1, "r1", deaths.report_death)
    await until(lambda: not alone._is_scanning)
    alone._open(R1, alone._watched[R1], MarkedProcess(child.pid, 1, 12345, "r1", None))
    await until(lambda: deaths.count)
    assert deaths.count == 1
