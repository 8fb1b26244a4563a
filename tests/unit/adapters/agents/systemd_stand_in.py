"""A private bus, and on it a manager that answers as systemd does (org.freedesktop.systemd1(5)).

Units have jobs, and states between "inactive" and "active" that last as long as a test likes. What `replace` does to a
job, when JobRemoved is sent, that a start waits for the end of a stop, and which errors there are, is systemd 252's.
"""

import asyncio
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from haclusterd.model.records import dataclass, field

SYSTEMD = "org.freedesktop.systemd1"
MANAGER_PATH = "/org/freedesktop/systemd1"
CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={path}</listen>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="false"/>
    <allow receive_sender="*" eavesdrop="false"/>
  </policy>
</busconfig>
"""
HAS_BUS_DAEMON = shutil.which("dbus-daemon") is not None
NAME = re.compile(r"[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\-]*)?\.[a-z]+\Z")


class PrivateBus:
    """A dbus-daemon of this test's own. It can be killed and started again at the same address."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._socket = directory / "bus"
        self.address = f"unix:path={self._socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        file = self._directory / "bus.conf"
        file.write_text(CONFIGURATION.format(path=self._socket))
        self._process = subprocess.Popen(
            ["dbus-daemon", f"--config-file={file}", "--nofork", "--nopidfile", "--print-address=1"],
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "dbus-daemon did not start"

    def kill(self) -> None:
        if self._process is not None:
            assert self._process.stdout is not None
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._process = None
            self._socket.unlink(missing_ok=True)


@dataclass(eq=False)
class Unit:
    """One unit and how it fares."""

    id: str
    active: str = "inactive"
    sub: str = "dead"
    load: str = "loaded"
    start_result: str = "done"
    """Of its start job: done, failed, timeout, ..."""
    after_start: str = "active"
    """Its state when the start job is done."""
    may_start: asyncio.Event = field(default_factory=asyncio.Event)
    may_stop: asyncio.Event = field(default_factory=asyncio.Event)
    stop_result: str = "done"
    after_stop: str = "inactive"
    after: list[str] = field(default_factory=list)
    properties: dict[str, Variant] = field(default_factory=dict)
    """Of its service."""
    settings: dict[str, Variant] = field(default_factory=dict)
    """More of its properties as a unit."""
    read: dict[str, str] = field(default_factory=dict)
    """Its drop-ins with their text, when they were read."""
    is_kept: bool = True
    """Whether it stays in memory while it is inactive, since something refers to it."""
    job: int = 0
    job_kind: str = ""
    task: "asyncio.Task[None] | None" = None
    log: list[str] = field(default_factory=list)
    """What was begun: start, stop."""

    def __post_init__(self) -> None:
        self.may_start.set()
        self.may_stop.set()

    @property
    def drop_ins(self) -> list[str]:
        return sorted(self.read)

    def shown(self, present: Mapping[str, str]) -> Mapping[str, Variant]:
        return {
            "Id": Variant("s", self.id),
            "Description": Variant("s", f"the unit {self.id}"),
            "LoadState": Variant("s", self.load),
            "ActiveState": Variant("s", self.active),
            "SubState": Variant("s", self.sub),
            "Job": Variant("(uo)", [self.job, f"{MANAGER_PATH}/job/{self.job}" if self.job else "/"]),
            "DropInPaths": Variant("as", list(self.drop_ins)),
            "NeedDaemonReload": Variant("b", present != self.read),
            "After": Variant("as", self.after),
            **self.settings,
        }

    def shown_service(self) -> Mapping[str, Variant]:
        return {
            "Type": Variant("s", "notify"),
            "Result": Variant("s", "exit-code" if self.active == "failed" else "success"),
            "ExecMainStatus": Variant("i", 3 if self.active == "failed" else 0),
            "Restart": Variant("s", "no"),
            "KillMode": Variant("s", "control-group"),
            "RemainAfterExit": Variant("b", value=False),
            "ControlGroup": Variant("s", ""),
            "TimeoutStartUSec": Variant("t", 90_000_000),
            "TimeoutStopUSec": Variant("t", 2**64 - 1),
            **self.properties,
        }


class _Socket:
    """A socket that takes nothing while it is full: dbus-fast ends the connection then, systemd waits."""

    def __init__(self, actual: socket.socket) -> None:
        self._actual = actual

    def send(self, data: memoryview) -> int:
        try:
            return self._actual.send(data)
        except BlockingIOError:
            return 0


class StandIn:
    """The manager. Its methods are called on the test's loop."""

    def __init__(self, address: str, runtime_units: Path) -> None:
        self._address = address
        self._runtime_units = runtime_units
        self.bus: MessageBus | None = None
        self.units: dict[str, Unit] = {}
        self.aliases: dict[str, str] = {}
        self.calls: list[str] = []
        """Members that were called, with the unit where there is one."""
        self.reloads = 0
        self.is_silent = False
        """Answers nothing, as a systemd that hangs; what was asked is answered when it ends."""
        self.ignored: set[str] = set()
        """Calls that are never answered, as in `calls`."""
        self._unanswered: list[Message] = []
        self._jobs = 0

    async def connect(self) -> None:
        self.bus = MessageBus(bus_address=self._address)
        await self.bus.connect()
        self.bus._writer.sock = _Socket(self.bus._sock)
        self.bus.add_message_handler(self._heard)
        await self.bus.request_name(SYSTEMD)

    def disconnect(self) -> None:
        assert self.bus is not None
        self.bus.disconnect()

    def add(self, name: str, **changes: Any) -> Unit:
        unit = self.units[name] = Unit(name, **changes)
        return unit

    def become(self, unit: Unit, active: str, sub: str = "") -> None:
        """Change a unit's state, as its process does or systemd itself."""
        unit.active, unit.sub = active, sub or active
        changed = {"ActiveState": Variant("s", active), "SubState": Variant("s", unit.sub)}
        self._signal(
            self._path(unit.id), "org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as",
            [f"{SYSTEMD}.Unit", changed, []],
        )  # fmt: skip

    def speak_again(self) -> None:
        self.is_silent = False
        unanswered, self._unanswered = self._unanswered, []
        for message in unanswered:
            self._heard(message)

    # As a service of the bus

    def _path(self, name: str) -> str:
        encoded = "".join(char if char.isalnum() and char.isascii() else f"_{ord(char):02x}" for char in name)
        return f"{MANAGER_PATH}/unit/{encoded}"

    def _unit_at(self, path: str) -> Unit | None:
        tail = path.rpartition("/")[2]
        name = re.sub("_([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), tail)
        return self._find(name) if NAME.match(name) else None

    def _find(self, name: str) -> Unit:
        found = self.units.get(self.aliases.get(name, name))
        return found if found is not None else Unit(name, load="not-found")

    def _heard(self, message: Message) -> bool:
        if message.message_type is not MessageType.METHOD_CALL:
            return False
        if not (message.path or "").startswith(MANAGER_PATH):
            return False
        if message.body and f"{message.member} {message.body[0]}" in self.ignored:
            return True
        if self.is_silent:
            self._unanswered.append(message)
            return True
        try:
            signature, body = self._answer(message)
        except RefusalError as refusal:
            self._send(Message.new_error(message, refusal.name, str(refusal)))
            return True
        self._send(Message.new_method_return(message, signature, body))
        return True

    def _send(self, message: Message) -> None:
        """Send; what the bus does not take any more, nobody gets."""
        assert self.bus is not None
        with suppress(OSError):
            self.bus.send(message).add_done_callback(lambda sent: sent.exception())

    def _signal(self, path: str, interface: str, member: str, signature: str, body: list[Any]) -> None:
        if self.bus is not None and self.bus.connected:
            self._send(Message.new_signal(path, interface, member, signature, body))

    def _answer(self, message: Message) -> tuple[str, list[Any]]:
        member, body = message.member, message.body
        self.calls.append(f"{member} {body[0]}" if body else str(member))
        match member:
            case "Subscribe":
                return "", []
            case "Reload":
                self._reload()
                return "", []
            case "LoadUnit":
                if not NAME.match(body[0]):
                    raise RefusalError("org.freedesktop.DBus.Error.InvalidArgs", f"Unit name {body[0]} is not valid.")
                return "o", [self._path(body[0])]
            case "StartUnit" | "StopUnit":
                return "o", [self._enqueue(body[0], "start" if member == "StartUnit" else "stop")]
            case "Get" | "GetAll":
                unit = self._unit_at(message.path or "")
                if unit is None:
                    raise RefusalError("org.freedesktop.DBus.Error.UnknownObject", "Unknown object")
                present = self._drop_ins(unit)
                if unit.active == "inactive" and not unit.is_kept:
                    unit.read = present
                values = unit.shown_service() if body[0].endswith(".Service") else unit.shown(present)
                if member == "Get" and isinstance(values[body[1]], RefusalError):
                    raise values[body[1]]
                return ("a{sv}", [values]) if member == "GetAll" else ("v", [values[body[1]]])
        raise RefusalError("org.freedesktop.DBus.Error.UnknownMethod", f"Unknown method {member}")

    def _reload(self) -> None:
        self.reloads += 1
        for unit in self.units.values():
            unit.read = self._drop_ins(unit)

    def _drop_ins(self, unit: Unit) -> dict[str, str]:
        return {str(path): path.read_text() for path in (self._runtime_units / f"{unit.id}.d").glob("*.conf")}

    def _enqueue(self, name: str, kind: str) -> str:
        unit = self._find(name)
        if unit.load == "not-found" and (kind == "start" or unit.active == "inactive"):
            text = f"Unit {name} not found." if kind == "start" else f"Unit {name} not loaded."
            raise RefusalError(f"{SYSTEMD}.NoSuchUnit", text)
        if unit.load == "masked" and kind == "start":
            raise RefusalError(f"{SYSTEMD}.UnitMasked", f"Unit {name} is masked.")
        if unit.job:
            if unit.job_kind == kind:
                return f"{MANAGER_PATH}/job/{unit.job}"
            self._end_job(unit, "canceled")
        self._jobs += 1
        unit.job, unit.job_kind = self._jobs, kind
        unit.log.append(kind)
        run = self._run_start if kind == "start" else self._run_stop
        previous = unit.task
        unit.task = asyncio.get_running_loop().create_task(run(unit, unit.job, previous))
        return f"{MANAGER_PATH}/job/{unit.job}"

    async def _run_start(self, unit: Unit, job: int, previous: "asyncio.Task[None] | None") -> None:
        if previous is not None and unit.active == "deactivating":
            await previous
        if unit.active != "active":
            self.become(unit, "activating", "start")
            await unit.may_start.wait()
            if unit.active == "activating":
                self.become(unit, unit.after_start if unit.start_result == "done" else "failed")
        if unit.job == job:
            self._end_job(unit, unit.start_result)

    async def _run_stop(self, unit: Unit, job: int, previous: "asyncio.Task[None] | None") -> None:
        if previous is not None and unit.active == "activating":
            previous.cancel()
        if unit.active not in {"inactive", "failed"}:
            self.become(unit, "deactivating", "stop")
            await unit.may_stop.wait()
            self.become(unit, unit.after_stop)
        if unit.job == job:
            self._end_job(unit, unit.stop_result)

    def _end_job(self, unit: Unit, result: str) -> None:
        job, unit.job, unit.job_kind = unit.job, 0, ""
        path = f"{MANAGER_PATH}/job/{job}"
        self._signal(MANAGER_PATH, f"{SYSTEMD}.Manager", "JobRemoved", "uoss", [job, path, unit.id, result])


class RefusalError(Exception):
    """An error as an answer."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name
