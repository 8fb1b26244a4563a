"""What the verbs about alerts answer."""

from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer


@dataclass(frozen=True, slots=True)
class AlertRow:
    """An alert with one of its recipients, or without any."""

    alert: str
    id: str
    """The recipient's id; that of the alert where it has none."""
    path: str
    recipient: str
    """Empty: there is none."""
    select: tuple[str, ...]
    """Of nodes, fencing, resources, attributes."""
    attribute_names: tuple[str, ...]
    """Empty: all."""
    timeout_ms: int
    incident_ms: int
    """0: every event is delivered."""
    group_ms: int
    """For so long what belongs to one incident is collected; 0: each event is delivered by itself."""
    is_enabled: bool
    waiting: int
    """Events that are not recorded as delivered yet."""
    dropped: int
    """Events that it will never get: it took longer for them than they took to happen."""


@dataclass(frozen=True, slots=True)
class AlertTestRow:
    """How a test of one recipient has ended."""

    alert: str
    id: str
    path: str
    recipient: str
    is_done: bool
    """False: it has not ended yet."""
    exit_code: int | None
    """Null: the agent did not end by itself, or was not started."""
    problem: str
    """Empty: it has succeeded, or not ended yet."""
    executed_ms: int
    output: str
    """The end of what it said."""


@dataclass(frozen=True, slots=True)
class AlertTests(Answer):
    """How tests of alerts have ended."""

    SCHEMA: ClassVar[str] = "haclusterd.alert_tests/1"
    tests: tuple[AlertTestRow, ...]


@dataclass(frozen=True, slots=True)
class Alerts(Answer):
    """Who is called for what happens."""

    SCHEMA: ClassVar[str] = "haclusterd.alerts/1"
    alerts: tuple[AlertRow, ...]
