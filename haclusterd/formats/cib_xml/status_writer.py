"""What is not configured as CIB XML: nodes, their transient attributes, recorded operations, tickets.

Pacemaker's own tools read it (`CIB_file=FILE crm_mon -1`), and so do programs that were written for them. What only
this program knows (orders, incarnations, proofs) has no place there and is left out: the text is for readers, and is
never loaded as a state.

The elements are those of Pacemaker Explained, "Status"; what a record of ours does not have is made up so that their
meaning is the same: a transition key has the expected exit code in its third part and nothing else that counts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from haclusterd.formats.cib_xml.elements import element
from haclusterd.model import scores
from haclusterd.model.cluster import Cib, NodeState, NodeStatus, TicketState
from haclusterd.model.configuration import Primitive
from haclusterd.model.history import OperationRecord, ResourceHistory, operation_key, ordered_records
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.records import replace
from haclusterd.model.templates import expanded

FEATURE_SET = "3.16.1"
"""The feature set of the Pacemaker whose tools read this."""
_FEATURE_SET_NAME = "#feature-set"
_NOT_RECORDED = frozenset({ActionName.CANCEL, ActionName.NOTIFY})
_NO_ID = re.compile(r"[^\w.-]")
_NO_UUID = "00000000-0000-0000-0000-000000000000"
OPERATION_STATUS: Mapping[ExecutionStatus, int] = {
    ExecutionStatus.PENDING: -1,
    ExecutionStatus.DONE: 0,
    ExecutionStatus.CANCELLED: 1,
    ExecutionStatus.TIMEOUT: 2,
    ExecutionStatus.NOT_SUPPORTED: 3,
    # Pacemaker keeps what an agent answered as complete, and judges it by its exit code.
    ExecutionStatus.ERROR: 0,
    ExecutionStatus.HARD_ERROR: 5,
    ExecutionStatus.FATAL_ERROR: 6,
    ExecutionStatus.NOT_INSTALLED: 7,
    ExecutionStatus.NOT_CONNECTED: 8,
    ExecutionStatus.INVALID: 9,
    ExecutionStatus.NO_FENCE_DEVICE: 10,
    ExecutionStatus.NO_SECRETS: 11,
    ExecutionStatus.UNKNOWN: 4,
}


def node_numbers(cib: Cib) -> dict[NodeName, str]:
    """Return the id of every node: the one that is configured, else its place among the nodes in order of names."""
    names = sorted({*cib.members, *cib.configuration.nodes})
    configured = {name: cib.configuration.nodes[name].id for name in names if name in cib.configuration.nodes}
    taken = set(configured.values())
    found: dict[NodeName, str] = {}
    for number, name in enumerate(names, start=1):
        wanted = configured.get(name) or str(number)
        while not configured.get(name) and wanted in taken:
            wanted = str(int(wanted) + len(names))
        taken.add(wanted)
        found[name] = wanted
    return found


def status_lines(cib: Cib) -> Iterator[str]:
    """Yield the section `status`."""
    numbers = node_numbers(cib)
    states = (
        line for name, status in sorted(cib.status.nodes.items()) if name in numbers
        for line in _node_state(status, numbers[name])
    )  # fmt: skip
    yield from element("status", {}, [*states, *ticket_lines(cib.status.tickets)])


def _node_state(status: NodeStatus, number: str) -> Iterator[str]:
    is_online = status.state is NodeState.ONLINE
    is_expected = is_online or status.state is NodeState.LOST
    attributes = {
        "id": number,
        "uname": status.name,
        "in_ccm": "true" if is_online else "false",
        "crmd": "online" if is_online else "offline",
        "crm-debug-origin": "haclusterd",
        "join": "member" if is_online and not status.is_joining else "down",
        "expected": "member" if is_expected else "down",
    }
    return element("node_state", attributes, [*_attributes(status, number), *_histories(status, number)])


def _attributes(status: NodeStatus, number: str) -> Iterator[str]:
    block = f"status-{number}"
    values = [*status.attributes.items(), *_fail_counts(status)]
    if status.state is NodeState.ONLINE:
        values.append((_FEATURE_SET_NAME, FEATURE_SET))
    if status.is_leaving:
        values.append(("shutdown", str(status.since // 1000)))
    pairs = (line for each in _pairs(block, values) for line in element("nvpair", each))
    inside = list(element("instance_attributes", {"id": block}, pairs))
    if status.utilization:
        wanted = (
            line for each in _pairs(f"{block}-utilization", status.utilization.items())
            for line in element("nvpair", each)
        )  # fmt: skip
        inside += element("utilization", {"id": f"{block}-utilization"}, wanted)
    return element("transient_attributes", {"id": number}, inside)


def _pairs(block: str, values: Iterable[tuple[str, str]]) -> Iterator[dict[str, str]]:
    """Yield the attributes of pairs; their ids are made of their names, as Pacemaker's are, and are unique."""
    used: set[str] = set()
    for name, value in values:
        own = f"{block}-{_NO_ID.sub('.', name)}"
        choices = (own, *(f"{own}-{at}" for at in range(2, len(used) + 3)))
        identifier = next(each for each in choices if each not in used)
        used.add(identifier)
        yield {"id": identifier, "name": name, "value": value}


