"""Alerts: what happened that agents are to be called for, how far each recipient has got, and what its settings are.

Pacemaker Explained, "Alerts". An event is in the CIB from the entry that made it until every recipient had it; so
it outlives a DC, a restart of all nodes and a snapshot. At most `PENDING_MAX` are kept: of a recipient that takes
longer for its events than they take to happen, the oldest are dropped, and counted.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final

from haclusterd.model import durations
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient, Configuration, effective
from haclusterd.model.ids import Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.model.properties import read_boolean
from haclusterd.model.records import dataclass, field

PENDING_MAX: Final = 500
DEFAULT_KINDS: Final = (AlertKind.NODES, AlertKind.FENCING, AlertKind.RESOURCES)
"""What an alert without `select` is called for."""

TIMEOUT, TIMESTAMP_FORMAT, ENABLED, INCIDENT = "timeout", "timestamp-format", "enabled", "incident-interval"
GROUP: Final = "incident-group"
GROUP_MAX: Final = 50
"""Events in one call."""
TEST_OUTPUT_MAX: Final = 500
"""Characters of what an agent said in a test that are kept."""
DEFAULT_TIMEOUT_MS: Final = 30_000
LONGEST_TIMEOUT_MS: Final = 3_600_000
DEFAULT_FORMAT: Final = "%H:%M:%S.%06N"
_NANOSECONDS = re.compile(r"%(?P<width>0?[1-9])?N|%%")


@dataclass(frozen=True, slots=True)
class AlertEvent:
    """One thing that agents are called for."""

    sequence: int
    """Counts up by one; in the order of the log."""
    term: Term
    """In which it happened: only the DC of that term can have delivered it without others knowing."""
    at: WallTime
    kind: AlertKind
    node: str
    description: str = ""
    task: str = ""
    """The resource's action, or how the node was fenced."""
    resource: str = ""
    interval_ms: int = 0
    status: ExecutionStatus | None = None
    exit_code: int = 0
    target_exit_code: int = 0
    executed_ms: int = 0
    attribute: str = ""
    value: str = ""
    incident: str = ""
    """To which it belongs (`model.availability.Incident`); empty: to none."""
    only: tuple[str, ...] = ()
    """Of a test: for whom it is, by `AlertTarget.key`; everybody else passes it over."""


@dataclass(frozen=True, slots=True)
class AlertTest:
    """The newest test of one recipient."""

    sequence: int
    """Of the event."""
    is_done: bool = False
    exit_code: int | None = None
    """None: the agent did not end by itself, or was not started."""
    problem: str = ""
    """Why it did not succeed; empty when it did, or is not done."""
    executed_ms: int = 0
    output: str = ""
    """The end of what it said."""


@dataclass(frozen=True, slots=True)
class AlertQueue:
    """What is to be delivered, and how far each recipient has got, by `AlertTarget.key`."""

    last: int = 0
    """The sequence number of the newest event."""
    pending: tuple[AlertEvent, ...] = ()
    """Without gaps, oldest first."""
    delivered: Mapping[str, int] = field(default_factory=dict)
    """Up to which sequence number it has everything."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many events it will never get."""
    dropped_at: WallTime = WallTime(0)
    """When events were dropped last."""
    tests: Mapping[str, AlertTest] = field(default_factory=dict)
    """Of those recipients that were tested."""

    def after(self, sequence: int) -> AlertEvent | None:
        """Return the oldest event after one."""
        if not self.pending:
            return None
        place = max(0, sequence + 1 - self.pending[0].sequence)
        return self.pending[place] if place < len(self.pending) else None

    def waiting(self, target: "AlertTarget") -> int:
        """Return how many events a recipient has not got yet, as far as is recorded."""
        delivered = self.delivered.get(target.key, self.last)
        return sum(event.sequence > delivered and target.wants(event) for event in self.pending)


@dataclass(frozen=True, slots=True)
class AlertCall:
    """One call of an agent."""

    key: str
    sequence: int
    """Of the newest event that it is for."""
    path: str
    environment: Mapping[str, str] = field(repr=False)
    timeout_ms: int
    sequences: tuple[int, ...] = ()
    """Of all the events that it is for, oldest first."""
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class AlertCallResult:
    """How a call ended."""

    exit_code: int | None
    """None: it did not end by itself, or was not started."""
    problem: str
    """Why it did not succeed; empty when it did."""
    executed_ms: int
    output: str = ""
    """What it printed, its end."""


