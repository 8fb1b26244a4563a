"""The availability of services after an applied entry, and the incident that it belongs to (0016-availability.md).

States are derived from the CIB before and after the entry, so that every node gets the same. Nothing here may refuse
or delay a command, and no decision depends on it.
"""

from collections.abc import Mapping
from typing import Final

from haclusterd.cib import commands
from haclusterd.cib.changes import Change, ChangeKind, Facts
from haclusterd.cib.derived.wishes import Wishes
from haclusterd.cib.verdict import Entry, Verdict
from haclusterd.model.activity import history_says_active, history_says_promoted
from haclusterd.model.availability import (
    DOUBT_MS,
    INCIDENT_LONGEST_MS,
    INCIDENT_QUIET_MS,
    PROMOTED,
    Availability,
    Cause,
    Incident,
    ServiceAccount,
    ServiceState,
    resource_of,
    service_name,
)
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.counted import Spans
from haclusterd.model.devices import DeviceState
from haclusterd.model.history import ResourceHistory
from haclusterd.model.ids import NodeName, ResourceId, base_of
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import dataclass, replace

_TRIGGERS: Final[Mapping[ChangeKind, Cause | None]] = {
    ChangeKind.CONFIGURATION_CHANGED: Cause.CONFIGURATION,
    ChangeKind.RULES_JUDGED: Cause.CONFIGURATION,
    ChangeKind.RESTART_BEGUN: Cause.RESTART,
    ChangeKind.TICKET_CHANGED: Cause.TICKET,
    ChangeKind.NODE_LEAVING: Cause.SHUTDOWN,
    ChangeKind.NODE_LEFT: Cause.SHUTDOWN,
    ChangeKind.NODE_LOST: Cause.NODE_LOST,
    ChangeKind.NODE_JOINED: Cause.NODE_JOINED,
    ChangeKind.OPERATION_FAILED: Cause.FAILURE,
    ChangeKind.OUTCOME_UNKNOWN: Cause.FAILURE,
    ChangeKind.ATTRIBUTE_CHANGED: Cause.ATTRIBUTE,
    ChangeKind.FAILURES_FORGOTTEN: None,
    ChangeKind.DC_ELECTED: None,
    ChangeKind.FENCING_ORDERED: None,
    ChangeKind.ORDER_ISSUED: None,
}
"""Changes that begin an incident, with the cause that they give."""
_PARTS: Final = frozenset({
    *_TRIGGERS, ChangeKind.NODE_FENCED, ChangeKind.NODE_UNFENCED, ChangeKind.FENCING_AGENT_SUCCEEDED,
    ChangeKind.FENCING_FAILED, ChangeKind.FENCE_AGENT_ENDED, ChangeKind.ORDER_VOIDED, ChangeKind.ORDER_NOT_BEGUN,
    ChangeKind.OPERATION_SUCCEEDED, ChangeKind.RESTART_ENDED,
})  # fmt: skip
"""Changes that belong to an open incident, and prolong it."""
_ENDING: Final = frozenset({ActionName.STOP, ActionName.DEMOTE})


@dataclass(frozen=True, slots=True)
class _Seen:
    """The known state of one service at one moment."""

    state: ServiceState
    node: NodeName | None = None
    """The node where it is up, or from which the knowledge comes."""


_NOWHERE: Final = _Seen(ServiceState.DOWN)


def with_availability(before: Cib, verdict: Verdict, command: commands.Command, entry: Entry) -> Verdict:
    """Return a verdict with changes of services added, and each change with its incident."""
    cib, known, changes = verdict.cib, before.status.availability, verdict.changes
    present = _incident(before, changes, command, entry)
    incident = present or known.incident
    touched = _touched(before, cib)
    services, outages = known.services, known.outages
    if touched:
        services, outages, news = _Accounts(before, cib, command, entry, incident).updated(touched)
        changes = (*changes, *news)
    if present is not None:
        name = present.id
        changes = tuple(Change(each.kind, each.node, each.resource, each.text, each.facts, name) for each in changes)
    is_elected = isinstance(command, commands.DcElected)
    made = Availability(
        services,
        outages,
        incident,
        max(known.seen_at, entry.at),
        entry.at if is_elected else known.elected_at,
        known.seen_at if is_elected else known.before_election,
    )
    return Verdict(replace(cib, status=replace(cib.status, availability=made)), changes, verdict.refusal)


def with_mark(cib: Cib, at: WallTime) -> Cib:
    """Return a CIB that records a quorum at this time."""
    known = cib.status.availability
    if at <= known.seen_at:
        return cib
    return replace(cib, status=replace(cib.status, availability=replace(known, seen_at=at)))


# -- incidents -------------------------------------------------------------------------------------------------------


