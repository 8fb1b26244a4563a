"""GPUs that fail under real daemons: `make lab ONLY='gpu-*'`; no root. `ONLY=gpu-4,gpu-27`: those classes alone.

Three nodes on loopback, eight devices each, of a stand-in for NVIDIA's library, with a kernel log, a sysfs and a /proc
of each node's own. First sixteen services claim one device each, and a fault of each of the 50 classes is put in. For
each: does the holder leave the device, or stay, as the table of faults says; does anything else stop; how long after
the fault is it seen, and after how long does the service run again, and where. Then 24 services hold all devices: who
loses its device waits, and nobody else stops. At last a device hangs, and the daemon of its node is timed meanwhile.

Devices are looked at once a second here, by default every ten seconds; rows of the lab's own table (gpu_lab_faults.py)
shorten what is believed after minutes or ends with a boot.

On a machine with a real GPU, `python -m tests.lab.gpu_lab --real` claims it for a program that holds its memory: one
node, the node's own watcher, CUDA.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from haclusterd.adapters.devices.gpu_watch import FAULTS_FILE
from haclusterd.agents.process_table import list_pids, read_marks
from haclusterd.entry_points.daemon import WATCH_VARIABLE
from haclusterd.entry_points.local_cluster import LocalCluster
from haclusterd.model.records import dataclass, field
from haclusterd.runtime.settings import CONFIGURATION_FILE
from tests.lab.gpu_lab_faults import FAULTS, QUICKER, LabFault, Way
from tests.lab.namespaces import LabError

SKIPPED = 77
NAMES = ("n1", "n2", "n3")
PER_NODE = 8
SERVICES = 16
"""While faults of all classes are played: there is room for what loses a whole node."""
WAIT_S_MAX = 60.0
LASTING_S = 2.0
"""How long a service must stay where it is to count as undisturbed by a fault that nobody should leave for."""
EVENT_MS_MAX = 2_000
ASK_S = 0.05
HANG_S = 10.0
STUB = Path(__file__).parents[1] / "agents" / "nvml_stub.c"
STUCK = "import ctypes; libc = ctypes.CDLL(None); libc.vfork() or libc.pause()"
"""A parent waits in state D until its vfork child ends."""
WHEN_FULL = ("field230=1", "temperature=92", "any=!15")
"""Faults of devices when none is free."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one fault."""

    fault: LabFault
    seen_ms: int | None
    outage_ms: int | None
    where: str
    moved: int
    is_exact: bool
    others: int


@dataclass(slots=True)
class Tally:
    """What came of all that was played, also when it was broken off."""

    outcomes: list[Outcome] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """What did not come, or went wrong, of each fault that has no outcome."""
    is_full_good: bool = True
    hang: str = ""
    is_whole: bool = False

    @property
    def is_good(self) -> bool:
        is_exact = all(each.is_exact for each in self.outcomes)
        return self.is_whole and self.is_full_good and is_exact and not self.failures

    def line(self) -> str:
        """Return the last line of the output."""
        moved = [each for each in self.outcomes if each.fault.leaves]
        outages = [each.outage_ms or 0 for each in moved]
        events = [each.seen_ms for each in self.outcomes if each.fault.is_event and each.seen_ms is not None]
        return (
            f"RESULT classes={len({each.fault.number for each in self.outcomes})} faults={len(self.outcomes)} "
            f"exact={sum(each.is_exact for each in self.outcomes)} moved={sum(each.moved for each in moved)} "
            f"others_stopped={sum(each.others for each in self.outcomes)} event_seen_ms_max={max(events, default=0)} "
            f"outage_ms_max={max(outages, default=0)} full={int(self.is_full_good)} failed={len(self.failures)} "
            f"interrupted={int(not self.is_whole)} {self.hang}"
        ).rstrip()


