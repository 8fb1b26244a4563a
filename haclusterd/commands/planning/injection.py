"""What `simulate` supposes: a node that dies or comes back, an action that fails, a ticket, a property, a standby.

A supposition is a change of the CIB that only the question sees. Every one of them names what it is about; a name that
does not exist is refused, for a plan for something else than was meant answers nothing.
"""

import re
from collections.abc import Callable, Mapping

from haclusterd.model import durations
from haclusterd.model.cluster import Cib, NodeState, NodeStatus, TicketState
from haclusterd.model.configuration import AttributeSet, Primitive
from haclusterd.model.history import FailCount, OperationRecord, ResourceHistory, operation_key
from haclusterd.model.ids import Incarnation, NodeName, ResourceId, base_of
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.properties import Row, objection, property_row
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY, add
from haclusterd.model.templates import expanded
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean

SUPPOSED = Incarnation("supposed", "0" * 16)
"""Of a node that is supposed to have come back."""
SUPPOSED_SET = "supposed"
TICKET_STATES = ("granted", "revoked", "standby", "active")
_OPERATION = re.compile(
    r"(?P<resource>[^=@]+?):(?P<name>[a-z][a-z_-]+)(?::(?P<interval>[^@:=]+))?@(?P<node>[^=]+)=(?P<code>\d+)\Z"
)

Supposition = Callable[[Cib, str, WallTime], Cib | ReportItem]


def node_down(cib: Cib, name: str, now: WallTime) -> Cib | ReportItem:
    """Suppose that a node has died: it is lost, and what ran there may run until it is fenced."""
    return _with_state(cib, name, now, NodeState.LOST, "it is supposed to be down")


def node_up(cib: Cib, name: str, now: WallTime) -> Cib | ReportItem:
    """Suppose that a node is there; one that was not comes with nothing running."""
    return _with_state(cib, name, now, NodeState.ONLINE, "")


def _with_state(cib: Cib, name: str, now: WallTime, state: NodeState, detail: str) -> Cib | ReportItem:
    node = _node(cib, name, "node-down" if state is NodeState.LOST else "node-up")
    if isinstance(node, ReportItem):
        return node
    status = cib.status.nodes.get(node) or NodeStatus(node)
    if status.state is state:
        return cib
    if state is NodeState.LOST:
        changed = replace(status, state=state, since=now, detail=detail, is_leaving=False, fenced_incarnation=None)
    else:
        changed = NodeStatus(node, state, SUPPOSED, now)
    return _with_status(cib, changed)


def standby(cib: Cib, name: str, _now: WallTime) -> Cib | ReportItem:
    """Suppose that a node is in standby."""
    node = _node(cib, name, "standby")
    if isinstance(node, ReportItem):
        return node
    status = cib.status.nodes.get(node) or NodeStatus(node)
    return _with_status(cib, replace(status, attributes={**status.attributes, "standby": "on"}))