def _incident(
    before: Cib, changes: tuple[Change, ...], command: commands.Command, entry: Entry
) -> Incident | None:
    """Return the incident of an entry, updated by it; None: it belongs to none."""
    at, present = entry.at, before.status.availability.incident
    if present is not None:
        is_at_work = _is_at_work(before) and at - present.since < INCIDENT_LONGEST_MS
        if at - present.newest_at >= INCIDENT_QUIET_MS and not is_at_work:
            present = None
    if not any(each.kind in (_TRIGGERS if present is None else _PARTS) for each in changes):
        return None
    if present is None:
        present = Incident(f"{before.cluster_uuid[:8]}-{entry.index}", at, at)
    causes = [cause for each in changes if each.kind in _TRIGGERS if (cause := _cause_given(each, command)) is not None]
    cause = causes[-1] if causes else present.cause
    return Incident(present.id, present.since, max(present.newest_at, at), cause)


def _is_at_work(cib: Cib) -> bool:
    status = cib.status
    return bool(status.fence_orders) or any(node.orders for node in status.nodes.values())


def _cause_given(change: Change, command: commands.Command) -> Cause | None:
    if change.kind is ChangeKind.NODE_LOST and change.facts.cause:
        return Cause(change.facts.cause)
    if change.kind is ChangeKind.FAILURES_FORGOTTEN:
        return Cause.CLEAN_UP if isinstance(command, commands.CleanUp) and command.author else None
    return _TRIGGERS[change.kind]


# -- services --------------------------------------------------------------------------------------------------------