@dataclass(slots=True)
class StandIn:
    """What one node's library, kernel log, sysfs and /proc are made of."""

    directory: Path
    uuids: list[str]
    """In order of the driver's indices; each keeps its address."""
    buses: dict[str, str]
    lines: list[str] = field(default_factory=list)
    of_devices: dict[str, list[str]] = field(default_factory=dict)
    event: str = ""
    records: int = 0

    @property
    def state(self) -> Path:
        return self.directory / "nvml"

    def write(self) -> None:
        lines = [f"gpus={len(self.uuids)}", "busy=90", *self.lines]
        for index, uuid in enumerate(self.uuids):
            lines += [f"g{index}.uuid={uuid}", f"g{index}.pci={self.buses[uuid]}"]
            lines += [f"g{index}.{line}" for line in self.of_devices.get(uuid, ())]
        new = self.state.with_suffix(".new")
        new.write_text("\n".join([*lines, *([f"event={self.event}"] if self.event else [])]) + "\n")
        new.replace(self.state)

    def log(self, text: str) -> None:
        with (self.directory / "kmsg").open("a") as stream:
            for line in text.split("\n"):
                self.records += 1
                at = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
                stream.write(f"4,{self.records},{at},-;{line}\n")

    def furnish(self) -> None:
        """Make a switch, its manager's process, a network port, and the module by which it reaches devices."""
        for name, text in (
            ("sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de"),
            ("sys/bus/pci/devices/0000:05:00.0/class", "0x068000"),
            ("proc/1/comm", "nv-fabricmanage"), ("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE"),
            ("sys/module/nvidia_peermem/refcnt", "0"),
        ):  # fmt: skip
            self.put(name, text)
        self.log("a machine")

    def put(self, name: str, text: str) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


