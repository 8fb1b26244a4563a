"""Deaths of service processes are events (safety.md §8)."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from haclusterd.adapters.clock_boottime import BoottimeClock
from haclusterd.adapters.service_groups import ServiceGroups
from haclusterd.adapters.service_watch import MarkedProcess, ServiceWatch, find_roots, scan_marked
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from tests.unit.adapters.hands import Hands

EXEC = AgentReference("ocf", "haclusterd", "exec")
HTTP = AgentReference("ocf", "haclusterd", "http-service")
R1 = ResourceId("r1")


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


class Deaths:
    """What was told, and when."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def told(self, resource: ResourceId) -> None:
        assert resource == R1
        self.times.append(time.monotonic())


@pytest.fixture
def deaths() -> Deaths:
    return Deaths()


def service_pids(hands: Hands, instance: str = "r1") -> list[int]:
    return [found.pid for found in scan_marked(hands.node, str(hands.directory)) if found.instance == instance]


def watched_pids(hands: Hands) -> list[int]:
    watched = hands.agents._watch._watched.get(R1)
    return list(watched.pidfds) if watched else []


async def start(hands: Hands, agent: AgentReference, **parameters: str) -> None:
    result = await hands.run("x", "start", agent=agent, parameters=parameters)
    assert result.exit_code == 0, result.stderr


async def test_a_killed_service_is_told_at_once(hands: Hands, deaths: Deaths, until) -> None:
    await start(hands, EXEC, command="sleep", args="3001")
    hands.agents.watch(R1, "r1", deaths.told)
    await until(lambda: watched_pids(hands))
    begun = time.monotonic()
    os.kill(watched_pids(hands)[0], 9)
    await until(lambda: deaths.times)
    assert deaths.times[0] - begun < 0.5
    assert (await hands.run("x", agent=EXEC, parameters={"command": "sleep"})).exit_code == 7


async def test_a_killed_http_service_is_told_at_once(hands: Hands, deaths: Deaths, until, free_port: int) -> None:
    command = f"python3 -S -E -m http.server --bind 127.0.0.1 {free_port}"
    await start(hands, HTTP, command=command, ready_url=f"http://127.0.0.1:{free_port}/")
    hands.agents.watch(R1, "r1", deaths.told)
    await until(lambda: watched_pids(hands))
    os.kill(watched_pids(hands)[0], 9)
    await until(lambda: deaths.times)


async def test_a_stock_service_that_keeps_the_agents_marks_is_watched(hands: Hands, deaths: Deaths, until) -> None:
    hands.write("stock", "#!/bin/sh\n[ $1 = start ] && { setsid sleep 3002 >/dev/null 2>&1 & }\nexit 0\n")
    assert (await hands.run("stock", "start")).exit_code == 0
    hands.agents.watch(R1, "r1", deaths.told)
    await until(lambda: watched_pids(hands))
    os.kill(watched_pids(hands)[0], 9)
    await until(lambda: deaths.times)


async def test_agents_at_work_are_not_taken_for_services(hands: Hands, deaths: Deaths, until) -> None:
    hands.write("busy", "#!/bin/sh\nsleep 0.05 & setsid sleep 0.05 & sleep 0.02; wait; exit 0\n")
    await start(hands, EXEC, command="sleep", args="3003")
    [service] = service_pids(hands)
    for _ in range(10):
        ended = hands.begin(hands.call("busy"))
        hands.agents.watch(R1, "r1", deaths.told)
        hands.agents.watch(R1, "r1", deaths.told)
        assert (await ended).exit_code == 0
    await until(lambda: watched_pids(hands) == [service])
    assert deaths.times == []


@pytest.mark.parametrize(("cluster", "node"), [("", "n2"), ("another", "n1")])
async def test_the_other_node_on_this_kernel_is_another_matter(
    hands: Hands, deaths: Deaths, until, clock: BoottimeClock, tmp_path: Path, cluster: str, node: str
) -> None:
    other = Hands(clock, tmp_path / cluster, node=node)
    await start(other, EXEC, command="sleep", args="3005")
    await start(hands, EXEC, command="sleep", args="3004")
    [own], [foreign] = service_pids(hands), service_pids(other)
    hands.agents.watch(R1, "r1", deaths.told)
    await until(lambda: watched_pids(hands))
    assert watched_pids(hands) == [own]
    os.kill(foreign, 9)
    await until(lambda: not service_pids(other))
    await asyncio.sleep(0)
    assert deaths.times == []


async def test_after_unwatch_nothing_is_told(hands: Hands, deaths: Deaths, until) -> None:
    await start(hands, EXEC, command="sleep", args="3006")
    hands.agents.watch(R1, "r1", deaths.told)
    await until(lambda: watched_pids(hands))
    [pid] = watched_pids(hands)
    descriptors = len(os.listdir("/proc/self/fd"))
    hands.agents.unwatch(R1)
    assert len(os.listdir("/proc/self/fd")) == descriptors - 1
    os.kill(pid, 9)
    await until(lambda: not service_pids(hands))
    assert deaths.times == []


async def test_a_service_that_replaces_its_process_is_found_again(hands: Hands, deaths: Deaths, until) -> None:
    hands.write("phoenix", "#!/bin/sh\n(setsid sleep 3007 &) >/dev/null 2>&1\nexit 0\n")
    assert (await hands.run("phoenix", "start")).exit_code == 0
    hands.agents.watch(R1, "r1", deaths.told)
    await until(lambda: watched_pids(hands))
    first = watched_pids(hands)
    os.kill(first[0], 9)
    await until(lambda: deaths.times)
    assert (await hands.run("phoenix", "start")).exit_code == 0
    await until(lambda: watched_pids(hands) and watched_pids(hands) != first)
    os.kill(watched_pids(hands)[0], 9)
    await until(lambda: len(deaths.times) == 2)


@pytest.fixture
async def alone(clock: BoottimeClock, tmp_path: Path) -> ServiceWatch:
    groups = ServiceGroups(None, NodeName("n77"), tmp_path)
    return ServiceWatch(clock, asyncio.get_running_loop(), NodeName("n77"), set, groups)


async def test_a_process_that_dies_between_scan_and_watch_is_told(alone: ServiceWatch, deaths: Deaths, until) -> None:
    child = subprocess.Popen(["sleep", "3008"])
    child.kill()
    child.wait()
    alone.watch(R1, "r1", deaths.told)
    await until(lambda: not alone._is_scanning)
    alone._open(R1, alone._watched[R1], MarkedProcess(child.pid, 1, 12345, "r1", None))
    await until(lambda: deaths.times)
    assert len(deaths.times) == 1
