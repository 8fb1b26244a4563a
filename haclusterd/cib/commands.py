"""Everything that can change the CIB: a closed union of frozen values.

A command carries everything its effect depends on: ids, times and random choices are made by its proposer. Adding or
changing one needs a codec case, an upgrade file and a note in docs/design.
"""

from collections.abc import Mapping
from enum import StrEnum

from haclusterd.cib.edits import Edit
from haclusterd.model.alerts import AlertTest
from haclusterd.model.api_tokens import ApiToken
from haclusterd.model.cluster import FIRST_FEATURE_LEVEL, Member
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
    """The first command of a cluster: its identity and its members."""

    cluster_uuid: str
    cluster_name: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class ChangeMembers:
    """Set the members. Raft counts votes by them as soon as this is in the log (Raft thesis §4.1).

    The leader puts it into force only if `version` is the next one, at most one voter is added or removed, every online
    node follows the version before, and a node that is dropped is retired; otherwise it is refused.
    """

    version: int
    members: tuple[Member, ...]
    revoked: tuple[str, ...]
    """Fingerprints of certificates that are no longer accepted; those revoked earlier stay revoked."""
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Retire:
    """Exclude a member for good; it is dropped next."""

    node: NodeName
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RequestCertificate:
    """A member is to get another certificate, at an administrator's request or (with `request`) its own."""

    node: NodeName
    request: str
    """PKCS #10, signed with the key in force, as text; empty: the member is to make one."""
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
    """The device that resets this node unless it is fed; survivors rely on its timeout (safety.md §2)."""
    feature_level: int = FIRST_FEATURE_LEVEL
    """The feature level that the daemon can read (`cib.levels`)."""
    secret_key: str = ""
    """The public key for which secrets are sealed for this node; empty: it has none."""


@dataclass(frozen=True, slots=True)
class PublishWatchdog:
    """The watchdog device in a node's Join has changed."""

    node: NodeName
    incarnation: Incarnation
    watchdog: Watchdog | None


@dataclass(frozen=True, slots=True)
class PublishLoad:
    """By its load a node may run this many actions at once; 0: any number (`load-threshold`)."""

    node: NodeName
    incarnation: Incarnation
    actions_max: int


@dataclass(frozen=True, slots=True)
class PublishDevices:
    """A node's devices have changed; these are all of them."""

    node: NodeName
    incarnation: Incarnation
    devices: tuple[Device, ...]
    """Sorted by id, each once."""
    driver: str = ""
    trouble: str = ""
    """See `NodeDevices.trouble`."""


@dataclass(frozen=True, slots=True)
class ProvenClaim:
    """A claim that is over, and whose device its resource no longer uses."""

    device: DeviceId
    resource: ResourceId
    order: OrderKey
    """The key of the claim that is proven: a later claim on the device stays."""


@dataclass(frozen=True, slots=True)
class ReleaseDevices:
    """A node has proven that nothing uses the devices of these ended claims any more."""

    node: NodeName
    incarnation: Incarnation
    claims: tuple[ProvenClaim, ...]


class DeviceChange(StrEnum):
    """What an administrator decides about a device."""

    ACCEPT = "accept"
    """Accept it, although the node's first report did not contain it."""
    DRAIN = "drain"
    CLEAR = "clear"
    """End its draining."""
    FORGET = "forget"
    """Forget it: it is missing and does not come back."""


@dataclass(frozen=True, slots=True)
class SteerDevice:
    """An administrator's decision about a device."""

    node: NodeName
    device: DeviceId
    change: DeviceChange
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BeginRecovery:
    """Recover a device, at an administrator's or its node's (by policy) request: the intent before any action."""

    node: NodeName
    device: DeviceId
    rung: Rung
    author: str
    reason: str = ""
    is_automatic: bool = False
    """Whether policy asks for it: budgets and the breaker count then."""


