"""GPUs that fail under real daemons: `make lab ONLY='gpu-*'`; no root.

Three nodes on loopback, eight devices each, of a stand-in for NVIDIA's library; services that claim one device each.
Faults are put into the stand-in one after the other. For each: does the holder leave the device, or stay, as the table
of faults says; does anything else stop; how long after the fault does the service run again, and where.

On a machine with a real GPU, `python -m tests.lab.gpu_lab --real` claims it for a program that holds its memory: one
node, the node's own watcher, CUDA.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haclusterd.agents.gpu_fault_table import load
from haclusterd.entry_points.local_cluster import LocalCluster
from haclusterd.runtime.settings import CONFIGURATION_FILE
from tests.lab.namespaces import LabError

SKIPPED = 77
NAMES = ("n1", "n2", "n3")
PER_NODE = 8
SERVICES = 9
WAIT_S_MAX = 60.0
LASTING_S = 4.0
"""How long a service must stay where it is to count as undisturbed by a fault that nobody should leave for."""
STUB = Path(__file__).parents[1] / "agents" / "nvml_stub.c"
LEAVES = ("drain", "failed")
POLLED = {
    "any=!15": ("lost", "failed"), "any=!16": ("reset-required", "drain"), "field230=1": ("recovery-reset", "drain"),
    "field230=2": ("recovery-reboot", "failed"), "field230=5": ("recovery-imex", "drain"),
    "sram_exceeded=1": ("sram-exceeded", "drain"), "remap_failed=1": ("remap-failed", "drain"),
    "temperature=92": ("too-hot", "drain"), "ecc_uncorrected=2": ("ecc-uncorrected", "degraded"),
    "remap_pending=1": ("remap-pending", "degraded"), "reasons=0x80": ("power-brake", "degraded"),
    "link7=0": ("nvlink-down", "degraded"), "fabric=2": ("fabric-waits", "degraded"),
    "compute_mode=2": ("compute-prohibited", "drain"), "mig_pending=1": ("mig-pending", "drain"),
    "temperature=@hang": ("hang", "unknown"),
}  # fmt: skip
"""What the driver answers, the class that it is of, and what the device is then; seen at the next look."""
XIDS = (79, 48, 62, 95, 119, 46, 64, 140, 54, 31, 13, 43, 63, 92, 94, 74)
"""Errors that are seen as they happen; a few of them are the program's own, or nothing to leave for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one fault."""

    fault: str
    should_leave: bool
    seen_ms: int
    outage_ms: int
    where: str
    is_exact: bool
    others: int


