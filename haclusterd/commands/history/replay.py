"""The cluster as it was at a past moment, for questions about it: the version in force then, and what the history says.

Nothing here is decided, and nothing that is decided may be read from here: the rows of the history say how actions
ended, not what their parameters were. What began before the history does and still stands is taken from the present
status, which says since when; what neither knows is said in a report.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from haclusterd.cib.changes import ChangeKind, Facts
from haclusterd.cib.commands import TicketChange
from haclusterd.cib.verdict import by
from haclusterd.commands.context import Context, Event, ListedVersion
from haclusterd.model.cluster import Cib, ConfigurationVersion, DesignatedController, NodeState, NodeStatus, TicketState
from haclusterd.model.configuration import Configuration, Primitive
from haclusterd.model.history import FailCount, OperationRecord, ResourceHistory, operation_key
from haclusterd.model.ids import Incarnation, NodeName, ResourceId, Term, base_of
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import BEGINNINGS, ActionName, ExecutionStatus, ExitCode
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.remembered import HistoryQuery
from haclusterd.model.scores import INFINITY, add
from haclusterd.model.templates import expanded
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report

ROWS_MAX: Final = 10_000
"""Of the history, for one answer."""
_KINDS_UNDONE = (str(ChangeKind.ATTRIBUTE_CHANGED), str(ChangeKind.TICKET_CHANGED), str(ChangeKind.DC_ELECTED))
_ELECTED = re.compile(r"(?P<node>\S+) is DC in term (?P<term>[0-9]{1,15})\Z", re.ASCII)
_TELLS_NOTHING = (ActionName.NOTIFY, ActionName.CANCEL)
_KINDS = tuple(map(str, (
    ChangeKind.NODE_JOINED, ChangeKind.NODE_LEAVING, ChangeKind.NODE_LEFT, ChangeKind.NODE_LOST,
    ChangeKind.NODE_FENCED, ChangeKind.NODE_RETIRED, ChangeKind.OPERATION_SUCCEEDED, ChangeKind.OPERATION_FAILED,
    ChangeKind.OUTCOME_UNKNOWN, ChangeKind.FAILURES_FORGOTTEN, ChangeKind.ATTRIBUTE_CHANGED,
    ChangeKind.TICKET_CHANGED, ChangeKind.DC_ELECTED,
)))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Replayed:
    """The cluster at a past moment."""

    cib: Cib
    version: int
    """Of the configuration that was in force."""
    reports: tuple[ReportItem, ...] = ()
    """What of that time is not known."""


def replayed(context: Context, at: WallTime) -> Replayed | ReportItem:
    """Return the cluster as it was at a moment, as far as the answering node's history tells."""
    if context.versions is None or context.past is None:
        return report(Code.NOT_OFFLINE, what="--at")
    if at > context.now:
        return report(Code.BAD_ARGUMENT, name="at", problem="that moment is still to come")
    version = version_at(context, at)
    past = context.past.recall(HistoryQuery(limit=ROWS_MAX, until=at, kinds=_KINDS))
    if version is None:
        return report(Code.BAD_ARGUMENT, name="at", problem=_before(context))
    configuration = _content(context, version)
    if configuration is None:
        node = "this node" if context.live is None else context.live.node
        return report(Code.VERSION_NOT_KEPT, number=version.number, node=node)
    later = context.past.recall(HistoryQuery(limit=ROWS_MAX, since=WallTime(at + 1), kinds=_KINDS_UNDONE))
    standing = _standing_then(context.cib, at, later.events)
    replay = _Replay(configuration, standing, dict(_tickets_then(context.cib, later.events)))
    for event in past.events:
        replay.take(event)
    replay.finish()
    controller = _controller_then(context.cib, past.events, later.events, replay.nodes)
    status = replace(context.cib.status, controller=controller, nodes=replay.nodes, tickets=replay.tickets,
                     fence_orders={}, rules=None, restarts={})  # fmt: skip
    made = ConfigurationVersion(version.number, version.author, version.at, version.reason)
    cib = replace(context.cib, configuration=configuration, version=made, status=status)
    return Replayed(cib, version.number, tuple(_gaps(past.problem, past.left_out)))


def _gaps(problem: str, left_out: int) -> Iterator[ReportItem]:
    if problem:
        yield report(Code.HISTORY_INCOMPLETE, problem=problem)
    if left_out:
        what = f"only the newest {ROWS_MAX} events before that moment were replayed"
        yield report(Code.HISTORY_INCOMPLETE, problem=what)


