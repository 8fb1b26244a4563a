"""`DeviceWatch` over a watcher process (haclusterd/agents/gpu_watcher.py), which is restarted when it ends or hangs.

Invariants: the main loop never waits for it; a check is answered in time whatever it does, as unknown if it does not
answer; a line is bounded and validated before it is used. While no watcher runs, good states count as unknown after a
while, with the reason: what runs continues, and nothing new starts on these devices.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from haclusterd.adapters.processes.worker_process import WorkerProcess
from haclusterd.model.device_reports import DevicesReport, DeviceUse, DeviceUser, RecoveryAnswer
from haclusterd.model.devices import DEVICES_MAX, Device, DeviceId, DeviceKind, DeviceState, Rung
from haclusterd.model.instants import after
from haclusterd.model.records import replace
from haclusterd.ports.clock import Clock, Timer

FAULTS_FILE = "gpu-faults.toml"
"""An administrator's table of faults, beside the node's settings."""
SIMULATED_FILE = "gpu-simulated.json"
"""In the runtime directory: simulated states (`crm gpu simulate-fail`)."""
LOCK_FILE = "gpu-recovery.lock"
RECOVERED_FILE = "gpu-recovered.json"
"""Both in the runtime directory, which a boot empties (agents/recovering/gpu_recovery.py)."""
WATCHER = Path(__file__).parents[2] / "agents" / "gpu_watcher.py"
LINE_BYTES_MAX = 1 << 20
SILENT_MS = 45_000
"""The watcher writes at least every ten seconds; after this time without a line it counts as hung."""
LOOK_MS = 3_000
RECOVERY_MS = 120_000
"""How long each step of a reset or a reload may take."""
SPARE_MS = 180_000
"""Time after the watcher's own deadline at which its answer about an action is given up."""
BACKOFF_MS = (500, 2_000, 10_000, 60_000)
"""Pause before it is restarted, by the number of failures in a row."""
LASTING = 2
"""Number of failures in a row after which good states count as unknown."""
TEXT_MAX = 300
USERS_MAX = 64


