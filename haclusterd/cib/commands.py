"""Everything that can change the CIB: a closed union of frozen values.

A command carries whatever its effect depends on: ids, times and random choices are its proposer's. Adding or changing
one needs a codec case, an upgrade file and a note in docs/design.
"""

from collections.abc import Mapping
from enum import StrEnum

from haclusterd.model.access import AclGroup, AclRole, AclTarget
from haclusterd.model.alerts import AlertTest
from haclusterd.model.api_tokens import ApiToken
from haclusterd.model.cluster import FIRST_FEATURE_LEVEL, Member
from haclusterd.model.configuration import (
    Alert,
    AttributeSet,
    Constraint,
    FencingLevel,
    NodeEntry,
    Resource,
    Tag,
    Template,
)
from haclusterd.model.devices import Device, DeviceId, Rung
from haclusterd.model.fencing import DeviceProof, FailedOperation, FenceOrder, FenceOutcome
from haclusterd.model.ids import FenceKey, Incarnation, NodeName, OrderKey, RequestId, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.orders import OperationResult, Order
from haclusterd.model.records import dataclass, field
from haclusterd.model.secrets import Secret, WrappedKey
from haclusterd.model.watchdog import Watchdog


@dataclass(frozen=True, slots=True)
class FormCluster:
    """The first command of a cluster: who it is and who belongs to it."""

    cluster_uuid: str
    cluster_name: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class ChangeMembers:
    """The members from now on. Raft counts votes by them as soon as this stands in the log (Raft thesis §4.1).

    The leader puts it into force only when `version` is the next one, at most one voter more or less votes, everybody
    who is online follows the version before, and a node that is dropped is retired; otherwise it is refused.
    """

    version: int
    members: tuple[Member, ...]
    revoked: tuple[str, ...]
    """Fingerprints of certificates that are not accepted any more; those revoked earlier stay so."""
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Retire:
    """A member will never join again; it is dropped next."""

    node: NodeName
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RequestCertificate:
    """A member is to get another certificate: a person wants it, or (with `request`) the member asks for it."""

    node: NodeName
    request: str
    """PKCS #10 with a signature of the key in force, as text; empty: the member is to make it."""
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MembersFollowed:
    """A node's pacer and links follow this version of the members."""

    node: NodeName
    incarnation: Incarnation
    version: int


@dataclass(frozen=True, slots=True)
class DcElected:
    """The first command of a new Raft leader; only after it may it issue orders."""

    node: NodeName
    incarnation: Incarnation
    term: Term


@dataclass(frozen=True, slots=True)
class Join:
    """A daemon has started (or came back after losing its lease) and is ready for orders."""

    node: NodeName
    incarnation: Incarnation
    watchdog: Watchdog | None = None
    """The device that resets this node unless it is fed; survivors count on its timeout (safety.md §2)."""
    feature_level: int = FIRST_FEATURE_LEVEL
    """What the daemon can read (`cib.levels`)."""
    secret_key: str = ""
    """The public key for which the cluster's secrets are sealed for it; empty: it has none."""


@dataclass(frozen=True, slots=True)
class PublishWatchdog:
    """What a node's Join said of its watchdog device is no longer so."""

    node: NodeName
    incarnation: Incarnation
    watchdog: Watchdog | None


@dataclass(frozen=True, slots=True)
class PublishLoad:
    """A node's load leaves it room for so many actions at once, or (0) for any number (`load-threshold`)."""

    node: NodeName
    incarnation: Incarnation
    actions_max: int


@dataclass(frozen=True, slots=True)
class PublishDevices:
    """What a node's watcher sees of its devices has changed; these are all of them."""

    node: NodeName
    incarnation: Incarnation
    devices: tuple[Device, ...]
    """In order of their ids, each once."""
    driver: str = ""
    trouble: str = ""
    """See `NodeDevices.trouble`."""


@dataclass(frozen=True, slots=True)
class ProvenClaim:
    """A claim that is over, and whose device its resource uses no more."""

    device: DeviceId
    resource: ResourceId
    order: OrderKey
    """Of the claim that the proof is about: what was claimed since stays."""


@dataclass(frozen=True, slots=True)
class ReleaseDevices:
    """A node has proven of claims that are over that nothing uses their devices any more."""

    node: NodeName
    incarnation: Incarnation
    claims: tuple[ProvenClaim, ...]


