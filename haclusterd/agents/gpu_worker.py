"""A child process that asks NVML about this machine's NVIDIA devices.

Run as a script with a question as JSON: {"last": [INDEX, ...], "skip": [INDEX, ...]} answers once; with `--serve` the
questions come as lines of standard input, until that ends, and each answer ends with {"done": true}:

    {"sweep": {"last": [...], "skip": [...],                   all devices; `fresh`: the driver is opened again before;
               "hung": [...], "fresh": true, "listen": true}}  `hung`: those of `skip` that did not answer; `listen`:
                                                               the driver's events are wanted
    {"use": [UUID, ...]}                                       who uses some devices, and how much of their memory

With `--serve` a thread of it waits for the driver's events: {"events": {"ready": N}} when it listens to N devices,
{"events": {"bus": ..., "xid": ...}} for each error as it happens, {"events": {}} every few seconds, so that its silence
is seen, and {"events": {"ended": CODE}} when it has ended. One process for both, because the library alone takes 20 MB
of each. A device whose events cannot be had is left out: the kernel log says the same.

It names each device before it touches it, because a call into a wedged driver takes 45 s or never returns. It writes
one line for the driver ({"driver": CODE, ...}) and one for each device ({"device": INDEX, ...}); what a device, a
driver or a library cannot tell is left out, which is no fault. Stands alone: it imports nothing of this program.

NVML: https://docs.nvidia.com/deploy/nvml-api/. Return codes are NVML's numbers.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import sys
from collections.abc import Callable
from functools import partial

TYPE_CHECKING = False  # As typing says it; importing that takes half a megabyte.
if TYPE_CHECKING:
    from typing import Any

NO_BINDING = 3
"""Exit status: the package nvidia-ml-py is missing."""
NO_PERMISSION, NOT_SUPPORTED, FUNCTION_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH = 4, 3, 13, 15, 16, 25
CANNOT_SEE = frozenset({NO_PERMISSION, NOT_SUPPORTED, FUNCTION_NOT_FOUND, VERSION_MISMATCH})
GONE = frozenset({GPU_IS_LOST, RESET_REQUIRED})
INVALID_ARGUMENT = 2
NOT_FOUND = 6
LINKS_MAX = 18
FABRIC_COMPLETED = 3


XID_EVENTS = 0x8
EVENTS_WAIT_MS, EVENTS_WAITS = 1000, 5
"""A wait for events, which is how long it takes to end the thread; and after so many of them it says that it lives."""
TIMEOUT = 10
CRC_FIELDS = (38, 45)
"""NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL."""
_OUTPUT = _thread.allocate_lock()


def tell(**item: Any) -> None:
    """Write one line."""
    data = json.dumps(item).encode() + b"\n"
    with _OUTPUT:
        while data:
            data = data[os.write(1, data) :]


class DeviceGoneError(Exception):
    """The device answers nothing any more; `code` says in which way."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Device:
    """One device; one method for each thing that can be asked of it."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle

    def recovery(self) -> int:
        """Return what NVIDIA's driver itself wants done about the device (field 230); 0: nothing."""
        (field,) = self._nvml.nvmlDeviceGetFieldValues(self._handle, [230])
        if field.nvmlReturn:
            raise self._nvml.NVMLError(field.nvmlReturn)
        return int(field.value.ullVal)

    def ecc_uncorrected(self) -> int:
        """Return the uncorrected memory errors since the device was last reset."""
        nvml = self._nvml
        return int(
            nvml.nvmlDeviceGetTotalEccErrors(
                self._handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
            )
        )

    def sram_exceeded(self) -> bool:
        """Return whether the errors of on-chip memory are over what NVIDIA tolerates."""
        import ctypes

        status = self._nvml.c_nvmlEccSramErrorStatus_v1_t()
        self._nvml.nvmlDeviceGetSramEccErrorStatus(self._handle, ctypes.byref(status))
        return bool(status.bThresholdExceeded)

    def remap_pending(self) -> bool:
        """Return whether a row of memory waits for a reset to be replaced."""
        return bool(self._nvml.nvmlDeviceGetRemappedRows(self._handle)[2])

    def remap_failed(self) -> bool:
        """Return whether a row of memory could not be replaced."""
        return bool(self._nvml.nvmlDeviceGetRemappedRows(self._handle)[3])

    def pages_pending(self) -> bool:
        """Return whether pages of memory wait to be retired (before Ampere)."""
        return bool(self._nvml.nvmlDeviceGetRetiredPagesPendingStatus(self._handle))

    def temperature(self) -> int:
        """Return the core's temperature in degrees Celsius."""
        return int(self._nvml.nvmlDeviceGetTemperature(self._handle, self._nvml.NVML_TEMPERATURE_GPU))

    def temperature_slowdown(self) -> int:
        """Return from what temperature the hardware slows itself down."""
        nvml = self._nvml
        return int(nvml.nvmlDeviceGetTemperatureThreshold(self._handle, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN))

    def temperature_shutdown(self) -> int:
        """Return from what temperature the hardware switches itself off."""
        nvml = self._nvml
        return int(nvml.nvmlDeviceGetTemperatureThreshold(self._handle, nvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN))

    def slowdown(self) -> int:
        """Return why the clocks are held down, as NVML's bits."""
        return int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))

    def busy(self) -> int:
        """Return the utilization in percent."""
        return int(self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu)

    def pcie_width(self) -> int:
        """Return the lanes in use."""
        return int(self._nvml.nvmlDeviceGetCurrPcieLinkWidth(self._handle))

    def pcie_width_max(self) -> int:
        """Return the lanes that device and slot have."""
        return int(self._nvml.nvmlDeviceGetMaxPcieLinkWidth(self._handle))

    def links_up(self) -> int:
        """Return how many NVLinks are up."""
        count = 0
        for link in range(LINKS_MAX):
            try:
                count += int(self._nvml.nvmlDeviceGetNvLinkState(self._handle, link))
            except self._nvml.NVMLError as error:
                if link == 0 or error.value != INVALID_ARGUMENT:
                    raise
                break
        return count

    def fabric_waits(self) -> bool:
        """Return whether the device's part of the NVLink fabric is not set up."""
        import ctypes

        info = self._nvml.c_nvmlGpuFabricInfo_v2_t()
        self._nvml.nvmlDeviceGetGpuFabricInfoV(self._handle, ctypes.byref(info))
        return int(info.state) not in (0, FABRIC_COMPLETED)


    # What is asked in a sweep of the watcher only

    def model(self) -> str:
        """Return what the board is called."""
        return _text(self._nvml.nvmlDeviceGetName(self._handle))

    def minor(self) -> int:
        """Return N of /dev/nvidiaN."""
        return int(self._nvml.nvmlDeviceGetMinorNumber(self._handle))

    def memory(self) -> list[int]:
        """Return memory in MiB: all, and what is in use beyond what the driver keeps for itself."""
        return memory_of(self._nvml, self._handle)

    def processes(self) -> list[int]:
        """Return the processes that use the device."""
        return sorted(processes_of(self._nvml, self._handle))

    def remap_reserve(self) -> int:
        """Return how many banks of memory have few spare rows left, or none."""
        banks = self._nvml.nvmlDeviceGetRowRemapperHistogram(self._handle)
        return int(banks.low) + int(banks.none)

    def link_errors(self) -> int:
        """Return how many transfers on NVLinks had an error (CRC) since the driver was loaded."""
        fields = self._nvml.nvmlDeviceGetFieldValues(self._handle, list(CRC_FIELDS))
        found = [int(field.value.ullVal) for field in fields if not field.nvmlReturn]
        if not found:
            raise self._nvml.NVMLError(fields[0].nvmlReturn)
        return sum(found)

    def persistence(self) -> int:
        """Return whether the driver keeps the device ready while nobody uses it."""
        return int(self._nvml.nvmlDeviceGetPersistenceMode(self._handle))

    def vbios(self) -> str:
        """Return the version of its firmware."""
        return _text(self._nvml.nvmlDeviceGetVbiosVersion(self._handle))

    def clock(self) -> int:
        """Return the clock of its processors in MHz."""
        return int(self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM))

    def mig_mode(self) -> list[int]:
        """Return whether MIG is on, and whether it will be after the next reset."""
        return list(self._nvml.nvmlDeviceGetMigMode(self._handle))

    def ecc_mode(self) -> list[int]:
        """Return whether ECC is on, and whether it will be after the next reset."""
        return list(self._nvml.nvmlDeviceGetEccMode(self._handle))

    def compute_mode(self) -> int:
        """Return who may use it: 0 all, 2 nobody."""
        return int(self._nvml.nvmlDeviceGetComputeMode(self._handle))

    def replays(self) -> int:
        """Return how many transfers on the PCI bus were repeated since the device was reset."""
        return int(self._nvml.nvmlDeviceGetPcieReplayCounter(self._handle))

    def instances(self) -> list[dict[str, Any]]:
        """Return the MIG instances."""
        nvml, found = self._nvml, []
        if not nvml.nvmlDeviceGetMigMode(self._handle)[0]:
            return []
        for number in range(nvml.nvmlDeviceGetMaxMigDeviceCount(self._handle)):
            try:
                handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(self._handle, number)
            except nvml.NVMLError as error:
                if error.value != NOT_FOUND:
                    raise
                continue
            profile = _text(nvml.nvmlDeviceGetName(handle)).partition("MIG ")[2]
            values: dict[str, Any] = {"uuid": _text(nvml.nvmlDeviceGetUUID(handle)), "profile": profile}
            for name, call in (("memory", memory_of), ("processes", processes_of)):
                value, _ = ask(nvml, partial(call, nvml, handle))
                if value is not None:
                    values[name] = sorted(value) if name == "processes" else value
            found.append(values)
        return found


