"""The CIB: the one replicated value, configuration and status (ARCHITECTURE.md, decision 2).

A `Cib` is an immutable value; `cib.apply` makes the next one from it and shares what did not change. Liveness is never
read from here alone: a node is online when the CIB says so *and* its running incarnation is heard (safety.md §6).
"""

from collections.abc import Mapping
from enum import StrEnum

from haclusterd.model.alerts import AlertQueue
from haclusterd.model.api_tokens import ApiToken
from haclusterd.model.availability import Availability
from haclusterd.model.configuration import Configuration
from haclusterd.model.dated_blocks import dated_blocks, with_judged
from haclusterd.model.devices import DeviceStorm, NodeDevices
from haclusterd.model.fencing import AbandonedFencing, DeviceProof, FailedOperation, FenceOrder, FencingRecord
from haclusterd.model.history import ResourceHistory
from haclusterd.model.ids import FenceKey, Incarnation, NodeName, OrderKey, RequestId, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.orders import Order
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.restarts import Restart, with_stopped
from haclusterd.model.secrets import NO_SECRETS, Secrets, with_revisions
from haclusterd.model.watchdog import Watchdog

FIRST_FEATURE_LEVEL = 3
"""The first feature level whose nodes tell each other what they can read (`cib.levels`)."""


@dataclass(frozen=True, slots=True)
class Member:
    """A node of the cluster and where its peers reach it."""

    name: NodeName
    addresses: tuple[tuple[str, int], ...]
    """Raft transport, host and TCP port; the pacer uses the same numbers over UDP."""
    is_voter: bool = True
    is_witness: bool = False
    """Votes, but never runs resources."""
    certificate: str = ""
    """PEM, public; empty for a member that set-up made: its peers hold the heartbeat keys in files."""
    wants_vote: bool = False
    """A learner that becomes a voter as soon as it has caught up."""


@dataclass(frozen=True, slots=True)
class Membership:
    """Which version of the members is in force, and who is shut out for good (safety.md §7, "Voter sets")."""

    version: int = 0
    """Counts the changes of `Cib.members`; 0: those with which the cluster was formed."""
    retired: tuple[NodeName, ...] = ()
    """Names that never come back: their votes and promises may have been forgotten."""
    revoked: tuple[str, ...] = ()
    """SHA-256 fingerprints of certificates that are no longer accepted, in hexadecimal digits."""
    renewals: Mapping[NodeName, str] = field(default_factory=dict)
    """Members that are to get another certificate: empty, or what they ask the authority to sign."""


class NodeState(StrEnum):
    """What the cluster last decided about a node."""

    UNSEEN = "unseen"
    """A member that has not joined since the cluster was formed."""
    ONLINE = "online"
    LOST = "lost"
    """Declared lost; whatever ran there may still run until its fencing is recorded."""
    FENCED = "fenced"
    LEFT = "left"
    """Left cleanly, with everything stopped."""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What is known of one node."""

    name: NodeName
    state: NodeState = NodeState.UNSEEN
    incarnation: Incarnation | None = None
    """The newest that joined."""
    since: WallTime = WallTime(0)
    """When `state` was entered."""
    detail: str = ""
    """Why it is lost."""
    causes: tuple[FailedOperation, ...] = ()
    """Of one that is lost though it was heard: the failures for which it is fenced."""
    fenced_incarnation: Incarnation | None = None
    """The newest incarnation whose death is recorded."""
    is_fence_requested: bool = False
    """Lost because a person wants it fenced: it may not come back before it has been."""
    is_leaving: bool = False
    """It asked to be drained."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Transient node attributes; gone when the node reboots."""
    private_attributes: Mapping[str, str] = field(default_factory=dict)
    """Transient ones that only those read who ask for them by their tools: no plan depends on them."""
    histories: Mapping[ResourceId, ResourceHistory] = field(default_factory=dict)
    locks: Mapping[ResourceId, WallTime] = field(default_factory=dict)
    """What is kept for this node since it was shut down cleanly, and since when (`shutdown-lock`)."""
    probed: frozenset[ResourceId] = frozenset()
    """Resources that a probe of this incarnation found not running, and that have no history here."""
    unverified: frozenset[ResourceId] = frozenset()
    """Resources whose history was made by an earlier incarnation of this boot, or whose last action's outcome is
    unknown: they count as possibly active until a probe has answered."""
    orders: Mapping[OrderKey, Order] = field(default_factory=dict)
    """Open orders."""
    last_call_id: int = 0
    watchdog: Watchdog | None = None
    """The device that resets it unless it is fed, as its newest incarnation says."""
    longest_lease_ms: int = 0
    """The longest lease that its newest incarnation may hold, which may not know yet of a shorter node-timeout."""
    actions_max: int = 0
    """How many actions at once its load leaves it; 0: no limit follows from it."""
    is_joining: bool = False
    """Seen, and not yet able to run anything: it counts as online and pending."""
    is_remote_fenced: bool = False
    """A Pacemaker Remote node that was fenced and has not been connected to since."""
    is_remote_maintenance: bool = False
    """What a Pacemaker Remote node was last informed of about its maintenance mode."""
    is_condemned: bool = False
    """To be fenced for another reason than that it vanished, even if it is online: `detail` says why. Only a CIB of
    Pacemaker says so."""
    utilization: Mapping[str, str] = field(default_factory=dict)
    """Transient capacities; they come before those that are configured."""
    membership: int = 0
    """The newest version of the members that its pacer and its links follow."""
    feature_level: int = 0
    """What it can read, as it said when it joined last; 0: it never has."""
    is_retired: bool = False
    """It may not join any more, and is about to be dropped from the members."""
    has_detached: bool = False
    """It is lost because it left with unmanaged resources running: it is fenced when they are managed again."""
    secret_key: str = ""
    """The public key for which secrets are sealed for it, as it said when it joined last (`model.secrets`)."""