class DeviceChange(StrEnum):
    """What a person wants of a device."""

    ACCEPT = "accept"
    """It may be used, though the node's first report did not have it."""
    DRAIN = "drain"
    CLEAR = "clear"
    """It is not drained any more."""
    FORGET = "forget"
    """It is missing and does not come back."""


@dataclass(frozen=True, slots=True)
class SteerDevice:
    """A person decides about a device."""

    node: NodeName
    device: DeviceId
    change: DeviceChange
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BeginRecovery:
    """A person, or by policy its node, wants a device recovered: the intent, before anything is done."""

    node: NodeName
    device: DeviceId
    rung: Rung
    author: str
    reason: str = ""
    is_automatic: bool = False
    """By policy: budgets and the breaker count."""


class RecoveryOutcome(StrEnum):
    """What a node has to say of a recovery."""

    NOT_BEGUN = "not-begun"
    """Nothing was done: something uses the device."""
    DONE = "done"
    FAILED = "failed"
    """It could not be done, or did not help."""
    INTERRUPTED = "interrupted"
    """The life of the node that was to act is over: it may have been done or not."""
    PROVEN = "proven"
    """The device was well for long enough, passed the test, and nothing uses it."""


@dataclass(frozen=True, slots=True)
class RecordRecovery:
    """What a node did about a device, or found."""

    node: NodeName
    incarnation: Incarnation
    device: DeviceId
    number: int
    """Of the recovery that it is about."""
    outcome: RecoveryOutcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class EndDeviceStorm:
    """A person has looked at what befell so many devices: policies may act again."""

    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RequestLeave:
    """A daemon wants to be drained, so that it can leave."""

    node: NodeName
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class Leaving:
    """A daemon has stopped everything that is managed and leaves."""

    node: NodeName
    incarnation: Incarnation
    unmanaged: tuple[ResourceId, ...] = ()
    """What may be active there and stays so, because the administrator has it in hand."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Nobody in the DC's quorum hears a node's incarnation, or its brain is gone for too long."""

    node: NodeName
    incarnation: Incarnation | None
    """None: a member that has never joined."""
    dc_term: Term
    reason: str
    ages_ms: Mapping[NodeName, int] = field(default_factory=dict)
    """How long ago each voter of the quorum heard it."""
    causes: tuple[FailedOperation, ...] = ()
    """The failures on it for which it is to be fenced though it is heard; refused where that would end the quorum."""
    is_pending: bool = False
    """It was away, and is heard in another life, which does not join (`node-pending-timeout`)."""


@dataclass(frozen=True, slots=True)
class RequestFence:
    """A person wants a node fenced: it is declared lost, whatever it says."""

    node: NodeName
    incarnation: Incarnation | None
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class IssueOrders:
    """The DC's intent; refused when its term is not the CIB's."""

    dc_term: Term
    orders: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class JudgeRules:
    """Which blocks under rules on dates are in force from now on; whatever is not named is not."""

    dc_term: Term
    epoch: int
    """Of the configuration that was judged."""
    at: WallTime
    """What the rules were judged by: the DC's clock."""
    in_force: tuple[str, ...]
    """Keys of `model.dated_blocks`."""


