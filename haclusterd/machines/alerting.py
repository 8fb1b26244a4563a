"""Delivers alerts: the DC calls the agent of every recipient, for each in the order of the log (0013-alerts.md).

With `incident-group` the first event of an incident is delivered at once. Later events of the same incident are
collected for that time, or until an event arrives that does not belong to it, and are delivered in one call.

Invariants: at most one call per recipient is under way, and at most `AT_ONCE` in all; a recipient that is slow or
fails delays no other. What a DC of an earlier term may have delivered is marked (`CRM_alert_repeated`); within one
term nothing is delivered twice. A node that is not DC starts no call.
"""

from collections.abc import Mapping
from typing import Final

from haclusterd.cib.commands import RecordAlerts
from haclusterd.machines.alert_environment import environment_of
from haclusterd.model.alerts import (
    GROUP_MAX,
    TEST_OUTPUT_MAX,
    AlertCall,
    AlertCallResult,
    AlertEvent,
    AlertQueue,
    AlertTarget,
    AlertTest,
    incident_of,
    targets,
)
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import Incarnation, NodeName, Term
from haclusterd.model.instants import NEVER, Instant, WallTime, after
from haclusterd.model.records import dataclass, field

AT_ONCE: Final = 4
RECORD_PAUSE_MS: Final = 1_000
"""Time between two records of delivery progress. When a DC ends, at most that much is delivered again."""
_INCIDENTS_MAX: Final = 1_000


@dataclass(slots=True)
class _Incident:
    """The newest incident of one kind for one recipient."""

    begun: WallTime
    alike: int = 0
    """How many events were suppressed since the last call."""


