"""Deaths of service processes are events (safety.md §8)."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from haclusterd.adapters.agents.seals import Seals
from haclusterd.adapters.agents.service_groups import ServiceGroups
from haclusterd.adapters.agents.service_watch import (
    ROOTS_PER_RESOURCE,
    MarkedProcess,
    ServiceWatch,
    find_roots,
    scan_marked,
)
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.agents.process_table import LOCAL_CLUSTER_MARK, NODE_MARK, list_pids, read_arguments
from haclusterd.model.ids import AgentReference, NodeName
from tests.unit.adapters.agents.watched_services import R1, Deaths, watched_pids
from tests.unit.adapters.scripted_agents import ScriptedAgents

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
def test_the_first_processes_of_a_resource_that_no_action_in_progress_owns_are_watched(
    processes: list[MarkedProcess], roots: list[int]
) -> None:
    assert [root.pid for root in find_roots(processes, "r1", {"busy"})] == roots


@pytest.fixture
def deaths() -> Deaths:
    return Deaths()


def service_pids(agents: ScriptedAgents, instance: str = "r1") -> list[int]:
    return [found.pid for found in scan_marked(agents.node, str(agents.directory)) if found.instance == instance]


def sleeping(agents: ScriptedAgents, seconds: int) -> list[int]:
    """The service processes that sleep so long: those that have done their exec, within which no mark can be seen."""
    found = [pid for pid in list_pids() if read_arguments(pid) == ["sleep", str(seconds)]]
    return sorted(set(found).intersection(service_pids(agents)))


async def start(agents: ScriptedAgents, agent: AgentReference, **parameters: str) -> None:
    result = await agents.run("x", "start", agent=agent, parameters=parameters)
    assert result.exit_code == 0, result.stderr


async def start_sleep(agents: ScriptedAgents, until, seconds: int) -> int:
    """Start a service; return its process, which can be found from now on."""
    await start(agents, EXEC, command="sleep", args=str(seconds))
    await until(lambda: sleeping(agents, seconds))
    [pid] = service_pids(agents)
    return pid


async def test_a_killed_service_is_reported_at_once(agents: ScriptedAgents, deaths: Deaths, until) -> None:
    """Nothing but its exit tells: no monitor runs here, and what is looked up again is so only after a death."""
    await start_sleep(agents, until, 3001)
    agents.runner.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(agents))
    os.kill(watched_pids(agents)[0], 9)
    await until(lambda: deaths.count)
    assert (await agents.run("x", agent=EXEC, parameters={"command": "sleep"})).exit_code == 7


async def test_a_killed_http_service_is_reported_at_once(
    agents: ScriptedAgents, deaths: Deaths, until, free_port: int
) -> None:
    command = f"python3 -S -E -m http.server --bind 127.0.0.1 {free_port}"
    await start(agents, HTTP, command=command, ready_url=f"http://127.0.0.1:{free_port}/")
    agents.runner.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(agents))
    os.kill(watched_pids(agents)[0], 9)
    await until(lambda: deaths.count)


async def test_a_stock_service_that_keeps_the_agents_marks_is_watched(
    agents: ScriptedAgents, deaths: Deaths, until
) -> None:
    agents.write("stock", "#!/bin/sh\n[ $1 = start ] && { setsid sleep 3002 >/dev/null 2>&1 & }\nexit 0\n")
    assert (await agents.run("stock", "start")).exit_code == 0
    await until(lambda: sleeping(agents, 3002))
    agents.runner.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(agents))
    os.kill(watched_pids(agents)[0], 9)
    await until(lambda: deaths.count)


async def test_agents_at_work_are_not_taken_for_services(agents: ScriptedAgents, deaths: Deaths, until) -> None:
    agents.write("busy", "#!/bin/sh\nsleep 0.05 & setsid sleep 0.05 & sleep 0.02; wait; exit 0\n")
    service = await start_sleep(agents, until, 3003)
    for _ in range(10):
        ended = agents.begin(agents.call("busy"))
        agents.runner.watch(R1, "r1", deaths.report_death)
        agents.runner.watch(R1, "r1", deaths.report_death)
        assert (await ended).exit_code == 0
    await until(lambda: watched_pids(agents) == [service])
    assert deaths.count == 0


@pytest.mark.parametrize(("cluster", "node"), [("", "n2"), ("another", "n1")])
async def test_the_other_node_on_this_kernel_is_another_matter(
    agents: ScriptedAgents, deaths: Deaths, until, clock: BoottimeClock, tmp_path: Path, cluster: str, node: str
) -> None:
    other = ScriptedAgents(clock, tmp_path / cluster, node=node)
    foreign = await start_sleep(other, until, 3005)
    own = await start_sleep(agents, until, 3004)
    agents.runner.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(agents))
    assert watched_pids(agents) == [own]
    os.kill(foreign, 9)
    await until(lambda: not service_pids(other))
    await asyncio.sleep(0)
    assert deaths.count == 0


async def test_who_bears_the_marks_without_the_seal_takes_no_place(
    deaths: Deaths, until, clock: BoottimeClock, tmp_path: Path
) -> None:
    """Any user of the machine begins processes with any environment; the oldest eight would be watched."""
    agents = ScriptedAgents(clock, tmp_path, seals=Seals.kept_in(tmp_path / "state"))
    marks = {**os.environ, "OCF_RESOURCE_INSTANCE": "r1", NODE_MARK: "n1", LOCAL_CLUSTER_MARK: str(tmp_path)}
    forged = [subprocess.Popen(["sleep", "3009"], env=marks) for _ in range(ROOTS_PER_RESOURCE)]
    try:
        await until(lambda: len(sleeping(agents, 3009)) == len(forged))
        await start(agents, EXEC, command="sleep", args="3010")
        await until(lambda: sleeping(agents, 3010))
        agents.runner.watch(R1, "r1", deaths.report_death)
        await until(lambda: watched_pids(agents))
        assert watched_pids(agents) == sleeping(agents, 3010)
    finally:
        for each in forged:
            each.kill()
            each.wait()
        await agents.run("x", "stop", agent=EXEC, parameters={"command": "sleep"})


async def test_after_unwatch_nothing_is_reported(agents: ScriptedAgents, deaths: Deaths, until) -> None:
    await start_sleep(agents, until, 3006)
    agents.runner.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(agents))
    [(pid, pidfd)] = agents.runner._watch._watched[R1].pidfds.items()
    agents.runner.unwatch(R1)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(pidfd)
    os.kill(pid, 9)
    await until(lambda: not service_pids(agents))
    assert deaths.count == 0


async def test_a_service_that_replaces_its_process_is_found_again(
    agents: ScriptedAgents, deaths: Deaths, until
) -> None:
    agents.write("phoenix", "#!/bin/sh\n(setsid sleep 3007 &) >/dev/null 2>&1\nexit 0\n")
    assert (await agents.run("phoenix", "start")).exit_code == 0
    await until(lambda: sleeping(agents, 3007))
    agents.runner.watch(R1, "r1", deaths.report_death)
    await until(lambda: watched_pids(agents))
    first = watched_pids(agents)
    # It is looked for once after the death: the next process is there by then.
    assert (await agents.run("phoenix", "start")).exit_code == 0
    await until(lambda: len(sleeping(agents, 3007)) == 2)
    assert watched_pids(agents) == first
    os.kill(first[0], 9)
    await until(lambda: deaths.count)
    await until(lambda: watched_pids(agents) and watched_pids(agents) != first)
    os.kill(watched_pids(agents)[0], 9)
    await until(lambda: deaths.count == 2)


@pytest.fixture
async def alone(clock: BoottimeClock, tmp_path: Path) -> ServiceWatch:
    groups = ServiceGroups(None, NodeName("n77"), tmp_path)
    return ServiceWatch(clock, asyncio.get_running_loop(), NodeName("n77"), set, groups, threads=ReadyThreads(1))


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
