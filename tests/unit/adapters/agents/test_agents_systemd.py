"""Units as resources: started, stopped, asked and watched over a real bus, by a stand-in for systemd."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from haclusterd.adapters.agents import systemd_bus
from haclusterd.adapters.agents.systemd import SystemdAgents, SystemdPlaces
from haclusterd.adapters.agents.systemd_bus import unit_path
from haclusterd.adapters.agents.systemd_units import unit_name
from haclusterd.adapters.agents.unit_files import UnitFiles
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.model.ids import AgentReference, Incarnation, ResourceId
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.ports.agents import AgentCall, AgentResult
from tests.unit.adapters.agents.systemd_stand_in import (
    HAS_BUS_DAEMON,
    MANAGER_PATH,
    SYSTEMD,
    PrivateBus,
    RefusalError,
    StandIn,
)
from tests.unit.adapters.recorded_actions import recorded_in

pytestmark = pytest.mark.skipif(not HAS_BUS_DAEMON, reason="there is no dbus-daemon here (Debian: dbus-daemon)")

FIRST, SECOND = (Incarnation("boot-1", f"00000000000000{letter}") for letter in ("aa", "bb"))
R1 = ResourceId("r1")
PENDING_MAX = 128
"""Answers that the bus daemon lets one connection wait for, unless its settings say otherwise."""


class Bench:
    """A bus, a manager, and the runner of one life after the other."""

    def __init__(self, clock: BoottimeClock, directory: Path) -> None:
        self.clock = clock
        self.directory = directory
        self.bus = PrivateBus(directory)
        self.runtime_units = directory / "units"
        self.runtime_units.mkdir()
        self.manager = StandIn(self.bus.address, self.runtime_units)
        self.has_lease = True
        self.configured = {R1}
        self.lives: list[SystemdAgents] = []
        self.counter = 0

    async def start(self) -> None:
        self.bus.start()
        await self.manager.connect()
        self.begin_incarnation(FIRST)

    def begin_incarnation(self, incarnation: Incarnation) -> SystemdAgents:
        agents = SystemdAgents(
            self.clock,
            asyncio.get_running_loop(),
            runtime_directory=self.directory / "run",
            incarnation=incarnation,
            places=SystemdPlaces(
                self.bus.address, self.runtime_units, (self.directory / "files",), self.directory / "groups"
            ),
            has_lease=lambda: self.has_lease,
            is_configured=lambda resource: resource in self.configured,
        )
        self.lives.append(agents)
        return agents

    @property
    def agents(self) -> SystemdAgents:
        return self.lives[-1]

    def die(self) -> None:
        """Let the present life do nothing any more, as after SIGKILL."""
        self.agents.stop()
        self.agents._bus.thread.join(10)

    def call(self, action: str, type_: str = "web", **changes: Any) -> AgentCall:
        self.counter += 1
        fields = {
            "key": f"key-{self.counter}",
            "resource": R1,
            "instance": "r1",
            "agent": AgentReference("systemd", None, type_),
            "action": action,
            "parameters": {},
            "meta": {},
            "timeout_ms": 20_000,
            "incarnation": FIRST,
        }
        return AgentCall(**{**fields, **changes})

    def begin(self, call: AgentCall) -> "asyncio.Future[AgentResult]":
        ended: asyncio.Future[AgentResult] = asyncio.get_running_loop().create_future()
        self.agents.run(call, ended.set_result)
        assert not ended.done()
        return ended

    async def run(self, action: str, type_: str = "web", **changes: Any) -> AgentResult:
        return await self.begin(self.call(action, type_, **changes))

    async def code(self, action: str, type_: str = "web", **changes: Any) -> int:
        return (await self.run(action, type_, **changes)).exit_code

    def records(self) -> list[Path]:
        return recorded_in(self.directory / "run" / "unit-actions")


@pytest.fixture
async def bench(clock: BoottimeClock, tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(clock, tmp_path)
    await made.start()
    yield made
    for life in made.lives:
        life.stop()
        if life._bus._loop is not None:
            life._bus.thread.join(10)
    made.manager.disconnect()
    made.bus.kill()


# -- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "unit"),
    [
        ("nginx", "nginx.service"),
        ("nginx.service", "nginx.service"),
        ("data.mount", "data.mount"),
        ("vm@one", "vm@one.service"),
        ("vm@one.service", "vm@one.service"),
        ("vm@", "vm@pacemaker.service"),
        ("vm@.service", "vm@pacemaker.service"),
        ("a.b", "a.b.service"),
    ],
)
def test_what_unit_an_agents_type_names(type_: str, unit: str) -> None:
    assert unit_name(type_) == unit


def test_paths_of_units_are_escaped_as_systemd_does() -> None:
    assert unit_path("vm@one-2.service") == f"{MANAGER_PATH}/unit/vm_40one_2d2_2eservice"
    assert unit_path("9p.mount") == f"{MANAGER_PATH}/unit/_39p_2emount"


def test_units_are_known_by_their_files(tmp_path: Path) -> None:
    for name in ("web.service", "vm@.service", "data.mount", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "masked.service").symlink_to("/dev/null")
    files = UnitFiles((tmp_path / "missing", tmp_path))
    assert files.listing() == ("data.mount", "masked", "vm@", "web")
    assert [files.exists(each) for each in ("web", "web.service", "vm@one", "vm@", "data.mount")] == [True] * 5
    assert [files.exists(each) for each in ("other", "web@one", "../web", "data", "notes.txt")] == [False] * 5


# -- start, stop, monitor -------------------------------------------------------------------------------------------


async def test_a_unit_is_probed_started_asked_and_stopped(bench: Bench) -> None:
    unit = bench.manager.add("web.service")
    assert [await bench.code(action) for action in ("monitor", "stop", "start", "start", "monitor")] == [7, 0, 0, 0, 0]
    assert unit.active == "active"
    assert [await bench.code(action) for action in ("stop", "stop", "monitor")] == [0, 0, 7]
    assert not bench.records()


async def test_a_drop_in_orders_it_before_the_daemon_while_it_is_a_resource(bench: Bench) -> None:
    unit = bench.manager.add("web.service")
    path = bench.runtime_units / "web.service.d" / "50-haclusterd.conf"
    assert await bench.code("start") == 0
    text = path.read_text()
    assert "\nBefore=haclusterd-resources.target\n" in text
    assert text.endswith("[Service]\nRestart=no\n")
    assert unit.drop_ins == [str(path)]
    before = bench.manager.reloads
    assert await bench.code("start") == 0
    assert bench.manager.reloads == before, "nothing has changed"
    assert await bench.code("stop") == 0
    assert (path.exists(), unit.drop_ins) == (False, [])
    calls = bench.manager.calls
    assert calls.index("StopUnit web.service") > len(calls) - 1 - calls[::-1].index("Reload"), "else both would wait"


async def test_a_unit_that_died_is_started_again_without_a_reload(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service")
    path = bench.runtime_units / "web.service.d" / "50-haclusterd.conf"
    assert await bench.code("start") == 0
    bench.manager.become(unit, "failed")
    before = bench.manager.reloads
    assert [await bench.code(action) for action in ("stop", "start")] == [0, 0]
    assert (bench.manager.reloads, unit.log, path.exists()) == (before, ["start", "start"], True)
    bench.manager.become(unit, "failed")
    assert await bench.code("stop") == 0
    await until(lambda: not path.exists() and not unit.drop_ins)


async def test_a_unit_that_is_after_the_daemon_keeps_its_own_order(bench: Bench) -> None:
    bench.manager.add("web.service", after=["basic.target", "haclusterd.service"])
    bench.manager.add("data.mount")
    assert await bench.code("start") == 0
    assert await bench.code("start", "data.mount") == 0
    read = {path.parent.name: path.read_text() for path in bench.runtime_units.glob("*/*.conf")}
    assert "\nBefore=" not in read["web.service.d"]
    assert "\nBefore=haclusterd-resources.target\n" in read["data.mount.d"]
    assert "[Service]" not in read["data.mount.d"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"settings": {"UnitFileState": Variant("s", "enabled")}}, "is enabled, so systemd starts it at boot beside"),
        ({"settings": {"BindsTo": Variant("as", ["a.mount", "haclusterd.service"])}, "after": ["haclusterd.service"]},
         "has BindsTo=haclusterd.service, so it stops with the daemon"),
        ({"after": ["haclusterd.service"]}, "has After=haclusterd.service, so a shutdown stops it first"),
        ({"properties": {"KillMode": Variant("s", "process")}}, "has KillMode=process, so what its stop leaves"),
        ({"properties": {"Restart": Variant("s", "always")}}, "has Restart=always in a drop-in that is read after 50-"),
    ],
)  # fmt: skip
async def test_settings_of_a_running_unit_that_do_not_suit_are_named(bench: Bench, until, changes, words: str) -> None:
    unit = bench.manager.add("web.service", **changes)
    assert await bench.code("start") == 0
    assert bench.agents.waits() == ()
    bench.agents.watch(R1, "r1", lambda _resource: None)
    await until(bench.agents.waits)
    [text] = bench.agents.waits()
    assert text.startswith(f"web.service {words}")
    unit.settings, unit.after, unit.properties = {"UnitFileState": Variant("s", "disabled")}, [], {}
    assert await bench.code("monitor") == 0
    await until(lambda: not bench.agents.waits())
    bench.agents.unwatch(R1)
    assert bench.agents.waits() == ()


PULLED = {"UnitFileState": Variant("s", "static"), "WantedBy": Variant("as", ["shop.service"])}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"UnitFileState": Variant("s", "enabled"), "WantedBy": Variant("as", ["multi-user.target"])},
         "is enabled, so systemd starts it at boot beside the cluster; systemctl disable web.service"),
        (PULLED, "is wanted by shop.service, so systemd starts it with that beside the cluster, at boot too; "
         "take it out there"),
        ({**PULLED, "BoundBy": Variant("as", ["a.service"])},
         "is required by a.service and wanted by shop.service, so systemd starts it with that beside the cluster, at "
         "boot too; take it out there"),
    ],
)  # fmt: skip
async def test_a_unit_that_systemd_starts_by_itself_is_named_where_it_does_not_run(
    bench: Bench, until, settings: dict[str, Variant], words: str
) -> None:
    """It runs there after the next boot of its node, beside the copy on another one, until that node has joined."""
    unit = bench.manager.add("web.service", settings=settings)
    assert await bench.code("monitor") == 7
    await until(bench.agents.waits)
    assert bench.agents.waits() == (f"web.service {words}",)
    unit.settings = {"UnitFileState": Variant("s", "static")}
    await until(lambda: not bench.agents.waits())


async def test_a_unit_that_is_no_resource_any_more_is_not_remarked_on(bench: Bench, until) -> None:
    bench.manager.add("web.service", settings=PULLED)
    assert await bench.code("monitor") == 7
    await until(bench.agents.waits)
    bench.configured.clear()
    assert bench.agents.waits() == ()


async def test_starts_that_come_together_share_one_reload_and_so_do_stops(bench: Bench) -> None:
    for number in range(30):
        bench.manager.add(f"web{number}.service")

    async def all_of_them(action: str) -> None:
        calls = [bench.call(action, f"web{number}", resource=ResourceId(f"r{number}")) for number in range(30)]
        results = await asyncio.gather(*map(bench.begin, calls))
        assert {result.exit_code for result in results} == {0}

    await all_of_them("start")
    assert bench.manager.reloads == 1
    assert all(unit.drop_ins for unit in bench.manager.units.values())
    await all_of_them("stop")
    assert bench.manager.reloads == 2
    assert not any(unit.drop_ins for unit in bench.manager.units.values())


async def test_what_systemd_reads_by_itself_needs_no_reload(bench: Bench) -> None:
    unit = bench.manager.add("web.service", is_kept=False)
    assert await bench.code("start") == 0
    assert (bench.manager.reloads, len(unit.drop_ins)) == (0, 1)
    assert await bench.code("stop") == 0
    assert (bench.manager.reloads, unit.drop_ins) == (1, [])


async def test_a_drop_in_whose_text_has_changed_is_read_again_also_by_the_life_after_the_one_that_wrote_it(
    bench: Bench,
) -> None:
    unit = bench.manager.add("web.service")
    assert await bench.code("start") == 0
    [path], reloads = unit.drop_ins, bench.manager.reloads
    text = Path(path).read_text()
    for on_disk in ("[Unit]\n", text):  # The second was written by a daemon that was killed before the reload.
        unit.read = {path: "[Unit]\n"}
        Path(path).write_text(on_disk)
        bench.manager.become(unit, "inactive")
        assert await bench.code("start") == 0
        assert unit.read == {path: text}
    assert bench.manager.reloads == reloads + 2


async def test_a_start_waits_a_limited_time_for_others_that_systemd_does_not_answer(bench: Bench) -> None:
    """The reload for one unit is not kept back by questions about another that are never answered."""
    bench.manager.add("web.service")
    bench.manager.add("other.service")
    bench.manager.ignored.add("LoadUnit other.service")
    call = bench.call("start", "other", resource=ResourceId("other"), timeout_ms=600_000)
    unanswered = bench.begin(call)
    assert await bench.code("start") == 0
    bench.agents.kill(call.key)
    assert (await unanswered).status is ExecutionStatus.CANCELLED


async def test_a_start_waits_until_the_unit_is_active(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service")
    unit.may_start.clear()
    started = bench.begin(bench.call("start"))
    await until(lambda: unit.active == "activating")
    assert bench.records()
    assert not started.done()
    unit.may_start.set()
    assert (await started).exit_code == 0


@pytest.mark.parametrize("state", ["activating", "deactivating"])
async def test_a_monitor_waits_while_a_unit_is_between_two_states(bench: Bench, state: str) -> None:
    unit = bench.manager.add("web.service", active=state)
    asked = bench.begin(bench.call("monitor"))
    while "GetAll org.freedesktop.systemd1.Unit" not in bench.manager.calls:
        await asyncio.sleep(0)
    assert not asked.done()
    bench.manager.become(unit, "active" if state == "activating" else "inactive")
    assert (await asked).exit_code == (0 if state == "activating" else 7)


async def test_a_monitor_that_waits_too_long_says_for_what(bench: Bench) -> None:
    bench.manager.add("web.service", active="activating", sub="start-pre")
    result = await bench.run("monitor", timeout_ms=300)
    assert (result.exit_code, result.status) == (1, ExecutionStatus.TIMEOUT)
    assert result.exit_reason == "monitor did not complete within 300ms: web.service is activating (start-pre)"


async def test_a_unit_that_reloads_runs_and_one_that_failed_does_not(bench: Bench) -> None:
    unit = bench.manager.add("web.service", active="reloading")
    assert await bench.code("monitor") == 0
    bench.manager.become(unit, "failed")
    result = await bench.run("monitor")
    assert (result.exit_code, result.exit_reason) == (7, "web.service is failed (failed)")


async def test_nobody_says_not_running_while_systemd_has_a_job_for_it(bench: Bench) -> None:
    unit = bench.manager.add("web.service")
    unit.job, unit.job_kind = 77, "start"
    assert (await bench.run("monitor", timeout_ms=200)).status is ExecutionStatus.TIMEOUT
    unit.active = "active"
    assert await bench.code("monitor") == 0


async def test_what_a_failed_unit_left_behind_counts(bench: Bench) -> None:
    """systemd gives up on processes that SIGKILL does not end, and calls the unit failed."""
    group = bench.directory / "groups" / "system.slice" / "web.service"
    group.mkdir(parents=True)
    (group / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    path = Variant("s", "/system.slice/web.service")
    bench.manager.add("web.service", active="failed", properties={"ControlGroup": path})
    for action in ("monitor", "stop"):
        result = await bench.run(action)
        assert result.exit_code == 1
        assert "its control group /system.slice/web.service still has processes" in result.exit_reason
    (group / "cgroup.events").write_text("populated 0\nfrozen 0\n")
    assert [await bench.code(action) for action in ("monitor", "stop")] == [7, 0]


async def test_what_cannot_be_found_out_of_a_failed_unit_is_not_taken_for_nothing(bench: Bench) -> None:
    refusal = RefusalError("org.freedesktop.DBus.Error.NoReply", "Did not receive a reply")
    unit = bench.manager.add("web.service", active="failed", properties={"ControlGroup": refusal})
    for action in ("monitor", "stop"):
        result = await bench.run(action)
        assert (result.exit_code, result.exit_reason) == (
            1, "web.service is failed (dead), and systemd does not say its control group: Did not receive a reply"
        )  # fmt: skip
    group = bench.directory / "groups" / "system.slice" / "web.service"
    group.mkdir(parents=True)
    (group / "cgroup.events").symlink_to(group / "cgroup.events")
    unit.properties = {"ControlGroup": Variant("s", "/system.slice/web.service")}
    for action in ("monitor", "stop"):
        result = await bench.run(action)
        assert result.exit_code == 1
        assert "its control group /system.slice/web.service cannot be read: Too many levels" in result.exit_reason
    (group / "cgroup.events").unlink()
    (group / "cgroup.procs").symlink_to(group / "cgroup.procs")
    assert await bench.code("stop") == 1
    (group / "cgroup.procs").unlink()
    assert [await bench.code(action) for action in ("monitor", "stop")] == [7, 0]


async def test_a_unit_that_systemd_forgets_meanwhile_has_left_nothing(bench: Bench) -> None:
    refusal = RefusalError("org.freedesktop.DBus.Error.UnknownObject", "Unknown object")
    bench.manager.add("web.service", active="failed", properties={"ControlGroup": refusal})
    assert [await bench.code(action) for action in ("monitor", "stop")] == [7, 0]


async def test_a_unit_that_fails_to_start_says_why(bench: Bench) -> None:
    bench.manager.add("web.service", start_result="failed")
    result = await bench.run("start")
    assert (result.exit_code, result.status) == (1, ExecutionStatus.DONE)
    assert result.exit_reason == (
        "web.service is failed (failed); systemd's job: failed; result exit-code, exit status 3; "
        "journalctl -u web.service"
    )


async def test_a_unit_that_ends_at_once_has_not_been_started(bench: Bench) -> None:
    bench.manager.add("web.service", after_start="inactive", properties={"Type": Variant("s", "oneshot")})
    result = await bench.run("start")
    assert result.exit_code == 1
    assert "RemainAfterExit=yes" in result.exit_reason


@pytest.mark.parametrize(
    ("load", "words"), [("masked", "is masked"), ("bad-setting", "has a setting"), ("error", "cannot be read")]
)
async def test_units_that_cannot_be_used(bench: Bench, load: str, words: str) -> None:
    bench.manager.add("web.service", load=load)
    started = await bench.run("start")
    assert (started.exit_code, started.status) == (5, ExecutionStatus.NOT_INSTALLED)
    assert words in started.exit_reason
    assert [await bench.code(action) for action in ("monitor", "stop")] == [7, 0]
    assert bench.manager.units["web.service"].log == []


async def test_a_unit_that_is_not_there(bench: Bench) -> None:
    started = await bench.run("start", "nope")
    assert (started.exit_code, started.exit_reason) == (5, "there is no unit nope.service")
    assert [await bench.code(action, "nope") for action in ("monitor", "stop")] == [7, 0]


async def test_a_unit_whose_file_was_removed_is_stopped_all_the_same(bench: Bench) -> None:
    unit = bench.manager.add("web.service", active="active", load="not-found")
    assert await bench.code("monitor") == 0
    assert await bench.code("stop") == 0
    assert unit.active == "inactive"


async def test_a_name_that_no_unit_can_have(bench: Bench) -> None:
    codes = [await bench.code(action, "@x@") for action in ("start", "monitor", "stop")]
    assert codes == [6, 6, 0]


async def test_another_name_of_a_unit_means_that_unit(bench: Bench, until) -> None:
    unit = bench.manager.add("mariadb.service")
    bench.manager.aliases["mysql.service"] = "mariadb.service"
    assert await bench.code("start", "mysql") == 0
    assert (bench.runtime_units / "mariadb.service.d" / "50-haclusterd.conf").exists()
    died: list[ResourceId] = []
    bench.agents.watch(R1, "r1", died.append)
    await until(lambda: bench.agents._bus._watches)
    bench.manager.become(unit, "failed")
    await until(lambda: died)
    assert await bench.code("stop", "mysql") == 0
    await until(lambda: not (bench.runtime_units / "mariadb.service.d").exists())


async def test_an_action_that_units_do_not_have(bench: Bench) -> None:
    bench.manager.add("web.service")
    for action in ("notify", "promote", "migrate_to", "reload-agent"):
        assert await bench.code(action) == 3
    assert bench.manager.calls == []


async def test_without_systemd_nothing_can_run(bench: Bench) -> None:
    bench.runtime_units.rmdir()
    for action in ("monitor", "start", "stop"):
        result = await bench.run(action)
        assert (result.exit_code, result.status) == (5, ExecutionStatus.NOT_INSTALLED)
        assert "no systemd runs here" in result.exit_reason


# -- what others do to the unit -------------------------------------------------------------------------------------


async def test_a_unit_that_dies_or_is_stopped_by_hand_is_seen_at_once(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service", active="active")
    other = bench.manager.add("other.service", active="active")
    assert await bench.code("monitor") == 0
    died: list[ResourceId] = []
    bench.agents.watch(R1, "r1", died.append)
    await until(lambda: died == [R1])  # Whatever happened before the watch began.
    bench.manager.become(other, "failed")
    for number, state in enumerate(("deactivating", "inactive", "failed"), start=2):
        bench.manager.become(unit, state)
        await until(lambda number=number: len(died) == number)
    bench.manager.become(unit, "active")
    bench.agents.unwatch(R1)
    await until(lambda: not bench.agents._bus._watches)
    bench.manager.become(unit, "failed")
    assert await bench.code("monitor") == 7
    assert len(died) == 4


async def test_a_stop_goes_on_until_the_unit_stays_down(bench: Bench, until) -> None:
    """A unit that something starts again has not been stopped."""
    unit = bench.manager.add("web.service", active="active", after_stop="active")
    stopped = bench.begin(bench.call("stop"))
    await until(lambda: unit.log.count("stop") > 1)
    assert not stopped.done()
    unit.after_stop = "inactive"
    assert (await stopped).exit_code == 0


async def test_words_that_systemd_has_not_said_do_not_count(bench: Bench, until) -> None:
    """Any program may send a signal to this connection and call it systemd's."""
    unit = bench.manager.add("web.service")
    unit.may_start.clear()
    started = bench.begin(bench.call("start"))
    await until(lambda: unit.job)
    liar = MessageBus(bus_address=bench.bus.address)
    await liar.connect()
    target = bench.agents._bus._connection.bus.unique_name
    job = f"{MANAGER_PATH}/job/{unit.job}"
    lie = Message(
        destination=target, path=MANAGER_PATH, interface=f"{SYSTEMD}.Manager", member="JobRemoved",
        message_type=MessageType.SIGNAL, signature="uoss", body=[unit.job, job, unit.id, "done"],
    )  # fmt: skip
    await liar.send(lie)
    assert await bench.code("monitor", "other") == 7
    assert not bench.agents._bus._connection.ended_jobs
    assert not started.done()
    unit.may_start.set()
    assert (await started).exit_code == 0
    liar.disconnect()


