"""What a verb may look at: the CIB, the moment, who asks, and what only a running daemon knows.

Invariant: a verb sees nothing but its context and its arguments. Offline there is no `live`; everything else is equal.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Protocol

from haclusterd.commands.permissions import FULL, Access
from haclusterd.model.agents import AgentFacts, Validation, ValidationQuestion
from haclusterd.model.certificates import CertificateFacts
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration
from haclusterd.model.counted import Counted
from haclusterd.model.ids import NodeName, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.loop_stalls import LoopStall
from haclusterd.model.records import dataclass, field
from haclusterd.model.remembered import Comparison, FollowQuery, HistoryQuery, Missing, Position
from haclusterd.model.secrets import Secrets, WrappedKey
from haclusterd.reports.items import ReportItem
from haclusterd.scheduler.model.options import DEFAULT_OPTIONS, ScheduleOptions

if TYPE_CHECKING:
    from haclusterd.cib.changes import Change

NO_TERM = Term(0)
UNKNOWN_TIME = WallTime(0)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, as the log has it."""

    index: int
    at: WallTime
    change: "Change"
    author: str = ""
    """Who wanted it; empty: the cluster itself."""
    reason: str = ""
    """Why, when the command or order carried a reason."""
    order: str = ""
    """The key of the order that it is about, `TERM.TRANSITION.ACTION`."""


@dataclass(frozen=True, slots=True)
class TransitionProgress:
    """The transition that the DC executes now."""

    number: int
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class HeardFrom:
    """What this node's pacer knows of a peer now."""

    age_ms: int | None
    """None: never heard."""
    brain: str = "alive"
    """alive, restarting or hung."""
    brain_since_ms: int = 0
    round_trip_ms: int | None = None
    """What the network takes to it and back at least; None: not known."""
    hears: Mapping[NodeName, int] = field(default_factory=dict)
    """How long ago that peer heard each node, in ms, as far as its newest heartbeat says, with the time since."""


@dataclass(frozen=True, slots=True)
class LiveView:
    """What the answering daemon knows beside the CIB, at one moment."""

    node: NodeName
    """Who answers."""
    leader: NodeName | None = None
    """The Raft leader, as far as this node knows."""
    term: Term = NO_TERM
    has_quorum: bool = False
    connected_voters: tuple[NodeName, ...] = ()
    """Voters that this node's Raft reaches, itself included."""
    lease_remaining_ms: int | None = None
    """None: no lease."""
    heard: Mapping[NodeName, HeardFrom] = field(default_factory=dict)
    stale_ms: int = 0
    """How old this replica may be; 0: as new as the leader's, within a heartbeat."""
    safe_mode: str = ""
    """Why there is no controller; empty: there is one."""
    safe_mode_remedy: str = ""
    """What gives this node a controller again."""
    scheduler_error: str = ""
    """The newest crash or overrun of the scheduler; empty: none."""
    held_joins: Mapping[NodeName, str] = field(default_factory=dict)
    """Nodes that want to join and are not let in, with why."""
    transition: TransitionProgress | None = None
    started_at: WallTime = UNKNOWN_TIME
    """When this daemon started."""
    history_problem: str = ""
    """What keeps the answering node from writing its history; empty when nothing does."""
    warnings: tuple[str, ...] = ()
    """What is amiss with the answering node's pacer, and whom it keeps out."""
    plan_warnings: tuple[str, ...] = ()
    """What the DC's newest plan warns of."""
    stopped_alone: frozenset[ResourceId] = frozenset()
    """What the answering node has stopped by itself, without a lease: the CIB does not know it yet."""
    loop_stalls: tuple[LoopStall, ...] = ()
    counted: Counted = Counted()
    """What this daemon has counted since it began."""
    certificates: Mapping[NodeName, CertificateFacts] = field(default_factory=dict)
    """The certificates that the members show, and this node's own."""
    pending_attributes: Mapping[tuple[NodeName, str], str | None] = field(default_factory=dict)
    """Node attributes that this node's agents set and that are not written yet; None: to be deleted."""


@dataclass(frozen=True, slots=True)
class ListedVersion:
    """One version of the configuration, without its content."""

    number: int
    at: WallTime
    author: str
    reason: str
    digest: str
    """Of the content; equal on all nodes."""