# -- the configuration -----------------------------------------------------------------------------------------------


def version_at(context: Context, at: WallTime) -> ListedVersion | None:
    """Return the version that was in force; None: the history does not go back that far."""
    assert context.versions is not None
    present = context.cib.version
    known = [each for each in context.versions.listed() if each.at <= at and each.number < present.epoch]
    if present.at <= at:
        return ListedVersion(present.epoch, present.at, present.author, present.reason, "")
    return max(known, key=lambda each: each.number, default=None)


def _content(context: Context, version: ListedVersion) -> Configuration | None:
    if version.number == context.cib.version.epoch:
        return context.cib.configuration
    assert context.versions is not None
    return context.versions.configuration(version.number)


def _before(context: Context) -> str:
    assert context.versions is not None
    oldest = min(context.versions.listed(), key=lambda each: each.number, default=None)
    if oldest is None:
        return "no version of the configuration is known of that time"
    return f"no version of the configuration is known of that time: the oldest is {oldest.number} (crm history config)"


# -- the status ------------------------------------------------------------------------------------------------------


def _standing_then(cib: Cib, at: WallTime, later: Sequence[Event]) -> dict[NodeName, NodeStatus]:
    """Return what of the present status was already so at a moment; rows about the rest change it."""
    changed = {(event.change.node, _attribute_of(event)[0]) for event in later if event.change.node is not None}
    nodes: dict[NodeName, NodeStatus] = {}
    for name in cib.members:
        status = cib.status.nodes.get(name, NodeStatus(name))
        kept = {
            resource: history
            for resource, history in status.histories.items()
            if history.records and all(record.run_at <= at for record in history.records.values())
        }
        if status.since > at:
            nodes[name] = NodeStatus(name, histories=kept)
            continue
        attributes = {each: value for each, value in status.attributes.items() if (name, each) not in changed}
        nodes[name] = NodeStatus(
            name, status.state, status.incarnation, status.since, status.detail, status.causes,
            fenced_incarnation=status.fenced_incarnation, attributes=attributes, histories=kept,
            utilization=status.utilization,
        )  # fmt: skip
    return nodes


def _controller_then(
    cib: Cib, past: Sequence[Event], later: Sequence[Event], nodes: Mapping[NodeName, NodeStatus]
) -> DesignatedController | None:
    """Return who was the DC; None: the history does not go back to its election."""
    kind = ChangeKind.DC_ELECTED
    newest = next((event for event in reversed(past) if event.change.kind is kind), None)
    if newest is None:
        return None if any(event.change.kind is kind for event in later) else cib.status.controller
    found = _ELECTED.match(newest.change.text)
    if found is None:
        return None
    node = NodeName(found["node"])
    incarnation = nodes[node].incarnation if node in nodes else None
    return None if incarnation is None else DesignatedController(node, incarnation, Term(int(found["term"])))


def _tickets_then(cib: Cib, later: Sequence[Event]) -> Iterator[tuple[str, TicketState]]:
    changed = {_ticket_of(event)[0] for event in later if event.change.kind is ChangeKind.TICKET_CHANGED}
    return ((name, state) for name, state in cib.status.tickets.items() if name not in changed)


