"""What may be active on a node, judged by its status alone and always on the side of caution (safety.md §1).

One answer for the scheduler, for `apply` and for the executors: where they differed, one would order what another
refuses.
"""

from collections.abc import Collection, Mapping

from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.history import OperationRecord, ResourceHistory, operation_key, ordered_records
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.ocf import BEGINNINGS, ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import replace
from haclusterd.model.secrets import is_without_revision

_NOT_PROMOTED = frozenset({ExitCode.OK, ExitCode.NOT_RUNNING})
"""What a monitor answers of an instance that is not promoted; one that fails says nothing about the role."""
_COULD_NOT_LOOK = frozenset({ExitCode.NOT_INSTALLED, ExitCode.ARGUMENTS, ExitCode.NOT_CONFIGURED})
"""What a probe answers where the service is not installed, or its configuration is missing or wrong."""

HOLDING = (NodeState.ONLINE, NodeState.LOST)
"""States of a node in which something may be active there."""


def could_not_look(record: OperationRecord) -> bool:
    """Return whether a probe says nothing about the service: what was so before it is still so.

    Where nothing ran by earlier records, nothing runs, and the node is banned (Pacemaker masks such probes too). Where
    something ran, the program or its configuration may have been taken away under it, as by an upgrade of its package.
    """
    is_answer = record.exit_code in _COULD_NOT_LOOK or record.status is ExecutionStatus.NOT_INSTALLED
    return record.is_probe and is_answer


def history_says_active(history: ResourceHistory) -> bool:
    """Return whether the newest conclusive record leaves the resource active, or leaves doubt."""
    if history.reloads:
        return True
    for record in reversed(ordered_records(history)):
        if record.status is ExecutionStatus.NOT_INSTALLED:
            continue
        if could_not_look(record):
            continue
        if record.status is ExecutionStatus.PENDING:
            if record.operation == ActionName.MONITOR:
                continue
            return True
        if record.operation == ActionName.STOP:
            return record.is_failure
        if record.operation == ActionName.MONITOR and record.exit_code is ExitCode.NOT_RUNNING:
            return False
        if record.operation == ActionName.START and record.is_failure:
            return record.exit_code not in (ExitCode.NOT_INSTALLED, ExitCode.NOT_RUNNING)
        return True
    return False


def without_records(history: ResourceHistory, dropped: Collection[str]) -> ResourceHistory:
    """Return a history without the records of these keys (`operation_key`), as active as before.

    Where they alone left the resource active, or in doubt, an undecided start takes their place: a probe that could not
    look must not find a resource of which nothing is recorded.
    """
    kept = {key: record for key, record in history.records.items() if key not in dropped}
    shorter = replace(history, records=kept)
    if not history_says_active(history) or history_says_active(shorter):
        return shorter
    newest = ordered_records(replace(history, records={key: history.records[key] for key in dropped}))[-1]
    begun = replace(
        newest,
        operation=str(ActionName.START),
        interval_ms=0,
        exit_code=ExitCode.UNKNOWN,
        status=ExecutionStatus.UNKNOWN,
        target_exit_code=ExitCode.OK,
    )
    return replace(shorter, records={**kept, operation_key(ActionName.START, 0): begun})


def history_says_ended(history: ResourceHistory) -> bool:
    """Return whether the newest conclusive record proves that nothing runs by the parameters of the newest start."""
    if history.reloads:
        return False
    for record in reversed(ordered_records(history)):
        if record.status is ExecutionStatus.NOT_INSTALLED or could_not_look(record):
            continue
        is_stopped = record.operation == ActionName.STOP and not record.is_failure
        return is_stopped or (record.operation == ActionName.MONITOR and record.exit_code is ExitCode.NOT_RUNNING)
    return False


def history_says_promoted(history: ResourceHistory) -> bool:
    """Return whether the newest conclusive record leaves the resource promoted, or leaves doubt.

    A failed stop promotes nothing: what was known before it stays so, as Pacemaker has it.
    """
    is_in_doubt = False
    for record in reversed(ordered_records(history)):
        if record.exit_code in (ExitCode.PROMOTED, ExitCode.FAILED_PROMOTED) or record.operation == ActionName.PROMOTE:
            return True
        if record.operation in (ActionName.STOP, ActionName.DEMOTE):
            has_failed = record.is_failure and record.exit_code is not ExitCode.NOT_RUNNING
            if not has_failed or record.operation == ActionName.DEMOTE:
                return has_failed
            is_in_doubt = True
        if record.operation == ActionName.START:
            return False
        if record.operation == ActionName.MONITOR and record.exit_code in _NOT_PROMOTED:
            return False
    return is_in_doubt


