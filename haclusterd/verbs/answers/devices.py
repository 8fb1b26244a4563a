"""What the verbs about devices answer."""

from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer


@dataclass(frozen=True, slots=True)
class ShownClaim:
    """A resource that may use a device."""

    resource: str
    memory_mib: int
    """0: it has the device for itself alone."""
    is_over: bool
    """It has ended, and it is not proven yet that nothing of it uses the device."""


@dataclass(frozen=True, slots=True)
class ShownRecovery:
    """What is done about a device, or was, while it is not proven to be well."""

    rung: str
    """reset, reload or reboot; empty: it was well again by itself, and has only to prove it."""
    phase: str
    """acting, proving or held."""
    author: str
    at: int
    reason: str
    detail: str
    """What its node has said of it last."""


@dataclass(frozen=True, slots=True)
class ShownDevice:
    """One device."""

    id: str
    node: str
    kind: str
    bus: str
    model: str
    memory_mib: int
    link: str
    """Devices of a node with the same text reach each other by NVLink; empty: it reaches none."""
    numa: int
    """-1: not known."""
    parent: str
    profile: str
    is_partitioned: bool
    has_ecc: bool | None
    state: str
    """The state that counts: what is seen, and what persons want."""
    seen: str
    """The state that its node sees."""
    reasons: tuple[str, ...]
    """Why it is not in order, the gravest first."""
    since: int
    is_accepted: bool
    drained_by: str
    """Empty: it is not drained by a person."""
    drain_reason: str
    claims: tuple[ShownClaim, ...]
    strangers: tuple[str, ...]
    """What uses it and belongs to no resource of this cluster."""
    rung: str
    """What its fault wants done about it: reset, reload or reboot; empty: nothing that the cluster can do."""
    recovery: ShownRecovery | None
    remedies: tuple[str, ...]
    """What to type about it."""


@dataclass(frozen=True, slots=True)
class NodeOfDevices:
    """What is known of the devices of one node as a whole."""

    node: str
    usable: int
    total: int
    """Devices that can be claimed: a partitioned one counts as its instances."""
    driver: str
    trouble: str
    """What is wrong with all at once; empty: nothing."""
    reported_at: int


@dataclass(frozen=True, slots=True)
class Devices(Answer):
    """Devices of nodes."""

    SCHEMA: ClassVar[str] = "haclusterd.devices/1"
    now: int
    nodes: tuple[NodeOfDevices, ...]
    devices: tuple[ShownDevice, ...]
    storm: str
    """Why no device is recovered without a person's word; empty: nothing keeps policies from acting."""


@dataclass(frozen=True, slots=True)
class SupposedFailure:
    """What would follow if something failed."""

    fails: str
    """`n1`, `rack a`, or `GPU-... of n1`."""
    not_running: tuple[str, ...]
    """Resources that run now and would not run any more."""
    moved: tuple[str, ...]
    """Resources that would run with another device or on another node."""


@dataclass(frozen=True, slots=True)
class DeviceCapacity(Answer):
    """Which services the loss of something would cost."""

    SCHEMA: ClassVar[str] = "haclusterd.device-capacity/1"
    if_fails: str
    """gpu, node or rack."""
    free: int
    """Devices in order that nobody holds."""
    waiting: tuple[str, ...]
    """Resources that ask for devices and do not run as it is."""
    failures: tuple[SupposedFailure, ...]
    """Those that would cost something first."""
    left_out: int
    """Failures that were not tried: there are too many."""


@dataclass(frozen=True, slots=True)
class ExplainedFault:
    """A row of the table of faults in force on the machine that was asked."""

    name: str
    text: str
    signal: str
    severity: str
    scope: str
    raise_after: int
    clear_after: int
    """0: never by a look."""
    back: str
    rung: str
    """What is tried first."""
    advice: str
    is_watched: bool
    source: str
    """Which file says so."""


@dataclass(frozen=True, slots=True)
class FaultExplanation(Answer):
    """Rows of the table of faults."""

    SCHEMA: ClassVar[str] = "haclusterd.gpu_faults/1"
    faults: tuple[ExplainedFault, ...]


@dataclass(frozen=True, slots=True)
class TableProblem:
    """One thing that is wrong with a table of faults."""

    line: int
    """0: of no line."""
    message: str


@dataclass(frozen=True, slots=True)
class FaultTableCheck(Answer):
    """What is wrong with a table of faults."""

    SCHEMA: ClassVar[str] = "haclusterd.gpu_lint/1"
    file: str
    rows: int
    """Rows that it changes or adds."""
    problems: tuple[TableProblem, ...]


@dataclass(frozen=True, slots=True)
class PretendedState:
    """A device that is shown in a state that it has not."""

    device: str
    state: str
    seconds_left: int


@dataclass(frozen=True, slots=True)
class SimulatedFault(Answer):
    """The states that are pretended on this machine."""

    SCHEMA: ClassVar[str] = "haclusterd.gpu_simulated/1"
    devices: tuple[PretendedState, ...]