class _Accounts:
    """The availability accounts after one entry."""

    def __init__(
        self, before: Cib, after: Cib, command: commands.Command, entry: Entry, incident: Incident | None
    ) -> None:
        self._before, self._after = before, after
        self._command, self._entry = command, entry
        self._incident = incident
        self._known = before.status.availability
        self._wishes = Wishes(after)
        self._numbered: dict[int, dict[ResourceId, list[ResourceId]]] = {}

    def updated(
        self, touched: Mapping[ResourceId, bool]
    ) -> tuple[Mapping[str, ServiceAccount], Mapping[str, Spans], list[Change]]:
        """Return the accounts, the ended outages, and the changes, given the services that may have changed."""
        services, outages, news = dict(self._known.services), dict(self._known.outages), []
        for resource, is_numbered in touched.items():
            if resource not in self._after.configuration.resources:
                for role in (False, True):
                    services.pop(service_name(resource, is_promoted=role), None)
                continue
            for is_promoted in (False, True):
                service = _Service(resource, is_promoted, is_numbered)
                name = service_name(resource, is_promoted=is_promoted)
                for made in self._accounts(service, services.get(name)):
                    was = services.get(name)
                    services[name] = made
                    news.append(_news(service, was, made, self._entry))
                    if was is not None and was.outage is not None and made.outage is None:
                        cause = str(was.outage.cause)
                        spans = outages.get(cause, Spans())
                        outages[cause] = spans.and_one(max(0, made.since - was.outage.since))
        is_changed = bool(news) or len(services) != len(self._known.services)
        return (services if is_changed else self._known.services), outages, news

    def _accounts(self, service: "_Service", was: ServiceAccount | None) -> tuple[ServiceAccount, ...]:
        """Return the successive states of an account; empty if it has not changed."""
        seen = self._seen(self._after, service)
        at = self._entry.at
        if was is None:
            first = ServiceAccount(at, ServiceState.UP, at)
            if seen.state is ServiceState.UP:
                return (first,)
            is_tried = not service.is_promoted and self._has_failed(service)
            return (first.becomes(ServiceState.DOWN, Cause.FAILURE, at),) if is_tried else ()
        if seen.state is was.state and was.state is not ServiceState.DOWN:
            return ()
        if seen.state is ServiceState.UP:
            return (was.becomes(ServiceState.UP, None, at),)
        if seen.state is ServiceState.DOWN:
            return self._down(service, was)
        return (self._doubted(was) if was.state is ServiceState.UP else
                was.becomes(ServiceState.UNKNOWN, Cause.UNVERIFIED, at),)  # fmt: skip

    def _down(self, service: "_Service", was: ServiceAccount) -> tuple[ServiceAccount, ...]:
        at = self._entry.at
        if was.state is ServiceState.DOWN:
            cause = self._cause_while_down(service, was)
            return () if cause is was.cause else (was.becomes(ServiceState.DOWN, cause, at),)
        cause = self._cause(service, self._seen(self._before, service).node)
        if was.state is ServiceState.UNKNOWN:
            return (was.becomes(ServiceState.DOWN, cause if was.outage is None else was.outage.cause, at),)
        is_join = isinstance(self._command, commands.Join)
        ages = self._command.ages_ms if isinstance(self._command, commands.Lost) else {}
        if is_join or (isinstance(self._command, commands.Lost) and not ages and self._is_after_election()):
            doubted = self._doubted(was)
            return (doubted, doubted.becomes(ServiceState.DOWN, cause, at))
        heard_ms = min(ages.values(), default=0) if cause is Cause.NODE_LOST else 0
        return (was.becomes(ServiceState.DOWN, cause, WallTime(at - heard_ms)),)

    def _doubted(self, was: ServiceAccount) -> ServiceAccount:
        """Return the account of a service that was up and is down since an unknown time.

        A node that joins soon after an election may have been away for as long as nothing was written to the log.
        """
        at = self._entry.at
        if not self._is_after_election() or was.since >= self._known.elected_at:
            return was.becomes(ServiceState.UNKNOWN, Cause.UNVERIFIED, at)
        return was.becomes(ServiceState.UNKNOWN, Cause.NO_QUORUM, min(at, self._known.before_election))

    def _is_after_election(self) -> bool:
        return 0 <= self._entry.at - self._known.elected_at < DOUBT_MS

    # -- why ---------------------------------------------------------------------------------------------------------

    def _cause(self, service: "_Service", place: NodeName | None) -> Cause:
        """Return why a service that was up on a node is no longer up."""
        status = self._after.status.nodes.get(place) if place is not None else None
        if place is not None and status is not None:
            if status.state in (NodeState.LOST, NodeState.FENCED):
                is_asked = isinstance(self._command, commands.RequestFence)
                return Cause.FENCE_REQUESTED if is_asked else Cause.NODE_LOST
            if status.state is NodeState.LEFT:
                return Cause.SHUTDOWN
            if isinstance(self._command, commands.Join):
                return Cause.NO_QUORUM if self._is_after_election() else Cause.NODE_LOST
            if self._is_failed_on(status, service):
                return Cause.MAINTENANCE if self._wishes.is_unmanaged(service.resource, place) else Cause.FAILURE
        wish = self._wishes.why_not(service.resource, place, is_promoted=service.is_promoted)
        if wish is not None:
            return wish
        by_device = self._cause_by_device(service)
        if by_device is not None:
            return by_device
        return self._incident.cause if self._incident is not None else Cause.OTHER

    def _cause_by_device(self, service: "_Service") -> Cause | None:
        """Return why a service, or its gang, had to leave a device that it held; None: its devices are in order."""
        drained: Cause | None = None
        for node, known in sorted(self._before.status.devices.items()):
            status = self._before.status.nodes.get(node) if known.claims else None
            names = self._names(status, service) if status is not None else ()
            held = [name for name, claims in known.claims.items() if any(claim.resource in names for claim in claims)]
            if any(known.devices[name].state is not DeviceState.OK for name in held if name in known.devices):
                return Cause.FAILURE
            drained = Cause.STANDBY if any(name in known.holds for name in held) else drained
        return drained

    def _cause_while_down(self, service: "_Service", was: ServiceAccount) -> Cause | None:
        """Return why a service that was down is still down: another wish or failure begins a new part of the outage."""
        wish = self._wishes.why_not(service.resource, None, is_promoted=service.is_promoted)
        if wish is not None:
            return wish
        is_planned = was.cause is not None and was.cause.is_planned
        if is_planned and isinstance(self._command, commands.RecordResults):
            status = self._after.status.nodes.get(self._command.node)
            is_failed = status is not None and self._is_failed_on(status, service)
            if is_failed and any(base_of(each.resource) == service.resource for each in self._command.results):
                return Cause.FAILURE
        return was.cause

    def _has_failed(self, service: "_Service") -> bool:
        return any(self._is_failed_on(status, service) for status in self._after.status.nodes.values())

    def _is_failed_on(self, status: NodeStatus, service: "_Service") -> bool:
        found = (status.histories.get(name) for name in self._names(status, service))
        return any(history is not None and _is_failed(history) for history in found)

    # -- known states ------------------------------------------------------------------------------------------------

    def _seen(self, cib: Cib, service: "_Service") -> _Seen:
        found = _NOWHERE
        for node, status in sorted(cib.status.nodes.items()):
            for name in self._names(status, service):
                state = instance_state(status, name, is_promoted=service.is_promoted)
                if state is ServiceState.UP:
                    return _Seen(state, node)
                if state is ServiceState.UNKNOWN and found is _NOWHERE:
                    found = _Seen(state, node)
        return found

    def _names(self, status: NodeStatus, service: "_Service") -> tuple[ResourceId, ...]:
        if not service.is_numbered:
            return (service.resource,)
        known = self._numbered.get(id(status))
        if known is None:
            known = self._numbered[id(status)] = {}
            for name in sorted({*status.histories, *status.unverified}):
                if ":" in name:
                    known.setdefault(base_of(name), []).append(name)
        return (service.resource, *known.get(service.resource, ()))