# -- time limits ----------------------------------------------------------------------------------------------------


async def test_a_start_that_takes_too_long_goes_on_and_is_stopped_by_the_stop(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service")
    unit.may_start.clear()
    late = await bench.run("start", timeout_ms=300)
    assert (late.exit_code, late.status) == (1, ExecutionStatus.TIMEOUT)
    assert late.exit_reason == "start did not complete within 300ms: the start job of web.service is not done"
    assert bench.records(), "the next life must know that it goes on"
    assert (await bench.run("monitor", timeout_ms=200)).status is ExecutionStatus.TIMEOUT, "it may become active"
    assert await bench.code("stop") == 0
    unit.may_start.set()
    assert await bench.code("monitor") == 7
    await until(lambda: not bench.records())


async def test_a_start_does_not_overtake_a_stop_that_took_too_long(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service", active="active")
    unit.may_stop.clear()
    assert (await bench.run("stop", timeout_ms=300)).status is ExecutionStatus.TIMEOUT
    assert (await bench.run("monitor", timeout_ms=200)).status is ExecutionStatus.TIMEOUT
    late = await bench.run("start", timeout_ms=300)
    assert late.exit_reason.startswith("start did not complete within 300ms: web.service is deactivating")
    started = bench.begin(bench.call("start"))
    await until(lambda: bench.manager.calls.count("LoadUnit web.service") > 2)
    assert "StartUnit web.service" not in bench.manager.calls
    unit.may_stop.set()
    assert (await started).exit_code == 0
    assert unit.log == ["stop", "start"]
    await until(lambda: not bench.records())


async def test_a_systemd_that_hangs_holds_up_nothing_but_its_own_actions(bench: Bench, until) -> None:
    bench.manager.add("web.service", active="active")
    assert await bench.code("monitor") == 0
    bench.manager.is_silent = True
    result = await bench.run("monitor", timeout_ms=200)
    assert (result.status, result.exit_reason) == (
        ExecutionStatus.TIMEOUT, "monitor did not complete within 200ms: no answer from systemd",
    )  # fmt: skip
    assert (await bench.run("stop", timeout_ms=200)).status is ExecutionStatus.TIMEOUT
    bench.manager.speak_again()
    assert await bench.code("stop") == 0


# -- the lease ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unanswered_max", [systemd_bus.UNANSWERED_MAX, 140])
async def test_more_questions_than_the_bus_daemon_takes_at_a_time_are_no_failures(
    bench: Bench, until, monkeypatch: pytest.MonkeyPatch, unanswered_max: int
) -> None:
    monkeypatch.setattr(systemd_bus, "UNANSWERED_MAX", unanswered_max)
    names = [f"web{number}" for number in range(300)]
    for name in names:
        bench.manager.add(f"{name}.service", active="active")
    assert await bench.code("monitor", "web0") == 0
    bench.manager.is_silent = True
    calls = [bench.call(action, name, resource=ResourceId(f"{name}-{action}"))
             for action, named in (("monitor", names[:150]), ("stop", names[150:])) for name in named]  # fmt: skip
    results = [bench.begin(call) for call in calls]
    await until(lambda: len(bench.manager._unanswered) >= min(unanswered_max, PENDING_MAX) - 1)
    bench.manager.speak_again()
    assert {(await result).exit_code for result in results} == {0}
    assert {unit.active for unit in bench.manager.units.values()} == {"active", "inactive"}


async def test_without_a_lease_nothing_is_started_and_everything_is_stopped(bench: Bench) -> None:
    unit = bench.manager.add("web.service", active="active")
    bench.has_lease = False
    assert await bench.code("stop") == 0
    result = await bench.run("start")
    assert (result.is_begun, result.status) == (False, ExecutionStatus.CANCELLED)
    assert unit.log == ["stop"]


async def test_a_start_that_systemd_begins_after_the_lease_is_stopped(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service")
    assert await bench.code("monitor") == 7
    real = bench.manager._enqueue

    def enqueue(name: str, kind: str) -> str:
        bench.has_lease = False
        return real(name, kind)

    bench.manager._enqueue = enqueue
    result = await bench.run("start")
    assert (result.is_begun, result.exit_code) == (True, 1)
    assert result.exit_reason == "this node's lease ended while it began"
    await until(lambda: unit.log == ["start", "stop"] and unit.active == "inactive")


async def test_a_start_that_is_given_up_is_not_sent_later(bench: Bench, until) -> None:
    """The node acts alone: it gives the start up and stops the unit, while the bus is away."""
    unit = bench.manager.add("web.service")
    assert await bench.code("monitor") == 7
    bench.manager.is_silent = True
    call = bench.call("start")
    started = bench.begin(call)
    await until(lambda: bench.manager._unanswered)
    bench.agents.kill(call.key)
    assert (await started).status is ExecutionStatus.CANCELLED
    stopped = bench.begin(bench.call("stop"))
    bench.manager.speak_again()
    assert (await stopped).exit_code == 0
    assert "StartUnit web.service" not in bench.manager.calls
    assert unit.log == []


# -- a bus that goes away -------------------------------------------------------------------------------------------


async def test_a_bus_that_is_away_is_named_and_waited_for(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service", active="active")
    assert await bench.code("monitor") == 0
    died: list[ResourceId] = []
    bench.agents.watch(R1, "r1", died.append)
    await until(lambda: died)
    bench.bus.kill()
    result = await bench.run("monitor", timeout_ms=400)
    assert result.status is ExecutionStatus.TIMEOUT
    assert result.exit_reason.startswith("monitor did not complete within 400ms: D-Bus is away (")
    waiting = bench.begin(bench.call("monitor"))
    await until(bench.agents.waits)
    [text] = bench.agents.waits()
    assert text.startswith("systemd cannot be reached over D-Bus since 2 s (")
    assert text.endswith("; monitor of r1 waits for it; systemctl status dbus")
    died.clear()
    bench.bus.start()
    await bench.manager.connect()
    assert (await waiting).exit_code == 0
    await until(lambda: died)  # What it became in the meantime nobody knows.
    assert bench.agents.waits() == ()
    died.clear()
    bench.manager.become(unit, "failed")
    await until(lambda: died)


async def test_a_start_whose_bus_goes_away_ends_with_what_became_of_the_unit(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service")
    unit.may_start.clear()
    started = bench.begin(bench.call("start"))
    await until(lambda: unit.job)
    bench.bus.kill()
    await until(lambda: not bench.manager.bus.connected)
    unit.may_start.set()
    await until(lambda: unit.active == "active" and not unit.job)
    assert not started.done()
    bench.bus.start()
    await bench.manager.connect()
    assert (await started).exit_code == 0
    assert unit.log == ["start"]


async def test_a_stop_whose_bus_goes_away_is_sent_again(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service", active="active")
    assert await bench.code("monitor") == 0
    bench.manager.is_silent = True
    stopped = bench.begin(bench.call("stop"))
    await until(lambda: bench.manager._unanswered)
    bench.bus.kill()
    await until(lambda: not bench.manager.bus.connected)
    bench.manager.is_silent, bench.manager._unanswered = False, []
    bench.bus.start()
    await bench.manager.connect()
    assert (await stopped).exit_code == 0
    assert unit.active == "inactive"


async def test_a_systemd_that_runs_into_a_new_image_is_subscribed_to_again(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service", active="active")
    assert await bench.code("monitor") == 0
    died: list[ResourceId] = []
    bench.agents.watch(R1, "r1", died.append)
    await until(lambda: died)
    bench.manager.disconnect()
    await bench.manager.connect()
    assert await bench.code("monitor") == 0
    died.clear()
    bench.manager.become(unit, "failed")
    await until(lambda: died)
    assert bench.manager.calls.count("Subscribe") == 2


# -- the daemon's next life -----------------------------------------------------------------------------------------


async def test_the_next_life_waits_for_what_systemd_still_does(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service")
    unit.may_start.clear()
    call = bench.call("start")
    bench.begin(call)
    await until(lambda: unit.job)
    bench.die()
    ended: list[str] = []
    [adopted] = bench.begin_incarnation(SECOND).adopt(ended.append)
    assert (adopted.key, adopted.resource, adopted.action, adopted.is_running) == (call.key, R1, "start", True)
    await until(lambda: bench.manager.calls.count("Subscribe") == 2)
    assert (await bench.run("monitor", timeout_ms=300)).status is ExecutionStatus.TIMEOUT
    assert not ended
    unit.may_start.set()
    await until(lambda: ended == [call.key])
    assert not bench.records()
    assert await bench.code("monitor") == 0
    assert unit.log == ["start"]


async def test_a_stop_takes_the_place_of_a_start_of_the_life_before_that_was_killed(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service")
    unit.may_start.clear()
    call = bench.call("start")
    bench.begin(call)
    await until(lambda: unit.job)
    bench.die()
    ended: list[str] = []
    agents = bench.begin_incarnation(SECOND)
    assert agents.adopt(ended.append)
    await until(lambda: bench.manager.calls.count("Subscribe") == 2)
    agents.kill(call.key)
    await until(lambda: ended == [call.key])
    assert await bench.code("stop") == 0
    assert await bench.code("monitor") == 7
    assert unit.active == "inactive"
    await until(lambda: not bench.records())
    assert ended == [call.key]


async def test_what_was_recorded_and_never_sent_ends_at_once(bench: Bench, until) -> None:
    bench.manager.add("web.service")
    bench.manager.is_silent = True
    call = bench.call("start")
    bench.begin(call)
    await until(bench.records)
    bench.die()
    bench.manager.is_silent, bench.manager._unanswered = False, []
    ended: list[str] = []
    assert bench.begin_incarnation(SECOND).adopt(ended.append)
    await until(lambda: ended == [call.key])
    assert await bench.code("monitor") == 7


async def test_a_stop_of_the_life_before_is_waited_for_too(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service", active="active")
    unit.may_stop.clear()
    bench.begin(bench.call("stop"))
    await until(lambda: unit.active == "deactivating")
    bench.die()
    ended: list[str] = []
    assert bench.begin_incarnation(SECOND).adopt(ended.append)
    await until(lambda: bench.manager.calls.count("Subscribe") == 2)
    assert not ended
    unit.may_stop.set()
    await until(lambda: ended)
    assert await bench.code("monitor") == 7


async def test_what_another_boot_was_about_is_forgotten(bench: Bench, until) -> None:
    unit = bench.manager.add("web.service")
    unit.may_start.clear()
    bench.begin(bench.call("start"))
    await until(lambda: unit.job)
    bench.die()
    assert bench.begin_incarnation(Incarnation("boot-2", "00000000000000cc")).adopt(lambda _key: None) == ()
    assert not bench.records()


# -- meta-data ------------------------------------------------------------------------------------------------------


async def test_what_a_unit_says_of_itself(bench: Bench) -> None:
    (bench.directory / "files").mkdir()
    (bench.directory / "files" / "web.service").touch()
    bench.manager.add("web.service")
    answers: asyncio.Queue[Any] = asyncio.Queue()
    agent = AgentReference("systemd", None, "web")
    bench.agents.metadata(agent, answers.put_nowait)
    metadata = await answers.get()
    assert metadata.shortdesc == "the unit web.service"
    assert metadata.facts().action_timeouts_ms == {"start": 95_000, "stop": None, "monitor": None}
    assert metadata.parameters == {}
    assert bench.agents.installed() == (agent,)
    bench.agents.metadata(AgentReference("systemd", None, "nope"), answers.put_nowait)
    assert await answers.get() is None