class GpuLab:
    """The cluster, and the stand-in of each node."""

    def __init__(self, directory: Path, names: Sequence[str] = NAMES, *, is_real: bool = False) -> None:
        self.cluster = LocalCluster(directory / "cluster", names=names)
        self._directory = directory
        self._is_real = is_real
        self.stand_ins: dict[str, StandIn] = {}
        self._sequence = 0
        self.services: list[str] = []

    def start(self) -> None:
        self.cluster.setup()
        for name in self.cluster.names:
            if not self._is_real:
                self._give_devices(name)
            self.cluster.start([name])
        self.until("a DC and all nodes", lambda: self.online() == len(self.cluster.names))
        self.until("the devices", lambda: len(self.devices()) == (1 if self._is_real else PER_NODE * len(NAMES)))

    def _give_devices(self, name: str) -> None:
        library = self._directory / f"library-{name}"
        library.mkdir()
        flags = ("-shared", "-fPIC", "-O1", "-Wl,-soname,libnvidia-ml.so.1")
        subprocess.run(["cc", *flags, "-o", library / "libnvidia-ml.so.1", STUB], check=True)
        bundle = next(node.bundle for key, node in self.cluster.nodes.items() if key == name)
        with open(bundle / CONFIGURATION_FILE, "a") as stream:
            stream.write(f"gpus: {PER_NODE}\n")
        rows = "\n".join(f"[fault.{fault}]\n{row}" for fault, row in QUICKER.items())
        (bundle / FAULTS_FILE).write_text(rows + "\n")
        uuids = [f"GPU-{name}-{index}" for index in range(PER_NODE)]
        buses = {uuid: f"00000000:{0x1a + index:02X}:00.0" for index, uuid in enumerate(uuids)}
        stand_in = self.stand_ins[name] = StandIn(self._directory / f"stand-in-{name}", uuids, buses)
        stand_in.directory.mkdir()
        stand_in.furnish()
        stand_in.write()
        settings = {
            "kernel_log": str(stand_in.directory / "kmsg"), "sysfs": str(stand_in.directory / "sys"),
            "proc": str(stand_in.directory / "proc"), "sweep_s": 1.0, "fresh_s": 4.0, "device_timeout_s": 2.0,
            "xid_hold_s": 5.0,
        }  # fmt: skip
        self.cluster.environment = {
            "NVML_STUB": str(stand_in.state), "LD_LIBRARY_PATH": str(library), WATCH_VARIABLE: json.dumps(settings),
        }  # fmt: skip

    @contextmanager
    def injected(self, fault: LabFault, node: str, uuid: str) -> Iterator[None]:
        """Let a device, or its node, have a fault for a while."""
        stand_in = self.stand_ins[node]
        match fault.way:
            case Way.DEVICE:
                stand_in.of_devices[uuid] = [fault.fault]
            case Way.NODE:
                stand_in.lines.append(fault.fault)
            case Way.EVENT:
                self._sequence += 1
                stand_in.event = f"{self._sequence}:{stand_in.uuids.index(uuid)}:{fault.fault}"
            case Way.LOG:
                stand_in.log(fault.fault.replace("{bus}", stand_in.buses[uuid].lower()[4:].split(".")[0]))
            case Way.SPECIAL:
                with self._special(fault.fault, node, uuid):
                    yield
                return
        stand_in.write()
        try:
            yield
        finally:
            stand_in.of_devices.pop(uuid, None)
            if fault.way is Way.NODE:
                stand_in.lines.remove(fault.fault)
            stand_in.write()

    @contextmanager
    def _special(self, name: str, node: str, uuid: str) -> Iterator[None]:
        stand_in = self.stand_ins[node]
        place = stand_in.uuids.index(uuid)
        other = f"{uuid}-new"
        process: subprocess.Popen[bytes] | None = None
        match name:
            case "vanish":
                stand_in.uuids.remove(uuid)
            case "replace":
                stand_in.uuids[place] = other
                stand_in.buses[other] = stand_in.buses[uuid]
            case "no-manager":
                stand_in.put("proc/1/comm", "bash")
            case "port-down":
                stand_in.put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN")
            case "no-peermem":
                shutil.rmtree(stand_in.directory / "sys/module/nvidia_peermem")
            case "stranger":
                process = subprocess.Popen(["sleep", "600"])
            case "stuck":
                process = subprocess.Popen([sys.executable, "-c", STUCK])
            case "drained-by-hand":
                self.cluster.call(node, "gpu.drain", device=uuid)
        if process is not None:
            stand_in.of_devices[uuid] = [f"processes={process.pid}"]
        stand_in.write()
        try:
            yield
        finally:
            if process is not None:
                for pid in (*_children(process.pid), process.pid):
                    os.kill(pid, signal.SIGKILL)
                process.wait()
                stand_in.of_devices.pop(uuid)
            stand_in.uuids[place : place + (name == "replace")] = [uuid] if name in ("vanish", "replace") else []
            stand_in.furnish() if name != "drained-by-hand" else self.cluster.call(node, "gpu.clear", device=uuid)
            stand_in.write()
            if name == "replace":
                self.until(f"{other} gone", lambda: "missing" in self.reasons(other))
                self.cluster.call(node, "gpu.forget", device=other)

    # -- asking -----------------------------------------------------------------------------------------------------

    def data(self, verb: str, **arguments: Any) -> Mapping[str, Any]:
        for name in self.cluster.names:
            try:
                answer = self.cluster.call(name, verb, **arguments)
            except OSError:
                continue
            if isinstance(answer.data, Mapping):
                return answer.data
        return {}

    def configure(self, *lines: str) -> None:
        text = "\n".join(lines) + "\n"
        answer = self.cluster.call(self.cluster.names[0], "configure.script", text=text, source="lab")
        if answer.exit:
            raise LabError(f"the configuration was refused: {answer.reports}")

    def devices(self) -> list[Mapping[str, Any]]:
        return list(self.data("gpu.list").get("devices", ()))

    def shown(self, uuid: str) -> Mapping[str, Any]:
        return next((each for each in self.devices() if each["id"] == uuid), {})

    def reasons(self, uuid: str) -> list[str]:
        """Return the codes of what is wrong with a device."""
        return [reason.partition(":")[0] for reason in self.shown(uuid).get("reasons", ())]

    def held_by(self, service: str) -> Mapping[str, Any] | None:
        """Return the device that a service holds; None while it holds none, or several in passing."""
        held = [
            device for device in self.devices()
            if any(claim["resource"] == service and not claim["is_over"] for claim in device["claims"])
        ]
        return held[0] if len(held) == 1 else None

    def add_services(self, count: int) -> None:
        """Configure so many services with a device each, and wait until all run; each notes its starts and stops."""
        (self._directory / "beats").mkdir(exist_ok=True)
        script = self._directory / "service"
        script.write_text(
            "#!/bin/sh\nnote() { date +\"$1 %s%N $CUDA_VISIBLE_DEVICES\" >> \"$2\"; }\n"
            "note start \"$1\"\nsleep 100000 & trap 'note stop \"$1\"; kill $!; exit 0' TERM\nwait\n"
        )
        script.chmod(0o755)
        new = [f"s{number}" for number in range(len(self.services), count)]
        lines = [
            f'primitive {name} ocf:haclusterd:exec params command={script} args={self._beats(name)} '
            "ready_cmd=true stop_signal=TERM utilization gpus=1 op monitor interval=30s timeout=60s"
            for name in new
        ]
        if not self.services:
            lines.insert(0, "property fencing-enabled=false")
            lines.insert(1, "rsc_defaults resource-stickiness=100")
        self.configure(*lines)
        self.services += new
        self.until("all services", lambda: all(self.noted(name) for name in self.services))
        self.until("their claims", lambda: len(self.held()) == count)

    def held(self) -> dict[str, Mapping[str, Any]]:
        """Return the device of each service that holds one for itself."""
        return {
            claim["resource"]: device
            for device in self.devices() for claim in device["claims"] if not claim["is_over"]
        }  # fmt: skip

    def _beats(self, service: str) -> Path:
        return self._directory / "beats" / service

    def noted(self, service: str) -> list[tuple[str, int, str]]:
        """Return what a service has noted: `start` or `stop`, when (ns of the clock), with which devices."""
        path = self._beats(service)
        found = []
        for line in path.read_text().splitlines() if path.exists() else ():
            what, at, *devices = line.split(" ")
            found.append((what, int(at), " ".join(devices)))
        return found

    @staticmethod
    def user() -> int:
        """Return the process that uses the device, as nvidia-smi says; 0: none."""
        words = ("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader")
        found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        return int(found[0]) if found else 0

    def online(self) -> int:
        return sum(node["state"] == "online" for node in self.data("status").get("nodes", ()))

    def until(self, what: str, condition: Callable[[], bool], wait_s: float = WAIT_S_MAX) -> None:
        deadline = time.monotonic() + wait_s
        while not condition():
            if time.monotonic() > deadline:
                raise LabError(f"not within {wait_s:.0f} s: {what}")
            time.sleep(ASK_S)


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def play(lab: GpuLab, fault: LabFault) -> Outcome:
    """Put one fault into a device that somebody holds, or for strangers into a free one, and watch."""
    holders: dict[str, Mapping[str, Any]] = {}

    def is_quiet() -> bool:
        holders.clear()
        holders.update(lab.held())
        return len(holders) == len(lab.services) and all(each["state"] == "ok" for each in lab.devices())

    lab.until("all services, and devices in order", is_quiet)
    name, device = sorted(holders.items())[fault.number % len(holders)]
    if fault.seen_in == "strangers":
        device = next(each for each in lab.devices() if each["node"] == device["node"] and not each["claims"])
    node, uuid = device["node"], device["id"]
    wanted = {service for service, each in holders.items() if each["node"] == node} if fault.is_of_node else {name}
    wanted = wanted if fault.leaves else set()
    before = {service: len(lab.noted(service)) for service in lab.services}
    seen_ms: int | None = None
    injected_at = time.time_ns()
    with lab.injected(fault, node, uuid):
        if fault.code:
            lab.until(f"{fault.code} of {uuid} shown", lambda: _is_shown(lab, fault, uuid))
            seen_ms = (time.time_ns() - injected_at) // 1_000_000
        if wanted:
            lab.until(
                f"{', '.join(sorted(wanted))} again", lambda: all(_runs_again(lab, each, before) for each in wanted)
            )
        else:
            time.sleep(LASTING_S)  # Nothing is to happen: there is no condition to wait for.
    noted = {service: lab.noted(service)[before[service] :] for service in lab.services}
    others = sum(bool(each) for service, each in noted.items() if service not in wanted)
    is_right = all(_has_moved(noted[service], holders[service]["id"]) for service in wanted)
    spans = [_outage_ms(noted[service]) for service in wanted]
    where = ", ".join(sorted({noted[service][-1][2].split("-")[1] for service in wanted if noted[service]}))
    is_quick = not fault.is_event or seen_ms is None or seen_ms <= EVENT_MS_MAX
    return Outcome(
        fault, seen_ms, max(spans, default=None), f"{node} -> {where}" if wanted else "stays", len(wanted),
        is_right and not others and is_quick, others,
    )  # fmt: skip


