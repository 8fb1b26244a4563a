"""The watcher on a machine with a real NVIDIA GPU: `make gpu-hardware`; ends with 77 where there is none.

    inventory   what it reports is what nvidia-smi says
    user        a CUDA process is seen, by a look and as a stranger; after SIGKILL the device is proven free, and when
    shared      two CUDA processes on one device: all memory in use is theirs
    xid         an illegal access (Xid 31) is seen once, and counted against the program, not the device
    hang        a child of the watcher that stands still is named and replaced, and the state comes back
    simulated   a state that is only pretended is marked, and ends by itself
    cost        processor time and memory at default rates

Needs Python 3.11, nvidia-ml-py and root (for /dev/kmsg); nvcc where it is there, else libcuda alone. Nothing on the
device is changed. Run it from the repository: PYTHONPATH=. python3 -m tests.gpu_hardware [--seconds 60]
"""

import argparse
import contextlib
import importlib.util
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SKIPPED = 77
WATCHER = Path(__file__).parents[1] / "haclusterd" / "agents" / "gpu_watcher.py"
QUICK = {"sweep_s": 1.0, "driver_timeout_s": 3.0, "device_timeout_s": 2.0}
FIELDS = ("uuid", "pci.bus_id", "name", "memory.total", "mig.mode.current", "ecc.mode.current", "driver_version")
HOLD_MIB = 1024
HOLD = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def must(code, what):
    if code: sys.exit(f"{what}: {code}")
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
must(cuda.cuInit(0), "cuInit")
must(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
must(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device), "cuCtxCreate")
must(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(int(sys.argv[1]) << 20)), "cuMemAlloc")
print("held", flush=True)
time.sleep(600)
"""
ILLEGAL = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
ptx = b'''.version 7.0
.target sm_70
.address_size 64
.visible .entry bad() {
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 16;
  mov.u32 %r1, 1;
  st.global.u32 [%rd1], %r1;
  ret;
}
'''
def must(code, what):
    if code: sys.exit(f"{what}: {code}")
device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
must(cuda.cuInit(0), "cuInit")
must(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
must(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device), "cuCtxCreate")
must(cuda.cuModuleLoadData(ctypes.byref(module), ptx), "cuModuleLoadData")
must(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"bad"), "cuModuleGetFunction")
must(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None), "cuLaunchKernel")
print("error", cuda.cuCtxSynchronize(), flush=True)
"""
ILLEGAL_CU = """
#include <cstdio>
__global__ void bad(int *p) { *p = 1; }
int main() { bad<<<1, 1>>>((int *)0x10); printf("error %d\\n", (int)cudaDeviceSynchronize()); return 0; }
"""


class NotAsExpectedError(Exception):
    """A check failed; the text says what was seen."""