class GpuWatch:
    """The watcher process; see the module."""

    def __init__(
        self,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        settings: Mapping[str, Any],
        *,
        say: Callable[[str, str], None],
        command: tuple[str, ...] = (sys.executable, "-S", "-E", str(WATCHER)),
        seals: tuple[bytes, int] | None = None,
    ) -> None:
        """`seals`: key and beginning of this node's (adapters/agents/seals.py); None: services are known by marks.

        `settings` are the watcher's own; `say` gets a kind (`problem`, `xid`) and a text, for the log."""
        self._clock = clock
        self._loop = loop
        self._command = (*command, json.dumps({"python": sys.executable, **settings}))
        self._seals = seals
        self._say = say
        self._changed: Callable[[DevicesReport], None] = _nobody
        self._worker: WorkerProcess | None = None
        self._rest = b""
        self._report: DevicesReport | None = None
        self._failures = 0
        self._silence: Timer | None = None
        self._again: Timer | None = None
        self._number = 0
        self._looks: dict[int, tuple[tuple[DeviceId, ...], Callable[[DeviceUse], None], Timer]] = {}
        self._tasks: dict[int, tuple[Callable[[RecoveryAnswer], None], Timer]] = {}
        self._is_stopped = False

    def watch(self, changed: Callable[[DevicesReport], None]) -> None:
        """See `DeviceWatch.watch`."""
        self._changed = changed
        self._begin()

    def look(self, devices: tuple[DeviceId, ...], done: Callable[[DeviceUse], None]) -> None:
        """See `DeviceWatch.look`."""
        self._number += 1
        number = self._number
        timer = self._clock.call_at(after(self._clock.now(), LOOK_MS), lambda: self._answer(number, None))
        self._looks[number] = (devices, done, timer)
        if self._worker is None:
            self._clock.call_soon(lambda: self._answer(number, None))
            return
        question = {"look": number, "devices": [str(device) for device in devices]}
        self._worker.send(iter((json.dumps(question).encode() + b"\n",)))

    def recover(self, device: DeviceId, rung: Rung, done: Callable[[RecoveryAnswer], None]) -> None:
        """See `DeviceWatch.recover`."""
        self._do({"what": str(rung), "device": str(device)}, RECOVERY_MS, done)

    def test(self, device: DeviceId, program: str, timeout_ms: int, done: Callable[[RecoveryAnswer], None]) -> None:
        """See `DeviceWatch.test`."""
        self._do({"what": "test", "device": str(device), "program": program}, timeout_ms, done)

    def _do(self, wanted: dict[str, Any], timeout_ms: int, done: Callable[[RecoveryAnswer], None]) -> None:
        self._number += 1
        number = self._number
        if self._worker is None:
            nobody = RecoveryAnswer(is_done=False, text="nobody watches the devices at the moment", has_begun=False)
            self._clock.call_soon(lambda: done(nobody))
            return
        late_at = after(self._clock.now(), timeout_ms + SPARE_MS)
        timer = self._clock.call_at(late_at, lambda: self._done(number, _LATE))
        self._tasks[number] = (done, timer)
        question = {"do": number, **wanted, "timeout_s": timeout_ms / 1000}
        self._worker.send(iter((json.dumps(question).encode() + b"\n",)))

    def _done(self, number: int, answer: RecoveryAnswer) -> None:
        task = self._tasks.pop(number, None)
        if task is not None:
            done, timer = task
            timer.cancel()
            done(answer)

    def stop(self) -> None:
        """End the watcher; nothing is reported any more, and pending checks are answered as unknown."""
        self._is_stopped = True
        for timer in (self._silence, self._again):
            if timer is not None:
                timer.cancel()
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()
            worker.join()
        self._give_up_questions()

    def _give_up_questions(self) -> None:
        for number in list(self._looks):
            self._answer(number, None)
        for number in list(self._tasks):
            self._done(number, _LATE)

    # The process

    def _begin(self) -> None:
        self._again = None
        self._rest = b""
        self._worker = WorkerProcess(self._loop, self._command, self._heard, self._lost)
        if self._seals is not None:  # Every user can read a command line, and nobody this.
            key, since = self._seals
            self._worker.send(iter((json.dumps({"seals": key.hex(), "since": since}).encode() + b"\n",)))
        self._expect_a_line()

    def _expect_a_line(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
        self._silence = self._clock.call_at(after(self._clock.now(), SILENT_MS), self._is_silent)

    def _is_silent(self) -> None:
        self._give_up(f"the watcher of devices has said nothing for {SILENT_MS // 1000} s")

    def _give_up(self, problem: str) -> None:
        if self._worker is not None:
            self._worker.end()
            self._lost(problem)

    def _lost(self, problem: str) -> None:
        self._worker = None
        if self._silence is not None:
            self._silence.cancel()
        self._give_up_questions()
        if self._is_stopped:
            return
        wait_ms = BACKOFF_MS[min(self._failures, len(BACKOFF_MS) - 1)]
        self._failures += 1
        self._say("problem", f"{problem}; it is begun again in {wait_ms} ms")
        if self._failures >= LASTING:
            self._publish(_unwatched(self._report, problem))
        self._again = self._clock.call_at(after(self._clock.now(), wait_ms), self._begin)

    # Its messages

    def _heard(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._expect_a_line()
        try:
            if len(self._rest) > LINE_BYTES_MAX:
                raise ValueError("a line without an end")
            for line in lines:
                self._take(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self._give_up(f"the watcher of devices cannot be understood: {error!r}"[:TEXT_MAX])

    def _take(self, item: dict[str, Any]) -> None:
        if "report" in item:
            self._failures = 0
            self._publish(read_report(item["report"]))
        elif "look" in item:
            self._answer(int(item["look"]), item)
        elif "answer" in item:
            answer = RecoveryAnswer(item["is_done"] is True, _text(item["text"]), item["has_begun"] is not False)
            self._done(int(item["answer"]), answer)
        elif "xid" in item:
            xid = item["xid"]
            what = f"Xid {xid['code']} ({xid['text'] or 'unknown'}), {xid['severity']}"
            self._say("xid", f"{xid['device'] or xid['bus']}: {what}, process {xid['pid'] or '?'}"[:TEXT_MAX])
        elif "problem" in item:
            self._say("problem", str(item["problem"])[:TEXT_MAX])

    def _publish(self, report: DevicesReport) -> None:
        if report != self._report:
            self._report = report
            self._changed(report)

    def _answer(self, number: int, item: dict[str, Any] | None) -> None:
        """Answer a check, from the watcher's message, or as unknown; a second answer is dropped."""
        look = self._looks.pop(number, None)
        if look is None:
            return
        devices, done, timer = look
        timer.cancel()
        done(DeviceUse(unknown=devices) if item is None else read_use(devices, item))


def read_report(item: Mapping[str, Any]) -> DevicesReport:
    """Return a report; raises ValueError, TypeError, KeyError or AttributeError if it is invalid."""
    found = item["devices"][:DEVICES_MAX]
    devices = sorted((_device(each) for each in found), key=lambda device: device.id)
    users = {DeviceId(str(each["id"])): _users(each["users"]) for each in found if each.get("users")}
    return DevicesReport(tuple(devices), _text(item["driver"]), _text(item["trouble"]), users)


def read_use(devices: tuple[DeviceId, ...], item: Mapping[str, Any]) -> DeviceUse:
    """Return the answer to a check; a device with more users than are counted is unknown."""
    users = {device: _users(item["users"][device]) for device in devices if item["users"].get(device)}
    unknown = {str(each) for each in item["unknown"]}
    unknown |= {device for device in users if len(item["users"][device]) > USERS_MAX}
    return DeviceUse(users, tuple(device for device in devices if device in unknown))


def _device(item: Mapping[str, Any]) -> Device:
    ecc = item.get("has_ecc")
    return Device(
        id=DeviceId(_text(item["id"])),
        kind=DeviceKind(item["kind"]),
        bus=_text(item["bus"]),
        model=_text(item["model"]),
        memory_mib=int(item["memory_mib"]),
        link=_text(item.get("link", "")),
        numa=int(item["numa"]),
        parent=_text(item.get("parent", "")),
        profile=_text(item.get("profile", "")),
        is_partitioned=item.get("is_partitioned") is True,
        has_ecc=None if ecc is None else ecc is True,
        state=DeviceState(item["state"]),
        reasons=tuple(_text(each) for each in item["reasons"][:USERS_MAX]),
        rung=_text(item.get("rung", "")),
    )


def _users(items: list[list[str]]) -> tuple[DeviceUser, ...]:
    return tuple(DeviceUser(_text(text), _text(resource)) for text, resource in items[:USERS_MAX])


def _text(value: object) -> str:
    return str(value)[:TEXT_MAX]


def _unwatched(report: DevicesReport | None, problem: str) -> DevicesReport:
    """Return the last report, with every better state replaced by unknown."""
    reason = f"not-watched: {problem}"
    known = report or DevicesReport(())
    devices = tuple(
        replace(each, state=DeviceState.UNKNOWN, reasons=(reason,))
        if each.state in (DeviceState.OK, DeviceState.DEGRADED)
        else each
        for each in known.devices
    )
    return DevicesReport(devices, known.driver, reason[:TEXT_MAX])


_LATE = RecoveryAnswer(is_done=False, text="the watcher of devices has not said what came of it")


def _nobody(_: DevicesReport) -> None:
    return None