def _is_shown(lab: GpuLab, fault: LabFault, uuid: str) -> bool:
    if fault.seen_in == "strangers":
        return bool(lab.shown(uuid).get("strangers"))
    return fault.code in lab.reasons(uuid)


def _runs_again(lab: GpuLab, service: str, before: Mapping[str, int]) -> bool:
    return [what for what, _, _ in lab.noted(service)[before[service] :]] == ["stop", "start"]


def _has_moved(noted: Sequence[tuple[str, int, str]], old: str) -> bool:
    return [what for what, _, _ in noted] == ["stop", "start"] and noted[-1][2] not in ("", old)


def _outage_ms(noted: Sequence[tuple[str, int, str]]) -> int:
    at = {what: when for what, when, _ in noted}
    return (at.get("start", 0) - at.get("stop", 0)) // 1_000_000


def play_full(lab: GpuLab, text: str) -> bool:
    """Let a device fail when none is free: its holder waits, nobody else stops; and it runs again when that is over."""
    lab.until("all devices held", lambda: len(lab.held()) == PER_NODE * len(NAMES))
    name, device = sorted(lab.held().items())[0]
    before = {service: len(lab.noted(service)) for service in lab.services}
    with lab.injected(LabFault(0, text, Way.DEVICE, "", "failed"), device["node"], device["id"]):
        lab.until(f"{name} stopped", lambda: [what for what, _, _ in lab.noted(name)[before[name] :]] == ["stop"])
        time.sleep(LASTING_S)  # Nobody else stops, and it starts nowhere: there is no condition to wait for.
        others = [each for each in lab.services if each != name and len(lab.noted(each)) != before[each]]
        is_waiting = len(lab.noted(name)) == before[name] + 1
    lab.until(f"{name} again", lambda: _runs_again(lab, name, before))
    print(f"all held, {text:24} {name} waits: {is_waiting}; others stopped: {len(others)}", flush=True)
    return is_waiting and not others


