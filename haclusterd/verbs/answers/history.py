"""Answers about the past: events, versions of the configuration, transitions, operations. Times are epoch ms."""

from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer, absent


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """One thing that happened."""

    index: int
    """Of the log's entry."""
    at: int
    kind: str
    node: str | None
    resource: str | None
    text: str
    author: str
    reason: str
    order: str
    """The key of the order that it is about; empty: of none."""
    action: str = ""
    """Of the resource's agent, or of the fence device."""
    outcome: str = ""
    """Of the action: ok, failed, running, not-running, not-begun, unknown, or how a fencing ended."""
    cause: str = ""
    """Of a failure, the agent's answer; why a node or a service is gone."""
    state: str = ""
    """Of a service: up, down, unknown."""
    incident: str = ""
    """The incident that it belongs to; empty: to none, or it was written by a version that did not say."""


@dataclass(frozen=True, slots=True)
class Events(Answer):
    """The newest events, oldest first."""

    SCHEMA: ClassVar[str] = "haclusterd.events/1"
    now: int
    since: int
    """When the answering daemon began."""
    left_out: int
    events: tuple[ShownEvent, ...]
    next: str
    """The position after the last one, for `history.follow`."""


@dataclass(frozen=True, slots=True)
class FollowedEvent(ShownEvent):
    """One thing that happened, with its position."""

    id: str = ""


@dataclass(frozen=True, slots=True)
class MissingEntries:
    """Entries of the log that this node cannot show."""

    first: int
    last: int
    because: str
    text: str


@dataclass(frozen=True, slots=True)
class Followed(Answer):
    """What comes after a position in the history."""

    SCHEMA: ClassVar[str] = "haclusterd.followed/1"
    now: int
    events: tuple[FollowedEvent, ...]
    missing: MissingEntries | None
    next: str
    """The position to continue from."""
    has_more: bool
    is_behind: bool
    """Whether this node has not all of it yet."""


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from the first to the last, both among them."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the configuration."""

    number: int
    at: int
    author: str
    reason: str
    digest: str


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """A version of the configuration in the list of them."""

    number: int
    at: int
    author: str
    reason: str
    digest: str
    edits: tuple[str, ...] | None
    """`+` added, `~` changed, `-` removed since the version before; null: one of both is not known, or is too old."""


@dataclass(frozen=True, slots=True)
class KnownVersions(Answer):
    """The newest versions of the configuration, oldest first."""

    SCHEMA: ClassVar[str] = "haclusterd.versions/1"
    now: int
    version: int
    """The present one."""
    left_out: int
    gaps: tuple[Range, ...]
    """What is not in this node's history."""
    versions: tuple[KnownVersion, ...]


@dataclass(frozen=True, slots=True)
class ComparedVersion:
    """One of two versions that are compared; of a shadow CIB, its name alone."""

    number: int | str
    at: int | None = absent()
    author: str | None = absent()
    reason: str | None = absent()
    digest: str | None = absent()


@dataclass(frozen=True, slots=True)
class Difference(Answer):
    """What differs between two versions, as crm statements."""

    SCHEMA: ClassVar[str] = "haclusterd.difference/1"
    old: ComparedVersion
    new: ComparedVersion
    text: str
    """A unified difference; empty: none."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What led to a transition."""

    index: int
    at: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class OrderedAction:
    """What a transition ordered, and how it ended."""

    order: str
    at: int
    node: str | None
    resource: str | None
    text: str
    ended_at: int | None
    """Null: not ended, as far as is known."""
    end: str
    """How it ended; before that, why it is no longer wanted, if that is so."""
    is_failed: bool


@dataclass(frozen=True, slots=True)
class Transition(Answer):
    """What a transition did, and why."""

    SCHEMA: ClassVar[str] = "haclusterd.transition/1"
    now: int
    transition: str
    """TERM.NUMBER."""
    at: int
    because: tuple[Cause, ...]
    actions: tuple[OrderedAction, ...]
    others: tuple[str, ...]
    """The newest transitions."""
    version: int | None = None
    """Of the configuration that was in force; null: not known."""


@dataclass(frozen=True, slots=True)
class TransitionInShort:
    """One transition of a list."""

    transition: str
    at: int
    actions: int
    failed: int
    not_ended: int
    texts: tuple[str, ...]
    """Of its first actions."""


@dataclass(frozen=True, slots=True)
class Transitions(Answer):
    """The newest transitions, oldest first."""

    SCHEMA: ClassVar[str] = "haclusterd.transitions/1"
    now: int
    left_out: int
    transitions: tuple[TransitionInShort, ...]


@dataclass(frozen=True, slots=True)
class HistoryInfo(Answer):
    """What a node's history is about."""

    SCHEMA: ClassVar[str] = "haclusterd.history_info/1"
    now: int
    answered_by: str
    since: int | None
    until: int | None
    events: int
    left_out: int
    nodes: tuple[str, ...]
    resources: tuple[str, ...]
    transitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeHistory:
    """What one node's history holds."""

    node: str
    last: int
    """The newest entry."""
    forgotten: int
    """The newest entry that it does not keep any more."""
    rows: int
    gaps: tuple[Range, ...]
    damaged: tuple[Range, ...]
    digest: str
    versions: int
    problem: str


@dataclass(frozen=True, slots=True)
class HistoryCheck(Answer):
    """The histories of all nodes, compared."""

    SCHEMA: ClassVar[str] = "haclusterd.history_check/1"
    now: int
    is_equal: bool
    silent: tuple[str, ...]
    """Who did not answer."""
    nodes: tuple[NodeHistory, ...]


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The newest result of an operation."""

    resource: str
    node: str
    operation: str
    interval_ms: int
    status: str
    exit_code: int
    is_failed: bool
    reason: str
    at: int
    executed_ms: int
    queued_ms: int


@dataclass(frozen=True, slots=True)
class Operations(Answer):
    """The newest result of each operation, oldest first."""

    SCHEMA: ClassVar[str] = "haclusterd.operations/1"
    now: int
    operations: tuple[OperationResult, ...]


@dataclass(frozen=True, slots=True)
class CountedFailure:
    """How often an operation failed."""

    resource: str
    node: str
    operation: str
    interval_ms: int
    count: int | str
    """Or INFINITY."""
    failed_at: int
    threshold: str
    forgotten_after: str


@dataclass(frozen=True, slots=True)
class FailCounts(Answer):
    """How often operations failed."""

    SCHEMA: ClassVar[str] = "haclusterd.failcounts/1"
    now: int
    failures: tuple[CountedFailure, ...]