@dataclass(frozen=True, slots=True)
class TicketState:
    """Whether this cluster holds a ticket (Pacemaker Explained, "Multi-Site Clusters and Tickets")."""

    id: str
    is_granted: bool = False
    is_standby: bool = False
    last_granted: WallTime = WallTime(0)
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DesignatedController:
    """Who may issue orders: the Raft leader of `term`, once it has committed its first command."""

    node: NodeName
    incarnation: Incarnation
    term: Term


@dataclass(frozen=True, slots=True)
class JudgedRules:
    """Which blocks under rules on dates are in force, on every node alike, as a DC has judged last."""

    epoch: int
    """Of the configuration that was judged."""
    at: WallTime
    """By the clock of the DC that judged."""
    in_force: tuple[str, ...] = ()
    """Keys of `dated_blocks`, in order."""


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that is not configured."""

    controller: DesignatedController | None = None
    nodes: Mapping[NodeName, NodeStatus] = field(default_factory=dict)
    fence_orders: Mapping[FenceKey, FenceOrder] = field(default_factory=dict)
    abandoned_fencings: Mapping[FenceKey, AbandonedFencing] = field(default_factory=dict)
    fencing_history: tuple[FencingRecord, ...] = ()
    """Newest last, bounded."""
    proofs: Mapping[str, DeviceProof] = field(default_factory=dict)
    """By `device/target`."""
    tickets: Mapping[str, TicketState] = field(default_factory=dict)
    rules: JudgedRules | None = None
    """None: no rule on dates was ever judged, and no block under one is in force."""
    restarts: Mapping[ResourceId, Restart] = field(default_factory=dict)
    """Those that are under way, by the resource that is to be restarted."""
    alerts: AlertQueue = field(default_factory=AlertQueue)
    """What alerts' agents are to be called for."""
    devices: Mapping[NodeName, NodeDevices] = field(default_factory=dict)
    """Of nodes that have ever reported any."""
    device_storm: DeviceStorm | None = None
    """The newest; until it is over no device is recovered without a person's word."""
    availability: Availability = field(default_factory=Availability)
    """How available each service was, and the newest incident."""


@dataclass(frozen=True, slots=True)
class ConfigurationVersion:
    """Who changed the configuration last."""

    epoch: int = 0
    author: str = ""
    at: WallTime = WallTime(0)
    reason: str = ""
    request: RequestId = RequestId("")
    """Of the command that made this version; empty for one that came with the cluster."""


@dataclass(frozen=True, slots=True)
class StagedPart:
    """A part of a change of the configuration that is larger than one log entry; it means nothing by itself."""

    at: WallTime
    data: str


@dataclass(frozen=True, slots=True)
class HistoryMark:
    """How far the history of all nodes goes (`model.history_chain`)."""

    digest: str = ""
    """The newest link of the chain."""
    forgotten: int = 0
    """What entries up to this index did is not kept anywhere any more."""
    forgotten_digest: str = ""
    """The link at that index."""


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request that had no effect, and why: a repetition gets the same answer."""

    request: RequestId
    code: str
    """A RefusalCode."""
    text: str


@dataclass(frozen=True, slots=True)
class Cib:
    """Configuration and status of one cluster, after one log entry."""

    cluster_uuid: str = ""
    cluster_name: str = ""
    members: Mapping[NodeName, Member] = field(default_factory=dict)
    membership: Membership = field(default_factory=Membership)
    configuration: Configuration = field(default_factory=Configuration)
    version: ConfigurationVersion = field(default_factory=ConfigurationVersion)
    status: Status = field(default_factory=Status)
    index: int = 0
    """The log index of the entry that made this value."""
    requests: Mapping[str, tuple[RequestId, ...]] = field(default_factory=dict)
    """By proposer: the newest request ids that were answered, newest last, bounded."""
    refused: Mapping[str, tuple[RefusedRequest, ...]] = field(default_factory=dict)
    """By proposer: which of these were refused."""
    staged: Mapping[str, StagedPart] = field(default_factory=dict)
    """By `TRANSACTION/NUMBER`: parts of changes that are not whole yet, bounded; old ones are dropped."""
    feature_level: int = FIRST_FEATURE_LEVEL
    """What every member can read; it never falls."""
    history: HistoryMark = field(default_factory=HistoryMark)
    api_tokens: Mapping[str, ApiToken] = field(default_factory=dict)
    """By name: who may ask without being a user of a node's machine."""
    secrets: Secrets = NO_SECRETS
    """Values that the configuration refers to, sealed."""

    @property
    def in_force(self) -> Configuration:
        """The configuration as it holds on every node: rules on dates are judged, references to secrets name the
        revision of the value, what is being restarted is to stop.

        What was written if there is none of it.
        """
        judged = with_judged(self.configuration, self.status.rules.in_force if self.status.rules is not None else ())
        if self.secrets.values:
            judged = with_revisions(judged, self.secrets)
        return with_stopped(judged, self.status.restarts) if self.status.restarts else judged

    def as_in_force(self) -> "Cib":
        """Return this value with `in_force` for its configuration: what plans are made for on a running cluster."""
        return self if self.in_force is self.configuration else replace(self, configuration=self.in_force)

    @property
    def is_judged(self) -> bool:
        """Whether the rules of this very configuration were judged."""
        rules = self.status.rules
        is_newest = rules is not None and rules.epoch == self.version.epoch
        return is_newest or not dated_blocks(self.configuration)

    def voters(self) -> tuple[NodeName, ...]:
        """Return the members that vote, in order of name."""
        return tuple(sorted(name for name, member in self.members.items() if member.is_voter))