def play_hang(lab: GpuLab) -> str:
    """Let one device hang, and return figures: how late the daemon of its node answers, before and meanwhile."""
    held = {device["id"] for device in lab.held().values()}
    free = {name: [uuid for uuid in each.uuids if uuid not in held] for name, each in lab.stand_ins.items()}
    node = max(free, key=lambda name: len(free[name]))
    hung, other = free[node][:2]
    term = lab.data("status")["term"]
    before_ms, beats_before = _answer_times(lab, node)
    workers = _workers(lab, node)
    with lab.injected(LabFault(4, "temperature=@hard", Way.DEVICE, "hang", "unknown"), node, hung):
        lab.until("the hang shown", lambda: "hang" in lab.reasons(hung))
        meanwhile_ms, beats = _answer_times(lab, node)
        began = time.monotonic()
        with lab.injected(LabFault(30, "temperature=92", Way.DEVICE, "too-hot", "drain"), node, other):
            lab.until("another device judged", lambda: "too-hot" in lab.reasons(other))
        judged_ms = round((time.monotonic() - began) * 1000)
        lab.until("the worker replaced", lambda: bool(_workers(lab, node) - workers))
    lab.until("in order again", lambda: not lab.reasons(hung))
    is_same = lab.data("status")["term"] == term and lab.online() == len(NAMES)
    return (
        f"hang_answer_ms_before={before_ms} hang_answer_ms={meanwhile_ms} heartbeat_ms_before={beats_before} "
        f"heartbeat_ms={beats} other_judged_ms={judged_ms} worker_replaced=1 failovers={int(not is_same)}"
    )