class Watcher:
    """A watcher as the daemon runs it, and what it has said."""

    def __init__(self, environment: dict[str, str] | None = None, **settings: Any) -> None:
        self.began = time.monotonic()
        command = [sys.executable, "-S", "-E", str(WATCHER), json.dumps({"python": sys.executable, **settings})]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.lines: list[tuple[float, dict[str, Any]]] = []
        self.report: dict[str, Any] = {}
        self._rest = b""
        self._looks = 0

    def wait(
        self, wanted: Callable[[dict[str, Any]], bool], within_s: float, what: str
    ) -> tuple[float, dict[str, Any]]:
        """Return the first line from now on that is wanted, and when it came; the newest report counts as said now."""
        deadline = time.monotonic() + within_s
        if self.report and wanted({"report": self.report}):
            return time.monotonic(), {"report": self.report}
        while True:
            for at, line in self._read(max(0.0, deadline - time.monotonic())):
                if wanted(line):
                    return at, line
            if time.monotonic() >= deadline:
                shown = json.dumps(self.report)[:600]
                raise NotAsExpectedError(f"{what}: not within {within_s:.0f} s; last report {shown}")

    def watch(self, seconds: float) -> list[dict[str, Any]]:
        """Return what it says within some seconds."""
        deadline, found = time.monotonic() + seconds, []
        while (left := deadline - time.monotonic()) > 0:
            found += [line for _, line in self._read(left)]
        return found

    def look(self, device: str) -> dict[str, Any]:
        """Ask who uses a device."""
        self._looks += 1
        self.ask(look=self._looks, devices=[device])
        return self.wait(lambda line: line.get("look") == self._looks, 5, "the answer to a look")[1]

    def ask(self, **item: Any) -> None:
        """Write a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(item).encode() + b"\n")
        self.process.stdin.flush()

    def device(self) -> dict[str, Any]:
        """Return the first device of the newest report."""
        found: dict[str, Any] = next(each for each in self.report["devices"] if each["kind"] == "gpu")
        return found

    def family(self) -> list[int]:
        """Return the process ids of the watcher and its children."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]

    def end(self) -> None:
        """End it, as the daemon does: by the end of its input."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()

    def _read(self, wait_s: float) -> list[tuple[float, dict[str, Any]]]:
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        if not select.select([descriptor], [], [], wait_s)[0]:
            return []
        data, now = os.read(descriptor, 1 << 16), time.monotonic()
        if not data:
            raise NotAsExpectedError(f"the watcher has ended with {self.process.wait(10)}")
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = [(now, json.loads(line)) for line in lines]
        for _, line in found:
            self.report = line.get("report", self.report)
        self.lines += found
        return found


@contextlib.contextmanager
def watcher(**settings: Any) -> Iterator[Watcher]:
    """Run one until its first report, and end it."""
    one = Watcher(**settings)
    try:
        one.wait(lambda line: "report" in line, 70, "the first report")
        yield one
    finally:
        one.end()


def require(condition: object, text: str) -> None:
    """Raise where something is not as it should be."""
    if not condition:
        raise NotAsExpectedError(text)


def inventory(figures: dict[str, Any]) -> None:
    """Compare the first report with nvidia-smi."""
    query = [f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]
    rows = subprocess.run(["nvidia-smi", *query], check=True, capture_output=True, text=True).stdout.strip().split("\n")
    with watcher(**QUICK) as one:
        figures["first_report_ms"] = round((one.lines[-1][0] - one.began) * 1000)
        print(json.dumps(one.report, indent=1))
        require(not one.report["trouble"], f"trouble: {one.report['trouble']}")
        shown = {each["id"]: each for each in one.report["devices"] if each["kind"] == "gpu"}
        require(len(shown) == len(rows), f"{len(shown)} devices, nvidia-smi has {len(rows)}")
        for row in rows:
            uuid, bus, name, memory, mig, ecc, driver = [each.strip() for each in row.split(",")]
            each = shown[uuid]
            ours = (each["bus"], each["model"], each["memory_mib"], each["is_partitioned"], each["has_ecc"])
            has_ecc = {"Enabled": True, "Disabled": False}.get(ecc)
            theirs = (bus.lower()[4:], name, int(memory), mig == "Enabled", has_ecc)
            require(ours == theirs, f"{uuid}: {ours}, nvidia-smi says {theirs}")
            require(one.report["driver"] == driver, f"driver {one.report['driver']}, nvidia-smi says {driver}")
            require(Path(f"/sys/bus/pci/devices/{each['bus']}").exists(), f"{each['bus']} is not in sysfs")
            require(each["state"] == "ok", f"{uuid} is {each['state']}: {each['reasons']}")
        figures["devices"] = len(rows)


def user(figures: dict[str, Any]) -> None:
    """Start a CUDA process, see it, kill it, and see the device free."""
    with watcher(**QUICK) as one:
        device = one.device()["id"]
        answer = one.look(device)
        require(not answer["users"] and not answer["unknown"], f"an idle device: {answer}")
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": device}
        held = subprocess.Popen([sys.executable, "-c", HOLD, str(HOLD_MIB)], stdout=subprocess.PIPE, env=environment)
        try:
            assert held.stdout is not None
            require(held.stdout.readline() == b"held\n", "the CUDA process did not get its memory")
            began = time.monotonic()
            answer = one.look(device)
            figures["look_ms"] = round((time.monotonic() - began) * 1000)
            users = answer["users"].get(device, ())
            require(any(text.startswith(f"{held.pid} ") for text, _ in users), f"users: {answer}")
            at, _ = one.wait(lambda line: "report" in line and one.device()["users"], 15, "the user")
            figures["reported_ms"] = round((at - began) * 1000)
            print("user", one.device()["users"], "look", answer)
            began = time.monotonic()
            held.kill()
            while (answer := one.look(device))["users"]:
                print(f"{(time.monotonic() - began) * 1000:.0f} ms after SIGKILL: {answer['users'][device]}")
                require(time.monotonic() - began < 10, f"still used: {answer}")
            figures["free_after_kill_ms"] = round((time.monotonic() - began) * 1000)
            require(not answer["unknown"], f"unknown: {answer}")
        finally:
            held.kill()
            held.wait(10)
            held.stdout.close()
        one.wait(lambda line: "report" in line and not one.device()["users"], 10, "its end")


def shared(figures: dict[str, Any]) -> None:
    """Start two CUDA processes on the device; what the driver names and what is in use have to agree."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    started = [
        subprocess.Popen([sys.executable, "-c", HOLD, str(size)], stdout=subprocess.PIPE, env=environment)
        for size in (HOLD_MIB, 4 * HOLD_MIB)
    ]
    try:
        for each in started:
            assert each.stdout is not None
            require(each.stdout.readline() == b"held\n", "a CUDA process did not get its memory")
        with watcher(**QUICK) as one:
            device = one.device()["id"]
            question = json.dumps({"use": [device]}) + "\n"
            worker = [sys.executable, "-E", str(WATCHER.with_name("gpu_worker.py")), "--serve"]
            text = subprocess.run(worker, input=question, capture_output=True, text=True, check=True).stdout
            use = next(item for item in map(json.loads, text.splitlines()) if "use" in item)
            print("use", use)
            figures["unnamed_mib"] = use["used_mib"] - (use["named_mib"] or 0)
            answer = one.look(device)
            require(len(answer["users"].get(device, ())) == len(started), f"users: {answer}")
    finally:
        for each in started:
            each.kill()
            each.wait(10)