class GpuLab:
    """The cluster, and the stand-in of each node."""

    def __init__(self, directory: Path, names: Sequence[str] = NAMES, *, is_real: bool = False) -> None:
        self.cluster = LocalCluster(directory / "cluster", names=names)
        self._directory = directory
        self._is_real = is_real
        self._lines: dict[str, list[str]] = {name: [] for name in names}
        self._sequence = 0

    def start(self) -> None:
        self.cluster.setup()
        for name in self.cluster.names:
            if not self._is_real:
                self._give_devices(name)
            self.cluster.start([name])
        self.until("a DC and all nodes", lambda: self._online() == len(self.cluster.names))
        self.until("the devices", lambda: len(self.devices()) == (1 if self._is_real else PER_NODE * len(NAMES)))

    def _give_devices(self, name: str) -> None:
        library = self._directory / f"library-{name}"
        library.mkdir()
        flags = ("-shared", "-fPIC", "-O1", "-Wl,-soname,libnvidia-ml.so.1")
        subprocess.run(["cc", *flags, "-o", library / "libnvidia-ml.so.1", STUB], check=True)
        bundle = self.cluster.nodes[next(key for key in self.cluster.nodes if key == name)].bundle
        with open(bundle / CONFIGURATION_FILE, "a") as stream:
            stream.write(f"gpus: {PER_NODE}\n")
        self.cluster.environment = {"NVML_STUB": str(self._state(name)), "LD_LIBRARY_PATH": str(library)}
        self._lines[name] = [f"gpus={PER_NODE}"]
        self._lines[name] += [f"g{index}.uuid=GPU-{name}-{index}" for index in range(PER_NODE)]
        self._write(name)

    def _state(self, name: str) -> Path:
        return self._directory / f"nvml-{name}"

    def _write(self, name: str, *more: str) -> None:
        new = self._state(name).with_suffix(".new")
        new.write_text("\n".join([*self._lines[name], *more]) + "\n")
        new.replace(self._state(name))

    def inject(self, node: str, index: int, fault: str) -> None:
        """Let a device answer something else from now on."""
        self._lines[node].append(f"g{index}.{fault}")
        self._write(node)

    def heal(self, node: str, index: int, fault: str) -> None:
        """Let it answer as before."""
        self._lines[node].remove(f"g{index}.{fault}")
        self._write(node)

    def xid(self, node: str, index: int, code: int) -> None:
        """Let the driver report an error of a device, once."""
        self._sequence += 1
        self._lines[node] = [line for line in self._lines[node] if not line.startswith("event=")]
        self._lines[node].append(f"event={self._sequence}:{index}:{code}")
        self._write(node)

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

    def held_by(self, service: str) -> Mapping[str, Any] | None:
        """Return the device that a service holds; None while it holds none, or several in passing."""
        held = [
            device for device in self.devices()
            if any(claim["resource"] == service and not claim["is_over"] for claim in device["claims"])
        ]
        return held[0] if len(held) == 1 else None

    def add_services(self, count: int) -> None:
        """Configure services with a device each, and wait until all run; each notes its starts and stops."""
        (self._directory / "beats").mkdir()
        script = self._directory / "service"
        script.write_text(
            "#!/bin/sh\nnote() { date +\"$1 %s%N $CUDA_VISIBLE_DEVICES\" >> \"$2\"; }\n"
            "note start \"$1\"\ntrap 'note stop \"$1\"; exit 0' TERM\nwhile :; do sleep 0.05; done\n"
        )
        script.chmod(0o755)
        lines = [
            f'primitive s{number} ocf:haclusterd:exec params command={script} args={self._beats(f"s{number}")} '
            "ready_cmd=true stop_signal=TERM utilization gpus=1 op monitor interval=10s timeout=20s"
            for number in range(count)
        ]
        self.configure("property fencing-enabled=false", "rsc_defaults resource-stickiness=100", *lines)
        self.until("all services", lambda: all(self.noted(f"s{number}") for number in range(count)))
        self.until("their claims", lambda: all(self.held_by(f"s{number}") for number in range(count)))

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

    def _online(self) -> int:
        return sum(node["state"] == "online" for node in self.data("status").get("nodes", ()))

    def until(self, what: str, condition: Callable[[], bool], wait_s: float = WAIT_S_MAX) -> None:
        deadline = time.monotonic() + wait_s
        while not condition():
            if time.monotonic() > deadline:
                raise LabError(f"not within {wait_s:.0f} s: {what}")
            time.sleep(0.02)


def _is_in_order(device: Mapping[str, Any] | None) -> bool:
    return device is not None and device["state"] == "ok"


