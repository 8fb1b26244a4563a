"""What one applied command changed, as values for watchers, logs and the history.

Changes only wake; every decision reads the whole CIB (architecture: "Level, not edge").
"""

from dataclasses import dataclass
from enum import StrEnum

from haclusterd.cib.commands import Envelope
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName, ResourceId


class ChangeKind(StrEnum):
    """What happened."""

    CLUSTER_FORMED = "cluster-formed"
    MEMBERS_CHANGED = "members-changed"
    NODE_RETIRED = "node-retired"
    FEATURE_LEVEL_ROSE = "feature-level-rose"
    CERTIFICATE_REQUESTED = "certificate-requested"
    DC_ELECTED = "dc-elected"
    NODE_JOINED = "node-joined"
    NODE_LEAVING = "node-leaving"
    NODE_LEFT = "node-left"
    NODE_LOST = "node-lost"
    NODE_FENCED = "node-fenced"
    NODE_UNFENCED = "node-unfenced"
    FENCING_ORDERED = "fencing-ordered"
    FENCING_AGENT_SUCCEEDED = "fencing-agent-succeeded"
    FENCING_FAILED = "fencing-failed"
    ORDER_ISSUED = "order-issued"
    ORDER_VOIDED = "order-voided"
    ORDER_NOT_BEGUN = "order-not-begun"
    OUTCOME_UNKNOWN = "outcome-unknown"
    OPERATION_SUCCEEDED = "operation-succeeded"
    OPERATION_FAILED = "operation-failed"
    CONFIGURATION_CHANGED = "configuration-changed"
    FAILURES_FORGOTTEN = "failures-forgotten"
    ATTRIBUTE_CHANGED = "attribute-changed"
    TICKET_CHANGED = "ticket-changed"
    LEADER_REQUESTED = "leader-requested"
    WATCHDOG_CHANGED = "watchdog-changed"
    DEVICE_PROVEN = "device-proven"
    FENCINGS_FORGOTTEN = "fencings-forgotten"
    REFUSED = "refused"
    HISTORY_GAP = "history-gap"
    """Never made by `apply`: stands in what a node tells of the past for what it does not know."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happened, in words a person can read."""

    kind: ChangeKind
    node: NodeName | None
    resource: ResourceId | None
    text: str


class RefusalCode(StrEnum):
    """Why a command had no effect."""

    ALREADY_FORMED = "already-formed"
    NOT_A_MEMBER = "not-a-member"
    NEEDS_UPGRADE = "needs-upgrade"
    """A node reads less than the cluster's feature level, or a command needs a higher one."""
    MEMBERS_NOT_NOW = "members-not-now"
    """The members cannot be changed like this at present; asking again may help."""
    MEMBERS_CONFLICT = "members-conflict"
    """They were changed by someone else meanwhile, or the change is not allowed at all."""
    OLD_TERM = "old-term"
    OLD_INCARNATION = "old-incarnation"
    HELD_FENCING_IN_FLIGHT = "held-fencing-in-flight"
    WRONG_NODE_STATE = "wrong-node-state"
    STILL_ACTIVE = "still-active"
    POSSIBLY_ACTIVE_ELSEWHERE = "possibly-active-elsewhere"
    DUPLICATE_KEY = "duplicate-key"
    UNKNOWN_KEY = "unknown-key"
    FENCING_IN_FLIGHT = "fencing-in-flight"
    CONFIGURATION_CONFLICT = "configuration-conflict"
    UNSAFE_CONFIGURATION = "unsafe-configuration"
    STAGED_INCOMPLETE = "staged-incomplete"
    UNREADABLE = "unreadable"
    INTERNAL_ERROR = "internal-error"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A command that had no effect, equally on every node."""

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
    is_repetition: bool = False
    """The request had had its effect before."""
