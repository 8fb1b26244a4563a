"""How available each service was: replicated with the CIB, so that every node says the same (0016-availability.md).

A service is a primitive, by its id, in whatever group or clone it is: it is up while one instance at least runs and no
monitor of that says otherwise. Of what can be promoted there is a second service, `ID/promoted`: up while an instance
is promoted.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from haclusterd.model.counted import Spans
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, field, replace

PROMOTED: Final = "promoted"
MARK_MS: Final = 60_000
"""At most so long passes under a DC without an entry in the log: what was so at the newest entry is known for so long
before a cluster that went without a trace."""
DOUBT_MS: Final = 60_000
"""Who joins, or is lost, within this time after an election may have been away since before it."""
INCIDENT_QUIET_MS: Final = 15_000
INCIDENT_LONGEST_MS: Final = 3_600_000


class ServiceState(StrEnum):
    """What is known of a service."""

    UP = "up"
    DOWN = "down"
    UNKNOWN = "unknown"
    """Nobody knew: its node has a new incarnation and was not probed yet, or there was no quorum."""


class Cause(StrEnum):
    """Why a service is not up, and what an incident began with."""

    STOPPED = "stopped"
    """A target-role."""
    RESTART = "restart"
    STANDBY = "standby"
    MAINTENANCE = "maintenance"
    """It went while it was unmanaged: somebody works on it."""
    SHUTDOWN = "shutdown"
    """Its node left the cluster, as at a shutdown or an upgrade."""
    CONFIGURATION = "configuration"
    """A change of the configuration: a move, an edit."""
    TICKET = "ticket"
    CLEAN_UP = "clean-up"
    FENCE_REQUESTED = "fence-requested"
    NODE_LOST = "node-lost"
    FAILURE = "failure"
    """An operation of the service, or of what it needs, has failed."""
    NODE_JOINED = "node-joined"
    """It moved because a node came back."""
    ATTRIBUTE = "node-attribute"
    """Health, connectivity, a score that an agent has set."""
    UNVERIFIED = "unverified"
    """Its node has a new incarnation, and the service was not probed yet."""
    NO_QUORUM = "no-quorum"
    """Nothing is known of the time between the newest entry of the log and the next DC."""
    OTHER = "other"

    @property
    def is_planned(self) -> bool:
        """Whether a person has asked for it."""
        return self in _PLANNED


_PLANNED: Final = frozenset({
    Cause.STOPPED, Cause.RESTART, Cause.STANDBY, Cause.MAINTENANCE, Cause.SHUTDOWN, Cause.CONFIGURATION, Cause.TICKET,
    Cause.CLEAN_UP, Cause.FENCE_REQUESTED,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sums:
    """How long a service was in each state, and how often it went."""

    up_ms: int = 0
    planned_ms: int = 0
    unplanned_ms: int = 0
    unknown_ms: int = 0
    planned: int = 0
    """Outages that were planned from their beginning to their end."""
    unplanned: int = 0
    longest_ms: int = 0
    """The longest unplanned outage."""

    def and_state(self, state: ServiceState, cause: Cause | None, span_ms: int) -> "Sums":
        """Return them with a time in one state."""
        if state is ServiceState.UP:
            return replace(self, up_ms=self.up_ms + span_ms)
        if state is ServiceState.UNKNOWN:
            return replace(self, unknown_ms=self.unknown_ms + span_ms)
        if cause is not None and cause.is_planned:
            return replace(self, planned_ms=self.planned_ms + span_ms)
        return replace(self, unplanned_ms=self.unplanned_ms + span_ms)

    def and_outage(self, cause: Cause, span_ms: int) -> "Sums":
        """Return them with an outage that has ended."""
        if cause.is_planned:
            return replace(self, planned=self.planned + 1)
        return replace(self, unplanned=self.unplanned + 1, longest_ms=max(self.longest_ms, span_ms))


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which a service is down; it ends when it is up, and what is unknown in between belongs to it."""

    since: WallTime
    cause: Cause
    """The first that is unplanned; the first, where none is."""

    def also(self, cause: Cause) -> "Outage":
        """Return it with another cause."""
        return replace(self, cause=cause) if self.cause.is_planned and not cause.is_planned else self


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """What is known of one service since it was up for the first time, or failed to be."""

    known_from: WallTime
    state: ServiceState
    since: WallTime
    cause: Cause | None = None
    """Why it is not up."""
    outage: Outage | None = None
    """The one under way."""
    sums: Sums = field(default_factory=Sums)
    """Up to `since`."""

    def until(self, now: WallTime) -> Sums:
        """Return the sums with the outage under way."""
        return self.sums.and_state(self.state, self.cause, max(0, now - self.since))

    def becomes(self, state: ServiceState, cause: Cause | None, at: WallTime) -> "ServiceAccount":
        """Return it with another state from a moment on, which is never before the newest change."""
        at = max(at, self.since)
        sums = self.until(at)
        outage = self.outage
        if state is ServiceState.UP:
            if outage is not None:
                sums = sums.and_outage(outage.cause, at - outage.since)
            outage = None
        elif state is ServiceState.DOWN and cause is not None:
            outage = Outage(at, cause) if outage is None else outage.also(cause)
        return replace(self, state=state, since=at, cause=cause, outage=outage, sums=sums)


@dataclass(frozen=True, slots=True)
class Incident:
    """What belongs together: one node loss with its fencing, stops and starts. Defined in 0013-alerts.md."""

    id: str
    since: WallTime
    newest_at: WallTime
    """Of the newest entry that belongs to it."""
    cause: Cause = Cause.OTHER
    """Of its newest entry that gives any."""


@dataclass(frozen=True, slots=True)
class Availability:
    """The accounts of all services, and what is needed to continue with them."""

    services: Mapping[str, ServiceAccount] = field(default_factory=dict)
    """By `service_name`."""
    outages: Mapping[str, Spans] = field(default_factory=dict)
    """Those that have ended, by cause: how long services were away until they were up again."""
    incident: Incident | None = None
    """The newest one, which may be over."""
    seen_at: WallTime = WallTime(0)
    """When the newest entry was made that did anything."""
    elected_at: WallTime = WallTime(0)
    before_election: WallTime = WallTime(0)
    """`seen_at` before the newest election."""


def service_name(resource: ResourceId, *, is_promoted: bool = False) -> str:
    """Name a service."""
    return f"{resource}/{PROMOTED}" if is_promoted else str(resource)


def resource_of(service: str) -> ResourceId:
    """Return the primitive of a service."""
    return ResourceId(service.partition("/")[0])