@dataclass(frozen=True, slots=True)
class _Service:
    """One service."""

    resource: ResourceId
    is_promoted: bool
    is_numbered: bool
    """Whether instances may have numbers."""


def _touched(before: Cib, after: Cib) -> dict[ResourceId, bool]:
    """Return the primitives with changes, and for each whether its instances may have numbers."""
    found: set[ResourceId] = set()
    old, new = before.status.nodes, after.status.nodes
    if old is not new:
        for node, status in new.items():
            was = old.get(node)
            if was is not status:
                found |= _touched_on(was, status)
    touched: dict[ResourceId, bool] = {}
    for name in sorted(found):
        base = base_of(name)
        touched[base] = touched.get(base, False) or ":" in name
    if before.configuration is not after.configuration or before.status.restarts is not after.status.restarts:
        for service in before.status.availability.services:
            touched[resource_of(service)] = True
    resources = after.configuration.resources
    return {name: is_numbered for name, is_numbered in touched.items() if not _is_fence_device(resources.get(name))}


def _touched_on(was: NodeStatus | None, status: NodeStatus) -> set[ResourceId]:
    if was is None or (was.state, was.incarnation) != (status.state, status.incarnation):
        old: set[ResourceId] = set() if was is None else {*was.histories, *was.unverified}
        return {*old, *status.histories, *status.unverified}
    found: set[ResourceId] = set()
    if was.histories is not status.histories:
        names = {*was.histories, *status.histories}
        found |= {name for name in names if was.histories.get(name) is not status.histories.get(name)}
    if was.unverified is not status.unverified:
        found |= was.unverified ^ status.unverified
    if was.orders is not status.orders:
        orders = {**was.orders, **status.orders}
        changed = was.orders.keys() ^ status.orders.keys()
        found |= {orders[key].resource for key in changed if orders[key].action in _ENDING}
    return found


def _is_fence_device(resource: object) -> bool:
    agent = getattr(resource, "agent", None)
    return agent is not None and agent.standard == "stonith"


def instance_state(status: NodeStatus, name: ResourceId, *, is_promoted: bool) -> ServiceState:
    """Return the state of one instance on one node, or of its promotion."""
    history = status.histories.get(name)
    if status.state is not NodeState.ONLINE:
        is_left_running = status.has_detached and history is not None and history_says_active(history)
        return ServiceState.UNKNOWN if is_left_running else ServiceState.DOWN
    if name in status.unverified:
        is_asked = not is_promoted or (history is not None and history_says_promoted(history))
        return ServiceState.UNKNOWN if is_asked else ServiceState.DOWN
    if history is None or not history_says_active(history) or _is_failed(history):
        return ServiceState.DOWN
    if is_promoted and not history_says_promoted(history):
        return ServiceState.DOWN
    ending = _ENDING if is_promoted else (ActionName.STOP,)
    if any(order.resource == name and order.action in ending for order in status.orders.values()):
        return ServiceState.DOWN
    is_doubted = any(record.is_undecided for record in history.records.values())
    return ServiceState.UNKNOWN if is_doubted else ServiceState.UP


def _is_failed(history: ResourceHistory) -> bool:
    """Return whether a record in a history shows that the resource does not serve."""
    return any(record.is_failure and record.operation in _TELLING for record in history.records.values())


_TELLING: Final = frozenset({
    ActionName.START, ActionName.STOP, ActionName.MONITOR, ActionName.PROMOTE, ActionName.DEMOTE,
    ActionName.MIGRATE_FROM, ActionName.RELOAD_AGENT,
})  # fmt: skip


def _news(service: _Service, was: ServiceAccount | None, now: ServiceAccount, entry: Entry) -> Change:
    """Return the change that describes a service's new state."""
    resource, is_promoted = service.resource, service.is_promoted
    role = PROMOTED if is_promoted else ""
    what = f"{resource} is {PROMOTED} nowhere" if is_promoted else f"{resource} is down"
    if now.state is ServiceState.UP:
        what = f"{resource} is {PROMOTED}" if is_promoted else f"{resource} is up"
        if was is not None and was.outage is not None:
            what += f", after {now.since - was.outage.since} ms"
    elif now.state is ServiceState.UNKNOWN:
        what = f"nobody knows whether {resource} is {role or 'up'}"
    cause = now.cause
    if now.state is ServiceState.DOWN and cause is not None:
        what += f": {cause} ({'planned' if cause.is_planned else 'unplanned'})"
    facts = Facts(
        role=role,
        state=str(now.state),
        cause=str(cause or ""),
        was="" if was is None else str(was.state),
        was_cause="" if was is None else str(was.cause or ""),
        since=str(now.since) if now.since != entry.at else "",
        was_since="" if was is None else str(was.since),
    )
    return Change(ChangeKind.AVAILABILITY_CHANGED, None, resource, what, facts)