def _answer_times(lab: GpuLab, node: str) -> tuple[int, int]:
    """Return the longest time that a node's daemon took to answer within some seconds, and between its heartbeats."""
    longest, until = 0.0, time.monotonic() + HANG_S
    while time.monotonic() < until:
        began = time.monotonic()
        lab.cluster.call(node, "gpu.show", device=lab.stand_ins[node].uuids[0])
        longest = max(longest, time.monotonic() - began)
        time.sleep(ASK_S)
    dc = lab.data("status")["dc"]
    loops = {each["loop"]: each["recent_ms"] for each in lab.cluster.call(dc, "status").data["holds"]}
    return round(longest * 1000), int(loops["heartbeats"])


def _workers(lab: GpuLab, node: str) -> set[int]:
    wanted = str(lab.stand_ins[node].state)
    return {
        pid for pid in list_pids()
        if read_marks(pid).get("NVML_STUB") == wanted and b"gpu_worker" in _command(pid)
    }  # fmt: skip


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play all faults; return 0 when each has moved exactly its holder."""
    parser = argparse.ArgumentParser(prog="gpu-lab", description=__doc__)
    parser.add_argument("--real", action="store_true", help="one node, with this machine's own GPU")
    parser.add_argument("--only", default="gpu-*", help="gpu-NUMBER of classes, gpu-full, gpu-hang, comma separated")
    options = parser.parse_args(arguments)
    if not options.real and shutil.which("cc") is None:
        print("RESULT skipped=1 reason=no-C-compiler")
        return SKIPPED
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-gpus-"))
    lab = GpuLab(directory, ("n1",) if options.real else NAMES, is_real=options.real)
    tally = Tally()
    is_good = False
    try:
        lab.start()
        if options.real:
            is_good = play_real(lab, directory)
        else:
            play_all(lab, options.only.split(","), tally)
            is_good = tally.is_good
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    finally:
        if not options.real:
            print(tally.line(), flush=True)
        lab.cluster.stop()
        lab.cluster.sweep()
        if is_good:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            print(f"logs: {directory}", file=sys.stderr)
    return 0 if is_good else 1


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def play_all(lab: GpuLab, only: Sequence[str], tally: Tally) -> None:
    """Play what is wanted, one after the other; what does not come of one fault keeps no other from its turn."""

    def is_wanted(what: str) -> bool:
        return any(fnmatchcase(f"gpu-{what}", each) for each in only)

    def tries(what: str, attempt: Callable[[], None]) -> None:
        try:
            attempt()
        except (LabError, OSError) as error:
            tally.failures.append(f"{what}: {error}")
            print(f"{what}: {error}   WRONG", flush=True)

    def plays(fault: LabFault) -> None:
        outcome = play(lab, fault)
        tally.outcomes.append(outcome)
        print(_line(outcome), flush=True)

    def hangs() -> None:
        tally.hang = play_hang(lab)

    def plays_full() -> None:
        tally.is_full_good = False
        lab.add_services(PER_NODE * len(NAMES))
        tally.is_full_good = not [text for text in WHEN_FULL if not play_full(lab, text)]

    lab.add_services(SERVICES)
    print(f"{'class':>5} {'fault':34} {'is to be':12} {'seen':6} {'after':>8} {'outcome':14} {'outage':>8}  others")
    for fault in (each for each in FAULTS if is_wanted(str(each.number))):
        tries(f"class {fault.number}, {fault.fault}", partial(plays, fault))
    if is_wanted("hang"):
        tries("hang", hangs)
    if is_wanted("full"):
        tries("full", plays_full)
    tally.is_whole = True


def _line(outcome: Outcome) -> str:
    fault = outcome.fault
    text = fault.fault.partition("\n")[0].removeprefix("NVRM: ").replace(" (PCI:{bus}):", "")
    name = {Way.EVENT: f"Xid {text} by NVML", Way.LOG: f"log: {text}"}.get(fault.way, text)
    seen = "" if outcome.seen_ms is None else "event" if fault.is_event else "look"
    after = "-" if outcome.seen_ms is None else f"{outcome.seen_ms} ms"
    outage = "-" if outcome.outage_ms is None else f"{outcome.outage_ms} ms"
    what = f"{outcome.moved}: {outcome.where}" if outcome.moved else outcome.where
    wrong = "" if outcome.is_exact else "   WRONG"
    return (f"{fault.number:>5} {name[:34]:34} {fault.severity:12} {seen:6} {after:>8} {what:14} "
            f"{outage:>8}  {outcome.others}{wrong}")


def play_real(lab: GpuLab, directory: Path) -> bool:
    """Claim a real device for a program that holds its memory; lose the program, drain the device, meet a stranger."""
    from tests.gpu_hardware import HOLD as PROGRAM

    program = directory / "hold.py"
    program.write_text(PROGRAM.replace("time.sleep(600)", "time.sleep(100000)"))
    (device,) = lab.devices()
    print(f"device {device['id']} {device['model']} {device['memory_mib']} MiB, {device['state']}")
    lab.configure(
        "property fencing-enabled=false",
        f'primitive hold ocf:haclusterd:exec params command={sys.executable} args="{program} 2048" ready_cmd=true '
        "utilization gpus=1 meta gpu-memory=40G op monitor interval=10s timeout=20s",
    )
    began = time.monotonic()
    lab.until("the claim", lambda: lab.held_by("hold") is not None)
    lab.until("the program", lambda: lab.user() != 0)
    pid = lab.user()
    print(f"claimed, and in use after {time.monotonic() - began:.1f} s by process {pid}")
    os.kill(pid, 9)
    began = time.monotonic()
    lab.until("it runs again", lambda: lab.user() not in (0, pid))
    print(f"killed; runs again on the proven device after {time.monotonic() - began:.1f} s as process {lab.user()}")
    lab.cluster.call("n1", "gpu.drain", device=device["id"])
    began = time.monotonic()
    lab.until("the device given back", lambda: not next(iter(lab.devices()))["claims"])
    print(f"drained: stopped, proven free and given back after {time.monotonic() - began:.1f} s")
    stranger = subprocess.Popen([sys.executable, program, "1024"], stdout=subprocess.PIPE)
    assert stranger.stdout is not None
    stranger.stdout.readline()
    lab.until("the stranger seen", lambda: bool(next(iter(lab.devices()))["strangers"]))
    print(f"a stranger is seen: {next(iter(lab.devices()))['strangers']}")
    lab.cluster.call("n1", "gpu.clear", device=device["id"])
    time.sleep(LASTING_S)
    is_kept = lab.held_by("hold") is None
    print(f"cleared; the service does not start beside the stranger: {is_kept}")
    stranger.kill()
    stranger.wait()
    began = time.monotonic()
    lab.until("it runs again", lambda: lab.held_by("hold") is not None and lab.user() != 0)
    print(f"the stranger ended: claimed and running after {time.monotonic() - began:.1f} s")
    print("RESULT real=1 claimed=1 stranger_respected=" + str(int(is_kept)))
    return is_kept


if __name__ == "__main__":
    sys.exit(main())