@dataclass(slots=True)
class _Replay:
    """The status that follows from rows, taken one after the other, oldest first."""

    configuration: Configuration
    nodes: dict[NodeName, NodeStatus]
    tickets: dict[str, TicketState]
    _incarnations: int = 0
    _calls: int = 0
    _settled: frozenset[tuple[NodeName, ResourceId]] = frozenset()
    """Histories that nothing was added to since that moment: they are known better than by rows."""
    _unchanged: frozenset[NodeName] = frozenset()
    """Nodes whose state is the same now."""
    _agents: Mapping[ResourceId, Primitive] = field(default_factory=dict)
    _is_start_fatal: bool = True

    def __post_init__(self) -> None:
        found = self.configuration.resources
        self._agents = {
            name: expanded(each, self.configuration) for name, each in found.items() if isinstance(each, Primitive)
        }
        self._settled = frozenset((name, each) for name, node in self.nodes.items() for each in node.histories)
        self._unchanged = frozenset(name for name, node in self.nodes.items() if node.state is not NodeState.UNSEEN)
        self._is_start_fatal = ClusterProperties(self.configuration).boolean("start-failure-is-fatal")

    def take(self, event: Event) -> None:
        """Take one row."""
        change = event.change
        match change.kind:
            case ChangeKind.ATTRIBUTE_CHANGED if change.node is not None:
                self._attribute(change.node, event)
            case ChangeKind.TICKET_CHANGED:
                self._ticket(event)
            case ChangeKind.FAILURES_FORGOTTEN:
                self._forgotten(change.node, change.resource, _without_author(event))
            case _ if change.node is not None and change.resource is not None:
                self._operation(change.node, change.resource, event)
            case _ if change.node is not None:
                self._node(change.node, change.kind, event)
            case _:
                pass  # Something that says nothing of the status.

    def finish(self) -> None:
        """Take what nothing is known of on a node for probed: it was not running there."""
        for name, node in self.nodes.items():
            histories = {each: history for each, history in node.histories.items() if not _finds_nothing(history)}
            self.nodes[name] = replace(node, histories=histories, probed=frozenset(self._agents) - frozenset(histories))

    def _node(self, name: NodeName, kind: ChangeKind, event: Event) -> None:
        known = self.nodes.get(name, NodeStatus(name))
        if kind is ChangeKind.NODE_LEAVING and event.at >= known.since:
            self.nodes[name] = replace(known, is_leaving=True)
        if name in self._unchanged:
            return
        kept = {each: history for each, history in known.histories.items() if (name, each) in self._settled}
        incarnation = known.incarnation
        match kind:
            case ChangeKind.NODE_JOINED:
                is_restarted = event.change.facts.outcome == "restarted"
                self.nodes[name] = NodeStatus(name, NodeState.ONLINE, self._next_incarnation(), event.at,
                                              histories=known.histories if is_restarted else kept)  # fmt: skip
            case ChangeKind.NODE_LOST:
                detail = event.change.text.removeprefix(f"{name} is lost: ")
                lost = incarnation or self._next_incarnation()
                self.nodes[name] = replace(known, state=NodeState.LOST, incarnation=lost, since=event.at, detail=detail)
            case ChangeKind.NODE_FENCED:
                self.nodes[name] = NodeStatus(name, NodeState.FENCED, incarnation, event.at, histories=kept,
                                              fenced_incarnation=incarnation)  # fmt: skip
            case ChangeKind.NODE_LEFT:
                self.nodes[name] = NodeStatus(name, NodeState.LEFT, incarnation, event.at, histories=kept)
            case ChangeKind.NODE_RETIRED:
                self.nodes.pop(name, None)
            case _:
                pass

    def _next_incarnation(self) -> Incarnation:
        self._incarnations += 1
        return Incarnation(f"replayed-{self._incarnations}", f"{self._incarnations:016x}")

    def _attribute(self, name: NodeName, event: Event) -> None:
        known, (attribute, value) = self.nodes.get(name), _attribute_of(event)
        if known is None or event.at < known.since:
            return
        attributes = {each: other for each, other in known.attributes.items() if each != attribute}
        if value is not None:
            attributes[attribute] = value
        self.nodes[name] = replace(known, attributes=attributes)

    def _ticket(self, event: Event) -> None:
        name, act = _ticket_of(event)
        known = self.tickets.get(name, TicketState(name))
        match act:
            case TicketChange.GRANT:
                self.tickets[name] = replace(known, is_granted=True, last_granted=event.at)
            case TicketChange.REVOKE:
                self.tickets[name] = replace(known, is_granted=False)
            case TicketChange.STANDBY | TicketChange.ACTIVATE:
                self.tickets[name] = replace(known, is_standby=act == TicketChange.STANDBY)
            case TicketChange.DELETE:
                self.tickets.pop(name, None)
            case _:
                pass  # Another version of this program may know other acts.

    def _forgotten(self, node: NodeName | None, resource: ResourceId | None, text: str) -> None:
        _, _, places = text.rpartition(" forgotten on ")
        names = [node] if node is not None else [NodeName(each) for each in places.split(", ")]
        for name in names:
            known = self.nodes.get(name)
            if known is not None:
                cleaned = {each: _forgiven(history) if resource in (None, each) else history
                           for each, history in known.histories.items()}  # fmt: skip
                self.nodes[name] = replace(known, histories=cleaned)

    def _operation(self, name: NodeName, resource: ResourceId, event: Event) -> None:
        known, primitive = self.nodes.get(name), self._agents.get(base_of(resource))
        facts = event.change.facts
        says_how = bool(facts.action) and facts.action not in _TELLS_NOTHING
        if known is None or primitive is None or not says_how or (name, resource) in self._settled:
            return
        if known.state is NodeState.UNSEEN:  # The history does not go back to when it joined.
            known = replace(known, state=NodeState.ONLINE, incarnation=self._next_incarnation(), since=event.at)
        self._calls += 1
        record = _record(facts, event.change.text, event.at, self._calls)
        history = known.histories.get(resource) or ResourceHistory(resource, primitive.agent)
        if record is None:
            self.nodes[name] = replace(known, histories={**known.histories, resource: history},
                                       unverified=known.unverified | {resource})  # fmt: skip
            return
        self.nodes[name] = replace(
            known, unverified=known.unverified - {resource},
            histories={**known.histories, resource: self._with_record(history, record)},
        )  # fmt: skip

    def _with_record(self, history: ResourceHistory, record: OperationRecord) -> ResourceHistory:
        """Keep the records that still say something, as `apply` does."""
        key = operation_key(record.operation, record.interval_ms)
        is_over = record.operation == ActionName.STOP and not record.is_failure
        is_gone = record.is_probe and record.exit_code is ExitCode.NOT_RUNNING
        if record.operation in BEGINNINGS or is_over or is_gone:
            records = {key: record}
        elif record.operation == ActionName.MONITOR:
            records = {**history.records, key: record}
        else:
            records = {**{each: item for each, item in history.records.items() if not item.interval_ms}, key: record}
        if not record.is_failure:
            return replace(history, records=records)
        is_fatal = record.operation == ActionName.STOP or (record.operation == ActionName.START
                                                           and self._is_start_fatal)  # fmt: skip
        before = history.fail_counts.get(key)
        count = INFINITY if is_fatal else add(before.count if before is not None else 0, 1)
        failure = FailCount(record.operation, record.interval_ms, count, record.ended_at)
        return replace(history, records=records, fail_counts={**history.fail_counts, key: failure},
                       last_failure=record)  # fmt: skip