def play(lab: GpuLab, fault: str, code: str, severity: str, services: Sequence[str]) -> Outcome:
    """Put one fault into a device that somebody holds, and watch."""
    lab.until("devices in order", lambda: any(_is_in_order(lab.held_by(name)) for name in services))
    service = next(name for name in services if _is_in_order(lab.held_by(name)))
    device = lab.held_by(service)
    assert device is not None
    node, index = device["node"], int(device["id"].rpartition("-")[2])
    before = {name: len(lab.noted(name)) for name in services}
    injected_at = time.time_ns()
    if fault.startswith("xid "):
        lab.xid(node, index, int(fault.removeprefix("xid ")))
    else:
        lab.inject(node, index, fault)

    def shown() -> Mapping[str, Any]:
        return next(each for each in lab.devices() if each["id"] == device["id"])

    seen_ms = 0
    if severity in (*LEAVES, "degraded", "unknown"):
        lab.until(f"{fault} shown", lambda: any(reason.startswith(code) for reason in shown()["reasons"]))
        seen_ms = (time.time_ns() - injected_at) // 1_000_000
    should_leave = severity in LEAVES
    if should_leave:
        lab.until(f"{service} runs again after {fault}", lambda: len(lab.noted(service)) >= before[service] + 2)
    else:
        time.sleep(LASTING_S)  # Nothing is to happen: there is no condition to wait for.
    noted = lab.noted(service)[before[service] :]
    others = sum(len(lab.noted(name)) != before[name] for name in services if name != service)
    stop = next((at for what, at, _ in noted if what == "stop"), 0)
    start = next((at for what, at, _ in noted if what == "start"), 0)
    new = next((devices for what, _, devices in noted if what == "start"), "")
    is_right = new not in ("", device["id"]) if should_leave else not noted
    is_exact = others == 0 and is_right
    where = new if should_leave else "stays"
    outage_ms = (start - stop) // 1_000_000 if should_leave and start and stop else 0
    if not fault.startswith("xid "):
        lab.heal(node, index, fault)
    return Outcome(fault, should_leave, int(seen_ms), outage_ms, where, is_exact, others)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play all faults; return 0 when each has moved exactly its holder."""
    parser = argparse.ArgumentParser(prog="gpu-lab", description=__doc__)
    parser.add_argument("--real", action="store_true", help="one node, with this machine's own GPU")
    options = parser.parse_args(arguments)
    if not options.real and shutil.which("cc") is None:
        print("RESULT skipped=1 reason=no-C-compiler")
        return SKIPPED
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-gpus-"))
    lab = GpuLab(directory, ("n1",) if options.real else NAMES, is_real=options.real)
    is_good = False
    try:
        lab.start()
        is_good = play_real(lab, directory) if options.real else play_all(lab)
    finally:
        lab.cluster.stop()
        lab.cluster.sweep()
        if is_good:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            print(f"logs: {directory}", file=sys.stderr)
    return 0 if is_good else 1


def play_all(lab: GpuLab) -> bool:
    table = load()
    services = [f"s{number}" for number in range(SERVICES)]
    lab.add_services(SERVICES)
    faults = [(f"xid {code}", f"xid-{code}", table.xid(code).severity) for code in XIDS]
    faults += [(fault, *expected) for fault, expected in POLLED.items()]
    outcomes = []
    print(f"{'fault':24} {'is to be':14} {'shown after':>11} {'outage':>8}  {'then on':12} others disturbed")
    for fault, code, severity in faults:
        outcome = play(lab, fault, code, severity, services)
        outcomes.append(outcome)
        seen = f"{outcome.seen_ms} ms" if outcome.seen_ms else "-"
        outage = f"{outcome.outage_ms} ms" if outcome.outage_ms else "-"
        verdict = "" if outcome.is_exact else "   WRONG"
        line = f"{fault:24} {severity:14} {seen:>11} {outage:>8}  {outcome.where:12} {outcome.others}{verdict}"
        print(line, flush=True)
    moved = [each for each in outcomes if each.should_leave]
    events = sorted(each.seen_ms for each in moved if each.fault.startswith("xid "))
    print(
        f"RESULT classes={len(outcomes)} exact={sum(each.is_exact for each in outcomes)} moved={len(moved)} "
        f"others_stopped={sum(each.others for each in outcomes)} event_seen_ms_max={events[-1]} "
        f"outage_ms_max={max(each.outage_ms for each in moved)}"
    )
    return all(each.is_exact for each in outcomes)


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
