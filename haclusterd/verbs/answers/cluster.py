"""Answers about the cluster as a whole: its timers, tickets, metrics, who may ask and who may come in."""

from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer, absent


@dataclass(frozen=True, slots=True)
class Timer:
    """One timer."""

    name: str
    value_ms: int
    is_set: bool
    """Whether an administrator sets it; the others follow."""
    meaning: str


@dataclass(frozen=True, slots=True)
class PublishedWatchdog:
    """A node's watchdog, and how long survivors wait for it."""

    node: str
    device: str
    identity: str
    timeout_ms: int
    weakness: str
    """Empty: none is known."""
    wait_ms: int
    is_counted_on: bool


@dataclass(frozen=True, slots=True)
class LongStop:
    """A resource whose stop may take longer than a watchdog permits."""

    resource: str
    stop_timeout_ms: int
    fits_ms: int


@dataclass(frozen=True, slots=True)
class Timers(Answer):
    """Every timer and what it follows from."""

    SCHEMA: ClassVar[str] = "haclusterd.timing/1"
    timers: tuple[Timer, ...]
    watchdogs: tuple[PublishedWatchdog, ...]
    long_stops: tuple[LongStop, ...]


@dataclass(frozen=True, slots=True)
class NeedsTicket:
    """A resource that needs a ticket."""

    resource: str
    role: str | None
    """Null: any."""
    loss_policy: str


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket and what needs it."""

    ticket: str
    is_granted: bool
    is_standby: bool
    last_granted: int | None
    """Epoch ms."""
    resources: tuple[NeedsTicket, ...]


@dataclass(frozen=True, slots=True)
class Tickets(Answer):
    """Tickets: those that are known, and those that are only configured."""

    SCHEMA: ClassVar[str] = "haclusterd.tickets/1"
    now: int
    """Of the answer; epoch ms."""
    tickets: tuple[Ticket, ...]


@dataclass(frozen=True, slots=True)
class ShownToken:
    """A token of the REST interface, but not what it is."""

    name: str
    role: str
    author: str
    created_at: int
    """Epoch ms."""
    expires_at: int | None
    """Epoch ms; null: it does not expire."""
    is_expired: bool


@dataclass(frozen=True, slots=True)
class Token(ShownToken, Answer):
    """A token that is accepted from now on."""

    SCHEMA: ClassVar[str] = "haclusterd.api_token/1"
    now: int
    """Of the answer; epoch ms."""
    token: str | None = absent()
    """What it is; shown once, by the `crm` that made it."""


@dataclass(frozen=True, slots=True)
class Tokens(Answer):
    """The API tokens, without what they are."""

    SCHEMA: ClassVar[str] = "haclusterd.api_tokens/1"
    now: int
    """Of the answer; epoch ms."""
    tokens: tuple[ShownToken, ...]


@dataclass(frozen=True, slots=True)
class Identity(Answer):
    """As whom one is known, and what one may."""

    SCHEMA: ClassVar[str] = "haclusterd.whoami/1"
    author: str
    permission: str
    role: str
    """The roles that count, joined by commas; without any, the simple one that is worth the permission."""
    why: str = ""
    """What gave it."""
    is_restricted: bool = False
    """Whether access control lists restrict what is seen and changed."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric with its samples."""

    name: str
    help: str
    kind: str
    """As in the text format of Prometheus."""
    labels: tuple[str, ...]
    divisor: int
    """By what a value is divided to be in the unit that the name says."""
    samples: tuple[tuple[str | int, ...], ...]
    """Each: the value of each label, then the value; `+Inf` and `-Inf` are texts."""


@dataclass(frozen=True, slots=True)
class Metrics(Answer):
    """Every metric of a node, and of the cluster as it knows it."""

    SCHEMA: ClassVar[str] = "haclusterd.metrics/1"
    families: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class ToolOutput(Answer):
    """What one of Pacemaker's tools prints."""

    SCHEMA: ClassVar[str] = "haclusterd.tool/1"
    out: str
    err: str
    files: dict[str, str] | None = absent()
    """What the program that was called writes to files, by the names that it was given."""


@dataclass(frozen=True, slots=True)
class Invitation(Answer):
    """A token by which one new node is let in."""

    SCHEMA: ClassVar[str] = "haclusterd.invitation/1"
    now: int
    """Of the answer; epoch ms."""
    node: str | None
    """Null: any name that is free."""
    token: str
    expires: int
    """Epoch ms."""
    listens_at: tuple[str, ...]
    """HOST:PORT."""
    command: str
    """What to type on the new machine."""
