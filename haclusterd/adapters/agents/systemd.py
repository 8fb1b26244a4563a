"""Resources of class systemd: units, started, stopped and monitored over D-Bus (agents-and-fencing.md §2).

Invariants:

* The timeout of an action is kept on the main loop, whatever the bus does. At its end the result is TIMEOUT, and
  systemd continues its work on the unit: until the unit is at rest, the next incarnation of this daemon finds a record
  of it, and no action of this one returns "not running".
* A start or a stop is recorded in the runtime directory before it is sent. A later incarnation in the same boot waits
  until systemd has finished with that unit; it does not send it again.
* No action starts a process.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from haclusterd.adapters.agents.action_records import ActionRecord, ActionRecords
from haclusterd.adapters.agents.results import describe_timeout
from haclusterd.adapters.agents.systemd_bus import SystemdBus
from haclusterd.adapters.agents.systemd_units import RUNNING, Answer, Units, Work, unit_name
from haclusterd.adapters.agents.unit_files import DIRECTORIES, UnitFiles
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.model.agent_calls import AdoptedAction, AgentCall, AgentResult
from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, Incarnation, ResourceId
from haclusterd.model.instants import Instant, after, elapsed_ms
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.records import dataclass
from haclusterd.ports.agents import CANNOT_BE_ASKED, ActionMetadata, AgentMetadata
from haclusterd.ports.clock import Clock, Timer

STANDARD: Final = "systemd"
RECORDED: Final = frozenset({"start", "stop"})
DESCRIPTION_TIMEOUT_MS: Final = 2000
ADVICE_RESERVE_MS: Final = 5000
"""Time that an action should have beyond the unit's own time limit, so that systemd gives up before us."""
AWAY_SHOWN_S: Final = 2
LOOK_AGAIN_MS: Final = 5000
"""How long an unsuitable setting is shown before it is looked at again."""


@dataclass(frozen=True, slots=True)
class SystemdPlaces:
    """The places of systemd on this machine."""

    bus_address: str
    runtime_units: Path = Path("/run/systemd/system")
    """Drop-ins of this boot; it exists if systemd is process 1 (sd_booted(3))."""
    unit_files: tuple[Path, ...] = DIRECTORIES
    control_groups: Path = Path("/sys/fs/cgroup")


@dataclass(eq=False, slots=True)
class _Action:
    """An action that was requested and has not been answered."""

    call: AgentCall
    done: Callable[[AgentResult], None]
    work: Work
    begun: Instant
    timer: Timer | None = None
    cancel: Callable[[], None] = lambda: None


def _always(_resource: ResourceId) -> bool:
    return True