def possibly_promoted(status: NodeStatus, resource: ResourceId) -> bool:
    """Return whether an instance of a promotable clone may be promoted on a node.

    While it is unverified it may: a promote, or a demote, may have been its last action. So it may while a reload is in
    doubt: a demote may have been asked of parameters by which nothing runs.
    """
    if status.state not in HOLDING:
        return False
    history = status.histories.get(resource)
    is_in_doubt = resource in status.unverified or (history is not None and bool(history.reloads))
    return is_in_doubt or known_promoted(status, resource)


def known_promoted(status: NodeStatus, resource: ResourceId) -> bool:
    """Return whether an order or a record says that a resource may be promoted on a node that is online or lost."""
    if any(order.resource == resource and order.action is ActionName.PROMOTE for order in status.orders.values()):
        return True
    history = status.histories.get(resource)
    return history is not None and history_says_promoted(history)


def may_be_active(status: NodeStatus, resource: ResourceId) -> bool:
    """Return whether a resource is active on a node by its history, or nobody knows whether it is."""
    history = status.histories.get(resource)
    return resource in status.unverified or (history is not None and history_says_active(history))


def started_as(status: NodeStatus, resource: ResourceId) -> Order | ResourceHistory | None:
    """Return what says by which agent and parameters that was started which may run on a node.

    It is the open order to start it, or its history; None: nothing may run there, or nobody knows how it was started.
    What has ended and is in doubt again, as after a restart of the daemon, can have been started by hand alone: it is
    looked for as it is configured, since a secret that its older parameters refer to may be deleted. So is what was
    asked for by a secret that did not exist: nothing was run with it.
    """
    for order in status.orders.values():
        if order.resource == resource and order.action in BEGINNINGS:
            return order
    history = status.histories.get(resource)
    if history is None or history_says_ended(history) or not was_run(history):
        return None
    return history if may_be_active(status, resource) else None


def was_run(history: ResourceHistory) -> bool:
    """Return whether an agent can have been run with a history's parameters: none was by a secret that did not exist.
    """
    return not any(map(is_without_revision, history.parameters.values()))


Way = tuple[AgentReference, Mapping[str, str]]
"""An agent, and the parameters of the resource that it is given."""


def ways_of(status: NodeStatus, resource: ResourceId) -> tuple[Way, ...]:
    """Return every way in which that may run which may be active on a node: one of them finds it and ends it.

    There are several where a reload is under way, or did not succeed; none where nobody knows how it was started.
    """
    orders = [order for order in status.orders.values() if order.resource == resource]
    ways = [(order.agent, order.lasting_parameters) for order in orders if order.is_activating][:1]
    history = status.histories.get(resource)
    if history is not None:
        ways = ways or [(history.agent, history.parameters)]
        ways += [(history.agent, reload.parameters) for reload in history.reloads]
    ways += [(order.agent, order.lasting_parameters) for order in orders if order.action is ActionName.RELOAD_AGENT]
    return tuple(way for place, way in enumerate(ways) if way not in ways[:place])


def may_hold_anything(status: NodeStatus) -> bool:
    """Return whether any resource may be active on a node: `possibly_active` is not empty."""
    if status.state not in HOLDING:
        return False
    return (
        bool(status.unverified)
        or any(order.is_activating for order in status.orders.values())
        or any(history_says_active(history) for history in status.histories.values())
    )


def may_be_active_or_begin(status: NodeStatus, resource: ResourceId) -> bool:
    """Return whether a resource is one of `possibly_active`."""
    if status.state not in HOLDING:
        return False
    is_ordered = any(order.resource == resource and order.is_activating for order in status.orders.values())
    return is_ordered or may_be_active(status, resource)


def possibly_active(status: NodeStatus) -> frozenset[ResourceId]:
    """Return the resources that may be active on a node."""
    if status.state not in HOLDING:
        return frozenset()
    ordered = {order.resource for order in status.orders.values() if order.is_activating}
    recorded = {resource for resource, history in status.histories.items() if history_says_active(history)}
    return frozenset(ordered | recorded | status.unverified)


def migrations_at(cib: Cib, node: NodeName) -> tuple[Order, ...]:
    """Return the open orders on other nodes that migrate something to this node, or from it.

    Those of a lost node count until it is fenced; where fencing is disabled, nobody waits for that.
    """
    states = HOLDING if ClusterProperties(cib.in_force).boolean("fencing-enabled") else (NodeState.ONLINE,)
    return tuple(
        order
        for _, status in sorted(cib.status.nodes.items())
        if status.state in states
        for order in status.orders.values()
        if order.other_node == node
    )


def migrating_to_or_from(cib: Cib, node: NodeName) -> frozenset[ResourceId]:
    """Return the resources of these orders."""
    return frozenset(order.resource for order in migrations_at(cib, node))
