"""What machines ask the runtime to do: a closed union of frozen values.

A machine never acts. It returns these in the order in which they must happen; the runtime performs them through ports
and turns the results into events.
"""

from enum import Enum

from haclusterd.cib.commands import Command
from haclusterd.model.agent_calls import AgentCall, FenceCall
from haclusterd.model.devices import DeviceId, Rung
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass


class Scope(Enum):
    """In whose name something is proposed, and so for how long it is repeated."""

    DC = "until this node is DC no more"
    INCARNATION = "until this incarnation is over"
    PROCESS = "until it is applied: it stays true"


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask the store for a command. `key` names the intent: one proposal with a key is in flight at a time, and it is
    repeated, under one request id, until it is applied or its scope has ended."""

    scope: Scope
    key: str
    command: Command


@dataclass(frozen=True, slots=True)
class RunAgent:
    """Execute an action; its result comes back as `agent_finished`."""

    call: AgentCall


@dataclass(frozen=True, slots=True)
class KillAgent:
    """End a running action; its result comes back as cancelled."""

    key: str


@dataclass(frozen=True, slots=True)
class WatchService:
    """Watch the processes of an active resource; the death of one is reported as `service_died`."""

    resource: ResourceId
    instance: str


@dataclass(frozen=True, slots=True)
class UnwatchService:
    """Stop watching."""

    resource: ResourceId


@dataclass(frozen=True, slots=True)
class LookAtDevices:
    """Find out what uses devices of this node; the answer goes to the machine that made the key."""

    key: str
    devices: tuple[DeviceId, ...]


@dataclass(frozen=True, slots=True)
class RecoverDevice:
    """Reset a device, or reload its driver, at once; the result goes to the machine that made the key."""

    key: str
    device: DeviceId
    rung: Rung


@dataclass(frozen=True, slots=True)
class ExamineDevice:
    """Run the administrator's test of a device; the result goes to the machine that made the key."""

    key: str
    device: DeviceId
    program: str
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class CallFenceAgent:
    """Run a fence agent; its answer comes back as `agent_finished`."""

    call: FenceCall


@dataclass(frozen=True, slots=True)
class TransferLeadership:
    """Hand the Raft leadership over."""

    to: NodeName


@dataclass(frozen=True, slots=True)
class PrepareToPlan:
    """Prepare for planning: this node will need a plan soon."""


@dataclass(frozen=True, slots=True)
class AskForPlan:
    """Have a plan made for the CIB that the machine was given in this step; it comes back as `answered`."""

    number: int
    now: WallTime


@dataclass(frozen=True, slots=True)
class PublishEmpty:
    """Tell the pacer whether this node is proven to run nothing."""

    is_empty: bool


@dataclass(frozen=True, slots=True)
class Condemn:
    """Tell the pacer whether this node is to be reset by its watchdog (no-quorum-policy fence)."""

    is_condemned: bool


@dataclass(frozen=True, slots=True)
class Note:
    """One line for the log and for the history of decisions."""

    kind: str
    text: str


Effect = (
    Propose
    | RunAgent
    | KillAgent
    | WatchService
    | UnwatchService
    | LookAtDevices
    | RecoverDevice
    | ExamineDevice
    | CallFenceAgent
    | TransferLeadership
    | PrepareToPlan
    | AskForPlan
    | PublishEmpty
    | Condemn
    | Note
)
