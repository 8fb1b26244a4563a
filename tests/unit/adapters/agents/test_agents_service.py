"""A service is what this machine has under its name, and stays that for as long as it may run."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from haclusterd.adapters.agents.service import ServiceAgents
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.model.ids import AgentReference, Incarnation, ResourceId
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.ports.agents import AdoptedAction, AgentCall, AgentMetadata, AgentResult

R1 = ResourceId("r1")
WEB = AgentReference("service", None, "web")


class Family:
    """The runner of one class, whose services are running or not."""

    def __init__(self, clock: BoottimeClock, standard: str) -> None:
        self.clock = clock
        self.standard = standard
        self.there: set[str] = set()
        self.running: set[str] = set()
        self.asked: list[str] = []
        self.killed: list[str] = []
        self.watched: list[ResourceId] = []
        self.is_failing = False

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        assert call.agent.standard == self.standard
        self.asked.append(call.action)
        name, code = call.agent.type, 0
        if self.is_failing or name not in self.there:
            code = 1 if self.is_failing else 5
        elif call.action == "start":
            self.running.add(name)
        elif call.action == "stop":
            self.running.discard(name)
        elif name not in self.running:
            code = 7
        result = AgentResult(call.key, code, ExecutionStatus.DONE, "", "", "", 0, 0)
        self.clock.call_soon(lambda: done(result))

    def kill(self, key: str) -> None:
        self.killed.append(key)

    def adopt(self, ended: Callable[[str], None]) -> tuple[AdoptedAction, ...]:
        raise AssertionError("its own runner is asked")

    def watch(self, resource: ResourceId, instance: str, died: Callable[[ResourceId], None]) -> None:
        self.watched.append(resource)

    def unwatch(self, resource: ResourceId) -> None:
        raise AssertionError("its own runner is asked")

    def metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        self.clock.call_soon(lambda: done(AgentMetadata(agent, "", self.standard, "", {}, {})))

    def waits(self) -> tuple[str, ...]:
        return ()

    def exists(self, agent: AgentReference) -> bool:
        return agent.type in self.there

    def installed(self) -> tuple[AgentReference, ...]:
        return tuple(AgentReference(self.standard, None, name) for name in sorted(self.there))


class Bench:
    def __init__(self, clock: BoottimeClock, directory: Path) -> None:
        self.clock = clock
        self.directory = directory
        self.scripts, self.units = Family(clock, "lsb"), Family(clock, "systemd")
        self.counter = 0
        self.live()

    def live(self, boot: str = "boot-1") -> None:
        """Begin a life of the daemon."""
        incarnation = Incarnation(boot, "00000000000000aa")
        self.agents = ServiceAgents(
            self.clock,
            runtime_directory=self.directory,
            incarnation=incarnation,
            scripts=self.scripts,
            units=self.units,
        )
        assert self.agents.adopt(lambda _key: None) == ()

    async def code(self, action: str) -> int:
        self.counter += 1
        ended: asyncio.Future[AgentResult] = asyncio.get_running_loop().create_future()
        incarnation = Incarnation("boot-1", "00000000000000aa")
        call = AgentCall(f"key-{self.counter}", R1, "r1", WEB, action, {}, {}, 20_000, incarnation)
        self.agents.run(call, ended.set_result)
        assert not ended.done()
        return (await ended).exit_code


@pytest.fixture
async def bench(clock: BoottimeClock, tmp_path: Path) -> Bench:
    return Bench(clock, tmp_path)


async def test_an_init_script_comes_before_a_unit(bench: Bench) -> None:
    bench.units.there.add("web")
    assert await bench.code("monitor") == 7
    bench.scripts.there.add("web")
    assert [await bench.code(action) for action in ("monitor", "start", "stop")] == [7, 0, 0]
    assert (bench.units.asked, bench.scripts.asked) == (["monitor"], ["monitor", "start", "stop"])


async def test_what_was_started_as_a_unit_is_stopped_as_one(bench: Bench) -> None:
    """An upgrade brings an init script, which knows nothing of the unit that runs."""
    bench.units.there.add("web")
    assert await bench.code("start") == 0
    bench.scripts.there.add("web")
    assert await bench.code("monitor") == 0
    bench.live()
    assert [await bench.code(action) for action in ("monitor", "stop", "monitor")] == [0, 0, 7]
    assert bench.units.running == set()
    assert bench.scripts.asked == ["monitor"], "from now on it is the script"


async def test_what_was_found_running_stays_what_it_is(bench: Bench) -> None:
    bench.units.there.add("web")
    bench.units.running.add("web")
    assert await bench.code("monitor") == 0
    bench.scripts.there.add("web")
    assert [await bench.code(action) for action in ("monitor", "stop")] == [0, 0]
    assert bench.units.running == set()


async def test_a_stop_that_fails_changes_nothing(bench: Bench) -> None:
    bench.scripts.there.add("web")
    assert await bench.code("start") == 0
    bench.scripts.is_failing = True
    assert await bench.code("stop") == 1
    bench.scripts.there.clear()
    bench.units.there.add("web")
    assert await bench.code("stop") == 1
    assert bench.units.asked == []


async def test_a_boot_ends_what_was_chosen(bench: Bench) -> None:
    bench.units.there.add("web")
    assert await bench.code("start") == 0
    bench.scripts.there.add("web")
    bench.live(boot="boot-2")
    assert await bench.code("monitor") == 7
    assert bench.scripts.asked == ["monitor"]


async def test_choices_are_written_again_where_somebody_removed_them(bench: Bench) -> None:
    bench.units.there.add("web")
    assert await bench.code("start") == 0
    (bench.directory / "services" / "web").unlink()
    assert bench.agents.keep_records() == 1
    assert bench.agents.keep_records() == 0
    bench.scripts.there.add("web")
    bench.live()
    assert await bench.code("monitor") == 0


async def test_where_neither_is_there_it_is_not_installed(bench: Bench) -> None:
    assert [await bench.code(action) for action in ("monitor", "start", "stop")] == [5, 5, 5]


async def test_a_choice_that_cannot_be_kept_starts_nothing(bench: Bench) -> None:
    bench.units.there.add("web")
    (bench.directory / "services").write_text("in the way")
    assert [await bench.code("start") for _ in range(2)] == [1, 1]
    assert bench.units.asked == []


async def test_it_is_killed_watched_and_described_as_what_it_is(bench: Bench) -> None:
    bench.units.there |= {"web", "db"}
    bench.scripts.there |= {"db"}
    assert await bench.code("start") == 0
    bench.agents.watch(R1, "r1", lambda _resource: None)
    assert (bench.units.watched, bench.scripts.watched) == ([R1], [])
    incarnation = Incarnation("boot-1", "00000000000000aa")
    bench.agents.run(AgentCall("k", R1, "r1", WEB, "monitor", {}, {}, 20_000, incarnation), lambda _result: None)
    bench.agents.kill("k")
    assert (bench.units.killed, bench.scripts.killed) == (["k"], [])
    assert [agent.type for agent in bench.agents.installed()] == ["db", "web"]
    answer: asyncio.Future[AgentMetadata | None] = asyncio.get_running_loop().create_future()
    bench.agents.metadata(WEB, answer.set_result)
    metadata = await answer
    assert metadata is not None
    assert (metadata.agent, metadata.shortdesc) == (WEB, "systemd")