def _fail_counts(status: NodeStatus) -> Iterator[tuple[str, str]]:
    for resource, history in status.histories.items():
        for count in history.fail_counts.values():
            suffix = f"{resource}#{count.operation}_{count.interval_ms}"
            yield f"fail-count-{suffix}", scores.render(count.count)
            yield f"last-failure-{suffix}", str(count.failed_at // 1000)


def recorded(status: NodeStatus) -> tuple[ResourceHistory, ...]:
    """Return what is recorded on a node, with what is under way as records that are pending (`record-pending`)."""
    histories = dict(status.histories)
    for at, order in enumerate(status.orders.values()):
        if order.action in _NOT_RECORDED:
            continue
        known = histories.get(order.resource) or ResourceHistory(order.resource, order.agent)
        name = ActionName.MONITOR if order.is_probe else order.action
        record = OperationRecord(
            str(name), order.interval_ms, status.last_call_id + 1 + at, ExitCode.UNKNOWN, ExecutionStatus.PENDING,
            order.target_exit_code, order.issued_at, order.issued_at,
        )  # fmt: skip
        records = {**known.records, f"pending {order.key}": record}
        histories[order.resource] = replace(known, records=records)
    return tuple(histories.values())


def with_probes(cib: Cib) -> Cib:
    """Return the CIB with a record of each probe that found nothing: of those only is noted that they were made.

    Pacemaker keeps them as records, and its tools plan probes where there are none.
    """
    known = cib.configuration.resources
    nodes = dict(cib.status.nodes)
    for name, status in nodes.items():
        found = {}
        for identifier in sorted(status.probed - status.unverified - status.histories.keys()):
            resource = known.get(identifier) or known.get(ResourceId(identifier.partition(":")[0]))
            if isinstance(resource, Primitive):
                record = OperationRecord(
                    ActionName.MONITOR, 0, 1, ExitCode.NOT_RUNNING, ExecutionStatus.DONE, ExitCode.NOT_RUNNING,
                    status.since, status.since,
                )  # fmt: skip
                agent = expanded(resource, cib.configuration).agent
                found[identifier] = ResourceHistory(identifier, agent, {operation_key(ActionName.MONITOR, 0): record})
        nodes[name] = replace(status, histories={**status.histories, **found})
    return replace(cib, status=replace(cib.status, nodes=nodes))


def records_of(history: ResourceHistory) -> list[OperationRecord]:
    """Return a history's records, oldest first, with the failure that is not forgiven."""
    listed, failed = ordered_records(history), history.last_failure
    if failed is None or any(each.call_id == failed.call_id for each in listed):
        return listed
    return [failed, *listed]


def _histories(status: NodeStatus, number: str) -> Iterator[str]:
    lines = (line for history in recorded(status) for line in _history(status, history))
    return element("lrm", {"id": number}, element("lrm_resources", {}, lines))


def _history(status: NodeStatus, history: ResourceHistory) -> Iterator[str]:
    agent = history.agent
    locked_at = status.locks.get(history.resource)
    attributes = {
        "id": history.resource, "class": agent.standard, "provider": agent.provider, "type": agent.type,
        "shutdown-lock": None if locked_at is None else str(locked_at // 1000),
        "container": history.launcher,
    }  # fmt: skip
    used: set[str] = set()
    lines: list[str] = []
    for record in records_of(history):
        identifier = _identifier(history, record, used)
        used.add(identifier)
        lines += _record(status.name, history, record, identifier)
    return element("lrm_resource", attributes, lines)


def _identifier(history: ResourceHistory, record: OperationRecord, used: set[str]) -> str:
    """Return Pacemaker's id of a record: one for the last action, one for each monitor, one for the last failure."""
    own = f"{history.resource}_{record.operation}_{record.interval_ms}"
    if record == history.last_failure:
        return f"{history.resource}_last_failure_0"
    wanted = own if record.interval_ms else f"{history.resource}_last_0"
    choices = (wanted, own, *(f"{own}-{count}" for count in range(2, len(used) + 3)))
    return next(each for each in choices if each not in used)


def _record(node: NodeName, history: ResourceHistory, record: OperationRecord, identifier: str) -> Iterator[str]:
    status, code = OPERATION_STATUS[record.status], _code(record)
    key = f"0:0:{_number(record.target_exit_code)}:{_NO_UUID}"
    attributes = {
        "id": identifier,
        "operation_key": f"{history.resource}_{record.operation}_{record.interval_ms}",
        "operation": record.operation,
        "crm-debug-origin": "haclusterd",
        "crm_feature_set": FEATURE_SET,
        "transition-key": key,
        "transition-magic": f"{status}:{code};{key}",
        "exit-reason": record.exit_reason,
        "on_node": node,
        "call-id": str(record.call_id),
        "rc-code": str(code),
        "op-status": str(status),
        "interval": str(record.interval_ms),
        "last-rc-change": str(record.changed_at // 1000),
        "exec-time": str(record.executed_ms),
        "queue-time": str(record.queued_ms),
        "migrate_source": record.migrate_source,
        "migrate_target": record.migrate_target,
        "op-digest": record.digest or None,
        "op-restart-digest": record.restart_digest or None,
        "op-force-restart": None if record.restart_parameters is None else _list(record.restart_parameters),
    }
    return element("lrm_rsc_op", attributes)


def _code(record: OperationRecord) -> int:
    return _number(ExitCode.ERROR if record.is_undecided else record.exit_code)


def _number(code: ExitCode) -> int:
    return code.value


def _list(names: tuple[str, ...]) -> str:
    return f" {' '.join(names)} " if names else ""


def ticket_lines(tickets: Mapping[str, TicketState]) -> Iterator[str]:
    """Yield the tickets; nothing when there are none."""
    if not tickets:
        return
    lines: list[str] = []
    for name, state in sorted(tickets.items()):
        attributes: dict[str, str | None] = {
            "id": name,
            "granted": str(state.is_granted).lower(),
            "standby": str(state.is_standby).lower(),
            "last-granted": str(state.last_granted // 1000) if state.last_granted else None,
        }
        lines += element("ticket_state", {**attributes, **{k: v for k, v in state.attributes.items() if k != "id"}})
    yield from element("tickets", {}, lines)