def memory_of(nvml: Any, handle: Any) -> list[int]:
    """Return the memory of a device or an instance in MiB: all, and what is used."""
    answer, code = ask(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2))
    if code:  # Of older drivers: they count as used what they reserve for themselves.
        answer = nvml.nvmlDeviceGetMemoryInfo(handle)
    return [int(answer.total) >> 20, int(answer.used) >> 20]


def processes_of(nvml: Any, handle: Any) -> dict[int, int | None]:
    """Return the ids of the processes that the driver names for a device or an instance, with their memory in MiB."""
    found: dict[int, int | None] = {}
    named = list(nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    for call in (nvml.nvmlDeviceGetGraphicsRunningProcesses, nvml.nvmlDeviceGetMPSComputeRunningProcesses):
        others, _ = ask(nvml, partial(call, handle))
        named += others or ()
    for process in named:
        memory, before = process.usedGpuMemory, found.get(process.pid, 0)
        found[process.pid] = None if memory is None or before is None else max(before, int(memory) >> 20)
    return found


MEASURES = (
    "recovery", "ecc_uncorrected", "sram_exceeded", "remap_pending", "remap_failed", "pages_pending", "temperature",
    "temperature_slowdown", "temperature_shutdown", "slowdown", "busy", "pcie_width", "pcie_width_max", "links_up",
    "fabric_waits",
)  # fmt: skip
WATCHED = (
    "model", "minor", "memory", "processes", "mig_mode", "ecc_mode", "compute_mode", "replays", "instances",
    "remap_reserve", "link_errors", "persistence", "vbios", "clock",
)  # fmt: skip


def ask(nvml: Any, call: Callable[[], Any]) -> tuple[Any, int]:
    """Return an answer and 0, or None and NVML's code; raise `DeviceGoneError` when there is no use in asking on."""
    try:
        return call(), 0
    except nvml.NVMLError as error:
        if error.value in GONE:
            raise DeviceGoneError(error.value) from None
        return None, int(error.value)
    except (nvml.NVMLLibraryMismatchError, AttributeError):
        return None, FUNCTION_NOT_FOUND  # A library, or a package, that is older than the question.


def look_at(nvml: Any, index: int, measures: tuple[str, ...] = MEASURES) -> None:
    """Tell what can be known of one device."""
    values: dict[str, Any] = {}
    failures: dict[str, int] = {}
    error = 0
    try:
        handle, error = ask(nvml, lambda: nvml.nvmlDeviceGetHandleByIndex(index))
        if not error:
            values["uuid"], error = ask(nvml, lambda: nvml.nvmlDeviceGetUUID(handle))
            pci, error = ask(nvml, lambda: nvml.nvmlDeviceGetPciInfo(handle))
            values["bus"] = "" if pci is None else _text(pci.busId)
            device = Device(nvml, handle)
            for name in measures:
                value, code = ask(nvml, getattr(device, name))
                if not code:
                    values[name] = value
                elif code not in CANNOT_SEE:
                    failures[name] = code
    except DeviceGoneError as gone:
        error = gone.code
    tell(device=index, error=error, failures=failures, **values)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class Events:
    """The thread that waits for the driver's events; a call of it that does not return ends with the process."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._is_wanted = False
        self._running = _thread.allocate_lock()
        """Held by the thread."""

    def begin(self, indices: list[int]) -> None:
        """Listen to devices, where the thread does not run."""
        if self._running.locked():
            return
        nvml = self._nvml
        buses: dict[int | None, str] = {}
        events, code = ask(nvml, nvml.nvmlEventSetCreate)
        if code:
            return
        for index in indices:
            tell(at=f"device {index}")
            with contextlib.suppress(DeviceGoneError):
                ask(nvml, partial(self._register, index, events, buses))
        if not buses:
            ask(nvml, partial(nvml.nvmlEventSetFree, events))
            return
        self._is_wanted = True
        self._running.acquire()
        tell(events={"ready": len(buses)})
        _thread.start_new_thread(self._wait, (events, buses))

    def _register(self, index: int, events: Any, buses: dict[int | None, str]) -> None:
        """Note a device's address by its handle now: at an error nobody asks the device any more."""
        import ctypes

        nvml = self._nvml
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        if nvml.nvmlDeviceGetSupportedEventTypes(handle) & XID_EVENTS:
            nvml.nvmlDeviceRegisterEvents(handle, XID_EVENTS, events)
            buses[ctypes.cast(handle, ctypes.c_void_p).value] = _text(nvml.nvmlDeviceGetPciInfo(handle).busId)

    def _wait(self, events: Any, buses: dict[int | None, str]) -> None:
        import ctypes

        nvml, waits = self._nvml, 0
        try:
            while self._is_wanted:
                try:
                    event = nvml.nvmlEventSetWait_v2(events, EVENTS_WAIT_MS)
                except nvml.NVMLError as error:
                    if error.value != TIMEOUT:
                        # A lost device ends the set; the next sweep begins another one.
                        tell(events={"ended": int(error.value)})
                        break
                    waits += 1
                    if waits % EVENTS_WAITS == 0:
                        tell(events={})
                    continue
                if event.eventType == XID_EVENTS:
                    bus = buses.get(ctypes.cast(event.device, ctypes.c_void_p).value, "")
                    tell(events={"bus": bus, "xid": int(event.eventData)})
            nvml.nvmlEventSetFree(events)
        except OSError:
            os._exit(0)  # Nobody reads any more.
        except nvml.NVMLError:
            pass
        finally:
            self._running.release()

    def end(self) -> None:
        """Let the thread end, and wait for that."""
        self._is_wanted = False
        with self._running:
            pass


class Server:
    """Answers one question after the other; the driver is opened at the first, and again when that is wanted."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._events = Events(nvml)
        self._is_open = False
        self._linked: dict[str, list[int]] | None = None

    def answer(self, question: dict[str, Any]) -> None:
        """Tell all that a question asks for."""
        if "sweep" in question:
            self._sweep(question["sweep"])
        elif self._open({}) is not None:
            for uuid in question.get("use", ()):
                tell(at=f"use {uuid}")
                self._tell_use(uuid)
        tell(done=True)

    def _open(self, sweep: dict[str, Any]) -> int | None:
        """Open the driver where it is not open; return the number of devices, or tell its error and return None."""
        nvml = self._nvml
        tell(at="driver")
        try:
            if self._is_open and sweep.get("fresh"):
                self._is_open = False
                self._events.end()
                nvml.nvmlShutdown()
            if not self._is_open:
                nvml.nvmlInit()
                self._is_open, self._linked = True, None
            count = int(nvml.nvmlDeviceGetCount())
            version = _text(nvml.nvmlSystemGetDriverVersion())
        except nvml.NVMLError as error:
            tell(driver=int(error.value), text=str(error))
            if self._is_open:
                self._is_open = False
                self._events.end()
                ask(nvml, nvml.nvmlShutdown)
            return None
        tell(driver=0, count=count, version=version)
        return count

    def _sweep(self, sweep: dict[str, Any]) -> None:
        count = self._open(sweep)
        if count is None:
            return
        last, skip = sweep.get("last", ()), set(sweep.get("skip", ()))
        others = [index for index in range(count) if index not in skip and index not in last]
        self._look_at(others)
        if sweep["listen"]:
            self._events.begin([index for index in range(count) if index not in last and index not in sweep["hung"]])
        self._look_at([index for index in range(count) if index in last and index not in skip])
        if self._linked is None:
            self._linked = self._links(others)
        tell(links=self._linked)

    def _look_at(self, indices: list[int]) -> None:
        for index in indices:
            tell(at=f"device {index}")
            look_at(self._nvml, index, MEASURES + WATCHED)

    def _links(self, indices: list[int]) -> dict[str, list[int]]:
        """Return, for each device, the others that it reaches by NVLink; nothing where the driver cannot tell."""
        found = {}
        for index in indices:
            tell(at=f"device {index}")
            found[str(index)] = [other for other in indices if other != index and self._is_linked(index, other)]
        return found

    def _is_linked(self, one: int, other: int) -> bool:
        nvml = self._nvml

        def status() -> int:
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in (one, other)]
            return int(nvml.nvmlDeviceGetP2PStatus(*handles, nvml.NVML_P2P_CAPS_INDEX_NVLINK))

        try:
            answer, _ = ask(nvml, status)
        except DeviceGoneError:
            return False
        return bool(answer == nvml.NVML_P2P_STATUS_OK)

    def _tell_use(self, uuid: str) -> None:
        nvml = self._nvml
        try:
            handle, code = ask(nvml, lambda: nvml.nvmlDeviceGetHandleByUUID(uuid))
            processes, code = (None, code) if code else ask(nvml, lambda: processes_of(nvml, handle))
            memory, code = (None, code) if code else ask(nvml, lambda: memory_of(nvml, handle))
            minor, _ = (None, code) if code else ask(nvml, lambda: nvml.nvmlDeviceGetMinorNumber(handle))
        except DeviceGoneError as gone:
            processes, memory, minor, code = None, None, None, gone.code
        tell(
            use=uuid, error=code, processes=None if processes is None else sorted(processes),
            used_mib=memory and memory[1], named_mib=_sum(processes), minor=minor,
        )  # fmt: skip


def _sum(processes: dict[int, int | None] | None) -> int | None:
    """Return how much memory all of them have; None where one of them does not say."""
    known = [memory for memory in (processes or {}).values() if memory is not None]
    return sum(known) if processes is not None and len(known) == len(processes) else None


def serve(nvml: Any) -> int:
    """Answer questions until nobody asks any more."""
    server = Server(nvml)
    for line in sys.stdin:
        server.answer(json.loads(line))
    return 0


def main() -> int:
    """Look at the driver, then at each device; once, or as often as asked."""
    try:
        import pynvml
    except ImportError as error:
        sys.stderr.write(f"{sys.executable}: {error}\n")
        return NO_BINDING
    if sys.argv[1] == "--serve":
        return serve(pynvml)
    question = json.loads(sys.argv[1])
    tell(at="driver")
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        version = _text(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError as error:
        tell(driver=int(error.value), text=str(error))
        return 0
    tell(driver=0, count=count, version=version)
    order = sorted(set(range(count)) - set(question["skip"]), key=lambda index: (index in question["last"], index))
    for index in order:
        tell(at=f"device {index}")
        look_at(pynvml, index)
    return 0


if __name__ == "__main__":
    sys.exit(main())