class RecoveryOutcome(StrEnum):
    """The result of a recovery, as its node reports it."""

    NOT_BEGUN = "not-begun"
    """Nothing was done: something uses the device."""
    DONE = "done"
    FAILED = "failed"
    """It could not be done, or did not help."""
    INTERRUPTED = "interrupted"
    """The incarnation that was to act is over: it may have been done or not."""
    PROVEN = "proven"
    """The device was healthy for long enough, passed the test, and nothing uses it."""


@dataclass(frozen=True, slots=True)
class RecordRecovery:
    """A node's report of an action on a device, or of its state."""

    node: NodeName
    incarnation: Incarnation
    device: DeviceId
    number: int
    """The number of the recovery concerned."""
    outcome: RecoveryOutcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class EndDeviceStorm:
    """An administrator has looked into a storm of device failures: policies may act again."""

    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RequestLeave:
    """A daemon asks to be drained, so that it can leave."""

    node: NodeName
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class Leaving:
    """A daemon has stopped everything that is managed, and leaves."""

    node: NodeName
    incarnation: Incarnation
    unmanaged: tuple[ResourceId, ...] = ()
    """Resources that may stay active there, because they are unmanaged."""


@dataclass(frozen=True, slots=True)
class Lost:
    """No node in the DC's quorum hears a node's incarnation, or its daemon is gone for too long."""

    node: NodeName
    incarnation: Incarnation | None
    """None: a member that has never joined."""
    dc_term: Term
    reason: str
    ages_ms: Mapping[NodeName, int] = field(default_factory=dict)
    """How many ms ago each voter of the quorum heard it."""
    causes: tuple[FailedOperation, ...] = ()
    """Failed operations for which it is fenced although it is heard; refused where that would end the quorum."""
    is_pending: bool = False
    """It was away, and is heard under another incarnation, which does not join (`node-pending-timeout`)."""


@dataclass(frozen=True, slots=True)
class RequestFence:
    """An administrator wants a node fenced: it is declared lost, whatever its state."""

    node: NodeName
    incarnation: Incarnation | None
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class IssueOrders:
    """The DC's orders; refused when its term is not the CIB's."""

    dc_term: Term
    orders: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class JudgeRules:
    """The blocks under rules on dates that are in force from now on; all others are not."""

    dc_term: Term
    epoch: int
    """The version of the configuration that was judged."""
    at: WallTime
    """The time by which the rules were judged: the DC's clock."""
    in_force: tuple[str, ...]
    """Keys of `model.dated_blocks`."""