def _record(facts: Facts, text: str, at: WallTime, call: int) -> OperationRecord | None:
    """Return what a row says of an operation that ended; None: its outcome is not known."""
    interval_ms = int(facts.interval) if facts.interval.isascii() and facts.interval.isdigit() else 0
    code, status, target = ExitCode.OK, ExecutionStatus.DONE, ExitCode.OK
    match facts.outcome:
        case "unknown":
            return None
        case "not-running":
            code = target = ExitCode.NOT_RUNNING
        case "failed":
            code, status = _failure(facts.cause)
        case _:
            pass
    reason = text.partition("): ")[2] if facts.outcome == "failed" else ""
    return OperationRecord(facts.action, interval_ms, call, code, status, target, at, at, exit_reason=reason)


def _failure(cause: str) -> tuple[ExitCode, ExecutionStatus]:
    try:
        return ExitCode[cause.upper()], ExecutionStatus.ERROR
    except KeyError:
        pass
    try:
        return ExitCode.ERROR, ExecutionStatus(cause)
    except ValueError:  # Another version of this program may have written it.
        return ExitCode.ERROR, ExecutionStatus.ERROR


def _forgiven(history: ResourceHistory) -> ResourceHistory:
    records = {key: record for key, record in history.records.items() if not record.is_failure}
    return replace(history, records=records, fail_counts={}, last_failure=None)


def _finds_nothing(history: ResourceHistory) -> bool:
    return not history.fail_counts and all(
        record.is_probe and record.exit_code is ExitCode.NOT_RUNNING for record in history.records.values()
    )


def _attribute_of(event: Event) -> tuple[str, str | None]:
    """Return which attribute a row is about, and its value; None: it was deleted."""
    said = _without_author(event).removeprefix(f"{event.change.node}: ")
    name, is_set, value = said.partition("=")
    return (name, value) if is_set else (said.removesuffix(" deleted"), None)


def _ticket_of(event: Event) -> tuple[str, str]:
    name, _, act = _without_author(event).removeprefix("ticket ").rpartition(": ")
    return name, act


def _without_author(event: Event) -> str:
    return event.change.text.removesuffix(by(event.author, event.reason))