@dataclass(frozen=True, slots=True)
class VoidOrders:
    """The DC no longer wants these orders; the executors answer for what they have begun."""

    dc_term: Term
    keys: tuple[OrderKey, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RecordResults:
    """What an executor did."""

    node: NodeName
    incarnation: Incarnation
    results: tuple[OperationResult, ...]


@dataclass(frozen=True, slots=True)
class IssueFence:
    """The DC's intent to fence."""

    order: FenceOrder


@dataclass(frozen=True, slots=True)
class RecordFenceAgent:
    """What the fence agent answered; success is believed only after `Fenced`."""

    key: FenceKey
    outcome: FenceOutcome
    detail: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """An incarnation is dead: its fence agent succeeded and nobody heard it since, or a person confirms it."""

    node: NodeName
    incarnation: Incarnation | None
    key: FenceKey | None
    outcome: FenceOutcome
    detail: str


@dataclass(frozen=True, slots=True)
class RecordFenceFailure:
    """A fence order ended without success: the agent failed, lied, or is gone with its executor."""

    key: FenceKey
    outcome: FenceOutcome
    detail: str


@dataclass(frozen=True, slots=True)
class EndAbandonedFencing:
    """The fence agent of a lost executor has certainly ended: so much time has passed."""

    key: FenceKey


@dataclass(frozen=True, slots=True)
class ForgetFencings:
    """Forget the ended fencings of a node, or of all; what failed counts no more towards `fencing-max-attempts`."""

    node: NodeName | None
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RecordProof:
    """New evidence about a fence device."""

    device: ResourceId
    target: NodeName
    proof: DeviceProof


@dataclass(frozen=True, slots=True)
class PutNode:
    """Add or replace what is configured about a node."""

    entry: NodeEntry


@dataclass(frozen=True, slots=True)
class PutResource:
    """Add or replace a resource."""

    resource: Resource


@dataclass(frozen=True, slots=True)
class PutConstraint:
    """Add or replace a constraint."""

    constraint: Constraint


@dataclass(frozen=True, slots=True)
class PutTemplate:
    """Add or replace a template."""

    template: Template


@dataclass(frozen=True, slots=True)
class PutTag:
    """Add or replace a tag."""

    tag: Tag


@dataclass(frozen=True, slots=True)
class PutAlert:
    """Add or replace an alert."""

    alert: Alert


@dataclass(frozen=True, slots=True)
class PutAccess:
    """Add or replace a role, or what roles a user or group has."""

    access: AclRole | AclTarget | AclGroup


@dataclass(frozen=True, slots=True)
class PutFencingLevels:
    """Replace the fencing levels of all targets."""

    levels: tuple[FencingLevel, ...]


@dataclass(frozen=True, slots=True)
class PutSets:
    """Replace all blocks of one kind: `properties`, `resource_defaults` or `operation_defaults`."""

    section: str
    sets: tuple[AttributeSet, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object of one kind.

    Kinds: `node`, `template`, `resource`, `constraint`, `tag`, `alert`, `acl_role`, `acl_target`, `acl_group`.
    """

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class Arrange:
    """Put the objects of one kind into this order (all their ids are named)."""

    kind: str
    ids: tuple[str, ...]


Edit = (
    PutNode | PutTemplate | PutResource | PutConstraint | PutTag | PutAlert | PutAccess | PutFencingLevels | PutSets
    | Delete | Arrange
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChangeConfiguration:
    """One atomic change of the configuration, made against version `expected_epoch`."""

    expected_epoch: int
    edits: tuple[Edit, ...]
    author: str
    reason: str
    expected_request: RequestId = RequestId("")
    """The request that made that version. A change may be made against one that is not committed yet; a number alone
    would then also fit what somebody else committed under it. Empty: whichever."""
    round_trip_ms: int = 0
    """What the network takes from the proposer to the farthest voter and back at least; 0: not known. A lease that does
    not hold on such a network is refused."""


@dataclass(frozen=True, slots=True)
class StageChange:
    """One part of a change that is larger than one log entry (`cib.staging` cuts it); parts come in their order."""

    transaction: str
    number: int
    """From 0."""
    data: str


@dataclass(frozen=True, slots=True)
class ActivateStaged:
    """The staged parts, put together, are one `ChangeConfiguration`."""

    transaction: str
    parts: int
    digest: str
    """SHA-256 of the parts' data, put together, in hexadecimal digits."""
    expected_epoch: int
    author: str
    reason: str


@dataclass(frozen=True, slots=True)
class CleanUp:
    """Forget failures (and with `reprobe` the whole history) of a resource, or of all, on a node, or on all."""

    resource: ResourceId | None
    node: NodeName | None
    reprobe: bool = False
    author: str = ""
    """Empty: the cluster itself."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ForgetHistory:
    """Forget what is recorded of a resource that is not active on a node: it is no longer configured, or as another."""

    node: NodeName
    resource: ResourceId


@dataclass(frozen=True, slots=True)
class SetTransientAttribute:
    """Set or (None) delete a node attribute that a reboot forgets."""

    node: NodeName
    name: str
    value: str | None
    author: str = ""
    reason: str = ""
    is_private: bool = False
    """For agents alone: no rule, plan or CIB in XML shows it."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Nobody needs to remember any more what entries up to `through` did; refused when the term is not the CIB's."""

    dc_term: Term
    through: int
    digest: str
    """The link of the history's chain at that index."""
    reason: str


class TicketChange(StrEnum):
    """What is done with a ticket (Pacemaker Explained, "Multi-Site Clusters and Tickets")."""

    GRANT = "grant"
    REVOKE = "revoke"
    STANDBY = "standby"
    ACTIVATE = "activate"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class SetTicket:
    """Grant a ticket to this cluster, or take it away; a person or booth decides that no other cluster has it."""

    ticket: str
    change: TicketChange
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RecordAlerts:
    """How far the DC of `term` has delivered alerts; refused when the term is not the CIB's."""

    term: Term
    delivered: Mapping[str, int]
    """By recipient: the sequence number of the newest event up to which it has everything."""
    tests: Mapping[str, AlertTest] = field(default_factory=dict)
    """How tests of recipients have ended."""


@dataclass(frozen=True, slots=True)
class RequestAlertTest:
    """A person wants a test event sent to recipients; refused where one of them is not configured."""

    recipients: tuple[str, ...]
    """By `AlertTarget.key`."""
    author: str
    reason: str


@dataclass(frozen=True, slots=True)
class RestartResource:
    """Stop a resource everywhere, then let it run again as configured; any DC finishes it."""

    resource: ResourceId
    limit_ms: int
    """After so long it may run again, whatever has not stopped."""
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EndRestart:
    """A restart has gone on for long enough."""

    resource: ResourceId
    at: WallTime
    """When it began: it names which one is meant."""
    reason: str


@dataclass(frozen=True, slots=True)
class AddApiToken:
    """A program may ask from now on; refused when there is a token of that name."""

    token: ApiToken
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RevokeApiToken:
    """A token is not accepted any more, and is forgotten."""

    name: str
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PutSecret:
    """A secret has this value from now on; refused when the secrets are not at `expected_version`."""

    expected_version: int
    name: str
    sealed: str = field(repr=False)
    key_id: str
    """By which key it is sealed: the one in force, or the first one, which `keys` then has for the members."""
    author: str
    reason: str = ""
    keys: Mapping[NodeName, WrappedKey] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeleteSecret:
    """Forget a secret; refused while the configuration refers to it, or something may run with it."""

    name: str
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RotateSecrets:
    """All secrets are sealed by another key, which only those have who are members now.

    A secret that `values` does not have is forgotten: nobody could open it any more.
    """

    expected_version: int
    key_id: str
    keys: Mapping[NodeName, WrappedKey]
    values: Mapping[str, Secret]
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ShareSecretKey:
    """Members that do not have the secret key in force get it, sealed for each."""

    key_id: str
    keys: Mapping[NodeName, WrappedKey]


@dataclass(frozen=True, slots=True)
class NoteSecretShown:
    """Somebody is about to be shown the value of a secret: the history has it before they do."""

    name: str
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RequestLeader:
    """A person wants another voter to lead; the leader at the time when this is applied hands over."""

    node: NodeName
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReadBarrier:
    """Changes nothing: a node that sees it applied has seen everything that was acknowledged before it was proposed."""


Command = (
    FormCluster
    | ChangeMembers
    | Retire
    | RequestCertificate
    | MembersFollowed
    | DcElected
    | Join
    | PublishWatchdog
    | PublishLoad
    | PublishDevices
    | ReleaseDevices
    | SteerDevice
    | BeginRecovery
    | RecordRecovery
    | EndDeviceStorm
    | RequestLeave
    | Leaving
    | Lost
    | RequestFence
    | IssueOrders
    | JudgeRules
    | VoidOrders
    | RecordResults
    | IssueFence
    | RecordFenceAgent
    | Fenced
    | RecordFenceFailure
    | EndAbandonedFencing
    | RecordProof
    | ForgetFencings
    | ChangeConfiguration
    | StageChange
    | ActivateStaged
    | CleanUp
    | ForgetHistory
    | SetTransientAttribute
    | Forget
    | SetTicket
    | RestartResource
    | EndRestart
    | AddApiToken
    | RevokeApiToken
    | RequestLeader
    | ReadBarrier
    | RecordAlerts
    | RequestAlertTest
    | PutSecret
    | DeleteSecret
    | RotateSecrets
    | ShareSecretKey
    | NoteSecretShown
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A command with who proposed it, when, and under which request id."""

    request: RequestId
    proposer: NodeName
    at: WallTime
    command: Command
