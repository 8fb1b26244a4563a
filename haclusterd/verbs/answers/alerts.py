"""What the verbs about alerts answer."""

from dataclasses import dataclass
from typing import ClassVar

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
    is_enabled: bool
    waiting: int
    """Events that are not recorded as delivered yet."""
    dropped: int
    """Events that it will never get: it took longer for them than they took to happen."""


@dataclass(frozen=True, slots=True)
class Alerts(Answer):
    """Who is called for what happens."""

    SCHEMA: ClassVar[str] = "haclusterd.alerts/1"
    alerts: tuple[AlertRow, ...]