class SystemdAgents:
    """AgentRunner for class systemd."""

    def __init__(
        self,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        runtime_directory: Path,
        incarnation: Incarnation,
        places: SystemdPlaces,
        has_lease: Callable[[], bool],
        is_configured: Callable[[ResourceId], bool] = _always,
    ) -> None:
        """`has_lease` is called on the bus's thread, just before a start is sent and just after it.

        `is_configured`: whether a resource is in the configuration that is in force.
        """
        self._clock = clock
        self._loop = loop
        self._incarnation = incarnation
        self._places = places
        self._has_lease = has_lease
        self._is_configured = is_configured
        self._records = ActionRecords(runtime_directory / "unit-actions", ReadyThreads(1))
        self._files = UnitFiles(places.unit_files)
        self._bus = SystemdBus(places.bus_address)
        self._units = Units(self._bus, places.runtime_units, places.control_groups)
        self._actions: dict[str, _Action] = {}
        self._adopted: dict[str, Callable[[str], None]] = {}
        """Called when systemd has done what an earlier incarnation requested."""
        self._unit_of: dict[ResourceId, str] = {}
        self._remarks: dict[ResourceId, tuple[str, ...]] = {}
        """For each unit that was asked about: settings that are unsuitable for a resource."""
        self._looked_at = clock.now()
        """When they were looked at because they are shown."""

    # AgentRunner

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        """Execute the action; deliver its result on the main loop."""
        unit = unit_name(call.agent.type)
        self._unit_of[call.resource] = unit
        action = _Action(call, done, Work(unit, call.timeout_ms, self._has_lease), self._clock.now())
        self._actions[call.key] = action
        doing = {"start": self._units.start, "stop": self._units.stop, "monitor": self._units.monitor}.get(call.action)
        if doing is None:
            reason = f"class {STANDARD} has no action {call.action}"
            self._answer_soon(action, Answer(ExitCode.UNIMPLEMENTED, reason))
            return
        if not self._places.runtime_units.is_dir():
            reason = f"no systemd runs here: {self._places.runtime_units} is not there"
            self._answer_soon(action, Answer(ExitCode.NOT_INSTALLED, reason, ExecutionStatus.NOT_INSTALLED))
            return
        timeout = after(action.begun, call.timeout_ms)
        action.timer = self._clock.call_at(timeout, lambda: self._timed_out(action))

        async def work() -> None:
            if call.action in RECORDED:
                try:
                    self._records.write(self._record(action, timeout))
                except OSError as error:
                    reason = f"the action could not be recorded: {error.strerror}"
                    self._call_main(lambda: self._answer(action, _failed(reason)))
                    return
            answer = await doing(action.work)
            if call.action in RECORDED:
                self._records.remove(call.key)
            self._call_main(lambda: self._answer(action, answer))
            if call.action == "monitor" and answer.code is ExitCode.NOT_RUNNING:
                self._call_main(lambda: self._remarks.update({call.resource: answer.remarks}))

        action.cancel = self._bus.do(work)
        if call.action == "monitor" and self._remarks.get(call.resource):
            self._look_at_settings(call.resource)

    def kill(self, key: str) -> None:
        """Stop waiting for the action; its result is CANCELLED. systemd continues what it was asked to do.

        The same holds for a request of an earlier incarnation: a stop replaces it.
        """
        self._end_adopted(key)
        action = self._actions.get(key)
        if action is not None:
            self._give_up(action, Answer(ExitCode.ERROR, "cancelled", ExecutionStatus.CANCELLED))

    def adopt(self, ended: Callable[[str], None]) -> tuple[AdoptedAction, ...]:
        """Find the requests to systemd by earlier incarnations of this boot, and wait until they are done."""
        adopted = []
        for record in self._records.read_all():
            if record.incarnation.boot_id != self._incarnation.boot_id:
                self._records.remove(record.key)
                continue
            self._adopted[record.key] = ended
            self._settle(record.key, record.path, self._end_adopted)
            adopted.append(
                AdoptedAction(record.key, record.resource, record.action, record.deadline, is_running=True)
            )
        return tuple(adopted)

    def _end_adopted(self, key: str) -> None:
        ended = self._adopted.pop(key, None)
        if ended is not None:
            self._clock.call_soon(lambda: ended(key))

    def keep_records(self) -> int:
        """Write again the records of running actions that others removed; return how many. Raises OSError."""
        return self._records.write_again()

    def stop(self) -> None:
        """End the connection; this object must not be used any more."""
        self._bus.stop()

    def watch(self, resource: ResourceId, instance: str, died: Callable[[ResourceId], None]) -> None:  # noqa: ARG002 (the port has it)
        """Watch the unit of an active resource, and call `died` whenever it is no longer active."""

        def changed(state: str) -> None:
            if state not in RUNNING:
                self._call_main(lambda: died(resource))

        self._bus.watch(resource, self._unit_of[resource], changed)
        self._remarks[resource] = ()
        self._look_at_settings(resource)

    def unwatch(self, resource: ResourceId) -> None:
        """Stop watching."""
        self._bus.unwatch(resource)

    def _look_at_settings(self, resource: ResourceId) -> None:
        unit = self._unit_of[resource]

        def note(found: tuple[str, ...]) -> None:
            if resource in self._remarks:
                self._remarks[resource] = found

        async def look() -> None:
            found = await self._units.remarks(unit)
            self._call_main(lambda: note(found))

        self._bus.do(look)

    def metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        """Ask systemd for the unit's description; None when there is no such unit."""
        if not self.exists(agent):
            self._clock.call_soon(lambda: done(None))
            return
        answered: list[bool] = []

        def answer(text: str, advice_ms: dict[str, int | None]) -> None:
            if not answered:
                answered.append(True)
                timer.cancel()
                done(_metadata(agent, text, advice_ms))

        async def ask() -> None:
            text, limits = await self._units.description(unit_name(agent.type))
            advice = {name: None if ms is None else ms + ADVICE_RESERVE_MS for name, ms in limits.items()}
            self._call_main(lambda: answer(text, advice))

        timer = self._clock.call_at(after(self._clock.now(), DESCRIPTION_TIMEOUT_MS), lambda: answer("", {}))
        if self._places.runtime_units.is_dir():
            self._bus.do(ask)
        else:
            self._clock.call_soon(lambda: answer("", {}))

    def validate(
        self, question: ValidationQuestion, timeout_ms: int, done: Callable[[Validation], None]  # noqa: ARG002 (the port has it)
    ) -> None:
        """Answer that agents of this class have no `validate-all`."""
        self._clock.call_soon(lambda: done(CANNOT_BE_ASKED))

    def waits(self) -> tuple[str, ...]:
        """Report that D-Bus is away, if a unit is a resource; otherwise unsuitable settings of units."""
        away = self._bus.away()
        if away is None or away[0] < AWAY_SHOWN_S:
            return tuple(text for _, found in sorted(self._shown_remarks().items()) for text in found)
        waiting = ", ".join(sorted(f"{each.call.action} of {each.call.resource}" for each in self._actions.values()))
        waits = f"; {waiting} waits for it" if waiting else ""
        text = f"systemd cannot be reached over D-Bus since {int(away[0])} s ({away[1]}){waits}; systemctl status dbus"
        return (text,)

    def _shown_remarks(self) -> dict[ResourceId, tuple[str, ...]]:
        """Return the remarks on units of configured resources, and look soon whether they still apply."""
        self._remarks = {each: found for each, found in self._remarks.items() if self._is_configured(each)}
        shown = {each: found for each, found in self._remarks.items() if found}
        now = self._clock.now()
        if shown and elapsed_ms(self._looked_at, now) >= LOOK_AGAIN_MS:
            self._looked_at = now
            for resource in shown:
                self._look_at_settings(resource)
        return shown

    def exists(self, agent: AgentReference) -> bool:
        """Return whether there is a unit file for it."""
        return self._files.exists(agent.type)

    def installed(self) -> tuple[AgentReference, ...]:
        """Return the units that have a file here."""
        return tuple(AgentReference(STANDARD, None, name) for name in self._files.listing())

    # One action

    def _record(self, action: _Action, deadline: Instant) -> ActionRecord:
        call = action.call
        return ActionRecord(
            call.key, call.resource, call.action, self._incarnation, action.work.unit, action.begun, deadline
        )

    def _timed_out(self, action: _Action) -> None:
        reason = describe_timeout(action.call.action, action.call.timeout_ms)
        away = self._bus.away()
        stage = f"D-Bus is away ({away[1]})" if away is not None else action.work.stage
        reason += f": {stage}" if stage else ""
        self._give_up(action, Answer(ExitCode.ERROR, reason, ExecutionStatus.TIMEOUT))

    def _give_up(self, action: _Action, answer: Answer) -> None:
        """Answer now; the record of what was sent stays for as long as systemd works on it."""
        action.cancel()
        if action.call.action in RECORDED and action.timer is not None:
            self._settle(action.call.key, action.work.unit, lambda _key: None)
        self._answer_soon(action, answer)

    def _settle(self, key: str, unit: str, ended: Callable[[str], None]) -> None:
        async def settle() -> None:
            await self._units.settle(unit)
            self._records.remove(key)
            self._call_main(lambda: ended(key))

        self._bus.do(settle)

    def _answer_soon(self, action: _Action, answer: Answer) -> None:
        self._clock.call_soon(lambda: self._answer(action, answer))

    def _answer(self, action: _Action, answer: Answer) -> None:
        if self._actions.pop(action.call.key, None) is None:
            return
        if action.timer is not None:
            action.timer.cancel()
        executed_ms = elapsed_ms(action.begun, self._clock.now())
        action.done(
            AgentResult(
                action.call.key,
                int(answer.code),
                answer.status,
                answer.reason,
                "",
                "",
                queued_ms=0,
                executed_ms=executed_ms,
                is_begun=answer.is_begun,
            )
        )

    def _call_main(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(call)


def _failed(reason: str) -> Answer:
    return Answer(ExitCode.ERROR, reason, ExecutionStatus.ERROR)


def _metadata(agent: AgentReference, text: str, advice_ms: dict[str, int | None]) -> AgentMetadata:
    actions = {name: ActionMetadata(name, advice_ms.get(name)) for name in ("start", "stop", "monitor")}
    return AgentMetadata(agent, "", text, "", {}, actions)