@dataclass(frozen=True, slots=True)
class AlertStep:
    """What one step asks the runtime to do."""

    calls: tuple[AlertCall, ...] = ()
    record: RecordAlerts | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Recipients for whom events were dropped since the last step, and how many."""


_NOTHING: Final = AlertStep()


class AlertingMachine:
    """One node's delivery of alerts; see the module."""

    def __init__(self, node: NodeName, incarnation: Incarnation) -> None:
        self._node = node
        self._incarnations = {incarnation}
        """The incarnations of this process: a node that starts another while it is DC stays DC by an older one."""
        self._term: Term | None = None
        """The term in which this node is DC."""
        self._reached: dict[str, int] = {}
        self._running: dict[str, int] = {}
        """By recipient: the event of the call that is under way."""
        self._incidents: dict[tuple[str, ...], _Incident] = {}
        self._newest_incident: dict[str, str] = {}
        """By recipient: the incident of its newest call."""
        self._collecting: dict[str, tuple[int, Instant]] = {}
        """By recipient whose group is being collected: the first event, and the end of the collection."""
        self._tests: dict[str, AlertTest] = {}
        """Results of tests that are not recorded yet, also of a term before: a later call, which was under way at the
        election, records a position after the test when it ends."""
        self._dropped: Mapping[str, int] = {}
        self._record_at = Instant(0)
        self._is_unrecorded = False

    def reincarnated(self, incarnation: Incarnation) -> None:
        """Start a new incarnation of this node."""
        self._incarnations.add(incarnation)

    def step(self, cib: Cib, now: Instant) -> AlertStep:
        """Return the calls to start and the progress to record."""
        controller = cib.status.controller
        if controller is None or controller.node != self._node or controller.incarnation not in self._incarnations:
            self._term, self._is_unrecorded = None, False
            return _NOTHING
        queue = cib.status.alerts
        if controller.term != self._term:
            self._term, self._reached, self._incidents = controller.term, {}, {}
            self._newest_incident, self._collecting = {}, {}
            self._dropped = queue.dropped
        dropped = {key: count - self._dropped.get(key, 0) for key, count in queue.dropped.items()
                   if count > self._dropped.get(key, 0)}  # fmt: skip
        self._dropped = queue.dropped
        calls = self._calls(cib, queue, now) if queue.pending else ()
        return AlertStep(calls, self._record(queue, controller.term, now), dropped)

    def finished(self, call: AlertCall, result: AlertCallResult) -> None:
        """Note that a call has ended, whatever its result."""
        sequence = self._running.pop(call.key, None)
        if sequence is None or self._term is None:
            return
        self._reached[call.key] = max(self._reached.get(call.key, 0), sequence)
        if call.is_test:
            output = result.output[-TEST_OUTPUT_MAX:]
            self._tests[call.key] = AlertTest(
                call.sequence, is_done=True, exit_code=result.exit_code, problem=result.problem,
                executed_ms=result.executed_ms, output=output,
            )

    def deadline(self) -> Instant:
        """Return when to call `step` again if nothing happens before."""
        ends = (until for _, until in self._collecting.values())
        return min(self._record_at if self._is_unrecorded else NEVER, *ends, NEVER)

    def _calls(self, cib: Cib, queue: AlertQueue, now: Instant) -> tuple[AlertCall, ...]:
        found: list[AlertCall] = []
        for target in targets(cib.configuration):
            key = target.key
            if key in self._running or key not in queue.delivered:
                continue
            if len(self._running) >= AT_ONCE:
                break
            events = self._group(target, queue, now)
            if events:
                self._running[key] = events[-1].sequence
                self._newest_incident[key] = events[-1].incident
                found.append(self._call(cib, target, events))
        return tuple(found)

    def _group(self, target: AlertTarget, queue: AlertQueue, now: Instant) -> tuple[AlertEvent, ...]:
        """Return the events of the recipient's next call; empty while they are being collected."""
        key, group_ms = target.key, target.settings.group_ms
        first = self._next(target, queue)
        incident = "" if first is None or first.only else first.incident
        if first is None or not group_ms or not incident or self._newest_incident.get(key) != incident:
            self._collecting.pop(key, None)
            return () if first is None else (first,)
        events, is_whole = [first], False
        for event in queue.pending:
            if event.sequence <= first.sequence or not target.wants(event):
                continue
            if event.only or event.incident != incident or len(events) == GROUP_MAX:
                is_whole = True
                break
            events.append(event)
        begun, until = self._collecting.get(key, (0, NEVER))
        if begun != first.sequence:
            until = after(now, group_ms)
            self._collecting[key] = (first.sequence, until)
        if not is_whole and now < until:
            return ()
        del self._collecting[key]
        return tuple(events)

    def _next(self, target: AlertTarget, queue: AlertQueue) -> AlertEvent | None:
        """Return the recipient's next event; events that its filter excludes count as delivered."""
        key = target.key
        reached = max(self._reached.get(key, 0), queue.delivered[key])
        event = queue.after(reached)
        while event is not None and (not target.wants(event) or self._is_alike(target, event)):
            reached = event.sequence
            event = queue.after(reached)
        self._reached[key] = reached
        return event

    def _is_alike(self, target: AlertTarget, event: AlertEvent) -> bool:
        """Return whether an event belongs to an incident that the recipient was already called for."""
        span_ms = target.settings.incident_ms
        if not span_ms or event.only:
            return False
        incident = self._incidents.get((target.key, *incident_of(event)))
        if incident is None or not 0 <= event.at - incident.begun < span_ms:
            return False
        incident.alike += 1
        return True

    def _call(self, cib: Cib, target: AlertTarget, events: tuple[AlertEvent, ...]) -> AlertCall:
        settings = target.settings
        alike, event = None, events[-1]
        if settings.incident_ms and not event.only:
            name = (target.key, *incident_of(event))
            before = self._incidents.pop(name, None)
            alike = 0 if before is None else before.alike
            while len(self._incidents) >= _INCIDENTS_MAX:
                del self._incidents[next(iter(self._incidents))]
            self._incidents[name] = _Incident(event.at)
        is_repeated = any(each.term != self._term for each in events)
        environment = environment_of(
            cib, target, event, is_repeated=is_repeated, alike=alike, earlier=events[:-1]
        )
        numbers = tuple(each.sequence for each in events)
        return AlertCall(
            target.key, event.sequence, target.alert.path, environment, settings.timeout_ms, numbers, bool(event.only)
        )

    @staticmethod
    def _is_wanted(key: str, test: AlertTest, queue: AlertQueue) -> bool:
        known = queue.tests.get(key)
        return known is not None and not known.is_done and known.sequence == test.sequence

    def _record(self, queue: AlertQueue, term: Term, now: Instant) -> RecordAlerts | None:
        news = {key: reached for key, reached in sorted(self._reached.items())
                if reached > queue.delivered.get(key, reached)}  # fmt: skip
        self._tests = {key: test for key, test in sorted(self._tests.items())
                       if self._is_wanted(key, test, queue)}  # fmt: skip
        self._is_unrecorded = bool(news or self._tests)
        if not self._is_unrecorded or now < self._record_at:
            return None
        self._record_at = after(now, RECORD_PAUSE_MS)
        return RecordAlerts(term, news, self._tests)
