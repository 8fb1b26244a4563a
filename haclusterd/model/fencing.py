"""Fencing: orders to fence, what became of them, and how far a device is proven (safety.md §5)."""

from enum import StrEnum

from haclusterd.model.ids import FenceKey, Incarnation, NodeName, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass

BACKOFF_FIRST_MS = 1000
BACKOFF_MAX_MS = 30_000
UNFENCED_MARK = "#node-unfenced"
"""The transient attribute with the time when a node was unfenced, in seconds (Pacemaker Explained, "Unfencing")."""
QUICK_ATTEMPTS = 2
"""Number of attempts without a pause between them; before later ones the pause doubles each time."""


class FenceAction(StrEnum):
    """What is asked of a fence device."""

    OFF = "off"
    ON = "on"
    REBOOT = "reboot"


class FenceState(StrEnum):
    """Where a fence order stands."""

    OPEN = "open"
    """Ordered; the agent may be running."""
    AGENT_SUCCEEDED = "agent-succeeded"
    """The agent said ok; the target must now stay silent before that is believed."""


class FenceOutcome(StrEnum):
    """How a fence order ended."""

    FENCED = "fenced"
    FAILED = "failed"
    TIMEOUT = "timeout"
    LIED = "lied"
    """The agent said ok, but the target was heard afterwards."""
    UNKNOWN = "unknown"
    """The node that ran the agent is gone."""
    CONFIRMED = "confirmed"
    """A person said that the node is down."""
    UNFENCED = "unfenced"
    """The devices let the node in (`on`)."""


DEATHS = (FenceOutcome.FENCED, FenceOutcome.CONFIRMED)
"""Outcomes by which a node counts as ended."""


@dataclass(frozen=True, slots=True)
class FailedOperation:
    """A failure because of which a node that is heard is fenced."""

    resource: ResourceId
    """The primitive, without the number of an instance."""
    operation: str
    ending: str
    """`timeout`, or its exit code in words."""


@dataclass(frozen=True, slots=True)
class FenceOrder:
    """One attempt to fence, or to let in (`on`), one incarnation of one node with one level of devices, by one node."""

    key: FenceKey
    target: NodeName
    target_incarnation: Incarnation | None
    """None: the member never joined."""
    action: FenceAction
    device: ResourceId
    executor: NodeName
    executor_incarnation: Incarnation
    dc_term: Term
    timeout_ms: int
    attempt: int
    issued_at: WallTime
    reason: str
    state: FenceState = FenceState.OPEN
    others: tuple[ResourceId, ...] = ()
    """The further devices of a level of the topology: all of them, with `device`, must succeed."""
    delay_ms: int = 0
    """How long off and reboot wait beside the device's own delays (`priority-fencing-delay`)."""
    causes: tuple[FailedOperation, ...] = ()
    """The failures that led to it; none: the node was not heard, or a person wanted it."""
    longest_call_ms: int = 0
    """No call of an agent for it takes longer; 0: `timeout_ms`."""
    letting_in: tuple[ResourceId, ...] = ()
    """Those of its devices that leave the node alive (`provides=unfencing`), as configured when it was committed."""

    @property
    def devices(self) -> tuple[ResourceId, ...]:
        """Every device that it takes."""
        return (self.device, *self.others)


@dataclass(frozen=True, slots=True)
class AbandonedFencing:
    """A fence order whose executor is gone and has not answered: its agent may still be at work (safety.md §5)."""

    order: FenceOrder
    since: WallTime
    """When the order was closed."""
    longest_ms: int
    """How long after that an agent may still act."""


@dataclass(frozen=True, slots=True)
class FencingRecord:
    """A fence order that ended."""

    key: FenceKey
    target: NodeName
    target_incarnation: Incarnation | None
    action: FenceAction
    device: ResourceId | None
    executor: NodeName | None
    outcome: FenceOutcome
    detail: str
    issued_at: WallTime
    ended_at: WallTime
    reason: str
    others: tuple[ResourceId, ...] = ()
    causes: tuple[FailedOperation, ...] = ()
    """The failures that led to it; none: the node was not heard, or a person wanted it."""
    attempt: int = 0
    """Which attempt on this incarnation of the node it was, counted from 1; 0: a person's word."""


def pause_ms(attempts: int, quick_until: int) -> int:
    """Return the pause in ms before the next attempt; from `quick_until` failed attempts on, the longest pause.

    Pacemaker's stonith-max-attempts means the same: it limits immediate attempts, not fencing (Pacemaker Explained,
    "Cluster Options").
    """
    if attempts >= quick_until:
        return BACKOFF_MAX_MS
    if attempts < QUICK_ATTEMPTS:
        return 0
    return min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS << min(10, attempts - QUICK_ATTEMPTS))


class ProofState(StrEnum):
    """How far it is known that a device can fence a node."""

    UNTESTED = "untested"
    """Shown of a device without a record; no record has it."""
    TESTED = "tested"
    FAILING = "failing"
    LIED = "lied"


@dataclass(frozen=True, slots=True)
class DeviceProof:
    """The newest evidence about one device and one target."""

    state: ProofState
    at: WallTime
    detail: str = ""
