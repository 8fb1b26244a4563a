"""The faults that the lab of GPUs plays: one at least for each of the 50 classes of the fault table."""

from enum import StrEnum

from haclusterd.model.records import dataclass

LEAVES = ("drain", "failed")


class Way(StrEnum):
    """How a fault comes into the stand-in."""

    DEVICE = "device"
    """A line of its file for one device."""
    NODE = "node"
    """A line for all devices, or for the driver."""
    EVENT = "event"
    """An Xid by NVML's events."""
    LOG = "log"
    """A line of the kernel log; `{bus}` is the device's."""
    SPECIAL = "special"
    """See gpu_lab.Injections."""


@dataclass(frozen=True, slots=True)
class LabFault:
    """One fault, and what is to come of it."""

    number: int
    """Its class."""
    fault: str
    way: Way
    code: str
    """The reason that is shown; empty: none is, since the table says that nothing follows."""
    severity: str
    """What the device is then."""
    is_of_node: bool = False
    """All devices of the node have it."""
    seen_in: str = "device"
    """Where it is shown: the reasons of the `device`, its `strangers`, or nowhere."""

    @property
    def is_event(self) -> bool:
        """Whether it is seen as it happens, not at the next look."""
        return self.way in (Way.EVENT, Way.LOG)

    @property
    def leaves(self) -> bool:
        """Whether what holds the device has to leave it."""
        return self.severity in LEAVES


def _device(number: int, fault: str, code: str, severity: str) -> LabFault:
    return LabFault(number, fault, Way.DEVICE, code, severity)


def _node(number: int, fault: str, code: str, severity: str) -> LabFault:
    return LabFault(number, fault, Way.NODE, code, severity, is_of_node=True)


def _xid(number: int, code: int, severity: str) -> LabFault:
    is_shown = severity in (*LEAVES, "degraded")
    return LabFault(number, str(code), Way.EVENT, f"xid-{code}" if is_shown else "", severity)


def _special(number: int, fault: str, code: str, severity: str, *, is_of_node: bool = False) -> LabFault:
    return LabFault(number, fault, Way.SPECIAL, code, severity, is_of_node=is_of_node)


XID_LINE = "NVRM: Xid (PCI:{bus}): %d, pid=%d, name=python3, Ch 00000001"
FAULTS = (
    _node(1, "init=!9", "driver-not-loaded", "failed"),
    _node(2, "init=!12", "library-missing", "failed"),
    _node(3, "init=!18", "library-mismatch", "drain"),
    _device(4, "temperature=@hang", "hang-lasts", "failed"),
    LabFault(5, XID_LINE % (79, 0), Way.LOG, "xid-79", "failed"),
    _device(5, "any=!15", "lost", "failed"),
    _special(6, "vanish", "missing", "failed"),
    _special(7, "replace", "missing", "failed"),
    _device(8, "any=!16", "reset-required", "drain"),
    _device(9, "field230=2", "recovery-reboot", "failed"),
    _device(10, "field230=3", "recovery-drain-p2p", "degraded"),
    _device(11, "field230=5", "recovery-imex", "drain"),
    _xid(12, 48, "drain"),
    _xid(13, 94, "application"),
    _xid(14, 92, "degraded"),
    _device(15, "sram_exceeded=1", "sram-exceeded", "drain"),
    _device(16, "remap_pending=1", "remap-pending", "degraded"),
    _device(17, "remap_failed=1", "remap-failed", "drain"),
    _device(18, "banks_none=1", "remap-reserve", "degraded"),
    _device(19, "pages_pending=1", "pages-pending", "degraded"),
    _xid(20, 62, "drain"),
    _xid(21, 31, "application"),
    LabFault(21, "\n".join(XID_LINE % (13, pid) for pid in (11, 12, 13)), Way.LOG, "xid-application", "degraded"),
    _xid(22, 167, "failed"),
    _device(23, "pcie_width=8", "pcie-width", "degraded"),
    _device(24, "replays=@rate:10", "pcie-replays", "degraded"),
    _device(25, "link7=0", "nvlink-down", "degraded"),
    _device(26, "field38=@rate:500", "nvlink-errors", "degraded"),
    LabFault(27, "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 32", Way.LOG, "nvswitch", "degraded",
             is_of_node=True),
    _special(28, "no-manager", "fabric-manager", "failed", is_of_node=True),
    _device(29, "fabric=2", "fabric-waits", "degraded"),
    _device(30, "temperature=92", "too-hot", "drain"),
    _device(31, "reasons=0x40", "slowed-down", "degraded"),
    _device(32, "reasons=0x20", "software-thermal", "degraded"),
    _device(33, "reasons=0x80", "power-brake", "degraded"),
    _device(34, "reasons=0x04", "", "ignored"),
    _xid(35, 54, "drain"),
    _device(36, "persistence=0", "", "ignored"),
    _device(37, "compute_mode=2", "compute-prohibited", "drain"),
    _device(38, "mig_pending=1", "mig-pending", "drain"),
    _device(39, "ecc_wanted=0", "ecc-pending", "degraded"),
    LabFault(40, "stranger", Way.SPECIAL, "stranger", "ignored", seen_in="strangers"),
    _device(41, "memory_used=500", "memory-held", "drain"),
    _device(42, "ecc_uncorrected=!14", "inforom", "degraded"),
    _device(43, "vbios=96.00.FF.00.01", "", "ignored"),
    _special(44, "port-down", "network-port", "degraded", is_of_node=True),
    LabFault(45, "mlx5_core 0000:98:00.0: Detected insufficient power on the PCIe slot (27W).", Way.LOG, "network-card",
             "degraded", is_of_node=True),
    _special(46, "no-peermem", "", "ignored"),
    _special(47, "stuck", "stuck-process", "drain"),
    _device(48, "clock=1500", "straggler", "degraded"),
    _special(49, "drained-by-hand", "", "drain"),
    _xid(50, 999, "degraded"),
)  # fmt: skip
QUICKER = {
    "lost": "clear-after = 1", "sram-exceeded": "clear-after = 1", "remap-failed": "clear-after = 1",
    "network-card": "clear-after = 1", "pcie-replays": "clear-after = 3",
    "software-thermal": "raise-after = 3\nclear-after = 3", "straggler": "raise-after = 3\nclear-after = 3",
    "nvlink-errors": "raise-after = 3\nclear-after = 3", "network-port": "raise-after = 3\nclear-after = 3",
}  # fmt: skip
"""Rows of the lab's own table: what is believed after minutes, or ends with a boot, is quicker here."""
