"""What one applied command changed, as values for watchers, logs and the history.

Changes only wake; every decision reads the whole CIB (architecture: "Level-triggered, not edge-triggered").
"""

from collections.abc import Iterator
from enum import StrEnum

from haclusterd.cib.commands import Envelope
from haclusterd.model.change_kinds import ChangeKind as ChangeKind
from haclusterd.model.cluster import Cib
from haclusterd.model.history_chain import Fact
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import dataclass, fields


@dataclass(frozen=True, slots=True)
class Facts:
    """A change as data, beside its text; empty fields do not apply."""

    action: str = ""
    """The action, of the resource's agent or of the fence device."""
    outcome: str = ""
    """How the action ended: ok, failed, running, not-running, not-begun or unknown; of fencing, a FenceOutcome."""
    cause: str = ""
    """The cause: of a failure, the agent's answer (`not_running`); of a service that is not up, and of a node, a
    `model.availability.Cause`."""
    order: str = ""
    """The key of the order concerned."""
    reason: str = ""
    """Why it was ordered."""
    interval: str = ""
    """Of a recurring monitor, its interval in ms."""
    role: str = ""
    """Of a service: `promoted`, or empty."""
    state: str = ""
    """Of a service: `model.availability.ServiceState`."""
    was: str = ""
    """Of a service: its state before."""
    was_cause: str = ""
    since: str = ""
    """Since when it holds, in ms, if not since the entry itself."""
    was_since: str = ""

    def said(self) -> Iterator[tuple[str, str]]:
        """Yield (name, value) of the fields that are not empty."""
        return ((name, value) for name in FACT_NAMES if (value := getattr(self, name)))


FACT_NAMES = tuple(each.name for each in fields(Facts))
NO_FACTS = Facts()


@dataclass(frozen=True, slots=True)
class Change:
    """One event, as text for users and as data."""

    kind: ChangeKind
    node: NodeName | None
    resource: ResourceId | None
    text: str
    facts: Facts = NO_FACTS
    incident: str = ""
    """The id of the incident that it belongs to; empty: none."""


class RefusalCode(StrEnum):
    """Why a command had no effect."""

    ALREADY_FORMED = "already-formed"
    NOT_A_MEMBER = "not-a-member"
    NEEDS_UPGRADE = "needs-upgrade"
    """A node reads less than the cluster's feature level, or a command needs a higher one."""
    MEMBERS_NOT_NOW = "members-not-now"
    """The members cannot be changed like this at present; a later attempt may succeed."""
    MEMBERS_CONFLICT = "members-conflict"
    """The members were changed by someone else meanwhile, or the change is not allowed at all."""
    OLD_TERM = "old-term"
    OLD_INCARNATION = "old-incarnation"
    HELD_FENCING_IN_FLIGHT = "held-fencing-in-flight"
    WRONG_NODE_STATE = "wrong-node-state"
    STILL_ACTIVE = "still-active"
    POSSIBLY_ACTIVE_ON_OTHERS = "possibly-active-elsewhere"
    NOT_CONFIGURED = "not-configured"
    """A start under a name that the configuration does not have, or has no more."""
    DUPLICATE_KEY = "duplicate-key"
    UNKNOWN_KEY = "unknown-key"
    FENCING_IN_FLIGHT = "fencing-in-flight"
    ENDS_QUORUM = "ends-quorum"
    """A node is not fenced for a failed operation when no quorum would be left."""
    CONFIGURATION_CONFLICT = "configuration-conflict"
    UNSAFE_CONFIGURATION = "unsafe-configuration"
    UNKNOWN_DEVICE = "unknown-device"
    DEVICE_NOT_FREE = "device-not-free"
    """A device is claimed by another resource, not accepted, drained, or divided in instances."""
    STAGED_INCOMPLETE = "staged-incomplete"
    UNREADABLE = "unreadable"
    INTERNAL_ERROR = "internal-error"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A command without effect, equally on every node."""

    code: RefusalCode
    text: str


@dataclass(frozen=True, slots=True)
class Applied:
    """The CIB after one entry, and what the entry did."""

    cib: Cib
    envelope: Envelope | None
    """None for an entry that could not be read."""
    changes: tuple[Change, ...] = ()
    refusal: Refusal | None = None
    facts: tuple[Fact, ...] = ()
    """The facts by which the history remembers the changes, one for each."""
    is_repetition: bool = False
    """The request was applied before; `refusal` is the answer of that time."""