@dataclass(frozen=True, slots=True)
class VoidOrders:
    """The DC no longer wants these orders; the executors still answer those that they have started."""

    dc_term: Term
    keys: tuple[OrderKey, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RecordResults:
    """An executor's results."""

    node: NodeName
    incarnation: Incarnation
    results: tuple[OperationResult, ...]


@dataclass(frozen=True, slots=True)
class IssueFence:
    """The DC's fence order."""

    order: FenceOrder


@dataclass(frozen=True, slots=True)
class RecordFenceAgent:
    """The fence agent's result; a success counts only after `Fenced`."""

    key: FenceKey
    outcome: FenceOutcome
    detail: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """An incarnation is dead: its fence agent succeeded and it was silent since, or an administrator confirms it."""

    node: NodeName
    incarnation: Incarnation | None
    key: FenceKey | None
    outcome: FenceOutcome
    detail: str


@dataclass(frozen=True, slots=True)
class RecordFenceFailure:
    """A fence order ended without success: the agent failed, the target was heard later, or its executor is gone."""

    key: FenceKey
    outcome: FenceOutcome
    detail: str


@dataclass(frozen=True, slots=True)
class EndAbandonedFencing:
    """The fence agent of a lost executor must have ended by now."""

    key: FenceKey


@dataclass(frozen=True, slots=True)
class ForgetFencings:
    """Forget the ended fencings of a node, or of all; earlier failures no longer count for `fencing-max-attempts`."""

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
class ChangeConfiguration:
    """One atomic change of the configuration, made against version `expected_epoch`."""

    expected_epoch: int
    edits: tuple[Edit, ...]
    author: str
    reason: str
    expected_request: RequestId = RequestId("")
    """The request that made that version. A change may be made against one that is not committed yet; the number alone
    would also fit another change committed under it. Empty: any."""
    round_trip_ms: int = 0
    """Lower bound of the round trip from the proposer to the farthest voter, in ms; 0: not known. A lease that does not
    hold on such a network is refused."""


@dataclass(frozen=True, slots=True)
class StageChange:
    """One part of a change that is larger than one log entry (`cib.staging` splits it); parts come in order."""

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
    """SHA-256 of the concatenated data of the parts, in hexadecimal digits."""
    expected_epoch: int
    author: str
    reason: str


@dataclass(frozen=True, slots=True)
class CleanUp:
    """Forget failures (with `reprobe` the whole history) of a resource, or of all, on a node, or on all."""

    resource: ResourceId | None
    node: NodeName | None
    reprobe: bool = False
    author: str = ""
    """Empty: the cluster itself."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ForgetHistory:
    """Forget the history of a resource that is not active on a node and is no longer configured, or in another way."""

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
    """Whether it is for agents only: no rule, plan or CIB in XML shows it."""
    others: tuple[NodeName, ...] = ()
    """More nodes whose attribute is set in the same entry: of all of them, or, if one is unknown, of none."""

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """All nodes whose attribute is set."""
        return (self.node, *self.others)


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop the history of entries up to `through` on every node; refused when the term is not the CIB's."""

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
    """Grant a ticket to this cluster, or revoke it; an administrator or booth ensures that no other cluster has it."""

    ticket: str
    change: TicketChange
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RecordAlerts:
    """The progress of the DC of `term` in delivering alerts; refused when the term is not the CIB's."""

    term: Term
    delivered: Mapping[str, int]
    """By recipient: the sequence number up to which it has every event."""
    tests: Mapping[str, AlertTest] = field(default_factory=dict)
    """Results of tests of recipients."""


@dataclass(frozen=True, slots=True)
class RequestAlertTest:
    """An administrator wants a test event sent to recipients; refused if one of them is not configured."""

    recipients: tuple[str, ...]
    """By `AlertTarget.key`."""
    author: str
    reason: str


@dataclass(frozen=True, slots=True)
class RestartResource:
    """Stop a resource everywhere, then let it run again as configured; any DC finishes it."""

    resource: ResourceId
    limit_ms: int
    """After this time it may run again, even if something has not stopped."""
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EndRestart:
    """End a restart that has taken too long."""

    resource: ResourceId
    at: WallTime
    """When the restart began: it identifies it."""
    reason: str


@dataclass(frozen=True, slots=True)
class AddApiToken:
    """A program may send requests from now on; refused if there is a token of that name."""

    token: ApiToken
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RevokeApiToken:
    """A token is no longer accepted, and is forgotten."""

    name: str
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PutSecret:
    """Set the value of a secret; refused when the secrets are not at `expected_version`."""

    expected_version: int
    name: str
    sealed: str = field(repr=False)
    key_id: str
    """The key that seals it: the one in force, or the first one, which `keys` then holds for the members."""
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
    """Seal all secrets with another key, which only the present members get.

    A secret that is not in `values` is forgotten: nobody could open it any more.
    """

    expected_version: int
    key_id: str
    keys: Mapping[NodeName, WrappedKey]
    values: Mapping[str, Secret]
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ShareSecretKey:
    """Give members the secret key in force, sealed for each."""

    key_id: str
    keys: Mapping[NodeName, WrappedKey]


@dataclass(frozen=True, slots=True)
class NoteSecretShown:
    """A user is about to be shown the value of a secret: the history records it before."""

    name: str
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RequestLeader:
    """An administrator wants another voter to lead; the leader at the time when this is applied hands over."""

    node: NodeName
    author: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReadBarrier:
    """Change nothing: a node that applies it has applied everything that was acknowledged before it was proposed."""


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
    """A command with its proposer, time and request id."""

    request: RequestId
    proposer: NodeName
    at: WallTime
    command: Command
