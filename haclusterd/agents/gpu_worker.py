"""A child process that asks NVML about this machine's NVIDIA devices, once.

Run as a script by `measuring_child`, with a question as JSON: {"last": [INDEX, ...], "skip": [INDEX, ...]}. It names
each device before it touches it, because a call into a wedged driver takes 45 s or never returns. It writes one line
for the driver ({"driver": CODE, ...}) and one for each device ({"device": INDEX, ...}); what a device, a driver or a
library cannot tell is left out, which is no fault. Stands alone: it imports nothing of this program.

NVML: https://docs.nvidia.com/deploy/nvml-api/. Return codes are NVML's numbers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

NO_BINDING = 3
"""Exit status: the package nvidia-ml-py is missing."""
NO_PERMISSION, NOT_SUPPORTED, FUNCTION_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH = 4, 3, 13, 15, 16, 25
CANNOT_SEE = frozenset({NO_PERMISSION, NOT_SUPPORTED, FUNCTION_NOT_FOUND, VERSION_MISMATCH})
GONE = frozenset({GPU_IS_LOST, RESET_REQUIRED})
INVALID_ARGUMENT = 2
LINKS_MAX = 18
FABRIC_COMPLETED = 3


def tell(**item: Any) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(item) + "\n")
    sys.stdout.flush()


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


MEASURES = (
    "recovery", "ecc_uncorrected", "sram_exceeded", "remap_pending", "remap_failed", "pages_pending", "temperature",
    "temperature_slowdown", "temperature_shutdown", "slowdown", "busy", "pcie_width", "pcie_width_max", "links_up",
    "fabric_waits",
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


def look_at(nvml: Any, index: int) -> None:
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
            for name in MEASURES:
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


def main() -> int:
    """Look at the driver, then at each device."""
    question = json.loads(sys.argv[1])
    try:
        import pynvml
    except ImportError as error:
        sys.stderr.write(f"{sys.executable}: {error}\n")
        return NO_BINDING
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
