#!/usr/bin/env -S python3 -S -E
"""A process that watches this machine's NVIDIA devices, for the daemon that started it.

Run as a script with settings as JSON. It writes one line of JSON for each change, and reads lines that ask for
something; it ends when its standard input does. Where that is a socket, it writes there too.

    out: {"report": {"devices": [...], "driver": VERSION, "trouble": TEXT}}     all that is seen, when it has changed
         {"xid": {"bus", "device", "code", "severity", "text", "pid"}}          an error, once, when it happens
         {"look": N, "users": {ID: [[TEXT, RESOURCE], ...]}, "unknown": [ID]}   the answer to a look
         {"answer": N, "is_done", "has_begun", "text"}                          what came of what was to be done
         {"problem": TEXT}                                                      what keeps it from watching
         {}                                                                     it lives
    in:  {"seals": KEY, "since": TICKS}                                         by what services are known, first
         {"look": N, "devices": [ID, ...]}
         {"do": N, "what": "reset"|"reload"|"test", "device": ID, "program": PATH, "timeout_s": S}

It asks the driver through a child of its own (gpu_worker.py; what acts on devices is gpu_recovery.py), because a call
into a wedged driver takes 45 s or never returns. Invariants: it is never itself in such a call, so the kernel log is
read and looks are answered whatever hangs; a device that hangs is named and asked last, by a child of its own; of
children that cannot be killed at most one is left while others are asked. While a device is reset nobody asks the
driver, for that keeps it open, and nobody says that a device is free, nor while a reset that an earlier watcher has
begun continues. What is wrong with a device is decided by gpu_faults and its table alone.
"""

from __future__ import annotations

import json
import os
import select
import stat
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(HERE)))

from haclusterd.agents import gpu_faults as faults  # noqa: E402 (found on the path above)
from haclusterd.agents import gpu_inventory as inventory  # noqa: E402 (likewise)
from haclusterd.agents import gpu_kernel_log as kernel_log  # noqa: E402 (likewise)
from haclusterd.agents import gpu_users as users  # noqa: E402 (likewise)
from haclusterd.agents.gpu_child import NEVER, Child  # noqa: E402 (likewise)
from haclusterd.agents.gpu_fault_table import TableError, load_apart  # noqa: E402 (likewise)
from haclusterd.agents.recovering import gpu_recovery as recovery  # noqa: E402 (likewise)

TYPE_CHECKING = False  # As typing says it; importing that takes half a megabyte.
if TYPE_CHECKING:
    from typing import Any

DEFAULTS: dict[str, Any] = {
    "faults": "", "kernel_log": "/dev/kmsg", "sysfs": "/sys", "proc": "/proc", "declared": 0, "sweep_s": 10.0,
    "fresh_s": 300.0, "driver_timeout_s": 60.0, "device_timeout_s": 10.0, "look_timeout_s": 2.0,
    "events_timeout_s": 20.0, "xid_hold_s": 600.0, "python": "", "pretended": "",
    "lock": "", "recovered": "",
}  # fmt: skip
WORKER = "gpu_worker.py"
UNNAMED_MIB = 256
"""What may be in use beyond the memory of the processes that the driver names; a context takes hundreds."""
NO_BINDING = 3
"""Exit status of gpu_worker.py: it has no binding to NVML."""
KMSG = os.makedev(1, 11)
FILE_LOG_S = 0.2
"""Between two looks at a kernel log that is a file, which cannot be waited for."""
BACKOFF_S = (1.0, 5.0, 30.0, 60.0)
"""Before a child that ended by itself is started again."""
STDIN, STDOUT = 0, 1
HUNG_AGAIN_S = 0.5
ALIVE_S = 10.0
"""After so long without a line there is an empty one."""
PRETENDED_S = 1.0
"""Between two looks at the file of pretended states."""
LINE_MAX = 1 << 20
TASK_SPARE_S = 120.0
"""By so much longer than its own timeout what recovers or tests a device may take: it does several things."""


class LineWriter:
    """Where lines are written."""

    def __init__(self) -> None:
        self._descriptor = STDIN if stat.S_ISSOCK(os.fstat(STDIN).st_mode) else STDOUT
        self.last = time.monotonic()
        """When the newest line was written."""

    def write(self, **item: Any) -> None:
        """Write one line; nobody reads any more: end."""
        data = json.dumps(item, separators=(",", ":")).encode() + b"\n"
        self.last = time.monotonic()
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError:
                os._exit(0)


class Look:
    """A question who uses some devices."""

    def __init__(self, number: int, devices: list[str], deadline: float) -> None:
        self.number = number
        self.devices = devices
        self.deadline = deadline
        self.answers: dict[str, dict[str, Any]] = {}