def illegal_program(directory: Path) -> list[str]:
    """Return the command of a program with an illegal access."""
    compiler = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if compiler is not None:
        source, program = directory / "illegal.cu", directory / "illegal"
        source.write_text(ILLEGAL_CU)
        done = subprocess.run([compiler, "-o", program, source], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return [str(program)]
        print("nvcc:", done.stderr.strip()[-300:])
    return [sys.executable, "-c", ILLEGAL]


def xid(figures: dict[str, Any]) -> None:
    """Provoke an error of an application; the device stays well."""
    with tempfile.TemporaryDirectory() as name, watcher(**QUICK) as one:
        command = illegal_program(Path(name))
        one.watch(2)  # What the kernel log has of earlier errors.
        before = [line for _, line in one.lines if "xid" in line]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout is not None
        text = process.stdout.read().decode().strip()
        ended = time.monotonic()
        process.stdout.close()
        process.wait(10)
        print("program:", text)
        at, line = one.wait(lambda line: line.get("xid", {}).get("code") == 31, 10, "Xid 31")
        figures["xid_after_program_ms"] = round((at - ended) * 1000)
        one.watch(4)
        seen = [line["xid"] for _, line in one.lines if line.get("xid", {}).get("code") == 31][len(before) :]
        print("xid", seen)
        figures["xid_lines"] = len(seen)
        require(len(seen) == 1, f"one error was said {len(seen)} times")
        require(line["xid"]["severity"] == "application", f"severity: {line}")
        require(line["xid"]["device"] == one.device()["id"], f"device: {line}")
        require(one.device()["state"] == "ok", f"the device is {one.device()['state']}: {one.device()['reasons']}")


def hang(figures: dict[str, Any]) -> None:
    """Stop the child that asks the driver; it is named, replaced, and all is well again."""
    with watcher(**QUICK) as one:
        poller = next(pid for pid in one.family()[1:] if b"gpu_worker" in Path(f"/proc/{pid}/cmdline").read_bytes())
        began = time.monotonic()
        os.kill(poller, signal.SIGSTOP)
        at, _ = one.wait(lambda line: "report" in line and one.device()["state"] == "unknown", 15, "the hang")
        figures["hang_seen_ms"] = round((at - began) * 1000)
        print("hang:", one.report["trouble"], one.device()["reasons"])
        one.wait(lambda line: "report" in line and one.device()["state"] == "ok", 20, "the way back")
        require(not Path(f"/proc/{poller}").exists(), "the child that stood still was not ended")


def simulated(_: dict[str, Any]) -> None:
    """Pretend a failure for two seconds."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "pretended")
        with watcher(**QUICK, pretended=str(path)) as one:
            pretend(path, one.device()["id"], "failed", 3)
            one.wait(lambda line: "report" in line and one.device()["state"] == "failed", 5, "the pretended failure")
            require(one.device()["reasons"][0].startswith("simulated"), f"reasons: {one.device()['reasons']}")
            one.wait(lambda line: "report" in line and one.device()["state"] == "ok", 6, "its end")


def pretend(path: Path, device: str, state: str, seconds: float) -> None:
    """Write a file of pretended states."""
    new = path.with_suffix(".new")
    until_ms = round((time.time() + seconds) * 1000)  # noqa: TID251 (as crm does)
    new.write_text(json.dumps({device: {"state": state, "until_ms": until_ms}}))
    new.replace(path)


def cost(figures: dict[str, Any], seconds: float) -> None:
    """Measure at default rates."""
    with watcher() as one:
        one.watch(5)
        family, before = one.family(), _cpu_s(one.family())
        lines = one.watch(seconds)
        require(one.family() == family, "the children were replaced")
        figures["cpu_percent"] = round((_cpu_s(family) - before) / seconds * 100, 3)
        figures["lines"] = len(lines)
        for pid in family:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n")
            values = {line.split(":")[0]: int(line.split()[1]) for line in text if line.endswith(" kB")}
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            script = next(word for word in command.split() if word.endswith(".py")).rpartition("/")[2]
            print(f"{script}: rss {values['Rss']} KiB, pss {values['Pss']} KiB")
            for key in ("Rss", "Pss"):
                figures[f"{key.lower()}_mib"] = round(figures.get(f"{key.lower()}_mib", 0) + values[key] / 1024, 1)


def _cpu_s(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        text = Path(f"/proc/{pid}/stat").read_text()
        fields = text[text.rindex(")") + 2 :].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Run all checks; return 0, 1, or 77."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", default="inventory,user,shared,xid,hang,simulated,cost")
    options = parser.parse_args()
    if not Path("/proc/driver/nvidia/version").exists() or importlib.util.find_spec("pynvml") is None:
        print("RESULT skipped=1 reason=no_nvidia_driver_or_binding")
        return SKIPPED
    checks: dict[str, Callable[[dict[str, Any]], None]] = {
        "inventory": inventory, "user": user, "shared": shared, "xid": xid, "hang": hang, "simulated": simulated,
        "cost": lambda figures: cost(figures, options.seconds),
    }  # fmt: skip
    figures: dict[str, Any] = {}
    failed = []
    for name in options.only.split(","):
        print(f"-- {name}", flush=True)
        try:
            checks[name](figures)
        except NotAsExpectedError as error:
            failed.append(name)
            print(f"FAILED {name}: {error}", flush=True)
    values = " ".join(f"{key}={value}" for key, value in figures.items())
    print(f"RESULT {values} failed={','.join(failed) or 0}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