class Versions(Protocol):
    """The versions of the configuration that the answering node's history has."""

    def listed(self) -> tuple[ListedVersion, ...]:
        """Return them all, oldest first."""
        ...

    def configuration(self, number: int) -> Configuration | None:
        """Return a version's content; None when this node does not have it."""
        ...

    def problem(self) -> str:
        """Return what keeps the history from being whole; empty when nothing does."""
        ...


@dataclass(frozen=True, slots=True)
class Recollection:
    """What the answering node's history has of what was asked for."""

    events: tuple[Event, ...] = ()
    """Oldest first; what is missing among them has the kind HISTORY_GAP."""
    left_out: int = 0
    """How many more fit, older than these."""
    problem: str = ""
    """What keeps the history from being whole; empty when nothing does."""
    end: Position = Position(0)
    """Where it ended then."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What came after a position in the answering node's history; as `model.remembered.FollowAnswer`."""

    events: tuple[tuple[Position, Event], ...]
    """Oldest first, each with the position after it."""
    next: Position
    missing: Missing | None = None
    has_more: bool = False
    is_behind: bool = False
    problem: str = ""
    is_refused: bool = False


class Validations(Protocol):
    """What the agents of the answering node say of parameters."""

    def answer(self, question: ValidationQuestion) -> Validation | None:
        """Return an agent's answer; None: it is asked now, and the verb is run again."""
        ...


class SecretBox(Protocol):
    """Seals and opens the cluster's secrets, as the answering node can; see `ports.secrets`."""

    def new_key(self, members: Mapping[NodeName, str]) -> tuple[str, Mapping[NodeName, WrappedKey]]:
        """Make a secret key; return its id, and the key sealed for members with these public keys."""
        ...

    def has_key(self, secrets: Secrets) -> bool:
        """Tell whether this node can open what is sealed."""
        ...

    def seal(self, secrets: Secrets, name: str, value: str) -> str | None:
        """Seal a value by the key in force; None when this node does not have it."""
        ...

    def open(self, secrets: Secrets, name: str, sealed: str) -> str | None:
        """Return the value that was sealed under this name; None when it cannot be opened."""
        ...


class Past(Protocol):
    """The history, of the answering node and of the others."""

    def recall(self, query: HistoryQuery) -> Recollection:
        """Return the newest events that fit."""
        ...

    def follow(self, query: FollowQuery, wait_ms: int) -> Followed:
        """Return what comes after a position, once there is something, or so much time has passed."""
        ...

    def compared(self) -> Comparison:
        """Return what each node's history holds."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """Everything a verb decides from."""

    cib: Cib
    now: WallTime
    author: str
    """Who asks, as `user@host`."""
    reason: str = ""
    """Why, in the asker's words."""
    live: LiveView | None = None
    """None: offline, on a state file."""
    agents: Mapping[str, AgentFacts] | None = None
    """By `str(AgentReference)`, every agent installed here; None: not known."""
    versions: Versions | None = None
    """None: offline."""
    past: Past | None = None
    """None: offline."""
    validations: Validations | None = None
    """None: offline."""
    no_validate: bool = False
    """A change does not ask agents what they say of its parameters (`--no-validate`)."""
    is_forced: bool = False
    """Warnings that refuse are accepted; safety rules are not touched by this."""
    is_preview: bool = False
    """Nothing will be done (`--dry-run`): what would be refused as unsafe is shown, with a warning."""
    schedule_options: ScheduleOptions = DEFAULT_OPTIONS
    """How questions about plans are answered."""
    access: Access = FULL
    """What the asker may."""
    attempt: Callable[[str, Mapping[str, Json], Access], tuple[ReportItem, ...]] | None = None
    """What another verb would report to somebody else; nothing of it is done."""
    seen_xml: Callable[[], str] | None = None
    """Where access control lists restrict the asker: the whole CIB as XML, as they may see it."""
    secrets: SecretBox | None = None
    """None: offline."""
    is_token: bool = False
    """Who asks has shown an API token: nobody is shown the value of a secret that way."""
    if_version: int | None = None
    """The only version of the configuration over which anything is to be decided; None: any."""

    @property
    def secret_names(self) -> Collection[str] | None:
        """The names of the secrets that there are; None: they are not known here, or not to who asks."""
        return None if self.is_foreign or self.access.rules is not None else self.cib.secrets.values

    @property
    def is_foreign(self) -> bool:
        """Whether this is a CIB of Pacemaker in a file: what is in it need not run here."""
        return self.schedule_options.is_pacemaker_compatible