class Watcher:
    """The process."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = {**DEFAULTS, **settings}
        self.output = LineWriter()
        self.pretended: tuple[float, int] = (0.0, 0)
        """When the file of pretended states was looked at, and its time of change."""
        self.options = faults.Options(self._table(), hold_s=self.settings["xid_hold_s"])
        self.ours = users.Ours()
        self.devices = inventory.Inventory(self.options, self.settings, self.ours)
        self.devices.recovered(recovery.recovered(self.settings["recovered"]))
        self.poller: Child | None = None
        self.events_due = NEVER
        """Until when the child has to say something of the driver's events; NEVER: it does not wait for any."""
        self.orphan: Child | None = None
        self.task: Child | None = None
        """What recovers or tests a device."""
        self.task_number = 0
        self.is_quiet = False
        """The driver is not asked: a device is reset, or the driver loaded again."""
        self.sweep: inventory.Sweep | None = None
        self.looks: list[Look] = []
        self.looking: Look | None = None
        self.sweep_at = 0.0
        self.fresh_at = 0.0
        self.listen_at = 0.0
        """From when on the driver's events are wanted."""
        self.start_at = 0.0
        self.failures = 0
        self.problem = ""
        self.log: kernel_log.KernelLog | None = None
        self.is_log_a_file = False
        self.last_report: dict[str, Any] | None = None
        self.input = b""

    def _table(self) -> Any:
        try:
            return load_apart(self.settings["faults"])
        except TableError as error:
            problem = f"{self.settings['faults']}: {error}; the table that came with the program is used"
            self.output.write(problem=problem)
            return load_apart()

    def run(self) -> None:
        """Watch until nobody wants it any more."""
        self._open_log()
        while True:
            now = time.monotonic()
            self._begin_what_is_due(now)
            ready = self._wait(now)
            if STDIN in ready and not self._read_input():
                break
            if self.log is not None and (self.is_log_a_file or self.log.descriptor in ready):
                self._read_log()
            if self.poller is not None and self.poller.descriptor in ready:
                self._read(self.poller)
            if self.task is not None and self.task.descriptor in ready:
                self._read_task(self.task)
            self._end_what_is_late(time.monotonic())
            self._publish()
            if time.monotonic() - self.output.last >= ALIVE_S:
                self.output.write()
        if self.poller is not None:
            self.poller.end()

    # Waiting

    def _wait(self, now: float) -> set[int]:
        """Wait until something can be read or is due; return what can be read."""
        poll = select.poll()
        poll.register(STDIN, select.POLLIN)
        if self.log is not None and not self.is_log_a_file:
            poll.register(self.log.descriptor, select.POLLIN)
        for child in (self.poller, self.task):
            if child is not None:
                poll.register(child.descriptor, select.POLLIN)
        due = [self.sweep_at if self.sweep is None else now + 60, self.devices.due(now)]
        if self.poller is not None:
            due += [self.poller.deadline, self._poller_due_at()]
            if self.sweep is None and self.looking is None:
                due.append(self.events_due)
        if self.task is not None:
            due.append(self.task.deadline)
        due += [look.deadline for look in self.looks]
        if self.looking is not None:
            due.append(self.looking.deadline)
        if self.is_log_a_file:
            due.append(now + FILE_LOG_S)
        if self.settings["pretended"]:
            due.append(self.pretended[0] + PRETENDED_S)
        due.append(self.output.last + ALIVE_S)
        return {descriptor for descriptor, _ in poll.poll(max(1.0, min(60.0, min(due) - now) * 1000))}

    def _begin_what_is_due(self, now: float) -> None:
        if self.is_quiet:
            self.sweep_at = max(self.sweep_at, now + 1)
            self._give_up_looks(now, all_of_them=True)
            return
        # Looks first: where sweeps take longer than the time between them, they would never be answered.
        if self.sweep is None and self.looking is None and self.looks:
            self._begin_look(now)
        if self.sweep is None and self.looking is None and now >= self.sweep_at:
            self._begin_sweep(now)

    def _begin_sweep(self, now: float) -> None:
        self.sweep_at = now + self.settings["sweep_s"]
        if self.orphan is not None and self.orphan.is_gone():
            self.orphan = None
        self.sweep = inventory.Sweep()
        skip = self.devices.hung if self.orphan is not None else ()
        self.sweep.hung += skip
        if not self._ask_on(now):
            self.sweep = None

    def _ask_on(self, now: float) -> bool:
        """Ask for those of the sweep that were not asked yet; tell whether there is a child that can be asked."""
        assert self.sweep is not None
        if self.poller is None:
            if now < self.start_at:
                return False
            self._start()
        if self.poller is None:
            return False
        is_fresh = now >= self.fresh_at
        if is_fresh:
            self.fresh_at = now + self.settings["fresh_s"]
        asked = [*self.sweep.hung, *self.sweep.answered()]
        question = {
            "last": sorted(self.devices.hung), "skip": asked, "hung": self.sweep.hung, "fresh": is_fresh and not asked,
            "listen": now >= self.listen_at,
        }  # fmt: skip
        self.poller.send({"sweep": question})
        self.poller.expect("start", now + self.settings["driver_timeout_s"])
        return True

    def _start(self) -> None:
        self.events_due = NEVER
        try:
            python = self.settings["python"] or sys.executable
            self.poller = Child("worker", [python, "-E", os.path.join(HERE, WORKER), "--serve"])
        except OSError as error:
            self._say(f"{WORKER}: {error.strerror}")
            self._start_later()

    def _start_later(self) -> None:
        wait_s = BACKOFF_S[min(self.failures, len(BACKOFF_S) - 1)]
        self.failures += 1
        self.start_at = time.monotonic() + wait_s

    def _say(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self.output.write(problem=problem)

    # What children tell

    def _read(self, child: Child) -> None:
        for item in child.read():
            if "events" in item:
                self._take_event(item["events"])
            else:
                self._take_answer(item)
        if child.is_over:
            self._lost(child)

    def _take_answer(self, item: dict[str, Any]) -> None:
        now = time.monotonic()
        assert self.poller is not None
        if "at" in item:
            name = "device" if item["at"].startswith("device") else "driver"
            self.poller.expect(item["at"], now + self.settings[f"{name}_timeout_s"])
        elif "use" in item:
            if self.looking is not None:
                self.looking.answers[item["use"]] = item
        elif "done" in item:
            self.poller.rest()
            self.failures = 0
            if self.looking is not None:
                self._answer_look()
            elif self.sweep is not None:
                self._conclude()
        elif self.sweep is not None:
            self.sweep.take(item)

    def _take_event(self, item: dict[str, Any]) -> None:
        has_ended = "ended" in item
        self.events_due = NEVER if has_ended else time.monotonic() + self.settings["events_timeout_s"]
        if "xid" in item:
            at = time.clock_gettime(time.CLOCK_MONOTONIC)
            self._take_xids([kernel_log.Xid(kernel_log.bus_of(item["bus"]), item["xid"], at, "")])

    def _lost(self, child: Child) -> None:
        """Take note of a child that has ended by itself."""
        status = child.reap()
        self._start_later()
        self.poller = None
        why = f"the child that asks the driver ended with status {status}: {child.last_words}"
        if status == NO_BINDING:
            why = "the package nvidia-ml-py is missing: install it beside haclusterd (pip install 'haclusterd[gpu]')"
        self._say(why)
        self.sweep = None
        self.devices.not_watched(why)
        self._give_up_looks(time.monotonic(), all_of_them=True)

    def _end_what_is_late(self, now: float) -> None:
        if self.poller is not None and now >= min(self.poller.deadline, self._poller_due_at()):
            self._poller_hangs(now)
        elif self.poller is not None and now >= self.events_due and self.sweep is None and self.looking is None:
            # Its silence says nothing of a device: the next sweep finds out. The kernel log says what events would.
            self.poller.at = "the driver's events"
            self.listen_at = now + self.settings["fresh_s"]
            if not self._park(self.poller):
                self._say("the driver's events are silent: the child that waits for them is replaced")
            self.poller = None
        if self.task is not None and now >= self.task.deadline:
            self._task_is_over(has_begun=True, text="it did not end in time")
        self._give_up_looks(now)

    def _poller_due_at(self) -> float:
        """Return until when a device may take that hung the last time: while a look waits, that is not long."""
        assert self.poller is not None
        kind, _, number = self.poller.at.partition(" ")
        if not self.looks or self.sweep is None or kind != "device" or int(number) not in self.devices.hung:
            return NEVER
        return self.poller.since + HUNG_AGAIN_S

    def _poller_hangs(self, now: float) -> None:
        assert self.poller is not None
        at, poller = self.poller.at, self.poller
        self.poller = None
        is_parked = self._park(poller)
        if self.sweep is None:
            self._give_up_looks(now, all_of_them=True)
            return
        kind, _, number = at.partition(" ")
        if kind != "device":
            self.sweep.is_driver_hung = True
            self._conclude()
            return
        self.sweep.hung.append(int(number))
        if is_parked and self.orphan is not poller:
            self.sweep.is_complete = False
            self._conclude()  # Two that cannot be killed: nobody else is asked.
        elif not self._ask_on(now):
            self.sweep.is_complete = False
            self._conclude()

    def _park(self, child: Child) -> bool:
        """End a child; tell whether it could not be killed."""
        if child.end():
            return False
        if self.orphan is None or self.orphan.is_gone():
            self.orphan = child
        self._say(f"the child {child.pid}, which hangs at {child.at}, cannot be killed: it is left behind")
        return True

    def _conclude(self) -> None:
        assert self.sweep is not None
        sweep, self.sweep = self.sweep, None
        self.devices.judge(sweep, time.clock_gettime(time.CLOCK_MONOTONIC))
        if sweep.is_answered and self.orphan is None:
            self.problem = ""

    # The kernel log

    def _open_log(self) -> None:
        try:
            self.log = kernel_log.KernelLog(self.settings["kernel_log"])
            self.is_log_a_file = os.fstat(self.log.descriptor).st_rdev != KMSG
            self._read_log()
        except OSError as error:
            self._say(f"{self.settings['kernel_log']}: {error.strerror}: Xid errors are seen by NVML's events only")

    def _read_log(self) -> None:
        assert self.log is not None
        xids, switches, cards = self.log.read()
        self._take_xids(xids)
        self.devices.take_switches(switches)
        self.devices.surroundings.take_cards(cards)
        if switches or cards:
            self.sweep_at = min(self.sweep_at, time.monotonic())

    def _take_xids(self, xids: list[kernel_log.Xid]) -> None:
        is_new = False
        for xid in xids:
            if self.devices.take_xid(xid):
                is_new = True
                row = self.options.table.xid(xid.code)
                self.output.write(xid={
                    "bus": xid.bus, "device": self.devices.name_at(xid.bus), "code": xid.code,
                    "severity": self.options.gravity(xid.code), "text": row.text, "pid": xid.pid,
                })  # fmt: skip
        if is_new and self.devices.is_known:
            # What the log says counts at once; what the driver says of it is asked right after.
            self.devices.judge_log(time.clock_gettime(time.CLOCK_MONOTONIC))
            self.sweep_at = min(self.sweep_at, time.monotonic())

    # Who uses devices

    def _begin_look(self, now: float) -> None:
        if self.poller is None and now >= self.start_at and self.devices.is_driver_well:
            self._start()
        if self.poller is None:
            return
        self.looking = self.looks.pop(0)
        self.poller.send({"use": self.looking.devices})
        self.poller.expect("start", now + self.settings["driver_timeout_s"])

    def _is_recovering(self) -> bool:
        """Tell whether a recovery may still hit devices, if only one that an earlier watcher has begun."""
        return self.is_quiet or bool(self.settings["lock"] and recovery.is_locked(self.settings["lock"]))

    def _answer_look(self) -> None:
        look, self.looking = self.looking, None
        assert look is not None
        if self._is_recovering():
            self.output.write(look=look.number, users={}, unknown=look.devices)
            return
        own = {child.pid for child in (self.poller, self.orphan) if child is not None} | {os.getpid()}
        own |= users.tree_of(self.task.pid) if self.task is not None else set()
        minors = {
            answer["minor"]: device
            for device, answer in look.answers.items()
            if answer.get("minor") is not None and not self.devices.is_instance(device)
        }
        opened = users.computing(set(minors), own)
        found: dict[str, list[list[str]]] = {}
        answered = {device: look.answers[device] for device in look.devices if _is_answered(look.answers.get(device))}
        unknown = self._unknown([device for device in look.devices if device not in answered])
        for device, answer in answered.items():
            pids = set(answer["processes"]) | opened.get(answer.get("minor", -1), set())
            names = [[users.name_of(pid), self.ours.resource_of(pid)] for pid in sorted(pids - own)]
            unnamed_mib = _unnamed_mib(answer)
            if unnamed_mib > (UNNAMED_MIB if names else inventory.HELD_MIB):
                names.append([f"{unnamed_mib} MiB in use and no process", ""])
            if names:
                found[device] = names
        self.output.write(look=look.number, users=found, unknown=unknown)

    def _give_up_looks(self, now: float, *, all_of_them: bool = False) -> None:
        waiting = [*([self.looking] if self.looking is not None else []), *self.looks]
        for look in waiting:
            if all_of_them or now >= look.deadline:
                if look is self.looking:
                    self.looking = None
                else:
                    self.looks.remove(look)
                self.output.write(look=look.number, users={}, unknown=self._unknown(look.devices))

    def _unknown(self, unanswered: list[str]) -> list[str]:
        """Return of which devices nobody can say what uses them: of none while there is no driver to use one by."""
        return [] if self.devices.driver_is_away() and not self._is_recovering() else unanswered

    # What is done to devices

    def _begin_task(self, item: dict[str, Any], now: float) -> None:
        """Recover or test a device, one at a time; what keeps the driver busy ends first."""
        self.task_number = item["do"]
        is_test = item["what"] == "test"
        if not is_test and not (self._fall_silent() and self.orphan is None):
            self._task_is_over(has_begun=False, text="a child that hangs in the driver cannot be killed")
            return
        wanted = {**item, "lock": self.settings["lock"], "recovered": self.settings["recovered"]}
        script = os.path.join(HERE, "recovering", "gpu_recovery.py")
        try:
            self.task = Child(
                item["what"], [self.settings["python"] or sys.executable, "-E", "-S", script, json.dumps(wanted)]
            )
        except OSError as error:
            self._task_is_over(has_begun=False, text=f"{script}: {error.strerror}")
            return
        self.task.expect(item["what"], now + item["timeout_s"] + TASK_SPARE_S)

    def _fall_silent(self) -> bool:
        """End the child that asks the driver; tell whether it is gone."""
        self.is_quiet = True
        poller, self.poller = self.poller, None
        self.sweep = None
        self._give_up_looks(time.monotonic(), all_of_them=True)
        return poller is None or not self._park(poller)

    def _read_task(self, task: Child) -> None:
        for item in task.read():
            if item.get("is_done") and task.kind != "test":
                self.devices.recovered(recovery.recovered(self.settings["recovered"]))
            text = str(item.get("text", ""))
            self._task_is_over(is_done=item.get("is_done") is True, has_begun=item.get("has_begun") is True, text=text)
            return
        if task.is_over:
            task.reap()
            self._task_is_over(has_begun=True, text=f"it has ended without a word: {task.last_words}")

    def _task_is_over(self, *, is_done: bool = False, has_begun: bool, text: str) -> None:
        task, self.task = self.task, None
        if task is not None:
            task.end()
        if self.is_quiet:
            self.is_quiet = False
            self.sweep_at = self.fresh_at = 0.0
            self.start_at = 0.0
        self.output.write(answer=self.task_number, is_done=is_done, has_begun=has_begun, text=text)

    # What is asked, and what is said

    def _read_input(self) -> bool:
        """Take what the daemon asks; tell whether it is still there."""
        data = os.read(STDIN, 65536)
        if not data:
            return False
        *lines, self.input = (self.input + data).split(b"\n")
        now = time.monotonic()
        for line in lines:
            item = json.loads(line)
            if "seals" in item:
                self.ours.know(item["seals"], item["since"])
            elif "look" in item:
                deadline = now + self.settings["look_timeout_s"]
                self.looks.append(Look(item["look"], list(item["devices"]), deadline))
            elif "do" in item and self.task is not None:
                text = f"a {self.task.kind} is under way"
                self.output.write(answer=item["do"], is_done=False, has_begun=False, text=text)
            elif "do" in item:
                self._begin_task(item, now)
        return len(self.input) < LINE_MAX

    def _pretend(self, now: float) -> None:
        """Take in which states are to be pretended, where that has changed (`crm gpu simulate-fail`)."""
        path = self.settings["pretended"]
        if not path or now - self.pretended[0] < PRETENDED_S:
            return
        try:
            changed = os.stat(path).st_mtime_ns
        except OSError:
            changed = 0
        if changed != self.pretended[1]:
            try:
                with open(path, "rb") as stream:
                    wanted = json.loads(stream.read(LINE_MAX))
                self.devices.pretend(wanted if isinstance(wanted, dict) else {}, now, time.time())  # noqa: TID251 (a moment of people's)
            except (OSError, ValueError):
                self.devices.pretend({}, now, 0.0)
        self.pretended = (now, changed)

    def _publish(self) -> None:
        if not self.devices.is_known:
            return
        self._pretend(time.monotonic())
        report = self.devices.report(time.monotonic())
        if report != self.last_report:
            self.last_report = report
            self.output.write(report=report)


def _is_answered(answer: dict[str, Any] | None) -> bool:
    if answer is None or answer["error"]:
        return False
    return answer["processes"] is not None and answer["used_mib"] is not None


def _unnamed_mib(answer: dict[str, Any]) -> int:
    """Return how much memory is in use that no process has, as far as all say how much they have."""
    if not answer["processes"]:
        return int(answer["used_mib"])
    named = answer["named_mib"]
    return 0 if named is None else int(answer["used_mib"]) - int(named)


def main() -> int:
    """Watch."""
    Watcher(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
