"""What `crm availability` answers."""

from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer, absent


@dataclass(frozen=True, slots=True)
class ShownOutage:
    """A time in which a service was not up."""

    since: int
    until: int | None
    """Null: it has not ended."""
    ms: int
    cause: str
    """The first that was unplanned; the first, where none was."""
    is_planned: bool


@dataclass(frozen=True, slots=True)
class ServiceAvailability:
    """How available one service was."""

    resource: str
    role: str
    """`promoted`: whether an instance was promoted; empty: whether an instance ran."""
    state: str
    """Up, down or unknown, now."""
    since: int
    """Since when."""
    cause: str
    """Why it is not up; empty: it is."""
    known_from: int
    """What was before is not known, or was not asked for."""
    up_ms: int
    planned_ms: int
    """Down because a person asked for what led to it."""
    unplanned_ms: int
    unknown_ms: int
    up_ppm: int | None
    """Millionths of the known time in which it was up; null: nothing is known."""
    available_ppm: int | None
    """The same without the planned time."""
    planned: int
    """Outages that were planned, and have ended."""
    unplanned: int
    longest_ms: int
    """The longest unplanned outage that has ended."""
    outages: tuple[ShownOutage, ...]
    """The newest of the time that was asked for, oldest first; without `since` only one that has not ended."""
    judged_by: str = ""
    """Of a group: its last member, which is started last and stopped first; empty: it is no group."""


@dataclass(frozen=True, slots=True)
class Availabilities(Answer):
    """How available services were."""

    SCHEMA: ClassVar[str] = "haclusterd.availability/1"
    now: int
    since: int | None
    """From when on was asked for; null: from when each is known."""
    services: tuple[ServiceAvailability, ...]
    csv: str | None = absent()
    """The same as comma-separated values, where they were asked for."""
