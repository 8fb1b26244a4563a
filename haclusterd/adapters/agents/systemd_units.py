"""Actions on one systemd unit, and the meaning of its states for the cluster (Pacemaker Explained, "Systemd").

Every function here runs on the bus's thread. None has a time limit of its own: the caller has one, and cancels.

Rules that safety.md §8 relies on:

* Only a unit at rest is reported as "not running": inactive or failed, without a pending job and, if it failed, without
  a process in its control group.
* A start begins only when no stop is under way, and the lease is checked just before it is sent.
* A stop is sent again for as long as the unit is not at rest.

`daemon-reload` takes systemd from 20 ms to seconds, so a unit that died and is started again keeps its drop-in, and
starts and stops that come together share one reload, which waits until each of them has written or needs nothing. What
systemd has read by itself needs none.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from haclusterd.adapters.agents.systemd_bus import (
    MANAGER,
    MANAGER_PATH,
    SERVICE,
    TOO_MANY,
    UNIT,
    BusError,
    BusLostError,
    SystemdBus,
    unit_path,
)
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.records import dataclass, field

SUFFIXES: Final = (
    ".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope",
)  # fmt: skip
DEFAULT_INSTANCE: Final = "pacemaker"
"""The instance of a template that is named without one, as in Pacemaker, so that what Pacemaker started is found."""
DROP_IN: Final = "50-haclusterd.conf"
RUNNING: Final = frozenset({"active", "reloading", "refreshing"})
AT_REST: Final = frozenset({"inactive", "failed"})
UNUSABLE: Final = {
    "not-found": "there is no unit {unit}",
    "masked": "unit {unit} is masked (systemctl unmask {unit})",
    "bad-setting": "unit {unit} has a setting that systemd refuses (systemd-analyze verify {unit})",
    "error": "unit {unit} cannot be read (systemctl status {unit})",
}
NO_SUCH_UNIT: Final = frozenset({f"org.freedesktop.systemd1.{name}" for name in ("NoSuchUnit", "LoadFailed")})
FORGOTTEN: Final = NO_SUCH_UNIT | {"org.freedesktop.DBus.Error.UnknownObject"}
MASKED: Final = "org.freedesktop.systemd1.UnitMasked"
BAD_NAME: Final = frozenset({"org.freedesktop.DBus.Error.InvalidArgs", "org.freedesktop.systemd1.InvalidName"})
PAUSES_MS: Final = (20, 500)
"""Pause between two checks of a unit that is not at rest, least and most; in between, a tenth of the action's
timeout."""
TIDY_S: Final = 5
GATHER_S: Final = 1
"""How long a reload waits for other starts and stops that have not written yet."""
OWN_UNIT: Final = "haclusterd.service"
NEEDS: Final = ("Requires", "Requisite", "BindsTo", "PartOf")
"""Settings by which a unit is stopped with another one."""
ENABLED: Final = frozenset({"enabled", "enabled-runtime"})
PULLS: Final = {"RequiredBy": "required", "BoundBy": "required", "WantedBy": "wanted", "UpheldBy": "wanted"}
"""Settings that name the units with which systemd starts one (systemd.unit(5), reverse properties)."""
OWN_TARGET: Final = "haclusterd-resources.target"
"""Target between the daemon and its units: the restart of a killed daemon does not wait for a unit's start."""
_TEXT: Final = """\
# Written by haclusterd while {unit} is a resource of the cluster, and removed when it is stopped.
# Before= makes a shutdown stop the cluster's daemon first, which is after that target and stops the unit in its turn.
# The cluster decides alone when the unit is started again.
[Unit]
Description=Cluster resource {unit}
StartLimitIntervalSec=0
"""
_TEXT_OF_ORDER: Final = f"Before={OWN_TARGET}\n"
_TEXT_OF_SERVICES: Final = "\n[Service]\nRestart=no\n"
LEAVES: Final = frozenset({"process", "none"})
"""Settings of KillMode with which a stopped service may have processes (systemd.kill(5))."""
_LEAVES: Final = (
    "{unit} has KillMode={mode}, so what its stop leaves runs on beside the copy on another node; set KillMode=mixed, "
    "or see that it leaves nothing"
)
_RESTARTS: Final = (
    "{unit} has Restart={restart} in a drop-in that is read after " + DROP_IN + ", so systemd starts it again and the "
    "cluster counts no failure; systemctl cat {unit}"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an action on a unit."""

    code: ExitCode
    reason: str = ""
    status: ExecutionStatus = ExecutionStatus.DONE
    is_begun: bool = True
    remarks: tuple[str, ...] = ()
    """Of a unit that does not run: settings that are unsuitable for a resource of the cluster."""


@dataclass(frozen=True, slots=True)
class UnitState:
    """The state of a unit, as systemd reports it."""

    id: str
    load: str
    active: str
    sub: str
    has_job: bool
    """Whether systemd has a pending job for it."""
    drop_ins: tuple[str, ...]
    is_outdated: bool
    """Whether its files have changed since systemd read them."""
    is_after_us: bool
    """Whether its own file orders it after this daemon, so that it is stopped before it."""
    needs_us: str
    """The setting by which it is stopped with this daemon; empty: there is none."""
    unit_file: str
    """Whether systemd starts it at boot, as systemd names it (`enabled`, `disabled`, `static`, ...)."""
    pulled_by: str = ""
    """Other units with which systemd starts it, with how they say so; empty: none that systemd knows of."""

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing of it runs, and nothing will by itself."""
        return self.active in AT_REST and not self.has_job

    @property
    def remarks(self) -> tuple[str, ...]:
        """Settings that are unsuitable for a resource of the cluster, each with the remedy."""
        found = []
        if self.unit_file in ENABLED:
            found.append(
                f"{self.id} is enabled, so systemd starts it at boot beside the cluster; systemctl disable {self.id}"
            )
        elif self.pulled_by:
            found.append(
                f"{self.id} is {self.pulled_by}, so systemd starts it with that beside the cluster, at boot too; "
                "take it out there"
            )
        if self.needs_us:
            found.append(f"{self.id} has {self.needs_us}={OWN_UNIT}, so it stops with the daemon; remove that line")
        elif self.is_after_us:
            found.append(f"{self.id} has After={OWN_UNIT}, so a shutdown stops it first; remove that line")
        return tuple(found)

    def __str__(self) -> str:
        return f"{self.id} is {self.active} ({self.sub})"


@dataclass(eq=False, slots=True)
class Work:
    """One action: what it may do, and its progress."""

    unit: str
    timeout_ms: int
    is_permitted: Callable[[], bool] = lambda: True
    """Called just before a start is sent, and again just after it."""
    stage: str = ""
    """What it waits for, as text; read on other threads."""
    pause_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.pause_s = max(PAUSES_MS[0], min(PAUSES_MS[1], self.timeout_ms // 10)) / 1000


def unit_name(type_: str) -> str:
    """Return the unit that an agent's type names: `nginx`, `nginx.service`, `vm@one`, `data.mount`."""
    name, suffix = type_, ".service"
    for known in SUFFIXES:
        if type_.endswith(known):
            name, suffix = type_.removesuffix(known), known
    return f"{name}{DEFAULT_INSTANCE if name.endswith('@') else ''}{suffix}"


class Units:
    """The units of this machine."""

    def __init__(self, bus: SystemdBus, runtime_units: Path, control_groups: Path) -> None:
        """`runtime_units`: directory of drop-ins for this boot only; `control_groups`: the unified hierarchy."""
        self._bus = bus
        self._runtime_units = runtime_units
        self._control_groups = control_groups
        self._wanted: set[str] = set()
        """Units whose drop-ins are to stay."""
        self._tidying: set[asyncio.Task[None]] = set()
        self._undecided: set[Work] = set()
        """Starts and stops that may soon change a drop-in."""
        self._decided = asyncio.Event()
        """Set when there are none any more."""

    async def monitor(self, work: Work) -> Answer:
        """Return whether a unit runs, as soon as it does or is at rest."""
        work.stage = "no answer from systemd"
        try:
            with suppress(BusError):
                if await self._bus.property(unit_path(work.unit), UNIT, "ActiveState") in RUNNING:
                    return Answer(ExitCode.OK)
            await self._load(work.unit)
            state = await self._settled(work)
        except BusError as error:
            return _refused(error, work.unit, ExitCode.NOT_RUNNING)
        if state.active in RUNNING:
            return Answer(ExitCode.OK)
        left = await self._left_over(state)
        if left:
            return Answer(ExitCode.ERROR, left)
        reason = UNUSABLE.get(state.load, str(state)).format(unit=state.id)
        return Answer(ExitCode.NOT_RUNNING, reason, remarks=state.remarks)

    async def start(self, work: Work) -> Answer:
        """Start a unit and wait until it is active."""
        work.stage = "no answer from systemd"
        self._undecided.add(work)
        try:
            await self._load(work.unit)
            state = await self._stopped_stopping(work)
            if state.load in UNUSABLE:
                reason = UNUSABLE[state.load].format(unit=state.id)
                return Answer(ExitCode.NOT_INSTALLED, reason, ExecutionStatus.NOT_INSTALLED)
            await self._put_drop_in(work, state)
            result = await self._send_start(work, state)
            if isinstance(result, Answer):
                return result
            state = await self._settled(work)
        except BusError as error:
            return _refused(error, work.unit, ExitCode.NOT_INSTALLED)
        except OSError as error:
            return Answer(ExitCode.ERROR, f"{error.filename}: {error.strerror}", ExecutionStatus.ERROR)
        finally:
            self._decide(work)
        if state.active in RUNNING:
            return Answer(ExitCode.OK)
        return Answer(ExitCode.ERROR, await self._why_not(state, result))

    async def _send_start(self, work: Work, state: UnitState) -> Answer | str:
        """Send the start; return the job's result as systemd names it, empty if the connection was lost."""
        connection = await self._bus.connected()
        try:
            async with connection.turns:
                if not work.is_permitted():
                    reason = "this node's lease ended before it began"
                    return Answer(ExitCode.ERROR, reason, ExecutionStatus.CANCELLED, is_begun=False)
                work.stage = f"systemd has not answered StartUnit {state.id}"
                [job] = await connection.call_now(MANAGER_PATH, MANAGER, "StartUnit", "ss", state.id, "replace")
            if not work.is_permitted():
                # It was sent in time and may have started late; like an agent that was executed late, it is ended.
                await connection.call(MANAGER_PATH, MANAGER, "StopUnit", "ss", state.id, "replace")
                return Answer(ExitCode.ERROR, "this node's lease ended while it began", ExecutionStatus.ERROR)
            work.stage = f"the start job of {state.id} is not done"
            return await connection.job_ended(str(job))
        except BusLostError:
            return ""

    async def stop(self, work: Work) -> Answer:
        """Stop a unit and wait until it is at rest."""
        work.stage = "no answer from systemd"
        result = ""
        self._undecided.add(work)
        try:
            await self._load(work.unit)
            state = await self._state(work.unit)
            self._wanted.discard(state.id)
            if state.is_at_rest:
                self._tidy_later(state)
            else:
                await self._remove_drop_in(work, state)
            self._decide(work)
            while not state.is_at_rest:
                result = await self._send_stop(work, state.id)
                state = await self._settled(work)
                if state.is_at_rest:
                    break
                if result not in {"", "done", "canceled"}:
                    return Answer(ExitCode.ERROR, await self._why_not(state, result))
                await asyncio.sleep(work.pause_s)  # Something else started it, or keeps doing so.
        except BusError as error:
            return _refused(error, work.unit, ExitCode.OK)
        finally:
            self._decide(work)
        left = await self._left_over(state)
        return Answer(ExitCode.ERROR, left) if left else Answer(ExitCode.OK)

    async def _send_stop(self, work: Work, unit: str) -> str:
        connection = await self._bus.connected()
        work.stage = f"systemd has not answered StopUnit {unit}"
        try:
            [job] = await connection.call(MANAGER_PATH, MANAGER, "StopUnit", "ss", unit, "replace")
            work.stage = f"the stop job of {unit} is not done"
            return await connection.job_ended(str(job))
        except BusLostError:
            return ""
        except BusError as error:
            if error.name != TOO_MANY:
                raise
            return ""

    async def settle(self, unit: str) -> None:
        """Wait until systemd has finished with a unit."""
        with suppress(BusError):
            await self._settled(Work(unit, PAUSES_MS[1]))

    async def remarks(self, unit: str) -> tuple[str, ...]:
        """Return settings of a unit that are unsuitable for a resource of the cluster; empty: there are none."""
        try:
            state = await self._state(unit)
            remarks = state.remarks
            if state.id.endswith(".service"):
                values = await self._bus.properties(unit_path(state.id), SERVICE)
                remarks += self._remarks_on_service(state, values)
        except BusError:
            return ()
        return remarks

    def _remarks_on_service(self, state: UnitState, values: Mapping[str, Any]) -> tuple[str, ...]:
        found = []
        restart, kill_mode = str(values.get("Restart", "no")), str(values.get("KillMode", ""))
        if restart != "no" and str(self._drop_in(state.id)) in state.drop_ins:
            found.append(_RESTARTS.format(unit=state.id, restart=restart))
        if kill_mode in LEAVES:
            found.append(_LEAVES.format(unit=state.id, mode=kill_mode))
        return tuple(found)

    async def description(self, unit: str) -> tuple[str, Mapping[str, int | None]]:
        """Return a unit's description, and the timeouts in ms of its start and its stop by its own settings."""
        path = unit_path(unit)
        try:
            text = str(await self._bus.property(path, UNIT, "Description"))
            if not unit.endswith(".service"):
                return text, {}
            start_us = await self._bus.property(path, SERVICE, "TimeoutStartUSec")
            stop_us = await self._bus.property(path, SERVICE, "TimeoutStopUSec")
        except BusError:
            return "", {}
        return text, {"start": _milliseconds(start_us), "stop": _milliseconds(stop_us)}

    async def _load(self, unit: str) -> None:
        """Have systemd load a unit; raises BusError if the name cannot be one."""
        await self._bus.ask(MANAGER_PATH, MANAGER, "LoadUnit", "s", unit)

    async def _state(self, unit: str) -> UnitState:
        values = await self._bus.properties(unit_path(unit), UNIT)
        return UnitState(
            id=str(values.get("Id", unit)),
            load=str(values.get("LoadState", "")),
            active=str(values.get("ActiveState", "")),
            sub=str(values.get("SubState", "")),
            has_job=_has_job(values),
            drop_ins=tuple(map(str, values.get("DropInPaths", ()))),
            is_outdated=bool(values.get("NeedDaemonReload", True)),
            is_after_us=OWN_UNIT in values.get("After", ()),
            needs_us=next((name for name in NEEDS if OWN_UNIT in values.get(name, ())), ""),
            unit_file=str(values.get("UnitFileState", "")),
            pulled_by=_pulled_by(values),
        )

    async def _settled(self, work: Work) -> UnitState:
        """Wait until a unit runs or is at rest; while it is being started, stopped or reloaded it is neither."""
        while True:
            state = await self._state(work.unit)
            if state.active in RUNNING or state.is_at_rest:
                return state
            work.stage = f"{state}{', with a job that is not done' if state.has_job else ''}"
            await asyncio.sleep(work.pause_s)

    async def _stopped_stopping(self, work: Work) -> UnitState:
        """Wait for a stop under way: one that exceeded its timeout must not be overtaken by a start."""
        while True:
            state = await self._state(work.unit)
            if state.active != "deactivating":
                return state
            self._decide(work)  # It may wait long.
            work.stage = str(state)
            await asyncio.sleep(work.pause_s)

    def _drop_in(self, unit: str) -> Path:
        return self._runtime_units / f"{unit}.d" / DROP_IN

    async def _put_drop_in(self, work: Work, state: UnitState) -> None:
        """Have the unit ordered before this daemon, and never restarted by systemd. Raises OSError."""
        self._wanted.add(state.id)
        path = self._drop_in(state.id)
        text = _TEXT.format(unit=state.id) + ("" if state.is_after_us else _TEXT_OF_ORDER)
        text += _TEXT_OF_SERVICES if state.id.endswith(".service") else ""
        if not path.is_file() or path.read_text() != text:
            path.parent.mkdir(mode=0o755, exist_ok=True)
            temporary = path.with_suffix(".new")
            temporary.write_text(text)
            temporary.replace(path)
            # A unit that nothing refers to is not kept in memory: systemd reads its files whenever it is asked for.
            state = await self._state(work.unit)
        if state.is_outdated or str(path) not in state.drop_ins:
            await self._reload(work)
        self._decide(work)

    async def _remove_drop_in(self, work: Work, state: UnitState) -> None:
        """Remove that ordering: a stop job of the unit would wait for that of this daemon, which waits for the unit."""
        path = self._drop_in(state.id)
        try:
            path.unlink()
        except FileNotFoundError:
            if str(path) not in state.drop_ins:
                return
        except OSError:
            return
        with suppress(OSError):
            path.parent.rmdir()
        with suppress(BusError):
            await self._reload(work)

    async def _reload(self, work: Work) -> None:
        """Have systemd read what was written for an action, together with what others write meanwhile."""
        self._decide(work)
        await self._bus.reload(self._others_have_written)

    def _decide(self, work: Work) -> None:
        """Note that an action has written its drop-in, needs none, or will be long about it."""
        self._undecided.discard(work)
        if not self._undecided:
            self._decided.set()

    async def _others_have_written(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(GATHER_S):
                while self._undecided:
                    self._decided.clear()
                    await self._decided.wait()

    def _tidy_later(self, state: UnitState) -> None:
        """Remove the drop-in of a unit that had ended before its stop, unless it is started again soon."""

        async def tidy() -> None:
            await asyncio.sleep(TIDY_S)
            if state.id not in self._wanted:
                await self._remove_drop_in(Work(state.id, PAUSES_MS[1]), state)

        task = asyncio.get_running_loop().create_task(tidy())
        self._tidying.add(task)
        task.add_done_callback(self._tidying.discard)

    async def _left_over(self, state: UnitState) -> str:
        """Return the processes that a unit left and that could not be stopped, as text; empty: there are none.

        Where that cannot be found out, there may be some. systemd forgets a unit only when its control group is empty.
        """
        if state.active != "failed" or not state.id.endswith(".service"):
            return ""
        try:
            group = str(await self._bus.property(unit_path(state.id), SERVICE, "ControlGroup"))
        except BusError as error:
            return "" if error.name in FORGOTTEN else f"{state}, and systemd does not say its control group: {error}"
        try:
            is_populated = bool(group) and _is_populated(self._control_groups / group.lstrip("/"))
        except OSError as error:
            return f"{state}, and its control group {group} cannot be read: {error.strerror}"
        return f"{state}, and its control group {group} still has processes" if is_populated else ""

    async def _why_not(self, state: UnitState, result: str) -> str:
        """Return why a unit is not in the requested state."""
        parts = [str(state)]
        if result:
            parts.append(f"systemd's job: {result}")
        if state.id.endswith(".service"):
            with suppress(BusError):
                values = await self._bus.properties(unit_path(state.id), SERVICE)
                parts += _how_it_ended(values)
        parts.append(f"journalctl -u {state.id}")
        return "; ".join(parts)


def _pulled_by(values: Mapping[str, Any]) -> str:
    found = {str(unit): word for name, word in PULLS.items() for unit in values.get(name, ())}
    return " and ".join(f"{word} by {unit}" for unit, word in sorted(found.items()))


def _how_it_ended(values: Mapping[str, Any]) -> list[str]:
    result, status = str(values.get("Result", "")), values.get("ExecMainStatus", 0)
    if result == "success" and values.get("Type") == "oneshot" and not values.get("RemainAfterExit"):
        return ["it has Type=oneshot: as a resource it needs RemainAfterExit=yes"]
    return [f"result {result}" + (f", exit status {status}" if status else "")] if result else []


def _refused(error: BusError, unit: str, without_unit: ExitCode) -> Answer:
    """Return systemd's refusal as an answer; `without_unit` is the exit code if there is no such unit."""
    if error.name in NO_SUCH_UNIT:
        is_missing = without_unit is ExitCode.NOT_INSTALLED
        status = ExecutionStatus.NOT_INSTALLED if is_missing else ExecutionStatus.DONE
        return Answer(without_unit, f"there is no unit {unit}: {error.text}", status)
    if error.name == MASKED:
        return Answer(ExitCode.NOT_INSTALLED, f"unit {unit} is masked", ExecutionStatus.NOT_INSTALLED)
    if error.name in BAD_NAME and without_unit is ExitCode.OK:
        return Answer(ExitCode.OK)
    if error.name in BAD_NAME:
        return Answer(ExitCode.NOT_CONFIGURED, f"{unit} cannot be a unit: {error.text}", ExecutionStatus.ERROR)
    return Answer(ExitCode.ERROR, f"systemd refused: {error.text or error.name}", ExecutionStatus.ERROR)


def _has_job(values: Mapping[str, Any]) -> bool:
    job = values.get("Job", (0, "/"))
    return bool(job[0])


def _milliseconds(microseconds: int) -> int | None:
    """Return systemd's time span in ms; None for infinity, and for zero, which systemd treats as infinity."""
    return microseconds // 1000 if 0 < microseconds < 2**63 else None


def _is_populated(group: Path) -> bool:
    """Return whether there are processes in a control group. Raises OSError when that cannot be found out."""
    with suppress(FileNotFoundError):
        return "populated 1" in (group / "cgroup.events").read_text()
    # There is no such group, or it is in the first version's hierarchy.
    return any(_has_pids(Path(directory)) for directory, _, _ in os.walk(group, onerror=_raise))


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _has_pids(group: Path) -> bool:
    try:
        return bool((group / "cgroup.procs").read_text().strip())
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV):  # It was removed meanwhile.
            return False
        raise