@dataclass(frozen=True, slots=True)
class AlertTarget:
    """An alert with one of its recipients, or without any."""

    alert: Alert
    recipient: AlertRecipient | None

    @property
    def key(self) -> str:
        """Its id in the CIB."""
        return self.alert.id if self.recipient is None else self.recipient.id

    @property
    def parameters(self) -> Mapping[str, str]:
        """What the agent finds in its environment; the recipient's come before the alert's."""
        own = () if self.recipient is None else self.recipient.parameters
        return {**effective(self.alert.parameters), **effective(own)}

    @property
    def settings(self) -> "AlertSettings":
        """How the agent is called."""
        own = () if self.recipient is None else self.recipient.meta
        return read_settings({**effective(self.alert.meta), **effective(own)})

    def wants(self, event: AlertEvent) -> bool:
        """Return whether the agent is called for this; for a test of it, it is also while it is disabled."""
        if event.only:
            return self.key in event.only
        return self.settings.is_enabled and selects(self.alert, event.kind, event.attribute)


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """The meta-attributes of an alert or recipient."""

    timeout_ms: int = DEFAULT_TIMEOUT_MS
    timestamp_format: str = DEFAULT_FORMAT
    is_enabled: bool = True
    incident_ms: int = 0
    """Events that are alike and happen within this time of the first are one; 0: each is delivered."""
    group_ms: int = 0
    """What belongs to the incident of the event before is collected for so long; 0: each is delivered by itself."""


def selects(alert: Alert, kind: AlertKind, attribute: str) -> bool:
    """Return whether an alert is for events of a kind, and of this node attribute."""
    if kind not in (DEFAULT_KINDS if alert.select is None else alert.select):
        return False
    return kind is not AlertKind.ATTRIBUTES or not alert.attribute_names or attribute in alert.attribute_names


def targets(configuration: Configuration) -> Iterator[AlertTarget]:
    """Yield every alert with each of its recipients."""
    for alert in configuration.alerts.values():
        if not alert.recipients:
            yield AlertTarget(alert, None)
        yield from (AlertTarget(alert, each) for each in alert.recipients)


def _timeout(text: str) -> int:
    value = durations.parse(text)
    if not 0 < value <= LONGEST_TIMEOUT_MS:
        raise ValueError(f"from 1ms to {durations.render(LONGEST_TIMEOUT_MS)}")
    return value


def _group(text: str) -> int:
    value = durations.parse(text)
    if not 0 <= value <= LONGEST_TIMEOUT_MS:
        raise ValueError(f"at most {durations.render(LONGEST_TIMEOUT_MS)}")
    return value


def _format(text: str) -> str:
    if len(text) > 200:
        raise ValueError("longer than 200 characters")
    return text


READERS: Final[Mapping[str, Callable[[str], object]]] = {
    TIMEOUT: _timeout,
    TIMESTAMP_FORMAT: _format,
    ENABLED: read_boolean,
    INCIDENT: durations.parse,
    GROUP: _group,
}
"""The meta-attributes by name; each raises ValueError for what is none."""


def read_settings(meta: Mapping[str, str]) -> AlertSettings:
    """Return what the meta-attributes say; the default in the place of what is missing or cannot be read."""

    def read(name: str, otherwise: object) -> object:
        try:
            return READERS[name](meta[name]) if name in meta else otherwise
        except ValueError:
            return otherwise

    return AlertSettings(
        timeout_ms=int(str(read(TIMEOUT, DEFAULT_TIMEOUT_MS))),
        timestamp_format=str(read(TIMESTAMP_FORMAT, DEFAULT_FORMAT)),
        is_enabled=bool(read(ENABLED, otherwise=True)),
        incident_ms=int(str(read(INCIDENT, 0))),
        group_ms=int(str(read(GROUP, 0))),
    )


def render_time(at: WallTime, pattern: str) -> str:
    """Write a moment in this machine's time zone, as date(1) does: strftime, with `%N` and `%06N` for nanoseconds."""
    nanoseconds = f"{at % 1000:03d}000000"

    def digits(found: re.Match[str]) -> str:
        return found[0] if found[0] == "%%" else nanoseconds[: int(found["width"] or 9)]

    return datetime.fromtimestamp(at / 1000).astimezone().strftime(_NANOSECONDS.sub(digits, pattern))


def incident_of(event: AlertEvent) -> tuple[str, ...]:
    """Return what events that are alike have in common."""
    return (event.kind, event.node, event.resource, event.task, event.attribute, str(event.exit_code),
            "" if event.kind is AlertKind.ATTRIBUTES else event.description)  # fmt: skip