def set_property(cib: Cib, text: str, _now: WallTime) -> Cib | ReportItem:
    """Suppose that a property has another value: `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not equals:
        return _bad("set", f"{text!r} is not NAME=VALUE")
    row = property_row(name)
    if row is None:
        return _bad("set", f"{name!r} is no property of the cluster")
    problem = objection(row, value)
    if problem is not None:
        return _bad("set", f"{name}: {problem}")
    supposed = AttributeSet(f"{SUPPOSED_SET}-{row.name}", ((row.name, value),), INFINITY)
    properties = (*(_without(each, row) for each in cib.configuration.properties), supposed)
    return replace(cib, configuration=replace(cib.configuration, properties=properties))


def _without(block: AttributeSet, row: Row) -> AttributeSet:
    """Return a block without a property, whichever of its names it goes by."""
    pairs = tuple(pair for pair in block.pairs if (property_row(pair[0]) or pair[0]) != row)
    return replace(block, pairs=pairs)


def ticket(cib: Cib, text: str, now: WallTime) -> Cib | ReportItem:
    """Suppose that a ticket is `granted`, `revoked`, in `standby` or `active` again: `NAME=STATE`."""
    name, equals, state = text.partition("=")
    if not equals or state not in TICKET_STATES:
        return _bad("ticket", f"{text!r} is not NAME=STATE; the states are {', '.join(TICKET_STATES)}")
    known = cib.status.tickets.get(name) or TicketState(name)
    changes: Mapping[str, TicketState] = {
        "granted": replace(known, is_granted=True, last_granted=now),
        "revoked": replace(known, is_granted=False),
        "standby": replace(known, is_standby=True),
        "active": replace(known, is_standby=False),
    }
    return replace(cib, status=replace(cib.status, tickets={**cib.status.tickets, name: changes[state]}))


def operation_failure(cib: Cib, text: str, now: WallTime) -> Cib | ReportItem:
    """Suppose that an action has failed: `RESOURCE:ACTION@NODE=CODE`, a recurring one as `RESOURCE:monitor:10s@...`."""
    found = _OPERATION.match(text)
    if found is None:
        return _bad("op-fail", f"{text!r} is not RESOURCE:ACTION@NODE=CODE, as web:monitor:10s@n1=7")
    node = _node(cib, found["node"], "op-fail")
    if isinstance(node, ReportItem):
        return node
    resource = ResourceId(found["resource"])
    primitive = cib.configuration.resources.get(base_of(resource))
    if not isinstance(primitive, Primitive):
        names = [each.id for each in cib.configuration.primitives()]
        remedy = did_you_mean(resource, names, "see: crm resource status")
        return _bad("op-fail", f"{resource!r} is no primitive{f'; {remedy}' if remedy else ''}")
    primitive = expanded(primitive, cib.configuration)
    interval_ms = _interval_ms(primitive, found["name"], found["interval"])
    if interval_ms is None:
        return _bad("op-fail", f"{found['interval']!r} is no interval")
    status = cib.status.nodes.get(node) or NodeStatus(node)
    history = status.histories.get(resource) or ResourceHistory(resource, primitive.agent)
    record = OperationRecord(
        found["name"], interval_ms, status.last_call_id + 1, ExitCode.read(int(found["code"][:6])),
        ExecutionStatus.DONE, _expected(history, found["name"], interval_ms), run_at=now, changed_at=now,
        exit_reason="supposed",
    )  # fmt: skip
    newest = max((each.call_id for each in history.records.values()), default=0)
    last = max((each.sequence for each in history.records.values()), default=0)
    # What Pacemaker recorded has a place in its order, and a failure that is supposed comes after all of it.
    record = replace(record, call_id=max(record.call_id, newest + 1), sequence=last + 1 if last else 0)
    if record.is_failure and record.status is ExecutionStatus.DONE:
        record = replace(record, status=ExecutionStatus.ERROR)
    return _with_status(cib, _recorded(status, history, record))


def _expected(history: ResourceHistory, name: str, interval_ms: int) -> ExitCode:
    known = history.records.get(operation_key(name, interval_ms))
    if known is not None:
        return known.target_exit_code
    return ExitCode.NOT_RUNNING if name == ActionName.MONITOR and not interval_ms else ExitCode.OK


def _interval_ms(primitive: Primitive, name: str, text: str | None) -> int | None:
    """Return the interval that is meant: of a monitor without one, the shortest that is configured."""
    if text is None:
        configured = [each.interval_ms for each in primitive.operations if each.name == name and each.interval_ms]
        return min(configured, default=0)
    try:
        return durations.parse(text)
    except ValueError:
        return None


def _recorded(status: NodeStatus, history: ResourceHistory, record: OperationRecord) -> NodeStatus:
    key = operation_key(record.operation, record.interval_ms)
    records = {**history.records, key: record}
    changed = replace(history, records=records)
    if record.is_failure:
        known = history.fail_counts.get(key)
        is_final = record.operation in (ActionName.START, ActionName.STOP)
        count = INFINITY if is_final else add(known.count if known is not None else 0, 1)
        failure = FailCount(record.operation, record.interval_ms, count, record.ended_at)
        changed = replace(changed, fail_counts={**history.fail_counts, key: failure}, last_failure=record)
    histories = {**status.histories, history.resource: changed}
    return replace(status, histories=histories, last_call_id=record.call_id, probed=status.probed - {history.resource})


def _node(cib: Cib, name: str, option: str) -> NodeName | ReportItem:
    for known in (*cib.members, *cib.status.nodes):
        if known.lower() == name.lower():
            return known
    remedy = did_you_mean(name, sorted(cib.members), "see: crm cluster members")
    return _bad(option, f"{name!r} is no node of this cluster{f'; {remedy}' if remedy else ''}")


def _with_status(cib: Cib, status: NodeStatus) -> Cib:
    return replace(cib, status=replace(cib.status, nodes={**cib.status.nodes, status.name: status}))


def _bad(option: str, problem: str) -> ReportItem:
    return report(Code.BAD_ARGUMENT, name=option, problem=problem)


SUPPOSITIONS: Mapping[str, Supposition] = {
    "set": set_property,
    "ticket": ticket,
    "node_up": node_up,
    "standby": standby,
    "op_fail": operation_failure,
    "node_down": node_down,
}
"""By the name of the argument, in the order in which they take effect."""


def suppose(cib: Cib, wanted: Mapping[str, tuple[str, ...]], now: WallTime) -> Cib | tuple[ReportItem, ...]:
    """Return the CIB under all suppositions, or every objection to them."""
    objections: list[ReportItem] = []
    for name, supposition in SUPPOSITIONS.items():
        for text in wanted.get(name, ()):
            changed = supposition(cib, text, now)
            if isinstance(changed, ReportItem):
                objections.append(changed)
            else:
                cib = changed
    return tuple(objections) or cib
